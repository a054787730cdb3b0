/* Generates the contents of a posted kernel's buffers on the device. */
#ifndef RL_SOURCE_FILL_H
#define RL_SOURCE_FILL_H

#include "device/device.h"
#include "source/request.h"

/* Enqueues a kernel that fills a buffer according to argument->init and argument->seed. Random numbers also depend on `index`,
 * the index of the argument. */
int rl_source_fill(const rl_source_argument *argument, int index, void *to, rl_stream stream, rl_error *err);

#endif
