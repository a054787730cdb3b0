/* Creates and runs the plans of the CUDA device. */
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
  /* Two for each sequence: a graph of UNROLL repeats, launched repeat / UNROLL times, and a graph of the remaining repeats,
   * launched once. */
  rl_cuda_repeated_graph *graphs;
  size_t graph_count;
  uint64_t repeats; /* of all sequences */
  uint64_t nodes;   /* kernel, memcpy and memset nodes that one run of the plan executes */
};

void rl_cuda_plan_free(rl_device *device, rl_plan *plan) {
  (void)device;
  if (!plan) return;
  for (size_t i = 0; i < plan->graph_count; i++)
    if (plan->graphs[i].graph) cudaGraphExecDestroy(plan->graphs[i].graph);
  free(plan->graphs);
  free(plan);
}

static rl_plan *allocate_plan(const rl_sequence_list *sequence_list) {
  rl_plan *plan = (rl_plan *)calloc(1, sizeof *plan);
  if (!plan) return NULL;
  plan->sequence_list = sequence_list;
  plan->graphs = (rl_cuda_repeated_graph *)calloc(2 * sequence_list->sequence_count + 1, sizeof *plan->graphs);
  if (plan->graphs) return plan;
  free(plan);
  return NULL;
}

static int add_sequence(rl_device *device, rl_plan *plan, const rl_sequence *sequence, rl_error *err) {
  rl_cuda_repeated_graph *graphs = &plan->graphs[plan->graph_count];
  plan->graph_count += 2;
  plan->repeats += sequence->repeat;
  if (rl_cuda_repeated_graph_create(device, sequence, UNROLL, sequence->repeat / UNROLL, &graphs[0], err) < 0 ||
      rl_cuda_repeated_graph_create(device, sequence, sequence->repeat % UNROLL, 1, &graphs[1], err) < 0)
    return -1;
  plan->nodes += graphs[0].nodes * graphs[0].launch_count + graphs[1].nodes * graphs[1].launch_count;
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

typedef struct run_queue { /* the units of work that a run has queued on the stream */
  const rl_observer *observer;
  uint64_t total_repeats;
  uint64_t queued_repeats;
  uint64_t queued_units;                            /* a unit is a graph launch, or a repeat without a graph */
  uint64_t repeats_at_event[RL_CUDA_MAX_IN_FLIGHT]; /* queued_repeats when progress_events[i] was recorded */
} run_queue;

static void report_progress(const run_queue *queue, uint64_t done) {
  if (queue->observer && queue->observer->progress)
    queue->observer->progress(queue->observer->context, done, queue->total_repeats);
}

/* Waits until fewer than RL_CUDA_MAX_IN_FLIGHT units of work are queued. */
static int limit_queue_depth(rl_device *device, run_queue *queue, rl_error *err) {
  size_t slot = queue->queued_units % RL_CUDA_MAX_IN_FLIGHT;
  if (queue->queued_units >= RL_CUDA_MAX_IN_FLIGHT) {
    if (rl_cuda_ok(cudaEventSynchronize(rl_cuda_device_of(device)->progress_events[slot]), "running", err) < 0) return -1;
    report_progress(queue, queue->repeats_at_event[slot]);
  }
  return rl_observer_cancelled(queue->observer, err);
}

static int record_progress_event(rl_device *device, run_queue *queue, uint64_t repeats, rl_error *err) {
  size_t slot = queue->queued_units++ % RL_CUDA_MAX_IN_FLIGHT;
  queue->repeats_at_event[slot] = queue->queued_repeats += repeats;
  return rl_cuda_ok(cudaEventRecord(rl_cuda_device_of(device)->progress_events[slot], rl_cuda_stream(device)), "running", err);
}

typedef int enqueue_function(rl_device *device, const void *argument, run_queue *queue, rl_error *err);

static int enqueue_between_events(rl_device *device, enqueue_function *enqueue, const void *argument, run_queue *queue,
                                  rl_error *err) {
  rl_cuda_device *cuda = rl_cuda_device_of(device);
  if (rl_cuda_ok(cudaEventRecord(cuda->start, rl_cuda_stream(device)), "timing", err) < 0 ||
      enqueue(device, argument, queue, err) < 0)
    return -1;
  return rl_cuda_ok(cudaEventRecord(cuda->stop, rl_cuda_stream(device)), "timing", err);
}

/* Enqueues the work inside an NVTX range, waits until the device is idle (also after a failure or a cancellation) and sets the
 * times of elapsed. */
static int run_timed(rl_device *device, const char *range, enqueue_function *enqueue, const void *argument, run_queue *queue,
                     rl_elapsed *elapsed, rl_error *err) {
  rl_cuda_device *cuda = rl_cuda_device_of(device);
  rl_error ignored; /* error of the wait after a failed enqueue */
  float ms = 0;
  rl_range_push(range);
  int64_t begin_ns = rl_monotonic_ns();
  int rc = enqueue_between_events(device, enqueue, argument, queue, err);
  if (rl_cuda_wait(device, "running", rc < 0 ? &ignored : err) < 0) rc = -1;
  int64_t end_ns = rl_monotonic_ns();
  rl_range_pop();
  if (rc < 0 || rl_cuda_ok(cudaEventElapsedTime(&ms, cuda->start, cuda->stop), "timing", err) < 0) return -1;
  elapsed->device_ms = ms;
  elapsed->host_ms = (double)(end_ns - begin_ns) * 1e-6;
  report_progress(queue, queue->total_repeats);
  return 0;
}

static int enqueue_plan(rl_device *device, const void *argument, run_queue *queue, rl_error *err) {
  const rl_plan *plan = (const rl_plan *)argument;
  for (size_t i = 0; i < plan->graph_count; i++)
    for (uint64_t launch = 0; launch < plan->graphs[i].launch_count; launch++)
      if (limit_queue_depth(device, queue, err) < 0 ||
          rl_cuda_ok(cudaGraphLaunch(plan->graphs[i].graph, rl_cuda_stream(device)), "launching a graph", err) < 0 ||
          record_progress_event(device, queue, plan->graphs[i].repeats_per_launch, err) < 0)
        return -1;
  return 0;
}

int rl_cuda_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  run_queue queue = {observer, plan->repeats};
  rl_elapsed times = {0, 0, plan->nodes};
  if (run_timed(device, plan->sequence_list->name, enqueue_plan, plan, &queue, &times, err) < 0) return -1;
  *elapsed = times;
  return 0;
}

