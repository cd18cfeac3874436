// Programs of element-wise instructions: the interface between elementwise.cc and the code for each instruction set.
//
// elementwise_kernels.cc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::programs {

enum class Code { copy, add, sub, mul, div, min, max, relu, clip, prelu, sigmoid, hard_sigmoid, gelu, gelu_tanh, elu, mish };

// Elements are computed in multiples of this number, so buffers must be padded to a multiple.
constexpr std::int64_t step = 32;

// The maximum number of elements of a job.
constexpr std::int64_t most_numbers = 1024 + step;

// The elements of an argument; the results of the previous step if `data` is null.
struct Argument {
  const void* data = nullptr;  // float32, or uint8 if `bytes` is true
  bool bytes = false;  // only with a scale
  bool same = false;  // the first number, a float32, applies to all elements
  // If not null, the elements are `(data - zero) * scale`. `same_scale`: the first scale and zero point apply to all elements.
  const float *scale = nullptr, *zero = nullptr;
  bool same_scale = false;
};

// An instruction. Unused arguments are empty.
struct Step {
  Code code;
  Argument arguments[3];
};

// Instructions for a block of elements. Each may use the results of the previous one. `to` may be one of the arguments.
struct Job {
  const Step* steps;
  int step_count;
  std::int64_t count;  // a multiple of `step`, at most `most_numbers`
  void* to;            // float32, or uint8 if `quantized` is true
  bool quantized;      // results are multiplied by `factor`, rounded to integers, and added to the zero point
  float factor;
  std::int32_t zero_point;
};

struct Kernels {
  const char* name;
  void (*compute)(const Job& job);
  void (*widen)(const std::uint8_t* from, std::int64_t count, float* to);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::programs
