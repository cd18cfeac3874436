// The list of operators: a line here and a file of the op's own is all that a new one needs (and the file's name in
// CMakeLists.txt).
#pragma once

#include "op.h"

namespace specops {

const Op& embedding_bag_offsets_sum();
const Op& multinomial();
const Op& scatter_elements_update();
const Op& string_tensor_pack();
const Op& string_tensor_unpack();
const Op& string_to_hash_bucket();
const Op& vocabulary_table();

inline std::vector<const Op*> all_ops() {
  return {
      &embedding_bag_offsets_sum(),
      &multinomial(),
      &scatter_elements_update(),
      &string_tensor_pack(),
      &string_tensor_unpack(),
      &string_to_hash_bucket(),
      &vocabulary_table(),
  };
}

}  // namespace specops
