#define SPECOPS_SET avx512_vnni
#define SPECOPS_NAME "avx512_vnni"
#include "compressed_cache_kernels.inc"
