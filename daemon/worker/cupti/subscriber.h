/* CUPTI lets a process have one subscriber to its callbacks: this is ours. It keeps the GPU code of every module that is loaded,
 * notes what memory is allocated, and tells whoever watches about kernel launches. One per process; callbacks come on the thread
 * that calls the driver. */
#ifndef RL_CUPTI_SUBSCRIBER_H
#define RL_CUPTI_SUBSCRIBER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "worker/code/cubin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call before the process makes a CUDA context: modules that were loaded before stay unknown. A refusal is remembered for those
 * who ask for something that needs callbacks. */
typedef void (*rl_context_hook)(CUcontext context);
void rl_subscriber_open(rl_context_hook made); /* made: for each context that is made, before it loads modules */
void rl_subscriber_close(void);

typedef struct rl_launched { /* what the driver was asked to launch */
  CUfunction function;
  CUstream stream;
  unsigned grid[3], block[3], shared_bytes; /* dynamic */
} rl_launched;

/* Around each kernel launch of the driver, graph launches left out; launches of the hook itself are not told. */
typedef void (*rl_launch_hook)(void *context, bool entering, const rl_launched *launch);
int rl_subscriber_watch(rl_launch_hook hook, void *context, rl_error *err);
void rl_subscriber_unwatch(void);

typedef struct rl_allocation { /* by cuMemAlloc, and so by cudaMalloc */
  CUdeviceptr address;
  size_t bytes;
} rl_allocation;

/* What is allocated now. malloc'ed, the caller frees; NULL with count 0: nothing is, or memory is out. */
rl_allocation *rl_allocations_copy(size_t *count);

/* The code of the newest module that has the function (its mangled name) and, unless crc is 0, this CRC. malloc'ed, the caller
 * frees; NULL: there is none, it was too much to keep, or memory is out. */
unsigned char *rl_module_copy(const char *function, uint64_t crc, size_t *size);
/* What is beyond doubt of a function (its code pointer aside, which is NULL): false when no module has it, when several have
 * different code of that name, or when a module could not be kept. */
bool rl_module_is_sure(const char *function, rl_cubin_function *found);

#ifdef __cplusplus
}
#endif
#endif
