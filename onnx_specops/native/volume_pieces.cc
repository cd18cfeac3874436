#include "volume_pieces.h"

#include <algorithm>
#include <map>
#include <utility>

namespace specops::volumes {

namespace {

// The maximum number of positions of a run. The minimum for squares, which share weights; volumes also share weights between
// slices.
constexpr std::int64_t longest_run = 3 * most_positions, shortest_run = 64, shortest_run_of_volumes = 48;
// Runs of squares are so short that the inputs of this many output slices stay in the cache.
constexpr std::int64_t slices_together = 8;
// The number of copied inputs that stay in the second-level cache for all columns, and in the first-level cache for some
// columns.
constexpr std::int64_t second_level = std::int64_t{3} << 15, first_level = std::int64_t{1} << 12, some_columns = 16;
// The number of inputs of squares, or inputs and sums, that stay in the second-level cache.
constexpr std::int64_t second_level_of_squares = std::int64_t{1} << 17;
// The maximum number of columns of a piece. More columns are divided between threads. With fewer than the minimum, squares are
// transformed again too often.
constexpr std::int64_t most_columns = 256, fewest_columns = 32;
// With at least this many columns, tight copies save time.
constexpr std::int64_t many_columns = 16;
// A cache line.
constexpr std::int64_t aligned = 16;
// Copies without positions between lines have more planes. They save time if more than one in this many positions is between
// lines.
constexpr std::int64_t few_between = 8;
// The maximum number of slices of a piece. More slices save little.
constexpr std::int64_t most_slices = 32;
// If taps are farther apart than this, pieces are as long as that distance. Otherwise, copies would take longer than products.
constexpr std::int64_t far = 8 * longest_run;

std::int64_t round_up(std::int64_t x, std::int64_t step) { return divide_up(x, step) * step; }

// The size of the first of equal parts, each of which is at most `most`.
std::int64_t divide_equally(std::int64_t all, std::int64_t most) { return divide_up(all, divide_up(all, most)); }

}  // namespace

struct Pieces::Piece {
  std::int64_t group, z, slices, begin, end;  // the positions [begin, end) of the output slices from z on
  std::int64_t column, columns;
};

struct Pieces::Run {
  std::int64_t z, begin, end;  // the positions [begin, end) of an output slice
  TapRange inside;             // the taps along the depth that are within the volume

