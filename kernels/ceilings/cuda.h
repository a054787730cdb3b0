/* What the files of the CUDA engine of the ceilings share. Included by .cu files only. */
#ifndef RL_CEILINGS_CUDA_H
#define RL_CEILINGS_CUDA_H

#include <cuda_runtime.h>

#include "ceilings/instance.h"

enum { RL_CEILINGS_RESULT_BYTES = 32768 }; /* for what the threads of a multiprocessor find, so that no work is left out */

typedef struct rl_ceilings_gpu {
  rl_ceilings_instance instance;
  int sms;
  size_t l2_bytes;
  uint4 *memory; /* random, far more than L2 holds */
  size_t bytes;
  void *results; /* sms × RL_CEILINGS_RESULT_BYTES */
} rl_ceilings_gpu;

/* Fill the memory / add the launches of a group of rates. */
int rl_ceilings_fill(const rl_ceilings_gpu *self, rl_error *err);
void rl_ceilings_list_memory(rl_ceilings_gpu *self);
void rl_ceilings_list_arithmetic(rl_ceilings_gpu *self);
void rl_ceilings_list_tensor(rl_ceilings_gpu *self);

#endif
