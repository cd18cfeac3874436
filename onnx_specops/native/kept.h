// Memory that a kernel keeps for later runs, of which a process has so much and no more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace specops {

// Floats that are the same in each run: made in the first one that wants them, for as long as the kernel lives.
//
// All kernels of the process together keep at most 192 MiB; ONNX_SPECOPS_KEPT_MIB is another limit. What would be more is not
// kept: a kernel for whose floats there is no room does without them in every run.
class Kept {
 public:
  Kept() = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept();

  // The floats, aligned to a line of the cache, which `fill(float*)` fills the first time; null where there is no room for
  // them. Threads that come meanwhile wait.
  template <class Fill>
  const float* get(std::int64_t count, const Fill& fill) {
    if (decided_.load(std::memory_order_acquire)) return floats_;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!decided_.load(std::memory_order_relaxed)) {
      float* const floats = reserve(count);
      if (floats != nullptr) fill(floats);
      floats_ = floats;
      decided_.store(true, std::memory_order_release);
    }
    return floats_;
  }

 private:
  float* reserve(std::int64_t count);

  std::atomic<bool> decided_{false};
  std::mutex mutex_;
  std::shared_ptr<float> memory_;  // a part of a larger piece, which others share
  const float* floats_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace specops
