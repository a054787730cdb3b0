/* Cold caches: in front of every kernel that is launched while armed, one of ours reads more than L2 holds, on the same stream. It only
 * reads, since lines that it wrote would be written back during the kernel and be counted as its traffic. */
#ifndef RL_CUPTI_FLUSH_H
#define RL_CUPTI_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_flush rl_flush;

/* For the current context. */
int rl_flush_open(rl_flush **flush, rl_error *err);
void rl_flush_close(rl_flush *flush);
/* Count of flushes since it was last armed; an error when one of them could not be launched. */
int rl_flush_arm(rl_flush *flush, rl_error *err);
int rl_flush_disarm(rl_flush *flush, uint64_t *flushes, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
