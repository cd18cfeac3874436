// The recurrences of state spaces and linear attention, and the convolution before them.
//
// recurrences_kernels.cc is the code, compiled once for each instruction set (CMakeLists.txt).
#pragma once

#include <cstdint>

#include "kernel_sets.h"

namespace specops::recurrences {

// GatedDeltaRule: some columns of the state of one head. Adjacent tokens are `*_step` floats apart.
struct DeltaRule {
  std::int64_t tokens, rows, count;  // `count` is at most `most_columns`
  const float *query, *key;          // [rows] for each token
  std::int64_t key_step;
  const float* value;  // [count] for each token
  float* output;       // likewise
  std::int64_t value_step;
  const float *decay, *beta;  // one number per token
  std::int64_t gate_step;
  const float* before;  // [rows, state_step], of which [rows, count] are used
  float* after;         // likewise
  std::int64_t state_step;
  float* state;  // memory for rows * most_columns floats
};
constexpr std::int64_t most_columns = 32;  // a block of columns stays in the first-level cache for all tokens

// StateSpaceScan: up to `most_rows` rows of the state of one head.
struct StateSpace {
  std::int64_t tokens, size, count;
  const float* x;  // [count] for each token
  float* y;        // likewise
  std::int64_t x_step;
  const float* decay;  // one number per token
  std::int64_t decay_step;
  const float *input_gate, *output_gate;  // [size] for each token
  std::int64_t gate_step;
  const float* before;  // [count, size]
  float* after;         // likewise
};
constexpr std::int64_t most_rows = 4;  // rows that are computed together, because they use the same gates

// SelectiveScan: one channel. Blocks of `scan_lanes` elements of its state are padded with zeros.
struct Selective {
  std::int64_t tokens, blocks;
  float epsilon;
  const float *x, *time_step;  // one number per token
  float* y;                    // likewise
  std::int64_t step;
  const float* decay;                     // [blocks, scan_lanes]
  const float *input_gate, *output_gate;  // [blocks, tokens, scan_lanes]
  const float* before;                    // [blocks, scan_lanes]
  float* after;                           // likewise
  float *behind, *sums;                   // memory for [tokens, scan_lanes]
};
constexpr std::int64_t scan_lanes = 16;

// CausalConv: the tokens [first, last) of a row of the batch.
struct Convolution {
  std::int64_t first, last, taps, channels;
  const float *x, *history;  // [tokens, channels], and the `taps - 1` tokens before the first one
  const float* weight;       // [taps, channels]
  float* y;                  // [tokens, channels]
};

struct Kernels {
  const char* name;
  void (*delta_rule)(const DeltaRule& rule);
  void (*state_space)(const StateSpace& space);
  void (*selective)(const Selective& scan);
  void (*convolve)(const Convolution& convolution);
};

SPECOPS_KERNEL_SETS;

}  // namespace specops::recurrences
