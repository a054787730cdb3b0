/* Prints docs/rules.md: rules_page > docs/rules.md */
#include <stdio.h>

#include "analyze/rules.h"

static const char preface[] =
    "# Rules\n\n"
    "<!-- Printed by rules_page from daemon/analyze/rules_*.c; edit there. -->\n"
    "\n"
    "What the report of a kernel says about its numbers. A rule reads metrics (all of them must be known), fires where\n"
    "its condition is true, and says what it saw with the numbers in it; every finding carries the value of each metric\n"
    "that was read. Conditions and estimates are shown here as they are computed.\n"
    "\n"
    "An estimate is the part of the time, in percent, that would go away at most if what the rule speaks of were perfect.\n"
    "A *global* estimate is of the kernel's whole time; a *local* one of the part that the rule looks at, which need not\n"
    "be what the kernel waits for. Estimates do not add up.\n"
    "\n"
    "An *optimization* can be acted upon, a *warning* says that something is not as it should be, an *info* says what the\n"
    "kernel is.\n"
    "\n"
    "Names that begin with `activity__` are measurements of that pass ([schema.md](schema.md)); `model__bytes` is what the\n"
    "workload must move at least.\n";

static void print_names(const rl_rule *rule) {
  for (const rl_rule_input *input = rule->inputs; input->name; input++) printf("- `%s`: `%s`\n", input->name, input->metric);
  for (const rl_rule_term *term = rule->terms; term->name; term++) printf("- `%s` = `%s`\n", term->name, term->expression);
}

static void print_rule(const rl_rule *rule) {
  printf("\n### %s\n\n`%s`, version %d, %s, section %s\n\n", rule->title, rule->id, rule->version,
         rl_finding_kind_names[rule->kind], rule->section);
  print_names(rule);
  printf("\nFires where `%s`.", rule->when);
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
