// The list of operators: a line here and a file of the op's own is all that a new one needs (and the file's name in
// CMakeLists.txt).
#pragma once

#include "op.h"

namespace specops {

const Op& ctc_loss();
const Op& embedding_bag_offsets_sum();
const Op& erf_inv();
const Op& gather_tree();
const Op& inverse();
const Op& multinomial();
const Op& nms_rotated();
const Op& non_max_suppression();
const Op& random_uniform();
const Op& scatter_elements_update();
const Op& search_sorted();
const Op& segment_max();
const Op& string_tensor_pack();
const Op& string_tensor_unpack();
const Op& string_to_hash_bucket();
const Op& vocabulary_table();

inline std::vector<const Op*> all_ops() {
  return {
      &ctc_loss(),
      &embedding_bag_offsets_sum(),
      &erf_inv(),
      &gather_tree(),
      &inverse(),
      &multinomial(),
      &nms_rotated(),
      &non_max_suppression(),
      &random_uniform(),
      &scatter_elements_update(),
      &search_sorted(),
      &segment_max(),
      &string_tensor_pack(),
      &string_tensor_unpack(),
      &string_to_hash_bucket(),
      &vocabulary_table(),
  };
}

}  // namespace specops
