/* Rates of the levels of memory, by accesses of 16 bytes. A block moves a slice and ends, which keeps more of memory busy than
 * blocks that go on do. For DRAM there are as many blocks as slices; for L2 there are few slices, and many blocks for each. L1
 * and shared memory belong to a multiprocessor, so there a block goes round its own slice.
 *
 * How many accesses a thread makes decides up to 4 % on an H200, and differently for each: many for reads, whose latency they
 * hide, one where there are writes (docs/measurements/h200-ceilings.md). */
#include "ceilings/cuda.h"
#include "cuda_check.h"
#include "hash.h"

enum {
  BLOCK = 256,
  READ = 4,
  READ_L2 = 8,
  WRITE = 1,
  WRITE_L2 = 2, /* accesses of a thread */
  NEAR_UNROLL = 4,
  NEAR_ROUNDS = 1024,                   /* of a block that stays with its slice */
  NEAR_SLICE = 2 * BLOCK * NEAR_UNROLL, /* twice what a round reads, so that rounds differ */
  NEAR_BLOCKS_PER_SM = 3,               /* 96 KiB in all, which every device has */
};

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(BLOCK) fill_random(uint64_t *words, size_t count, uint64_t key) {
  for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (size_t)gridDim.x * BLOCK)
    words[i] = rl_hash64(key + i);
}

__device__ static inline void take(uint4 *sum, uint4 value) {
  sum->x += value.x, sum->y += value.y, sum->z += value.z, sum->w += value.w;
}

/* No sum of what is in memory is this by chance, but the compiler can't know. */
__device__ static inline void keep(uint4 sum, uint4 *never) {
  if (sum.x == 0x9e3779b9 && sum.y == 0x85ebca6b && sum.z == 0xc2b2ae35 && sum.w == 0x27d4eb2f) *never = sum;
}

/* Where this thread's part of a slice begins; N accesses a thread. */
template <int N> __device__ static inline size_t begin(uint32_t slices) {
  return (size_t)(blockIdx.x % slices) * BLOCK * N + threadIdx.x;
}

template <int N> static __global__ void __launch_bounds__(BLOCK) read_slices(const uint4 *from, uint32_t slices, uint4 *never) {
  uint4 sum = {};
  from += begin<N>(slices);
#pragma unroll
  for (int i = 0; i < N; i++) take(&sum, __ldcg(&from[i * BLOCK]));
  keep(sum, never);
}

template <int N> static __global__ void __launch_bounds__(BLOCK) write_slices(uint4 *to, uint32_t slices) {
  uint64_t random = rl_hash64((uint64_t)blockIdx.x * BLOCK + threadIdx.x);
  to += begin<N>(slices);
#pragma unroll
  for (int i = 0; i < N; i++, random *= 0x9e3779b97f4a7c15u)
    __stcg(&to[i * BLOCK], uint4{(uint32_t)random, (uint32_t)(random >> 32), (uint32_t)(random >> 16), (uint32_t)(random >> 48)});
}

template <int N> static __global__ void __launch_bounds__(BLOCK) copy_slices(const uint4 *from, uint4 *to, uint32_t slices) {
  uint4 values[N];
  from += begin<N>(slices), to += begin<N>(slices);
#pragma unroll
  for (int i = 0; i < N; i++) values[i] = __ldcg(&from[i * BLOCK]);
#pragma unroll
  for (int i = 0; i < N; i++) __stcg(&to[i * BLOCK], values[i]);
}

__device__ static inline uint32_t triad_word(uint32_t b, uint32_t c) {
  return __float_as_uint(fmaf(3, __uint_as_float(c), __uint_as_float(b)));
}

template <int N> static __global__ void __launch_bounds__(BLOCK)
    triad_slices(uint4 *a, const uint4 *b, const uint4 *c, uint32_t slices) {
  uint4 bs[N], cs[N];
  a += begin<N>(slices), b += begin<N>(slices), c += begin<N>(slices);
#pragma unroll
  for (int i = 0; i < N; i++) bs[i] = __ldcg(&b[i * BLOCK]), cs[i] = __ldcg(&c[i * BLOCK]);
#pragma unroll
  for (int i = 0; i < N; i++)
    __stcg(&a[i * BLOCK], uint4{triad_word(bs[i].x, cs[i].x), triad_word(bs[i].y, cs[i].y), triad_word(bs[i].z, cs[i].z),
                                triad_word(bs[i].w, cs[i].w)});
}

/* The start of a round moves on by a warp's worth, so that no load is the same as one before it. */
template <class LOAD> __device__ static inline uint4 go_round(const uint4 *slice, LOAD load) {
  uint4 sum = {};
#pragma unroll 1
  for (uint32_t round = 0; round < NEAR_ROUNDS; round++) {
    const uint4 *from = slice + threadIdx.x + round * 32 % (NEAR_SLICE / 2);
#pragma unroll
    for (int i = 0; i < NEAR_UNROLL; i++) take(&sum, load(&from[i * BLOCK]));
  }
  return sum;
}

static __global__ void __launch_bounds__(BLOCK) read_l1(const uint4 *from, uint4 *never) {
  keep(go_round(from + (size_t)blockIdx.x * NEAR_SLICE, [](const uint4 *at) { return __ldca(at); }), never);
}