static int enqueue_sequence_list(rl_device *device, const void *argument, run_queue *queue, rl_error *err) {
  const rl_sequence_list *sequence_list = (const rl_sequence_list *)argument;
  for (size_t i = 0; i < sequence_list->sequence_count; i++)
    for (uint64_t repeat = 0; repeat < sequence_list->sequences[i].repeat; repeat++)
      if (limit_queue_depth(device, queue, err) < 0 ||
          rl_sequence_run_once(&sequence_list->sequences[i], device->stream, NULL, err) < 0 ||
          record_progress_event(device, queue, 1, err) < 0)
        return -1;
  return 0;
}

/* Counts the nodes that one run executes, by capturing one repeat of each sequence. */
static int count_nodes(rl_device *device, const rl_sequence_list *sequence_list, uint64_t *launches, rl_error *err) {
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
  run_queue queue = {observer};
  rl_elapsed times = {};
  for (size_t i = 0; i < sequence_list->sequence_count; i++) queue.total_repeats += sequence_list->sequences[i].repeat;
  if (count_nodes(device, sequence_list, &times.launches, err) < 0 ||
      run_timed(device, sequence_list->name, enqueue_sequence_list, sequence_list, &queue, &times, err) < 0)
    return -1;
  *elapsed = times;
  return 0;
}
