// Softmax(queries @ keys) @ values, one block of keys at a time, so that the scores of all keys are never stored.
//
// masked_attention_kernels.cc is the code, compiled once for each instruction set (CMakeLists.txt).
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::masked_attention {

// Keys and values shared by several queries.
struct Tokens {
  const float* keys;    // [count, size]
  const float* values;  // [count, value_size]
  std::int64_t count, size, value_size;
};

// A query: its data, the addend for its scores (per token, may be null), an additional score without a value (may be null),
// and its output.
struct Query {
  const float* numbers;
  const float* mask;
  const float* sink;
  float* to;
};

// The transformation of scores before the mask is added: times `scale`, then limited by `softcap` unless that is 0. With
// `replaces`, mask values of `hidden` or less replace the score, which may be infinite or NaN, instead of being added.
struct Scaling {
  float scale, softcap;
  bool replaces = false;
};

// The maximum number of queries that `attend` accepts, and the number that it processes side by side.
constexpr std::int64_t most_queries = 96, tile_queries = 6;
// The keys of a block. With their values they fit the first-level cache.
constexpr std::int64_t block = 64;

// Mask values: scores with them do not contribute if there are others.
constexpr float hidden = -1e30f;

struct Kernels {
  const char* name;
  // `scratch` is memory for block * (tile_queries + tokens.size) floats.
  void (*attend)(const Tokens& tokens, const Scaling& scaling, const Query* queries, std::int64_t count, float* scratch);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::masked_attention
