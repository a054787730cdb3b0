/* What the CUDA engine and its kernels share. Included by .cu files only. */
#ifndef RL_KERNELS_KERNEL_CUDA_H
#define RL_KERNELS_KERNEL_CUDA_H

#include <cuda_runtime.h>

#include "kernel/instance.h"

/* Queue the instance's variant of its family on the stream; one for each family. */
#define RL_KERNEL_DECLARE(NAME) int rl_kernel_launch_##NAME(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err);
RL_KERNEL_FAMILIES(RL_KERNEL_DECLARE)
#undef RL_KERNEL_DECLARE

#endif
