/* The reference of a posted kernel: a second posted kernel with the same arguments, which computes the expected contents in
 * separate buffers. */
#ifndef RL_SOURCE_REFERENCE_H
#define RL_SOURCE_REFERENCE_H

#include "device/device.h"
#include "source/source.h"

typedef struct rl_source_reference rl_source_reference;

/* Compiles source->reference with the posted options, without those of a variant, and allocates its buffers. *source must outlive
 * the reference. RL_INPUT with a JSON pointer below /expected/reference: it does not compile or can't be launched. */
int rl_source_reference_open(rl_device *device, const rl_source *source, rl_source_reference **reference, rl_error *err);
/* Returns the buffers, by argument. */
void *const *rl_source_reference_buffers(const rl_source_reference *reference);
/* Enqueues the launch whose contents the buffers have (rl_source_fill_buffers). */
int rl_source_reference_enqueue(rl_source_reference *reference, rl_stream stream, rl_error *err);
void rl_source_reference_close(rl_source_reference *reference); /* NULL is allowed */

#endif
