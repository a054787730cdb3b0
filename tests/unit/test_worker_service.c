/* Tests rl_service, which serves passes, with the engine of tests/worker/fake_engine.c, whose losses, launches and bytes are
 * known. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/statistics.h"
#include "base/json.h"
#include "tests/worker/fake_engine.h"
#include "worker/service.h"

/* ---- sensors ------------------------------------------------------------------------------------------------------------- */

static const rl_sensor_reading no_reading = {.sm_clock_mhz = NAN,
                                             .memory_clock_mhz = NAN,
                                             .temperature_c = NAN,
                                             .power_w = NAN,
                                             .memory_used_bytes = NAN,
                                             .reason = "there is no such sensor"};
static const rl_sensor_reading cool_reading = {.sm_clock_mhz = 1980,
                                               .memory_clock_mhz = 3201,
                                               .temperature_c = 40,
                                               .power_w = 300,
                                               .memory_used_bytes = NAN,
                                               .throttle_known = true,
                                               .throttle_reasons = "gpu_idle",
                                               .reason = "memory is not measured"};
static const rl_sensor_reading throttled_reading = {.sm_clock_mhz = 1500,
                                                    .memory_clock_mhz = 3201,
                                                    .temperature_c = 85,
                                                    .power_w = 700,
                                                    .memory_used_bytes = NAN,
                                                    .throttle_known = true,
                                                    .throttle_reasons = "sw_power_cap,hw_thermal_slowdown",
                                                    .reason = "memory is not measured"};
static const rl_sensor_reading clocks_only = {.sm_clock_mhz = 1980,
                                              .memory_clock_mhz = 3201,
                                              .temperature_c = 40,
                                              .power_w = 300,
                                              .memory_used_bytes = 0,
                                              .reason = "NVML, throttle reasons: Not Supported"};
static const rl_sensor_reading *current_reading = &no_reading; /* returned by rl_sensors_read */

rl_sensors *rl_sensors_open(const char *device_properties) {
  static char dummy;
  (void)device_properties;
  return (rl_sensors *)&dummy;
}
void rl_sensors_read(rl_sensors *sensors, rl_sensor_reading *reading) {
  (void)sensors;
  *reading = *current_reading;
}
double rl_sensors_read_used_bytes(rl_sensors *sensors) {
  (void)sensors;
  return current_reading->memory_used_bytes;
}
static rl_other_processes process_lists[2]; /* results of the next two calls of rl_sensors_read_other_processes */
static int process_list_count;
void rl_sensors_read_other_processes(rl_sensors *sensors, rl_other_processes *processes) {
  (void)sensors;
  *processes = process_lists[process_list_count++ % 2];
}
void rl_sensors_close(rl_sensors *sensors) { (void)sensors; }

/* ---- fixture ------------------------------------------------------------------------------------------------------------- */

typedef struct fixture {
  rl_device *device;
  rl_profiler *profiler;
  rl_sensors *sensors;
  rl_service *service;
  rl_records records;
  rl_error err;
  int metadata_count, progress_count;
  int cancel_checks, cancel_at_check; /* on_cancelled returns true from its cancel_at_check-th call on; 0: never */
  bool metadata_after_progress;
  bool opening_overlapped; /* of every request */
  rl_progress last_progress;
} fixture;

static bool on_cancelled(void *context) {
  fixture *f = context;
  return ++f->cancel_checks >= f->cancel_at_check && f->cancel_at_check > 0;
}
static void on_instance_opened(void *context, const rl_run_metadata *metadata) {
  fixture *f = context;
  assert_string_equal(metadata->engine, "hand");
  f->metadata_count++;
  f->metadata_after_progress |= f->progress_count > 0;
}
static void on_progress(void *context, const rl_progress *progress) {
  fixture *f = context;
  f->progress_count++;
  f->last_progress = *progress;
}

static void open_fixture(fixture *f, const char *role) {
  *f = (fixture){.device = rl_device_open(0, NULL), .profiler = rl_profiler_open(0, NULL), .sensors = rl_sensors_open("{}")};
  assert_non_null(f->device);
  rl_service_options options = {.device = f->device,
                                .profiler = f->profiler,
                                .sensors = f->sensors,
                                .role = role,
                                .no_profiler_reason = "none",
                                .used_bytes_before_open = current_reading->memory_used_bytes,
                                .cancelled = on_cancelled,
                                .instance_opened = on_instance_opened,
                                .progress = on_progress,
                                .context = f};
  assert_int_equal(rl_service_open(&options, &f->service, NULL), 0);
  fake_opened_count = fake_closed_count = 0;
}

