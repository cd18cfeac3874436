// SelectiveScan: the recurrence of a selective state space (Mamba), as optimum-intel exports it for OpenVINO.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

// The number of a channel's state elements that are computed side by side.
constexpr int lanes = 8;
constexpr float smallest = -87.0f;  // the logarithm of the smallest normal number

// exp(x) for any x; 0 below `lowest`.
SPECOPS_INLINE float exponential(float x, float lowest) {
  const float bounded = x > 89.0f ? 89.0f : x > -104.0f ? x : -104.0f;
  const float scaled = bounded * 1.44269504f;
  const auto power = static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5f : scaled + 0.5f);
  const float whole = static_cast<float>(power);
  // ln(2) in two parts. The first has so few bits that the product is exact.
  float rest = bounded - whole * 0.693359375f;
  rest -= whole * -2.12194440e-4f;
  float sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * rest * rest + rest + 1.0f;
  const std::int32_t half = power / 2;  // two factors, because one cannot represent the largest exponents
  const float first = bits::to_float(static_cast<std::uint32_t>(half + 127) << 23);
  const float second = bits::to_float(static_cast<std::uint32_t>(power - half + 127) << 23);
  const float power_of_x = x < lowest ? 0.0f : sum * first * second;
  return x != x ? x : power_of_x;
}

struct Sizes {
  std::int64_t tokens, channels, size, blocks;  // of the state, and of `lanes` of it
};

// Scans one channel: `x`, `time_step` and `y` point to its first token, later ones are `channels` apart. The gates are
// [blocks, tokens, lanes], `decay`, `state` and `present` [blocks, lanes], `behind` and `sums` [tokens, lanes].
SPECOPS_CLONES void scan(const Sizes& sizes, float epsilon, const float* x, const float* time_step, const float* decay,
                         const float* input_gate, const float* output_gate, const float* state, float* behind, float* sums,
                         float* present, float* y) {
  const std::int64_t tokens = sizes.tokens, step = sizes.channels;
  // Terms this much smaller than epsilon do not change the result, and denormal numbers would be slow.
  const float lowest = epsilon > 0 ? std::max(std::log(epsilon) - 46.0f, smallest) : -104.0f;
  for (std::int64_t block = 0; block < sizes.blocks; ++block) {
    const float* rates = decay + block * lanes;
    float total[lanes] = {}, kept[lanes], added[lanes] = {}, current[lanes] = {};
    for (std::int64_t t = tokens - 1; t >= 0; --t) {
      const float width = time_step[t * step];
      float* to = behind + t * lanes;
      for (int i = 0; i < lanes; ++i) to[i] = total[i];
      for (int i = 0; i < lanes; ++i) total[i] += width * rates[i];
    }
    // One loop over all of them is vectorized.
    for (std::int64_t i = 0; i < tokens * lanes; ++i) behind[i] = exponential(behind[i], lowest);
    for (int i = 0; i < lanes; ++i) kept[i] = state[block * lanes + i] * exponential(time_step[0] * rates[i], smallest);
    const float *in = input_gate + block * tokens * lanes, *out = output_gate + block * tokens * lanes;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float value = x[t * step];
      const float* e = behind + t * lanes;
      float* sum = sums + t * lanes;
      for (int i = 0; i < lanes; ++i) added[i] += value * in[t * lanes + i] * e[i] + kept[i];
      for (int i = 0; i < lanes; ++i) current[i] = added[i] / (e[i] + epsilon);
      if (block == 0) {
        for (int i = 0; i < lanes; ++i) sum[i] = current[i] * out[t * lanes + i];
      } else {
        for (int i = 0; i < lanes; ++i) sum[i] += current[i] * out[t * lanes + i];
      }
    }
    std::copy(current, current + lanes, present + block * lanes);
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* sum = sums + t * lanes;
    y[t * step] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  }
}

// Reorders [tokens, size] to [blocks, tokens, lanes], padded with zeros.
std::vector<float> in_blocks(const float* from, std::int64_t tokens, const Sizes& sizes) {
  std::vector<float> to(static_cast<std::size_t>(sizes.blocks * tokens * lanes));
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t n = 0; n < sizes.size; ++n) {
      to[static_cast<std::size_t>((n / lanes * tokens + t) * lanes + n % lanes)] = from[t * sizes.size + n];
    }
  }
  return to;
}

