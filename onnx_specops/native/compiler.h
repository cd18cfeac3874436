// What compilers can be told beyond the standard; macros only, so that code of any instruction set may include it.
#pragma once

// GNU's attributes, builtins and vectors. (Clang as MSVC's stand-in is no __GNUC__, and has all of it.)
#if defined(__GNUC__) || defined(__clang__)
#define SPECOPS_GNU
#endif

#if defined(SPECOPS_GNU)
#define SPECOPS_PRAGMA(text) _Pragma(#text)
#define SPECOPS_INLINE inline __attribute__((always_inline))
#define SPECOPS_PREFETCH(address) __builtin_prefetch(address)
// Into the second cache: more can be under way than on the way to the first.
#define SPECOPS_PREFETCH_FAR(address) __builtin_prefetch(address, 0, 2)
#define SPECOPS_UNROLL(count) SPECOPS_PRAGMA(GCC unroll count)
#else
#define SPECOPS_INLINE inline
#define SPECOPS_PREFETCH(address) ((void)(address))
#define SPECOPS_PREFETCH_FAR(address) ((void)(address))
#define SPECOPS_UNROLL(count)
#endif
