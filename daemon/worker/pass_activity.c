/* The activity pass: an untraced iteration, then a traced one. Each follows a warm-up of the same kind; the records of the traced
 * warm-up are discarded. On CUDA a further trace executes each sequence once, launch by launch, so that kernels of the traced
 * iteration can be attributed to launches. Phase timestamps are recorded only under tracing with graphs. A kernel that records
 * them is a separate version of the kernel that the other passes run, with another name.
 *
 *   perturbation_ratio   traced time / untraced time of the iteration: the overhead of tracing and timestamps
 *   completeness_ratio   records of kernels, copies and memsets (CPU: spans) / operations issued
 *   device_busy_ratio    union of work intervals / traced time
 *   launch_gap_ratio     1 − union of work intervals / untraced time: the share of an untraced iteration without work on the
 *                        device. If kernels record timestamps: 1 − device_busy_ratio
 *
 * launch_gap_ratio uses the untraced time, because tracing lengthens gaps more than kernels; but timestamps lengthen the kernels.
 * If the union of work intervals exceeds the untraced time by a ratio of at most MAX_NEGATIVE_GAP_RATIO, launch_gap_ratio is 0.
 * If the ratio is larger, tracing changed the work, and launch_gap_ratio is unavailable. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/phases.h"
#include "analyze/timeline.h"
#include "base/clock.h"
#include "worker/pass.h"

static const int64_t WARMUP_NS = 3000000000;
static const double MAX_NEGATIVE_GAP_RATIO = 0.05;

typedef struct expected_launches {
  rl_expected_launch *items;
  size_t count;
} expected_launches;

static void free_expected(expected_launches *list) { free(list->items); }

/* Lists the launches of an iteration in order, without sequences that repeat 0 times. */
static int list_launches(const rl_sequence_list *sequence_list, expected_launches *list, rl_error *err) {
  size_t capacity = 1;
  for (size_t s = 0; s < sequence_list->sequence_count; s++) capacity += sequence_list->sequences[s].launch_count;
  list->items = calloc(capacity, sizeof *list->items);
  if (!list->items) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the launches");
  for (size_t s = 0; s < sequence_list->sequence_count; s++) {
    const rl_sequence *sequence = &sequence_list->sequences[s];
    for (size_t l = 0; l < sequence->launch_count && sequence->repeat > 0; l++)
      list->items[list->count++] = (rl_expected_launch){.name = sequence->launches[l].name,
                                                        .phase = sequence->launches[l].nvtx_range,
                                                        .sequence_index = (uint32_t)s,
                                                        .repeats = sequence->repeat};
  }
  return 0;
}

/* Runs an iteration, or a part of it, and waits until the device is idle. rl_pass_run_iteration is one. */
typedef int run_function(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);

static bool is_cancelled(const rl_observer *observer) { return observer->cancelled && observer->cancelled(observer->context); }

/* --- warm-up ------------------------------------------------------------------------------------------------------------- */

typedef struct time_limit { /* cancels an iteration at until_ns, or when the request is cancelled */
  const rl_observer *request_observer;
  int64_t until_ns;
} time_limit;

static bool is_time_over(void *context) {
  const time_limit *limit = context;
  return rl_monotonic_ns() > limit->until_ns || is_cancelled(limit->request_observer);
}

/* Runs an iteration for at most WARMUP_NS, so that clocks rise and caches fill, also those of the profiler on the host. */
static int warm_up(rl_pass_context *pass, run_function *run, rl_error *err) {
  time_limit limit = {.request_observer = &pass->observer, .until_ns = rl_monotonic_ns() + WARMUP_NS};
  rl_observer observer = {.context = &limit, .cancelled = is_time_over};
  rl_elapsed elapsed;
  rl_pass_enter_phase(pass, "warmup", -1, -1);
  if (pass->instance->ops->reset(pass->instance, err) < 0) return -1;
  int rc = run(pass, &observer, &elapsed, err);
  bool stopped = rc && rl_outcome_of_error(rc, err) == RL_OUTCOME_CANCELLED;
  if (stopped && is_cancelled(&pass->observer)) return -1;
  return stopped ? 0 : rc;
}

/* --- tracing ------------------------------------------------------------------------------------------------------------- */

typedef struct traced_run { /* the observer of a traced run forwards to these */
  const rl_observer *observer;
  rl_profiler *profiler;
} traced_run;

