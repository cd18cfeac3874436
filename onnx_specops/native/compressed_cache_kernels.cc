// The implementation of compressed_cache.h. CMake defines SPECOPS_SET, the function that returns it.

#include <cstdint>
#include <cstring>

#include "compressed_cache.h"
#include "vectors.inc"

// Separate functions, so that their callers do not occupy their registers.
#if defined(SPECOPS_GNU)
#define SPECOPS_APART __attribute__((noinline))
#else
#define SPECOPS_APART
#endif

namespace specops::compressed_cache {
namespace {

#include "exponentials.inc"

// The number of slots whose keys and values are decoded at a time.
constexpr std::int64_t block = 128;
// The most rows for which keys are not transposed. Transposing pays off for more.
constexpr std::int64_t few_rows = 3;
constexpr float infinity = __builtin_huge_valf();

ALWAYS std::int64_t padded(std::int64_t size) { return (size + Floats::size - 1) / Floats::size * Floats::size; }
ALWAYS std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
ALWAYS std::int64_t most(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

ALWAYS std::uint32_t bits_of(float value) {
  std::uint32_t out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

// Rounds to nearest, ties to even.
ALWAYS std::uint16_t to_float16(float number) {
#if defined(__F16C__)
  return _cvtss_sh(number, 0);
#else
  const std::uint32_t all = bits_of(number), sign = (all >> 16) & 0x8000u, magnitude = all & 0x7fffffffu;
  std::uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x47800000u) {
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    half = bits_of(from_bits(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
#endif
}

// ------------------------------------------------------------------------------------------------------ rows of a cache

// Decodes a row of the cache to floats, padded with zeros.
ALWAYS void decode(const Attention& a, const std::uint8_t* from, float* to) {
  std::int64_t i = 0;
  if (a.cache == Cache::uint8) {
    std::uint16_t tail[2];
    std::memcpy(tail, from + a.size, sizeof tail);
    const float step = from_float16(tail[0]), low = from_float16(tail[1]);
    const Floats steps = Floats::all(step), lows = Floats::all(low);
    for (; i + Floats::size <= a.size; i += Floats::size) multiply_add(unsigned8(from + i), steps, lows).store(to + i);
    for (; i < a.size; ++i) to[i] = static_cast<float>(from[i]) * step + low;
  } else {
    for (; i + Floats::size <= a.size; i += Floats::size) float16(from + 2 * i).store(to + i);
    for (; i < a.size; ++i) {
      std::uint16_t half;
      std::memcpy(&half, from + 2 * i, sizeof half);
      to[i] = from_float16(half);
    }
  }
  for (; i < padded(a.size); ++i) to[i] = 0;
}

SPECOPS_APART void decode_rows(const Attention& a, const std::uint8_t* from, std::int64_t count, float* to) {
  for (std::int64_t j = 0; j < count; ++j) decode(a, from + j * a.width, to + j * padded(a.size));
}

// The largest float16 that is not above x.
ALWAYS std::uint16_t float16_below(float x) {
  const std::uint16_t near = to_float16(x);
  if (!(from_float16(near) > x)) return near == 0x8000u ? 0 : near;
  return static_cast<std::uint16_t>(near & 0x8000u ? near + 1 : near == 0 ? 0x8001u : near - 1);
}

ALWAYS void encode(const Attention& a, const float* from, std::uint8_t* to) {
  if (a.cache == Cache::float16) {
    for (std::int64_t i = 0; i < a.size; ++i) {
      const std::uint16_t half = to_float16(from[i]);
      std::memcpy(to + 2 * i, &half, sizeof half);
    }
    return;
  }
  float low = from[0], high = from[0];
  bool fits = true;
  for (std::int64_t i = 0; i < a.size; ++i) {
    low = from[i] < low ? from[i] : low;
    high = from[i] > high ? from[i] : high;
    fits &= from[i] <= 65504.0f && from[i] >= -65504.0f;
  }
  std::uint16_t tail[2] = {0x7e00u, 0x7e00u};  // NaN, for rows that float16 cannot represent
  if (fits) {
    tail[1] = float16_below(low);
    const float base = from_float16(tail[1]), wanted = (high - base) / 255.0f;
    tail[0] = to_float16(wanted);
    if (from_float16(tail[0]) < wanted) ++tail[0];
    const float step = from_float16(tail[0]);
    constexpr float shift = 12582912.0f;
    for (std::int64_t i = 0; i < a.size; ++i) {
      const float code = step > 0 ? ((from[i] - base) / step + shift) - shift : 0.0f;
      to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(code > 255.0f ? 255.0f : code));
    }
  } else {
    std::memset(to, 0, static_cast<std::size_t>(a.size));
  }
  std::memcpy(to + a.size, tail, sizeof tail);
}

// Rotates a query or key by its position, times `factor`, padded with zeros.
ALWAYS void turn(const Attention& a, const float* from, std::int64_t position, float factor, float* to) {
  const float *cosine = a.cosine + position * a.pairs, *sine = a.sine + position * a.pairs;
  if (a.interleaved) {
    for (std::int64_t i = 0; i < a.pairs; ++i) {
      const float x = from[2 * i], y = from[2 * i + 1];
      to[2 * i] = (x * cosine[i] - y * sine[i]) * factor;
      to[2 * i + 1] = (x * sine[i] + y * cosine[i]) * factor;
    }
  } else {
    const float *xs = from, *ys = from + a.pairs;
    float* second = to + a.pairs;
    for (std::int64_t i = 0; i < a.pairs; ++i) {
      to[i] = (xs[i] * cosine[i] - ys[i] * sine[i]) * factor;
      second[i] = (xs[i] * sine[i] + ys[i] * cosine[i]) * factor;
    }
  }
  for (std::int64_t i = 2 * a.pairs; i < a.size; ++i) to[i] = from[i] * factor;
  for (std::int64_t i = a.size; i < padded(a.size); ++i) to[i] = 0;
}

// ------------------------------------------------------------------------------------------------------------- products

// to[i, :] (+)= the sum over k of a[i, k] * b[k, :], for `rows` rows and `vectors` vectors of columns.
template <int rows, int vectors>
ALWAYS void multiply_tile(const float* a, std::int64_t a_step, const float* b, std::int64_t b_step, std::int64_t depth,
                          bool add, float* to, std::int64_t to_step) {
  Floats sums[rows][vectors];
  UNROLL(16)
  for (int i = 0; i < rows; ++i) {
    UNROLL(4)
    for (int j = 0; j < vectors; ++j) {
      sums[i][j] = add ? Floats::load(to + i * to_step + j * Floats::size) : Floats::zero();
    }
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Floats right[vectors];
    UNROLL(4)
    for (int j = 0; j < vectors; ++j) right[j] = Floats::load(b + k * b_step + j * Floats::size);
    UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const Floats left = Floats::all(a[i * a_step + k]);
      UNROLL(4)
      for (int j = 0; j < vectors; ++j) sums[i][j] = multiply_add(left, right[j], sums[i][j]);
    }
  }
  UNROLL(16)
  for (int i = 0; i < rows; ++i) {
    UNROLL(4)
    for (int j = 0; j < vectors; ++j) sums[i][j].store(to + i * to_step + j * Floats::size);
  }
}

template <int vectors>
ALWAYS void multiply_columns(const float* a, std::int64_t rows, std::int64_t a_step, const float* b, std::int64_t b_step,
                             std::int64_t depth, bool add, float* to, std::int64_t to_step) {
  std::int64_t i = 0;
  for (; i + tile_rows <= rows; i += tile_rows) {
    multiply_tile<tile_rows, vectors>(a + i * a_step, a_step, b, b_step, depth, add, to + i * to_step, to_step);
  }
  for (; i + 2 <= rows; i += 2) {
    multiply_tile<2, vectors>(a + i * a_step, a_step, b, b_step, depth, add, to + i * to_step, to_step);
  }
  if (i < rows) multiply_tile<1, vectors>(a + i * a_step, a_step, b, b_step, depth, add, to + i * to_step, to_step);
}

// `columns` is a multiple of the vector size.
SPECOPS_APART void multiply(const float* a, std::int64_t rows, std::int64_t a_step, const float* b, std::int64_t b_step,
              std::int64_t depth, bool add, float* to, std::int64_t to_step, std::int64_t columns) {
  std::int64_t j = 0;
  if (rows <= few_rows) {  // more columns at once, for independent sums
    for (; j + 4 * Floats::size <= columns; j += 4 * Floats::size) {
      for (std::int64_t i = 0; i < rows; ++i) {
        multiply_tile<1, 4>(a + i * a_step, a_step, b + j, b_step, depth, add, to + i * to_step + j, to_step);
      }
    }
  }
  for (; j + 2 * Floats::size <= columns; j += 2 * Floats::size) {
    multiply_columns<2>(a, rows, a_step, b + j, b_step, depth, add, to + j, to_step);
  }
  if (j < columns) multiply_columns<1>(a, rows, a_step, b + j, b_step, depth, add, to + j, to_step);
}

// to[j] = the product of a with row j of `rows`, for as many rows as a vector has lanes.
ALWAYS void multiply_rows(const float* a, const float* rows, std::int64_t step, float* to) {
  Floats parts[Floats::size];
  UNROLL(16)
  for (int j = 0; j < Floats::size; ++j) {
    parts[j] = Floats::zero();
    for (std::int64_t i = 0; i < step; i += Floats::size) {
      parts[j] = multiply_add(Floats::load(a + i), Floats::load(rows + j * step + i), parts[j]);
    }
  }
  sums(parts).store(to);
}

// ---------------------------------------------------------------------------------------- few rows by an unpacked cache

// Prefetches cache lines.
ALWAYS void fetch(const std::uint8_t* from, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) SPECOPS_PREFETCH_FAR(from + i);
}

template <Cache cache>
ALWAYS Floats codes(const std::uint8_t* row, std::int64_t i) {
  return cache == Cache::uint8 ? unsigned8(row + i) : float16(row + 2 * i);
}

// The steps and minimums of as many rows as a vector has lanes, with the last of `count` repeated.
struct Tails {
  Floats steps, lows;

  ALWAYS Tails(const std::uint8_t* rows, std::int64_t width, std::int64_t size, std::int64_t count) {
    const std::uint8_t* from = rows + size;
#if defined(__AVX512F__)  // from registers: partial stores cannot be forwarded to a vector load
    std::int32_t both[Floats::size];
    UNROLL(16)
    for (int k = 0; k < Floats::size; ++k) {
      std::memcpy(&both[k], from, sizeof both[k]);
      from += k + 1 < count ? width : 0;
    }
    const __m512i all = _mm512_set_epi32(both[15], both[14], both[13], both[12], both[11], both[10], both[9], both[8], both[7],
                                         both[6], both[5], both[4], both[3], both[2], both[1], both[0]);
    steps = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(all))};
    lows = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16)))};
