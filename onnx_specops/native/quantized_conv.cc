// QuantizedConv: convolutions of 8-bit integers with a fused activation and quantized output.
//
// Output pixels are the rows of matrix products. Pointers describe the input of each tap of a row, so that nothing is copied
// if channels are multiples of four and the processor multiplies bytes. Otherwise rows are copied, a few at a time.
#include "quantized_conv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "integer_list.h"
#include "op.h"
#include "quantized_conv_geometry.h"
#include "quantized_conv_narrow.h"
#include "quantized_conv_planes.h"
#include "quantized_conv_winograd.h"
#include "spare.h"

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

using byte_conv::After;
using byte_conv::Function;
using byte_conv::Geometry;
using byte_conv::Inside;
using byte_conv::Kernels;
using byte_conv::most_dimensions;
using byte_conv::PixelKinds;
using byte_conv::Planes;
using byte_conv::Sizes;
using byte_conv::TileDepth;
using byte_conv::TileProduct;
using byte_conv::up;
using byte_conv::WinogradLine;
using byte_conv::WinogradTiles;

// onnx_specops/ops/quantized_conv.py has the same limit: larger sums may overflow 32 bits.
constexpr std::int64_t most_products = std::int64_t{1} << 16;
constexpr std::int64_t rows_at_once = 96;
// Weights of more bytes do not stay in the fastest caches.
constexpr std::int64_t many_weights = std::int64_t{1} << 16;
// The minimum number of columns of a piece. Rows are read or copied again for each piece.
constexpr std::int64_t columns_at_least = 64, columns_of_copies = 128;
// The minimum number of integers that a thread makes 16-bit integers.
constexpr std::int64_t widened_at_least = std::int64_t{1} << 15;
// The minimum number of bytes of padded lines that a thread writes.
constexpr std::int64_t lines_at_least = std::int64_t{1} << 14;
// The bytes of transformed activations that a thread has at once, if there are few enough channels.
constexpr std::int64_t most_patch_bytes = std::int64_t{3} << 17;
// The number of bytes that are copied at once; some of them may be unused.
constexpr std::int64_t beyond = 16;
// The most columns that constants are repeated for, and the numbers that a thread multiplies by them, at least.
constexpr std::int64_t most_pointwise_columns = 2048, pointwise_at_least = std::int64_t{1} << 14;
// Fewer output pixels are computed without tiles, which take the same time for up to 16.
constexpr std::int64_t fewest_in_tiles = 3;
// The limits of padded planes: their size relative to the input, and their bytes.
constexpr std::int64_t most_growth = 8, most_plane_bytes = std::int64_t{1} << 26;
// Larger numbers are clipped before they are converted to integers.
constexpr double most_plain = 2e9;
// The kinds of more pixels are not kept between runs: their memory would add up over all nodes of a model.
constexpr std::size_t most_kept_pixels = std::size_t{1} << 18;

// The number of groups that are computed as one, with weights of 0 between them. A vector has room for their columns.
std::int64_t merged_groups(std::int64_t groups, std::int64_t group_columns) {
  std::int64_t merged = 1;
  const std::int64_t lanes = byte_conv::kernels().panel_columns / 2;
  for (std::int64_t i = 2; i <= groups && i * group_columns <= lanes; ++i) {
    if (groups % i == 0) merged = i;
  }
  return merged;
}

// Weights and other constants, as the kernels use them.
struct Prepared {
  std::int64_t part;       // columns of a group
  std::int64_t padded;     // the same, padded to whole blocks
  std::int64_t depth;      // activations of a tap, padded to whole units
  std::int64_t all_depth;  // of all taps, as packed
  bool copied;             // rows are copied, with all taps of a row combined
  bool widened;            // the whole input becomes 16-bit integers
  bool lines = false;      // depthwise, along lines of output pixels
  int winograd = 0;        // the tiles of Winograd's algorithm, or 0
  bool pointwise = false;  // depthwise, of windows that are one pixel; the columns are those of one or several pixels
  std::optional<TileDepth> tiles;
  std::vector<byte_conv::Narrow> narrow;  // of each group; empty if weights are packed as the kernels usually need them
  bool wide = false;       // whether copied activations are 16-bit integers
  std::int64_t stride;     // bytes between the matrices of groups
  bool bounded = true;     // whether scaled sums are below 2^31
  std::vector<std::uint8_t> weights;
  std::vector<std::int32_t> column_weights;  // of `pointwise`
  std::vector<std::int32_t> start;
  std::vector<float> scale, bias, factor, offset, slope;
  std::vector<std::uint8_t> x_zeros;   // one, or one per channel
  // [columns, taps + 1 in each dimension]: for each column, the sums of the products of the weights with what is added to the
  // activations, over all taps before the given one in each dimension. Empty if nothing is added.
  std::vector<double> offset_sums;
  std::vector<std::int32_t> y_zeros;   // one per column, if they differ
  std::int32_t y_zero = 0;
  // The addition of a second tensor.
  std::vector<float> addend_scale, sum_scale, sum_slope, sum_bias;
  std::vector<std::int32_t> sum_zeros;
  std::int32_t sum_zero = 0, addend_zero = 0;

  // The weights of a group from a column on, the first one of a panel.
  const void* panels(const Kernels& kernels, std::int64_t group, std::int64_t column) const {
    if (!narrow.empty()) return narrow[static_cast<std::size_t>(group)].panels.data() + column / byte_conv::block_columns;
    const std::int64_t before = column == 0 ? 0 : kernels.packed_bytes(column, all_depth);
    return static_cast<const std::uint8_t*>(matrix()) + group * stride + before;
  }

  std::int64_t weight_bytes() const {
    std::size_t all = weights.size();
    for (const byte_conv::Narrow& of_group : narrow) all += of_group.numbers.size();
    return static_cast<std::int64_t>(all);
  }

  const void* matrix() const {
    const auto address = reinterpret_cast<std::uintptr_t>(weights.data());
    return weights.data() + (64 - address % 64) % 64;
  }
};

// The biases of each kind of pixel, if something is added to the activations of pixels that are not padding.
struct PixelBiases {
  std::int64_t batch;
  Sizes in;  // the input to which they belong
  std::vector<float> biases;        // [kinds, step]
  std::int64_t step;
  std::vector<std::int32_t> kinds;  // of all pixels; empty if there is one kind
};

// The input as 16-bit integers, and the zero points of its channels.
class WideInput {
 public:
  WideInput(const Context& context, const std::uint8_t* x, std::int64_t count, const std::vector<std::uint8_t>& padding)
      : memory_((count + 1) / 2), padding_(padding.begin(), padding.end()) {
    std::int16_t* const to = numbers();
    context.parallel_ranges(count, widened_at_least, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) to[i] = x[i];
    });
  }
  std::int16_t* numbers() const { return reinterpret_cast<std::int16_t*>(memory_.get()); }
  const std::int16_t* padding() const { return padding_.data(); }

 private:
  Spare memory_;
  std::vector<std::int16_t> padding_;
};

// Where results go, and the second tensors of additions or null.
struct Results {
  char* y;
  bool floats;
  const std::uint8_t* addend;
  const float* residual;
  std::int64_t columns;
  const PixelBiases* biases;  // null if they are those of the node
  std::int64_t bytes() const { return floats ? sizeof(float) : 1; }
};