  std::int64_t positions() const { return end - begin; }
};

struct Pieces::Memory {
  float *inputs, *sums;
};

Pieces::Pieces(const Geometry& geometry)
    : g_(geometry),
      tight_(geometry.transformed == 0 && geometry.group_columns >= many_columns && geometry.out[1] > 1 &&
             (geometry.width - geometry.out[2]) * few_between > geometry.width),
      row_(geometry.transformed > 0 ? geometry.line_positions() + geometry.transform_start(geometry.kernel[2] - 1)
           : tight_                 ? geometry.out[2]
                                    : geometry.width),
      all_positions_((geometry.rows() - 1) * row_ +
                     (geometry.transformed > 0 ? geometry.line_positions() : std::min(geometry.out[2], row_))),
      columns_(std::min(most_columns, g_.group_columns)),
      chunk_(geometry.chunk()) {
  find_places();
  divide();
  divide_columns();
  line_ = positions_ + round_up(reach_, aligned);
  slice_step_ = static_cast<std::int64_t>(planes_.size()) * line_;
  channel_step_ = covered(slices_) * slice_step_;
  transform_step_ = copied_ * channel_step_;
  taps_ = measure_taps(chunk_);
  last_taps_ = measure_taps(g_.group_channels % chunk_);
}

void Pieces::find_places() {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> indices;
  // Blocks of `block` positions have inputs that are `step` times as far apart.
  const bool is_line = g_.transformed == 1;
  const std::int64_t block = is_line ? g_.gap() : 1, step = is_line ? 2 * block : g_.strides[2];
  for (std::int64_t h = 0; h < g_.kernel[1]; ++h) {
    for (std::int64_t w = 0; w < g_.kernel[2]; ++w) {
      const std::int64_t down = h * g_.dilations[1], right = is_line ? g_.transform_start(w) : w * g_.dilations[2];
      const Plane plane{down % g_.strides[1], tight_ ? right : right % step};
      const auto [found, is_new] =
          indices.emplace(std::pair(plane.remainder, plane.column), static_cast<std::int64_t>(planes_.size()));
      if (is_new) planes_.push_back(plane);
      places_.push_back({found->second, down / g_.strides[1] * row_ + (right - plane.column) / step * block});
      reach_ = std::max(reach_, places_.back().distance);
    }
  }
}

// The number of copied input slices for `slices` output slices.
std::int64_t Pieces::covered(std::int64_t slices) const { return (slices - 1) * g_.strides[0] + g_.kernel[0]; }

// The number of copied planes of a channel for `slices` output slices.
std::int64_t Pieces::planes(std::int64_t slices) const {
  return element_count({covered(slices), static_cast<std::int64_t>(planes_.size()), g_.transforms()});
}

void Pieces::divide() {
  const std::int64_t lanes = kernels().lanes, channels = std::max<std::int64_t>(g_.group_channels, 1);
  const std::int64_t reach = round_up(reach_, aligned);
  const std::int64_t cached = g_.transformed > 1 ? second_level_of_squares : second_level;
  const std::int64_t longest = g_.transformed > 1 ? longest_run_of_squares() : longest_run_of_taps();
  // Runs of several tiles are whole tiles.
  const std::int64_t tile = kernels().shapes[0].packs * lanes;
  run_ = divide_equally(all_positions_, longest);
  run_ = round_up(run_, run_ > tile ? tile : lanes);
  positions_ = run_;
  slices_ = 1;
  copied_ = channels;
  if (reach_ > far) {
    positions_ = divide_up(reach_, run_) * run_;
  } else if (cached / planes(1) / channels >= run_ + reach) {
    divide_slices(cached / channels);
  } else {
    copied_ = std::min(std::max<std::int64_t>(cached / planes(1) / (run_ + reach) / chunk_, 1) * chunk_, channels);
  }
  depths_ = divide_up(g_.out[0], slices_);
  lines_ = divide_up(all_positions_, positions_);
}

std::int64_t Pieces::longest_run_of_taps() const {
  const std::int64_t longest = first_level / chunk_ / (planes(1) / g_.transforms()) - round_up(reach_, aligned);
  return std::clamp(longest / most_positions * most_positions, most_positions, longest_run);
}

std::int64_t Pieces::longest_run_of_squares() const {
  const std::int64_t tile = kernels().shapes[0].packs * kernels().lanes;  // runs are whole tiles
  const bool is_volume = g_.kernel[0] > 1;
  const std::int64_t inputs = g_.group_channels * (is_volume ? covered(slices_together) : 1);
  const std::int64_t longest = second_level_of_squares / (g_.transforms() * std::max(inputs, g_.group_channels + columns_));
  return std::clamp(longest / tile * tile, is_volume ? shortest_run_of_volumes : shortest_run, longest_run);
}

// With few pieces of squares, divides their columns, so that there is a piece for each thread.
void Pieces::divide_columns() {
  parts_ = divide_up(g_.group_columns, columns_);
  while (g_.transformed > 1 && columns_ > fewest_columns && count() < Context::most_pieces() / Context::pieces_of_thread) {
    columns_ = round_up(divide_up(columns_, 2), most_outputs);
    parts_ = divide_up(g_.group_columns, columns_);
  }
}

// Chooses the slices and positions of a piece so that the fewest numbers are copied. `most` is the number of floats available
// to each channel.
void Pieces::divide_slices(std::int64_t most) {
  // The slices of consecutive windows overlap and are adjacent.
  const bool shared = g_.dilations[0] == 1 && g_.strides[0] < g_.kernel[0];
  const std::int64_t reach = round_up(reach_, aligned), runs = divide_up(all_positions_, run_);
  const std::int64_t most_at_once = shared ? std::min(g_.out[0], most_slices) : 1;
  double fewest = 0.0;
  for (std::int64_t slices = 1; slices <= most_at_once && most / planes(slices) >= run_ + reach; ++slices) {
    const std::int64_t positions = std::min((most / planes(slices) - reach) / run_, runs) * run_;
    const double copies = static_cast<double>(planes(slices) * (positions + reach)) / static_cast<double>(slices * positions);
    if (slices > 1 && copies >= fewest) continue;
    fewest = copies;
    slices_ = slices;
    positions_ = positions;
  }
  const auto few = [&] {
    const std::int64_t pieces = divide_up(g_.out[0], slices_) * divide_up(all_positions_, positions_);
    return g_.groups * divide_up(g_.group_columns, columns_) * pieces < Context::most_pieces();
  };
  while (few() && (slices_ > 1 || positions_ > run_)) {
    if (positions_ > run_) {
      positions_ = divide_up(positions_ / run_, 2) * run_;
    } else {
      slices_ = divide_up(slices_, 2);
    }
  }
  slices_ = divide_equally(g_.out[0], slices_);
  positions_ = divide_equally(runs, positions_ / run_) * run_;
}

std::vector<std::int64_t> Pieces::measure_taps(std::int64_t channels) const {
  std::vector<std::int64_t> taps;
  taps.reserve(static_cast<std::size_t>(channels * g_.taps));
  for (std::int64_t d = 0; d < g_.kernel[0]; ++d) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (const Place& at : places_) {
        taps.push_back(d * slice_step_ + c * channel_step_ + at.plane * line_ + at.distance);
      }
    }
  }
  return taps;
}

