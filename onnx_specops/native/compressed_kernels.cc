// The implementation of compressed.h. CMake defines SPECOPS_SET, the function that returns it.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "byte_products.h"
#include "compressed.h"
#include "vectors.inc"

namespace specops::compressed {
namespace {

// Blocks of 32 bytes: eight sums, for all vector widths.
#if defined(__AVX2__)
template <bool wide>
ALWAYS __m256i add_products_256(__m256i sum, __m256i bytes, __m256i values) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
  return add_byte_products(sum, bytes, values);
#else
  const __m256i ones = _mm256_set1_epi16(1), low = _mm256_set1_epi8(15);
  if constexpr (wide) {  // their 16-bit sums would saturate
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low);
    const __m256i products = _mm256_madd_epi16(_mm256_maddubs_epi16(high, values), ones);
    sum = _mm256_add_epi32(sum, _mm256_slli_epi32(products, 4));
    bytes = _mm256_and_si256(bytes, low);
  }
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, values), ones));
#endif
}
#if !defined(__AVX512F__)
template <bool wide>
ALWAYS Ints add_products(Ints sum, Ints bytes, Ints values) {
  return {add_products_256<wide>(sum.lanes, bytes.lanes, values.lanes)};
}
#endif

struct Block {
  __m256i bytes;

  // 32 integers without their sign, in their packed order.
  template <int width>
  static ALWAYS Block load(const std::uint8_t* from, std::uint8_t flip) {
    if constexpr (width == 8) {
      const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      return {_mm256_xor_si256(all, _mm256_set1_epi8(static_cast<char>(flip)))};
    } else if constexpr (width == 4) {
      const __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
      const __m256i spread = _mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4));
      const __m256i all = _mm256_xor_si256(spread, _mm256_set1_epi8(static_cast<char>(flip)));
      return {_mm256_and_si256(all, _mm256_set1_epi8(15))};
    } else {
      __m256i all = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
      all = _mm256_or_si256(all, _mm256_slli_epi32(all, 12));
      all = _mm256_or_si256(all, _mm256_slli_epi32(all, 6));
      all = _mm256_xor_si256(all, _mm256_set1_epi8(static_cast<char>(flip)));
      return {_mm256_and_si256(all, _mm256_set1_epi8(3))};
    }
  }
  ALWAYS void store(std::uint8_t* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes); }
  template <bool wide>
  ALWAYS __m256 products(const std::int8_t* values) const {
    const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
    return _mm256_cvtepi32_ps(add_products_256<wide>(_mm256_setzero_si256(), bytes, right));
  }
};

struct Sums {
  __m256 lanes = _mm256_setzero_ps();
  ALWAYS void add(__m256 x, float factor) { lanes = _mm256_fmadd_ps(x, _mm256_set1_ps(factor), lanes); }
  ALWAYS void add(const Sums& x, float factor) { add(x.lanes, factor); }
  ALWAYS float sum() const {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
};
#else
struct Block {
  std::uint8_t bytes[32];

  template <int width>
  static ALWAYS Block load(const std::uint8_t* from, std::uint8_t flip) {
    Block out;
    for (int i = 0; i < 32; ++i) {
      out.bytes[i] = static_cast<std::uint8_t>((from[i * width / 8] ^ flip) >> i * width % 8 & ((1 << width) - 1));
    }
    return out;
  }
  ALWAYS void store(std::uint8_t* to) const { std::memcpy(to, bytes, sizeof bytes); }
  template <bool wide>
  ALWAYS Floats products(const std::int8_t* values) const {
    std::int32_t sums[8] = {};
    for (int i = 0; i < 8; ++i) {
      for (int j = 4 * i; j < 4 * i + 4; ++j) sums[i] += bytes[j] * values[j];
    }
    return each([&](int i) { return static_cast<float>(sums[i]); });
  }
};

struct Sums {
  Floats lanes = Floats::zero();
  ALWAYS void add(Floats x, float factor) { lanes = multiply_add(x, Floats::all(factor), lanes); }
  ALWAYS void add(const Sums& x, float factor) { add(x.lanes, factor); }
  ALWAYS float sum() const { return lanes.sum(); }
};
#endif

#include "exponentials.inc"

constexpr int parts = 16 / Floats::size;          // vectors of 16 floats
constexpr std::int64_t panel = 2 * Floats::size;  // columns of a panel
constexpr std::int64_t chunk = 512;               // maximum elements along the depth in a panel
constexpr std::int64_t panel_floats = chunk * panel;
constexpr std::int64_t in_panels(std::int64_t columns) { return (columns + panel - 1) / panel * panel; }
constexpr std::int64_t most_panels = 4;           // of floats, processed at once: a quarter of the second-level cache

// ------------------------------------------------------------------------------------------------------------- numbers

ALWAYS float number(const Matrix& from, std::int64_t at, float otherwise) {
  switch (from.type) {
    case Number::none: return otherwise;
    case Number::float32: return static_cast<const float*>(from.data)[at];
    case Number::float16: return from_float16(static_cast<const std::uint16_t*>(from.data)[at]);
    case Number::bfloat16: return from_bfloat16(static_cast<const std::uint16_t*>(from.data)[at]);
    case Number::uint8: return static_cast<float>(static_cast<const std::uint8_t*>(from.data)[at]);
    case Number::int8: return static_cast<float>(static_cast<const std::int8_t*>(from.data)[at]);
  }
  return otherwise;
}

#if defined(__AVX512F__)
// Loads up to 16 consecutive numbers.
ALWAYS Floats some(const Matrix& from, std::int64_t at, __mmask16 mask) {
  switch (from.type) {
    case Number::float32: return {_mm512_maskz_loadu_ps(mask, static_cast<const float*>(from.data) + at)};
    case Number::float16:
      return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, static_cast<const std::uint16_t*>(from.data) + at))};
    case Number::bfloat16: {
      const __m256i halves = _mm256_maskz_loadu_epi16(mask, static_cast<const std::uint16_t*>(from.data) + at);
      return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
    }
    case Number::int8:
      return {_mm512_cvtepi32_ps(
          _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, static_cast<const std::int8_t*>(from.data) + at)))};
    default:
      return {_mm512_cvtepi32_ps(
          _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, static_cast<const std::uint8_t*>(from.data) + at)))};
  }
}
#endif

// Loads a column's or group's numbers from `first` on; `to` has capacity for a multiple of 16.
inline void fetch(const Matrix& from, std::int64_t first, std::int64_t step, std::int64_t count, float otherwise, float* to) {
  if (from.type == Number::none || step == 0) {
    const float same = number(from, first, otherwise);
    for (std::int64_t i = 0; i < count; ++i) to[i] = same;
    return;
  }
  std::int64_t i = 0;
  if (step == 1) {
    const auto* bytes = static_cast<const std::uint8_t*>(from.data);
    for (; i + Floats::size <= count; i += Floats::size) {
      const std::int64_t at = first + i;
      Floats values;
      switch (from.type) {
        case Number::float32: values = Floats::load(static_cast<const float*>(from.data) + at); break;
        case Number::float16: values = float16(bytes + 2 * at); break;
        case Number::bfloat16: values = bfloat16(bytes + 2 * at); break;
        case Number::int8: values = signed8(bytes + at); break;
        default: values = unsigned8(bytes + at); break;
      }
      values.store(to + i);
    }
#if defined(__AVX512F__)
    if (i < count) {
      const auto mask = static_cast<__mmask16>((1u << (count - i)) - 1);
      some(from, first + i, mask).store(to + i);  // padded with zeros, because masked stores are slow to read again
      i = count;
    }
#endif
  }
  for (; i < count; ++i) to[i] = number(from, first + i * step, otherwise);
}

// ------------------------------------------------------------------------------------------------------------- decoding

// The numbers of blocks of 16 bytes (more for 16 and 32-bit floats), minus a zero point.
template <Kind kind>
struct Decoder {
  static constexpr bool small = bits(kind) < 8;
  struct Nothing {};
  using Entries = std::conditional_t<small, Table, Nothing>;

  Entries all, entries;
  const float* table;
  Floats zero;

