/* Plans how a list of metrics is collected on a chip: which metrics the chip has, which of them can share a configuration, the
 * configuration images for CUPTI's range profiler, and the evaluation of a counter data image. Needs no device: a chip is given
 * by its name ("GH100"). */
#ifndef RL_CUPTI_COUNTER_PLAN_H
#define RL_CUPTI_COUNTER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Metrics that one configuration collects. */
typedef struct rl_counter_group {
  const char **names;
  size_t *metrics; /* index of each name in the list of names from which the plan was made */
  size_t count;
  uint8_t *config_image;
  size_t config_image_size, passes;
  void *host; /* CUpti_Profiler_Host_Object */
} rl_counter_group;

typedef struct rl_missing_reason {
  char text[192];
} rl_missing_reason;

typedef struct rl_counter_plan {
  rl_counter_group *groups;
  size_t group_count;
  rl_missing_reason *missing_reasons; /* missing_reasons[metric]: why no group contains it; "": a group contains it */
  size_t metric_count, passes;        /* passes: sum over all groups */
} rl_counter_plan;

/* Sets known[i] to true if the chip has the metric names[i], else to false. */
int rl_chip_has_metrics(const char *chip, const char *const *names, size_t count, bool *known, rl_error *err);
/* Makes a plan for the range profiler. The strings of names must outlive the plan. If the chip has none of the metrics, the plan
 * has no groups. Returns -1 with RL_CUPTI when CUPTI does not know the chip. */
int rl_counter_plan_open(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan, rl_error *err);
/* Makes a plan for PM sampling: at most one group, which needs a single pass. Takes the metrics in order, and skips each metric
 * that does not fit into one pass with the metrics taken before. */
int rl_counter_plan_open_for_sampling(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan,
                                      rl_error *err);
void rl_counter_plan_close(rl_counter_plan *plan); /* NULL is allowed */
/* Evaluates one range of a decoded counter data image: values[i] is the value of group->names[i], NAN when it is 0/0. */
int rl_counter_group_evaluate(const rl_counter_group *group, const uint8_t *image, size_t image_size, size_t range,
                              double *values, rl_error *err);

/* Save and load a plan. A file is valid for the same names and the same `key` (chip and version of CUPTI), on machines of the
 * same byte order. Load returns -1 if the file has other names or another key, or is damaged. Save replaces the file
 * atomically. */
int rl_counter_plan_save(const rl_counter_plan *plan, const char *const *names, const char *key, const char *path, rl_error *err);
int rl_counter_plan_load(const char *chip, const char *const *names, size_t count, const char *key, const char *path,
                         rl_counter_plan **plan, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
