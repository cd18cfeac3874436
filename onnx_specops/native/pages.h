// Memory of kernels that is read from its beginning to its end, in huge pages where the system has them (Linux): processors
// wait for the address of each page, on virtual machines longer than a page of 4 KiB takes to be read.
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

// Floats that hold nothing in particular, aligned to a line of the cache at least.
using Pages = std::unique_ptr<float[], FreePages>;

// Null where there is no memory.
Pages allocate_pages(std::int64_t floats);

// Asks for huge pages where a large output of a kernel lies and nobody has written yet: ONNX Runtime keeps that memory for
// the next outputs and runs.
class Outputs {
 public:
  // Once for each place that follows another one: a session's outputs mostly lie where they lay in the run before.
  void prepare(const void* begin, std::int64_t bytes) const;

 private:
  mutable std::atomic<const void*> latest_{nullptr};
};

}  // namespace specops
