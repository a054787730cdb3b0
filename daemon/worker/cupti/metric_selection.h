/* The raw metrics that profile options select, without duplicates, and the origin of each. */
#ifndef RL_CUPTI_METRIC_SELECTION_H
#define RL_CUPTI_METRIC_SELECTION_H

#include "model/catalogue.h"
#include "model/profile.h"
#include "worker/code/derived_counters.h"

typedef struct rl_selected_metric {
  const char *name;
  rl_metric_origin origin;
  const char *skip_reason; /* reason why a counter is not collected; NULL: it is collected */
  double known_value;      /* value of a skipped metric; NAN: unknown */
  /* Collected counters whose sum is the value of this skipped metric, the first added_term_count with a positive sign, the others
   * with a negative sign. */
  const char *terms[RL_MAX_TERMS];
  size_t term_count, added_term_count;
} rl_selected_metric;

typedef struct rl_metric_selection {
  rl_selected_metric *items; /* the counters to collect come first */
  size_t count, counter_count;
  char *name_text; /* holds the names that come from the profile options */
} rl_metric_selection;

/* Selects the metrics of the sections in the profile options, and the metrics that the options name. absent_classes: classes of
 * instructions that no profiled kernel has. Counters that only these instructions increment are skipped with the value 0, and
 * counters that are sums of collected ones are skipped too, unless the options name them. */
int rl_metric_selection_make(const rl_profile_options *profile_options, rl_instruction_classes absent_classes,
                             rl_metric_selection *selection, rl_error *err);
/* Sets known_value of skipped counters that the chip does not have to NAN, clears their terms, and sets their skip_reason
 * accordingly. */
int rl_metric_selection_limit_to_chip(rl_metric_selection *selection, const char *chip, rl_error *err);
void rl_metric_selection_clear(rl_metric_selection *selection);

#endif