static void close_fixture(fixture *f) {
  rl_service_close(f->service);
  assert_int_equal(fake_opened_count, fake_closed_count);
  assert_int_equal(f->device->memory_usage.total_bytes, 0);
  f->profiler->ops->close(f->profiler);
  rl_sensors_close(f->sensors);
  rl_records_clear(&f->records);
  f->device->ops->close(f->device);
}

/* Serves one request. The results are in f->records, an error in f->err. */
static rl_outcome serve_workload(fixture *f, const char *workload, rl_pass pass, const char *params) {
  rl_request request = {.pass = pass, .opening_overlapped = f->opening_overlapped};
  snprintf(request.workload, sizeof request.workload, "%s", workload);
  snprintf(request.params, sizeof request.params, "%s", params);
  rl_records_clear(&f->records);
  f->err = (rl_error){0};
  f->metadata_count = f->progress_count = f->cancel_checks = 0;
  f->metadata_after_progress = false;
  return rl_service_serve(f->service, &request, &f->records, &f->err);
}

static rl_outcome serve_fake_workload(fixture *f, rl_pass pass, const char *params) {
  return serve_workload(f, "fake", pass, params);
}

static const rl_measurement *find_measurement(const fixture *f, const char *name) {
  for (size_t i = 0; i < f->records.measurement_count; i++)
    if (strcmp(f->records.measurements[i].name, name) == 0) return &f->records.measurements[i];
  fail_msg("%s was not measured", name);
  return NULL;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

static void warm_up_epochs_are_stored_and_then_reset(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"warmup\":2,\"epochs\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(f.metadata_count, 1);
  assert_false(f.metadata_after_progress);
  assert_int_equal(f.records.epoch_count, 5);
  const rl_epoch *epochs = f.records.epochs;
  for (int i = 0; i < 5; i++) {
    assert_int_equal(epochs[i].epoch, i);
    assert_int_equal(epochs[i].warmup, i < 2);
    assert_true(epochs[i].device_ms > 0 && epochs[i].evaluation_ms > 0 && epochs[i].images == 320);
  }
  assert_true(epochs[1].train_loss < epochs[0].train_loss);           /* warm-up epochs train */
  assert_true(epochs[2].train_loss == epochs[0].train_loss);          /* the reset after them restored the initial weight */
  assert_true(fabs(epochs[4].train_loss - 9 * pow(0.9, 30)) < 1e-12); /* 15 steps after the reset; the loss is a square */
  assert_true(fabs(epochs[4].test_accuracy_ratio - (1 - pow(0.9, 15))) < 1e-12);
  close_fixture(&f);
}

static void missing_values_of_an_epoch_have_reasons(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"evaluates\":false}"), RL_OUTCOME_DONE);
  const rl_epoch *epoch = &f.records.epochs[0];
  assert_true(isnan(epoch->evaluation_ms) && isnan(epoch->test_accuracy_ratio) && isnan(epoch->power_w));
  cJSON *reasons = rl_json_parse(epoch->unavailable, strlen(epoch->unavailable), NULL);
  assert_non_null(reasons);
  for (const rl_field *field = rl_epoch_fields; field->name; field++) {
    if (field->type != RL_FIELD_NULLABLE_REAL) continue;
    bool absent = isnan(*(const double *)((const char *)epoch + field->offset));
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(reasons, field->name);
    if (absent != cJSON_IsString(reason)) fail_msg("%s: absent %d, reason %d", field->name, absent, cJSON_IsString(reason));
  }
  assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(reasons, "power_w")), no_reading.reason);
  cJSON_Delete(reasons);
  for (size_t i = 0; i < f.records.measurement_count; i++) {
    const rl_measurement *m = &f.records.measurements[i];
    if (isnan(m->value) != (m->reason[0] != '\0')) fail_msg("%s: %g because of \"%s\"", m->name, m->value, m->reason);
  }
  close_fixture(&f);
}