class QuantizedConv : public Kernel {
 public:
  explicit QuantizedConv(const KernelInfo& info)
      : channels_(info.integer("channels")),
        kernel_(parse_integers("kernel", info.string("kernel"))),
        strides_(parse_integers("strides", info.string("strides"))),
        pads_(parse_integers("pads", info.string("pads"))),
        dilations_(parse_integers("dilations", info.string("dilations"))),
        groups_(info.integer("group")),
        function_(static_cast<Function>(info.choice("function"))),
        alpha_(info.number("alpha")),
        beta_(info.number("beta")) {
    std::vector<Input> constants(input_count);
    for (std::size_t i = 1; i < input_count; ++i) {
      if (i == addend_index || i == residual_index || info.input_type(i) == Type::undefined) continue;
      const auto constant = info.constant_input(i);
      if (!constant) return;
      constants[i] = *constant;
    }
    // An empty constant represents an omitted tensor.
    const auto given = [&](std::size_t i) {
      const auto constant = info.constant_input(i);
      return info.input_type(i) != Type::undefined && !(constant && constant->absent());
    };
    const bool adds = given(addend_index), has_residual = given(residual_index);
    // The run reports errors.
    if (constants[1].shape().size() < 3 || constants[1].size() == 0) return;
    is_constant_ = true;
    const Shape& w = constants[1].shape();
    if (byte_conv::kernels().multiply_tiles == nullptr && byte_conv::is_winograd(kernel_, strides_, dilations_) && w[1] > 1 &&
        constants[1].size() / w[0] <= most_products) {
      largest_sum_ = largest_sum(constants[1]);
      return;  // the first run prepares what is fastest for its input
    }
    try {
      prepared_[0] = std::make_shared<const Prepared>(prepare(constants, adds, has_residual, 0));
    } catch (const std::exception&) {
    }
  }

