#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "compressed_cache_kernels.inc"
