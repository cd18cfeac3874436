// The windows of convolutions: strides, dilations and padding as attributes, and the sizes that follow from the inputs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "op.h"

namespace specops {

constexpr std::size_t most_dimensions = 3;
// The spatial dimensions. If there are fewer, the first ones are 1.
using Sizes = std::array<std::int64_t, most_dimensions>;

inline std::int64_t divide_up(std::int64_t x, std::int64_t step) { return (x + step - 1) / step; }

// Some positions of a kernel along a dimension: [first, last).
struct TapRange {
  std::int64_t first, last;
};

// `begin` is the padding at the beginning of each dimension, and `padded` the input with the padding at both ends.
struct WindowSizes {
  Sizes in, padded, out, kernel, strides, dilations, begin;

  // The input position of the first position of a window.
  std::int64_t start(std::size_t axis, std::int64_t window) const { return window * strides[axis] - begin[axis]; }

  // The positions of a window that are not padding.
  TapRange inside(std::size_t axis, std::int64_t window) const {
    const std::int64_t at = start(axis, window), step = dilations[axis];
    const std::int64_t first = std::min(at < 0 ? divide_up(-at, step) : 0, kernel[axis]);
    return {first, std::clamp(divide_up(std::max<std::int64_t>(in[axis] - at, 0), step), first, kernel[axis])};
  }
};

class Windows {
 public:
  // `may_be_none`: whether there may be no pixels for windows of one pixel, as in a matrix multiplication of no rows.
  explicit Windows(const KernelInfo& info, bool may_be_none = false);

  // Throws unless the attributes are for so many spatial dimensions.
  void check(std::size_t rank) const;

  // The sizes for inputs X and W. Throws if the windows do not fit. `x_axis`, `w_axis`: the first spatial dimension of each.
  WindowSizes measure(const Shape& x, std::size_t x_axis, const Shape& w, std::size_t w_axis) const;

  // For each spatial dimension; `pads` at the beginnings, then at the ends. Empty: the defaults.
  const std::vector<std::int64_t> strides, pads, dilations;

 private:
  const bool may_be_none_;
};

}  // namespace specops
