/* Verdicts: rules over the numbers of one kernel. A rule is data: names for the metrics that it reads, a condition, an estimate
 * and a message, written as expressions (expression.h) that are evaluated as they stand and shown to people as they are.
 * Pure: numbers in, findings out, so that an old run can be judged again by a newer rule. The tables are in rules_*.c;
 * docs/rules.md is printed from them. */
#ifndef RL_ANALYZE_RULES_H
#define RL_ANALYZE_RULES_H

#include <stdbool.h>

#include "model/metrics.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_RULE_INPUTS = 12, RL_RULE_TERMS = 4, RL_FINDING_MESSAGE = 512 };

typedef enum rl_finding_kind { RL_FINDING_INFO, RL_FINDING_WARNING, RL_FINDING_OPTIMIZATION } rl_finding_kind;
extern const char *const rl_finding_kind_names[]; /* "info" "warning" "optimization", NULL */

/* global: of the kernel's whole time. local: of the part that the rule looks at, which may not be what the kernel waits for. */
typedef enum rl_speedup_scope { RL_SPEEDUP_LOCAL, RL_SPEEDUP_GLOBAL } rl_speedup_scope;

typedef struct rl_rule_input {
  const char *name, *metric; /* how the expressions call a raw metric */
} rl_rule_input;

typedef struct rl_rule_term {
  const char *name, *expression; /* over the inputs and the terms before it */
} rl_rule_term;

typedef struct rl_rule {
  const char *id;      /* stays for ever; NULL ends a table */
  int version;         /* grows when the same numbers may be judged otherwise */
  const char *section; /* the rl_section that shows what the rule speaks of */
  const char *title;
  rl_rule_input inputs[RL_RULE_INPUTS + 1]; /* all must be known, else the rule is silent; a NULL name ends them */
  rl_rule_term terms[RL_RULE_TERMS + 1];
  const char *when;    /* the finding is made where this is true */
  const char *speedup; /* percent of time that could go away at most; NULL: no estimate */
  rl_speedup_scope scope;
  rl_finding_kind kind;
  const char *message; /* {expression} is replaced by its value with one decimal, {expression:N} with N */
  bool says_missing;   /* an input that could not be had is worth an info */
} rl_rule;

typedef struct rl_rule_group {
  const char *title;
  const rl_rule *rules;
} rl_rule_group;
extern const rl_rule_group rl_rule_groups[]; /* a NULL title ends them */

typedef struct rl_finding {
  const rl_rule *rule;
  rl_finding_kind kind;
  double speedup_pct; /* 0 to 100; NAN: none */
  bool global;
  char message[RL_FINDING_MESSAGE];
  rl_metric_value inputs[RL_RULE_INPUTS]; /* every number that was read; names and reasons are the rule's and the values' own */
  int input_count;
} rl_finding;

/* Every rule in the order of the tables; returns how many findings there are, of which the first `capacity` are written. */
size_t rl_rules_apply(const rl_metric_values *values, rl_finding *findings, size_t capacity);
/* Whether the finding is made; says_missing rules count with their info. */
bool rl_rule_apply(const rl_rule *rule, const rl_metric_values *values, rl_finding *finding);
const rl_rule *rl_rule_find(const char *id); /* NULL: no such rule */
/* -1 when an expression can't be read or uses a name that the rule does not declare. */
int rl_rule_check(const rl_rule *rule, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
