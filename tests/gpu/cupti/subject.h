/* The instance that a probe program profiles; each probe links one implementation. */
#ifndef RL_TESTS_CUPTI_SUBJECT_H
#define RL_TESTS_CUPTI_SUBJECT_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the instance that the remaining command-line arguments describe, ready for its step. 0; 1 when there is no GPU; -1 on
 * error. */
int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
