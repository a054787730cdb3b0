/* Declarations that the definitions of the norms (norm.c) and their CUDA kernels (norm.cu) share. */
#ifndef RL_KERNELS_KERNEL_NORM_H
#define RL_KERNELS_KERNEL_NORM_H

#define RL_NORM_EPSILON 1e-5

#endif
