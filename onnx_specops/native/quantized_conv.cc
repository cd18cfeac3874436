// QuantizedConv: convolutions of 8-bit integers with a fused activation and quantized output.
//
// Output pixels are the rows of matrix products. Pointers refer to the input of each tap of a row, so nothing is copied if the
// number of channels is a multiple of four and the processor multiplies bytes. Otherwise the input is copied, as 16-bit
// integers or with repeated channels: a few rows at a time, or all of it if there are several groups.
#include "quantized_conv.h"

#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "op.h"
#include "quantized_conv_biases.h"
#include "quantized_conv_geometry.h"
#include "quantized_conv_node.h"
#include "quantized_conv_prepared.h"
#include "quantized_conv_runs.h"
#include "quantized_conv_winograd.h"
#include "requested_set.h"

#if defined(SPECOPS_X86_KERNELS)
#include "processor.h"
#endif

namespace specops {
namespace byte_conv {

const Kernels& kernels() {
#if defined(SPECOPS_X86_KERNELS)
  KernelSets<Kernels> sets{portable, avx2, nullptr, avx512, avx512_vnni, nullptr};
#if defined(SPECOPS_AVX_VNNI_KERNELS)
  sets.avx2_vnni = avx2_vnni;
#endif
#if defined(SPECOPS_AMX_KERNELS)
  sets.amx = amx;
#endif
  static const Kernels& chosen = best_kernels(sets);
#else
  static const Kernels& chosen = portable();
#endif
  return chosen;
}

}  // namespace byte_conv

namespace {

using namespace byte_conv;

// With more pixels, kinds are not kept between runs, because their memory would add up over all nodes of a model.
constexpr std::size_t most_kept_pixels = std::size_t{1} << 18;

class QuantizedConv : public Kernel {
 public:
  explicit QuantizedConv(const KernelInfo& info) : node_(info) {
    std::vector<Input> constants(input::count);
    for (std::size_t i = 1; i < input::count; ++i) {
      if (i == input::addend || i == input::residual || info.input_type(i) == Type::undefined) continue;
      const auto constant = info.constant_input(i);
      if (!constant) return;
      constants[i] = *constant;
    }
    // An empty constant represents an omitted tensor.
    const auto given = [&](std::size_t i) {
      const auto constant = info.constant_input(i);
      return info.input_type(i) != Type::undefined && !(constant && constant->absent());
    };
    const bool adds = given(input::addend), has_residual = given(input::residual);
    // The run reports errors.
    if (constants[input::w].shape().size() < 3 || constants[input::w].size() == 0) return;
    is_constant_ = true;
    const Shape& w = constants[input::w].shape();
    if (kernels().multiply_tiles == nullptr && is_winograd(node_.kernel, node_.windows) && w[1] > 1 &&
        constants[input::w].size() / w[0] <= most_products) {
      largest_sum_ = largest_sum(constants[input::w]);
      return;  // the first run prepares the fastest form for its input
    }
    try {
      prepared_[0] = std::make_shared<const Prepared>(prepare(node_, constants, adds, has_residual, 0, true));
    } catch (const std::exception&) {
    }
  }

  void compute(Context& context) const override {
    std::vector<Input> inputs(input::count);
    for (std::size_t i = 0; i < input::count && i < context.input_count(); ++i) inputs[i] = context.input(i);
    const Input &x = inputs[input::x], &zero = inputs[input::y_zero_point];
    const Geometry geometry = node_.measure(x.shape(), inputs[input::w].shape());
    Shape shape = {geometry.batch};
    for (std::size_t i = most_dimensions - (x.shape().size() - 2); i < most_dimensions; ++i) shape.push_back(geometry.out[i]);
    shape.push_back(geometry.columns);
    const Input &addend = inputs[input::addend], &residual = inputs[input::residual];
    const bool adds = !addend.absent(), has_residual = !residual.absent();
    node_.check(inputs, adds, has_residual);
    for (const std::size_t i : {input::addend, input::residual}) {
      if (inputs[i].absent() || inputs[i].shape() == shape) continue;
      const char* const name = i == input::addend ? "addend" : "residual";
      fail(name, " has the shape ", to_string(inputs[i].shape()), " instead of ", to_string(shape));
    }
    Output output = context.output(0, shape);
    if (element_count(shape) == 0) return;
    const std::shared_ptr<const Prepared> kept = prepared_for(geometry, inputs, adds, has_residual);
    const Prepared& prepared = *kept;
    const std::shared_ptr<const PixelBiases> biases = prepared.offset_sums.empty() ? nullptr : biases_of(geometry, prepared);
    const Results results{static_cast<char*>(output.bytes()), zero.type() == Type::float32,
                          adds ? addend.data<std::uint8_t>() : nullptr, has_residual ? residual.data<float>() : nullptr,
                          geometry.columns, biases.get()};
    run(context, geometry, prepared, x.data<std::uint8_t>(), results);
  }

