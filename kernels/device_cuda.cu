/* A CUDA device: one stream, memory by purpose, programs as captured graphs. The runtime is linked statically and loads the
 * driver itself, so the program starts, and says what is missing, on a machine that has none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/commit.h"
#include "base/fields.h"
#include "cuda_check.h"
#include "device.h"
#include "ranges.h"

enum {
  UNROLL = 64,     /* repeats of a sequence in one graph: what a graph launch costs is shared by so many */
  SAMPLES = 32,    /* samples queued before the host waits */
  HOLD_NS = 30000, /* more than the host takes to queue one sample */
  AHEAD = 8,       /* graph launches queued before the host waits: bounds how late a cancellation is */
};

typedef struct block { /* one allocation */
  struct block *next;
  void *memory;
  size_t bytes;
  rl_purpose purpose;
} block;

typedef struct cuda_device {
  rl_device base;
  block *blocks;
  cudaEvent_t start, stop, ring[AHEAD];
} cuda_device;

static cuda_device *own(rl_device *device) { return (cuda_device *)device; }
static cudaStream_t stream_of(rl_device *device) { return (cudaStream_t)device->stream; }

/* --- memory
 * -------------------------------------------------------------------------------------------------------------------- */

static int cuda_allocate(rl_device *device, rl_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  block *made = (block *)malloc(sizeof *made);
  if (!made) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a device block");
  char what[96];
  snprintf(what, sizeof what, "allocating %zu bytes for %s", bytes, rl_purpose_names[purpose]);
  if (rl_cuda_ok(cudaMalloc(&made->memory, bytes ? bytes : 1), what, err)) {
    free(made);
    (void)cudaGetLastError();
    return -1;
  }
  made->bytes = bytes;
  made->purpose = purpose;
  made->next = own(device)->blocks;
  own(device)->blocks = made;
  rl_memory_add(&device->memory, purpose, bytes);
  *memory = made->memory;
  return 0;
}

static void cuda_release(rl_device *device, void *memory) {
  for (block **at = &own(device)->blocks; memory && *at; at = &(*at)->next) {
    block *found = *at;
    if (found->memory != memory) continue;
    *at = found->next;
    cudaFree(memory);
    rl_memory_remove(&device->memory, found->purpose, found->bytes);
    free(found);
    return;
  }
}

static int wait(rl_device *device, const char *what, rl_error *err) {
  return rl_cuda_ok(cudaStreamSynchronize(stream_of(device)), what, err);
}

static int cuda_upload(rl_device *device, void *to, const void *from_host, size_t bytes, rl_error *err) {
  if (rl_cuda_ok(cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyHostToDevice, stream_of(device)), "uploading", err)) return -1;
  return wait(device, "uploading", err);
}

static int cuda_download(rl_device *device, void *to_host, const void *from, size_t bytes, rl_error *err) {
  if (rl_cuda_ok(cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream_of(device)), "downloading", err)) return -1;
  return wait(device, "downloading", err);
}

static int cuda_clear(rl_device *device, void *memory, size_t bytes, rl_error *err) {
  if (rl_cuda_ok(cudaMemsetAsync(memory, 0, bytes, stream_of(device)), "clearing", err)) return -1;
  return wait(device, "clearing", err);
}

/* --- plans
 * --------------------------------------------------------------------------------------------------------------------- */

typedef struct piece { /* `copies` repeats of a sequence in one graph, launched `times` times */
  cudaGraphExec_t graph;
  uint64_t copies, times, nodes;
} piece;

struct rl_plan {
  const rl_program *program;
  piece *pieces; /* two a sequence: the unrolled ones, and what is left */
  size_t count;
  uint64_t repeats, launches;
};

static void cuda_plan_free(rl_device *device, rl_plan *plan) {
  (void)device;
  if (!plan) return;
  for (size_t i = 0; i < plan->count; i++)
    if (plan->pieces[i].graph) cudaGraphExecDestroy(plan->pieces[i].graph);
  free(plan->pieces);
  free(plan);
}

static int enqueue(rl_device *device, const rl_launch *launch, rl_error *err) {
  return launch->enqueue(launch->arg, device->stream, err) ? rl_wrap(err, "%s", launch->name) : 0;
}

