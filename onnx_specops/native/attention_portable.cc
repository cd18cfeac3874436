#define SPECOPS_SET portable
#define SPECOPS_NAME "portable"
#include "attention_kernels.inc"
