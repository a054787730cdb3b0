/* Implements instruction_kernels.h: the kernels, the buffers that they share and the step that launches them. The kernels' names
 * are extern "C", so that the profiler shows them unmangled. A kernel whose result is not used stores it under a
 * condition that is never true, so that the compiler cannot remove the work. */
#include "instruction_kernels.h"

#include <cuda_runtime.h>
#include <string.h>
#include <vector>

enum { RING_INTS = 1 << 24, BUFFER_FLOATS = 1 << 26, CHASE_STEPS = 300 };

/* Executes FMAS_PER_THREAD multiply-adds per thread, each of which needs the result of the one before. */
extern "C" __global__ void fma_kernel(float *sink, float factor) {
  float value = threadIdx.x;
#pragma unroll
  for (int i = 0; i < FMAS_PER_THREAD; i++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(value) : "f"(factor));
  if (value == 12345.0f) *sink = value;
}

/* Loads from shared memory; lane i of a warp reads word i * CONFLICT_WAYS, so that a warp uses 32 / CONFLICT_WAYS of the 32
 * banks. */
extern "C" __global__ void bank_conflict_kernel(float *sink) {
  __shared__ float words[32 * CONFLICT_WAYS];
  float sum = 0, word;
  unsigned address = (unsigned)__cvta_generic_to_shared(&words[threadIdx.x % 32 * CONFLICT_WAYS]);
#pragma unroll
  for (int i = 0; i < ACCESSES_PER_THREAD; i++) {
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(word) : "r"(address));
    sum += word;
  }
  if (sum == 12345.0f) *sink = sum;
}

/* Loads from global memory; neighbouring threads read floats that are STRIDE_FLOATS apart, each in its own sector. */
extern "C" __global__ void strided_kernel(const float *source, float *sink) {
  float sum = 0, word;
  const float *address = source + (size_t)(blockIdx.x * blockDim.x + threadIdx.x) * STRIDE_FLOATS;
#pragma unroll
  for (int i = 0; i < ACCESSES_PER_THREAD; i++) {
    asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(word) : "l"(address));
    sum += word;
  }
  if (sum == 12345.0f) *sink = sum;
}

/* Sends the lower and the upper 16 lanes of each warp into different loops, DIVERGENT_BRANCHES times. */
extern "C" __global__ void divergent_kernel(float *sink, int iterations) {
  float value = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < DIVERGENT_BRANCHES; i++) {
    if ((threadIdx.x & 16) != 0) {
#pragma unroll 1
      for (int iteration = 0; iteration < iterations; iteration++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    } else {
#pragma unroll 1
      for (int iteration = 0; iteration < iterations; iteration++) asm volatile("add.f32 %0, %0, %0;" : "+f"(value));
    }
    __syncwarp();
  }
  if (value == 12345.0f) *sink = value;
}

/* Follows CHASE_STEPS links of `ring`, in which each word holds the index of the next: each load waits for the one before. */
extern "C" __global__ void pointer_chase_kernel(const int *ring, int *sink) {
  int position = blockIdx.x * 1021 + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < CHASE_STEPS; i++) position = ring[position];
  if (position == -1) *sink = position;
}

/* Lets the first warp of the block run for `ns` nanoseconds, while the other warps wait for it at the barrier. */
extern "C" __global__ void barrier_kernel(unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  if (threadIdx.x < 32) do
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
  __syncthreads();
}

/* Executes multiply-adds for `ns` nanoseconds, then reads the `count` vectors of `source` for another `ns` nanoseconds; after the
 * last vector it continues with the first. */
