/* A rule is data: names for the metrics that it reads, a condition, an estimate and a message. Expressions (expression.h) are
 * evaluated and printed in docs/rules.md as they stand here. */
#ifndef RL_ANALYZE_RULE_H
#define RL_ANALYZE_RULE_H

#include <stdbool.h>
#include <stddef.h>

enum { RL_RULE_INPUTS = 12, RL_RULE_TERMS = 4, RL_FINDING_MESSAGE = 512 };

typedef enum rl_finding_kind { RL_FINDING_INFO, RL_FINDING_WARNING, RL_FINDING_OPTIMIZATION } rl_finding_kind;
extern const char *const rl_finding_kind_names[]; /* "info" "warning" "optimization", NULL */

/* global: share of the kernel's whole time. local: share of the part that the rule judges, which may not limit the kernel. */
typedef enum rl_speedup_scope { RL_SPEEDUP_LOCAL, RL_SPEEDUP_GLOBAL } rl_speedup_scope;

typedef struct rl_rule_input {
  const char *name, *metric; /* the expressions' name of a raw metric */
} rl_rule_input;

typedef struct rl_rule_term {
  const char *name, *expression; /* over the inputs and earlier terms */
} rl_rule_term;

typedef struct rl_rule {
  const char *id;      /* never changes; NULL ends a table */
  int version;         /* increases when equal numbers may be judged differently */
  const char *section; /* the rl_section that shows the rule's metrics */
  const char *title;
  rl_rule_input inputs[RL_RULE_INPUTS + 1]; /* the rule is skipped if one is unknown; a NULL name ends them */
  rl_rule_term terms[RL_RULE_TERMS + 1];
  const char *when;    /* condition of the finding */
  const char *speedup; /* upper bound of the time that could be saved, in percent; NULL: no estimate */
  rl_speedup_scope scope;
  rl_finding_kind kind;
  const char *message; /* {expression} is replaced by its value with one decimal, {expression:N} with N */
  bool says_missing;   /* an unavailable input gives an info finding */
} rl_rule;

#endif
