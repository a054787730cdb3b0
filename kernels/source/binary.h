/* The cubin of a posted binary: of a cubin itself, of a fatbin, or of PTX, which the driver compiles. The module's variables are
 * listed from this cubin, so that they can be restored. */
#ifndef RL_KERNELS_SOURCE_BINARY_H
#define RL_KERNELS_SOURCE_BINARY_H

#include "device/device.h"
#include "source/request.h"

typedef struct rl_source_cubin {
  const void *bytes;
  size_t size;
  void *owned; /* freed by rl_source_cubin_clear; NULL: bytes points into the posted binary */
} rl_source_cubin;

/* Finds the cubin that the device executes. *source must outlive the cubin. architecture: 90 for compute capability 9.0. Returns
 * -1 with RL_INPUT at /binary when there is none, or when the driver rejects the PTX, and with RL_CUDA when the driver fails
 * otherwise; its messages go to device->on_compiler_log. Clear the cubin also after a failure. */
int rl_source_cubin_open(const rl_device *device, const rl_source *source, int architecture, rl_source_cubin *cubin,
                         rl_error *err);
void rl_source_cubin_clear(rl_source_cubin *cubin);

#endif
