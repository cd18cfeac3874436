#define SPECOPS_SET avx512_vnni
#define SPECOPS_NAME "avx512_vnni"
#include "quantized_conv_kernels.inc"
