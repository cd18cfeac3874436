#define SPECOPS_SET avx2
#define SPECOPS_NAME "avx2"
#include "layer_normalization_kernels.inc"
