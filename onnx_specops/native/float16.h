// The two 16-bit float types. They are storage types; arithmetic uses float32.
#pragma once

#include <cstdint>
#include <cstring>

namespace specops {

namespace bits {
inline std::uint32_t of(float value) {
  std::uint32_t out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}
inline float to_float(std::uint32_t value) {
  float out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}
}  // namespace bits

// IEEE 754 binary16.
struct Float16 {
  std::uint16_t value;

  Float16() = default;
  // Rounds to nearest, ties to even. NaN stays NaN, overflow becomes infinity.
  explicit Float16(float number) {
    const std::uint32_t all = bits::of(number);
    const std::uint32_t sign = (all >> 16) & 0x8000u;
    const std::uint32_t magnitude = all & 0x7fffffffu;
    std::uint32_t half;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u;
    } else if (magnitude >= 0x47800000u) {  // 65536 and above
      half = 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // below the smallest normal, 2^-14: let the FPU round at 2^-24
      half = bits::of(bits::to_float(magnitude) + 0.5f) - 0x3f000000u;
    } else {
      half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    }
    value = static_cast<std::uint16_t>(sign | half);
  }

  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x8000u) << 16;
    const std::uint32_t magnitude = value & 0x7fffu;
    std::uint32_t all;
    if (magnitude >= 0x7c00u) {
      all = (magnitude << 13) + 0x70000000u;
    } else if (magnitude >= 0x0400u) {
      all = (magnitude << 13) + 0x38000000u;
    } else {  // a multiple of 2^-24
      all = bits::of(static_cast<float>(magnitude) * 0x1p-24f);
    }
    return bits::to_float(sign | all);
  }
};

// The upper half of a float32.
struct BFloat16 {
  std::uint16_t value;

  BFloat16() = default;
  explicit BFloat16(float number) {
    const std::uint32_t all = bits::of(number);
    if ((all & 0x7fffffffu) > 0x7f800000u) {
      value = static_cast<std::uint16_t>((all >> 16) | 0x40u);
    } else {
      value = static_cast<std::uint16_t>((all + 0x7fffu + ((all >> 16) & 1u)) >> 16);
    }
  }

  explicit operator float() const { return bits::to_float(static_cast<std::uint32_t>(value) << 16); }
};

}  // namespace specops