  ALWAYS void init(const Weights& weights) {
    table = weights.table;
    zero = Floats::zero();
    if constexpr (small) entries = all = Table::load(weights.table);
  }
  ALWAYS void set_zero(float x) {
    if constexpr (small) {
      entries = all.less(x);
    } else {
      zero = Floats::all(x);
    }
  }
  template <bool centred = true>  // whether there are zero points
  ALWAYS Floats get(const std::uint8_t* block, int phase, int part) const {
    constexpr int bytes = bits(kind) > 8 ? bits(kind) / 8 : 1;
    block += part * Floats::size * bytes;
    if constexpr (small) {
      return entries.look_up(block, phase * bits(kind));
    } else if constexpr (centred) {
      return raw(block) - zero;
    } else {
      return raw(block);
    }
  }
  ALWAYS Floats raw(const std::uint8_t* block) const {
    if constexpr (kind == Kind::unsigned8) return unsigned8(block);
    if constexpr (kind == Kind::signed8) return signed8(block);
    if constexpr (kind == Kind::float8e4m3) return float8e4m3(block);
    if constexpr (kind == Kind::float8e5m2) return float8e5m2(block);
    if constexpr (kind == Kind::float16) return float16(block);
    if constexpr (kind == Kind::bfloat16) return bfloat16(block);
    if constexpr (kind == Kind::float32) return Floats::load(reinterpret_cast<const float*>(block));
    if constexpr (kind == Kind::table8) return looked_up(table, block);
    return Floats::zero();
  }
};

constexpr std::size_t block_bytes = 64;  // of the widest kind

// Copies codes from any bit on, padded to a block.
inline void copy_codes(const Weights& weights, std::int64_t element, std::int64_t count, std::uint8_t* to) {
  const int width = bits(weights.kind);
  std::memset(to, weights.padding, block_bytes);
  if (width >= 8 || element * width % 8 == 0) {
    std::int64_t whole = count * width / 8;
    const std::uint8_t* from = weights.codes + element * width / 8;
    std::memcpy(to, from, static_cast<std::size_t>(whole));
    if (const std::int64_t rest = count * width % 8; rest != 0) {
      const int mask = (1 << rest) - 1;
      to[whole] = static_cast<std::uint8_t>((from[whole] & mask) | (weights.padding & ~mask));
    }
    return;
  }
  const int mask = (1 << width) - 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = (element + i) * width, at = i * width;
    const int code = weights.codes[from / 8] >> from % 8 & mask;
    const int place = static_cast<int>(at % 8);
    to[at / 8] = static_cast<std::uint8_t>((to[at / 8] & ~(mask << place)) | code << place);
  }
}

// A block, in place if it is whole and starts at a byte boundary.
template <Kind kind>
ALWAYS const std::uint8_t* block_at(const Weights& weights, std::int64_t element, std::int64_t count, std::uint8_t* buffer) {
  if (count == block_elements(kind) && (bits(kind) >= 8 || element * bits(kind) % 8 == 0)) {
    return weights.codes + element * bits(kind) / 8;
  }
  copy_codes(weights, element, count, buffer);
  return buffer;
}

ALWAYS std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

constexpr std::int64_t fetched = 64;  // groups whose numbers are loaded at once
constexpr std::int64_t ahead = 2048;  // prefetch distance in bytes

constexpr int together = 16;  // columns whose numbers are loaded and whose sums are reduced at once

// The scales and zero points of some columns, by group.
class GroupNumbers {
 public:
  GroupNumbers(const Weights& weights, std::int64_t column, std::int64_t count) : weights_(weights), column_(column) {
    if (weights.groups > fetched) return;
    fetch_columns(weights.scales, count, 1.0f, scale);
    fetch_columns(weights.zero_points, count, 0.0f, zero);
  }

  // Loads the numbers of `count` groups of a column, at most `fetched`; returns their position in `scale` and `zero`.
  ALWAYS std::int64_t of(std::int64_t c, std::int64_t first, std::int64_t count) {
    if (weights_.groups <= fetched) return c * weights_.groups;
    const Matrix &scales = weights_.scales, &zeros = weights_.zero_points;
    const std::int64_t at = column_ + c;
    fetch(scales, at * scales.column_step + first * scales.group_step, scales.group_step, count, 1.0f, scale);
    fetch(zeros, at * zeros.column_step + first * zeros.group_step, zeros.group_step, count, 0.0f, zero);
    return 0;
  }

  float scale[together * fetched + 16], zero[together * fetched + 16];

 private:
  ALWAYS void fetch_columns(const Matrix& from, std::int64_t count, float otherwise, float* to) const {
    const std::int64_t groups = weights_.groups;
    if (from.column_step == groups && (from.group_step == 1 || groups == 1)) {
      return fetch(from, column_ * groups, 1, count * groups, otherwise, to);
    }
    for (std::int64_t c = 0; c < count; ++c, to += groups) {
      fetch(from, (column_ + c) * from.column_step, from.group_step, groups, otherwise, to);
    }
  }

  const Weights& weights_;
  const std::int64_t column_;
};

// Multiplies each row of arranged numbers by columns, one column after another, so that memory is read sequentially.
template <Kind kind, bool centred>
void multiply_columns(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                      std::int64_t column, std::int64_t count) {
  constexpr std::int64_t block = block_elements(kind);
  const std::int64_t depth = arranged_depth(weights), stride = weights.depth * bits(kind) / 8;
  // Whether columns and groups start at byte boundaries.
  const bool in_place = bits(kind) >= 8 || (weights.depth * bits(kind) % 8 == 0 && weights.group * bits(kind) % 8 == 0);
  Decoder<kind> decoder;
  decoder.init(weights);
  GroupNumbers numbers(weights, column, count);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < count; ++c) {
      const float* from = a + row * depth;
      Floats sum = Floats::zero();
      for (std::int64_t first = 0; first < weights.groups; first += fetched) {
        const std::int64_t some_groups = least(fetched, weights.groups - first), at = numbers.of(c, first, some_groups);
        for (std::int64_t g = 0; g < some_groups; ++g) {
          std::int64_t element = (first + g) * weights.group;
          const std::int64_t end = least(element + weights.group, weights.depth);
          if constexpr (centred) decoder.set_zero(numbers.zero[at + g]);
          Floats part = Floats::zero(), other = Floats::zero();  // two, because an addition waits for the previous one
          const auto add_block = [&](const std::uint8_t* codes, Floats& sum_of) ALWAYS_LAMBDA {
            for (int phase = 0; phase < phases(kind); ++phase) {
              for (int p = 0; p < parts; ++p) {
                const Floats values = Floats::load(from + phase * 16 + p * Floats::size);
                sum_of = multiply_add(decoder.template get<centred>(codes, phase, p), values, sum_of);
              }
            }
            from += block;
          };
          if (in_place) {
            constexpr std::int64_t bytes = block * bits(kind) / 8;
            const std::uint8_t* codes = weights.codes + (column + c) * stride + element * bits(kind) / 8;
            for (; element + 2 * block <= end; element += 2 * block, codes += 2 * bytes) {
              PREFETCH(codes + ahead);
              add_block(codes, part);
              add_block(codes + bytes, other);
            }
            for (; element + block <= end; element += block, codes += bytes) add_block(codes, part);
          }
          for (; element < end; element += block) {
            alignas(float) std::uint8_t buffer[block_bytes];
            copy_codes(weights, (column + c) * weights.depth + element, least(block, end - element), buffer);
            add_block(buffer, part);
          }
          sum = multiply_add(part + other, Floats::all(numbers.scale[at + g]), sum);
        }
      }
      to[row * width + column + c] = sum.sum();
    }
  }
}

// ------------------------------------------------------------------------------------------------- lines of 4-bit codes

// The codes of a line, for few rows. Each double word has eight consecutive ones, so that no byte is widened.
constexpr std::int64_t line_codes = 8 * Floats::size;

#if !defined(__AVX512F__) && defined(__AVX2__)
// The zero point of codes as unsigned integers: 0 if they are unsigned, 8 if they are in two's complement; -1 if they are not
// integers.
inline int origin(const float* table) {
  bool is_unsigned = true, is_signed = true;
  for (int i = 0; i < 16; ++i) {
    is_unsigned = is_unsigned && table[i] == static_cast<float>(i);
    is_signed = is_signed && table[i] == static_cast<float>(i < 8 ? i : i - 16);
  }
  return is_unsigned ? 0 : is_signed ? 8 : -1;
}
#endif

// Whether the weights for few rows are read in lines.
inline bool in_lines(const Weights& weights) {
#if defined(__AVX2__)
  if (weights.kind != Kind::table4 || !weights.transposed || weights.depth % line_codes != 0 || weights.group % line_codes != 0) return false;
#if !defined(__AVX512F__)
  if (origin(weights.table) < 0) return false;  // a table of 16 numbers does not fit a register
#endif
  return true;
#else
  (void)weights;
  return false;
#endif
}

#if !defined(__AVX512F__) && defined(__AVX2__)
// The factor for a code that is not shifted to the lowest bits of its half of a double word.
ALWAYS float place(std::int64_t phase) { return static_cast<float>(1 << (4 * (phase % 4))); }
#else
ALWAYS float place(std::int64_t) { return 1.0f; }
#endif