 private:
  // The constants, prepared for the fastest products of an input of this size.
  std::shared_ptr<const Prepared> prepared_for(const Geometry& g, const std::vector<Input>& inputs, bool adds,
                                               bool has_residual) const {
    const int tile = largest_sum_ ? fastest_tile(g, *largest_sum_, kernels().wide ? 1 : 2) : 0;
    std::shared_ptr<const Prepared>& kept = prepared_[static_cast<std::size_t>(tile / 2)];
    std::shared_ptr<const Prepared> prepared = is_constant_ ? std::atomic_load(&kept) : nullptr;
    if (prepared) return prepared;
    prepared = std::make_shared<const Prepared>(prepare(node_, inputs, adds, has_residual, tile, is_constant_));
    if (is_constant_) std::atomic_store(&kept, prepared);
    return prepared;
  }

  // The biases of the previous run are reused if the input has the same size.
  std::shared_ptr<const PixelBiases> biases_of(const Geometry& g, const Prepared& prepared) const {
    if (!is_constant_) return std::make_shared<const PixelBiases>(pixel_biases(g, prepared));
    std::shared_ptr<const PixelBiases> known = std::atomic_load(&biases_);
    if (!known || known->batch != g.batch || known->in != g.in) {
      known = std::make_shared<const PixelBiases>(pixel_biases(g, prepared));
      if (known->kinds.size() <= most_kept_pixels) std::atomic_store(&biases_, known);
    }
    return known;
  }

  Node node_;
  bool is_constant_ = false;                 // all inputs but the activations, addend and residual
  std::optional<std::int64_t> largest_sum_;  // of products; only if Winograd's algorithm can compute them
  // Read and written atomically, and only if the inputs are constant.
  mutable std::array<std::shared_ptr<const Prepared>, 3> prepared_;  // without tiles, with tiles of 2 x 2, and of 4 x 4
  mutable std::shared_ptr<const PixelBiases> biases_;
};

// The portable kernels are much slower than those of ONNX Runtime, which has kernels for SSE4.1 and NEON. They are only used if
// ONNX_SPECOPS_SIMD requests them.
bool is_fast() {
  return &kernels() != &portable() || requested_set() != nullptr;
}

}  // namespace

const Op& quantized_conv() {
  constexpr Type any = Type::undefined;
  static const Op op = {
      "QuantizedConv",
      {{"X"}, {"W"}, {"scale"}, {"bias"}, {"x_zero_point"}, {"y_zero_point"},
       {"factor", true, {Type::float32}}, {"slope", true, {Type::float32}}, {"addend", true, {Type::uint8}},
       {"addend_scale", true, {Type::float32}}, {"addend_zero_point", true, {Type::uint8}}, {"sum_scale", true, {Type::float32}},
       {"sum_zero_point", true, {Type::uint8}}, {"sum_slope", true, {Type::float32}},
       {"sum_bias", true, {Type::float32}}, {"x_offset", true, {Type::float32}},
       {"y_offset", true, {Type::float32}}, {"residual", true, {Type::float32}}},
      {{"Y"}},
      {Attribute::integer("channels").within(0, std::int64_t{1} << 24), Attribute::string("kernel"), Attribute::string("strides", ""), Attribute::string("pads", ""), Attribute::string("dilations", ""),
       Attribute::integer("group", 1).within(1, std::int64_t{1} << 24),
       Attribute::string("function", "none")
           .one_of({"none", "clip", "prelu", "hard_sigmoid", "hard_swish", "sigmoid", "swish", "gelu", "elu", "mish", "gelu_tanh"}),
       Attribute::number("alpha", 0.0f), Attribute::number("beta", 0.0f)},
      {{{Type::uint8, Type::int8, Type::float32, Type::float32, Type::uint8, Type::uint8, any, any, any, any, any, any, any, any, any,
         any, any, any},
        {Type::uint8}},
       {{Type::uint8, Type::int8, Type::float32, Type::float32, Type::uint8, Type::float32, any, any, any, any, any, any, any, any,
         any, any, any, any},
        {Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<QuantizedConv>(info); },
      nullptr,
      {},
      is_fast,
  };
  return op;
}

}  // namespace specops
