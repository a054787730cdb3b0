/* Combines the findings of rules into one finding for each cause, whose estimates together are at most the time that the kernel
 * could save. All functions are pure. */
#ifndef RL_ANALYZE_FINDINGS_H
#define RL_ANALYZE_FINDINGS_H

#include "analyze/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_cause {
  const char *name;     /* "coalescing" */
  rl_time_part part;    /* the part of the duration that findings with this cause could shorten */
  bool saves_dram;      /* true: without the cause, the kernel would move fewer bytes from or to DRAM */
  bool adds;            /* true: the estimates of its rules concern disjoint times and are added; false: the largest is used */
  rl_cause_id joins[2]; /* its findings become parts of a finding with the first of these causes that has one */
  bool summarizes; /* its findings become parts of the largest finding about the same part of the duration, if there is one */
  /* What the caller of a library can do about a kernel of the library; NULL: only try the library's other algorithms. */
  const char *caller_advice;
} rl_cause;
extern const rl_cause rl_causes[RL_CAUSE_COUNT];

extern const char *const rl_time_part_names[RL_TIME_PART_COUNT]; /* "launch" "idle" "latency" "busy" */

/* The global estimates of the causes about these parts add up to at most the value of the expression. */
typedef struct rl_time_limit {
  unsigned parts;          /* set of bits 1 << rl_time_part */
  bool exempts_saves_dram; /* does not apply to causes with saves_dram */
  const char *expression;  /* over raw metrics: percent of the duration */
} rl_time_limit;
enum { RL_TIME_LIMIT_COUNT = RL_TIME_PART_COUNT + 3 };
extern const rl_time_limit rl_time_limits[RL_TIME_LIMIT_COUNT];
bool rl_time_limit_applies(const rl_time_limit *limit, const rl_cause *cause);

enum { RL_MAX_FINDINGS = 128 }; /* more than there are rules */

/* Makes one finding of all findings with the same cause: the first of these findings gets the combined estimate; the others
 * follow as parts (is_part) without an estimate. Findings with a global estimate come first, the largest first, then findings
 * with a local estimate, then findings without an estimate. In this order, limits each global estimate to what the larger
 * ones leave of rl_time_limits. Removes a finding that could save less than RL_MIN_SAVING_PCT. count: at most RL_MAX_FINDINGS.
 * Returns the number of findings, parts included. */
size_t rl_findings_combine(rl_finding *findings, size_t count, const rl_metric_values *values);
/* Replaces the advice of each finding, which is for the author of the kernel, by advice to the caller of a library. */
void rl_findings_advise_caller(rl_finding *findings, size_t count);

#ifdef __cplusplus
}
#endif
#endif
