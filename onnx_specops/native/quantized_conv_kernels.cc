// Convolutions of 8-bit integers for one instruction set, SPECOPS_SET; see quantized_conv.h.
#include "quantized_conv_narrow.h"
#include "quantized_conv_vectors.inc"

namespace specops::byte_conv {
namespace {

// ---------------------------------------------------------------------------------------------------------- products

static_assert(most_rows <= most_finished);

std::int64_t panels_of(std::int64_t columns) { return (columns + panel_columns - 1) / panel_columns; }

std::int64_t padded(std::int64_t depth) { return (depth + unit - 1) / unit * unit; }

std::int64_t packed_bytes(std::int64_t columns, std::int64_t depth) {
  return panels_of(columns) * panel_columns * padded(depth) * static_cast<std::int64_t>(sizeof(Weight));
}

void pack(const std::int8_t* weights, std::int64_t columns, std::int64_t depth, void* to) {
  Weight* out = static_cast<Weight*>(to);
  for (std::int64_t panel = 0; panel < panels_of(columns); ++panel) {
    for (std::int64_t k = 0; k < padded(depth); k += unit) {
      for (std::int64_t j = panel * panel_columns; j < (panel + 1) * panel_columns; ++j) {
        for (int i = 0; i < unit; ++i) *out++ = j < columns && k < depth ? weights[j * depth + k + i] : Weight{0};
      }
    }
  }
}

// The weights of large layers come from the last-level cache or memory, so those of the next steps are prefetched.
constexpr std::int64_t prefetch_distance = 4096 / static_cast<std::int64_t>(sizeof(Weight));

// Whether vector `v` of a panel begins a cache line. Each line is prefetched once.
constexpr bool begins_line(int v) { return v * lanes * 4 % 64 == 0; }

// Computes the results of the sums of a tile.
template <int rows, int vectors>
ALWAYS void finish_tile(const Ints (&sums)[rows][vectors], const Product& product, std::int64_t row, std::int64_t column) {
  std::int64_t count = product.columns - column;
  if (count > vectors * lanes) count = vectors * lanes;
#if defined(__AVX2__)
  if constexpr (rows * vectors % 4 == 0) {
    if (product.after.plain) {
      return with_plain(product.after, [&](auto kind) {
        finish_registers<decltype(kind)::value, rows, vectors>(sums, product.after, column, count, product.to,
                                                               row * product.to_step + column, product.to_step);
      });
    }
  }
#endif
  alignas(64) std::int32_t stored[rows * vectors * lanes];
  SPECOPS_UNROLL(12)
  for (int r = 0; r < rows; ++r) {
    SPECOPS_UNROLL(2)
    for (int v = 0; v < vectors; ++v) sums[r][v].store(stored + (r * vectors + v) * lanes);
  }
  finish<vectors>(stored, rows, product.after, column, count, product.to, row, product.to_step);
}

template <int rows, int vectors>
void tile(const Product& product, std::int64_t row, std::int64_t panel) {
  Ints sums[rows][vectors];
  const std::int64_t column = panel * panel_columns;
  SPECOPS_UNROLL(12)
  for (int r = 0; r < rows; ++r) {
    SPECOPS_UNROLL(2)
    for (int v = 0; v < vectors; ++v) sums[r][v] = Ints::load(product.start + column + v * lanes);
  }
  const Weight* b = static_cast<const Weight*>(product.panels) + column * padded(product.taps * product.depth);
  for (std::int64_t tap = 0; tap < product.taps; ++tap) {
    const Activation* a[rows];
    for (int r = 0; r < rows; ++r) {
      const void* from = product.rows[tap * product.row_step + row + r];
      a[r] = reinterpret_cast<const Activation*>(static_cast<const char*>(from) + product.offset);
    }
    for (std::int64_t k = 0; k < product.depth; k += unit, b += panel_columns * unit) {
      Ints right[vectors];
      for (int v = 0; v < vectors; ++v) {
        right[v] = Ints::load(b + v * lanes * unit);
        if (begins_line(v)) SPECOPS_PREFETCH(b + v * lanes * unit + prefetch_distance);
      }
      SPECOPS_UNROLL(12)
      for (int r = 0; r < rows; ++r) {
        const Ints left = Ints::repeat(a[r] + k);
        SPECOPS_UNROLL(2)
        for (int v = 0; v < vectors; ++v) sums[r][v].add(left, right[v]);
      }
    }
  }
  finish_tile(sums, product, row, column);
}

template <int rows, int vectors>
void rows_of(const Product& product, std::int64_t& row, std::int64_t end, std::int64_t panel) {
  for (; row + rows <= end; row += rows) tile<rows, vectors>(product, row, panel);
}

void multiply(const Product& product, std::int64_t rows) {
  for (std::int64_t panel = 0; panel < panels_of(product.columns); ++panel) {
    std::int64_t row = 0;
    if (product.columns - panel * panel_columns > lanes) {
      rows_of<most_rows, 2>(product, row, rows, panel);
      if constexpr (most_rows > 6) rows_of<6, 2>(product, row, rows, panel);
      if constexpr (most_rows > 3) rows_of<3, 2>(product, row, rows, panel);
      rows_of<1, 2>(product, row, rows, panel);
    } else {
      rows_of<most_rows_of_one, 1>(product, row, rows, panel);
      if constexpr (most_rows_of_one > 4) rows_of<4, 1>(product, row, rows, panel);
      rows_of<1, 1>(product, row, rows, panel);
    }
  }
}

// --------------------------------------------------------------------------------------------------------- pointwise

void pointwise(const Pointwise& job, std::int64_t rows) {
  for (std::int64_t first = 0; first < rows; first += most_finished) {
    const std::int64_t here = rows - first < most_finished ? rows - first : most_finished;
    for (std::int64_t column = 0; column < job.columns; column += panel_columns) {
      const std::int64_t left = job.columns - column, count = left < panel_columns ? left : panel_columns;
      const Ints weights[2] = {Ints::load(job.weights + column), Ints::load(job.weights + column + lanes)};
      const Ints start[2] = {Ints::load(job.start + column), Ints::load(job.start + column + lanes)};
      alignas(64) std::int32_t sums[most_finished * panel_columns];
      const std::uint8_t* from = job.from + first * job.columns + column;
      for (std::int64_t row = 0; row < here; ++row, from += job.columns) {
        [[maybe_unused]] std::uint8_t part[panel_columns] = {};
        const std::uint8_t* near = from;
        // Vectors of the last rows would extend beyond the input.
        if (!stores_parts && (rows - 1 - first - row) * job.columns + left < panel_columns) {
          std::memcpy(part, from, static_cast<std::size_t>(count));
          near = part;
        }
        for (int v = 0; v < 2; ++v) {
          const Ints x = Ints::of_bytes(near + v * lanes, count - v * lanes);
          x.times(weights[v]).plus(start[v]).store(sums + row * panel_columns + v * lanes);
        }
      }
      finish<2>(sums, here, job.after, column, count, job.to, first, job.columns);
    }
  }
}

// --------------------------------------------------------------------------------------------------------- depthwise

#if defined(__AVX512VNNI__)

// Four taps of 64 channels at a time, with interleaved bytes: four registers of 16 channels each, with one group of four
// channels from each quarter. If there are few channels, a register has several pixels.
constexpr std::int64_t taps_at_once = 4;

constexpr std::int64_t pixels_at_once(std::int64_t channels) { return channels <= 16 ? 4 : channels <= 32 ? 2 : 1; }

std::int64_t depthwise_bytes(std::int64_t channels, std::int64_t taps) {
  return (channels + channel_block - 1) / channel_block * channel_block * ((taps + 3) / 4 * 4);
}

void pack_depthwise(const std::int8_t* weights, std::int64_t channels, std::int64_t taps, void* to) {
  std::int8_t* out = static_cast<std::int8_t*>(to);
  const std::int64_t width = channel_block / pixels_at_once(channels);
  for (std::int64_t first = 0; first < channels; first += channel_block) {
    for (std::int64_t tap = 0; tap < taps; tap += taps_at_once) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        for (int lane = 0; lane < 4; ++lane) {
          for (int i = 0; i < 16; ++i) {
            const std::int64_t channel = first + (16 * lane + 4 * quarter + i / 4) % width, at = tap + i % 4;
            *out++ = channel < channels && at < taps ? weights[channel * taps + at] : std::int8_t{0};
          }
        }
      }
    }
  }
}

