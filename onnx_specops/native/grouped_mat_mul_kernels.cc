// The implementation of grouped_mat_mul.h. CMake defines SPECOPS_SET, the function that returns it.

#include <cstdint>

#include "grouped_mat_mul.h"
#include "vectors.inc"

namespace specops::grouped {
namespace {

constexpr std::int64_t lanes = Floats::size;

// A tile of products from a row and a column on.
template <int rows, int columns>
ALWAYS void multiply_tile(const Product& of, std::int64_t row, std::int64_t column) {
  const float* const a = of.a + row * of.step;
  const float* const* const b = of.b + column;
  Floats sums[rows][columns];
  UNROLL(4)
  for (int i = 0; i < rows; ++i) {
    UNROLL(4)
    for (int j = 0; j < columns; ++j) sums[i][j] = Floats::zero();
  }
  std::int64_t k = 0;
  for (; k + lanes <= of.depth; k += lanes) {
    Floats left[rows];
    UNROLL(4)
    for (int i = 0; i < rows; ++i) left[i] = Floats::load(a + i * of.step + k);
    UNROLL(4)
    for (int j = 0; j < columns; ++j) {
      const Floats right = Floats::load(b[j] + k);
      UNROLL(4)
      for (int i = 0; i < rows; ++i) sums[i][j] = multiply_add(left[i], right, sums[i][j]);
    }
  }
  UNROLL(4)
  for (int i = 0; i < rows; ++i) {
    UNROLL(4)
    for (int j = 0; j < columns; ++j) {
      float* const to = of.to + (row + i) * of.width + column + j;
      float sum = sums[i][j].sum();
      for (std::int64_t rest = k; rest < of.depth; ++rest) sum += a[i * of.step + rest] * b[j][rest];
      *to = of.add ? *to + sum : sum;
    }
  }
}

template <int columns>
void multiply_rows(const Product& of, std::int64_t column) {
  std::int64_t row = 0;
  for (; row + tile_rows <= of.rows; row += tile_rows) multiply_tile<tile_rows, columns>(of, row, column);
  for (; row < of.rows; ++row) multiply_tile<1, columns>(of, row, column);
}

void multiply(const Product& of) {
  if (of.columns == tile_columns) return multiply_rows<tile_columns>(of, 0);
  for (std::int64_t column = 0; column < of.columns; ++column) multiply_rows<1>(of, column);
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels all = {SPECOPS_NAME, multiply};
  return all;
}

}  // namespace specops::grouped
