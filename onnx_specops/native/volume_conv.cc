// VolumeConv: convolutions of volumes, images and lines with channels first.
//
// A slice of the padded input is one line of positions, in which each tap is at a fixed distance. With strides, the pixels of
// each remainder are a slice of their own, so that taps stay adjacent. Sums at positions between lines are dropped.
#include "volume_conv.h"

#include <algorithm>
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
using volumes::Slab;
using volumes::Slabs;

// Small groups are copied by the thread that convolves them, so that they stay in its second-level cache: at most so many numbers
// of one group, about so many of several, and a fraction of all groups, for several threads.
constexpr std::int64_t small_group = std::int64_t{1} << 17, groups_at_once = std::int64_t{1} << 15, several = 8;
// The products that a thread computes, at least.
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
    const auto fill = [&](float* to) { pack(g, w.data<float>(), to); };
    const float* weights = constant_ ? kept_.get(w.size(), fill) : nullptr;
    std::vector<float> packed;
    if (weights == nullptr) {
      packed.resize(static_cast<std::size_t>(w.size()));
      fill(packed.data());
      weights = packed.data();
    }
    std::vector<float> biases(static_cast<std::size_t>(g.columns), 0.0f);
    if (!bias.absent()) std::copy_n(bias.data<float>(), g.columns, biases.begin());
    const auto parallel = [&](std::int64_t total, std::int64_t grain, const auto& body) {
      context.parallel_ranges(total, grain, body);
    };
    const std::int64_t from = x.size() / (g.batch * g.groups), to = element_count(shape) / (g.batch * g.groups);
    const std::int64_t padded = Slabs(g.of(1)).padded();
    if (g.batch * g.groups >= several && padded <= small_group) {
      const auto serial = [](std::int64_t total, std::int64_t, const auto& body) {
        if (total > 0) body(0, total);
      };
      const std::int64_t most = std::clamp(groups_at_once / (padded + 1), std::int64_t{1}, divide_up(g.groups, several));
      const std::int64_t parts = divide_up(g.groups, most), products = most * to * g.group_channels * g.taps;
      parallel(g.batch * parts, 1 + at_least / (products + 1), [&](std::int64_t first, std::int64_t last) {
        const Spare memory(Slabs(g.of(most)).room());
        for (std::int64_t at = first; at < last; ++at) {
          const std::int64_t group = at % parts * most, image = at / parts * g.groups + group;
          const std::int64_t column = group * g.group_columns;
          convolve_slabs(serial, g.of(std::min(most, g.groups - group)), x.data<float>() + image * from, memory.get(),
                         weights + column * g.group_channels * g.taps, biases.data() + column, output.data<float>() + image * to);
        }
      });
      return;
    }
    const Slabs slabs(g);
    context.check_size("the padded input", slabs.padded());
    const Spare memory(slabs.room());
    for (std::int64_t n = 0; n < g.batch; ++n) {
      convolve_slabs(parallel, g, x.data<float>() + n * g.groups * from, memory.get(), weights, biases.data(),
                     output.data<float>() + n * g.groups * to);
    }
  }

 private:
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
    g.rows = divide_up(g.padded[1], g.strides[1]);
    g.width = divide_up(g.padded[2], g.strides[2]);
    g.remainders = g.strides[1] * g.strides[2];
    return g;
  }

  // Weights [columns, channels, depth, area] as [depth, channels, area, columns] of each chunk of channels of each block.
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

  // Convolves an image. `ranges(total, grain, body)` calls body(begin, end) for all of [0, total).
  template <class Ranges>
  void convolve_slabs(const Ranges& ranges, const Geometry& g, const float* x, float* memory, const float* weights,
                      const float* biases, float* y) const {
    const Slabs slabs(g);
    slabs.each([&](const Slab& slab) {
      copy(ranges, g, slab, x, memory);
      std::fill_n(memory + g.channels * slab.depth() * g.slice(), slabs.beyond(), 0.0f);
      const Pieces pieces(g, slab, {memory, weights, biases, slope_, y});
      ranges(pieces.count(), 1 + at_least / (pieces.products() + 1),
             [&](std::int64_t first, std::int64_t last) { pieces.compute(first, last); });
    });
  }

  template <class Ranges>
  static void copy(const Ranges& ranges, const Geometry& g, const Slab& slab, const float* x, float* to) {
    const std::int64_t plane = g.in[1] * g.in[2], height = g.strides[1], step = g.strides[2];
    ranges(g.channels * slab.depth(), 1 + 32768 / (g.slice() + 1), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t at = first; at < last; ++at) {
        const float* const from = x + (at / slab.depth() * g.in[0] + slab.from + at % slab.depth()) * plane;
        float* line = to + at * g.slice();
        for (std::int64_t remainder = 0; remainder < g.remainders; ++remainder) {
          // The first and the last pixel of a line within the image.
          const std::int64_t start = remainder % step - g.begin[2];
          const std::int64_t before = std::min(start < 0 ? divide_up(-start, step) : 0, g.width);
          const std::int64_t until = std::clamp(divide_up(std::max<std::int64_t>(g.in[2] - start, 0), step), before, g.width);
          // Likewise, the lines within the image.
          const std::int64_t top = remainder / step - g.begin[1];
          const std::int64_t above = std::min(top < 0 ? divide_up(-top, height) : 0, g.rows);
          const std::int64_t below = std::clamp(divide_up(std::max<std::int64_t>(g.in[1] - top, 0), height), above, g.rows);
          std::fill_n(line, above * g.width, 0.0f);
          const float* const pixel = from + (top + above * height) * g.in[2] + start + before * step;
          volumes::kernels().copy({below - above, pixel, height * g.in[2], step, line + above * g.width, g.width, g.width, before,
                                   until - before});
          std::fill_n(line + below * g.width, (g.rows - below) * g.width, 0.0f);
          line += g.plane();
        }
      }
    });
  }

  Windows windows_;
  std::int64_t groups_;
  float slope_;
  bool constant_;
  mutable Kept kept_;
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
