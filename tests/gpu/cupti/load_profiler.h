/* Loads the profiler module rooflined-cupti.so in a test program in the same way as the daemon's worker loads it. */
#ifndef RL_TESTS_CUPTI_LOAD_PROFILER_H
#define RL_TESTS_CUPTI_LOAD_PROFILER_H

#include "tiny.h"

enum { SKIP = 77 }; /* exit status that ctest counts as a skipped test */

/* Loads the module named by the environment variable ROOFLINED_CUPTI, otherwise ../bin/rooflined-cupti.so relative to this
 * program's folder, and opens its profiler. Must be called before the program's first CUDA call. Returns NULL and sets err on
 * failure. */
rl_profiler *load_profiler(rl_error *err);
/* Loads the profiler, opens the device and instance of tiny.h, and connects the two. Ends the program on failure; when the
 * machine has no GPU, prints the reason and ends the program with the exit status SKIP. */
rl_profiler *open_profiler(tiny_fixture *tiny);
/* When result is not 0, prints `what` and the message in err, and ends the program with a failure. */
void check(int result, const char *what, const rl_error *err);

#endif