bool Pieces::compute(std::int64_t first, std::int64_t last, const Operands& operands, float* memory) const {
  bool finite = true;
  for (std::int64_t at = first; at < last; ++at) {
    const std::int64_t part = at % parts_, place = at / parts_ % lines_, depth = at / parts_ / lines_;
    Piece piece;
    piece.group = depth / depths_;
    piece.z = depth % depths_ * slices_;
    piece.slices = std::min(slices_, g_.out[0] - piece.z);
    piece.begin = place * positions_;
    piece.end = std::min(piece.begin + positions_, all_positions_);
    piece.column = piece.group * g_.group_columns + part * columns_;
    piece.columns = std::min(columns_, g_.group_columns - part * columns_);
    finite = compute(piece, operands, {memory, memory + room_for_inputs()}) && finite;
  }
  return finite;
}

bool Pieces::compute(const Piece& piece, const Operands& operands, const Memory& memory) const {
  // All sums of a transform are computed before those of the next transform.
  const std::int64_t at_once = g_.transformed > 0 ? piece.columns : some_columns;
  bool finite = true;
  // Either all channels are copied at once, or the piece is one run, whose sums are kept between copies.
  for (std::int64_t first = 0; first == 0 || first < g_.group_channels; first += copied_) {
    const std::int64_t count = std::min(copied_, g_.group_channels - first);
    copy(piece, operands, first, count, memory);
    for (std::int64_t slice = 0; slice < piece.slices; ++slice) {
      Run run;
      run.z = piece.z + slice;
      run.inside = g_.inside(0, run.z);
      for (run.begin = piece.begin; run.begin < piece.end; run.begin += run_) {
        run.end = std::min(run.begin + run_, piece.end);
        const float* const from =
            memory.inputs + (slice * g_.strides[0] + run.inside.first) * slice_step_ + run.begin - piece.begin;
        for (std::int64_t done = 0; done < piece.columns; done += at_once) {
          const std::int64_t column = piece.column + done, columns = std::min(at_once, piece.columns - done);
          float* const sums = memory.sums + done * run_;
          for (std::int64_t transform = 0; transform < g_.transforms(); ++transform) {
            for (std::int64_t c = 0; c == 0 || c < count; c += chunk_) {
              add(run, operands, transform, first + c, from + c * channel_step_ + transform * transform_step_, column,
                  columns, sums + transform * columns_ * run_);
            }
          }
          if (first + count < g_.group_channels) continue;
          if (g_.transformed > 0) {
            finite = restore(run, operands, sums, column, columns) && finite;
          } else {
            store(run, operands, sums, column, columns);
          }
        }
      }
    }
  }
  return finite;
}

