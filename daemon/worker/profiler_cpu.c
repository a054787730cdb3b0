/* Implements profiler.h for the CPU. While a trace runs, it keeps the spans of launches that the device reports. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "worker/profiler.h"

typedef struct cpu_profiler {
  rl_profiler base;
  bool tracing;
  uint32_t thread; /* the thread that starts the trace; it also runs all launches */
  int64_t start_ns;
  rl_span *spans;
  size_t count, capacity, dropped;
} cpu_profiler;

static int trace_start(rl_profiler *profiler, rl_error *err) {
  cpu_profiler *self = (cpu_profiler *)profiler;
  if (self->tracing) return rl_fail(err, RL_INPUT, 0, "a trace is already running");
  self->tracing = true;
  self->count = self->dropped = 0;
  self->thread = (uint32_t)gettid();
  self->start_ns = rl_monotonic_ns();
  return 0;
}

static void add_span(rl_profiler *profiler, const rl_span *span) {
  cpu_profiler *self = (cpu_profiler *)profiler;
  if (!self->tracing) return;
  if (rl_array_reserve(&self->spans, self->count, &self->capacity, sizeof *span, NULL) < 0) self->dropped++;
  else self->spans[self->count++] = *span;
}

/* Finds the name among records->names[first_name...], or adds it. */
static int find_or_add_name(rl_records *records, size_t first_name, const char *name, uint32_t *index, rl_error *err) {
  for (size_t i = first_name; i < records->name_count; i++)
    if (strcmp(records->names[i], name) == 0) {
      *index = (uint32_t)i;
      return 0;
    }
  *index = (uint32_t)records->name_count;
  return rl_records_add_name(records, name, strlen(name), err);
}

static int trace_stop(rl_profiler *profiler, rl_records *records, rl_error *err) {
  cpu_profiler *self = (cpu_profiler *)profiler;
  if (!self->tracing) return rl_fail(err, RL_INPUT, 0, "no trace is running");
  self->tracing = false;
  if (!records) return 0;
  size_t first_name = records->name_count, untimed = 0;
  for (size_t i = 0; i < self->count; i++) {
    const rl_span *span = &self->spans[i];
    rl_activity_row row = {.kind = RL_ACTIVITY_CPU_SPAN,
                           .start_ns = span->start_ns - self->start_ns,
                           .end_ns = span->end_ns - self->start_ns,
                           .process = (uint32_t)getpid(),
                           .thread = self->thread};
    uint32_t name;
    if (find_or_add_name(records, first_name, span->launch->name, &name, err) < 0) return -1;
    row.name = name;
    untimed += span->start_ns == 0 || span->end_ns == 0;
    if (rl_records_add(records, RL_RECORD_ROW, &row, 1, err) < 0) return -1;
  }
  if (rl_records_add_measurement(records, "activity_kernel_records", NAN, "the CPU device runs no GPU kernels", err) < 0 ||
      rl_records_add_measurement(records, "activity_records", (double)self->count, NULL, err) < 0 ||
      rl_records_add_measurement(records, "activity_dropped_records", (double)self->dropped, NULL, err) < 0 ||
      rl_records_add_measurement(records, "activity_zero_time_records", (double)untimed, NULL, err) < 0)
    return -1;
  return 0;
}

static int collect_counters(rl_profiler *profiler, rl_instance *instance, const rl_profile_options *profile_options,
                            const rl_observer *observer, rl_records *records, char reason[RL_REASON_SIZE], rl_error *err) {
  (void)profiler, (void)instance, (void)profile_options, (void)observer, (void)records, (void)err;
  snprintf(reason, RL_REASON_SIZE, "no hardware counters are collected on the CPU device");
  return 1; /* 1: counters can't be collected on this device */
}

static double occupancy(rl_profiler *profiler, const rl_activity_row *row) {
  (void)profiler, (void)row;
  return NAN;
}

static void close_profiler(rl_profiler *profiler) {
  free(((cpu_profiler *)profiler)->spans);
  free(profiler);
}

rl_profiler *rl_profiler_open(int device_index, rl_error *err) {
  static const rl_profiler_ops ops = {.trace_start = trace_start,
                                      .trace_stop = trace_stop,
                                      .collect_counters = collect_counters,
                                      .occupancy = occupancy,
                                      .close = close_profiler,
                                      .add_span = add_span};
  (void)device_index;
  cpu_profiler *self = calloc(1, sizeof *self);
  if (!self) {
    rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the profiler");
    return NULL;
  }
  self->base.ops = &ops;
  return &self->base;
}
