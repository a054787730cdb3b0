/* Counts by instruction: CUPTI's SASS metrics. One thread. Errors: RL_CUPTI. */
#ifndef RL_CUPTI_SASS_H
#define RL_CUPTI_SASS_H

#include <stdbool.h>

#include "worker/cupti/inside.h"

/* Counts, under ncu's names, of what CUPTI calls smsp__sass_*. Open once: CUPTI takes one configuration in the life of a process.
 * Then rl_sass_begin, kernels, an idle device, rl_sass_end, as often as wanted. It works only while the subscriber listens to
 * CUPTI_CBID_RESOURCE_MODULE_PROFILED. */
bool rl_sass_counts(const char *name); /* whether a metric is one of them that the chip has, once it is open */
int rl_sass_open(int device_index, const char *chip, rl_error *err);
int rl_sass_begin(CUcontext context, rl_error *err);
int rl_sass_end(CUcontext context, const rl_code_sink *sink, rl_error *err);

#endif
