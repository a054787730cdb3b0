/* Kernels that find something out about each row of a table and make the row's output of that: softmax and the norms.
 *
 * A family is a struct OP with
 *   template <class M> struct map     what has to be known of a row; at(x, w, b): the output, from an element
 *   map<M> held(keeps, have, columns, group)   from all of a row, of which this thread keeps the first `have` accesses in registers; group
 *                                     has most(x) and sum(x) of the row's threads. It may change what is kept
 *   kept<T>(map, x, w, b)             the output, from what held left of an element
 *   template <class M> struct state   the same from a stream: none(), add(x), merge(a, b), map(columns)
 *   enum { WEIGHTS }                  how many of w and b there are
 *
 *   held      a group of threads keeps a row in registers, so that it is read once: up to a warp, several rows to a block; then a block
 *   spanned   longer rows: a cluster of 8 blocks, each with its part of the row, which meet in distributed shared memory (from compute
 *             capability 9.0 on). Clusters stay, and load their next row while they work on one
 *   streamed  a block goes through its row twice: rows that nobody can hold, and the simple way of doing it */
#ifndef RL_KERNELS_KERNEL_ROWS_CUH
#define RL_KERNELS_KERNEL_ROWS_CUH

#include <cooperative_groups.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/rows.h"
#include "kernel/types.cuh"

namespace rows {

enum { WARP = 32, BLOCK = 256, BLOCK_MAX = 1024, CLUSTER = 8 };

/* --- groups of threads ---------------------------------------------------------------------------------------------------------- */

template <class M> __device__ static M of_both(M a, M b, bool most) { return !most ? a + b : a > b ? a : b; }

/* Of `lanes` neighbours, a power of two; every one gets it. */
template <class M> __device__ static M over_lanes(M x, uint32_t lanes, bool most) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) x = of_both(x, __shfl_xor_sync(~0u, x, mask), most);
  return x;
}

/* Shared memory is used in turns: whoever is in the turn after next has seen everyone leave this one. */
template <class M> struct lanes_or_block { /* size: threads; up to a warp, or all of the block */
  M (*memory)[WARP];
  uint32_t size, turn;
  __device__ M over_all(M x, bool most) {
    if (size <= WARP) return over_lanes(x, size, most);
    const uint32_t warps = size / WARP;
    M *of_warp = memory[turn ^= 1];
    x = over_lanes(x, WARP, most);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = x;
    __syncthreads();
    return over_lanes(of_warp[threadIdx.x & (warps - 1)], warps, most);
  }
  __device__ M most(M x) { return over_all(x, true); }
  __device__ M sum(M x) { return over_all(x, false); }
};

#if __CUDA_ARCH__ >= 900
template <class M> struct whole_cluster {
  lanes_or_block<M> block;
  M *of_block; /* two */
  __device__ M over_all(M x, bool most) {
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const uint32_t blocks = cluster.num_blocks();
    x = block.over_all(x, most);
    if (threadIdx.x == 0) of_block[block.turn] = x;
    cluster.sync();
    return over_lanes(*cluster.map_shared_rank(of_block + block.turn, threadIdx.x & (blocks - 1)), blocks, most);
  }
  __device__ M most(M x) { return over_all(x, true); }
  __device__ M sum(M x) { return over_all(x, false); }
};
#endif

/* Of states; every thread of the block gets it. */
template <class S> __device__ static S merge_lanes(S state, uint32_t lanes) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) {
    S other;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / sizeof(int)); i++) ((int *)&other)[i] = __shfl_xor_sync(~0u, ((const int *)&state)[i], mask);
    state = S::merge(state, other);
  }
  return state;
}

template <class S> __device__ static S merge_block(S state) {
  __shared__ alignas(16) char memory[WARP * sizeof(S)]; /* states have constructors, which shared memory must not have */
  S *of_warp = (S *)memory;
  const uint32_t warps = blockDim.x / WARP;
  state = merge_lanes(state, WARP);
  if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = state;
  __syncthreads();
  return merge_lanes(of_warp[threadIdx.x & (warps - 1)], warps);
}

/* --- kernels ------------------------------------------------------------------------------------------------------------------ */

/* WIDTH elements, as one access moves them. */
template <class T, int WIDTH> struct alignas(WIDTH * sizeof(T)) few { T at[WIDTH]; };

template <class OP, bool KEPT, class T, int WIDTH, class MAP>
__device__ static few<T, WIDTH> mapped(const MAP &map, const few<T, WIDTH> &x, const T *w, const T *b, uint32_t at) {
  typedef typename arithmetic<T>::type M;
  M xs[WIDTH], ws[WIDTH] = {}, bs[WIDTH] = {};
  few<T, WIDTH> y;
  widen_all<WIDTH>(x.at, xs);
  if (OP::WEIGHTS > 0) widen_all<WIDTH>(((const few<T, WIDTH> *)w)[at].at, ws);
  if (OP::WEIGHTS > 1) widen_all<WIDTH>(((const few<T, WIDTH> *)b)[at].at, bs);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) xs[k] = KEPT ? OP::template kept<T>(map, xs[k], ws[k], bs[k]) : map.at(xs[k], ws[k], bs[k]);
  narrow_all<WIDTH>(xs, y.at);
  return y;
}

