/* The passes over tests/worker/fake_engine.c, whose losses, counts and bytes are known. */
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
#include "worker/session.h"

/* ---- sensors ------------------------------------------------------------------------------------------------------------- */

static const rl_sensor_reading blind = {.sm_clock_mhz = NAN,
                                        .memory_clock_mhz = NAN,
                                        .temperature_c = NAN,
                                        .power_w = NAN,
                                        .memory_used_bytes = NAN,
                                        .reason = "there is no such sensor"};
static const rl_sensor_reading cool = {.sm_clock_mhz = 1980,
                                       .memory_clock_mhz = 3201,
                                       .temperature_c = 40,
                                       .power_w = 300,
                                       .memory_used_bytes = NAN,
                                       .throttle_reasons = "gpu_idle",
                                       .reason = "nobody counts memory"};
static const rl_sensor_reading hot = {.sm_clock_mhz = 1500,
                                      .memory_clock_mhz = 3201,
                                      .temperature_c = 85,
                                      .power_w = 700,
                                      .memory_used_bytes = NAN,
                                      .throttle_reasons = "sw_power_cap,hw_thermal_slowdown",
                                      .reason = "nobody counts memory"};
static const rl_sensor_reading *sensed = &blind; /* what they all show */

rl_sensors *rl_sensors_open(const char *device_facts) {
  static char some;
  (void)device_facts;
  return (rl_sensors *)&some;
}
void rl_sensors_read(rl_sensors *sensors, rl_sensor_reading *reading) {
  (void)sensors;
  *reading = *sensed;
}
void rl_sensors_close(rl_sensors *sensors) { (void)sensors; }

/* ---- a service to ask ---------------------------------------------------------------------------------------------------- */

typedef struct bench {
  rl_device *device;
  rl_profiler *profiler;
  rl_sensors *sensors;
  rl_service *service;
  rl_records records;
  rl_error err;
  int facts, progress, asked, cancel_at; /* cancel from the n-th time it is asked on; 0: never */
  bool late_facts;
  rl_progress last;
} bench;

static bool on_cancelled(void *context) {
  bench *b = context;
  return ++b->asked >= b->cancel_at && b->cancel_at > 0;
}
static void on_opened(void *context, const rl_run_facts *facts) {
  bench *b = context;
  assert_string_equal(facts->engine, "hand");
  b->facts++;
  b->late_facts |= b->progress > 0;
}
static void on_progress(void *context, const rl_progress *progress) {
  bench *b = context;
  b->progress++;
  b->last = *progress;
}

static void start(bench *b, const char *role) {
  *b = (bench){.device = rl_device_open(0, NULL), .profiler = rl_profiler_open(0, NULL), .sensors = rl_sensors_open("{}")};
  assert_non_null(b->device);
  rl_service_options options = {.device = b->device,
                                .profiler = b->profiler,
                                .sensors = b->sensors,
                                .role = role,
                                .profiler_reason = "none",
                                .bytes_before_open = NAN,
                                .cancelled = on_cancelled,
                                .opened = on_opened,
                                .progress = on_progress,
                                .context = b};
  assert_int_equal(rl_service_open(&options, &b->service, NULL), 0);
  fake_opened = fake_closed = 0;
}

static void stop(bench *b) {
  rl_service_close(b->service);
  assert_int_equal(fake_opened, fake_closed);
  assert_int_equal(b->device->memory.total_bytes, 0);
  b->profiler->ops->close(b->profiler);
  rl_sensors_close(b->sensors);
  rl_records_clear(&b->records);
  b->device->ops->close(b->device);
}

static rl_outcome ask_for(bench *b, const char *workload, rl_pass pass, const char *params) {
  rl_request request = {.pass = pass};
  snprintf(request.workload, sizeof request.workload, "%s", workload);
  snprintf(request.params, sizeof request.params, "%s", params);
  rl_records_clear(&b->records);
  b->err = (rl_error){0};
  b->facts = b->progress = b->asked = 0;
  b->late_facts = false;
  return rl_service_serve(b->service, &request, &b->records, &b->err);
}

