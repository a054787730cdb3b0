/* Implements tiny.h: the kernels, the buffers that they share, the step and the operations of its instance. A kernel whose result
 * is not used stores it under a condition that is never true, so that the compiler cannot remove the work. */
#include "tiny.h"

#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

namespace {

struct tiny_buffers {
  uint4 *from, *to;
  float *state, *saved, *sink;
  cudaEvent_t begin, end;
};
tiny_buffers buffers;

int check(cudaError_t result, const char *what, rl_error *err) {
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s: %s", what, cudaGetErrorString(result));
}
int check_launch(const char *what, rl_error *err) { return check(cudaGetLastError(), what, err); }

}  // namespace

/* The kernels have C++ linkage and are in no namespace, so that the tests see short demangled names such as "tiny_sleeps(unsigned
 * long)". */
__global__ void tiny_sleeps(uint64_t ns) {
  uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < ns);
}

__global__ void tiny_copies(const uint4 *__restrict__ from, uint4 *__restrict__ to, size_t count) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) to[i] = from[i];
}

template <int FMAS> __global__ void tiny_multiplies(float *sink, float factor) {
  float value = threadIdx.x;
#pragma unroll
  for (int i = 0; i < FMAS; i++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(value) : "f"(factor));
  if (value == 12345.0f) *sink = value;
}

__global__ void tiny_reads(const uint4 *__restrict__ from, size_t count, float *sink) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
  if (sum == 0x12345679u) *sink = 1;
}

__global__ void tiny_updates(float *state) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  state[i] = state[i] * 1.5f + 1;
}

__global__ void tiny_empty() {}

namespace {

int sleep_us(void *, rl_stream stream, rl_error *err) {
  tiny_sleeps<<<1, 1, 0, (cudaStream_t)stream>>>(TINY_SLEEP_US * 1000ull);
  return check_launch("sleep", err);
}
int copy(void *, rl_stream stream, rl_error *err) {
  tiny_copies<<<132 * 16, 256, 0, (cudaStream_t)stream>>>(buffers.from, buffers.to, TINY_COPY_BYTES / sizeof(uint4));
  return check_launch("copy", err);
}
int fma(void *, rl_stream stream, rl_error *err) {
  tiny_multiplies<TINY_FMAS_PER_THREAD><<<TINY_FMA_WARPS / 8, 256, 0, (cudaStream_t)stream>>>(buffers.sink, 0.5f);
  return check_launch("fma", err);
}
int fma_twice(void *, rl_stream stream, rl_error *err) {
  tiny_multiplies<2 * TINY_FMAS_PER_THREAD><<<TINY_FMA_WARPS / 8, 256, 0, (cudaStream_t)stream>>>(buffers.sink, 0.5f);
  return check_launch("fma_twice", err);
}
/* Two kernels read the same bytes: the second hits L2 unless the caches are flushed before it too. */
int pair(void *, rl_stream stream, rl_error *err) {
  for (int i = 0; i < 2; i++)
    tiny_reads<<<132 * 4, 256, 0, (cudaStream_t)stream>>>(buffers.from, TINY_PAIR_BYTES / sizeof(uint4), buffers.sink);
  return check_launch("pair", err);
}
/* Starts with a memset, which is an operation but not a kernel. */
int update(void *, rl_stream stream, rl_error *err) {
  if (check(cudaMemsetAsync(buffers.sink, 0, 4096, (cudaStream_t)stream), "memset", err) < 0) return -1;
  tiny_updates<<<TINY_STATE_FLOATS / 256, 256, 0, (cudaStream_t)stream>>>(buffers.state);
  return check_launch("update", err);
}

const rl_launch launches[TINY_LAUNCH_COUNT] = {{"sleep", "data", sleep_us, NULL}, {"copy", "data", copy, NULL},
                                               {"fma", "forward", fma, NULL},     {"fma_twice", "forward", fma_twice, NULL},
                                               {"pair", "backward", pair, NULL},  {"update", "optimizer", update, NULL}};
const rl_sequence sequences[] = {{"step", launches, TINY_LAUNCH_COUNT, 1}};

int reset(rl_instance *, rl_error *err) {
  float *state = (float *)malloc(TINY_STATE_FLOATS * sizeof *state);
  for (int i = 0; i < TINY_STATE_FLOATS; i++) state[i] = (float)(i % 1000) / 7;
  int result = check(cudaMemcpy(buffers.state, state, TINY_STATE_FLOATS * sizeof *state, cudaMemcpyHostToDevice), "state", err);
  free(state);
  return result;
}
int read_no_results(rl_instance *, rl_iteration_results *, rl_error *) { return 0; }
int save(rl_instance *, rl_error *err) {
  return check(cudaMemcpy(buffers.saved, buffers.state, TINY_STATE_FLOATS * sizeof(float), cudaMemcpyDeviceToDevice), "save",
               err);
}
int restore(rl_instance *, rl_error *err) {
  return check(cudaMemcpy(buffers.state, buffers.saved, TINY_STATE_FLOATS * sizeof(float), cudaMemcpyDeviceToDevice), "restore",
               err);
}
void close_instance(rl_instance *) {}
const rl_instance_ops ops = {reset, read_no_results, save, restore, close_instance};

}  // namespace

