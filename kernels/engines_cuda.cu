/* The engines of the CUDA worker. "auto" selects the first one that supports the parameters, so faster engines come first. */
#include "kernel/sequence.h"
#include "layer/engines.h"

#define DECLARE_OPERATOR(NAME) extern const rl_engine rl_kernel_cuda_##NAME;
#define OPERATOR(NAME) &rl_kernel_cuda_##NAME,
extern "C" {
extern const rl_engine rl_engine_fused, rl_engine_cudnn, rl_engine_persistent, rl_ceilings_cuda, rl_engine_source;
RL_KERNEL_OPERATORS(DECLARE_OPERATOR)
const rl_engine *const rl_engines[] = {
    &rl_engine_persistent,    &rl_engine_fused, &rl_engine_cudnn,  &rl_ceilings_cuda,
    &rl_kernel_sequence_cuda, &rl_layer_cuda,   &rl_engine_source, RL_KERNEL_OPERATORS(OPERATOR) NULL};
}
