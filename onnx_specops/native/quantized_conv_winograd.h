// Winograd's algorithm for convolutions of bytes with windows of 3 x 3 pixels, in integers.
//
// F(2 x 2, 3 x 3) computes a tile of 2 x 2 output pixels with 16 products instead of 36. F(4 x 4, 3 x 3) computes a tile of 4
// x 4 with 36 products instead of 144. Activations become sums of pixels, which fit 16 bits. Each row of the algorithm's
// weights is multiplied by an integer, so that the weights are 16-bit integers, too. The sums of products are then the results
// times 4 or 576. 32-bit integers wrap around, so only the result times 4 or 64 must fit: 576 is 64 times 9, and
// multiplication by the inverse of 9 divides by 9. Results are exact.
#pragma once

#include <cstdint>
#include <vector>

#include "quantized_conv.h"
#include "quantized_conv_geometry.h"

namespace specops::byte_conv {

// Whether windows are 3 x 3 adjacent pixels in each plane. The number of planes is arbitrary.
bool is_winograd(const std::vector<std::int64_t>& kernel, const Windows& windows);

// The fastest tile size (2 or 4), or 0 if direct products are as fast. `largest` is the largest absolute value of a sum.
// `speed` is the number of products of bytes that take as long as one product of 16-bit integers.
int fastest_tile(const Geometry& geometry, std::int64_t largest, std::int64_t speed);

// The weights of a group: [columns, channels, planes, 3, 3]. If several groups are computed as one, `columns` includes all of
// them, `group_columns` is that of one, and the weights between groups are 0.
struct WinogradWeights {
  const std::int8_t* weights;
  std::int64_t columns, group_columns, channels, planes;
  std::int64_t depth() const { return planes * columns / group_columns * channels; }
};

// The size of packed weights, in bytes.
std::int64_t packed_winograd_bytes(int tile, std::int64_t columns, std::int64_t depth);

// Packs the points of the weights: panels of columns, each with all points, and pairs of channels as the innermost dimension.
void pack_winograd(int tile, const WinogradWeights& weights, std::int16_t* to);

// The tiles of the output pixels of all images, in order.
class WinogradTiles {
 public:
  WinogradTiles(const Geometry& geometry, int tile);
  std::int64_t count() const { return geometry_.batch * geometry_.out[0] * lines_ * width_; }
  // Finds the input pixels of the tiles [first, last): [tiles, planes of the kernel, points].
  void point(const std::uint8_t* x, const std::uint8_t* padding, std::int64_t first, std::int64_t last, const void** to) const;
  // The output pixels of the tiles [first, last).
  std::vector<WinogradLine> lines(std::int64_t first, std::int64_t last) const;

 private:
  const Geometry& geometry_;
  std::int64_t tile_, lines_, width_;  // the lines of an output plane, and the tiles of a line
};

}  // namespace specops::byte_conv
