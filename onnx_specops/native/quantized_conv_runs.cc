#include "quantized_conv_runs.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "quantized_conv_planes.h"
#include "quantized_conv_rows.h"
#include "quantized_conv_winograd.h"
#include "spare.h"

namespace specops::byte_conv {

namespace {

constexpr std::int64_t rows_at_once = 96;
// Weights with more bytes do not stay in the fastest caches.
constexpr std::int64_t many_weights = std::int64_t{1} << 16;
// The minimum number of columns of a piece. Rows are read, copied or checked again for each piece.
constexpr std::int64_t columns_at_least = 64, columns_of_copies = 128;
// The minimum number of bytes of padded lines that a thread writes.
constexpr std::int64_t lines_at_least = std::int64_t{1} << 14;
// The number of bytes of transformed activations that a thread stores at a time, if there are few enough channels.
constexpr std::int64_t most_patch_bytes = std::int64_t{3} << 17;
// The minimum number of elements that a thread multiplies by constants of their columns.
constexpr std::int64_t pointwise_at_least = std::int64_t{1} << 14;
// The minimum number of output pixels for tiles, which take the same time for 1 to 16 pixels.
constexpr std::int64_t fewest_in_tiles = 3;
// The limits of padded planes: their size relative to the input, and their size in bytes.
constexpr std::int64_t most_growth = 8, most_plane_bytes = std::int64_t{1} << 26;
// Larger numbers are clipped before they are converted to integers.
constexpr double most_plain = 2e9;

// The epilogue for columns from `from` on; `first` is the first result.
After after(const Prepared& prepared, std::int64_t from, const Results& results, std::int64_t first) {
  const auto at = [&](const auto& of) { return of.empty() ? nullptr : of.data() + from; };
  const PixelBiases* const of_pixels = results.biases;
  const bool alike = of_pixels == nullptr || of_pixels->kinds.empty();
  Addition addition{};
  addition.addend = results.addend == nullptr ? nullptr : results.addend + first;
  addition.addend_zero_point = prepared.addend_zero;
  addition.addend_scale = at(prepared.addend_scale);
  addition.scale = at(prepared.sum_scale);
  addition.slope = at(prepared.sum_slope);
  addition.bias = at(prepared.sum_bias);
  addition.zero_point = prepared.sum_zero;
  addition.zero_points = at(prepared.sum_zeros);
  addition.residual = results.residual == nullptr ? nullptr : results.residual + first;
  After out{};
  out.scale = at(prepared.scale);
  out.bias = of_pixels == nullptr ? at(prepared.bias) : of_pixels->biases.data() + from;
  out.factor = at(prepared.factor);
  out.offset = at(prepared.offset);
  out.slope = at(prepared.slope);
  out.kinds = alike ? nullptr : of_pixels->kinds.data() + first / results.columns;
  out.bias_step = alike ? 0 : of_pixels->step;
  out.function = prepared.function;
  out.alpha = prepared.alpha;
  out.beta = prepared.beta;
  out.zero_point = prepared.y_zero;
  out.zero_points = at(prepared.y_zeros);
  out.floats = results.floats;
  const bool clips = out.function == Function::clip && addition.addend == nullptr && out.alpha < most_plain && out.beta > -most_plain;
  const bool is_scaled = out.factor == nullptr && out.offset == nullptr && addition.slope == nullptr && addition.bias == nullptr;
  out.plain = prepared.bounded && (out.function == Function::none || clips) && is_scaled && !out.floats && alike;
  out.addition = addition;
  return out;
}

// One zero point for each channel.
std::vector<std::uint8_t> zeros_of_channels(const Geometry& g, const Prepared& prepared) {
  if (prepared.x_zeros.size() != 1) return prepared.x_zeros;
  return std::vector<std::uint8_t>(static_cast<std::size_t>(g.channels), prepared.x_zeros[0]);
}

void run_pointwise(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                   const Results& results) {
  const std::int64_t count = g.pixels() * g.columns, width = prepared.part, rows = count / width;
  const auto multiply = [&](std::int64_t at, std::int64_t columns, std::int64_t rows_here) {
    kernels().pointwise({x + at, columns, prepared.column_weights.data(), prepared.start.data(),
                                    after(prepared, 0, results, at), results.y + at * results.bytes()}, rows_here);
  };
  context.parallel_ranges(rows, pointwise_at_least / width + 1, [&](std::int64_t first, std::int64_t last) {
    multiply(first * width, width, last - first);
  });
  if (rows * width < count) multiply(rows * width, count - rows * width, 1);
}

void run_winograd(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                  const Results& results) {
  const Kernels& kernels = byte_conv::kernels();
  const int tile = prepared.winograd;
  const WinogradTiles tiles(g, tile);
  const std::int64_t planes = g.kernel[0], count = tiles.count(), points = points_of(tile), wanted = Context::most_pieces();
  const std::int64_t point_bytes = planes * g.channels * static_cast<std::int64_t>(sizeof(std::int16_t));  // of a tile
  // There are enough pieces for all threads. If each piece reads many weights, it has fewer columns instead of fewer tiles.
  const bool divides_columns = g.groups == 1 && static_cast<std::int64_t>(prepared.weights.size()) > many_weights;
  std::int64_t step = std::min(most_patch_bytes / (points * point_bytes), most_tiles(tile)), width = g.group_columns;
  if (!divides_columns) step = std::min(step, std::max((count + wanted - 1) / wanted, kernels.product_rows));
  step = std::max<std::int64_t>(step, 1);
  const std::int64_t blocks = (count + step - 1) / step;
  step = (count + blocks - 1) / blocks;
  if (divides_columns) width = std::max(up((g.columns * blocks + wanted - 1) / wanted, kernels.panel_columns), columns_at_least);
  const std::int64_t column_parts = (g.group_columns + width - 1) / width;
  const std::vector<std::uint8_t> padding = zeros_of_channels(g, prepared);
  context.parallel_ranges(blocks * column_parts, 1, [&](std::int64_t begin, std::int64_t until) {
    std::vector<const void*> pixels(static_cast<std::size_t>(step * planes * points)), rows(static_cast<std::size_t>(step * planes));
    // The distance of points is not a multiple of 4 KiB, because they would then share few cache sets.
    const std::int64_t patch_bytes = up(step * point_bytes, 64) + 64;
    const Spare patches(points * patch_bytes / 4);
    auto* const from = reinterpret_cast<std::int16_t*>(patches.get());
    std::vector<WinogradLine> lines;
    std::int64_t here = 0;
    for (std::int64_t piece = begin; piece < until; ++piece) {
      const std::int64_t first = piece / column_parts * step, column = piece % column_parts * width;
      if (first >= count) break;
      if (piece == begin || column == 0) {
        here = std::min(step, count - first);
        tiles.point(x, padding.data(), first, first + here, pixels.data());
        kernels.transform_patches({tile, pixels.data(), here, planes, g.channels, from, patch_bytes / 2});
        lines = tiles.lines(first, first + here);
        for (std::int64_t i = 0; i < planes * here; ++i) rows[static_cast<std::size_t>(i)] = from + i * g.channels;
      }
      for (std::int64_t group = 0; group < g.groups; ++group) {
        const std::int64_t offset = group * g.group_channels * static_cast<std::int64_t>(sizeof(std::int16_t));
        const std::int64_t at = group * prepared.padded + column, result = group * g.group_columns + column;
        const auto* const panels = static_cast<const std::uint8_t*>(prepared.matrix()) + group * prepared.stride +
                                   packed_winograd_bytes(tile, column, planes * prepared.depth);
        kernels.multiply_winograd({tile,
                                   {rows.data(), here, planes, offset, prepared.depth, panels, prepared.start.data() + at,
                                    std::min(g.group_columns - column, width), after(prepared, at, results, result),
                                    results.y + result * results.bytes(), g.columns},
                                   patch_bytes,
                                   lines.data(),
                                   static_cast<std::int64_t>(lines.size()),
                                   g.out[2]});
      }
    }
  });
}

// The product for `columns` columns of a group, without its positions, which the caller adds. `result` is the first output
// pixel.
TileProduct tile_product(const Geometry& g, const Prepared& prepared, std::int64_t group, std::int64_t column,
                         std::int64_t columns, std::int64_t result, const Results& results) {
  const std::int64_t from = group * prepared.padded + column, at = result * g.columns + group * g.group_columns + column;
  const std::int64_t depth = prepared.tiles->depth();
  TileProduct product{};
  product.chunks = depth / prepared.tiles->chunk_depth;
  product.chunk_depth = prepared.tiles->chunk_depth;
  product.panels = static_cast<const std::uint8_t*>(prepared.matrix()) + group * prepared.stride +
                   (column == 0 ? 0 : kernels().packed_bytes(column, depth));
  product.start = prepared.start.data() + from;
  product.columns = columns;
  product.after = after(prepared, from, results, at);
  product.to = results.y + at * results.bytes();
  product.to_step = g.columns;
  return product;
}

// `from` are the planes of images [image, image + images), or the input. `end` is the end of the input.
void multiply_planes(const Context& context, const Geometry& g, const Prepared& prepared, const Planes& planes,
                     const std::uint8_t* from, const std::uint8_t* end, std::int64_t image, std::int64_t images,
                     const Results& results) {
  const Kernels& kernels = byte_conv::kernels();
  const std::int64_t positions = planes.run_positions(), runs = images * planes.runs(), depth = prepared.tiles->depth();
  const std::int64_t image_pixels = g.pixels() / g.batch, tile = tile_rows;
  // There are enough pieces for all threads. If each piece reads many weights, it has more positions and fewer columns.
  const std::int64_t wanted = std::max<std::int64_t>(Context::most_pieces() / runs, 1);
  const bool divides_columns = g.groups == 1 && static_cast<std::int64_t>(prepared.weights.size()) > many_weights;
  std::int64_t step = rows_at_once, width = g.group_columns;
  if (!divides_columns) step = std::clamp(up((positions + wanted - 1) / wanted, tile), tile, step);
  // The last piece may have one tile of positions more.
  const std::int64_t parts = std::max<std::int64_t>((positions + step - 1 - tile) / step, 1);
  if (divides_columns) width = std::max(up((g.columns * parts + wanted - 1) / wanted, kernels.panel_columns), columns_at_least);
  const std::int64_t column_parts = std::max<std::int64_t>((g.group_columns + width - 1) / width, 1);
  context.parallel_ranges(runs * parts * column_parts, 1, [&](std::int64_t begin, std::int64_t until) {
    std::vector<std::uint8_t> copies;
    for (std::int64_t piece = begin; piece < until; ++piece) {
      const std::int64_t column = piece % column_parts * width, part = piece / column_parts % parts, run = piece / column_parts / parts;
      const std::int64_t at = run / planes.runs(), within = run % planes.runs(), group = planes.group_of(within);
      const std::int64_t result = (image + at) * image_pixels + planes.first_result(within);
      const std::int64_t columns = std::min(g.group_columns - column, width);
      TileProduct product = tile_product(g, prepared, group, column, columns, result, results);
      product.from = from + at * planes.image_bytes() + planes.begin(within);
      product.step = planes.step();
      product.offsets = planes.offsets().data();
      product.line_positions = planes.line_positions();
      product.line_results = planes.line_results();
      const std::int64_t first = part * step, last = part + 1 < parts ? first + step : positions;
      if (end == nullptr) {
        kernels.multiply_tiles(product, first, last);
        continue;
      }
      // Tiles of the last positions would extend beyond the input.
      const std::int64_t room = end - product.from, whole = room < depth ? 0 : (room - depth) / product.step + 1;
      const std::int64_t direct = up(positions, tile) <= whole ? positions : whole / tile * tile;
      if (first < direct) kernels.multiply_tiles(product, first, std::min(last, direct));
      const std::int64_t rest = std::max(first, direct);
      if (rest >= last) continue;
      copies.assign(static_cast<std::size_t>(up(last - rest, tile) * depth), 0);
      for (std::int64_t i = rest; i < last; ++i) {
        std::memcpy(copies.data() + (i - rest) * depth, product.from + i * product.step, static_cast<std::size_t>(g.group_channels));
      }
      product = tile_product(g, prepared, group, column, columns, result + rest, results);
      product.from = copies.data();
      product.step = depth;
      product.offsets = planes.offsets().data();
      product.line_positions = product.line_results = last - rest;
      kernels.multiply_tiles(product, 0, last - rest);
    }
  });
}

// Used if there are few results, or if planes would be much larger than the input.
void run_copied_rows(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                     const Results& results) {
  const Kernels& kernels = byte_conv::kernels();
  const TileDepth& tiles = *prepared.tiles;
  const std::int64_t pixels = g.pixels(), depth = tiles.depth(), size = g.group_channels;
  const std::int64_t step = std::min(up(pixels, tile_rows), rows_at_once), parts = (pixels + step - 1) / step;
  const std::vector<std::uint8_t> zeros = zeros_of_channels(g, prepared);
  std::vector<std::int64_t> offsets;
  for (std::int64_t at = 0; at < depth; at += tiles.chunk_depth) offsets.push_back(at);
  context.parallel_ranges(parts * g.groups, 1, [&](std::int64_t begin, std::int64_t until) {
    std::vector<const void*> taps(static_cast<std::size_t>(g.taps * step));
    std::vector<std::uint8_t> copies(static_cast<std::size_t>(step * depth));
    for (std::int64_t piece = begin; piece < until; ++piece) {
      const std::int64_t group = piece % g.groups, row = piece / g.groups * step, rows = std::min(step, pixels - row);
      if (piece == begin || group == 0) point(g, x, zeros.data(), row, rows, step, taps.data());
      for (std::int64_t tap = 0; tap < g.taps; ++tap) {
        const std::int64_t at = tiles.place(tap, size);
        for (std::int64_t i = 0; i < rows; ++i) {
          const std::uint8_t* one = static_cast<const std::uint8_t*>(taps[static_cast<std::size_t>(tap * step + i)]);
          std::memcpy(copies.data() + i * depth + at, one + group * size, static_cast<std::size_t>(size));
        }
      }
      TileProduct product = tile_product(g, prepared, group, 0, g.group_columns, row, results);
      if (rows < fewest_in_tiles) {
        const void* const starts[] = {copies.data(), copies.data() + depth};
        kernels.multiply({starts, 1, 1, 0, depth, product.panels, product.start, product.columns, product.after, product.to,
                          product.to_step}, rows);
        continue;
      }
      product.from = copies.data();
      product.step = depth;
      product.offsets = offsets.data();
      product.line_positions = product.line_results = rows;
      kernels.multiply_tiles(product, 0, rows);
    }
  });
}

// Products with tiles: of the input if its pixels are positions, of padded planes, or of copied rows.
void run_tiles(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
               const Results& results) {
  const Planes planes(g, *prepared.tiles);
  const std::int64_t image_bytes = g.image_size();
  const std::int64_t plane_bytes = planes.is_representable() ? planes.image_bytes() : 0;
  if (g.pixels() < fewest_in_tiles || !planes.is_representable() || plane_bytes > most_growth * (image_bytes + (1 << 16))) {
    return run_copied_rows(context, g, prepared, x, results);
  }
  if (planes.is_input()) {
    multiply_planes(context, g, prepared, planes, x, x + g.batch * image_bytes, 0, 1, results);
    return;
  }
  const std::vector<std::uint8_t> zeros = zeros_of_channels(g, prepared);
  const std::int64_t at_once = std::clamp<std::int64_t>(most_plane_bytes / plane_bytes, 1, g.batch);
  const Spare memory((at_once * plane_bytes + planes.bytes_beyond() + 3) / 4);
  std::uint8_t* const filled = reinterpret_cast<std::uint8_t*>(memory.get());
  for (std::int64_t image = 0; image < g.batch; image += at_once) {
    const std::int64_t images = std::min(at_once, g.batch - image), lines = planes.lines();
    const std::int64_t grain = lines_at_least * lines / std::max<std::int64_t>(plane_bytes, 1) + 1;
    context.parallel_ranges(images * lines, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        planes.fill(x + (image + i / lines) * image_bytes, i % lines, zeros.data(), filled + i / lines * plane_bytes);
      }
    });
    multiply_planes(context, g, prepared, planes, filled, nullptr, image, images, results);
  }
}

