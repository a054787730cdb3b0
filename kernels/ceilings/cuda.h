/* Declarations that the files of the CUDA engine of the workload "ceilings" share. Only .cu files include this header. */
#ifndef RL_CEILINGS_CUDA_H
#define RL_CEILINGS_CUDA_H

#include <cuda_runtime.h>

#include "ceilings/instance.h"

/* Bytes of rl_cuda_ceilings.results for each SM. Threads store results there, so that the compiler does not remove the
 * computation. */
enum { RL_CEILINGS_RESULT_BYTES_PER_SM = 32768 };

typedef struct rl_cuda_ceilings {
  rl_ceilings_instance instance;
  int sm_count;
  size_t l2_bytes;
  uint4 *memory; /* random data, far more than L2 holds */
  size_t memory_bytes;
  void *results; /* sm_count × RL_CEILINGS_RESULT_BYTES_PER_SM bytes */
} rl_cuda_ceilings;

/* Enqueues the kernel that fills self->memory with random data. */
int rl_ceilings_fill(const rl_cuda_ceilings *self, rl_error *err);
/* The next three functions add launches to self->instance. */
void rl_ceilings_add_memory(rl_cuda_ceilings *self);     /* bandwidths of DRAM, L2, L1 and shared memory */
void rl_ceilings_add_arithmetic(rl_cuda_ceilings *self); /* rates of multiply-add instructions outside the tensor cores */
void rl_ceilings_add_tensor(rl_cuda_ceilings *self);     /* arithmetic rates of the tensor cores */

#endif
