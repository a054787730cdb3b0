/* Ways to look at a step: each replays it on the inputs it had. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/result.h"
#include "worker/cupti/sass.h"
#include "worker/cupti/source_parts.h"
#include "worker/cupti/subscriber.h"

/* --- counts by instruction ----------------------------------------------------------------------------------------- */

static bool asked_for(const rl_source_request *request, size_t launch) {
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].launch == launch && request->kernels[k].ordinal >= 0) return true;
  return false;
}

/* A launch's counts come by function. Kernels of one launch that are the same function share its counts evenly; what a launch's
 * only kernel calls in other functions is its own, at no offset. */
static int take_count(void *context, const rl_code_count *count, rl_error *err) {
  rl_source *source = context;
  const rl_source_request *request = source->request;
  size_t same = 0, in_launch = 0, only = 0;
  for (size_t k = 0; k < request->kernel_count; k++) {
    if (request->kernels[k].launch != source->launch) continue;
    same += strcmp(request->kernels[k].symbol, count->function) == 0;
    only = k;
    in_launch++;
  }
  if (same == 0 && in_launch == 1)
    return rl_listing_add(&source->kernels[only].listing, RL_ELSEWHERE, count->metric, count->value, err);
  for (size_t k = 0; k < request->kernel_count && same > 0; k++) {
    const rl_source_kernel *kernel = &request->kernels[k];
    if (kernel->launch != source->launch || strcmp(kernel->symbol, count->function) != 0) continue;
    source->kernels[k].crc = count->crc;
    if (rl_listing_add(&source->kernels[k].listing, count->offset, count->metric, count->value / (double)same, err) != 0)
      return -1;
  }
  return 0;
}

static int enqueue(const rl_source *source, size_t launch, rl_error *err) {
  const rl_launch *one = &source->request->sequence->launches[launch];
  rl_stream stream = source->request->instance->device->stream;
  if (one->enqueue(one->arg, stream, err) != 0) return rl_wrap(err, "%s", one->name);
  return rl_cuda_check(cudaStreamSynchronize(stream), one->name, err);
}

int rl_source_replay(rl_source *source, int (*begin)(rl_source *, rl_error *), int (*end)(rl_source *, rl_error *),
                     rl_error *err) {
  const rl_source_request *request = source->request;
  if (request->restore(request->context, err) != 0) return -1;
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    bool watched = asked_for(request, i);
    source->launch = i;
    if (watched && begin(source, err) != 0) return -1;
    int ran = enqueue(source, i, err);
    if (watched && end(source, ran == 0 ? err : NULL) != 0) return -1;
    if (ran != 0) return -1;
  }
  return 0;
}

static int begin_sass(rl_source *source, rl_error *err) {
  (void)source;
  return rl_sass_begin(rl_source_context(), err);
}

static int end_sass(rl_source *source, rl_error *err) {
  const rl_code_sink sink = {take_count, source};
  return rl_sass_end(rl_source_context(), &sink, err);
}

int rl_source_count_instructions(rl_source *source, rl_error *err) {
  if (!source->sass_open && rl_sass_open(source->device_index, source->chip, err) != 0) return -1;
  source->sass_open = true;
  return rl_source_replay(source, begin_sass, end_sass, err);
}

/* --- samples of stalls ----------------------------------------------------------------------------------------------- */

/* Samples that a kernel yields, one an SM every 2^period cycles. */
static double expected_samples(const rl_source *source, const rl_source_kernel *kernel, uint32_t period) {
  double busy = kernel->blocks < source->processors ? (double)kernel->blocks : source->processors;
  return kernel->duration_ns * 1e-9 * source->clock_hz / ldexp(1, (int)period) * busy;
}

enum { PERIOD_LEAST = 8, PERIOD_MOST = 31, SAMPLES_LEAST = 512, SAMPLES_MOST = 1 << 18, ROUNDS_MOST = 8 };

/* Seldom enough for the buffer in the longest kernel. Below 2^8 cycles the hardware drops samples (H200). */
static uint32_t choose_period(const rl_source *source) {
  const rl_source_request *request = source->request;
  uint32_t period = PERIOD_LEAST;
  for (size_t k = 0; k < request->kernel_count; k++)
    while (request->kernels[k].ordinal >= 0 && period < PERIOD_MOST &&
           expected_samples(source, &request->kernels[k], period) > SAMPLES_MOST)
      period++;
  return period;
}

/* Room for the samples of the launch that yields the most, in whole MiB. */
static size_t choose_buffer(const rl_source *source) {
  const rl_source_request *request = source->request;
  const double most_bytes = 128, unit = 1 << 20; /* of a sample, with room to spare (H200) */
  double most = 0;
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    double samples = 0;
    for (size_t k = 0; k < request->kernel_count; k++)
      if (request->kernels[k].launch == i) samples += expected_samples(source, &request->kernels[k], source->period);
    if (asked_for(request, i)) most = fmax(most, samples);
  }
  return (size_t)(unit * fmax(1, ceil(most * most_bytes / unit)));
}

unsigned rl_source_sampling_rounds(const rl_source *source, size_t launch) {
  const rl_source_request *request = source->request;
  double rounds = 1;
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].ordinal >= 0 && request->kernels[k].launch == launch)
      rounds = fmax(rounds, ceil(SAMPLES_LEAST / fmax(1, expected_samples(source, &request->kernels[k], source->period))));
  return (unsigned)fmin(rounds, ROUNDS_MOST);
}

static bool is_sampled(const rl_source *source) { return source->round < rl_source_sampling_rounds(source, source->launch); }

static int begin_sampling(rl_source *source, rl_error *err) {
  return is_sampled(source) ? rl_sampling_begin(source->sampling, err) : 0;
}

static int end_sampling(rl_source *source, rl_error *err) {
  const rl_code_sink sink = {take_count, source};
  return is_sampled(source) ? rl_sampling_end(source->sampling, &sink, err) : 0;
}

/* What is kept serves as long as it is set up as it is needed now. */
static int ready_sampling(rl_source *source, rl_error *err) {
  size_t buffer_bytes = choose_buffer(source);
  source->request->let_go(source->request->context);
  if (rl_sampling_fits(source->sampling, source->period, buffer_bytes)) return 0;
  rl_sampling_close(source->sampling);
  source->sampling = NULL;
  if (rl_sampling_enable(rl_source_context(), err) != 0) return -1;
  return rl_sampling_open(rl_source_context(), source->period, buffer_bytes, &source->sampling, err);
}

/* A short kernel is looked at in several rounds. */
int rl_source_sample_stalls(rl_source *source, rl_error *err) {
  const rl_source_request *request = source->request;
  unsigned rounds = 0;
  source->period = choose_period(source);
  for (size_t i = 0; i < request->sequence->launch_count; i++) {
    unsigned needed = asked_for(request, i) ? rl_source_sampling_rounds(source, i) : 0;
    if (needed > rounds) rounds = needed;
  }
  if (ready_sampling(source, err) != 0) return -1;
  for (source->round = 0; source->round < rounds; source->round++)
    if (rl_source_replay(source, begin_sampling, end_sampling, err) != 0) return -1;
  return 0;
}
