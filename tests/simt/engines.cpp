/* The engines whose kernels the emulator runs. They are opened on the CPU device, whose memory is also the emulator's global
 * memory. */
#include "kernel/sequence.h"

#define SIMT_OPERATORS(X) \
  X(copy) X(relu) X(residual_add) X(bias_gelu) X(silu_mul) X(rope) X(softmax) X(rmsnorm) X(layernorm) X(transpose) X(reduction)
#define DECLARE(NAME) extern const rl_engine rl_kernel_cuda_##NAME;
#define POINTER(NAME) &rl_kernel_cuda_##NAME,
extern "C" {
extern const rl_engine rl_engine_fused, rl_engine_cudnn, rl_engine_persistent;
SIMT_OPERATORS(DECLARE)
const rl_engine *const rl_engines[] = {&rl_engine_fused, &rl_engine_cudnn, &rl_engine_persistent, SIMT_OPERATORS(POINTER) NULL};
}
