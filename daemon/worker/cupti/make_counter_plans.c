/* make_counter_plans FOLDER CHIP: the build runs this program, on a machine with or without a GPU. For each metric set, it saves
 * two counter plans of the chip in the existing FOLDER: a plan for code whose instructions are unknown, and a plan for code
 * without the special instructions that worker/code/instruction_classes.c lists. On GH100, on which packed passes were measured,
 * the second one is packed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/counter_packing.h"
#include "worker/cupti/metric_selection.h"
#include "worker/cupti/plan_files.h"

static const rl_instruction_classes no_classes = 0;

/* Returns the names of the counters, which the caller frees; NULL: out of memory. */
static const char **list_counters(const rl_metric_selection *selection) {
  const char **names = calloc(selection->counter_count + 1, sizeof *names);
  for (size_t i = 0; names != NULL && i < selection->counter_count; i++) names[i] = selection->items[i].name;
  return names;
}

static int make_plan(const char *folder, const char *chip, int set, rl_instruction_classes absent_classes, rl_error *err) {
  const rl_profile_options requested = {.matching_index = RL_ALL_MATCHING_KERNELS},
                           options = rl_profile_options_resolve(set, &requested);
  rl_metric_selection selection;
  rl_counter_plan *plan = NULL;
  if (rl_metric_selection_make(&options, absent_classes, &selection, err) < 0) return -1;
  const char **names = list_counters(&selection);
  int result = names == NULL ? rl_fail(err, RL_ERRNO, 0, "out of memory")
                             : rl_counter_plan_open(chip, names, selection.counter_count, &plan, err);
  if (result == 0 && absent_classes != no_classes && strcmp(chip, "GH100") == 0)
    result = rl_counter_packing_apply(chip, &selection, plan, err);
  if (result == 0) result = rl_plan_files_save(folder, chip, names, plan, err);
  rl_counter_plan_close(plan);
  free(names);
  rl_metric_selection_clear(&selection);
  return result;
}

int main(int argc, char **argv) {
  rl_error err = {0};
  if (argc != 3) {
    fprintf(stderr, "usage: %s FOLDER CHIP\n", argv[0]);
    return EXIT_FAILURE;
  }
  for (int set = 0; rl_profile_set_names[set] != NULL; set++)
    if (make_plan(argv[1], argv[2], set, no_classes, &err) < 0 ||
        make_plan(argv[1], argv[2], set, rl_all_instruction_classes(argv[2]), &err) < 0) {
      fprintf(stderr, "%s: %s\n", argv[2], err.message);
      return EXIT_FAILURE;
    }
  return EXIT_SUCCESS;
}
