// DeformablePSROIPooling: position-sensitive pooling of regions with shifted bins.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "feature_maps.h"

namespace specops {
namespace {

// A region along an axis.
template <class A>
struct Axis {
  A start, extent, length, step;

  Axis(A first, A last, float scale, std::int64_t bins, std::int64_t samples)
      : start(std::round(first) * A(scale) - A(0.5)),
        extent((std::round(last) + 1) * A(scale) - A(0.5) - start),
        length(0),
        step(0) {
    if (extent < A(0.1)) extent = A(0.1);
    length = extent / static_cast<A>(bins);
    step = length / static_cast<A>(samples);
  }

  // Appends the bin's samples that are at most half a position outside the map, for a shift by a fraction of the region.
  void collect(std::int64_t bin, A shift, std::int64_t samples, std::int64_t size, std::vector<Between<A>>& to) const {
    const A first = static_cast<A>(bin) * length + start + shift * extent;
    to.clear();
    for (std::int64_t i = 0; i < samples; ++i) {
      const A at = first + step * static_cast<A>(i);
      if (at >= A(-0.5) && at <= static_cast<A>(size) - A(0.5)) to.emplace_back(at, size);
    }
  }
};

// The offsets of regions: [R, 2 * classes, parts, parts], or none.
template <class A>
struct Shifts {
  const A* all;
  std::int64_t channels, parts, bins, each;  // `each` output channels share a class
  A scale;

  // The offset of a region's bin along an axis (0 horizontal, 1 vertical).
  A at(std::int64_t region, std::int64_t channel, std::int64_t row, std::int64_t column, std::int64_t axis) const {
    if (all == nullptr) return 0;
    const std::int64_t plane = region * channels + channel / each * 2 + axis;
    return all[(plane * parts + row * parts / bins) * parts + column * parts / bins] * scale;
  }
};

class DeformablePSROIPooling : public Kernel {
 public:
  explicit DeformablePSROIPooling(const KernelInfo& info)
      : channels_(info.integer("output_dim")),
        size_(info.integer("group_size")),
        across_(info.integer("spatial_bins_x")),
        down_(info.integer("spatial_bins_y")),
        parts_(info.integer("part_size")),
        scale_(info.number("spatial_scale")),
        shift_scale_(info.number("trans_std")) {}

  void compute(Context& context) const override {
    const Input feat = context.input(0), rois = context.input(1);
    const Input offsets = context.input_count() > 2 ? context.input(2) : Input();
    check_maps(feat, rois);
    if (feat.shape()[1] < element_count({channels_, size_, size_})) {
      fail("feat has ", feat.shape()[1], " channels, fewer than ", channels_, " * ", size_, " ** 2");
    }
    if (!offsets.absent()) check_offsets(offsets, rois.shape()[0]);
    dispatch_wide(feat.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, feat, rois, offsets);
    });
  }

 private:
  void check_offsets(const Input& offsets, std::int64_t regions) const {
    const Shape& shape = offsets.shape();
    if (shape.size() != 4 || shape[0] != regions || shape[1] < 2 || shape[2] != parts_ || shape[3] != parts_ ||
        (channels_ - 1) / each(offsets) * 2 + 1 >= shape[1]) {
      fail("offsets has the shape ", to_string(shape), " for ", regions, " regions, ", channels_, " channels and ", parts_,
           " parts");
    }
  }

  // The number of output channels per class.
  std::int64_t each(const Input& offsets) const {
    return std::max<std::int64_t>(channels_ / (offsets.shape()[1] / 2), 1);
  }

  template <class A>
  void run(Context& context, const Input& feat, const Input& rois, const Input& offsets) const {
    const Shape& shape = feat.shape();
    const std::int64_t area = shape[2] * shape[3], count = rois.shape()[0];
    const Numbers<A> maps(feat), regions(rois), moved(offsets);
    const std::vector<std::int64_t> images = real_regions(regions.data(), count, shape[0]);
    Shifts<A> shifts = {nullptr, 0, parts_, size_, channels_, static_cast<A>(shift_scale_)};
    if (!offsets.absent()) {
      shifts.all = moved.data();
      shifts.channels = offsets.shape()[1];
      shifts.each = each(offsets);
    }
    const Shape result = {count, channels_, size_, size_};
    pool_regions<A>(context, feat.type(), result, images, [&](std::int64_t r, A* to) {
      const A* map = maps.data() + images[static_cast<std::size_t>(r)] * shape[1] * area;
      pool_region(map, r, regions.data() + 5 * r + 1, shifts, shape[2], shape[3], to);
    });
  }

  template <class A>
  void pool_region(const A* map, std::int64_t r, const A* region, const Shifts<A>& shifts, std::int64_t height,
                   std::int64_t width, A* to) const {
    const Axis<A> x(region[0], region[2], scale_, size_, across_), y(region[1], region[3], scale_, size_, down_);
    const std::int64_t bins = size_ * size_;
    std::vector<Between<A>> rows, columns;
    std::vector<Sample<A>> samples;
    for (std::int64_t first = 0; first < channels_; first += shifts.each) {
      const std::int64_t last = std::min(first + shifts.each, channels_);
      for (std::int64_t row = 0; row < size_; ++row) {
        for (std::int64_t column = 0; column < size_; ++column) {
          x.collect(column, shifts.at(r, first, row, column, 0), across_, width, columns);
          y.collect(row, shifts.at(r, first, row, column, 1), down_, height, rows);
          samples.clear();
          for (const auto& down : rows) {
            for (const auto& across : columns) samples.emplace_back(down, across, width);
          }
          const A number = static_cast<A>(std::max<std::size_t>(samples.size(), 1));
          for (std::int64_t c = first; c < last; ++c) {
            const std::int64_t at = c * bins + row * size_ + column;
            pool(map + at * height * width, 1, samples, Pooling::sum, to + at);
            to[at] /= number;
          }
        }
      }
    }
  }

  std::int64_t channels_, size_, across_, down_, parts_;
  float scale_, shift_scale_;
};

}  // namespace

const Op& deformable_psroi_pooling() {
  static const Op op = describe_pooling<DeformablePSROIPooling>(
      "DeformablePSROIPooling",
      {Attribute::integer("output_dim").within(1, most_channels), Attribute::number("spatial_scale"), bins("group_size", 1),
       samples("spatial_bins_x"), samples("spatial_bins_y"), Attribute::number("trans_std", 1), bins("part_size", 1)},
      {{{"output_dim", "group_size", "group_size"}, most_work}}, {{"offsets", true}});
  return op;
}

}  // namespace specops
