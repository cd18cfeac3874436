#include "compressed.h"

#if defined(SPECOPS_X86_KERNELS)
#include "processor.h"
#endif

namespace specops::compressed {

const Kernels& kernels() {
#if defined(SPECOPS_X86_KERNELS)
  static const Kernels& chosen = best_kernels(portable, avx2, avx512, avx512_vnni);
#else
  static const Kernels& chosen = portable();
#endif
  return chosen;
}

}  // namespace specops::compressed
