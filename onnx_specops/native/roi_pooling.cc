// ROIPooling: regions of feature maps in one size, by maxima or by samples.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "regions.h"

namespace specops {
namespace {

// Where a bin starts and ends along an axis, the end exclusive.
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

class ROIPooling : public Kernel {
 public:
  explicit ROIPooling(const KernelInfo& info)
      : rows_(counted(info, "pooled_h", 0)),
        columns_(counted(info, "pooled_w", 0)),
        scale_(info.number("spatial_scale", 1)) {
    const std::string method = info.string("method", "max");
    if (method != "max" && method != "bilinear") fail("method = '", method, "' is neither 'max' nor 'bilinear'");
    maxima_ = method == "max";
  }

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
    const Shape& shape = feat.shape();
    const std::int64_t channels = shape[1], height = shape[2], width = shape[3], count = rois.shape()[0];
    const Numbers<A> maps(feat), regions(rois);
    const std::vector<std::int64_t> images = real_regions(regions.data(), count, shape[0]);
    const Shape result = {count, channels, rows_, columns_};
    const std::int64_t elements = element_count(result), each = rows_ * columns_;
    Output output = context.output(0, result);
    fill_narrow<A>(output, feat.type(), elements, [&](A* all) {
      context.parallel_ranges(count, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t r = first; r < last; ++r) {
          A* to = all + r * channels * each;
          if (r >= static_cast<std::int64_t>(images.size())) {
            std::fill(to, to + channels * each, A(0));
            continue;
          }
          const A* region = regions.data() + 5 * r;
          const A* map = maps.data() + images[static_cast<std::size_t>(r)] * channels * height * width;
          if (maxima_) {
            const A scale = static_cast<A>(scale_);
            const auto y = bins(region[2], region[4], scale, rows_, height);
            const auto x = bins(region[1], region[3], scale, columns_, width);
            for (std::int64_t c = 0; c < channels; ++c, map += height * width) to = maximum(map, width, y, x, to);
          } else {
            const auto y = samples(region[2], region[4], rows_, height);
            const auto x = samples(region[1], region[3], columns_, width);
            for (std::int64_t c = 0; c < channels; ++c, map += height * width) {
              for (const auto& row : y) {
                for (const auto& column : x) {
                  *to++ = row.inside && column.inside ? sample(map, width, row.between, column.between) : A(0);
                }
              }
            }
          }
        }
      });
    });
  }

  template <class A>
  static A* maximum(const A* map, std::int64_t width, const std::vector<Bin>& y, const std::vector<Bin>& x, A* to) {
    for (const Bin& row : y) {
      for (const Bin& column : x) {
        A most = row.start < row.end && column.start < column.end ? -std::numeric_limits<A>::infinity() : A(0);
        for (std::int64_t i = row.start; i < row.end; ++i) {
          for (std::int64_t j = column.start; j < column.end; ++j) {
            const A value = map[i * width + j];
            if (value > most || std::isnan(value)) most = value;
          }
        }
        *to++ = most;
      }
    }
    return to;
  }

  std::int64_t rows_, columns_;
  float scale_;
  bool maxima_;
};

}  // namespace

const Op& roi_pooling() {
  static const Op op = {
      "ROIPooling",
      {{"feat"}, {"rois"}},
      {{"output"}},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type, type}, {type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<ROIPooling>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
