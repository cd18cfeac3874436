// Convolutions of 8-bit integers with the tiles of AMX: 32 positions and 32 columns at a time.
#include "quantized_conv_vectors.inc"

#include "amx.h"

namespace specops::byte_conv {
namespace {

static_assert(tile_rows == amx_tile::rows && tile_depth == amx_tile::row_bytes && lanes == amx_tile::rows);

// Computes the sums of 16 or 32 positions from `first` on, of which `count` are needed, for one or two vectors of columns.
template <int blocks, int vectors>
void tiles(const TileProduct& product, std::int64_t first, std::int64_t count, std::int64_t column) {
  constexpr std::int64_t width = vectors * lanes, right_step = panel_columns * unit;
  const std::int32_t* const start = product.start + column;
  amx_tile::load<0>(start, 0);
  if constexpr (vectors == 2) amx_tile::load<1>(start + lanes, 0);
  if constexpr (blocks == 2) amx_tile::load<2>(start, 0);
  if constexpr (blocks == 2 && vectors == 2) amx_tile::load<3>(start + lanes, 0);
  const Weight* right = static_cast<const Weight*>(product.panels) + column * product.chunks * product.chunk_depth;
  const std::uint8_t* const from = product.from + first * product.step;
  for (std::int64_t chunk = 0; chunk < product.chunks; ++chunk, right += panel_columns * product.chunk_depth) {
    const std::uint8_t* const left = from + product.offsets[chunk];
    amx_tile::load<6>(right, right_step);
    amx_tile::load<4>(left, product.step);
    amx_tile::add_products<0, 4, 6>();
    if constexpr (vectors == 2) {
      amx_tile::load<7>(right + lanes * unit, right_step);
      amx_tile::add_products<1, 4, 7>();
    }
    if constexpr (blocks == 2) {
      amx_tile::load<5>(left + tile_rows * product.step, product.step);
      amx_tile::add_products<2, 5, 6>();
      if constexpr (vectors == 2) amx_tile::add_products<3, 5, 7>();
    }
  }
  alignas(64) std::int32_t sums[blocks * tile_rows * width];
  constexpr std::int64_t bytes = width * static_cast<std::int64_t>(sizeof(std::int32_t));
  amx_tile::store<0>(sums, bytes);
  if constexpr (vectors == 2) amx_tile::store<1>(sums + lanes, bytes);
  if constexpr (blocks == 2) amx_tile::store<2>(sums + tile_rows * width, bytes);
  if constexpr (blocks == 2 && vectors == 2) amx_tile::store<3>(sums + tile_rows * width + lanes, bytes);
  // Stores the results of each line.
  const std::int64_t left = product.columns - column, columns = left < width ? left : width;
  std::int64_t line = first / product.line_positions, place = first % product.line_positions;
  for (std::int64_t i = 0; i < count; i += product.line_positions - place, place = 0, ++line) {
    const std::int64_t results = product.line_results - place < count - i ? product.line_results - place : count - i;
    if (results <= 0) continue;
    finish<vectors>(sums + i * width, results, product.after, column, columns, product.to,
                    line * product.line_results + place, product.to_step);
  }
}

void multiply_tiles(const TileProduct& product, std::int64_t first, std::int64_t last) {
  const amx_tile::Tiles configured(product.chunk_depth);
  for (std::int64_t column = 0; column < product.columns; column += panel_columns) {
    const bool both = product.columns - column > lanes;
    for (std::int64_t at = first; at < last; at += 2 * tile_rows) {
      const std::int64_t count = last - at < 2 * tile_rows ? last - at : 2 * tile_rows;
      if (count > tile_rows) {
        (both ? tiles<2, 2> : tiles<2, 1>)(product, at, count, column);
      } else {
        (both ? tiles<1, 2> : tiles<1, 1>)(product, at, count, column);
      }
    }
  }
}

}  // namespace

const Kernels& amx() {
  static const Kernels kernels = [] {
    Kernels all = avx512_vnni();
    all.name = "amx";
    all.multiply_tiles = multiply_tiles;
    return all;
  }();
  return kernels;
}

}  // namespace specops::byte_conv
