#include "pages.h"

#include <cstdio>
#include <cstring>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace specops {
namespace {

constexpr std::size_t line = 64, huge = std::size_t{2} << 20;

#if defined(__linux__)
struct Range {
  void* begin;
  std::size_t bytes;
};

// Whole pages, including neighbors of the memory in the first and last page.
Range whole_pages(const void* begin, std::int64_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = address / huge * huge;
  const std::uintptr_t last = (address + static_cast<std::uintptr_t>(bytes) + huge - 1) / huge * huge;
  return {reinterpret_cast<void*>(first), last - first};  // NOLINT
}

// Whether the system has huge pages that are not disabled: MADV_COLLAPSE ignores this setting.
bool may_join() {
  static const bool may = [] {
    std::FILE* const file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (file == nullptr) return false;
    char text[64] = {};
    const bool read = std::fgets(text, sizeof text, file) != nullptr;
    static_cast<void>(std::fclose(file));
    return read && std::strstr(text, "[never]") == nullptr;
  }();
  return may;
}
#endif

}  // namespace

Pages allocate_pages(std::int64_t floats) {
  std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float), alignment = line;
  if (bytes >= huge) {
    alignment = huge;
    bytes = (bytes + huge - 1) / huge * huge;
  }
  auto* const memory = static_cast<float*>(::operator new(bytes, std::align_val_t{alignment}, std::nothrow));
#if defined(__linux__)
  // A hint. Without huge pages the memory is ordinary.
  if (memory != nullptr && alignment == huge) static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
#endif
  return Pages(memory, FreePages{alignment});
}

void join_pages(const void* begin, std::int64_t bytes) {
#if defined(__linux__)
  if (static_cast<std::size_t>(bytes) < huge / 2 || !may_join()) return;
  const Range range = whole_pages(begin, bytes);
  static_cast<void>(::madvise(range.begin, range.bytes, MADV_HUGEPAGE));
  constexpr int collapse = 25;  // MADV_COLLAPSE, of Linux 6.1, which older headers lack
  static_cast<void>(::madvise(range.begin, range.bytes, collapse));
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

void Outputs::prepare(const void* begin, std::int64_t bytes) const {
#if defined(__linux__)
  if (static_cast<std::size_t>(bytes) < huge / 2 || latest_.exchange(begin, std::memory_order_relaxed) == begin) return;
  const Range range = whole_pages(begin, bytes);
  static_cast<void>(::madvise(range.begin, range.bytes, MADV_HUGEPAGE));
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

}  // namespace specops
