// ROIPooling: regions of feature maps pooled to one size by maxima or bilinear samples.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "feature_maps.h"

namespace specops {
namespace {

// The start and (exclusive) end of a bin along an axis.
struct Bin {
  std::int64_t start, end;
};

template <class A>
std::vector<Bin> bins(A start, A end, A scale, std::int64_t count, std::int64_t size) {
  const std::int64_t first = whole(std::round(start * scale)), last = whole(std::round(end * scale));
  const std::int64_t extent = std::max<std::int64_t>(last - first + 1, 1);
  std::vector<Bin> all;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t edges[2] = {i * extent / count, ((i + 1) * extent + count - 1) / count};
    const auto within = [&](std::int64_t edge) { return std::min(std::max<std::int64_t>(edge + first, 0), size); };
    all.push_back({within(edges[0]), within(edges[1])});
  }
  return all;
}

template <class A>
struct Line {
  Between<A> between;
  bool inside;
};

template <class A>
std::vector<Line<A>> samples(A start, A end, std::int64_t count, std::int64_t size) {
  const A last = static_cast<A>(size - 1);
  std::vector<Line<A>> all;
  for (std::int64_t i = 0; i < count; ++i) {
    A at = end * last;
    if (count == 1) {
      at = (start + end) * A(0.5) * last;
    } else if (i + 1 < count) {
      at = static_cast<A>(i) * ((end - start) * last / static_cast<A>(count - 1)) + start * last;
    }
    all.push_back({Between<A>(at, size), at >= 0 && at <= last});
  }
  return all;
}

// The parts of a region along both axes.
template <class Part>
struct Axes {
  std::vector<Part> y, x;
};

std::int64_t extent(const std::vector<Bin>& bins) {
  std::int64_t sum = 0;
  for (const Bin& bin : bins) sum += std::max<std::int64_t>(bin.end - bin.start, 0);
  return sum;
}

class ROIPooling : public Kernel {
 public:
  explicit ROIPooling(const KernelInfo& info)
      : rows_(info.integer("pooled_h")),
        columns_(info.integer("pooled_w")),
        scale_(info.number("spatial_scale")),
        maxima_(info.string("method") == "max") {}

  void compute(Context& context) const override {
    const Input feat = context.input(0), rois = context.input(1);
    check_maps(feat, rois);
    dispatch_wide(feat.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, feat, rois);
    });
  }

 private:
  template <class A>
  void run(Context& context, const Input& feat, const Input& rois) const {
    const Numbers<A> numbers(rois);
    const auto images = real_regions(numbers.data(), rois.shape()[0], feat.shape()[0]);
    const Shape result = {rois.shape()[0], feat.shape()[1], rows_, columns_};
    maxima_ ? maxima(context, feat, numbers.data(), images, result) : between(context, feat, numbers.data(), images, result);
  }

  template <class A>
  void maxima(Context& context, const Input& feat, const A* regions, const std::vector<std::int64_t>& images,
              const Shape& result) const {
    const std::int64_t height = feat.shape()[2], width = feat.shape()[3];
    const A scale = static_cast<A>(scale_);
    std::vector<Axes<Bin>> all;
    double reads = 0;
    for (std::size_t r = 0; r < images.size(); ++r, regions += 5) {
      all.push_back({bins(regions[2], regions[4], scale, rows_, height),
                     bins(regions[1], regions[3], scale, columns_, width)});
      reads += static_cast<double>(extent(all.back().y)) * static_cast<double>(extent(all.back().x));
    }
    const FeatureMaps<A> maps(context, feat, images, reads);
    pool_bins(context, maps, feat.type(), images, result, [&](std::int64_t r, std::int64_t row, std::int64_t column, A* to) {
      const auto& axes = all[static_cast<std::size_t>(r)];
      const Bin &y = axes.y[static_cast<std::size_t>(row)], &x = axes.x[static_cast<std::size_t>(column)];
      std::vector<std::int64_t> places;
      for (std::int64_t i = y.start; i < y.end; ++i) {
        for (std::int64_t j = x.start; j < x.end; ++j) places.push_back(i * width + j);
      }
      maps.maximum(images[static_cast<std::size_t>(r)], places, to);
    });
  }

  template <class A>
  void between(Context& context, const Input& feat, const A* regions, const std::vector<std::int64_t>& images,
               const Shape& result) const {
    const std::int64_t height = feat.shape()[2], width = feat.shape()[3];
    std::vector<Axes<Line<A>>> all;
    for (std::size_t r = 0; r < images.size(); ++r, regions += 5) {
      all.push_back({samples(regions[2], regions[4], rows_, height), samples(regions[1], regions[3], columns_, width)});
    }
    const double reads = 4.0 * static_cast<double>(images.size()) * static_cast<double>(element_count({rows_, columns_}));
    const FeatureMaps<A> maps(context, feat, images, reads);
    pool_bins(context, maps, feat.type(), images, result, [&](std::int64_t r, std::int64_t row, std::int64_t column, A* to) {
      const auto& axes = all[static_cast<std::size_t>(r)];
      const auto &y = axes.y[static_cast<std::size_t>(row)], &x = axes.x[static_cast<std::size_t>(column)];
      std::vector<Sample<A>> sample;
      if (y.inside && x.inside) sample.emplace_back(y.between, x.between, width);
      maps.pool(images[static_cast<std::size_t>(r)], sample, Pooling::sum, to);
    });
  }

  std::int64_t rows_, columns_;
  float scale_;
  bool maxima_;
};

}  // namespace

const Op& roi_pooling() {
  static const Op op =
      describe_pooling<ROIPooling>("ROIPooling",
                                   {bins("pooled_h"), bins("pooled_w"), Attribute::number("spatial_scale", 1),
                                    Attribute::string("method", "max").one_of({"max", "bilinear"})},
                                   {});
  return op;
}

}  // namespace specops
