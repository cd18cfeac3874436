#include "quantized_conv_geometry.h"

#include <algorithm>

namespace specops::byte_conv {

namespace {

// The kinds of the positions along one dimension: taps [first, last) of a window at that position are not padding.
struct AxisKinds {
  std::vector<std::int64_t> first, last;
  std::vector<std::int64_t> of_positions;

  AxisKinds(const Geometry& g, std::size_t axis) {
    for (std::int64_t position = 0; position < g.out[axis]; ++position) {
      const TapRange inside = g.inside(axis, position);
      if (first.empty() || first.back() != inside.first || last.back() != inside.last) {
        first.push_back(inside.first);
        last.push_back(inside.last);
      }
      of_positions.push_back(static_cast<std::int64_t>(first.size()) - 1);
    }
  }
};

}  // namespace

PixelKinds::PixelKinds(const Geometry& g) {
  const AxisKinds axes[] = {{g, 0}, {g, 1}, {g, 2}};
  for (std::size_t d = 0; d < axes[0].first.size(); ++d) {
    for (std::size_t h = 0; h < axes[1].first.size(); ++h) {
      for (std::size_t w = 0; w < axes[2].first.size(); ++w) {
        kinds.push_back({{axes[0].first[d], axes[1].first[h], axes[2].first[w]},
                         {axes[0].last[d], axes[1].last[h], axes[2].last[w]}});
      }
    }
  }
  if (kinds.size() < 2) return;
  of_pixels.reserve(static_cast<std::size_t>(g.pixels()));
  const std::int64_t heights = static_cast<std::int64_t>(axes[1].first.size());
  const std::int64_t widths = static_cast<std::int64_t>(axes[2].first.size());
  for (std::int64_t image = 0; image < g.batch; ++image) {
    for (const std::int64_t d : axes[0].of_positions) {
      for (const std::int64_t h : axes[1].of_positions) {
        for (const std::int64_t w : axes[2].of_positions) {
          of_pixels.push_back(static_cast<std::int32_t>((d * heights + h) * widths + w));
        }
      }
    }
  }
}

}  // namespace specops::byte_conv