template <int pixels>
ALWAYS __m512i loaded(const void* const* from, std::int64_t channel, __mmask64 mask) {
  const auto at = [&](int i) { return static_cast<const std::uint8_t*>(from[i]) + channel; };
  if constexpr (pixels == 1) return _mm512_maskz_loadu_epi8(mask, at(0));
  if constexpr (pixels == 2) {
    const __mmask32 half = static_cast<__mmask32>(mask);
    const __m512i low = _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(half, at(0)));
    return _mm512_inserti64x4(low, _mm256_maskz_loadu_epi8(half, at(1)), 1);
  }
  const __mmask16 quarter = static_cast<__mmask16>(mask);
  __m512i all = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(quarter, at(0)));
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(quarter, at(1 % pixels)), 1);
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(quarter, at(2 % pixels)), 2);
  return _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(quarter, at(3 % pixels)), 3);
}

// Computes the sums of `pixels` rows from `row` on, for up to 64 / pixels channels from `channel` on.
template <int pixels>
ALWAYS void depthwise_block(const Depthwise& job, std::int64_t row, std::int64_t channel, const std::int8_t* w,
                            std::int32_t* stored) {
  constexpr int width = channel_block / pixels;
  const std::int64_t quads = (job.taps + 3) / 4;
  const std::int64_t count = job.channels - channel < width ? job.channels - channel : width;
  const __mmask64 mask = count == channel_block ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
  __m512i sums[4];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (std::int64_t quad = 0; quad < quads; ++quad, w += 256) {
    __m512i x[4];
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t tap = 4 * quad + i < job.taps ? 4 * quad + i : 4 * quad;  // taps after the last have weights of 0
      x[i] = loaded<pixels>(job.rows + tap * job.row_step + row, channel, mask);
    }
    const __m512i ab = _mm512_unpacklo_epi8(x[0], x[1]), cd = _mm512_unpacklo_epi8(x[2], x[3]);
    const __m512i ab2 = _mm512_unpackhi_epi8(x[0], x[1]), cd2 = _mm512_unpackhi_epi8(x[2], x[3]);
    sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_unpacklo_epi16(ab, cd), _mm512_loadu_si512(w));
    sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_unpackhi_epi16(ab, cd), _mm512_loadu_si512(w + 64));
    sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_unpacklo_epi16(ab2, cd2), _mm512_loadu_si512(w + 128));
    sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_unpackhi_epi16(ab2, cd2), _mm512_loadu_si512(w + 192));
  }
  const __m512i a = _mm512_shuffle_i32x4(sums[0], sums[1], 0x44), b = _mm512_shuffle_i32x4(sums[2], sums[3], 0x44);
  const __m512i c = _mm512_shuffle_i32x4(sums[0], sums[1], 0xee), d = _mm512_shuffle_i32x4(sums[2], sums[3], 0xee);
  const __m512i ordered[4] = {_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd),
                              _mm512_shuffle_i32x4(c, d, 0x88), _mm512_shuffle_i32x4(c, d, 0xdd)};
  for (int i = 0; i < 4; ++i) {
    const __m512i start = _mm512_loadu_si512(job.start + channel + 16 * i % width);
    _mm512_storeu_si512(stored + 16 * i, _mm512_add_epi32(ordered[i], start));
  }
}

