/* Replays the launches of a sequence (rl_sequence) for the instruction profiler: once with SASS metrics, and in one or more
 * rounds with PC sampling. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/check.h"
#include "worker/cupti/sass_metrics.h"
#include "worker/cupti/instruction_profiler_internal.h"
#include "worker/cupti/subscriber.h"

static bool has_selected_kernel(const rl_instruction_profiler_request *request, size_t launch) {
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].launch_index == launch && rl_kernel_is_selected(&request->kernels[k])) return true;
  return false;
}

/* Adds a count to the profiles of the launch's kernels. CUPTI counts by function, so kernels of the launch with the same symbol
 * get equal shares. A count of a called function is added only if the launch has a single kernel: otherwise the caller is
 * unknown. */
static int add_count(void *context, const rl_instruction_count *count, rl_error *err) {
  rl_instruction_profiler *profiler = context;
  const rl_instruction_profiler_request *request = profiler->request;
  size_t same_symbol_count = 0, launch_kernel_count = 0, last = 0;
  for (size_t k = 0; k < request->kernel_count; k++) {
    if (request->kernels[k].launch_index != profiler->launch_index) continue;
    same_symbol_count += strcmp(request->kernels[k].symbol, count->function) == 0;
    last = k;
    launch_kernel_count++;
  }
  if (same_symbol_count == 0 && launch_kernel_count == 1)
    return rl_instruction_profile_add(&profiler->kernels[last].profile, RL_OFFSET_IN_CALLED_FUNCTION, count->metric, count->value,
                                      err);
  for (size_t k = 0; k < request->kernel_count && same_symbol_count > 0; k++) {
    const rl_launched_kernel *kernel = &request->kernels[k];
    if (kernel->launch_index != profiler->launch_index || strcmp(kernel->symbol, count->function) != 0) continue;
    profiler->kernels[k].crc = count->crc;
    if (rl_instruction_profile_add(&profiler->kernels[k].profile, count->offset, count->metric,
                                   count->value / (double)same_symbol_count, err) < 0)
      return -1;
  }
  return 0;
}

/* Runs one launch and waits for it. */
static int run_launch(const rl_instruction_profiler *profiler, size_t launch, rl_error *err) {
  const rl_launch *item = &profiler->request->sequence->launches[launch];
  rl_stream stream = profiler->request->instance->device->stream;
  if (item->enqueue(item->arg, stream, err) < 0) return rl_wrap(err, "%s", item->name);
  return rl_cuda_check(cudaStreamSynchronize(stream), item->name, err);
}

int rl_instruction_profiler_replay(rl_instruction_profiler *profiler, rl_instruction_profiler_function *begin,
                                   rl_instruction_profiler_function *end, rl_error *err) {
  const rl_instruction_profiler_request *request = profiler->request;
  if (request->restore(request->context, err) < 0) return -1;
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    bool is_selected = has_selected_kernel(request, i);
    profiler->launch_index = i;
    if (is_selected && begin(profiler, err) < 0) return -1;
    int result = run_launch(profiler, i, err);
    if (is_selected && end(profiler, result < 0 ? NULL : err) < 0) return -1;
    if (result < 0) return -1;
  }
  return 0;
}

static int start_sass_metrics(rl_instruction_profiler *profiler, rl_error *err) {
  (void)profiler;
  return rl_sass_metrics_start(rl_pc_sampling_context(), err);
}

static int stop_sass_metrics(rl_instruction_profiler *profiler, rl_error *err) {
  const rl_instruction_sink sink = {add_count, profiler};
  return rl_sass_metrics_stop(rl_pc_sampling_context(), &sink, err);
}

int rl_instruction_profiler_collect_sass_metrics(rl_instruction_profiler *profiler, rl_error *err) {
  if (!profiler->sass_metrics_open && (profiler->request->finish_evaluation(profiler->request->context, err) < 0 ||
                                       rl_sass_metrics_open(profiler->device_index, profiler->chip, err) < 0))
    return -1;
  profiler->sass_metrics_open = true;
  return rl_instruction_profiler_replay(profiler, start_sass_metrics, stop_sass_metrics, err);
}

/* Returns how many samples a kernel yields, with one sample per busy SM every 2^period_log2 cycles. */
static double expected_samples(const rl_instruction_profiler *profiler, const rl_launched_kernel *kernel, uint32_t period_log2) {
  double busy_sms = kernel->blocks < profiler->sm_count ? (double)kernel->blocks : profiler->sm_count;
  return kernel->duration_ns * 1e-9 * profiler->clock_hz / ldexp(1, (int)period_log2) * busy_sms;
}

enum { MIN_PERIOD_LOG2 = 8, MAX_PERIOD_LOG2 = 31, MIN_SAMPLES = 512, MAX_SAMPLES = 1 << 18, MAX_ROUNDS = 8 };

/* Returns the shortest period at which the longest kernel yields at most MAX_SAMPLES. Below 2^8 cycles the hardware drops samples
 * (H200). */
