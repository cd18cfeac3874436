#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "elementwise_kernels.inc"
