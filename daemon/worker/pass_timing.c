/* How long an iteration takes, with no profiler attached. Warm-up iterations train too; then everything is put back, so that the
 * first measured one starts from the initial weights and "after N epochs" means N measured ones. Each is followed by the
 * evaluation, which has its own time. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "worker/pass.h"

/* Reasons as a JSON object: one member for each measurement of the epoch that is NAN. */
static int explain(rl_epoch *epoch, const char *sensors_reason, bool evaluated, rl_error *err) {
  static const char *const sensed[] = {"sm_clock_before_mhz", "sm_clock_after_mhz", "memory_clock_mhz", "temperature_c",
                                       "power_w"};
  static const char *const of_evaluation[] = {"evaluation_ms", "test_loss", "test_accuracy_ratio"};
  static const char *const of_scaling[] = {"loss_scale", "skipped_steps"};
  const struct {
    const char *const *fields;
    size_t count;
    const char *reason;
  } groups[] = {
      {sensed, sizeof sensed / sizeof *sensed, sensors_reason},
      {of_evaluation, sizeof of_evaluation / sizeof *of_evaluation, evaluated ? "not finite" : "the workload has no evaluation"},
      {of_scaling, sizeof of_scaling / sizeof *of_scaling, "no loss scaling"}};
  cJSON *object = cJSON_CreateObject();
  for (const rl_field *field = rl_epoch_fields; object && field->name; field++) {
    const char *reason = "not finite";
    if (field->type != RL_FIELD_MEASURE || !isnan(*(const double *)((const char *)epoch + field->offset))) continue;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
      for (size_t i = 0; i < groups[g].count; i++)
        if (strcmp(groups[g].fields[i], field->name) == 0) reason = groups[g].reason;
    cJSON_AddStringToObject(object, field->name, reason);
  }
  bool printed = object && cJSON_PrintPreallocated(object, epoch->unavailable, (int)sizeof epoch->unavailable, false);
  cJSON_Delete(object);
  return printed ? 0 : rl_fail(err, RL_SYS, ENOMEM, "the reasons of an epoch do not fit");
}

static double finite_or_nan(double value) { return isfinite(value) ? value : NAN; }

/* Names of either text, each once. */
static void join_reasons(const char *before, const char *after, char *joined, size_t size) {
  char word[64];
  snprintf(joined, size, "%s", before);
  for (const char *at = after; *at;) {
    size_t length = strcspn(at, ",");
    snprintf(word, sizeof word, "%.*s", (int)length, at);
    if (!strstr(joined, word)) {
      size_t used = strlen(joined);
      snprintf(joined + used, size - used, "%s%s", used ? "," : "", word);
    }
    at += length + (at[length] == ',');
  }
}

static bool evaluates(const rl_session *session) { return session->instance->evaluation.sequence_count > 0; }

static int evaluate(rl_session *session, rl_epoch *epoch, int64_t epochs, rl_error *err) {
  rl_elapsed elapsed;
  epoch->evaluation_ms = NAN;
  if (!evaluates(session)) return 0;
  rl_pass_enter(session, "evaluate", epoch->epoch, epochs);
  if (rl_session_evaluate(session, &elapsed, err)) return -1;
  epoch->evaluation_ms = elapsed.device_ms;
  return 0;
}

static void show_result(rl_session *session, const rl_epoch *epoch) {
  session->position.train_loss = epoch->train_loss;
  session->position.test_accuracy_ratio = epoch->test_accuracy_ratio;
  session->position.images_per_s = epoch->images / (epoch->device_ms * 1e-3);
}

static int time_one(rl_session *session, int64_t index, int64_t count, bool warmup, rl_error *err) {
  rl_epoch epoch = {.epoch = index, .warmup = warmup};
  rl_reading before, after;
  rl_elapsed elapsed;
  rl_report report;
  rl_pass_enter(session, warmup ? "warmup" : "epoch", index, count);
  rl_sensors_read(session->sensors, &before);
  if (rl_session_iterate(session, &session->observer, &elapsed, err)) return -1;
  rl_sensors_read(session->sensors, &after);
  rl_pass_unit_done(session);
  if (evaluate(session, &epoch, count, err) || session->instance->ops->report(session->instance, &report, err)) return -1;
  epoch.device_ms = elapsed.device_ms;
  epoch.host_ms = elapsed.host_ms;
  epoch.images = finite_or_nan(report.samples);
  epoch.train_loss = finite_or_nan(report.train_loss);
  epoch.test_loss = evaluates(session) ? finite_or_nan(report.test_loss) : NAN;
  epoch.test_accuracy_ratio = evaluates(session) ? finite_or_nan(report.test_accuracy_ratio) : NAN;
  epoch.loss_scale = finite_or_nan(report.loss_scale);
  epoch.skipped_steps = finite_or_nan(report.skipped_steps);
  epoch.sm_clock_before_mhz = before.sm_clock_mhz;
  epoch.sm_clock_after_mhz = after.sm_clock_mhz;
  epoch.memory_clock_mhz = after.memory_clock_mhz;
  epoch.temperature_c = after.temperature_c;
  epoch.power_w = after.power_w;
  join_reasons(before.throttle_reasons, after.throttle_reasons, epoch.throttle_reasons, sizeof epoch.throttle_reasons);
  if (explain(&epoch, after.reason[0] ? after.reason : before.reason, evaluates(session), err)) return -1;
  show_result(session, &epoch);
  return rl_records_add(session->records, RL_RECORD_EPOCH, &epoch, 1, err);
}