static void the_least_recently_used_instance_is_closed(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  double loss = f.records.epochs[2].train_loss;
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_opened_count, 1);
  assert_memory_equal(&loss, &f.records.epochs[2].train_loss, sizeof loss); /* bit for bit */
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":4}"), RL_OUTCOME_DONE);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_ACTIVITY, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_opened_count, 2);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":5}"),
                   RL_OUTCOME_DONE); /* closes the least recently used instance, of 4 steps */
  assert_int_equal(fake_closed_count, 1);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_opened_count, 3);
  close_fixture(&f);
}

static const rl_device_ops *original_ops;
static int instantiation_count, instantiations_to_refuse;

static int counted_instantiate(rl_device *device, const rl_sequence_list *sequence_list, rl_executable **executable,
                               rl_error *err) {
  if (instantiations_to_refuse > 0 && instantiations_to_refuse--) return rl_fail(err, RL_CUDA, 2, "out of memory");
  instantiation_count++;
  return original_ops->instantiate(device, sequence_list, executable, err);
}

static void executables_are_created_when_first_needed_and_kept(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  original_ops = f.device->ops;
  rl_device_ops counting = *original_ops;
  counting.instantiate = counted_instantiate;
  f.device->ops = &counting;
  assert_int_equal(serve_fake_workload(&f, RL_PASS_COUNTERS, "{}"), RL_OUTCOME_UNAVAILABLE);
  assert_int_equal(instantiation_count, 0);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  const int expected_instantiations = instantiation_count;
  assert_in_range(expected_instantiations, 1, 2); /* of the iteration, and of the evaluation if there is one */
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_int_equal(instantiation_count, expected_instantiations);
  const int closed = fake_closed_count;
  instantiations_to_refuse = 1; /* when memory is exhausted, the service closes idle instances and tries once more */
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_closed_count, closed + 1);
  instantiations_to_refuse = 2;
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":4}"), RL_OUTCOME_FAILED);
  instantiations_to_refuse = 0;
  f.device->ops = original_ops;
  close_fixture(&f);
}

static void memory_is_counted_for_each_instance(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  for (int round = 0; round < 2; round++) {
    assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"bytes\":5000}"), RL_OUTCOME_DONE);
    assert_true(find_measurement(&f, "peak_memory_bytes")->value == 5100);
    assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"bytes\":50}"), RL_OUTCOME_DONE);
    assert_true(find_measurement(&f, "peak_memory_bytes")->value == 300);
    assert_true(find_measurement(&f, "memory_activations_bytes")->value == 50 &&
                find_measurement(&f, "memory_weights_bytes")->value == 100);
    assert_true(find_measurement(&f, "memory_workspace_bytes")->value == 300 &&
                find_measurement(&f, "memory_dataset_bytes")->value == 0);
  }
  assert_true(find_measurement(&f, "peak_rss_bytes")->value > 100000);
  assert_true(find_measurement(&f, "launches_per_step")->value == 2);
  close_fixture(&f);
}

static void context_memory_is_null_if_another_worker_opened_the_device(void **state) {
  (void)state;
  fixture f;
  rl_sensor_reading reading = no_reading;
  reading.memory_used_bytes = 3e9;
  current_reading = &reading;
  open_fixture(&f, "any");
  f.opening_overlapped = true;
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"bytes\":50}"), RL_OUTCOME_DONE);
  const rl_measurement *context = find_measurement(&f, "context_memory_bytes");
  assert_true(isnan(context->value));
  assert_string_equal(context->reason, "another worker of rooflined opened the device at the same time");
  assert_true(find_measurement(&f, "device_memory_after_bytes")->value == 3e9);
  current_reading = &no_reading;
  close_fixture(&f);
}

static void a_full_device_closes_idle_instances(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"bytes\":50}"), RL_OUTCOME_DONE);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"bytes\":4611686018427387904}"),
                   RL_OUTCOME_FAILED); /* beyond 2^53: an invalid request */
  assert_int_equal(f.err.domain, RL_INPUT);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"bytes\":9007199254740991}"), RL_OUTCOME_FAILED);
  assert_int_equal(f.err.code, ENOMEM);
  assert_int_equal(fake_closed_count, 1);
  assert_true(rl_service_device_works(f.service));
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"bytes\":50}"), RL_OUTCOME_DONE);
  close_fixture(&f);
}

