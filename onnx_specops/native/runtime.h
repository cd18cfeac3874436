// One ONNX Runtime in the process.
#pragma once

#include "ort_abi.h"

namespace specops {

// Whether this ORT's strings have the layout of this library's std::string, so that they can be read in place. Defined in
// string_tensor.cc.
bool has_our_strings(const abi::Api& api);

// The functions and properties of an ORT. A process may contain several, built by different compilers.
struct Runtime : abi::Api {
  Runtime(const abi::OrtApi* table, std::uint32_t version) : Api(table, version), our_strings(has_our_strings(*this)) {}

  const bool our_strings;
};

}  // namespace specops
