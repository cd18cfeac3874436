#define SPECOPS_SET avx512
#define SPECOPS_NAME "avx512"
#include "quantized_conv_kernels.inc"
