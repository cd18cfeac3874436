// Matrix multiplications with compressed weights: the interface between mat_mul_compressed.cc and the code for each
// instruction set.
//
// compressed_kernels.cc is that code, compiled once for each set (CMakeLists.txt). It does not use inline functions of the
// standard library: the linker keeps one copy of each, which must not be an AVX-512 version.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel_sets.h"

namespace specops::compressed {

// The encoding of an element.
enum class Kind {
  table2,      // an index into a table of 4 floats
  table4,      // an index into a table of 16 floats
  table8,      // an index into a table of 256 floats
  unsigned8,   // an integer
  signed8,     // an integer
  float8e4m3,  // ONNX's float8e4m3fn
  float8e5m2,
  float16,
  bfloat16,
  float32,
};

constexpr int bits(Kind kind) {
  switch (kind) {
    case Kind::table2: return 2;
    case Kind::table4: return 4;
    case Kind::float16:
    case Kind::bfloat16: return 16;
    case Kind::float32: return 32;
    default: return 8;
  }
}

// The number of elements in a byte.
constexpr int phases(Kind kind) { return bits(kind) < 8 ? 8 / bits(kind) : 1; }

// The number of elements that are decoded together.
constexpr std::int64_t block_elements(Kind kind) { return 16 * phases(kind); }

enum class Number { none, float32, float16, bfloat16, uint8, int8 };

// A matrix of one number for each group of each column; a step is 0 if one number is shared.
struct Matrix {
  const void* data = nullptr;
  Number type = Number::none;
  std::int64_t column_step = 0, group_step = 0;
};

// One matrix of weights.
struct Weights {
  Kind kind;
  const std::uint8_t* codes;
  bool transposed;  // [columns, depth] if true, otherwise [depth, columns]
  std::int64_t columns, depth;
  std::int64_t group, groups;  // elements along the depth that share a scale and a zero point; the last group may have fewer
  const float* table;          // table2 and table4: 16 floats, repeated if there are fewer; table8: 256
  std::uint8_t padding;        // a byte of codes that represent finite numbers
  Matrix scales, zero_points;  // 1 and 0 if absent

  // For 8-bit activations and integer weights: the bits to flip to make codes unsigned, and the resulting offset.
  std::uint8_t flip;
  float flipped;
};

// The number of elements that share a scale when activations are quantized to 8 bits.
constexpr std::int64_t quantized_block = 32;

// Rows of 8-bit activations.
struct Quantized {
  const std::int8_t* values;  // [rows, depth], rows `step` apart
  std::int64_t step;
  const float* scales;        // [rows, depth / quantized_block]
  const float* sums;          // [rows, groups]: the sum of each group's numbers
};

// An addend for scores, or a boolean mask; null for no mask.
struct Mask {
  const float* add = nullptr;
  const bool* keep = nullptr;
  std::int64_t query_step = 0, key_step = 0;  // 0 if shared
};

// A head's keys and values for attention, as packed by `pack_keys` and `pack_values`.
struct Head {
  std::int64_t keys, size, value_size;  // the number of keys, and the dimensions of keys and values
  const float *key_panels, *value_panels;
  float scale;
  Mask mask;
};

// A head whose queries and keys are bytes. The zero points are those of the keys and, minus 128, of the queries.
struct ByteHead : Head {
  const std::uint8_t* key_bytes;  // as packed by `pack_key_bytes`, with `key_sums`
  const std::int32_t* key_sums;
  std::int32_t query_zero, key_zero;
};

// Where attention writes its rows: floats, or bytes, which represent (byte - zero_point) * scale.
struct Result {
  float* floats = nullptr;
  std::uint8_t* bytes = nullptr;
  std::int64_t step;
  float scale = 1.0f;
  std::int32_t zero_point = 0;

  // The rows from `elements` on.
  Result from(std::int64_t elements) const {
    Result out = *this;
    if (out.floats != nullptr) out.floats += elements;
    if (out.bytes != nullptr) out.bytes += elements;
    return out;
  }
};

// The epilogue of a product: the bias of each column is added, unless null, followed by the function x * (1 + erf(x /
// sqrt(2))) / 2.
struct After {
  const float* bias = nullptr;
  bool gelu = false;
};

struct Kernels {
  const char* name;

