// SIMDe's emulation of AVX-512, for tests of the kernels on processors without it. CMake includes this file before each source
// (ONNX_SPECOPS_SIMDE).
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <cmath>
#include <cstdint>
#include <cstring>

#include "simde/x86/avx512.h"

namespace specops::emulated {

// Intrinsics that SIMDe lacks.

inline simde__m512i widened(simde__m256i x) {
  std::uint8_t from[32];
  std::uint16_t to[32];
  std::memcpy(from, &x, sizeof from);
  for (int i = 0; i < 32; ++i) to[i] = from[i];
  return simde_mm512_loadu_si512(to);
}

inline __m128i narrowed(simde__m512i x) {
  std::uint32_t from[16];
  std::uint8_t to[16];
  std::memcpy(from, &x, sizeof from);
  for (int i = 0; i < 16; ++i) to[i] = static_cast<std::uint8_t>(from[i] > 255 ? 255 : from[i]);
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(to));
}

inline simde__m512 less_product(simde__m512 a, simde__m512 b, simde__m512 c, simde__mmask16 mask) {
  float left[16], right[16], to[16];
  std::memcpy(left, &a, sizeof left);
  std::memcpy(right, &b, sizeof right);
  std::memcpy(to, &c, sizeof to);
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) to[i] = std::fma(-left[i], right[i], to[i]);
  }
  return simde_mm512_loadu_ps(to);
}

// SIMDe's masked stores write the other elements, too, which other threads may be writing.
template <class T, class Mask, class Vector>
inline void store_some(void* to, Mask mask, Vector x) {
  T from[sizeof x / sizeof(T)];
  std::memcpy(from, &x, sizeof from);
  for (std::size_t i = 0; i < sizeof x / sizeof(T); ++i) {
    if ((mask >> i & 1) != 0) std::memcpy(static_cast<char*>(to) + i * sizeof(T), from + i, sizeof(T));
  }
}

}  // namespace specops::emulated

#define _mm512_cvtepu8_epi16 specops::emulated::widened
#define _mm512_cvtusepi32_epi8 specops::emulated::narrowed
#define _mm512_mask3_fnmadd_ps specops::emulated::less_product
#undef _mm_mask_storeu_epi8
#define _mm_mask_storeu_epi8 specops::emulated::store_some<std::uint8_t>
#undef _mm256_mask_storeu_epi8
#define _mm256_mask_storeu_epi8 specops::emulated::store_some<std::uint8_t>
#undef _mm512_mask_storeu_epi8
#define _mm512_mask_storeu_epi8 specops::emulated::store_some<std::uint8_t>
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps specops::emulated::store_some<float>

// After SIMDe, which would use the instructions.
#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512CD__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
#if defined(SPECOPS_EMULATED_VNNI)
#define __AVX512VNNI__ 1
#endif
