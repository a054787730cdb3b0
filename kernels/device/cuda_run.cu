/* Creates and runs the executables of the CUDA device. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/cuda.h"
#include "device/launches.h"
#include "device/ranges.h"

/* A sequence is launched as graphs of 1, 2, 4, 7, 12, ... repeats, and then as equal graphs of at most MAX_REPEATS_PER_GRAPH
 * repeats. Under CUPTI's tracing (H200), a graph launch takes the host 1 to 2 us for each node, which the device executes in 4
 * us, and takes the device 14 us whatever the size. So the first graph is small, the device executes each graph while the host
 * launches the next one, which is 1.6 times as large, and there are few launches. Larger graphs make untraced epochs slower. */
enum { MAX_REPEATS_PER_GRAPH = 128, MAX_GRAPHS_PER_SEQUENCE = 10 };

/* Graphs that are queued at once. Few, because a run can be cancelled only between its queued graphs. */
enum { MAX_GRAPHS_IN_FLIGHT = 4 };

/* --- executables ------------------------------------------------------------------------------------------------- */

struct rl_executable {
  const rl_sequence_list *sequence_list;
  /* The graphs of each sequence in turn, the small ones first. */
  rl_cuda_repeated_graph *graphs;
  size_t graph_count;
  uint64_t repeats;           /* repeats of all sequences together */
  bool enqueued_individually; /* true if a sequence is enqueued_individually; then the executable has no graphs */
  uint64_t nodes;             /* kernel, memcpy and memset nodes that one run of the executable executes */
};

void rl_cuda_free_executable(rl_device *device, rl_executable *executable) {
  (void)device;
  if (!executable) return;
  for (size_t i = 0; i < executable->graph_count; i++)
    if (executable->graphs[i].graph_exec) cudaGraphExecDestroy(executable->graphs[i].graph_exec);
  free(executable->graphs);
  free(executable);
}

static rl_executable *allocate_executable(const rl_sequence_list *sequence_list) {
  rl_executable *executable = (rl_executable *)calloc(1, sizeof *executable);
  if (!executable) return NULL;
  executable->sequence_list = sequence_list;
  executable->graphs =
      (rl_cuda_repeated_graph *)calloc(MAX_GRAPHS_PER_SEQUENCE * sequence_list->sequence_count + 1, sizeof *executable->graphs);
  if (executable->graphs) return executable;
  free(executable);
  return NULL;
}

static int add_graph(rl_device *device, rl_executable *executable, const rl_sequence *sequence, uint64_t repeats,
                     uint64_t launches, rl_error *err) {
  rl_cuda_repeated_graph *graph = &executable->graphs[executable->graph_count++];
  if (rl_cuda_repeated_graph_create(device, sequence, repeats, launches, graph, err) < 0) return -1;
  executable->nodes += graph->nodes * graph->launch_count;
  executable->repeats += repeats * launches;
  return 0;
}

static uint64_t min_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Creates the graphs of a sequence: growing ones, launched once, and equal ones. The last growing one also has the repeats that
 * the equal ones leave. */
static int add_sequence(rl_device *device, rl_executable *executable, const rl_sequence *sequence, rl_error *err) {
  uint64_t sizes[MAX_GRAPHS_PER_SEQUENCE], count = 0, remaining = sequence->repeat, size = 1;
  for (; size < MAX_REPEATS_PER_GRAPH && remaining >= 2 * size; size = (8 * size + 4) / 5) {
    sizes[count++] = size;
    remaining -= size;
  }
  if (remaining == 0) return 0;
  const uint64_t limit = min_of(size, MAX_REPEATS_PER_GRAPH), launches = (remaining + limit - 1) / limit;
  if (remaining % launches > 0) sizes[count - 1] += remaining % launches;
  for (uint64_t i = 0; i < count; i++)
    if (add_graph(device, executable, sequence, sizes[i], 1, err) < 0) return -1;
  return add_graph(device, executable, sequence, remaining / launches, launches, err);
}

