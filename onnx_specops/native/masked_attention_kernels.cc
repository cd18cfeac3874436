// The implementation of masked_attention.h. CMake defines SPECOPS_SET, the function that returns it.

#include <math.h>

#include <cstdint>
#include <limits>

#include "masked_attention.h"
#include "vectors.inc"

namespace specops::masked_attention {
namespace {

#include "exponentials.inc"

constexpr std::int64_t lanes = Floats::size;
// The vectors of sums that registers can hold, besides operands.
constexpr int most_sums = Floats::size == 16 ? 24 : 12;
// Vectors of keys that are multiplied together.
constexpr int key_packs = most_sums / static_cast<int>(tile_queries);
// The most queries for which keys are not transposed. Transposing pays off for more.
constexpr std::int64_t few = tile_queries;
constexpr float infinity = std::numeric_limits<float>::infinity();

static_assert(block % (key_packs * lanes) == 0 && block % transposed == 0);

ALWAYS float higher(float one, float other) { return other > one || other != other ? other : one; }

// The maximum; NaN if either is NaN.
ALWAYS Floats higher(Floats one, Floats other) {
#if defined(__AVX512F__)
  const __mmask16 nan = _mm512_cmp_ps_mask(one.lanes, one.lanes, _CMP_UNORD_Q);
  return {_mm512_mask_mov_ps(_mm512_max_ps(one.lanes, other.lanes), nan, one.lanes)};
#elif defined(__AVX2__)
  const __m256 nan = _mm256_cmp_ps(one.lanes, one.lanes, _CMP_UNORD_Q);
  return {_mm256_blendv_ps(_mm256_max_ps(one.lanes, other.lanes), one.lanes, nan)};
#else
  return each_slice([](Slice x, Slice y) { return ((y > x) | (y != y)) ? y : x; }, one, other);
#endif
}

// The maximum; NaN if there is one.
ALWAYS float maximum(const float* from, std::int64_t count) {
  float highest = -infinity;
  std::int64_t i = 0;
  if (count >= lanes) {
    Floats found = Floats::load(from);
    for (i = lanes; i + lanes <= count; i += lanes) found = higher(found, Floats::load(from + i));
    float parts[lanes];
    found.store(parts);
    for (const float part : parts) highest = higher(highest, part);
  }
  for (; i < count; ++i) highest = higher(highest, from[i]);
  return highest;
}

ALWAYS void multiply_by(float factor, std::int64_t count, float* numbers) {
  const Floats factors = Floats::all(factor);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) (Floats::load(numbers + i) * factors).store(numbers + i);
  for (; i < count; ++i) numbers[i] *= factor;
}

// The scores of one query and the block's keys in their original layout: a vector of keys at a time.
ALWAYS void multiply_one(const float* query, const float* keys, std::int64_t count, std::int64_t size, float* to) {
  const std::int64_t whole = size / lanes * lanes;
  std::int64_t t = 0;
  for (; t + lanes <= count; t += lanes) {
    const float* const key = keys + t * size;
    Floats products[lanes];
    UNROLL(16)
    for (int k = 0; k < lanes; ++k) products[k] = Floats::zero();
    for (std::int64_t i = 0; i < whole; i += lanes) {
      const Floats part = Floats::load(query + i);
      UNROLL(16)
      for (int k = 0; k < lanes; ++k) products[k] = multiply_add(Floats::load(key + k * size + i), part, products[k]);
    }
    sums(products).store(to + t);
  }
  for (; t < count; ++t) {
    Floats products = Floats::zero();
    for (std::int64_t i = 0; i < whole; i += lanes) {
      products = multiply_add(Floats::load(keys + t * size + i), Floats::load(query + i), products);
    }
    to[t] = products.sum();
  }
  for (std::int64_t i = whole; i < size; ++i) {
    for (t = 0; t < count; ++t) to[t] += query[i] * keys[t * size + i];
  }
}

// Transposes the block's keys to [size, block], padded with zeros.
ALWAYS void turn(const float* keys, std::int64_t count, std::int64_t size, float* to) {
  std::int64_t t = 0;
  for (; t + transposed <= count; t += transposed) {
    std::int64_t i = 0;
    for (; i + transposed <= size; i += transposed) {
      Floats columns[transposed];
      transpose(keys + t * size + i, size, columns);
      UNROLL(16)
      for (int j = 0; j < transposed; ++j) columns[j].store(to + (i + j) * block + t);
    }
    for (; i < size; ++i) {
      for (int j = 0; j < transposed; ++j) to[i * block + t + j] = keys[(t + j) * size + i];
    }
  }
  for (; t < block; ++t) {
    for (std::int64_t i = 0; i < size; ++i) to[i * block + t] = t < count ? keys[t * size + i] : 0.0f;
  }
}

// The scores of queries and the block's transposed keys.
template <int rows>
ALWAYS void multiply(const float* const* queries, const float* turned, std::int64_t count, std::int64_t size, float* to) {
  for (std::int64_t t = 0; t < count; t += key_packs * lanes) {
    Floats products[rows][key_packs];
    UNROLL(8)
    for (int r = 0; r < rows; ++r) {
      UNROLL(8)
      for (int p = 0; p < key_packs; ++p) products[r][p] = Floats::zero();
    }
    for (std::int64_t i = 0; i < size; ++i) {
      Floats keys[key_packs];
      UNROLL(8)
      for (int p = 0; p < key_packs; ++p) keys[p] = Floats::load(turned + i * block + t + p * lanes);
      UNROLL(8)
      for (int r = 0; r < rows; ++r) {
        const Floats number = Floats::all(queries[r][i]);
        UNROLL(8)
        for (int p = 0; p < key_packs; ++p) products[r][p] = multiply_add(keys[p], number, products[r][p]);
      }
    }
    UNROLL(8)
    for (int r = 0; r < rows; ++r) {
      UNROLL(8)
      for (int p = 0; p < key_packs; ++p) products[r][p].store(to + r * block + t + p * lanes);
    }
  }
}

// Adds the block's values times each query's attention weights, `packs` vectors at a time. Returns the end of the last ones.
template <int rows, int packs>
ALWAYS std::int64_t mix_columns(const float* shares, const float* values, std::int64_t count, std::int64_t size,
                                std::int64_t begin, float* const* to) {
  constexpr std::int64_t step = packs * lanes;
  std::int64_t i = begin;
  for (; i + step <= size; i += step) {
    Floats mixed[rows][packs];
    UNROLL(8)
    for (int r = 0; r < rows; ++r) {
      UNROLL(8)
      for (int p = 0; p < packs; ++p) mixed[r][p] = Floats::load(to[r] + i + p * lanes);
    }
    for (std::int64_t t = 0; t < count; ++t) {
      Floats value[packs];
      UNROLL(8)
      for (int p = 0; p < packs; ++p) value[p] = Floats::load(values + t * size + i + p * lanes);
      UNROLL(8)
      for (int r = 0; r < rows; ++r) {
        const Floats share = Floats::all(shares[r * block + t]);
        UNROLL(8)
        for (int p = 0; p < packs; ++p) mixed[r][p] = multiply_add(value[p], share, mixed[r][p]);
      }
    }
    UNROLL(8)
    for (int r = 0; r < rows; ++r) {
      UNROLL(8)
      for (int p = 0; p < packs; ++p) mixed[r][p].store(to[r] + i + p * lanes);
    }
  }
  return i;
}

template <int rows>
ALWAYS void mix(const float* shares, const float* values, std::int64_t count, std::int64_t size, float* const* to) {
  constexpr int sums_of_row = most_sums / rows, packs = sums_of_row >= 8 ? 8 : sums_of_row >= 4 ? 4 : 2;
  std::int64_t i = mix_columns<rows, packs>(shares, values, count, size, 0, to);
  i = mix_columns<rows, 1>(shares, values, count, size, i, to);
  for (; i < size; ++i) {
    for (int r = 0; r < rows; ++r) {
      for (std::int64_t t = 0; t < count; ++t) to[r][i] += shares[r * block + t] * values[t * size + i];
    }
  }
}

// The running maximum of a query's scores, and the sum of attention weights relative to it.
struct Running {
  float greatest, sum;
};

// Turns the scores of a query and a block's keys into attention weights, and rescales the previous result.
ALWAYS void share(const Scaling& scaling, const Query& query, std::int64_t first, std::int64_t count, std::int64_t value_size,
                  float* products, Running& running) {
  multiply_by(scaling.scale, count, products);
  if (scaling.softcap != 0.0f) {
    for (std::int64_t t = 0; t < count; ++t) products[t] = tanhf(products[t] / scaling.softcap) * scaling.softcap;
  }
  if (query.mask != nullptr) {
    const float* const mask = query.mask + first;
    if (scaling.replaces) {
      for (std::int64_t t = 0; t < count; ++t) products[t] = mask[t] <= hidden ? mask[t] : products[t] + mask[t];
    } else {
      for (std::int64_t t = 0; t < count; ++t) products[t] += mask[t];
    }
  }
  for (std::int64_t t = count; t < block; ++t) products[t] = -infinity;
  const float highest = higher(running.greatest, maximum(products, count));
  if (highest == -infinity) {  // no visible key so far
    for (std::int64_t t = 0; t < block; ++t) products[t] = 0.0f;
    return;
  }
  const Floats least = Floats::all(highest);
  if (highest != running.greatest) {
    float factors[lanes];
    exponential(Floats::all(running.greatest) - least).store(factors);
    running.sum *= factors[0];
    running.greatest = highest;
    multiply_by(factors[0], value_size, query.to);
  }
  Floats sum = Floats::zero();
  for (std::int64_t t = 0; t < block; t += lanes) {
    const Floats shares = exponential(Floats::load(products + t) - least);
    shares.store(products + t);
    sum = sum + shares;
  }
  running.sum += sum.sum();
}

// Whether a mask hides a block from queries that have had visible keys.
ALWAYS bool is_hidden(const Query* queries, const Running* running, std::int64_t rows, std::int64_t first,
                      std::int64_t count) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (queries[r].mask == nullptr || !(running[r].greatest > hidden / 10)) return false;
    if (!(maximum(queries[r].mask + first, count) <= hidden)) return false;
  }
  return true;
}

