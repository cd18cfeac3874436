// Convolutions of volumes for one instruction set, SPECOPS_SET: a block of sums stays in registers for all channels and taps.
#include <cstring>

#include "vectors.inc"
#include "volume_conv.h"

namespace specops::volumes {
namespace {

constexpr std::int64_t lanes = Floats::size;

// A sum, times the slope if the sum is below 0. A slope of 0 is Relu, including for negative infinity.
ALWAYS Floats sloped(Floats sum, float slope) {
  return below_zero(sum, slope == 0.0f ? Floats::zero() : sum * Floats::all(slope), sum);
}

// Unrolled, because otherwise GCC 12 keeps the sums in memory.
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

ALWAYS void clear(float* to, std::int64_t count) {
  if (count < lanes) {
    Floats::zero().store_first(to, count);
  } else {
    std::memset(to, 0, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// The copied numbers from number `at` on, in all lanes. With a `step` of 2, the first function reads one number more.
template <int step>
ALWAYS Floats pack(const float* row, std::int64_t at) {
  const float* const from = row + step * at;
  return step == 1 ? Floats::load(from) : even(Floats::load(from), Floats::load(from + lanes));
}
template <int step>
ALWAYS Floats last_pack(const float* row, std::int64_t at) {
  const float* const from = row + step * at;
  return step == 1 ? Floats::load(from) : even_then_odd(Floats::load(from), Floats::load(from + lanes - 1));
}
// The same in the first lanes.
template <int step>
ALWAYS Floats part(const float* from, std::int64_t count) {
  if constexpr (step == 1) return Floats::part(from, 0, count);
  return even(Floats::part(from, 0, 2 * count - 1), Floats::part(from + lanes, 0, 2 * count - 1 - lanes));
}

// At least a vector of numbers for each row. Zeros that numbers overwrite, and numbers that are stored twice, avoid masks.
template <int step>
void copy_long_rows(const Rows& rows) {
  const std::int64_t before = rows.before, copied = rows.copied, after = rows.width - before - copied;
  const float* from = rows.from;
  float* to = rows.to;
  for (std::int64_t row = rows.count; row > 0; --row, from += rows.from_row, to += rows.to_row) {
    float* const numbers = to + before;
    float* const end = numbers + copied + after;
    for (std::int64_t at = 0; at < before; at += lanes) Floats::zero().store(to + at);
    for (std::int64_t at = 0; at < after; at += lanes) Floats::zero().store(end - lanes - at);
    for (std::int64_t at = 0; at < copied - lanes; at += lanes) pack<step>(from, at).store(numbers + at);
    last_pack<step>(from, copied - lanes).store(numbers + copied - lanes);
  }
}

template <int step>
void copy_rows(const Rows& rows) {
  if (rows.copied >= lanes) return copy_long_rows<step>(rows);
  const std::int64_t before = rows.before, copied = rows.copied, after = rows.width - before - copied;
  const std::int64_t from_row = rows.from_row, to_row = rows.to_row;
  const float* from = rows.from;
  float* to = rows.to;
  for (std::int64_t row = rows.count; row > 0; --row, from += from_row, to += to_row) {
    if (before > 0) clear(to, before);
    float* const numbers = to + before;
    if (copied > 0) part<step>(from, copied).store_first(numbers, copied);
    if (after > 0) clear(numbers + copied, after);
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

// The transforms of four numbers.
ALWAYS void transform_four(const Floats (&x)[transform_count], Floats (&to)[transform_count]) {
  to[0] = x[0] - x[2];
  to[1] = x[1] + x[2];
  to[2] = x[2] - x[1];
  to[3] = x[1] - x[3];
}

// The two pixels computed from sums.
ALWAYS void restore_four(const Floats (&sums)[transform_count], Floats (&to)[2]) {
  to[0] = sums[0] + (sums[1] + sums[2]);
  to[1] = (sums[1] - sums[2]) - sums[3];
}

// Stores the pixels of a pack of positions of an output line, from position `at` of the sums on.
template <int gap>
ALWAYS void store_pixels(const Floats (&pixels)[2], std::int64_t at, const Sums& sums, float* line) {
  const std::int64_t pixel = 2 * (sums.first + at), rest = sums.pixels - pixel, summed = 2 * (sums.positions - at);
  const std::int64_t count = rest < summed ? rest : summed;
  first_in_turns<gap>(pixels[0], pixels[1]).store_first(line + pixel, count);
  if (count > lanes) last_in_turns<gap>(pixels[0], pixels[1]).store_first(line + pixel + lanes, count - lanes);
}

// Whether all pixels that are loaded for a pack of positions are the pixels [before, after) inside the image.
template <int gap>
ALWAYS bool is_inside(std::int64_t at, std::int64_t before, std::int64_t after) {
  return 2 * at >= before && 2 * at + 2 * lanes + (transform_count - 1) * gap <= after;
}

// The four pixels of each position of a pack, `gap` apart. Those before `first` and from `last` on are zeros, unless `whole`
// is true.
template <int gap, bool whole>
ALWAYS void load_four(const float* pixel, std::int64_t first, std::int64_t last, Floats (&to)[transform_count]) {
  const auto loaded = [&](std::int64_t place) ALWAYS_LAMBDA {
    if constexpr (whole) return Floats::load(pixel + place);
    return Floats::part(pixel + place, first - place, last - place);
  };
  UNROLL(4)
  for (int i = 0; i < transform_count; ++i) to[i] = even<gap>(loaded(i * gap), loaded(i * gap + lanes));
}

// Stores the transforms of a pack of positions. `room`: the number of positions that may be overwritten.
ALWAYS void store_planes(const Floats (&planes)[transform_count], float* to, std::int64_t to_plane, std::int64_t room) {
  UNROLL(4)
  for (int i = 0; i < transform_count; ++i) {
    if (room >= lanes) {
      planes[i].store(to + i * to_plane);
    } else {
      planes[i].store_first(to + i * to_plane, room);
    }
  }
}

// `gap` is a divisor of the number of lanes, so that a pack has whole blocks of positions.
template <int gap>
void transform_blocks(const Line& line) {
  for (std::int64_t at = 0; at < line.positions; at += lanes) {
    const std::int64_t pixel = 2 * (line.first + at);
    Floats x[transform_count], planes[transform_count];
    if (is_inside<gap>(line.first + at, line.before, line.after)) {
      load_four<gap, true>(line.from + pixel, 0, 0, x);
    } else {
      load_four<gap, false>(line.from + pixel, line.before - pixel, line.after - pixel, x);
    }
    transform_four(x, planes);
    store_planes(planes, line.to + at, line.to_plane, line.room - at);
  }
}

// Calls `visit(at, count, pixel)` for each `count` positions from `first + at` on whose pixels are adjacent: those from
// `pixel` on, and those `gap` after them.
template <class Visit>
ALWAYS void each_block(std::int64_t first, std::int64_t positions, std::int64_t gap, const Visit& visit) {
  std::int64_t within = first % gap;
  for (std::int64_t at = 0; at < positions; within = 0) {
    const std::int64_t rest = positions - at, count = gap - within < rest ? gap - within : rest;
    visit(at, count, 2 * (first + at) - within);
    at += count;
  }
}

void transform_far(const Line& line) {
  each_block(line.first, line.positions, line.gap, [&](std::int64_t begin, std::int64_t count, std::int64_t first_pixel) {
    for (std::int64_t at = 0; at < count; at += lanes) {
      const std::int64_t pixel = first_pixel + at, last = pixel + (transform_count - 1) * line.gap;
      Floats x[transform_count], planes[transform_count];
      if (pixel >= line.before && last + lanes <= line.after) {
        UNROLL(4)
        for (int i = 0; i < transform_count; ++i) x[i] = Floats::load(line.from + pixel + i * line.gap);
      } else {
        for (int i = 0; i < transform_count; ++i) {
          const std::int64_t place = pixel + i * line.gap;
          x[i] = Floats::part(line.from + place, line.before - place, line.after - place);
        }
      }
      transform_four(x, planes);
      store_planes(planes, line.to + begin + at, line.to_plane, line.room - begin - at);
    }
  });
}

// The two pixels of each position of a pack, of which `count` are used. `rests` becomes NaN after a sum that is not finite.
ALWAYS void restore_pack(const float* from, std::int64_t from_plane, std::int64_t count, float slope, Floats& rests,
                         Floats (&pixels)[2]) {
  Floats m[transform_count];
  UNROLL(4)
  for (int i = 0; i < transform_count; ++i) {
    m[i] = count >= lanes ? Floats::load(from + i * from_plane) : Floats::part(from + i * from_plane, 0, count);
  }
  restore_four(m, pixels);
  UNROLL(2)
  for (int i = 0; i < 2; ++i) {
    rests = rests + (pixels[i] - pixels[i]);
    if (slope != 1.0f) pixels[i] = sloped(pixels[i], slope);
  }
}

template <int gap>
bool restore_blocks(const Sums& sums) {
  Floats rests = Floats::zero();
  for (std::int64_t at = 0; at < sums.positions; at += lanes) {
    Floats pixels[2];
    restore_pack(sums.from + at, sums.from_plane, sums.positions - at, sums.slope, rests, pixels);
    store_pixels<gap>(pixels, at, sums, sums.to);
  }
  return rests.sum() == 0.0f;
}

bool restore_far(const Sums& sums) {
  Floats rests = Floats::zero();
  each_block(sums.first, sums.positions, sums.gap, [&](std::int64_t begin, std::int64_t count, std::int64_t first_pixel) {
    for (std::int64_t at = 0; at < count; at += lanes) {
      const std::int64_t pixel = first_pixel + at, used = count - at;
      Floats pixels[2];
      restore_pack(sums.from + begin + at, sums.from_plane, used, sums.slope, rests, pixels);
      UNROLL(2)
      for (int i = 0; i < 2; ++i) {
        const std::int64_t place = pixel + i * sums.gap, rest = sums.pixels - place;
        pixels[i].store_first(sums.to + place, used < rest ? used : rest);
      }
    }
  });
  return rests.sum() == 0.0f;
}

void transform(const Line& line) {
  if (line.gap == 1) return transform_blocks<1>(line);
  if (line.gap == 2) return transform_blocks<2>(line);
  if (line.gap == 4) return transform_blocks<4>(line);
  if constexpr (lanes > 8) {
    if (line.gap == 8) return transform_blocks<8>(line);
  }
  transform_far(line);
}

bool restore(const Sums& sums) {
  if (sums.gap == 1) return restore_blocks<1>(sums);
  if (sums.gap == 2) return restore_blocks<2>(sums);
  if (sums.gap == 4) return restore_blocks<4>(sums);
  if constexpr (lanes > 8) {
    if (sums.gap == 8) return restore_blocks<8>(sums);
  }
  return restore_far(sums);
}

// The transforms of pixels at the positions of a pack. `whole`: no pixel of its vectors is outside the image.
template <bool whole>
ALWAYS void transform_pack(const Squares& squares, std::int64_t at) {
  Floats rows[transform_count][transform_count];
  UNROLL(4)
  for (int i = 0; i < transform_count; ++i) {
    Floats x[transform_count] = {Floats::zero(), Floats::zero(), Floats::zero(), Floats::zero()};
    if (i >= squares.above && i < squares.below) {
      const float* const pixel = squares.from + i * squares.from_line + 2 * at;
      load_four<1, whole>(pixel, squares.before - 2 * at, squares.after - 2 * at, x);
    }
    transform_four(x, rows[i]);
  }
  UNROLL(4)
  for (int j = 0; j < transform_count; ++j) {
    const Floats column[transform_count] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j]};
    Floats planes[transform_count];
    transform_four(column, planes);
    store_planes(planes, squares.to + at + j * squares.to_plane, transform_count * squares.to_plane, squares.room - at);
  }
}

void transform_squares(const Squares& squares) {
  for (std::int64_t at = 0; at < squares.positions; at += lanes) {
    if (is_inside<1>(at, squares.before, squares.after)) {
      transform_pack<true>(squares, at);
    } else {
      transform_pack<false>(squares, at);
    }
  }
}

bool restore_squares(const Sums& sums) {
  Floats rests = Floats::zero();
  for (std::int64_t at = 0; at < sums.positions; at += lanes) {
    Floats rows[2][transform_count];
    UNROLL(4)
    for (int j = 0; j < transform_count; ++j) {
      Floats column[transform_count], two[2];
      UNROLL(4)
      for (int i = 0; i < transform_count; ++i) {
        const float* const plane = sums.from + (i * transform_count + j) * sums.from_plane + at;
        column[i] = Floats::part(plane, 0, sums.positions - at);
      }
      restore_four(column, two);
      rows[0][j] = two[0];
      rows[1][j] = two[1];
    }
    UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      if (i == sums.lines) break;
      Floats pixels[2];
      restore_four(rows[i], pixels);
      UNROLL(2)
      for (int p = 0; p < 2; ++p) {
        rests = rests + (pixels[p] - pixels[p]);
        if (sums.slope != 1.0f) pixels[p] = sloped(pixels[p], sums.slope);
      }
      store_pixels<1>(pixels, at, sums, sums.to + i * sums.to_line);
    }
  }
  return rests.sum() == 0.0f;
}

}  // namespace

const Kernels& SPECOPS_SET() {
#if defined(__AVX512F__)  // 32 registers
  static const Kernels found = {
      SPECOPS_NAME, lanes, {shape<8, 3>(), shape<4, 6>(), shape<2, 6>(), shape<1, 6>()}, copy, transform,
      transform_squares, restore, restore_squares};
#else
  static const Kernels found = {
      SPECOPS_NAME, lanes, {shape<4, 3>(), shape<2, 4>(), shape<1, 6>(), shape<1, 6>()}, copy, transform,
      transform_squares, restore, restore_squares};
#endif
  return found;
}

}  // namespace specops::volumes
