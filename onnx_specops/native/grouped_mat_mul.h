// Products of rows with rows: the interface between grouped_mat_mul.cc and the code for each instruction set.
//
// grouped_mat_mul_kernels.cc is that code, compiled once for each set (CMakeLists.txt).
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::grouped {

// The sums of a tile fill the registers of AVX2.
constexpr int tile_rows = 3, tile_columns = 4;

// to[i, j] (+)= sum(a[i, :] * b[j, :]) for `columns` pointers, at most tile_columns; rows of a are `step` apart, those of to
// `width`.
struct Product {
  const float* a;
  std::int64_t rows, step;
  const float* const* b;
  std::int64_t columns, depth;
  bool add;
  float* to;
  std::int64_t width;
};

struct Kernels {
  const char* name;
  void (*multiply)(const Product& product);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::grouped
