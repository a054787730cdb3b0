/* CUPTI lets a process have one subscriber to its callbacks: this is ours. It keeps the GPU code of every module that is loaded, and tells
 * whoever watches about kernel launches. One per process; callbacks come on the thread that calls the driver. */
#ifndef RL_CUPTI_SUBSCRIBER_H
#define RL_CUPTI_SUBSCRIBER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call before the process makes a CUDA context: modules that were loaded before stay unknown. A refusal is remembered for those who ask
 * for something that needs callbacks. */
void rl_subscriber_open(void);
void rl_subscriber_close(void);

/* Around each kernel launch of the driver, graph launches left out; launches of the hook itself are not told. */
typedef void (*rl_launch_hook)(void *context, bool entering, CUstream stream);
int rl_subscriber_watch(rl_launch_hook hook, void *context, rl_error *err);
void rl_subscriber_unwatch(void);

typedef struct rl_module { /* a loaded module, or all that is kept of it */
  uint32_t id;
  uint64_t crc; /* as CUPTI computes it; 0: not asked for yet */
  size_t size;
  unsigned char *cubin;
} rl_module;

/* The newest module that has the function (its mangled name) and, unless crc is 0, this CRC. NULL: there is none, or it was too much to
 * keep. Valid until the module is unloaded, or another is loaded. */
const rl_module *rl_module_find(const char *function, uint64_t crc);

#ifdef __cplusplus
}
#endif
#endif