static int put_back(rl_device *device, const rl_sequence *sequence, rl_error *err) {
  return sequence->restore ? enqueue(device, sequence->restore, err) : 0;
}

/* Kernels, copies and sets in a graph. */
static int count_work(cudaGraph_t graph, uint64_t *work, rl_error *err) {
  size_t count = 0;
  if (rl_cuda_ok(cudaGraphGetNodes(graph, NULL, &count), "counting nodes", err)) return -1;
  cudaGraphNode_t *nodes = (cudaGraphNode_t *)malloc((count + 1) * sizeof *nodes);
  if (!nodes) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for graph nodes");
  int rc = rl_cuda_ok(cudaGraphGetNodes(graph, nodes, &count), "counting nodes", err);
  *work = 0;
  for (size_t i = 0; i < count && !rc; i++) {
    cudaGraphNodeType type;
    rc = rl_cuda_ok(cudaGraphNodeGetType(nodes[i], &type), "counting nodes", err);
    *work += type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
  }
  free(nodes);
  return rc;
}

static int capture(rl_device *device, const rl_sequence *sequence, uint64_t copies, cudaGraph_t *graph, rl_error *err) {
  if (rl_cuda_ok(cudaStreamBeginCapture(stream_of(device), cudaStreamCaptureModeThreadLocal), "capturing", err)) return -1;
  int rc = 0;
  for (uint64_t copy = 0; copy < copies && !rc; copy++) {
    rc = put_back(device, sequence, err);
    for (size_t i = 0; i < sequence->launch_count && !rc; i++) rc = enqueue(device, &sequence->launches[i], err);
  }
  cudaError_t ended = cudaStreamEndCapture(stream_of(device), graph);
  if (rc) {
    (void)cudaGetLastError();
    return -1;
  }
  return rl_cuda_ok(ended, "capturing", err);
}

static int make_piece(rl_device *device, const rl_sequence *sequence, uint64_t copies, uint64_t times, piece *piece,
                      rl_error *err) {
  cudaGraph_t graph = NULL;
  if (copies == 0 || times == 0) return 0;
  piece->copies = copies;
  piece->times = times;
  int rc = capture(device, sequence, copies, &graph, err) || count_work(graph, &piece->nodes, err) ||
           rl_cuda_ok(cudaGraphInstantiate(&piece->graph, graph, 0), "instantiating a graph", err) ||
           rl_cuda_ok(cudaGraphUpload(piece->graph, stream_of(device)), "uploading a graph", err);
  if (graph) cudaGraphDestroy(graph);
  return rc ? rl_wrap(err, "sequence %s", sequence->name) : 0;
}

static int cuda_plan(rl_device *device, const rl_program *program, rl_plan **plan, rl_error *err) {
  rl_plan *made = (rl_plan *)calloc(1, sizeof *made);
  if (made) made->pieces = (piece *)calloc(2 * program->sequence_count + 1, sizeof *made->pieces);
  if (!made || !made->pieces) {
    cuda_plan_free(device, made);
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a plan");
  }
  made->program = program;
  for (size_t i = 0; i < program->sequence_count; i++) {
    const rl_sequence *sequence = &program->sequences[i];
    piece *pair = &made->pieces[made->count];
    made->count += 2;
    made->repeats += sequence->repeat;
    if (make_piece(device, sequence, UNROLL, sequence->repeat / UNROLL, &pair[0], err) ||
        make_piece(device, sequence, sequence->repeat % UNROLL, 1, &pair[1], err)) {
      cuda_plan_free(device, made);
      return -1;
    }
    made->launches += pair[0].nodes * pair[0].times + pair[1].nodes * pair[1].times;
  }
  if (wait(device, "uploading graphs", err)) {
    cuda_plan_free(device, made);
    return -1;
  }
  *plan = made;
  return 0;
}

/* --- running
 * ------------------------------------------------------------------------------------------------------------------- */

typedef struct progress { /* what was queued and what the host knows to be done */
  const rl_observer *observer;
  uint64_t queued, done_after[AHEAD], repeats, of;
} progress;

