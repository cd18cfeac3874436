#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "compressed_kernels.inc"
