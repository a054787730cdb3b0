/* Prints docs/rules.md: build/dev/tests/rules_page > docs/rules.md */
#include <stdio.h>

#include "analyze/rules.h"

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
    "is about, which may not be the part that limits the kernel. Estimates must not be added.\n"
    "A report lists global estimates first, the largest first, then local ones, then findings without an estimate.\n"
    "\n"
    "There are three kinds of findings. An *optimization* recommends a change, a *warning* reports a problem, and an\n"
    "*info* describes the kernel.\n"
    "\n"
    "Metrics that begin with `activity__` are measurements of the activity pass ([schema.md](schema.md)). `model__bytes` is\n"
    "the number of bytes that the workload must at least move.\n"
    "\n"
    "The last group reads the time classes of a run's trace (`GET /runs/{id}/timeline/findings`, [timeline.md](timeline.md)).\n"
    "Its estimates are of different parts of the idle time, so they can be added.\n";

static void print_names(const rl_rule *rule) {
  for (const rl_rule_input *input = rule->inputs; input->name; input++) printf("- `%s`: `%s`\n", input->name, input->metric);
  for (const rl_rule_term *term = rule->terms; term->name; term++) printf("- `%s` = `%s`\n", term->name, term->expression);
}

static void print_rule(const rl_rule *rule) {
  printf("\n### %s\n\n`%s`, version %d, %s, section %s\n\n", rule->title, rule->id, rule->version,
         rl_finding_kind_names[rule->kind], rule->section);
  print_names(rule);
  printf("\nCondition: `%s`.", rule->condition);
  if (rule->speedup) printf(" Estimate (%s): `%s`.", rule->scope == RL_SPEEDUP_GLOBAL ? "global" : "local", rule->speedup);
  printf("\n\n> %s\n", rule->message);
}

int main(void) {
  fputs(preface, stdout);
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++) {
    printf("\n## %s\n", group->title);
    for (const rl_rule *rule = group->rules; rule->id; rule++) print_rule(rule);
  }
  return ferror(stdout) ? 1 : 0;
}