#else
    std::uint16_t halves[2][Floats::size];
    for (int k = 0; k < Floats::size; ++k) {
      std::memcpy(&halves[0][k], from, 2);
      std::memcpy(&halves[1][k], from + 2, 2);
      from += k + 1 < count ? width : 0;
    }
    steps = float16(reinterpret_cast<const std::uint8_t*>(halves[0]));
    lows = float16(reinterpret_cast<const std::uint8_t*>(halves[1]));
#endif
  }
};

// to[i, j] = the product of query i with row j of the cache; `size` is a multiple of the vector size. `next` points to the
// rows that are read afterwards.
template <Cache cache>
SPECOPS_APART void multiply_held(const float* queries, std::int64_t rows, std::int64_t size, const std::uint8_t* held,
                                 std::int64_t width, std::int64_t count, const std::uint8_t* next, float* to) {
  constexpr int lanes = Floats::size, together = 4;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* query = queries + i * size;
    Floats sum = Floats::zero();
    for (std::int64_t k = 0; k < size; k += lanes) sum = sum + Floats::load(query + k);
    const Floats whole = Floats::all(cache == Cache::uint8 ? sum.sum() : 0.0f);
    for (std::int64_t j = 0; j < count; j += lanes) {
      const std::uint8_t* first = held + j * width;
      const std::int64_t there = least(count - j, lanes);
      Floats parts[lanes];
      const std::uint8_t* row = first;
      UNROLL(16)
      for (int k = 0; k < lanes; ++k) {
        if (i == 0) fetch(next + (j + k) * width, width);
        Floats part = Floats::zero();
        std::int64_t d = 0;
        for (; d + together * lanes <= size; d += together * lanes) {
          UNROLL(4)
          for (int l = 0; l < together; ++l) {
            part = multiply_add(Floats::load(query + d + l * lanes), codes<cache>(row, d + l * lanes), part);
          }
        }
        for (; d < size; d += lanes) part = multiply_add(Floats::load(query + d), codes<cache>(row, d), part);
        parts[k] = part;
        row += k + 1 < there ? width : 0;
      }
      Floats products = sums(parts);
      if (cache == Cache::uint8) {
        const Tails tails(first, width, size, there);
        products = multiply_add(products, tails.steps, tails.lows * whole);
      }
      products.store(to + i * block + j);
    }
  }
}

