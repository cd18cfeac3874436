#include "masked_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "simd.h"

namespace specops::masked_attention {
namespace {

using Wide = Pack<float, 64>;
// For comparisons: in functions compiled for several sets, GCC splits those of 64-byte vectors into elements.
using Narrow = Pack<float>;

constexpr std::int64_t lanes = Wide::size, narrow_lanes = Narrow::size;
// The keys of a block. With their values they fit the first-level cache.
constexpr std::int64_t block = 64;
// The most queries for which keys are not transposed. Transposing pays off for more.
constexpr std::int64_t few = 3;
constexpr float infinity = std::numeric_limits<float>::infinity();

#if defined(SPECOPS_VECTORS)
typedef std::int32_t Integers __attribute__((vector_size(32)));
SPECOPS_INLINE Integers truncated(const Narrow::Vector& x) { return __builtin_convertvector(x, Integers); }
SPECOPS_INLINE Narrow::Vector real(const Integers& x) { return __builtin_convertvector(x, Narrow::Vector); }
#endif
SPECOPS_INLINE std::int32_t truncated(float x) { return static_cast<std::int32_t>(x); }
SPECOPS_INLINE float real(std::int32_t x) { return static_cast<float>(x); }

// exp(x) for a float or a vector, where x is at most 0 or NaN; 0 below the smallest normal number.
template <class Real>
SPECOPS_INLINE Real exponential(const Real& x) {
  const Real bounded = x > -88.0f ? x : Real{} - 88.0f;
  const auto power = truncated(bounded * 1.44269504f - 0.5f);
  const Real whole = real(power);
  // ln(2) in two parts. The first has so few bits that the product is exact.
  Real rest = bounded - whole * 0.693359375f;
  rest -= whole * -2.12194440e-4f;
  Real sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * rest * rest + rest + 1.0f;
  const auto bits = (power + 127) * (1 << 23);
  Real factor;
  std::memcpy(&factor, &bits, sizeof factor);
  return x < -87.3f ? Real{} : sum * factor + (x - x);
}

template <std::size_t bytes>
SPECOPS_INLINE float sum_of(const Pack<float, bytes>& pack) {
  constexpr std::int64_t count = Pack<float, bytes>::size;
  float parts[count];
  pack.store(parts);
  for (std::int64_t half = count / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

// The scores of a few queries and the block's keys in their original layout.
template <int rows>
SPECOPS_INLINE void multiply_few(const float* const* queries, const float* keys, std::int64_t count, std::int64_t size,
                                 float* to) {
  for (std::int64_t t = 0; t < count; ++t, keys += size) {
    Wide sums[rows];
    std::int64_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      Wide key;
      key.load(keys + i);
      for (int r = 0; r < rows; ++r) {
        Wide query;
        query.load(queries[r] + i);
        sums[r].add_product(query, key);
      }
    }
    for (int r = 0; r < rows; ++r) {
      float sum = sum_of(sums[r]);
      for (std::int64_t rest = i; rest < size; ++rest) sum += queries[r][rest] * keys[rest];
      to[r * block + t] = sum;
    }
  }
}

// Transposes the block's keys to [size, block], padded with zeros.
SPECOPS_INLINE void turn(const float* keys, std::int64_t count, std::int64_t size, float* to) {
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t i = 0; i < size; ++i) to[i * block + t] = keys[t * size + i];
  }
  for (std::int64_t i = 0; count < block && i < size; ++i) std::fill(to + i * block + count, to + (i + 1) * block, 0.0f);
}

// The scores of queries and the block's transposed keys.
template <int rows>
SPECOPS_INLINE void multiply(const float* const* queries, const float* turned, std::int64_t count, std::int64_t size,
                             float* to) {
  for (std::int64_t t = 0; t < count; t += lanes) {
    Wide sums[rows];
    for (std::int64_t i = 0; i < size; ++i) {
      Wide keys;
      keys.load(turned + i * block + t);
      for (int r = 0; r < rows; ++r) sums[r].add_product(keys, queries[r][i]);
    }
    for (int r = 0; r < rows; ++r) sums[r].store(to + r * block + t);
  }
}

// Adds the block's values times each query's attention weights, `width` * lanes elements at a time.
template <int rows, int width>
SPECOPS_INLINE std::int64_t mix_columns(const float* shares, const float* values, std::int64_t count, std::int64_t size,
                                        std::int64_t begin, float* const* to) {
  constexpr std::int64_t step = width * lanes;
  std::int64_t i = begin;
  for (; i + step <= size; i += step) {
    Wide sums[rows][width];
    for (int r = 0; r < rows; ++r) {
      for (int w = 0; w < width; ++w) sums[r][w].load(to[r] + i + w * lanes);
    }
    for (std::int64_t t = 0; t < count; ++t) {
      for (int w = 0; w < width; ++w) {
        Wide value;
        value.load(values + t * size + i + w * lanes);
        for (int r = 0; r < rows; ++r) sums[r][w].add_product(value, shares[r * block + t]);
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int w = 0; w < width; ++w) sums[r][w].store(to[r] + i + w * lanes);
    }
  }
  return i;
}

template <int rows>
SPECOPS_INLINE void mix(const float* shares, const float* values, std::int64_t count, std::int64_t size, float* const* to) {
  std::int64_t i = 0;
  if constexpr (rows <= few) i = mix_columns<rows, 4>(shares, values, count, size, i, to);
  i = mix_columns<rows, 1>(shares, values, count, size, i, to);
  if (i == size) return;
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t rest = i; rest < size; ++rest) to[r][rest] += shares[r * block + t] * values[t * size + rest];
    }
  }
}

