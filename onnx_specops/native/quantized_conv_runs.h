// A run of QuantizedConv: which products of which pieces of the input are computed by which kernel.
#pragma once

#include <cstdint>

#include "op.h"
#include "quantized_conv_biases.h"
#include "quantized_conv_geometry.h"
#include "quantized_conv_prepared.h"

namespace specops::byte_conv {

// Where results go, and the second tensors of additions or null.
struct Results {
  char* y;
  bool floats;
  const std::uint8_t* addend;
  const float* residual;
  std::int64_t columns;
  const PixelBiases* biases;  // null if they are those of the node
  std::int64_t bytes() const { return floats ? sizeof(float) : 1; }
};



void run(const Context& context, const Geometry& g, const Prepared& prepared, const std::uint8_t* x, const Results& results);

}  // namespace specops::byte_conv
