// PSROIPooling: regions of feature maps pooled to one size, each bin from its own channels.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "regions.h"

namespace specops {
namespace {

struct Bin {
  std::int64_t start, end;
};

template <class A>
std::vector<Bin> bins(A start, A end, std::int64_t count, std::int64_t size) {
  const A extent = end - start, least = A(0.1);
  const A length = (extent < least ? least : extent) / static_cast<A>(count);
  const auto within = [&](A edge) { return std::min(std::max<std::int64_t>(whole(edge), 0), size); };
  std::vector<Bin> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back({within(std::floor(static_cast<A>(i) * length + start)),
                   within(std::ceil(static_cast<A>(i + 1) * length + start))});
  }
  return all;
}

template <class A>
struct Line {
  Between<A> between;
  bool inside;
};

// [parts, count]
template <class A>
std::vector<Line<A>> samples(A start, A end, std::int64_t parts, std::int64_t count, std::int64_t size) {
  const A last = static_cast<A>(size - 1), length = (end - start) / static_cast<A>(parts);
  std::vector<Line<A>> all;
  for (std::int64_t part = 0; part < parts; ++part) {
    const A low = start + static_cast<A>(part) * length, high = start + static_cast<A>(part + 1) * length;
    for (std::int64_t i = 0; i < count; ++i) {
      const A at = count == 1 ? A(0.5) * (low + high) * last
                              : static_cast<A>(i) * ((high - low) * last / static_cast<A>(count - 1)) + low * last;
      all.push_back({Between<A>(at, size), at >= 0 && at <= last});
    }
  }
  return all;
}

class PSROIPooling : public Kernel {
 public:
  explicit PSROIPooling(const KernelInfo& info)
      : channels_(info.integer("output_dim")),
        size_(info.integer("group_size")),
        across_(info.integer("spatial_bins_x")),
        down_(info.integer("spatial_bins_y")),
        scale_(info.number("spatial_scale")),
        average_(info.string("mode") == "average") {}

  void compute(Context& context) const override {
    const Input feat = context.input(0), rois = context.input(1);
    check_maps(feat, rois);
    const Shape parts = average_ ? Shape{channels_, size_, size_} : Shape{channels_, across_, down_};
    if (feat.shape()[1] < element_count(parts)) {
      fail("feat has ", feat.shape()[1], " channels, fewer than ", channels_, " * ", element_count(parts) / channels_);
    }
    dispatch_wide(feat.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, feat, rois);
    });
  }

 private:
  template <class A>
  void run(Context& context, const Input& feat, const Input& rois) const {
    const Shape& shape = feat.shape();
    const std::int64_t height = shape[2], width = shape[3], area = height * width, count = rois.shape()[0];
    const Numbers<A> maps(feat), regions(rois);
    const std::vector<std::int64_t> images = real_regions(regions.data(), count, shape[0]);
    const Shape result = {count, channels_, size_, size_};
    pool_regions<A>(context, feat.type(), result, images, [&](std::int64_t r, A* to) {
      const A* map = maps.data() + images[static_cast<std::size_t>(r)] * shape[1] * area;
      if (average_) {
        means(map, regions.data() + 5 * r + 1, height, width, to);
      } else {
        between(map, regions.data() + 5 * r + 1, height, width, to);
      }
    });
  }

  template <class A>
  void means(const A* map, const A* region, std::int64_t height, std::int64_t width, A* to) const {
    const A scale = static_cast<A>(scale_);
    const auto x = bins(std::round(region[0]) * scale, std::round(region[2] + 1) * scale, size_, width);
    const auto y = bins(std::round(region[1]) * scale, std::round(region[3] + 1) * scale, size_, height);
    for (std::int64_t c = 0; c < channels_; ++c) {
      for (const Bin& row : y) {
        for (const Bin& column : x) {
          A sum = 0;
          for (std::int64_t i = row.start; i < row.end; ++i) {
            for (std::int64_t j = column.start; j < column.end; ++j) sum += map[i * width + j];
          }
          const bool empty = row.start >= row.end || column.start >= column.end;
          *to++ = empty ? A(0) : sum / static_cast<A>((row.end - row.start) * (column.end - column.start));
          map += height * width;
        }
      }
    }
  }

  template <class A>
  void between(const A* map, const A* region, std::int64_t height, std::int64_t width, A* to) const {
    const A scale = static_cast<A>(scale_);
    const auto x = samples(region[0] * scale, region[2] * scale, across_, size_, width);
    const auto y = samples(region[1] * scale, region[3] * scale, down_, size_, height);
    const A parts = static_cast<A>(across_ * down_);
    for (std::int64_t c = 0; c < channels_; ++c) {
      for (std::int64_t h = 0; h < size_; ++h) {
        for (std::int64_t w = 0; w < size_; ++w) {
          A sum = 0;
          for (std::int64_t i = 0; i < down_; ++i) {
            for (std::int64_t j = 0; j < across_; ++j) {
              const Line<A>& row = y[static_cast<std::size_t>(i * size_ + h)];
              const Line<A>& column = x[static_cast<std::size_t>(j * size_ + w)];
              if (!row.inside || !column.inside) continue;
              sum += sample(map + ((i * across_ + j) * channels_ + c) * height * width, width, row.between, column.between);
            }
          }
          *to++ = sum / parts;
        }
      }
    }
  }

  std::int64_t channels_, size_, across_, down_;
  float scale_;
  bool average_;
};

}  // namespace

const Op& psroi_pooling() {
  static const Op op = describe_pooling<PSROIPooling>(
      "PSROIPooling",
      {Attribute::integer("output_dim").within(1, most_channels), bins("group_size"), Attribute::number("spatial_scale"),
       Attribute::string("mode", "average").one_of({"average", "bilinear"}), samples("spatial_bins_x"),
       samples("spatial_bins_y")},
      {{{"output_dim", "group_size", "group_size"}, most_work}, {{"output_dim", "spatial_bins_x", "spatial_bins_y"}, most_work}});
  return op;
}

}  // namespace specops
