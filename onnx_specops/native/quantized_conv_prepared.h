// Weights and other constants of QuantizedConv, as the kernels use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "op.h"
#include "quantized_conv.h"
#include "quantized_conv_geometry.h"
#include "quantized_conv_narrow.h"
#include "quantized_conv_node.h"
#include "quantized_conv_planes.h"

namespace specops::byte_conv {

struct Prepared {
  std::int64_t part;       // the number of columns of a group
  std::int64_t padded;     // `part`, padded to whole blocks
  std::int64_t depth;      // the number of activations of a tap, padded to whole units
  std::int64_t all_depth;  // the number of packed activations of all taps
  bool copied;             // rows are copied, with all taps of a row combined
  bool widened;            // the whole input becomes 16-bit integers
  bool lines = false;      // depthwise, along lines of output pixels
  int winograd = 0;        // the tile size of Winograd's algorithm, or 0
  bool pointwise = false;  // depthwise with windows of one pixel; the columns are those of one or several pixels
  std::optional<TileDepth> tiles;
  std::vector<Narrow> narrow;  // for each group; empty if weights are packed in the usual form of the kernels
  bool checked = false;    // whether activations are checked before they are multiplied as bytes
  bool wide = false;       // whether copied activations are 16-bit integers
  std::int64_t stride;     // bytes between the matrices of groups
  bool bounded = true;     // whether scaled sums are below 2^31
  std::vector<std::uint8_t> weights;
  std::vector<std::int32_t> column_weights;  // for `pointwise`
  std::vector<std::int32_t> start;
  std::vector<float> scale, bias, factor, offset, slope;
  std::vector<std::uint8_t> x_zeros;   // one, or one per channel
  // [columns, taps + 1 in each dimension]: for each column, the sums of the products of the weights and the numbers that are
  // added to the activations, over all taps before the given one in each dimension. Empty if nothing is added.
  std::vector<double> offset_sums;
  std::vector<std::int32_t> y_zeros;   // one per column; empty if they are equal
  std::int32_t y_zero = 0;
  // The addition of a second tensor.
  std::vector<float> addend_scale, sum_scale, sum_slope, sum_bias;
  std::vector<std::int32_t> sum_zeros;
  std::int32_t sum_zero = 0, addend_zero = 0;
  Function function;
  float alpha, beta;

  // The weights of a group from a column on, which must be the first column of a panel.
  const void* panels(const Kernels& kernels, std::int64_t group, std::int64_t column) const {
    if (!narrow.empty()) return narrow[static_cast<std::size_t>(group)].panels.data() + column / block_columns;
    const auto bytes = checked ? kernels.checked_bytes : kernels.packed_bytes;
    const std::int64_t before = column == 0 ? 0 : bytes(column, all_depth);
    return static_cast<const std::uint8_t*>(matrix()) + group * stride + before;
  }

  std::int64_t weight_bytes() const {
    std::size_t all = weights.size();
    for (const Narrow& of_group : narrow) all += of_group.numbers.size();
    return static_cast<std::int64_t>(all);
  }

  const void* matrix() const {
    const auto address = reinterpret_cast<std::uintptr_t>(weights.data());
    return weights.data() + (64 - address % 64) % 64;
  }
};

// The strides of a column's numbers in Prepared::offset_sums.
Sizes steps_of_sums(const Sizes& kernel);

// Prepares the constants. `tile` is the tile size of Winograd's algorithm, or 0. `once`: whether the result is used in all
// runs.
Prepared prepare(const Node& node, const std::vector<Input>& inputs, bool adds, bool has_residual, int tile, bool once);

// The largest absolute value of a sum of at most `most_products` products.
std::int64_t largest_sum(const Input& w);

}  // namespace specops::byte_conv
