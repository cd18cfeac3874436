#include "compressed_cache.h"

#include <cstdlib>
#include <cstring>

#if defined(SPECOPS_X86_KERNELS)
#include "processor.h"
#endif

namespace specops::compressed_cache {

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

}  // namespace specops::compressed_cache
