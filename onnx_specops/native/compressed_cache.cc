#include "compressed_cache.h"

#if defined(SPECOPS_X86_KERNELS)
#include "processor.h"
#endif

namespace specops::compressed_cache {

const Kernels& kernels() {
#if defined(SPECOPS_X86_KERNELS)
  static const Kernels& chosen = best_kernels<Kernels>({portable, avx2, nullptr, avx512, avx512_vnni, nullptr});
#else
  static const Kernels& chosen = portable();
#endif
  return chosen;
}

}  // namespace specops::compressed_cache
