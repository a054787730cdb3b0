/* Plans of the CUDA device, and their run. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/cuda.h"
#include "device/launches.h"
#include "device/ranges.h"

enum { UNROLL = 64 }; /* repeats captured into one graph, to amortise the cost of a graph launch */

/* --- plans ------------------------------------------------------------------------------------------------------------- */

struct rl_plan {
  const rl_sequence_list *sequence_list;
  rl_cuda_repeated_graph *batches; /* two for each sequence: graphs of UNROLL repeats, then one graph of the remainder */
  size_t count;
  uint64_t repeats; /* of all sequences */
  uint64_t nodes;   /* executed in one run of the plan */
};

void rl_cuda_plan_free(rl_device *device, rl_plan *plan) {
  (void)device;
  if (!plan) return;
  for (size_t i = 0; i < plan->count; i++)
    if (plan->batches[i].graph) cudaGraphExecDestroy(plan->batches[i].graph);
  free(plan->batches);
  free(plan);
}

static rl_plan *allocate_plan(const rl_sequence_list *sequence_list) {
  rl_plan *plan = (rl_plan *)calloc(1, sizeof *plan);
  if (!plan) return NULL;
  plan->sequence_list = sequence_list;
  plan->batches = (rl_cuda_repeated_graph *)calloc(2 * sequence_list->sequence_count + 1, sizeof *plan->batches);
  if (plan->batches) return plan;
  free(plan);
  return NULL;
}

static int add_sequence(rl_device *device, rl_plan *plan, const rl_sequence *sequence, rl_error *err) {
  rl_cuda_repeated_graph *pair = &plan->batches[plan->count];
  plan->count += 2;
  plan->repeats += sequence->repeat;
  if (rl_cuda_repeated_graph_create(device, sequence, UNROLL, sequence->repeat / UNROLL, &pair[0], err) < 0 ||
      rl_cuda_repeated_graph_create(device, sequence, sequence->repeat % UNROLL, 1, &pair[1], err) < 0)
    return -1;
  plan->nodes += pair[0].nodes * pair[0].launch_count + pair[1].nodes * pair[1].launch_count;
  return 0;
}

static int add_sequences(rl_device *device, rl_plan *plan, rl_error *err) {
  for (size_t i = 0; i < plan->sequence_list->sequence_count; i++)
    if (add_sequence(device, plan, &plan->sequence_list->sequences[i], err) < 0) return -1;
  return rl_cuda_wait(device, "uploading graphs", err);
}

int rl_cuda_plan(rl_device *device, const rl_sequence_list *sequence_list, rl_plan **plan, rl_error *err) {
  rl_plan *created = allocate_plan(sequence_list);
  if (!created) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a plan");
  if (add_sequences(device, created, err) < 0) {
    rl_cuda_plan_free(device, created);
    return -1;
  }
  *plan = created;
  return 0;
}

/* --- running ----------------------------------------------------------------------------------------------------------- */

typedef struct progress {
  const rl_observer *observer;
  uint64_t total_repeats;
  uint64_t queued_repeats;
  uint64_t queued;                            /* units of work: graph launches, or repeats without a graph */
  uint64_t repeats_at[RL_CUDA_MAX_IN_FLIGHT]; /* queued_repeats when the progress event of this slot was recorded */
} progress;

static void report_progress(const progress *p, uint64_t done) {
  if (p->observer && p->observer->progress) p->observer->progress(p->observer->context, done, p->total_repeats);
}

/* Waits until fewer than RL_CUDA_MAX_IN_FLIGHT units of work are queued. */
static int limit_queue_depth(rl_device *device, progress *p, rl_error *err) {
  size_t slot = p->queued % RL_CUDA_MAX_IN_FLIGHT;
  if (p->queued >= RL_CUDA_MAX_IN_FLIGHT) {
    if (rl_cuda_ok(cudaEventSynchronize(rl_cuda_device_of(device)->progress_events[slot]), "running", err) < 0) return -1;
    report_progress(p, p->repeats_at[slot]);
  }
  return rl_observer_cancelled(p->observer, err);
}

static int record_progress_event(rl_device *device, progress *p, uint64_t repeats, rl_error *err) {
  size_t slot = p->queued++ % RL_CUDA_MAX_IN_FLIGHT;
  p->repeats_at[slot] = p->queued_repeats += repeats;
  return rl_cuda_ok(cudaEventRecord(rl_cuda_device_of(device)->progress_events[slot], rl_cuda_stream(device)), "running", err);
}

