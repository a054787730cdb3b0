/* Kernels that measure the bandwidth of each level of memory, with accesses of 16 bytes (uint4). Arrays are divided into slices.
 * A block moves one slice and exits, which keeps more of the memory busy than persistent blocks do. For DRAM, one block moves
 * each slice. For L2, the arrays are small, and L2_BLOCKS_PER_SLICE blocks move each slice. L1 and shared memory belong to an SM,
 * so each block reads a separate slice repeatedly.
 *
 * The number of accesses per thread changes the rate by up to 4 % on an H200. Kernels that only read are fastest with several
 * accesses, which hide latency; kernels that write are fastest with one or two (docs/measurements/h200-ceilings.md). */
#include "ceilings/cuda.h"
#include "cuda_check.h"
#include "hash.h"

enum {
  BLOCK_THREADS = 256,
  /* Accesses of a thread to each array, in kernels that only read and in kernels that write. */
  DRAM_READ_ACCESSES = 4,
  L2_READ_ACCESSES = 8,
  DRAM_WRITE_ACCESSES = 1,
  L2_WRITE_ACCESSES = 2,
  L2_BLOCKS_PER_SLICE = 64,
  /* L1 and shared memory. */
  ON_CHIP_READS = 4, /* accesses of a thread in a round */
  ON_CHIP_ROUNDS = 1024,
  ON_CHIP_SLICE = 2 * BLOCK_THREADS * ON_CHIP_READS, /* uint4 of a slice: twice as many as a round reads, see read_repeatedly */
  ON_CHIP_BLOCKS_PER_SM = 3,                         /* 96 KiB of slices, within every supported SM's capacity */
};

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(BLOCK_THREADS) fill_random(uint64_t *words, size_t count, uint64_t key) {
  for (size_t i = (size_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < count; i += (size_t)gridDim.x * BLOCK_THREADS)
    words[i] = rl_hash64(key + i);
}

__device__ static inline void accumulate(uint4 *sum, uint4 value) {
  sum->x += value.x, sum->y += value.y, sum->z += value.z, sum->w += value.w;
}

/* Stores the sum if it equals a constant. With random data that practically never happens, but the compiler does not know the
 * data, so it must keep the loads. */
__device__ static inline void keep_result(uint4 sum, uint4 *sink) {
  if (sum.x == 0x9e3779b9 && sum.y == 0x85ebca6b && sum.z == 0xc2b2ae35 && sum.w == 0x27d4eb2f) *sink = sum;
}

/* Returns the index of the thread's first uint4 in an array. */
template <int ACCESSES> __device__ static inline size_t first_index(uint32_t slices) {
  return (size_t)(blockIdx.x % slices) * BLOCK_THREADS * ACCESSES + threadIdx.x;
}

template <int ACCESSES> static __global__ void __launch_bounds__(BLOCK_THREADS)
    read_slices(const uint4 *from, uint32_t slices, uint4 *sink) {
  uint4 sum = {};
  from += first_index<ACCESSES>(slices);
#pragma unroll
  for (int i = 0; i < ACCESSES; i++) accumulate(&sum, __ldcg(&from[i * BLOCK_THREADS]));
  keep_result(sum, sink);
}

template <int ACCESSES> static __global__ void __launch_bounds__(BLOCK_THREADS) write_slices(uint4 *to, uint32_t slices) {
  uint64_t random = rl_hash64((uint64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x);
  to += first_index<ACCESSES>(slices);
#pragma unroll
  for (int i = 0; i < ACCESSES; i++, random *= 0x9e3779b97f4a7c15u)
    __stcg(&to[i * BLOCK_THREADS],
           uint4{(uint32_t)random, (uint32_t)(random >> 32), (uint32_t)(random >> 16), (uint32_t)(random >> 48)});
}

template <int ACCESSES> static __global__ void __launch_bounds__(BLOCK_THREADS)
    copy_slices(const uint4 *from, uint4 *to, uint32_t slices) {
  uint4 values[ACCESSES];
  from += first_index<ACCESSES>(slices), to += first_index<ACCESSES>(slices);
#pragma unroll
  for (int i = 0; i < ACCESSES; i++) values[i] = __ldcg(&from[i * BLOCK_THREADS]);
#pragma unroll
  for (int i = 0; i < ACCESSES; i++) __stcg(&to[i * BLOCK_THREADS], values[i]);
}

__device__ static inline uint32_t triad_word(uint32_t b, uint32_t c) {
  return __float_as_uint(fmaf(3, __uint_as_float(c), __uint_as_float(b)));
}

template <int ACCESSES> static __global__ void __launch_bounds__(BLOCK_THREADS)
    triad_slices(uint4 *a, const uint4 *b, const uint4 *c, uint32_t slices) {
  uint4 b_values[ACCESSES], c_values[ACCESSES];
  a += first_index<ACCESSES>(slices), b += first_index<ACCESSES>(slices), c += first_index<ACCESSES>(slices);
#pragma unroll
  for (int i = 0; i < ACCESSES; i++) b_values[i] = __ldcg(&b[i * BLOCK_THREADS]), c_values[i] = __ldcg(&c[i * BLOCK_THREADS]);
#pragma unroll
  for (int i = 0; i < ACCESSES; i++)
    __stcg(&a[i * BLOCK_THREADS], uint4{triad_word(b_values[i].x, c_values[i].x), triad_word(b_values[i].y, c_values[i].y),
                                        triad_word(b_values[i].z, c_values[i].z), triad_word(b_values[i].w, c_values[i].w)});
}

/* Reads half of a slice ON_CHIP_ROUNDS times and returns the sum. Each round starts 32 elements later, so that the compiler
 * cannot reuse the loads of the previous round. load(address) returns the element. */
template <class Load> __device__ static inline uint4 read_repeatedly(const uint4 *slice, Load load) {
  uint4 sum = {};
#pragma unroll 1
  for (uint32_t round = 0; round < ON_CHIP_ROUNDS; round++) {
    const uint4 *from = slice + threadIdx.x + round * 32 % (ON_CHIP_SLICE / 2);
#pragma unroll
    for (int i = 0; i < ON_CHIP_READS; i++) accumulate(&sum, load(&from[i * BLOCK_THREADS]));
  }
  return sum;
}

static __global__ void __launch_bounds__(BLOCK_THREADS) read_l1(const uint4 *from, uint4 *sink) {
  keep_result(read_repeatedly(from + (size_t)blockIdx.x * ON_CHIP_SLICE, [](const uint4 *address) { return __ldca(address); }),
              sink);
}

static __global__ void __launch_bounds__(BLOCK_THREADS) read_shared(const uint4 *from, uint4 *sink) {
  __shared__ uint4 slice[ON_CHIP_SLICE];
  for (int i = threadIdx.x; i < ON_CHIP_SLICE; i += BLOCK_THREADS) slice[i] = from[i];
  __syncthreads();
  keep_result(read_repeatedly(slice, [](const uint4 *address) { return *address; }), sink);
}

/* --- launches ---------------------------------------------------------------------------------------------------------- */

/* Returns the total size of the arrays in L2: a quarter of its capacity, so that no other data evicts them. */
static size_t l2_working_set_bytes(const rl_cuda_ceilings *self) { return self->l2_bytes / 4; }

/* Returns the number of slices in `bytes` bytes. accesses: number of accesses of a thread. */
static uint32_t slice_count(size_t bytes, int accesses) { return (uint32_t)(bytes / sizeof(uint4) / BLOCK_THREADS / accesses); }

/* self->memory holds arrays of `slices` slices each, one after another. Returns the array `index`, from 0. */
static uint4 *nth_array(const rl_cuda_ceilings *self, uint32_t index, uint32_t slices, int accesses) {
  return self->memory + (size_t)index * slices * BLOCK_THREADS * accesses;
}

/* Defines the function NAME, which implements rl_launch.enqueue. Its body is the macro's other arguments, which can use `self`
 * and `stream`. */
#define ENQUEUE(NAME, ...)                                             \
  static int NAME(void *arg, rl_stream opaque_stream, rl_error *err) { \
    const rl_cuda_ceilings *self = (const rl_cuda_ceilings *)arg;      \
    const cudaStream_t stream = (cudaStream_t)opaque_stream;           \
    __VA_ARGS__;                                                       \
    return rl_cuda_check_launch("launching", err);                     \
  }
ENQUEUE(dram_read, const uint32_t slices = slice_count(self->memory_bytes, DRAM_READ_ACCESSES);
        read_slices<DRAM_READ_ACCESSES><<<slices, BLOCK_THREADS, 0, stream>>>(self->memory, slices, self->memory))
ENQUEUE(dram_write, const uint32_t slices = slice_count(self->memory_bytes, DRAM_WRITE_ACCESSES);
        write_slices<DRAM_WRITE_ACCESSES><<<slices, BLOCK_THREADS, 0, stream>>>(self->memory, slices))
ENQUEUE(dram_copy, const uint32_t slices = slice_count(self->memory_bytes / 2, DRAM_WRITE_ACCESSES);
        copy_slices<DRAM_WRITE_ACCESSES>
        <<<slices, BLOCK_THREADS, 0, stream>>>(self->memory, nth_array(self, 1, slices, DRAM_WRITE_ACCESSES), slices))
ENQUEUE(dram_triad, const uint32_t slices = slice_count(self->memory_bytes / 3, DRAM_WRITE_ACCESSES);
        triad_slices<DRAM_WRITE_ACCESSES>
        <<<slices, BLOCK_THREADS, 0, stream>>>(self->memory, nth_array(self, 1, slices, DRAM_WRITE_ACCESSES),
                                               nth_array(self, 2, slices, DRAM_WRITE_ACCESSES), slices))
ENQUEUE(l2_read, const uint32_t slices = slice_count(l2_working_set_bytes(self), L2_READ_ACCESSES); read_slices<L2_READ_ACCESSES>
        <<<slices * L2_BLOCKS_PER_SLICE, BLOCK_THREADS, 0, stream>>>(self->memory, slices, self->memory))
ENQUEUE(l2_write, const uint32_t slices = slice_count(l2_working_set_bytes(self), L2_WRITE_ACCESSES);
        write_slices<L2_WRITE_ACCESSES><<<slices * L2_BLOCKS_PER_SLICE, BLOCK_THREADS, 0, stream>>>(self->memory, slices))
ENQUEUE(l2_copy, const uint32_t slices = slice_count(l2_working_set_bytes(self) / 2, L2_WRITE_ACCESSES);
        copy_slices<L2_WRITE_ACCESSES>
        <<<slices * L2_BLOCKS_PER_SLICE, BLOCK_THREADS, 0, stream>>>(self->memory, nth_array(self, 1, slices, L2_WRITE_ACCESSES),
                                                                     slices))
ENQUEUE(l1_read, read_l1<<<self->sm_count * ON_CHIP_BLOCKS_PER_SM, BLOCK_THREADS, 0, stream>>>(self->memory, self->memory))
ENQUEUE(shared_read,
        read_shared<<<self->sm_count * ON_CHIP_BLOCKS_PER_SM, BLOCK_THREADS, 0, stream>>>(self->memory, self->memory))

int rl_ceilings_fill(const rl_cuda_ceilings *self, rl_error *err) {
  fill_random<<<self->sm_count * 8, BLOCK_THREADS, 0, (cudaStream_t)self->instance.base.device->stream>>>(
      (uint64_t *)self->memory, self->memory_bytes / sizeof(uint64_t), rl_hash64((uint64_t)self->instance.params.seed));
  return rl_cuda_check_launch("filling the memory", err);
}

/* Returns how many bytes a kernel reads and writes if it divides `bytes` bytes into `arrays` equal arrays. */
static double bytes_moved(size_t bytes, uint32_t arrays, int accesses) {
  return (double)slice_count(bytes / arrays, accesses) * arrays * BLOCK_THREADS * accesses * sizeof(uint4);
}

void rl_ceilings_add_memory(rl_cuda_ceilings *self) {
  rl_ceilings_instance *instance = &self->instance;
  const double on_chip_bytes =
      (double)self->sm_count * ON_CHIP_BLOCKS_PER_SM * ON_CHIP_ROUNDS * ON_CHIP_READS * BLOCK_THREADS * sizeof(uint4);
  const size_t l2 = l2_working_set_bytes(self);
  rl_ceilings_add(instance, RL_CEILING_dram_read, bytes_moved(self->memory_bytes, 1, DRAM_READ_ACCESSES), dram_read, self);
  rl_ceilings_add(instance, RL_CEILING_dram_write, bytes_moved(self->memory_bytes, 1, DRAM_WRITE_ACCESSES), dram_write, self);
  rl_ceilings_add(instance, RL_CEILING_dram_copy, bytes_moved(self->memory_bytes, 2, DRAM_WRITE_ACCESSES), dram_copy, self);
  rl_ceilings_add(instance, RL_CEILING_dram_triad, bytes_moved(self->memory_bytes, 3, DRAM_WRITE_ACCESSES), dram_triad, self);
  rl_ceilings_add(instance, RL_CEILING_l2_read, bytes_moved(l2, 1, L2_READ_ACCESSES) * L2_BLOCKS_PER_SLICE, l2_read, self);
  rl_ceilings_add(instance, RL_CEILING_l2_write, bytes_moved(l2, 1, L2_WRITE_ACCESSES) * L2_BLOCKS_PER_SLICE, l2_write, self);
  rl_ceilings_add(instance, RL_CEILING_l2_copy, bytes_moved(l2, 2, L2_WRITE_ACCESSES) * L2_BLOCKS_PER_SLICE, l2_copy, self);
  rl_ceilings_add(instance, RL_CEILING_l1_read, on_chip_bytes, l1_read, self);
  rl_ceilings_add(instance, RL_CEILING_shared_read, on_chip_bytes, shared_read, self);
}
