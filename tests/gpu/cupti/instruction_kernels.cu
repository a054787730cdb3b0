#include "instruction_kernels.h"

#include <cuda_runtime.h>
#include <string.h>
#include <vector>

enum { RING = 1 << 24 /* ints */, BUFFER = 1 << 26 /* floats */, STEPS = 300 };

extern "C" __global__ void inside_multiplies(float *sink, float factor) {
  float value = threadIdx.x;
#pragma unroll
  for (int i = 0; i < INSIDE_FMAS; i++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(value) : "f"(factor));
  if (value == 12345.0f) *sink = value;
}

/* Lane i reads word i * INSIDE_CONFLICTS: of 32 banks only 32 / INSIDE_CONFLICTS are used. */
extern "C" __global__ void inside_collides(float *sink) {
  __shared__ float words[32 * INSIDE_CONFLICTS];
  float sum = 0, word;
  unsigned at = (unsigned)__cvta_generic_to_shared(&words[threadIdx.x % 32 * INSIDE_CONFLICTS]);
#pragma unroll
  for (int i = 0; i < INSIDE_ACCESSES; i++) {
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(word) : "r"(at));
    sum += word;
  }
  if (sum == 12345.0f) *sink = sum;
}

extern "C" __global__ void inside_strides(const float *from, float *sink) {
  float sum = 0, word;
  const float *at = from + (size_t)(blockIdx.x * blockDim.x + threadIdx.x) * INSIDE_STRIDE;
#pragma unroll
  for (int i = 0; i < INSIDE_ACCESSES; i++) {
    asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(word) : "l"(at));
    sum += word;
  }
  if (sum == 12345.0f) *sink = sum;
}

extern "C" __global__ void inside_diverges(float *sink, int often) {
  float value = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < INSIDE_BRANCHES; i++) {
    if ((threadIdx.x & 16) != 0) {
#pragma unroll 1
      for (int j = 0; j < often; j++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    } else {
#pragma unroll 1
      for (int j = 0; j < often; j++) asm volatile("add.f32 %0, %0, %0;" : "+f"(value));
    }
    __syncwarp();
  }
  if (value == 12345.0f) *sink = value;
}

extern "C" __global__ void inside_chases(const int *ring, int *sink) {
  int at = blockIdx.x * 1021 + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < STEPS; i++) at = ring[at];
  if (at == -1) *sink = at;
}

/* All warps but the first wait at the barrier. */
extern "C" __global__ void inside_waits(unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  if (threadIdx.x < 32) do
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
  __syncthreads();
}

extern "C" __global__ void inside_phases(const float4 *from, size_t count, unsigned long long ns, float *sink) {
  unsigned long long start, now;
  float value = threadIdx.x, sum = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
#pragma unroll
    for (int i = 0; i < 512; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
  size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  do {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float4 word = __ldcg(&from[at]);
      sum += word.x + word.y + word.z + word.w;
      at += (size_t)gridDim.x * blockDim.x;
      if (at >= count) at -= count;
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < 2 * ns);
  if (value + sum == 12345.0f) *sink = sum;
}

extern "C" __global__ void inside_short(float *sink) {
  if (threadIdx.x == 99) *sink = 0;
}

const char *const inside_names[INSIDE_KERNELS] = {"inside_multiplies", "inside_collides",  "inside_strides", "inside_diverges",
                                                  "inside_chases",     "inside_waits",     "inside_phases",  "inside_short",
                                                  "inside_multiplies", "inside_multiplies"};

namespace {

int *ring;
float *buffer, *sink;

int check(cudaError_t result, const char *what, rl_error *err) {
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s: %s", what, cudaGetErrorString(result));
}

int launch(void *arg, rl_stream to, rl_error *err) {
  cudaStream_t stream = (cudaStream_t)to;
  const dim3 blocks(INSIDE_BLOCKS), threads(INSIDE_THREADS);
  switch ((inside_launch)(size_t)arg) {
    case INSIDE_TWICE: inside_multiplies<<<blocks, threads, 0, stream>>>(sink, 1.5f); /* fall through */
    case INSIDE_MULTIPLIES: inside_multiplies<<<blocks, threads, 0, stream>>>(sink, 1.5f); break;
    case INSIDE_COLLIDES: inside_collides<<<blocks, threads, 0, stream>>>(sink); break;
    case INSIDE_STRIDES: inside_strides<<<blocks, threads, 0, stream>>>(buffer, sink); break;
    case INSIDE_DIVERGES: inside_diverges<<<blocks, threads, 0, stream>>>(sink, 8); break;
    case INSIDE_CHASES: inside_chases<<<blocks, 32, 0, stream>>>(ring, (int *)sink); break;
    case INSIDE_WAITS: inside_waits<<<blocks, threads, 0, stream>>>(200000); break;
    case INSIDE_PHASES:
      inside_phases<<<4 * INSIDE_BLOCKS, threads, 0, stream>>>((const float4 *)buffer, BUFFER / 4, INSIDE_PHASE_US * 1000ull,
                                                               sink);
      break;
    case INSIDE_SHORT: inside_short<<<1, 32, 0, stream>>>(sink); break;
    case INSIDE_LAUNCHES: break;
  }
  return check(cudaGetLastError(), "launch", err);
}

int nothing(rl_instance *, rl_error *) { return 0; }
const rl_instance_ops ops = {nothing, NULL, nothing, nothing, NULL, NULL};

rl_launch launches[INSIDE_LAUNCHES];
const rl_sequence sequences[] = {{"step", launches, INSIDE_LAUNCHES, 1}};

int fill_ring(rl_error *err) {
  std::vector<int> next(RING);
  for (size_t i = 0; i < RING; i++) next[i] = (int)((i + 1048583) % RING);
  return check(cudaMemcpy(ring, next.data(), RING * sizeof(int), cudaMemcpyHostToDevice), "ring", err);
}

}  // namespace

int inside_open(inside_rig *rig, rl_error *err) {
  int count = 0;
  cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    check(found == cudaSuccess ? cudaErrorNoDevice : found, "no GPU here", err);
    return 1;
  }
  memset(rig, 0, sizeof *rig);
  cudaStream_t stream = NULL;
  if (check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream", err) != 0 ||
      check(cudaMalloc((void **)&ring, RING * sizeof(int)), "memory", err) != 0 ||
      check(cudaMalloc((void **)&buffer, BUFFER * sizeof(float)), "memory", err) != 0 ||
      check(cudaMalloc((void **)&sink, 4096), "memory", err) != 0 ||
      check(cudaMemset(buffer, 0, BUFFER * sizeof(float)), "memory", err) != 0 || fill_ring(err) != 0)
    return -1;
  for (size_t i = 0; i < INSIDE_LAUNCHES; i++) launches[i] = rl_launch{inside_names[i], "kernel", launch, (void *)i};
  rig->device.kind = RL_DEVICE_CUDA;
  rig->device.stream = stream;
  rig->base.ops = &ops;
  rig->base.device = &rig->device;
  rig->base.iteration = rl_program{"epoch", sequences, 1};
  return 0;
}