static __global__ void __launch_bounds__(BLOCK) read_shared(const uint4 *from, uint4 *never) {
  __shared__ uint4 slice[NEAR_SLICE];
  for (int i = threadIdx.x; i < NEAR_SLICE; i += BLOCK) slice[i] = from[i];
  __syncthreads();
  keep(go_round(slice, [](const uint4 *at) { return *at; }), never);
}

/* --- launches ---------------------------------------------------------------------------------------------------------- */

static size_t l2_bytes(const rl_ceilings_gpu *self) { return self->l2_bytes / 4; } /* fits, with much to spare */
static uint32_t slices(size_t bytes, int accesses) { return (uint32_t)(bytes / sizeof(uint4) / BLOCK / accesses); }
/* The memory's second part and third, each of so many slices. */
static uint4 *part(const rl_ceilings_gpu *self, uint32_t which, uint32_t count, int accesses) {
  return self->memory + (size_t)which * count * BLOCK * accesses;
}
enum { L2_ROUNDS = 64 };

#define LAUNCH(NAME, ...)                                       \
  static int NAME(void *arg, rl_stream stream, rl_error *err) { \
    const rl_ceilings_gpu *self = (const rl_ceilings_gpu *)arg; \
    const cudaStream_t on = (cudaStream_t)stream;               \
    __VA_ARGS__;                                                \
    return rl_launch_ok("launching", err);                      \
  }
#define SLICES(BYTES, N) const uint32_t n = slices(BYTES, N)
LAUNCH(dram_read, SLICES(self->bytes, READ); read_slices<READ><<<n, BLOCK, 0, on>>>(self->memory, n, self->memory))
LAUNCH(dram_write, SLICES(self->bytes, WRITE); write_slices<WRITE><<<n, BLOCK, 0, on>>>(self->memory, n))
LAUNCH(dram_copy, SLICES(self->bytes / 2, WRITE);
       copy_slices<WRITE><<<n, BLOCK, 0, on>>>(self->memory, part(self, 1, n, WRITE), n))
LAUNCH(dram_triad, SLICES(self->bytes / 3, WRITE);
       triad_slices<WRITE><<<n, BLOCK, 0, on>>>(self->memory, part(self, 1, n, WRITE), part(self, 2, n, WRITE), n))
LAUNCH(l2_read, SLICES(l2_bytes(self), READ_L2);
       read_slices<READ_L2><<<n * L2_ROUNDS, BLOCK, 0, on>>>(self->memory, n, self->memory))
LAUNCH(l2_write, SLICES(l2_bytes(self), WRITE_L2); write_slices<WRITE_L2><<<n * L2_ROUNDS, BLOCK, 0, on>>>(self->memory, n))
LAUNCH(l2_copy, SLICES(l2_bytes(self) / 2, WRITE_L2);
       copy_slices<WRITE_L2><<<n * L2_ROUNDS, BLOCK, 0, on>>>(self->memory, part(self, 1, n, WRITE_L2), n))
LAUNCH(l1_read, read_l1<<<self->sms * NEAR_BLOCKS_PER_SM, BLOCK, 0, on>>>(self->memory, self->memory))
LAUNCH(shared_read, read_shared<<<self->sms * NEAR_BLOCKS_PER_SM, BLOCK, 0, on>>>(self->memory, self->memory))

int rl_ceilings_fill(const rl_ceilings_gpu *self, rl_error *err) {
  fill_random<<<self->sms * 8, BLOCK, 0, (cudaStream_t)self->instance.base.device->stream>>>(
      (uint64_t *)self->memory, self->bytes / sizeof(uint64_t), rl_hash64((uint64_t)self->instance.params.seed));
  return rl_launch_ok("filling the memory", err);
}

static double moved(size_t bytes, uint32_t parts, int accesses) {
  return (double)slices(bytes / parts, accesses) * parts * BLOCK * accesses * sizeof(uint4);
}

void rl_ceilings_list_memory(rl_ceilings_gpu *self) {
  rl_ceilings_instance *to = &self->instance;
  const double near = (double)self->sms * NEAR_BLOCKS_PER_SM * NEAR_ROUNDS * NEAR_UNROLL * BLOCK * sizeof(uint4);
  rl_ceilings_add(to, RL_CEILING_dram_read, moved(self->bytes, 1, READ), dram_read, self);
  rl_ceilings_add(to, RL_CEILING_dram_write, moved(self->bytes, 1, WRITE), dram_write, self);
  rl_ceilings_add(to, RL_CEILING_dram_copy, moved(self->bytes, 2, WRITE), dram_copy, self);
  rl_ceilings_add(to, RL_CEILING_dram_triad, moved(self->bytes, 3, WRITE), dram_triad, self);
  rl_ceilings_add(to, RL_CEILING_l2_read, moved(l2_bytes(self), 1, READ_L2) * L2_ROUNDS, l2_read, self);
  rl_ceilings_add(to, RL_CEILING_l2_write, moved(l2_bytes(self), 1, WRITE_L2) * L2_ROUNDS, l2_write, self);
  rl_ceilings_add(to, RL_CEILING_l2_copy, moved(l2_bytes(self), 2, WRITE_L2) * L2_ROUNDS, l2_copy, self);
  rl_ceilings_add(to, RL_CEILING_l1_read, near, l1_read, self);
  rl_ceilings_add(to, RL_CEILING_shared_read, near, shared_read, self);
}
