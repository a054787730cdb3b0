/* Device memory to write much to that keeps little of it: a range of addresses that is one piece of memory again and again. */
#ifndef RL_CUPTI_FOLD_H
#define RL_CUPTI_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct rl_fold {
  void *address;
  size_t bytes; /* at address: at least what was asked for, or a piece where the device can't map memory */
  bool mapped;
} rl_fold;

/* For the current context. A piece is larger where the device maps no less. */
int rl_fold_open(rl_fold *fold, int device, size_t bytes, size_t piece_bytes, rl_error *err);
/* Nothing may still write to it. One that was never opened is all zero. */
void rl_fold_close(rl_fold *fold);

#endif
