#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "layer_normalization_kernels.inc"
