/* Finds kernel launches from the device (dynamic parallelism) in a posted binary. They are refused, because a kernel that they
 * start may run after the timed kernel, and may write memory that has been checked by then. Every such launch calls a function of
 * CUDA's device runtime, which the driver finds by its name, so the name stands in the cubin's string table or in the PTX text.
 */
#ifndef RL_KERNELS_SOURCE_DEVICE_LAUNCHES_H
#define RL_KERNELS_SOURCE_DEVICE_LAUNCHES_H

#include <stddef.h>

#include "base/error.h"

/* Searches a cubin, a fatbin or PTX text. In a fatbin, searches the PTX and the cubins that are uncompressed or compressed with
 * zstd (the default of CUDA 13). Fails with RL_INPUT at /binary if the binary launches kernels from the device, is a malformed
 * fatbin, or has a part that can't be searched. */
int rl_source_refuse_device_launches(const unsigned char *binary, size_t size, rl_error *err);

#endif
