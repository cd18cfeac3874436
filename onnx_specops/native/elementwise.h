// Programs of element-wise instructions: the interface between elementwise.cc and the code for each instruction set.
//
// elementwise_kernels.cc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::programs {

enum class Code { copy, add, sub, mul, div, min, max, relu, clip, prelu, sigmoid, hard_sigmoid, gelu, gelu_tanh, elu, mish };

// Numbers are computed in multiples of this: buffers must be as long.
constexpr std::int64_t step = 32;

// The numbers of a job, at most.
constexpr std::int64_t most_numbers = 1024 + step;

// The numbers of an argument: the results of the previous step if `data` is null.
struct Argument {
  const void* data = nullptr;  // float32, or uint8 if they are `bytes`
  bool bytes = false;  // only with a scale
  bool same = false;  // the first number, of float32, is that of all elements
  // If not null, numbers are `(data - zero) * scale`. `same_scale`: the first scale and zero point are those of all elements.
  const float *scale = nullptr, *zero = nullptr;
  bool same_scale = false;
};

// An instruction. Unused arguments are empty.
struct Step {
  Code code;
  Argument arguments[3];
};

// Instructions for a block of numbers, each of which uses the results of the one before. `to` may be one of the arguments.
struct Job {
  const Step* steps;
  int step_count;
  std::int64_t count;  // a multiple of `step`, at most `most_numbers`
  void* to;            // float32, or uint8 if results are `quantized`
  bool quantized;      // results are the nearest integers of numbers times `factor`, and the zero point
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
