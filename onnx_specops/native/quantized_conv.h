// Convolutions of 8-bit integers: the interface between quantized_conv.cc and the code for each instruction set.
//
// quantized_conv_kernels.cc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::byte_conv {

// The order is that of the operator's attribute.
enum class Function { none, clip, prelu, hard_sigmoid, hard_swish, sigmoid, swish, gelu, elu, mish, gelu_tanh };

// The addition of a second quantized tensor to quantized results, before they are quantized again. The arrays have a number
// for each column, padded like those of `After`. `slope`, `bias` and `zero_points` may be null.
struct Addition {
  const std::uint8_t* addend;  // the element for the first row and column; null if nothing is added
  std::int32_t addend_zero_point;
  const float *addend_scale, *scale, *slope, *bias;
  std::int32_t zero_point;
  const std::int32_t* zero_points;  // null if all are equal
  const float* residual;            // the same for floats, with `slope` only; null if there is no residual
};

// The epilogue of sums. The arrays have a number for each column, padded to whole panels. `factor`, `offset`, `slope` and
// `zero_points` may be null.
struct After {
  const float *scale, *bias, *factor, *offset, *slope;
  // The kind of each row, from the first result on. Its biases are `kind * bias_step` numbers after `bias`. Null if all rows
  // have the same biases.
  const std::int32_t* kinds;
  std::int64_t bias_step;
  Function function;
  float alpha, beta;
  std::int32_t zero_point;
  const std::int32_t* zero_points;  // null if all are equal
  bool floats;  // whether results are float32; otherwise uint8
  // Whether sums below 2^31 only need a scale and a bias before they become integers, and at most Function::clip or an
  // addition without a slope and a bias.
  bool plain;
  Addition addition;
};

// Products of rows with all columns of a weight matrix.
struct Product {
  const void* const* rows;  // [taps, row_step]: the start of the activations of each tap of a row
  std::int64_t row_step, taps;
  std::int64_t offset;         // in bytes, added to each start
  std::int64_t depth;          // activations per tap: a multiple of `depth_unit`
  const void* panels;          // as packed by `pack`, `pack_narrow` or `pack_checked`
  const std::int32_t* start;   // the initial value of each column's sum
  std::int64_t columns;
  After after;
  void* to;  // the result for the first row and column
  std::int64_t to_step;
};

// Winograd's algorithm for windows of 3 x 3 pixels in each of `depths` planes; see quantized_conv_winograd.h. There is a
// matrix product for each of the `points_of(tile)` points. Its rows are tiles of 2 x 2 or 4 x 4 output pixels.
struct WinogradPatches {
  int tile;
  const void* const* pixels;  // [tiles, depths, points]: the input pixels of each tile, bytes
  std::int64_t tiles, depths;
  std::int64_t channels;  // at least `fewest_winograd_channels`
  std::int16_t* to;       // [points, step]; each point has [depths, tiles, channels]
  std::int64_t step;
};
// Adjacent tiles.
struct WinogradLine {
  std::int64_t first;          // the first tile
  std::int64_t pixels, lines;  // of the output
  std::int64_t first_pixel;
};
struct WinogradProduct {
  int tile;
  // The product for the first point, of 16-bit integers, with weights packed by `pack_winograd`. `to` is the result of pixel
  // 0.
  Product product;
  std::int64_t patch_bytes;  // the distance between the activations of adjacent points
  const WinogradLine* lines;
  std::int64_t line_count, line_step;  // the number of lines, and the output pixels from one line to the next
};
constexpr std::int64_t points_of(std::int64_t tile) { return (tile + 2) * (tile + 2); }
constexpr std::int64_t most_tiles(std::int64_t tile) { return tile == 2 ? 28 : 16; }  // the maximum number of tiles at once
constexpr std::int64_t fewest_winograd_channels = 16;

// Products with tiles of 16 rows, which are loaded directly from the activations. Rows are positions of lines. Only the first
// positions of a line are results; the others keep the distance between rows constant.
struct TileProduct {
  const std::uint8_t* from;     // the activations of position 0. Whole tiles may be read after the last position.
  std::int64_t step;            // bytes from one position to the next
  const std::int64_t* offsets;  // [chunks]: the location of each chunk's activations, in bytes
  std::int64_t chunks;
  std::int64_t chunk_depth;     // activations: a multiple of `depth_unit`, at most `tile_depth`
  std::int64_t line_positions, line_results;
  const void* panels;
  const std::int32_t* start;
  std::int64_t columns;
  After after;
  void* to;  // the result for position 0 and the first column
  std::int64_t to_step;
};