static rl_outcome ask(bench *b, rl_pass pass, const char *params) { return ask_for(b, "fake", pass, params); }

static const rl_measurement *measured(const bench *b, const char *name) {
  for (size_t i = 0; i < b->records.measurement_count; i++)
    if (strcmp(b->records.measurements[i].name, name) == 0) return &b->records.measurements[i];
  fail_msg("%s was not measured", name);
  return NULL;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

static void warm_up_is_stored_and_then_undone(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"warmup\":2,\"epochs\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(b.facts, 1);
  assert_false(b.late_facts);
  assert_int_equal(b.records.epoch_count, 5);
  const rl_epoch *epochs = b.records.epochs;
  for (int i = 0; i < 5; i++) {
    assert_int_equal(epochs[i].epoch, i);
    assert_int_equal(epochs[i].warmup, i < 2);
    assert_true(epochs[i].device_ms > 0 && epochs[i].evaluation_ms > 0 && epochs[i].images == 320);
  }
  assert_true(epochs[1].train_loss < epochs[0].train_loss);           /* it trains while it warms up */
  assert_true(epochs[2].train_loss == epochs[0].train_loss);          /* and starts anew */
  assert_true(fabs(epochs[4].train_loss - 9 * pow(0.9, 30)) < 1e-12); /* fifteen steps after the reset */
  assert_true(fabs(epochs[4].test_accuracy_ratio - (1 - pow(0.9, 15))) < 1e-12);
  stop(&b);
}

static void what_an_epoch_lacks_has_a_reason(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"evaluates\":false}"), RL_OUTCOME_DONE);
  const rl_epoch *epoch = &b.records.epochs[0];
  assert_true(isnan(epoch->evaluation_ms) && isnan(epoch->test_accuracy_ratio) && isnan(epoch->power_w));
  cJSON *reasons = rl_json_parse(epoch->unavailable, strlen(epoch->unavailable), NULL);
  assert_non_null(reasons);
  for (const rl_field *field = rl_epoch_fields; field->name; field++) {
    if (field->type != RL_FIELD_MEASURE) continue;
    bool absent = isnan(*(const double *)((const char *)epoch + field->offset));
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(reasons, field->name);
    if (absent != cJSON_IsString(reason)) fail_msg("%s: absent %d, reason %d", field->name, absent, cJSON_IsString(reason));
  }
  assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(reasons, "power_w")), blind.reason);
  cJSON_Delete(reasons);
  for (size_t i = 0; i < b.records.measurement_count; i++) {
    const rl_measurement *m = &b.records.measurements[i];
    if (isnan(m->value) != (m->reason[0] != '\0')) fail_msg("%s: %g because of \"%s\"", m->name, m->value, m->reason);
  }
  stop(&b);
}

static void instances_stay_open_and_the_oldest_goes(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  double loss = b.records.epochs[2].train_loss;
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_opened, 1);
  assert_memory_equal(&loss, &b.records.epochs[2].train_loss, sizeof loss); /* bit for bit */
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":4}"), RL_OUTCOME_DONE);
  assert_int_equal(ask(&b, RL_PASS_ACTIVITY, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_opened, 2);
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":5}"), RL_OUTCOME_DONE); /* 4 is the one not used for longest */
  assert_int_equal(fake_closed, 1);
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_opened, 3);
  stop(&b);
}

static const rl_device_ops *planning;
static int plans, refused;

static int counted_plan(rl_device *device, const rl_program *program, rl_plan **plan, rl_error *err) {
  if (refused > 0 && refused--) return rl_fail(err, RL_CUDA, 2, "out of memory");
  plans++;
  return planning->plan(device, program, plan, err);
}

