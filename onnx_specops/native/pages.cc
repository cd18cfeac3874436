#include "pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace specops {

Pages allocate_pages(std::int64_t floats) {
  constexpr std::size_t line = 64, huge = std::size_t{2} << 20;
  std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float), alignment = line;
  if (bytes >= huge) {
    alignment = huge;
    bytes = (bytes + huge - 1) / huge * huge;
  }
  auto* const memory = static_cast<float*>(::operator new(bytes, std::align_val_t{alignment}, std::nothrow));
#if defined(__linux__)
  // A wish: where the system has none to give, or is told not to, the memory is as good as other memory.
  if (memory != nullptr && alignment == huge) static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
#endif
  return Pages(memory, FreePages{alignment});
}

}  // namespace specops