// There are enough pieces for all threads, each of whole tiles. If each piece reads many weights, it has more rows and fewer
// columns.
struct Pieces {
  std::int64_t rows, columns;
  Pieces(const Geometry& g, const Prepared& prepared);
};

Pieces::Pieces(const Geometry& g, const Prepared& prepared) : columns(g.columns) {
  const Kernels& kernels = byte_conv::kernels();
  const std::int64_t pixels = g.pixels(), tile = kernels.product_rows, wanted = Context::most_pieces();
  rows = std::clamp(up((pixels + wanted - 1) / wanted, tile), tile, rows_at_once);
  if (g.groups > 1 || prepared.weight_bytes() <= many_weights) return;
  const std::int64_t most = std::min(up(pixels, tile), rows_at_once), row_parts = (pixels + most - 1) / most;
  const std::int64_t least = prepared.copied || prepared.checked ? columns_of_copies : columns_at_least;
  columns = std::max(up((g.columns * row_parts + wanted - 1) / wanted, kernels.panel_columns), least);
  const std::int64_t parts = (g.columns + columns - 1) / columns;
  // Pieces with few rows take longer, so half of the wanted number is enough.
  rows = std::clamp(up((pixels * parts * 2 + wanted - 1) / wanted, tile), tile, most);
}

