// Multinomial: samples classes from rows of probabilities, bit for bit like OpenVINO's CPU plugin.
//
// The following must not change: cumulative sums are added sequentially in float32 (bfloat16 for bfloat16 probabilities) and
// divided by the last one. Without replacement, each draw updates them by a subtraction and a division. One generator serves
// the whole batch, in row order. Therefore the kernel adds several rows side by side, vectorizes divisions, and searches by
// bisection.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <limits>
#include <random>

#include "ops.h"
#include "simd.h"

namespace specops {
namespace {

constexpr std::int64_t chunk = 256;       // classes that are processed at a time
// rows that are added at a time, because the additions of one row depend on each other
constexpr std::int64_t side_by_side = 8;

// Rounds to bfloat16 like OpenVINO, which adds one half only if the lowest remaining bit is 1; or does not round.
template <bool bfloat16>
SPECOPS_INLINE float rounded(float value) {
  if constexpr (bfloat16) {
    const std::uint32_t all = bits::of(value);
    return bits::to_float((all + ((all & 0x10000u) >> 1)) & 0xffff0000u);
  } else {
    return value;
  }
}

// -------------------------------------------------------------------------------------------------------------- input

struct Probabilities {
  Type type;
  const void* data;
  std::int64_t batch, classes;
  bool logarithms;

  // `count` values of a row as float32, in `buffer` or in place.
  const float* values(std::int64_t row, std::int64_t first, std::int64_t count, float* buffer) const {
    const std::int64_t at = row * classes + first;
    switch (type) {
      case Type::float32: return static_cast<const float*>(data) + at;
      case Type::float64: return converted(static_cast<const double*>(data) + at, count, buffer);
      case Type::float16: return converted(static_cast<const Float16*>(data) + at, count, buffer);
      default: return converted(static_cast<const BFloat16*>(data) + at, count, buffer);
    }
  }

  // The weights of values: their exponentials if they are logarithms.
  const float* weights(const float* values, std::int64_t count, float* buffer) const {
    if (!logarithms) return values;
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = std::exp(values[i]);
    return buffer;
  }

 private:
  template <class T>
  static const float* converted(const T* from, std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
    return to;
  }
};

SPECOPS_CLONES bool all_in(const float* values, std::int64_t count, float least, float most) {
  // Counting is vectorized by compilers; NaN counts as neither.
  std::int32_t above = 0, below = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    above += values[i] >= least ? 1 : 0;
    below += values[i] <= most ? 1 : 0;
  }
  return above == count && below == count;
}

SPECOPS_CLONES std::int64_t count_positive(const float* values, std::int64_t count) {
  std::int32_t positive = 0;
  for (std::int64_t i = 0; i < count; ++i) positive += values[i] > 0 ? 1 : 0;
  return positive;
}

bool valid(const Probabilities& probs, const float* values, std::int64_t count) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  return all_in(values, count, probs.logarithms ? -infinity : 0.0f, most);
}

bool normal(float total) { return total >= std::numeric_limits<float>::min() && std::isfinite(total); }

// ------------------------------------------------------------------------------------------------------ cumulative sums

// Adds `count` weights to each of `rows` sums; `store(row, i, sum)` receives the intermediate sums.
template <bool bfloat16, int rows, class Store>
SPECOPS_INLINE void add_up(const float* const* weights, std::int64_t count, float* sums, const Store& store) {
  const float* from[rows];
  float sum[rows];
  for (int r = 0; r < rows; ++r) {
    from[r] = weights[r];
    sum[r] = sums[r];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    SPECOPS_UNROLL(8)
    for (int r = 0; r < rows; ++r) {
      sum[r] = rounded<bfloat16>(sum[r] + from[r][i]);
      store(r, i, sum[r]);
    }
  }
  for (int r = 0; r < rows; ++r) sums[r] = sum[r];
}

template <bool bfloat16, class Store>
void add_up(const float* const* weights, std::int64_t rows, std::int64_t count, float* sums, const Store& store) {
  if (rows == side_by_side) return add_up<bfloat16, side_by_side>(weights, count, sums, store);
  for (std::int64_t r = 0; r < rows; ++r) {
    add_up<bfloat16, 1>(weights + r, count, sums + r,
                        [&](int, std::int64_t i, float sum) { store(static_cast<int>(r), i, sum); });
  }
}

// The sums of up to `side_by_side` rows, and the sums before each chunk. Returns false if a value or sum is invalid.
template <bool bfloat16>
class Sums {
 public:
  explicit Sums(const Probabilities& probs) : probs_(probs) {}

  float total(std::int64_t row) const { return totals_[row]; }
  std::int64_t positive(std::int64_t row) const { return positive_[row]; }

