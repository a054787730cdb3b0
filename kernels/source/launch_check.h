/* Checks the buffers of a posted kernel on the device after every timed launch, so that a kernel is correct in all launches or
 * fails: the result against the expected contents, read-only buffers and the guard zones around all buffers against their digests
 * from before the first launch. The device has no copy of the expected contents that posted code could read: they are XORed with
 * the hash of a secret key. Attacks of this kind are listed in tests/attacks. */
#ifndef RL_KERNELS_SOURCE_LAUNCH_CHECK_H
#define RL_KERNELS_SOURCE_LAUNCH_CHECK_H

#include "device/device.h"
#include "source/request.h"

enum { RL_SOURCE_GUARD_BYTES = 4096 }; /* before and after each buffer */

typedef struct rl_launch_check rl_launch_check;

/* buffers[i] is the device memory of argument i, filled, with RL_SOURCE_GUARD_BYTES before and after it for its guard zones;
 * NULL: a scalar. source and buffers must outlive the check. Takes the digests, so no launch may have happened. */
int rl_launch_check_open(const rl_source *source, void *const *buffers, rl_stream stream, rl_launch_check **check, rl_error *err);
/* Enqueues the check of the launch that was enqueued last. At most 2048 checks between two calls of rl_launch_check_read. */
int rl_launch_check_enqueue(rl_launch_check *check, rl_stream stream, rl_error *err);
/* Waits for the stream, and returns in *count the launches checked since the last call. -1 with RL_ERRNO, EDOM when one of them
 * had a wrong result or wrote memory that it must not write; the message begins with result_changed and names the launch. */
int rl_launch_check_read(rl_launch_check *check, rl_stream stream, uint64_t *count, rl_error *err);
void rl_launch_check_close(rl_launch_check *check); /* NULL: nothing */

#endif