static int add_sequences(rl_device *device, rl_executable *executable, rl_error *err) {
  const rl_sequence_list *sequence_list = executable->sequence_list;
  for (size_t i = 0; i < sequence_list->sequence_count; i++)
    executable->enqueued_individually |= sequence_list->sequences[i].enqueued_individually;
  for (size_t i = 0; i < sequence_list->sequence_count && !executable->enqueued_individually; i++)
    if (add_sequence(device, executable, &sequence_list->sequences[i], err) < 0) return -1;
  return rl_cuda_wait(device, "uploading graphs", err);
}

int rl_cuda_instantiate(rl_device *device, const rl_sequence_list *sequence_list, rl_executable **executable, rl_error *err) {
  rl_executable *created = allocate_executable(sequence_list);
  if (!created) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an executable");
  if (add_sequences(device, created, err) < 0) {
    rl_cuda_free_executable(device, created);
    return -1;
  }
  *executable = created;
  return 0;
}

/* --- running ----------------------------------------------------------------------------------------------------------- */

typedef struct run_queue { /* counts the work that a run has queued on the stream */
  const rl_observer *observer;
  size_t max_in_flight; /* at most RL_CUDA_MAX_IN_FLIGHT */
  uint64_t total_repeats;
  uint64_t queued_repeats;
  uint64_t queued_units;                            /* a unit of work is a graph launch, or a repeat without a graph */
  uint64_t repeats_at_event[RL_CUDA_MAX_IN_FLIGHT]; /* [i]: queued_repeats when progress_events[i] was recorded */
} run_queue;

static void report_progress(const run_queue *queue, uint64_t finished_repeats) {
  if (queue->observer && queue->observer->progress)
    queue->observer->progress(queue->observer->context, finished_repeats, queue->total_repeats);
}

/* Waits until fewer than max_in_flight units of work are unfinished, and reports the number of finished repeats. Returns
 * -1 with ECANCELED when the observer cancels. */
static int wait_for_queue_slot(rl_device *device, run_queue *queue, rl_error *err) {
  size_t slot = queue->queued_units % queue->max_in_flight;
  if (queue->queued_units >= queue->max_in_flight) {
    if (rl_cuda_check(cudaEventSynchronize(rl_cuda_device_of(device)->progress_events[slot]), "running", err) < 0) return -1;
    report_progress(queue, queue->repeats_at_event[slot]);
  }
  return rl_observer_check_cancellation(queue->observer, err);
}

/* Records the progress event of the unit of work that was enqueued last, which has `repeats` repeats. */
static int record_progress_event(rl_device *device, run_queue *queue, uint64_t repeats, rl_error *err) {
  size_t slot = queue->queued_units++ % queue->max_in_flight;
  queue->repeats_at_event[slot] = queue->queued_repeats += repeats;
  return rl_cuda_check(cudaEventRecord(rl_cuda_device_of(device)->progress_events[slot], rl_cuda_stream(device)), "running", err);
}

typedef int enqueue_function(rl_device *device, const void *argument, run_queue *queue, rl_error *err);

/* Enqueues the work between the start event and the stop event. */
static int enqueue_between_events(rl_device *device, enqueue_function *enqueue, const void *argument, run_queue *queue,
                                  rl_error *err) {
  rl_cuda_device *cuda = rl_cuda_device_of(device);
  if (rl_cuda_check(cudaEventRecord(cuda->start, rl_cuda_stream(device)), "timing", err) < 0 ||
      enqueue(device, argument, queue, err) < 0)
    return -1;
  return rl_cuda_check(cudaEventRecord(cuda->stop, rl_cuda_stream(device)), "timing", err);
}

/* Enqueues the work inside an NVTX range, waits until the device is idle (also after a failure or a cancellation) and sets
 * elapsed->device_ms and elapsed->host_ms. */