// to[i, :] += the sum over j of shares[i, j] * row j of the cache.
template <Cache cache>
SPECOPS_APART void mix_held(const float* shares, std::int64_t rows, std::int64_t size, const std::uint8_t* held,
                            std::int64_t width, std::int64_t count, const std::uint8_t* next, float* to) {
  constexpr int lanes = Floats::size, together = 4;
  for (std::int64_t i = 0; i < rows; ++i) {
    float weights[block + lanes];
    Floats lows = Floats::zero();
    for (std::int64_t j = 0; j < count; j += lanes) {
      Floats share = Floats::load(shares + i * block + j);  // 0 after the last one
      if (cache == Cache::uint8) {
        const Tails tails(held + j * width, width, size, least(count - j, lanes));
        lows = multiply_add(share, tails.lows, lows);
        share = share * tails.steps;
      }
      share.store(weights + j);
    }
    const Floats low = Floats::all(cache == Cache::uint8 ? lows.sum() : 0.0f);
    std::int64_t d = 0;
    for (; d + together * lanes <= size; d += together * lanes) {
      Floats sums[together];
      for (int k = 0; k < together; ++k) sums[k] = Floats::load(to + i * size + d + k * lanes) + low;
      for (std::int64_t j = 0; j < count; ++j) {
        if (i == 0 && d == 0) fetch(next + j * width, width);
        const Floats weight = Floats::all(weights[j]);
        UNROLL(4)
        for (int k = 0; k < together; ++k) sums[k] = multiply_add(weight, codes<cache>(held + j * width, d + k * lanes), sums[k]);
      }
      for (int k = 0; k < together; ++k) sums[k].store(to + i * size + d + k * lanes);
    }
    for (; d < size; d += lanes) {
      Floats sum = Floats::load(to + i * size + d) + low;
      for (std::int64_t j = 0; j < count; ++j) {
        sum = multiply_add(Floats::all(weights[j]), codes<cache>(held + j * width, d), sum);
      }
      sum.store(to + i * size + d);
    }
  }
}