/* Of `count` accesses of a row a thread has number `first` and every step-th from there on. */
__device__ static inline uint32_t accesses_of(uint32_t first, uint32_t count, uint32_t step) {
  return first < count ? (count - first + step - 1) / step : 0;
}

__device__ static inline uint32_t log_of(uint32_t power) { return 31 - __clz(power); }

template <class T, int WIDTH, int HOLDS>
__device__ static void load(few<T, WIDTH> (&keeps)[HOLDS], const T *row, uint32_t first, uint32_t step, uint32_t have) {
  const few<T, WIDTH> *from = (const few<T, WIDTH> *)row + first;
#pragma unroll
  for (uint32_t i = 0; i < HOLDS; i++)
    if (i < have) keeps[i] = from[i * step];
}

/* What BODY says for each access that a thread keeps, whose elements are M x[WIDTH]. */
#define RL_FOR_KEPT(BODY)                                \
  _Pragma("unroll") for (int i = 0; i < HOLDS; i++)      \
    if (i < have) {                                      \
      M x[WIDTH];                                        \
      widen_all<WIDTH>(keeps[i].at, x);                  \
      _Pragma("unroll") for (int k = 0; k < WIDTH; k++) BODY; \
    }

template <class OP, class MAP, class T, int WIDTH, int HOLDS>
__device__ static void finish(const MAP &map, const few<T, WIDTH> (&keeps)[HOLDS], T *row, const T *w, const T *b, uint32_t first, uint32_t step,
                              uint32_t have) {
  few<T, WIDTH> *to = (few<T, WIDTH> *)row;
#pragma unroll
  for (uint32_t i = 0; i < HOLDS; i++)
    if (i < have) to[first + i * step] = mapped<OP, true>(map, keeps[i], w, b, first + i * step);
}

/* group: threads of a block that share a row; a power of two up to a warp, or the whole block. */
template <class OP, class T, int WIDTH, int HOLDS>
__global__ void __launch_bounds__(BLOCK_MAX) held(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b,
                                                  T *__restrict__ y, uint32_t count, uint32_t columns, uint32_t group) {
  typedef typename arithmetic<T>::type M;
  __shared__ M memory[2][WARP];
  const uint32_t log = log_of(group), row = blockIdx.x * (blockDim.x >> log) + (threadIdx.x >> log), first = threadIdx.x & (group - 1);
  const uint32_t have = row < count ? accesses_of(first, columns / WIDTH, group) : 0; /* the last block has threads too many */
  few<T, WIDTH> keeps[HOLDS];
  load(keeps, x + (size_t)row * columns, first, group, have);
  lanes_or_block<M> together = {memory, group, 0};
  finish<OP>(OP::template held<M>(keeps, have, columns, together), keeps, y + (size_t)row * columns, w, b, first, group, have);
}

template <class OP, class T, int WIDTH, int HOLDS>
__global__ void __launch_bounds__(BLOCK_MAX) spanned(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b,
                                                     T *__restrict__ y, uint32_t count, uint32_t columns) {
#if __CUDA_ARCH__ >= 900
  typedef typename arithmetic<T>::type M;
  __shared__ M of_warps[2][WARP], of_block[2];
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const uint32_t blocks = cluster.num_blocks(), clusters = gridDim.x / blocks, step = blocks * blockDim.x;
  const uint32_t first = cluster.block_rank() * blockDim.x + threadIdx.x, have = accesses_of(first, columns / WIDTH, step);
  few<T, WIDTH> keeps[HOLDS], next[HOLDS];
  whole_cluster<M> together = {{of_warps, blockDim.x, 0}, of_block};
  load(keeps, x + (size_t)(blockIdx.x / blocks) * columns, first, step, have);
  for (uint32_t row = blockIdx.x / blocks; row < count; row += clusters) {
    load(next, x + (size_t)(row + clusters) * columns, first, step, row + clusters < count ? have : 0);
    finish<OP>(OP::template held<M>(keeps, have, columns, together), keeps, y + (size_t)row * columns, w, b, first, step, have);
#pragma unroll
    for (int i = 0; i < HOLDS; i++) keeps[i] = next[i];
  }
  cluster.sync(); /* no block may end while others read from it */
#endif
}

