/* The timing pass of ceilings, without a profiler: each rate is the best sample of its launch with a warm cache. Sensors are read
 * after each rate. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/statistics.h"
#include "worker/conditions.h"
#include "worker/pass.h"

RL_DEFINE_CLEANUP(free_times, double *, free, NULL)

/* Measures one rate from `count` samples. us: buffer for `count` times. */
static int measure_rate(rl_pass_context *pass, const rl_rate *rate, uint32_t count, double *us, rl_error *err) {
  const rl_sequence single = {rate->name, rate->launch, 1, 1};
  if (!rate->launch) return rl_pass_add_measurement(pass, rate->name, NAN, rate->reason, err);
  if (pass->device->ops->sample(pass->device, &single, RL_CACHE_WARM, count, &pass->observer, us, err) < 0) return -1;
  return rl_pass_add_measurement(pass, rate->name, rate->amount / (rl_summarize_sample(us, count).minimum * 1e-6), NULL, err);
}

int rl_time_rates(rl_pass_context *pass, rl_error *err) {
  const rl_instance *instance = pass->instance;
  rl_conditions conditions = rl_conditions_empty;
  uint32_t warmup, count = 1;
  if (pass->workload->iteration_counts) pass->workload->iteration_counts(pass->params, &warmup, &count);
  RL_CLEANUP(free_times) double *us = malloc(count * sizeof *us);
  if (!us) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the samples");
  pass->iterations_total = (double)instance->rate_count;
  for (size_t i = 0; i < instance->rate_count; i++) {
    rl_pass_enter_phase(pass, "samples", (int64_t)i, (int64_t)instance->rate_count);
    if (measure_rate(pass, &instance->rates[i], count, us, err) < 0) return -1;
    if (instance->rates[i].launch) rl_conditions_read(pass, &conditions);
    rl_pass_iteration_done(pass);
  }
  return rl_conditions_add_measurements(pass, &conditions, err) < 0 || rl_pass_measure_memory(pass, err) < 0 ? -1 : 0;
}
