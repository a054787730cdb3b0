/* The value of one metric at one instruction, from CUPTI's SASS metrics or PC sampling. */
#ifndef RL_CUPTI_INSTRUCTION_COUNT_H
#define RL_CUPTI_INSTRUCTION_COUNT_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_instruction_count {
  uint64_t crc;         /* CRC of the cubin, as CUPTI computes it */
  const char *function; /* mangled name; valid only during the call of rl_instruction_sink.add */
  int64_t offset;       /* bytes from the function's start */
  const char *metric;   /* valid until the process ends */
  double value;
} rl_instruction_count;

typedef struct rl_instruction_sink { /* add is called for each count; -1 ends the delivery */
  int (*add)(void *context, const rl_instruction_count *count, rl_error *err);
  void *context;
} rl_instruction_sink;

#endif