typedef int enqueue_function(rl_device *device, const void *argument, progress *p, rl_error *err);

static int enqueue_between_events(rl_device *device, enqueue_function *enqueue, const void *argument, progress *p,
                                  rl_error *err) {
  rl_cuda_device *cuda = rl_cuda_device_of(device);
  if (rl_cuda_ok(cudaEventRecord(cuda->start, rl_cuda_stream(device)), "timing", err) < 0 ||
      enqueue(device, argument, p, err) < 0)
    return -1;
  return rl_cuda_ok(cudaEventRecord(cuda->stop, rl_cuda_stream(device)), "timing", err);
}

/* Enqueues the work inside an NVTX range, waits until the device is idle (also after a failure or a cancellation) and sets the
 * times of elapsed. */
static int run_timed(rl_device *device, const char *range, enqueue_function *enqueue, const void *argument, progress *p,
                     rl_elapsed *elapsed, rl_error *err) {
  rl_cuda_device *cuda = rl_cuda_device_of(device);
  rl_error second_error; /* of the wait after a failure; dropped */
  float ms = 0;
  rl_range_push(range);
  int64_t begin_ns = rl_monotonic_ns();
  int rc = enqueue_between_events(device, enqueue, argument, p, err);
  if (rl_cuda_wait(device, "running", rc < 0 ? &second_error : err) < 0) rc = -1;
  int64_t end_ns = rl_monotonic_ns();
  rl_range_pop();
  if (rc < 0 || rl_cuda_ok(cudaEventElapsedTime(&ms, cuda->start, cuda->stop), "timing", err) < 0) return -1;
  elapsed->device_ms = ms;
  elapsed->host_ms = (double)(end_ns - begin_ns) * 1e-6;
  report_progress(p, p->total_repeats);
  return 0;
}

static int enqueue_plan(rl_device *device, const void *argument, progress *p, rl_error *err) {
  const rl_plan *plan = (const rl_plan *)argument;
  for (size_t i = 0; i < plan->count; i++)
    for (uint64_t launch = 0; launch < plan->batches[i].launch_count; launch++)
      if (limit_queue_depth(device, p, err) < 0 ||
          rl_cuda_ok(cudaGraphLaunch(plan->batches[i].graph, rl_cuda_stream(device)), "launching a graph", err) < 0 ||
          record_progress_event(device, p, plan->batches[i].copies, err) < 0)
        return -1;
  return 0;
}

int rl_cuda_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  progress p = {observer, plan->repeats};
  rl_elapsed times = {0, 0, plan->nodes};
  if (run_timed(device, plan->sequence_list->name, enqueue_plan, plan, &p, &times, err) < 0) return -1;
  *elapsed = times;
  return 0;
}

static int enqueue_program(rl_device *device, const void *argument, progress *p, rl_error *err) {
  const rl_sequence_list *sequence_list = (const rl_sequence_list *)argument;
  for (size_t i = 0; i < sequence_list->sequence_count; i++)
    for (uint64_t repeat = 0; repeat < sequence_list->sequences[i].repeat; repeat++)
      if (limit_queue_depth(device, p, err) < 0 ||
          rl_sequence_run_once(&sequence_list->sequences[i], device->stream, NULL, err) < 0 ||
          record_progress_event(device, p, 1, err) < 0)
        return -1;
  return 0;
}

/* Captures one repeat of each sequence to count its nodes. */
static int count_launches(rl_device *device, const rl_sequence_list *sequence_list, uint64_t *launches, rl_error *err) {
  for (size_t i = 0; i < sequence_list->sequence_count; i++) {
    const rl_sequence *sequence = &sequence_list->sequences[i];
    uint64_t nodes = 0;
    if (sequence->repeat == 0) continue;
    if (rl_cuda_count_nodes(device, sequence, &nodes, err) < 0) return -1;
    *launches += nodes * sequence->repeat;
  }
  return 0;
}

int rl_cuda_run_eager(rl_device *device, const rl_sequence_list *sequence_list, const rl_observer *observer, rl_elapsed *elapsed,
                      rl_error *err) {
  progress p = {observer};
  rl_elapsed times = {};
  for (size_t i = 0; i < sequence_list->sequence_count; i++) p.total_repeats += sequence_list->sequences[i].repeat;
  if (count_launches(device, sequence_list, &times.launches, err) < 0 ||
      run_timed(device, sequence_list->name, enqueue_program, sequence_list, &p, &times, err) < 0)
    return -1;
  *elapsed = times;
  return 0;
}
