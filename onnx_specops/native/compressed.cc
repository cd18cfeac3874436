#include "compressed.h"

#if defined(SPECOPS_X86_KERNELS)
#include "processor.h"
#endif

namespace specops::compressed {

const Kernels& kernels() {
#if defined(SPECOPS_X86_KERNELS)
  KernelSets<Kernels> sets{portable, avx2, nullptr, avx512, avx512_vnni, nullptr};
#if defined(SPECOPS_AVX_VNNI_KERNELS)
  sets.avx2_vnni = avx2_vnni;
#endif
  static const Kernels& chosen = best_kernels(sets);
#else
  static const Kernels& chosen = portable();
#endif
  return chosen;
}

}  // namespace specops::compressed
