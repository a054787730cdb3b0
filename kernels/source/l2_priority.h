/* The priority with which lines of a posted kernel's buffers are evicted from L2. */
#ifndef RL_SOURCE_L2_PRIORITY_H
#define RL_SOURCE_L2_PRIORITY_H

#include "device/device.h"
#include "source/request.h"

/* Enqueues a kernel that gives all lines of the buffers the normal priority (PTX applypriority). Otherwise lines that a posted
 * kernel loaded with L2::evict_last would stay in L2 when the cache is evicted before the next cold launch. */
int rl_source_reset_l2_priority(const rl_source *source, void *const *buffers, rl_stream stream, rl_error *err);

#endif