static bool forward_cancelled(void *context) { return is_cancelled(((const traced_run *)context)->observer); }
static void forward_progress(void *context, uint64_t done, uint64_t total) {
  const rl_observer *observer = ((const traced_run *)context)->observer;
  if (observer->progress) observer->progress(observer->context, done, total);
}
static void forward_span(void *context, const rl_span *span) {
  rl_profiler *profiler = ((const traced_run *)context)->profiler;
  if (profiler->ops->add_span) profiler->ops->add_span(profiler, span);
}

/* Executes run while the profiler records a trace, and adds the trace to records. If records is NULL or run fails, discards the
 * trace. */
static int record_trace(rl_pass_context *pass, rl_records *records, run_function *run, const rl_observer *observer,
                        rl_elapsed *elapsed, rl_error *err) {
  rl_profiler *profiler = pass->profiler;
  traced_run forwarded = {observer, profiler};
  const rl_observer forwarding = {&forwarded, forward_cancelled, forward_progress, forward_span};
  if (profiler->ops->trace_start(profiler, err) < 0) return -1;
  int rc = run(pass, &forwarding, elapsed, err);
  if (rc == 0) return profiler->ops->trace_stop(profiler, records, err);
  profiler->ops->trace_stop(profiler, NULL, NULL);
  return -1;
}

/* --- phases inside a launch ----------------------------------------------------------------------------------------- */

/* Creates a separate executable with timestamps enabled, because an executable captures the arguments of its launches. */
static int enable_timestamps(rl_pass_context *pass, rl_error *err) {
  rl_instance *instance = pass->instance;
  if (!instance->ops->set_phase_timestamps) return 0;
  if (instance->ops->set_phase_timestamps(instance, true, err) < 0) return -1;
  return pass->device->ops->instantiate(pass->device, &instance->iteration, &pass->timestamped_executable, err);
}

static void disable_timestamps(rl_pass_context *pass) {
  rl_instance *instance = pass->instance;
  if (pass->timestamped_executable) pass->device->ops->free_executable(pass->device, pass->timestamped_executable);
  pass->timestamped_executable = NULL;
  if (instance->ops->set_phase_timestamps) instance->ops->set_phase_timestamps(instance, false, NULL);
}

static int run_timestamped(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  if (!pass->timestamped_executable) return rl_pass_run_iteration(pass, observer, elapsed, err);
  return pass->device->ops->run(pass->device, pass->timestamped_executable, observer, elapsed, err);
}

/* Runs the traced iteration without keeping its records. */
static int run_discarded(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  return record_trace(pass, NULL, run_timestamped, observer, elapsed, err);
}

static int read_timestamps(rl_pass_context *pass, rl_phase_timestamps *timestamps, rl_error *err) {
  return pass->timestamped_executable ? pass->instance->ops->read_phase_timestamps(pass->instance, timestamps, err) : 0;
}

static int add_phases(rl_pass_context *pass, const rl_phase_timestamps *timestamps, rl_error *err) {
  return pass->timestamped_executable ? rl_phases_add(pass->records, timestamps, err) : 0;
}

/* --- attribution of kernels to launches --------------------------------------------------------------------------------- */

/* Runs every sequence once, launch by launch. */
static int run_each_once(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  rl_sequence_list sequence_list = pass->instance->iteration;
  rl_sequence *once = calloc(sequence_list.sequence_count + 1, sizeof *once);
  if (!once) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a step");
  for (size_t s = 0; s < sequence_list.sequence_count; s++) {
    once[s] = sequence_list.sequences[s];
    if (once[s].repeat > 1) once[s].repeat = 1;
  }
  sequence_list.sequences = once;
  int rc = pass->device->ops->run_eager(pass->device, &sequence_list, observer, elapsed, err);
  free(once);
  return rc;
}

static int build_launch_map(rl_pass_context *pass, const expected_launches *expected, rl_launch_map **launch_map, rl_error *err) {
  rl_records trace_without_graphs = {0};
  rl_elapsed elapsed;
  int rc = pass->instance->ops->reset(pass->instance, err);
  if (!rc) rc = record_trace(pass, &trace_without_graphs, run_each_once, &pass->observer, &elapsed, err);
  if (!rc) rc = rl_launch_map_build(&trace_without_graphs, expected->items, expected->count, launch_map, err);
  rl_records_clear(&trace_without_graphs);
  return rc;
}

