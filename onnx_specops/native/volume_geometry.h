// The sizes of a VolumeConv node, and the blocks of its columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "op.h"
#include "volume_conv.h"
#include "windows.h"

namespace specops::volumes {

// The approximate number of taps of a chunk of channels. With fewer taps, sums are loaded and stored more often. With more,
// their inputs do not fit the first-level cache.
constexpr std::int64_t taps_at_once = 256;

// The minimum sizes for which transforms save time: output channels of a group, products of each sum, and positions of a
// slice.
constexpr std::int64_t least_columns = 16, least_products = 24, least_positions = 24;
// The same for squares: products for each row of taps, and squares of a slice.
constexpr std::int64_t least_products_of_squares = 8, least_squares = 16;
// The maximum products of a transformed line for each product of direct sums, for which transforms save time.
constexpr double most_products = 0.87;
// The number of taps that a transform replaces. More taps along a single line are several transforms.
constexpr std::int64_t transformed_taps = 3;

struct Geometry : WindowSizes {
  std::int64_t batch, channels, columns, groups, group_channels, group_columns, taps;
  // The number of positions of a line of a padded slice, whose pixels have the same column number modulo the stride.
  std::int64_t width;
  // The number of last dimensions whose three taps are replaced by transforms.
  int transformed = 0;

  std::int64_t area() const { return kernel[1] * kernel[2]; }
  std::int64_t transforms() const { return transforms_of(transformed); }
  // The number of lines of positions of a slice.
  std::int64_t rows() const { return transformed > 1 ? divide_up(out[1], 2) : out[1]; }
  std::int64_t volume_in() const { return in[0] * in[1] * in[2]; }
  std::int64_t volume_out() const { return out[0] * out[1] * out[2]; }
  // The distance between the two output pixels of a position of a transformed line, and between two inputs of a transform.
  std::int64_t gap() const { return dilations[2]; }
  // The distance between the inputs of transform `i` of several along a line and those of the first one.
  std::int64_t transform_start(std::int64_t i) const { return i * transformed_taps * gap(); }
  // The number of positions of a transformed line.
  std::int64_t line_positions() const {
    const std::int64_t whole = out[2] / (2 * gap());
    return whole * gap() + std::min(out[2] % (2 * gap()), gap());
  }
  // The number of last dimensions for which transforms save time.
  int transformable() const {
    const auto has_three_taps = [&](std::size_t axis) {
      return kernel[axis] == transformed_taps && strides[axis] == 1 && dilations[axis] == 1;
    };
    // Only single lines may be dilated, because packs of positions begin with a whole block of them. Only they may have
    // several transforms, which need positions after the end of a line.
    const bool is_line = out[1] == 1 && kernel[1] == 1 && strides[2] == 1 && kernel[2] >= transformed_taps;
    const std::int64_t positions = line_positions();
    if (group_columns < least_columns || !(is_line || has_three_taps(2))) return 0;
    if (has_three_taps(1) && has_three_taps(2) && group_channels * kernel[0] >= least_products_of_squares &&
        divide_up(out[1], 2) * positions >= least_squares) {
      return 2;
    }
    const std::int64_t count = divide_up(kernel[2], transformed_taps);
    const auto direct = static_cast<double>(kernel[2] * out[2]);
    return group_channels * kernel[0] * kernel[1] * count >= least_products && out[1] * positions >= least_positions &&
                   static_cast<double>(transform_count * count * positions) <= most_products * direct
               ? 1
               : 0;
  }
  // The same geometry with transforms, which replace the taps of these dimensions.
  Geometry with_transforms(int dimensions) const {
    Geometry other = *this;
    other.transformed = dimensions;
    for (std::size_t axis = most_dimensions - static_cast<std::size_t>(dimensions); axis < most_dimensions; ++axis) {
      other.kernel[axis] = divide_up(kernel[axis], transformed_taps);
    }
    other.taps = element_count({other.kernel.begin(), other.kernel.end()});
    return other;
  }
  // The number of channels whose products are added together.
  std::int64_t chunk() const {
    const std::int64_t channels = std::max<std::int64_t>(group_channels, 1);
    return divide_up(channels, divide_up(channels, std::clamp<std::int64_t>(taps_at_once / taps, 1, channels)));
  }
};

// Calls `visit(column, shape)` for each block of `count` output channels from column `first` on. The blocks do not change if
// the columns are visited in several calls, each for a multiple of `most_outputs` columns.
template <class Visit>
void each_block(std::int64_t first, std::int64_t count, const Visit& visit) {
  const auto& shapes = kernels().shapes;
  for (std::int64_t done = 0; done < count;) {
    int i = 0;
    while (shapes[i].outputs > count - done) ++i;
    visit(first + done, shapes[i]);
    done += shapes[i].outputs;
  }
}

}  // namespace specops::volumes
