/* reduction on CUDA: the sum of each row of x [rows][columns] in y [rows], computed in float, or in double for fp64, always in
 * the same order.
 *   scalar  a block per row, element by element
 *   vector  vectors of 16 bytes, several loads in flight. A group of lanes of a warp sums a short row (kernel `grouped`). A long
 *           row (kernel `split_rows`) has one block or, if there are too few rows to fill the device, several blocks: each
 *           block stores its partial sum, and the last block of a row to finish adds the row's partial sums */
#include <cstdlib>
#include <errno.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/launch_sizes.h"
#include "kernel/rows.h"
#include "kernel/types.cuh"
#include "warp.cuh"

namespace {

enum { SCALAR = 0 }; /* index into the operator's variants (reduction.c) */
enum { BLOCK_THREADS = 256, LOADS_IN_FLIGHT = 4 /* loads that a thread has in flight */, BLOCKS_PER_SM = 8 };
/* A group of lanes reduces a row of at most SHORT_BYTES, or of SHORT_BYTES_IF_MANY_ROWS if there are at least MANY_ROWS rows. */
enum { SHORT_BYTES = 512, SHORT_BYTES_IF_MANY_ROWS = 16 << 10, MANY_ROWS = 4096 };

/* Device memory of an instance in addition to its inputs and output, for rows that several blocks share. */
typedef struct workspace {
  rl_device *device;
  uint32_t blocks_per_row;
  void *partial_sums;        /* [rows][blocks_per_row] of the arithmetic type: double or float */
  uint32_t *finished_blocks; /* [rows]: number of a row's blocks that have stored their partial sum; zero between launches */
} workspace;

/* Returns the sum over the block; valid in its first warp. */
template <class M> __device__ M block_sum(M sum) {
  __shared__ M warp_sums[WARP_SIZE];
  const uint32_t warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
  sum = warp_sum(sum);
  if (lane == 0) warp_sums[warp] = sum;
  __syncthreads();
  return warp_sum(lane < BLOCK_THREADS / WARP_SIZE ? warp_sums[lane] : (M)0);
}

template <class M, class T> __device__ M sum_vector(const vec<T> &x) {
  enum { COUNT = 16 / sizeof(T) };
  M values[COUNT];
  widen_all<COUNT>(x.elements, values);
  M sum = values[0];
#pragma unroll
  for (int k = 1; k < COUNT; k++) sum += values[k];
  return sum;
}

/* Returns the sum of vectors first, first + step, … of a row that has `count` vectors. */
template <class M, class T> __device__ M sum_vectors(const T *row, uint32_t first, uint32_t count, uint32_t step) {
  const vec<T> *vectors = (const vec<T> *)row;
  M sums[LOADS_IN_FLIGHT] = {};
  uint32_t i = first;
  for (; i + (LOADS_IN_FLIGHT - 1) * step < count; i += LOADS_IN_FLIGHT * step) {
    vec<T> x[LOADS_IN_FLIGHT];
#pragma unroll
    for (int k = 0; k < LOADS_IN_FLIGHT; k++) x[k] = vectors[i + k * step];
#pragma unroll
    for (int k = 0; k < LOADS_IN_FLIGHT; k++) sums[k] += sum_vector<M>(x[k]);
  }
  for (; i < count; i += step) sums[0] += sum_vector<M>(vectors[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class M, class T> __device__ M sum_elements(const T *row, uint32_t first, uint32_t count, uint32_t step) {
  M sum = 0;
  for (uint32_t i = first; i < count; i += step) sum += widen(row[i]);
  return sum;
}

template <class T> __global__ void __launch_bounds__(BLOCK_THREADS)
    scalar(const T *__restrict__ x, T *__restrict__ y, uint32_t columns) {
  typedef typename arithmetic<T>::type M;
  const M sum = block_sum(sum_elements<M>(x + (size_t)blockIdx.x * columns, threadIdx.x, columns, BLOCK_THREADS));
  if (threadIdx.x == 0) narrow(sum, &y[blockIdx.x]);
}

/* Kernel for short rows. lanes_per_row is a power of two, at most the size of a warp. */
template <class T, bool VECTORIZED> __global__ void __launch_bounds__(BLOCK_THREADS)
    grouped(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns, uint32_t lanes_per_row) {
  typedef typename arithmetic<T>::type M;
  const uint32_t log2_lanes = 31 - __clz(lanes_per_row),
                 row = blockIdx.x * (BLOCK_THREADS >> log2_lanes) + (threadIdx.x >> log2_lanes),
                 lane = threadIdx.x & (lanes_per_row - 1);
  const T *from = x + (size_t)(row < rows ? row : 0) * columns;
  M sum = VECTORIZED ? sum_vectors<M>(from, lane, columns / (uint32_t)(16 / sizeof(T)), lanes_per_row)
                     : sum_elements<M>(from, lane, columns, lanes_per_row);
  sum = warp_sum(sum, lanes_per_row);
  if (row < rows && lane == 0) narrow(sum, &y[row]);
}

/* The kernel for long rows: blocks_per_row blocks share a row, which is divided into chunks of BLOCK_THREADS vectors. Block b of
 * the row adds up chunks b, b + blocks_per_row, … __threadfence before and after the atomic counter orders the partial sums
 * before the reads of the last block (RAW). */
template <class T, bool VECTORIZED> __global__ void __launch_bounds__(BLOCK_THREADS)
    split_rows(const T *__restrict__ x, T *__restrict__ y, uint32_t columns, uint32_t blocks_per_row, void *partial_sums,
               uint32_t *finished_blocks) {
  typedef typename arithmetic<T>::type M;
  const uint32_t row = blockIdx.x / blocks_per_row, block = blockIdx.x % blocks_per_row,
                 first = block * BLOCK_THREADS + threadIdx.x, step = blocks_per_row * BLOCK_THREADS;
  const T *from = x + (size_t)row * columns;
  M *partial = (M *)partial_sums + (size_t)row * blocks_per_row;
  __shared__ bool is_last_block;
  M sum = VECTORIZED ? sum_vectors<M>(from, first, columns / (uint32_t)(16 / sizeof(T)), step)
                     : sum_elements<M>(from, first, columns, step);
  sum = block_sum(sum);
  if (blocks_per_row > 1) {
    if (threadIdx.x == 0) {
      partial[block] = sum;
      __threadfence();
      is_last_block = atomicAdd(&finished_blocks[row], 1) == blocks_per_row - 1;
    }
    __syncthreads();
    if (!is_last_block) return;
    __threadfence();
    sum = block_sum(sum_elements<M>((const volatile M *)partial, threadIdx.x, blocks_per_row, BLOCK_THREADS));
    if (threadIdx.x == 0) finished_blocks[row] = 0;
  }
  if (threadIdx.x == 0) narrow(sum, &y[row]);
}

template <class T, bool VECTORIZED>
int launch_grouped_or_split(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  const workspace *self = (const workspace *)instance->engine_state;
  const T *x = (const T *)instance->in[0];
  T *y = (T *)instance->out;
  const uint32_t rows = (uint32_t)instance->shape.size[RL_ROWS], columns = (uint32_t)instance->shape.size[RL_COLUMNS];
  const uint32_t vectors = VECTORIZED ? columns * (uint32_t)sizeof(T) / 16 : columns;
  if (self->blocks_per_row == 1 && columns * sizeof(T) <= (rows < MANY_ROWS ? SHORT_BYTES : SHORT_BYTES_IF_MANY_ROWS)) {
    const uint32_t lanes_per_row = bit_ceil(vectors < WARP_SIZE ? vectors : WARP_SIZE),
                   rows_per_block = BLOCK_THREADS / lanes_per_row;
    grouped<T, VECTORIZED>
        <<<(rows + rows_per_block - 1) / rows_per_block, BLOCK_THREADS, 0, stream>>>(x, y, rows, columns, lanes_per_row);
  } else {
    split_rows<T, VECTORIZED><<<rows * self->blocks_per_row, BLOCK_THREADS, 0, stream>>>(
        x, y, columns, self->blocks_per_row, self->partial_sums, self->finished_blocks);
  }
  return rl_cuda_check_launch("launching", err);
}

template <class T> int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  const uint32_t rows = (uint32_t)instance->shape.size[RL_ROWS], columns = (uint32_t)instance->shape.size[RL_COLUMNS];
  if (instance->variant != SCALAR)
    return columns * sizeof(T) % 16 == 0 ? launch_grouped_or_split<T, true>(instance, stream, err)
                                         : launch_grouped_or_split<T, false>(instance, stream, err);
  scalar<T><<<rows, BLOCK_THREADS, 0, stream>>>((const T *)instance->in[0], (T *)instance->out, columns);
  return rl_cuda_check_launch("launching", err);
}

int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<T>(instance, stream, err)))
}

