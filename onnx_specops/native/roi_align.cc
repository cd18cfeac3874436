// ROIAlign and ROIAlignRotated: regions of feature maps pooled to one size by evenly spaced bilinear samples.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "feature_maps.h"

namespace specops {
namespace {

// The range of a map along an axis of a region, and the offset that is added to positions later.
struct Reach {
  double low, high, offset;
};

// A region along an axis: `bins` bins of `samples` samples each.
template <class A>
struct Axis {
  A start, length;
  std::int64_t bins, samples;

  // `sampling_ratio` samples per bin, or one per position.
  Axis(A begin, A extent, std::int64_t count, std::int64_t sampling_ratio)
      : start(begin), length(extent / static_cast<A>(count)), bins(count), samples(sampling_ratio) {
    if (samples == 0) samples = std::max<std::int64_t>(whole(std::ceil(length)), 0);
  }

  A first(std::int64_t bin) const { return start + static_cast<A>(bin) * length; }
  A step() const { return length / static_cast<A>(std::max<std::int64_t>(samples, 1)); }

  // Calls `visit_one(position)` for the samples of a bin, except those far outside the map, because a region may be huge.
  template <class Visit>
  void visit(std::int64_t bin, const Reach& reach, const Visit& visit_one) const {
    const A from = first(bin), apart = step();
    std::int64_t begin = 0, end = samples;
    if (apart > 0) {
      const double origin = static_cast<double>(from), each = static_cast<double>(apart);
      // Positions are rounded. If a region begins so far away that 64 extra samples do not suffice, they consist of rounding
      // errors.
      const double rounding = 8 * static_cast<double>(std::numeric_limits<A>::epsilon()) * (std::abs(origin) + reach.offset);
      const double slack = 2 + std::min(rounding / each, 64.0);
      const auto index = [&](double position) { return (position - origin) / each; };
      begin = std::max(begin, whole(std::floor(index(reach.low) - slack)));
      end = std::min(end, whole(std::ceil(index(reach.high) + slack)));
    }
    for (std::int64_t i = begin; i < end; ++i) visit_one(from + apart * (static_cast<A>(i) + A(0.5)));
  }
};

// The height and width of the maps. A sample more than 1 outside counts as 0.
struct Extent {
  std::int64_t height, width;

  template <class A>
  bool near(A y, A x) const {
    return y >= -1 && y <= static_cast<A>(height) && x >= -1 && x <= static_cast<A>(width);
  }
};

// Regions with the same numbers of bins.
class Regions : public Kernel {
 public:
  explicit Regions(const KernelInfo& info)
      : rows_(info.integer("pooled_h")), columns_(info.integer("pooled_w")), ratio_(info.integer("sampling_ratio")),
        scale_(info.number("spatial_scale")) {}

  // The attributes of both operators, followed by their own.
  static std::vector<Attribute> attributes(const std::vector<Attribute>& own) {
    std::vector<Attribute> all = {bins("pooled_h"), bins("pooled_w"),
                                  Attribute::integer("sampling_ratio").within(0, most_samples),
                                  Attribute::number("spatial_scale")};
    all.insert(all.end(), own.begin(), own.end());
    return all;
  }
  static std::vector<Product> products() {
    return {{{"pooled_h", "pooled_w", "sampling_ratio", "sampling_ratio"}, most_work}};
  }

 protected:
  // Pools the samples that `collect(r, row, column, samples)` appends for each bin of region r. It returns their number,
  // including samples outside the map, which it omits.
  template <class A, class Collect>
  void run(Context& context, const Input& feat, const Input& rois, const std::vector<std::int64_t>& images, Pooling how,
           const Collect& collect) const {
    const Shape result = {rois.shape()[0], feat.shape()[1], rows_, columns_};
    const double reads = 4.0 * static_cast<double>(images.size()) * static_cast<double>(element_count({rows_, columns_})) *
                         static_cast<double>(std::max<std::int64_t>(ratio_ * ratio_, 1));
    const FeatureMaps<A> maps(context, feat, images, reads);
    pool_bins(context, maps, feat.type(), images, result,
              [&](std::int64_t r, std::int64_t row, std::int64_t column, A* to) {
                std::vector<Sample<A>> samples;
                const A number = collect(r, row, column, samples);
                maps.pool(images[static_cast<std::size_t>(r)], samples, how, to);
                if (how == Pooling::sum && number > 1) {
                  for (std::int64_t c = 0; c < maps.channels(); ++c) to[c] /= number;
                }
              });
  }

  std::int64_t rows_, columns_, ratio_;
  float scale_;
};

class ROIAlign : public Regions {
 public:
  explicit ROIAlign(const KernelInfo& info)
      : Regions(info),
        pooling_(info.string("mode") == "avg" ? Pooling::sum : Pooling::maximum),
        asymmetric_(info.string("aligned_mode") == "asymmetric"),
        before_(info.string("aligned_mode") == "half_pixel" ? 0.5f : 0),
        after_(asymmetric_ ? 0 : -0.5f) {}

