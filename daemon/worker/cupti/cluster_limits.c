/* In a callback after each kernel launch, calls the driver's occupancy function for the largest cluster and appends the
 * result. */
#include "worker/cupti/cluster_limits.h"

#include <cuda.h>
#include <stdlib.h>

#include "worker/cupti/driver_entry_point.h"
#include "worker/cupti/subscriber.h"

/* Returns the size in blocks of the largest cluster that the launch could use; 0: unknown. */
static int max_cluster_blocks(const rl_driver_launch *launch) {
  CUresult (*query)(int *, CUfunction, const CUlaunchConfig *) = NULL;
  const CUlaunchConfig config = {.gridDimX = launch->grid[0],
                                 .gridDimY = launch->grid[1],
                                 .gridDimZ = launch->grid[2],
                                 .blockDimX = launch->block[0],
                                 .blockDimY = launch->block[1],
                                 .blockDimZ = launch->block[2],
                                 .sharedMemBytes = launch->shared_bytes};
  int blocks = 0;
  *(void **)&query = rl_driver_entry_point("cuOccupancyMaxPotentialClusterSize", NULL);
  return query != NULL && query(&blocks, launch->function, &config) == CUDA_SUCCESS ? blocks : 0;
}

static void on_launch(void *context, bool entering, const rl_driver_launch *launch) {
  rl_cluster_limits *limits = context;
  if (entering) return;
  if (limits->count == limits->capacity) {
    size_t capacity = limits->capacity == 0 ? 64 : 2 * limits->capacity;
    int *grown = realloc(limits->max_blocks, capacity * sizeof *grown);
    if (grown == NULL) return;
    limits->max_blocks = grown;
    limits->capacity = capacity;
  }
  limits->max_blocks[limits->count++] = max_cluster_blocks(launch);
}

int rl_cluster_limits_start(rl_cluster_limits *limits, rl_error *err) {
  return rl_subscriber_watch_launches(on_launch, limits, err);
}

void rl_cluster_limits_stop(void) { rl_subscriber_unwatch_launches(); }

void rl_cluster_limits_clear(rl_cluster_limits *limits) {
  free(limits->max_blocks);
  *limits = (rl_cluster_limits){0};
}
