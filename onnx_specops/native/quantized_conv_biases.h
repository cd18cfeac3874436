// The biases of pixels near the border of a padded image, if something is added to the activations of other pixels.
#pragma once

#include <cstdint>
#include <vector>

#include "quantized_conv_geometry.h"
#include "quantized_conv_prepared.h"

namespace specops::byte_conv {

// The biases of each kind of pixel, if something is added to the activations of pixels that are not padding.
struct PixelBiases {
  std::int64_t batch;
  Sizes in;  // the input to which they belong
  std::vector<float> biases;        // [kinds, step]
  std::int64_t step;
  std::vector<std::int32_t> kinds;  // of all pixels; empty if there is one kind
};

PixelBiases pixel_biases(const Geometry& g, const Prepared& prepared);

}  // namespace specops::byte_conv