#if defined(__AVX512VNNI__)

// Floats as 16-bit integers times a factor, split into signed upper and lower bytes.
struct Split {
  static constexpr float largest = 32639.0f;  // 127 * 256 + 127

  // `count` is a multiple of 16; returns the factor.
  static ALWAYS float of(const float* from, std::int64_t count, std::int8_t* upper, std::int8_t* lower) {
    __m512 peak = _mm512_setzero_ps();
    for (std::int64_t i = 0; i < count; i += 16) peak = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(from + i)), peak);
    const float most = _mm512_reduce_max_ps(peak), factor = most > 0 ? largest / most : 0.0f;
    for (std::int64_t i = 0; i < count; i += 16) {
      const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(from + i), _mm512_set1_ps(factor)));
      const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(128)), 8);
      const __m512i low = _mm512_sub_epi32(whole, _mm512_slli_epi32(high, 8));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(upper + i), _mm512_cvtepi32_epi8(high));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(lower + i), _mm512_cvtepi32_epi8(low));
    }
    return most / largest;
  }
};

// The largest row for which the sums below fit 32 bits.
constexpr std::int64_t most_split = 256;

ALWAYS bool splits(std::int64_t size) { return size % 64 == 0 && size <= most_split; }

// The sums of 16 vectors of integers, one per lane.
ALWAYS __m512i integer_sums(const __m512i* of) {
  __m512i fours[4];
  for (int i = 0; i < 4; ++i) {
    const __m512i a = of[4 * i], b = of[4 * i + 1], c = of[4 * i + 2], d = of[4 * i + 3];
    const __m512i x = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const __m512i y = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
  }
  const auto both = [](__m512i a, __m512i b) ALWAYS_LAMBDA {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  };
  return both(both(fours[0], fours[1]), both(fours[2], fours[3]));
}

// Sixteen rows; if the cache has fewer, a copy padded with zeros.
struct Sixteen {
  alignas(64) std::uint8_t copy[16 * (most_split + row_tail)];

