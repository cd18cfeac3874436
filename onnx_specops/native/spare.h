// Memory for one run, which the thread keeps for the next one: memory got anew is slow to touch.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace specops {

// Floats, aligned to a line of the cache, that hold nothing in particular. A thread that has lent its memory, and is asked for
// more before it is back, gets it from the heap.
class Spare {
 public:
  explicit Spare(std::int64_t count) : memory_(std::move(kept().floats)), size_(std::exchange(kept().size, 0)) {
    const std::int64_t wanted = count + line;
    if (size_ >= wanted) return;
    memory_.reset();
    memory_.reset(new float[static_cast<std::size_t>(wanted)]);
    size_ = wanted;
  }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() {
    if (size_ > most || size_ <= kept().size) return;
    kept().floats = std::move(memory_);
    kept().size = size_;
  }

  float* get() const {
    const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(memory_.get()) / sizeof(float) % line;
    return memory_.get() + (line - past) % line;
  }

 private:
  struct Kept {
    std::unique_ptr<float[]> floats;
    std::int64_t size = 0;
  };
  static Kept& kept() {
    thread_local Kept kept;
    return kept;
  }

  static constexpr std::int64_t line = 16;
  static constexpr std::int64_t most = std::int64_t{4} << 20;  // 16 MiB: more goes back

  std::unique_ptr<float[]> memory_;
  std::int64_t size_;
};

}  // namespace specops
