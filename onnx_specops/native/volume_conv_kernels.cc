// Convolutions of volumes for one instruction set, SPECOPS_SET: a block of sums stays in registers for all channels and taps.
#include "vectors.inc"
#include "volume_conv.h"

namespace specops::volumes {
namespace {

constexpr std::int64_t lanes = Floats::size;

// Unrolled: otherwise, GCC 12 keeps the sums in memory.
template <int outputs, int packs>
void multiply(const Tile& tile) {
  Floats sums[outputs][packs];
  UNROLL(8)
  for (int o = 0; o < outputs; ++o) {
    UNROLL(8)
    for (int p = 0; p < packs; ++p) sums[o][p] = Floats::all(tile.bias[o]);
  }
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    const float *channel = tile.from + c * tile.channel_step, *weight = tile.weights + c * tile.weight_step;
    for (std::int64_t t = 0; t < tile.tap_count; ++t, weight += outputs) {
      const float* const x = channel + tile.taps[t];
      Floats values[packs];
      UNROLL(8)
      for (int p = 0; p < packs; ++p) values[p] = Floats::load(x + p * lanes);
      UNROLL(8)
      for (int o = 0; o < outputs; ++o) {
        const Floats factor = Floats::all(weight[o]);
        UNROLL(8)
        for (int p = 0; p < packs; ++p) sums[o][p] = multiply_add(values[p], factor, sums[o][p]);
      }
    }
  }
  if (tile.slope != 1.0f) {
    const Floats slope = Floats::all(tile.slope);
    UNROLL(8)
    for (int o = 0; o < outputs; ++o) {
      UNROLL(8)
      for (int p = 0; p < packs; ++p) {
        // Relu, also of negative infinity.
        const Floats sum = sums[o][p], below = tile.slope == 0.0f ? Floats::zero() : sum * slope;
        sums[o][p] = below_zero(sum, below, sum);
      }
    }
  }
  UNROLL(8)
  for (int o = 0; o < outputs; ++o) {
    UNROLL(8)
    for (int p = 0; p < packs; ++p) sums[o][p].store(tile.to + o * tile.to_step + p * lanes);
  }
}

template <int outputs, int packs>
constexpr Shape shape() {
  static_assert(most_positions % (packs * lanes) == 0 && outputs <= most_outputs);
  return {outputs, packs * lanes, multiply<outputs, packs>};
}

}  // namespace

const Kernels& SPECOPS_SET() {
#if defined(__AVX512F__)  // 32 registers
  static const Kernels found = {SPECOPS_NAME, {shape<8, 3>(), shape<4, 6>(), shape<2, 6>(), shape<1, 6>()}};
#else
  static const Kernels found = {SPECOPS_NAME, {shape<4, 3>(), shape<2, 4>(), shape<1, 6>(), shape<1, 6>()}};
#endif
  return found;
}

}  // namespace specops::volumes
