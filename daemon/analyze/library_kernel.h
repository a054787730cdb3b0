/* Kernels that belong to a library, by name: their findings explain the time, but the reader can change only the call. */
#ifndef RL_ANALYZE_LIBRARY_KERNEL_H
#define RL_ANALYZE_LIBRARY_KERNEL_H

#include "analyze/kernel_verdict.h"

/* Returns "cuBLAS", "cuDNN" or "cuBLAS or cuDNN"; NULL: the name is not known to belong to one. Kernels of
 * CUTLASS match only under names that these libraries use: an application that compiles CUTLASS can change them. */
const char *rl_library_of_kernel(const char *name);
/* Returns what the caller of a library can change about a kernel with this verdict: shape, layout, precision, algorithm, batch.
 */
const char *rl_library_advice(const rl_kernel_verdict *verdict);

#endif