  ALWAYS const std::uint8_t* of(const std::uint8_t* rows, std::int64_t width, std::int64_t count) {
    if (count >= 16) return rows;
    std::memcpy(copy, rows, static_cast<std::size_t>(count * width));
    std::memset(copy + count * width, 0, static_cast<std::size_t>((16 - count) * width));
    return copy;
  }
};

// Like multiply_held for uint8, with 16-bit queries; `size` must be splittable.
template <int chunks>
SPECOPS_APART void multiply_bytes(const float* queries, std::int64_t rows, std::int64_t size, const std::uint8_t* held,
                                  std::int64_t width, std::int64_t count, const std::uint8_t* next, float* to) {
  Sixteen sixteen;
  for (std::int64_t i = 0; i < rows; ++i) {
    alignas(64) std::int8_t upper[64 * chunks], lower[64 * chunks];
    const float* query = queries + i * size;
    const float factor = Split::of(query, size, upper, lower);
    Floats sum = Floats::zero();
    for (std::int64_t k = 0; k < size; k += 16) sum = sum + Floats::load(query + k);
    const Floats whole = Floats::all(sum.sum());
    __m512i high[chunks], low[chunks];
    for (int l = 0; l < chunks; ++l) {
      high[l] = _mm512_load_si512(upper + 64 * l);
      low[l] = _mm512_load_si512(lower + 64 * l);
    }
    for (std::int64_t j = 0; j < count; j += 16) {
      const std::uint8_t* first = sixteen.of(held + j * width, width, count - j);
      __m512i parts[16];
      UNROLL(16)
      for (int k = 0; k < 16; ++k) {
        __m512i a = _mm512_setzero_si512(), b = a;
        UNROLL(4)
        for (int l = 0; l < chunks; ++l) {
          SPECOPS_PREFETCH_FAR(next + j * width + (k * chunks + l) * 64);
          const __m512i bytes = _mm512_loadu_si512(first + k * width + 64 * l);
          a = _mm512_dpbusd_epi32(a, bytes, high[l]);
          b = _mm512_dpbusd_epi32(b, bytes, low[l]);
        }
        parts[k] = _mm512_add_epi32(_mm512_slli_epi32(a, 8), b);
      }
      SPECOPS_PREFETCH_FAR(next + j * width + 16 * chunks * 64);  // the tails of sixteen rows fill a cache line
      const Tails tails(first, width, size, 16);
      const Floats products = {_mm512_cvtepi32_ps(integer_sums(parts))};
      multiply_add(products, tails.steps * Floats::all(factor), tails.lows * whole).store(to + i * block + j);
    }
  }
}

