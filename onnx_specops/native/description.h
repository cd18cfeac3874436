// Descriptions of operators for readers outside C++.
#pragma once

#include <string>
#include <vector>

#include "op.h"

namespace specops {

// One JSON object:
//
//   {"most_elements": 268435456, "most_growth": 1024,
//    "vectors": "compiler", "clones": true, "products": "avx2", "convolutions": "avx2",
//    "regular_expressions": "PCRE2 10.42",
//    "operators": [
//      {"name": "Times",
//       "inputs": [{"name": "x", "optional": false, "any_of": []}],
//       "outputs": [{"name": "y", "optional": false, "any_of": []}],
//       "attributes": [{"name": "factor", "type": "int", "default": 2, "least": 0, "most": 1000}],
//       "registered": true,
//       "products": [{"factors": ["factor", "factor"], "most": 10000}],
//       "signatures": [{"inputs": ["float"], "outputs": ["float"]}]}]}
//
// "vectors": whether vector code uses the compiler's extension or plain "loops"; "clones": whether the loader selects
// functions for the processor; "products" and "convolutions": the kernels selected by compressed.h and quantized_conv.h;
// "regular_expressions": the library found by pcre2_abi.h, or the reason why there is none.
//
// "registered": whether the operator has a kernel on this processor (see Op::is_fast).
//
// An attribute without a default is required. "least", "most" and "choices" are present if there are such limits. Element
// types have ONNX's names; null in a signature is any type of the input's "any_of".
std::string describe(const std::vector<const Op*>& ops);

}  // namespace specops