  void compute(Context& context) const override {
    const Input feat = context.input(0), rois = context.input(1), batch = context.input(2);
    check_maps(feat, rois, 4);
    check_batch(batch, rois);
    const auto* indices = batch.data<std::int64_t>();
    const std::vector<std::int64_t> images =
        real_regions("batch_indices", batch.size(), feat.shape()[0], [&](std::int64_t r) { return indices[r]; });
    const Extent extent = {feat.shape()[2], feat.shape()[3]};
    dispatch_wide(feat.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      const Numbers<A> corners(rois);
      run<A>(context, feat, rois, images, pooling_,
             [&](std::int64_t r, std::int64_t row, std::int64_t column, std::vector<Sample<A>>& samples) {
               const Axis<A> x = axis(corners.data() + 4 * r, columns_), y = axis(corners.data() + 4 * r + 1, rows_);
               x.visit(column, {-1, static_cast<double>(extent.width), 0}, [&](A across) {
                 y.visit(row, {-1, static_cast<double>(extent.height), 0}, [&](A down) {
                   if (!extent.near(down, across)) return;
                   samples.emplace_back(Between<A>(down, extent.height), Between<A>(across, extent.width), extent.width);
                 });
               });
               return static_cast<A>(x.samples) * static_cast<A>(y.samples);
             });
    });
  }

 private:
  // From a region's first coordinate along an axis to its second one, which is two elements further.
  template <class A>
  Axis<A> axis(const A* coordinates, std::int64_t bins) const {
    const auto position = [&](A x) { return (x + A(before_)) * A(scale_) + A(after_); };
    const A start = position(coordinates[0]);
    A extent = position(coordinates[2]) - start;
    if (asymmetric_ && extent < 1) extent = 1;
    return {start, extent, bins, ratio_};
  }

  Pooling pooling_;
  bool asymmetric_;
  float before_, after_;
};

class ROIAlignRotated : public Regions {
 public:
  explicit ROIAlignRotated(const KernelInfo& info) : Regions(info), clockwise_(info.flag("clockwise_mode")) {}

  void compute(Context& context) const override {
    const Input feat = context.input(0), rois = context.input(1), batch = context.input(2);
    check_maps(feat, rois, 5);
    check_batch(batch, rois);
    const auto* indices = batch.data<std::int64_t>();
    const std::vector<std::int64_t> images(indices, indices + batch.size());
    for (std::size_t r = 0; r < images.size(); ++r) {
      if (images[r] < 0 || images[r] >= feat.shape()[0]) {
        fail("batch_indices[", r, "] = ", images[r], " is out of range [0, ", feat.shape()[0] - 1, "]");
      }
    }
    const Extent extent = {feat.shape()[2], feat.shape()[3]};
    dispatch_wide(feat.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      const Numbers<A> numbers(rois);
      std::vector<Turned<A>> regions;
      for (std::int64_t r = 0; r < batch.size(); ++r) regions.emplace_back(*this, numbers.data() + 5 * r, extent);
      run<A>(context, feat, rois, images, Pooling::sum,
             [&](std::int64_t r, std::int64_t row, std::int64_t column, std::vector<Sample<A>>& samples) {
               const Turned<A>& region = regions[static_cast<std::size_t>(r)];
               region.y.visit(row, region.reach[0], [&](A y) {
                 region.x.visit(column, region.reach[1], [&](A x) {
                   const A down = y * region.cosine - x * region.sine + region.center[0];
                   const A across = y * region.sine + x * region.cosine + region.center[1];
                   if (!extent.near(down, across)) return;
                   samples.emplace_back(Between<A>(down, extent.height), Between<A>(across, extent.width), extent.width);
                 });
               });
               return static_cast<A>(region.x.samples) * static_cast<A>(region.y.samples);
             });
    });
  }

 private:
  // A region relative to its center, with the range of the map along its axes.
  template <class A>
  struct Turned {
    A center[2], cosine, sine;
    Axis<A> y, x;
    Reach reach[2];  // vertical, horizontal

    Turned(const ROIAlignRotated& op, const A* region, const Extent& map)
        : center{region[1] * A(op.scale_) - A(0.5), region[0] * A(op.scale_) - A(0.5)},
          cosine(std::cos(region[4])),
          sine(std::sin(op.clockwise_ ? -region[4] : region[4])),
          y(centred(region[3] * A(op.scale_), op.rows_, op.ratio_)),
          x(centred(region[2] * A(op.scale_), op.columns_, op.ratio_)) {
      const double down[2] = {-1 - double(center[0]), double(map.height) - double(center[0])};
      const double across[2] = {-1 - double(center[1]), double(map.width) - double(center[1])};
      const double turn[2] = {static_cast<double>(cosine), static_cast<double>(sine)};
      const double offset = std::abs(double(center[0])) + std::abs(double(center[1]));
      // The sums of a multiple of a number within `one` and a multiple of a number within `other`.
      const auto spans = [&](const double* one, double by, const double* other, double other_by) {
        const double a = one[0] * by, b = one[1] * by, c = other[0] * other_by, d = other[1] * other_by;
        return Reach{std::min(a, b) + std::min(c, d), std::max(a, b) + std::max(c, d), offset};
      };
      reach[0] = spans(down, turn[0], across, turn[1]);
      reach[1] = spans(across, turn[0], down, -turn[1]);
    }

    static Axis<A> centred(A extent, std::int64_t bins, std::int64_t ratio) { return {-extent / A(2), extent, bins, ratio}; }
  };

  bool clockwise_;
};

}  // namespace

const Op& roi_align() {
  static const Op op = describe_pooling<ROIAlign>(
      "ROIAlign",
      Regions::attributes({Attribute::string("mode", "avg").one_of({"avg", "max"}),
                           Attribute::string("aligned_mode", "asymmetric")
                               .one_of({"asymmetric", "half_pixel_for_nn", "half_pixel"})}),
      Regions::products(), {{"batch_indices"}}, Type::int64);
  return op;
}

const Op& roi_align_rotated() {
  static const Op op =
      describe_pooling<ROIAlignRotated>("ROIAlignRotated", Regions::attributes({Attribute::flag("clockwise_mode")}),
                                        Regions::products(), {{"batch_indices"}}, Type::int64);
  return op;
}

}  // namespace specops