// Products of a depthwise convolution.
struct Depthwise {
  const void* const* rows;  // [taps, row_step], bytes
  std::int64_t row_step, taps, channels;
  const void* weights;  // as packed by `pack_depthwise`
  const std::int32_t* start;
  After after;
  void* to;
  std::int64_t to_step;
};

// Rows of contiguous bytes, each of which is multiplied by the weight of its column.
struct Pointwise {
  const std::uint8_t* from;
  std::int64_t columns;
  const std::int32_t *weights, *start;  // padded like the arrays of `After`
  After after;
  void* to;
};

// Products of a depthwise convolution along a line of output pixels, if neighboring pixels share their inputs.
struct DepthwiseLine {
  // [lines, step]: the input pixels from the first tap of the first row on, for each line of the kernel. Channels are readable
  // up to a multiple of `line_channels`. The number of pixels is that of a multiple of `line_rows` rows, plus `line_beyond`.
  const void* const* pixels;
  std::int64_t step, lines, width, stride, channels;  // width: the taps of a line
  const void* weights;  // as packed by `pack_lines`
  const std::int32_t* start;
  After after;
  void* to;
  std::int64_t to_step;
};
constexpr std::int64_t line_channels = 16, line_rows = 16, line_beyond = 4, most_line_stride = 2;

constexpr std::int64_t most_checked_depth = std::int64_t{1} << 14;

// Columns and channels are padded to multiples of these.
constexpr std::int64_t depth_unit = 4, most_panel_columns = 32, channel_block = 64;
// The number of rows of a tile, and the maximum number of activations of a row.
constexpr std::int64_t tile_rows = 16, tile_depth = 64;

struct Kernels {
  const char* name;
  bool wide;  // whether activations of a Product are 16-bit integers; otherwise bytes
  std::int64_t panel_columns;
  std::int64_t product_rows;  // the number of rows of a product that are computed together

  std::int64_t (*packed_bytes)(std::int64_t columns, std::int64_t depth);
  // `weights` are [columns, depth], starting and ending at tap boundaries.
  void (*pack)(const std::int8_t* weights, std::int64_t columns, std::int64_t depth, void* to);
  void (*multiply)(const Product& product, std::int64_t rows);

  std::int64_t (*depthwise_bytes)(std::int64_t channels, std::int64_t taps);
  void (*pack_depthwise)(const std::int8_t* weights, std::int64_t channels, std::int64_t taps, void* to);  // [channels, taps]
  void (*depthwise)(const Depthwise& job, std::int64_t rows);

  void (*pointwise)(const Pointwise& job, std::int64_t rows);

  // Null if `depthwise` is as fast. `stride` is at most `most_line_stride`, and taps must be adjacent.
  std::int64_t (*line_bytes)(std::int64_t channels, std::int64_t lines, std::int64_t width, std::int64_t stride);
  void (*pack_lines)(const std::int8_t* weights, std::int64_t channels, std::int64_t lines, std::int64_t width,
                     std::int64_t stride, void* to);  // [channels, lines, width]
  void (*multiply_lines)(const DepthwiseLine& job, std::int64_t rows);

  // Null if the processor has no tiles. Computes positions [first, last), with weights packed by `pack`, one chunk after
  // another.
  void (*multiply_tiles)(const TileProduct& product, std::int64_t first, std::int64_t last);

  void (*transform_patches)(const WinogradPatches& job);
  void (*multiply_winograd)(const WinogradProduct& job);

  // Null if `multiply` multiplies bytes itself. Multiplies bytes, with one tap and weights packed by `pack_narrow`.
  void (*multiply_narrow)(const Product& product, std::int64_t rows);
  // The same with weights packed by `pack_checked`, for a depth of at most `most_checked_depth`. The time depends on the
  // activations: it is short if they are small.
  std::int64_t (*checked_bytes)(std::int64_t columns, std::int64_t depth);
  void (*pack_checked)(const std::int8_t* weights, std::int64_t columns, std::int64_t depth, void* to);
  void (*multiply_checked)(const Product& product, std::int64_t rows);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::byte_conv