  void compute(Context& context) const override {
    std::vector<Input> inputs(input_count);
    for (std::size_t i = 0; i < input_count && i < context.input_count(); ++i) inputs[i] = context.input(i);
    const Input &x = inputs[0], &zero = inputs[5];
    const Geometry geometry = measure(x.shape(), inputs[1].shape());
    Shape shape = {geometry.batch};
    for (std::size_t i = most_dimensions - (x.shape().size() - 2); i < most_dimensions; ++i) shape.push_back(geometry.out[i]);
    shape.push_back(geometry.columns);
    const Input &addend = inputs[addend_index], &residual = inputs[residual_index];
    const bool adds = !addend.absent(), has_residual = !residual.absent();
    check(inputs, adds, has_residual);
    for (const std::size_t i : {addend_index, residual_index}) {
      if (inputs[i].absent() || inputs[i].shape() == shape) continue;
      fail(i == addend_index ? "addend" : "residual", " has the shape ", to_string(inputs[i].shape()), " instead of ", to_string(shape));
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
  static constexpr std::size_t addend_index = 8, x_offset_index = 15, y_offset_index = 16, residual_index = 17, input_count = 18;

  // The largest absolute value of a sum of at most `most_products` products.
  static std::int64_t largest_sum(const Input& w) {
    const std::int64_t columns = w.shape()[0], depth = w.size() / columns;
    const std::int8_t* const weights = w.data<std::int8_t>();
    std::int64_t largest = 0;
    for (std::int64_t m = 0; m < columns; ++m) {
      std::int32_t sum = 0, size = 0;
      for (std::int64_t k = m * depth; k < (m + 1) * depth; ++k) {
        sum += weights[k];
        size += std::abs(std::int32_t{weights[k]});
      }
      largest = std::max(largest, (std::int64_t{size} + std::abs(sum)) / 2);  // those of one sign
    }
    return 255 * largest;
  }

  // What is constant, for the fastest products of an input of this size.
  std::shared_ptr<const Prepared> prepared_for(const Geometry& g, const std::vector<Input>& inputs, bool adds,
                                               bool has_residual) const {
    const int tile = largest_sum_ ? byte_conv::fastest_tile(g, *largest_sum_, byte_conv::kernels().wide ? 1 : 2) : 0;
    std::shared_ptr<const Prepared>& kept = prepared_[static_cast<std::size_t>(tile / 2)];
    std::shared_ptr<const Prepared> prepared = is_constant_ ? std::atomic_load(&kept) : nullptr;
    if (prepared) return prepared;
    prepared = std::make_shared<const Prepared>(prepare(inputs, adds, has_residual, tile));
    if (is_constant_) std::atomic_store(&kept, prepared);
    return prepared;
  }

  Geometry measure(const Shape& x, const Shape& w) const {
    const std::size_t rank = w.size();
    if (rank < 3 || rank > most_dimensions + 2 || x.size() != rank) {
      fail("X and W have the shapes ", to_string(x), " and ", to_string(w), "; expected three to five dimensions each");
    }
    Shape expected = {w[0], channels_ / groups_};
    expected.insert(expected.end(), kernel_.begin(), kernel_.end());
    if (w != expected) fail("W has the shape ", to_string(w), " instead of ", to_string(expected));
    Geometry out{};
    out.batch = x[0];
    out.channels = x[rank - 1];
    out.columns = w[0];
    out.groups = groups_;
    out.group_channels = w[1];
    out.group_columns = w[0] / groups_;
    out.taps = 1;
    if (out.channels != w[1] * groups_ || w[0] % groups_ != 0) {
      fail("W has the shape ", to_string(w), ", but X has ", out.channels, " channels in ", groups_, " groups");
    }
    const std::size_t dimensions = rank - 2, first = most_dimensions - dimensions;
    check_list("strides", strides_, dimensions);
    check_list("dilations", dilations_, dimensions);
    check_list("pads", pads_, 2 * dimensions);
    for (std::size_t i = 0; i < most_dimensions; ++i) {
      out.in[i] = out.out[i] = out.kernel[i] = out.strides[i] = out.dilations[i] = 1;
      out.begin[i] = 0;
      if (i < first) continue;
      const std::size_t at = i - first;
      out.in[i] = x[at + 1];
      out.kernel[i] = w[at + 2];
      if (!strides_.empty()) out.strides[i] = strides_[at];
      if (!dilations_.empty()) out.dilations[i] = dilations_[at];
      if (out.strides[i] < 1 || out.dilations[i] < 1) fail("strides and dilations must be at least 1");
      std::int64_t padded = out.in[i];
      if (!pads_.empty()) {
        out.begin[i] = pads_[at];
        padded += pads_[at] + pads_[at + dimensions];
      }
      const std::int64_t extent = (out.kernel[i] - 1) * out.dilations[i] + 1;
      // A window of one pixel needs no pixels, as in a matrix multiplication.
      if (out.kernel[i] < 1 || padded < (extent > 1 ? extent : 0)) {
        fail("W has the shape ", to_string(w), ", but X, padded, has ", padded, " pixels along axis ", at + 1);
      }
      out.out[i] = padded < extent ? 0 : (padded - extent) / out.strides[i] + 1;
      out.taps *= out.kernel[i];
      if (out.taps > most_products) break;
    }
    if (out.taps * std::max<std::int64_t>(out.group_channels, 1) > most_products) {
      fail("a sum has more than ", most_products, " products");
    }
    if (out.group_columns > 0 && !out.depthwise()) {
      const std::int64_t merged = merged_groups(out.groups, out.group_columns);
      out.groups /= merged;
      out.group_channels *= merged;
      out.group_columns *= merged;
    }
    return out;
  }

  // `winograd` are the tiles of Winograd's algorithm, or 0.
  Prepared prepare(const std::vector<Input>& inputs, bool adds, bool has_residual, int winograd) const {
    const Kernels& kernels = byte_conv::kernels();
    const Input& w = inputs[1];
    const Shape& shape = w.shape();
    const std::int64_t columns = shape[0], channels = shape[1], groups = groups_;
    if (columns % groups != 0) {
      fail("W has the shape ", to_string(shape), "; its first dimension must be a multiple of the ", groups, " groups");
    }
    const std::int64_t per_group = columns / groups, depth = w.size() / std::max<std::int64_t>(columns, 1);
    const std::int64_t taps = depth / std::max<std::int64_t>(channels, 1);
    if (depth > most_products) fail("a sum has more than ", most_products, " products");
    const bool depthwise = channels == 1 && per_group == 1;
    const std::int64_t merged = depthwise || per_group == 0 ? 1 : merged_groups(groups, per_group);
    Prepared out;
    const std::int64_t unit = byte_conv::depth_unit, part = depthwise ? columns : per_group * merged;
    const std::int64_t parts = depthwise ? 1 : groups / merged, part_channels = channels * merged;
    const std::int64_t line_width = std::max<std::int64_t>(shape.back(), 1);
    if (kernels.multiply_tiles != nullptr && !depthwise && taps > 0) {
      out.tiles.emplace(part_channels, taps, line_width, dilations_.empty() || dilations_.back() == 1);
    }
    // Copies of rows would be made for each group.
    out.widened = !depthwise && !out.tiles && kernels.wide && parts > 1 && part_channels % 2 == 0;
    out.copied = !depthwise && !out.tiles && !out.widened && (kernels.wide || part_channels % unit != 0);
    out.padded = up(part, byte_conv::channel_block);
    out.part = part;
    if (channels * groups != channels_) {
      fail("W has the shape ", to_string(shape), ", but X has ", channels_, " channels in ", groups, " groups");
    }
    check(inputs, adds, has_residual);
    out.x_zeros.assign(inputs[4].data<std::uint8_t>(), inputs[4].data<std::uint8_t>() + inputs[4].size());
    const auto spread = [&](std::size_t i, std::vector<float>& to) {
      const Input& given = inputs[i];
      if (given.absent()) return;
      if (given.size() == 1) {
        to.assign(static_cast<std::size_t>(parts * out.padded), given.data<float>()[0]);
        return;
      }
      to.assign(static_cast<std::size_t>(parts * out.padded), 0.0f);
      for (std::int64_t g = 0; g < parts; ++g) {
        std::copy_n(given.data<float>() + g * part, part, to.begin() + g * out.padded);
      }
    };
    // The zero point if there is one, and those of the columns if there are several.
    const auto spread_zeros = [&](std::size_t i, std::int32_t& one, std::vector<std::int32_t>& to) {
      const std::uint8_t* zeros = inputs[i].data<std::uint8_t>();
      one = zeros[0];
      if (inputs[i].size() == 1) return;
      to.assign(static_cast<std::size_t>(parts * out.padded), 0);
      for (std::int64_t g = 0; g < parts; ++g) std::copy_n(zeros + g * part, part, to.begin() + g * out.padded);
    };
    spread(2, out.scale);
    spread(3, out.bias);
    spread(6, out.factor);
    spread(7, out.slope);
    spread(y_offset_index, out.offset);
    if (inputs[5].type() == Type::uint8) spread_zeros(5, out.y_zero, out.y_zeros);
    if (adds) {
      spread(9, out.addend_scale);
      out.addend_zero = inputs[10].data<std::uint8_t>()[0];
      spread(11, out.sum_scale);
      spread_zeros(12, out.sum_zero, out.sum_zeros);
      spread(14, out.sum_bias);
    }
    if (adds || has_residual) spread(13, out.sum_slope);

    const std::int8_t* from = w.data<std::int8_t>();
    out.start.assign(static_cast<std::size_t>(parts * out.padded), 0);
    for (std::int64_t m = 0; m < columns; ++m) {
      std::int64_t sum = 0, size = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        const std::int64_t channel = m / per_group * channels + k / taps;
        size += std::abs(std::int64_t{from[m * depth + k]}) * 255;
        sum += from[m * depth + k] * std::int64_t{out.x_zeros[out.x_zeros.size() == 1 ? 0 : static_cast<std::size_t>(channel)]};
      }
      const auto column = static_cast<std::size_t>(m / part * out.padded + m % part);
      out.start[column] = static_cast<std::int32_t>(-sum);
      const auto bound = [&](double all, const std::vector<float>& factor, const std::vector<float>& added, double each) {
        return all * std::abs(double{factor[column]}) + each * std::abs(double{added[column]}) < most_plain;  // false for NaN
      };
      out.bounded = out.bounded && bound(static_cast<double>(size), out.scale, out.bias, 1.0);
      if (adds) out.bounded = out.bounded && bound(255.0, out.sum_scale, out.addend_scale, 255.0);
    }
    if (!inputs[x_offset_index].absent()) out.offset_sums = sums_of_offsets(inputs);
    if (depthwise && taps == 1 && is_contiguous()) {
      make_pointwise(from, columns, out);
      return out;
    }
    if (depthwise) {
      out.depth = 1;
      const std::int64_t width = shape.back(), stride = strides_.empty() ? 1 : strides_.back();
      out.lines = kernels.multiply_lines != nullptr && width > 1 && (dilations_.empty() || dilations_.back() == 1) &&
                  stride >= 1 && stride <= byte_conv::most_line_stride;
      if (out.lines) {
        out.weights.resize(static_cast<std::size_t>(kernels.line_bytes(columns, taps / width, width, stride)) + 64);
        kernels.pack_lines(from, columns, taps / width, width, stride, const_cast<void*>(out.matrix()));
        return out;
      }
      out.weights.resize(static_cast<std::size_t>(kernels.depthwise_bytes(columns, taps)) + 64);
      kernels.pack_depthwise(from, columns, taps, const_cast<void*>(out.matrix()));
      return out;
    }
    if (winograd > 0) {
      out.winograd = winograd;
      make_winograd(from, part, parts, part_channels, taps / 9, per_group, out);
      return out;
    }
    // Taps outside, channels inside, in the order of the activations.
    const auto ordered = [&](std::int64_t g, std::int64_t whole) {
      std::vector<std::int8_t> numbers(static_cast<std::size_t>(part * whole), 0);
      for (std::int64_t m = 0; m < part; ++m) {
        const std::int8_t* one = from + (g * part + m) * depth;
        std::int8_t* const row = numbers.data() + m * whole + m / per_group * channels;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          std::int8_t* const to = row + (out.tiles ? out.tiles->place(tap, part_channels) : tap * part_channels);
          for (std::int64_t c = 0; c < channels; ++c) to[c] = one[c * taps + tap];
        }
      }
      return numbers;
    };
    if (is_constant_ && kernels.multiply_narrow != nullptr && !out.widened) {  // the order is found once
      out.depth = up(depth * merged, byte_conv::block_depth);
      for (std::int64_t g = 0; g < parts; ++g) {
        out.narrow.push_back(byte_conv::pack_narrow(ordered(g, out.depth).data(), part, out.depth, depth * merged));
        if (!out.narrow.back().panels.empty()) continue;
        out.narrow.clear();
        break;
      }
      if (!out.narrow.empty()) {
        out.copied = taps > 1 || part_channels % byte_conv::block_depth != 0;
        return out;
      }
    }
    out.wide = kernels.wide;
    out.depth = out.copied ? up(depth * merged, unit) : part_channels;
    out.all_depth = out.tiles ? out.tiles->depth() : out.copied ? out.depth : depth * merged;
    out.stride = up(kernels.packed_bytes(part, out.all_depth), 64);
    out.weights.resize(static_cast<std::size_t>(out.stride * parts) + 64);
    for (std::int64_t g = 0; g < parts; ++g) {
      kernels.pack(ordered(g, out.all_depth).data(), part, out.all_depth,
                   static_cast<std::uint8_t*>(const_cast<void*>(out.matrix())) + g * out.stride);
    }
    return out;
  }

  void make_winograd(const std::int8_t* weights, std::int64_t part, std::int64_t parts, std::int64_t part_channels,
                     std::int64_t planes, std::int64_t per_group, Prepared& out) const {
    const std::int64_t channels = channels_ / groups_;
    out.copied = out.widened = false;
    out.depth = part_channels;
    out.stride = up(byte_conv::packed_winograd_bytes(out.winograd, part, planes * part_channels), 64);
    out.weights.resize(static_cast<std::size_t>(out.stride * parts) + 64);
    auto* const to = static_cast<std::uint8_t*>(const_cast<void*>(out.matrix()));
    for (std::int64_t g = 0; g < parts; ++g) {
      byte_conv::pack_winograd(out.winograd, {weights + g * part * channels * planes * 9, part, per_group, channels, planes},
                               reinterpret_cast<std::int16_t*>(to + g * out.stride));
    }
  }

