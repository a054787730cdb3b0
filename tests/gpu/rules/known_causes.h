/* Forty kernels of this folder with known causes, and whether a report about their metrics says so. */
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
  bool kept_aside;                          /* its numbers were not looked at while the rules were written */
  rl_kernel_bound bounds[KNOWN_MAX_BOUNDS]; /* any of these is right; RL_KERNEL_UNKNOWN ends them */
  const char *pipelines;                    /* "fma issue": right with RL_KERNEL_PIPELINE; NULL: any */
  rl_cause_id cause;                        /* of the finding that must be there; RL_CAUSE_NONE: none must */
  rl_cause_id allowed[KNOWN_MAX_CAUSES];    /* optimisations of other causes are false; RL_CAUSE_NONE ends them */
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