class SelectiveScan : public Kernel {
 public:
  explicit SelectiveScan(const KernelInfo& info) : epsilon_(info.number("epsilon")) {}

  void compute(Context& context) const override {
    static constexpr const char* names[] = {"x", "time_step", "decay", "input_gate", "output_gate", "state"};
    const Input x = context.input(0), decay = context.input(2);
    if (x.shape().size() != 3 || decay.shape().size() != 2) {
      fail("x and decay have the shapes ", to_string(x.shape()), " and ", to_string(decay.shape()),
           "; expected [batch, tokens, channels] and [channels, size]");
    }
    const std::int64_t batch = x.shape()[0], tokens = x.shape()[1], channels = x.shape()[2], size = decay.shape()[1];
    const Shape gates = {batch, tokens, size}, states = {batch, channels, size};
    const Shape wanted[] = {x.shape(), x.shape(), {channels, size}, gates, gates, states};
    for (std::size_t i = 1; i < 6; ++i) {
      const Input given = context.input(i);
      if (given.shape() != wanted[i]) {
        fail(names[i], " has the shape ", to_string(given.shape()), " instead of ", to_string(wanted[i]));
      }
    }
    if (tokens == 0) fail("x has no tokens; expected at least one");
    Output y = context.output(0, x.shape()), present = context.output(1, states);
    const Sizes sizes = {tokens, channels, size, (size + lanes - 1) / lanes};
    const auto *from = x.data<float>(), *widths = context.input(1).data<float>(), *rates = decay.data<float>();
    const auto* state = context.input(5).data<float>();
    auto *to = y.data<float>(), *after = present.data<float>();
    const std::vector<float> all_rates = padded(rates, channels, sizes);
    for (std::int64_t row = 0; row < batch; ++row) {
      const auto in = in_blocks(context.input(3).data<float>() + row * tokens * size, tokens, sizes);
      const auto out = in_blocks(context.input(4).data<float>() + row * tokens * size, tokens, sizes);
      // (An empty sum is 0, the initial value of the vector.)
      context.parallel_ranges(channels, 1 + 4096 / (tokens * (sizes.blocks + 1)), [&](std::int64_t first, std::int64_t last) {
        const auto width = static_cast<std::size_t>(sizes.blocks * lanes);
        std::vector<float> behind(static_cast<std::size_t>(tokens * lanes)), sums(behind.size()), before(width), next(width);
        for (std::int64_t channel = first; channel < last; ++channel) {
          const std::int64_t at = row * tokens * channels + channel, own = (row * channels + channel) * size;
          std::copy(state + own, state + own + size, before.begin());
          scan(sizes, epsilon_, from + at, widths + at, all_rates.data() + channel * sizes.blocks * lanes, in.data(),
               out.data(), before.data(), behind.data(), sums.data(), next.data(), to + at);
          std::copy(next.begin(), next.begin() + size, after + own);
        }
      });
    }
  }

 private:
  // Reorders [channels, size] to [channels, blocks, lanes].
  static std::vector<float> padded(const float* from, std::int64_t channels, const Sizes& sizes) {
    const std::int64_t width = sizes.blocks * lanes;
    std::vector<float> to(static_cast<std::size_t>(channels * width));
    for (std::int64_t c = 0; c < channels; ++c) {
      std::copy(from + c * sizes.size, from + (c + 1) * sizes.size, to.begin() + c * width);
    }
    return to;
  }

  float epsilon_;
};

}  // namespace

const Op& selective_scan() {
  static const Op op = {
      "SelectiveScan",
      {{"x"}, {"time_step"}, {"decay"}, {"input_gate"}, {"output_gate"}, {"state"}},
      {{"y"}, {"present_state"}},
      {Attribute::number("epsilon")},
      {{std::vector<Type>(6, Type::float32), {Type::float32, Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<SelectiveScan>(info); },
      [](ShapeInference& graph) {
        graph.set_output(0, graph.type(0), graph.shape(0));
        graph.set_output(1, graph.type(0), graph.shape(5));
      },
  };
  return op;
}

}  // namespace specops
