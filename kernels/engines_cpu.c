/* The engines of the CPU worker. "auto" selects the first one that supports the parameters, so faster engines come first. */
#include "ceilings/cpu.h"
#include "kernel/cpu.h"
#include "kernel/sequence.h"
#include "layer/engines.h"
#include "train/cpu.h"

#define KERNEL(NAME) &rl_kernel_cpu_##NAME,
const rl_engine *const rl_engines[] = {
    &rl_engine_cpu_fused,    &rl_engine_blas, &rl_engine_reference,     &rl_ceilings_cpu,
    &rl_kernel_sequence_cpu, &rl_layer_cpu,   &rl_kernel_openblas_gemm, RL_KERNEL_OPERATORS(KERNEL) NULL};