  // Columns of a panel, the number of panels that `multiply` processes at once, and the bytes of scratch memory.
  std::int64_t panel_columns;
  std::int64_t most_panels;
  std::int64_t scratch_bytes;

  // Few rows, at most `few_rows(kind)`: `a` as arranged by `arrange`, [rows, arranged_depth(weights)]. Computes columns
  // [first, last) of `to`, whose rows are `width` apart. For transposed weights only.
  void (*arrange)(const Weights& weights, const float* a, float* to);
  void (*multiply_few)(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                       std::int64_t first, std::int64_t last);
  // Many rows: `a` is [rows, depth], rows `step` apart. At most most_panels * panel_columns columns.
  void (*multiply)(const Weights& weights, const float* a, std::int64_t step, std::int64_t rows, const After& after, float* to,
                   std::int64_t width, std::int64_t first, std::int64_t last, void* scratch);
  // The same with a matrix decoded beforehand: `keep` writes columns [first, last), aligned to panels, of kept_floats(...)
  // floats.
  void (*keep)(const Weights& weights, std::int64_t first, std::int64_t last, float* to, void* scratch);
  void (*multiply_kept)(const Weights& weights, const float* kept, const float* a, std::int64_t step, std::int64_t rows,
                        const After& after, float* to, std::int64_t width, std::int64_t first, std::int64_t last);
  // The epilogue, for functions that do not take it as an argument.
  void (*finish)(const After& after, float* to, std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t last);

  // 8-bit products, for transposed weights whose depth and groups are multiples of quantized_block. `quantize` handles one
  // row at a time; few rows are also rearranged.
  void (*quantize)(const float* a, std::int64_t depth, std::int64_t group, std::int8_t* values, float* scales, float* sums);
  void (*arrange_quantized)(const Weights& weights, std::int8_t* values);
  void (*multiply_few_quantized)(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                                 std::int64_t first, std::int64_t last);
  // At most panel_columns columns.
  void (*multiply_quantized)(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                             std::int64_t first, std::int64_t last, void* scratch);

  // Attention: the preferred number of queries at once, and the floats of panels and of scratch memory.
  std::int64_t query_rows;
  std::int64_t (*key_floats)(const Head& head);
  std::int64_t (*value_floats)(const Head& head);
  std::int64_t (*attention_floats)(const Head& head);
  void (*pack_keys)(const float* from, std::int64_t step, std::int64_t keys, std::int64_t size, float* to);
  void (*pack_values)(const float* from, std::int64_t step, std::int64_t keys, std::int64_t size, float* to);
  // Queries [first, first + rows) of the mask, `step` apart. The result without any key is NaN.
  void (*attend)(const Head& head, const float* query, std::int64_t step, std::int64_t first, std::int64_t rows,
                 const Result& to, void* scratch);
  // The same for bytes. `query_zero` is that of the queries minus 128.
  std::int64_t (*key_bytes)(const Head& head);
  void (*pack_key_bytes)(const std::uint8_t* from, std::int64_t step, std::int64_t keys, std::int64_t size,
                         std::int32_t query_zero, std::int32_t key_zero, std::uint8_t* to, std::int32_t* sums);
  void (*attend_bytes)(const ByteHead& head, const std::uint8_t* query, std::int64_t step, std::int64_t first,
                       std::int64_t rows, const Result& to, void* scratch);
};

// Each group of weights is padded to whole blocks. A block's elements are in decoding order: the lowest bits of all bytes
// first.
inline std::int64_t arranged_depth(const Weights& weights) {
  const std::int64_t block = block_elements(weights.kind);
  return weights.groups * ((weights.group + block - 1) / block) * block;
}

// The most rows that are multiplied without a copy of the weights in panels. Weights in float32 are not decoded, so further
// rows read them from the cache.
constexpr std::int64_t few_rows(Kind kind) { return kind == Kind::float32 ? 16 : 3; }

// The number of floats of a matrix in panels.
inline std::int64_t kept_floats(const Kernels& kernels, const Weights& weights) {
  return (weights.columns + kernels.panel_columns - 1) / kernels.panel_columns * kernels.panel_columns * weights.depth;
}

SPECOPS_KERNEL_SETS;

}  // namespace specops::compressed
