/* The reference of a posted kernel: a second posted kernel with the same arguments, which computes the expected contents in
 * separate buffers. */
#ifndef RL_SOURCE_REFERENCE_H
#define RL_SOURCE_REFERENCE_H

#include "device/device.h"
#include "source/source.h"

typedef struct rl_source_reference rl_source_reference;

/* Compiles source->reference with the posted options, but not with those of a variant, and allocates its buffers. *source must
 * outlive the reference. Returns -1 with RL_INPUT and a JSON pointer below /expected/reference when the reference does not
 * compile or can't be launched. */
int rl_source_reference_open(rl_device *device, const rl_source *source, rl_source_reference **reference, rl_error *err);
/* Returns the device memory of the reference's buffers, indexed by argument; NULL for arguments that are not buffers. */
void *const *rl_source_reference_buffers(const rl_source_reference *reference);
/* Enqueues a launch of the reference on its buffers, which the caller has filled (rl_source_fill_buffers). */
int rl_source_reference_enqueue(rl_source_reference *reference, rl_stream stream, rl_error *err);
void rl_source_reference_close(rl_source_reference *reference); /* NULL is allowed */

#endif
