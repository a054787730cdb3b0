/* Maps a range of device addresses for data whose values do not matter: all parts of the range map to the same physical chunk. So
 * a long range takes little memory, and only the lines of one chunk become dirty in L2. */
#ifndef RL_CUPTI_ALIASED_MAPPING_H
#define RL_CUPTI_ALIASED_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct rl_aliased_mapping {
  void *address;
  size_t bytes; /* at least the requested size; one chunk where the device does not support virtual memory management */
  bool mapped;  /* false: address comes from cudaMalloc */
} rl_aliased_mapping;

/* Maps `bytes` in the current context. chunk_bytes is rounded up to the device's allocation granularity. Fails with RL_CUDA. */
int rl_aliased_mapping_open(rl_aliased_mapping *mapping, int device, size_t bytes, size_t chunk_bytes, rl_error *err);
/* Unmaps and frees the range. The device must have finished its writes to it. A zeroed mapping is allowed. */
void rl_aliased_mapping_close(rl_aliased_mapping *mapping);

#endif
