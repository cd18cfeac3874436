// GatedDeltaRule: linear attention whose state decays and replaces the values of similar keys.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

// The columns of a state that are computed side by side: a block of them stays in the first-level cache for all tokens.
using Lanes = Pack<float, 64>;
constexpr std::int64_t lanes = Lanes::size;
constexpr int packs_together = 2;
constexpr std::int64_t block = packs_together * lanes;

struct Sizes {
  std::int64_t tokens, heads, columns, groups, rows;
};

// Some columns of one head. `count` of them exist, the others are 0.
struct Piece {
  const float *query, *key, *value, *decay, *beta, *before;
  float *after, *output, *state;
  std::int64_t count;
};

template <int packs>
SPECOPS_INLINE void load(Lanes* to, const float* from, std::int64_t count) {
  if (count == packs * lanes) {
    for (int p = 0; p < packs; ++p) to[p].load(from + p * lanes);
  } else {
    float padded[packs * lanes] = {};
    std::copy(from, from + count, padded);
    for (int p = 0; p < packs; ++p) to[p].load(padded + p * lanes);
  }
}

template <int packs>
SPECOPS_INLINE void store(const Lanes* from, float* to, std::int64_t count) {
  if (count == packs * lanes) {
    for (int p = 0; p < packs; ++p) from[p].store(to + p * lanes);
  } else {
    float padded[packs * lanes];
    for (int p = 0; p < packs; ++p) from[p].store(padded + p * lanes);
    std::copy(padded, padded + count, to);
  }
}

// Adds the update of a token to its decayed state, and computes its output. Decays the state for the next token, and computes
// the values that it finds; the state of the last token goes to `after`.
template <int packs, bool last>
SPECOPS_INLINE void step(const Sizes& sizes, const Piece& piece, const float* query, const float* key, const float* next_key,
                         float next_factor, const Lanes* delta, Lanes* output, Lanes* found) {
  constexpr std::int64_t width = packs * lanes;
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    float* state = piece.state + row * width;
    Lanes current[packs];
    for (int p = 0; p < packs; ++p) {
      current[p].load(state + p * lanes);
      current[p].add_product(delta[p], key[row]);
      output[p].add_product(current[p], query[row]);
    }
    if constexpr (last) {
      store<packs>(current, piece.after + row * sizes.columns, piece.count);
    } else {
      for (int p = 0; p < packs; ++p) {
        current[p].multiply(next_factor);
        current[p].store(state + p * lanes);
        found[p].add_product(current[p], next_key[row]);
      }
    }
  }
}

template <int packs>
SPECOPS_INLINE void scan(const Sizes& sizes, const Piece& piece) {
  constexpr std::int64_t width = packs * lanes;
  const std::int64_t keys = sizes.groups * sizes.rows, values = sizes.heads * sizes.columns;
  Lanes found[packs];
  const float first = std::exp(piece.decay[0]);
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    Lanes current[packs];
    load<packs>(current, piece.before + row * sizes.columns, piece.count);
    for (int p = 0; p < packs; ++p) {
      current[p].multiply(first);
      current[p].store(piece.state + row * width + p * lanes);
      found[p].add_product(current[p], piece.key[row]);
    }
  }
  for (std::int64_t t = 0; t < sizes.tokens; ++t) {
    const float *query = piece.query + t * keys, *key = piece.key + t * keys;
    Lanes delta[packs], output[packs], next_found[packs];
    load<packs>(delta, piece.value + t * values, piece.count);
    for (int p = 0; p < packs; ++p) {
      delta[p].add_product(found[p], -1.0f);
      delta[p].multiply(piece.beta[t * sizes.heads]);
    }
    if (t + 1 < sizes.tokens) {
      const float factor = std::exp(piece.decay[(t + 1) * sizes.heads]);
      step<packs, false>(sizes, piece, query, key, key + keys, factor, delta, output, next_found);
    } else {
      step<packs, true>(sizes, piece, query, key, nullptr, 0, delta, output, next_found);
    }
    store<packs>(output, piece.output + t * values, piece.count);
    std::copy(next_found, next_found + packs, found);
  }
}

