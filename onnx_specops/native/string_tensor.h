// Access to a tensor's strings without copying all of them.
#pragma once

#include <string>
#include <string_view>

#include "op.h"

namespace specops {

// ORT's own strings, or null if they cannot be read in place.
//
// An ORT string tensor is an array of std::string with the layout of ORT's C++ library. Whether this library's compiler uses
// the same layout is tested once per ORT on a tensor of known strings. The environment variable ONNX_SPECOPS_STRINGS=api
// forces the functions of ORT's C interface.
const std::string* strings_in_place(const Input& input);

// One string after another through ORT's C interface, if they cannot be read in place.
class StringElements {
 public:
  explicit StringElements(const Input& input) : input_(input) {}
  bool equal(std::size_t index, std::string_view text) const;

 private:
  Input input_;
};

// `text` in quotes for a message: at most 60 bytes, with bytes outside printable ASCII as \xNN.
std::string quoted(std::string_view text);

}  // namespace specops
