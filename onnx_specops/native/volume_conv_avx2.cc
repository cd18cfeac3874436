#define SPECOPS_SET avx2
#define SPECOPS_NAME "avx2"
#include "volume_conv_kernels.inc"
