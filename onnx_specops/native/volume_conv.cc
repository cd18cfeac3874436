// VolumeConv: convolutions of volumes with channels first.
//
// A slice of the padded input is one line of positions, in which each tap is at a fixed distance. With strides, the pixels of
// each remainder are a slice of their own, so that taps stay adjacent. Sums at positions between lines are dropped.
#include "volume_conv.h"

#include <algorithm>
#include <array>
#include <vector>

#include "float_kernels.h"
#include "integer_list.h"
#include "kept.h"
#include "op.h"
#include "spare.h"

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
using volumes::Tile;

constexpr std::size_t dimensions = 3;
// The positions of a piece of work: its inputs stay in the second-level cache for all output channels.
constexpr std::int64_t positions_at_once = 3 * most_positions;
// The numbers of padded slices that are copied at once, so that they stay in a cache. One window may need more.
constexpr std::int64_t copied_at_once = std::int64_t{1} << 20;

using Sizes = std::array<std::int64_t, dimensions>;

std::int64_t up(std::int64_t x, std::int64_t step) { return (x + step - 1) / step; }

struct Geometry {
  std::int64_t batch, channels, columns, groups, group_channels, group_columns, taps;
  Sizes in, out, kernel, strides, dilations, begin;
  // The padded slices: pixels with the same remainder of their height and width are together.
  std::int64_t rows, width, remainders;

  std::int64_t plane() const { return rows * width; }
  std::int64_t slice() const { return remainders * plane(); }
};

// Some output slices, [first, last), and the input slices that their windows cover, [from, until).
struct Slab {
  std::int64_t first, last, from, until;

  std::int64_t depth() const { return until - from; }
};

class VolumeConv : public Kernel {
 public:
  explicit VolumeConv(const KernelInfo& info)
      : strides_(parse_integers("strides", info.string("strides"))),
        pads_(parse_integers("pads", info.string("pads"))),
        dilations_(parse_integers("dilations", info.string("dilations"))),
        groups_(info.integer("group")),
        slope_(info.number("slope")),
        constant_(info.constant_input(1).has_value()) {}

