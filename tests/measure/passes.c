/* Prints how many replay passes CUPTI plans for the counters of a report, for docs/passes.md. No device with CHIP is needed.
 * Plain code has no instructions of the classes in worker/code/instruction_classes.c, so the counters of these classes are 0
 * and need no pass.
 * Usage: counter_passes CHIP           one line for each set and section: counters, counters that the chip has, passes, passes
 *                                      in plain code; for a section also the passes of set `full` without it
 *        counter_passes CHIP SECTION   one line for each counter of the section: hardware counters that it needs, passes of the
 *                                      counter alone, passes that the section saves without it */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/counter_plan.h"
#include "worker/cupti/metric_selection.h"
#include "worker/cupti/raw_counters.h"

enum { MAX_COUNTERS = 4096 };

static const char *chip;

static void fail(const char *context, const rl_error *err) {
  fprintf(stderr, "%s: %s\n", context, err->message);
  exit(1);
}

typedef struct cost {
  size_t counters;
  size_t available; /* counters that the chip has */
  size_t passes;
} cost;

static cost cost_of_names(const char *const *names, size_t count) {
  rl_counter_plan *plan = NULL;
  rl_error err = {0};
  cost found = {.counters = count};
  if (rl_counter_plan_open(chip, names, count, &plan, &err) != 0) fail(chip, &err);
  found.passes = plan->passes;
  for (size_t g = 0; g < plan->group_count; g++) found.available += plan->groups[g].count;
  rl_counter_plan_close(plan);
  return found;
}

static size_t select_counters(uint32_t sections, rl_instruction_classes absent, rl_metric_selection *selection,
                              const char **names) {
  rl_error err = {0};
  const rl_profile_options profile_options = {.sections = sections, .matching_index = RL_ALL_MATCHING_KERNELS};
  if (rl_metric_selection_make(&profile_options, absent, selection, &err) != 0) fail("the catalogue", &err);
  for (size_t i = 0; i < selection->counter_count; i++) names[i] = selection->items[i].name;
  return selection->counter_count;
}

static cost cost_of_sections(uint32_t sections, rl_instruction_classes absent) {
  static const char *names[MAX_COUNTERS];
  rl_metric_selection selection;
  size_t count = select_counters(sections, absent, &selection, names);
  cost found = cost_of_names(names, count);
  rl_metric_selection_clear(&selection);
  return found;
}

/* --- sets and sections ------------------------------------------------------------------------------------------------- */

static void print_set(const rl_section_set *set) {
  cost all = cost_of_sections(set->sections, 0), plain = cost_of_sections(set->sections, rl_all_instruction_classes(chip));
  printf("| `%s` | %zu | %zu | %zu | %zu |\n", set->name, all.counters, all.available, all.passes, plain.passes);
}

static void print_section(size_t index, uint32_t full) {
  uint32_t section = UINT32_C(1) << index;
  cost section_cost = cost_of_sections(section, 0);
  if (section_cost.available == 0) return;
  printf("| %s | %zu | %zu | %zu | %zu | %zu |\n", rl_sections[index].id, section_cost.counters, section_cost.available,
         section_cost.passes, cost_of_sections(section, rl_all_instruction_classes(chip)).passes,
         cost_of_sections(full & ~section, 0).passes);
  fflush(stdout);
}

static int print_sets(void) {
  printf("| set of %s | counters | it has | passes | in plain code |\n| --- | --- | --- | --- | --- |\n", chip);
  for (size_t i = 0; i < rl_section_set_count; i++) print_set(&rl_section_sets[i]);
  printf(
      "\n| section | counters | it has | passes | in plain code | `full` without it |\n| --- | --- | --- | --- | --- | --- |\n");
  for (size_t i = 0; i < rl_section_count; i++) print_section(i, rl_section_sets[rl_section_set_count - 1].sections);
  return 0;
}

/* --- the counters of a section ----------------------------------------------------------------------------------------- */

static size_t hardware_counters(const rl_metric_evaluator *evaluator, const char *name) {
  const char *names[RL_MAX_RAW_COUNTERS];
  size_t count;
  rl_raw_counters_of(evaluator, name, names, &count);
  return count;
}

static int print_counters(const char *id) {
  static const char *names[MAX_COUNTERS], *others[MAX_COUNTERS];
  size_t index = 0;
  while (index < rl_section_count && strcmp(rl_sections[index].id, id) != 0) index++;
  rl_metric_evaluator *evaluator = rl_metric_evaluator_open(chip); /* open until the program ends */
  if (index == rl_section_count || evaluator == NULL) {
    fprintf(stderr, "%s\n", evaluator == NULL ? "the evaluator does not open" : "there is no such section");
    return 2;
  }
  rl_metric_selection selection;
  size_t count = select_counters(UINT32_C(1) << index, 0, &selection, names), whole = cost_of_names(names, count).passes;
  printf("| counter of %s (%zu passes) | of the hardware | passes alone | fewer without it |\n| --- | --- | --- | --- |\n", id,
         whole);
  for (size_t i = 0; i < count; i++) {
    size_t kept = 0;
    for (size_t j = 0; j < count; j++)
      if (j != i) others[kept++] = names[j];
    cost alone = cost_of_names(&names[i], 1);
    if (alone.available == 1)
      printf("| `%s` | %zu | %zu | %td |\n", names[i], hardware_counters(evaluator, names[i]), alone.passes,
             (ptrdiff_t)whole - (ptrdiff_t)cost_of_names(others, kept).passes);
    fflush(stdout);
  }
  rl_metric_selection_clear(&selection);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: %s CHIP [SECTION]\n", argv[0]);
    return 2;
  }
  chip = argv[1];
  return argc == 2 ? print_sets() : print_counters(argv[2]);
}
