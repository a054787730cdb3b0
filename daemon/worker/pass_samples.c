/* The timing pass of single kernels, without a profiler: samples with a cold and with a warm cache. First the result is compared
 * with its reference; a wrong result fails the pass.
 *
 *   time_cold_us_median, time_cold_us_min, time_warm_us_median, time_warm_us_min   median and minimum of the samples
 *   time_cold_us_spread_ratio, time_warm_us_spread_ratio   spread of the samples (rl_sample_summary)
 *   achieved_bytes_per_s   compulsory bytes / time_cold_us_median
 *   relative_error, relative_error_limit   error of the result, and the largest accepted error
 *   checked_ratio   share of the result that was compared with the reference
 *   checked_launches   number of launches, timed and before the timing, whose buffers were checked; a wrong launch
 *                      fails the pass
 * Sensors are read after the samples of each mode (cold, warm). Measurements that the engine took when it opened the instance are
 * added. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/statistics.h"
#include "worker/conditions.h"
#include "worker/pass.h"

static const struct {
  rl_cache_state cache;
  const char *median, *minimum, *spread;
} modes[RL_SAMPLE_MODE_COUNT] = {
    [RL_SAMPLE_COLD] = {RL_CACHE_COLD, "time_cold_us_median", "time_cold_us_min", "time_cold_us_spread_ratio"},
    [RL_SAMPLE_WARM] = {RL_CACHE_WARM, "time_warm_us_median", "time_warm_us_min", "time_warm_us_spread_ratio"}};
static const char no_samples_reason[] = "this device cannot time single launches";

RL_DEFINE_CLEANUP(free_times, double *, free, NULL)

static int check_and_add_result(rl_pass_context *pass, rl_error *err) {
  int (*compare)(rl_instance *, rl_check *, rl_error *) = pass->instance->ops->check;
  rl_check check = {NAN, NAN, NAN};
  rl_pass_enter_phase(pass, "evaluate", -1, -1);
  if (compare && compare(pass->instance, &check, err) < 0) return -1;
  if (compare && !(check.relative_error <= check.tolerance))
    return rl_fail(err, RL_ERRNO, EDOM, "the result is wrong: its relative error of %.3g is more than %.3g", check.relative_error,
                   check.tolerance);
  const char *reason = "the workload has no reference";
  const rl_named_value values[] = {{"relative_error", check.relative_error, reason},
                                   {"relative_error_limit", check.tolerance, reason},
                                   {"checked_ratio", check.checked_ratio, reason}};
  return rl_pass_add_measurements(pass, values, sizeof values / sizeof *values, err);
}

static int add_open_measurements(rl_pass_context *pass, rl_error *err) {
  const rl_instance *instance = pass->instance;
  for (const rl_open_measurement *measurement = instance->open_measurements;
       measurement < instance->open_measurements + instance->open_measurement_count; measurement++)
    if (rl_pass_add_measurement(pass, measurement->name, measurement->value, measurement->reason, err) < 0) return -1;
  return 0;
}

/* Takes `count` samples of one mode (cold or warm cache), adds them to the records and summarizes them. us: buffer for `count`
 * times. */
static int take_samples(rl_pass_context *pass, int mode, uint32_t count, double *us, rl_sample_summary *summary, rl_error *err) {
  const rl_instance *instance = pass->instance;
  const rl_sequence *step = &instance->iteration.sequences[instance->step_sequence];
  rl_pass_enter_phase(pass, "samples", mode, RL_SAMPLE_MODE_COUNT);
  if (pass->device->ops->sample(pass->device, step, modes[mode].cache, count, &pass->observer, us, err) < 0) return -1;
  for (uint32_t i = 0; i < count; i++) {
    rl_sample sample = {.mode = mode, .ordinal = i, .device_us = us[i]};
    if (rl_records_add(pass->records, RL_RECORD_SAMPLE, &sample, 1, err) < 0) return -1;
  }
  *summary = rl_summarize_sample(us, count);
  rl_pass_iteration_done(pass);
  return 0;
}

/* Adds to *checked the number of the mode's launches whose buffers were checked. Fails if one of them was wrong. */
static int check_launches(rl_pass_context *pass, double *checked, rl_error *err) {
  uint64_t count;
  if (!pass->instance->ops->read_launch_checks) return 0;
  if (pass->instance->ops->read_launch_checks(pass->instance, &count, err) < 0) return -1;
  *checked = isnan(*checked) ? (double)count : *checked + (double)count;
  return 0;
}

int rl_time_launches(rl_pass_context *pass, rl_error *err) {
  uint32_t warmup, count = 1;
  double cold_us = NAN, checked_launches = NAN;
  rl_conditions conditions = rl_conditions_empty;
  if (pass->workload->iteration_counts) pass->workload->iteration_counts(pass->params, &warmup, &count);
  RL_CLEANUP(free_times) double *us = malloc(count * sizeof *us);
  if (!us) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the samples");
  pass->iterations_total = RL_SAMPLE_MODE_COUNT;
  if (pass->instance->ops->reset(pass->instance, err) < 0 || check_and_add_result(pass, err) < 0) return -1;
  for (int mode = 0; mode < RL_SAMPLE_MODE_COUNT; mode++) {
    rl_sample_summary times = {.minimum = NAN, .median = NAN, .spread_ratio = NAN};
    if (pass->device->ops->sample &&
        (take_samples(pass, mode, count, us, &times, err) < 0 || check_launches(pass, &checked_launches, err) < 0))
      return -1;
    rl_conditions_read(pass, &conditions);
    const rl_named_value values[] = {{modes[mode].median, times.median, no_samples_reason},
                                     {modes[mode].minimum, times.minimum, no_samples_reason},
                                     {modes[mode].spread, times.spread_ratio, no_samples_reason}};
    if (rl_pass_add_measurements(pass, values, sizeof values / sizeof *values, err) < 0) return -1;
    if (mode == RL_SAMPLE_COLD) cold_us = times.median;
  }
  const double bytes = pass->records->metadata.floor_bytes;
  const char *no_rate =
      isnan(bytes) ? "the workload does not state its compulsory bytes" : "no sample was taken with a cold cache";
  return add_open_measurements(pass, err) < 0 ||
                 rl_pass_add_measurement(pass, "checked_launches", checked_launches,
                                         "the engine checks the result once, before the timed launches", err) < 0 ||
                 rl_conditions_add_measurements(pass, &conditions, err) < 0 ||
                 rl_pass_add_measurement(pass, "achieved_bytes_per_s", cold_us > 0 ? bytes / (cold_us * 1e-6) : NAN, no_rate,
                                         err) < 0 ||
                 rl_pass_measure_memory(pass, err) < 0 || pass->instance->ops->reset(pass->instance, err) < 0 ||
                 rl_pass_measure_launches_per_step(pass, err) < 0
             ? -1
             : 0;
}
