#include "quantized_conv_planes.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "quantized_conv.h"

namespace specops::byte_conv {

namespace {

constexpr double most_bytes = 1e15;

// The approximate time for `positions` results. Half of a pair of tiles takes more than half of the pair's time.
double cost(std::int64_t positions) {
  const std::int64_t rest = positions % (2 * tile_rows);
  return static_cast<double>(positions / (2 * tile_rows)) + (rest == 0 ? 0.0 : rest <= tile_rows ? 0.6 : 1.0);
}

// Copies `count` pixels of `size` bytes.
void copy_pixels(const std::uint8_t* from, std::int64_t step, std::int64_t size, std::int64_t count, std::uint8_t* to) {
  const auto in_parts_of = [&](auto part) {
    for (std::int64_t i = 0; i < count; ++i, from += step) {
      for (std::int64_t at = 0; at < size; at += part, to += part) std::memcpy(to, from + at, part);
    }
  };
  if (step == size) {
    std::memcpy(to, from, static_cast<std::size_t>(count * size));
  } else if (size % 16 == 0) {
    in_parts_of(std::integral_constant<std::int64_t, 16>());
  } else if (size % 4 == 0) {
    in_parts_of(std::integral_constant<std::int64_t, 4>());
  } else {
    in_parts_of(std::integral_constant<std::int64_t, 1>());
  }
}

}  // namespace

TileDepth::TileDepth(std::int64_t channels, std::int64_t taps, std::int64_t width, bool adjacent)
    : run_taps(adjacent ? width : 1), runs(taps / run_taps) {
  const std::int64_t run = std::max<std::int64_t>(run_taps * channels, 1);
  run_chunks = (run + tile_depth - 1) / tile_depth;
  chunk_depth = up((run + run_chunks - 1) / run_chunks, depth_unit);
}

Planes::Planes(const Geometry& g, const TileDepth& depth) : geometry_(g), depth_(depth) {
  constexpr Sizes ones = {1, 1, 1}, none = {0, 0, 0};
  const std::int64_t size = g.group_channels;
  is_input_ = g.taps == 1 && g.strides == ones && g.begin == none && g.in == g.out;
  if (is_input_) {
    step_ = g.channels;
    line_positions_ = line_results_ = g.pixels();
  } else {
    const auto reach = [&](std::size_t axis) { return (g.kernel[axis] - 1) * g.dilations[axis]; };
    const std::int64_t stride = g.strides[1];
    width_ = up((g.out[2] - 1) * g.strides[2] + reach(2) + 1, g.strides[2]);
    phase_lines_ = g.out[1] + reach(1) / stride;
    depths_ = (g.out[0] - 1) * g.strides[0] + reach(0) + 1;
    for (std::int64_t h = 0; h < std::min(g.kernel[1], stride); ++h) {
      const std::int64_t phase = h * g.dilations[1] % stride;
      if (std::find(phases_.begin(), phases_.end(), phase) == phases_.end()) phases_.push_back(phase);
    }
    // Strides and padding may be large although there are few results.
    double bytes = static_cast<double>(g.groups) * static_cast<double>(size);
    for (const std::int64_t count : {depths_, phases(), phase_lines_, width_}) bytes *= static_cast<double>(count);
    is_representable_ = bytes < most_bytes;
    if (!is_representable_) return;
    plane_bytes_ = phases() * phase_lines_ * width_ * size;
    group_bytes_ = depths_ * plane_bytes_;
    step_ = g.strides[2] * size;
    line_positions_ = width_ / g.strides[2];
    line_results_ = g.out[2];
    run_lines_ = g.out[1];
    if (cost(run_positions()) > static_cast<double>(g.out[1]) * cost(line_results_)) run_lines_ = 1;
  }
  for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
    for (std::int64_t h = 0; h < g.kernel[1]; ++h) {
      for (std::int64_t w = 0; w < g.kernel[2]; w += depth.run_taps) {
        std::int64_t at = 0;
        if (!is_input_) {
          const std::int64_t lines = h * g.dilations[1];
          const auto phase = std::find(phases_.begin(), phases_.end(), lines % g.strides[1]) - phases_.begin();
          const std::int64_t line = phase * phase_lines_ + lines / g.strides[1];
          at = d * g.dilations[0] * plane_bytes_ + (line * width_ + w * g.dilations[2]) * size;
        }
        for (std::int64_t chunk = 0; chunk < depth.run_chunks; ++chunk) offsets_.push_back(at + chunk * depth.chunk_depth);
      }
    }
  }
}

std::int64_t Planes::bytes_beyond() const { return 2 * tile_rows * step_ + depth_.run_depth(); }

void Planes::fill(const std::uint8_t* image, std::int64_t line, const std::uint8_t* zeros, std::uint8_t* to) const {
  const Geometry& g = geometry_;
  const std::int64_t size = g.group_channels, within = line % phase_lines_, plane = line / phase_lines_ / phases();
  const std::int64_t phase = phases_[static_cast<std::size_t>(line / phase_lines_ % phases())], group = plane / depths_;
  const std::int64_t depth = plane % depths_ - g.begin[0], height = within * g.strides[1] + phase - g.begin[1];
  to += line * width_ * size;
  zeros += group * size;
  const auto pad = [&](std::int64_t count) {
    copy_pixels(zeros, 0, size, count, to);
    to += count * size;
  };
  if (depth < 0 || depth >= g.in[0] || height < 0 || height >= g.in[1]) return pad(width_);
  const std::int64_t before = std::min(g.begin[2], width_), inside = std::min(g.in[2], width_ - before);
  pad(before);
  copy_pixels(image + (depth * g.in[1] + height) * g.in[2] * g.channels + group * size, g.channels, size, inside, to);
  to += inside * size;
  pad(width_ - before - inside);
}

std::int64_t Planes::begin(std::int64_t run) const {
  const std::int64_t group = group_of(run), within = run % group_runs();
  if (is_input_) return group * geometry_.group_channels;
  const std::int64_t lines = geometry_.out[1] / run_lines_, depth = within / lines * geometry_.strides[0];
  return group * group_bytes_ + depth * plane_bytes_ + within % lines * width_ * geometry_.group_channels;
}

std::int64_t Planes::first_result(std::int64_t run) const {
  return run % group_runs() * run_lines_ * line_results_;
}

}  // namespace specops::byte_conv
