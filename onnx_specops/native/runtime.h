// One ONNX Runtime.
#pragma once

#include "ort_abi.h"

namespace specops {

// Whether the strings in this ORT's tensors are what this library takes for std::string, so that they can be read in place.
// In string_tensor.cc.
bool has_our_strings(const abi::Api& api);

// Its functions, and what was found out about it. A process may hold several, which different compilers have made.
struct Runtime : abi::Api {
  Runtime(const abi::OrtApi* table, std::uint32_t version) : Api(table, version), our_strings(has_our_strings(*this)) {}

  const bool our_strings;
};

}  // namespace specops