void arrange(const Weights& weights, const float* a, float* to) {
  if (in_lines(weights)) {
    constexpr std::int64_t lanes = Floats::size;
    for (std::int64_t at = 0; at < weights.depth; ++at) {
      const std::int64_t lane = at % line_codes / 8, phase = at % 8;
      to[at / line_codes * line_codes + phase * lanes + lane] = a[at] / place(phase);
    }
    return;
  }
  const std::int64_t apart = phases(weights.kind), block = 16 * apart;
  for (std::int64_t begin = 0; begin < weights.depth;) {
    const std::int64_t end = least((begin / weights.group + 1) * weights.group, weights.depth);
    for (; begin < end; begin += block, to += block) {
      for (std::int64_t phase = 0; phase < apart; ++phase) {
        for (std::int64_t lane = 0; lane < 16; ++lane) {
          const std::int64_t at = begin + lane * apart + phase;
          to[phase * 16 + lane] = at < end ? a[at] : 0.0f;
        }
      }
    }
    begin = end;
  }
}

#if defined(__AVX512F__)
// Reduces the lanes of each vector.
ALWAYS void add_up(const Floats* sums, std::int64_t count, float* to) {
  float all[together * 16];
  for (std::int64_t c = 0; c < count; ++c) sums[c].store(all + c * 16);
  Floats columns[16];
  transpose(all, 16, columns);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) columns[i] = columns[i] + columns[i + width];
  }
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), columns[0].lanes);
}

void multiply_lines(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                    std::int64_t column, std::int64_t count) {
  const Table all = Table::load(weights.table);
  const std::int64_t depth = arranged_depth(weights);
  GroupNumbers numbers(weights, column, count);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint8_t* codes = weights.codes + column * weights.depth / 2;
    Floats sums[together];
    for (std::int64_t c = 0; c < count; ++c) {
      const float* from = a + row * depth;
      sums[c] = Floats::zero();
      for (std::int64_t first = 0; first < weights.groups; first += fetched) {
        const std::int64_t some_groups = least(fetched, weights.groups - first), at = numbers.of(c, first, some_groups);
        for (std::int64_t g = 0; g < some_groups; ++g) {
          const std::int64_t begin = (first + g) * weights.group, end = least(begin + weights.group, weights.depth);
          const Table entries = all.less(numbers.zero[at + g]);
          Floats part[2] = {Floats::zero(), Floats::zero()};
          for (std::int64_t element = begin; element < end; element += 128, from += 128, codes += 64) {
            const __m512i all_codes = _mm512_loadu_si512(codes);
            PREFETCH(codes + ahead);
            UNROLL(8)
            for (int i = 0; i < 8; ++i) {
              const __m512i shifted = _mm512_srli_epi32(all_codes, static_cast<unsigned>(4 * i));
              const Floats weight = {_mm512_permutexvar_ps(shifted, entries.entries)};
              part[i % 2] = multiply_add(weight, Floats::load(from + 16 * i), part[i % 2]);
            }
          }
          sums[c] = multiply_add(part[0] + part[1], Floats::all(numbers.scale[at + g]), sums[c]);
        }
      }
    }
    add_up(sums, count, to + row * width + column);
  }
}
#elif defined(__AVX2__)
// Codes are integers. Each code is masked in place, so most codes need no shift; `arrange` divides the activations
// accordingly.
void multiply_lines(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                    std::int64_t column, std::int64_t count) {
  const int first_code = origin(weights.table);
  const __m256i flipped = _mm256_set1_epi8(first_code == 0 ? 0 : static_cast<char>(0x88));
  const std::int64_t depth = arranged_depth(weights);
  GroupNumbers numbers(weights, column, count);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint8_t* codes = weights.codes + column * weights.depth / 2;
    for (std::int64_t c = 0; c < count; ++c) {
      const float* from = a + row * depth;
      Floats sum = Floats::zero();
      for (std::int64_t first = 0; first < weights.groups; first += fetched) {
        const std::int64_t some_groups = least(fetched, weights.groups - first), at = numbers.of(c, first, some_groups);
        for (std::int64_t g = 0; g < some_groups; ++g) {
          const std::int64_t begin = (first + g) * weights.group, end = least(begin + weights.group, weights.depth);
          Floats zeros[4], part[4];  // several sums, because an addition waits for the previous one
          UNROLL(4)
          for (int i = 0; i < 4; ++i) {
            zeros[i] = Floats::all((numbers.zero[at + g] + static_cast<float>(first_code)) * place(i));
            part[i] = Floats::zero();
          }
          for (std::int64_t element = begin; element < end; element += line_codes, from += line_codes, codes += line_codes / 2) {
            const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
            const __m256i halves[2] = {_mm256_xor_si256(all, flipped), _mm256_srli_epi32(_mm256_xor_si256(all, flipped), 16)};
            PREFETCH(codes + ahead);
            UNROLL(8)
            for (int i = 0; i < 8; ++i) {
              const __m256i code = _mm256_and_si256(halves[i / 4], _mm256_set1_epi32(15 << (4 * (i % 4))));
              const Floats weight = Floats{_mm256_cvtepi32_ps(code)} - zeros[i % 4];
              part[i % 4] = multiply_add(weight, Floats::load(from + i * Floats::size), part[i % 4]);
            }
          }
          sum = multiply_add((part[0] + part[1]) + (part[2] + part[3]), Floats::all(numbers.scale[at + g]), sum);
        }
      }
      to[row * width + column + c] = sum.sum();
    }
  }
}
#endif

// --------------------------------------------------------------------------------------------------- weights in float32

// Multiplies rows, `step` apart, by columns that begin at b, b + b_step, ... The columns of the result are `apart` apart.
template <int rows, int columns>
ALWAYS void multiply_vectors(const float* a, std::int64_t step, const float* b, std::int64_t b_step, std::int64_t depth,
                             float* to, std::int64_t width, std::int64_t apart) {
  Floats sums[rows][columns];
  for (int i = 0; i < rows; ++i) {
    for (int c = 0; c < columns; ++c) sums[i][c] = Floats::zero();
  }
  Floats weights[columns];
  const auto add = [&](std::int64_t k) ALWAYS_LAMBDA {
    UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const Floats values = Floats::load(a + i * step + k);
      UNROLL(16)
      for (int c = 0; c < columns; ++c) sums[i][c] = multiply_add(weights[c], values, sums[i][c]);
    }
  };
  std::int64_t k = 0;
  for (; k + Floats::size <= depth; k += Floats::size) {
    UNROLL(16)
    for (int c = 0; c < columns; ++c) weights[c] = Floats::load(b + c * b_step + k);
    add(k);
  }
  if (k < depth) {
    for (int c = 0; c < columns; ++c) weights[c] = Floats::part(b + c * b_step + k, 0, depth - k);
    add(k);
  }
  for (int i = 0; i < rows; ++i) {
    for (int c = 0; c < columns; ++c) to[i * width + c * apart] = sums[i][c].sum();
  }
}

// For all rows, in groups whose sums fit the registers.
template <int columns>
ALWAYS void multiply_rows(const float* a, std::int64_t step, std::int64_t rows, const float* b, std::int64_t b_step,
                          std::int64_t depth, float* to, std::int64_t width, std::int64_t apart) {
  constexpr int most = Floats::size == 16 ? 4 : 2;
  for (; rows >= most; rows -= most, a += most * step, to += most * width) {
    multiply_vectors<most, columns>(a, step, b, b_step, depth, to, width, apart);
  }
  for (; rows > 0; --rows, a += step, to += width) {
    multiply_vectors<1, columns>(a, step, b, b_step, depth, to, width, apart);
  }
}

// Several consecutive parts of the matrix are read at once, because the processor prefetches memory that is read sequentially
// from few places.
void multiply_floats(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                     std::int64_t first, std::int64_t last) {
  constexpr int streams = 4;
  const std::int64_t step = arranged_depth(weights), depth = weights.depth, part = (last - first) / streams;
  const auto* const codes = reinterpret_cast<const float*>(weights.codes);
  for (std::int64_t column = first; column < first + part; ++column) {
    multiply_rows<streams>(a, step, rows, codes + column * depth, part * depth, depth, to + column, width, part);
  }
  for (std::int64_t column = first + streams * part; column < last; ++column) {
    multiply_rows<1>(a, step, rows, codes + column * depth, 0, depth, to + column, width, 0);
  }
}

// Whether weights are used as they are stored.
inline bool plain_floats(const Weights& weights) {
  return weights.kind == Kind::float32 && weights.scales.type == Number::none && weights.zero_points.type == Number::none;
}

template <class Body>
ALWAYS void each_some(std::int64_t first, std::int64_t last, const Body& body) {
  for (; first < last; first += together) body(first, least(together, last - first));
}

