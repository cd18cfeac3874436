// How tiles read the input of a convolution: as planes with a constant distance between the activations of adjacent positions.
#pragma once

#include <cstdint>
#include <vector>

#include "quantized_conv_geometry.h"

namespace specops::byte_conv {

// The activations of an output pixel: runs of adjacent ones. Each run is padded to whole chunks, with weights of 0.
struct TileDepth {
  std::int64_t run_taps, runs, run_chunks, chunk_depth;

  // `width` is that of the kernel. `adjacent`: whether the taps along the width are adjacent.
  TileDepth(std::int64_t channels, std::int64_t taps, std::int64_t width, bool adjacent);
  std::int64_t run_depth() const { return run_chunks * chunk_depth; }
  std::int64_t depth() const { return runs * run_depth(); }
  // The index of the first channel of a tap.
  std::int64_t place(std::int64_t tap, std::int64_t channels) const {
    return tap / run_taps * run_depth() + tap % run_taps * channels;
  }
};

// The padded input, one group after another. Lines whose distance is a multiple of the stride are adjacent. Output pixels are
// positions along a line; positions after the last output pixel of a line are not results. If a convolution has no padding and
// no strides, its input is the plane.
class Planes {
 public:
  Planes(const Geometry& geometry, const TileDepth& depth);

  bool is_input() const { return is_input_; }
  // Whether the numbers below fit 64 bits. Otherwise, no other function may be called.
  bool is_representable() const { return is_representable_; }
  // The bytes of an image, and the number of bytes after the last image that may be read.
  std::int64_t image_bytes() const { return geometry_.groups * group_bytes_; }
  std::int64_t bytes_beyond() const;

  std::int64_t lines() const { return geometry_.groups * depths_ * phases() * phase_lines_; }  // of an image
  // Writes a line of an image. `zeros` is one zero point for each channel.
  void fill(const std::uint8_t* image, std::int64_t line, const std::uint8_t* zeros, std::uint8_t* to) const;

  // Positions are counted in runs, whose results are adjacent. If the input is the plane, all images form one.
  std::int64_t runs() const { return geometry_.groups * group_runs(); }  // of an image
  std::int64_t run_positions() const { return (run_lines_ - 1) * line_positions_ + line_results_; }
  std::int64_t group_of(std::int64_t run) const { return run / group_runs(); }
  std::int64_t begin(std::int64_t run) const;         // in bytes, from the start of an image
  std::int64_t first_result(std::int64_t run) const;  // the first output pixel
  std::int64_t step() const { return step_; }
  std::int64_t line_positions() const { return line_positions_; }
  std::int64_t line_results() const { return line_results_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // of the chunks

 private:
  std::int64_t group_runs() const { return is_input_ ? 1 : geometry_.out[0] * (geometry_.out[1] / run_lines_); }
  std::int64_t phases() const { return static_cast<std::int64_t>(phases_.size()); }

  Geometry geometry_;
  TileDepth depth_;
  bool is_input_, is_representable_ = true;
  std::int64_t width_ = 0, phase_lines_ = 0, depths_ = 0;  // pixels of a line, lines of a phase, planes of phases
  std::vector<std::int64_t> phases_;                       // line numbers modulo the stride
  std::int64_t plane_bytes_ = 0, group_bytes_ = 0;
  std::int64_t step_ = 0, line_positions_ = 0, line_results_ = 0, run_lines_ = 1;
  std::vector<std::int64_t> offsets_;
};

}  // namespace specops::byte_conv
