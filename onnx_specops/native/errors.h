// Errors: exceptions in this library, statuses in ONNX Runtime.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "ort_abi.h"

namespace specops {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace parts {
inline void append(std::string& out, std::string_view part) { out += part; }
inline void append(std::string& out, char part) { out += part; }
void append(std::string& out, double part);  // as few digits as a float32 needs
template <class T>
std::enable_if_t<std::is_integral_v<T>> append(std::string& out, T part) {
  out += std::to_string(part);
}
}  // namespace parts

// Strings and numbers, joined. (A stream would drag the whole locale library into the binary.)
template <class... Parts>
std::string text(const Parts&... all) {
  std::string out;
  (parts::append(out, all), ...);
  return out;
}

// Ends the call with ORT_INVALID_ARGUMENT and "<OpName>: " + the message, which begins with the input's name.
template <class... Parts>
[[noreturn]] void fail(const Parts&... all) {
  throw Error(text(all...));
}

// What a status says, which is released; nothing where it says that the call succeeded.
std::optional<std::string> failure(const abi::Api& api, abi::OrtStatus* status);

// Throws what a status says, which is released.
[[noreturn]] void raise(const abi::Api& api, abi::OrtStatus* status);

// Turns a failed call of ORT into an exception.
inline void check(const abi::Api& api, abi::OrtStatus* status) {
  if (status != nullptr) raise(api, status);
}

// Drops a status that only says "there is none".
bool succeeded(const abi::Api& api, abi::OrtStatus* status);

}  // namespace specops
