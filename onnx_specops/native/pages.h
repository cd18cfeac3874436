// Memory of kernels that is read from its beginning to its end, in huge pages where the system has them (Linux): processors
// wait for the address of each page, on virtual machines longer than a page of 4 KiB takes to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace specops {

struct FreePages {
  std::size_t alignment;
  void operator()(float* floats) const { ::operator delete(floats, std::align_val_t{alignment}); }
};

// Floats that hold nothing in particular, aligned to a line of the cache at least.
using Pages = std::unique_ptr<float[], FreePages>;

// Null where there is no memory.
Pages allocate_pages(std::int64_t floats);

}  // namespace specops
