/* Functions of the operators that cuBLASLt or cuDNN computes: gemm, attention and the convolutions. */
#ifndef RL_KERNELS_KERNEL_LIBRARY_CUH
#define RL_KERNELS_KERNEL_LIBRARY_CUH

#include <stdio.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "library/tune.h"

enum { RL_VARIANT_HEURISTIC, RL_VARIANT_SEARCHED }; /* indices of the variants */

/* Always returns -1. Turns a library's error NOT_SUPPORTED into an RL_INPUT error at /shape: the request asks for a shape that
 * the library cannot compute. */
static inline int rl_kernel_fail_unsupported(rl_error *err) {
  char reason[sizeof err->message];
  if ((err->domain != RL_CUDNN || err->code != CUDNN_STATUS_NOT_SUPPORTED) &&
      (err->domain != RL_CUBLAS || err->code != CUBLAS_STATUS_NOT_SUPPORTED))
    return -1;
  snprintf(reason, sizeof reason, "%s", err->message);
  return rl_fail_at(err, "/shape", "%s", reason);
}

/* Records the chosen algorithm in the instance. rank: its position in the heuristic's order, from 0. adds_in_fixed_order: each
 * run adds in the same order. measurement: owned by the engine; filled here. */
static inline void rl_kernel_record_algorithm(rl_kernel_instance *kernel, int64_t rank, bool adds_in_fixed_order,
                                              rl_open_measurement *measurement) {
  rl_instance *instance = &kernel->base;
  *measurement = {"algorithm_rank", (double)rank, NULL};
  instance->open_measurements = measurement;
  instance->open_measurement_count = 1;
  if (!adds_in_fixed_order) instance->deterministic_note = "the library's algorithm adds in an order that varies between runs";
  else if (kernel->variant == RL_VARIANT_SEARCHED) instance->deterministic_note = rl_tuning_cache_nondeterminism_reason();
  instance->deterministic = !instance->deterministic_note;
}

#endif
