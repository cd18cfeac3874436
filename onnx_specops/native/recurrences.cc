#include "recurrences.h"

#include "float_kernels.h"

namespace specops::recurrences {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace specops::recurrences