// The number of rows whose sums are finished together.
constexpr std::int64_t rows_together = most_finished;

template <int pixels>
void depthwise_rows(const Depthwise& job, std::int64_t rows) {
  constexpr int width = channel_block / pixels;
  alignas(64) std::int32_t sums[rows_together * width];
  const std::int64_t bytes = (job.taps + 3) / 4 * 256;
  for (std::int64_t first = 0; first < rows; first += rows_together) {
    const std::int64_t last = rows - first < rows_together ? rows : first + rows_together;
    const std::int8_t* w = static_cast<const std::int8_t*>(job.weights);
    for (std::int64_t channel = 0; channel < job.channels; channel += width, w += bytes) {
      std::int64_t row = first;
      for (; row + pixels <= last; row += pixels) depthwise_block<pixels>(job, row, channel, w, sums + (row - first) * width);
      for (; row < last; ++row) {
        std::int32_t one[channel_block];
        depthwise_block<1>(job, row, channel, w, one);
        std::memcpy(sums + (row - first) * width, one, sizeof(std::int32_t) * width);
      }
      const std::int64_t count = job.channels - channel < width ? job.channels - channel : width;
      finish<width / lanes>(sums, last - first, job.after, channel, count, job.to, first, job.to_step);
    }
  }
}

void depthwise(const Depthwise& job, std::int64_t rows) {
  if (pixels_at_once(job.channels) == 4) return depthwise_rows<4>(job, rows);
  if (pixels_at_once(job.channels) == 2) return depthwise_rows<2>(job, rows);
  depthwise_rows<1>(job, rows);
}