static int check_cancelled(const rl_observer *observer, rl_error *err) {
  if (observer && observer->cancelled && observer->cancelled(observer->context))
    return rl_fail(err, RL_SYS, ECANCELED, "cancelled");
  return 0;
}

/* Before the next launch is queued: wait for the one AHEAD of it. */
static int keep_pace(rl_device *device, progress *p, rl_error *err) {
  size_t slot = p->queued % AHEAD;
  if (p->queued >= AHEAD) {
    if (rl_cuda_ok(cudaEventSynchronize(own(device)->ring[slot]), "running", err)) return -1;
    if (p->observer && p->observer->advanced) p->observer->advanced(p->observer->context, p->done_after[slot], p->of);
  }
  return check_cancelled(p->observer, err);
}

static int mark(rl_device *device, progress *p, uint64_t repeats, rl_error *err) {
  size_t slot = p->queued++ % AHEAD;
  p->done_after[slot] = p->repeats += repeats;
  return rl_cuda_ok(cudaEventRecord(own(device)->ring[slot], stream_of(device)), "running", err);
}

static int launch_pieces(rl_device *device, const rl_plan *plan, progress *p, rl_error *err) {
  for (size_t i = 0; i < plan->count; i++)
    for (uint64_t time = 0; time < plan->pieces[i].times; time++)
      if (keep_pace(device, p, err) ||
          rl_cuda_ok(cudaGraphLaunch(plan->pieces[i].graph, stream_of(device)), "launching a graph", err) ||
          mark(device, p, plan->pieces[i].copies, err))
        return -1;
  return 0;
}

/* Times whatever body queues, until the device is idle. */
static int timed(rl_device *device, const char *name,
                 int (*body)(rl_device *device, const void *what, progress *p, rl_error *err), const void *what, progress *p,
                 rl_elapsed *elapsed, rl_error *err) {
  cuda_device *cuda = own(device);
  rl_error unwound;
  float ms = 0;
  rl_range_push(name);
  int64_t begin = rl_monotonic_ns();
  int rc = rl_cuda_ok(cudaEventRecord(cuda->start, stream_of(device)), "timing", err) || body(device, what, p, err) ||
           rl_cuda_ok(cudaEventRecord(cuda->stop, stream_of(device)), "timing", err);
  rc = wait(device, "running", rc ? &unwound : err) || rc; /* also after a cancellation: the device is idle on return */
  int64_t end = rl_monotonic_ns();
  rl_range_pop();
  if (rc || rl_cuda_ok(cudaEventElapsedTime(&ms, cuda->start, cuda->stop), "timing", err)) return -1;
  elapsed->device_ms = ms;
  elapsed->host_ms = (double)(end - begin) * 1e-6;
  if (p->observer && p->observer->advanced) p->observer->advanced(p->observer->context, p->of, p->of);
  return 0;
}

static int run_plan(rl_device *device, const void *what, progress *p, rl_error *err) {
  return launch_pieces(device, (const rl_plan *)what, p, err);
}

static int cuda_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  progress p = {observer, 0, {}, 0, plan->repeats};
  rl_elapsed took = {0, 0, plan->launches};
  if (timed(device, plan->program->name, run_plan, plan, &p, &took, err)) return -1;
  *elapsed = took;
  return 0;
}

/* One repeat of a sequence: a range for each run of launches of one phase, one inside it for each launch. */
static int run_once(rl_device *device, const rl_sequence *sequence, rl_error *err) {
  const char *phase = NULL;
  int rc = put_back(device, sequence, err);
  for (size_t i = 0; i < sequence->launch_count && !rc; i++) {
    const rl_launch *launch = &sequence->launches[i];
    if (!phase || strcmp(phase, launch->range) != 0) {
      if (phase) rl_range_pop();
      rl_range_push(phase = launch->range);
    }
    rl_range_push(launch->name);
    rc = enqueue(device, launch, err);
    rl_range_pop();
  }
  if (phase) rl_range_pop();
  return rc;
}

static int run_sequences(rl_device *device, const void *what, progress *p, rl_error *err) {
  const rl_program *program = (const rl_program *)what;
  for (size_t i = 0; i < program->sequence_count; i++)
    for (uint64_t repeat = 0; repeat < program->sequences[i].repeat; repeat++)
      if (keep_pace(device, p, err) || run_once(device, &program->sequences[i], err) || mark(device, p, 1, err)) return -1;
  return 0;
}

