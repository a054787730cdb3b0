/* Replays of a step for the instruction view: under SASS metrics and under PC sampling. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/check.h"
#include "worker/cupti/sass_metrics.h"
#include "worker/cupti/instruction_view_internal.h"
#include "worker/cupti/subscriber.h"

static bool has_selected_kernel(const rl_instruction_view_request *request, size_t launch) {
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].launch == launch && request->kernels[k].ordinal >= 0) return true;
  return false;
}

/* Adds a count to the profiles of the launch's kernels. CUPTI counts by function: kernels of the launch that have the same symbol
 * get equal shares. A count of another function belongs to the kernel that called it, which is known when the launch has one
 * kernel. */
static int add_count(void *context, const rl_instruction_count *count, rl_error *err) {
  rl_instruction_view *view = context;
  const rl_instruction_view_request *request = view->request;
  size_t same_symbol = 0, in_launch = 0, last = 0;
  for (size_t k = 0; k < request->kernel_count; k++) {
    if (request->kernels[k].launch != view->launch) continue;
    same_symbol += strcmp(request->kernels[k].symbol, count->function) == 0;
    last = k;
    in_launch++;
  }
  if (same_symbol == 0 && in_launch == 1)
    return rl_instruction_profile_add(&view->kernels[last].profile, RL_OTHER_FUNCTION, count->metric, count->value, err);
  for (size_t k = 0; k < request->kernel_count && same_symbol > 0; k++) {
    const rl_launched_kernel *kernel = &request->kernels[k];
    if (kernel->launch != view->launch || strcmp(kernel->symbol, count->function) != 0) continue;
    view->kernels[k].crc = count->crc;
    if (rl_instruction_profile_add(&view->kernels[k].profile, count->offset, count->metric, count->value / (double)same_symbol,
                                   err) < 0)
      return -1;
  }
  return 0;
}

/* Runs one launch and waits for it. */
static int run_launch(const rl_instruction_view *view, size_t launch, rl_error *err) {
  const rl_launch *item = &view->request->sequence->launches[launch];
  rl_stream stream = view->request->instance->device->stream;
  if (item->enqueue(item->arg, stream, err) < 0) return rl_wrap(err, "%s", item->name);
  return rl_cuda_check(cudaStreamSynchronize(stream), item->name, err);
}

int rl_instruction_view_replay(rl_instruction_view *view, rl_instruction_view_function *begin, rl_instruction_view_function *end,
                               rl_error *err) {
  const rl_instruction_view_request *request = view->request;
  if (request->restore(request->context, err) < 0) return -1;
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    bool is_selected = has_selected_kernel(request, i);
    view->launch = i;
    if (is_selected && begin(view, err) < 0) return -1;
    int result = run_launch(view, i, err);
    if (is_selected && end(view, result < 0 ? NULL : err) < 0) return -1;
    if (result < 0) return -1;
  }
  return 0;
}

static int start_sass_metrics(rl_instruction_view *view, rl_error *err) {
  (void)view;
  return rl_sass_metrics_start(rl_pc_sampling_context(), err);
}

static int stop_sass_metrics(rl_instruction_view *view, rl_error *err) {
  const rl_instruction_sink sink = {add_count, view};
  return rl_sass_metrics_stop(rl_pc_sampling_context(), &sink, err);
}

int rl_instruction_view_collect_sass_metrics(rl_instruction_view *view, rl_error *err) {
  if (!view->sass_metrics_open && rl_sass_metrics_open(view->device_index, view->chip, err) < 0) return -1;
  view->sass_metrics_open = true;
  return rl_instruction_view_replay(view, start_sass_metrics, stop_sass_metrics, err);
}

/* Returns how many samples a kernel yields at one sample per busy SM every 2^period cycles. */
static double expected_samples(const rl_instruction_view *view, const rl_launched_kernel *kernel, uint32_t period) {
  double busy_sms = kernel->blocks < view->sm_count ? (double)kernel->blocks : view->sm_count;
  return kernel->duration_ns * 1e-9 * view->clock_hz / ldexp(1, (int)period) * busy_sms;
}