  // `cumulative`: [rows, classes] for all sums, or null.
  bool compute(std::int64_t first_row, std::int64_t rows, float* cumulative, bool count) {
    first_row_ = first_row;
    rows_ = rows;
    before_.clear();
    std::fill(totals_, totals_ + side_by_side, 0.0f);
    std::fill(positive_, positive_ + side_by_side, 0);
    for (std::int64_t column = 0; column < probs_.classes; column += chunk) {
      const std::int64_t size = std::min(chunk, probs_.classes - column);
      const float* weights[side_by_side];
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* values = probs_.values(first_row + r, column, size, buffers_[r]);
        if (!valid(probs_, values, size)) return false;
        weights[r] = probs_.weights(values, size, buffers_[r]);
        if (count) positive_[r] += count_positive(weights[r], size);
      }
      if (cumulative != nullptr) {
        float* to = cumulative + column;
        const std::int64_t stride = probs_.classes;
        add_up<bfloat16>(weights, rows, size, totals_,
                         [&](int r, std::int64_t i, float sum) { to[r * stride + i] = sum; });
      } else {
        before_.insert(before_.end(), totals_, totals_ + rows);
        add_up<bfloat16>(weights, rows, size, totals_, [](int, std::int64_t, float) {});
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      if (!normal(totals_[r])) return false;
    }
    return true;
  }

  // The first class of a row whose normalized sum is at least `draw`, after compute() without cumulative sums.
  std::int64_t search(std::int64_t row, float draw) {
    const float total = totals_[row];
    const auto chunks = static_cast<std::int64_t>(before_.size()) / rows_;
    std::int64_t low = 0, high = chunks - 1;  // the last chunk that begins below the draw
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (rounded<bfloat16>(before_[static_cast<std::size_t>(middle * rows_ + row)] / total) >= draw) {
        high = middle - 1;
      } else {
        low = middle;
      }
    }
    const std::int64_t column = low * chunk, size = std::min(chunk, probs_.classes - column);
    const float* values = probs_.values(first_row_ + row, column, size, buffers_[0]);
    const float* weights = probs_.weights(values, size, buffers_[0]);
    float sum = before_[static_cast<std::size_t>(low * rows_ + row)];
    for (std::int64_t i = 0; i < size; ++i) {
      sum = rounded<bfloat16>(sum + weights[i]);
      if (rounded<bfloat16>(sum / total) >= draw) return column + i;
    }
    return probs_.classes - 1;
  }

 private:
  const Probabilities& probs_;
  std::int64_t first_row_ = 0, rows_ = 0;
  float totals_[side_by_side] = {};
  std::int64_t positive_[side_by_side] = {};
  std::vector<float> before_;  // [chunks, rows]
  float buffers_[side_by_side][chunk];
};

// ------------------------------------------------------------------------------------------------------------ sampling

template <bool bfloat16>
SPECOPS_CLONES void divide(float* values, std::int64_t count, float divisor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = rounded<bfloat16>(values[i] / divisor);
}

// The first class whose sum reaches each draw; `cumulative` does not decrease and ends with 1.
SPECOPS_CLONES void search(const float* cumulative, std::int64_t classes, const float* draws, std::int64_t samples,
                           std::int64_t* output) {
  constexpr std::int64_t together = 8;
  for (std::int64_t first = 0; first < samples; first += together) {
    const std::int64_t count = std::min(together, samples - first);
    std::int64_t at[together] = {};
    float draw[together] = {};
    for (std::int64_t j = 0; j < count; ++j) draw[j] = draws[first + j];
    for (std::int64_t size = classes; size > 1;) {
      const std::int64_t half = size / 2;
      for (std::int64_t j = 0; j < together; ++j) at[j] += cumulative[at[j] + half - 1] < draw[j] ? half : 0;
      size -= half;
    }
    for (std::int64_t j = 0; j < count; ++j) output[first + j] = at[j];
  }
}

// Subtracts `taken` from the sums from `selected` on, divides all by `divisor`, and returns the first class whose sum
// reaches `draw`; -1 if none does. Rounding may break the order of the sums, so bisection could find a later class.
template <bool bfloat16>
SPECOPS_CLONES std::int64_t take(float* sums, std::int64_t count, std::int64_t selected, float taken, float divisor,
                                 float draw) {
  constexpr std::int64_t block = 64;
  std::int64_t reached = -1;
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t size = std::min(block, count - first);
    float* at = sums + first;
    std::int32_t hits = 0;
    const std::int64_t middle = std::min(std::max<std::int64_t>(selected - first, 0), size);
    for (std::int64_t i = 0; i < middle; ++i) {
      at[i] = rounded<bfloat16>(at[i] / divisor);
      hits += at[i] >= draw ? 1 : 0;
    }
    for (std::int64_t i = middle; i < size; ++i) {
      at[i] = rounded<bfloat16>(rounded<bfloat16>(at[i] - taken) / divisor);
      hits += at[i] >= draw ? 1 : 0;
    }
    if (hits != 0 && reached < 0) {
      for (reached = first; !(sums[reached] >= draw);) ++reached;
    }
  }
  return reached;
}