static int cuda_run_eager(rl_device *device, const rl_program *program, const rl_observer *observer, rl_elapsed *elapsed,
                          rl_error *err) {
  progress p = {observer};
  rl_elapsed took = {};
  for (size_t i = 0; i < program->sequence_count; i++) { /* what one repeat issues is known by capturing it */
    cudaGraph_t graph = NULL;
    uint64_t nodes = 0;
    p.of += program->sequences[i].repeat;
    if (program->sequences[i].repeat == 0) continue;
    int rc = capture(device, &program->sequences[i], 1, &graph, err) || count_work(graph, &nodes, err);
    if (graph) cudaGraphDestroy(graph);
    if (rc) return -1;
    took.launches += nodes * program->sequences[i].repeat;
  }
  if (timed(device, program->name, run_sequences, program, &p, &took, err)) return -1;
  *elapsed = took;
  return 0;
}

/* --- samples
 * ------------------------------------------------------------------------------------------------------------------- */

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
  return rl_cuda_ok(cudaMemsetAsync(s->other, 0, bytes, stream_of(device)), "clearing", err);
}

static int empty_l2(rl_device *device, const sampling *s, rl_error *err) {
  read_through<<<1024, 256, 0, stream_of(device)>>>(s->other, s->other_count, s->other);
  return rl_launch_ok("emptying L2", err);
}

static int hold_device(rl_device *device, rl_error *err) {
  hold<<<1, 1, 0, stream_of(device)>>>(HOLD_NS);
  return rl_launch_ok("waiting for the host", err);
}

/* Whether a sample is of one repeat: what goes before it then keeps the device busy until the host has queued it. */
static bool is_alone(const sampling *s) { return s->cache == RL_CACHE_COLD || s->sequence->restore; }

static int prepare(rl_device *device, const sampling *s, rl_error *err) {
  if (put_back(device, s->sequence, err)) return -1;
  if (s->cache == RL_CACHE_COLD) return empty_l2(device, s, err);
  return is_alone(s) ? hold_device(device, err) : 0;
}

static int queue_sample(rl_device *device, const sampling *s, uint32_t slot, rl_error *err) {
  cudaStream_t stream = stream_of(device);
  if (prepare(device, s, err) || rl_cuda_ok(cudaEventRecord(s->events[2 * slot], stream), "timing", err)) return -1;
  if (s->graph && rl_cuda_ok(cudaGraphLaunch(s->graph, stream), "launching a graph", err)) return -1;
  for (size_t i = 0; i < s->sequence->launch_count && !s->graph; i++)
    if (enqueue(device, &s->sequence->launches[i], err)) return -1;
  return rl_cuda_ok(cudaEventRecord(s->events[2 * slot + 1], stream), "timing", err);
}

/* At most SAMPLES samples; the device waits for the host only before the first of them. */
static int take_samples(rl_device *device, const sampling *s, uint32_t count, double *device_us, rl_error *err) {
  for (uint32_t i = 0; i < count; i++)
    if (queue_sample(device, s, i, err)) return -1;
  if (wait(device, "sampling", err)) return -1;
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
  piece made = {};
  timed.restore = NULL;
  s->copies = is_alone(s) ? 1 : repeats_at_once(once_us);
  if (is_alone(s) && timed.launch_count == 1) return 0;
  int rc = make_piece(device, &timed, s->copies, 1, &made, err);
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
    if (check_cancelled(observer, err) || take_samples(device, s, some, device_us + done, err)) return -1;
  }
  return 0;
}

static int cuda_sample(rl_device *device, const rl_sequence *sequence, rl_cache cache, uint32_t count,
                       const rl_observer *observer, double *device_us, rl_error *err) {
  sampling s = {sequence};
  rl_error ignored;
  int rc = sample_all(device, &s, cache, count, observer, device_us, err);
  if (rc) wait(device, "sampling", &ignored); /* nothing may run on into what comes next */
  if (s.graph) cudaGraphExecDestroy(s.graph);
  if (s.other) cudaFree(s.other);
  for (int i = 0; i < 2 * SAMPLES; i++)
    if (s.events[i]) cudaEventDestroy(s.events[i]);
  return rc;
}

