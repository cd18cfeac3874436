// VolumeConv: convolutions of volumes, images and lines with channels first.
//
// A slice of the padded input is one line of positions, in which each tap is at a fixed distance. With strides, pixels with
// the same remainder form a separate plane, so that taps stay adjacent. Sums at positions between lines are discarded. Three
// taps along the width, or 3 x 3 taps, become transforms if that saves time (volume_geometry.h).
#include "volume_conv.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "float_kernels.h"
#include "kept.h"
#include "op.h"
#include "spare.h"
#include "volume_pieces.h"
#include "windows.h"

namespace specops {
namespace volumes {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace volumes

namespace {

using volumes::Geometry;
using volumes::Pieces;

// The minimum number of products that a thread computes.
constexpr std::int64_t at_least = std::int64_t{1} << 17;

class VolumeConv : public Kernel {
 public:
  explicit VolumeConv(const KernelInfo& info)
      : windows_(info),
        groups_(info.integer("group")),
        slope_(info.number("slope")),
        constant_(info.constant_input(1).has_value()) {}

  void compute(Context& context) const override {
    const Input x = context.input(0), w = context.input(1), bias = context.input(2);
    const Geometry g = measure(x.shape(), w.shape());
    if (!bias.absent() && bias.shape() != Shape{g.columns}) {
      fail("bias has the shape ", to_string(bias.shape()), " instead of [", g.columns, "]");
    }
    Shape shape = {g.batch, g.columns};
    shape.insert(shape.end(), g.out.end() - static_cast<std::ptrdiff_t>(x.shape().size() - 2), g.out.end());
    Output output = context.output(0, shape);
    if (element_count(shape) == 0) return;
    std::vector<float> biases(static_cast<std::size_t>(g.columns), 0.0f);
    if (!bias.absent()) std::copy_n(bias.data<float>(), g.columns, biases.begin());
    volumes::Operands operands = {x.data<float>(), nullptr, biases.data(), slope_, output.data<float>()};
    if (const int dimensions = constant_ ? g.transformable() : 0; dimensions > 0) {
      const Geometry transformed = g.with_transforms(dimensions);
      const auto fill = [&](float* to) { pack_transformed(transformed, g.kernel[2], w.data<float>(), to); };
      Kept& kept = transformed_[static_cast<std::size_t>(dimensions - 1)];
      operands.weights = kept.get(g.columns * g.group_channels * transformed.taps * transformed.transforms(), fill);
      // Transforms subtract numbers. If some numbers are not finite, only direct sums give OpenVINO's infinities and NaN.
      if (operands.weights != nullptr && convolve(context, transformed, operands)) return;
    }
    const auto fill = [&](float* to) { pack(g, w.data<float>(), to); };
    operands.weights = constant_ ? kept_.get(w.size(), fill) : nullptr;
    std::vector<float> packed;
    if (operands.weights == nullptr) {
      packed.resize(static_cast<std::size_t>(w.size()));
      fill(packed.data());
      operands.weights = packed.data();
    }
    convolve(context, g, operands);
  }

 private:
  // Convolves all images. Returns whether all results of transforms are finite.
  static bool convolve(Context& context, const Geometry& g, const volumes::Operands& operands) {
    const Pieces pieces(g);
    context.check_size("the padded input", pieces.room());
    const std::int64_t image = g.channels * g.volume_in(), results = g.columns * g.volume_out();
    const std::int64_t grain = 1 + at_least / (pieces.products() + 1);
    std::atomic<bool> finite{true};
    context.parallel_ranges(g.batch * pieces.count(), grain, [&](std::int64_t first, std::int64_t last) {
      const Spare memory(pieces.room());
      for (std::int64_t at = first; at < last;) {
        const std::int64_t n = at / pieces.count(), end = std::min((n + 1) * pieces.count(), last);
        volumes::Operands of_image = operands;
        of_image.x += n * image;
        of_image.y += n * results;
        if (!pieces.compute(at - n * pieces.count(), end - n * pieces.count(), of_image, memory.get())) finite = false;
        at = end;
      }
    });
    return finite;
  }

