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
#include "windows.h"

namespace specops {
namespace volumes {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace volumes

namespace {

using volumes::most_outputs;
using volumes::most_positions;
using volumes::Rows;
using volumes::Tile;

// The most positions of a piece of work, whose inputs stay in the second-level cache for all output channels: about so many numbers.
constexpr std::int64_t positions_at_once = 3 * most_positions, inputs_at_once = std::int64_t{1} << 17;
// The numbers of padded slices that are copied at once, so that they stay in a cache. One window may need more.
constexpr std::int64_t copied_at_once = std::int64_t{1} << 19;
// Small groups are copied by the thread that convolves them, so that they stay in its second-level cache: at most so many numbers
// of one group, about so many of several, and a fraction of all groups, for several threads.
constexpr std::int64_t small_group = std::int64_t{1} << 17, groups_at_once = std::int64_t{1} << 15, several = 8;
// The products that a thread computes, at least.
constexpr std::int64_t at_least = std::int64_t{1} << 17;

struct Geometry : WindowSizes {
  std::int64_t batch, channels, columns, groups, group_channels, group_columns, taps;
  // The padded slices: pixels with the same remainder of their height and width are together.
  std::int64_t rows, width, remainders;

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
    Geometry g{windows_.measure(x, 2, w, 2)};
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

  // Calls `visit(column, count, index)` for each block of output channels.
  template <class Visit>
  static void each_block(const Geometry& g, std::int64_t group, const Visit& visit) {
    const auto& shapes = volumes::kernels().shapes;
    for (std::int64_t done = 0; done < g.group_columns;) {
      int i = 0;
      while (shapes[i].outputs > g.group_columns - done) ++i;
      visit(group * g.group_columns + done, shapes[i]);
      done += shapes[i].outputs;
    }
  }

  // Weights [columns, channels, taps] as [channels, taps, columns] of each block.
  static void pack(const Geometry& g, const float* from, float* to) {
    const std::int64_t depth = g.group_channels * g.taps;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      each_block(g, group, [&](std::int64_t column, const volumes::Shape& shape) {
        float* next = to + column * depth;
        for (std::int64_t k = 0; k < depth; ++k) {
          for (std::int64_t o = 0; o < shape.outputs; ++o) *next++ = from[(column + o) * depth + k];
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
      convolve(ranges, g, slab, memory, weights, biases, y);
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

  template <class Ranges>
  void convolve(const Ranges& ranges, const Geometry& g, const Slab& slab, const float* x, const float* weights,
                const float* biases, float* y) const {
    const std::int64_t area = g.kernel[1] * g.kernel[2], pixels = g.out[1] * g.out[2];
    std::vector<std::int64_t> taps(static_cast<std::size_t>(g.taps));
    for (std::int64_t t = 0; t < g.taps; ++t) {
      const std::int64_t h = t / g.kernel[2] % g.kernel[1] * g.dilations[1], w = t % g.kernel[2] * g.dilations[2];
      const std::int64_t remainder = h % g.strides[1] * g.strides[2] + w % g.strides[2];
      taps[static_cast<std::size_t>(t)] = t / area * g.dilations[0] * g.slice() + remainder * g.plane() +
                                          h / g.strides[1] * g.width + w / g.strides[2];
    }
    const std::int64_t positions = (g.out[1] - 1) * g.width + g.out[2];
    const std::int64_t inputs = g.group_channels * std::min(g.remainders, area) * g.kernel[0] * most_positions;
    const std::int64_t piece = most_positions * std::clamp<std::int64_t>(inputs_at_once / (inputs + 1), 1, 3);
    const std::int64_t pieces = divide_up(positions, piece), work = std::min(positions, piece) * g.group_columns * g.group_channels * g.taps;
    const std::int64_t products = g.group_channels * g.taps, depths = slab.last - slab.first, units = g.groups * depths * pieces;
    ranges(units, 1 + at_least / (work + 1), [&](std::int64_t first, std::int64_t last) {
      float sums[most_outputs * positions_at_once];
      for (std::int64_t unit = first; unit < last; ++unit) {
        const std::int64_t begin = unit % pieces * piece, end = std::min(begin + piece, positions);
        const std::int64_t z = slab.first + unit / pieces % depths, group = unit / pieces / depths;
        // The taps along the depth that are within the volume.
        const TapRange inside = g.inside(0, z);
        Tile tile{};
        tile.channels = g.group_channels;
        tile.channel_step = slab.depth() * g.slice();
        tile.taps = taps.data();  // from each slice, those of later slices are as far
        tile.tap_count = (inside.last - inside.first) * area;
        tile.slope = slope_;
        tile.to_step = positions_at_once;
        const std::int64_t at_depth = tile.tap_count == 0 ? 0 : g.start(0, z) + inside.first * g.dilations[0] - slab.from;
        const float* const input = x + (group * g.group_channels * slab.depth() + at_depth) * g.slice();
        each_block(g, group, [&](std::int64_t column, const volumes::Shape& shape) {
          tile.weights = weights + column * products + inside.first * area * shape.outputs;
          tile.weight_step = g.taps * shape.outputs;
          tile.bias = biases + column;
          const std::int64_t lanes = volumes::kernels().lanes;
          for (std::int64_t at = begin; at < end;) {
            const std::int64_t packs = std::min<std::int64_t>(divide_up(end - at, lanes), shape.packs);
            tile.from = input + at;
            tile.to = sums + at - begin;
            shape.multiply[packs - 1](tile);
            at += packs * lanes;
          }
          store(g, sums, shape.outputs, begin, end, y + (column * g.out[0] + z) * pixels);
        });
      }
    });
  }

  // Stores sums at the positions [begin, end) without those between lines.
  static void store(const Geometry& g, const float* sums, std::int64_t outputs, std::int64_t begin, std::int64_t end, float* y) {
    const std::int64_t step = g.out[0] * g.out[1] * g.out[2];
    if (g.width == g.out[2]) {
      const Rows all = {outputs, sums, positions_at_once, 1, y + begin, step, end - begin, 0, end - begin};
      return volumes::kernels().copy(all);
    }
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t row = at / g.width, column = at % g.width;
      // A part of a line, or several whole ones.
      const std::int64_t rows = column == 0 ? std::max<std::int64_t>((end - at) / g.width, 1) : 1;
      const std::int64_t next = std::min(end, (row + rows) * g.width), count = std::min(next - at, g.out[2] - column);
      for (std::int64_t o = 0; o < outputs && count > 0; ++o) {
        float* const to = y + o * step + row * g.out[2] + column;
        volumes::kernels().copy({rows, sums + o * positions_at_once + at - begin, g.width, 1, to, g.out[2], count, 0, count});
      }
      at = next;
    }
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