static void a_plan_is_made_by_the_pass_that_runs_it_and_kept(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  planning = b.device->ops;
  rl_device_ops counting = *planning;
  counting.plan = counted_plan;
  b.device->ops = &counting;
  assert_int_equal(ask(&b, RL_PASS_COUNTERS, "{}"), RL_OUTCOME_UNAVAILABLE);
  assert_int_equal(plans, 0);
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  const int made = plans;
  assert_in_range(made, 1, 2); /* an iteration, and an evaluation where there is one */
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_int_equal(plans, made);
  const int closed = fake_closed;
  refused = 1; /* a full device: what lies idle is given up, once */
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":3}"), RL_OUTCOME_DONE);
  assert_int_equal(fake_closed, closed + 1);
  refused = 2;
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":4}"), RL_OUTCOME_FAILED);
  refused = 0;
  b.device->ops = planning;
  stop(&b);
}

static void memory_is_counted_apart_from_other_instances(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  for (int round = 0; round < 2; round++) {
    assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"bytes\":5000}"), RL_OUTCOME_DONE);
    assert_true(measured(&b, "peak_memory_bytes")->value == 5100);
    assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"bytes\":50}"), RL_OUTCOME_DONE);
    assert_true(measured(&b, "peak_memory_bytes")->value == 300);
    assert_true(measured(&b, "memory_activations_bytes")->value == 50 && measured(&b, "memory_weights_bytes")->value == 100);
    assert_true(measured(&b, "memory_workspace_bytes")->value == 300 && measured(&b, "memory_dataset_bytes")->value == 0);
  }
  assert_true(measured(&b, "peak_rss_bytes")->value > 100000);
  assert_true(measured(&b, "launches_per_step")->value == 2);
  stop(&b);
}

static void a_full_device_gives_up_what_lies_idle(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"bytes\":50}"), RL_OUTCOME_DONE);
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"bytes\":4611686018427387904}"),
                   RL_OUTCOME_FAILED); /* beyond 2^53: a bad request */
  assert_int_equal(b.err.domain, RL_INPUT);
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"bytes\":9007199254740991}"), RL_OUTCOME_FAILED);
  assert_int_equal(b.err.code, ENOMEM);
  assert_int_equal(fake_closed, 1);
  assert_true(rl_service_healthy(b.service));
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"bytes\":50}"), RL_OUTCOME_DONE);
  stop(&b);
}

static void bad_requests_say_where(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  rl_request unknown = {.workload = "nothing", .params = "{}"};
  assert_int_equal(rl_service_serve(b.service, &unknown, &b.records, &b.err), RL_OUTCOME_FAILED);
  assert_int_equal(b.err.domain, RL_INPUT);
  assert_string_equal(b.err.pointer, "/workload");
  const struct {
    const char *params, *pointer;
  } bad[] = {{"{\"steps\":100000}", "/steps"}, {"{\"engine\":\"other\"}", "/engine"}, {"{\"wings\":2}", "/wings"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(ask(&b, RL_PASS_TIMING, bad[i].params), RL_OUTCOME_FAILED);
    assert_int_equal(b.err.domain, RL_INPUT);
    assert_string_equal(b.err.pointer, bad[i].pointer);
    assert_int_equal(b.facts, 0);
  }
  assert_int_equal(fake_opened, 0);
  stop(&b);
}

static void a_broken_launch_fails_one_request_only(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"fail_at\":7}"), RL_OUTCOME_FAILED);
  assert_non_null(strstr(b.err.message, "gather: the launch broke"));
  assert_int_equal(ask(&b, RL_PASS_ACTIVITY, "{\"fail_at\":3}"), RL_OUTCOME_FAILED);
  assert_true(rl_service_healthy(b.service));
  assert_int_equal(ask(&b, RL_PASS_ACTIVITY, "{}"), RL_OUTCOME_DONE); /* the trace was stopped */
  stop(&b);
}

