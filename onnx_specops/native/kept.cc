#include "kept.h"

#include <cstdlib>
#include <new>

namespace specops {
namespace {

constexpr std::int64_t line = 64;

std::int64_t limit() {
  static const std::int64_t bytes = [] {
    constexpr std::int64_t mebibyte = 1 << 20, most = std::int64_t{1} << 20;
    const char* const text = std::getenv("ONNX_SPECOPS_KEPT_MIB");
    if (text == nullptr) return 192 * mebibyte;
    const long long given = std::atoll(text);
    return (given < 0 ? 0 : given > most ? most : static_cast<std::int64_t>(given)) * mebibyte;
  }();
  return bytes;
}

std::atomic<std::int64_t>& in_use() {
  static std::atomic<std::int64_t> bytes{0};
  return bytes;
}

}  // namespace

Kept::~Kept() { in_use() -= bytes_; }

float* Kept::reserve(std::int64_t count) {
  if (memory_ == nullptr) {
    if (count > limit() / 4) return nullptr;
    const std::int64_t bytes = 4 * count + line;
    const bool fits = in_use().fetch_add(bytes) + bytes <= limit();
    // Not a vector: the threads that fill it shall be the first to touch it.
    if (fits) memory_.reset(new (std::nothrow) float[static_cast<std::size_t>(count + line / 4)]);
    if (memory_ == nullptr) {
      in_use() -= bytes;
      return nullptr;
    }
    bytes_ = bytes;
  }
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(memory_.get());
  return memory_.get() + (line - address % line) % line / 4;
}

}  // namespace specops
