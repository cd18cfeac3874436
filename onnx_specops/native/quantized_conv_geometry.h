// The geometry of a QuantizedConv node.
#pragma once

#include <cstdint>
#include <vector>

#include "windows.h"

namespace specops::byte_conv {

// The attributes of a node, and the dimensions that follow from its inputs.
struct Geometry : WindowSizes {
  std::int64_t batch, channels, columns, groups, group_channels, group_columns, taps;
  std::int64_t repeats;  // the number of copies of each channel of the node's input; the other fields include the copies
  std::int64_t pixels() const { return batch * out[0] * out[1] * out[2]; }
  std::int64_t image_size() const { return in[0] * in[1] * in[2] * channels; }  // of the input
  bool depthwise() const { return group_channels == 1 && group_columns == 1; }
};

// With more copies, products of several columns are as fast.
constexpr std::int64_t most_repeats = 4;

// The taps of a window that are not padding.
struct Inside {
  Sizes first, last;  // [first, last) in each dimension
};

// The output pixels, classified by which of their taps are not padding.
struct PixelKinds {
  explicit PixelKinds(const Geometry& g);
  std::vector<Inside> kinds;
  std::vector<std::int32_t> of_pixels;  // the kind of each pixel of all images; empty if there is one kind
};

inline std::int64_t up(std::int64_t x, std::int64_t step) { return (x + step - 1) / step * step; }

}  // namespace specops::byte_conv
