/* Shared by the families that CUDA libraries compute: cuBLASLt and cuDNN. */
#ifndef RL_KERNELS_KERNEL_LIBRARY_CUH
#define RL_KERNELS_KERNEL_LIBRARY_CUH

#include <stdio.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "library/tune.h"

enum { RL_HEURISTIC, RL_SEARCHED }; /* indices of the variants */

/* Always returns -1. Turns an error "not supported" of a library into an RL_INPUT error at /shape: the request asks for what the
 * library cannot do. */
static inline int rl_kernel_refuse_unsupported(rl_error *err) {
  char reason[sizeof err->message];
  if ((err->domain != RL_CUDNN || err->code != CUDNN_STATUS_NOT_SUPPORTED) &&
      (err->domain != RL_CUBLAS || err->code != CUBLAS_STATUS_NOT_SUPPORTED))
    return -1;
  snprintf(reason, sizeof reason, "%s", err->message);
  return rl_fail_at(err, "/shape", "%s", reason);
}

/* Records the chosen algorithm in the instance. rank: its place in the heuristic's order. fixed_order: it adds in the same order
 * each time. measurement: owned by the engine; filled here. */
static inline void rl_kernel_note_choice(rl_kernel_instance *kernel, int64_t rank, bool fixed_order,
                                         rl_open_measurement *measurement) {
  rl_instance *instance = &kernel->base;
  *measurement = {"algorithm_rank", (double)rank, NULL};
  instance->open_measurements = measurement;
  instance->open_measurement_count = 1;
  if (!fixed_order) instance->deterministic_note = "the library's engine adds in no fixed order";
  else if (kernel->variant == RL_SEARCHED) instance->deterministic_note = rl_choices_note();
  instance->deterministic = !instance->deterministic_note;
}

#endif
