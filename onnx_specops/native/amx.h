// Tiles of AMX: registers of 16 rows of 64 bytes each. Inline assembly instead of intrinsics, because those of GCC 12 do not
// declare that they read and write memory.
#pragma once

#include <cstdint>

#include "compiler.h"

namespace specops::amx_tile {

constexpr std::int64_t rows = 16, row_bytes = 64, bytes = rows * row_bytes;

struct alignas(64) Configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The tiles of a thread, all of full size. They are released at the end: other libraries in the process configure their own,
// and a thread with tiles in use takes longer to switch.
class Tiles {
 public:
  Tiles() {
    static constexpr Configuration full;
    asm volatile("ldtilecfg %0" ::"m"(full));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// Row `i` is at `from + i * stride`.
template <int tile>
SPECOPS_INLINE void load(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
}

template <int tile>
SPECOPS_INLINE void store(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
}

// Adds to the 32-bit integer of row i and column j: unsigned bytes of row i of `left`, times signed bytes. Row k of `right` has
// the four bytes 4k to 4k + 3 of each column.
template <int sums, int left, int right>
SPECOPS_INLINE void add_products() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
}

}  // namespace specops::amx_tile
