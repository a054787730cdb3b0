/* What the families share that libraries do on CUDA. */
#ifndef RL_KERNELS_KERNEL_LIBRARY_CUH
#define RL_KERNELS_KERNEL_LIBRARY_CUH

#include <stdio.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "library/tune.h"

enum { RL_HEURISTIC, RL_SEARCHED }; /* variants */

/* What a library can't do is the request's fault. For use where opening its product failed: -1. */
static inline int rl_kernel_refuse(rl_error *err) {
  char why[sizeof err->message];
  if ((err->domain != RL_CUDNN || err->code != CUDNN_STATUS_NOT_SUPPORTED) &&
      (err->domain != RL_CUBLAS || err->code != CUBLAS_STATUS_NOT_SUPPORTED))
    return -1;
  snprintf(why, sizeof why, "%s", err->message);
  return rl_fail_at(err, "/shape", "%s", why);
}

/* rank: of what was chosen, in the heuristic's order. fixed_order: it adds in the same order each time.
 * fact: the engine's, to be filled. */
static inline void rl_kernel_note_choice(rl_kernel_instance *kernel, int64_t rank, bool fixed_order, rl_open_measurement *fact) {
  rl_instance *instance = &kernel->base;
  *fact = {"algorithm_rank", (double)rank, NULL};
  instance->open_measurements = fact;
  instance->open_measurement_count = 1;
  if (!fixed_order) instance->deterministic_note = "the library's engine adds in no fixed order";
  else if (kernel->variant == RL_SEARCHED) instance->deterministic_note = rl_tune_note();
  instance->deterministic = !instance->deterministic_note;
}

#endif
