/* The "subject": the workload instance that a probe program (probe.c and the tests beside it) profiles. Each program links
 * exactly one implementation of subject_open: subject_tiny.c, subject_gallery.c, subject_train.c or rules/subject_rules.cu. */
#ifndef RL_TESTS_CUPTI_SUBJECT_H
#define RL_TESTS_CUPTI_SUBJECT_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the instance that the remaining command-line arguments describe and sets *instance to it. Its step can be launched at
 * once. Returns 0; 1 with a message in err when the machine has no GPU; returns -1 on an error. */
int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
