#define SPECOPS_SET avx512
#define SPECOPS_NAME "avx512"
#include "layer_normalization_kernels.inc"