// Like mix_held for uint8, with 16-bit attention weights; `size` must be splittable.
SPECOPS_APART void mix_bytes(const float* shares, std::int64_t rows, std::int64_t size, const std::uint8_t* held,
                             std::int64_t width, std::int64_t count, const std::uint8_t* next, float* to) {
  Sixteen sixteen;
  for (std::int64_t i = 0; i < rows; ++i) {
    alignas(64) float weights[block];
    std::int8_t upper[block], lower[block];
    Floats lows = Floats::zero();
    for (std::int64_t j = 0; j < block; j += 16) {
      Floats share = Floats::zero();
      if (j < count) {
        SPECOPS_PREFETCH_FAR(next + count * size + j * row_tail);
        const Tails tails(sixteen.of(held + j * width, width, count - j), width, size, 16);
        share = Floats::load(shares + i * block + j);  // 0 after the last one
        lows = multiply_add(share, tails.lows, lows);
        share = share * tails.steps;
      }
      share.store(weights + j);
    }
    const float factor = Split::of(weights, block, upper, lower);
    const Floats low = Floats::all(lows.sum());
    for (std::int64_t d = 0; d < size; d += 64) {
      __m512i high_sums[4], low_sums[4];
      for (int k = 0; k < 4; ++k) high_sums[k] = low_sums[k] = _mm512_setzero_si512();
      for (std::int64_t j = 0; j < count; j += 4) {
        const std::uint8_t* first = (j / 16 * 16 + 16 <= count ? held + j * width : sixteen.copy + j % 16 * width) + d;
        // Interleaves a column's bytes of four rows.
        __m512i r[4];
        for (int k = 0; k < 4; ++k) {
          SPECOPS_PREFETCH_FAR(next + d * count + (j + k) * 64);
          r[k] = _mm512_loadu_si512(first + k * width);
        }
        const __m512i a = _mm512_unpacklo_epi8(r[0], r[1]), b = _mm512_unpackhi_epi8(r[0], r[1]);
        const __m512i c = _mm512_unpacklo_epi8(r[2], r[3]), e = _mm512_unpackhi_epi8(r[2], r[3]);
        const __m512i x[4] = {_mm512_unpacklo_epi16(a, c), _mm512_unpackhi_epi16(a, c), _mm512_unpacklo_epi16(b, e),
                              _mm512_unpackhi_epi16(b, e)};
        const Ints high = Ints::all(upper + j), low_bytes = Ints::all(lower + j);
        for (int k = 0; k < 4; ++k) {
          high_sums[k] = _mm512_dpbusd_epi32(high_sums[k], x[k], high.lanes);
          low_sums[k] = _mm512_dpbusd_epi32(low_sums[k], x[k], low_bytes.lanes);
        }
      }
      __m512 s[4];
      for (int k = 0; k < 4; ++k) {  // columns 4 k to 4 k + 3 of each group of sixteen
        const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(high_sums[k], 8), low_sums[k]);
        s[k] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(all), _mm512_set1_ps(factor), low.lanes);
      }
      const __m512 p = _mm512_shuffle_f32x4(s[0], s[1], 0x44), q = _mm512_shuffle_f32x4(s[2], s[3], 0x44);
      const __m512 u = _mm512_shuffle_f32x4(s[0], s[1], 0xee), v = _mm512_shuffle_f32x4(s[2], s[3], 0xee);
      const Floats sixteens[4] = {{_mm512_shuffle_f32x4(p, q, 0x88)}, {_mm512_shuffle_f32x4(p, q, 0xdd)},
                                  {_mm512_shuffle_f32x4(u, v, 0x88)}, {_mm512_shuffle_f32x4(u, v, 0xdd)}};
      float* at = to + i * size + d;
      for (int k = 0; k < 4; ++k) (Floats::load(at + 16 * k) + sixteens[k]).store(at + 16 * k);
    }
  }
}

#endif

using WithHeld = void (*)(const float*, std::int64_t, std::int64_t, const std::uint8_t*, std::int64_t, std::int64_t,
                              const std::uint8_t*, float*);

ALWAYS WithHeld how_to_multiply(Cache cache, std::int64_t size) {
  if (cache == Cache::float16) return multiply_held<Cache::float16>;
#if defined(__AVX512VNNI__)
  constexpr WithHeld by_chunks[] = {multiply_bytes<1>, multiply_bytes<2>, multiply_bytes<3>, multiply_bytes<4>};
  if (splits(size)) return by_chunks[size / 64 - 1];
#endif
  (void)size;
  return multiply_held<Cache::uint8>;
}

ALWAYS WithHeld how_to_mix(Cache cache, std::int64_t size) {
  if (cache == Cache::float16) return mix_held<Cache::float16>;
#if defined(__AVX512VNNI__)
  if (splits(size)) return mix_bytes;
#endif
  (void)size;
  return mix_held<Cache::uint8>;
}

// ------------------------------------------------------------------------------------------------------------ attention

// The consecutive parts of `attend`'s scratch memory.
struct Scratch {
  float *queries, *mixed;  // [rows, padded size]
  float* products;         // [rows, block]
  float *largest, *sums;   // [rows]
  float* panel;            // keys or values: [block, padded size]
  float* across;           // keys: [padded size, block]

  Scratch(float* memory, std::int64_t rows, std::int64_t size) {
    queries = memory;
    mixed = queries + rows * size;
    products = mixed + rows * size;
    panel = products + rows * block;
    across = panel + block * size;
    largest = across + size * block;
    sums = largest + rows;
  }
  static std::int64_t floats(std::int64_t rows, std::int64_t size) {
    return rows * (2 * size + block + 2) + 2 * block * size;
  }
};

std::int64_t scratch(const Attention& attention, std::int64_t rows) { return Scratch::floats(rows, padded(attention.size)); }