// The most probable class that has not been drawn, if no sum reaches a draw because of rounding.
std::int64_t most_probable(const Probabilities& probs, std::int64_t row, const std::int64_t* drawn, std::int64_t count) {
  float buffer[chunk];
  float most = -1;
  std::int64_t best = 0;
  for (std::int64_t column = 0; column < probs.classes; column += chunk) {
    const std::int64_t size = std::min(chunk, probs.classes - column);
    const float* values = probs.weights(probs.values(row, column, size, buffer), size, buffer);
    for (std::int64_t i = 0; i < size; ++i) {
      if (values[i] > most && std::find(drawn, drawn + count, column + i) == drawn + count) {
        most = values[i];
        best = column + i;
      }
    }
  }
  return best;
}

template <bool bfloat16>
void sample_without_replacement(const Probabilities& probs, std::int64_t row, float* sums, float total,
                                const float* draws, std::int64_t samples, std::int64_t* output) {
  const std::int64_t classes = probs.classes;
  std::int64_t reached = take<bfloat16>(sums, classes, classes, 0.0f, total, draws[0]);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int64_t selected = reached >= 0 ? reached : most_probable(probs, row, output, sample);
    output[sample] = selected;
    if (sample + 1 == samples) return;
    const float before = selected > 0 ? sums[selected - 1] : 0.0f;
    const float probability = rounded<bfloat16>(sums[selected] - before);
    const float rest = rounded<bfloat16>(1.0f - probability);
    reached = take<bfloat16>(sums, classes, selected, probability, rest, draws[sample + 1]);
  }
}

// ------------------------------------------------------------------------------------------------------------- draws

std::mt19937 generator(std::uint64_t global_seed, std::uint64_t op_seed) {
  // Like OpenVINO: the low words, or the current second if both seeds are 0.
  if (global_seed == 0 && op_seed == 0) global_seed = static_cast<std::uint64_t>(std::time(nullptr));
  std::seed_seq seeds{static_cast<std::uint32_t>(global_seed), static_cast<std::uint32_t>(op_seed)};
  return std::mt19937(seeds);
}

// ------------------------------------------------------------------------------------------------------------ kernel

class Multinomial : public Kernel {
 public:
  explicit Multinomial(const KernelInfo& info)
      : with_replacement_(info.flag("with_replacement")),
        logarithms_(info.flag("log_probs")),
        global_seed_(static_cast<std::uint64_t>(info.integer("global_seed"))),
        op_seed_(static_cast<std::uint64_t>(info.integer("op_seed"))) {}

  void compute(Context& context) const override {
    const Input input = context.input(0);
    const Input samples_input = context.input(1);
    const Shape& shape = input.shape();
    if (shape.size() != 2) fail("probs has the shape ", to_string(shape), " instead of [batch, classes]");
    if (samples_input.size() != 1) fail("num_samples has ", samples_input.size(), " elements instead of one");
    const std::int64_t samples = samples_input.type() == Type::int32 ? *samples_input.data<std::int32_t>()
                                                                     : *samples_input.data<std::int64_t>();
    if (samples < 0) fail("num_samples = ", samples, " is negative");
    if (!with_replacement_ && samples > shape[1]) {
      fail("num_samples = ", samples, " is more than the ", shape[1], " classes, without replacement");
    }
    const Probabilities probs = {input.type(), input.bytes(), shape[0], shape[1], logarithms_};
    Output output = context.output(0, {probs.batch, samples});
    if (probs.batch == 0) return;
    if (probs.classes == 0) diagnose<false>(probs, samples);

    std::vector<float> draws(static_cast<std::size_t>(element_count({probs.batch, samples})));
    std::mt19937 random = generator(global_seed_, op_seed_);
    if (probs.type == Type::bfloat16) {
      for (float& draw : draws) draw = rounded<true>(static_cast<float>(random()) * 0x1p-32f);
      run<true>(context, probs, samples, draws.data(), output.data<std::int64_t>());
    } else {
      for (float& draw : draws) draw = static_cast<float>(random()) * 0x1p-32f;
      run<false>(context, probs, samples, draws.data(), output.data<std::int64_t>());
    }
  }

