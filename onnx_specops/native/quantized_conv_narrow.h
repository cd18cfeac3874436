// Exact products of bytes for processors with AVX2 and without VNNI.
//
// vpmaddubsw multiplies bytes and adds pairs of products. The result has 16 bits and saturates, for example for two weights of
// 127. Activations are at most 255, so a sum of products fits if its positive weights add up to at most 128, and its negative
// weights to at least -128. The activations of a block can be in any order. They are ordered so that these limits hold for all
// columns of a panel: for sums of four products if possible, otherwise of two. Other blocks become 16-bit integers.
#pragma once

#include <cstdint>
#include <vector>

namespace specops::byte_conv {

constexpr std::int64_t block_depth = 16, block_columns = 16;

// The number of products whose sums fit 16 bits: four or two. Otherwise, weights are 16-bit integers.
enum class Sums { quads, pairs, words };

// The weights of some columns: the blocks of quads, then of pairs, then of 16-bit integers.
struct NarrowPanel {
  std::int64_t quads, pairs, words;  // numbers of blocks
  const std::int32_t* places;        // the first activation of each block
  const std::uint8_t* orders;        // [quads + pairs, block_depth]
  // For each block of bytes: [2, 2, block_columns, 4], first the halves of a block, then four activations of each column. A
  // quad consists of two of the first four activations and the two at the same positions of the other four. For each block of
  // 16-bit integers: [8, block_columns, 2].
  const std::int8_t* weights;
};

struct Narrow {
  std::vector<NarrowPanel> panels;  // refer to `numbers`
  std::vector<std::uint8_t> numbers;
};

// Packs weights of [columns, depth], of which the first `used` of each column may differ from 0. The result has no panels if
// 16-bit integers are as fast. `depth` is a multiple of `block_depth`.
Narrow pack_narrow(const std::int8_t* weights, std::int64_t columns, std::int64_t depth, std::int64_t used);

}  // namespace specops::byte_conv
