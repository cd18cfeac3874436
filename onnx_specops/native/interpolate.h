// Resizing of rows of floats: the interface between interpolate.cc and the code for each instruction set.
//
// interpolate_kernels.cc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::resizing {

constexpr int most_lanes = 16;

// As many adjacent elements of the result as a vector has. Each is the sum of two weighted elements of the row.
struct Block {
  std::int64_t first, second;  // the vectors of the row that contain the elements
  std::int32_t first_lanes[most_lanes], second_lanes[most_lanes];
  float first_weights[most_lanes], second_weights[most_lanes];
};

struct Kernels {
  const char* name;
  std::int64_t lanes;
  // Computes `size` elements of `to` from the row `from`.
  void (*resize)(const Block* blocks, std::int64_t size, const float* from, float* to);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::resizing
