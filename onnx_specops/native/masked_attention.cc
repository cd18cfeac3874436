#include "masked_attention.h"

#include "float_kernels.h"

namespace specops::masked_attention {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace specops::masked_attention
