/* Samples the device's counters at a fixed interval (PM sampling) while a kernel runs alone with cold caches. The values of one
 * metric are a timeline of the kernel. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>

#include "worker/cupti/check.h"
#include "worker/cupti/instruction_profiler_internal.h"

/* The timelines and their metrics. The first metric, the SMs' activity, shows when the kernel runs. A timeline is missing if the
 * chip does not have its metric, or if the metric does not fit into one pass with the metrics before it. */
static const struct {
  const char *name, *metric;
} timelines[] = {{"sm_active_pct", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
                 {"instructions_pct", "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed"},
                 {"dram_read_pct", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"},
                 {"dram_write_pct", "dram__write_throughput.avg.pct_of_peak_sustained_elapsed"},
                 {"l2_sectors_pct", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"},
                 {"warps_active_pct", "sm__warps_active_realtime.avg.pct_of_peak_sustained_elapsed"},
                 {"tensor_active_pct", "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed"}};
enum { TIMELINE_COUNT = sizeof timelines / sizeof *timelines };

enum { MIN_SAMPLES = 32, MAX_SAMPLES = 512 }; /* numbers of samples per kernel */
static const double MIN_INTERVAL_NS = 2000, MIN_ACTIVE_PCT = 0.1;

/* Returns the index of the launch's kernel, or -1 if the kernel is not selected or the launch has several kernels. */
static int sole_kernel_of_launch(const rl_instruction_profiler *profiler, size_t launch) {
  const rl_instruction_profiler_request *request = profiler->request;
  int found = -1;
  for (size_t k = 0; k < request->kernel_count; k++) {
    if (request->kernels[k].launch_index != launch) continue;
    if (found >= 0) return -1;
    found = (int)k;
  }
  return found >= 0 && rl_kernel_is_selected(&request->kernels[found]) ? found : -1;
}

static double choose_interval_ns(const rl_instruction_profiler *profiler) {
  double longest_ns = 0;
  for (size_t k = 0; k < profiler->request->kernel_count; k++)
    if (sole_kernel_of_launch(profiler, profiler->request->kernels[k].launch_index) == (int)k)
      longest_ns = fmax(longest_ns, profiler->request->kernels[k].duration_ns);
  return fmax(MIN_INTERVAL_NS, 1000 * ceil(longest_ns / MAX_SAMPLES / 1000));
}

/* Sets the reason of each kernel that gets no timelines. Returns the number of kernels that get timelines. */
static size_t choose_kernels_with_timelines(rl_instruction_profiler *profiler) {
  size_t chosen = 0;
  for (size_t k = 0; k < profiler->request->kernel_count; k++) {
    const rl_launched_kernel *launched = &profiler->request->kernels[k];
    char *reason = profiler->kernels[k].no_timeline_reason;
    if (sole_kernel_of_launch(profiler, launched->launch_index) != (int)k)
      snprintf(reason, RL_REASON_SIZE, "its launch has several kernels; a sample does not tell which of them ran");
    else if (launched->duration_ns < MIN_SAMPLES * profiler->pm_interval_ns)
      snprintf(reason, RL_REASON_SIZE, "the kernel takes %.4g µs: too short for %d samples, one every %g µs",
               launched->duration_ns * 1e-3, MIN_SAMPLES, profiler->pm_interval_ns * 1e-3);
    else chosen++;
  }
  return chosen;
}

/* Returns the index of the kernel of the launch that is being replayed, or -1 if the kernel has no timelines. */
static int sampled_kernel_of_current_launch(const rl_instruction_profiler *profiler) {
  int kernel = sole_kernel_of_launch(profiler, profiler->launch_index);
  return kernel >= 0 && profiler->kernels[kernel].no_timeline_reason[0] == '\0' ? kernel : -1;
}

static bool is_active(const rl_pm_sample *sample) { return sample->values[0] > MIN_ACTIVE_PCT; }

/* Limits the samples to those from the first to the last in which an SM was active. Always drops the first sample, because it
 * also covers time before sampling started. */
static void trim_inactive_samples(const rl_pm_sample **samples, size_t *count) {
  size_t first = 1, end = *count;
  while (first < end && !is_active(&(*samples)[first])) first++;
  while (end > first && !is_active(&(*samples)[end - 1])) end--;
  *samples += first;
  *count = end - first;
}

/* metric: index into the metrics of the plan's group. */
static int append_timeline(rl_instruction_profiler *profiler, int64_t kernel_ordinal, size_t metric, const rl_pm_sample *samples,
                           size_t count, rl_error *err) {
  const rl_counter_group *group = &profiler->pm_sampling_plan->groups[0];
  rl_series_point point = {.ordinal = kernel_ordinal};
  snprintf(point.name, sizeof point.name, "%s", timelines[group->metrics[metric]].name);
  for (size_t i = 0; i < count; i++) {
    point.x = (double)(samples[i].start_ns - samples[0].start_ns);
    point.value = samples[i].values[metric];
    if (rl_records_add(profiler->records, RL_RECORD_POINT, &point, 1, err) < 0) return -1;
  }
  return 0;
}

static int append_timelines(rl_instruction_profiler *profiler, size_t kernel, const rl_pm_sample *samples, size_t count,
                            rl_error *err) {
  trim_inactive_samples(&samples, &count);
  if (count == 0) snprintf(profiler->kernels[kernel].no_timeline_reason, RL_REASON_SIZE, "the kernel ran in none of the samples");
  for (size_t m = 0; m < profiler->pm_sampling_plan->groups[0].count; m++)
    if (append_timeline(profiler, profiler->request->kernels[kernel].ordinal, m, samples, count, err) < 0) return -1;
  return 0;
}

/* Flushes L2, waits for the flush, so that no sample contains it, and starts sampling. */
static int start_sampling(rl_instruction_profiler *profiler, rl_error *err) {
  cudaStream_t stream = profiler->request->instance->device->stream;
  if (sampled_kernel_of_current_launch(profiler) < 0) return 0;
  rl_cache_flush_l2(profiler->request->flush, stream);
  if (rl_cuda_check(cudaStreamSynchronize(stream), "copies that flush L2", err) < 0) return -1;
  return rl_pm_sampling_start(profiler->pm_sampling, err);
}

static int stop_sampling(rl_instruction_profiler *profiler, rl_error *err) {
  int kernel = sampled_kernel_of_current_launch(profiler);
  const rl_pm_sample *samples;
  size_t count;
  if (kernel < 0) return 0;
  return rl_pm_sampling_stop(profiler->pm_sampling, &samples, &count, err) < 0
             ? -1
             : append_timelines(profiler, (size_t)kernel, samples, count, err);
}

/* Opens the counter plan that samples the metrics of `timelines`, unless an earlier call opened it. Fails if the plan lacks the
 * SMs' activity. */
static int open_sampling_plan(rl_instruction_profiler *profiler, rl_error *err) {
  const char *names[TIMELINE_COUNT];
  for (size_t i = 0; i < TIMELINE_COUNT; i++) names[i] = timelines[i].metric;
  if (profiler->pm_sampling_plan == NULL &&
      rl_counter_plan_open_for_sampling(profiler->chip, names, TIMELINE_COUNT, &profiler->pm_sampling_plan, err) < 0)
    return -1;
  if (profiler->pm_sampling_plan->group_count > 0 && profiler->pm_sampling_plan->groups[0].metrics[0] == 0) return 0;
  return rl_fail(err, RL_CUPTI, 0, "CUPTI cannot sample the SMs' activity on chip %s", profiler->chip);
}

int rl_instruction_profiler_collect_pm_samples(rl_instruction_profiler *profiler, rl_error *err) {
  profiler->pm_interval_ns = choose_interval_ns(profiler);
  if (choose_kernels_with_timelines(profiler) == 0) return 0;
  profiler->request->release_range_profiler(profiler->request->context);
  if (profiler->request->finish_evaluation(profiler->request->context, err) < 0) return -1;
  if (open_sampling_plan(profiler, err) < 0 ||
      rl_pm_sampling_open(profiler->device_index, &profiler->pm_sampling_plan->groups[0], (uint64_t)profiler->pm_interval_ns,
                          &profiler->pm_sampling, err) < 0)
    return -1;
  int result = rl_instruction_profiler_replay(profiler, start_sampling, stop_sampling, err);
  rl_pm_sampling_close(profiler->pm_sampling);
  profiler->pm_sampling = NULL;
  return result;
}
