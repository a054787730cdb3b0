/* reduction on CUDA. Sums are taken in float, of doubles in double, always in the same order.
 *   scalar  a block for each row, element by element
 *   vector  16 bytes an access, several under way. Short rows: a group of lanes each. Long ones: blocks share a row where there
 *           are too few rows to keep the device busy; each leaves its part in memory, and the last one that is done with a row
 *           adds the parts up. */
#include <cstdlib>
#include <errno.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/rows.h"
#include "kernel/types.cuh"

namespace {

enum { SCALAR = 0 }; /* index of the variant */
enum { WARP = 32, BLOCK = 256, UNDER_WAY = 4, BLOCKS_PER_SM = 8 };
/* Bytes of a row that lanes add up: little, or more where there are MANY rows. */
enum { SHORT = 512, SHORT_OF_MANY = 16 << 10, MANY = 4096 };

/* What launches need: parts of rows that several blocks share, and how many of those are done. */
typedef struct workspace {
  rl_device *device;
  uint32_t share; /* blocks of a row */
  double *parts;  /* share for each row, as floats where the arithmetic is in float */
  uint32_t *done; /* for each row; zero between launches */
} workspace;

template <class M> __device__ M over_lanes(M sum, uint32_t lanes) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  return sum;
}

/* Of the block; right in its first warp. */
template <class M> __device__ M over_block(M sum) {
  __shared__ M of_warp[WARP];
  const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  sum = over_lanes(sum, WARP);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  return over_lanes(lane < BLOCK / WARP ? of_warp[lane] : (M)0, WARP);
}

template <class M, class T> __device__ M sum_of(const pack<T> &x) {
  enum { COUNT = 16 / sizeof(T) };
  M values[COUNT];
  widen_all<COUNT>(x.at, values);
  M sum = values[0];
#pragma unroll
  for (int k = 1; k < COUNT; k++) sum += values[k];
  return sum;
}

