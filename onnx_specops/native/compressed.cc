#include "compressed.h"

#include <cstdlib>
#include <cstring>

#if defined(SPECOPS_X86_KERNELS)
#include "processor.h"
#endif

namespace specops::compressed {

void arrange(const Weights& weights, const float* a, float* to) {
  const std::int64_t block = block_elements(weights.kind), together = phases(weights.kind);
  for (std::int64_t begin = 0; begin < weights.depth;) {
    const std::int64_t group_end = (begin / weights.group + 1) * weights.group;
    const std::int64_t end = group_end < weights.depth ? group_end : weights.depth;
    for (; begin < end; begin += block, to += block) {
      for (std::int64_t phase = 0; phase < together; ++phase) {
        for (std::int64_t lane = 0; lane < 16; ++lane) {
          const std::int64_t at = begin + lane * together + phase;
          to[phase * 16 + lane] = at < end ? a[at] : 0.0f;
        }
      }
    }
    begin = end;
  }
}

namespace {

const Kernels& choose() {
  const char* wanted = std::getenv("ONNX_SPECOPS_SIMD");
  const auto fits = [&](const Kernels& kernels) { return wanted == nullptr || std::strcmp(wanted, kernels.name) == 0; };
#if defined(SPECOPS_X86_KERNELS)
  const Processor processor = ask_processor();
  if (processor.avx512_vnni && fits(avx512_vnni())) return avx512_vnni();
  if (processor.avx512 && fits(avx512())) return avx512();
  if (processor.avx2 && fits(avx2())) return avx2();
#endif
  (void)fits;
  return portable();
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace specops::compressed
