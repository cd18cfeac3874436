#include "quantized_conv_winograd.h"

#include <algorithm>
#include <cstddef>

namespace specops::byte_conv {

namespace {

// Estimated times of the transforms, as numbers of products of 16-bit integers.
struct Costs {
  double pixel, result;  // per tile: for each channel and plane, and for each column
};
constexpr Costs costs_of_2{40, 60}, costs_of_4{200, 300};
// The cost of reading a byte of weights that is not in the second-level cache, and one that is not in the third-level cache.
constexpr double cost_of_read = 2, cost_of_far_read = 3.2;
constexpr double near_bytes = 1 << 19, far_bytes = 1 << 24;
constexpr double rows_at_once = 96;  // for direct products
constexpr double least_gain = 1.1;
// The minimum gain for groups, whose products are short. Direct products of bytes have the same costs.
constexpr double least_gain_of_groups = 1.3;

double slower(double products, double weight_bytes, double reads) {
  const double cost = weight_bytes <= near_bytes ? 0.0 : weight_bytes <= far_bytes ? cost_of_read : cost_of_far_read;
  return std::max(products, weight_bytes * reads * cost);
}

double cost_of_tiles(const Geometry& g, int tile) {
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double tiles = number(WinogradTiles(g, tile).count()), points = number(points_of(tile)), planes = number(g.kernel[0]);
  const double weights = points * planes * number(g.group_channels) * number(g.columns);
  const Costs costs = tile == 2 ? costs_of_2 : costs_of_4;
  const double around = costs.pixel * planes * number(g.channels) + costs.result * number(g.columns);
  return slower(tiles * (weights + around), 2 * weights, std::max(tiles / number(most_tiles(tile)), 1.0));
}

// A pair of channels for each column of a panel.
struct Pairs {
  std::int16_t all[2 * most_panel_columns];
};

Pairs combined(const int (&factors)[3], const Pairs& a, const Pairs& b, const Pairs& c) {
  Pairs out;
  for (std::int64_t i = 0; i < 2 * most_panel_columns; ++i) {
    out.all[i] = static_cast<std::int16_t>(factors[0] * a.all[i] + factors[1] * b.all[i] + factors[2] * c.all[i]);
  }
  return out;
}

// Transforms the weights of 3 x 3 taps to points.
void transform_taps(int tile, const Pairs* taps, Pairs* to) {
  constexpr int of_2[4][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
  constexpr int of_4[6][3] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 12}};
  const int size = tile + 2;
  const int(*const factors)[3] = tile == 2 ? of_2 : of_4;
  for (int h = 0; h < size; ++h) {
    Pairs line[3];
    for (int w = 0; w < 3; ++w) line[w] = combined(factors[h], taps[w], taps[3 + w], taps[6 + w]);
    for (int w = 0; w < size; ++w) *to++ = combined(factors[w], line[0], line[1], line[2]);
  }
}

}  // namespace

bool is_winograd(const std::vector<std::int64_t>& kernel, const Windows& windows) {
  const auto last_two_are = [](const std::vector<std::int64_t>& numbers, std::int64_t expected) {
    const std::size_t size = numbers.size();
    return size > 1 && numbers[size - 1] == expected && numbers[size - 2] == expected;
  };
  return last_two_are(kernel, 3) && (windows.strides.empty() || last_two_are(windows.strides, 1)) &&
         (windows.dilations.empty() || last_two_are(windows.dilations, 1));
}

int fastest_tile(const Geometry& g, std::int64_t largest, std::int64_t speed) {
  // Activations are multiplied in pairs.
  if (g.channels < fewest_winograd_channels || g.group_channels % 2 != 0) return 0;
  const double pixels = static_cast<double>(g.pixels());
  const double weights = 9.0 * static_cast<double>(g.kernel[0] * g.group_channels * g.columns);
  const double bytes = speed > 1 ? weights : 2.0 * weights;
  double best = slower(pixels * weights / static_cast<double>(speed), bytes, std::max(pixels / rows_at_once, 1.0)) / least_gain;
  if (g.groups > 1 && speed == 1) best /= least_gain_of_groups;
  int fastest = 0;
  for (const int tile : {2, 4}) {
    if (largest >= std::int64_t{1} << (tile == 2 ? 29 : 25)) continue;
    const double cost = cost_of_tiles(g, tile);
    if (cost < best) {
      best = cost;
      fastest = tile;
    }
  }
  return fastest;
}