SPECOPS_INLINE float higher(float one, float other) { return other > one || other != other ? other : one; }

// The maximum; NaN if there is one.
SPECOPS_INLINE float greatest(const float* from, std::int64_t count) {
  Narrow found;
  float parts[narrow_lanes];
  std::fill(parts, parts + narrow_lanes, -infinity);
  found.load(parts);
  std::int64_t i = 0;
  for (; i + narrow_lanes <= count; i += narrow_lanes) {
    Narrow more;
    more.load(from + i);
    found.raise(more);
  }
  found.store(parts);
  float highest = -infinity;
  for (const float part : parts) highest = higher(highest, part);
  for (; i < count; ++i) highest = higher(highest, from[i]);
  return highest;
}

// The running maximum of a query's scores, and the sum of attention weights relative to it.
struct Running {
  float greatest = -infinity, sum = 0.0f;
};

// Turns the scores of a query and a block's keys into attention weights, and rescales the previous result.
SPECOPS_INLINE void share(const Scaling& scaling, const Query& query, std::int64_t first, std::int64_t count,
                          std::int64_t value_size, float* products, Running& running) {
  for (std::int64_t t = 0; t < block; ++t) products[t] *= scaling.scale;
  if (scaling.softcap != 0.0f) {
    for (std::int64_t t = 0; t < count; ++t) products[t] = std::tanh(products[t] / scaling.softcap) * scaling.softcap;
  }
  if (query.mask != nullptr) {
    const float* const mask = query.mask + first;
    for (std::int64_t t = 0; t < count; ++t) {
      products[t] = scaling.replaces && mask[t] <= hidden ? mask[t] : products[t] + mask[t];
    }
  }
  for (std::int64_t t = count; t < block; ++t) products[t] = -infinity;
  const float here = greatest(products, count);
  const float highest = higher(running.greatest, here);
  if (highest == -infinity) {  // no visible key so far
    std::fill(products, products + block, 0.0f);
    return;
  }
  if (highest != running.greatest) {
    const float factor = exponential(running.greatest - highest);
    running.sum *= factor;
    running.greatest = highest;
    for (std::int64_t i = 0; i < value_size; ++i) query.to[i] *= factor;
  }
  Narrow sums;
  for (std::int64_t t = 0; t < block; t += narrow_lanes) {
    Narrow shares;
#if defined(SPECOPS_VECTORS)
    shares.load(products + t);
    shares.lanes = exponential<Narrow::Vector>(shares.lanes - highest);
    shares.store(products + t);
#else
    for (std::int64_t i = 0; i < narrow_lanes; ++i) products[t + i] = exponential(products[t + i] - highest);
    shares.load(products + t);
#endif
    sums.add(shares);
  }
  running.sum += sum_of(sums);
}

