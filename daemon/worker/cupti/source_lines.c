/* The time lines of a kernel: what the device's counters say at a fixed interval while it runs alone, on cold caches. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>

#include "worker/cupti/result.h"
#include "worker/cupti/source_parts.h"

/* The first tells when the kernel runs. What a chip does not have, or does not count in one pass with those in front, it has no
 * line of. */
static const struct {
  const char *series, *metric;
} lines[] = {{"sm_active_pct", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
             {"instructions_pct", "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed"},
             {"dram_read_pct", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"},
             {"dram_write_pct", "dram__write_throughput.avg.pct_of_peak_sustained_elapsed"},
             {"l2_sectors_pct", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"},
             {"warps_active_pct", "sm__warps_active_realtime.avg.pct_of_peak_sustained_elapsed"},
             {"tensor_active_pct", "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed"}};
enum { LINES = sizeof lines / sizeof *lines };

enum { SAMPLES_LEAST = 32, SAMPLES_MOST = 512 }; /* in a kernel: fewer show nothing, more nothing new */
static const double INTERVAL_LEAST_NS = 2000, ACTIVE_LEAST_PCT = 0.1;

/* --- which kernels have lines -------------------------------------------------------------------------------------------- */

/* Index of the only kernel of the launch that is looked at; -1: nobody asks for it, or it has several. */
static int only_kernel(const rl_source *source, size_t launch) {
  const rl_source_request *request = source->request;
  int found = -1;
  for (size_t k = 0; k < request->kernel_count; k++) {
    if (request->kernels[k].launch != launch) continue;
    if (found >= 0) return -1;
    found = (int)k;
  }
  return found >= 0 && request->kernels[found].ordinal >= 0 ? found : -1;
}

static double choose_interval(const rl_source *source) {
  double longest = 0;
  for (size_t k = 0; k < source->request->kernel_count; k++)
    if (only_kernel(source, source->request->kernels[k].launch) == (int)k)
      longest = fmax(longest, source->request->kernels[k].duration_ns);
  return fmax(INTERVAL_LEAST_NS, 1000 * ceil(longest / SAMPLES_MOST / 1000));
}

/* Every kernel gets the reason why it has no line, or "". Returns how many have one. */
static size_t choose_kernels(rl_source *source) {
  size_t chosen = 0;
  for (size_t k = 0; k < source->request->kernel_count; k++) {
    const rl_source_kernel *asked = &source->request->kernels[k];
    char *reason = source->kernels[k].no_line;
    if (only_kernel(source, asked->launch) != (int)k)
      snprintf(reason, RL_REASON_SIZE, "its launch has several kernels, whose samples can't be told apart");
    else if (asked->duration_ns < SAMPLES_LEAST * source->interval_ns)
      snprintf(reason, RL_REASON_SIZE, "the kernel takes %.4g us: too short for %d samples, one every %g us",
               asked->duration_ns * 1e-3, SAMPLES_LEAST, source->interval_ns * 1e-3);
    else chosen++;
  }
  return chosen;
}

static int kernel_to_draw(const rl_source *source) {
  int kernel = only_kernel(source, source->launch);
  return kernel >= 0 && source->kernels[kernel].no_line[0] == '\0' ? kernel : -1;
}

/* --- points ------------------------------------------------------------------------------------------------------------- */

static bool is_active(const rl_pm_sample *sample) { return sample->values[0] > ACTIVE_LEAST_PCT; }

/* Without the first sample, whose start is not the interval's, those from the first to the last in which an SM worked. */
static void cut(const rl_pm_sample **samples, size_t *count) {
  size_t first = 1, end = *count;
  while (first < end && !is_active(&(*samples)[first])) first++;
  while (end > first && !is_active(&(*samples)[end - 1])) end--;
  *samples += first;
  *count = end - first;
}

static int append_line(rl_source *source, int64_t ordinal, size_t metric, const rl_pm_sample *samples, size_t count,
                       rl_error *err) {
  const rl_group *group = &source->lines->groups[0];
  rl_series_point point = {.ordinal = ordinal};
  snprintf(point.name, sizeof point.name, "%s", lines[group->metrics[metric]].series);
  for (size_t i = 0; i < count; i++) {
    point.x = (double)(samples[i].start_ns - samples[0].start_ns);
    point.value = samples[i].values[metric];
    if (rl_records_add(source->records, RL_RECORD_POINT, &point, 1, err) < 0) return -1;
  }
  return 0;
}

static int draw(rl_source *source, size_t kernel, const rl_pm_sample *samples, size_t count, rl_error *err) {
  cut(&samples, &count);
  if (count == 0) snprintf(source->kernels[kernel].no_line, RL_REASON_SIZE, "none of the samples shows the kernel");
  for (size_t m = 0; m < source->lines->groups[0].count; m++)
    if (append_line(source, source->request->kernels[kernel].ordinal, m, samples, count, err) != 0) return -1;
  return 0;
}

/* --- the whole ------------------------------------------------------------------------------------------------------------ */

/* The flush is over before the samples begin: they would show it. */
static int begin(rl_source *source, rl_error *err) {
  cudaStream_t stream = source->request->instance->device->stream;
  if (kernel_to_draw(source) < 0) return 0;
  rl_flush_run(source->request->flush, stream);
  if (rl_cuda_check(cudaStreamSynchronize(stream), "copies that flush the cache", err) != 0) return -1;
  return rl_pm_begin(source->pm, err);
}

static int end(rl_source *source, rl_error *err) {
  int kernel = kernel_to_draw(source);
  const rl_pm_sample *samples;
  size_t count;
  if (kernel < 0) return 0;
  return rl_pm_end(source->pm, &samples, &count, err) != 0 ? -1 : draw(source, (size_t)kernel, samples, count, err);
}

/* The lines that the chip has; kept as long as the source. */
static int plan(rl_source *source, rl_error *err) {
  const char *names[LINES];
  for (size_t i = 0; i < LINES; i++) names[i] = lines[i].metric;
  if (source->lines == NULL && rl_sample_plan_open(source->chip, names, LINES, &source->lines, err) != 0) return -1;
  if (source->lines->group_count > 0 && source->lines->groups[0].metrics[0] == 0) return 0;
  return rl_fail(err, RL_CUPTI, 0, "CUPTI samples no activity of the SMs on chip %s", source->chip);
}

int rl_source_draw_lines(rl_source *source, rl_error *err) {
  source->interval_ns = choose_interval(source);
  if (choose_kernels(source) == 0) return 0;
  source->request->let_go(source->request->context);
  if (plan(source, err) != 0 ||
      rl_pm_open(source->device_index, &source->lines->groups[0], (uint64_t)source->interval_ns, &source->pm, err) != 0)
    return -1;
  int result = rl_source_replay(source, begin, end, err);
  rl_pm_close(source->pm);
  source->pm = NULL;
  return result;
}
