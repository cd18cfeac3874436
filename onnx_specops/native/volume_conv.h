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
  const float* bias;  // [outputs]; null if the products are added to the sums in `to`
  float slope;        // the factor of sums below 0
  float* to;          // [outputs, to_step], of which [outputs, positions] are written
  std::int64_t to_step;
};

constexpr int shape_count = 4, most_packs = 6;
constexpr std::int64_t most_outputs = 8, most_positions = 96;

// Tiles of some output channels.
struct Shape {
  std::int64_t outputs;
  int packs;  // the maximum number of packs of `lanes` positions
  void (*multiply[most_packs])(const Tile& tile);  // indexed by the number of packs minus 1
};

// Rows of numbers that are copied, with zeros before and after them.
struct Rows {
  std::int64_t count;
  const float* from;
  std::int64_t from_row, from_step;  // the stride of rows, and of the copied numbers
  float* to;
  std::int64_t to_row, width;  // the stride of rows, and the length of each row
  std::int64_t before, copied;  // the number of zeros before the copied numbers, and the number of copied ones; zeros follow
};

// Winograd's minimal filtering: F(2, 3) computes two pixels with three taps each by four products instead of six. For 3 x 3
// taps, it computes four pixels by 16 products instead of 36.
constexpr std::int64_t transform_count = 4;
constexpr std::int64_t transforms_of(int dimensions) {
  return dimensions == 0 ? 1 : transform_count * transforms_of(dimensions - 1);
}

// A part of a line of pixels to transform. Each position of the four planes represents two output pixels that are `gap`
// apart, as the taps are. Position p represents the pixels p + p / gap * gap and, `gap` after it, the next one.
struct Line {
  const float* from;  // the first pixel of the line; pixels outside the image are not read
  std::int64_t before, after;  // the pixels [before, after) of the line are inside the image; the others are zeros
  std::int64_t gap;
  std::int64_t first, positions;  // a multiple of `gap`, or of the number of lanes; and the number of adjacent positions
  float* to;                      // of position `first`
  std::int64_t to_plane;          // the stride of the planes
  std::int64_t room;              // the number of positions that may be overwritten
};

// Two output lines. Each position of the 16 planes represents 2 x 2 output pixels, which depend on four input lines.
struct Squares {
  const float* from;  // as in Line
  std::int64_t from_line;
  std::int64_t above, below;   // the lines [above, below) of the four are inside the image; the others are zeros
  std::int64_t before, after;  // as in Line
  float* to;
  std::int64_t to_plane, positions;
  std::int64_t room;  // the number of positions that may be overwritten
};

// Sums at some positions of a line, and the output pixels computed from them.
struct Sums {
  const float* from;  // of position `first`
  std::int64_t from_plane, first, positions;
  float slope;
  float* to;  // the first pixel of the output line
  std::int64_t pixels;
  std::int64_t gap;             // as in Line
  std::int64_t to_line, lines;  // for squares only: the stride of the output lines, and their number (1 or 2)
};

struct Kernels {
  const char* name;
  std::int64_t lanes;         // a divisor of `most_positions`
  Shape shapes[shape_count];  // in descending order of `outputs`; the last one has 1
  void (*copy)(const Rows& rows);
  void (*transform)(const Line& line);
  void (*transform_squares)(const Squares& squares);
  bool (*restore)(const Sums& sums);  // returns whether all results are finite
  bool (*restore_squares)(const Sums& sums);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::volumes