// Whether a mask hides a block from queries that have had visible keys.
SPECOPS_INLINE bool is_hidden(const Query* queries, const Running* running, std::int64_t rows, std::int64_t first,
                              std::int64_t count) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (queries[r].mask == nullptr || !(running[r].greatest > hidden / 10)) return false;
    if (!(greatest(queries[r].mask + first, count) <= hidden)) return false;
  }
  return true;
}

// Dispatches to the functions above for up to `most` rows. (A lambda would not be compiled for the caller's instruction
// set.)
template <int most>
SPECOPS_INLINE void multiply_up_to(std::int64_t rows, const float* const* queries, const float* keys, std::int64_t count,
                                   std::int64_t size, bool is_turned, float* to) {
  if constexpr (most > 1) {
    if (rows < most) return multiply_up_to<most - 1>(rows, queries, keys, count, size, is_turned, to);
  }
  if constexpr (most <= few) {
    if (!is_turned) return multiply_few<most>(queries, keys, count, size, to);
  }
  multiply<most>(queries, keys, count, size, to);
}

template <int most>
SPECOPS_INLINE void mix_up_to(std::int64_t rows, const float* shares, const float* values, std::int64_t count,
                              std::int64_t size, float* const* to) {
  if constexpr (most > 1) {
    if (rows < most) return mix_up_to<most - 1>(rows, shares, values, count, size, to);
  }
  mix<most>(shares, values, count, size, to);
}

}  // namespace

SPECOPS_CLONES void attend(const Tokens& tokens, const Scaling& scaling, const Query* queries, std::int64_t count,
                           std::vector<float>& scratch) {
  Running running[most_queries];
  const float* numbers[most_queries];
  float* to[most_queries];
  for (std::int64_t r = 0; r < count; ++r) {
    numbers[r] = queries[r].numbers;
    to[r] = queries[r].to;
    std::fill(to[r], to[r] + tokens.value_size, 0.0f);
    if (queries[r].sink != nullptr) running[r] = {*queries[r].sink, *queries[r].sink == -infinity ? 0.0f : 1.0f};
  }
  scratch.resize(static_cast<std::size_t>(block * (tile_queries + tokens.size)));
  float* const products = scratch.data();
  float* const turned = products + block * tile_queries;
  for (std::int64_t first = 0; first < tokens.count; first += block) {
    const std::int64_t in_block = std::min(block, tokens.count - first);
    const float* const keys = tokens.keys + first * tokens.size;
    const float* const values = tokens.values + first * tokens.value_size;
    bool is_turned = false;
    for (std::int64_t row = 0; row < count; row += tile_queries) {
      const std::int64_t rows = std::min(tile_queries, count - row);
      if (is_hidden(queries + row, running + row, rows, first, in_block)) continue;
      if (!is_turned && count > few) {
        turn(keys, in_block, tokens.size, turned);
        is_turned = true;
      }
      multiply_up_to<tile_queries>(rows, numbers + row, is_turned ? turned : keys, in_block, tokens.size, is_turned, products);
      for (std::int64_t r = 0; r < rows; ++r) {
        share(scaling, queries[row + r], first, in_block, tokens.value_size, products + r * block, running[row + r]);
      }
      mix_up_to<tile_queries>(rows, products, values, in_block, tokens.value_size, to + row);
    }
  }
  for (std::int64_t r = 0; r < count; ++r) {
    // 0 if all scores are -infinity.
    const float factor = running[r].greatest == -infinity ? 0.0f : 1.0f / running[r].sum;
    for (std::int64_t i = 0; i < tokens.value_size; ++i) to[r][i] *= factor;
  }
}

}  // namespace specops::masked_attention
