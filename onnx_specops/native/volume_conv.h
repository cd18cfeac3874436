// Convolutions of volumes: the interface between volume_conv.cc and the code for each instruction set.
//
// volume_conv_kernels.cc is that code, compiled once for each set (CMakeLists.txt); see compressed.h.
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::volumes {

// Sums of some output channels at adjacent positions of a padded slice.
struct Tile {
  const float* from;  // the first position; may be read beyond the last one, up to `most_positions`
  const std::int64_t* taps;  // the distance of each tap of each channel from a position
  std::int64_t tap_count;
  const float* weights;  // [tap_count, outputs]
  const float* bias;  // [outputs]; or null, if the products are added to the sums in `to`
  float slope;        // of sums below 0
  float* to;          // [outputs, to_step], of which the first are [outputs, positions]
  std::int64_t to_step;
};

constexpr int shape_count = 4, most_packs = 6;
constexpr std::int64_t most_outputs = 8, most_positions = 96;

// Tiles of some output channels.
struct Shape {
  std::int64_t outputs;
  int packs;  // at most
  void (*multiply[most_packs])(const Tile& tile);  // by packs - 1, each of `lanes` positions
};

// Rows of numbers, which are copied between zeros.
struct Rows {
  std::int64_t count;
  const float* from;
  std::int64_t from_row, from_step;  // the distances of rows, and of numbers that are copied
  float* to;
  std::int64_t to_row, width;  // the distance of rows, and the numbers of each
  std::int64_t before, copied;  // zeros before the copied numbers, and how many are copied; zeros follow
};

// Three taps along a line are four products for two pixels instead of six (Winograd's minimal filtering, F(2, 3)), and nine
// taps of a square are 16 products for four pixels instead of 36.
constexpr std::int64_t transform_count = 4;
constexpr std::int64_t transforms_of(int dimensions) {
  return dimensions == 0 ? 1 : transform_count * transforms_of(dimensions - 1);
}

// Lines of pixels that are transformed. Two adjacent pixels of the output are at one position of each of the four planes.
struct Lines {
  std::int64_t count;
  const float* from;  // the first pixel of the first line; those that are zeros are not read
  std::int64_t from_line;
  std::int64_t before, after;  // the pixels [before, after) of a line are of the image; the others are zeros
  float* to;
  std::int64_t to_plane, positions;  // the distance of the planes, and the positions of a line, which are adjacent
};

// Two lines of the output, of which each position of the 16 planes has four pixels: those of four lines of the input.
struct Squares {
  const float* from;  // as in Lines
  std::int64_t from_line;
  std::int64_t above, below;   // the four lines [above, below) are of the image; the others are zeros
  std::int64_t before, after;  // as in Lines
  float* to;
  std::int64_t to_plane, positions;
  std::int64_t room;  // positions that may be overwritten
};

// Sums at some positions of a line, and the pixels that they become.
struct Sums {
  const float* from;
  std::int64_t from_plane, positions;
  float slope;
  float* to;
  std::int64_t pixels;
  std::int64_t to_line, lines;  // of squares only: the distance of the two output lines, and how many of them there are
};

struct Kernels {
  const char* name;
  std::int64_t lanes;         // a divisor of `most_positions`
  Shape shapes[shape_count];  // with decreasing `outputs`; the last one has 1
  void (*copy)(const Rows& rows);
  void (*transform)(const Lines& lines);
  void (*transform_squares)(const Squares& squares);
  bool (*restore)(const Sums& sums);  // whether all results are finite
  bool (*restore_squares)(const Sums& sums);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::volumes