// Dispatch to the functions above for up to `most` rows.
template <int most>
ALWAYS void multiply_up_to(std::int64_t rows, const float* const* queries, const float* turned, std::int64_t count,
                           std::int64_t size, float* to) {
  if constexpr (most > 1) {
    if (rows < most) return multiply_up_to<most - 1>(rows, queries, turned, count, size, to);
  }
  multiply<most>(queries, turned, count, size, to);
}

template <int most>
ALWAYS void mix_up_to(std::int64_t rows, const float* shares, const float* values, std::int64_t count, std::int64_t size,
                      float* const* to) {
  if constexpr (most > 1) {
    if (rows < most) return mix_up_to<most - 1>(rows, shares, values, count, size, to);
  }
  mix<most>(shares, values, count, size, to);
}

void attend(const Tokens& tokens, const Scaling& scaling, const Query* queries, std::int64_t count, float* scratch) {
  constexpr int most = static_cast<int>(tile_queries);
  Running running[most_queries];
  const float* numbers[most_queries];
  float* to[most_queries];
  for (std::int64_t r = 0; r < count; ++r) {
    numbers[r] = queries[r].numbers;
    to[r] = queries[r].to;
    for (std::int64_t i = 0; i < tokens.value_size; ++i) to[r][i] = 0.0f;
    running[r] = {-infinity, 0.0f};
    if (queries[r].sink != nullptr) running[r] = {*queries[r].sink, *queries[r].sink == -infinity ? 0.0f : 1.0f};
  }
  float* const products = scratch;
  float* const turned = products + block * tile_queries;
  for (std::int64_t first = 0; first < tokens.count; first += block) {
    const std::int64_t left = tokens.count - first, in_block = left < block ? left : block;
    const float* const keys = tokens.keys + first * tokens.size;
    const float* const values = tokens.values + first * tokens.value_size;
    bool is_turned = false;
    for (std::int64_t row = 0; row < count; row += tile_queries) {
      const std::int64_t rows = count - row < tile_queries ? count - row : tile_queries;
      if (is_hidden(queries + row, running + row, rows, first, in_block)) continue;
      if (count <= few) {
        for (std::int64_t r = 0; r < rows; ++r) {
          multiply_one(numbers[row + r], keys, in_block, tokens.size, products + r * block);
        }
      } else {
        if (!is_turned) turn(keys, in_block, tokens.size, turned);
        is_turned = true;
        multiply_up_to<most>(rows, numbers + row, turned, in_block, tokens.size, products);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        share(scaling, queries[row + r], first, in_block, tokens.value_size, products + r * block, running[row + r]);
      }
      mix_up_to<most>(rows, products, values, in_block, tokens.value_size, to + row);
    }
  }
  for (std::int64_t r = 0; r < count; ++r) {
    // 0 if all scores are -infinity.
    multiply_by(running[r].greatest == -infinity ? 0.0f : 1.0f / running[r].sum, tokens.value_size, to[r]);
  }
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels all = {SPECOPS_NAME, attend};
  return all;
}

}  // namespace specops::masked_attention