/* --- opening
 * ------------------------------------------------------------------------------------------------------------------- */

static void cuda_close(rl_device *device) {
  if (!device) return;
  cuda_device *cuda = own(device);
  while (cuda->blocks) cuda_release(device, cuda->blocks->memory);
  for (int i = 0; i < AHEAD; i++)
    if (cuda->ring[i]) cudaEventDestroy(cuda->ring[i]);
  if (cuda->start) cudaEventDestroy(cuda->start);
  if (cuda->stop) cudaEventDestroy(cuda->stop);
  if (device->stream) cudaStreamDestroy(stream_of(device));
  free(cuda);
}

static const rl_device_ops cuda_ops = {cuda_allocate, cuda_release, cuda_upload, cuda_download, cuda_clear, cuda_plan,
                                       cuda_plan_free, cuda_run, cuda_run_eager, cuda_close, cuda_sample};

int rl_device_count(rl_error *err) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
      rl_fail(err, RL_CUDA, status, "no NVIDIA driver is installed on this machine");
    else rl_cuda_ok(status, "looking for CUDA devices", err);
    return 0;
  }
  if (count == 0) rl_fail(err, RL_CUDA, cudaErrorNoDevice, "the NVIDIA driver has no device");
  return count;
}

static int check_index(int index, rl_error *err) {
  int count = rl_device_count(err);
  if (count == 0) return -1;
  if (index < 0 || index >= count) return rl_fail(err, RL_INPUT, 0, "there are %d CUDA devices, gpu0 to gpu%d", count, count - 1);
  return 0;
}

static int open_parts(cuda_device *cuda, rl_error *err) {
  cudaStream_t stream = NULL;
  if (rl_cuda_ok(cudaSetDevice(cuda->base.index), "choosing the device", err) ||
      rl_cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating the stream", err))
    return -1;
  cuda->base.stream = stream;
  if (rl_cuda_ok(cudaEventCreate(&cuda->start), "creating an event", err) ||
      rl_cuda_ok(cudaEventCreate(&cuda->stop), "creating an event", err))
    return -1;
  for (int i = 0; i < AHEAD; i++)
    if (rl_cuda_ok(cudaEventCreateWithFlags(&cuda->ring[i], cudaEventDisableTiming), "creating an event", err)) return -1;
  return 0;
}

rl_device *rl_device_open(int index, rl_error *err) {
  if (check_index(index, err)) return NULL;
  cuda_device *cuda = (cuda_device *)calloc(1, sizeof *cuda);
  if (!cuda) {
    rl_fail(err, RL_SYS, ENOMEM, "out of memory for the device");
    return NULL;
  }
  cuda->base.ops = &cuda_ops;
  cuda->base.kind = RL_DEVICE_CUDA;
  cuda->base.index = index;
  snprintf(cuda->base.id, sizeof cuda->base.id, "gpu%d", index);
  if (open_parts(cuda, err)) {
    cuda_close(&cuda->base);
    return NULL;
  }
  return &cuda->base;
}

/* --- facts
 * --------------------------------------------------------------------------------------------------------------------- */

typedef struct cuda_facts {
  char name[256], uuid[48], pci_bus[24], compute_capability[8], driver[24], driver_cuda[16], cuda_runtime[16], cudnn[64],
      cublas[64], compiler[24], commit[48];
  int64_t sm_count, memory_bytes, l2_bytes, shared_memory_per_sm_bytes, registers_per_sm, sm_clock_max_khz, memory_clock_max_khz,
    memory_bus_bits;
} cuda_facts;

#define FACT(MEMBER, TYPE) {#MEMBER, TYPE, offsetof(cuda_facts, MEMBER), sizeof(((cuda_facts *)0)->MEMBER)}
static const rl_field cuda_facts_fields[] = {
  FACT(name, RL_FIELD_TEXT), FACT(uuid, RL_FIELD_TEXT), FACT(pci_bus, RL_FIELD_TEXT), FACT(compute_capability, RL_FIELD_TEXT),
  FACT(sm_count, RL_FIELD_INT), FACT(memory_bytes, RL_FIELD_INT), FACT(l2_bytes, RL_FIELD_INT),
  FACT(shared_memory_per_sm_bytes, RL_FIELD_INT), FACT(registers_per_sm, RL_FIELD_INT), FACT(sm_clock_max_khz, RL_FIELD_INT),
  FACT(memory_clock_max_khz, RL_FIELD_INT), FACT(memory_bus_bits, RL_FIELD_INT), FACT(driver, RL_FIELD_TEXT),
  FACT(driver_cuda, RL_FIELD_TEXT), FACT(cuda_runtime, RL_FIELD_TEXT), FACT(cudnn, RL_FIELD_TEXT), FACT(cublas, RL_FIELD_TEXT),
  FACT(compiler, RL_FIELD_TEXT), FACT(commit, RL_FIELD_TEXT), {}};

/* 13000 → "13.0": how CUDA writes versions. */
static void write_cuda_version(int version, char text[16]) {
  snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

static void write_uuid(const cudaUUID_t *uuid, char text[48]) {
  int used = snprintf(text, 48, "GPU-");
  for (int i = 0; i < 16; i++)
    used += snprintf(text + used, 48 - (size_t)used, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                     (unsigned char)uuid->bytes[i]);
}

/* The driver's own version, of which CUDA knows nothing; "" where the system does not tell. */
static void write_driver_version(char *text, size_t size) {
  char line[256] = "";
  FILE *file = fopen("/proc/driver/nvidia/version", "re");
  text[0] = '\0';
  if (!file) return;
  if (fgets(line, sizeof line, file)) /* NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ... */
    for (char *rest = line, *word; (word = strtok_r(rest, " \t\n", &rest)) != NULL;)
      if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
        snprintf(text, size, "%s", word);
        break;
      }
  fclose(file);
}

static int64_t attribute(int index, cudaDeviceAttr which) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, index);
  return value;
}

