/* How a list of metrics is collected on a chip: which exist, which can share a configuration, the configuration images that the
 * range profiler runs by, and the way back from a counter image to values. Needs no device: chips are known by name. */
#ifndef RL_CUPTI_PLAN_H
#define RL_CUPTI_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Metrics that one configuration collects. */
typedef struct rl_group {
  const char **names;
  size_t *metrics; /* index of each name in the list that the plan was made from */
  size_t count;
  uint8_t *image;
  size_t image_size, passes;
  void *host; /* CUpti_Profiler_Host_Object */
} rl_group;

typedef struct rl_plan_reason {
  char text[192];
} rl_plan_reason;

typedef struct rl_counter_plan {
  rl_group *groups;
  size_t group_count;
  rl_plan_reason *reasons;     /* by metric: why it is in no group; "" when it is in one */
  size_t metric_count, passes; /* passes: over all groups */
} rl_counter_plan;

/* known[i]: whether the chip has the metric names[i]. */
int rl_counters_of_chip(const char *chip, const char *const *names, size_t count, bool *known, rl_error *err);
/* names must outlive the plan. A list of which no metric exists on the chip is no error: a plan without groups. */
int rl_counter_plan_open(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan, rl_error *err);
/* The same for counters that are read at an interval while kernels run: one group of a single pass, of those that fit into it
 * with the ones in front of them in the list. */
int rl_sample_plan_open(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan, rl_error *err);
void rl_counter_plan_close(rl_counter_plan *plan);
/* values[i]: of group->names[i] in one range of a decoded counter image; NAN when undefined (0 of 0). */
int rl_group_evaluate(const rl_group *group, const uint8_t *image, size_t image_size, size_t range, double *values,
                      rl_error *err);

/* Making a plan of hundreds of metrics takes a second. Keep it in a file and read it again: for the same chip, driver, CUPTI and
 * list of names. key: what of these the names don't tell. Reading answers -1 for whatever is not exactly such a file; writing
 * replaces the file as a whole. */
int rl_counter_plan_save(const rl_counter_plan *plan, const char *const *names, const char *key, const char *path, rl_error *err);
int rl_counter_plan_load(const char *chip, const char *const *names, size_t count, const char *key, const char *path,
                         rl_counter_plan **plan, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
