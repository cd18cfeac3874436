// Softmax(queries @ keys) @ values, a block of keys at a time: the products of all keys are never there at once.
#pragma once

#include <cstdint>
#include <vector>

namespace specops::masked_attention {

// Keys and values that some queries share.
struct Tokens {
  const float* keys;    // [count, size]
  const float* values;  // [count, value_size]
  std::int64_t count, size, value_size;
};

// One query: where it is, what is added to its products (of each token; may be null), one more product, which leads to no
// value (may be null), and where its mixture of values goes.
struct Query {
  const float* numbers;
  const float* mask;
  const float* sink;
  float* to;
};

// What becomes of a product before the mask is added: times `scale`, then, unless `softcap` is 0, kept within it.
struct Scaling {
  float scale, softcap;
};

// The most queries that `attend` takes at once, and those it works on side by side.
constexpr std::int64_t most_queries = 96, tile_queries = 6;

// Numbers that mask: products with them lead to nothing beside such without.
constexpr float hidden = -1e30f;

// `scratch` is kept from call to call for its memory.
void attend(const Tokens& tokens, const Scaling& scaling, const Query* queries, std::int64_t count,
            std::vector<float>& scratch);

}  // namespace specops::masked_attention
