// The implementation of layer_normalization.h. CMake defines SPECOPS_SET, the function that returns it.

#include <cstdint>
#include <cstring>

#include "layer_normalization.h"
#include "vectors.inc"

namespace specops::normalization {
namespace {

constexpr std::int64_t together = 2 * Floats::size;  // two vectors, because an addition waits for the previous one
static_assert(step % together == 0);

// The sum of `of(vector)` for the vectors of a row.
template <typename Of>
ALWAYS float summed(const float* row, std::int64_t padded, const Of& of) {
  Floats left = Floats::zero(), right = Floats::zero();
  for (std::int64_t i = 0; i < padded; i += together) {
    left = of(left, Floats::load(row + i));
    right = of(right, Floats::load(row + i + Floats::size));
  }
  return (left + right).sum();
}

// A row as floats, padded with zeros to `padded` numbers: in place, or in `scratch`.
ALWAYS const float* padded_row(const Job& job, std::int64_t at, std::int64_t padded, float* scratch) {
  if (job.bytes != nullptr) {
    std::int64_t i = 0;
    for (; i + Floats::size <= job.size; i += Floats::size) unsigned8(job.bytes + at + i).store(scratch + i);
    for (; i < job.size; ++i) scratch[i] = static_cast<float>(job.bytes[at + i]);
  } else if (padded == job.size) {
    return job.floats + at;
  } else {
    std::memcpy(scratch, job.floats + at, static_cast<std::size_t>(job.size) * sizeof(float));
  }
  for (std::int64_t i = job.size; i < padded; ++i) scratch[i] = 0.0f;
  return scratch;
}

void normalize(const Job& job, std::int64_t begin, std::int64_t end, float* scratch) {
  const std::int64_t padded = (job.size + together - 1) / together * together;
  const float count = static_cast<float>(job.size);
  const float low = -static_cast<float>(job.zero_point), high = 255.0f + low;
  for (std::int64_t at = begin * job.size; at < end * job.size; at += job.size) {
    const float* const row = padded_row(job, at, padded, scratch);
    const auto add = [](Floats sum, Floats x) ALWAYS_LAMBDA { return sum + x; };
    const float average = summed(row, padded, add) / count;
    for (std::int64_t i = job.size; i < padded; ++i) scratch[i] = average;  // so that padding adds no variance
    const Floats mean = Floats::all(average);
    const auto add_square = [&](Floats sum, Floats x) ALWAYS_LAMBDA {
      const Floats apart = x - mean;
      return multiply_add(apart, apart, sum);
    };
    const float variance = summed(row, padded, add_square) / count;
    const Floats factor = Floats::all(1.0f / __builtin_sqrtf(variance + job.epsilon)), step_of = Floats::all(job.factor);
    for (std::int64_t i = 0; i < job.size; i += Floats::size) {
      const Floats unit = (Floats::load(row + i) - mean) * factor;
      const Floats result = multiply_add(unit, Floats::load(job.scale + i), Floats::load(job.bias + i));
      const std::int64_t some = job.size - i < Floats::size ? job.size - i : Floats::size;
      if (job.to_bytes != nullptr) {
        (result * step_of).store_bytes(low, high, job.zero_point, job.to_bytes + at + i, some);
      } else if (some == Floats::size) {
        result.store(job.to_floats + at + i);
      } else {
        float last[Floats::size];
        result.store(last);
        std::memcpy(job.to_floats + at + i, last, static_cast<std::size_t>(some) * sizeof(float));
      }
    }
  }
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels all = {SPECOPS_NAME, normalize};
  return all;
}

}  // namespace specops::normalization