static void cancelling_leaves_the_instance_usable(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  double loss = b.records.epochs[2].train_loss;
  for (int pass = RL_PASS_TIMING; pass <= RL_PASS_ACTIVITY; pass++)
    for (int at = 1; at < 30; at += 4) {
      b.cancel_at = at;
      rl_outcome outcome = ask(&b, (rl_pass)pass, "{}");
      if (b.asked >= at) assert_int_equal(outcome, RL_OUTCOME_CANCELLED);
      if (pass == RL_PASS_TIMING) assert_int_equal(b.asked, at); /* nothing was launched after it */
    }
  b.cancel_at = 0;
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_memory_equal(&loss, &b.records.epochs[2].train_loss, sizeof loss);
  stop(&b);
}

static void activity_accounts_for_every_launch(void **state) {
  (void)state;
  bench b;
  start(&b, "profiled");
  assert_int_equal(ask(&b, RL_PASS_ACTIVITY, "{\"steps\":50,\"nap_us\":100}"), RL_OUTCOME_DONE);
  assert_int_equal(b.records.row_count, 100);
  assert_true(measured(&b, "launches_issued")->value == 100 && measured(&b, "completeness_ratio")->value == 1);
  assert_true(measured(&b, "activity_records")->value == 100 && measured(&b, "activity_dropped_records")->value == 0);
  assert_true(measured(&b, "activity_zero_time_records")->value == 0);
  double busy = measured(&b, "device_busy_ratio")->value;
  assert_true(busy > 0.5 && busy <= 1);
  assert_true(measured(&b, "perturbation_ratio")->value > 0);
  assert_int_equal(b.records.kernel_count, 2);
  const rl_kernel *gathers = &b.records.kernels[0];
  assert_string_equal(gathers->launch, "gather"), assert_string_equal(gathers->phase, "data");
  assert_int_equal(gathers->launches, 50);
  assert_true(gathers->min_us >= 100 && gathers->median_us >= gathers->min_us && gathers->max_us >= gathers->median_us);
  assert_true(gathers->share_ratio > 0.5 && gathers->total_us >= 5000);
  for (size_t i = 0; i < b.records.row_count; i++)
    assert_true(b.records.rows[i].start_ns >= 0 && b.records.rows[i].end_ns >= b.records.rows[i].start_ns);
  stop(&b);
}

/* All steps in one launch: its phases lie inside its span, in their order, and only the traced iteration stamps. */
static void a_launch_of_many_steps_shows_its_phases(void **state) {
  (void)state;
  bench b;
  start(&b, "profiled");
  assert_int_equal(ask(&b, RL_PASS_ACTIVITY, "{\"steps\":20,\"nap_us\":200,\"whole\":true}"), RL_OUTCOME_DONE);
  assert_true(measured(&b, "launches_issued")->value == 1 && measured(&b, "completeness_ratio")->value == 1);
  assert_int_equal(b.records.kernel_count, 1);
  assert_string_equal(b.records.kernels[0].launch, "whole");
  assert_int_equal(b.records.row_count, 1 + 4 * 2);
  const rl_activity_row *launch = &b.records.rows[0], *before = NULL;
  for (size_t i = 1; i < b.records.row_count; i++) {
    const rl_activity_row *row = &b.records.rows[i];
    assert_int_equal(row->kind, RL_ACTIVITY_PHASE);
    assert_string_equal(b.records.names[row->name], i % 2 ? "gather" : "descend");
    assert_int_equal(row->step, (i - 1) / 2 + 1);
    assert_true(row->start_ns >= launch->start_ns && row->end_ns <= launch->end_ns && row->start_ns <= row->end_ns);
    if (before) assert_true(row->start_ns >= before->end_ns);
    if (i % 2) assert_true(row->end_ns - row->start_ns >= 200000);
    before = row;
  }
  assert_true(before->end_ns < launch->start_ns + (launch->end_ns - launch->start_ns) / 2); /* four steps of twenty */
  assert_true(measured(&b, "phase_rounds")->value == 1);
  assert_true(measured(&b, "phase_clock_error_us")->value >= 0 && measured(&b, "phase_clock_error_us")->value < 1000);
  assert_int_equal(b.records.phase_count, 2);
  const rl_phase *gather = &b.records.phases[0], *descend = &b.records.phases[1];
  assert_string_equal(gather->name, "gather"), assert_string_equal(gather->phase, "data");
  assert_true(gather->ordinal == 0 && gather->position == 0 && gather->steps == 4 && gather->blocks == 2);
  assert_true(gather->min_us == 0 && gather->max_us >= 200 && gather->mean_us >= 100); /* one block in two has a part in it */
  assert_true(descend->max_us >= 200 && fabs(gather->share_ratio + descend->share_ratio - 1) < 1e-9);
  assert_int_equal(ask(&b, RL_PASS_ACTIVITY, "{\"steps\":20,\"fail_at\":3,\"whole\":true}"), RL_OUTCOME_FAILED);
  stop(&b);
  start(&b, "clean");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":20,\"whole\":true}"), RL_OUTCOME_DONE);
  assert_true(measured(&b, "launches_per_step")->value == 1.0 / 20);
  stop(&b);
}