 private:
  template <bool bfloat16>
  void run(const Context& context, const Probabilities& probs, std::int64_t samples, const float* draws,
           std::int64_t* output) const {
    // Rows side by side, as long as there is work for every thread and the sums fit a cache.
    const std::int64_t group = std::min(
        {side_by_side, std::max<std::int64_t>(probs.batch / context.most_pieces() * 2, 1),
         samples < 2 ? side_by_side : std::max<std::int64_t>((std::int64_t{1} << 19) / probs.classes, 1)});
    const std::int64_t groups = (probs.batch + group - 1) / group;
    std::atomic<bool> wrong{false};
    const std::int64_t work = group * (probs.classes + samples * (with_replacement_ ? 16 : probs.classes));
    context.parallel_ranges(groups, 16384 / (work + 1), [&](std::int64_t begin, std::int64_t end) {
      Sums<bfloat16> sums(probs);
      std::vector<float> cumulative(samples < 2 ? 0 : static_cast<std::size_t>(group * probs.classes));
      float* const rows_sums = samples < 2 ? nullptr : cumulative.data();
      for (std::int64_t i = begin; i < end && !wrong.load(std::memory_order_relaxed); ++i) {
        const std::int64_t first = i * group, rows = std::min(group, probs.batch - first);
        const bool right = sums.compute(first, rows, rows_sums, !with_replacement_);
        for (std::int64_t r = 0; r < rows && right; ++r) {
          if (!with_replacement_ && sums.positive(r) < samples) wrong.store(true);
        }
        if (!right) wrong.store(true);
        if (wrong.load()) return;
        for (std::int64_t r = 0; r < rows && samples > 0; ++r) {
          const float* row_draws = draws + (first + r) * samples;
          std::int64_t* to = output + (first + r) * samples;
          if (samples == 1) {
            *to = sums.search(r, *row_draws);
            continue;
          }
          float* row = rows_sums + r * probs.classes;
          if (with_replacement_) {
            divide<bfloat16>(row, probs.classes, sums.total(r));
            search(row, probs.classes, row_draws, samples, to);
          } else {
            sample_without_replacement<bfloat16>(probs, first + r, row, sums.total(r), row_draws, samples, to);
          }
        }
      }
    });
    if (wrong.load()) diagnose<bfloat16>(probs, samples);
  }

  // Throws the error of the first invalid value, or else the first invalid sum.
  template <bool bfloat16>
  [[noreturn]] void diagnose(const Probabilities& probs, std::int64_t samples) const {
    float buffer[chunk];
    for (std::int64_t row = 0; row < probs.batch; ++row) {
      for (std::int64_t column = 0; column < probs.classes; column += chunk) {
        const std::int64_t size = std::min(chunk, probs.classes - column);
        const float* values = probs.values(row, column, size, buffer);
        for (std::int64_t i = 0; i < size; ++i) {
          if (valid(probs, values + i, 1)) continue;
          const std::string what = std::isnan(values[i])   ? "a NaN"
                                   : std::isinf(values[i]) && values[i] > 0
                                       ? "inf"
                                       : text("a negative probability, ", double{values[i]}, ",");
          fail("probs: row ", row, " contains ", what, " at class ", column + i);
        }
      }
    }
    Sums<bfloat16> sums(probs);
    std::int64_t infinite = -1, zero = -1, few = -1, possible = 0;
    for (std::int64_t row = 0; row < probs.batch; ++row) {
      sums.compute(row, 1, nullptr, true);
      if (infinite < 0 && !std::isfinite(sums.total(0))) infinite = row;
      if (zero < 0 && !(sums.total(0) >= std::numeric_limits<float>::min())) zero = row;
      if (few < 0 && sums.positive(0) < samples) {
        few = row;
        possible = sums.positive(0);
      }
    }
    if (infinite >= 0) fail("probs: row ", infinite, " sums to inf; it must be finite");
    if (zero >= 0) fail("probs: row ", zero, " sums to 0; it must be positive");
    fail("num_samples = ", samples, " is more than the ", possible, " classes of nonzero probability in row ", few,
         ", without replacement");
  }

  bool with_replacement_, logarithms_;
  std::uint64_t global_seed_, op_seed_;
};

std::vector<Signature> signatures() {
  std::vector<Signature> all;
  for (const Type type : {Type::float32, Type::float16, Type::bfloat16, Type::float64}) {
    for (const Type count : {Type::int32, Type::int64}) all.push_back({{type, count}, {Type::int64}});
  }
  return all;
}

}  // namespace

const Op& multinomial() {
  static const Op op = {
      "Multinomial",
      {{"probs"}, {"num_samples"}},
      {{"output"}},
      {Attribute::flag("with_replacement"), Attribute::flag("log_probs", false), Attribute::integer("global_seed", 0),
       Attribute::integer("op_seed", 0)},
      signatures(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Multinomial>(info); },
      nullptr,  // the number of samples, a dimension of the output, is only known at run time
  };
  return op;
}

}  // namespace specops
