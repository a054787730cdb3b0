/* Generates the contents of a posted kernel's buffers on the device. */
#ifndef RL_SOURCE_FILL_H
#define RL_SOURCE_FILL_H

#include "device/device.h"
#include "source/request.h"

/* Enqueues a kernel that fills the buffer `to` according to argument->init and argument->seed. Random numbers also depend on
 * `index`, the index of the argument, and on `launch`. Launch 0 has the contents that the request describes; each other number
 * gives other random contents. */
int rl_source_fill(const rl_source_argument *argument, int index, uint64_t launch, void *to, rl_stream stream, rl_error *err);

/* Enqueues the operations that give all buffers their contents before a launch. First sets every byte of the buffers with
 * access "out" to 0xFF. Then fills the inputs, so that they are in the caches: rl_source_fill fills random buffers for this
 * launch, and all others are copied from saved[]. For launch 0, random buffers are copied too. Launch 0 therefore needs no
 * kernel, which a profiler would count as a launch of the step. */
int rl_source_fill_buffers(const rl_source *source, uint64_t launch, void *const *saved, void *const *buffers, rl_stream stream,
                           rl_error *err);

#endif
