/* The number of SMs, from which the subject computes its grids and the test the expected operations. */
#ifndef RL_TESTS_RULES_SM_COUNT_H
#define RL_TESTS_RULES_SM_COUNT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the device's number of SMs; after subject_open. */
int rules_sm_count(void);

#ifdef __cplusplus
}
#endif
#endif