// Depthwise convolutions along lines of output pixels.
void run_lines(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
               const Results& results) {
  const Kernels& kernels = byte_conv::kernels();
  std::vector<std::uint8_t> padding = zeros_of_channels(g, prepared);
  const std::uint8_t* const end = x + g.batch * g.image_size();
  const std::int64_t readable = up(g.channels, line_channels), width = g.kernel[2], stride = g.strides[2];
  padding.resize(static_cast<std::size_t>(readable));
  // Channels after the last pixel are also read.
  const std::int64_t kept = std::min<std::int64_t>(readable, end - x);
  std::vector<std::uint8_t> tail(static_cast<std::size_t>(kept + readable));
  std::copy(end - kept, end, tail.begin());
  const auto readable_at = [&](const std::uint8_t* at) -> const void* {
    return end - at < readable ? tail.data() + kept - (end - at) : at;
  };
  // Pieces have whole lines if lines are short.
  std::int64_t step = Pieces(g, prepared).rows;
  if (g.out[2] <= step) step -= step % g.out[2];
  const std::int64_t pixels = g.pixels(), chunks = (pixels + step - 1) / step, lines = g.taps / width;
  const std::int64_t line_step = (up(step, line_rows) - 1) * stride + width + line_beyond;
  context.parallel_ranges(chunks, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<const void*> taps(static_cast<std::size_t>(lines * line_step));
    const std::int64_t until = std::min(pixels, last * step);
    for (std::int64_t row = first * step; row < until;) {
      const std::int64_t column = row % g.out[2], line = row / g.out[2];
      const std::int64_t count = std::min({step, until - row, g.out[2] - column});
      const std::int64_t height = line % g.out[1], depth = line / g.out[1] % g.out[0], image = line / g.out[1] / g.out[0];
      const std::int64_t in_width = column * stride - g.begin[2], inputs = (count - 1) * stride + width;
      const void** tap = taps.data();
      for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
        const std::int64_t in_depth = depth * g.strides[0] - g.begin[0] + d * g.dilations[0];
        for (std::int64_t h = 0; h < g.kernel[1]; ++h, tap += line_step) {
          const std::int64_t in_height = height * g.strides[1] - g.begin[1] + h * g.dilations[1];
          std::int64_t i = 0;
          if (in_depth >= 0 && in_depth < g.in[0] && in_height >= 0 && in_height < g.in[1]) {
            const std::int64_t before = std::clamp<std::int64_t>(-in_width, 0, inputs);
            const std::int64_t inside = std::clamp<std::int64_t>(g.in[2] - in_width, before, inputs);
            for (; i < before; ++i) tap[i] = padding.data();
            const std::int64_t at = ((image * g.in[0] + in_depth) * g.in[1] + in_height) * g.in[2] + in_width + before;
            const std::uint8_t* from = x + at * g.channels;
            const std::int64_t room = end - from - readable, direct = room < 0 ? before : before + room / g.channels + 1;
            for (const std::int64_t last_direct = std::min(inside, direct); i < last_direct; ++i, from += g.channels) tap[i] = from;
            for (; i < inside; ++i, from += g.channels) tap[i] = readable_at(from);
          }
          for (; i < line_step; ++i) tap[i] = padding.data();
        }
      }
      kernels.multiply_lines({taps.data(), line_step, lines, width, stride, g.channels, prepared.matrix(), prepared.start.data(),
                     after(prepared, 0, results, row * g.columns), results.y + row * g.columns * results.bytes(), g.columns},
                    count);
      row += count;
    }
  });
}

