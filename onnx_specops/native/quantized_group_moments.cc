// QuantizedGroupMoments: the mean and the deviation of groups of channels of bytes, from exact sums of integers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "op.h"
#include "simd.h"

namespace specops {
namespace {

// The number of pixels that are summed in 32 bits: each square is at most 255 * 255.
constexpr std::int64_t pixels_at_once = std::int64_t{1} << 12;
// The number of bytes that are read in several passes; they fit the first-level cache.
constexpr std::int64_t bytes_at_once = std::int64_t{1} << 14;
// The number of channels whose sums stay in registers. Compilers vectorize a loop over eight of them, but not over more.
constexpr std::int64_t channels_at_once = 8;

SPECOPS_INLINE void add_channels(const std::uint8_t* x, std::int64_t pixels, std::int64_t channels, std::uint32_t* sums,
                                 std::uint32_t* squares) {
  std::uint32_t sum[channels_at_once] = {}, square[channels_at_once] = {};
  for (std::int64_t i = 0; i < pixels; ++i, x += channels) {
    for (std::int64_t c = 0; c < channels_at_once; ++c) sum[c] += x[c], square[c] += std::uint32_t{x[c]} * x[c];
  }
  for (std::int64_t c = 0; c < channels_at_once; ++c) sums[c] += sum[c], squares[c] += square[c];
}

// Adds the values of some pixels, and their squares, to the sums of each channel.
SPECOPS_CLONES void add_pixels(const std::uint8_t* x, std::int64_t pixels, std::int64_t channels, std::uint32_t* sums,
                               std::uint32_t* squares) {
  const std::int64_t most = 1 + bytes_at_once / channels;
  for (std::int64_t first = 0; first < pixels; first += most, x += most * channels) {
    const std::int64_t count = std::min(most, pixels - first);
    std::int64_t channel = 0;
    for (; channel + channels_at_once <= channels; channel += channels_at_once) {
      add_channels(x + channel, count, channels, sums + channel, squares + channel);
    }
    for (; channel < channels; ++channel) {
      std::uint32_t sum = 0, square = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t number = x[i * channels + channel];
        sum += number, square += number * number;
      }
      sums[channel] += sum, squares[channel] += square;
    }
  }
}

class QuantizedGroupMoments : public Kernel {
 public:
  explicit QuantizedGroupMoments(const KernelInfo& info)
      : channels_(info.integer("channels")), groups_(info.integer("num_groups")), epsilon_(info.number("epsilon")) {
    if (channels_ % groups_ != 0) fail("num_groups = ", groups_, " does not divide ", channels_, " channels");
  }

  void compute(Context& context) const override {
    const Input x = context.input(0);
    const Shape& shape = x.shape();
    if (shape.size() < 3 || shape.back() != channels_) {
      fail("X has ", shape.size(), " dimensions and ", shape.empty() ? 0 : shape.back(), " channels; expected at least 3, and ",
           channels_);
    }
    const double scale = *one_element(context.input(1), "x_scale").data<float>();
    const double zero = *one_element(context.input(2), "x_zero_point").data<std::uint8_t>();
    Shape reduced(shape.size(), 1);
    reduced.front() = shape.front(), reduced.back() = channels_;
    Output mean = context.output(0, reduced), deviation = context.output(1, reduced);
    const std::int64_t batch = shape.front();
    if (batch == 0) return;
    const std::int64_t pixels = x.size() / batch / channels_, parts = (pixels + pixels_at_once - 1) / pixels_at_once;
    context.check_size("the sums", 2 * batch * parts * channels_);
    std::vector<std::uint32_t> sums(static_cast<std::size_t>(2 * batch * parts * channels_));
    const std::uint8_t* const from = x.data<std::uint8_t>();
    context.parallel_ranges(batch * parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        const std::int64_t begin = part % parts * pixels_at_once, count = std::min(pixels_at_once, pixels - begin);
        std::uint32_t* const own = sums.data() + 2 * part * channels_;
        add_pixels(from + (part / parts * pixels + begin) * channels_, count, channels_, own, own + channels_);
      }
    });
    const std::int64_t size = channels_ / groups_;
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t group = 0; group < groups_; ++group) {
        std::uint64_t sum = 0, square = 0;
        for (std::int64_t part = n * parts; part < (n + 1) * parts; ++part) {
          const std::uint32_t* const own = sums.data() + 2 * part * channels_ + group * size;
          for (std::int64_t c = 0; c < size; ++c) sum += own[c], square += own[c + channels_];
        }
        const double count = static_cast<double>(pixels * size), average = static_cast<double>(sum) / count;
        // The sums are exact, so equal values have no variance.
        const double variance = std::max(static_cast<double>(square) / count - average * average, 0.0) * scale * scale;
        const std::int64_t at = n * channels_ + group * size;
        std::fill_n(mean.data<float>() + at, size, static_cast<float>((average - zero) * scale));
        std::fill_n(deviation.data<float>() + at, size, static_cast<float>(1 / std::sqrt(variance + epsilon_)));
      }
    }
  }

 private:
  std::int64_t channels_, groups_;
  float epsilon_;
};

}  // namespace

const Op& quantized_group_moments() {
  static const Op op = {
      "QuantizedGroupMoments",
      {{"X"}, {"x_scale"}, {"x_zero_point"}},
      {{"Mean"}, {"InvStdDev"}},
      {Attribute::integer("channels").within(1, std::int64_t{1} << 24),
       Attribute::integer("num_groups").within(1, std::int64_t{1} << 24), Attribute::number("epsilon")},
      {{{Type::uint8, Type::float32, Type::uint8}, {Type::float32, Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<QuantizedGroupMoments>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
