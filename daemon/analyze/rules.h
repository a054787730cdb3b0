/* Applies rules to the metrics of one kernel. The functions are pure, so that stored runs can be evaluated again with newer
 * rules. The tables are in rules_*.c; rules_page prints docs/rules.md from them. */
#ifndef RL_ANALYZE_RULES_H
#define RL_ANALYZE_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/rule.h"
#include "base/error.h"
#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_rule_group {
  const char *title;
  const rl_rule *rules;
} rl_rule_group;
extern const rl_rule_group rl_rule_groups[]; /* ends with a NULL title */

typedef struct rl_finding {
  const rl_rule *rule;
  rl_finding_kind kind;
  double speedup_pct; /* estimate, 0 to 100; NAN: none */
  bool global;
  bool is_part; /* a part of the last finding before it that is not a part (findings.h) */
  char message[RL_FINDING_MESSAGE_SIZE];
  size_t advice_offset; /* message + advice_offset: the advice to the kernel's author, which may be empty */
  /* The metrics that were read. Their names belong to the rule, their reasons to the values. */
  rl_metric_value inputs[RL_RULE_MAX_INPUTS];
  int input_count;
} rl_finding;

/* Applies every rule in the order of the tables and writes the first `capacity` findings. Returns the number of all findings. */
size_t rl_rules_apply(const rl_metric_values *values, rl_finding *findings, size_t capacity);
/* Returns whether the rule has a finding, including the info finding of a reports_missing_inputs rule. */
bool rl_rule_apply(const rl_rule *rule, const rl_metric_values *values, rl_finding *finding);
/* Returns whether the rule can decide: each input is known, or undefined because the kernel did nothing that it measures. */
bool rl_rule_can_decide(const rl_rule *rule, const rl_metric_values *values);
const rl_rule *rl_rule_find(const char *id);     /* NULL: unknown id */
size_t rl_rule_fact_length(const rl_rule *rule); /* length of the rule's message without its advice */
const char *rl_rule_advice(const rl_rule *rule); /* the end of the rule's message; "": it has no advice */
/* Fails with RL_INPUT if an expression of the rule has a syntax error or uses an undeclared name. */
int rl_rule_check(const rl_rule *rule, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
