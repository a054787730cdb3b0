/* Generates the contents of a posted kernel's buffers on the device. */
#ifndef RL_SOURCE_FILL_H
#define RL_SOURCE_FILL_H

#include "device/device.h"
#include "source/request.h"

/* Enqueues the filling of a buffer by argument->init and seed. Buffers with different indexes get different numbers. */
int rl_source_fill(const rl_source_argument *argument, int index, void *to, rl_stream stream, rl_error *err);

#endif
