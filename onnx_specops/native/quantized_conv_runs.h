// One run of QuantizedConv. It divides the input into pieces, and selects the kernel that computes their products.
#pragma once

#include <cstdint>

#include "op.h"
#include "quantized_conv_biases.h"
#include "quantized_conv_geometry.h"
#include "quantized_conv_prepared.h"

namespace specops::byte_conv {

// The destination of the results, and the second tensors of additions, which may be null.
struct Results {
  char* y;
  bool floats;
  const std::uint8_t* addend;
  const float* residual;
  std::int64_t columns;
  const PixelBiases* biases;  // null if those of the node apply
  std::int64_t bytes() const { return floats ? sizeof(float) : 1; }
};



void run(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x, const Results& results);

}  // namespace specops::byte_conv
