/* Generates the contents of a posted kernel's buffers on the device. */
#ifndef RL_SOURCE_FILL_H
#define RL_SOURCE_FILL_H

#include "device/device.h"
#include "source/request.h"

/* Enqueues a kernel that fills a buffer according to argument->init and argument->seed. Random numbers also depend on `index`,
 * the index of the argument, and on `launch`: 0 for the contents that the request describes. */
int rl_source_fill(const rl_source_argument *argument, int index, uint64_t launch, void *to, rl_stream stream, rl_error *err);

/* Enqueues the contents that a launch starts with: every byte of buffers with access "out" is 0xFF; random buffers have those of
 * rl_source_fill for this launch; all others, and with launch 0 also the random ones, are copied from saved[]. Launch 0 needs no
 * kernel, which a profiler would count as a launch of the step. Inputs come last, so that they are in the caches. */
int rl_source_fill_buffers(const rl_source *source, uint64_t launch, void *const *saved, void *const *buffers, rl_stream stream,
                           rl_error *err);

#endif
