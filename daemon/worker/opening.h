/* Detects that two workers of the daemon open the same device at the same time. A worker measures the memory of its CUDA context
 * as the growth of the used device memory while it opens the device. If another worker opens the device meanwhile, the growth
 * also contains a part of that worker's context.
 *
 * $ROOFLINED_CACHE_DIR/opening-DEVICE is shared by the workers of both roles. It has a counter of openings for each role. The
 * worker of a role locks the bytes of its counter while it opens the device. The kernel releases the lock when the process
 * ends. */
#ifndef RL_WORKER_OPENING_H
#define RL_WORKER_OPENING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/records.h"

typedef struct rl_opening {
  int file;                    /* descriptor; -1: none */
  int slot;                    /* index of this worker's counter */
  int64_t other_count;         /* the other counter at the begin */
  char reason[RL_REASON_SIZE]; /* why the growth can't be measured; "": no other worker was opening the device at the begin */
} rl_opening;

/* Called before the used device memory is read for the first time. device: its id. role: "profiled", or any other. Without
 * ROOFLINED_CACHE_DIR, no daemon has started the worker, and there is no other worker. */
rl_opening rl_opening_begin(const char *device, const char *role);
/* Called when the device is open. Sets opening->reason if another worker has begun to open the device meanwhile. */
void rl_opening_end(rl_opening *opening);

#endif
