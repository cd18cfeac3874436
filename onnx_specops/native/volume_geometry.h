// The sizes of a node VolumeConv, and the blocks of its columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "op.h"
#include "volume_conv.h"
#include "windows.h"

namespace specops::volumes {

// The taps of a chunk of channels, about: with fewer ones, sums are loaded and stored more often. With more, a first-level cache
// has no room for their inputs.
constexpr std::int64_t taps_at_once = 256;

// What transformed lines need to save time: output channels of a group, products of each sum, and positions of a slice.
constexpr std::int64_t least_columns = 16, least_products = 24, least_positions = 24;
// The pixels of a transformed line, at most: pieces have whole lines.
constexpr std::int64_t longest_line = 512;

struct Geometry : WindowSizes {
  std::int64_t batch, channels, columns, groups, group_channels, group_columns, taps;
  // The positions of a line of a padded slice whose pixels have the same remainder of their width.
  std::int64_t width;
  bool is_transformed = false;

  std::int64_t area() const { return kernel[1] * kernel[2]; }
  std::int64_t transforms() const { return is_transformed ? transform_count : 1; }
  std::int64_t volume_in() const { return in[0] * in[1] * in[2]; }
  std::int64_t volume_out() const { return out[0] * out[1] * out[2]; }
  // Whether transforms of lines save more time than they take.
  bool is_transformable() const {
    return kernel[2] == 3 && strides[2] == 1 && dilations[2] == 1 && group_columns >= least_columns &&
           group_channels * kernel[0] * kernel[1] >= least_products && out[1] * divide_up(out[2], 2) >= least_positions &&
           out[2] <= longest_line;
  }
  // The same with transformed lines: without taps along the width.
  Geometry transformed() const {
    Geometry other = *this;
    other.is_transformed = true;
    other.kernel[2] = 1;
    other.taps = kernel[0] * kernel[1];
    return other;
  }
  // The channels whose products are added at once.
  std::int64_t chunk() const {
    const std::int64_t channels = std::max<std::int64_t>(group_channels, 1);
    return divide_up(channels, divide_up(channels, std::clamp<std::int64_t>(taps_at_once / taps, 1, channels)));
  }
};

// Calls `visit(column, shape)` for each block of `count` output channels from the column `first` on. If some of the columns
// are visited separately, in multiples of `most_outputs`, the blocks are the same.
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