static int releases;

static void note_release(rl_profiler *profiler) {
  (void)profiler;
  releases++;
}

static void assert_releases(bench *b, rl_pass pass, const char *params, int expected) {
  int before = releases;
  ask(b, pass, params);
  assert_int_equal(releases - before, expected);
}

static void what_counting_keeps_is_released_for_all_else(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  rl_profiler_ops ops = *b.profiler->ops;
  ops.release = note_release;
  b.profiler->ops = &ops;
  assert_releases(&b, RL_PASS_COUNTERS, "{}", 1); /* the instance is opened */
  assert_releases(&b, RL_PASS_COUNTERS, "{}", 0);
  assert_releases(&b, RL_PASS_TIMING, "{}", 1);
  assert_releases(&b, RL_PASS_ACTIVITY, "{}", 1);
  assert_releases(&b, RL_PASS_COUNTERS, "{\"epochs\":3}", 1);
  assert_releases(&b, RL_PASS_COUNTERS, "{}", 0); /* still open */
  rl_service_release(b.service);
  assert_int_equal(releases, 5);
  stop(&b);
}

static void counters_say_why_they_are_missing(void **state) {
  (void)state;
  bench b;
  start(&b, "profiled");
  assert_int_equal(ask(&b, RL_PASS_COUNTERS, "{}"), RL_OUTCOME_UNAVAILABLE);
  assert_non_null(strstr(b.err.message, "no hardware counters"));
  assert_int_equal(b.facts, 1);
  stop(&b);
}

static void a_role_keeps_to_its_passes(void **state) {
  (void)state;
  bench b;
  start(&b, "clean");
  assert_int_equal(ask(&b, RL_PASS_ACTIVITY, "{}"), RL_OUTCOME_FAILED);
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  stop(&b);
  start(&b, "profiled");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{}"), RL_OUTCOME_FAILED);
  assert_int_equal(b.err.domain, RL_INPUT);
  stop(&b);
}

static void progress_is_rare_and_knows_where_it_is(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask(&b, RL_PASS_TIMING, "{\"steps\":300,\"nap_us\":1000,\"epochs\":2,\"warmup\":0}"), RL_OUTCOME_DONE);
  double seconds = (b.records.epochs[0].host_ms + b.records.epochs[1].host_ms) * 1e-3;
  assert_true(b.progress >= 2);
  assert_true(b.progress <= 2 + (int)(seconds * 5));
  assert_string_equal(b.last.pass, "timing");
  assert_int_equal(b.last.epochs, 2);
  assert_int_equal(b.last.epoch, 1);
  assert_true(b.last.step > 0 && b.last.step <= 300 && b.last.steps == 300);
  assert_true(b.last.eta_s > 0 && b.last.eta_s < seconds);
  assert_true(b.last.train_loss == b.records.epochs[0].train_loss);
  assert_true(b.last.images_per_s > 0);
  stop(&b);
}