/* Elements first, first + step, ... of a row; several accesses are under way at once. */
template <class M, class T> __device__ M sum_packs(const T *row, uint32_t first, uint32_t count, uint32_t step) {
  const pack<T> *packs = (const pack<T> *)row;
  M sums[UNDER_WAY] = {};
  uint32_t i = first;
  for (; i + (UNDER_WAY - 1) * step < count; i += UNDER_WAY * step) {
    pack<T> x[UNDER_WAY];
#pragma unroll
    for (int k = 0; k < UNDER_WAY; k++) x[k] = packs[i + k * step];
#pragma unroll
    for (int k = 0; k < UNDER_WAY; k++) sums[k] += sum_of<M>(x[k]);
  }
  for (; i < count; i += step) sums[0] += sum_of<M>(packs[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class M, class T> __device__ M sum_elements(const T *row, uint32_t first, uint32_t count, uint32_t step) {
  M sum = 0;
  for (uint32_t i = first; i < count; i += step) sum += widen(row[i]);
  return sum;
}

template <class T> __global__ void __launch_bounds__(BLOCK) scalar(const T *__restrict__ x, T *__restrict__ y, uint32_t columns) {
  typedef typename arithmetic<T>::type M;
  const M sum = over_block(sum_elements<M>(x + (size_t)blockIdx.x * columns, threadIdx.x, columns, BLOCK));
  if (threadIdx.x == 0) narrow(sum, &y[blockIdx.x]);
}

/* group: lanes of a row, a power of two. */
template <class T, bool PACKED> __global__ void __launch_bounds__(BLOCK)
    grouped(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns, uint32_t group) {
  typedef typename arithmetic<T>::type M;
  const uint32_t log = 31 - __clz(group), row = blockIdx.x * (BLOCK >> log) + (threadIdx.x >> log),
                 lane = threadIdx.x & (group - 1);
  const T *from = x + (size_t)(row < rows ? row : 0) * columns;
  M sum = PACKED ? sum_packs<M>(from, lane, columns / (uint32_t)(16 / sizeof(T)), group)
                 : sum_elements<M>(from, lane, columns, group);
  sum = over_lanes(sum, group);
  if (row < rows && lane == 0) narrow(sum, &y[row]);
}

/* Block b of a row's share takes every share-th run of BLOCK accesses. */
template <class T, bool PACKED> __global__ void __launch_bounds__(BLOCK)
    shared_out(const T *__restrict__ x, T *__restrict__ y, uint32_t columns, uint32_t share, void *memory, uint32_t *done) {
  typedef typename arithmetic<T>::type M;
  const uint32_t row = blockIdx.x / share, block = blockIdx.x % share, first = block * BLOCK + threadIdx.x, step = share * BLOCK;
  const T *from = x + (size_t)row * columns;
  M *parts = (M *)memory + (size_t)row * share;
  __shared__ bool last;
  M sum = PACKED ? sum_packs<M>(from, first, columns / (uint32_t)(16 / sizeof(T)), step)
                 : sum_elements<M>(from, first, columns, step);
  sum = over_block(sum);
  if (share > 1) {
    if (threadIdx.x == 0) {
      parts[block] = sum;
      __threadfence();
      last = atomicAdd(&done[row], 1) == share - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = over_block(sum_elements<M>((const volatile M *)parts, threadIdx.x, share, BLOCK));
    if (threadIdx.x == 0) done[row] = 0;
  }
  if (threadIdx.x == 0) narrow(sum, &y[row]);
}

uint32_t power_of_two(uint32_t least) {
  uint32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

template <class T, bool PACKED> int launch_vector(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  const workspace *own = (const workspace *)instance->engine;
  const T *x = (const T *)instance->in[0];
  T *y = (T *)instance->out;
  const uint32_t rows = (uint32_t)instance->shape.size[RL_ROWS], columns = (uint32_t)instance->shape.size[RL_COLUMNS];
  const uint32_t accesses = PACKED ? columns * (uint32_t)sizeof(T) / 16 : columns;
  if (own->share == 1 && columns * sizeof(T) <= (rows < MANY ? SHORT : SHORT_OF_MANY)) {
    const uint32_t group = power_of_two(accesses < WARP ? accesses : WARP), at_once = BLOCK / group;
    grouped<T, PACKED><<<(rows + at_once - 1) / at_once, BLOCK, 0, stream>>>(x, y, rows, columns, group);
  } else {
    shared_out<T, PACKED><<<rows * own->share, BLOCK, 0, stream>>>(x, y, columns, own->share, own->parts, own->done);
  }
  return rl_launch_ok("launching", err);
}

template <class T> int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  const uint32_t rows = (uint32_t)instance->shape.size[RL_ROWS], columns = (uint32_t)instance->shape.size[RL_COLUMNS];
  if (instance->variant != SCALAR)
    return columns * sizeof(T) % 16 == 0 ? launch_vector<T, true>(instance, stream, err)
                                         : launch_vector<T, false>(instance, stream, err);
  scalar<T><<<rows, BLOCK, 0, stream>>>((const T *)instance->in[0], (T *)instance->out, columns);
  return rl_launch_ok("launching", err);
}

int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<T>(instance, stream, err)))
}

/* So many blocks that the device is full, but none without work for every access it can have under way. */
int choose_share(const rl_kernel_instance *instance, uint32_t *share, rl_error *err) {
  int sms = 0;
  if (rl_cuda_ok(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, instance->base.device->index), "asking for the SMs",
                 err))
    return -1;
  const int64_t rows = instance->shape.size[RL_ROWS], columns = instance->shape.size[RL_COLUMNS];
  const int64_t bytes = columns * (int64_t)rl_dtype_size(instance->params.dtype);
  const int64_t wanted = (int64_t)sms * BLOCKS_PER_SM / rows, useful = bytes / (16 * BLOCK * UNDER_WAY);
  const int64_t chosen = wanted < useful ? wanted : useful;
  *share = chosen > 1 ? (uint32_t)chosen : 1;
  return 0;
}

int open_workspace(rl_kernel_instance *instance, rl_error *err) {
  rl_device *device = instance->base.device;
  workspace *own = (workspace *)calloc(1, sizeof *own);
  if (!own) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a workspace");
  instance->engine = own;
  own->device = device;
  if (choose_share(instance, &own->share, err)) return -1;
  if (own->share == 1) return 0;
  const size_t rows = (size_t)instance->shape.size[RL_ROWS];
  void *parts, *done;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, rows * own->share * sizeof *own->parts, &parts, err)) return -1;
  own->parts = (double *)parts;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, rows * sizeof *own->done, &done, err)) return -1;
  own->done = (uint32_t *)done;
  return device->ops->clear(device, done, rows * sizeof *own->done, err);
}

void close_workspace(void *engine) {
  workspace *own = (workspace *)engine;
  own->device->ops->release(own->device, own->parts);
  own->device->ops->release(own->device, own->done);
  free(own);
}

const rl_kernel_launcher launcher = {launch, NULL, open_workspace, close_workspace};

}  // namespace

RL_KERNEL_CUDA_ENGINE(reduction, "cuda", "hand-written", launcher)
