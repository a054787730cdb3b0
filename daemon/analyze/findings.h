/* Combines the findings of rules into one finding for each cause, whose estimates together are at most the kernel's duration.
 * All functions are pure. */
#ifndef RL_ANALYZE_FINDINGS_H
#define RL_ANALYZE_FINDINGS_H

#include "analyze/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_cause {
  const char *name;  /* "coalescing" */
  rl_time_part part; /* the part of the duration that findings with this cause could shorten */
  bool adds;         /* true: the estimates of its rules concern disjoint times and are added; false: the largest is used */
  rl_cause_id joins; /* its findings become parts of a finding with this cause, if there is one; RL_CAUSE_NONE: they do not */
  bool summarizes;   /* its findings become parts of the largest finding about the same part of the duration, if there is one */
  /* What the caller of a library can do about a kernel of the library; NULL: only try the library's other algorithms. */
  const char *caller_advice;
} rl_cause;
extern const rl_cause rl_causes[RL_CAUSE_COUNT];

typedef struct rl_time_part_limit {
  const char *name;       /* "idle" "latency" "busy" */
  const char *expression; /* over raw metrics: percent of the duration */
} rl_time_part_limit;
extern const rl_time_part_limit rl_time_part_limits[RL_TIME_PART_COUNT];

enum { RL_MAX_FINDINGS = 128 }; /* more than there are rules */

/* Makes one finding of all findings with the same cause: the first of these findings gets the combined estimate; the others
 * follow as parts (is_part) without an estimate. Findings with a global estimate come first, the largest first, then findings
 * with a local estimate, then findings without an estimate. In this order, limits each global estimate to the remaining time of
 * its part of the duration. Removes a finding that could save less than RL_MIN_SAVING_PCT. count: at most RL_MAX_FINDINGS.
 * Returns the number of findings, parts included. */
size_t rl_findings_combine(rl_finding *findings, size_t count, const rl_metric_values *values);
/* Replaces the advice of each finding, which is for the author of the kernel, by advice to the caller of a library. */
void rl_findings_advise_caller(rl_finding *findings, size_t count);

#ifdef __cplusplus
}
#endif
#endif
