#define SPECOPS_SET avx512
#define SPECOPS_NAME "avx512"
#include "depthwise_conv_kernels.inc"