/* Chooses as many blocks per row as fill the device, but only so many that each thread has at least LOADS_IN_FLIGHT vectors. */
int choose_blocks_per_row(const rl_kernel_instance *instance, uint32_t *blocks_per_row, rl_error *err) {
  int sm_count = 0;
  if (rl_cuda_check(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, instance->base.device->index),
                    "reading the number of multiprocessors", err) < 0)
    return -1;
  const int64_t rows = instance->shape.size[RL_ROWS], columns = instance->shape.size[RL_COLUMNS];
  const int64_t bytes = columns * (int64_t)rl_dtype_size(instance->params.dtype);
  const int64_t wanted = (int64_t)sm_count * BLOCKS_PER_SM / rows, useful = bytes / (16 * BLOCK_THREADS * LOADS_IN_FLIGHT);
  const int64_t chosen = wanted < useful ? wanted : useful;
  *blocks_per_row = chosen > 1 ? (uint32_t)chosen : 1;
  return 0;
}

int open_workspace(rl_kernel_instance *instance, rl_error *err) {
  rl_device *device = instance->base.device;
  workspace *self = (workspace *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a workspace");
  instance->engine_state = self;
  self->device = device;
  if (choose_blocks_per_row(instance, &self->blocks_per_row, err) < 0) return -1;
  if (self->blocks_per_row == 1) return 0;
  const size_t rows = (size_t)instance->shape.size[RL_ROWS];
  void *finished_blocks;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, rows * self->blocks_per_row * sizeof(double), &self->partial_sums, err) <
      0)
    return -1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, rows * sizeof *self->finished_blocks, &finished_blocks, err) < 0)
    return -1;
  self->finished_blocks = (uint32_t *)finished_blocks;
  return device->ops->fill(device, finished_blocks, 0, rows * sizeof *self->finished_blocks, err);
}

void close_workspace(void *engine_state) {
  workspace *self = (workspace *)engine_state;
  self->device->ops->release(self->device, self->partial_sums);
  self->device->ops->release(self->device, self->finished_blocks);
  free(self);
}

const rl_kernel_launcher launcher = {launch, open_workspace, close_workspace};

}  // namespace

RL_KERNEL_CUDA_ENGINE(reduction, "cuda", "hand-written", launcher)
