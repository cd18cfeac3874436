#include "volume_pieces.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace specops::volumes {

namespace {

// The most positions of a piece.
constexpr std::int64_t most_at_once = 3 * most_positions;
// The copied inputs that a second-level cache keeps for many columns, and those that a first-level cache keeps for some of them.
constexpr std::int64_t second_level = std::int64_t{1} << 16, first_level = std::int64_t{1} << 12, some_columns = 16;
// The columns of a piece, at most. Threads share the others.
constexpr std::int64_t most_columns = 256;
// Copies take less time than they save for so many columns.
constexpr std::int64_t many_columns = 16;
// A cache line.
constexpr std::int64_t aligned = 16;
// Copies without positions between lines are larger. They take less time if one of so many positions is between lines.
constexpr std::int64_t few_between = 8;

std::int64_t round_up(std::int64_t x, std::int64_t step) { return divide_up(x, step) * step; }

}  // namespace

struct Pieces::Piece {
  std::int64_t group, z, begin, end;  // the positions [begin, end) of the output slice z
  std::int64_t column, columns;
  TapRange inside;  // the taps along the depth that are within the volume

  std::int64_t positions() const { return end - begin; }
};

Pieces::Pieces(const Geometry& geometry, const Slab& slab, const Operands& operands)
    : g_(geometry),
      slab_(slab),
      operands_(operands),
      packs_(geometry.group_columns >= many_columns),
      tight_(packs_ && geometry.out[1] > 1 && (geometry.width - geometry.out[2]) * few_between > geometry.width),
      row_(tight_ ? geometry.out[2] : geometry.width),
      all_positions_((geometry.out[1] - 1) * row_ + geometry.out[2]),
      chunk_(geometry.chunk()) {
  find_places();
  const std::int64_t planes = static_cast<std::int64_t>(planes_.size()), channels = std::max<std::int64_t>(g_.group_channels, 1);
  const std::int64_t copies = g_.kernel[0] * planes;  // of each channel
  const std::int64_t most = first_level / (chunk_ * copies) - reach_;
  divide(std::clamp(most / most_positions * most_positions, most_positions, most_at_once));
  if (packs_) {
    // Tight copies have whole lines, also those of the first and the last position.
    line_ = round_up(positions_ + reach_ + (tight_ ? 2 * row_ : 0), aligned);
    channel_step_ = planes * line_;
    copied_ = std::min(std::max<std::int64_t>(second_level / (copies * line_ * chunk_), 1) * chunk_, channels);
    slice_step_ = copied_ * channel_step_;
    columns_ = std::min(most_columns, g_.group_columns);
  } else {
    line_ = 0;
    channel_step_ = slab_.depth() * g_.slice();
    slice_step_ = g_.dilations[0] * g_.slice();
    copied_ = channels;
    columns_ = g_.group_columns;
  }
  parts_ = divide_up(g_.group_columns, columns_);
  taps_ = measure_taps(chunk_);
  last_taps_ = measure_taps(g_.group_channels % chunk_);
}

void Pieces::find_places() {
  std::unordered_map<std::int64_t, std::int64_t> indices;
  for (std::int64_t h = 0; h < g_.kernel[1]; ++h) {
    for (std::int64_t w = 0; w < g_.kernel[2]; ++w) {
      const std::int64_t down = h * g_.dilations[1], right = w * g_.dilations[2];
      const std::int64_t remainder = down % g_.strides[1] * g_.strides[2] + right % g_.strides[2];
      const std::int64_t column = right / g_.strides[2], line = down / g_.strides[1] * row_;
      const std::int64_t plane = remainder * g_.plane() + (tight_ ? column : 0);
      const auto [found, is_new] = indices.emplace(plane, static_cast<std::int64_t>(planes_.size()));
      if (is_new) planes_.push_back(plane);
      places_.push_back({found->second, line + (tight_ ? 0 : column)});
      reach_ = std::max(reach_, places_.back().distance);
    }
  }
}

// Divides an output slice into equal pieces of at most so many positions.
void Pieces::divide(std::int64_t most) {
  positions_ = round_up(divide_up(all_positions_, divide_up(all_positions_, most)), kernels().lanes);
  lines_ = divide_up(all_positions_, positions_);
}

std::vector<std::int64_t> Pieces::measure_taps(std::int64_t channels) const {
  std::vector<std::int64_t> taps;
  taps.reserve(static_cast<std::size_t>(channels * g_.taps));
  for (std::int64_t d = 0; d < g_.kernel[0]; ++d) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (const Place& at : places_) {
        const std::int64_t plane = packs_ ? at.plane * line_ : planes_[static_cast<std::size_t>(at.plane)];
        taps.push_back(d * slice_step_ + c * channel_step_ + plane + at.distance);
      }
    }
  }
  return taps;
}

void Pieces::compute(std::int64_t first, std::int64_t last) const {
  const std::int64_t packed = packs_ ? g_.kernel[0] * slice_step_ : 0;
  const std::int64_t sums = columns_ * positions_;
  const std::unique_ptr<float[]> memory(new float[static_cast<std::size_t>(packed + sums)]);
  const std::int64_t depths = slab_.last - slab_.first;
  for (std::int64_t at = first; at < last; ++at) {
    const std::int64_t part = at % parts_, line = at / parts_ % lines_, slice = at / parts_ / lines_;
    Piece piece;
    piece.group = slice / depths;
    piece.z = slab_.first + slice % depths;
    piece.begin = line * positions_;
    piece.end = std::min(piece.begin + positions_, all_positions_);
    piece.column = piece.group * g_.group_columns + part * columns_;
    piece.columns = std::min(columns_, g_.group_columns - part * columns_);
    piece.inside = g_.inside(0, piece.z);
    compute(piece, memory.get(), memory.get() + packed);
  }
}

