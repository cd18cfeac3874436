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

// A range of positions of a kernel along a dimension: [first, last).
struct TapRange {
  std::int64_t first, last;
};

// `begin` is the padding at the beginning of each dimension. `padded` is the size of the input with padding at both ends.
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
  // `may_be_none`: whether the input of windows of one pixel may have no pixels, as in a matrix multiplication without rows.
  explicit Windows(const KernelInfo& info, bool may_be_none = false);

  // Throws unless the attributes are for `rank` spatial dimensions.
  void check(std::size_t rank) const;

  // The sizes for inputs X and W. `x_axis` and `w_axis` are the first spatial dimension of each. Throws if the windows do not
  // fit.
  WindowSizes measure(const Shape& x, std::size_t x_axis, const Shape& w, std::size_t w_axis) const;

  // The value for each spatial dimension; `pads` has all beginnings, then all ends. Empty for the defaults.
  const std::vector<std::int64_t> strides, pads, dilations;

 private:
  const bool may_be_none_;
};

}  // namespace specops
