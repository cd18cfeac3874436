#define SPECOPS_SET amx
#define SPECOPS_NAME "amx"
#define SPECOPS_AMX
#include "quantized_conv_kernels.inc"
