// The strings of a tensor without copying them all.
#pragma once

#include <string>
#include <string_view>

#include "op.h"

namespace specops {

// The strings where ORT keeps them, or null where they cannot be read in place.
//
// A string tensor of ORT is an array of std::string, as ORT's C++ library lays that out. Whether this library's compiler
// lays it out in the same way is not assumed but tried, once for each ORT, on a tensor of known strings. The environment
// variable ONNX_SPECOPS_STRINGS=api keeps to the functions of ORT's C interface.
const std::string* strings_in_place(const Input& input);

// One string after the other through ORT's C interface, for where they cannot be read in place.
class StringElements {
 public:
  explicit StringElements(const Input& input) : input_(input) {}
  bool equal(std::size_t index, std::string_view text) const;

 private:
  Input input_;
};

// `text` in quotes for a message: at most 60 bytes of it, those outside ASCII's printable ones as \xNN.
std::string quoted(std::string_view text);

}  // namespace specops
