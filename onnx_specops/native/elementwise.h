// Programs of element-wise instructions: the interface between elementwise.cc and the code for each instruction set.
//
// elementwise_kernels.inc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

namespace specops::programs {

enum class Code { add, sub, mul, div, min, max, dequantize, relu, clip, prelu, sigmoid, hard_sigmoid, gelu, elu, mish };

// Numbers are computed in multiples of this: buffers must be as long.
constexpr std::int64_t step = 32;

// An instruction for a block of numbers. Unused arguments are null. `to` may be one of them.
struct Job {
  Code code;
  const float* arguments[3];
  float* to;
  std::int64_t count;  // a multiple of `step`
};

struct Kernels {
  const char* name;
  void (*compute)(const Job& job);
  // The nearest integers of numbers times `factor`, and the zero point. `count` is a multiple of `step`.
  void (*quantize)(const float* from, std::int64_t count, float factor, std::int32_t zero_point, std::uint8_t* to);
  void (*widen)(const std::uint8_t* from, std::int64_t count, float* to);
};

const Kernels& portable();
#if defined(SPECOPS_X86_KERNELS)
const Kernels& avx2();
const Kernels& avx512();
#endif

// The best kernels for this processor, or those named by ONNX_SPECOPS_SIMD.
const Kernels& kernels();

}  // namespace specops::programs
