#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "volume_conv_kernels.inc"
