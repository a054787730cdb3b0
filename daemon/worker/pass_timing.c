/* The timing pass of epochs, without a profiler. Warm-up epochs train; then the instance is reset, so that the first measured
 * epoch starts from the initial weights. Evaluation follows each epoch and is timed separately. The file also measures memory and
 * launches per step for all timing passes, and selects the timing pass of a workload (rl_timing_run). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "worker/other_processes.h"
#include "worker/pass.h"

/* Writes epoch->unavailable: a JSON object with the reason of each NAN. */
static int set_unavailable_reasons(rl_epoch *epoch, const char *sensors_reason, bool evaluated, rl_error *err) {
  static const char *const sensor_fields[] = {"sm_clock_before_mhz", "sm_clock_after_mhz", "memory_clock_mhz", "temperature_c",
                                              "power_w"};
  static const char *const evaluation_fields[] = {"evaluation_ms", "test_loss", "test_accuracy_ratio"};
  static const char *const loss_scale_fields[] = {"loss_scale"}, *const skipped_fields[] = {"skipped_steps"};
  const struct {
    const char *const *fields;
    size_t count;
    const char *reason;
  } groups[] = {{sensor_fields, sizeof sensor_fields / sizeof *sensor_fields, sensors_reason},
                {evaluation_fields, sizeof evaluation_fields / sizeof *evaluation_fields,
                 evaluated ? "not finite" : "the workload has no evaluation"},
                {loss_scale_fields, sizeof loss_scale_fields / sizeof *loss_scale_fields, "no loss scaling"},
                {skipped_fields, sizeof skipped_fields / sizeof *skipped_fields, "the engine does not count skipped steps"}};
  cJSON *object = cJSON_CreateObject();
  for (const rl_field *field = rl_epoch_fields; object && field->name; field++) {
    const char *reason = "not finite";
    if (field->type != RL_FIELD_NULLABLE_REAL || !isnan(*(const double *)((const char *)epoch + field->offset))) continue;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
      for (size_t i = 0; i < groups[g].count; i++)
        if (strcmp(groups[g].fields[i], field->name) == 0) reason = groups[g].reason;
    cJSON_AddStringToObject(object, field->name, reason);
  }
  bool printed = object && cJSON_PrintPreallocated(object, epoch->unavailable, (int)sizeof epoch->unavailable, false);
  cJSON_Delete(object);
  return printed ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "the reasons for an epoch's missing values do not fit");
}

static double finite_or_nan(double value) { return isfinite(value) ? value : NAN; }

/* Joins two comma-separated lists, each word once. */
static void join_reasons(const char *before, const char *after, char *joined, size_t size) {
  char reason[64];
  snprintf(joined, size, "%s", before);
  for (const char *word = after; *word;) {
    size_t length = strcspn(word, ",");
    snprintf(reason, sizeof reason, "%.*s", (int)length, word);
    if (!strstr(joined, reason)) {
      size_t used = strlen(joined);
      snprintf(joined + used, size - used, "%s%s", used ? "," : "", reason);
    }
    word += length + (word[length] == ',');
  }
}

static bool has_evaluation(const rl_pass_context *pass) { return pass->instance->evaluation.sequence_count > 0; }

static int evaluate(rl_pass_context *pass, rl_epoch *epoch, int64_t epochs, rl_error *err) {
  rl_elapsed elapsed;
  epoch->evaluation_ms = NAN;
  if (!has_evaluation(pass)) return 0;
  rl_pass_enter_phase(pass, "evaluate", epoch->epoch, epochs);
  if (rl_pass_run_evaluation(pass, &elapsed, err) < 0) return -1;
  epoch->evaluation_ms = elapsed.device_ms;
  return 0;
}

static void update_progress(rl_pass_context *pass, const rl_epoch *epoch) {
  pass->current_progress.train_loss = epoch->train_loss;
  pass->current_progress.test_accuracy_ratio = epoch->test_accuracy_ratio;
  pass->current_progress.images_per_s = epoch->images / (epoch->device_ms * 1e-3);
}

/* *skipped_steps: number of steps that were skipped since the instance was reset. */
static int time_epoch(rl_pass_context *pass, int64_t index, int64_t count, bool warmup, double *skipped_steps, rl_error *err) {
  rl_epoch epoch = {.epoch = index, .warmup = warmup};
  rl_sensor_reading before, after;
  rl_elapsed elapsed;
  rl_iteration_results results;
  rl_pass_enter_phase(pass, warmup ? "warmup" : "epoch", index, count);
  rl_sensors_read(pass->sensors, &before);
  if (rl_pass_run_iteration(pass, &pass->observer, &elapsed, err) < 0) return -1;
  rl_sensors_read(pass->sensors, &after);
  rl_pass_iteration_done(pass);
  if (evaluate(pass, &epoch, count, err) < 0 || pass->instance->ops->read_results(pass->instance, &results, err) < 0) return -1;
  epoch.device_ms = elapsed.device_ms;
  epoch.host_ms = elapsed.host_ms;
  epoch.images = finite_or_nan(results.images);
  epoch.train_loss = finite_or_nan(results.train_loss);
  epoch.test_loss = has_evaluation(pass) ? finite_or_nan(results.test_loss) : NAN;
  epoch.test_accuracy_ratio = has_evaluation(pass) ? finite_or_nan(results.test_accuracy_ratio) : NAN;
  epoch.loss_scale = finite_or_nan(results.loss_scale);
  epoch.skipped_steps = finite_or_nan(results.skipped_steps - *skipped_steps);
  *skipped_steps = results.skipped_steps;
  epoch.sm_clock_before_mhz = before.sm_clock_mhz;
  epoch.sm_clock_after_mhz = after.sm_clock_mhz;
  epoch.memory_clock_mhz = after.memory_clock_mhz;
  epoch.temperature_c = after.temperature_c;
  epoch.power_w = after.power_w;
  join_reasons(before.throttle_reasons, after.throttle_reasons, epoch.throttle_reasons, sizeof epoch.throttle_reasons);
  if (set_unavailable_reasons(&epoch, after.reason[0] ? after.reason : before.reason, has_evaluation(pass), err) < 0) return -1;
  update_progress(pass, &epoch);
  return rl_records_add(pass->records, RL_RECORD_EPOCH, &epoch, 1, err);
}

