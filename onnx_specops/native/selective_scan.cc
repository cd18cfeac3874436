// SelectiveScan: the recurrence of a selective state space (Mamba), as optimum-intel exports it for OpenVINO.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "recurrences.h"

namespace specops {
namespace {

constexpr std::int64_t lanes = recurrences::scan_lanes;

struct Sizes {
  std::int64_t tokens, channels, size, blocks;  // of the state, and of `lanes` of it
};

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
        recurrences::Selective scan{};
        scan.tokens = tokens;
        scan.blocks = sizes.blocks;
        scan.epsilon = epsilon_;
        scan.step = channels;
        scan.input_gate = in.data();
        scan.output_gate = out.data();
        scan.before = before.data();
        scan.after = next.data();
        scan.behind = behind.data();
        scan.sums = sums.data();
        for (std::int64_t channel = first; channel < last; ++channel) {
          const std::int64_t at = row * tokens * channels + channel, own = (row * channels + channel) * size;
          std::copy(state + own, state + own + size, before.begin());
          scan.x = from + at;
          scan.time_step = widths + at;
          scan.y = to + at;
          scan.decay = all_rates.data() + channel * sizes.blocks * lanes;
          recurrences::kernels().selective(scan);
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
