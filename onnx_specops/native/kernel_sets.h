// The functions that return the `Kernels` of the namespace in which this macro is used.
//
// Each returns those of one instruction set, which is compiled for some processors and kernels only. `kernels` returns the
// best ones for this processor, or those named by ONNX_SPECOPS_SIMD.
#pragma once

#define SPECOPS_KERNEL_SETS         \
  const Kernels& portable();        \
  const Kernels& avx2();            \
  const Kernels& avx2_vnni();       \
  const Kernels& avx512();          \
  const Kernels& avx512_vnni();     \
  const Kernels& amx();             \
  const Kernels& kernels()