// Four output pixels at a time. Four adjacent input pixels with interleaved bytes are used for all taps of all output pixels
// that depend on them. The weights are shifted for each output pixel. If few channels are left, a register has several such
// groups of pixels.
constexpr int outputs_at_once = 4;

// The number of groups of pixels in a register.
constexpr int line_groups(std::int64_t channels_left) { return channels_left <= 16 ? 4 : channels_left <= 48 ? 2 : 1; }

// Output pixel `i` begins at this byte of a group of four input pixels.
constexpr std::int64_t line_shift(int i, std::int64_t stride) { return i * stride % 4; }

// The number of groups of input pixels for an output pixel.
constexpr std::int64_t line_quads(int i, std::int64_t width, std::int64_t stride) {
  return (line_shift(i, stride) + width + 3) / 4;
}

// The number of different shifts.
constexpr int line_variants(std::int64_t stride) { return static_cast<int>(4 / stride); }

std::int64_t line_block_bytes(std::int64_t lines, std::int64_t width, std::int64_t stride) {
  std::int64_t quads = 0;
  for (int i = 0; i < line_variants(stride); ++i) quads += line_quads(i, width, stride);
  return 256 * quads * lines;
}

std::int64_t line_bytes(std::int64_t channels, std::int64_t lines, std::int64_t width, std::int64_t stride) {
  std::int64_t blocks = 0;
  for (std::int64_t channel = 0; channel < channels; ++blocks) channel += channel_block / line_groups(channels - channel);
  return blocks * line_block_bytes(lines, width, stride);
}

void pack_lines(const std::int8_t* weights, std::int64_t channels, std::int64_t lines, std::int64_t width, std::int64_t stride,
                void* to) {
  std::int8_t* out = static_cast<std::int8_t*>(to);
  for (std::int64_t first = 0; first < channels;) {
    const std::int64_t block = channel_block / line_groups(channels - first);
    for (std::int64_t line = 0; line < lines; ++line) {
      for (int i = 0; i < line_variants(stride); ++i) {
        for (std::int64_t quad = 0; quad < line_quads(i, width, stride); ++quad) {
          for (std::int64_t byte = 0; byte < 256; ++byte) {
            const std::int64_t channel = first + byte / 4 % block, at = 4 * quad + byte % 4 - line_shift(i, stride);
            *out++ = channel < channels && at >= 0 && at < width ? weights[(channel * lines + line) * width + at] : std::int8_t{0};
          }
        }
      }
    }
    first += block;
  }
}

// A register of `groups` pixels that are `step` pixels apart. Its 32-bit words are transposed, so that interleaving bytes of
// four registers leaves the channels in order.
template <int groups>
ALWAYS __m512i line_load(const void* const* from, std::int64_t step, std::int64_t channel) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const auto at = [&](int i) { return static_cast<const std::uint8_t*>(from[i * step]) + channel; };
  if constexpr (groups == 1) return _mm512_permutexvar_epi32(order, _mm512_loadu_si512(at(0)));
  const auto wide = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at(i))); };
  const auto narrow = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at(i))); };
  if constexpr (groups == 2) {
    // Words 8 to 15 are those of the second pixel.
    const __m512i both = _mm512_setr_epi32(0, 4, 16, 20, 1, 5, 17, 21, 2, 6, 18, 22, 3, 7, 19, 23);
    return _mm512_permutex2var_epi32(_mm512_castsi256_si512(wide(0)), both, _mm512_castsi256_si512(wide(1)));
  }
  __m512i all = _mm512_castsi128_si512(narrow(0));
  all = _mm512_mask_broadcast_i32x4(all, 0x00f0, narrow(1 % groups));
  all = _mm512_mask_broadcast_i32x4(all, 0x0f00, narrow(2 % groups));
  all = _mm512_mask_broadcast_i32x4(all, 0xf000, narrow(3 % groups));
  return _mm512_permutexvar_epi32(order, all);
}