int rl_pass_measure_memory(rl_session *session, rl_error *err) {
  static const char *const names[RL_MEMORY_PURPOSES] = {"memory_dataset_bytes", "memory_weights_bytes",
                                                        "memory_activations_bytes", "memory_workspace_bytes"};
  rl_memory memory = rl_session_memory(session);
  if (rl_pass_measure(session, "peak_memory_bytes", (double)memory.peak_total_bytes, NULL, err)) return -1;
  for (int p = 0; p < RL_MEMORY_PURPOSES; p++)
    if (rl_pass_measure(session, names[p], (double)memory.peak_bytes[p], NULL, err)) return -1;
  rl_reading reading;
  rl_sensors_read(session->sensors, &reading);
  const char *reason = session->device->kind == RL_DEVICE_CPU ? "the CPU device has no memory of its own"
                       : reading.reason[0]                    ? reading.reason
                                                              : "the device's memory was not read when it was opened";
  double context = rl_session_context_bytes(session);
  bool shrank = context < 0; /* something else gave memory back meanwhile */
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return rl_pass_measure(session, "device_memory_before_bytes", rl_session_before_bytes(session), reason, err) ||
                 rl_pass_measure(session, "device_memory_after_bytes", reading.memory_used_bytes, reason, err) ||
                 rl_pass_measure(session, "context_memory_bytes", shrank ? NAN : context,
                                 shrank ? "another process gave device memory back meanwhile" : reason, err) ||
                 rl_pass_measure(session, "peak_rss_bytes", (double)usage.ru_maxrss * 1024, NULL, err)
             ? -1
             : 0;
}

int rl_pass_measure_step(rl_session *session, rl_error *err) {
  const rl_instance *instance = session->instance;
  rl_sequence step = instance->iteration.sequences[instance->step_sequence];
  rl_program begin = {
      .name = instance->iteration.name, .sequences = instance->iteration.sequences, .sequence_count = instance->step_sequence};
  rl_program once = {.name = step.name, .sequences = &step, .sequence_count = 1};
  rl_observer quiet = {.context = session->observer.context, .cancelled = session->observer.cancelled};
  rl_elapsed elapsed;
  step.repeat = 1;
  step.restore = NULL; /* its copies are none of the step's launches */
  if (session->device->ops->run_eager(session->device, &begin, &quiet, &elapsed, err) ||
      session->device->ops->run_eager(session->device, &once, &quiet, &elapsed, err))
    return -1;
  const uint64_t steps = instance->steps_at_once ? instance->steps_at_once : 1;
  return rl_pass_measure(session, "launches_per_step", (double)elapsed.launches / (double)steps, NULL, err);
}

int rl_time_epochs(rl_session *session, rl_error *err) {
  uint32_t warmup = 1, measured = 1;
  if (session->workload->schedule) session->workload->schedule(session->params, &warmup, &measured);
  const int64_t count = (int64_t)warmup + measured;
  session->units = (double)count;
  rl_pass_enter(session, "prepare", -1, count);
  for (int64_t i = 0; i < count; i++) {
    bool fresh = i == 0 || i == (int64_t)warmup;
    if (fresh && session->instance->ops->reset(session->instance, err)) return -1;
    if (time_one(session, i, count, i < (int64_t)warmup, err)) return -1;
  }
  return rl_pass_measure_memory(session, err) || rl_pass_measure_step(session, err) ? -1 : 0;
}

rl_outcome rl_timing_run(rl_session *session, rl_error *err) {
  static int (*const timers[])(rl_session *, rl_error *) = {
      [RL_ITERATION_EPOCH] = rl_time_epochs, [RL_ITERATION_LAUNCH] = rl_time_launches, [RL_ITERATION_RATES] = rl_time_rates};
  return rl_pass_outcome(timers[session->workload->iteration](session, err), err);
}