static double theoretical_occupancy(void *context, const rl_activity_row *row) {
  rl_profiler *profiler = context;
  return profiler->ops->occupancy(profiler, row);
}

static int add_trace_measurements(rl_pass_context *pass, const rl_elapsed *untraced, const rl_elapsed *traced, rl_error *err) {
  rl_busy_time busy;
  if (rl_timeline_measure_busy_time(pass->records->rows, pass->records->row_count, &busy, err) < 0) return -1;
  double busy_ms = busy.row_count ? (double)busy.busy_ns * 1e-6 : NAN;
  double gap = 1 - busy_ms / (pass->timestamped_executable ? traced : untraced)->device_ms;
  bool is_unknown = gap < -MAX_NEGATIVE_GAP_RATIO;
  if (gap < 0 && !is_unknown) gap = 0;
  const char *no_rows = "the trace contains no work of the device";
  const rl_named_value values[] = {
      {"epoch_untraced_ms", untraced->device_ms, NULL},
      {"epoch_traced_ms", traced->device_ms, NULL},
      {"perturbation_ratio", traced->device_ms / untraced->device_ms, "no time passed"},
      {"launches_issued", (double)traced->stream_operations, NULL},
      {"completeness_ratio", traced->stream_operations ? (double)busy.row_count / (double)traced->stream_operations : NAN,
       "nothing was launched"},
      {"device_busy_ratio", busy_ms / traced->device_ms, no_rows},
      {"launch_gap_ratio", is_unknown ? NAN : gap,
       is_unknown ? "the work took longer under tracing than the whole untraced epoch" : no_rows}};
  return rl_pass_add_measurements(pass, values, sizeof values / sizeof *values, err);
}

static int run_activity(rl_pass_context *pass, rl_error *err) {
  RL_CLEANUP(free_expected) expected_launches expected = {0};
  RL_CLEANUP(rl_launch_map_cleanup) rl_launch_map *launch_map = NULL;
  rl_elapsed untraced, traced;
  rl_phase_timestamps timestamps;
  bool is_gpu = pass->device->kind == RL_DEVICE_CUDA;
  pass->iterations_total = 2;
  if (list_launches(&pass->instance->iteration, &expected, err) < 0 || warm_up(pass, rl_pass_run_iteration, err) < 0) return -1;

  rl_pass_enter_phase(pass, "epoch", 0, 1);
  if (pass->instance->ops->reset(pass->instance, err) < 0 || rl_pass_run_iteration(pass, &pass->observer, &untraced, err) < 0)
    return -1;
  rl_pass_iteration_done(pass);

  if (enable_timestamps(pass, err) < 0 || warm_up(pass, run_discarded, err) < 0) return -1;
  rl_pass_enter_phase(pass, "trace", 0, 1);
  if (pass->instance->ops->reset(pass->instance, err) < 0) return -1;
  if (record_trace(pass, pass->records, run_timestamped, &pass->observer, &traced, err) < 0 ||
      read_timestamps(pass, &timestamps, err) < 0)
    return -1;
  rl_pass_iteration_done(pass);

  if (is_gpu && build_launch_map(pass, &expected, &launch_map, err) < 0) return -1;
  rl_kernel_summary_options options = {
      .launch_map = launch_map,
      .expected = expected.items,
      .expected_count = expected.count,
      .epoch_us = traced.device_ms * 1e3,
      .occupancy = is_gpu ? theoretical_occupancy : NULL,
      .context = pass->profiler,
      .missing_values_reason = is_gpu ? NULL : "a launch on the CPU has no registers, grid or occupancy"};
  if (rl_timeline_summarize_kernels(pass->records, &options, pass->records, err) < 0 || add_phases(pass, &timestamps, err) < 0)
    return -1;
  return add_trace_measurements(pass, &untraced, &traced, err);
}

rl_outcome rl_activity_run(rl_pass_context *pass, rl_error *err) {
  if (!pass->profiler) {
    rl_fail(err, RL_ERRNO, ENOTSUP, "%s", pass->no_profiler_reason);
    return RL_OUTCOME_UNAVAILABLE;
  }
  int rc = run_activity(pass, err);
  disable_timestamps(pass);
  return rl_outcome_of_error(rc, err);
}
