// The attributes and inputs of a QuantizedConv node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "op.h"
#include "quantized_conv.h"
#include "quantized_conv_geometry.h"
#include "windows.h"

namespace specops::byte_conv {

// The inputs, in the order of the operator.
namespace input {
constexpr std::size_t x = 0, w = 1, scale = 2, bias = 3, x_zero_point = 4, y_zero_point = 5, factor = 6, slope = 7, addend = 8,
                      addend_scale = 9, addend_zero_point = 10, sum_scale = 11, sum_zero_point = 12, sum_slope = 13,
                      sum_bias = 14, x_offset = 15, y_offset = 16, residual = 17, count = 18;
}

// onnx_specops/ops/quantized_conv.py has the same limit: larger sums may overflow 32 bits.
constexpr std::int64_t most_products = std::int64_t{1} << 16;

struct Node {
  std::int64_t channels;
  std::vector<std::int64_t> kernel;
  Windows windows;
  std::int64_t groups;
  Function function;
  float alpha, beta;

  explicit Node(const KernelInfo& info);
  // Throws unless the shapes of X and W fit the attributes.
  Geometry measure(const Shape& x, const Shape& w) const;
  // Throws unless the shapes of all inputs except X, W, the addend and the residual fit. `adds`: whether there is an addend.
  void check(const std::vector<Input>& inputs, bool adds, bool has_residual) const;
  // For windows of one pixel: whether each pixel is a window, without padding or strides.
  bool is_contiguous() const;
};

// The number of copies of each channel that make a convolution depthwise if its groups have one channel and a few columns;
// otherwise 1.
std::int64_t repeats_of(std::int64_t groups, std::int64_t group_channels, std::int64_t group_columns);

// The number of groups that are computed as one, with weights of 0 between them. Their columns fit one vector.
std::int64_t merged_groups(std::int64_t groups, std::int64_t group_columns);

}  // namespace specops::byte_conv
