#define SPECOPS_SET avx2
#define SPECOPS_NAME "avx2"
#include "compressed_cache_kernels.inc"
