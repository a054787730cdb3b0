/* A rule is data: names for the metrics that it reads, a condition, an estimate and a message. docs/rules.md prints the same
 * expressions (expression.h) that are evaluated. */
#ifndef RL_ANALYZE_RULE_H
#define RL_ANALYZE_RULE_H

#include <stdbool.h>
#include <stddef.h>

enum { RL_RULE_MAX_INPUTS = 16, RL_RULE_MAX_TERMS = 4, RL_FINDING_MESSAGE_SIZE = 512 };

/* Section of the rules about a run's trace, which belong to no section of a kernel's report. */
#define RL_RULE_TIMELINE_SECTION "Timeline"

typedef enum rl_finding_kind { RL_FINDING_INFO, RL_FINDING_WARNING, RL_FINDING_OPTIMIZATION } rl_finding_kind;
extern const char *const rl_finding_kind_names[]; /* "info" "warning" "optimization", NULL */

/* A global estimate is a percentage of the kernel's duration. A local estimate is a percentage of the time of the part that the
 * rule is about, which can overlap with other work. */
typedef enum rl_speedup_scope { RL_SPEEDUP_LOCAL, RL_SPEEDUP_GLOBAL } rl_speedup_scope;

/* Parts of the kernel's duration. All findings about one part together can save at most that part. The first three do not
 * overlap. DRAM and L2 can be busy while multiprocessors are idle. */
typedef enum rl_time_part {
  RL_TIME_PART_LAUNCH,  /* no multiprocessor has a block yet, or any more */
  RL_TIME_PART_IDLE,    /* some multiprocessors have blocks, and others have none */
  RL_TIME_PART_LATENCY, /* multiprocessors have blocks, but no unit works at its peak */
  RL_TIME_PART_BUSY,    /* the busiest unit works */
  RL_TIME_PART_COUNT
} rl_time_part;

/* The cause that a rule's finding is about. All findings of one cause are reported as one finding with parts. */
typedef enum rl_cause_id {
  RL_CAUSE_NONE, /* the finding is not combined with others; for rules about traces, whose estimates are of disjoint times */
  RL_CAUSE_SATURATION,
  RL_CAUSE_GRID,
  RL_CAUSE_LAUNCH_OVERHEAD,
  RL_CAUSE_TAIL,
  RL_CAUSE_FEW_WARPS,
  RL_CAUSE_MEMORY_LATENCY,
  RL_CAUSE_SHARED_LATENCY,
  RL_CAUSE_MEMORY_QUEUE,
  RL_CAUSE_TEXTURE_QUEUE,
  RL_CAUSE_BARRIERS,
  RL_CAUSE_FENCES,
  RL_CAUSE_DEPENDENCIES,
  RL_CAUSE_BRANCHES,
  RL_CAUSE_INSTRUCTION_CACHE,
  RL_CAUSE_CONSTANTS,
  RL_CAUSE_STORES_AT_EXIT,
  RL_CAUSE_SLEEP,
  RL_CAUSE_DISPATCH,
  RL_CAUSE_WARPGROUPS,
  RL_CAUSE_OTHER_STALLS,
  RL_CAUSE_DIVERGENCE,
  RL_CAUSE_FP64,
  RL_CAUSE_UNFUSED,
  RL_CAUSE_TENSOR,
  RL_CAUSE_COALESCING,
  RL_CAUSE_TRAFFIC,
  RL_CAUSE_BANK_CONFLICTS,
  RL_CAUSE_CACHE_REUSE,
  RL_CAUSE_LOCAL_MEMORY,
  RL_CAUSE_COMPRESSION,
  RL_CAUSE_HOT_UNITS,
  RL_CAUSE_GLOBAL_ATOMICS,
  RL_CAUSE_ATOMIC_THROUGHPUT,
  RL_CAUSE_SHARED_ATOMICS,
  RL_CAUSE_COUNT
} rl_cause_id;

typedef struct rl_rule_input {
  const char *name, *metric; /* name: name of the metric in expressions */
} rl_rule_input;

typedef struct rl_rule_term {
  const char *name, *expression; /* over the inputs and earlier terms */
} rl_rule_term;

typedef struct rl_rule {
  const char *id;      /* never changes; NULL ends a table */
  int version;         /* raised by each change after which the same metrics can give another finding or estimate */
  const char *section; /* the rl_section that shows the rule's metrics, or RL_RULE_TIMELINE_SECTION */
  const char *title;
  rl_cause_id cause;
  rl_rule_input inputs[RL_RULE_MAX_INPUTS + 1]; /* all must be known; ends with a NULL name */
  rl_rule_term terms[RL_RULE_MAX_TERMS + 1];
  const char *condition; /* the rule has a finding if the value is not 0 */
  const char *speedup;   /* estimate: at most this percentage of the time can be saved; NULL: none */
  rl_speedup_scope scope;
  rl_finding_kind kind;
  /* {expression} is replaced by its value with one decimal, {expression:N} with N decimals, {expression:us} by a duration of this
   * many microseconds with its unit. The text after "|" is advice to the author of the kernel. */
  const char *message;
  const char *opcodes; /* opcodes, without modifiers, of the instructions that the finding is about: "LDL STL"; NULL: all */
  bool reports_missing_inputs; /* if an input is unavailable for a reason, the rule has an info finding with that reason */
} rl_rule;

#endif
