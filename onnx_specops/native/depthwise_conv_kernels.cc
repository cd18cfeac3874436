// The implementation of depthwise_conv.h. CMake defines SPECOPS_SET, the function that returns it.

#include <cstdint>

#include "depthwise_conv.h"
#include "vectors.inc"

namespace specops::depthwise {
namespace {

constexpr std::int64_t size = Floats::size;
// The windows that are computed together. Their sums and a line of weights are in registers.
constexpr int together = Floats::size == 16 ? 8 : 4;

template <int count>
ALWAYS void begin(const Run& run, std::int64_t channel, Floats (&sums)[count]) {
  const Floats bias = run.bias == nullptr ? Floats::zero() : Floats::load(run.bias + channel);
  UNROLL(8)
  for (int i = 0; i < count; ++i) sums[i] = bias;
}

template <int windows>
ALWAYS void store(const Run& run, std::int64_t window, std::int64_t channel, const Floats (&sums)[windows]) {
  UNROLL(8)
  for (int i = 0; i < windows; ++i) sums[i].store(run.to + (window + i) * run.channels + channel);
}

// Adjacent windows whose inputs are as far apart as those of adjacent positions. Each input is loaded once.
template <int windows, int width>
ALWAYS void convolve_shared(const Run& run, std::int64_t window, std::int64_t channel) {
  Floats sums[windows];
  begin(run, channel, sums);
  const std::int64_t offset = window * run.step + channel;
  for (std::int64_t r = 0; r < run.row_count; ++r) {
    const float *x = run.rows[r].x + offset, *weight = run.rows[r].weight + channel;
    Floats factors[width];
    UNROLL(8)
    for (int k = 0; k < width; ++k) factors[k] = Floats::load(weight + k * run.channels);
    UNROLL(16)
    for (int at = 0; at < windows + width - 1; ++at) {
      const Floats value = Floats::load(x + at * run.step);
      UNROLL(8)
      for (int i = 0; i < windows; ++i) {
        if (at >= i && at < i + width) sums[i] = multiply_add(value, factors[at - i], sums[i]);
      }
    }
  }
  store(run, window, channel, sums);
}

template <int windows>
ALWAYS void convolve_any(const Run& run, std::int64_t window, std::int64_t channel) {
  Floats sums[windows];
  begin(run, channel, sums);
  const std::int64_t offset = window * run.step + channel;
  for (std::int64_t r = 0; r < run.row_count; ++r) {
    const float *x = run.rows[r].x + offset, *weight = run.rows[r].weight + channel;
    for (std::int64_t k = 0; k < run.width; ++k, x += run.dilation, weight += run.channels) {
      const Floats factor = Floats::load(weight);
      UNROLL(8)
      for (int i = 0; i < windows; ++i) sums[i] = multiply_add(Floats::load(x + i * run.step), factor, sums[i]);
    }
  }
  store(run, window, channel, sums);
}

// Several vectors of channels of one window.
template <int vectors>
ALWAYS void convolve_one(const Run& run, std::int64_t window, std::int64_t channel) {
  Floats sums[vectors];
  UNROLL(4)
  for (int v = 0; v < vectors; ++v) {
    sums[v] = run.bias == nullptr ? Floats::zero() : Floats::load(run.bias + channel + v * size);
  }
  const std::int64_t offset = window * run.step + channel;
  for (std::int64_t r = 0; r < run.row_count; ++r) {
    const float *x = run.rows[r].x + offset, *weight = run.rows[r].weight + channel;
    for (std::int64_t k = 0; k < run.width; ++k, x += run.dilation, weight += run.channels) {
      UNROLL(4)
      for (int v = 0; v < vectors; ++v) {
        sums[v] = multiply_add(Floats::load(x + v * size), Floats::load(weight + v * size), sums[v]);
      }
    }
  }
  UNROLL(4)
  for (int v = 0; v < vectors; ++v) sums[v].store(run.to + window * run.channels + channel + v * size);
}

// The last channels, which are fewer than a vector.
void convolve_few(const Run& run, std::int64_t first, std::int64_t last, std::int64_t channel) {
  for (std::int64_t window = first; window < last; ++window) {
    for (std::int64_t c = channel; c < run.channels; ++c) {
      float sum = run.bias == nullptr ? 0.0f : run.bias[c];
      for (std::int64_t r = 0; r < run.row_count; ++r) {
        const float *x = run.rows[r].x + window * run.step + c, *weight = run.rows[r].weight + c;
        for (std::int64_t k = 0; k < run.width; ++k) sum += x[k * run.dilation] * weight[k * run.channels];
      }
      run.to[window * run.channels + c] = sum;
    }
  }
}

// Calls `block(channel)` for each vector of channels; the last call may compute some channels again. All channels of some
// windows are computed before other windows, because pixels are contiguous. If their size is a power of two, the same vector
// of each pixel would use few cache sets.
template <typename Block>
ALWAYS void each_vector(const Run& run, std::int64_t first, std::int64_t last, std::int64_t channel, const Block& block) {
  for (; channel + size <= run.channels; channel += size) block(channel);
  if (channel == run.channels) return;
  if (run.channels > size) {
    block(run.channels - size);
  } else {
    convolve_few(run, first, last, channel);
  }
}

template <int windows>
ALWAYS void convolve_windows(const Run& run, std::int64_t window) {
  const bool shared = run.step == run.dilation;
  const std::int64_t last = window + windows;
  if (shared && run.width == 3) {
    each_vector(run, window, last, 0, [&](std::int64_t c) ALWAYS_LAMBDA { convolve_shared<windows, 3>(run, window, c); });
  } else if (shared && run.width == 5) {
    each_vector(run, window, last, 0, [&](std::int64_t c) ALWAYS_LAMBDA { convolve_shared<windows, 5>(run, window, c); });
  } else if (shared && run.width == 7) {
    each_vector(run, window, last, 0, [&](std::int64_t c) ALWAYS_LAMBDA { convolve_shared<windows, 7>(run, window, c); });
  } else {
    each_vector(run, window, last, 0, [&](std::int64_t c) ALWAYS_LAMBDA { convolve_any<windows>(run, window, c); });
  }
}

void convolve(const Run& run) {
  std::int64_t window = 0;
  for (; window + together <= run.windows; window += together) convolve_windows<together>(run, window);
  if constexpr (together > 4) {
    for (; window + 4 <= run.windows; window += 4) convolve_windows<4>(run, window);
  }
  for (; window < run.windows; ++window) {
    std::int64_t channel = 0;
    for (; channel + 4 * size <= run.channels; channel += 4 * size) convolve_one<4>(run, window, channel);
    each_vector(run, window, window + 1, channel, [&](std::int64_t c) ALWAYS_LAMBDA { convolve_one<1>(run, window, c); });
  }
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels all = {SPECOPS_NAME, convolve};
  return all;
}

}  // namespace specops::depthwise
