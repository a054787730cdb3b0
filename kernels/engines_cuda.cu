/* The engines of the CUDA worker. "auto" takes the first that supports a workload's parameters, so the best stands first. */
#include "kernel/sequence.h"

#define DECLARE_FAMILY(NAME) extern const rl_engine rl_kernel_cuda_##NAME;
#define FAMILY(NAME) &rl_kernel_cuda_##NAME,
extern "C" {
extern const rl_engine rl_engine_fused, rl_engine_cudnn, rl_engine_persistent, rl_ceilings_cuda, rl_engine_source;
RL_KERNEL_FAMILIES(DECLARE_FAMILY)
const rl_engine *const rl_engines[] = {&rl_engine_persistent,
                                       &rl_engine_fused,
                                       &rl_engine_cudnn,
                                       &rl_ceilings_cuda,
                                       &rl_kernel_sequence_cuda,
                                       &rl_engine_source,
                                       RL_KERNEL_FAMILIES(FAMILY) NULL};
}
