#include "quantized_conv_biases.h"

#include <cstddef>
#include <utility>

namespace specops::byte_conv {

PixelBiases pixel_biases(const Geometry& g, const Prepared& prepared) {
  PixelKinds pixels(g);
  const Sizes steps = steps_of_sums(g.kernel);
  const std::int64_t size = (g.kernel[0] + 1) * steps[0], step = static_cast<std::int64_t>(prepared.bias.size());
  PixelBiases out{g.batch, g.in, {}, step, std::move(pixels.of_pixels)};
  out.biases.assign(pixels.kinds.size() * prepared.bias.size(), 0.0f);
  float* biases = out.biases.data();
  for (const Inside& inside : pixels.kinds) {
    for (std::int64_t m = 0; m < g.columns; ++m) {
      const double* const sums = prepared.offset_sums.data() + m * size;
      double sum = 0.0;
      for (int corner = 0; corner < 8; ++corner) {
        std::int64_t at = 0;
        double sign = 1.0;
        for (std::size_t axis = 0; axis < most_dimensions; ++axis) {
          const bool last = (corner >> axis & 1) != 0;
          at += (last ? inside.last[axis] : inside.first[axis]) * steps[axis];
          if (!last) sign = -sign;
        }
        sum += sign * sums[at];
      }
      const std::int64_t at = m / prepared.part * prepared.padded + m % prepared.part;
      const auto column = static_cast<std::size_t>(at);
      biases[at] = static_cast<float>(prepared.bias[column] + prepared.scale[column] * sum);
    }
    biases += step;
  }
  return out;
}

}  // namespace specops::byte_conv
