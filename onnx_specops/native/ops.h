// The list of operators: a line here and a file of the op's own is all that a new one needs (and the file's name in
// CMakeLists.txt).
#pragma once

#include "op.h"

namespace specops {

const Op& embedding_bag_offsets_sum();

inline std::vector<const Op*> all_ops() {
  return {
      &embedding_bag_offsets_sum(),
  };
}

}  // namespace specops
