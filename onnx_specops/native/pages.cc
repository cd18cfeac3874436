#include "pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace specops {
namespace {

constexpr std::size_t line = 64, huge = std::size_t{2} << 20;

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

void Outputs::prepare(const void* begin, std::int64_t bytes) const {
#if defined(__linux__)
  if (static_cast<std::size_t>(bytes) < huge / 2 || latest_.exchange(begin, std::memory_order_relaxed) == begin) return;
  // Whole pages, including neighbors of the output in the first and last page.
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = address / huge * huge;
  const std::uintptr_t last = (address + static_cast<std::uintptr_t>(bytes) + huge - 1) / huge * huge;
  static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));  // NOLINT
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

}  // namespace specops