template <Kind kind>
void multiply_few_of(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                     std::int64_t first, std::int64_t last) {
#if defined(__AVX2__)
  if constexpr (kind == Kind::table4) {
    if (in_lines(weights)) {
      return each_some(first, last, [&](std::int64_t column, std::int64_t count) {
        multiply_lines(weights, a, rows, to, width, column, count);
      });
    }
  }
#endif
  if (plain_floats(weights)) return multiply_floats(weights, a, rows, to, width, first, last);
  const bool centred = weights.zero_points.type != Number::none;
  each_some(first, last, [&](std::int64_t column, std::int64_t count) {
    (centred ? multiply_columns<kind, true> : multiply_columns<kind, false>)(weights, a, rows, to, width, column, count);
  });
}

// -------------------------------------------------------------------------------------------------------------- panels

#if defined(__AVX512F__)
// Transposes `depth` 16-bit floats, a multiple of 32, of 16 columns that are `step` apart, moving pairs like floats.
template <Kind kind>
ALWAYS void fill_halves(const std::uint8_t* codes, std::int64_t step, std::int64_t depth, float* to) {
  for (std::int64_t k = 0; k < depth; k += 32) {
    for (int c = 16; c < 32; ++c) PREFETCH(codes + 2 * (c * step + k));  // the following columns
    Floats pairs[16];
    transpose(reinterpret_cast<const float*>(codes + 2 * k), step / 2, pairs);
    for (int i = 0; i < 16; ++i, to += 2 * panel) {
      const __m512i pair = _mm512_castps_si512(pairs[i].lanes);
      if constexpr (kind == Kind::float16) {
        _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pair)));
        _mm512_storeu_ps(to + panel, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pair, 16))));
      } else {
        _mm512_storeu_si512(to, _mm512_slli_epi32(pair, 16));
        _mm512_storeu_si512(to + panel, _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
      }
    }
  }
}
#endif

// Transposes `depth` floats, a multiple of `transposed`, of as many columns that are `step` apart.
ALWAYS void fill_floats(const float* from, std::int64_t step, std::int64_t depth, float* to) {
  for (std::int64_t k = 0; k < depth; k += transposed) {
    for (int c = transposed; c < 2 * transposed; ++c) PREFETCH(from + c * step + k);  // the following columns
    Floats rows[transposed];
    transpose(from + k, step, rows);
    UNROLL(16)
    for (int i = 0; i < transposed; ++i, to += panel) rows[i].store(to);
  }
}

#if !defined(__AVX512F__) && defined(__AVX2__)
// Transposes 16 bytes of 16 columns that are `step` apart.
ALWAYS void transpose_bytes(const std::uint8_t* from, std::int64_t step, __m128i* to) {
  __m128i all[16];
  UNROLL(16)
  for (int i = 0; i < 16; ++i) all[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * step));
  UNROLL(2)
  for (int round = 0; round < 2; ++round) {  // each moves one bit of the numbers of columns, so that four exchange all
    UNROLL(8)
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = _mm_unpacklo_epi8(all[i], all[i + 8]);
      to[2 * i + 1] = _mm_unpackhi_epi8(all[i], all[i + 8]);
    }
    UNROLL(8)
    for (int i = 0; i < 8; ++i) {
      all[2 * i] = _mm_unpacklo_epi8(to[i], to[i + 8]);
      all[2 * i + 1] = _mm_unpackhi_epi8(to[i], to[i + 8]);
    }
  }
  UNROLL(16)
  for (int i = 0; i < 16; ++i) to[i] = all[i];
}

// The scales and zero points of a panel's columns, and its rows.
struct PanelRows {
  Floats scale[2], zero[2];
  float* to;

  template <bool is_signed>
  ALWAYS void store(__m128i codes) {
    UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      const __m128i half = i == 0 ? codes : _mm_srli_si128(codes, 8);
      const Floats number = {_mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(half) : _mm256_cvtepu8_epi32(half))};
      ((number - zero[i]) * scale[i]).store(to + i * Floats::size);
    }
    to += panel;
  }
};

// Whether `fill_integers` decodes a panel of `count` columns.
template <Kind kind>
ALWAYS bool has_integers(const Weights& weights, std::int64_t count) {
  if constexpr (kind == Kind::table4 || kind == Kind::unsigned8 || kind == Kind::signed8) {
    if (kind == Kind::table4 && origin(weights.table) < 0) return false;
    return count == panel && weights.depth % block_elements(kind) == 0 && weights.group % block_elements(kind) == 0;
  }
  return false;
}

// Like `fill_panel`, for integers: columns are transposed before they become floats.
template <Kind kind>
void fill_integers(const Weights& weights, std::int64_t column, std::int64_t begin, std::int64_t end, float* to) {
  static_assert(panel == 16);
  constexpr bool small = bits(kind) == 4;
  const std::int64_t stride = weights.depth * bits(kind) / 8;
  const int first_code = small ? origin(weights.table) : 0;
  const __m128i low = _mm_set1_epi8(15), flipped = _mm_set1_epi8(static_cast<char>(first_code));
  const Matrix &scales = weights.scales, &zeros = weights.zero_points;
  PanelRows rows{};
  rows.to = to;
  for (std::int64_t element = begin; element < end;) {
    const std::int64_t g = element / weights.group, group_end = least((g + 1) * weights.group, end);
    float scale[panel], zero[panel];
    for (std::int64_t c = 0; c < panel; ++c) {
      scale[c] = number(scales, (column + c) * scales.column_step + g * scales.group_step, 1.0f);
      zero[c] = number(zeros, (column + c) * zeros.column_step + g * zeros.group_step, 0.0f) + static_cast<float>(first_code);
    }
    UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      rows.scale[i] = Floats::load(scale + i * Floats::size);
      rows.zero[i] = Floats::load(zero + i * Floats::size);
    }
    for (; element < group_end; element += block_elements(kind)) {
      __m128i codes[16];
      transpose_bytes(weights.codes + column * stride + element * bits(kind) / 8, stride, codes);
      for (const __m128i code : codes) {
        if constexpr (small) {
          rows.store<false>(_mm_xor_si128(_mm_and_si128(code, low), flipped));
          rows.store<false>(_mm_xor_si128(_mm_and_si128(_mm_srli_epi16(code, 4), low), flipped));
        } else {
          rows.store<kind == Kind::signed8>(code);
        }
      }
    }
  }
}
#endif

// Decodes elements [begin, end) of `count` columns to [end - begin, panel]; begin and end are at block boundaries, or end is
// the depth.
template <Kind kind>
void fill_panel(const Weights& weights, std::int64_t column, std::int64_t count, std::int64_t begin, std::int64_t end,
                float* decoded, float* to) {
#if !defined(__AVX512F__) && defined(__AVX2__)
  if (has_integers<kind>(weights, count)) return fill_integers<kind>(weights, column, begin, end, to);
#endif
  constexpr std::int64_t block = block_elements(kind);
  constexpr std::int64_t longest = chunk + 16;  // columns a power of two apart would share few cache sets
  const Matrix &scales = weights.scales, &zeros = weights.zero_points;
  Decoder<kind> decoder;
  decoder.init(weights);
  for (std::int64_t some = 0; some < panel; some += transposed) {
    if constexpr (kind == Kind::float32) {
      if (plain_floats(weights) && (end - begin) % transposed == 0 && some + transposed <= count) {
        fill_floats(reinterpret_cast<const float*>(weights.codes) + (column + some) * weights.depth + begin, weights.depth,
                    end - begin, to + some);
        continue;
      }
    }
#if defined(__AVX512F__)
    if constexpr (kind == Kind::float16 || kind == Kind::bfloat16) {
      const bool plain = scales.type == Number::none && zeros.type == Number::none;
      if (plain && weights.depth % 32 == 0 && (end - begin) % 32 == 0 && some + transposed <= count) {
        const std::uint8_t* codes = weights.codes + 2 * ((column + some) * weights.depth + begin);
        fill_halves<kind>(codes, weights.depth, end - begin, to + some);
        continue;
      }
    }
#endif
    for (std::int64_t c = some; c < some + transposed; ++c) {
      float* decoded_column = decoded + (c - some) * longest;
      if (c >= count) {  // its sums are unused, but must be finite numbers
        std::memset(decoded_column, 0, longest * sizeof(float));
        continue;
      }
      for (std::int64_t element = begin; element < end;) {
        const std::int64_t g = element / weights.group, at = column + c;
        const std::int64_t group_end = least(least((g + 1) * weights.group, weights.depth), end);
        const Floats scale = Floats::all(number(scales, at * scales.column_step + g * scales.group_step, 1.0f));
        decoder.set_zero(number(zeros, at * zeros.column_step + g * zeros.group_step, 0.0f));
        for (; element < group_end; element += block) {
          alignas(float) std::uint8_t buffer[block_bytes];
          const std::uint8_t* codes =
              block_at<kind>(weights, at * weights.depth + element, least(block, group_end - element), buffer);
          for (int phase = 0; phase < phases(kind); ++phase) {
            for (int p = 0; p < parts; ++p, decoded_column += Floats::size) {
              (decoder.get(codes, phase, p) * scale).store(decoded_column);
            }
          }
        }
        element = group_end;
      }
    }
    const float* blocks = decoded;
    for (std::int64_t element = begin; element < end;) {
      const std::int64_t g = element / weights.group;
      const std::int64_t group_end = least(least((g + 1) * weights.group, weights.depth), end);
      for (; element < group_end; element += block) {
        const bool whole = element + block <= group_end;
        for (int phase = 0; phase < phases(kind); ++phase) {
          for (int lane = 0; lane < 16; lane += transposed, blocks += transposed) {
            Floats rows[transposed];
            transpose(blocks, longest, rows);
            const std::int64_t first = element + lane * phases(kind) + phase;
            float* const row = to + (first - begin) * panel + some;
            if (whole) {
              UNROLL(16)
              for (int i = 0; i < transposed; ++i) rows[i].store(row + i * phases(kind) * panel);
            } else {
              for (int i = 0; i < transposed && first + i * phases(kind) < group_end; ++i) {
                rows[i].store(row + i * phases(kind) * panel);
              }
            }
          }
        }
      }
      element = group_end;
    }
  }
}