static void bad_requests_name_the_field(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  rl_request unknown = {.workload = "nothing", .params = "{}"};
  assert_int_equal(rl_service_serve(f.service, &unknown, &f.records, &f.err), RL_OUTCOME_FAILED);
  assert_int_equal(f.err.domain, RL_INPUT);
  assert_string_equal(f.err.json_pointer, "/workload");
  const struct {
    const char *params, *pointer;
  } invalid[] = {{"{\"steps\":100000}", "/steps"}, {"{\"engine\":\"other\"}", "/engine"}, {"{\"wings\":2}", "/wings"}};
  for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
    assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, invalid[i].params), RL_OUTCOME_FAILED);
    assert_int_equal(f.err.domain, RL_INPUT);
    assert_string_equal(f.err.json_pointer, invalid[i].pointer);
    assert_int_equal(f.metadata_count, 0);
  }
  assert_int_equal(fake_opened_count, 0);
  close_fixture(&f);
}

static void a_failed_launch_fails_only_its_request(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"fail_at\":7}"), RL_OUTCOME_FAILED);
  assert_non_null(strstr(f.err.message, "gather: the launch broke"));
  assert_int_equal(serve_fake_workload(&f, RL_PASS_ACTIVITY, "{\"fail_at\":3}"), RL_OUTCOME_FAILED);
  assert_true(rl_service_device_works(f.service));
  assert_int_equal(serve_fake_workload(&f, RL_PASS_ACTIVITY, "{}"), RL_OUTCOME_DONE); /* the failed pass stopped its trace */
  close_fixture(&f);
}

static void cancelling_leaves_the_instance_usable(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  double loss = f.records.epochs[2].train_loss;
  for (int pass = RL_PASS_TIMING; pass <= RL_PASS_ACTIVITY; pass++)
    for (int at = 1; at < 30; at += 4) {
      f.cancel_at_check = at; /* the at-th call of on_cancelled returns true */
      rl_outcome outcome = serve_fake_workload(&f, (rl_pass)pass, "{}");
      if (f.cancel_checks >= at) assert_int_equal(outcome, RL_OUTCOME_CANCELLED);
      if (pass == RL_PASS_TIMING) assert_int_equal(f.cancel_checks, at); /* nothing was launched after the cancellation */
    }
  f.cancel_at_check = 0;
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_memory_equal(&loss, &f.records.epochs[2].train_loss, sizeof loss);
  close_fixture(&f);
}

static void activity_records_every_launch(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "profiled");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_ACTIVITY, "{\"steps\":50,\"sleep_us\":100}"), RL_OUTCOME_DONE);
  assert_int_equal(f.records.row_count, 100);
  assert_true(find_measurement(&f, "launches_issued")->value == 100 && find_measurement(&f, "completeness_ratio")->value == 1);
  assert_true(find_measurement(&f, "activity_records")->value == 100 &&
              find_measurement(&f, "activity_dropped_records")->value == 0);
  assert_true(find_measurement(&f, "activity_zero_time_records")->value == 0);
  double busy = find_measurement(&f, "device_busy_ratio")->value;
  assert_true(busy > 0.5 && busy <= 1);
  assert_true(find_measurement(&f, "perturbation_ratio")->value > 0);
  assert_int_equal(f.records.kernel_count, 2);
  const rl_kernel *gather = &f.records.kernels[0];
  assert_string_equal(gather->launch, "gather"), assert_string_equal(gather->phase, "data");
  assert_int_equal(gather->launches, 50);
  assert_true(gather->min_us >= 100 && gather->median_us >= gather->min_us && gather->max_us >= gather->median_us);
  assert_true(gather->share_ratio > 0.5 && gather->total_us >= 5000);
  for (size_t i = 0; i < f.records.row_count; i++)
    assert_true(f.records.rows[i].start_ns >= 0 && f.records.rows[i].end_ns >= f.records.rows[i].start_ns);
  close_fixture(&f);
}

/* One launch runs all steps. The rows of its phases lie inside the launch, in order. Only the traced iteration records
 * timestamps, and only for the first four steps. */
