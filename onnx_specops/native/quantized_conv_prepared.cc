#include "quantized_conv_prepared.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "errors.h"
#include "quantized_conv_winograd.h"

namespace specops::byte_conv {

namespace {

// The most columns that constants are repeated for.
constexpr std::int64_t most_pointwise_columns = 2048;
// Larger numbers are clipped before they are converted to integers.
constexpr double most_plain = 2e9;

Sizes three_dimensions(const std::vector<std::int64_t>& sizes) {
  Sizes out = {1, 1, 1};
  std::copy(sizes.begin(), sizes.end(), out.end() - static_cast<std::ptrdiff_t>(sizes.size()));
  return out;
}

// Prepared::offset_sums.
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

void make_winograd(const std::int8_t* weights, std::int64_t part, std::int64_t parts, std::int64_t part_channels,
                   std::int64_t channels, std::int64_t planes, std::int64_t per_group, Prepared& out) {
  out.copied = out.widened = false;
  out.depth = part_channels;
  out.stride = up(packed_winograd_bytes(out.winograd, part, planes * part_channels), 64);
  out.weights.resize(static_cast<std::size_t>(out.stride * parts) + 64);
  auto* const to = static_cast<std::uint8_t*>(const_cast<void*>(out.matrix()));
  for (std::int64_t g = 0; g < parts; ++g) {
    pack_winograd(out.winograd, {weights + g * part * channels * planes * 9, part, per_group, channels, planes},
                             reinterpret_cast<std::int16_t*>(to + g * out.stride));
  }
}

}  // namespace

Sizes steps_of_sums(const Sizes& kernel) { return {(kernel[1] + 1) * (kernel[2] + 1), kernel[2] + 1, 1}; }

Prepared prepare(const Node& node, const std::vector<Input>& inputs, bool adds, bool has_residual, int tile, bool once) {
  const Kernels& kernels = byte_conv::kernels();
  const Input& w = inputs[input::w];
  const Shape& shape = w.shape();
  const std::int64_t columns = shape[0], channels = shape[1], groups = node.groups;
  if (columns % groups != 0) {
    fail("W has the shape ", to_string(shape), "; its first dimension must be a multiple of the ", groups, " groups");
  }
  const std::int64_t per_group = columns / groups, depth = w.size() / std::max<std::int64_t>(columns, 1);
  const std::int64_t taps = depth / std::max<std::int64_t>(channels, 1);
  if (depth > most_products) fail("a sum has more than ", most_products, " products");
  const bool depthwise = channels == 1 && per_group == 1;
  const std::int64_t merged = depthwise || per_group == 0 ? 1 : merged_groups(groups, per_group);
  Prepared out;
  out.function = node.function;
  out.alpha = node.alpha;
  out.beta = node.beta;
  const std::int64_t unit = depth_unit, part = depthwise ? columns : per_group * merged;
  const std::int64_t parts = depthwise ? 1 : groups / merged, part_channels = channels * merged;
  const std::int64_t line_width = std::max<std::int64_t>(shape.back(), 1);
  if (kernels.multiply_tiles != nullptr && !depthwise && taps > 0) {
    out.tiles.emplace(part_channels, taps, line_width, node.dilations.empty() || node.dilations.back() == 1);
  }
  // Copies of rows would be made for each group.
  out.widened = !depthwise && !out.tiles && kernels.wide && parts > 1 && part_channels % 2 == 0;
  out.copied = !depthwise && !out.tiles && !out.widened && (kernels.wide || part_channels % unit != 0);
  out.padded = up(part, channel_block);
  out.part = part;
  if (channels * groups != node.channels) {
    fail("W has the shape ", to_string(shape), ", but X has ", node.channels, " channels in ", groups, " groups");
  }
  node.check(inputs, adds, has_residual);
  const Input& x_zeros = inputs[input::x_zero_point];
  out.x_zeros.assign(x_zeros.data<std::uint8_t>(), x_zeros.data<std::uint8_t>() + x_zeros.size());
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
  if (!inputs[input::x_offset].absent()) out.offset_sums = sums_of_offsets(node, inputs);
  if (depthwise && taps == 1 && node.is_contiguous()) {
    make_pointwise(from, columns, out);
    return out;
  }
  if (depthwise) {
    out.depth = 1;
    const std::int64_t width = shape.back(), stride = node.strides.empty() ? 1 : node.strides.back();
    out.lines = kernels.multiply_lines != nullptr && width > 1 && (node.dilations.empty() || node.dilations.back() == 1) &&
                stride >= 1 && stride <= most_line_stride;
    if (out.lines) {
      out.weights.resize(static_cast<std::size_t>(kernels.line_bytes(columns, taps / width, width, stride)) + 64);
      kernels.pack_lines(from, columns, taps / width, width, stride, const_cast<void*>(out.matrix()));
      return out;
    }
    out.weights.resize(static_cast<std::size_t>(kernels.depthwise_bytes(columns, taps)) + 64);
    kernels.pack_depthwise(from, columns, taps, const_cast<void*>(out.matrix()));
    return out;
  }
  if (tile > 0) {
    out.winograd = tile;
    make_winograd(from, part, parts, part_channels, channels, taps / 9, per_group, out);
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
  if (once && kernels.multiply_narrow != nullptr && !out.widened) {  // the order is found once
    out.depth = up(depth * merged, block_depth);
    for (std::int64_t g = 0; g < parts; ++g) {
      out.narrow.push_back(pack_narrow(ordered(g, out.depth).data(), part, out.depth, depth * merged));
      if (!out.narrow.back().panels.empty()) continue;
      out.narrow.clear();
      break;
    }
    if (!out.narrow.empty()) {
      out.copied = taps > 1 || part_channels % block_depth != 0;
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
    largest = std::max(largest, (std::int64_t{size} + std::abs(sum)) / 2);  // those of one sign
  }
  return 255 * largest;
}

}  // namespace specops::byte_conv
