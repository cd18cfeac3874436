#include "quantized_conv_prepared.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "errors.h"
#include "quantized_conv_winograd.h"

namespace specops::byte_conv {

namespace {

// The maximum number of columns for which constants are repeated.
constexpr std::int64_t most_pointwise_columns = 2048;
// With fewer columns, the checks of the activations, and the copies of those of groups, would take too long. With fewer
// channels, the activations are often those of an image, which are large.
constexpr std::int64_t fewest_checked_columns = 16, fewest_checked_columns_of_groups = 64, fewest_checked_channels = 16;
// Larger numbers are clipped before they are converted to integers.
constexpr double most_plain = 2e9;

Sizes three_dimensions(const std::vector<std::int64_t>& sizes) {
  Sizes out = {1, 1, 1};
  std::copy(sizes.begin(), sizes.end(), out.end() - static_cast<std::ptrdiff_t>(sizes.size()));
  return out;
}

// Computes Prepared::offset_sums.
std::vector<double> sums_of_offsets(const Node& node, const std::vector<Input>& inputs) {
  const Shape& shape = inputs[input::w].shape();
  const std::int8_t* const weights = inputs[input::w].data<std::int8_t>();
  const Input& offset = inputs[input::x_offset];
  const float* const offsets = offset.data<float>();
  const std::int64_t columns = shape[0], channels = shape[1], per_group = columns / node.groups;
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

// Repeats the constants for as many pixels as fill whole vectors.
void make_pointwise(const std::int8_t* weights, std::int64_t columns, Prepared& out) {
  out.pointwise = true;
  const std::int64_t panel = kernels().panel_columns, repeats = panel / std::gcd(columns, panel);
  const bool several = out.offset_sums.empty() && repeats * columns <= most_pointwise_columns;
  out.part = several ? repeats * columns : columns;
  out.padded = up(out.part, channel_block);
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

// The weights of a layer, and the sizes that follow from their shape.
struct Layer {
  const std::int8_t* weights;  // [columns, channels, taps]
  std::int64_t columns, channels, taps, depth, per_group;
  std::int64_t repeats;  // see Geometry::repeats
  bool depthwise;
  std::int64_t merged;  // the number of groups that are computed as one; the number of results is `parts`
  std::int64_t part, parts, part_channels;
  std::int64_t width;  // of the kernel

  Layer(const Node& node, const Input& w);
};

Layer::Layer(const Node& node, const Input& w) : weights(w.data<std::int8_t>()), columns(w.shape()[0]), channels(w.shape()[1]) {
  const Shape& shape = w.shape();
  if (columns % node.groups != 0) {
    fail("W has the shape ", to_string(shape), "; its first dimension must be a multiple of the ", node.groups, " groups");
  }
  if (channels * node.groups != node.channels) {
    fail("W has the shape ", to_string(shape), ", but X has ", node.channels, " channels in ", node.groups, " groups");
  }
  per_group = columns / node.groups;
  depth = w.size() / std::max<std::int64_t>(columns, 1);
  taps = depth / std::max<std::int64_t>(channels, 1);
  if (depth > most_products) fail("a sum has more than ", most_products, " products");
  repeats = repeats_of(node.groups, channels, per_group);
  depthwise = channels == 1 && per_group == repeats;
  merged = depthwise || per_group == 0 ? 1 : merged_groups(node.groups, per_group);
  part = depthwise ? columns : per_group * merged;
  parts = depthwise ? 1 : node.groups / merged;
  part_channels = channels * merged;
  width = std::max<std::int64_t>(shape.back(), 1);
}

// Pads or repeats the numbers of columns, as the kernels need them.
void spread_columns(const Layer& layer, const std::vector<Input>& inputs, bool adds, bool has_residual, Prepared& out) {
  const auto spread_all = [&](const auto* from, auto& to) {
    to.assign(static_cast<std::size_t>(layer.parts * out.padded), 0);
    for (std::int64_t g = 0; g < layer.parts; ++g) std::copy_n(from + g * layer.part, layer.part, to.begin() + g * out.padded);
  };
  const auto spread = [&](std::size_t i, std::vector<float>& to) {
    if (inputs[i].absent()) return;
    const float* const from = inputs[i].data<float>();
    if (inputs[i].size() > 1) return spread_all(from, to);
    to.assign(static_cast<std::size_t>(layer.parts * out.padded), from[0]);
  };
  // Stores one zero point, or the zero points of the columns if there are several.
  const auto spread_zeros = [&](std::size_t i, std::int32_t& one, std::vector<std::int32_t>& to) {
    const std::uint8_t* const zeros = inputs[i].data<std::uint8_t>();
    one = zeros[0];
    if (inputs[i].size() > 1) spread_all(zeros, to);
  };
  spread(input::scale, out.scale);
  spread(input::bias, out.bias);
  spread(input::factor, out.factor);
  spread(input::slope, out.slope);
  spread(input::y_offset, out.offset);
  if (inputs[input::y_zero_point].type() == Type::uint8) spread_zeros(input::y_zero_point, out.y_zero, out.y_zeros);
  if (adds) {
    spread(input::addend_scale, out.addend_scale);
    out.addend_zero = inputs[input::addend_zero_point].data<std::uint8_t>()[0];
    spread(input::sum_scale, out.sum_scale);
    spread_zeros(input::sum_zero_point, out.sum_zero, out.sum_zeros);
    spread(input::sum_bias, out.sum_bias);
  }
  if (adds || has_residual) spread(input::sum_slope, out.sum_slope);
}

// Computes the initial sums from the products of zero points, and whether all sums are bounded.
void make_start(const Layer& layer, bool adds, Prepared& out) {
  out.start.assign(static_cast<std::size_t>(layer.parts * out.padded), 0);
  for (std::int64_t m = 0; m < layer.columns; ++m) {
    std::int64_t sum = 0, size = 0;
    for (std::int64_t k = 0; k < layer.depth; ++k) {
      const std::int64_t channel = m / layer.per_group * layer.channels + k / layer.taps, weight = layer.weights[m * layer.depth + k];
      size += std::abs(weight) * 255;
      sum += weight * std::int64_t{out.x_zeros[out.x_zeros.size() == 1 ? 0 : static_cast<std::size_t>(channel)]};
    }
    const auto column = static_cast<std::size_t>(m / layer.part * out.padded + m % layer.part);
    out.start[column] = static_cast<std::int32_t>(-sum);
    const auto bound = [&](double all, const std::vector<float>& factor, const std::vector<float>& added, double each) {
      return all * std::abs(double{factor[column]}) + each * std::abs(double{added[column]}) < most_plain;  // false for NaN
    };
    out.bounded = out.bounded && bound(static_cast<double>(size), out.scale, out.bias, 1.0);
    if (adds) out.bounded = out.bounded && bound(255.0, out.sum_scale, out.addend_scale, 255.0);
  }
}

// Allocates memory for packed weights.
void* reserve(std::int64_t bytes, Prepared& out) {
  out.weights.resize(static_cast<std::size_t>(bytes) + 64);
  return const_cast<void*>(out.matrix());
}

void make_depthwise(const Node& node, const Layer& layer, Prepared& out) {
  const Kernels& kernels = byte_conv::kernels();
  const std::int64_t width = layer.width, stride = node.windows.strides.empty() ? 1 : node.windows.strides.back();
  const bool adjacent = width > 1 && (node.windows.dilations.empty() || node.windows.dilations.back() == 1);
  out.depth = 1;
  out.lines = kernels.multiply_lines != nullptr && adjacent && stride >= 1 && stride <= most_line_stride;
  if (out.lines) {
    const std::int64_t lines = layer.taps / width;
    void* const to = reserve(kernels.line_bytes(layer.columns, lines, width, stride), out);
    return kernels.pack_lines(layer.weights, layer.columns, lines, width, stride, to);
  }
  void* const to = reserve(kernels.depthwise_bytes(layer.columns, layer.taps), out);
  kernels.pack_depthwise(layer.weights, layer.columns, layer.taps, to);
}

void make_winograd(const Layer& layer, int tile, Prepared& out) {
  const std::int64_t planes = layer.taps / 9;
  out.winograd = tile;
  out.copied = out.widened = false;
  out.depth = layer.part_channels;
  out.stride = up(packed_winograd_bytes(tile, layer.part, planes * layer.part_channels), 64);
  auto* const to = static_cast<std::uint8_t*>(reserve(out.stride * layer.parts, out));
  for (std::int64_t g = 0; g < layer.parts; ++g) {
    const std::int8_t* const weights = layer.weights + g * layer.part * layer.depth;
    pack_winograd(tile, {weights, layer.part, layer.per_group, layer.channels, planes},
                  reinterpret_cast<std::int16_t*>(to + g * out.stride));
  }
}

// The weights of a part in the order of the activations: taps are the outer dimension, channels the inner one.
std::vector<std::int8_t> ordered(const Layer& layer, const Prepared& out, std::int64_t g, std::int64_t whole) {
  std::vector<std::int8_t> numbers(static_cast<std::size_t>(layer.part * whole), 0);
  for (std::int64_t m = 0; m < layer.part; ++m) {
    const std::int8_t* const one = layer.weights + (g * layer.part + m) * layer.depth;
    std::int8_t* const row = numbers.data() + m * whole + m / layer.per_group * layer.channels;
    for (std::int64_t tap = 0; tap < layer.taps; ++tap) {
      std::int8_t* const to = row + (out.tiles ? out.tiles->place(tap, layer.part_channels) : tap * layer.part_channels);
      for (std::int64_t c = 0; c < layer.channels; ++c) to[c] = one[c * layer.taps + tap];
    }
  }
  return numbers;
}

// Packs the weights of each part, whose depth is `all_depth`.
void pack_parts(const Layer& layer, decltype(Kernels::packed_bytes) bytes, decltype(Kernels::pack) pack, Prepared& out) {
  out.stride = up(bytes(layer.part, out.all_depth), 64);
  auto* const to = static_cast<std::uint8_t*>(reserve(out.stride * layer.parts, out));
  for (std::int64_t g = 0; g < layer.parts; ++g) {
    pack(ordered(layer, out, g, out.all_depth).data(), layer.part, out.all_depth, to + g * out.stride);
  }
}

// Packs the weights as bytes, and returns whether products of bytes are faster.
bool make_narrow(const Layer& layer, Prepared& out) {
  if (kernels().multiply_narrow == nullptr || out.widened) return false;
  const std::int64_t used = layer.depth * layer.merged, depth = up(used, block_depth);
  std::vector<Narrow> found;
  for (std::int64_t g = 0; g < layer.parts; ++g) {
    found.push_back(pack_narrow(ordered(layer, out, g, depth).data(), layer.part, depth, used));
    if (found.back().panels.empty()) return false;
  }
  out.narrow = std::move(found);
  out.depth = depth;
  out.copied = layer.taps > 1 || layer.part_channels % block_depth != 0;
  return true;
}

// Packs the weights for products whose activations are checked, and returns whether these are faster.
bool make_checked(const Layer& layer, Prepared& out) {
  const Kernels& kernels = byte_conv::kernels();
  if (kernels.multiply_checked == nullptr) return false;
  const std::int64_t depth = up(layer.depth * layer.merged, depth_unit);
  // Most activations are close to the zero point.
  const bool small = std::all_of(out.x_zeros.begin(), out.x_zeros.end(), [](std::uint8_t zero) { return zero == 0; });
  const std::int64_t fewest = layer.parts == 1 ? fewest_checked_columns : fewest_checked_columns_of_groups;
  if (!small || layer.part < fewest || layer.part_channels < fewest_checked_channels || depth > most_checked_depth) return false;
  out.checked = true;
  out.widened = false;
  out.copied = layer.taps > 1 || layer.part_channels % depth_unit != 0;
  out.depth = out.all_depth = depth;
  pack_parts(layer, kernels.checked_bytes, kernels.pack_checked, out);
  return true;
}

void make_products(const Layer& layer, Prepared& out) {
  const Kernels& kernels = byte_conv::kernels();
  const std::int64_t used = layer.depth * layer.merged;
  out.wide = kernels.wide;
  out.depth = out.copied ? up(used, depth_unit) : layer.part_channels;
  out.all_depth = out.tiles ? out.tiles->depth() : out.copied ? out.depth : used;
  pack_parts(layer, kernels.packed_bytes, kernels.pack, out);
}

}  // namespace

Sizes steps_of_sums(const Sizes& kernel) { return {(kernel[1] + 1) * (kernel[2] + 1), kernel[2] + 1, 1}; }

Prepared prepare(const Node& node, const std::vector<Input>& inputs, bool adds, bool has_residual, int tile, bool once) {
  const Kernels& kernels = byte_conv::kernels();
  const Layer layer(node, inputs[input::w]);
  node.check(inputs, adds, has_residual);
  Prepared out;
  out.function = node.function;
  out.alpha = node.alpha;
  out.beta = node.beta;
  if (kernels.multiply_tiles != nullptr && !layer.depthwise && layer.taps > 0) {
    const bool adjacent = node.windows.dilations.empty() || node.windows.dilations.back() == 1;
    out.tiles.emplace(layer.part_channels, layer.taps, layer.width, adjacent);
  }
  // Otherwise, rows would be copied for each group.
  out.widened = !layer.depthwise && !out.tiles && kernels.wide && layer.parts > 1 && layer.part_channels % 2 == 0;
  out.copied = !layer.depthwise && !out.tiles && !out.widened && (kernels.wide || layer.part_channels % depth_unit != 0);
  out.padded = up(layer.part, channel_block);
  out.part = layer.part;
  const Input& x_zeros = inputs[input::x_zero_point];
  out.x_zeros.assign(x_zeros.data<std::uint8_t>(), x_zeros.data<std::uint8_t>() + x_zeros.size());
  spread_columns(layer, inputs, adds, has_residual, out);
  make_start(layer, adds, out);
  if (!inputs[input::x_offset].absent()) out.offset_sums = sums_of_offsets(node, inputs);
  if (layer.repeats > 1 && out.x_zeros.size() > 1) {
    out.x_zeros = std::vector<std::uint8_t>(static_cast<std::size_t>(layer.columns));
    for (std::int64_t m = 0; m < layer.columns; ++m) {
      out.x_zeros[static_cast<std::size_t>(m)] = x_zeros.data<std::uint8_t>()[m / layer.repeats];
    }
  }
  if (layer.depthwise && layer.taps == 1 && node.is_contiguous()) {
    make_pointwise(layer.weights, layer.columns, out);
  } else if (layer.depthwise) {
    make_depthwise(node, layer, out);
  } else if (tile > 0) {
    make_winograd(layer, tile, out);
  } else if (!make_checked(layer, out) && !(once && make_narrow(layer, out))) {  // the order of narrow products is found once
    make_products(layer, out);
  }
  return out;
}

std::int64_t largest_sum(const Input& w) {
  const std::int64_t columns = w.shape()[0], depth = w.size() / columns;
  const std::int8_t* const weights = w.data<std::int8_t>();
  std::int64_t largest = 0;
  for (std::int64_t m = 0; m < columns; ++m) {
    std::int32_t sum = 0, size = 0;
    for (std::int64_t k = m * depth; k < (m + 1) * depth; ++k) {
      sum += weights[k];
      size += std::abs(std::int32_t{weights[k]});
    }
    largest = std::max(largest, (std::int64_t{size} + std::abs(sum)) / 2);  // the sum of the weights of one sign
  }
  return 255 * largest;
}

}  // namespace specops::byte_conv
