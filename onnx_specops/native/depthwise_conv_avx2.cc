#define SPECOPS_SET avx2
#define SPECOPS_NAME "avx2"
#include "depthwise_conv_kernels.inc"