/* Five steps of two launches an iteration; samples are of one step. */
static void launches_are_sampled(void **state) {
  (void)state;
  bench b;
  start(&b, "clean");
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{\"epochs\":3,\"error\":0.25,\"nap_us\":200}"), RL_OUTCOME_DONE);
  assert_int_equal(b.records.epoch_count, 0);
  assert_int_equal(b.records.sample_count, 6);
  double least = INFINITY;
  for (int i = 0; i < 6; i++) {
    const rl_sample *sample = &b.records.samples[i];
    assert_true(sample->mode == (i < 3 ? RL_SAMPLE_COLD : RL_SAMPLE_WARM) && sample->ordinal == i % 3 &&
                sample->device_us >= 200);
    if (i < 3 && sample->device_us < least) least = sample->device_us;
  }
  assert_true(measured(&b, "time_cold_us_min")->value == least);
  assert_true(measured(&b, "time_cold_us_median")->value >= least);
  double median_s = measured(&b, "time_cold_us_median")->value * 1e-6;
  assert_true(fabs(measured(&b, "achieved_bytes_per_s")->value * median_s / 10 - 1) < 1e-12);
  assert_true(measured(&b, "relative_error")->value == 0.25 && measured(&b, "relative_error_limit")->value == 0.5);
  assert_true(measured(&b, "checked_ratio")->value == 0.75);
  assert_true(measured(&b, "compile_ms")->value == 2.5 && isnan(measured(&b, "spill_bytes")->value));
  assert_string_equal(measured(&b, "spill_bytes")->reason, "nobody compiled it");
  assert_int_equal(measured(&b, "launches_per_step")->value, 2);
  stop(&b);
}

static void samples_come_with_their_conditions(void **state) {
  (void)state;
  bench b;
  start(&b, "clean");
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{\"epochs\":9,\"nap_us\":100}"), RL_OUTCOME_DONE);
  double us[9];
  for (int i = 0; i < 9; i++) us[i] = b.records.samples[9 + i].device_us;
  assert_true(measured(&b, "time_warm_us_spread_ratio")->value == rl_summarize(us, 9).spread_ratio);
  assert_true(measured(&b, "time_cold_us_spread_ratio")->value >= 0);
  static const char *const unread[] = {"sm_clock_least_mhz", "sm_clock_most_mhz", "memory_clock_mhz",
                                       "temperature_c_most", "power_w_most",      "throttled_ratio"};
  for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
    assert_true(isnan(measured(&b, unread[i])->value));
    assert_string_equal(measured(&b, unread[i])->reason, blind.reason);
  }
  sensed = &cool;
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(measured(&b, "sm_clock_least_mhz")->value == 1980 && measured(&b, "power_w_most")->value == 300);
  assert_true(measured(&b, "throttled_ratio")->value == 0); /* it was idle */
  sensed = &hot;
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  assert_true(measured(&b, "throttled_ratio")->value == 1 && measured(&b, "throttled_by_sw_power_cap_ratio")->value == 1);
  assert_true(measured(&b, "throttled_by_hw_thermal_slowdown_ratio")->value == 1);
  assert_true(measured(&b, "temperature_c_most")->value == 85 && measured(&b, "memory_clock_mhz")->value == 3201);
  sensed = &blind;
  stop(&b);
}

/* The best of three samples of one launch. */
static void rates_are_of_one_launch_each(void **state) {
  (void)state;
  bench b;
  start(&b, "clean");
  assert_int_equal(ask_for(&b, "fake_rates", RL_PASS_TIMING, "{\"epochs\":3,\"nap_us\":2000}"), RL_OUTCOME_DONE);
  assert_true(b.records.epoch_count == 0 && b.records.sample_count == 0);
  double rate = measured(&b, "gather_bytes_per_s")->value;
  assert_true(rate > 0 && rate < 1000 / 2000e-6);
  assert_true(isnan(measured(&b, "scatter_bytes_per_s")->value));
  assert_string_equal(measured(&b, "scatter_bytes_per_s")->reason, "nothing is scattered");
  assert_true(isnan(measured(&b, "throttled_ratio")->value) && measured(&b, "throttled_ratio")->reason[0]);
  assert_int_equal(ask_for(&b, "fake_rates", RL_PASS_TIMING, "{\"fail_at\":2}"), RL_OUTCOME_FAILED);
  stop(&b);
}

