// The padded input of a node VolumeConv, and how it is divided.
#pragma once

#include <algorithm>
#include <cstdint>

#include "op.h"
#include "volume_conv.h"
#include "windows.h"

namespace specops::volumes {

// The numbers of padded slices that are copied at once, so that they stay in a cache. One window may need more.
constexpr std::int64_t copied_at_once = std::int64_t{1} << 19;

// The taps of a chunk of channels, about: with fewer ones, sums are loaded and stored more often. With more, a first-level cache
// has no room for their inputs.
constexpr std::int64_t taps_at_once = 256;

struct Geometry : WindowSizes {
  std::int64_t batch, channels, columns, groups, group_channels, group_columns, taps;
  // The padded slices: pixels with the same remainder of their height and width are together.
  std::int64_t rows, width, remainders;

  std::int64_t area() const { return kernel[1] * kernel[2]; }
  // The channels whose products are added at once.
  std::int64_t chunk() const {
    const std::int64_t channels = std::max<std::int64_t>(group_channels, 1);
    return divide_up(channels, divide_up(channels, std::clamp<std::int64_t>(taps_at_once / taps, 1, channels)));
  }
  std::int64_t plane() const { return rows * width; }
  std::int64_t slice() const { return remainders * plane(); }

  // The same for some of the groups.
  Geometry of(std::int64_t some) const {
    Geometry part = *this;
    part.channels = some * group_channels;
    part.columns = some * group_columns;
    part.groups = some;
    return part;
  }
};

// Some output slices, [first, last), and the input slices that their windows cover, [from, until).
struct Slab {
  std::int64_t first, last, from, until;

  std::int64_t depth() const { return until - from; }
};

// The slabs of a convolution. Each has as many output slices as its padded input may have numbers.
class Slabs {
 public:
  explicit Slabs(const Geometry& g)
      : g_(g), slices_(element_count({g.channels, g.remainders, g.rows, g.width})), extent_((g.kernel[0] - 1) * g.dilations[0] + 1) {
    const std::int64_t most = copied_at_once / std::max<std::int64_t>(slices_, 1);
    const std::int64_t room = std::clamp(most - extent_, std::int64_t{0}, g.in[0]);
    step_ = room / g.strides[0] + 1;
    depth_ = std::min(room + extent_, g.in[0]);
  }

  // The numbers of a padded input, those that may be read beyond it, and both.
  std::int64_t padded() const { return element_count({slices_, depth_}); }
  std::int64_t beyond() const { return 2 * most_positions + g_.width; }
  std::int64_t room() const { return padded() + beyond(); }

  template <class Visit>
  void each(const Visit& visit) const {
    for (std::int64_t z = 0; z < g_.out[0]; z += step_) {
      const std::int64_t last = std::min(z + step_, g_.out[0]), begin = g_.start(0, z);
      const std::int64_t end = g_.start(0, last - 1) + extent_;
      const std::int64_t first = std::clamp(begin, std::int64_t{0}, g_.in[0]);
      visit(Slab{z, last, first, std::clamp(end, first, g_.in[0])});
    }
  }

 private:
  const Geometry g_;
  std::int64_t slices_, extent_, step_, depth_;
};

// Calls `visit(column, shape)` for each block of `count` output channels from the column `first` on. If some of the columns
// are visited separately, in multiples of `most_outputs`, the blocks are the same.
template <class Visit>
void each_block(std::int64_t first, std::int64_t count, const Visit& visit) {
  const auto& shapes = kernels().shapes;
  for (std::int64_t done = 0; done < count;) {
    int i = 0;
    while (shapes[i].outputs > count - done) ++i;
    visit(first + done, shapes[i]);
    done += shapes[i].outputs;
  }
}

}  // namespace specops::volumes
