// The activations of rows of products: pointers to those of each tap, or copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "op.h"
#include "quantized_conv_geometry.h"
#include "spare.h"

namespace specops::byte_conv {

// The number of bytes that are copied at once; some of them may be unused.
constexpr std::int64_t beyond = 16;
// The minimum number of integers that a thread widens or repeats.
constexpr std::int64_t copied_at_least = std::int64_t{1} << 15;

// The input as 16-bit integers, and the zero points of its channels.
class WideInput {
 public:
  WideInput(const Context& context, const std::uint8_t* x, std::int64_t count, const std::vector<std::uint8_t>& padding)
      : memory_((count + 1) / 2), padding_(padding.begin(), padding.end()) {
    std::int16_t* const to = numbers();
    context.parallel_ranges(count, copied_at_least, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) to[i] = x[i];
    });
  }
  std::int16_t* numbers() const { return reinterpret_cast<std::int16_t*>(memory_.get()); }
  const std::int16_t* padding() const { return padding_.data(); }

 private:
  Spare memory_;
  std::vector<std::int16_t> padding_;
};

// The input with each number repeated several times.
class RepeatedInput {
 public:
  RepeatedInput(const Context& context, const std::uint8_t* x, std::int64_t count, std::int64_t repeats)
      : memory_((count * repeats + 3) / 4) {
    std::uint8_t* const to = reinterpret_cast<std::uint8_t*>(memory_.get());
    context.parallel_ranges(count, copied_at_least, [=](std::int64_t first, std::int64_t last) {
      // Compilers vectorize copies of a known length.
      const auto copy = [=](auto known) {
        constexpr std::int64_t times = decltype(known)::value;
        for (std::int64_t i = first; i < last; ++i) {
          for (std::int64_t j = 0; j < times; ++j) to[i * times + j] = x[i];
        }
      };
      if (repeats == 2) return copy(std::integral_constant<std::int64_t, 2>());
      if (repeats == 3) return copy(std::integral_constant<std::int64_t, 3>());
      copy(std::integral_constant<std::int64_t, most_repeats>());
    });
  }
  const std::uint8_t* numbers() const { return reinterpret_cast<const std::uint8_t*>(memory_.get()); }

 private:
  static_assert(most_repeats == 4);
  Spare memory_;
};

// Finds the start of each tap of output pixels [row, row + rows): [taps, step].
template <class T>
void point(const Geometry& g, const T* x, const T* padding, std::int64_t row, std::int64_t rows, std::int64_t step,
           const void** to) {
  for (std::int64_t done = 0; done < rows;) {
    // Pixels of one line.
    const std::int64_t at = row + done, column = at % g.out[2], line = at / g.out[2];
    const std::int64_t count = std::min(rows - done, g.out[2] - column);
    const std::int64_t height = line % g.out[1], depth = line / g.out[1] % g.out[0], image = line / g.out[1] / g.out[0];
    const void** tap = to + done;
    for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
      const std::int64_t in_depth = depth * g.strides[0] - g.begin[0] + d * g.dilations[0];
      for (std::int64_t h = 0; h < g.kernel[1]; ++h) {
        const std::int64_t in_height = height * g.strides[1] - g.begin[1] + h * g.dilations[1];
        const bool inside = in_depth >= 0 && in_depth < g.in[0] && in_height >= 0 && in_height < g.in[1];
        const std::int64_t line_at = inside ? ((image * g.in[0] + in_depth) * g.in[1] + in_height) * g.in[2] : 0;
        for (std::int64_t w = 0; w < g.kernel[2]; ++w, tap += step) {
          const std::int64_t in_width = column * g.strides[2] - g.begin[2] + w * g.dilations[2];
          // Taps inside the line are contiguous. Those before and after them are padding.
          const std::int64_t stride = g.strides[2], pixel_step = stride * g.channels;
          std::int64_t i = 0;
          const std::int64_t before = std::clamp<std::int64_t>(in_width < 0 ? (-in_width + stride - 1) / stride : 0, 0, count);
          const std::int64_t room = g.in[2] - in_width;
          const std::int64_t until = inside ? std::clamp<std::int64_t>(room > 0 ? (room + stride - 1) / stride : 0, before, count) : before;
          for (; i < before; ++i) tap[i] = padding;
          const T* from = x + (line_at + in_width + before * stride) * g.channels;
          for (; i < until; ++i, from += pixel_step) tap[i] = from;
          for (; i < count; ++i) tap[i] = padding;
        }
      }
    }
    done += count;
  }
}