// Adds the products of a chunk of channels, from `from` on, to the sums of some columns. The last chunk completes them.
void Pieces::add(const Run& run, const Operands& operands, std::int64_t transform, std::int64_t channel, const float* from,
                 std::int64_t first_column, std::int64_t columns, float* sums) const {
  constexpr float zeros[most_outputs] = {};
  const std::int64_t channels = std::min(chunk_, g_.group_channels - channel), lanes = kernels().lanes;
  const bool is_last = channel + channels == g_.group_channels;
  // In each dimension, the second sum is added to all pixels of a position, so the bias is added to it.
  const bool biased = transform == (g_.transforms() - 1) / (transform_count - 1);
  Tile tile{};
  tile.taps = (channels == chunk_ ? taps_ : last_taps_).data();
  tile.tap_count = (run.inside.last - run.inside.first) * channels * g_.area();
  tile.slope = is_last && g_.transformed == 0 ? operands.slope : 1.0f;
  tile.to_step = run_;
  const std::int64_t size = g_.group_channels * g_.taps;
  const std::int64_t before = channel * g_.taps + run.inside.first * channels * g_.area();
  const float* const weights = operands.weights + transform * g_.columns * size;
  each_block(first_column, columns, [&](std::int64_t column, const Shape& shape) {
    tile.weights = weights + column * size + before * shape.outputs;
    tile.bias = channel > 0 ? nullptr : biased ? operands.biases + column : zeros;
    float* const to = sums + (column - first_column) * run_;
    for (std::int64_t at = 0; at < run.positions();) {
      const std::int64_t rest = divide_up(run.positions() - at, lanes);
      // Avoids a last tile of a single pack, which would compute too few sums at a time.
      const std::int64_t packs = rest == shape.packs + 1 ? divide_up(rest, 2) : std::min<std::int64_t>(rest, shape.packs);
      tile.from = from + at;
      tile.to = to + at;
      shape.multiply[packs - 1](tile);
      at += packs * lanes;
    }
  });
}

// Copies the inputs of some channels for the windows of a piece. Slices outside the volume are never read.
void Pieces::copy(const Piece& piece, const Operands& operands, std::int64_t channel, std::int64_t count,
                  const Memory& memory) const {
  const std::int64_t length = round_up(piece.end - piece.begin, kernels().lanes) + reach_;
  const std::int64_t image = g_.in[1] * g_.in[2], covers = covered(piece.slices);
  float* to = memory.inputs;
  for (std::int64_t c = 0; c < count; ++c, to += channel_step_) {
    const float* const from = operands.x + (piece.group * g_.group_channels + channel + c) * g_.in[0] * image;
    for (std::int64_t slice = 0; slice < covers; ++slice) {
      const std::int64_t z = g_.start(0, piece.z) + slice * g_.dilations[0];
      if (z < 0 || z >= g_.in[0]) continue;
      float* next = to + slice * slice_step_;
      for (const Plane& plane : planes_) {
        if (g_.transformed > 1) {
          transform_squares(from + z * image, piece.begin, piece.begin + length, next);
        } else if (g_.transformed > 0) {
          transform_lines(from + z * image, plane, piece.begin, piece.begin + length, next);
        } else {
          copy_plane(from + z * image, plane, piece.begin, length, next);
        }
        next += line_;
      }
    }
  }
}

// Transforms lines of the pixels of a plane at the positions [first, last), with zeros around the image.
void Pieces::transform_lines(const float* slice, const Plane& plane, std::int64_t first, std::int64_t last,
                             float* to) const {
  const std::int64_t top = plane.remainder - g_.begin[1], begin = g_.begin[2] - plane.column;
  for (std::int64_t at = first; at < last;) {
    const std::int64_t row = at / row_, left = at % row_, count = std::min(row_ - left, last - at);
    const std::int64_t line = top + row * g_.strides[1];
    if (line < 0 || line >= g_.in[1]) {
      for (std::int64_t i = 0; i < transform_count; ++i) std::fill_n(to + i * transform_step_ + at - first, count, 0.0f);
    } else {
      kernels().transform({slice + line * g_.in[2] - begin, begin, begin + g_.in[2], g_.gap(), left, count,
                           to + (at - first), transform_step_, last - at});
    }
    at += count;
  }
}

// Transforms squares of pixels at the positions [first, last), with zeros around the image.
void Pieces::transform_squares(const float* slice, std::int64_t first, std::int64_t last, float* to) const {
  const std::int64_t all = std::min(last, all_positions_), planes = transforms_of(2);
  for (std::int64_t at = first; at < all;) {
    const std::int64_t row = at / row_, left = at % row_, count = std::min(row_ - left, all - at);
    const std::int64_t top = 2 * row - g_.begin[1], start = 2 * left - g_.begin[2];
    kernels().transform_squares({slice + top * g_.in[2] + start, g_.in[2], -top, g_.in[1] - top, -start, g_.in[2] - start,
                                 to + (at - first), transform_step_, count, last - at});
    at += count;
  }
  for (std::int64_t i = 0; i < planes && all < last; ++i) std::fill_n(to + i * transform_step_ + all - first, last - all, 0.0f);
}

