/* What a probe looks at. */
#ifndef RL_TESTS_CUPTI_SUBJECT_H
#define RL_TESTS_CUPTI_SUBJECT_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ready for its step, as given by the arguments left on the command line. 0; 1 when there is no GPU; -1. */
int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