// The same for weights that are not transposed: a row of the matrix becomes a row of the panel.
template <Kind kind>
void copy_panel(const Weights& weights, std::int64_t column, std::int64_t count, std::int64_t begin, std::int64_t end,
                float* to) {
  constexpr std::int64_t block = block_elements(kind);
  const Matrix &scales = weights.scales, &zeros = weights.zero_points;
  float scale[panel] = {}, zero[panel] = {};
  Decoder<kind> decoder;
  decoder.init(weights);
  for (std::int64_t element = begin; element < end; ++element, to += panel) {
    const std::int64_t g = element / weights.group;
    if (element == begin || element % weights.group == 0) {
      fetch(scales, column * scales.column_step + g * scales.group_step, scales.column_step, count, 1.0f, scale);
      fetch(zeros, column * zeros.column_step + g * zeros.group_step, zeros.column_step, count, 0.0f, zero);
    }
    for (std::int64_t c = 0; c < count; c += block) {
      const std::int64_t some = least(block, count - c);
      alignas(float) std::uint8_t buffer[block_bytes];
      const std::uint8_t* codes = block_at<kind>(weights, element * weights.columns + column + c, some, buffer);
      float in_order[block];
      for (int phase = 0; phase < phases(kind); ++phase) {
        float lanes[16];
        for (int p = 0; p < parts; ++p) decoder.get(codes, phase, p).store(lanes + p * Floats::size);
        for (int lane = 0; lane < 16; ++lane) in_order[lane * phases(kind) + phase] = lanes[lane];
      }
      for (std::int64_t i = 0; i < some; ++i) to[c + i] = (in_order[i] - zero[c + i]) * scale[c + i];
    }
    for (std::int64_t c = count; c < panel; ++c) to[c] = 0.0f;
  }
}

// The accumulation of sums: they are added to previous ones, except those of the first chunk. The last chunk adds the bias
// and applies the function.
struct Sum {
  bool add;
  const float* bias;  // of the first column; null for none, and if further chunks follow
  bool gelu;
};

// For elements [begin, end) of the depth.
ALWAYS Sum sum_of(const Weights& weights, const After& after, std::int64_t first, std::int64_t begin, std::int64_t end) {
  const bool last = end == weights.depth;
  return {begin > 0, last && after.bias != nullptr ? after.bias + first : nullptr, last && after.gelu};
}

// Stores a row of a panel with `count` valid columns.
ALWAYS void store_row(const Floats* sums, const Sum& sum, float* to, std::int64_t count) {
  if (count == panel) {
    for (int j = 0; j < 2; ++j) {
      Floats all = sums[j];
      if (sum.add) all = all + Floats::load(to + j * Floats::size);
      if (sum.bias != nullptr) all = all + Floats::load(sum.bias + j * Floats::size);
      if (sum.gelu) all = gelu(all);
      all.store(to + j * Floats::size);
    }
    return;
  }
  float all[panel];
  for (int j = 0; j < 2; ++j) sums[j].store(all + j * Floats::size);
  for (std::int64_t c = 0; c < count; ++c) {
    if (sum.add) all[c] = to[c] + all[c];
    if (sum.bias != nullptr) all[c] += sum.bias[c];
  }
  for (int j = 0; j < 2 && sum.gelu; ++j) gelu(Floats::load(all + j * Floats::size)).store(all + j * Floats::size);
  for (std::int64_t c = 0; c < count; ++c) to[c] = all[c];
}

// Adds the bias and applies the function to columns [first, last) of stored sums.
void finish(const After& after, float* to, std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t last) {
  if (after.bias == nullptr && !after.gelu) return;
  for (; rows > 0; --rows, to += width) {
    for (std::int64_t c = first; c < last; c += panel) {
      const std::int64_t count = least(panel, last - c);
      float all[panel] = {};
      for (std::int64_t i = 0; i < count; ++i) all[i] = to[c + i];
      const Floats sums[2] = {Floats::load(all), Floats::load(all + Floats::size)};
      store_row(sums, {false, after.bias == nullptr ? nullptr : after.bias + c, after.gelu}, to + c, count);
    }
  }
}

// Memory that is read next. It is prefetched in small parts during other work.
struct Ahead {
  const float* at;
  const float* end;
};
constexpr std::int64_t line = 16;           // floats of a cache line
constexpr std::int64_t ahead_every = 2;     // elements of the depth per prefetched cache line

// Multiplies `rows` rows of a, `step` apart, by a panel.
template <int rows>
ALWAYS void multiply_tile(const float* a, std::int64_t step, const float* b, std::int64_t depth, const Sum& sum, float* to,
                          std::int64_t width, std::int64_t count, Ahead& ahead) {
  Floats sums[rows][2];
  for (int i = 0; i < rows; ++i) {
    PREFETCH(to + i * width);
    PREFETCH(to + i * width + Floats::size);
    sums[i][0] = sums[i][1] = Floats::zero();
  }
  const auto add = [&](std::int64_t k) ALWAYS_LAMBDA {
    const Floats left = Floats::load(b), right = Floats::load(b + Floats::size);
    UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const Floats number = Floats::all(a[i * step + k]);
      sums[i][0] = multiply_add(number, left, sums[i][0]);
      sums[i][1] = multiply_add(number, right, sums[i][1]);
    }
    b += panel;
  };
  const float* next = ahead.at;
  const std::int64_t next_step = next < ahead.end ? line : 0;
  std::int64_t k = 0;
  for (; k + ahead_every <= depth; k += ahead_every, next += next_step) {
    PREFETCH_FAR(next);
    UNROLL(4)
    for (int j = 0; j < ahead_every; ++j) add(k + j);
  }
  for (; k < depth; ++k) add(k);
  ahead.at = next;
  for (int i = 0; i < rows; ++i) store_row(sums[i], sum, to + i * width, count);
}

// The same for several panels, which are `apart` floats apart, so that a tile's rows stay in the first-level cache.
template <int rows>
ALWAYS void multiply_tiles(const float* a, std::int64_t step, const float* b, std::int64_t apart, std::int64_t depth,
                           Sum sum, float* to, std::int64_t width, std::int64_t count, Ahead& ahead) {
  for (std::int64_t c = 0; c < count; c += panel, b += apart) {
    multiply_tile<rows>(a, step, b, depth, sum, to + c, width, least(panel, count - c), ahead);
    if (sum.bias != nullptr) sum.bias += panel;
  }
}

// For fewer rows than a tile has.
template <int rows>
void multiply_rest(const float* a, std::int64_t left, std::int64_t step, const float* b, std::int64_t apart,
                   std::int64_t depth, const Sum& sum, float* to, std::int64_t width, std::int64_t count, Ahead& ahead) {
  if (left == rows) return multiply_tiles<rows>(a, step, b, apart, depth, sum, to, width, count, ahead);
  if constexpr (rows > 1) multiply_rest<rows - 1>(a, left, step, b, apart, depth, sum, to, width, count, ahead);
}

void multiply_panels(const float* a, std::int64_t rows, std::int64_t step, const float* b, std::int64_t apart,
                     std::int64_t depth, const Sum& sum, float* to, std::int64_t width, std::int64_t count, Ahead ahead) {
  // With so few remaining rows, each addition would wait for the previous one. These rows and the last tile are therefore
  // divided evenly.
  constexpr std::int64_t few = tile_rows / (Floats::size == 16 ? 3 : 2);
  const std::int64_t rest = rows % tile_rows, shared = rest > 0 && rest < few && rows > tile_rows ? tile_rows : 0;
  std::int64_t i = 0;
  for (; i < rows - rest - shared; i += tile_rows) {
    multiply_tiles<tile_rows>(a + i * step, step, b, apart, depth, sum, to + i * width, width, count, ahead);
  }
  while (i < rows) {
    const std::int64_t left = rows - i, some = left > tile_rows ? (left + 1) / 2 : left;
    multiply_rest<tile_rows - 1>(a + i * step, some, step, b, apart, depth, sum, to + i * width, width, count, ahead);
    i += some;
  }
}