// Copies the pixels of a plane at `count` positions, with zeros around the image.
void Pieces::copy_plane(const float* slice, const Plane& plane, std::int64_t from, std::int64_t count, float* to) const {
  const std::int64_t height = g_.strides[1], step = g_.strides[2];
  // The positions of a line within the image, and the lines within the image.
  const std::int64_t start = plane.column - g_.begin[2], top = plane.remainder - g_.begin[1];
  const std::int64_t before = std::min(start < 0 ? divide_up(-start, step) : 0, row_);
  const std::int64_t until = std::clamp(divide_up(std::max<std::int64_t>(g_.in[2] - start, 0), step), before, row_);
  const std::int64_t above = top < 0 ? divide_up(-top, height) : 0;
  const std::int64_t below = std::max(divide_up(std::max<std::int64_t>(g_.in[1] - top, 0), height), above);
  for (const std::int64_t end = from + count; from < end;) {
    const std::int64_t line = from / row_, left = from % row_;
    // A part of a line, or several whole lines.
    const std::int64_t width = std::min(row_ - left, end - from), lines = width == row_ ? (end - from) / row_ : 1;
    const std::int64_t first = std::clamp(line, above, below), last = std::clamp(line + lines, first, below);
    const std::int64_t zeros = std::clamp(before - left, std::int64_t{0}, width);
    const std::int64_t pixels = std::clamp(until - left, zeros, width) - zeros;
    if (first == last || pixels == 0) {
      std::fill_n(to, lines * width, 0.0f);
    } else {
      std::fill_n(to, (first - line) * width, 0.0f);
      const float* const pixel = slice + (top + first * height) * g_.in[2] + start + (left + zeros) * step;
      kernels().copy({last - first, pixel, height * g_.in[2], step, to + (first - line) * width, width, width, zeros, pixels});
      std::fill_n(to + (last - line) * width, (line + lines - last) * width, 0.0f);
    }
    to += lines * width;
    from += lines * width;
  }
}

// Stores the sums except those between lines.
void Pieces::store(const Run& run, const Operands& operands, const float* sums, std::int64_t column,
                   std::int64_t columns) const {
  const std::int64_t pixels = g_.out[1] * g_.out[2], step = g_.out[0] * pixels;
  float* const y = operands.y + (column * g_.out[0] + run.z) * pixels;
  if (row_ == g_.out[2]) {
    return kernels().copy({columns, sums, run_, 1, y + run.begin, step, run.positions(), 0, run.positions()});
  }
  for (std::int64_t at = run.begin; at < run.end;) {
    const std::int64_t row = at / row_, left = at % row_;
    // A part of a line, or several whole lines.
    const std::int64_t rows = left == 0 ? std::max<std::int64_t>((run.end - at) / row_, 1) : 1;
    const std::int64_t next = std::min(run.end, (row + rows) * row_), count = std::min(next - at, g_.out[2] - left);
    for (std::int64_t o = 0; o < columns && count > 0; ++o) {
      float* const to = y + o * step + row * g_.out[2] + left;
      kernels().copy({rows, sums + o * run_ + at - run.begin, row_, 1, to, g_.out[2], count, 0, count});
    }
    at = next;
  }
}

// Stores the pixels of transformed sums. Returns whether all pixels are finite.
bool Pieces::restore(const Run& run, const Operands& operands, const float* sums, std::int64_t column,
                     std::int64_t columns) const {
  const std::int64_t pixels = g_.out[1] * g_.out[2], step = g_.out[0] * pixels;
  float* const y = operands.y + (column * g_.out[0] + run.z) * pixels;
  bool finite = true;
  const auto restore = g_.transformed > 1 ? kernels().restore_squares : kernels().restore;
  const std::int64_t height = g_.transformed > 1 ? 2 : 1;
  for (std::int64_t o = 0; o < columns; ++o) {
    for (std::int64_t at = run.begin; at < run.end;) {
      const std::int64_t row = at / row_, left = at % row_, next = std::min(run.end, (row + 1) * row_);
      const std::int64_t lines = std::min(height, g_.out[1] - height * row);
      finite = restore({sums + o * run_ + at - run.begin, columns_ * run_, left, next - at, operands.slope,
                        y + o * step + height * row * g_.out[2], g_.out[2], g_.gap(), g_.out[2], lines}) &&
               finite;
      at = next;
    }
  }
  return finite;
}

}  // namespace specops::volumes
