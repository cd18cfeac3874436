// Convolutions of volumes for one instruction set, SPECOPS_SET: a block of sums stays in registers for all channels and taps.
#include <cstring>

#include "vectors.inc"
#include "volume_conv.h"

namespace specops::volumes {
namespace {

constexpr std::int64_t lanes = Floats::size;

// A sum, times the slope if it is below 0. A slope of 0 is Relu, also of negative infinity.
ALWAYS Floats sloped(Floats sum, float slope) {
  return below_zero(sum, slope == 0.0f ? Floats::zero() : sum * Floats::all(slope), sum);
}

// Unrolled: otherwise, GCC 12 keeps the sums in memory.
template <int outputs, int packs>
void multiply(const Tile& tile) {
  Floats sums[outputs][packs];
  UNROLL(8)
  for (int o = 0; o < outputs; ++o) {
    UNROLL(8)
    for (int p = 0; p < packs; ++p) {
      sums[o][p] = tile.bias == nullptr ? Floats::load(tile.to + o * tile.to_step + p * lanes) : Floats::all(tile.bias[o]);
    }
  }
  const float* weight = tile.weights;
  for (std::int64_t t = 0; t < tile.tap_count; ++t, weight += outputs) {
    const float* const x = tile.from + tile.taps[t];
    Floats values[packs];
    UNROLL(8)
    for (int p = 0; p < packs; ++p) values[p] = Floats::load(x + p * lanes);
    UNROLL(8)
    for (int o = 0; o < outputs; ++o) {
      const Floats factor = Floats::all(weight[o]);
      UNROLL(8)
      for (int p = 0; p < packs; ++p) sums[o][p] = multiply_add(values[p], factor, sums[o][p]);
    }
  }
  if (tile.slope != 1.0f) {
    UNROLL(8)
    for (int o = 0; o < outputs; ++o) {
      UNROLL(8)
      for (int p = 0; p < packs; ++p) {
        sums[o][p] = sloped(sums[o][p], tile.slope);
      }
    }
  }
  UNROLL(8)
  for (int o = 0; o < outputs; ++o) {
    UNROLL(8)
    for (int p = 0; p < packs; ++p) sums[o][p].store(tile.to + o * tile.to_step + p * lanes);
  }
}

template <int outputs, int packs>
constexpr Shape shape() {
  static_assert(packs <= most_packs && most_positions % lanes == 0 && packs * lanes <= most_positions && outputs <= most_outputs);
  Shape found = {outputs, packs, {multiply<outputs, 1>}};
  if constexpr (packs > 1) found.multiply[1] = multiply<outputs, 2>;
  if constexpr (packs > 2) found.multiply[2] = multiply<outputs, 3>;
  if constexpr (packs > 3) found.multiply[3] = multiply<outputs, 4>;
  if constexpr (packs > 4) found.multiply[4] = multiply<outputs, 5>;
  if constexpr (packs > 5) found.multiply[5] = multiply<outputs, 6>;
  return found;
}

// The numbers of a pack whose first one is the `at`-th of a row.
template <int step>
ALWAYS Floats pack(const Rows& rows, const float* row, std::int64_t at) {
  const std::int64_t first = rows.before - at, last = first + rows.copied;
  const float* const from = row - step * first;
  if constexpr (step == 1) {
    return first <= 0 && last >= lanes ? Floats::load(from) : Floats::part(from, first, last);
  } else {
    const std::int64_t end = 2 * last - 1;
    if (first <= 0 && end >= 2 * lanes) return even(Floats::load(from), Floats::load(from + lanes));
    return even(Floats::part(from, 2 * first, end), Floats::part(from + lanes, 2 * first - lanes, end - lanes));
  }
}

template <int step>
void copy_rows(const Rows& rows) {
  const float* from = rows.from;
  float* to = rows.to;
  for (std::int64_t row = 0; row < rows.count; ++row, from += rows.from_row, to += rows.to_row) {
    std::int64_t at = 0;
    for (; at + lanes <= rows.width; at += lanes) pack<step>(rows, from, at).store(to + at);
    if (at < rows.width) pack<step>(rows, from, at).store_first(to + at, rows.width - at);
  }
}

void copy(const Rows& rows) {
  if (rows.from_step == 1) return copy_rows<1>(rows);
  if (rows.from_step == 2) return copy_rows<2>(rows);
  const float* from = rows.from;
  float* to = rows.to;
  for (std::int64_t row = 0; row < rows.count; ++row, from += rows.from_row, to += rows.to_row) {
    for (std::int64_t at = 0; at < rows.width; ++at) {
      const std::int64_t pixel = at - rows.before;
      to[at] = pixel >= 0 && pixel < rows.copied ? from[pixel * rows.from_step] : 0.0f;
    }
  }
}

void transform(const Lines& lines) {
  const std::int64_t pixels = transformed_pixels(lines.positions), after = lines.before + lines.copied;
  std::memset(lines.line, 0, static_cast<std::size_t>(lines.before) * sizeof(float));
  std::memset(lines.line + after, 0, static_cast<std::size_t>(pixels - after) * sizeof(float));
  const float* from = lines.from;
  float* to = lines.to;
  for (std::int64_t row = 0; row < lines.count; ++row, from += lines.from_line, to += lines.positions) {
    std::memcpy(lines.line + lines.before, from, static_cast<std::size_t>(lines.copied) * sizeof(float));
    for (std::int64_t at = 0; at < lines.positions; at += lanes) {
      Floats x[4];
      UNROLL(4)
      for (int i = 0; i < 4; ++i) {
        const float* const pixel = lines.line + 2 * at + i;
        x[i] = even(Floats::load(pixel), Floats::load(pixel + lanes));
      }
      const Floats planes[transform_count] = {x[0] - x[2], x[1] + x[2], x[2] - x[1], x[1] - x[3]};
      const std::int64_t rest = lines.positions - at;
      UNROLL(4)
      for (int i = 0; i < transform_count; ++i) {
        float* const plane = to + i * lines.to_plane + at;
        if (rest >= lanes) {
          planes[i].store(plane);
        } else {
          planes[i].store_first(plane, rest);
        }
      }
    }
  }
}

bool restore(const Sums& sums) {
  Floats rests = Floats::zero();  // 0, or NaN after a result that is not finite
  for (std::int64_t at = 0; at < sums.positions; at += lanes) {
    Floats m[transform_count];
    UNROLL(4)
    for (int i = 0; i < transform_count; ++i) {
      m[i] = Floats::part(sums.from + i * sums.from_plane + at, 0, sums.positions - at);
    }
    Floats pixels[2] = {m[0] + (m[1] + m[2]), (m[1] - m[2]) - m[3]};
    UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      rests = rests + (pixels[i] - pixels[i]);
      if (sums.slope != 1.0f) pixels[i] = sloped(pixels[i], sums.slope);
    }
    const std::int64_t rest = sums.pixels - 2 * at;
    float* const to = sums.to + 2 * at;
    first_in_turns(pixels[0], pixels[1]).store_first(to, rest);
    if (rest > lanes) last_in_turns(pixels[0], pixels[1]).store_first(to + lanes, rest - lanes);
  }
  return rests.sum() == 0.0f;
}

}  // namespace

const Kernels& SPECOPS_SET() {
#if defined(__AVX512F__)  // 32 registers
  static const Kernels found = {
      SPECOPS_NAME, lanes, {shape<8, 3>(), shape<4, 6>(), shape<2, 6>(), shape<1, 6>()}, copy, transform, restore};
#else
  static const Kernels found = {
      SPECOPS_NAME, lanes, {shape<4, 3>(), shape<2, 4>(), shape<1, 6>(), shape<1, 6>()}, copy, transform, restore};
#endif
  return found;
}

}  // namespace specops::volumes
