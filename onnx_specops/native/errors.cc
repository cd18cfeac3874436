#include "errors.h"

#include <cstdio>

namespace specops {

void parts::append(std::string& out, double part) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", part);
  out += digits;
}

std::optional<std::string> failure(const abi::Api& api, abi::OrtStatus* status) {
  if (status == nullptr) return {};
  std::optional<std::string> message;
  try {
    message = api.GetErrorMessage(status);
  } catch (...) {
    api.ReleaseStatus(status);
    throw;
  }
  api.ReleaseStatus(status);
  return message;
}

void raise(const abi::Api& api, abi::OrtStatus* status) { throw Error(failure(api, status).value_or("")); }

bool succeeded(const abi::Api& api, abi::OrtStatus* status) {
  if (status == nullptr) return true;
  api.ReleaseStatus(status);
  return false;
}

}  // namespace specops