// Computes the sums of 4 * `groups` output pixels from `first` on, for 64 / `groups` channels from `channel` on. `sums[i]` has
// the sums of every fourth pixel, from pixel `i` on. `known` is the width, or 0 if it is unknown at compile time.
template <int groups, int stride, int known>
ALWAYS void line_block(const DepthwiseLine& job, std::int64_t first, std::int64_t channel, const std::int8_t* w,
                       Ints (&sums)[outputs_at_once][4]) {
  constexpr int vectors = 4 / groups;
  const std::int64_t width = known > 0 ? known : job.width;
  for (auto& of_output : sums) {
    for (int q = 0; q < 4; ++q) of_output[q] = Ints::load(job.start + channel + q % vectors * lanes);
  }
  const std::int64_t inputs = ((outputs_at_once - 1) * stride + width + 3) / 4;
  for (std::int64_t line = 0; line < job.lines; ++line) {
    const void* const* from = job.pixels + line * job.step + first * stride;
    for (std::int64_t input = 0; input < inputs; ++input, from += 4) {
      __m512i x[4];
      for (int i = 0; i < 4; ++i) x[i] = line_load<groups>(from + i, outputs_at_once * stride, channel);
      const __m512i ab = _mm512_unpacklo_epi8(x[0], x[1]), cd = _mm512_unpacklo_epi8(x[2], x[3]);
      const __m512i ab2 = _mm512_unpackhi_epi8(x[0], x[1]), cd2 = _mm512_unpackhi_epi8(x[2], x[3]);
      x[0] = _mm512_unpacklo_epi16(ab, cd);
      x[1] = _mm512_unpackhi_epi16(ab, cd);
      x[2] = _mm512_unpacklo_epi16(ab2, cd2);
      x[3] = _mm512_unpackhi_epi16(ab2, cd2);
      const std::int8_t* variant = w;
      SPECOPS_UNROLL(4)
      for (int i = 0; i < outputs_at_once; ++i) {
        if (i % line_variants(stride) == 0) variant = w;
        const std::int64_t quad = input - i * stride / 4, quads = line_quads(i, width, stride);
        if (quad >= 0 && quad < quads) {
          for (int q = 0; q < 4; ++q) {
            sums[i][q].add({x[q]}, Ints::load(variant + 256 * quad + 64 * q));
          }
        }
        variant += 256 * quads;
      }
    }
    for (int i = 0; i < line_variants(stride); ++i) w += 256 * line_quads(i, width, stride);
  }
}

template <int groups, int stride, int known>
void line_blocks(const DepthwiseLine& job, std::int64_t rows, std::int64_t channel, const std::int8_t* w) {
  constexpr int block = channel_block / groups, vectors = 4 / groups;
  alignas(64) std::int32_t stored[line_rows * block];
  const std::int64_t count = job.channels - channel < block ? job.channels - channel : block;
  for (std::int64_t first = 0; first < rows; first += line_rows) {
    const std::int64_t here = rows - first < line_rows ? rows - first : line_rows;
    for (std::int64_t row = 0; row < here; row += outputs_at_once * groups) {
      Ints sums[outputs_at_once][4];
      line_block<groups, stride, known>(job, first + row, channel, w, sums);
      SPECOPS_UNROLL(4)
      for (int i = 0; i < outputs_at_once; ++i) {
        SPECOPS_UNROLL(4)
        for (int q = 0; q < 4; ++q) {
          sums[i][q].store(stored + (row + q / vectors * outputs_at_once + i) * block + q % vectors * lanes);
        }
      }
    }
    finish<vectors>(stored, here, job.after, channel, count, job.to, first, job.to_step);
  }
}

