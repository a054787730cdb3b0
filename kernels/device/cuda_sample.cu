/* Implements rl_device_ops.sample: takes samples of the time of one repeat of a sequence, between two events, with a cold or a
 * warm cache. */
#include "device/cuda.h"
#include "device/launches.h"

enum {
  MAX_QUEUED = 32,           /* samples that the host queues before it waits for the device */
  QUEUEING_DELAY_NS = 30000, /* longer than the host takes to queue one sample */
};

/* Reads zeroed memory. Because all values are zero, the store never happens; the compiler does not know that, so it must keep the
 * loads. */
__global__ static void read_memory(const uint4 *memory, size_t count, uint4 *never_written) {
  uint4 sum = {0, 0, 0, 0};
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint4 value = memory[i];
    sum.x ^= value.x, sum.y ^= value.y, sum.z ^= value.z, sum.w ^= value.w;
  }
  if (sum.x + 1 == 0 && sum.y + 1 == 0) *never_written = sum;
}

/* Spins for `ns` nanoseconds without accessing memory. */
__global__ static void delay(uint64_t ns) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

typedef struct sampling {
  const rl_sequence *sequence;
  rl_cache_state cache;
  cudaGraphExec_t graph_exec;         /* graph of `repeats` repeats; NULL: the launches are enqueued one by one */
  uint64_t repeats;                   /* repeats that one sample times */
  cudaEvent_t events[2 * MAX_QUEUED]; /* start and stop of each queued sample */
  uint4 *eviction_buffer;             /* a kernel that reads it evicts all other data from L2 */
  size_t eviction_count;              /* elements of eviction_buffer */
} sampling;

/* Allocates the eviction buffer: three times the size of L2, at least 32 MiB. Does not use ops->allocate, so that the buffer does
 * not count as memory of the workload. */
static int allocate_eviction_buffer(rl_device *device, sampling *s, rl_error *err) {
  int l2 = 0;
  if (rl_cuda_check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device->index), "reading the size of L2", err) < 0)
    return -1;
  size_t bytes = 3 * (size_t)l2, minimum = (size_t)32 << 20;
  if (bytes < minimum) bytes = minimum;
  if (rl_cuda_check(cudaMalloc((void **)&s->eviction_buffer, bytes), "allocating memory for the eviction of L2", err) < 0) {
    s->eviction_buffer = NULL;
    (void)cudaGetLastError();
    return -1;
  }
  s->eviction_count = bytes / sizeof *s->eviction_buffer;
  return rl_cuda_check(cudaMemsetAsync(s->eviction_buffer, 0, bytes, rl_cuda_stream(device)), "writing zeros", err);
}

static int evict_l2(rl_device *device, const sampling *s, rl_error *err) {
  read_memory<<<1024, 256, 0, rl_cuda_stream(device)>>>(s->eviction_buffer, s->eviction_count, s->eviction_buffer);
  return rl_cuda_check_launch("evicting L2", err);
}

static int delay_device(rl_device *device, rl_error *err) {
  delay<<<1, 1, 0, rl_cuda_stream(device)>>>(QUEUEING_DELAY_NS);
  return rl_cuda_check_launch("delaying the device", err);
}

/* Returns true when a sample is one repeat, and not several back-to-back repeats. */
static bool is_single_repeat(const sampling *s) { return s->cache == RL_CACHE_COLD || s->sequence->restore_launch; }

/* Restores the inputs and the cache state. The kernel that evicts or delays also keeps the device busy until the host has queued
 * the whole sample, so that the device does not wait for the host within the sample. If the sequence is enqueued individually,
 * waits until the device is idle instead. */
static int prepare_sample(rl_device *device, const sampling *s, rl_error *err) {
  if (s->sequence->pause_ms > 0) {
    if (rl_cuda_wait(device, "sampling", err) < 0) return -1;
    rl_sequence_pause(s->sequence);
  }
  if (rl_sequence_restore(s->sequence, device->stream, err) < 0) return -1;
  if (s->cache == RL_CACHE_COLD && evict_l2(device, s, err) < 0) return -1;
  if (s->sequence->enqueued_individually) return rl_cuda_wait(device, "sampling", err);
  const bool needs_delay = s->cache == RL_CACHE_WARM && (is_single_repeat(s) || s->sequence->pause_ms > 0);
  return needs_delay ? delay_device(device, err) : 0;
}

static int queue_sample(rl_device *device, const sampling *s, uint32_t slot, rl_error *err) {
  cudaStream_t stream = rl_cuda_stream(device);
  if (prepare_sample(device, s, err) < 0 || rl_cuda_check(cudaEventRecord(s->events[2 * slot], stream), "timing", err) < 0)
    return -1;
  if (s->graph_exec && rl_cuda_check(cudaGraphLaunch(s->graph_exec, stream), "launching a graph", err) < 0) return -1;
  for (size_t i = 0; i < s->repeats * s->sequence->launch_count && !s->graph_exec; i++)
    if (rl_launch_enqueue(&s->sequence->launches[i % s->sequence->launch_count], device->stream, err) < 0) return -1;
  if (rl_cuda_check(cudaEventRecord(s->events[2 * slot + 1], stream), "timing", err) < 0) return -1;
  return rl_sequence_check(s->sequence, device->stream, err);
}