static void a_launch_of_many_steps_has_phase_rows(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "profiled");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_ACTIVITY, "{\"steps\":20,\"sleep_us\":200,\"whole\":true}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "launches_issued")->value == 1 && find_measurement(&f, "completeness_ratio")->value == 1);
  assert_int_equal(f.records.kernel_count, 1);
  assert_string_equal(f.records.kernels[0].launch, "whole");
  assert_int_equal(f.records.row_count, 1 + 4 * 2);
  const rl_activity_row *launch = &f.records.rows[0], *before = NULL;
  for (size_t i = 1; i < f.records.row_count; i++) {
    const rl_activity_row *row = &f.records.rows[i];
    assert_int_equal(row->kind, RL_ACTIVITY_PHASE);
    assert_string_equal(f.records.names[row->name], i % 2 ? "gather" : "descend");
    assert_int_equal(row->step, (i - 1) / 2 + 1);
    assert_true(row->start_ns >= launch->start_ns && row->end_ns <= launch->end_ns && row->start_ns <= row->end_ns);
    if (before) assert_true(row->start_ns >= before->end_ns);
    if (i % 2) assert_true(row->end_ns - row->start_ns >= 200000);
    before = row;
  }
  assert_true(before->end_ns + 16 * 200000 <= launch->end_ns); /* the other sixteen steps follow */
  assert_true(find_measurement(&f, "phase_rounds")->value == 1);
  assert_true(find_measurement(&f, "phase_clock_error_us")->value >= 0 &&
              find_measurement(&f, "phase_clock_error_us")->value < 1000);
  assert_int_equal(f.records.phase_count, 2);
  const rl_phase *gather = &f.records.phases[0], *descend = &f.records.phases[1];
  assert_string_equal(gather->name, "gather"), assert_string_equal(gather->phase, "data");
  assert_true(gather->ordinal == 0 && gather->position == 0 && gather->steps == 4 && gather->blocks == 2);
  assert_true(gather->min_us == 0 && gather->max_us >= 200 && gather->mean_us >= 100); /* one of the two blocks executes it */
  assert_true(descend->max_us >= 200 && fabs(gather->share_ratio + descend->share_ratio - 1) < 1e-9);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_ACTIVITY, "{\"steps\":20,\"fail_at\":3,\"whole\":true}"), RL_OUTCOME_FAILED);
  close_fixture(&f);
  open_fixture(&f, "unprofiled");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":20,\"whole\":true}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "launches_per_step")->value == 1.0 / 20);
  close_fixture(&f);
}

/* Timestamps lengthen the launch by more than half, so it takes longer than the whole untraced iteration. */
static void the_launch_gap_of_an_iteration_with_timestamps_is_that_of_the_trace(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "profiled");
  assert_int_equal(
      serve_fake_workload(&f, RL_PASS_ACTIVITY, "{\"steps\":4,\"sleep_us\":1000,\"timestamp_us\":500,\"whole\":true}"),
      RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "perturbation_ratio")->value > 1.3);
  const double gap = find_measurement(&f, "launch_gap_ratio")->value;
  assert_true(gap >= 0 && fabs(gap - (1 - find_measurement(&f, "device_busy_ratio")->value)) < 1e-9);
  close_fixture(&f);
}

static int release_count;

static void count_release(rl_profiler *profiler) {
  (void)profiler;
  release_count++;
}

/* Serves a request, before which the service must release the counters `expected` times. */
static void assert_releases(fixture *f, rl_pass pass, const char *params, int expected) {
  int before = release_count;
  serve_fake_workload(f, pass, params);
  assert_int_equal(release_count - before, expected);
}

static void counters_are_released_before_other_passes(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  rl_profiler_ops ops = *f.profiler->ops;
  ops.release_counters = count_release;
  f.profiler->ops = &ops;
  assert_releases(&f, RL_PASS_COUNTERS, "{}", 1); /* an instance was opened */
  assert_releases(&f, RL_PASS_COUNTERS, "{}", 0);
  assert_releases(&f, RL_PASS_TIMING, "{}", 1);
  assert_releases(&f, RL_PASS_ACTIVITY, "{}", 1);
  assert_releases(&f, RL_PASS_COUNTERS, "{\"epochs\":3}", 1);
  assert_releases(&f, RL_PASS_COUNTERS, "{}", 0); /* the instance is still open */
  rl_service_release_profiler(f.service);
  assert_int_equal(release_count, 5);
  close_fixture(&f);
}

