/* Samples: the time between two events around one repeat of a sequence, from a cold cache or a warm one. */
#include "device/cuda.h"
#include "device/launches.h"

enum {
  SAMPLES = 32,    /* samples queued before the host waits */
  HOLD_NS = 30000, /* more than the host takes to queue one sample */
};

__global__ static void read_through(const uint4 *memory, size_t count, uint4 *never) {
  uint4 sum = {0, 0, 0, 0};
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint4 value = memory[i];
    sum.x ^= value.x, sum.y ^= value.y, sum.z ^= value.z, sum.w ^= value.w;
  }
  if (sum.x + 1 == 0 && sum.y + 1 == 0) *never = sum; /* the memory is zero */
}

/* Touches no memory. */
__global__ static void hold(uint64_t ns) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

typedef struct sampling {
  const rl_sequence *sequence;
  rl_cache cache;
  cudaGraphExec_t graph; /* of `copies` repeats; NULL: launch by launch */
  uint64_t copies;
  cudaEvent_t events[2 * SAMPLES];
  uint4 *other; /* memory whose reading empties L2 */
  size_t other_count;
} sampling;

/* Three times L2, at least 32 MiB; kept only while sampling, so that no one's memory is larger for it. */
static int have_other(rl_device *device, sampling *s, rl_error *err) {
  int l2 = 0;
  if (rl_cuda_ok(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device->index), "asking for the size of L2", err)) return -1;
  size_t bytes = 3 * (size_t)l2, least = (size_t)32 << 20;
  if (bytes < least) bytes = least;
  if (rl_cuda_ok(cudaMalloc((void **)&s->other, bytes), "allocating memory to empty L2 with", err)) {
    s->other = NULL;
    (void)cudaGetLastError();
    return -1;
  }
  s->other_count = bytes / sizeof *s->other;
  return rl_cuda_ok(cudaMemsetAsync(s->other, 0, bytes, rl_cuda_stream(device)), "clearing", err);
}

static int empty_l2(rl_device *device, const sampling *s, rl_error *err) {
  read_through<<<1024, 256, 0, rl_cuda_stream(device)>>>(s->other, s->other_count, s->other);
  return rl_launch_ok("emptying L2", err);
}

static int hold_device(rl_device *device, rl_error *err) {
  hold<<<1, 1, 0, rl_cuda_stream(device)>>>(HOLD_NS);
  return rl_launch_ok("waiting for the host", err);
}

/* Whether a sample is of one repeat: what goes before it then keeps the device busy until the host has queued it. */
static bool is_alone(const sampling *s) { return s->cache == RL_CACHE_COLD || s->sequence->restore_launch; }

static int prepare(rl_device *device, const sampling *s, rl_error *err) {
  if (rl_sequence_restore(s->sequence, device->stream, err)) return -1;
  if (s->cache == RL_CACHE_COLD) return empty_l2(device, s, err);
  return is_alone(s) ? hold_device(device, err) : 0;
}

static int queue_sample(rl_device *device, const sampling *s, uint32_t slot, rl_error *err) {
  cudaStream_t stream = rl_cuda_stream(device);
  if (prepare(device, s, err) || rl_cuda_ok(cudaEventRecord(s->events[2 * slot], stream), "timing", err)) return -1;
  if (s->graph && rl_cuda_ok(cudaGraphLaunch(s->graph, stream), "launching a graph", err)) return -1;
  for (size_t i = 0; i < s->sequence->launch_count && !s->graph; i++)
    if (rl_launch_enqueue(&s->sequence->launches[i], device->stream, err)) return -1;
  return rl_cuda_ok(cudaEventRecord(s->events[2 * slot + 1], stream), "timing", err);
}

/* At most SAMPLES samples; the device waits for the host only before the first of them. */
static int take_samples(rl_device *device, const sampling *s, uint32_t count, double *device_us, rl_error *err) {
  for (uint32_t i = 0; i < count; i++)
    if (queue_sample(device, s, i, err)) return -1;
  if (rl_cuda_wait(device, "sampling", err)) return -1;
  for (uint32_t i = 0; i < count; i++) {
    float ms;
    if (rl_cuda_ok(cudaEventElapsedTime(&ms, s->events[2 * i], s->events[2 * i + 1]), "timing", err)) return -1;
    device_us[i] = (double)ms * 1e3 / (double)s->copies;
  }
  return 0;
}

/* So many that what a graph launch costs and the events' resolution do not matter. */
static uint64_t repeats_at_once(double once_us) {
  const double enough_us = 1000, most = 256;
  double copies = once_us > 0 ? enough_us / once_us : most;
  return copies < 1 ? 1 : (uint64_t)(copies < most ? copies : most);
}

/* One graph of what lies between two events, but for a single launch. */
static int make_graph(rl_device *device, sampling *s, double once_us, rl_error *err) {
  rl_sequence timed = *s->sequence;
  rl_cuda_piece made = {};
  timed.restore_launch = NULL;
  s->copies = is_alone(s) ? 1 : repeats_at_once(once_us);
  if (is_alone(s) && timed.launch_count == 1) return 0;
  int rc = rl_cuda_make_piece(device, &timed, s->copies, 1, &made, err);
  s->graph = made.graph;
  return rc;
}

static int sample_all(rl_device *device, sampling *s, rl_cache cache, uint32_t count, const rl_observer *observer,
                      double *device_us, rl_error *err) {
  double first[SAMPLES];
  s->cache = RL_CACHE_COLD;
  s->copies = 1;
  for (int i = 0; i < 2 * SAMPLES; i++)
    if (rl_cuda_ok(cudaEventCreate(&s->events[i]), "creating an event", err)) return -1;
  /* Clocks rise, code is loaded. */
  if (have_other(device, s, err) || take_samples(device, s, SAMPLES, first, err)) return -1;
  s->cache = cache;
  if (make_graph(device, s, first[SAMPLES - 1], err) || take_samples(device, s, 2, first, err)) return -1;
  for (uint32_t done = 0; done < count; done += SAMPLES) {
    uint32_t some = count - done < SAMPLES ? count - done : SAMPLES;
    if (rl_observer_cancelled(observer, err) || take_samples(device, s, some, device_us + done, err)) return -1;
  }
  return 0;
}

int rl_cuda_sample(rl_device *device, const rl_sequence *sequence, rl_cache cache, uint32_t count, const rl_observer *observer,
                   double *device_us, rl_error *err) {
  sampling s = {sequence};
  rl_error ignored;
  int rc = sample_all(device, &s, cache, count, observer, device_us, err);
  if (rc) rl_cuda_wait(device, "sampling", &ignored); /* nothing may run on into what comes next */
  if (s.graph) cudaGraphExecDestroy(s.graph);
  if (s.other) cudaFree(s.other);
  for (int i = 0; i < 2 * SAMPLES; i++)
    if (s.events[i]) cudaEventDestroy(s.events[i]);
  return rc;
}
