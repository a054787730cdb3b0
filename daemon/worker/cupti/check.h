/* Converts result codes of CUPTI into errors; cuda_check.h does the same for CUDA. */
#ifndef RL_CUPTI_CHECK_H
#define RL_CUPTI_CHECK_H

#include <cupti_result.h>
#include <stdbool.h>

#include "base/error.h"
#include "cuda_check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 0 for success; else -1 and sets err to domain RL_CUPTI, the result code, and the message "OPERATION: the library's
 * text". */
int rl_cupti_check(CUptiResult result, const char *operation, rl_error *err);
/* Calls a CUPTI function that takes a parameter struct. The error message contains the function's name. */
#define RL_CUPTI_CALL(FUNCTION, params, err) rl_cupti_check(FUNCTION(params), #FUNCTION, err)
/* Returns true when err means that CUPTI can't collect counters on this machine: missing privilege, another profiler, a virtual
 * or confidential device. */
bool rl_cupti_error_means_unavailable(const rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
