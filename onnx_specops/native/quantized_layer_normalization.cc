// QuantizedLayerNormalization: the normalization of rows of floats or 8-bit integers, with a quantized result.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "layer_normalization.h"
#include "float_kernels.h"
#include "op.h"

namespace specops {
namespace normalization {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace normalization

namespace {

// The minimum number of elements that a thread normalizes.
constexpr std::int64_t at_least = std::int64_t{1} << 14;

class QuantizedLayerNormalization : public Kernel {
 public:
  explicit QuantizedLayerNormalization(const KernelInfo& info) : epsilon_(info.number("epsilon")) {}

  void compute(Context& context) const override {
    const Input x = context.input(0);
    const Shape& shape = x.shape();
    if (shape.empty()) fail("X has no dimensions");
    const std::int64_t size = shape.back();
    const std::int64_t padded = (size + normalization::step - 1) / normalization::step * normalization::step;
    normalization::Job job{};
    job.size = size;
    job.epsilon = epsilon_;
    if (x.type() == Type::uint8) {
      job.bytes = x.data<std::uint8_t>();
      const float scale = *one_element(context.input(1), "x_scale").data<float>();
      one_element(context.input(2), "x_zero_point");  // normalization cancels it
      // It stays above zero, because integers that are all equal have no variance.
      if (epsilon_ > 0.0f) job.epsilon = std::max(epsilon_ / (scale * scale), std::numeric_limits<float>::min());
    } else {
      job.floats = x.data<float>();
    }
    const std::vector<float> scale = vector(context.input(3), "scale", size, padded);
    const std::vector<float> bias = vector(context.input(6), "bias", size, padded);
    job.scale = scale.data(), job.bias = bias.data();
    Output output = context.output(0, shape);
    if (context.input(5).type() == Type::uint8) {
      job.factor = 1.0f / *one_element(context.input(4), "y_scale").data<float>();
      job.zero_point = *one_element(context.input(5), "y_zero_point").data<std::uint8_t>();
      job.to_bytes = output.data<std::uint8_t>();
    } else {
      job.to_floats = output.data<float>();
    }
    if (x.size() == 0) return;
    const normalization::Kernels& kernels = normalization::kernels();
    const std::int64_t grain = 1 + at_least / size;
    context.parallel_ranges(x.size() / size, grain, [&](std::int64_t begin, std::int64_t end) {
      thread_local std::vector<float> scratch;
      scratch.resize(static_cast<std::size_t>(padded));
      kernels.normalize(job, begin, end, scratch.data());
    });
  }

 private:
  // Zeros if the input is omitted.
  static std::vector<float> vector(const Input& input, const char* name, std::int64_t size, std::int64_t padded) {
    std::vector<float> out(static_cast<std::size_t>(padded));
    if (input.absent()) return out;
    if (input.shape() != Shape{size}) {
      fail(name, " has the shape ", to_string(input.shape()), " instead of [", size, "]");
    }
    std::copy_n(input.data<float>(), size, out.begin());
    return out;
  }

  float epsilon_;
};

}  // namespace

const Op& quantized_layer_normalization() {
  constexpr Type byte = Type::uint8, number = Type::float32, any = Type::undefined;
  static const Op op = {
      "QuantizedLayerNormalization",
      {{"X"}, {"x_scale"}, {"x_zero_point"}, {"scale"}, {"y_scale"}, {"y_zero_point"}, {"bias", true, {Type::float32}}},
      {{"Y"}},
      {Attribute::number("epsilon")},
      {{{byte, number, byte, number, number, byte, any}, {byte}},
       {{byte, number, byte, number, number, number, any}, {number}},
       {{number, number, number, number, number, byte, any}, {byte}},
       {{number, number, number, number, number, number, any}, {number}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<QuantizedLayerNormalization>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