  Geometry measure(const Shape& x, const Shape& w) const {
    if (x.size() < 3 || x.size() > most_dimensions + 2 || w.size() != x.size()) {
      fail("X and W have the shapes ", to_string(x), " and ", to_string(w), "; expected three to five dimensions each");
    }
    if (w[1] > 0 ? x[1] % w[1] != 0 || x[1] / w[1] != groups_ || w[0] % groups_ != 0 : x[1] != 0 || w[0] % groups_ != 0) {
      fail("W has the shape ", to_string(w), ", but X has ", x[1], " channels in ", groups_, " groups");
    }
    Geometry g{};
    static_cast<WindowSizes&>(g) = windows_.measure(x, 2, w, 2);
    g.batch = x[0];
    g.channels = x[1];
    g.columns = w[0];
    g.groups = groups_;
    g.group_channels = w[1];
    g.group_columns = w[0] / groups_;
    g.taps = element_count({g.kernel.begin(), g.kernel.end()});
    g.width = divide_up(g.padded[2], g.strides[2]);
    return g;
  }

  // Converts weights [columns, channels, depth, area] to [depth, channels, area, columns] for each chunk of channels of each
  // block.
  static void pack(const Geometry& g, const float* from, float* to) {
    const std::int64_t size = g.group_channels * g.taps, area = g.area();
    for (std::int64_t group = 0; group < g.groups; ++group) {
      volumes::each_block(group * g.group_columns, g.group_columns, [&](std::int64_t column, const volumes::Shape& shape) {
        float* next = to + column * size;
        for (std::int64_t first = 0; first < g.group_channels; first += g.chunk()) {
          const std::int64_t count = std::min(g.chunk(), g.group_channels - first);
          for (std::int64_t k = 0; k < count * g.taps; ++k) {
            const std::int64_t d = k / area / count, c = first + k / area % count, at = (c * g.kernel[0] + d) * area + k % area;
            for (std::int64_t o = 0; o < shape.outputs; ++o) *next++ = from[(column + o) * size + at];
          }
        }
      });
    }
  }

  // Transforms weights [count, taps, inner] to [count, transforms, inner] along the taps.
  static std::vector<float> transform_weights(const float* from, std::int64_t count, std::int64_t inner) {
    std::vector<float> weights(static_cast<std::size_t>(count * volumes::transform_count * inner));
    float* to = weights.data();
    for (std::int64_t i = 0; i < count; ++i, from += 3 * inner, to += volumes::transform_count * inner) {
      for (std::int64_t k = 0; k < inner; ++k) {
        const float a = from[k], b = from[inner + k], c = from[2 * inner + k];
        const float sums[volumes::transform_count] = {a, 0.5f * ((a + c) + b), 0.5f * ((a + c) - b), c};
        for (std::int64_t t = 0; t < volumes::transform_count; ++t) to[t * inner + k] = sums[t];
      }
    }
    return weights;
  }

  // Transforms weights [columns, channels, depth, height, width], and packs those of each transform. Zeros follow the taps of
  // the last of several transforms.
  static void pack_transformed(const Geometry& g, std::int64_t width, const float* from, float* to) {
    const std::int64_t count = g.columns * g.group_channels * g.taps, whole = g.kernel[2] * volumes::transformed_taps;
    std::vector<float> padded;
    if (width < whole) {
      const std::int64_t rows = count / g.kernel[2];
      padded.resize(static_cast<std::size_t>(rows * whole));
      for (std::int64_t row = 0; row < rows; ++row) std::copy_n(from + row * width, width, padded.data() + row * whole);
      from = padded.data();
    }
    std::vector<float> transformed = transform_weights(from, g.transformed > 1 ? 3 * count : count, 1);
    if (g.transformed > 1) transformed = transform_weights(transformed.data(), count, volumes::transform_count);
    std::vector<float> weights(static_cast<std::size_t>(count));
    for (std::int64_t transform = 0; transform < g.transforms(); ++transform) {
      for (std::int64_t i = 0; i < count; ++i) {
        weights[static_cast<std::size_t>(i)] = transformed[static_cast<std::size_t>(i * g.transforms() + transform)];
      }
      pack(g, weights.data(), to + transform * count);
    }
  }

  Windows windows_;
  std::int64_t groups_;
  float slope_;
  bool constant_;
  mutable Kept kept_{Keep::convolutions};
  mutable std::array<Kept, 2> transformed_{Kept(Keep::convolutions), Kept(Keep::convolutions)};  // along one dimension and two
};

}  // namespace

const Op& volume_conv() {
  static const Op op = {
      "VolumeConv",
      {{"X"}, {"W"}, {"bias", true, {Type::float32}}},
      {{"Y"}},
      {Attribute::string("strides", ""), Attribute::string("pads", ""), Attribute::string("dilations", ""),
       Attribute::integer("group", 1).within(1, std::int64_t{1} << 24), Attribute::number("slope", 1.0f)},
      {{{Type::float32, Type::float32, Type::undefined}, {Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<VolumeConv>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
