#include "worker/cupti/clusters.h"

#include <cuda.h>
#include <stdlib.h>

#include "worker/cupti/driver.h"
#include "worker/cupti/subscriber.h"

static int ask(const rl_launched *launch) {
  CUresult (*largest)(int *, CUfunction, const CUlaunchConfig *) = NULL;
  const CUlaunchConfig config = {.gridDimX = launch->grid[0],
                                 .gridDimY = launch->grid[1],
                                 .gridDimZ = launch->grid[2],
                                 .blockDimX = launch->block[0],
                                 .blockDimY = launch->block[1],
                                 .blockDimZ = launch->block[2],
                                 .sharedMemBytes = launch->shared_bytes};
  int blocks = 0;
  *(void **)&largest = rl_driver_function("cuOccupancyMaxPotentialClusterSize", NULL);
  return largest != NULL && largest(&blocks, launch->function, &config) == CUDA_SUCCESS ? blocks : 0;
}

static void on_launch(void *context, bool entering, const rl_launched *launch) {
  rl_clusters *clusters = context;
  if (entering) return;
  if (clusters->count == clusters->capacity) {
    size_t capacity = clusters->capacity == 0 ? 64 : 2 * clusters->capacity;
    int *grown = realloc(clusters->largest, capacity * sizeof *grown);
    if (grown == NULL) return;
    clusters->largest = grown;
    clusters->capacity = capacity;
  }
  clusters->largest[clusters->count++] = ask(launch);
}

int rl_clusters_watch(rl_clusters *clusters, rl_error *err) { return rl_subscriber_watch(on_launch, clusters, err); }

void rl_clusters_unwatch(void) { rl_subscriber_unwatch(); }

void rl_clusters_clear(rl_clusters *clusters) {
  free(clusters->largest);
  *clusters = (rl_clusters){0};
}