static int run_timed(rl_device *device, const char *nvtx_range, enqueue_function *enqueue, const void *argument, run_queue *queue,
                     rl_elapsed *elapsed, rl_error *err) {
  rl_cuda_device *cuda = rl_cuda_device_of(device);
  rl_error ignored; /* error of the wait after a failed enqueue */
  float ms = 0;
  rl_nvtx_range_push(nvtx_range);
  int64_t begin_ns = rl_monotonic_ns();
  int rc = enqueue_between_events(device, enqueue, argument, queue, err);
  if (rl_cuda_wait(device, "running", rc < 0 ? &ignored : err) < 0) rc = -1;
  int64_t end_ns = rl_monotonic_ns();
  rl_nvtx_range_pop();
  if (rc < 0 || rl_cuda_check(cudaEventElapsedTime(&ms, cuda->start, cuda->stop), "timing", err) < 0) return -1;
  elapsed->device_ms = ms;
  elapsed->host_ms = (double)(end_ns - begin_ns) * 1e-6;
  report_progress(queue, queue->total_repeats);
  return 0;
}

static int enqueue_executable(rl_device *device, const void *argument, run_queue *queue, rl_error *err) {
  const rl_executable *executable = (const rl_executable *)argument;
  for (size_t i = 0; i < executable->graph_count; i++)
    for (uint64_t launch = 0; launch < executable->graphs[i].launch_count; launch++)
      if (wait_for_queue_slot(device, queue, err) < 0 ||
          rl_cuda_check(cudaGraphLaunch(executable->graphs[i].graph_exec, rl_cuda_stream(device)), "launching a graph", err) <
              0 ||
          record_progress_event(device, queue, executable->graphs[i].repeats_per_launch, err) < 0)
        return -1;
  return 0;
}

int rl_cuda_run(rl_device *device, rl_executable *executable, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  if (executable->enqueued_individually) return rl_cuda_run_eager(device, executable->sequence_list, observer, elapsed, err);
  run_queue queue = {observer, MAX_GRAPHS_IN_FLIGHT, executable->repeats};
  rl_elapsed times = {0, 0, executable->nodes};
  if (run_timed(device, executable->sequence_list->name, enqueue_executable, executable, &queue, &times, err) < 0) return -1;
  *elapsed = times;
  return 0;
}

static int enqueue_sequence_list(rl_device *device, const void *argument, run_queue *queue, rl_error *err) {
  const rl_sequence_list *sequence_list = (const rl_sequence_list *)argument;
  for (size_t i = 0; i < sequence_list->sequence_count; i++)
    for (uint64_t repeat = 0; repeat < sequence_list->sequences[i].repeat; repeat++)
      if (wait_for_queue_slot(device, queue, err) < 0 ||
          rl_sequence_run_once(&sequence_list->sequences[i], device->stream, NULL, err) < 0 ||
          record_progress_event(device, queue, 1, err) < 0)
        return -1;
  return 0;
}

/* Counts the nodes that one run executes, by capturing one repeat of each sequence. */
static int count_nodes(rl_device *device, const rl_sequence_list *sequence_list, uint64_t *node_count, rl_error *err) {
  for (size_t i = 0; i < sequence_list->sequence_count; i++) {
    const rl_sequence *sequence = &sequence_list->sequences[i];
    uint64_t nodes = 0;
    if (sequence->repeat == 0) continue;
    if (rl_cuda_count_nodes(device, sequence, &nodes, err) < 0) return -1;
    *node_count += nodes * sequence->repeat;
  }
  return 0;
}

int rl_cuda_run_eager(rl_device *device, const rl_sequence_list *sequence_list, const rl_observer *observer, rl_elapsed *elapsed,
                      rl_error *err) {
  run_queue queue = {observer, RL_CUDA_MAX_IN_FLIGHT};
  rl_elapsed times = {};
  for (size_t i = 0; i < sequence_list->sequence_count; i++) queue.total_repeats += sequence_list->sequences[i].repeat;
  if (count_nodes(device, sequence_list, &times.stream_operations, err) < 0 ||
      run_timed(device, sequence_list->name, enqueue_sequence_list, sequence_list, &queue, &times, err) < 0)
    return -1;
  *elapsed = times;
  return 0;
}
