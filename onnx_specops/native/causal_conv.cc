// CausalConv: a convolution of each channel over each token and the tokens before it.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "recurrences.h"

namespace specops {
namespace {

class CausalConv : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input x = context.input(0), weight = context.input(1), past = context.input(2);
    if (x.shape().size() != 3 || weight.shape().size() != 2 || past.shape().size() != 3) {
      fail("x, weight and past_state have ", x.shape().size(), ", ", weight.shape().size(), " and ", past.shape().size(),
           " dimensions; expected 3, 2 and 3");
    }
    const std::int64_t batch = x.shape()[0], tokens = x.shape()[1], channels = x.shape()[2];
    const std::int64_t kernel = weight.shape()[0], length = past.shape()[2];
    if (weight.shape()[1] != channels) {
      fail("weight has the shape ", to_string(weight.shape()), "; expected ", channels, " channels, as x has");
    }
    const Shape states = {batch, channels, length};
    if (past.shape() != states) {
      fail("past_state has the shape ", to_string(past.shape()), " instead of ", to_string(states));
    }
    if (kernel < 1 || kernel > length + 1) {
      fail("weight has ", kernel, " rows; expected 1 to ", length + 1, ", one more than the state is long");
    }
    Output y = context.output(0, x.shape()), present = context.output(1, states);
    const auto *from = x.data<float>(), *factors = weight.data<float>(), *before = past.data<float>();
    auto *to = y.data<float>(), *after = present.data<float>();
    const std::int64_t row = tokens * channels, kept = kernel - 1;
    std::vector<float> history(static_cast<std::size_t>(batch * kept * channels));
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const float* own = before + (b * channels + c) * length;
        for (std::int64_t k = 0; k < kept; ++k) history[(b * kept + k) * channels + c] = own[length - kept + k];
        float* last = after + (b * channels + c) * length;
        for (std::int64_t s = 0; s < length; ++s) {
          const std::int64_t t = tokens + s - length;
          last[s] = t < 0 ? own[tokens + s] : from[b * row + t * channels + c];
        }
      }
    }
    context.parallel_ranges(batch * tokens, 1 + 32768 / (channels * kernel + 1), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t at = first; at < last;) {
        const std::int64_t b = at / tokens, end = std::min(last, (b + 1) * tokens);
        recurrences::kernels().convolve({at - b * tokens, end - b * tokens, kernel, channels, from + b * row,
                                         history.data() + b * kept * channels, factors, to + b * row});
        at = end;
      }
    });
  }
};

}  // namespace

const Op& causal_conv() {
  static const Op op = {
      "CausalConv",
      {{"x"}, {"weight"}, {"past_state"}},
      {{"y"}, {"present_state"}},
      {},
      {{std::vector<Type>(3, Type::float32), {Type::float32, Type::float32}}},
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<CausalConv>(); },
      [](ShapeInference& graph) {
        graph.set_output(0, graph.type(0), graph.shape(0));
        graph.set_output(1, graph.type(0), graph.shape(2));
      },
  };
  return op;
}

}  // namespace specops
