// Attention over a compressed cache: what group_query_attention_compressed.cc asks of the code for each instruction set.
//
// compressed_cache_kernels.inc is that code, compiled once for each set (CMakeLists.txt).
#pragma once

#include <cstdint>

namespace specops::compressed_cache {

enum class Cache { float16, uint8 };

// Bytes behind a row of uint8: its step and its least value, float16 both.
constexpr std::int64_t row_tail = 4;

// One run of a node. Tokens are rows of [batch, sequence, heads * size], caches [batch, groups, room, width].
struct Attention {
  Cache cache = Cache::float16;
  std::int64_t sequence = 0, heads = 0, groups = 0, size = 0;
  std::int64_t width = 0;  // bytes of a row of the caches
  std::int64_t past_room = 0, present_room = 0;
  float scale = 1, softcap = 0;
  std::int64_t window = 0;  // 0 for none
  const float *query = nullptr, *key = nullptr, *value = nullptr;
  float* output = nullptr;
  const std::uint8_t *past_key = nullptr, *past_value = nullptr;
  std::uint8_t *present_key = nullptr, *present_value = nullptr;
  // [positions, pairs]; no pairs: nothing is turned.
  const float *cosine = nullptr, *sine = nullptr;
  std::int64_t pairs = 0;
  bool interleaved = false;
  const float* sink = nullptr;  // [heads]
};

// What is computed at once: some tokens of a row of the batch, by all heads that share a key, over some slots of its cache.
struct Piece {
  std::int64_t row, group;
  std::int64_t begin;              // the slot of the row's first token
  std::int64_t length;             // the row's tokens
  std::int64_t first, last;        // tokens of this run
  std::int64_t from_slot, to_slot;
  bool extends;                    // whether it writes its tokens' keys and values into the cache
  // Where it has not all slots: [rows][size + 2], sums that are not divided, their divisors, and the largest product.
  float* partial;
};

// Rows of a piece: token by token, each with the heads that share a key.
inline std::int64_t rows_of(const Attention& attention, const Piece& piece) {
  return (piece.last - piece.first) * (attention.heads / attention.groups);
}

struct Kernels {
  const char* name;
  // How many floats `attend` needs as scratch memory for so many rows.
  std::int64_t (*scratch)(const Attention& attention, std::int64_t rows);
  void (*attend)(const Attention& attention, const Piece& piece, float* scratch);
};

const Kernels& portable();
#if defined(SPECOPS_X86_KERNELS)
const Kernels& avx2();
const Kernels& avx512();
const Kernels& avx512_vnni();
#endif

// The best that this processor runs; ONNX_SPECOPS_SIMD names another (portable, avx2, avx512, avx512_vnni).
const Kernels& kernels();

}  // namespace specops::compressed_cache
