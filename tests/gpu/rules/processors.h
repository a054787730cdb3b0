/* What of the subject the test's arithmetic needs. */
#ifndef RL_TESTS_RULES_PROCESSORS_H
#define RL_TESTS_RULES_PROCESSORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Multiprocessors of the device, in which grids are counted. After subject_open. */
int rules_processors(void);

#ifdef __cplusplus
}
#endif
#endif
