/* Recognizes kernels of libraries by name. Findings about them explain the time, but a user can change only the library call. */
#ifndef RL_ANALYZE_LIBRARY_KERNEL_H
#define RL_ANALYZE_LIBRARY_KERNEL_H

#include "analyze/kernel_verdict.h"

/* Returns "cuBLAS", "cuDNN" or "cuBLAS or cuDNN"; NULL: the kernel is not known to belong to one of these libraries. Kernels of
 * CUTLASS match only if they have names that these libraries use, because an application that compiles CUTLASS can change its
 * kernels. */
const char *rl_library_of_kernel(const char *name);
/* Returns what the caller of a library can change about a kernel with this verdict: shape, layout, precision, algorithm,
 * batch. */
const char *rl_library_advice(const rl_kernel_verdict *verdict);

#endif
