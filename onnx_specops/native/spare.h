// Memory for one run, which the thread keeps for the next one: memory got anew is slow to touch.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "pages.h"

namespace specops {

// Floats, aligned to a line of the cache, that hold nothing in particular. A thread that has lent its memory, and is asked for
// more before it is back, gets it from the heap.
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

  static constexpr std::int64_t most = std::int64_t{4} << 20;  // 16 MiB: more goes back

  Pages memory_;
  std::int64_t size_;
};

}  // namespace specops
