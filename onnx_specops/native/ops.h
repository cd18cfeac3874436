// The list of operators. A new one needs its two lines here and a file, which CMakeLists.txt names.
#pragma once

#include "op.h"
#include "pcre2_abi.h"

namespace specops {

const Op& attention();
const Op& bpe_tokenizer();
const Op& byte_fallback();
const Op& bytes_to_chars();
const Op& causal_conv();
const Op& chars_map_normalization();
const Op& chars_to_bytes();
const Op& combine_segments();
const Op& ctc_loss();
const Op& deformable_psroi_pooling();
const Op& depthwise_conv();
const Op& detection_output();
const Op& elementwise();
const Op& embedding_bag_offsets_sum();
const Op& erf_inv();
const Op& experimental_detectron_detection_output();
const Op& experimental_detectron_generate_proposals_single_image();
const Op& fake_quantize();
const Op& gated_delta_rule();
const Op& gather_tree();
const Op& generate_proposals();
const Op& group_query_attention_compressed();
const Op& grouped_mat_mul();
const Op& interpolate();
const Op& inverse();
const Op& mat_mul_compressed();
const Op& matrix_nms();
const Op& multiclass_nms();
const Op& multinomial();
const Op& nms_rotated();
const Op& non_max_suppression();
const Op& numeric_to_string();
const Op& proposal();
const Op& psroi_pooling();
const Op& quantized_attention();
const Op& quantized_conv();
const Op& quantized_group_moments();
const Op& quantized_layer_normalization();
const Op& ragged_to_dense();
const Op& random_uniform();
const Op& regex_normalization();
const Op& regex_split();
const Op& roi_align();
const Op& roi_align_rotated();
const Op& roi_pooling();
const Op& scaled_dot_product_attention_with_kv_cache();
const Op& scatter_elements_update();
const Op& search_sorted();
const Op& segment_max();
const Op& selective_scan();
const Op& sentencepiece_detokenizer();
const Op& sentencepiece_tokenizer();
const Op& special_tokens_split();
const Op& state_space_scan();
const Op& string_join();
const Op& string_split();
const Op& string_tensor_pack();
const Op& string_tensor_unpack();
const Op& string_to_hash_bucket();
const Op& trie_tokenizer();
const Op& unigram_tokenizer();
const Op& utf8_validate();
const Op& vocab_decoder();
const Op& vocabulary_table();
const Op& volume_conv();
const Op& wordpiece_tokenizer();
const Op& yuv_to_rgb();

// All operators that are available: those with regular expressions need PCRE2.
inline std::vector<const Op*> all_ops() {
  std::vector<const Op*> ops = {
      &attention(),
      &bpe_tokenizer(),
      &byte_fallback(),
      &bytes_to_chars(),
      &causal_conv(),
      &chars_map_normalization(),
      &chars_to_bytes(),
      &combine_segments(),
      &ctc_loss(),
      &deformable_psroi_pooling(),
      &depthwise_conv(),
      &detection_output(),
      &elementwise(),
      &embedding_bag_offsets_sum(),
      &erf_inv(),
      &experimental_detectron_detection_output(),
      &experimental_detectron_generate_proposals_single_image(),
      &fake_quantize(),
      &gated_delta_rule(),
      &gather_tree(),
      &generate_proposals(),
      &group_query_attention_compressed(),
      &grouped_mat_mul(),
      &interpolate(),
      &inverse(),
      &mat_mul_compressed(),
      &matrix_nms(),
      &multiclass_nms(),
      &multinomial(),
      &nms_rotated(),
      &non_max_suppression(),
      &numeric_to_string(),
      &proposal(),
      &psroi_pooling(),
      &quantized_attention(),
      &quantized_conv(),
      &quantized_group_moments(),
      &quantized_layer_normalization(),
      &ragged_to_dense(),
      &random_uniform(),
      &roi_align(),
      &roi_align_rotated(),
      &roi_pooling(),
      &scaled_dot_product_attention_with_kv_cache(),
      &scatter_elements_update(),
      &search_sorted(),
      &segment_max(),
      &selective_scan(),
      &sentencepiece_detokenizer(),
      &sentencepiece_tokenizer(),
      &state_space_scan(),
      &string_join(),
      &string_split(),
      &string_tensor_pack(),
      &string_tensor_unpack(),
      &string_to_hash_bucket(),
      &trie_tokenizer(),
      &unigram_tokenizer(),
      &utf8_validate(),
      &vocab_decoder(),
      &vocabulary_table(),
      &volume_conv(),
      &wordpiece_tokenizer(),
      &yuv_to_rgb(),
  };
  if (pcre2::library().found) ops.insert(ops.end(), {&regex_normalization(), &regex_split(), &special_tokens_split()});
  return ops;
}

}  // namespace specops