static void unavailable_counters_have_a_reason(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "profiled");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_COUNTERS, "{}"), RL_OUTCOME_UNAVAILABLE);
  assert_non_null(strstr(f.err.message, "no hardware counters"));
  assert_int_equal(f.metadata_count, 1);
  close_fixture(&f);
}

static void a_role_refuses_other_passes(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "unprofiled");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_ACTIVITY, "{}"), RL_OUTCOME_FAILED);
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  close_fixture(&f);
  open_fixture(&f, "profiled");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{}"), RL_OUTCOME_FAILED);
  assert_int_equal(f.err.domain, RL_INPUT);
  close_fixture(&f);
}

static void progress_is_rate_limited_and_has_the_position(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_fake_workload(&f, RL_PASS_TIMING, "{\"steps\":300,\"sleep_us\":1000,\"epochs\":2,\"warmup\":0}"),
                   RL_OUTCOME_DONE);
  double seconds = (f.records.epochs[0].host_ms + f.records.epochs[1].host_ms) * 1e-3;
  assert_true(f.progress_count >= 2);
  assert_true(f.progress_count <= 2 + (int)(seconds * 5));
  assert_string_equal(f.last_progress.pass, "timing");
  assert_int_equal(f.last_progress.epochs, 2);
  assert_int_equal(f.last_progress.epoch, 1);
  assert_true(f.last_progress.step > 0 && f.last_progress.step <= 300 && f.last_progress.steps == 300);
  assert_true(f.last_progress.eta_s > 0 && f.last_progress.eta_s < seconds);
  assert_true(f.last_progress.train_loss == f.records.epochs[0].train_loss);
  assert_true(f.last_progress.images_per_s > 0);
  close_fixture(&f);
}

/* An iteration has five steps of two launches. A sample is one step. */
static void launches_are_sampled(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "unprofiled");
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{\"epochs\":3,\"error\":0.25,\"sleep_us\":200}"),
                   RL_OUTCOME_DONE);
  assert_int_equal(f.records.epoch_count, 0);
  assert_int_equal(f.records.sample_count, 6);
  double shortest_us = INFINITY;
  for (int i = 0; i < 6; i++) {
    const rl_sample *sample = &f.records.samples[i];
    assert_true(sample->mode == (i < 3 ? RL_SAMPLE_COLD : RL_SAMPLE_WARM) && sample->ordinal == i % 3 &&
                sample->device_us >= 200);
    if (i < 3 && sample->device_us < shortest_us) shortest_us = sample->device_us;
  }
  assert_true(find_measurement(&f, "time_cold_us_min")->value == shortest_us);
  assert_true(find_measurement(&f, "time_cold_us_median")->value >= shortest_us);
  double median_s = find_measurement(&f, "time_cold_us_median")->value * 1e-6;
  assert_true(fabs(find_measurement(&f, "achieved_bytes_per_s")->value * median_s / 10 - 1) < 1e-12);
  assert_true(find_measurement(&f, "relative_error")->value == 0.25 &&
              find_measurement(&f, "relative_error_limit")->value == 0.5);
  assert_true(find_measurement(&f, "checked_ratio")->value == 0.75);
  assert_true(find_measurement(&f, "compile_ms")->value == 2.5 && isnan(find_measurement(&f, "spill_bytes")->value));
  assert_string_equal(find_measurement(&f, "spill_bytes")->reason, "nothing is compiled");
  assert_int_equal(find_measurement(&f, "launches_per_step")->value, 2);
  close_fixture(&f);
}

