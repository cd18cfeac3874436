// Products with compressed weights: what mat_mul_compressed.cc asks of the code for each instruction set.
//
// compressed_kernels.inc is that code, compiled once for each set (CMakeLists.txt). It uses nothing of the standard library's
// that has code: the linker keeps one copy of an inline function, which must not be one for AVX-512 by chance.
#pragma once

#include <cstdint>
#include <limits>

namespace specops::compressed {

// What an element's bits mean.
enum class Kind {
  table2,      // an index into a table of 4 floats
  table4,      // into one of 16
  table8,      // into one of 256
  unsigned8,   // an integer
  signed8,     // an integer
  float8e4m3,  // ONNX's float8e4m3fn
  float8e5m2,
  float16,
  bfloat16,
};

constexpr int bits(Kind kind) {
  return kind == Kind::table2 ? 2 : kind == Kind::table4 ? 4 : kind == Kind::float16 || kind == Kind::bfloat16 ? 16 : 8;
}

// Elements that share a byte.
constexpr int phases(Kind kind) { return bits(kind) < 8 ? 8 / bits(kind) : 1; }

// Elements that are decoded together.
constexpr std::int64_t block_elements(Kind kind) { return 16 * phases(kind); }

enum class Number { none, float32, float16, bfloat16, uint8, int8 };

// A matrix of one number for each group of each column; steps of 0 where one serves several.
struct Matrix {
  const void* data = nullptr;
  Number type = Number::none;
  std::int64_t column_step = 0, group_step = 0;
};

// One matrix of weights.
struct Weights {
  Kind kind;
  const std::uint8_t* codes;
  bool transposed;  // [columns, depth], else [depth, columns]
  std::int64_t columns, depth;
  std::int64_t group, groups;  // elements along the depth that share a scale and a zero point; the last may have fewer
  const float* table;          // of table2 and table4 16 floats, repeated where there are fewer; of table8 256
  std::uint8_t padding;        // a byte of codes of a finite number
  Matrix scales, zero_points;  // where there are none: 1 and 0

  // For activations of 8 bits, of weights that are integers: what makes their codes unsigned, and what that adds to them.
  std::uint8_t flip;
  float flipped;
};

// Elements that share a scale when activations are quantised to 8 bits.
constexpr std::int64_t quantised_block = 32;

// Rows of activations in 8 bits.
struct Quantised {
  const std::int8_t* values;  // [rows, depth], rows `step` apart
  std::int64_t step;
  const float* scales;        // [rows, depth / quantised_block]
  const float* sums;          // [rows, groups]: the sums of a group's numbers
};

// What is added to scores, or which of them count; neither: all do as they are.
struct Mask {
  const float* add = nullptr;
  const bool* keep = nullptr;
  std::int64_t query_step = 0, key_step = 0;  // 0 where one serves all
};

// Attention: a head's keys and values, as `pack_keys` and `pack_values` leave them.
struct Head {
  std::int64_t keys, size, value_size;  // how many there are, and the numbers of each
  const float *key_panels, *value_panels;
  float scale;
  Mask mask;
};

// What becomes of a product: its columns' biases are added, unless they are null, and it goes through
// x * (1 + erf(x / sqrt(2))) / 2.
struct After {
  const float* bias = nullptr;
  bool gelu = false;
};

struct Kernels {
  const char* name;

  // Columns of a panel, how many panels `multiply` works on at once, and the bytes of scratch memory that it needs.
  std::int64_t panel_columns;
  std::int64_t most_panels;
  std::int64_t scratch_bytes;

  // Few rows: `a` as `arrange` leaves each, [rows, arranged_depth(weights)]; fills columns [first, last) of `to`, whose rows
  // are `width` apart. Of transposed weights only.
  void (*arrange)(const Weights& weights, const float* a, float* to);
  void (*multiply_few)(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                       std::int64_t first, std::int64_t last);
  // Many rows: `a` is [rows, depth], rows `step` apart. At most most_panels * panel_columns columns.
  void (*multiply)(const Weights& weights, const float* a, std::int64_t step, std::int64_t rows, const After& after, float* to,
                   std::int64_t width, std::int64_t first, std::int64_t last, void* scratch);
  // The same with the matrix decoded beforehand: `keep` writes columns [first, last), where panels begin, of kept_floats(...)
  // floats.
  void (*keep)(const Weights& weights, std::int64_t first, std::int64_t last, float* to, void* scratch);
  void (*multiply_kept)(const Weights& weights, const float* kept, const float* a, std::int64_t step, std::int64_t rows,
                        const After& after, float* to, std::int64_t width, std::int64_t first, std::int64_t last);
  // What comes after a product that the functions without that argument have made.
  void (*finish)(const After& after, float* to, std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t last);

  // In 8 bits: of transposed weights whose depth and groups are multiples of quantised_block. One row at a time; where there
  // are few, arranged as well.
  void (*quantise)(const float* a, std::int64_t depth, std::int64_t group, std::int8_t* values, float* scales, float* sums);
  void (*arrange_quantised)(const Weights& weights, std::int8_t* values);
  void (*multiply_few_quantised)(const Weights& weights, const Quantised& a, std::int64_t rows, float* to, std::int64_t width,
                                 std::int64_t first, std::int64_t last);
  // At most panel_columns columns.
  void (*multiply_quantised)(const Weights& weights, const Quantised& a, std::int64_t rows, float* to, std::int64_t width,
                             std::int64_t first, std::int64_t last, void* scratch);

  // Attention: queries that are best worked on at once, and the floats of panels and of scratch memory.
  std::int64_t query_rows;
  std::int64_t (*key_floats)(const Head& head);
  std::int64_t (*value_floats)(const Head& head);
  std::int64_t (*attention_floats)(const Head& head);
  void (*pack_keys)(const float* from, std::int64_t step, std::int64_t keys, std::int64_t size, float* to);
  void (*pack_values)(const float* from, std::int64_t step, std::int64_t keys, std::int64_t size, float* to);
  // Queries [first, first + rows) of the mask's, `step` apart. Of no key at all NaN.
  void (*attend)(const Head& head, const float* query, std::int64_t step, std::int64_t first, std::int64_t rows, float* to,
                 std::int64_t to_step, void* scratch);
};

// Each group of weights is padded to whole blocks, whose elements stand in the order in which they are decoded: first those
// that lie lowest in their bytes.
inline std::int64_t arranged_depth(const Weights& weights) {
  const std::int64_t block = block_elements(weights.kind);
  return weights.groups * ((weights.group + block - 1) / block) * block;
}

// The floats of a matrix in panels.
inline std::int64_t kept_floats(const Kernels& kernels, const Weights& weights) {
  return (weights.columns + kernels.panel_columns - 1) / kernels.panel_columns * kernels.panel_columns * weights.depth;
}

const Kernels& portable();
#if defined(SPECOPS_X86_KERNELS)
const Kernels& avx2();
const Kernels& avx512();
const Kernels& avx512_vnni();
#endif

// The best that this processor runs; ONNX_SPECOPS_SIMD names another (portable, avx2, avx512, avx512_vnni).
const Kernels& kernels();

}  // namespace specops::compressed