enum { MIN_PERIOD = 8, MAX_PERIOD = 31, MIN_SAMPLES = 512, MAX_SAMPLES = 1 << 18, MAX_ROUNDS = 8 };

/* Returns the shortest period at which the longest kernel yields at most MAX_SAMPLES. Below 2^8 cycles the hardware drops samples
 * (H200). */
static uint32_t choose_period(const rl_instruction_view *view) {
  const rl_instruction_view_request *request = view->request;
  uint32_t period = MIN_PERIOD;
  for (size_t k = 0; k < request->kernel_count; k++)
    while (request->kernels[k].ordinal >= 0 && period < MAX_PERIOD &&
           expected_samples(view, &request->kernels[k], period) > MAX_SAMPLES)
      period++;
  return period;
}

/* Returns a hardware buffer size for the launch with the most samples, in whole MiB. */
static size_t choose_buffer_bytes(const rl_instruction_view *view) {
  const rl_instruction_view_request *request = view->request;
  const double sample_bytes = 128, mib = 1 << 20; /* sample_bytes: upper bound (H200) */
  double max_samples = 0;
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    double samples = 0;
    for (size_t k = 0; k < request->kernel_count; k++)
      if (request->kernels[k].launch == i) samples += expected_samples(view, &request->kernels[k], view->pc_period);
    if (has_selected_kernel(request, i)) max_samples = fmax(max_samples, samples);
  }
  return (size_t)(mib * fmax(1, ceil(max_samples * sample_bytes / mib)));
}

unsigned rl_instruction_view_sampling_rounds(const rl_instruction_view *view, size_t launch) {
  const rl_instruction_view_request *request = view->request;
  double rounds = 1;
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].ordinal >= 0 && request->kernels[k].launch == launch)
      rounds = fmax(rounds, ceil(MIN_SAMPLES / fmax(1, expected_samples(view, &request->kernels[k], view->pc_period))));
  return (unsigned)fmin(rounds, MAX_ROUNDS);
}

/* Returns true when the current launch is sampled in the current round. */
static bool is_sampled(const rl_instruction_view *view) {
  return view->pc_round < rl_instruction_view_sampling_rounds(view, view->launch);
}

static int start_pc_sampling(rl_instruction_view *view, rl_error *err) {
  return is_sampled(view) ? rl_pc_sampling_start(view->pc_sampling, err) : 0;
}

static int stop_pc_sampling(rl_instruction_view *view, rl_error *err) {
  const rl_instruction_sink sink = {add_count, view};
  return is_sampled(view) ? rl_pc_sampling_stop(view->pc_sampling, &sink, err) : 0;
}

/* Configures PC sampling, or keeps the current configuration when it matches. */
static int configure_pc_sampling(rl_instruction_view *view, rl_error *err) {
  size_t buffer_bytes = choose_buffer_bytes(view);
  view->request->release_counters(view->request->context);
  if (rl_pc_sampling_matches(view->pc_sampling, view->pc_period, buffer_bytes)) return 0;
  rl_pc_sampling_close(view->pc_sampling);
  view->pc_sampling = NULL;
  if (rl_pc_sampling_enable(err) < 0) return -1;
  return rl_pc_sampling_open(view->pc_period, buffer_bytes, &view->pc_sampling, err);
}

/* Replays the step in several rounds when a short kernel yields too few samples in one. */
int rl_instruction_view_collect_pc_samples(rl_instruction_view *view, rl_error *err) {
  const rl_instruction_view_request *request = view->request;
  unsigned rounds = 0;
  view->pc_period = choose_period(view);
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    unsigned needed = has_selected_kernel(request, i) ? rl_instruction_view_sampling_rounds(view, i) : 0;
    if (needed > rounds) rounds = needed;
  }
  if (configure_pc_sampling(view, err) < 0) return -1;
  for (view->pc_round = 0; view->pc_round < rounds; view->pc_round++)
    if (rl_instruction_view_replay(view, start_pc_sampling, stop_pc_sampling, err) < 0) return -1;
  return 0;
}
