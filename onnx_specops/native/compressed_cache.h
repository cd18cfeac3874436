// Attention with a compressed cache: the interface between group_query_attention_compressed.cc and the code for each
// instruction set.
//
// compressed_cache_kernels.cc is that code, compiled once for each set (CMakeLists.txt).
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::compressed_cache {

enum class Cache { float16, uint8 };

// The bytes after a uint8 row: its step and minimum, both float16.
constexpr std::int64_t row_tail = 4;

// One run of a node. Tokens are rows of [batch, sequence, heads * size], caches are [batch, groups, capacity, width].
struct Attention {
  Cache cache = Cache::float16;
  std::int64_t sequence = 0, heads = 0, groups = 0, size = 0;
  std::int64_t width = 0;  // bytes of a row of the caches
  std::int64_t past_room = 0, present_room = 0;
  float scale = 1, softcap = 0;
  std::int64_t window = 0;  // 0 for no window
  const float *query = nullptr, *key = nullptr, *value = nullptr;
  float* output = nullptr;
  const std::uint8_t *past_key = nullptr, *past_value = nullptr;
  std::uint8_t *present_key = nullptr, *present_value = nullptr;
  // [positions, pairs]; nothing is rotated if there are no pairs.
  const float *cosine = nullptr, *sine = nullptr;
  std::int64_t pairs = 0;
  bool interleaved = false;
  const float* sink = nullptr;  // [heads]
};

// A unit of work: tokens of a batch row, for all heads that share a key, and a range of slots of its cache.
struct Piece {
  std::int64_t row, group;
  std::int64_t begin;              // the slot of the row's first token
  std::int64_t length;             // the number of tokens of the row
  std::int64_t first, last;        // tokens of this run
  std::int64_t from_slot, to_slot;
  bool extends;                    // whether it writes the keys and values of its tokens into the cache
  // For a part of the slots: [rows][size + 2], undivided sums, their divisors, and the largest score.
  float* partial;
};

// The number of rows of a piece: the heads that share a key, for each token.
inline std::int64_t rows_of(const Attention& attention, const Piece& piece) {
  return (piece.last - piece.first) * (attention.heads / attention.groups);
}

struct Kernels {
  const char* name;
  // The number of floats of scratch memory that `attend` needs for the rows.
  std::int64_t (*scratch)(const Attention& attention, std::int64_t rows);
  void (*attend)(const Attention& attention, const Piece& piece, float* scratch);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::compressed_cache
