/* CUPTI and CUDA result codes as errors. */
#ifndef RL_CUPTI_RESULT_H
#define RL_CUPTI_RESULT_H

#include <cupti_result.h>
#include <driver_types.h>
#include <stdbool.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0 for success, else -1 with RL_CUPTI or RL_CUDA, the code, and "<what>: <the library's words>". */
int rl_cupti_check(CUptiResult result, const char *what, rl_error *err);
int rl_cuda_check(cudaError_t result, const char *what, rl_error *err);
/* Whether err says that this machine will not give counters whatever we ask: privilege, another profiler, virtual or confidential
 * device. */
bool rl_cupti_refused(const rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