inline void copy_beyond(const std::uint8_t* from, std::uint8_t* to) { std::memcpy(to, from, beyond); }
inline void copy_beyond(const std::uint8_t* from, std::int16_t* to) {
  std::uint8_t bytes[beyond];
  std::memcpy(bytes, from, beyond);
  std::int16_t wide[beyond];
  for (std::int64_t i = 0; i < beyond; ++i) wide[i] = bytes[i];
  std::memcpy(to, wide, sizeof wide);
}

// Copies the taps of output pixels [row, row + rows) side by side, one line of the kernel at a time, with `step` elements from
// one pixel to the next. Up to `beyond` elements after the taps are overwritten, because their weights are 0. `padding` is a
// line.
template <class T>
void copy_lines(const Geometry& g, const std::uint8_t* x, const std::uint8_t* end, const std::uint8_t* padding,
                std::int64_t row, std::int64_t rows, std::int64_t step, T* to) {
  const std::int64_t channels = g.channels, width = g.kernel[2], run = width * channels, stride = g.strides[2];
  const std::int64_t parts = (run + beyond - 1) / beyond, bytes = stride * channels;
  const auto copy = [&](const std::uint8_t* from, T* into) {
    for (std::int64_t part = 0; part < parts; ++part) copy_beyond(from + part * beyond, into + part * beyond);
  };
  const auto copy_exactly = [](const std::uint8_t* from, std::int64_t count, T* into) {
    for (std::int64_t i = 0; i < count; ++i) into[i] = from[i];
  };
  for (std::int64_t done = 0; done < rows;) {
    const std::int64_t at = row + done, column = at % g.out[2], line = at / g.out[2];
    const std::int64_t count = std::min(rows - done, g.out[2] - column);
    const std::int64_t height = line % g.out[1], depth = line / g.out[1] % g.out[0], image = line / g.out[1] / g.out[0];
    // Pixels from `before` to `until` have all taps inside the line. The first tap of the first pixel may be outside.
    const std::int64_t in_width = column * stride - g.begin[2], room = g.in[2] - width - in_width;
    const std::int64_t before = std::clamp<std::int64_t>(in_width < 0 ? (-in_width + stride - 1) / stride : 0, 0, count);
    const std::int64_t until = std::clamp<std::int64_t>(room < 0 ? 0 : room / stride + 1, before, count);
    T* tap = to + done * step;
    for (std::int64_t d = 0; d < g.kernel[0]; ++d) {
      const std::int64_t in_depth = depth * g.strides[0] - g.begin[0] + d * g.dilations[0];
      for (std::int64_t h = 0; h < g.kernel[1]; ++h, tap += run) {
        const std::int64_t in_height = height * g.strides[1] - g.begin[1] + h * g.dilations[1];
        std::int64_t i = 0;
        if (in_depth < 0 || in_depth >= g.in[0] || in_height < 0 || in_height >= g.in[1]) {
          for (; i < count; ++i) copy(padding, tap + i * step);
          continue;
        }
        const std::uint8_t* const begin = x + ((image * g.in[0] + in_depth) * g.in[1] + in_height) * g.in[2] * channels;
        const auto at_border = [&](std::int64_t i) {
          T* next = tap + i * step;
          for (std::int64_t w = in_width + i * stride; w < in_width + i * stride + width; ++w, next += channels) {
            copy_exactly(w < 0 || w >= g.in[2] ? padding : begin + w * channels, channels, next);
          }
        };
        for (; i < before; ++i) at_border(i);
        const std::uint8_t* from = begin + (in_width + i * stride) * channels;
        for (; i < until && end - from >= parts * beyond; ++i, from += bytes) copy(from, tap + i * step);
        for (; i < until; ++i, from += bytes) copy_exactly(from, run, tap + i * step);
        for (; i < count; ++i) at_border(i);
      }
    }
    done += count;
  }
}

// Copies the rows' taps side by side, with `to_step` elements from one row to the next.
template <class T>
void gather(const Geometry& g, const void* const* taps, std::int64_t step, std::int64_t rows, std::int64_t offset,
            std::int64_t depth, std::int64_t to_step, T* to) {
  const std::int64_t channels = g.group_channels;
  for (std::int64_t i = 0; i < rows; ++i, to += to_step) {
    T* next = to;
    for (std::int64_t tap = 0; tap < g.taps; ++tap, next += channels) {
      const std::uint8_t* one = static_cast<const std::uint8_t*>(taps[tap * step + i]) + offset;
      for (std::int64_t c = 0; c < channels; ++c) next[c] = one[c];
    }
    while (next < to + depth) *next++ = T{0};
  }
}

}  // namespace specops::byte_conv
