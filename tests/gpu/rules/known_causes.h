/* Forty kernels of this folder with known causes, and a function that checks whether the report on their metrics names them. */
#ifndef RL_TESTS_RULES_KNOWN_CAUSES_H
#define RL_TESTS_RULES_KNOWN_CAUSES_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/findings.h"
#include "analyze/kernel_verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KNOWN_MAX_BOUNDS = 4, KNOWN_MAX_CAUSES = 8 };

typedef struct known_kernel {
  const char *launch;
  bool held_out;                            /* the rules were written without its metrics */
  rl_kernel_bound bounds[KNOWN_MAX_BOUNDS]; /* each of these is right; RL_KERNEL_BOUND_UNKNOWN ends the list */
  const char *pipelines;                    /* "fma issue": right with RL_KERNEL_BOUND_PIPELINE; NULL: any */
  rl_cause_id cause;                     /* cause of a finding that the report must have; RL_CAUSE_NONE: no finding is required */
  rl_cause_id allowed[KNOWN_MAX_CAUSES]; /* an optimisation with another cause is false; RL_CAUSE_NONE ends the list */
} known_kernel;
extern const known_kernel known_kernels[];
extern const size_t known_kernel_count;

typedef struct known_result {
  rl_kernel_verdict verdict;
  bool verdict_is_right, cause_is_found;
  rl_finding first;          /* the first optimisation; rule NULL: none */
  const rl_rule *false_rule; /* of the first false optimisation; NULL: none */
} known_result;

known_result known_kernel_judge(const known_kernel *kernel, const rl_metric_values *values);

#ifdef __cplusplus
}
#endif
#endif
