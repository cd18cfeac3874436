// Depthwise convolutions with channels last: the interface between depthwise_conv.cc and the code for each instruction set.
//
// depthwise_conv_kernels.cc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::depthwise {

// A line of the kernel inside the image: the input of the first window at the line's first position, and the weights.
struct Row {
  const float *x, *weight;
};

// Adjacent windows with the same positions inside the image.
struct Run {
  const Row* rows;
  std::int64_t row_count, width;  // each row has `width` positions
  std::int64_t windows, channels;
  std::int64_t step;      // floats between the inputs of neighboring windows
  std::int64_t dilation;  // floats between the inputs of adjacent positions
  const float* bias;      // may be null
  float* to;
};

struct Kernels {
  const char* name;
  void (*convolve)(const Run& run);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::depthwise
