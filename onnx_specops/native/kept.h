// Memory that kernels keep for later runs, with a limit for the whole process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace specops {

// What is kept: copies that save some time, or those without which a kernel is slow.
enum class Keep { panels, convolutions };

// Floats that are the same in each run. The first run that needs them creates them; they exist as long as the kernel.
//
// All kernels of the process together keep at most 192 MiB of panels and 1 GiB of convolutions, or ONNX_SPECOPS_KEPT_MIB of
// each. Kernels beyond the limit compute without kept floats.
class Kept {
 public:
  explicit Kept(Keep kind = Keep::panels) : kind_(kind) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept();

  // The floats, aligned to a cache line. `fill(float*)` fills them the first time. Null if the limit is reached. Other
  // threads wait meanwhile.
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

  const Keep kind_;
  std::atomic<bool> decided_{false};
  std::mutex mutex_;
  std::shared_ptr<float> memory_;  // part of a larger block, which kernels share
  const float* floats_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace specops