int rl_pass_measure_memory(rl_pass_context *pass, rl_error *err) {
  static const char *const names[RL_MEMORY_PURPOSE_COUNT] = {"memory_dataset_bytes", "memory_weights_bytes",
                                                             "memory_activations_bytes", "memory_workspace_bytes"};
  rl_memory_usage usage = rl_pass_memory_usage(pass);
  if (rl_pass_add_measurement(pass, "peak_memory_bytes", (double)usage.peak_total_bytes, NULL, err) < 0) return -1;
  for (int p = 0; p < RL_MEMORY_PURPOSE_COUNT; p++)
    if (rl_pass_add_measurement(pass, names[p], (double)usage.peak_bytes[p], NULL, err) < 0) return -1;
  rl_sensor_reading reading;
  rl_sensors_read(pass->sensors, &reading);
  const char *reason = pass->device->kind == RL_DEVICE_CPU ? "the CPU has no device memory"
                       : reading.reason[0]                 ? reading.reason
                                                           : "device memory was not read before the device was opened";
  double context_bytes = rl_pass_cuda_context_bytes(pass);
  bool shrank = context_bytes < 0; /* another process freed memory during the request */
  const char *no_context_reason = rl_pass_no_context_bytes_reason(pass);
  if (isnan(reading.memory_used_bytes) || no_context_reason[0] == '\0') no_context_reason = reason;
  if (shrank) no_context_reason = "another process freed device memory during the run";
  struct rusage process_usage;
  getrusage(RUSAGE_SELF, &process_usage);
  const rl_named_value totals[] = {{"device_memory_before_bytes", rl_pass_used_bytes_before_open(pass), reason},
                                   {"device_memory_after_bytes", reading.memory_used_bytes, reason},
                                   {"context_memory_bytes", shrank ? NAN : context_bytes, no_context_reason},
                                   {"peak_rss_bytes", (double)process_usage.ru_maxrss * 1024, NULL}};
  return rl_pass_add_measurements(pass, totals, sizeof totals / sizeof *totals, err);
}

int rl_pass_measure_launches_per_step(rl_pass_context *pass, rl_error *err) {
  const rl_instance *instance = pass->instance;
  rl_sequence step = instance->iteration.sequences[instance->step_sequence];
  rl_sequence_list before_step = {
      .name = instance->iteration.name, .sequences = instance->iteration.sequences, .sequence_count = instance->step_sequence};
  rl_sequence_list once = {.name = step.name, .sequences = &step, .sequence_count = 1};
  rl_observer without_progress = {.context = pass->observer.context, .cancelled = pass->observer.cancelled};
  rl_elapsed elapsed;
  step.repeat = 1;
  step.restore_launch = NULL; /* the launch that restores the inputs is not part of the step */
  if (pass->device->ops->run_eager(pass->device, &before_step, &without_progress, &elapsed, err) < 0 ||
      pass->device->ops->run_eager(pass->device, &once, &without_progress, &elapsed, err) < 0)
    return -1;
  const uint64_t steps = instance->optimizer_steps_per_repeat ? instance->optimizer_steps_per_repeat : 1;
  return rl_pass_add_measurement(pass, "launches_per_step", (double)elapsed.stream_operations / (double)steps, NULL, err);
}

int rl_time_epochs(rl_pass_context *pass, rl_error *err) {
  uint32_t warmup = 1, measured = 1;
  if (pass->workload->iteration_counts) pass->workload->iteration_counts(pass->params, &warmup, &measured);
  const int64_t count = (int64_t)warmup + measured;
  pass->iterations_total = (double)count;
  rl_pass_enter_phase(pass, "prepare", -1, count);
  double skipped_steps = 0;
  for (int64_t i = 0; i < count; i++) {
    bool first = i == 0 || i == (int64_t)warmup;
    if (first && pass->instance->ops->reset(pass->instance, err) < 0) return -1;
    if (first) skipped_steps = 0;
    if (time_epoch(pass, i, count, i < (int64_t)warmup, &skipped_steps, err) < 0) return -1;
  }
  return rl_pass_measure_memory(pass, err) < 0 || rl_pass_measure_launches_per_step(pass, err) < 0 ? -1 : 0;
}

rl_outcome rl_timing_run(rl_pass_context *pass, rl_error *err) {
  static int (*const timers[])(rl_pass_context *, rl_error *) = {
      [RL_TIMING_EPOCHS] = rl_time_epochs, [RL_TIMING_LAUNCHES] = rl_time_launches, [RL_TIMING_RATES] = rl_time_rates};
  rl_other_processes before, after;
  rl_sensors_read_other_processes(pass->sensors, &before);
  int rc = timers[pass->workload->timing_mode](pass, err);
  rl_sensors_read_other_processes(pass->sensors, &after);
  if (rc == 0) rc = rl_other_processes_add_measurements(pass, &before, &after, err);
  return rl_outcome_of_error(rc, err);
}
