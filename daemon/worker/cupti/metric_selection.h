/* The raw metrics that profile options ask for, without duplicates, and where each comes from. */
#ifndef RL_CUPTI_METRIC_SELECTION_H
#define RL_CUPTI_METRIC_SELECTION_H

#include "model/catalogue.h"
#include "model/profile.h"
#include "worker/code/instruction_classes.h"

typedef struct rl_selected_metric {
  const char *name;
  rl_metric_origin origin;
  const char *skip_reason; /* why a counter is not collected; NULL: it is */
  double known_value;      /* value of a skipped metric; NAN: unknown */
} rl_selected_metric;

typedef struct rl_metric_selection {
  rl_selected_metric *items; /* the counters to collect come first */
  size_t count, counter_count;
  char *name_text; /* memory of the names that come from the profile options */
} rl_metric_selection;

/* Selects the metrics of the sections in the profile options and those that the options name. absent_classes: classes of
 * instructions that no profiled kernel has; counters that only they raise are skipped with value 0, unless the options name them.
 */
int rl_metric_selection_make(const rl_profile_options *profile_options, rl_instruction_classes absent_classes,
                             rl_metric_selection *selection, rl_error *err);
/* Sets the known value of skipped counters that the chip lacks to NAN, with that as the reason. */
int rl_metric_selection_limit_to_chip(rl_metric_selection *selection, const char *chip, rl_error *err);
void rl_metric_selection_clear(rl_metric_selection *selection);

#endif
