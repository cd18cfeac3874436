// DepthwiseConv: a convolution of each channel, with channels last.
//
// Windows of a line that are completely inside the image have the same taps, one pixel apart. Those at the ends of a line are
// computed one by one with the taps that are inside.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "depthwise_conv.h"
#include "float_kernels.h"
#include "integer_list.h"
#include "op.h"
#include "windows.h"

namespace specops {
namespace depthwise {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace depthwise

namespace {

using depthwise::Row;
using depthwise::Run;

// The minimum number of products that a thread computes.
constexpr std::int64_t at_least = std::int64_t{1} << 17;

struct Geometry : WindowSizes {
  std::int64_t batch, channels;
};

class DepthwiseConv : public Kernel {
 public:
  explicit DepthwiseConv(const KernelInfo& info)
      : kernel_(parse_integers("kernel", info.string("kernel"))),
        windows_(info),
        channels_(info.integer("channels")) {
    const std::size_t rank = kernel_.size();
    if (rank < 1 || rank > most_dimensions) fail("kernel has ", rank, " numbers; expected one to three");
    windows_.check(rank);
  }

  void compute(Context& context) const override {
    const Input x = context.input(0), w = context.input(1), bias = context.input(2);
    const Geometry g = measure(x.shape(), w.shape());
    if (!bias.absent() && bias.shape() != Shape{channels_}) {
      fail("bias has the shape ", to_string(bias.shape()), " instead of [", channels_, "]");
    }
    Shape shape = {g.batch};
    shape.insert(shape.end(), g.out.end() - static_cast<std::ptrdiff_t>(kernel_.size()), g.out.end());
    shape.push_back(channels_);
    Output output = context.output(0, shape);
    if (element_count(shape) == 0) return;
    const std::int64_t line = g.out[2] * channels_, products = line * g.kernel[0] * g.kernel[1] * g.kernel[2];
    Run run{};
    run.channels = channels_;
    run.step = g.strides[2] * channels_;
    run.dilation = g.dilations[2] * channels_;
    run.bias = bias.absent() ? nullptr : bias.data<float>();
    const float *from = x.data<float>(), *weights = w.data<float>();
    float* const to = output.data<float>();
    context.parallel_ranges(element_count(shape) / line, 1 + at_least / products, [&](std::int64_t first, std::int64_t last) {
      std::vector<Row> rows;
      for (std::int64_t at = first; at < last; ++at) convolve_line(g, at, from, weights, run, rows, to + at * line);
    });
  }

 private:
  Geometry measure(const Shape& x, const Shape& w) const {
    const std::size_t rank = kernel_.size();
    Shape stated = kernel_;
    stated.push_back(channels_);
    if (w != stated) fail("W has the shape ", to_string(w), " instead of ", to_string(stated));
    if (x.size() != rank + 2 || x.back() != channels_) {
      fail("X has the shape ", to_string(x), "; expected ", rank + 2, " dimensions, the last of ", channels_);
    }
    Geometry g{};
    static_cast<WindowSizes&>(g) = windows_.measure(x, 1, w, 0);
    g.batch = x[0];
    g.channels = channels_;
    return g;
  }

  // Computes one line of windows. `at` counts the lines of all images.
  static void convolve_line(const Geometry& g, std::int64_t at, const float* x, const float* weights, Run run,
                            std::vector<Row>& rows, float* to) {
    const std::int64_t y = at % g.out[1], z = at / g.out[1] % g.out[0], n = at / g.out[1] / g.out[0];
    const TapRange depth = g.inside(0, z), height = g.inside(1, y);
    for (std::int64_t window = 0; window < g.out[2]; window += run.windows) {
      const TapRange width = g.inside(2, window);
      run.width = width.last - width.first;
      run.windows = run.width == g.kernel[2] ? whole_windows(g, window) : 1;
      run.to = to + window * g.channels;
      const std::int64_t column = g.start(2, window) + width.first * g.dilations[2];
      rows.clear();
      for (std::int64_t d = depth.first; d < depth.last && run.width > 0; ++d) {
        const std::int64_t slice = n * g.in[0] + g.start(0, z) + d * g.dilations[0];
        for (std::int64_t h = height.first; h < height.last; ++h) {
          const std::int64_t row = slice * g.in[1] + g.start(1, y) + h * g.dilations[1];
          const std::int64_t position = (d * g.kernel[1] + h) * g.kernel[2] + width.first;
          rows.push_back({x + (row * g.in[2] + column) * g.channels, weights + position * g.channels});
        }
      }
      run.rows = rows.data();
      run.row_count = static_cast<std::int64_t>(rows.size());
      depthwise::kernels().convolve(run);
    }
  }

  // The number of windows from `first` on that are completely inside a line.
  static std::int64_t whole_windows(const Geometry& g, std::int64_t first) {
    const std::int64_t extent = (g.kernel[2] - 1) * g.dilations[2] + 1;
    const std::int64_t last = (g.in[2] + g.begin[2] - extent) / g.strides[2];
    return std::min(last, g.out[2] - 1) - first + 1;
  }

  std::vector<std::int64_t> kernel_;
  Windows windows_;
  std::int64_t channels_;
};

}  // namespace

const Op& depthwise_conv() {
  static const Op op = {
      "DepthwiseConv",
      {{"X"}, {"W"}, {"bias", true, {Type::float32}}},
      {{"Y"}},
      {Attribute::integer("channels").within(1, std::int64_t{1} << 24), Attribute::string("kernel"),
       Attribute::string("strides", ""), Attribute::string("pads", ""), Attribute::string("dilations", "")},
      {{{Type::float32, Type::float32, Type::undefined}, {Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<DepthwiseConv>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
