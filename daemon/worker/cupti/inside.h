/* Two ways to look at single instructions while kernels run: SASS metrics, which patch their code and count exactly, and PC
 * sampling, which notes from time to time what warps wait for. Each is begun, kernels run, the device becomes idle, and it is
 * ended. */
#ifndef RL_CUPTI_INSIDE_H
#define RL_CUPTI_INSIDE_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_code_count { /* of one instruction */
  uint64_t crc;                /* of the module */
  const char *function;        /* mangled; both strings live as long as the process */
  int64_t offset;              /* from the function's start */
  const char *metric;
  double value;
} rl_code_count;

typedef struct rl_code_sink {
  int (*take)(void *context, const rl_code_count *count, rl_error *err);
  void *context;
} rl_code_sink;

#endif
