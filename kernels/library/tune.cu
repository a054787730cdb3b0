/* Implements tune.h: times work inside a CUDA graph, and fills memory with noise. */
#include "library/tune.h"

#include <cuda_fp16.h>
#include <stdio.h>

#include "cuda_check.h"
#include "hash.h"

/* Work that takes at least ACCURATE_RUN_US is timed once. Shorter work is captured up to MAX_RUNS_PER_GRAPH times into one graph,
 * whose launch is timed ROUNDS times. */
enum { MAX_RUNS_PER_GRAPH = 12, ROUNDS = 3 };
static const double ACCURATE_RUN_US = 20000;

typedef struct graph_timer {
  cudaGraph_t graph;
  cudaGraphExec_t graph_exec;
  cudaEvent_t start, stop;
} graph_timer;

/* The attribute `unused` is needed because nvcc does not see the use in the attribute `cleanup`. */
__attribute__((unused)) static void timer_close(graph_timer *timer) {
  if (timer->graph_exec) cudaGraphExecDestroy(timer->graph_exec);
  if (timer->graph) cudaGraphDestroy(timer->graph);
  if (timer->start) cudaEventDestroy(timer->start);
  if (timer->stop) cudaEventDestroy(timer->stop);
}

/* Records the stop event, waits for it, and sets *us to the time since the start event in microseconds. */
static int stop_timer(graph_timer *timer, cudaStream_t stream, double *us, rl_error *err) {
  float ms = 0;
  if (rl_cuda_check(cudaEventRecord(timer->stop, stream), "timing", err) < 0 ||
      rl_cuda_check(cudaEventSynchronize(timer->stop), "timing", err) < 0 ||
      rl_cuda_check(cudaEventElapsedTime(&ms, timer->start, timer->stop), "timing", err) < 0)
    return -1;
  *us = ms * 1000.0;
  return 0;
}

/* Captures `runs` runs of the work into timer->graph_exec. */
static int capture(graph_timer *timer, int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, cudaStream_t stream,
                   int runs, rl_error *err) {
  if (rl_cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing", err) < 0) return -1;
  int failed = 0;
  for (int i = 0; i < runs && !failed; i++) failed = enqueue(arg, stream, err);
  cudaError_t status = cudaStreamEndCapture(stream, &timer->graph);
  if (failed || status != cudaSuccess) {
    (void)cudaGetLastError();
    return failed ? -1 : rl_cuda_check(status, "capturing", err);
  }
  return rl_cuda_check(cudaGraphInstantiate(&timer->graph_exec, timer->graph, 0), "instantiating", err);
}

int rl_tune_measure_us(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us,
                       rl_error *err) {
  cudaStream_t cuda_stream = (cudaStream_t)stream;
  __attribute__((cleanup(timer_close))) graph_timer timer = {};
  double single_run_us = 0;
  if (rl_cuda_check(cudaEventCreate(&timer.start), "creating an event", err) < 0 ||
      rl_cuda_check(cudaEventCreate(&timer.stop), "creating an event", err) < 0)
    return -1;
  /* The first run is not timed: it loads modules. It fails when the work can't run. */
  if (enqueue(arg, stream, err) < 0 || rl_cuda_check(cudaEventRecord(timer.start, cuda_stream), "timing", err) < 0 ||
      enqueue(arg, stream, err) < 0 || stop_timer(&timer, cuda_stream, &single_run_us, err) < 0)
    return -1;
  const bool is_accurate = single_run_us >= ACCURATE_RUN_US;
  const int runs = is_accurate                                             ? 1
                   : single_run_us * MAX_RUNS_PER_GRAPH <= ACCURATE_RUN_US ? MAX_RUNS_PER_GRAPH
                                                                           : (int)(ACCURATE_RUN_US / single_run_us);
  /* Captures even when the single run was accurate, so that work that can't be captured fails here. */
  if (capture(&timer, enqueue, arg, cuda_stream, runs, err) < 0) return -1;
  double shortest_us = single_run_us;
  for (int round = 0; round <= ROUNDS && !is_accurate; round++) { /* round 0 warms up */
    double round_us;
    if (rl_cuda_check(cudaEventRecord(timer.start, cuda_stream), "timing", err) < 0 ||
        rl_cuda_check(cudaGraphLaunch(timer.graph_exec, cuda_stream), "timing", err) < 0 ||
        stop_timer(&timer, cuda_stream, &round_us, err) < 0)
      return -1;
    if (round == 1 || (round > 1 && round_us / runs < shortest_us)) shortest_us = round_us / runs;
  }
  *us = shortest_us;
  return 0;
}

template <typename T> static __global__ void noise(T *memory, size_t count) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
    memory[i] = (T)((float)(rl_hash64(i) >> 40) * 0x1p-23f - 1.0f);
}

int rl_tune_fill_noise(void *memory, size_t count, size_t value_bytes, rl_stream stream, rl_error *err) {
  if (value_bytes == sizeof(float)) noise<<<256, 256, 0, (cudaStream_t)stream>>>((float *)memory, count);
  else noise<<<256, 256, 0, (cudaStream_t)stream>>>((__half *)memory, count);
  return rl_cuda_check_launch("filling memory with noise", err);
}

int rl_tune_set_cache_key_prefix(const rl_device *device, rl_error *err) {
  cudaDeviceProp properties;
  char prefix[160];
  int driver = 0;
  if (rl_cuda_check(cudaGetDeviceProperties(&properties, device->index), "reading the device's properties", err) < 0 ||
      rl_cuda_check(cudaDriverGetVersion(&driver), "reading the driver's version", err) < 0)
    return -1;
  snprintf(prefix, sizeof prefix, "%.96s/cuda-%d/cudnn-%zu/cublaslt-%zu", properties.name, driver, cudnnGetVersion(),
           cublasLtGetVersion());
  rl_tuning_cache_set_key_prefix(prefix);
  return 0;
}