static void samples_have_measured_conditions(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "unprofiled");
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{\"epochs\":9,\"sleep_us\":100}"), RL_OUTCOME_DONE);
  double us[9];
  for (int i = 0; i < 9; i++) us[i] = f.records.samples[9 + i].device_us;
  assert_true(find_measurement(&f, "time_warm_us_spread_ratio")->value == rl_summarize_sample(us, 9).spread_ratio);
  assert_true(find_measurement(&f, "time_cold_us_spread_ratio")->value >= 0);
  static const char *const unknown[] = {"sm_clock_least_mhz", "sm_clock_most_mhz", "memory_clock_mhz",
                                        "temperature_c_most", "power_w_most",      "throttled_ratio"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    assert_true(isnan(find_measurement(&f, unknown[i])->value));
    assert_string_equal(find_measurement(&f, unknown[i])->reason, no_reading.reason);
  }
  current_reading = &cool_reading;
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "sm_clock_least_mhz")->value == 1980 && find_measurement(&f, "power_w_most")->value == 300);
  assert_true(find_measurement(&f, "throttled_ratio")->value == 0); /* gpu_idle does not count */
  current_reading = &throttled_reading;
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "throttled_ratio")->value == 1 &&
              find_measurement(&f, "throttled_by_sw_power_cap_ratio")->value == 1);
  assert_true(find_measurement(&f, "throttled_by_hw_thermal_slowdown_ratio")->value == 1);
  assert_true(find_measurement(&f, "temperature_c_most")->value == 85 && find_measurement(&f, "memory_clock_mhz")->value == 3201);
  current_reading = &clocks_only;
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "sm_clock_most_mhz")->value == 1980 && isnan(find_measurement(&f, "throttled_ratio")->value));
  assert_string_equal(find_measurement(&f, "throttled_ratio")->reason, clocks_only.reason);
  current_reading = &no_reading;
  close_fixture(&f);
}

/* Each process has one measurement, whether it ran before the pass, after the pass, or both times. */
static void other_processes_are_measured_before_and_after(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "unprofiled");
  process_list_count = 0;
  process_lists[0] = (rl_other_processes){.count = 2, .items = {{11, 100}, {12, NAN}}};
  process_lists[1] = (rl_other_processes){.count = 3, .items = {{13, 300}, {11, 200}, {12, NAN}}};
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "other_processes_before")->value == 2 &&
              find_measurement(&f, "other_processes_after")->value == 3);
  assert_true(find_measurement(&f, "other_process_11_memory_bytes")->value == 200 &&
              find_measurement(&f, "other_process_13_memory_bytes")->value == 300);
  assert_true(isnan(find_measurement(&f, "other_process_12_memory_bytes")->value));
  assert_string_equal(find_measurement(&f, "other_process_12_memory_bytes")->reason, "NVML does not know the process's memory");
  process_lists[0] = process_lists[1] = (rl_other_processes){.reason = "no NVML"};
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(isnan(find_measurement(&f, "other_processes_before")->value));
  assert_string_equal(find_measurement(&f, "other_processes_after")->reason, "no NVML");
  assert_string_equal(find_measurement(&f, "other_processes_cpu_time_ratio")->reason,
                      "the times of the processors in /proc/stat have not advanced");
  process_lists[0] = (rl_other_processes){.processor_times = {16, 100, 10}};
  process_lists[1] = (rl_other_processes){.processor_times = {16, 108, 12}};
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "other_processes_cpu_time_ratio")->value == 0.25);
  assert_true(find_measurement(&f, "other_processes_busy_processors")->value == 4);
  strcpy(process_lists[1].processor_times_reason, "no /proc");
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(isnan(find_measurement(&f, "other_processes_cpu_time_ratio")->value));
  assert_true(isnan(find_measurement(&f, "other_processes_busy_processors")->value));
  assert_string_equal(find_measurement(&f, "other_processes_cpu_time_ratio")->reason, "no /proc");
  process_lists[0] = process_lists[1] = (rl_other_processes){0};
  close_fixture(&f);
}

/* A rate is the highest of three samples. */
static void each_rate_samples_one_launch(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "unprofiled");
  assert_int_equal(serve_workload(&f, "fake_rates", RL_PASS_TIMING, "{\"epochs\":3,\"sleep_us\":2000}"), RL_OUTCOME_DONE);
  assert_true(f.records.epoch_count == 0 && f.records.sample_count == 0);
  double rate = find_measurement(&f, "gather_bytes_per_s")->value;
  assert_true(rate > 0 && rate < 1000 / 2000e-6);
  assert_true(isnan(find_measurement(&f, "scatter_bytes_per_s")->value));
  assert_string_equal(find_measurement(&f, "scatter_bytes_per_s")->reason, "nothing is scattered");
  assert_true(isnan(find_measurement(&f, "throttled_ratio")->value) && find_measurement(&f, "throttled_ratio")->reason[0]);
  assert_int_equal(serve_workload(&f, "fake_rates", RL_PASS_TIMING, "{\"fail_at\":2}"), RL_OUTCOME_FAILED);
  close_fixture(&f);
}