std::int64_t packed_winograd_bytes(int tile, std::int64_t columns, std::int64_t depth) {
  const std::int64_t padded = up(columns, kernels().panel_columns);
  return points_of(tile) * padded * depth * static_cast<std::int64_t>(sizeof(std::int16_t));
}

void pack_winograd(int tile, const WinogradWeights& of, std::int16_t* to) {
  const std::int64_t panel = kernels().panel_columns, points = points_of(tile), depth = of.depth();
  const std::int64_t part_channels = depth / of.planes;
  for (std::int64_t first = 0; first < of.columns; first += panel, to += points * panel * depth) {
    const std::int64_t columns = std::min(panel, of.columns - first);
    for (std::int64_t plane = 0; plane < of.planes; ++plane) {
      for (std::int64_t channel = 0; channel < part_channels; channel += 2) {
        Pairs taps[9] = {};
        for (std::int64_t i = 0; i < 2 * columns; ++i) {
          const std::int64_t column = first + i / 2, at = channel + i % 2;
          if (column / of.group_columns != at / of.channels) continue;
          const std::int8_t* const from = of.weights + ((column * of.channels + at % of.channels) * of.planes + plane) * 9;
          for (int tap = 0; tap < 9; ++tap) taps[tap].all[i] = from[tap];
        }
        Pairs numbers[36];
        transform_taps(tile, taps, numbers);
        std::int16_t* const into = to + (plane * part_channels + channel) * panel;
        for (std::int64_t point = 0; point < points; ++point) {
          std::copy_n(numbers[point].all, 2 * panel, into + point * panel * depth);
        }
      }
    }
  }
}

WinogradTiles::WinogradTiles(const Geometry& geometry, int tile)
    : geometry_(geometry), tile_(tile), lines_((geometry.out[1] + tile - 1) / tile), width_((geometry.out[2] + tile - 1) / tile) {}

void WinogradTiles::point(const std::uint8_t* x, const std::uint8_t* padding, std::int64_t first, std::int64_t last,
                          const void** to) const {
  const Geometry& g = geometry_;
  const std::int64_t size = tile_ + 2;
  for (std::int64_t tile = first; tile < last; ++tile) {
    const std::int64_t plane = tile / width_ / lines_, depth = plane % g.out[0], image = plane / g.out[0];
    const std::int64_t height = tile / width_ % lines_ * tile_ - g.begin[1], width = tile % width_ * tile_ - g.begin[2];
    for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
      const std::int64_t in_depth = depth * g.strides[0] - g.begin[0] + d * g.dilations[0];
      for (std::int64_t h = height; h < height + size; ++h) {
        const bool inside = in_depth >= 0 && in_depth < g.in[0] && h >= 0 && h < g.in[1];
        const std::uint8_t* const line = x + (inside ? ((image * g.in[0] + in_depth) * g.in[1] + h) * g.in[2] * g.channels : 0);
        for (std::int64_t w = width; w < width + size; ++w) {
          *to++ = inside && w >= 0 && w < g.in[2] ? line + w * g.channels : padding;
        }
      }
    }
  }
}

std::vector<WinogradLine> WinogradTiles::lines(std::int64_t first, std::int64_t last) const {
  const Geometry& g = geometry_;
  std::vector<WinogradLine> out;
  for (std::int64_t tile = first; tile < last;) {
    const std::int64_t line = tile / width_, column = tile % width_, count = std::min(last - tile, width_ - column);
    const std::int64_t height = line % lines_ * tile_, plane = line / lines_;
    out.push_back({tile - first, std::min(tile_ * count, g.out[2] - tile_ * column), std::min(tile_, g.out[1] - height),
                   (plane * g.out[1] + height) * g.out[2] + tile_ * column});
    tile += count;
  }
  return out;
}

}  // namespace specops::byte_conv
