// Winograd's algorithm for convolutions of bytes with windows of 3 x 3 pixels, in integers.
//
// F(2 x 2, 3 x 3) computes a tile of 2 x 2 output pixels by 16 products instead of 36, F(4 x 4, 3 x 3) a tile of 4 x 4 by 36
// instead of 144. Activations become sums of pixels, which 16 bits represent. The weights are those of the algorithm times an
// integer for each of its rows, so that they are integers of 16 bits, too. Sums of products then are results times 4 or 576.
// Integers of 32 bits wrap around, so that only the result, times 4 or 64, must fit them: 576 is 64 times 9, and
// multiplication by the inverse of 9 divides by 9. Results are exact.
#pragma once

#include <cstdint>
#include <vector>

#include "quantized_conv.h"
#include "quantized_conv_geometry.h"

namespace specops::byte_conv {

// Whether windows are 3 x 3 neighboring pixels, in each of any number of planes.
bool is_winograd(const std::vector<std::int64_t>& kernel, const Windows& windows);

// The fastest tiles (2 or 4), or 0 if direct products are as fast. `largest` is the largest absolute value of a sum, and
// `speed` the number of products of bytes in the time of one of 16-bit integers.
int fastest_tile(const Geometry& geometry, std::int64_t largest, std::int64_t speed);

// Weights of a group: [columns, channels, planes, 3, 3]. If several groups are computed as one, `columns` are those of all and
// `group_columns` those of one, and weights between them are 0.
struct WinogradWeights {
  const std::int8_t* weights;
  std::int64_t columns, group_columns, channels, planes;
  std::int64_t depth() const { return planes * columns / group_columns * channels; }
};

// The bytes of the points of packed weights.
std::int64_t packed_winograd_bytes(int tile, std::int64_t columns, std::int64_t depth);

// Panels of columns, each with the numbers of all points: pairs of channels inside.
void pack_winograd(int tile, const WinogradWeights& weights, std::int16_t* to);

// The tiles of the output pixels of all images, in order.
class WinogradTiles {
 public:
  WinogradTiles(const Geometry& geometry, int tile);
  std::int64_t count() const { return geometry_.batch * geometry_.out[0] * lines_ * width_; }
  // The input pixels of the tiles [first, last): [tiles, planes of the kernel, points].
  void point(const std::uint8_t* x, const std::uint8_t* padding, std::int64_t first, std::int64_t last, const void** to) const;
  // The output pixels of the tiles [first, last).
  std::vector<WinogradLine> lines(std::int64_t first, std::int64_t last) const;

 private:
  const Geometry& geometry_;
  std::int64_t tile_, lines_, width_;  // lines and tiles of an output plane
};

}  // namespace specops::byte_conv
