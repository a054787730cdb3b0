/* Implements fill.h. Each thread of the kernel `fill` generates elements in a grid-stride loop. */
#include "source/fill.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda_check.h"
#include "hash.h"

enum { BLOCK_THREADS = 256, MAX_BLOCKS = 4096, OUT_BYTE = 0xff };

/* Returns a uniform random number in [0, 1). */
__device__ static double uniform(uint64_t seed, uint64_t index) {
  return (double)(rl_hash64(rl_hash64(seed) + index) >> 11) * 0x1p-53;
}

__device__ static double real_value(int init, uint64_t seed, uint64_t index) {
  switch (init) {
    case RL_SOURCE_ONES: return 1;
    case RL_SOURCE_RANGE: return (double)index;
    case RL_SOURCE_UNIFORM: return uniform(seed, index);
    case RL_SOURCE_NORMAL:
      return sqrt(-2 * log(1 - uniform(seed, 2 * index))) * cospi(2 * uniform(seed, 2 * index + 1)); /* Box-Muller */
    default: return 0;
  }
}

/* Returns the value of an element of an integer type; the caller truncates it to the type. */
__device__ static uint64_t integer_value(int init, uint64_t seed, uint64_t index) {
  return init == RL_SOURCE_UNIFORM ? rl_hash64(rl_hash64(seed) + index)
         : init == RL_SOURCE_RANGE ? index
                                   : init == RL_SOURCE_ONES;
}

template <typename T> struct initial_element {
  __device__ static T of(int init, uint64_t seed, uint64_t i) { return (T)integer_value(init, seed, i); }
};
template <> struct initial_element<double> {
  __device__ static double of(int init, uint64_t seed, uint64_t i) { return real_value(init, seed, i); }
};
template <> struct initial_element<float> {
  __device__ static float of(int init, uint64_t seed, uint64_t i) { return (float)real_value(init, seed, i); }
};
template <> struct initial_element<__half> {
  __device__ static __half of(int init, uint64_t seed, uint64_t i) { return __double2half(real_value(init, seed, i)); }
};
template <> struct initial_element<__nv_bfloat16> {
  __device__ static __nv_bfloat16 of(int init, uint64_t seed, uint64_t i) { return __double2bfloat16(real_value(init, seed, i)); }
};

template <typename T> __global__ static void fill(T *to, uint64_t count, int init, uint64_t seed) {
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x)
    to[i] = initial_element<T>::of(init, seed, i);
}

template <typename T> static void enqueue_fill(void *to, const rl_source_argument *argument, uint64_t seed, cudaStream_t stream) {
  const uint64_t blocks = ((uint64_t)argument->count + BLOCK_THREADS - 1) / BLOCK_THREADS;
  fill<T><<<(unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), BLOCK_THREADS, 0, stream>>>((T *)to, (uint64_t)argument->count,
                                                                                               argument->init, seed);
}

int rl_source_fill(const rl_source_argument *argument, int index, uint64_t launch, void *to, rl_stream stream, rl_error *err) {
  typedef void (*fill_function)(void *, const rl_source_argument *, uint64_t, cudaStream_t);
  static const fill_function functions[RL_SOURCE_TYPE_COUNT] = {
      enqueue_fill<double>,   enqueue_fill<float>,    enqueue_fill<__half>,   enqueue_fill<__nv_bfloat16>,
      enqueue_fill<uint8_t>,  enqueue_fill<uint8_t>,  enqueue_fill<uint16_t>, enqueue_fill<uint16_t>,
      enqueue_fill<uint32_t>, enqueue_fill<uint32_t>, enqueue_fill<uint64_t>, enqueue_fill<uint64_t>};
  uint64_t seed = rl_hash64((uint64_t)argument->seed) + (uint64_t)index; /* so that buffers have different contents */
  if (launch > 0) seed ^= rl_hash64(launch);
  functions[argument->type](to, argument, seed, (cudaStream_t)stream);
  return rl_cuda_check_launch("filling a buffer", err);
}

static size_t bytes_of(const rl_source_argument *argument) {
  return (size_t)argument->count * rl_source_type_size(argument->type);
}

static bool is_random(const rl_source_argument *argument) {
  return argument->initial_contents == NULL && (argument->init == RL_SOURCE_UNIFORM || argument->init == RL_SOURCE_NORMAL);
}

/* Overwrites the buffers with access "out", so that the result of an earlier launch can't count as a result of this one. */
static int enqueue_invalid_outputs(const rl_source *source, void *const *buffers, cudaStream_t stream, rl_error *err) {
  for (int i = 0; i < source->argument_count; i++) {
    const rl_source_argument *argument = &source->arguments[i];
    if (argument->kind == RL_SOURCE_BUFFER && argument->access == RL_SOURCE_OUT &&
        rl_cuda_check(cudaMemsetAsync(buffers[i], OUT_BYTE, bytes_of(argument), stream), "overwriting an output buffer", err) < 0)
      return -1;
  }
  return 0;
}

int rl_source_fill_buffers(const rl_source *source, uint64_t launch, void *const *saved, void *const *buffers, rl_stream stream,
                           rl_error *err) {
  if (enqueue_invalid_outputs(source, buffers, (cudaStream_t)stream, err) < 0) return -1;
  for (int i = 0; i < source->argument_count; i++) {
    const rl_source_argument *argument = &source->arguments[i];
    if (argument->kind != RL_SOURCE_BUFFER || argument->access == RL_SOURCE_OUT) continue;
    const int rc = launch > 0 && is_random(argument)
                       ? rl_source_fill(argument, i, launch, buffers[i], stream, err)
                       : rl_cuda_check(cudaMemcpyAsync(buffers[i], saved[i], bytes_of(argument), cudaMemcpyDeviceToDevice,
                                                       (cudaStream_t)stream),
                                       "copying the buffers", err);
    if (rc < 0) return -1;
  }
  return 0;
}
