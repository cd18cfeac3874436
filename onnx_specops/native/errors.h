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
void append(std::string& out, double part);  // with as few digits as a float32 needs
template <class T>
std::enable_if_t<std::is_integral_v<T>> append(std::string& out, T part) {
  out += std::to_string(part);
}
}  // namespace parts

// Concatenates strings and numbers. (A stream would link the whole locale library.)
template <class... Parts>
std::string text(const Parts&... all) {
  std::string out;
  (parts::append(out, all), ...);
  return out;
}

// Throws an error that ends the call with ORT_INVALID_ARGUMENT and "<OpName>: " + the message. The message begins with the
// input's name.
template <class... Parts>
[[noreturn]] void fail(const Parts&... all) {
  throw Error(text(all...));
}

// Releases a status; returns its message, or nothing for success.
std::optional<std::string> failure(const abi::Api& api, abi::OrtStatus* status);

// Releases a status and throws its message.
[[noreturn]] void raise(const abi::Api& api, abi::OrtStatus* status);

// Throws if a call of ORT failed.
inline void check(const abi::Api& api, abi::OrtStatus* status) {
  if (status != nullptr) raise(api, status);
}

// Releases a status that may only mean "not found"; returns whether the call succeeded.
bool succeeded(const abi::Api& api, abi::OrtStatus* status);

}  // namespace specops