// The same for After::plain.
template <int groups, int stride, int known, Plain kind>
void plain_line_blocks(const DepthwiseLine& job, std::int64_t rows, std::int64_t channel, const std::int8_t* w) {
  constexpr int block = channel_block / groups;
  const std::int64_t count = job.channels - channel < block ? job.channels - channel : block;
  const PlainColumns<kind, 4 / groups> columns(job.after, channel, count);
  const std::uint8_t* const addend = job.after.addition.addend;
  for (std::int64_t row = 0; row < rows; row += outputs_at_once * groups) {
    Ints sums[outputs_at_once][4];
    line_block<groups, stride, known>(job, row, channel, w, sums);
    SPECOPS_UNROLL(4)
    for (int i = 0; i < outputs_at_once; ++i) {
      const std::int64_t left = (rows - row - i + outputs_at_once - 1) / outputs_at_once;
      const std::int64_t place = (row + i) * job.to_step + channel;
      auto* const to = static_cast<std::uint8_t*>(job.to) + place;
      const std::uint8_t* const added = kind == Plain::added ? addend + place : addend;
      if (left > 0) columns.store(sums[i], left, to, added, outputs_at_once * job.to_step);
    }
  }
}

template <int groups>
void line_blocks_of(const DepthwiseLine& job, std::int64_t rows, std::int64_t channel, const std::int8_t* w) {
  const auto as = [&](auto stride) {
    constexpr int step = decltype(stride)::value;
    const auto of_width = [&](auto width) {
      constexpr int known = decltype(width)::value;
      if (!job.after.plain) return line_blocks<groups, step, known>(job, rows, channel, w);
      with_plain(job.after, [&](auto kind) {
        plain_line_blocks<groups, step, known, decltype(kind)::value>(job, rows, channel, w);
      });
    };
    if (job.width == 3) return of_width(std::integral_constant<int, 3>());
    if (job.width == 5) return of_width(std::integral_constant<int, 5>());
    of_width(std::integral_constant<int, 0>());
  };
  if (job.stride == 1) return as(std::integral_constant<int, 1>());
  as(std::integral_constant<int, 2>());
}

void multiply_lines(const DepthwiseLine& job, std::int64_t rows) {
  const std::int8_t* w = static_cast<const std::int8_t*>(job.weights);
  const std::int64_t bytes = line_block_bytes(job.lines, job.width, job.stride);
  for (std::int64_t channel = 0; channel < job.channels; w += bytes) {
    const int groups = line_groups(job.channels - channel);
    const auto as = groups == 4 ? &line_blocks_of<4> : groups == 2 ? &line_blocks_of<2> : &line_blocks_of<1>;
    as(job, rows, channel, w);
    channel += channel_block / groups;
  }
}

#else

// Two taps at a time, of one or two vectors of channels; with AVX-VNNI, four taps of two or four vectors. The last channels
// are processed as a whole vector, so some are computed twice. If there are fewer channels than lanes, they are copied.
#if defined(__AVXVNNI__)
constexpr bool has_quads = true;
#else
constexpr bool has_quads = false;
#endif

constexpr std::int64_t vectors_of(std::int64_t channels) {
  return has_quads && channels >= 4 * lanes ? 4 : channels >= 2 * lanes ? 2 : 1;
}

constexpr bool in_quads(std::int64_t vectors) { return has_quads && vectors > 1; }

constexpr std::int64_t first_channel(std::int64_t block, std::int64_t channels) {
  const std::int64_t width = vectors_of(channels) * lanes, last = channels < width ? 0 : channels - width;
  return block * width < last ? block * width : last;
}

std::int64_t depthwise_blocks(std::int64_t channels) {
  const std::int64_t width = vectors_of(channels) * lanes;
  return (channels + width - 1) / width;
}

// The size of the weights of a block of channels.
constexpr std::int64_t depthwise_block_bytes(std::int64_t vectors, std::int64_t taps) {
  return vectors * lanes * (in_quads(vectors) ? (taps + 3) / 4 * 4 : (taps + 1) / 2 * 2 * 2);
}

std::int64_t depthwise_bytes(std::int64_t channels, std::int64_t taps) {
  return depthwise_blocks(channels) * depthwise_block_bytes(vectors_of(channels), taps);
}

