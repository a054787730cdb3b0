/* Checks the buffers of a posted kernel on the device after every timed launch, so that a kernel that is wrong in any launch
 * fails. Compares the result with the expected contents, or with the result of a reference kernel. Compares the digests of
 * read-only buffers, and of the guard zones around all buffers, with their digests before the first launch. The expected
 * contents are masked on the device (XORed with hashes of a secret key), so that posted code can't copy them to its result.
 * tests/attacks has kernels that attempt this. */
#ifndef RL_KERNELS_SOURCE_LAUNCH_CHECK_H
#define RL_KERNELS_SOURCE_LAUNCH_CHECK_H

#include "device/device.h"
#include "source/request.h"

enum { RL_SOURCE_GUARD_BYTES = 4096 }; /* size of the guard zone before each buffer, and of the guard zone after it */

typedef struct rl_launch_check rl_launch_check;

/* Fills the guard zones and computes all digests. Call it after the buffers are filled and before the first launch. buffers[i]:
 * device memory of argument i, with RL_SOURCE_GUARD_BYTES of memory before and after it for the guard zones; NULL: a scalar.
 * source and buffers must outlive the check. */
int rl_launch_check_open(const rl_source *source, void *const *buffers, rl_stream stream, rl_launch_check **check, rl_error *err);
/* Enqueues the check of the launch that was enqueued last. Call it at most 2048 times between two calls of rl_launch_check_read;
 * further calls return -1 with RL_ERRNO, EOVERFLOW. */
int rl_launch_check_enqueue(rl_launch_check *check, rl_stream stream, rl_error *err);
/* If the source has a reference, call rl_launch_check_enqueue, then rl_launch_check_enqueue_inputs, run the reference, and call
 * rl_launch_check_enqueue_result. rl_launch_check_enqueue_inputs compares the buffers with access "in" with the reference's
 * buffers, and rl_launch_check_enqueue_result compares the results. */
int rl_launch_check_enqueue_inputs(rl_launch_check *check, void *const *reference_buffers, rl_stream stream, rl_error *err);
int rl_launch_check_enqueue_result(rl_launch_check *check, void *const *reference_buffers, rl_stream stream, rl_error *err);
/* Waits for the stream. Sets *count to the number of launches that were checked since the last call. Returns -1 with RL_ERRNO,
 * EDOM when one of these launches had a wrong result or wrote memory that it must not write; the message begins with
 * result_changed and names the launch. */
int rl_launch_check_read(rl_launch_check *check, rl_stream stream, uint64_t *count, rl_error *err);
void rl_launch_check_close(rl_launch_check *check); /* NULL is allowed */

#endif
