// What operators are, for readers outside of C++.
#pragma once

#include <string>
#include <vector>

#include "op.h"

namespace specops {

// One JSON object:
//
//   {"most_elements": 268435456, "most_growth": 1024,
//    "vectors": "compiler", "clones": true, "products": "avx2", "regular_expressions": "PCRE2 10.42",
//    "operators": [
//      {"name": "Times",
//       "inputs": [{"name": "x", "optional": false, "any_of": []}],
//       "outputs": [{"name": "y", "optional": false, "any_of": []}],
//       "attributes": [{"name": "factor", "type": "int", "default": 2, "least": 0, "most": 1000}],
//       "products": [{"factors": ["factor", "factor"], "most": 10000}],
//       "signatures": [{"inputs": ["float"], "outputs": ["float"]}]}]}
//
// "vectors": whether vector code is the compiler's own, or plain "loops" that its optimiser may make some of; "clones": whether
// the loader picks functions for the processor; "products": what compressed.h has picked; "regular_expressions": what
// pcre2_abi.h has found, else why it has found none.
//
// An attribute without a default is required; "least" and "most" stand where there is such a limit, "choices" where a string
// must be one of them. Element types have ONNX's names; null in a signature is any of the input's "any_of".
std::string describe(const std::vector<const Op*>& ops);

}  // namespace specops