  // Whether windows of one pixel are all pixels.
  bool is_contiguous() const {
    const auto are_all = [](const std::vector<std::int64_t>& numbers, std::int64_t expected) {
      return std::all_of(numbers.begin(), numbers.end(), [=](std::int64_t number) { return number == expected; });
    };
    return are_all(strides_, 1) && are_all(pads_, 0);
  }

  // Repeats the constants for as many pixels as fill whole vectors.
  void make_pointwise(const std::int8_t* weights, std::int64_t columns, Prepared& out) const {
    out.pointwise = true;
    const std::int64_t panel = byte_conv::kernels().panel_columns, repeats = panel / std::gcd(columns, panel);
    const bool several = out.offset_sums.empty() && repeats * columns <= most_pointwise_columns;
    out.part = several ? repeats * columns : columns;
    out.padded = up(out.part, byte_conv::channel_block);
    const auto repeat = [&](auto& numbers) {
      if (numbers.empty()) return;
      numbers.resize(static_cast<std::size_t>(out.padded));
      for (std::int64_t i = columns; i < out.part; ++i) {
        numbers[static_cast<std::size_t>(i)] = numbers[static_cast<std::size_t>(i - columns)];
      }
    };
    for (std::vector<float>* const numbers : {&out.scale, &out.bias, &out.factor, &out.offset, &out.slope, &out.addend_scale,
                                              &out.sum_scale, &out.sum_slope, &out.sum_bias}) {
      repeat(*numbers);
    }
    for (std::vector<std::int32_t>* const numbers : {&out.start, &out.y_zeros, &out.sum_zeros}) repeat(*numbers);
    out.column_weights.assign(static_cast<std::size_t>(out.padded), 0);
    for (std::int64_t i = 0; i < out.part; ++i) out.column_weights[static_cast<std::size_t>(i)] = weights[i % columns];
  }