// Four registers for four taps, with the channels in the order of `quad_row`.
void pack_quads(const std::int8_t* weights, std::int64_t channels, std::int64_t taps, std::int8_t* out) {
  const std::int64_t vectors = vectors_of(channels), bytes = vectors * lanes;
  for (std::int64_t block = 0; block < depthwise_blocks(channels); ++block) {
    const std::int64_t first = first_channel(block, channels);
    for (std::int64_t tap = 0; tap < taps; tap += 4) {
      for (std::int64_t at = 0; at < 4 * bytes; ++at) {
        const std::int64_t quad = at / bytes, byte = at % bytes, t = tap + byte % 4;
        const std::int64_t channel = first + byte / 16 * 16 + 4 * quad + byte % 16 / 4;
        *out++ = t < taps ? weights[channel * taps + t] : std::int8_t{0};
      }
    }
  }
}

void pack_depthwise(const std::int8_t* weights, std::int64_t channels, std::int64_t taps, void* to) {
  if (in_quads(vectors_of(channels))) return pack_quads(weights, channels, taps, static_cast<std::int8_t*>(to));
  std::int16_t* out = static_cast<std::int16_t*>(to);
  for (std::int64_t block = 0; block < depthwise_blocks(channels); ++block) {
    const std::int64_t first = first_channel(block, channels);
    for (std::int64_t tap = 0; tap < taps; tap += 2) {
      for (std::int64_t channel = first; channel < first + vectors_of(channels) * lanes; ++channel) {
        for (std::int64_t at = tap; at < tap + 2; ++at) {
          *out++ = channel < channels && at < taps ? weights[channel * taps + at] : std::int16_t{0};
        }
      }
    }
  }
}

#if defined(__AVXVNNI__)
// The sums of 16 or 32 channels of a row, in registers of 16 or 32 bytes.
struct Quads16 {
  using Register = __m128i;
  static ALWAYS Register zero() { return _mm_setzero_si128(); }
  static ALWAYS Register load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
  static ALWAYS Register low8(Register a, Register b) { return _mm_unpacklo_epi8(a, b); }
  static ALWAYS Register high8(Register a, Register b) { return _mm_unpackhi_epi8(a, b); }
  static ALWAYS Register low16(Register a, Register b) { return _mm_unpacklo_epi16(a, b); }
  static ALWAYS Register high16(Register a, Register b) { return _mm_unpackhi_epi16(a, b); }
  static ALWAYS void store(const Register* sums, const std::int32_t* start, std::int32_t* to) {
    for (int i = 0; i < 4; ++i) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4 * i), _mm_add_epi32(sums[i], load(start + 4 * i)));
    }
  }
};
struct Quads32 {
  using Register = __m256i;
  static ALWAYS Register zero() { return _mm256_setzero_si256(); }
  static ALWAYS Register load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static ALWAYS Register low8(Register a, Register b) { return _mm256_unpacklo_epi8(a, b); }
  static ALWAYS Register high8(Register a, Register b) { return _mm256_unpackhi_epi8(a, b); }
  static ALWAYS Register low16(Register a, Register b) { return _mm256_unpacklo_epi16(a, b); }
  static ALWAYS Register high16(Register a, Register b) { return _mm256_unpackhi_epi16(a, b); }
  static ALWAYS void store(const Register* sums, const std::int32_t* start, std::int32_t* to) {
    const Register ordered[4] = {
        _mm256_permute2x128_si256(sums[0], sums[1], 0x20), _mm256_permute2x128_si256(sums[2], sums[3], 0x20),
        _mm256_permute2x128_si256(sums[0], sums[1], 0x31), _mm256_permute2x128_si256(sums[2], sums[3], 0x31)};
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8 * i), _mm256_add_epi32(ordered[i], load(start + 8 * i)));
    }
  }
};

template <int vectors>
ALWAYS void quad_row(const Depthwise& job, std::int64_t row, std::int64_t channel, const char* w, std::int32_t* to) {
  using As = std::conditional_t<vectors == 4, Quads32, Quads16>;
  using Register = typename As::Register;
  Register sums[4] = {As::zero(), As::zero(), As::zero(), As::zero()};
  for (std::int64_t tap = 0; tap < job.taps; tap += 4) {
    Register x[4];
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = tap + i < job.taps ? tap + i : tap;  // taps after the last have weights of 0
      x[i] = As::load(static_cast<const std::uint8_t*>(job.rows[at * job.row_step + row]) + channel);
    }
    const Register ab = As::low8(x[0], x[1]), cd = As::low8(x[2], x[3]);
    const Register ab2 = As::high8(x[0], x[1]), cd2 = As::high8(x[2], x[3]);
    const Register all[4] = {As::low16(ab, cd), As::high16(ab, cd), As::low16(ab2, cd2), As::high16(ab2, cd2)};
    for (int i = 0; i < 4; ++i, w += sizeof(Register)) sums[i] = add_byte_products(sums[i], all[i], As::load(w));
  }
  As::store(sums, job.start + channel, to);
}
#endif