SPECOPS_CLONES void scan_columns(const Sizes& sizes, const Piece& piece) {
  if (piece.count > lanes) {
    scan<packs_together>(sizes, piece);
  } else {
    scan<1>(sizes, piece);
  }
}

class GatedDeltaRule : public Kernel {
 public:
  void compute(Context& context) const override {
    static constexpr const char* names[] = {"query", "key", "value", "past_state", "decay", "beta"};
    const Input query = context.input(0), value = context.input(2);
    if (query.shape().size() != 4 || value.shape().size() != 4) {
      fail("query and value have the shapes ", to_string(query.shape()), " and ", to_string(value.shape()),
           "; expected [batch, tokens, groups, size] and [batch, tokens, heads, size]");
    }
    const std::int64_t batch = value.shape()[0];
    const Sizes sizes = {value.shape()[1], value.shape()[2], value.shape()[3], query.shape()[2], query.shape()[3]};
    const Shape keys = {batch, sizes.tokens, sizes.groups, sizes.rows}, gates = {batch, sizes.tokens, sizes.heads};
    const Shape states = {batch, sizes.heads, sizes.rows, sizes.columns};
    const Shape wanted[] = {keys, keys, value.shape(), states, gates, gates};
    for (std::size_t i = 0; i < 6; ++i) {
      const Input given = context.input(i);
      if (given.shape() != wanted[i]) {
        fail(names[i], " has the shape ", to_string(given.shape()), " instead of ", to_string(wanted[i]));
      }
    }
    if (sizes.groups == 0 || sizes.heads % sizes.groups != 0) {
      fail("value has ", sizes.heads, " heads; expected a multiple of ", sizes.groups, ", the groups of query");
    }
    Output output = context.output(0, value.shape()), present = context.output(1, states);
    const auto *q = query.data<float>(), *k = context.input(1).data<float>(), *v = value.data<float>();
    const auto *before = context.input(3).data<float>(), *decay = context.input(4).data<float>();
    const auto* beta = context.input(5).data<float>();
    auto *out = output.data<float>(), *after = present.data<float>();
    if (sizes.tokens == 0) {
      std::copy(before, before + batch * sizes.heads * sizes.rows * sizes.columns, after);
      return;
    }
    const std::int64_t blocks = (sizes.columns + block - 1) / block;
    const std::int64_t work = sizes.tokens * (sizes.rows + 8) * block;
    context.parallel_ranges(batch * sizes.heads * blocks, 1 + 65536 / work, [&](std::int64_t first, std::int64_t last) {
      std::vector<float> state(static_cast<std::size_t>(sizes.rows * block));
      for (std::int64_t number = first; number < last; ++number) {
        const std::int64_t column = number % blocks * block, head = number / blocks % sizes.heads;
        const std::int64_t row = number / blocks / sizes.heads, group = head / (sizes.heads / sizes.groups);
        const std::int64_t from = (row * sizes.tokens * sizes.groups + group) * sizes.rows;
        const std::int64_t to = (row * sizes.tokens * sizes.heads + head) * sizes.columns + column;
        const std::int64_t gate = row * sizes.tokens * sizes.heads + head;
        const std::int64_t own = (row * sizes.heads + head) * sizes.rows * sizes.columns + column;
        scan_columns(sizes, {q + from, k + from, v + to, decay + gate, beta + gate, before + own, after + own, out + to,
                             state.data(), std::min(block, sizes.columns - column)});
      }
    });
  }
};

}  // namespace

const Op& gated_delta_rule() {
  static const Op op = {
      "GatedDeltaRule",
      {{"query"}, {"key"}, {"value"}, {"past_state"}, {"decay"}, {"beta"}},
      {{"output"}, {"present_state"}},
      {},
      {{std::vector<Type>(6, Type::float32), {Type::float32, Type::float32}}},
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<GatedDeltaRule>(); },
      [](ShapeInference& graph) {
        graph.set_output(0, graph.type(2), graph.shape(2));
        graph.set_output(1, graph.type(2), graph.shape(3));
      },
  };
  return op;
}

}  // namespace specops
