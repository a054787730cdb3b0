/* The thread writes only to the values, the result and the error, which the caller reads after the wait. */
#include "worker/cupti/counter_evaluation.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct counter_image {
  uint8_t *bytes;
  size_t size;
} counter_image;

struct rl_counter_evaluation {
  const rl_counter_plan *plan;
  rl_kernel_ranges ranges;
  counter_image *images; /* of each group */
  double *values;
  pthread_t thread;
  bool running; /* the thread has not been joined */
  int result;
  rl_error error;
};

int rl_counter_evaluation_open(const rl_counter_plan *plan, const rl_kernel_ranges *ranges, rl_counter_evaluation **evaluation,
                               rl_error *err) {
  const size_t value_count = ranges->count * plan->metric_count;
  rl_counter_evaluation *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for counters");
  *created = (rl_counter_evaluation){.plan = plan,
                                     .ranges = *ranges,
                                     .images = calloc(plan->group_count + 1, sizeof *created->images),
                                     .values = calloc(value_count + 1, sizeof *created->values)};
  if (created->images == NULL || created->values == NULL) {
    rl_counter_evaluation_close(created);
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for counters");
  }
  for (size_t i = 0; i < value_count; i++) created->values[i] = NAN;
  *evaluation = created;
  return 0;
}

int rl_counter_evaluation_add(rl_counter_evaluation *evaluation, size_t group, const uint8_t *image, size_t size, rl_error *err) {
  counter_image *copy = &evaluation->images[group];
  copy->bytes = malloc(size);
  if (copy->bytes == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for counters");
  memcpy(copy->bytes, image, size);
  copy->size = size;
  return 0;
}

/* Evaluates a group for one kernel. group_values: space for the group's values. */
static int evaluate_kernel(rl_counter_evaluation *evaluation, size_t group_index, size_t kernel, double *group_values) {
  const rl_counter_group *group = &evaluation->plan->groups[group_index];
  const counter_image *image = &evaluation->images[group_index];
  double *values = evaluation->values + kernel * evaluation->plan->metric_count;
  if (rl_counter_group_evaluate(group, image->bytes, image->size, evaluation->ranges.range_of_kernel[kernel], group_values,
                                &evaluation->error) < 0)
    return -1;
  for (size_t m = 0; m < group->count; m++) values[group->metrics[m]] = group_values[m];
  return 0;
}

static int evaluate(rl_counter_evaluation *evaluation) {
  const rl_counter_plan *plan = evaluation->plan;
  double *group_values = calloc(plan->metric_count + 1, sizeof *group_values);
  if (group_values == NULL) return rl_fail(&evaluation->error, RL_ERRNO, ENOMEM, "out of memory for counters");
  int result = 0;
  for (size_t g = 0; g < plan->group_count; g++)
    for (size_t k = 0; k < evaluation->ranges.count && result == 0; k++)
      if (evaluation->ranges.selected[k]) result = evaluate_kernel(evaluation, g, k, group_values);
  free(group_values);
  return result;
}

static void *run_thread(void *context) {
  rl_counter_evaluation *evaluation = context;
  evaluation->result = evaluate(evaluation);
  return NULL;
}

void rl_counter_evaluation_start(rl_counter_evaluation *evaluation) {
  evaluation->running = pthread_create(&evaluation->thread, NULL, run_thread, evaluation) == 0;
  if (!evaluation->running) run_thread(evaluation);
}

int rl_counter_evaluation_wait(rl_counter_evaluation *evaluation, rl_error *err) {
  if (evaluation->running) pthread_join(evaluation->thread, NULL);
  evaluation->running = false;
  if (evaluation->result < 0 && err != NULL) *err = evaluation->error;
  return evaluation->result;
}

const double *rl_counter_evaluation_values(const rl_counter_evaluation *evaluation) { return evaluation->values; }

void rl_counter_evaluation_close(rl_counter_evaluation *evaluation) {
  if (evaluation == NULL) return;
  (void)rl_counter_evaluation_wait(evaluation, NULL);
  for (size_t g = 0; evaluation->images != NULL && g < evaluation->plan->group_count; g++) free(evaluation->images[g].bytes);
  free(evaluation->images);
  free(evaluation->values);
  free(evaluation);
}
