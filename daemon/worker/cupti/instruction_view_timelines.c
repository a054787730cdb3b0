/* Timelines of a kernel: counters of the device at a fixed interval (PM sampling) while the kernel runs alone with cold caches.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>

#include "worker/cupti/check.h"
#include "worker/cupti/instruction_view_internal.h"

/* Series and their metrics. The first metric shows when the kernel runs. A metric has no series when the chip does not have it,
 * or when it does not fit into one pass together with the metrics before it. */
static const struct {
  const char *series, *metric;
} timelines[] = {{"sm_active_pct", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
                 {"instructions_pct", "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed"},
                 {"dram_read_pct", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"},
                 {"dram_write_pct", "dram__write_throughput.avg.pct_of_peak_sustained_elapsed"},
                 {"l2_sectors_pct", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"},
                 {"warps_active_pct", "sm__warps_active_realtime.avg.pct_of_peak_sustained_elapsed"},
                 {"tensor_active_pct", "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed"}};
enum { TIMELINES = sizeof timelines / sizeof *timelines };

enum { MIN_SAMPLES = 32, MAX_SAMPLES = 512 }; /* per kernel */
static const double MIN_INTERVAL_NS = 2000, MIN_ACTIVE_PCT = 0.1;

/* Returns the index of the launch's kernel; -1 when it is not selected or the launch has several kernels. */
static int single_kernel(const rl_instruction_view *view, size_t launch) {
  const rl_instruction_view_request *request = view->request;
  int found = -1;
  for (size_t k = 0; k < request->kernel_count; k++) {
    if (request->kernels[k].launch != launch) continue;
    if (found >= 0) return -1;
    found = (int)k;
  }
  return found >= 0 && request->kernels[found].ordinal >= 0 ? found : -1;
}

static double choose_interval(const rl_instruction_view *view) {
  double longest = 0;
  for (size_t k = 0; k < view->request->kernel_count; k++)
    if (single_kernel(view, view->request->kernels[k].launch) == (int)k)
      longest = fmax(longest, view->request->kernels[k].duration_ns);
  return fmax(MIN_INTERVAL_NS, 1000 * ceil(longest / MAX_SAMPLES / 1000));
}

/* Sets the reason of each kernel that has no timelines. Returns how many kernels have timelines. */
static size_t choose_kernels(rl_instruction_view *view) {
  size_t chosen = 0;
  for (size_t k = 0; k < view->request->kernel_count; k++) {
    const rl_launched_kernel *launched = &view->request->kernels[k];
    char *reason = view->kernels[k].no_timeline_reason;
    if (single_kernel(view, launched->launch) != (int)k)
      snprintf(reason, RL_REASON_SIZE, "its launch has several kernels, whose samples cannot be told apart");
    else if (launched->duration_ns < MIN_SAMPLES * view->pm_interval_ns)
      snprintf(reason, RL_REASON_SIZE, "the kernel takes %.4g us: too short for %d samples, one every %g us",
               launched->duration_ns * 1e-3, MIN_SAMPLES, view->pm_interval_ns * 1e-3);
    else chosen++;
  }
  return chosen;
}

/* Returns the index of the current launch's kernel when it has timelines, else -1. */
static int kernel_with_timelines(const rl_instruction_view *view) {
  int kernel = single_kernel(view, view->launch);
  return kernel >= 0 && view->kernels[kernel].no_timeline_reason[0] == '\0' ? kernel : -1;
}

static bool is_active(const rl_pm_sample *sample) { return sample->values[0] > MIN_ACTIVE_PCT; }

/* Limits the samples to those from the first to the last with an active SM. Drops the first sample, which also covers the time
 * before sampling started. */
static void trim(const rl_pm_sample **samples, size_t *count) {
  size_t first = 1, end = *count;
  while (first < end && !is_active(&(*samples)[first])) first++;
  while (end > first && !is_active(&(*samples)[end - 1])) end--;
  *samples += first;
  *count = end - first;
}

static int append_series(rl_instruction_view *view, int64_t ordinal, size_t metric, const rl_pm_sample *samples, size_t count,
                         rl_error *err) {
  const rl_counter_group *group = &view->pm_sampling_plan->groups[0];
  rl_series_point point = {.ordinal = ordinal};
  snprintf(point.name, sizeof point.name, "%s", timelines[group->metrics[metric]].series);
  for (size_t i = 0; i < count; i++) {
    point.x = (double)(samples[i].start_ns - samples[0].start_ns);
    point.value = samples[i].values[metric];
    if (rl_records_add(view->records, RL_RECORD_POINT, &point, 1, err) < 0) return -1;
  }
  return 0;
}

static int append_timelines(rl_instruction_view *view, size_t kernel, const rl_pm_sample *samples, size_t count, rl_error *err) {
  trim(&samples, &count);
  if (count == 0) snprintf(view->kernels[kernel].no_timeline_reason, RL_REASON_SIZE, "the kernel ran in none of the samples");
  for (size_t m = 0; m < view->pm_sampling_plan->groups[0].count; m++)
    if (append_series(view, view->request->kernels[kernel].ordinal, m, samples, count, err) < 0) return -1;
  return 0;
}

/* Flushes L2 and waits, so that the samples do not contain the flush; then starts sampling. */
static int start_sampling(rl_instruction_view *view, rl_error *err) {
  cudaStream_t stream = view->request->instance->device->stream;
  if (kernel_with_timelines(view) < 0) return 0;
  rl_cache_flush_run(view->request->flush, stream);
  if (rl_cuda_check(cudaStreamSynchronize(stream), "copies that flush L2", err) < 0) return -1;
  return rl_pm_sampling_start(view->pm_sampling, err);
}

static int stop_sampling(rl_instruction_view *view, rl_error *err) {
  int kernel = kernel_with_timelines(view);
  const rl_pm_sample *samples;
  size_t count;
  if (kernel < 0) return 0;
  return rl_pm_sampling_stop(view->pm_sampling, &samples, &count, err) < 0
             ? -1
             : append_timelines(view, (size_t)kernel, samples, count, err);
}

/* Plans the series that the chip has. The view keeps the plan. */
static int make_plan(rl_instruction_view *view, rl_error *err) {
  const char *names[TIMELINES];
  for (size_t i = 0; i < TIMELINES; i++) names[i] = timelines[i].metric;
  if (view->pm_sampling_plan == NULL &&
      rl_counter_plan_open_for_sampling(view->chip, names, TIMELINES, &view->pm_sampling_plan, err) < 0)
    return -1;
  if (view->pm_sampling_plan->group_count > 0 && view->pm_sampling_plan->groups[0].metrics[0] == 0) return 0;
  return rl_fail(err, RL_CUPTI, 0, "CUPTI cannot sample the SMs' activity on chip %s", view->chip);
}

int rl_instruction_view_collect_timelines(rl_instruction_view *view, rl_error *err) {
  view->pm_interval_ns = choose_interval(view);
  if (choose_kernels(view) == 0) return 0;
  view->request->release_counters(view->request->context);
  if (make_plan(view, err) < 0 || rl_pm_sampling_open(view->device_index, &view->pm_sampling_plan->groups[0],
                                                      (uint64_t)view->pm_interval_ns, &view->pm_sampling, err) < 0)
    return -1;
  int result = rl_instruction_view_replay(view, start_sampling, stop_sampling, err);
  rl_pm_sampling_close(view->pm_sampling);
  view->pm_sampling = NULL;
  return result;
}
