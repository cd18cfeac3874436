// Compiler extensions. Macros only, so that code for any instruction set may include this file.
#pragma once

// GNU's attributes, builtins and vectors. (clang-cl does not define __GNUC__, but has all of them.)
#if defined(__GNUC__) || defined(__clang__)
#define SPECOPS_GNU
#endif

#if defined(SPECOPS_GNU)
#define SPECOPS_PRAGMA(text) _Pragma(#text)
#if defined(__SANITIZE_ADDRESS__)
#define SPECOPS_INLINE inline  // without optimization, the compiler would need minutes more
#else
#define SPECOPS_INLINE inline __attribute__((always_inline))
#endif
#define SPECOPS_PREFETCH(address) __builtin_prefetch(address)
// Prefetch into the second-level cache, which has more outstanding requests than the first.
#define SPECOPS_PREFETCH_FAR(address) __builtin_prefetch(address, 0, 2)
#define SPECOPS_UNROLL(count) SPECOPS_PRAGMA(GCC unroll count)
#else
#define SPECOPS_INLINE inline
#define SPECOPS_PREFETCH(address) ((void)(address))
#define SPECOPS_PREFETCH_FAR(address) ((void)(address))
#define SPECOPS_UNROLL(count)
#endif