template <int vectors, bool copied>
ALWAYS void depthwise_row(const Depthwise& job, std::int64_t row, std::int64_t channel, const char* weights, std::int32_t* to) {
#if defined(__AVXVNNI__)
  if constexpr (in_quads(vectors)) return quad_row<vectors>(job, row, channel, weights, to);
#endif
  const std::int16_t* w = reinterpret_cast<const std::int16_t*>(weights);
  Ints sums[vectors];
  for (int v = 0; v < vectors; ++v) sums[v] = Ints::load(job.start + channel + v * lanes);
  for (std::int64_t tap = 0; tap < job.taps; tap += 2) {
    const std::int64_t next = tap + 1 < job.taps ? tap + 1 : tap;  // a tap after the last has weights of 0
    const std::uint8_t* a = static_cast<const std::uint8_t*>(job.rows[tap * job.row_step + row]) + channel;
    const std::uint8_t* b = static_cast<const std::uint8_t*>(job.rows[next * job.row_step + row]) + channel;
    [[maybe_unused]] std::uint8_t near[2][lanes] = {};
    if constexpr (copied) {
      for (std::int64_t i = 0; i < job.channels; ++i) {
        near[0][i] = a[i];
        near[1][i] = b[i];
      }
      a = near[0];
      b = near[1];
    }
    for (int v = 0; v < vectors; ++v, w += 2 * lanes) sums[v].add_pairs(Ints::pairs(a + v * lanes, b + v * lanes), Ints::load(w));
  }
  for (int v = 0; v < vectors; ++v) sums[v].store(to + v * lanes);
}

// The number of rows whose sums are finished together.
constexpr std::int64_t rows_together = most_finished;

template <int vectors, bool copied>
void depthwise_rows(const Depthwise& job, std::int64_t rows) {
  alignas(64) std::int32_t sums[rows_together * vectors * lanes];
  const std::int64_t bytes = depthwise_block_bytes(vectors, job.taps);
  for (std::int64_t first = 0; first < rows; first += rows_together) {
    const std::int64_t count = rows - first < rows_together ? rows - first : rows_together;
    const char* w = static_cast<const char*>(job.weights);
    for (std::int64_t block = 0; block < depthwise_blocks(job.channels); ++block, w += bytes) {
      const std::int64_t channel = first_channel(block, job.channels);
      for (std::int64_t row = 0; row < count; ++row) {
        depthwise_row<vectors, copied>(job, first + row, channel, w, sums + row * vectors * lanes);
      }
      finish<vectors>(sums, count, job.after, channel, copied ? job.channels : vectors * lanes, job.to, first,
                      job.to_step);
    }
  }
}

void depthwise(const Depthwise& job, std::int64_t rows) {
  if (job.channels < lanes) return depthwise_rows<1, true>(job, rows);
  if constexpr (has_quads) {
    if (vectors_of(job.channels) == 4) return depthwise_rows<4, false>(job, rows);
  }
  if (vectors_of(job.channels) == 1) return depthwise_rows<1, false>(job, rows);
  depthwise_rows<2, false>(job, rows);
}

#include "quantized_conv_lines.inc"

#endif

#include "quantized_conv_narrow.inc"
#include "quantized_conv_checked.inc"
#include "quantized_conv_winograd.inc"

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels kernels = {
      SPECOPS_NAME, unit == 2, panel_columns, most_rows, packed_bytes, pack, multiply,
      depthwise_bytes, pack_depthwise, depthwise, pointwise, line_bytes, pack_lines, multiply_lines, nullptr,
      transform_patches, multiply_winograd, multiply_narrow, checked_bytes, pack_checked, multiply_checked,
  };
  return kernels;
}

}  // namespace specops::byte_conv