char *rl_device_facts(int index, rl_error *err) {
  if (check_index(index, err)) return NULL;
  cudaDeviceProp properties;
  if (rl_cuda_ok(cudaGetDeviceProperties(&properties, index), "reading the device's properties", err)) return NULL;
  cuda_facts facts = {};
  int driver = 0, runtime = 0;
  size_t cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  snprintf(facts.name, sizeof facts.name, "%s", properties.name);
  write_uuid(&properties.uuid, facts.uuid);
  cudaDeviceGetPCIBusId(facts.pci_bus, sizeof facts.pci_bus, index);
  snprintf(facts.compute_capability, sizeof facts.compute_capability, "%d.%d", properties.major, properties.minor);
  write_driver_version(facts.driver, sizeof facts.driver);
  write_cuda_version(driver, facts.driver_cuda);
  write_cuda_version(runtime, facts.cuda_runtime);
  snprintf(facts.cudnn, sizeof facts.cudnn, "%zu.%zu.%zu", cudnn / 10000, cudnn % 10000 / 100, cudnn % 100);
  snprintf(facts.cublas, sizeof facts.cublas, "%zu.%zu.%zu", cublas / 10000, cublas % 10000 / 100, cublas % 100);
  snprintf(facts.compiler, sizeof facts.compiler, "nvcc %d.%d.%d", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__,
           __CUDACC_VER_BUILD__);
  snprintf(facts.commit, sizeof facts.commit, "%s", RL_COMMIT);
  facts.sm_count = properties.multiProcessorCount;
  facts.memory_bytes = (int64_t)properties.totalGlobalMem;
  facts.l2_bytes = properties.l2CacheSize;
  facts.shared_memory_per_sm_bytes = (int64_t)properties.sharedMemPerMultiprocessor;
  facts.registers_per_sm = properties.regsPerMultiprocessor;
  facts.sm_clock_max_khz = attribute(index, cudaDevAttrClockRate);
  facts.memory_clock_max_khz = attribute(index, cudaDevAttrMemoryClockRate);
  facts.memory_bus_bits = properties.memoryBusWidth;
  char *text = rl_fields_print(cuda_facts_fields, &facts);
  if (!text) rl_fail(err, RL_SYS, ENOMEM, "out of memory for the facts of the device");
  return text;
}
