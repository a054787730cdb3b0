/* Gives test_rules.c, which is C, the number of SMs from which the kernels' launches compute their grids. The test computes the
 * expected numbers of operations from it. */
#ifndef RL_TESTS_RULES_SM_COUNT_H
#define RL_TESTS_RULES_SM_COUNT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the device's number of SMs. Valid once subject_open has succeeded. */
int rules_sm_count(void);

#ifdef __cplusplus
}
#endif
#endif
