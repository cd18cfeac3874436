// Products of bytes and of 16-bit integers with VNNI, in 128 and 256 bits, for AVX-512 and for AVX-VNNI.
#pragma once

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include <immintrin.h>

#include "compiler.h"

namespace specops {
namespace {  // each instruction set has its own

// Adds the products of four unsigned bytes of `a` and four signed ones of `b` to each 32-bit sum.
#if defined(SPECOPS_EVEX)
SPECOPS_INLINE __m256i add_byte_products(__m256i sums, __m256i a, __m256i b) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "vm"(b));  // encoded for AVX-512, unless prefixed with {vex}
  return sums;
}
SPECOPS_INLINE __m128i add_byte_products(__m128i sums, __m128i a, __m128i b) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "vm"(b));
  return sums;
}
// Adds the products of two signed 16-bit integers of `a` and `b` to each 32-bit sum.
SPECOPS_INLINE __m256i add_word_products(__m256i sums, __m256i a, __m256i b) {
  __asm__("vpdpwssd %2, %1, %0" : "+v"(sums) : "v"(a), "vm"(b));
  return sums;
}
#elif defined(__AVX512VNNI__)
SPECOPS_INLINE __m256i add_byte_products(__m256i sums, __m256i a, __m256i b) { return _mm256_dpbusd_epi32(sums, a, b); }
SPECOPS_INLINE __m128i add_byte_products(__m128i sums, __m128i a, __m128i b) { return _mm_dpbusd_epi32(sums, a, b); }
#else
SPECOPS_INLINE __m256i add_word_products(__m256i sums, __m256i a, __m256i b) { return _mm256_dpwssd_avx_epi32(sums, a, b); }
SPECOPS_INLINE __m256i add_byte_products(__m256i sums, __m256i a, __m256i b) { return _mm256_dpbusd_avx_epi32(sums, a, b); }
SPECOPS_INLINE __m128i add_byte_products(__m128i sums, __m128i a, __m128i b) { return _mm_dpbusd_avx_epi32(sums, a, b); }
#endif

}  // namespace
}  // namespace specops
#endif