static uint32_t choose_period_log2(const rl_instruction_profiler *profiler) {
  const rl_instruction_profiler_request *request = profiler->request;
  uint32_t period_log2 = MIN_PERIOD_LOG2;
  for (size_t k = 0; k < request->kernel_count; k++)
    while (rl_kernel_is_selected(&request->kernels[k]) && period_log2 < MAX_PERIOD_LOG2 &&
           expected_samples(profiler, &request->kernels[k], period_log2) > MAX_SAMPLES)
      period_log2++;
  return period_log2;
}

/* Returns the size of a hardware buffer that holds the samples of the launch with the most samples, in bytes: a multiple of 1
 * MiB. */
static size_t choose_buffer_bytes(const rl_instruction_profiler *profiler) {
  const rl_instruction_profiler_request *request = profiler->request;
  const double sample_bytes = 128, mib = 1 << 20; /* sample_bytes: upper bound (H200) */
  double max_samples = 0;
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    double samples = 0;
    for (size_t k = 0; k < request->kernel_count; k++)
      if (request->kernels[k].launch_index == i)
        samples += expected_samples(profiler, &request->kernels[k], profiler->sampling_period_log2);
    if (has_selected_kernel(request, i)) max_samples = fmax(max_samples, samples);
  }
  return (size_t)(mib * fmax(1, ceil(max_samples * sample_bytes / mib)));
}

unsigned rl_instruction_profiler_sampling_rounds(const rl_instruction_profiler *profiler, size_t launch) {
  const rl_instruction_profiler_request *request = profiler->request;
  double rounds = 1;
  for (size_t k = 0; k < request->kernel_count; k++)
    if (rl_kernel_is_selected(&request->kernels[k]) && request->kernels[k].launch_index == launch)
      rounds = fmax(
          rounds, ceil(MIN_SAMPLES / fmax(1, expected_samples(profiler, &request->kernels[k], profiler->sampling_period_log2))));
  return (unsigned)fmin(rounds, MAX_ROUNDS);
}

/* Returns true when the current launch is sampled in the current round. */
static bool is_sampled(const rl_instruction_profiler *profiler) {
  return profiler->sampling_round < rl_instruction_profiler_sampling_rounds(profiler, profiler->launch_index);
}

static int start_pc_sampling(rl_instruction_profiler *profiler, rl_error *err) {
  return is_sampled(profiler) ? rl_pc_sampling_start(profiler->pc_sampling, err) : 0;
}

/* Adds the dropped samples to the profile of each kernel of the launch, because CUPTI does not know to which kernel they belong.
 */
static int add_dropped_samples(rl_instruction_profiler *profiler, double dropped, rl_error *err) {
  const rl_instruction_profiler_request *request = profiler->request;
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].launch_index == profiler->launch_index &&
        rl_instruction_profile_add_dropped(&profiler->kernels[k].profile, dropped, err) < 0)
      return -1;
  return 0;
}

static int stop_pc_sampling(rl_instruction_profiler *profiler, rl_error *err) {
  const rl_instruction_sink sink = {add_count, profiler};
  uint64_t dropped;
  if (!is_sampled(profiler)) return 0;
  if (rl_pc_sampling_stop(profiler->pc_sampling, &sink, &dropped, err) < 0) return -1;
  return dropped > 0 ? add_dropped_samples(profiler, (double)dropped, err) : 0;
}

/* Configures PC sampling, or keeps the current configuration when it matches. */
static int configure_pc_sampling(rl_instruction_profiler *profiler, rl_error *err) {
  size_t buffer_bytes = choose_buffer_bytes(profiler);
  profiler->request->release_range_profiler(profiler->request->context);
  if (rl_pc_sampling_matches(profiler->pc_sampling, profiler->sampling_period_log2, buffer_bytes)) return 0;
  rl_pc_sampling_close(profiler->pc_sampling);
  profiler->pc_sampling = NULL;
  if (rl_pc_sampling_enable(err) < 0) return -1;
  return rl_pc_sampling_open(profiler->sampling_period_log2, buffer_bytes, &profiler->pc_sampling, err);
}

/* Replays the sequence in several rounds when a short kernel yields too few samples in one round. */
int rl_instruction_profiler_collect_pc_samples(rl_instruction_profiler *profiler, rl_error *err) {
  const rl_instruction_profiler_request *request = profiler->request;
  unsigned rounds = 0;
  profiler->sampling_period_log2 = choose_period_log2(profiler);
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    unsigned needed = has_selected_kernel(request, i) ? rl_instruction_profiler_sampling_rounds(profiler, i) : 0;
    if (needed > rounds) rounds = needed;
  }
  if (configure_pc_sampling(profiler, err) < 0) return -1;
  for (profiler->sampling_round = 0; profiler->sampling_round < rounds; profiler->sampling_round++)
    if (rl_instruction_profiler_replay(profiler, start_pc_sampling, stop_pc_sampling, err) < 0) return -1;
  return 0;
}