// The end of the chunk that begins at a group boundary, or at a block boundary in a large group.
inline std::int64_t chunk_end(const Weights& weights, std::int64_t begin, std::int64_t block) {
  if (!weights.transposed) return begin + chunk;
  const std::int64_t padded = (weights.group + block - 1) / block * block;
  if (padded <= chunk) return begin + chunk / padded * weights.group;
  return least(begin + chunk, (begin / weights.group + 1) * weights.group);
}

// One panel's part of a chunk.
template <Kind kind>
void decode_panel(const Weights& weights, std::int64_t column, std::int64_t count, std::int64_t begin, std::int64_t end,
                  float* decoded, float* to) {
  (weights.transposed ? fill_panel<kind>(weights, column, count, begin, end, decoded, to)
                      : copy_panel<kind>(weights, column, count, begin, end, to));
}

template <Kind kind>
void multiply_of(const Weights& weights, const float* a, std::int64_t step, std::int64_t rows, const After& after, float* to,
                 std::int64_t width, std::int64_t first, std::int64_t last, void* scratch) {
  float* filled = static_cast<float*>(scratch);
  float* decoded = filled + most_panels * panel_floats;
  for (std::int64_t begin = 0; begin < weights.depth;) {
    const std::int64_t end = least(chunk_end(weights, begin, block_elements(kind)), weights.depth);
    float* one = filled;
    for (std::int64_t column = first; column < last; column += panel, one += panel_floats) {
      decode_panel<kind>(weights, column, least(panel, last - column), begin, end, decoded, one);
    }
    const Sum sum = sum_of(weights, after, first, begin, end);
    multiply_panels(a + begin, rows, step, filled, panel_floats, end - begin, sum, to + first, width, last - first, {filled, filled});
    begin = end;
  }
}

// ---------------------------------------------------------------------------------------------------------- kept panels

// The whole matrix by chunks, and each chunk by panels.

template <Kind kind>
void keep_of(const Weights& weights, std::int64_t first, std::int64_t last, float* to, void* scratch) {
  const std::int64_t columns = (weights.columns + panel - 1) / panel * panel;
  for (std::int64_t begin = 0; begin < weights.depth;) {
    const std::int64_t end = least(chunk_end(weights, begin, block_elements(kind)), weights.depth);
    for (std::int64_t column = first; column < last; column += panel) {
      float* one = to + begin * columns + column * (end - begin);
      decode_panel<kind>(weights, column, least(panel, last - column), begin, end, static_cast<float*>(scratch), one);
    }
    begin = end;
  }
}

void multiply_kept(const Weights& weights, const float* panels, const float* a, std::int64_t step, std::int64_t rows,
                   const After& after, float* to, std::int64_t width, std::int64_t first, std::int64_t last) {
  const std::int64_t columns = (weights.columns + panel - 1) / panel * panel, block = block_elements(weights.kind);
  const auto part = [&](std::int64_t begin, std::int64_t end, std::int64_t column) {
    return panels + begin * columns + column * (end - begin);
  };
  const auto end_of = [&](std::int64_t begin) { return least(chunk_end(weights, begin, block), weights.depth); };
  for (std::int64_t begin = 0; begin < weights.depth;) {
    const std::int64_t end = end_of(begin);
    // The next data to read: the next chunk of the same columns, or the first chunk of the next columns.
    const bool more = end < weights.depth;
    const std::int64_t next = more ? end : 0, next_end = end_of(next);
    const std::int64_t next_column = more ? first : last < weights.columns ? last : 0;
    const std::int64_t next_last = least(next_column + in_panels(last - first), columns);
    const Sum sum = sum_of(weights, after, first, begin, end);
    multiply_panels(a + begin, rows, step, part(begin, end, first), (end - begin) * panel, end - begin, sum, to + first, width,
                    last - first, {part(next, next_end, next_column), part(next, next_end, next_last)});
    begin = end;
  }
}

// ------------------------------------------------------------------------------------------------------ 8-bit activations

// Rounds half to even by adding a constant without fractional bits. In double, because a compiler may fuse a float product
// with the sum.
ALWAYS std::int32_t rounded(float x) {
  return static_cast<std::int32_t>((static_cast<double>(x) + 6755399441055744.0) - 6755399441055744.0);
}

// 127 divided by a smaller number overflows. Such blocks become zeros.
constexpr float least_largest = 3.75e-37f, greatest_largest = 3.4028235e38f;

// Quantizes a block of a row; returns its scale, the second factor of `sum` besides the sum of integers. The scale of a
// block with NaN or infinities is NaN.
ALWAYS float quantize_block(const float* a, std::int8_t* values, float* sum) {
#if defined(__AVX512F__)
  const __m512 left = _mm512_loadu_ps(a), right = _mm512_loadu_ps(a + 16);
  const __m512 greatest = _mm512_set1_ps(greatest_largest);
  const bool finite = (_mm512_cmp_ps_mask(_mm512_abs_ps(left), greatest, _CMP_LE_OQ) &
                       _mm512_cmp_ps_mask(_mm512_abs_ps(right), greatest, _CMP_LE_OQ)) == 0xFFFF;
  const float largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(left), _mm512_abs_ps(right)));
  const __m512 factor = _mm512_set1_ps(finite && largest >= least_largest ? 127.0f / largest : 0.0f);
  const __m512i low = _mm512_cvtps_epi32(_mm512_mul_ps(left, factor));
  const __m512i high = _mm512_cvtps_epi32(_mm512_mul_ps(right, factor));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values), _mm512_cvtepi32_epi8(low));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values + 16), _mm512_cvtepi32_epi8(high));
  const std::int32_t total = _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
#else
  float largest = 0.0f;
  int beyond = 0;
  for (std::int64_t i = 0; i < quantized_block; ++i) {
    const float magnitude = a[i] < 0.0f ? -a[i] : a[i];
    largest = magnitude > largest ? magnitude : largest;
    beyond |= !(magnitude <= greatest_largest);
  }
  const bool finite = beyond == 0;
  const float factor = finite && largest >= least_largest ? 127.0f / largest : 0.0f;
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < quantized_block; ++i) {
    const std::int32_t value = finite ? rounded(a[i] * factor) : 0;
    values[i] = static_cast<std::int8_t>(value);
    total += value;
  }
#endif
  const float scale = finite ? largest / 127.0f : std::numeric_limits<float>::quiet_NaN();
  *sum = scale * static_cast<float>(total);
  return scale;
}

// Quantizes one row.
void quantize(const float* a, std::int64_t depth, std::int64_t group, std::int8_t* values, float* scales, float* sums) {
  for (std::int64_t begin = 0; begin < depth;) {
    const std::int64_t end = least(begin + group, depth);
    float group_sum = 0.0f;
    for (; begin < end; begin += quantized_block, ++scales) {
      float sum;
      *scales = quantize_block(a + begin, values + begin, &sum);
      group_sum += sum;
    }
    *sums++ = group_sum;
  }
}

// The codes of a panel for 8-bit activations. Without VNNI, products of wide bytes take more instructions than those of 16-bit
// integers.
#if defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
#define SPECOPS_WORD_CODES
constexpr int tile_rows_words = Floats::size == 16 ? 12 : 4;
template <Kind kind>
using Code = std::conditional_t<bits(kind) == 8, std::int16_t, std::uint8_t>;
#else
constexpr int tile_rows_words = 0;
template <Kind kind>
using Code = std::uint8_t;
#endif

// Codes that are multiplied together.
template <class Code>
constexpr std::int64_t codes_together = 4 / sizeof(Code);

template <class Code>
ALWAYS void store_codes(const Block& block, Code* to) {
  if constexpr (sizeof(Code) == 1) {
    block.store(to);
  } else {
    std::uint8_t bytes[quantized_block];
    block.store(bytes);
    for (std::int64_t i = 0; i < quantized_block; ++i) to[i] = bytes[i];
  }
}

