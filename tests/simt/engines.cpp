/* The engines that run kernels of our own. The device that they are opened on is the CPU's: its memory is the machine's. */
#include "kernel/sequence.h"

#define SIMT_FAMILIES(X) \
  X(copy) X(relu) X(residual_add) X(bias_gelu) X(silu_mul) X(rope) X(softmax) X(rmsnorm) X(layernorm) X(transpose) X(reduction)
#define DECLARE(NAME) extern const rl_engine rl_kernel_cuda_##NAME;
#define LIST(NAME) &rl_kernel_cuda_##NAME,
extern "C" {
extern const rl_engine rl_engine_fused, rl_engine_cudnn, rl_engine_persistent;
SIMT_FAMILIES(DECLARE)
const rl_engine *const rl_engines[] = {&rl_engine_fused, &rl_engine_cudnn, &rl_engine_persistent, SIMT_FAMILIES(LIST) NULL};
}
