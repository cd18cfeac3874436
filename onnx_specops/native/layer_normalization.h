// Normalization of rows: the interface between quantized_layer_normalization.cc and the code for each instruction set.
//
// layer_normalization_kernels.cc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::normalization {

// Elements are processed in multiples of this number, so buffers must be padded to a multiple.
constexpr std::int64_t step = 32;

struct Job {
  const float* floats;        // the rows, or null
  const std::uint8_t* bytes;  // the rows as integers, or null
  std::int64_t size;          // the size of a row
  float epsilon;              // relative to the rows: divided by the square of the scale of integers
  const float *scale, *bias;  // for each element, padded to a multiple of `step`

  // The result: floats, or the elements times `factor`, rounded to integers and added to a zero point.
  float* to_floats;
  std::uint8_t* to_bytes;
  float factor;
  std::int32_t zero_point;
};

struct Kernels {
  const char* name;
  // Normalizes rows [begin, end). `scratch` has space for one row, padded to a multiple of `step`.
  void (*normalize)(const Job& job, std::int64_t begin, std::int64_t end, float* scratch);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::normalization
