/* Evaluates the counter data of a plan in a thread, while the calling thread uses the device: the evaluation takes 5 ms for each
 * kernel of the set `full`. CUPTI's host functions may not be called meanwhile, because it is not known whether they can run in
 * two threads at once. */
#ifndef RL_CUPTI_COUNTER_EVALUATION_H
#define RL_CUPTI_COUNTER_EVALUATION_H

#include "worker/cupti/counter_plan.h"

typedef struct rl_counter_evaluation rl_counter_evaluation;

/* The range of counter data of each kernel of a step. Owns nothing; everything must live until the evaluation is closed. */
typedef struct rl_kernel_ranges {
  const size_t *range_of_kernel;
  const bool *selected; /* for each of the count kernels: whether it is evaluated */
  size_t count;
} rl_kernel_ranges;

/* The plan and what `ranges` points to must live until close. */
int rl_counter_evaluation_open(const rl_counter_plan *plan, const rl_kernel_ranges *ranges, rl_counter_evaluation **evaluation,
                               rl_error *err);
/* Copies the counter data image of a group of the plan. */
int rl_counter_evaluation_add(rl_counter_evaluation *evaluation, size_t group, const uint8_t *image, size_t size, rl_error *err);
/* Starts the evaluation of all groups. */
void rl_counter_evaluation_start(rl_counter_evaluation *evaluation);
/* Waits for the end of the evaluation. Returns its result, also when it is called again. */
int rl_counter_evaluation_wait(rl_counter_evaluation *evaluation, rl_error *err);
/* Returns values[kernel * plan->metric_count + metric], after the wait: NAN for kernels that are not selected, and for metrics
 * that no group contains. */
const double *rl_counter_evaluation_values(const rl_counter_evaluation *evaluation);
void rl_counter_evaluation_close(rl_counter_evaluation *evaluation); /* waits; NULL is allowed */

#endif