  // Prepared::offset_sums.
  std::vector<double> sums_of_offsets(const std::vector<Input>& inputs) const {
    const Shape& shape = inputs[1].shape();
    const std::int8_t* const weights = inputs[1].data<std::int8_t>();
    const Input& offset = inputs[x_offset_index];
    const float* const offsets = offset.data<float>();
    const std::int64_t columns = shape[0], channels = shape[1], per_group = columns / groups_;
    const Sizes kernel = three_dimensions({shape.begin() + 2, shape.end()});
    const Sizes steps = steps_of_sums(kernel);
    const std::int64_t taps = kernel[0] * kernel[1] * kernel[2], size = (kernel[0] + 1) * steps[0];
    std::vector<double> out(static_cast<std::size_t>(columns * size), 0.0);
    for (std::int64_t m = 0; m < columns; ++m) {
      double* const sums = out.data() + m * size;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        double sum = 0.0;
        for (std::int64_t c = 0; c < channels; ++c) {
          const double added = offsets[offset.size() == 1 ? 0 : m / per_group * channels + c];
          sum += added * weights[(m * channels + c) * taps + tap];
        }
        const std::int64_t w = tap % kernel[2], h = tap / kernel[2] % kernel[1], d = tap / kernel[2] / kernel[1];
        sums[(d + 1) * steps[0] + (h + 1) * steps[1] + w + 1] = sum;
      }
      for (std::size_t axis = 0; axis < most_dimensions; ++axis) {
        for (std::int64_t i = steps[axis]; i < size; ++i) {
          if (i / steps[axis] % (kernel[axis] + 1) > 0) sums[i] += sums[i - steps[axis]];
        }
      }
    }
    return out;
  }

  static Sizes three_dimensions(const std::vector<std::int64_t>& sizes) {
    Sizes out = {1, 1, 1};
    std::copy(sizes.begin(), sizes.end(), out.end() - static_cast<std::ptrdiff_t>(sizes.size()));
    return out;
  }

  // The distances of a column's numbers in Prepared::offset_sums.
  static Sizes steps_of_sums(const Sizes& kernel) { return {(kernel[1] + 1) * (kernel[2] + 1), kernel[2] + 1, 1}; }

  // The biases of the previous run are used again if the input has the same size.
  std::shared_ptr<const PixelBiases> biases_of(const Geometry& g, const Prepared& prepared) const {
    if (!is_constant_) return std::make_shared<const PixelBiases>(pixel_biases(g, prepared));
    std::shared_ptr<const PixelBiases> known = std::atomic_load(&biases_);
    if (!known || known->batch != g.batch || known->in != g.in) {
      known = std::make_shared<const PixelBiases>(pixel_biases(g, prepared));
      if (known->kinds.size() <= most_kept_pixels) std::atomic_store(&biases_, known);
    }
    return known;
  }

  static PixelBiases pixel_biases(const Geometry& g, const Prepared& prepared) {
    PixelKinds pixels(g);
    const Sizes steps = steps_of_sums(g.kernel);
    const std::int64_t size = (g.kernel[0] + 1) * steps[0], step = static_cast<std::int64_t>(prepared.bias.size());
    PixelBiases out{g.batch, g.in, {}, step, std::move(pixels.of_pixels)};
    out.biases.assign(pixels.kinds.size() * prepared.bias.size(), 0.0f);
    float* biases = out.biases.data();
    for (const Inside& inside : pixels.kinds) {
      for (std::int64_t m = 0; m < g.columns; ++m) {
        const double* const sums = prepared.offset_sums.data() + m * size;
        double sum = 0.0;
        for (int corner = 0; corner < 8; ++corner) {
          std::int64_t at = 0;
          double sign = 1.0;
          for (std::size_t axis = 0; axis < most_dimensions; ++axis) {
            const bool last = (corner >> axis & 1) != 0;
            at += (last ? inside.last[axis] : inside.first[axis]) * steps[axis];
            if (!last) sign = -sign;
          }
          sum += sign * sums[at];
        }
        const std::int64_t at = m / prepared.part * prepared.padded + m % prepared.part;
        const auto column = static_cast<std::size_t>(at);
        biases[at] = static_cast<float>(prepared.bias[column] + prepared.scale[column] * sum);
      }
      biases += step;
    }
    return out;
  }

  // Checks the shapes of all inputs except X, W, the addend and the residual.
  void check(const std::vector<Input>& inputs, bool adds, bool has_residual) const {
    const std::int64_t columns = inputs[1].shape()[0];
    const char* const names[] = {"scale", "bias", "", "", "factor", "slope"};
    for (const std::size_t i : {2, 3, 6, 7}) {
      if (!inputs[i].absent() && inputs[i].shape() != Shape{columns}) {
        fail(names[i - 2], " has the shape ", to_string(inputs[i].shape()), " instead of [", columns, "]");
      }
    }
    if (inputs[2].absent() || inputs[3].absent()) fail("scale and bias are required");
    if (function_ == Function::prelu && inputs[7].absent()) fail("function = 'prelu' needs a slope");
    check_one_or(inputs[4], "x_zero_point", channels_);
    check_one_or(inputs[5], "y_zero_point", columns);
    if (!inputs[x_offset_index].absent()) check_one_or(inputs[x_offset_index], "x_offset", channels_);
    if (!inputs[y_offset_index].absent()) check_one_or(inputs[y_offset_index], "y_offset", columns);
    if (has_residual && inputs[5].type() != Type::float32) fail("residual needs floats as y_zero_point");
    if (adds) check_addition(inputs, columns);
    if (!adds && !has_residual) return;
    for (const std::size_t i : {13, 14}) {
      if (inputs[i].absent() || inputs[i].shape() == Shape{columns}) continue;
      fail(i == 13 ? "sum_slope" : "sum_bias", " has the shape ", to_string(inputs[i].shape()), " instead of [", columns, "]");
    }
  }

  static void check_addition(const std::vector<Input>& inputs, std::int64_t columns) {
    bool complete = inputs[5].type() == Type::uint8;
    for (const std::size_t i : {9, 10, 11, 12}) complete = complete && !inputs[i].absent();
    if (!complete) {
      fail("addend needs addend_scale, addend_zero_point, sum_scale and sum_zero_point, and an integer as y_zero_point");
    }
    check_one_or(inputs[9], "addend_scale", columns);
    one_element(inputs[10], "addend_zero_point");
    check_one_or(inputs[11], "sum_scale", columns);
    check_one_or(inputs[12], "sum_zero_point", columns);
  }

  static void check_one_or(const Input& input, const char* name, std::int64_t count) {
    if (input.size() != 1 && input.shape() != Shape{count}) {
      fail(name, " has the shape ", to_string(input.shape()), " instead of [] or [", count, "]");
    }
  }

  // Of columns from `from` on, as prepared; `first` is the first result.
  After after(const Prepared& prepared, std::int64_t from, const Results& results, std::int64_t first) const {
    const auto at = [&](const auto& of) { return of.empty() ? nullptr : of.data() + from; };
    const std::uint8_t* const addend = results.addend == nullptr ? nullptr : results.addend + first;
    const PixelBiases* const of_pixels = results.biases;
    const float* const bias = of_pixels == nullptr ? at(prepared.bias) : of_pixels->biases.data() + from;
    const bool alike = of_pixels == nullptr || of_pixels->kinds.empty();
    const std::int32_t* const kinds = alike ? nullptr : of_pixels->kinds.data() + first / results.columns;
    const bool clips = function_ == Function::clip && addend == nullptr && alpha_ < most_plain && beta_ > -most_plain;
    const bool plain = prepared.bounded && (function_ == Function::none || clips) && !results.floats && alike &&
                       prepared.factor.empty() && prepared.offset.empty() && prepared.sum_slope.empty() && prepared.sum_bias.empty();
    return {at(prepared.scale), bias, at(prepared.factor), at(prepared.offset), at(prepared.slope), kinds,
            alike ? 0 : of_pixels->step, function_, alpha_, beta_, prepared.y_zero, at(prepared.y_zeros), results.floats, plain,
            {addend, prepared.addend_zero, at(prepared.addend_scale), at(prepared.sum_scale), at(prepared.sum_slope), at(prepared.sum_bias),
             prepared.sum_zero, at(prepared.sum_zeros), results.residual == nullptr ? nullptr : results.residual + first}};
  }

  void run(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
           const Results& results) const {
    if (prepared.tiles) return run_tiles(context, g, prepared, x, results);
    if (prepared.pointwise) return run_pointwise(context, g, prepared, x, results);
    if (prepared.winograd > 0) return run_winograd(context, g, prepared, x, results);
    const Kernels& kernels = byte_conv::kernels();
    const std::int64_t pixels = g.pixels(), tile = kernels.product_rows;
    // Enough pieces for all threads, of whole tiles. If many weights are read for each piece, it has more rows and fewer columns.
    const std::int64_t wanted = Context::most_pieces();
    std::int64_t step = std::clamp(up((pixels + wanted - 1) / wanted, tile), tile, rows_at_once), width_at_once = g.columns;
    if (g.groups == 1 && prepared.weight_bytes() > many_weights) {
      const std::int64_t most = std::min(up(pixels, tile), rows_at_once), rows = (pixels + most - 1) / most;
      const std::int64_t least = prepared.copied ? columns_of_copies : columns_at_least;
      width_at_once = std::max(up((g.columns * rows + wanted - 1) / wanted, kernels.panel_columns), least);
      const std::int64_t parts = (g.columns + width_at_once - 1) / width_at_once;
      step = std::clamp(up((pixels * parts + wanted - 1) / wanted, tile), tile, most);
    }
    const std::int64_t column_pieces = std::max<std::int64_t>((g.columns + width_at_once - 1) / width_at_once, 1);
    std::vector<std::uint8_t> padding = zeros_of_channels(g, prepared);
    const std::uint8_t* const end = x + g.batch * g.in[0] * g.in[1] * g.in[2] * g.channels;
    const std::int64_t chunks = (pixels + step - 1) / step, width = prepared.wide ? 2 : 1;
    // Whether the taps of a line of the kernel are side by side.
    const bool in_lines = prepared.copied && g.groups == 1 && g.dilations[2] == 1;
    std::optional<WideInput> wide;
    if (prepared.widened) wide.emplace(context, x, end - x, padding);
    const std::int64_t copy_step = prepared.depth + beyond;
    if (in_lines) {
      const std::vector<std::uint8_t> one = padding;
      for (std::int64_t tap = 1; tap < g.kernel[2]; ++tap) padding.insert(padding.end(), one.begin(), one.end());
      padding.resize(padding.size() + beyond);
    }
    if (prepared.lines) {
      run_lines(context, g, prepared, x, end, std::move(padding), results, step);
      return;
    }
    context.parallel_ranges(chunks * column_pieces, 1, [&](std::int64_t first, std::int64_t last) {
      std::vector<const void*> taps(static_cast<std::size_t>(in_lines ? 0 : g.taps * step)), copies(static_cast<std::size_t>(step));
      std::vector<std::uint8_t> copy(prepared.copied ? static_cast<std::size_t>(step * copy_step * width) : 0);
      for (std::int64_t i = 0; i < step && prepared.copied; ++i) {
        copies[static_cast<std::size_t>(i)] = copy.data() + i * copy_step * width;
      }
      for (std::int64_t piece = first; piece < last; ++piece) {
        const std::int64_t chunk = piece / column_pieces, column = piece % column_pieces * width_at_once;
        const bool is_next = piece == first || column == 0;  // other pieces have the rows of the one before
        const std::int64_t row = chunk * step, rows = std::min(step, pixels - row);
        if (is_next && wide) {
          point(g, wide->numbers(), wide->padding(), row, rows, step, taps.data());
        } else if (is_next && !in_lines) {
          point(g, x, padding.data(), row, rows, step, taps.data());
        }
        const std::int64_t first_result = row * g.columns;
        if (g.depthwise()) {
          kernels.depthwise({taps.data(), step, g.taps, g.channels, prepared.matrix(), prepared.start.data(),
                             after(prepared, 0, results, first_result), results.y + first_result * results.bytes(), g.columns},
                            rows);
          continue;
        }
        for (std::int64_t group = 0; group < g.groups; ++group) {
          const std::int64_t offset = group * g.group_channels, from = group * prepared.padded + column;
          const std::int64_t result = first_result + group * g.group_columns + column;
          byte_conv::Product product = {
              taps.data(),
              step,
              g.taps,
              wide ? offset * 2 : offset,
              prepared.depth,
              prepared.panels(kernels, group, column),
              prepared.start.data() + from,
              std::min(g.group_columns - column, width_at_once),
              after(prepared, from, results, result),
              results.y + result * results.bytes(),
              g.columns,
          };
          if (prepared.copied && is_next) {
            const auto copied = [&](auto* to) {
              if (in_lines) {
                copy_lines(g, x, end, padding.data(), row, rows, copy_step, to);
              } else {
                gather(g, taps.data(), step, rows, offset, prepared.depth, copy_step, to);
              }
            };
            if (prepared.wide) {
              copied(reinterpret_cast<std::int16_t*>(copy.data()));
            } else {
              copied(copy.data());
            }
          }
          if (prepared.copied) {
            product.rows = copies.data();
            product.taps = 1;
            product.offset = 0;
          }
          (prepared.narrow.empty() ? kernels.multiply : kernels.multiply_narrow)(product, rows);
        }
      }
    });
  }

  void run_pointwise(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                     const Results& results) const {
    const std::int64_t count = g.pixels() * g.columns, width = prepared.part, rows = count / width;
    const auto multiply = [&](std::int64_t at, std::int64_t columns, std::int64_t rows_here) {
      byte_conv::kernels().pointwise({x + at, columns, prepared.column_weights.data(), prepared.start.data(),
                                      after(prepared, 0, results, at), results.y + at * results.bytes()}, rows_here);
    };
    context.parallel_ranges(rows, pointwise_at_least / width + 1, [&](std::int64_t first, std::int64_t last) {
      multiply(first * width, width, last - first);
    });
    if (rows * width < count) multiply(rows * width, count - rows * width, 1);
  }

  void run_winograd(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                    const Results& results) const {
    const Kernels& kernels = byte_conv::kernels();
    const int tile = prepared.winograd;
    const WinogradTiles tiles(g, tile);
    const std::int64_t planes = g.kernel[0], count = tiles.count(), points = byte_conv::points_of(tile), wanted = Context::most_pieces();
    const std::int64_t point_bytes = planes * g.channels * static_cast<std::int64_t>(sizeof(std::int16_t));  // of a tile
    // Enough pieces for all threads. If many weights are read for each piece, it has fewer columns instead of fewer tiles.
    const bool divides_columns = g.groups == 1 && static_cast<std::int64_t>(prepared.weights.size()) > many_weights;
    std::int64_t step = std::min(most_patch_bytes / (points * point_bytes), byte_conv::most_tiles(tile)), width = g.group_columns;
    if (!divides_columns) step = std::min(step, std::max((count + wanted - 1) / wanted, kernels.product_rows));
    step = std::max<std::int64_t>(step, 1);
    const std::int64_t blocks = (count + step - 1) / step;
    step = (count + blocks - 1) / blocks;
    if (divides_columns) width = std::max(up((g.columns * blocks + wanted - 1) / wanted, kernels.panel_columns), columns_at_least);
    const std::int64_t column_parts = (g.group_columns + width - 1) / width;
    const std::vector<std::uint8_t> padding = zeros_of_channels(g, prepared);
    context.parallel_ranges(blocks * column_parts, 1, [&](std::int64_t begin, std::int64_t until) {
      std::vector<const void*> pixels(static_cast<std::size_t>(step * planes * points)), rows(static_cast<std::size_t>(step * planes));
      // Points are not multiples of 4 KiB apart, which would use few lines of the cache.
      const std::int64_t patch_bytes = up(step * point_bytes, 64) + 64;
      const Spare patches(points * patch_bytes / 4);
      auto* const from = reinterpret_cast<std::int16_t*>(patches.get());
      std::vector<WinogradLine> lines;
      std::int64_t here = 0;
      for (std::int64_t piece = begin; piece < until; ++piece) {
        const std::int64_t first = piece / column_parts * step, column = piece % column_parts * width;
        if (first >= count) break;
        if (piece == begin || column == 0) {
          here = std::min(step, count - first);
          tiles.point(x, padding.data(), first, first + here, pixels.data());
          kernels.transform_patches({tile, pixels.data(), here, planes, g.channels, from, patch_bytes / 2});
          lines = tiles.lines(first, first + here);
          for (std::int64_t i = 0; i < planes * here; ++i) rows[static_cast<std::size_t>(i)] = from + i * g.channels;
        }
        for (std::int64_t group = 0; group < g.groups; ++group) {
          const std::int64_t offset = group * g.group_channels * static_cast<std::int64_t>(sizeof(std::int16_t));
          const std::int64_t at = group * prepared.padded + column, result = group * g.group_columns + column;
          const auto* const panels = static_cast<const std::uint8_t*>(prepared.matrix()) + group * prepared.stride +
                                     byte_conv::packed_winograd_bytes(tile, column, planes * prepared.depth);
          kernels.multiply_winograd({tile,
                                     {rows.data(), here, planes, offset, prepared.depth, panels, prepared.start.data() + at,
                                      std::min(g.group_columns - column, width), after(prepared, at, results, result),
                                      results.y + result * results.bytes(), g.columns},
                                     patch_bytes,
                                     lines.data(),
                                     static_cast<std::int64_t>(lines.size()),
                                     g.out[2]});
        }
      }
    });
  }

  // One zero point for each channel.
  static std::vector<std::uint8_t> zeros_of_channels(const Geometry& g, const Prepared& prepared) {
    if (prepared.x_zeros.size() != 1) return prepared.x_zeros;
    return std::vector<std::uint8_t>(static_cast<std::size_t>(g.channels), prepared.x_zeros[0]);
  }

  // Products with tiles: of the input if its pixels are positions, of padded planes, or of copied rows.
  void run_tiles(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                 const Results& results) const {
    const Planes planes(g, *prepared.tiles);
    const std::int64_t image_bytes = g.in[0] * g.in[1] * g.in[2] * g.channels;
    const std::int64_t plane_bytes = planes.is_representable() ? planes.image_bytes() : 0;
    if (g.pixels() < fewest_in_tiles || !planes.is_representable() || plane_bytes > most_growth * (image_bytes + (1 << 16))) {
      return run_copied_rows(context, g, prepared, x, results);
    }
    if (planes.is_input()) {
      multiply_planes(context, g, prepared, planes, x, x + g.batch * image_bytes, 0, 1, results);
      return;
    }
    const std::vector<std::uint8_t> zeros = zeros_of_channels(g, prepared);
    const std::int64_t at_once = std::clamp<std::int64_t>(most_plane_bytes / plane_bytes, 1, g.batch);
    const Spare memory((at_once * plane_bytes + planes.bytes_beyond() + 3) / 4);
    std::uint8_t* const filled = reinterpret_cast<std::uint8_t*>(memory.get());
    for (std::int64_t image = 0; image < g.batch; image += at_once) {
      const std::int64_t images = std::min(at_once, g.batch - image), lines = planes.lines();
      const std::int64_t grain = lines_at_least * lines / std::max<std::int64_t>(plane_bytes, 1) + 1;
      context.parallel_ranges(images * lines, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          planes.fill(x + (image + i / lines) * image_bytes, i % lines, zeros.data(), filled + i / lines * plane_bytes);
        }
      });
      multiply_planes(context, g, prepared, planes, filled, nullptr, image, images, results);
    }
  }

  // The product of `columns` columns of a group; its positions are to be added. `result` is the first output pixel.
  TileProduct tile_product(const Geometry& g, const Prepared& prepared, std::int64_t group, std::int64_t column,
                           std::int64_t columns, std::int64_t result, const Results& results) const {
    const std::int64_t from = group * prepared.padded + column, at = result * g.columns + group * g.group_columns + column;
    const std::int64_t depth = prepared.tiles->depth();
    TileProduct product{};
    product.chunks = depth / prepared.tiles->chunk_depth;
    product.chunk_depth = prepared.tiles->chunk_depth;
    product.panels = static_cast<const std::uint8_t*>(prepared.matrix()) + group * prepared.stride +
                     (column == 0 ? 0 : byte_conv::kernels().packed_bytes(column, depth));
    product.start = prepared.start.data() + from;
    product.columns = columns;
    product.after = after(prepared, from, results, at);
    product.to = results.y + at * results.bytes();
    product.to_step = g.columns;
    return product;
  }

  // `from` are the planes of images [image, image + images), or the input. `end` is that of the input.
  void multiply_planes(const Context& context, const Geometry& g, const Prepared& prepared, const Planes& planes,
                       const std::uint8_t* from, const std::uint8_t* end, std::int64_t image, std::int64_t images,
                       const Results& results) const {
    const Kernels& kernels = byte_conv::kernels();
    const std::int64_t positions = planes.run_positions(), runs = images * planes.runs(), depth = prepared.tiles->depth();
    const std::int64_t image_pixels = g.pixels() / g.batch, tile = byte_conv::tile_rows;
    // Enough pieces for all threads. If many weights are read for each piece, it has more positions and fewer columns.
    const std::int64_t wanted = std::max<std::int64_t>(Context::most_pieces() / runs, 1);
    const bool divides_columns = g.groups == 1 && static_cast<std::int64_t>(prepared.weights.size()) > many_weights;
    std::int64_t step = rows_at_once, width = g.group_columns;
    if (!divides_columns) step = std::clamp(up((positions + wanted - 1) / wanted, tile), tile, step);
    // The last piece may have one more tile of positions.
    const std::int64_t parts = std::max<std::int64_t>((positions + step - 1 - tile) / step, 1);
    if (divides_columns) width = std::max(up((g.columns * parts + wanted - 1) / wanted, kernels.panel_columns), columns_at_least);
    const std::int64_t column_parts = std::max<std::int64_t>((g.group_columns + width - 1) / width, 1);
    context.parallel_ranges(runs * parts * column_parts, 1, [&](std::int64_t begin, std::int64_t until) {
      std::vector<std::uint8_t> copies;
      for (std::int64_t piece = begin; piece < until; ++piece) {
        const std::int64_t column = piece % column_parts * width, part = piece / column_parts % parts, run = piece / column_parts / parts;
        const std::int64_t at = run / planes.runs(), within = run % planes.runs(), group = planes.group_of(within);
        const std::int64_t result = (image + at) * image_pixels + planes.first_result(within);
        const std::int64_t columns = std::min(g.group_columns - column, width);
        TileProduct product = tile_product(g, prepared, group, column, columns, result, results);
        product.from = from + at * planes.image_bytes() + planes.begin(within);
        product.step = planes.step();
        product.offsets = planes.offsets().data();
        product.line_positions = planes.line_positions();
        product.line_results = planes.line_results();
        const std::int64_t first = part * step, last = part + 1 < parts ? first + step : positions;
        if (end == nullptr) {
          kernels.multiply_tiles(product, first, last);
          continue;
        }
        // Tiles of the last positions would extend beyond the input.
        const std::int64_t room = end - product.from, whole = room < depth ? 0 : (room - depth) / product.step + 1;
        const std::int64_t direct = up(positions, tile) <= whole ? positions : whole / tile * tile;
        if (first < direct) kernels.multiply_tiles(product, first, std::min(last, direct));
        const std::int64_t rest = std::max(first, direct);
        if (rest >= last) continue;
        copies.assign(static_cast<std::size_t>(up(last - rest, tile) * depth), 0);
        for (std::int64_t i = rest; i < last; ++i) {
          std::memcpy(copies.data() + (i - rest) * depth, product.from + i * product.step, static_cast<std::size_t>(g.group_channels));
        }
        product = tile_product(g, prepared, group, column, columns, result + rest, results);
        product.from = copies.data();
        product.step = depth;
        product.offsets = planes.offsets().data();
        product.line_positions = product.line_results = last - rest;
        kernels.multiply_tiles(product, 0, last - rest);
      }
    });
  }

  // If there are few results, or if planes would be much larger than the input.
  void run_copied_rows(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                       const Results& results) const {
    const Kernels& kernels = byte_conv::kernels();
    const TileDepth& tiles = *prepared.tiles;
    const std::int64_t pixels = g.pixels(), depth = tiles.depth(), size = g.group_channels;
    const std::int64_t step = std::min(up(pixels, byte_conv::tile_rows), rows_at_once), parts = (pixels + step - 1) / step;
    const std::vector<std::uint8_t> zeros = zeros_of_channels(g, prepared);
    std::vector<std::int64_t> offsets;
    for (std::int64_t at = 0; at < depth; at += tiles.chunk_depth) offsets.push_back(at);
    context.parallel_ranges(parts * g.groups, 1, [&](std::int64_t begin, std::int64_t until) {
      std::vector<const void*> taps(static_cast<std::size_t>(g.taps * step));
      std::vector<std::uint8_t> copies(static_cast<std::size_t>(step * depth));
      for (std::int64_t piece = begin; piece < until; ++piece) {
        const std::int64_t group = piece % g.groups, row = piece / g.groups * step, rows = std::min(step, pixels - row);
        if (piece == begin || group == 0) point(g, x, zeros.data(), row, rows, step, taps.data());
        for (std::int64_t tap = 0; tap < g.taps; ++tap) {
          const std::int64_t at = tiles.place(tap, size);
          for (std::int64_t i = 0; i < rows; ++i) {
            const std::uint8_t* one = static_cast<const std::uint8_t*>(taps[static_cast<std::size_t>(tap * step + i)]);
            std::memcpy(copies.data() + i * depth + at, one + group * size, static_cast<std::size_t>(size));
          }
        }
        TileProduct product = tile_product(g, prepared, group, 0, g.group_columns, row, results);
        if (rows < fewest_in_tiles) {
          const void* const starts[] = {copies.data(), copies.data() + depth};
          kernels.multiply({starts, 1, 1, 0, depth, product.panels, product.start, product.columns, product.after, product.to,
                            product.to_step}, rows);
          continue;
        }
        product.from = copies.data();
        product.step = depth;
        product.offsets = offsets.data();
        product.line_positions = product.line_results = rows;
        kernels.multiply_tiles(product, 0, rows);
      }
    });
  }

  // Depthwise convolutions along lines of output pixels.
  void run_lines(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                 const std::uint8_t* end, std::vector<std::uint8_t> padding, const Results& results, std::int64_t step) const {
    const Kernels& kernels = byte_conv::kernels();
    const std::int64_t readable = up(g.channels, byte_conv::line_channels), width = g.kernel[2], stride = g.strides[2];
    padding.resize(static_cast<std::size_t>(readable));
    // Channels after the last pixel are read, too.
    const std::int64_t kept = std::min<std::int64_t>(readable, end - x);
    std::vector<std::uint8_t> tail(static_cast<std::size_t>(kept + readable));
    std::copy(end - kept, end, tail.begin());
    const auto readable_at = [&](const std::uint8_t* at) -> const void* {
      return end - at < readable ? tail.data() + kept - (end - at) : at;
    };
    // Whole lines, if they are short.
    if (g.out[2] <= step) step -= step % g.out[2];
    const std::int64_t pixels = g.pixels(), chunks = (pixels + step - 1) / step, lines = g.taps / width;
    const std::int64_t line_step = (up(step, byte_conv::line_rows) - 1) * stride + width + byte_conv::line_beyond;
    context.parallel_ranges(chunks, 1, [&](std::int64_t first, std::int64_t last) {
      std::vector<const void*> taps(static_cast<std::size_t>(lines * line_step));
      const std::int64_t until = std::min(pixels, last * step);
      for (std::int64_t row = first * step; row < until;) {
        const std::int64_t column = row % g.out[2], line = row / g.out[2];
        const std::int64_t count = std::min({step, until - row, g.out[2] - column});
        const std::int64_t height = line % g.out[1], depth = line / g.out[1] % g.out[0], image = line / g.out[1] / g.out[0];
        const std::int64_t in_width = column * stride - g.begin[2], inputs = (count - 1) * stride + width;
        const void** tap = taps.data();
        for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
          const std::int64_t in_depth = depth * g.strides[0] - g.begin[0] + d * g.dilations[0];
          for (std::int64_t h = 0; h < g.kernel[1]; ++h, tap += line_step) {
            const std::int64_t in_height = height * g.strides[1] - g.begin[1] + h * g.dilations[1];
            std::int64_t i = 0;
            if (in_depth >= 0 && in_depth < g.in[0] && in_height >= 0 && in_height < g.in[1]) {
              const std::int64_t before = std::clamp<std::int64_t>(-in_width, 0, inputs);
              const std::int64_t inside = std::clamp<std::int64_t>(g.in[2] - in_width, before, inputs);
              for (; i < before; ++i) tap[i] = padding.data();
              const std::int64_t at = ((image * g.in[0] + in_depth) * g.in[1] + in_height) * g.in[2] + in_width + before;
              const std::uint8_t* from = x + at * g.channels;
              const std::int64_t room = end - from - readable, direct = room < 0 ? before : before + room / g.channels + 1;
              for (const std::int64_t last_direct = std::min(inside, direct); i < last_direct; ++i, from += g.channels) tap[i] = from;
              for (; i < inside; ++i, from += g.channels) tap[i] = readable_at(from);
            }
            for (; i < line_step; ++i) tap[i] = padding.data();
          }
        }
        kernels.multiply_lines({taps.data(), line_step, lines, width, stride, g.channels, prepared.matrix(), prepared.start.data(),
                       after(prepared, 0, results, row * g.columns), results.y + row * g.columns * results.bytes(), g.columns},
                      count);
        row += count;
      }
    });
  }

  // The start of the taps of output pixels [row, row + rows): [taps, step].
  template <class T>
  static void point(const Geometry& g, const T* x, const T* padding, std::int64_t row, std::int64_t rows, std::int64_t step,
                    const void** to) {
    for (std::int64_t done = 0; done < rows;) {
      // Pixels of one line.
      const std::int64_t at = row + done, column = at % g.out[2], line = at / g.out[2];
      const std::int64_t count = std::min(rows - done, g.out[2] - column);
      const std::int64_t height = line % g.out[1], depth = line / g.out[1] % g.out[0], image = line / g.out[1] / g.out[0];
      const void** tap = to + done;
      for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
        const std::int64_t in_depth = depth * g.strides[0] - g.begin[0] + d * g.dilations[0];
        for (std::int64_t h = 0; h < g.kernel[1]; ++h) {
          const std::int64_t in_height = height * g.strides[1] - g.begin[1] + h * g.dilations[1];
          const bool inside = in_depth >= 0 && in_depth < g.in[0] && in_height >= 0 && in_height < g.in[1];
          const std::int64_t line_at = inside ? ((image * g.in[0] + in_depth) * g.in[1] + in_height) * g.in[2] : 0;
          for (std::int64_t w = 0; w < g.kernel[2]; ++w, tap += step) {
            const std::int64_t in_width = column * g.strides[2] - g.begin[2] + w * g.dilations[2];
            // Taps inside the line are contiguous, after padding before it and before padding after it.
            const std::int64_t stride = g.strides[2], pixel_step = stride * g.channels;
            std::int64_t i = 0;
            const std::int64_t before = std::clamp<std::int64_t>(in_width < 0 ? (-in_width + stride - 1) / stride : 0, 0, count);
            const std::int64_t room = g.in[2] - in_width;
            const std::int64_t until = inside ? std::clamp<std::int64_t>(room > 0 ? (room + stride - 1) / stride : 0, before, count) : before;
            for (; i < before; ++i) tap[i] = padding;
            const T* from = x + (line_at + in_width + before * stride) * g.channels;
            for (; i < until; ++i, from += pixel_step) tap[i] = from;
            for (; i < count; ++i) tap[i] = padding;
          }
        }
      }
      done += count;
    }
  }

  static void copy_beyond(const std::uint8_t* from, std::uint8_t* to) { std::memcpy(to, from, beyond); }
  static void copy_beyond(const std::uint8_t* from, std::int16_t* to) {
    std::uint8_t bytes[beyond];
    std::memcpy(bytes, from, beyond);
    std::int16_t wide[beyond];
    for (std::int64_t i = 0; i < beyond; ++i) wide[i] = bytes[i];
    std::memcpy(to, wide, sizeof wide);
  }

  // The taps of output pixels [row, row + rows) side by side, those of a line of the kernel at once, `step` elements from
  // one pixel to the next. Up to `beyond` elements after the taps are overwritten: their weights are 0. `padding` is a line.
  template <class T>
  static void copy_lines(const Geometry& g, const std::uint8_t* x, const std::uint8_t* end, const std::uint8_t* padding,
                         std::int64_t row, std::int64_t rows, std::int64_t step, T* to) {
    const std::int64_t channels = g.channels, width = g.kernel[2], run = width * channels, stride = g.strides[2];
    const std::int64_t parts = (run + beyond - 1) / beyond, bytes = stride * channels;
    const auto copy = [&](const std::uint8_t* from, T* into) {
      for (std::int64_t part = 0; part < parts; ++part) copy_beyond(from + part * beyond, into + part * beyond);
    };
    const auto copy_exactly = [](const std::uint8_t* from, std::int64_t count, T* into) {
      for (std::int64_t i = 0; i < count; ++i) into[i] = from[i];
    };
    for (std::int64_t done = 0; done < rows;) {
      const std::int64_t at = row + done, column = at % g.out[2], line = at / g.out[2];
      const std::int64_t count = std::min(rows - done, g.out[2] - column);
      const std::int64_t height = line % g.out[1], depth = line / g.out[1] % g.out[0], image = line / g.out[1] / g.out[0];
      // Pixels from `before` to `until` have all taps within the line. The first tap of the first pixel may be outside.
      const std::int64_t in_width = column * stride - g.begin[2], room = g.in[2] - width - in_width;
      const std::int64_t before = std::clamp<std::int64_t>(in_width < 0 ? (-in_width + stride - 1) / stride : 0, 0, count);
      const std::int64_t until = std::clamp<std::int64_t>(room < 0 ? 0 : room / stride + 1, before, count);
      T* tap = to + done * step;
      for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
        const std::int64_t in_depth = depth * g.strides[0] - g.begin[0] + d * g.dilations[0];
        for (std::int64_t h = 0; h < g.kernel[1]; ++h, tap += run) {
          const std::int64_t in_height = height * g.strides[1] - g.begin[1] + h * g.dilations[1];
          std::int64_t i = 0;
          if (in_depth < 0 || in_depth >= g.in[0] || in_height < 0 || in_height >= g.in[1]) {
            for (; i < count; ++i) copy(padding, tap + i * step);
            continue;
          }
          const std::uint8_t* const begin = x + ((image * g.in[0] + in_depth) * g.in[1] + in_height) * g.in[2] * channels;
          const auto at_border = [&](std::int64_t i) {
            T* next = tap + i * step;
            for (std::int64_t w = in_width + i * stride; w < in_width + i * stride + width; ++w, next += channels) {
              copy_exactly(w < 0 || w >= g.in[2] ? padding : begin + w * channels, channels, next);
            }
          };
          for (; i < before; ++i) at_border(i);
          const std::uint8_t* from = begin + (in_width + i * stride) * channels;
          for (; i < until && end - from >= parts * beyond; ++i, from += bytes) copy(from, tap + i * step);
          for (; i < until; ++i, from += bytes) copy_exactly(from, run, tap + i * step);
          for (; i < count; ++i) at_border(i);
        }
      }
      done += count;
    }
  }

  // The rows' taps side by side, `to_step` elements from one row to the next.
  template <class T>
  static void gather(const Geometry& g, const void* const* taps, std::int64_t step, std::int64_t rows, std::int64_t offset,
                     std::int64_t depth, std::int64_t to_step, T* to) {
    const std::int64_t channels = g.group_channels;
    for (std::int64_t i = 0; i < rows; ++i, to += to_step) {
      T* next = to;
      for (std::int64_t tap = 0; tap < g.taps; ++tap, next += channels) {
        const std::uint8_t* one = static_cast<const std::uint8_t*>(taps[tap * step + i]) + offset;
        for (std::int64_t c = 0; c < channels; ++c) next[c] = one[c];
      }
      while (next < to + depth) *next++ = T{0};
    }
  }

  std::int64_t channels_;
  std::vector<std::int64_t> kernel_, strides_, pads_, dilations_;
  std::int64_t groups_;
  Function function_;
  float alpha_, beta_;
  bool is_constant_ = false;                 // all inputs but the activations, addend and residual
  std::optional<std::int64_t> largest_sum_;  // of products, if Winograd's algorithm can compute them
  // Read and written atomically, and only if the inputs are constant.
  mutable std::array<std::shared_ptr<const Prepared>, 3> prepared_;  // without tiles, for those of 2 x 2, and of 4 x 4
  mutable std::shared_ptr<const PixelBiases> biases_;
};

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
           .one_of({"none", "clip", "prelu", "hard_sigmoid", "hard_swish", "sigmoid", "swish", "gelu", "elu", "mish"}),
       Attribute::number("alpha", 0.0f), Attribute::number("beta", 0.0f)},
      {{{Type::uint8, Type::int8, Type::float32, Type::float32, Type::uint8, Type::uint8, any, any, any, any, any, any, any, any, any,
         any, any, any},
        {Type::uint8}},
       {{Type::uint8, Type::int8, Type::float32, Type::float32, Type::uint8, Type::float32, any, any, any, any, any, any, any, any,
         any, any, any, any},
        {Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<QuantizedConv>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
