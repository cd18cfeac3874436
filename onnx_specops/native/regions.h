// Regions of feature maps: their images, and samples between positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "numbers.h"

namespace specops {

// Converts an integer in a floating-point type, clamping large ones; NaN becomes 0.
template <class A>
std::int64_t whole(A x) {
  constexpr A far = A(1 << 30);
  return std::isnan(x) ? 0 : static_cast<std::int64_t>(std::min(std::max(x, -far), far));
}

// The images of the regions before the first with image -1; image_of(r) is the image of region r in `input_name`.
template <class ImageOf>
std::vector<std::int64_t> real_regions(const char* input_name, std::int64_t count, std::int64_t images,
                                       const ImageOf& image_of) {
  std::vector<std::int64_t> found;
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t image = image_of(r);
    if (image == -1) break;
    if (image < 0 || image >= images) {
      fail(input_name, "[", r, "] = ", image, " is out of range [0, ", images - 1, "]");
    }
    found.push_back(image);
  }
  return found;
}

// The same for [R, 5] regions that begin with their image.
template <class A>
std::vector<std::int64_t> real_regions(const A* regions, std::int64_t count, std::int64_t images) {
  return real_regions("rois", count, images, [&](std::int64_t r) { return whole(std::trunc(regions[5 * r])); });
}

inline void check_maps(const Input& maps, const Input& regions, std::int64_t numbers = 5) {
  const Shape &m = maps.shape(), &r = regions.shape();
  if (m.size() != 4 || m[2] == 0 || m[3] == 0) {
    fail("feat: the feature maps have the shape ", to_string(m), " instead of [N, C, H, W]");
  }
  if (r.size() != 2 || r[1] != numbers) {
    fail("rois: the regions have the shape ", to_string(r), " instead of [R, ", numbers, "]");
  }
}

// Checks the separate input with the images of all regions.
inline void check_batch(const Input& batch_indices, const Input& regions) {
  if (batch_indices.shape().size() != 1 || batch_indices.size() != regions.shape()[0]) {
    fail("batch_indices has the shape ", to_string(batch_indices.shape()), ", rois ", to_string(regions.shape()));
  }
}

// The limits of region operators; onnx_specops/ops/_regions.py has the same.
constexpr std::int64_t most_bins = 1024;                     // of a region along an axis
constexpr std::int64_t most_samples = 128;                   // of a bin along an axis
constexpr std::int64_t most_work = std::int64_t{1} << 20;    // samples of a region, or channels for all its bins
constexpr std::int64_t most_channels = std::int64_t{1} << 16;  // of the output

inline Attribute bins(const char* name) { return Attribute::integer(name).within(1, most_bins); }
inline Attribute bins(const char* name, std::int64_t otherwise) {
  return Attribute::integer(name, otherwise).within(1, most_bins);
}
inline Attribute samples(const char* name) { return Attribute::integer(name, 1).within(1, most_samples); }

// The positions on both sides of a point along an axis, and the distance from the first.
template <class A>
struct Between {
  std::int64_t low, high;
  A rest;

  Between(A position, std::int64_t size) {
    if (std::isnan(position)) position = 0;
    position = std::min(std::max(position, A(0)), static_cast<A>(size - 1));
    const A floor = std::floor(position);
    low = std::min(static_cast<std::int64_t>(floor), size - 1);
    high = std::min(static_cast<std::int64_t>(std::ceil(position)), size - 1);
    rest = position - floor;
  }
};

template <class A>
A sample(const A* map, std::int64_t width, const Between<A>& y, const Between<A>& x) {
  const A *top = map + y.low * width, *bottom = map + y.high * width;
  const A upper = top[x.low] + (top[x.high] - top[x.low]) * x.rest;
  const A lower = bottom[x.low] + (bottom[x.high] - bottom[x.low]) * x.rest;
  return upper + (lower - upper) * y.rest;
}

// Computes the output: `pool(r, to)` writes the result of region r, whose shape is in `result`. Regions without an image are
// 0.
template <class A, class Pool>
void pool_regions(Context& context, Type type, const Shape& result, const std::vector<std::int64_t>& images,
                  const Pool& pool) {
  const std::int64_t elements = element_count(result), each = element_count(Shape(result.begin() + 1, result.end()));
  Output output = context.output(0, result);
  fill_narrow<A>(output, type, elements, [&](A* all) {
    context.parallel_ranges(result[0], 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        A* to = all + r * each;
        if (r < static_cast<std::int64_t>(images.size())) {
          pool(r, to);
        } else {
          std::fill(to, to + each, A(0));
        }
      }
    });
  });
}

// An operator on feature maps and regions of one float type, which inputs with an undefined type share.
template <class K>
Op describe_pooling(const char* name, std::vector<Attribute> attributes, std::vector<Product> products,
                    const std::vector<Parameter>& further = {}, Type further_type = Type::undefined) {
  Op op = {
      name,
      {{"feat"}, {"rois"}},
      {{"output"}},
      std::move(attributes),
      {},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<K>(info); },
      nullptr,
      std::move(products),
  };
  for (const Type type : float_types()) {
    op.signatures.push_back({{type, type}, {type}});
    op.signatures.back().inputs.resize(2 + further.size(), further_type == Type::undefined ? type : further_type);
  }
  op.inputs.insert(op.inputs.end(), further.begin(), further.end());
  return op;
}

}  // namespace specops