extern "C" __global__ void two_phase_kernel(const float4 *source, size_t count, unsigned long long ns, float *sink) {
  unsigned long long start, now;
  float value = threadIdx.x, sum = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
#pragma unroll
    for (int i = 0; i < 512; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
  size_t index = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  do {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float4 word = __ldcg(&source[index]);
      sum += word.x + word.y + word.z + word.w;
      index += (size_t)gridDim.x * blockDim.x;
      if (index >= count) index -= count;
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < 2 * ns);
  if (value + sum == 12345.0f) *sink = sum;
}

/* Ends at once: its single warp has no thread 99. */
extern "C" __global__ void short_kernel(float *sink) {
  if (threadIdx.x == 99) *sink = 0;
}

/* The symbol of each executed kernel, in the order of execution. LAUNCH_FMA_TWICE executes fma_kernel twice. */
const char *const kernel_symbols[KERNEL_COUNT] = {
    "fma_kernel",     "bank_conflict_kernel", "strided_kernel", "divergent_kernel", "pointer_chase_kernel",
    "barrier_kernel", "two_phase_kernel",     "short_kernel",   "fma_kernel",       "fma_kernel"};

namespace {

int *ring;     /* RING_INTS indices into itself, for pointer_chase_kernel */
float *buffer; /* BUFFER_FLOATS zeros, which kernels read */
float *sink;   /* destination of results; the condition of each store is false */

int check(cudaError_t result, const char *action, rl_error *err) {
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s: %s", action, cudaGetErrorString(result));
}

int launch(void *arg, rl_stream stream_of_step, rl_error *err) {
  cudaStream_t stream = (cudaStream_t)stream_of_step;
  const dim3 blocks(BLOCKS), threads(THREADS_PER_BLOCK);
  switch ((launch_index)(size_t)arg) {
    case LAUNCH_FMA_TWICE: fma_kernel<<<blocks, threads, 0, stream>>>(sink, 1.5f); /* fall through */
    case LAUNCH_FMA: fma_kernel<<<blocks, threads, 0, stream>>>(sink, 1.5f); break;
    case LAUNCH_BANK_CONFLICT: bank_conflict_kernel<<<blocks, threads, 0, stream>>>(sink); break;
    case LAUNCH_STRIDED: strided_kernel<<<blocks, threads, 0, stream>>>(buffer, sink); break;
    case LAUNCH_DIVERGENT: divergent_kernel<<<blocks, threads, 0, stream>>>(sink, 8); break;
    case LAUNCH_POINTER_CHASE: pointer_chase_kernel<<<blocks, 32, 0, stream>>>(ring, (int *)sink); break;
    case LAUNCH_BARRIER: barrier_kernel<<<blocks, threads, 0, stream>>>(200000); break;
    case LAUNCH_TWO_PHASE:
      two_phase_kernel<<<4 * BLOCKS, threads, 0, stream>>>((const float4 *)buffer, BUFFER_FLOATS / 4, PHASE_US * 1000ull, sink);
      break;
    case LAUNCH_SHORT: short_kernel<<<1, 32, 0, stream>>>(sink); break;
    case LAUNCH_COUNT: break;
  }
  return check(cudaGetLastError(), "launching a kernel", err);
}

int do_nothing(rl_instance *, rl_error *) { return 0; }
const rl_instance_ops ops = {do_nothing, NULL, do_nothing, do_nothing, NULL, NULL};

rl_launch launches[LAUNCH_COUNT];
const rl_sequence sequences[] = {{"step", launches, LAUNCH_COUNT, 1}};

/* Links each word of the ring to the word 1048583 places further on. The length of the ring is a power of two and this distance
 * is odd, so a walk along the links visits every word, and each word is far from the previous one. */
int fill_ring(rl_error *err) {
  std::vector<int> next(RING_INTS);
  for (size_t i = 0; i < RING_INTS; i++) next[i] = (int)((i + 1048583) % RING_INTS);
  return check(cudaMemcpy(ring, next.data(), RING_INTS * sizeof(int), cudaMemcpyHostToDevice), "copying the ring", err);
}

}  // namespace

int instruction_fixture_open(instruction_fixture *fixture, rl_error *err) {
  int count = 0;
  cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    check(found == cudaSuccess ? cudaErrorNoDevice : found, "counting the GPUs", err);
    return 1;
  }
  memset(fixture, 0, sizeof *fixture);
  cudaStream_t stream = NULL;
  if (check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream", err) < 0 ||
      check(cudaMalloc((void **)&ring, RING_INTS * sizeof(int)), "allocating memory", err) < 0 ||
      check(cudaMalloc((void **)&buffer, BUFFER_FLOATS * sizeof(float)), "allocating memory", err) < 0 ||
      check(cudaMalloc((void **)&sink, 4096), "allocating memory", err) < 0 ||
      check(cudaMemset(buffer, 0, BUFFER_FLOATS * sizeof(float)), "clearing memory", err) < 0 || fill_ring(err) < 0)
    return -1;
  for (size_t i = 0; i < LAUNCH_COUNT; i++) launches[i] = rl_launch{kernel_symbols[i], "kernel", launch, (void *)i};
  fixture->device.kind = RL_DEVICE_CUDA;
  fixture->device.stream = stream;
  fixture->base.ops = &ops;
  fixture->base.device = &fixture->device;
  fixture->base.iteration = rl_sequence_list{"epoch", sequences, 1};
  return 0;
}
