// The choice of kernels of floats, which are compiled for AVX2 and AVX-512.
#pragma once

// The best kernels for this processor, or those named by ONNX_SPECOPS_SIMD, in the namespace that declares `Kernels` and the
// functions that return them.
#if defined(SPECOPS_X86_KERNELS)
#include "processor.h"
#define SPECOPS_FLOAT_KERNELS best_kernels<Kernels>({portable, avx2, nullptr, avx512, nullptr, nullptr})
#else
#define SPECOPS_FLOAT_KERNELS portable()
#endif