void Pieces::compute(const Piece& piece, float* packed, float* sums) const {
  for (std::int64_t first = 0; first == 0 || first < g_.group_channels; first += copied_) {
    const std::int64_t count = std::min(copied_, g_.group_channels - first);
    if (packs_) pack(piece, first, count, packed);
    const float* const from = packs_ ? packed + (tight_ ? piece.begin % row_ : 0) : inputs(piece, first);
    for (std::int64_t done = 0; done < piece.columns; done += some_columns) {
      const std::int64_t columns = std::min(some_columns, piece.columns - done);
      for (std::int64_t c = 0; c == 0 || c < count; c += chunk_) {
        add(piece, first + c, from + c * channel_step_, piece.column + done, columns, sums + done * positions_);
      }
    }
  }
}

// Where the first slice of a channel begins in the padded input.
const float* Pieces::inputs(const Piece& piece, std::int64_t channel) const {
  if (piece.inside.first == piece.inside.last) return operands_.x;
  const std::int64_t z = g_.start(0, piece.z) + piece.inside.first * g_.dilations[0] - slab_.from;
  return operands_.x + ((piece.group * g_.group_channels + channel) * slab_.depth() + z) * g_.slice() + piece.begin;
}

// Adds the products of a chunk of channels, from `from` on, to the sums of some columns. The last chunk completes them.
void Pieces::add(const Piece& piece, std::int64_t channel, const float* from, std::int64_t first_column, std::int64_t columns,
                 float* sums) const {
  const std::int64_t channels = std::min(chunk_, g_.group_channels - channel), lanes = kernels().lanes;
  const bool is_last = channel + channels == g_.group_channels;
  Tile tile{};
  tile.taps = (channels == chunk_ ? taps_ : last_taps_).data();
  tile.tap_count = (piece.inside.last - piece.inside.first) * channels * g_.area();
  tile.slope = is_last ? operands_.slope : 1.0f;
  tile.to_step = positions_;
  const std::int64_t size = g_.group_channels * g_.taps;
  const std::int64_t before = channel * g_.taps + piece.inside.first * channels * g_.area();
  each_block(first_column, columns, [&](std::int64_t column, const Shape& shape) {
    tile.weights = operands_.weights + column * size + before * shape.outputs;
    tile.bias = channel == 0 ? operands_.biases + column : nullptr;
    float* const to = sums + (column - first_column) * positions_;
    for (std::int64_t at = 0; at < piece.positions();) {
      const std::int64_t rest = divide_up(piece.positions() - at, lanes);
      // Not a single pack after as many as possible: too few sums are computed at a time.
      const std::int64_t packs = rest == shape.packs + 1 ? divide_up(rest, 2) : std::min<std::int64_t>(rest, shape.packs);
      tile.from = from + at;
      tile.to = to + at;
      shape.multiply[packs - 1](tile);
      at += packs * lanes;
    }
    if (is_last) store(piece, to, column, shape.outputs);
  });
}

// Copies the inputs of some channels, at least those of the positions. Tight copies begin with the line of the first position.
void Pieces::pack(const Piece& piece, std::int64_t channel, std::int64_t count, float* to) const {
  const std::int64_t length = round_up(piece.positions(), kernels().lanes) + reach_;
  const std::int64_t first_line = piece.begin / row_, lines = divide_up(piece.end + reach_, row_) - first_line;
  for (std::int64_t tap = piece.inside.first; tap < piece.inside.last; ++tap, to += slice_step_) {
    float* next = to;
    for (std::int64_t c = 0; c < count; ++c) {
      const float* const slice = inputs(piece, channel + c) - piece.begin + (tap - piece.inside.first) * g_.dilations[0] * g_.slice();
      for (const std::int64_t plane : planes_) {
        if (tight_) {
          kernels().copy({lines, slice + plane + first_line * g_.width, g_.width, 1, next, row_, row_, 0, row_});
        } else {
          std::copy_n(slice + plane + piece.begin, length, next);
        }
        next += line_;
      }
    }
  }
}

// Stores sums without those between lines.
void Pieces::store(const Piece& piece, const float* sums, std::int64_t column, std::int64_t outputs) const {
  const std::int64_t pixels = g_.out[1] * g_.out[2], step = g_.out[0] * pixels;
  float* const y = operands_.y + (column * g_.out[0] + piece.z) * pixels;
  if (row_ == g_.out[2]) {
    return kernels().copy(
        {outputs, sums, positions_, 1, y + piece.begin, step, piece.positions(), 0, piece.positions()});
  }
  for (std::int64_t at = piece.begin; at < piece.end;) {
    const std::int64_t row = at / row_, left = at % row_;
    // A part of a line, or several whole ones.
    const std::int64_t rows = left == 0 ? std::max<std::int64_t>((piece.end - at) / row_, 1) : 1;
    const std::int64_t next = std::min(piece.end, (row + rows) * row_), count = std::min(next - at, g_.out[2] - left);
    for (std::int64_t o = 0; o < outputs && count > 0; ++o) {
      float* const to = y + o * step + row * g_.out[2] + left;
      kernels().copy({rows, sums + o * positions_ + at - piece.begin, row_, 1, to, g_.out[2], count, 0, count});
    }
    at = next;
  }
}

}  // namespace specops::volumes
