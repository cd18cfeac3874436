// The instruction set that the environment requests.
#pragma once

#include <cstdlib>

namespace specops {

// The value of ONNX_SPECOPS_SIMD, or null if it is unset or empty.
inline const char* requested_set() {
  const char* const name = std::getenv("ONNX_SPECOPS_SIMD");
  return name == nullptr || *name == '\0' ? nullptr : name;
}

}  // namespace specops
