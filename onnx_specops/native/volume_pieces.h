// The sums of a VolumeConv node, in pieces that are computed independently.
#pragma once

#include <cstdint>
#include <vector>

#include "volume_geometry.h"

namespace specops::volumes {

struct Operands {
  const float* x;        // [channels, depth, height, width]
  // [kernel's depth, channels, area, columns] for each chunk of channels of each block of columns, and for each transform
  const float* weights;
  const float* biases;   // [columns]
  float slope;
  float* y;  // [columns, depth, height, width]
};

// A piece consists of some columns of one group, at some positions of some output slices. It copies the inputs of its windows,
// including padding, so that they stay in the second-level cache for all its taps and columns. A run consists of those
// positions of one slice whose inputs fit the first-level cache for some columns.
class Pieces {
 public:
  explicit Pieces(const Geometry& geometry);

  std::int64_t count() const { return g_.groups * depths_ * lines_ * parts_; }
  // The maximum number of products of a piece.
  std::int64_t products() const { return slices_ * positions_ * columns_ * g_.group_channels * g_.taps * g_.transforms(); }
  // The number of floats of memory that a thread needs.
  std::int64_t room() const { return room_for_inputs() + g_.transforms() * columns_ * run_; }

  // Computes the pieces [first, last) of an image; `memory` has room() floats. Returns whether all results of transforms are
  // finite.
  bool compute(std::int64_t first, std::int64_t last, const Operands& operands, float* memory) const;

 private:
  struct Piece;
  struct Run;
  struct Memory;

  // The pixels of a slice whose line numbers have the same remainder modulo the stride, from a column on, one stride apart.
  // Transformed lines have one plane for each transform.
  struct Plane {
    std::int64_t remainder, column;
  };
  // The location of a tap of a slice: the index of its plane, and its distance from a position within the plane.
  struct Place {
    std::int64_t plane, distance;
  };

  void find_places();
  void divide();
  void divide_columns();
  void divide_slices(std::int64_t most);
  std::int64_t longest_run_of_taps() const;
  std::int64_t longest_run_of_squares() const;
  std::int64_t covered(std::int64_t slices) const;
  std::int64_t planes(std::int64_t slices) const;
  std::int64_t room_for_inputs() const { return element_count({g_.transforms(), transform_step_}); }
  std::vector<std::int64_t> measure_taps(std::int64_t channels) const;

  bool compute(const Piece& piece, const Operands& operands, const Memory& memory) const;
  void add(const Run& run, const Operands& operands, std::int64_t transform, std::int64_t channel, const float* from,
           std::int64_t column, std::int64_t columns, float* sums) const;
  void copy(const Piece& piece, const Operands& operands, std::int64_t channel, std::int64_t count, const Memory& memory) const;
  void copy_plane(const float* slice, const Plane& plane, std::int64_t from, std::int64_t count, float* to) const;
  void transform_lines(const float* slice, const Plane& plane, std::int64_t first, std::int64_t last, float* to) const;
  void transform_squares(const float* slice, std::int64_t first, std::int64_t last, float* to) const;
  void store(const Run& run, const Operands& operands, const float* sums, std::int64_t column, std::int64_t columns) const;
  bool restore(const Run& run, const Operands& operands, const float* sums, std::int64_t column, std::int64_t columns) const;

  const Geometry g_;
  const bool tight_;                  // whether lines are adjacent, and each column of a kernel has its own plane
  const std::int64_t row_;            // the number of positions of a line
  const std::int64_t all_positions_;  // the number of positions of an output slice
  std::int64_t columns_;              // the number of columns of a piece
  std::int64_t parts_;                // the number of pieces for the columns of a group
  const std::int64_t chunk_;          // the number of channels whose products are added together
  std::vector<Plane> planes_;         // the planes that have taps
  std::vector<Place> places_;         // the places of the taps of a slice
  std::int64_t reach_ = 0;            // the largest distance of a tap within a plane
  std::vector<std::int64_t> taps_, last_taps_;   // for a chunk, and for the last one: the distance of each tap from a position
  std::int64_t run_, positions_, slices_;        // the positions of a run, and the positions and output slices of a piece
  std::int64_t lines_, depths_;                  // the number of pieces of a slice, and along the depth
  std::int64_t copied_;                          // the number of channels that are copied at once
  // The number of copied floats of a plane, of all planes of a slice, of all slices, and of all channels.
  std::int64_t line_, slice_step_, channel_step_, transform_step_;
};

}  // namespace specops::volumes