// The unsigned codes of elements [begin, end): [depth / codes_together, panel, codes_together].
template <Kind kind>
void fill_quantized(const Weights& weights, std::int64_t column, std::int64_t count, std::int64_t begin, std::int64_t end,
                    Code<kind>* unpacked, Code<kind>* to) {
  constexpr int width = bits(kind);
  constexpr std::int64_t longest = chunk + 64;
  const std::int64_t depth = end - begin, words = depth / codes_together<Code<kind>>;
  for (std::int64_t some = 0; some < panel; some += transposed) {
    for (std::int64_t c = some; c < some + transposed; ++c) {
      Code<kind>* row = unpacked + (c - some) * longest;
      if (c >= count) {
        std::memset(row, 0, chunk * sizeof(Code<kind>));
        continue;
      }
      const std::int64_t element = (column + c) * weights.depth + begin;
      const std::uint8_t* from = weights.codes + element * width / 8;
      for (std::int64_t i = 0; i < depth; i += quantized_block) {
        store_codes(Block::load<width>(from + i * width / 8, weights.flip), row + i);
      }
    }
    // Codes that are multiplied together are moved like a float. The buffer after the depth is undefined.
    for (std::int64_t word = 0; word < words; word += transposed) {
      Floats rows[transposed];
      transpose(reinterpret_cast<const float*>(unpacked) + word, longest / codes_together<Code<kind>>, rows);
      for (int i = 0; i < transposed && word + i < words; ++i) {
        rows[i].store(reinterpret_cast<float*>(to) + (word + i) * panel + some);
      }
    }
  }
}

// Adds the products of a block: `rows` rows of values, `step` apart, by the codes of a panel.
template <bool wide, int rows>
ALWAYS void add_block(const std::uint8_t* codes, const std::int8_t* values, std::int64_t step, Ints (*sums)[2]) {
  UNROLL(8)  // otherwise GCC copies all sums to other registers and back in each iteration
  for (int k = 0; k < quantized_block; k += 4) {
    const Ints left = Ints::load(codes + k * panel), right = Ints::load(codes + k * panel + 4 * Ints::size);
    UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const Ints four = Ints::all(values + i * step + k);
      sums[i][0] = add_products<wide>(sums[i][0], left, four);
      sums[i][1] = add_products<wide>(sums[i][1], right, four);
    }
  }
}

#if defined(SPECOPS_WORD_CODES)
template <bool wide, int rows>
ALWAYS void add_block(const std::int16_t* codes, const std::int8_t* values, std::int64_t step, Ints (*sums)[2]) {
  std::int16_t words[rows][quantized_block];
  UNROLL(16)
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < quantized_block; ++k) words[i][k] = values[i * step + k];
  }
  UNROLL(4)
  for (int k = 0; k < quantized_block; k += 2) {
    const Ints left = Ints::load(codes + k * panel), right = Ints::load(codes + k * panel + 2 * Ints::size);
    UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const Ints two = Ints::all(&words[i][k]);
      sums[i][0] = sums[i][0].plus_pairs(left, two);
      sums[i][1] = sums[i][1].plus_pairs(right, two);
    }
  }
}
#endif

// For a chunk of the depth: the panel's `codes`, the `scales` of each block, and the `offsets` of each group that ends in
// the chunk.
template <Kind kind, int rows>
ALWAYS void multiply_quantized_tile(const Weights& weights, const Quantized& a, std::int64_t row, std::int64_t begin,
                                    std::int64_t end, const Code<kind>* codes, const float* scales, const float* offsets,
                                    float* to, std::int64_t width, std::int64_t count) {
  const std::int64_t blocks = weights.depth / quantized_block;
  const std::int8_t* values = a.values + row * a.step + begin;
  const float* factors = a.scales + row * blocks + begin / quantized_block;
  Floats sums[rows][2];
  UNROLL(16)
  for (int i = 0; i < rows; ++i) sums[i][0] = sums[i][1] = Floats::zero();
  for (std::int64_t element = begin; element < end; element += quantized_block) {
    Ints whole[rows][2];
    UNROLL(16)
    for (int i = 0; i < rows; ++i) whole[i][0] = whole[i][1] = Ints::zero();
    add_block<bits(kind) == 8, rows>(codes, values, a.step, whole);
    const Floats left = Floats::load(scales), right = Floats::load(scales + Floats::size);
    UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const Floats factor = Floats::all(factors[i * blocks]);
      sums[i][0] = multiply_add(whole[i][0].floats(), factor * left, sums[i][0]);
      sums[i][1] = multiply_add(whole[i][1].floats(), factor * right, sums[i][1]);
    }
    codes += quantized_block * panel;
    scales += panel;
    values += quantized_block;
    ++factors;
  }
  const std::int64_t last = end == weights.depth ? weights.groups : end / weights.group;
  for (std::int64_t g = begin / weights.group; g < last; ++g, offsets += panel) {
    const Floats left = Floats::load(offsets), right = Floats::load(offsets + Floats::size);
    UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const Floats less = Floats::all(-a.sums[(row + i) * weights.groups + g]);
      sums[i][0] = multiply_add(less, left, sums[i][0]);
      sums[i][1] = multiply_add(less, right, sums[i][1]);
    }
  }
  UNROLL(16)
  for (int i = 0; i < rows; ++i) store_row(sums[i], {begin > 0, nullptr, false}, to + (row + i) * width, count);
}

template <Kind kind, int columns>
void multiply_quantized_columns(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                                std::int64_t column) {
  constexpr bool wide = bits(kind) == 8;
  const Matrix &scales = weights.scales, &zeros = weights.zero_points;
  const std::int64_t stride = weights.depth * bits(kind) / 8;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int8_t* values = a.values + row * a.step;
    const float* blocks = a.scales + row * (weights.depth / quantized_block);  // advances
    const float* group_sums = a.sums + row * weights.groups;
    Sums sums[columns];
    float offsets[columns] = {};
    for (std::int64_t first = 0; first < weights.groups; first += fetched) {
      const std::int64_t count = least(fetched, weights.groups - first);
      float scale[columns][fetched], zero[columns][fetched];
      for (int c = 0; c < columns; ++c) {
        const std::int64_t at = column + c;
        fetch(scales, at * scales.column_step + first * scales.group_step, scales.group_step, count, 1.0f, scale[c]);
        fetch(zeros, at * zeros.column_step + first * zeros.group_step, zeros.group_step, count, 0.0f, zero[c]);
      }
      for (std::int64_t g = 0; g < count; ++g) {
        const std::int64_t begin = (first + g) * weights.group, end = least(begin + weights.group, weights.depth);
        Sums part[columns];
        const std::uint8_t* codes = weights.codes + (column * weights.depth + begin) * bits(kind) / 8;
        for (std::int64_t element = begin; element < end; element += quantized_block, ++blocks) {
          for (int c = 0; c < columns; ++c) {
            const std::uint8_t* from = codes + c * stride;
            PREFETCH(from + columns * stride);
            const Block block = Block::load<bits(kind)>(from, weights.flip);
            part[c].add(block.products<wide>(values + element), *blocks);
          }
          codes += quantized_block * bits(kind) / 8;
        }
        for (int c = 0; c < columns; ++c) {
          sums[c].add(part[c], scale[c][g]);
          offsets[c] += (zero[c][g] + weights.flipped) * scale[c][g] * group_sums[first + g];
        }
      }
    }
    for (int c = 0; c < columns; ++c) to[row * width + column + c] = sums[c].sum() - offsets[c];
  }
}

// Whether columns are read one cache line at a time: for 4-bit codes first the lower ones of all bytes, then the higher
// ones.
template <Kind kind>
ALWAYS bool in_quantized_lines(const Weights& weights) {
#if defined(__AVX512F__)
  constexpr std::int64_t line = 512 / bits(kind);
  return bits(kind) > 2 && weights.depth % line == 0 && weights.group % line == 0;
#else
  (void)weights;
  return false;
#endif
}

// Of 128 numbers, first those for the lower codes of bytes, then those for the higher ones.
void arrange_quantized(const Weights& weights, std::int8_t* values) {
  if (weights.kind != Kind::table4 || !in_quantized_lines<Kind::table4>(weights)) return;
  for (std::int8_t* end = values + weights.depth; values < end; values += 128) {
    std::int8_t line[128];
    for (int i = 0; i < 64; ++i) {
      line[i] = values[2 * i];
      line[64 + i] = values[2 * i + 1];
    }
    std::memcpy(values, line, sizeof line);
  }
}

