// Scratch memory for one run, which the thread keeps for the next one, because new memory causes page faults.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "pages.h"

namespace specops {

// Uninitialized floats, aligned to a cache line. If a thread's memory is in use, further requests are served from the heap.
class Spare {
 public:
  explicit Spare(std::int64_t count) : memory_(std::move(kept().floats)), size_(std::exchange(kept().size, 0)) {
    if (size_ >= count && memory_ != nullptr) return;
    memory_.reset();
    memory_ = allocate_pages(count);
    if (memory_ == nullptr) throw std::bad_alloc();
    size_ = count;
  }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() {
    if (size_ > most || size_ <= kept().size) return;
    kept().floats = std::move(memory_);
    kept().size = size_;
  }

  float* get() const { return memory_.get(); }

 private:
  struct Kept {
    Pages floats;
    std::int64_t size = 0;
  };
  static Kept& kept() {
    thread_local Kept kept;
    return kept;
  }

  static constexpr std::int64_t most = std::int64_t{4} << 20;  // 16 MiB; larger blocks are freed

  Pages memory_;
  std::int64_t size_;
};

}  // namespace specops
