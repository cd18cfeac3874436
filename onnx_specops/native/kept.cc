#include "kept.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "pages.h"

namespace specops {
namespace {

constexpr std::int64_t line = 64;

constexpr std::int64_t mebibyte = 1 << 20;

std::int64_t limit(Keep kind) {
  static const std::int64_t stated = [] {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    const char* const text = std::getenv("ONNX_SPECOPS_KEPT_MIB");
    if (text == nullptr) return std::int64_t{-1};
    const long long given = std::atoll(text);
    return given < 0 ? 0 : given > most ? most : static_cast<std::int64_t>(given);
  }();
  return (stated >= 0 ? stated : kind == Keep::panels ? 192 : 1024) * mebibyte;
}

std::atomic<std::int64_t>& in_use(Keep kind) {
  static std::atomic<std::int64_t> panels{0}, convolutions{0};
  return kind == Keep::panels ? panels : convolutions;
}

// Memory shared by several kernels, because huge pages are larger than some kernels need.
struct Piece {
  Pages memory;
  std::int64_t size, used;
};
constexpr std::int64_t piece_floats = std::int64_t{4} << 20;

// Allocates uninitialized memory. Null if there is not enough.
std::shared_ptr<float> take(std::int64_t count) {
  static std::mutex mutex;
  static std::weak_ptr<Piece> latest;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Piece> piece = latest.lock();
  if (piece == nullptr || piece->used + count > piece->size) {
    const std::int64_t size = std::max(count, piece_floats);
    Pages memory = allocate_pages(size);
    if (memory == nullptr) return nullptr;
    latest = piece = std::make_shared<Piece>(Piece{std::move(memory), size, 0});
  }
  float* const floats = piece->memory.get() + piece->used;
  piece->used += count;
  return {std::move(piece), floats};
}

}  // namespace

Kept::~Kept() { in_use(kind_) -= bytes_; }

float* Kept::reserve(std::int64_t count) {
  if (memory_ != nullptr) return memory_.get();  // a previous `fill` failed
  if (count > limit(kind_) / 4) return nullptr;
  const std::int64_t bytes = (4 * count + line - 1) / line * line;
  if (in_use(kind_).fetch_add(bytes) + bytes <= limit(kind_)) memory_ = take(bytes / 4);
  if (memory_ == nullptr) {
    in_use(kind_) -= bytes;
    return nullptr;
  }
  bytes_ = bytes;
  return memory_.get();
}

}  // namespace specops