  void compute(Context& context) const override {
    const Input x = context.input(0), w = context.input(1), bias = context.input(2);
    const Geometry g = measure(x.shape(), w.shape());
    if (!bias.absent() && bias.shape() != Shape{g.columns}) {
      fail("bias has the shape ", to_string(bias.shape()), " instead of [", g.columns, "]");
    }
    const Shape shape = {g.batch, g.columns, g.out[0], g.out[1], g.out[2]};
    Output output = context.output(0, shape);
    if (element_count(shape) == 0) return;
    const std::int64_t slices = element_count({g.channels, g.remainders, g.rows, g.width});
    const std::int64_t extent = (g.kernel[0] - 1) * g.dilations[0] + 1;
    const std::int64_t room = std::clamp(copied_at_once / std::max<std::int64_t>(slices, 1) - extent, std::int64_t{0}, g.in[0]);
    const std::int64_t step = room / g.strides[0] + 1, padded = element_count({slices, std::min(room + extent, g.in[0])});
    context.check_size("the padded input", padded);
    const std::int64_t beyond = 2 * most_positions + g.width;
    const Spare memory(padded + beyond);
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
    const std::int64_t from = x.size() / g.batch, to = element_count(shape) / g.batch;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      for (std::int64_t z = 0; z < g.out[0]; z += step) {
        const std::int64_t last = std::min(z + step, g.out[0]), begin = z * g.strides[0] - g.begin[0];
        const std::int64_t end = (last - 1) * g.strides[0] - g.begin[0] + extent;
        const std::int64_t first = std::clamp(begin, std::int64_t{0}, g.in[0]);
        const Slab slab = {z, last, first, std::clamp(end, first, g.in[0])};
        copy(context, g, slab, x.data<float>() + n * from, memory.get());
        std::fill_n(memory.get() + slices * slab.depth(), beyond, 0.0f);
        convolve(context, g, slab, memory.get(), weights, biases.data(), output.data<float>() + n * to);
      }
    }
  }

 private:
  Geometry measure(const Shape& x, const Shape& w) const {
    if (x.size() != dimensions + 2 || w.size() != dimensions + 2) {
      fail("X and W have the shapes ", to_string(x), " and ", to_string(w), "; expected five dimensions each");
    }
    Geometry g{};
    g.batch = x[0];
    g.channels = x[1];
    g.columns = w[0];
    g.groups = groups_;
    g.group_channels = w[1];
    g.group_columns = w[0] / groups_;
    g.taps = w[2] * w[3] * w[4];
    if (w[1] > 0 ? x[1] % w[1] != 0 || x[1] / w[1] != groups_ || w[0] % groups_ != 0 : x[1] != 0 || w[0] % groups_ != 0) {
      fail("W has the shape ", to_string(w), ", but X has ", x[1], " channels in ", groups_, " groups");
    }
    check_list("strides", strides_, dimensions);
    check_list("dilations", dilations_, dimensions);
    check_list("pads", pads_, 2 * dimensions);
    Sizes padded{};
    for (std::size_t i = 0; i < dimensions; ++i) {
      g.in[i] = padded[i] = x[i + 2];
      g.kernel[i] = w[i + 2];
      g.strides[i] = strides_.empty() ? 1 : strides_[i];
      g.dilations[i] = dilations_.empty() ? 1 : dilations_[i];
      if (g.strides[i] < 1 || g.dilations[i] < 1) fail("strides and dilations must be at least 1");
      if (!pads_.empty()) {
        g.begin[i] = pads_[i];
        padded[i] += pads_[i] + pads_[i + dimensions];
      }
      const std::int64_t extent = (g.kernel[i] - 1) * g.dilations[i] + 1;
      if (g.kernel[i] < 1 || padded[i] < extent) {
        fail("W has the shape ", to_string(w), ", but X, padded, has ", padded[i], " pixels along axis ", i + 2);
      }
      g.out[i] = (padded[i] - extent) / g.strides[i] + 1;
    }
    g.rows = up(padded[1], g.strides[1]);
    g.width = up(padded[2], g.strides[2]);
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

  static void copy(const Context& context, const Geometry& g, const Slab& slab, const float* x, float* to) {
    const std::int64_t plane = g.in[1] * g.in[2], height = g.strides[1], step = g.strides[2];
    context.parallel_ranges(g.channels * slab.depth(), 1 + 32768 / (g.slice() + 1), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t at = first; at < last; ++at) {
        const float* const from = x + (at / slab.depth() * g.in[0] + slab.from + at % slab.depth()) * plane;
        float* line = to + at * g.slice();
        for (std::int64_t remainder = 0; remainder < g.remainders; ++remainder) {
          // The first and the last pixel of a line within the image.
          const std::int64_t start = remainder % step - g.begin[2];
          const std::int64_t before = std::min(start < 0 ? up(-start, step) : 0, g.width);
          const std::int64_t until = std::clamp(up(std::max<std::int64_t>(g.in[2] - start, 0), step), before, g.width);
          for (std::int64_t row = 0; row < g.rows; ++row, line += g.width) {
            const std::int64_t y = row * height + remainder / step - g.begin[1];
            if (y < 0 || y >= g.in[1]) {
              std::fill_n(line, g.width, 0.0f);
              continue;
            }
            const float* pixel = from + y * g.in[2] + start + before * step;
            std::fill_n(line, before, 0.0f);
            if (step == 1) {
              std::copy_n(pixel, until - before, line + before);
            } else if (step == 2) {  // which compilers vectorize
              for (std::int64_t i = before; i < until; ++i) line[i] = pixel[2 * (i - before)];
            } else {
              for (std::int64_t i = before; i < until; ++i, pixel += step) line[i] = *pixel;
            }
            std::fill(line + until, line + g.width, 0.0f);
          }
        }
      }
    });
  }

  void convolve(const Context& context, const Geometry& g, const Slab& slab, const float* x, const float* weights,
                const float* biases, float* y) const {
    const std::int64_t area = g.kernel[1] * g.kernel[2], pixels = g.out[1] * g.out[2];
    std::vector<std::int64_t> taps(static_cast<std::size_t>(g.taps));
    for (std::int64_t t = 0; t < g.taps; ++t) {
      const std::int64_t h = t / g.kernel[2] % g.kernel[1] * g.dilations[1], w = t % g.kernel[2] * g.dilations[2];
      const std::int64_t remainder = h % g.strides[1] * g.strides[2] + w % g.strides[2];
      taps[static_cast<std::size_t>(t)] = t / area * g.dilations[0] * g.slice() + remainder * g.plane() +
                                          h / g.strides[1] * g.width + w / g.strides[2];
    }
    const std::int64_t positions = (g.out[1] - 1) * g.width + g.out[2], pieces = up(positions, positions_at_once);
    const std::int64_t work = std::min(positions, positions_at_once) * g.group_columns * g.group_channels * g.taps;
    const std::int64_t products = g.group_channels * g.taps, depths = slab.last - slab.first, units = g.groups * depths * pieces;
    context.parallel_ranges(units, 1 + 131072 / (work + 1), [&](std::int64_t first, std::int64_t last) {
      float sums[most_outputs * positions_at_once];
      for (std::int64_t unit = first; unit < last; ++unit) {
        const std::int64_t begin = unit % pieces * positions_at_once, end = std::min(begin + positions_at_once, positions);
        const std::int64_t z = slab.first + unit / pieces % depths, group = unit / pieces / depths;
        // The taps along the depth that are within the volume.
        const std::int64_t start = z * g.strides[0] - g.begin[0], step = g.dilations[0];
        const std::int64_t from = std::min(start < 0 ? up(-start, step) : 0, g.kernel[0]);
        const std::int64_t until = std::clamp(up(std::max<std::int64_t>(g.in[0] - start, 0), step), from, g.kernel[0]);
        Tile tile{};
        tile.channels = g.group_channels;
        tile.channel_step = slab.depth() * g.slice();
        tile.taps = taps.data();  // from each slice, those of later slices are as far
        tile.tap_count = (until - from) * area;
        tile.slope = slope_;
        tile.to_step = positions_at_once;
        const std::int64_t at_depth = tile.tap_count == 0 ? 0 : start + from * step - slab.from;
        const float* const input = x + (group * g.group_channels * slab.depth() + at_depth) * g.slice();
        each_block(g, group, [&](std::int64_t column, const volumes::Shape& shape) {
          tile.weights = weights + column * products + from * area * shape.outputs;
          tile.weight_step = g.taps * shape.outputs;
          tile.bias = biases + column;
          for (std::int64_t at = begin; at < end; at += shape.positions) {
            tile.from = input + at;
            tile.to = sums + at - begin;
            shape.multiply(tile);
          }
          store(g, sums, shape.outputs, begin, end, y + (column * g.out[0] + z) * pixels);
        });
      }
    });
  }

  static void store(const Geometry& g, const float* sums, std::int64_t outputs, std::int64_t begin, std::int64_t end, float* y) {
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t row = at / g.width, column = at % g.width, next = std::min(end, (row + 1) * g.width);
      const std::int64_t count = std::min(next - at, g.out[2] - column);
      for (std::int64_t o = 0; o < outputs && count > 0; ++o) {
        std::copy_n(sums + o * positions_at_once + at - begin, count,
                    y + o * g.out[0] * g.out[1] * g.out[2] + row * g.out[2] + column);
      }
      at = next;
    }
  }

  std::vector<std::int64_t> strides_, pads_, dilations_;
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
