/* The CPU engines of the kernel operators. */
#ifndef RL_KERNELS_KERNEL_CPU_H
#define RL_KERNELS_KERNEL_CPU_H

#include "kernel/kernel.h"

/* Members of the engine "cpu" of every operator. */
int rl_kernel_cpu_supports(const void *params, rl_error *err);
int rl_kernel_cpu_open(rl_device *device, const void *params, rl_instance **instance, rl_error *err);

#define RL_KERNEL_DECLARE(NAME) extern const rl_engine rl_kernel_cpu_##NAME;
RL_KERNEL_OPERATORS(RL_KERNEL_DECLARE)
#undef RL_KERNEL_DECLARE
extern const rl_engine rl_kernel_openblas_gemm; /* gemm_blas.c */

#endif
