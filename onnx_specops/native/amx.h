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

// The tiles of a thread: those of sums (0 to 3) and of the left (4, 5) and right (6, 7) factors, which have `depth` bytes in a
// row and in a column. They are released at the end: other libraries in the process configure their own, and a thread with
// tiles in use takes longer to switch.
class Tiles {
 public:
  explicit Tiles(std::int64_t depth) {
    Configuration configuration;
    for (int left = 4; left < 6; ++left) configuration.bytes[left] = static_cast<std::uint16_t>(depth);
    for (int right = 6; right < 8; ++right) configuration.rows[right] = static_cast<std::uint8_t>(depth / 4);
    asm volatile("ldtilecfg %0" ::"m"(configuration));
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
