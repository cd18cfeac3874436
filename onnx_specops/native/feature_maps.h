// Feature maps for region operators, which read all channels of a position at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "regions.h"

namespace specops {

// Transposes [rows, columns], with rows `step` apart, to [columns, rows].
template <class A>
void transpose(const A* from, std::int64_t rows, std::int64_t columns, std::int64_t step, A* to) {
  constexpr std::int64_t block = 16;
  for (std::int64_t first = 0; first < columns; first += block) {
    const std::int64_t last = std::min(first + block, columns);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = first; column < last; ++column) to[column * rows + row] = from[row * step + column];
    }
  }
}

// A point between four positions, with the weight of each.
template <class A>
struct Sample {
  std::int64_t at[4];
  A weights[4];

  Sample(const Between<A>& y, const Between<A>& x, std::int64_t width)
      : at{y.low * width + x.low, y.low * width + x.high, y.high * width + x.low, y.high * width + x.high},
        weights{(1 - y.rest) * (1 - x.rest), (1 - y.rest) * x.rest, y.rest * (1 - x.rest), y.rest * x.rest} {}
};

enum class Pooling { sum, maximum };  // the maximum is at least 0

// Pools samples of a map: all channels if those of a position are contiguous, or one channel with contiguous positions.
void pool(const float* map, std::int64_t channels, const std::vector<Sample<float>>& samples, Pooling how, float* to);
void pool(const double* map, std::int64_t channels, const std::vector<Sample<double>>& samples, Pooling how, double* to);

// The maxima at positions of such a map; 0 if there are none.
void maximum(const float* map, std::int64_t channels, const std::vector<std::int64_t>& places, float* to);
void maximum(const double* map, std::int64_t channels, const std::vector<std::int64_t>& places, double* to);

// [N, C, H, W], transposed to [N, H, W, C] if that pays off. The channels of a position are then one vector.
template <class A>
class FeatureMaps {
 public:
  // images: the image of each region; reads: the approximate number of positions that all regions read.
  FeatureMaps(const Context& context, const Input& feat, const std::vector<std::int64_t>& images, double reads)
      : numbers_(feat), channels_(feat.shape()[1]), area_(feat.shape()[2] * feat.shape()[3]) {
    slots_.assign(static_cast<std::size_t>(feat.shape()[0]), -1);
    std::vector<std::int64_t> used;
    for (const std::int64_t image : images) {
      std::int64_t& slot = slots_[static_cast<std::size_t>(image)];
      if (slot >= 0) continue;
      slot = static_cast<std::int64_t>(used.size());
      used.push_back(image);
    }
    if (reads * 2 < static_cast<double>(area_) * static_cast<double>(used.size()) || channels_ == 1) return;
    turned_.reset(new A[used.size() * static_cast<std::size_t>(channels_ * area_)]);
    context.parallel_ranges(static_cast<std::int64_t>(used.size()) * area_, 256, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t slot = i / area_, first = i % area_, count = std::min(end - i, area_ - first);
        const A* from = planes(used[static_cast<std::size_t>(slot)]) + first;
        transpose(from, channels_, count, area_, turned_.get() + i * channels_);
        i += count;
      }
    });
  }

  std::int64_t channels() const { return channels_; }

  // Pools all channels of samples of an image into `to`.
  void pool(std::int64_t image, const std::vector<Sample<A>>& samples, Pooling how, A* to) const {
    each_map(image, to, [&](const A* map, std::int64_t channels, A* at) { specops::pool(map, channels, samples, how, at); });
  }
  // Writes the maxima of all channels at positions of an image to `to`.
  void maximum(std::int64_t image, const std::vector<std::int64_t>& places, A* to) const {
    each_map(image, to, [&](const A* map, std::int64_t channels, A* at) { specops::maximum(map, channels, places, at); });
  }

 private:
  const A* planes(std::int64_t image) const { return numbers_.data() + image * channels_ * area_; }

  template <class Body>
  void each_map(std::int64_t image, A* to, const Body& body) const {
    if (turned_ != nullptr) {
      body(turned_.get() + slots_[static_cast<std::size_t>(image)] * channels_ * area_, channels_, to);
    } else {
      for (std::int64_t c = 0; c < channels_; ++c) body(planes(image) + c * area_, 1, to + c);
    }
  }

  Numbers<A> numbers_;
  std::int64_t channels_, area_;
  std::vector<std::int64_t> slots_;  // the index of an image in turned_
  std::unique_ptr<A[]> turned_;
};

// Fills [R, C, rows, columns]: `collect(r, row, column, at)` writes all channels of a bin of region r to `at`.
template <class A, class Collect>
void pool_bins(Context& context, const FeatureMaps<A>& maps, Type type, const std::vector<std::int64_t>& images,
               const Shape& result, const Collect& collect) {
  const std::int64_t rows = result[2], columns = result[3], channels = maps.channels();
  pool_regions<A>(context, type, result, images, [&](std::int64_t r, A* to) {
    const std::unique_ptr<A[]> pooled(new A[static_cast<std::size_t>(rows * columns * channels)]);
    A* at = pooled.get();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column, at += channels) collect(r, row, column, at);
    }
    transpose(pooled.get(), rows * columns, channels, channels, to);
  });
}

}  // namespace specops
