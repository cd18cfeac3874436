#define SPECOPS_SET avx2_vnni
#define SPECOPS_NAME "avx2_vnni"
#include "quantized_conv_kernels.inc"
