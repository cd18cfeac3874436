#define SPECOPS_SET avx512
#define SPECOPS_NAME "avx512"
#include "elementwise_kernels.inc"
