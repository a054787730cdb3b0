/* rmsnorm and layernorm on CUDA. */
#include "kernel/norm.cuh"

RL_KERNEL_CUDA_ROWS(rmsnorm)
RL_KERNEL_CUDA_ROWS(layernorm)