static void a_wrong_result_fails_the_pass(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{\"error\":0.75}"), RL_OUTCOME_FAILED);
  assert_true(b.err.domain == RL_SYS && b.err.code == EDOM);
  assert_non_null(strstr(b.err.message, "0.75"));
  assert_int_equal(b.records.sample_count, 0);
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{\"error\":null}"), RL_OUTCOME_FAILED); /* not a number */
  stop(&b);
}

/* The step's second gather finds no room, unless what the first one took is given back: between samples, between the steps of an
 * iteration, and after the check, which ran one. */
static void what_a_step_uses_up_is_restored(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{\"once\":true}"), RL_OUTCOME_FAILED);
  assert_non_null(strstr(b.err.message, "the buffer is full"));
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{\"once\":true,\"restored\":true}"), RL_OUTCOME_DONE);
  assert_int_equal(b.records.sample_count, 4);
  assert_int_equal(measured(&b, "launches_per_step")->value, 2);
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_ACTIVITY, "{\"once\":true,\"restored\":true}"), RL_OUTCOME_DONE);
  assert_true(measured(&b, "completeness_ratio")->value == 1 && measured(&b, "launches_issued")->value == 10);
  stop(&b);
}

static void a_device_without_samples_says_so(void **state) {
  (void)state;
  bench b;
  start(&b, "any");
  const rl_device_ops *whole = b.device->ops;
  rl_device_ops less = *whole;
  less.sample = NULL;
  b.device->ops = &less;
  assert_int_equal(ask_for(&b, "fake_launch", RL_PASS_TIMING, "{}"), RL_OUTCOME_DONE);
  static const char *const absent[] = {"time_cold_us_median", "time_cold_us_min",          "time_warm_us_median",
                                       "time_warm_us_min",    "time_cold_us_spread_ratio", "achieved_bytes_per_s"};
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    assert_true(isnan(measured(&b, absent[i])->value) && measured(&b, absent[i])->reason[0]);
  assert_int_equal(b.records.sample_count, 0);
  b.device->ops = whole;
  stop(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(launches_are_sampled),
                                     cmocka_unit_test(samples_come_with_their_conditions),
                                     cmocka_unit_test(rates_are_of_one_launch_each),
                                     cmocka_unit_test(a_wrong_result_fails_the_pass),
                                     cmocka_unit_test(what_a_step_uses_up_is_restored),
                                     cmocka_unit_test(a_device_without_samples_says_so),
                                     cmocka_unit_test(warm_up_is_stored_and_then_undone),
                                     cmocka_unit_test(what_an_epoch_lacks_has_a_reason),
                                     cmocka_unit_test(instances_stay_open_and_the_oldest_goes),
                                     cmocka_unit_test(a_plan_is_made_by_the_pass_that_runs_it_and_kept),
                                     cmocka_unit_test(memory_is_counted_apart_from_other_instances),
                                     cmocka_unit_test(a_full_device_gives_up_what_lies_idle),
                                     cmocka_unit_test(bad_requests_say_where),
                                     cmocka_unit_test(a_broken_launch_fails_one_request_only),
                                     cmocka_unit_test(cancelling_leaves_the_instance_usable),
                                     cmocka_unit_test(activity_accounts_for_every_launch),
                                     cmocka_unit_test(a_launch_of_many_steps_shows_its_phases),
                                     cmocka_unit_test(counters_say_why_they_are_missing),
                                     cmocka_unit_test(what_counting_keeps_is_released_for_all_else),
                                     cmocka_unit_test(a_role_keeps_to_its_passes),
                                     cmocka_unit_test(progress_is_rare_and_knows_where_it_is)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
