/* Opens the module as a worker does. */
#ifndef RL_TESTS_CUPTI_LOAD_PROFILER_H
#define RL_TESTS_CUPTI_LOAD_PROFILER_H

#include "tiny.h"

enum { SKIP = 77 };

/* The module: ROOFLINED_CUPTI, or ../bin/rooflined-cupti.so beside this program. Call before anything touches the device. NULL
 * and err. */
rl_profiler *load_profiler(rl_error *err);
/* The module, then the tiny device. Ends the program when it can't: with SKIP and the reason when there is no GPU. */
rl_profiler *open_profiler(tiny_rig *tiny);
/* Ends the program when result is not 0. */
void must(int result, const char *what, const rl_error *err);

#endif