static void a_wrong_result_fails_the_pass(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{\"error\":0.75}"), RL_OUTCOME_FAILED);
  assert_true(f.err.domain == RL_ERRNO && f.err.code == EDOM);
  assert_non_null(strstr(f.err.message, "0.75"));
  assert_int_equal(f.records.sample_count, 0);
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{\"error\":null}"),
                   RL_OUTCOME_FAILED); /* the error is NAN */
  close_fixture(&f);
}

/* The second gather finds its buffer full unless it was restored: between samples, between the steps of an iteration, and after
 * the check, which runs a step. */
static void used_up_buffers_are_restored_between_steps(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{\"once\":true}"), RL_OUTCOME_FAILED);
  assert_non_null(strstr(f.err.message, "the buffer is full"));
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{\"once\":true,\"restored\":true}"), RL_OUTCOME_DONE);
  assert_int_equal(f.records.sample_count, 4);
  assert_int_equal(find_measurement(&f, "launches_per_step")->value, 2);
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_ACTIVITY, "{\"once\":true,\"restored\":true}"), RL_OUTCOME_DONE);
  assert_true(find_measurement(&f, "completeness_ratio")->value == 1 && find_measurement(&f, "launches_issued")->value == 10);
  close_fixture(&f);
}

static void a_device_that_cannot_sample_gives_reasons(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "any");
  const rl_device_ops *all_ops = f.device->ops;
  rl_device_ops without_sample = *all_ops;
  without_sample.sample = NULL;
  f.device->ops = &without_sample;
  assert_int_equal(serve_workload(&f, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  static const char *const absent[] = {"time_cold_us_median", "time_cold_us_min",          "time_warm_us_median",
                                       "time_warm_us_min",    "time_cold_us_spread_ratio", "achieved_bytes_per_s"};
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    assert_true(isnan(find_measurement(&f, absent[i])->value) && find_measurement(&f, absent[i])->reason[0]);
  assert_int_equal(f.records.sample_count, 0);
  f.device->ops = all_ops;
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(launches_are_sampled),
                                     cmocka_unit_test(samples_have_measured_conditions),
                                     cmocka_unit_test(other_processes_are_measured_before_and_after),
                                     cmocka_unit_test(each_rate_samples_one_launch),
                                     cmocka_unit_test(a_wrong_result_fails_the_pass),
                                     cmocka_unit_test(used_up_buffers_are_restored_between_steps),
                                     cmocka_unit_test(a_device_that_cannot_sample_gives_reasons),
                                     cmocka_unit_test(warm_up_epochs_are_stored_and_then_reset),
                                     cmocka_unit_test(missing_values_of_an_epoch_have_reasons),
                                     cmocka_unit_test(the_least_recently_used_instance_is_closed),
                                     cmocka_unit_test(executables_are_created_when_first_needed_and_kept),
                                     cmocka_unit_test(memory_is_counted_for_each_instance),
                                     cmocka_unit_test(context_memory_is_null_if_another_worker_opened_the_device),
                                     cmocka_unit_test(a_full_device_closes_idle_instances),
                                     cmocka_unit_test(bad_requests_name_the_field),
                                     cmocka_unit_test(a_failed_launch_fails_only_its_request),
                                     cmocka_unit_test(cancelling_leaves_the_instance_usable),
                                     cmocka_unit_test(activity_records_every_launch),
                                     cmocka_unit_test(a_launch_of_many_steps_has_phase_rows),
                                     cmocka_unit_test(the_launch_gap_of_an_iteration_with_timestamps_is_that_of_the_trace),
                                     cmocka_unit_test(unavailable_counters_have_a_reason),
                                     cmocka_unit_test(counters_are_released_before_other_passes),
                                     cmocka_unit_test(a_role_refuses_other_passes),
                                     cmocka_unit_test(progress_is_rate_limited_and_has_the_position)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
