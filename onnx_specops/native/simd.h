// Vector code without intrinsics: the compiler's vector extension, and functions compiled for several instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "compiler.h"

// Before a function: compile it for AVX-512 and AVX2 besides the baseline, selected by the loader (CMakeLists.txt checks
// whether compiler and C library support this). Called functions are only included if inlined.
#if defined(SPECOPS_HAVE_TARGET_CLONES)
#define SPECOPS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SPECOPS_CLONES
#endif

namespace specops {

// The position of the lowest set bit; `bits` is not 0.
SPECOPS_INLINE int lowest_bit(std::uint32_t bits) {
#if defined(SPECOPS_GNU)
  return __builtin_ctz(bits);
#else
  int position = 0;
  for (; (bits & 1) == 0; bits >>= 1) ++position;
  return position;
#endif
}

// 32 bytes (or another size) of T, a float or an unsigned integer, with element-wise +, * and maximum: one AVX2 register, two
// of NEON. SPECOPS_PORTABLE disables the compiler's vectors, for tests of the other form.
#if defined(SPECOPS_GNU) && !defined(SPECOPS_PORTABLE)
#define SPECOPS_VECTORS
#endif
#if defined(SPECOPS_VECTORS)
template <class T, std::size_t bytes = 32>
struct Pack {
  static constexpr std::size_t size = bytes / sizeof(T);
#if defined(__x86_64__) || defined(__i386__)
  static constexpr std::size_t slice = bytes;
#else
  static constexpr std::size_t slice = 16;  // GCC does not keep vectors in registers that are larger than one
#endif
  static constexpr std::size_t slices = bytes / slice, slice_size = slice / sizeof(T);
  typedef T Vector __attribute__((vector_size(slice)));
  Vector lanes[slices] = {};

  SPECOPS_INLINE void load(const T* from) {
    for (std::size_t i = 0; i < slices; ++i) std::memcpy(&lanes[i], from + i * slice_size, slice);
  }
  SPECOPS_INLINE void store(T* to) const {
    for (std::size_t i = 0; i < slices; ++i) std::memcpy(to + i * slice_size, &lanes[i], slice);
  }
  SPECOPS_INLINE void add(const Pack& other) {
    for (std::size_t i = 0; i < slices; ++i) lanes[i] += other.lanes[i];
  }
  SPECOPS_INLINE void add_product(const Pack& one, const Pack& other) {
    for (std::size_t i = 0; i < slices; ++i) lanes[i] += one.lanes[i] * other.lanes[i];
  }
  SPECOPS_INLINE void add_product(const Pack& one, T factor) {
    for (std::size_t i = 0; i < slices; ++i) lanes[i] += one.lanes[i] * factor;
  }
  SPECOPS_INLINE void multiply(T factor) {
    for (std::size_t i = 0; i < slices; ++i) lanes[i] *= factor;
  }
  // The element-wise maximum; NaN if either is NaN.
  SPECOPS_INLINE void raise(const Pack& other) {
    for (std::size_t i = 0; i < slices; ++i) {
      const Vector one = other.lanes[i];
      lanes[i] = ((one > lanes[i]) | (one != one)) ? one : lanes[i];
    }
  }
};
#else
template <class T, std::size_t bytes = 32>
struct Pack {
  static constexpr std::size_t size = bytes / sizeof(T);
  T lanes[size] = {};

  void load(const T* from) { std::memcpy(lanes, from, sizeof lanes); }
  void store(T* to) const { std::memcpy(to, lanes, sizeof lanes); }
  void add(const Pack& other) {
    for (std::size_t i = 0; i < size; ++i) lanes[i] = static_cast<T>(lanes[i] + other.lanes[i]);
  }
  void add_product(const Pack& one, const Pack& other) {
    for (std::size_t i = 0; i < size; ++i) lanes[i] = static_cast<T>(lanes[i] + product(one.lanes[i], other.lanes[i]));
  }
  void add_product(const Pack& one, T factor) {
    for (std::size_t i = 0; i < size; ++i) lanes[i] = static_cast<T>(lanes[i] + product(one.lanes[i], factor));
  }
  void multiply(T factor) {
    for (T& lane : lanes) lane = product(lane, factor);
  }
  void raise(const Pack& other) {
    for (std::size_t i = 0; i < size; ++i) {
      if (other.lanes[i] > lanes[i] || other.lanes[i] != other.lanes[i]) lanes[i] = other.lanes[i];
    }
  }

 private:
  // C++ would multiply uint16 as int, which may overflow.
  static T product(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::uint64_t{a} * b);
    } else {
      return a * b;
    }
  }
};
#endif

// Eight 64-bit integers with element-wise operators.
#if defined(SPECOPS_VECTORS)
typedef std::uint64_t Words __attribute__((vector_size(64)));
#else
struct Words {
  std::uint64_t lanes[8];
  std::uint64_t operator[](int i) const { return lanes[i]; }
};
#define SPECOPS_WORDS_OPERATOR(op)                                                 \
  inline Words operator op(Words x, const Words& y) {                              \
    for (int i = 0; i < 8; ++i) x.lanes[i] = x.lanes[i] op y.lanes[i];             \
    return x;                                                                      \
  }                                                                                \
  inline Words operator op(Words x, std::uint64_t y) {                             \
    for (std::uint64_t& lane : x.lanes) lane = lane op y;                          \
    return x;                                                                      \
  }
SPECOPS_WORDS_OPERATOR(+)
SPECOPS_WORDS_OPERATOR(*)
SPECOPS_WORDS_OPERATOR(&)
SPECOPS_WORDS_OPERATOR(|)
SPECOPS_WORDS_OPERATOR(^)
SPECOPS_WORDS_OPERATOR(<<)
SPECOPS_WORDS_OPERATOR(>>)
#undef SPECOPS_WORDS_OPERATOR
#endif

}  // namespace specops