/* The second time a row may come from L2. */
template <class OP, class T, int WIDTH>
__global__ void __launch_bounds__(BLOCK_MAX) streamed(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b,
                                                      T *__restrict__ y, uint32_t columns) {
  typedef typename arithmetic<T>::type M;
  typedef few<T, WIDTH> F;
  const F *from = (const F *)(x + (size_t)blockIdx.x * columns);
  F *to = (F *)(y + (size_t)blockIdx.x * columns);
  const uint32_t accesses = columns / WIDTH;
  typename OP::template state<M> state = OP::template state<M>::none();
  for (uint32_t i = threadIdx.x; i < accesses; i += blockDim.x) {
    const F some = from[i];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) state.add(widen(some.at[k]));
  }
  const auto map = merge_block(state).map(columns);
  for (uint32_t i = threadIdx.x; i < accesses; i += blockDim.x) to[i] = mapped<OP, false>(map, from[i], w, b, i);
}

/* --- launching ------------------------------------------------------------------------------------------------------------------ */

static inline uint32_t power_of_two(uint32_t least) { /* that is at least so much */
  uint32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

static inline uint32_t over(uint32_t count, uint32_t by) { return (count + by - 1) / by; }

static inline bool has_clusters(int device) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

/* What every launch takes. */
template <class T> struct work {
  const T *x, *w, *b;
  T *y;
  uint32_t rows, columns;
  cudaStream_t stream;
};

template <class OP, class T, int WIDTH, int HOLDS> static int launch_held(const work<T> &of, uint32_t group, rl_error *err) {
  const uint32_t block = group > WARP ? group : BLOCK;
  held<OP, T, WIDTH, HOLDS><<<over(of.rows, block / group), block, 0, of.stream>>>(of.x, of.w, of.b, of.y, of.rows, of.columns, group);
  return rl_launch_ok("launching", err);
}

template <class OP, class T, int WIDTH, int HOLDS> static int launch_spanned(const work<T> &of, uint32_t threads, rl_error *err) {
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  int fit = 0;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = CLUSTER;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.blockDim = dim3(threads / CLUSTER);
  config.gridDim = dim3(CLUSTER);
  config.stream = of.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (rl_cuda_ok(cudaOccupancyMaxActiveClusters(&fit, spanned<OP, T, WIDTH, HOLDS>, &config), "counting clusters", err)) return -1;
  config.gridDim.x *= (uint32_t)fit < of.rows ? (uint32_t)fit : of.rows;
  return rl_cuda_ok(cudaLaunchKernelEx(&config, spanned<OP, T, WIDTH, HOLDS>, of.x, of.w, of.b, of.y, of.rows, of.columns), "launching", err);
}

template <class OP, class T, int WIDTH> static int launch_streamed(const work<T> &of, uint32_t block, rl_error *err) {
  streamed<OP, T, WIDTH><<<of.rows, block, 0, of.stream>>>(of.x, of.w, of.b, of.y, of.columns);
  return rl_launch_ok("launching", err);
}

/* A thread holds one access of a short row and up to HOLDS of others. A block of 512 leaves room for a second one on the same SM, whose
 * loads go on while this one waits; so rows are spread over clusters before blocks grow. */
template <class OP, class T, int WIDTH, int HOLDS>
static int launch_vector(const work<T> &of, bool clusters, rl_error *err) {
  const uint32_t accesses = of.columns / WIDTH, threads = power_of_two(over(accesses, HOLDS));
  if (accesses <= WARP) return launch_held<OP, T, WIDTH, 1>(of, power_of_two(accesses), err);
  if (threads <= (clusters ? BLOCK_MAX / 2 : BLOCK_MAX)) return launch_held<OP, T, WIDTH, HOLDS>(of, threads > WARP ? threads : WARP, err);
  if (clusters && threads <= CLUSTER * BLOCK_MAX) return launch_spanned<OP, T, WIDTH, HOLDS>(of, threads, err);
  return launch_streamed<OP, T, WIDTH>(of, BLOCK_MAX, err);
}

/* Rows whose length is no multiple of 16 bytes begin anywhere: they are read element by element, more of them by each thread. */
template <class OP, class T>
static int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { SCALAR, PACK = 16 / sizeof(T), HOLDS = 4, HOLDS_SINGLE = 16 };
  const work<T> of = {(const T *)instance->in[0],
                      (const T *)instance->in[1],
                      (const T *)instance->in[2],
                      (T *)instance->out,
                      (uint32_t)instance->shape.size[RL_ROWS],
                      (uint32_t)instance->shape.size[RL_COLUMNS],
                      stream};
  const bool clusters = has_clusters(instance->base.device->index);
  if (instance->variant == SCALAR) return launch_streamed<OP, T, 1>(of, BLOCK, err);
  if (of.columns % PACK == 0) return launch_vector<OP, T, PACK, HOLDS>(of, clusters, err);
  return launch_vector<OP, T, 1, HOLDS_SINGLE>(of, clusters, err);
}

template <class OP>
static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<OP, T>(instance, stream, err)))
}

} // namespace rows

#endif
