/* Prints docs/rules.md: build/dev/tests/rules_page > docs/rules.md */
#include <stdio.h>
#include <string.h>

#include "analyze/findings.h"
#include "analyze/thresholds.h"

static const char preface[] =
    "# Rules\n\n"
    "<!-- Printed by rules_page from daemon/analyze/rules_*.c; edit there. -->\n"
    "\n"
    "The report of a kernel lists the findings of these rules. A rule reads metrics, all of which must be known. If its\n"
    "condition is true, it adds a finding: a message, and the value of each metric that it read. Conditions and estimates\n"
    "are printed here exactly as they are computed.\n"
    "\n"
    "An estimate is an upper bound: the percentage of time that would be saved if the problem were solved completely.\n"
    "A *global* estimate refers to the time of the whole kernel. A *local* estimate refers only to the part that the rule\n"
    "is about, which may not be the part that limits the kernel.\n"
    "\n"
    "All findings of one cause are reported as one finding with parts. Its estimate is the largest estimate of these parts, or\n"
    "their sum if the parts concern different shares of the time. A report first lists the findings with a global estimate,\n"
    "beginning with the largest, then findings with a local estimate, then findings without an estimate. The global estimates\n"
    "of a kernel can be added: each cause belongs to a part of the kernel's duration, and an estimate is at most what the\n"
    "larger estimates leave of the limits below. An estimate below " RL_TEXT(RL_MIN_SAVING_PCT) " % is left out.\n"
    "\n"
    "There are three kinds of findings. An *optimization* recommends a change, a *warning* reports a problem, and an\n"
    "*info* describes the kernel.\n"
    "\n"
    "Most messages end with advice to the author of the kernel. For a kernel of cuBLAS or cuDNN, this advice is replaced by\n"
    "what the caller can change, which depends on the cause; where the table has none, by *Try the library's other\n"
    "algorithms.*\n"
    "\n"
    "Metrics that begin with `code__` are counts of SASS instructions by their operands; they need nvdisasm on the host.\n"
    "Metrics that begin with `activity__` are measurements of the activity pass ([schema.md](schema.md)). `model__bytes` is\n"
    "the smallest number of bytes that the workload can move.\n"
    "\n"
    "The last group reads the time classes of a run's trace (`GET /runs/{id}/timeline/findings`, [timeline.md](timeline.md)).\n"
    "Its estimates concern disjoint parts of the idle time, so they can be added.\n";

static void print_names(const rl_rule *rule) {
  for (const rl_rule_input *input = rule->inputs; input->name; input++) printf("- `%s`: `%s`\n", input->name, input->metric);
  for (const rl_rule_term *term = rule->terms; term->name; term++) printf("- `%s` = `%s`\n", term->name, term->expression);
}

static void print_rule(const rl_rule *rule) {
  printf("\n### %s\n\n`%s`, version %d, %s, section %s", rule->title, rule->id, rule->version, rl_finding_kind_names[rule->kind],
         rule->section);
  if (rule->cause != RL_CAUSE_NONE) printf(", cause `%s`", rl_causes[rule->cause].name);
  fputs("\n\n", stdout);
  print_names(rule);
  printf("\nCondition: `%s`.", rule->condition);
  if (rule->speedup) printf(" Estimate (%s): `%s`.", rule->scope == RL_SPEEDUP_GLOBAL ? "global" : "local", rule->speedup);
  if (rule->opcodes) printf(" Instructions: `%s`.", rule->opcodes);
  int length = (int)rl_rule_fact_length(rule);
  const char *advice = rl_rule_advice(rule);
  if (*advice) printf("\n\n> %.*s\n>\n> *Advice:* %s\n", length - 1 /* the space before the advice */, rule->message, advice);
  else printf("\n\n> %s\n", rule->message);
}

static void print_time_limits(void) {
  puts(
      "\n## Limits of the estimates\n\n"
      "A kernel's duration has four parts. *launch*: no multiprocessor has a block yet, or any more. *idle*: some "
      "multiprocessors\n"
      "have blocks, and others have none. *latency*: multiprocessors have blocks, but no unit works at its peak. *busy*: the\n"
      "busiest unit works.\n\n"
      "| estimates about | together at most, in percent of the duration |\n| --- | --- |");
  for (int i = 0; i < RL_TIME_LIMIT_COUNT; i++) {
    const rl_time_limit *limit = &rl_time_limits[i];
    const char *separator = "| ";
    for (int part = 0; part < RL_TIME_PART_COUNT; part++)
      if (limit->parts & 1u << part) printf("%s%s", separator, rl_time_part_names[part]), separator = ", ";
    printf("%s | `%s` |\n", limit->exempts_saves_dram ? ", by causes that do not reduce DRAM traffic" : "", limit->expression);
  }
  puts(
      "\nThe limit of *idle* makes the estimate of `tail_effect` a lower bound where several blocks share a multiprocessor. If "
      "a\n"
      "unit limits the blocks, fewer of them run faster, and a last wave that is spread over all multiprocessors costs nothing.\n"
      "If latency limits them, they take as long as in a full wave, and the wave costs the share of its empty slots, `idle` of\n"
      "the rule. Counters do not tell the two apart: the achieved occupancy is also below the theoretical occupancy while\n"
      "blocks are replaced, by 5 to 28 % in kernels of 62 waves on an H200.");
}

static void print_causes(void) {
  puts(
      "\n## Causes\n\n| cause | part of the duration | fewer bytes of DRAM | estimates | becomes a part of | advice to callers "
      "of a library |\n"
      "| --- | --- | --- | --- | --- | --- |");
  for (int cause = RL_CAUSE_NONE + 1; cause < RL_CAUSE_COUNT; cause++) {
    const rl_cause *c = &rl_causes[cause];
    printf("| `%s` | %s | %s | %s | %s", c->name, rl_time_part_names[c->part], c->saves_dram ? "yes" : "",
           c->adds ? "add up" : "the largest counts", c->summarizes ? "the largest finding about the same part" : "");
    for (size_t i = 0; i < sizeof c->joins / sizeof *c->joins; i++)
      if (c->joins[i] != RL_CAUSE_NONE) printf("%s%s", i > 0 ? ", else " : "", rl_causes[c->joins[i]].name);
    printf(" | %s |\n", c->caller_advice ? c->caller_advice : "");
  }
}

int main(void) {
  fputs(preface, stdout);
  print_time_limits();
  print_causes();
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++) {
    printf("\n## %s\n", group->title);
    for (const rl_rule *rule = group->rules; rule->id; rule++) print_rule(rule);
  }
  return ferror(stdout) ? 1 : 0;
}