// The slots that are visible to a token: [from, to).
struct Seen {
  std::int64_t from, to;
};
ALWAYS Seen seen(const Attention& a, const Piece& p, std::int64_t token) {
  const std::int64_t position = p.begin + token;
  return {most(p.from_slot, a.window > 0 ? position - a.window + 1 : 0), least(p.to_slot, least(position + 1, p.length))};
}

// Hides a block's scores outside [from, to), including the padding of vectors.
ALWAYS void hide(float* products, std::int64_t from, std::int64_t to) {
  const std::int64_t begin = from / Floats::size * Floats::size, end = padded(to);
  for (std::int64_t i = 0; i < begin; ++i) products[i] = 0;
  for (std::int64_t i = begin; i < from; ++i) products[i] = -infinity;
  for (std::int64_t i = to; i < end; ++i) products[i] = -infinity;
  for (std::int64_t i = end; i < block; ++i) products[i] = 0;
}

// Applies the softcap: tanh(score / cap) * cap.
ALWAYS void limit(float* products, std::int64_t from, std::int64_t to, float cap) {
  for (std::int64_t i = from / Floats::size * Floats::size; i < to; i += Floats::size) {
    float powers[Floats::size];
    exponential(negative(Floats::load(products + i)) * Floats::all(2.0f / cap)).store(powers);
    for (int j = 0; j < Floats::size; ++j) {
      const float bounded = cap * (1.0f - powers[j]) / (1.0f + powers[j]);
      products[i + j] = products[i + j] > 0 ? bounded : -bounded;
    }
  }
}

// Turns the scores of one block into attention weights, and rescales the previous sums.
SPECOPS_APART void share(float* products, std::int64_t from, std::int64_t to, float* largest, float* sum, float* mixed,
                         std::int64_t size) {
  hide(products, from, to);
  const std::int64_t begin = from / Floats::size * Floats::size;
  Floats most = Floats::all(*largest);
  for (std::int64_t i = begin; i < to; i += Floats::size) most = greater(Floats::load(products + i), most);
  const float peak = greatest(most);
  if (peak > *largest) {
    const Floats factor = exponential(Floats::all(*largest - peak));
    float first[Floats::size];
    factor.store(first);
    *sum *= first[0];
    for (std::int64_t i = 0; i < size; i += Floats::size) (Floats::load(mixed + i) * factor).store(mixed + i);
    *largest = peak;
  }
  Floats more = Floats::zero();
  for (std::int64_t i = begin; i < to; i += Floats::size) {
    const Floats part = exponential(Floats::load(products + i) - Floats::all(peak));
    part.store(products + i);
    more = more + part;
  }
  *sum += more.sum();
}

// The products of the queries with the first `depth` elements of the keys in the panel.
SPECOPS_APART void multiply_panel(const Scratch& s, std::int64_t rows, std::int64_t size, std::int64_t depth, std::int64_t count) {
  if (rows <= few_rows) {
    for (std::int64_t j = 0; j < count; j += Floats::size) {
      for (std::int64_t row = 0; row < rows; ++row) {
        multiply_rows(s.queries + row * size, s.panel + j * size, size, s.products + row * block + j);
      }
    }
    return;
  }
  for (std::int64_t j = 0; j < count; j += transposed) {
    for (std::int64_t i = 0; i < size; i += transposed) {
      Floats columns[transposed];
      transpose(s.panel + j * size + i, size, columns);
      for (int k = 0; k < transposed; ++k) columns[k].store(s.across + (i + k) * block + j);
    }
  }
  const std::int64_t columns = (count + transposed - 1) / transposed * transposed;
  multiply(s.queries, rows, size, s.across, block, depth, false, s.products, block, columns);
}

