// The sums of a node VolumeConv, in pieces that are computed independently.
#pragma once

#include <cstdint>
#include <vector>

#include "volume_geometry.h"

namespace specops::volumes {

struct Operands {
  const float* x;        // the padded slices of a slab, [channels, depth, remainders, rows, width]
  const float* weights;  // [kernel's depth, channels, area, columns] of each chunk of channels of each block of columns
  const float* biases;   // [columns]
  float slope;
  float* y;  // [columns, depth, height, width] of all output slices
};

// A piece is some columns of one group at some positions of an output slice.
class Pieces {
 public:
  Pieces(const Geometry& geometry, const Slab& slab, const Operands& operands);

  std::int64_t count() const { return g_.groups * (slab_.last - slab_.first) * lines_ * parts_; }
  // The products of a piece, at most.
  std::int64_t products() const { return positions_ * columns_ * g_.group_channels * g_.taps; }

  void compute(std::int64_t first, std::int64_t last) const;

 private:
  struct Piece;

  // The place of a tap of a slice: the index of its plane, and its distance from a position within the plane.
  struct Place {
    std::int64_t plane, distance;
  };

  void find_places();
  void divide(std::int64_t most);
  std::vector<std::int64_t> measure_taps(std::int64_t channels) const;
  void compute(const Piece& piece, float* packed, float* sums) const;
  void add(const Piece& piece, std::int64_t channel, const float* from, std::int64_t column, std::int64_t columns,
           float* sums) const;
  const float* inputs(const Piece& piece, std::int64_t channel) const;
  void pack(const Piece& piece, std::int64_t channel, std::int64_t count, float* to) const;
  void store(const Piece& piece, const float* sums, std::int64_t column, std::int64_t outputs) const;

  const Geometry g_;
  const Slab slab_;
  const Operands operands_;
  const bool packs_;                  // whether inputs are copied, so that a first-level cache has them for all columns
  const bool tight_;                  // whether the copies have no positions between lines, with a plane for each column of a kernel
  const std::int64_t row_;            // the positions of a line
  const std::int64_t all_positions_;  // of an output slice
  std::vector<std::int64_t> planes_;  // where the planes with taps are in a padded slice
  std::vector<Place> places_;         // of the taps of a slice
  std::int64_t reach_ = 0;            // the largest distance of a tap within a plane
  std::vector<std::int64_t> taps_, last_taps_;  // the distance of each tap of a chunk, and of the last chunk, from a position
  std::int64_t positions_, columns_;  // of a piece
  std::int64_t lines_, parts_;        // the pieces of a slice, and those of its columns
  std::int64_t chunk_, copied_;       // the channels that are added at once, and those that are copied at once
  std::int64_t line_, channel_step_;  // the numbers of a copied plane, and of all planes of a channel
  std::int64_t slice_step_;           // the numbers of all planes of all channels that are copied at once
};

}  // namespace specops::volumes
