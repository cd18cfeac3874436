// The x86 instruction sets that the processor supports and whose registers the system saves.
#pragma once

#include <cpuid.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "requested_set.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace specops {

struct Processor {
  bool avx2 = false;    // all of the level x86-64-v3
  bool avx2_vnni = false;
  bool avx512 = false;  // all of x86-64-v4
  bool avx512_vnni = false;
  bool amx = false;  // tiles of 8-bit integers; `request_tiles` is needed before they are used
};

// Uses the instructions directly: the compilers' builtins need a runtime library, which Windows programs are not linked
// with, and do not check all instructions of a level.
inline Processor ask_processor() {
  const auto has = [](unsigned word, std::initializer_list<int> bits) {
    for (const int bit : bits) {
      if ((word >> bit & 1) == 0) return false;
    }
    return true;
  };
  Processor found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return found;
  constexpr int fma = 12, movbe = 22, osxsave = 27, avx = 28, f16c = 29;
  if (!has(c, {fma, movbe, osxsave, avx, f16c})) return found;
  std::uint32_t saved = 0, upper = 0;
  __asm__ volatile("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
  if (!has(saved, {1, 2})) return found;  // XMM and YMM
  constexpr int lzcnt = 5;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has(c, {lzcnt})) return found;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const unsigned most_parts = a;
  constexpr int bmi1 = 3, avx2 = 5, bmi2 = 8, f = 16, dq = 17, cd = 28, bw = 30, vl = 31, vnni = 11, tile = 24, tile_int8 = 25;
  constexpr int avx_vnni = 4;  // of the second part
  found.avx2 = has(b, {bmi1, avx2, bmi2});
  found.avx512 = found.avx2 && has(b, {f, dq, cd, bw, vl}) && has(saved, {5, 6, 7});  // masks and ZMM
  found.avx512_vnni = found.avx512 && has(c, {vnni});
#if defined(SPECOPS_EMULATED_AVX512)
  found.avx512 = found.avx512_vnni = found.avx2;
#endif
  found.amx = found.avx512_vnni && has(d, {tile, tile_int8}) && has(saved, {17, 18});  // tiles and their configuration
#if defined(SPECOPS_EVEX)
  found.avx2_vnni = found.avx512_vnni;
#else
  found.avx2_vnni = found.avx2 && most_parts >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, {avx_vnni});
#endif
  return found;
}

// Asks the system to save the tiles of this process's threads. Linux needs that before their first use; elsewhere they are not
// used.
inline bool request_tiles() {
#if defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

// Kernels that are compiled for instruction sets: functions that return them, or null where a set has none of its own.
template <typename Kernels>
struct KernelSets {
  const Kernels& (*portable)();
  const Kernels& (*avx2)();
  const Kernels& (*avx2_vnni)();
  const Kernels& (*avx512)();
  const Kernels& (*avx512_vnni)();
  const Kernels& (*amx)();
};

// The best supported kernels, up to those that ONNX_SPECOPS_SIMD names (portable, avx2, avx2_vnni, avx512, avx512_vnni, amx).
template <typename Kernels>
const Kernels& best_kernels(const KernelSets<Kernels>& sets) {
  const char* const names[] = {"portable", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "amx"};
  const char* const wanted = requested_set();
  int most = wanted == nullptr ? 5 : 0;
  for (int i = 0; i <= 5 && wanted != nullptr; ++i) {
    if (std::strcmp(wanted, names[i]) == 0) most = i;
  }
  const Processor processor = ask_processor();
  if (most >= 5 && sets.amx != nullptr && processor.amx && request_tiles()) return sets.amx();
  if (most >= 4 && sets.avx512_vnni != nullptr && processor.avx512_vnni) return sets.avx512_vnni();
  if (most >= 3 && sets.avx512 != nullptr && processor.avx512) return sets.avx512();
  if (most >= 2 && sets.avx2_vnni != nullptr && processor.avx2_vnni) return sets.avx2_vnni();
  if (most >= 1 && sets.avx2 != nullptr && processor.avx2) return sets.avx2();
  return sets.portable();
}

}  // namespace specops
