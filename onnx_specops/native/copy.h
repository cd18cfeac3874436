// Copies that are larger than the caches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "op.h"

#if defined(__SSE2__) || (defined(_M_X64) && !defined(_M_ARM64EC))
#include <emmintrin.h>
#define SPECOPS_HAVE_STREAMING_STORES
#endif

namespace specops {

// Uses non-temporal stores if the processor has them: the target lines are not read first, and the cache keeps its content.
// Other threads see the data after streamed().
inline void stream(void* target_bytes, const void* source_bytes, std::int64_t bytes) {
  auto* to = static_cast<char*>(target_bytes);
  const auto* from = static_cast<const char*>(source_bytes);
#if defined(SPECOPS_HAVE_STREAMING_STORES)
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) & 63);
  const std::int64_t head = std::min(bytes, misaligned == 0 ? 0 : 64 - misaligned);
  std::memcpy(to, from, static_cast<std::size_t>(head));
  std::int64_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from + i);
    auto* target = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
#else
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
}

inline void streamed() {
#if defined(SPECOPS_HAVE_STREAMING_STORES)
  _mm_sfence();
#endif
}

// Larger copies evict their own beginning from the caches.
constexpr std::int64_t streaming_bytes = std::int64_t{16} << 20;

inline void parallel_copy(const Context& context, void* to, const void* from, std::int64_t bytes) {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const bool streaming = bytes > streaming_bytes;
  context.parallel_ranges(bytes, 1 << 18, [&](std::int64_t begin, std::int64_t end) {
    if (streaming) {
      stream(target + begin, source + begin, end - begin);
      streamed();
    } else {
      std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
    }
  });
}

}  // namespace specops