void run_depthwise(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                   const Results& results) {
  const std::int64_t pixels = g.pixels(), step = Pieces(g, prepared).rows;
  const std::vector<std::uint8_t> padding = zeros_of_channels(g, prepared);
  context.parallel_ranges((pixels + step - 1) / step, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<const void*> taps(static_cast<std::size_t>(g.taps * step));
    for (std::int64_t row = first * step; row < std::min(pixels, last * step); row += step) {
      const std::int64_t rows = std::min(step, pixels - row), result = row * g.columns;
      point(g, x, padding.data(), row, rows, step, taps.data());
      kernels().depthwise({taps.data(), step, g.taps, g.channels, prepared.matrix(), prepared.start.data(),
                           after(prepared, 0, results, result), results.y + result * results.bytes(), g.columns}, rows);
    }
  });
}

void run_products(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x,
                  const Results& results) {
  const Kernels& kernels = byte_conv::kernels();
  const Pieces pieces(g, prepared);
  const std::int64_t pixels = g.pixels(), step = pieces.rows, column_pieces = (g.columns + pieces.columns - 1) / pieces.columns;
  // The last piece may have more rows, but less than a tile more.
  const std::int64_t most = g.groups == 1 ? step + kernels.product_rows - 1 : step;
  const std::int64_t chunks = pixels <= most ? 1 : (pixels - most + step - 1) / step + 1, width = prepared.wide ? 2 : 1;
  const auto multiply = prepared.checked          ? kernels.multiply_checked
                        : prepared.narrow.empty() ? kernels.multiply
                                                  : kernels.multiply_narrow;
  std::vector<std::uint8_t> padding = zeros_of_channels(g, prepared);
  const std::uint8_t* const end = x + g.batch * g.image_size();
  // Whether the taps of a line of the kernel are adjacent.
  const bool in_lines = prepared.copied && g.groups == 1 && g.dilations[2] == 1;
  std::optional<WideInput> wide;
  if (prepared.widened) wide.emplace(context, x, end - x, padding);
  // Whether rows of copies are adjacent, as in the input.
  const bool is_contiguous = prepared.copied && g.taps == 1 && g.pixels() == g.batch * g.in[0] * g.in[1] * g.in[2] &&
                             g.begin == Sizes{} && prepared.depth == g.channels;
  const std::int64_t copy_step = is_contiguous ? prepared.depth : prepared.depth + beyond;
  if (in_lines) {
    const std::vector<std::uint8_t> one = padding;
    for (std::int64_t tap = 1; tap < g.kernel[2]; ++tap) padding.insert(padding.end(), one.begin(), one.end());
    padding.resize(padding.size() + beyond);
  }
  context.parallel_ranges(chunks * column_pieces, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<const void*> taps(static_cast<std::size_t>(in_lines ? 0 : g.taps * most)), copies(static_cast<std::size_t>(most));
    std::vector<std::uint8_t> copy(prepared.copied ? static_cast<std::size_t>(most * copy_step * width) : 0);
    for (std::int64_t i = 0; i < most && prepared.copied; ++i) {
      copies[static_cast<std::size_t>(i)] = copy.data() + i * copy_step * width;
    }
    for (std::int64_t piece = first; piece < last; ++piece) {
      const std::int64_t chunk = piece / column_pieces, column = piece % column_pieces * pieces.columns;
      const bool is_next = piece == first || column == 0;  // other pieces have the same rows as the previous one
      const std::int64_t row = chunk * step, rows = chunk + 1 < chunks ? step : pixels - row;
      if (is_next && wide) {
        point(g, wide->numbers(), wide->padding(), row, rows, most, taps.data());
      } else if (is_next && !in_lines) {
        point(g, x, padding.data(), row, rows, most, taps.data());
      }
      const std::int64_t first_result = row * g.columns;
      for (std::int64_t group = 0; group < g.groups; ++group) {
        const std::int64_t offset = group * g.group_channels, from = group * prepared.padded + column;
        const std::int64_t result = first_result + group * g.group_columns + column;
        Product product = {
            taps.data(),
            most,
            g.taps,
            wide ? offset * 2 : offset,
            prepared.depth,
            prepared.panels(kernels, group, column),
            prepared.start.data() + from,
            std::min(g.group_columns - column, pieces.columns),
            after(prepared, from, results, result),
            results.y + result * results.bytes(),
            g.columns,
        };
        if (prepared.copied && is_next) {
          const auto copied = [&](auto* to) {
            if (is_contiguous) {
              std::copy_n(x + row * g.channels, rows * g.channels, to);
            } else if (in_lines) {
              copy_lines(g, x, end, padding.data(), row, rows, copy_step, to);
            } else {
              gather(g, taps.data(), most, rows, offset, prepared.depth, copy_step, to);
            }
          };
          if (prepared.wide) {
            copied(reinterpret_cast<std::int16_t*>(copy.data()));
          } else {
            copied(copy.data());
          }
        }
        if (prepared.copied) {
          product.rows = copies.data();
          product.taps = 1;
          product.offset = 0;
        }
        multiply(product, rows);
      }
    }
  });
}

}  // namespace

void run(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x, const Results& results) {
  const auto as = prepared.tiles          ? &run_tiles
                  : prepared.pointwise    ? &run_pointwise
                  : prepared.winograd > 0 ? &run_winograd
                  : prepared.lines        ? &run_lines
                  : g.depthwise()         ? &run_depthwise
                                          : &run_products;
  if (g.repeats == 1) return as(context, g, prepared, x, results);
  const RepeatedInput repeated(context, x, g.batch * g.image_size() / g.repeats, g.repeats);
  as(context, g, prepared, repeated.numbers(), results);
}

}  // namespace specops::byte_conv