void attend(const Attention& a, const Piece& p, float* memory) {
  const std::int64_t shared = a.heads / a.groups, rows = rows_of(a, p), size = padded(a.size);
  const Scratch s(memory, rows, size);
  const std::int64_t head = p.group * shared, group_row = p.row * a.groups + p.group;
  const std::uint8_t* past_key = a.past_key + group_row * a.past_room * a.width;
  const std::uint8_t* past_value = a.past_value + group_row * a.past_room * a.width;
  const float* keys = a.key + (p.row * a.sequence * a.groups + p.group) * a.size;
  const float* values = a.value + (p.row * a.sequence * a.groups + p.group) * a.size;
  const std::int64_t new_step = a.groups * a.size;

  for (std::int64_t token = p.first; token < p.last; ++token) {
    for (std::int64_t i = 0; i < shared; ++i) {
      const std::int64_t row = (token - p.first) * shared + i;
      const float* from = a.query + ((p.row * a.sequence + token) * a.heads + head + i) * a.size;
      turn(a, from, p.begin + token, a.scale, s.queries + row * size);
      const bool sinks = a.sink != nullptr && p.from_slot == 0;
      s.largest[row] = sinks ? a.sink[head + i] : -infinity;
      s.sums[row] = sinks ? 1.0f : 0.0f;
    }
  }
  std::memset(s.mixed, 0, static_cast<std::size_t>(rows * size) * sizeof(float));

  const std::int64_t end = least(p.to_slot, seen(a, p, p.last - 1).to);
  std::int64_t count = 0;
  for (std::int64_t slot = most(p.from_slot, seen(a, p, p.first).from); slot < end; slot += count) {
    // From the cache, or from this run.
    const bool held = slot < p.begin, direct = held && rows <= few_rows && a.size == size;
    count = least(block, (held ? least(end, p.begin) : end) - slot);
    if (direct) {
      how_to_multiply(a.cache, size)(s.queries, rows, size, past_key + slot * a.width, a.width, count, past_value + slot * a.width, s.products);
    } else {
      if (held) {
        decode_rows(a, past_key + slot * a.width, count, s.panel);
      } else {
        for (std::int64_t j = 0; j < count; ++j) {
          turn(a, keys + (slot + j - p.begin) * new_step, slot + j, 1.0f, s.panel + j * size);
        }
      }
      multiply_panel(s, rows, size, a.size, count);
    }
    for (std::int64_t token = p.first; token < p.last; ++token) {
      const Seen span = seen(a, p, token);
      const std::int64_t from = least(most(span.from - slot, 0), count), to = most(least(span.to - slot, count), from);
      for (std::int64_t row = (token - p.first) * shared; row < (token - p.first + 1) * shared; ++row) {
        float* products = s.products + row * block;
        if (from == to) {
          for (std::int64_t i = 0; i < block; ++i) products[i] = 0;
          continue;
        }
        if (a.softcap > 0) limit(products, from, to, a.softcap);
        share(products, from, to, s.largest + row, s.sums + row, s.mixed + row * size, size);
      }
    }
    if (direct) {
      // The following keys: of this group, or of the next one, which this thread processes next.
      const bool more = slot + count < least(end, p.begin);
      const std::uint8_t* following = past_key + (more ? slot + count : a.past_room) * a.width;
      how_to_mix(a.cache, size)(s.products, rows, size, past_value + slot * a.width, a.width, count, following, s.mixed);
      continue;
    }
    if (held) {
      decode_rows(a, past_value + slot * a.width, count, s.panel);
    } else {
      for (std::int64_t j = 0; j < count; ++j) {
        float* to = s.panel + j * size;
        std::memcpy(to, values + (slot + j - p.begin) * new_step, static_cast<std::size_t>(a.size) * sizeof(float));
        for (std::int64_t i = a.size; i < size; ++i) to[i] = 0;
      }
    }
    multiply(s.products, rows, block, s.panel, size, count, true, s.mixed, size, size);
  }

  for (std::int64_t row = 0; row < rows; ++row) {
    const float* mixed = s.mixed + row * size;
    if (p.partial != nullptr) {
      float* to = p.partial + row * (a.size + 2);
      std::memcpy(to, mixed, static_cast<std::size_t>(a.size) * sizeof(float));
      to[a.size] = s.sums[row];
      to[a.size + 1] = s.largest[row];
      continue;
    }
    const std::int64_t token = p.first + row / shared;
    float* to = a.output + ((p.row * a.sequence + token) * a.heads + head + row % shared) * a.size;
    for (std::int64_t i = 0; i < a.size; ++i) to[i] = mixed[i] / s.sums[row];
  }

  if (!p.extends) return;
  for (std::int64_t token = p.first; token < p.last; ++token) {
    const std::int64_t at = (group_row * a.present_room + p.begin + token) * a.width;
    turn(a, keys + token * new_step, p.begin + token, 1.0f, s.panel);
    encode(a, s.panel, a.present_key + at);
    encode(a, values + token * new_step, a.present_value + at);
  }
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static constexpr Kernels all = {SPECOPS_NAME, scratch, attend};
  return all;
}

}  // namespace specops::compressed_cache
