/* Implements profiler.h for CUDA devices in the module rooflined-cupti.so, which exports only rl_profiler_open. */
#include "worker/profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "worker/cupti/counters.h"
#include "worker/cupti/occupancy.h"
#include "worker/cupti/pc_sampling.h"
#include "worker/cupti/subscriber.h"
#include "worker/cupti/trace.h"

typedef struct cupti_profiler {
  rl_profiler base;
  rl_trace *trace;
  rl_device_limits limits;
  rl_counters counters;
} cupti_profiler;

static int trace_start(rl_profiler *base, rl_error *err) {
  cupti_profiler *profiler = (cupti_profiler *)base;
  return rl_trace_start(profiler->trace, rl_trace_all_kinds, err);
}

static int trace_stop(rl_profiler *base, rl_records *records, rl_error *err) {
  cupti_profiler *profiler = (cupti_profiler *)base;
  rl_trace_result traced;
  if (rl_trace_stop(profiler->trace, &traced, err) < 0) return -1;
  if (records == NULL) return 0;
  for (size_t i = 0; i < traced.names->count; i++) {
    const char *text = traced.names->items[i].demangled;
    if (rl_records_add_name(records, text, strlen(text), err) < 0) return -1;
  }
  if (rl_records_add(records, RL_RECORD_ROW, traced.rows, traced.row_count, err) < 0) return -1;
  const struct {
    const char *name;
    uint64_t value;
  } counts[] = {{"activity_kernel_records", traced.kernel_count},
                {"activity_records", traced.record_count},
                {"activity_dropped_records", traced.dropped_count},
                {"activity_zero_time_records", traced.zero_time_record_count}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    if (rl_records_add_measurement(records, counts[i].name, (double)counts[i].value, NULL, err) < 0) return -1;
  return 0;
}

static int collect_counters(rl_profiler *base, rl_instance *instance, const rl_profile_options *profile_options,
                            const rl_observer *observer, rl_records *records, char reason[RL_REASON_SIZE], rl_error *err) {
  cupti_profiler *profiler = (cupti_profiler *)base;
  return rl_counters_collect(&profiler->counters, instance, profile_options, observer, records, reason, err);
}

static void release_counters(rl_profiler *base) { rl_counters_reset(&((cupti_profiler *)base)->counters); }

static void prepare_counters(rl_profiler *base) { rl_counters_prepare(&((cupti_profiler *)base)->counters); }

static double occupancy(rl_profiler *base, const rl_activity_row *row) {
  const cupti_profiler *profiler = (const cupti_profiler *)base;
  return rl_occupancy_ratio(&profiler->limits, row, -1);
}

static void close_profiler(rl_profiler *base) {
  cupti_profiler *profiler = (cupti_profiler *)base;
  if (profiler == NULL) return;
  rl_counters_close(&profiler->counters);
  rl_trace_close(profiler->trace);
  rl_subscriber_close();
  free(profiler);
}

static const rl_profiler_ops ops = {.trace_start = trace_start,
                                    .trace_stop = trace_stop,
                                    .collect_counters = collect_counters,
                                    .release_counters = release_counters,
                                    .prepare_counters = prepare_counters,
                                    .occupancy = occupancy,
                                    .close = close_profiler};

rl_profiler *rl_profiler_open(int device_index, rl_error *err) {
  cupti_profiler *profiler = calloc(1, sizeof *profiler);
  if (profiler == NULL) {
    rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the profiler");
    return NULL;
  }
  const char *log_level = getenv("ROOFLINED_LOG_LEVEL");
  rl_log_open("rooflined-cupti",
              rl_log_level_by_name(log_level != NULL ? log_level : "")); /* this module has its own copy of the log */
  profiler->base.ops = &ops;
  /* Must run before the first CUDA call creates a context, because CUPTI must see the creation. */
  rl_subscriber_open(rl_pc_sampling_on_context_created);
  if (rl_trace_open(&profiler->trace, err) < 0 || rl_device_limits_read(device_index, &profiler->limits, err) < 0) {
    close_profiler(&profiler->base);
    return NULL;
  }
  profiler->counters = (rl_counters){.device_index = device_index, .trace = profiler->trace, .device_limits = &profiler->limits};
  return &profiler->base;
}