int tiny_open(tiny_fixture *tiny, rl_error *err) {
  int count = 0;
  cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    check(found == cudaSuccess ? cudaErrorNoDevice : found, "no GPU here", err);
    return 1;
  }
  memset(tiny, 0, sizeof *tiny);
  cudaStream_t stream = NULL;
  if (check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream", err) < 0 ||
      check(cudaMalloc((void **)&buffers.from, TINY_COPY_BYTES), "memory", err) < 0 ||
      check(cudaMalloc((void **)&buffers.to, TINY_COPY_BYTES), "memory", err) < 0 ||
      check(cudaMalloc((void **)&buffers.state, TINY_STATE_FLOATS * sizeof(float)), "memory", err) < 0 ||
      check(cudaMalloc((void **)&buffers.saved, TINY_STATE_FLOATS * sizeof(float)), "memory", err) < 0 ||
      check(cudaMalloc((void **)&buffers.sink, 4096), "memory", err) < 0 ||
      check(cudaEventCreate(&buffers.begin), "event", err) < 0 || check(cudaEventCreate(&buffers.end), "event", err) < 0 ||
      check(cudaMemset(buffers.from, 0x5a, TINY_COPY_BYTES), "memory", err) < 0)
    return -1;
  tiny->state = buffers.state;
  tiny->device.kind = RL_DEVICE_CUDA;
  tiny->device.stream = stream;
  tiny->base.ops = &ops;
  tiny->base.device = &tiny->device;
  tiny->base.iteration = rl_sequence_list{"epoch", sequences, 1};
  return reset(&tiny->base, err);
}

void tiny_close(tiny_fixture *tiny) {
  cudaStreamDestroy((cudaStream_t)tiny->device.stream);
  cudaFree(buffers.from);
  cudaFree(buffers.to);
  cudaFree(buffers.state);
  cudaFree(buffers.saved);
  cudaFree(buffers.sink);
}

int tiny_read_state(tiny_fixture *tiny, float *state, rl_error *err) {
  return check(cudaMemcpy(state, tiny->state, TINY_STATE_FLOATS * sizeof *state, cudaMemcpyDeviceToHost), "state", err);
}

static int synchronize(tiny_fixture *tiny, rl_error *err) {
  return check(cudaStreamSynchronize((cudaStream_t)tiny->device.stream), "cudaStreamSynchronize", err);
}

int tiny_run_step(tiny_fixture *tiny, rl_error *err) {
  for (const rl_launch &launch : launches)
    if (launch.enqueue(launch.arg, tiny->device.stream, err) < 0) return -1;
  return synchronize(tiny, err);
}

int tiny_sleep(tiny_fixture *tiny, rl_error *err) {
  return sleep_us(NULL, tiny->device.stream, err) < 0 ? -1 : synchronize(tiny, err);
}

int tiny_launch_empty(tiny_fixture *tiny, int count, rl_error *err) {
  for (int i = 0; i < count; i++) tiny_empty<<<3, 64, 0, (cudaStream_t)tiny->device.stream>>>();
  return check_launch("empty", err) < 0 ? -1 : synchronize(tiny, err);
}

int tiny_graph_open(tiny_fixture *tiny, int nodes, void **graph, rl_error *err) {
  cudaStream_t stream = (cudaStream_t)tiny->device.stream;
  cudaGraph_t captured = NULL;
  cudaGraphExec_t graph_exec = NULL;
  if (check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture", err) < 0) return -1;
  for (int i = 0; i < nodes; i++) tiny_empty<<<3, 64, 0, stream>>>();
  if (check(cudaStreamEndCapture(stream, &captured), "capture", err) < 0 ||
      check(cudaGraphInstantiate(&graph_exec, captured, 0), "instantiate", err) < 0)
    return -1;
  cudaGraphDestroy(captured);
  *graph = graph_exec;
  return check(cudaGraphUpload(graph_exec, stream), "upload", err) < 0 ? -1 : synchronize(tiny, err);
}

int tiny_graph_run(tiny_fixture *tiny, void *graph, int replays, double *replay_us, rl_error *err) {
  cudaStream_t stream = (cudaStream_t)tiny->device.stream;
  float ms = 0;
  cudaEventRecord(buffers.begin, stream);
  for (int i = 0; i < replays; i++)
    if (check(cudaGraphLaunch((cudaGraphExec_t)graph, stream), "replay", err) < 0) return -1;
  cudaEventRecord(buffers.end, stream);
  if (synchronize(tiny, err) < 0 || check(cudaEventElapsedTime(&ms, buffers.begin, buffers.end), "time", err) < 0) return -1;
  if (replay_us != NULL) *replay_us = ms * 1e3 / replays;
  return 0;
}

void tiny_graph_close(void *graph) { cudaGraphExecDestroy((cudaGraphExec_t)graph); }

int tiny_wait_for_stream(tiny_fixture *tiny, rl_error *err) {
  cudaStream_t stream = (cudaStream_t)tiny->device.stream, other = NULL;
  cudaEvent_t event = NULL;
  int result = check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream", err) < 0 ||
               check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event", err) < 0 ||
               sleep_us(NULL, other, err) < 0 || check(cudaEventRecord(event, other), "record", err) < 0 ||
               check(cudaStreamWaitEvent(stream, event, 0), "wait", err) < 0 || tiny_launch_empty(tiny, 1, err) < 0;
  if (event) cudaEventDestroy(event);
  if (other) cudaStreamDestroy(other);
  return result ? -1 : 0;
}

int tiny_copy_new_memory(tiny_fixture *tiny, size_t bytes, rl_error *err) {
  cudaStream_t stream = (cudaStream_t)tiny->device.stream;
  void *memory = NULL, *host = malloc(bytes);
  int result = check(cudaMalloc(&memory, bytes), "memory", err) < 0 ||
               check(cudaMemsetAsync(memory, 1, bytes, stream), "memset", err) < 0 ||
               check(cudaMemcpyAsync(buffers.to, memory, bytes, cudaMemcpyDeviceToDevice, stream), "memcpy", err) < 0 ||
               check(cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, stream), "memcpy", err) < 0 ||
               synchronize(tiny, err) < 0 || check(cudaFree(memory), "free", err) < 0;
  free(host);
  return result ? -1 : 0;
}
