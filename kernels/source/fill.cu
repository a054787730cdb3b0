/* What the buffers of a posted kernel hold before a launch, where no bytes were posted for them. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda_check.h"
#include "hash.h"
#include "source/fill.h"

enum { FILL_BLOCK = 256, FILL_BLOCKS = 4096 };

__device__ static double unit(uint64_t seed, uint64_t index) {
  return (double)(rl_hash64(rl_hash64(seed) + index) >> 11) * 0x1p-53;
}

__device__ static double number(int init, uint64_t seed, uint64_t index) {
  switch (init) {
    case RL_SOURCE_ONES: return 1;
    case RL_SOURCE_RANGE: return (double)index;
    case RL_SOURCE_UNIFORM: return unit(seed, index);
    case RL_SOURCE_NORMAL:
      return sqrt(-2 * log(1 - unit(seed, 2 * index))) * cospi(2 * unit(seed, 2 * index + 1)); /* Box-Muller */
    default: return 0;
  }
}

/* Whole numbers: the low bits of what counts, or any bits. */
__device__ static uint64_t whole(int init, uint64_t seed, uint64_t index) {
  return init == RL_SOURCE_UNIFORM ? rl_hash64(rl_hash64(seed) + index)
         : init == RL_SOURCE_RANGE ? index
                                   : init == RL_SOURCE_ONES;
}

template <typename T> struct element {
  __device__ static T of(int init, uint64_t seed, uint64_t i) { return (T)whole(init, seed, i); }
};
template <> struct element<double> {
  __device__ static double of(int init, uint64_t seed, uint64_t i) { return number(init, seed, i); }
};
template <> struct element<float> {
  __device__ static float of(int init, uint64_t seed, uint64_t i) { return (float)number(init, seed, i); }
};
template <> struct element<__half> {
  __device__ static __half of(int init, uint64_t seed, uint64_t i) { return __double2half(number(init, seed, i)); }
};
template <> struct element<__nv_bfloat16> {
  __device__ static __nv_bfloat16 of(int init, uint64_t seed, uint64_t i) { return __double2bfloat16(number(init, seed, i)); }
};

template <typename T> __global__ static void fill(T *to, uint64_t count, int init, uint64_t seed) {
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x)
    to[i] = element<T>::of(init, seed, i);
}

template <typename T> static void queue_fill(void *to, const rl_source_argument *argument, uint64_t seed, cudaStream_t stream) {
  fill<T><<<FILL_BLOCKS, FILL_BLOCK, 0, stream>>>((T *)to, (uint64_t)argument->count, argument->init, seed);
}

int rl_source_fill(const rl_source_argument *argument, int index, void *to, rl_stream stream, rl_error *err) {
  typedef void (*filler)(void *, const rl_source_argument *, uint64_t, cudaStream_t);
  static const filler fillers[RL_SOURCE_TYPES] = {queue_fill<double>,        queue_fill<float>,    queue_fill<__half>,
                                                  queue_fill<__nv_bfloat16>, queue_fill<uint8_t>,  queue_fill<uint8_t>,
                                                  queue_fill<uint16_t>,      queue_fill<uint16_t>, queue_fill<uint32_t>,
                                                  queue_fill<uint32_t>,      queue_fill<uint64_t>, queue_fill<uint64_t>};
  uint64_t seed = rl_hash64((uint64_t)argument->seed) + (uint64_t)index; /* arguments differ */
  fillers[argument->type](to, argument, seed, (cudaStream_t)stream);
  return rl_launch_ok("filling a buffer", err);
}