/* Takes `count` samples, at most MAX_QUEUED. If the sequence has no pause, queues all of them before it waits for the device, so
 * that the device waits for the host only before the first sample. */
static int take_samples(rl_device *device, const sampling *s, uint32_t count, double *device_us, rl_error *err) {
  for (uint32_t i = 0; i < count; i++)
    if (queue_sample(device, s, i, err) < 0) return -1;
  if (rl_cuda_wait(device, "sampling", err) < 0) return -1;
  for (uint32_t i = 0; i < count; i++) {
    float ms;
    if (rl_cuda_check(cudaEventElapsedTime(&ms, s->events[2 * i], s->events[2 * i + 1]), "timing", err) < 0) return -1;
    device_us[i] = (double)ms * 1e3 / (double)s->repeats;
  }
  return 0;
}

/* Returns the number of repeats of a warm sample: as many as take about 1 ms, but at most 256. Compared with 1 ms, the cost of a
 * graph launch and the resolution of the events do not matter. once_us: time of one repeat. */
static uint64_t repeats_of_warm_sample(double once_us) {
  const double target_us = 1000, maximum = 256;
  double repeats = once_us > 0 ? target_us / once_us : maximum;
  return repeats < 1 ? 1 : (uint64_t)(repeats < maximum ? repeats : maximum);
}

/* Sets the number of repeats that a sample times, and captures them into a graph, unless they consist of a single launch or are
 * enqueued individually. */
static int capture_sample(rl_device *device, sampling *s, double once_us, rl_error *err) {
  rl_sequence timed = *s->sequence;
  rl_cuda_repeated_graph created = {};
  timed.restore_launch = NULL;
  s->repeats = is_single_repeat(s) ? 1 : repeats_of_warm_sample(once_us);
  if (timed.enqueued_individually || (is_single_repeat(s) && timed.launch_count == 1)) return 0;
  int rc = rl_cuda_repeated_graph_create(device, &timed, s->repeats, 1, &created, err);
  s->graph_exec = created.graph_exec;
  return rc;
}

static int take_all_samples(rl_device *device, const sampling *s, uint32_t count, const rl_observer *observer, double *device_us,
                            rl_error *err) {
  const uint32_t max_batch = s->sequence->pause_ms > 0 ? 1 : MAX_QUEUED; /* samples between two checks for cancellation */
  for (uint32_t done = 0; done < count; done += max_batch) {
    uint32_t batch = count - done < max_batch ? count - done : max_batch;
    if (rl_observer_check_cancellation(observer, err) < 0 || take_samples(device, s, batch, device_us + done, err) < 0) return -1;
  }
  return 0;
}

static int sample_all(rl_device *device, sampling *s, rl_cache_state cache, uint32_t count, const rl_observer *observer,
                      double *device_us, rl_error *err) {
  enum { WARMUP = 32 };
  double warmup_us[WARMUP];
  s->cache = RL_CACHE_COLD;
  s->repeats = 1;
  for (int i = 0; i < 2 * MAX_QUEUED; i++)
    if (rl_cuda_check(cudaEventCreate(&s->events[i]), "creating an event", err) < 0) return -1;
  /* Warmup: takes samples that are not reported, while CUDA loads modules and the clocks rise. */
  if (allocate_eviction_buffer(device, s, err) < 0 || take_all_samples(device, s, WARMUP, observer, warmup_us, err) < 0)
    return -1;
  s->cache = cache;
  if (capture_sample(device, s, warmup_us[WARMUP - 1], err) < 0 || take_samples(device, s, 2, warmup_us, err) < 0) return -1;
  return take_all_samples(device, s, count, observer, device_us, err);
}

int rl_cuda_sample(rl_device *device, const rl_sequence *sequence, rl_cache_state cache, uint32_t count,
                   const rl_observer *observer, double *device_us, rl_error *err) {
  sampling s = {sequence};
  rl_error ignored_err;
  int rc = sample_all(device, &s, cache, count, observer, device_us, err);
  if (rc < 0) rl_cuda_wait(device, "sampling", &ignored_err); /* the device must be idle before its buffers are freed */
  if (s.graph_exec) cudaGraphExecDestroy(s.graph_exec);
  if (s.eviction_buffer) cudaFree(s.eviction_buffer);
  for (int i = 0; i < 2 * MAX_QUEUED; i++)
    if (s.events[i]) cudaEventDestroy(s.events[i]);
  return rc;
}
