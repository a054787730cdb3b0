/* Loads rooflined-cupti.so as a worker does. */
#ifndef RL_TESTS_CUPTI_LOAD_PROFILER_H
#define RL_TESTS_CUPTI_LOAD_PROFILER_H

#include "tiny.h"

enum { SKIP = 77 };

/* Loads $ROOFLINED_CUPTI, or ../bin/rooflined-cupti.so relative to this program, and opens its profiler. Call before the first
 * CUDA call. NULL and err on failure. */
rl_profiler *load_profiler(rl_error *err);
/* Loads the profiler, then opens the tiny device. Exits on failure; with SKIP and the reason when there is no GPU. */
rl_profiler *open_profiler(tiny_fixture *tiny);
/* Exits with err's message when result is not 0. */
void check(int result, const char *what, const rl_error *err);

#endif
