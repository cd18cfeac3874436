#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "quantized_conv_kernels.inc"
