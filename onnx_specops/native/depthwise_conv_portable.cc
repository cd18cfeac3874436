#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "depthwise_conv_kernels.inc"
