/* Whether this process has executed posted code. Such code may have changed anything in its process, so the daemon executes no
 * other job in it. */
#ifndef RL_KERNELS_SOURCE_EXECUTED_H
#define RL_KERNELS_SOURCE_EXECUTED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Call this before posted code is launched. For a posted binary, call it already before the driver loads the binary, because the
 * client, not rooflined-nvrtc, produced its machine code. */
void rl_source_set_executed(void);
/* Returns whether rl_source_set_executed was called. */
bool rl_source_has_executed(void);

#ifdef __cplusplus
}
#endif

#endif
