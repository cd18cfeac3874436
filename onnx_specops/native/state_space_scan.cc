// StateSpaceScan: the recurrence of a state space with one decay for each head (Mamba 2).
#include <algorithm>
#include <cstdint>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

// The elements of a state that are computed side by side, and the rows of a state that share a load of the gates.
using Lanes = Pack<float, 64>;
constexpr std::int64_t lanes = Lanes::size;
constexpr int rows_together = 4;

struct Sizes {
  std::int64_t tokens, heads, channels, groups, size;
};

SPECOPS_INLINE float sum_of(const Lanes& values) {
  float all[lanes], sums[lanes / 2];
  values.store(all);
  for (std::int64_t i = 0; i < lanes / 2; ++i) sums[i] = all[i] + all[i + lanes / 2];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// Scans `count` rows of one head's state. `x` and `y` point to the first of them at the first token, the other pointers to
// the first token of the row of the batch. `before` and `after` point to the rows of the state.
template <int count>
SPECOPS_INLINE void scan(const Sizes& sizes, const float* x, const float* decay, const float* input_gate,
                         const float* output_gate, const float* before, float* after, float* y) {
  const std::int64_t size = sizes.size, whole = size / lanes * lanes;
  for (std::int64_t t = 0; t < sizes.tokens; ++t) {
    const float factor = decay[t * sizes.heads];
    const float* in = input_gate + t * sizes.groups * size;
    const float* out = output_gate + t * sizes.groups * size;
    float added[count], rest[count] = {};
    Lanes sums[count];
    for (int r = 0; r < count; ++r) added[r] = x[t * sizes.heads * sizes.channels + r];
    for (std::int64_t n = 0; n < whole; n += lanes) {
      Lanes into, from;
      into.load(in + n);
      from.load(out + n);
      for (int r = 0; r < count; ++r) {
        Lanes current;
        current.load(before + r * size + n);
        current.multiply(factor);
        current.add_product(into, added[r]);
        current.store(after + r * size + n);
        sums[r].add_product(current, from);
      }
    }
    for (std::int64_t n = whole; n < size; ++n) {
      for (int r = 0; r < count; ++r) {
        const float current = before[r * size + n] * factor + added[r] * in[n];
        rest[r] += current * out[n];
        after[r * size + n] = current;
      }
    }
    for (int r = 0; r < count; ++r) y[t * sizes.heads * sizes.channels + r] = sum_of(sums[r]) + rest[r];
    before = after;
  }
}

SPECOPS_CLONES void scan_rows(std::int64_t count, const Sizes& sizes, const float* x, const float* decay,
                              const float* input_gate, const float* output_gate, const float* before, float* after, float* y) {
  if (count == rows_together) {
    scan<rows_together>(sizes, x, decay, input_gate, output_gate, before, after, y);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    scan<1>(sizes, x + r, decay, input_gate, output_gate, before + r * sizes.size, after + r * sizes.size, y + r);
  }
}

class StateSpaceScan : public Kernel {
 public:
  void compute(Context& context) const override {
    static constexpr const char* names[] = {"x", "decay", "input_gate", "output_gate", "state"};
    const Input x = context.input(0), input_gate = context.input(2);
    if (x.shape().size() != 4 || input_gate.shape().size() != 4) {
      fail("x and input_gate have the shapes ", to_string(x.shape()), " and ", to_string(input_gate.shape()),
           "; expected [batch, tokens, heads, channels] and [batch, tokens, groups, size]");
    }
    const std::int64_t batch = x.shape()[0];
    const Sizes sizes = {x.shape()[1], x.shape()[2], x.shape()[3], input_gate.shape()[2], input_gate.shape()[3]};
    const Shape gates = {batch, sizes.tokens, sizes.groups, sizes.size};
    const Shape states = {batch, sizes.heads, sizes.channels, sizes.size};
    const Shape wanted[] = {x.shape(), {batch, sizes.tokens, sizes.heads}, gates, gates, states};
    for (std::size_t i = 1; i < 5; ++i) {
      const Input given = context.input(i);
      if (given.shape() != wanted[i]) {
        fail(names[i], " has the shape ", to_string(given.shape()), " instead of ", to_string(wanted[i]));
      }
    }
    if (sizes.groups == 0 || sizes.heads % sizes.groups != 0) {
      fail("x has ", sizes.heads, " heads; expected a multiple of ", sizes.groups, ", the groups of input_gate");
    }
    Output y = context.output(0, x.shape()), present = context.output(1, states);
    const auto *from = x.data<float>(), *factors = context.input(1).data<float>();
    const auto *in = input_gate.data<float>(), *out = context.input(3).data<float>(), *state = context.input(4).data<float>();
    auto *to = y.data<float>(), *after = present.data<float>();
    if (sizes.tokens == 0) {
      std::copy(state, state + batch * sizes.heads * sizes.channels * sizes.size, after);
      return;
    }
    // A piece is some rows of the state of one head.
    const std::int64_t blocks = (sizes.channels + rows_together - 1) / rows_together;
    const std::int64_t work = sizes.tokens * (sizes.size + 8) * rows_together;
    context.parallel_ranges(batch * sizes.heads * blocks, 1 + 65536 / work, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t piece = first; piece < last; ++piece) {
        const std::int64_t channel = piece % blocks * rows_together, head = piece / blocks % sizes.heads;
        const std::int64_t row = piece / blocks / sizes.heads, group = head / (sizes.heads / sizes.groups);
        const std::int64_t count = std::min<std::int64_t>(rows_together, sizes.channels - channel);
        const std::int64_t at = (row * sizes.tokens * sizes.heads + head) * sizes.channels + channel;
        const std::int64_t gate = (row * sizes.tokens * sizes.groups + group) * sizes.size;
        const std::int64_t own = ((row * sizes.heads + head) * sizes.channels + channel) * sizes.size;
        scan_rows(count, sizes, from + at, factors + row * sizes.tokens * sizes.heads + head, in + gate, out + gate,
                  state + own, after + own, to + at);
      }
    });
  }
};

}  // namespace

const Op& state_space_scan() {
  static const Op op = {
      "StateSpaceScan",
      {{"x"}, {"decay"}, {"input_gate"}, {"output_gate"}, {"state"}},
      {{"y"}, {"present_state"}},
      {},
      {{std::vector<Type>(5, Type::float32), {Type::float32, Type::float32}}},
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<StateSpaceScan>(); },
      [](ShapeInference& graph) {
        graph.set_output(0, graph.type(0), graph.shape(0));
        graph.set_output(1, graph.type(0), graph.shape(4));
      },
  };
  return op;
}

}  // namespace specops
