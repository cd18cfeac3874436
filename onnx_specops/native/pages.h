// Memory that kernels read sequentially, in huge pages if the system has them (Linux). Address translation of 4 KiB pages
// takes longer than reading them, especially on virtual machines.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace specops {

struct FreePages {
  std::size_t alignment;
  void operator()(float* floats) const { ::operator delete(floats, std::align_val_t{alignment}); }
};

// Uninitialized floats, aligned to a cache line at least.
using Pages = std::unique_ptr<float[], FreePages>;

// Null if there is not enough memory.
Pages allocate_pages(std::int64_t floats);

// Moves constants that kernels read in each run to huge pages, where they are in memory of the process (not in a mapped file).
// The copies replace the pages. Without permission or support of the system, nothing changes.
void join_pages(const void* begin, std::int64_t bytes);

// Requests huge pages for a large output before it is written. ONNX Runtime reuses that memory for later outputs and runs.
class Outputs {
 public:
  // Once for each new address: a session's outputs usually have the same address as in the previous run.
  void prepare(const void* begin, std::int64_t bytes) const;

 private:
  mutable std::atomic<const void*> latest_{nullptr};
};

}  // namespace specops
