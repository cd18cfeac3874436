// Convolutions of bytes: what quantized_conv.cc asks of the code for each instruction set.
//
// quantized_conv_kernels.inc is that code, compiled once for each set (CMakeLists.txt), as compressed.h tells.
#pragma once

#include <cstdint>

namespace specops::byte_conv {

// In the order in which the operator's attribute names them.
enum class Function { none, clip, prelu, hard_sigmoid, hard_swish, sigmoid, swish, gelu, elu, mish };

// What becomes of sums. The arrays have a number for each column, up to whole panels; `factor`, `slope` and
// `zero_points` may be null.
struct After {
  const float *scale, *bias, *factor, *slope;
  Function function;
  float alpha, beta;
  std::int32_t zero_point;
  const std::int32_t* zero_points;  // where they differ; else null
  bool floats;  // whether results are float32 and not uint8
};

// Sums of products of rows with all columns of a matrix of weights.
struct Product {
  const void* const* rows;  // [taps, row_step]: where the activations of each tap of a row begin
  std::int64_t row_step, taps;
  std::int64_t offset;         // bytes that are added to each of them
  std::int64_t depth;          // activations of a tap: a multiple of `depth_unit`
  const void* panels;          // as `pack` leaves them
  const std::int32_t* start;   // what each column's sum begins with
  std::int64_t columns;
  After after;
  void* to;  // of the first row and column
  std::int64_t to_step;
};

// The same where each channel has weights of its own.
struct Depthwise {
  const void* const* rows;  // [taps, row_step], of bytes
  std::int64_t row_step, taps, channels;
  const void* weights;  // as `pack_depthwise` leaves them
  const std::int32_t* start;
  After after;
  void* to;
  std::int64_t to_step;
};

// Columns and channels are counted in multiples of these.
constexpr std::int64_t depth_unit = 4, most_panel_columns = 32, channel_block = 64;

struct Kernels {
  const char* name;
  bool wide;  // whether activations of a Product are 16-bit integers and not bytes
  std::int64_t panel_columns;
  std::int64_t tile_rows;

  std::int64_t (*packed_bytes)(std::int64_t columns, std::int64_t depth);
  // `weights` are [columns, depth]; of `depth` numbers, which begin and end with taps.
  void (*pack)(const std::int8_t* weights, std::int64_t columns, std::int64_t depth, void* to);
  void (*multiply)(const Product& product, std::int64_t rows);

  std::int64_t (*depthwise_bytes)(std::int64_t channels, std::int64_t taps);
  void (*pack_depthwise)(const std::int8_t* weights, std::int64_t channels, std::int64_t taps, void* to);  // [channels, taps]
  void (*depthwise)(const Depthwise& job, std::int64_t rows);
};

const Kernels& portable();
#if defined(SPECOPS_X86_KERNELS)
const Kernels& avx2();
const Kernels& avx512();
const Kernels& avx512_vnni();
#endif

// The best that this processor runs; ONNX_SPECOPS_SIMD names another.
const Kernels& kernels();

}  // namespace specops::byte_conv
