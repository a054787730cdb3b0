/* The subscriber to CUPTI's callbacks; CUPTI allows one per process. It copies the cubin of every loaded module, lists allocated
 * device memory, and calls a launch callback before and after kernel launches. Callbacks run on the thread that calls the
 * driver. */
#ifndef RL_CUPTI_SUBSCRIBER_H
#define RL_CUPTI_SUBSCRIBER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/cubin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called for each new context, before it loads modules. */
typedef void (*rl_context_callback)(CUcontext context);

/* Subscribes to CUPTI's callbacks. Call before the process creates a CUDA context, because modules that were loaded earlier are
 * unknown. When CUPTI refuses the subscription, rl_subscriber_watch_launches returns the error. */
void rl_subscriber_open(rl_context_callback on_context_created);
void rl_subscriber_close(void);

typedef struct rl_driver_launch { /* arguments of the driver's launch call */
  CUfunction function;
  CUstream stream;
  unsigned grid[3], block[3], shared_bytes; /* shared_bytes: dynamic */
} rl_driver_launch;

/* Called before (entering) and after each kernel launch, except graph launches and launches made by the callback itself. */
typedef void (*rl_launch_callback)(void *context, bool entering, const rl_driver_launch *launch);
int rl_subscriber_watch_launches(rl_launch_callback callback, void *context, rl_error *err);
void rl_subscriber_unwatch_launches(void);

typedef struct rl_device_allocation { /* made by cuMemAlloc, which cudaMalloc calls */
  CUdeviceptr address;
  size_t bytes;
} rl_device_allocation;

/* Returns a malloc'ed copy of the list of current allocations, which the caller frees. Returns NULL and *count 0 when there are
 * none, or when memory is out. */
rl_device_allocation *rl_device_allocations_copy(size_t *count);

/* Returns whether this process may have set an access policy window for a stream, or for a launch that
 * rl_subscriber_watch_launches watched: true also when CUPTI does not report the calls that set attributes of streams. Attributes
 * of graph nodes are not seen; no code of this repository sets them. */
bool rl_process_may_have_access_policy_window(void);
/* Returns whether memory of another device may be mapped: the process has created several contexts. */
bool rl_process_maps_other_devices(void);

/* Returns a malloc'ed copy of the most recently loaded cubin that has the function (mangled name) and, unless crc is 0, CUPTI's
 * CRC. The caller frees it. NULL: there is none, its cubin was not kept, or memory is out. */
unsigned char *rl_loaded_module_copy(const char *function, uint64_t crc, size_t *size);
/* Finds the function if all modules that define it have the same code for it. Sets found->code to NULL. Returns false when no
 * module defines it, when modules define it with different code, or when the cubin of a module was not kept. */
bool rl_loaded_function_find_unique(const char *function, rl_cubin_function *found);

#ifdef __cplusplus
}
#endif
#endif