#if defined(__AVX512F__)
template <Kind kind>
void multiply_quantized_lines(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                              std::int64_t column, std::int64_t count) {
  constexpr bool wide = bits(kind) == 8;
  constexpr std::int64_t line = 512 / bits(kind), line_blocks = line / quantized_block;
  constexpr auto block_mask = static_cast<__mmask16>((1u << line_blocks) - 1);
  // The block of each lane's four or eight numbers.
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i block_of = _mm512_srli_epi32(lane, wide ? 3 : 2);
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(weights.flip)), low = _mm512_set1_epi8(15);
  const Floats flipped = Floats::all(weights.flipped);
  GroupNumbers numbers(weights, column, count);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* group_sums = a.sums + row * weights.groups;
    const std::uint8_t* codes = weights.codes + column * weights.depth * bits(kind) / 8;
    Floats sums[together];
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int8_t* values = a.values + row * a.step;
      const float* blocks = a.scales + row * (weights.depth / quantized_block);
      sums[c] = Floats::zero();
      for (std::int64_t first = 0; first < weights.groups; first += fetched) {
        const std::int64_t some_groups = least(fetched, weights.groups - first), at = numbers.of(c, first, some_groups);
        for (std::int64_t g = 0; g < some_groups; g += 16) {  // the effect of zero points
          const auto mask = static_cast<__mmask16>((1u << least(16, some_groups - g)) - 1);
          const Floats offset = Floats::load(numbers.zero + at + g) + flipped;
          const __m512 scale = _mm512_maskz_loadu_ps(mask, numbers.scale + at + g);
          const __m512 factor = _mm512_mul_ps(scale, _mm512_maskz_loadu_ps(mask, group_sums + first + g));
          sums[c].lanes = _mm512_mask3_fnmadd_ps(offset.lanes, factor, sums[c].lanes, mask);
        }
        for (std::int64_t g = 0; g < some_groups; ++g) {
          const std::int64_t begin = (first + g) * weights.group, end = least(begin + weights.group, weights.depth);
          Floats part = Floats::zero();
          for (std::int64_t element = begin; element < end; element += line) {
            const Ints all = {_mm512_xor_si512(_mm512_loadu_si512(codes), flip)};
            PREFETCH(codes + ahead);
            Ints products;
            if constexpr (wide) {
              products = add_products<true>(Ints::zero(), all, Ints::load(values));
            } else {
              const Ints lower = {_mm512_and_si512(all.lanes, low)};
              const Ints higher = {_mm512_and_si512(_mm512_srli_epi16(all.lanes, 4), low)};
              products = add_products<false>(Ints::zero(), lower, Ints::load(values));
              products = add_products<false>(products, higher, Ints::load(values + 64));
            }
            const Floats factors = {_mm512_permutexvar_ps(block_of, _mm512_maskz_loadu_ps(block_mask, blocks))};
            part = multiply_add(products.floats(), factors, part);
            codes += 64;
            values += line;
            blocks += line_blocks;
          }
          sums[c] = multiply_add(part, Floats::all(numbers.scale[at + g]), sums[c]);
        }
      }
    }
    add_up(sums, count, to + row * width + column);
  }
}
#endif

template <Kind kind>
void multiply_few_quantized_of(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                               std::int64_t first, std::int64_t last) {
#if defined(__AVX512F__)
  if constexpr (bits(kind) > 2) {
    if (in_quantized_lines<kind>(weights)) {
      return each_some(first, last, [&](std::int64_t column, std::int64_t count) {
        multiply_quantized_lines<kind>(weights, a, rows, to, width, column, count);
      });
    }
  }
#endif
  std::int64_t column = first;
  for (; column + 4 <= last; column += 4) multiply_quantized_columns<kind, 4>(weights, a, rows, to, width, column);
  for (; column < last; ++column) multiply_quantized_columns<kind, 1>(weights, a, rows, to, width, column);
}

template <Kind kind>
void multiply_quantized_of(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                           std::int64_t first, std::int64_t last, void* scratch) {
  constexpr std::int64_t most_blocks = chunk / quantized_block;
  constexpr int tile = sizeof(Code<kind>) == 2 ? tile_rows_words : tile_rows_quantized;
  auto* codes = static_cast<Code<kind>*>(scratch);
  Code<kind>* unpacked = codes + chunk * panel;
  auto* scales = reinterpret_cast<float*>(unpacked + (chunk + 64) * transposed + 64);
  float* offsets = scales + most_blocks * panel;
  const std::int64_t count = last - first;
  const Matrix &factors = weights.scales, &zeros = weights.zero_points;
  for (std::int64_t begin = 0; begin < weights.depth; begin += chunk) {
    const std::int64_t end = least(begin + chunk, weights.depth);
    fill_quantized<kind>(weights, first, count, begin, end, unpacked, codes);
    float* scale = scales;
    for (std::int64_t element = begin; element < end; element += quantized_block, scale += panel) {
      const std::int64_t g = element / weights.group;
      float* offset = offsets + (g - begin / weights.group) * panel;
      for (std::int64_t c = count; c < panel; ++c) scale[c] = offset[c] = 0.0f;
      fetch(factors, first * factors.column_step + g * factors.group_step, factors.column_step, count, 1.0f, scale);
      fetch(zeros, first * zeros.column_step + g * zeros.group_step, zeros.column_step, count, 0.0f, offset);
      for (std::int64_t c = 0; c < count; ++c) offset[c] = (offset[c] + weights.flipped) * scale[c];
    }
    std::int64_t row = 0;
    for (; row + tile <= rows; row += tile) {
      multiply_quantized_tile<kind, tile>(weights, a, row, begin, end, codes, scales, offsets, to + first, width, count);
    }
    for (; row < rows; ++row) {
      multiply_quantized_tile<kind, 1>(weights, a, row, begin, end, codes, scales, offsets, to + first, width, count);
    }
  }
}

#include "attention_kernels.inc"

}  // namespace

// ------------------------------------------------------------------------------------------------------------- the table

namespace {

#define SPECOPS_EACH_KIND(function, ...)                                                    \
  switch (weights.kind) {                                                                   \
    case Kind::table2: return function<Kind::table2>(__VA_ARGS__);                          \
    case Kind::table4: return function<Kind::table4>(__VA_ARGS__);                          \
    case Kind::table8: return function<Kind::table8>(__VA_ARGS__);                          \
    case Kind::unsigned8: return function<Kind::unsigned8>(__VA_ARGS__);                    \
    case Kind::signed8: return function<Kind::signed8>(__VA_ARGS__);                        \
    case Kind::float8e4m3: return function<Kind::float8e4m3>(__VA_ARGS__);                  \
    case Kind::float8e5m2: return function<Kind::float8e5m2>(__VA_ARGS__);                  \
    case Kind::float16: return function<Kind::float16>(__VA_ARGS__);                        \
    case Kind::bfloat16: return function<Kind::bfloat16>(__VA_ARGS__);                      \
    case Kind::float32: return function<Kind::float32>(__VA_ARGS__);                        \
  }

void multiply_few(const Weights& weights, const float* a, std::int64_t rows, float* to, std::int64_t width,
                  std::int64_t first, std::int64_t last) {
  SPECOPS_EACH_KIND(multiply_few_of, weights, a, rows, to, width, first, last)
}

void multiply(const Weights& weights, const float* a, std::int64_t step, std::int64_t rows, const After& after, float* to,
              std::int64_t width, std::int64_t first, std::int64_t last, void* scratch) {
  SPECOPS_EACH_KIND(multiply_of, weights, a, step, rows, after, to, width, first, last, scratch)
}

void keep(const Weights& weights, std::int64_t first, std::int64_t last, float* to, void* scratch) {
  SPECOPS_EACH_KIND(keep_of, weights, first, last, to, scratch)
}

void multiply_few_quantized(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                            std::int64_t first, std::int64_t last) {
  switch (weights.kind) {
    case Kind::table2: return multiply_few_quantized_of<Kind::table2>(weights, a, rows, to, width, first, last);
    case Kind::table4: return multiply_few_quantized_of<Kind::table4>(weights, a, rows, to, width, first, last);
    default: return multiply_few_quantized_of<Kind::unsigned8>(weights, a, rows, to, width, first, last);
  }
}

void multiply_quantized(const Weights& weights, const Quantized& a, std::int64_t rows, float* to, std::int64_t width,
                        std::int64_t first, std::int64_t last, void* scratch) {
  switch (weights.kind) {
    case Kind::table2: return multiply_quantized_of<Kind::table2>(weights, a, rows, to, width, first, last, scratch);
    case Kind::table4: return multiply_quantized_of<Kind::table4>(weights, a, rows, to, width, first, last, scratch);
    default: return multiply_quantized_of<Kind::unsigned8>(weights, a, rows, to, width, first, last, scratch);
  }
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels all = {
      SPECOPS_NAME,
      panel,
      most_panels,
      // The panels and the columns that are transposed into one; the codes of 8-bit products need less.
      static_cast<std::int64_t>(sizeof(float)) * (most_panels * panel_floats + (chunk + 16) * transposed) + 4096,
      arrange,
      multiply_few,
      multiply,
      keep,
      multiply_kept,
      finish,
      quantize,
      arrange_quantized,
      multiply_few_quantized,
      multiply_quantized,
      query_rows,
      key_floats,
      value_floats,
      attention_floats,
      pack_keys,
      pack_values,
      attend,
      key_bytes,
      pack_key_bytes,
      attend_bytes,
  };
  return all;
}

}  // namespace specops::compressed
