/* Kernels that boil each row of a table down to a state and make the row's output of that: softmax and the norms.
 *
 * A family is a struct OP with
 *   template <class M> struct state   none(): of no elements at all; of(keeps, have): of the first `have` accesses of a thread, whose
 *                                     elements it may change to something that the output is easier made of, where they are of type M
 *   merge(a, b)                       the state of both their elements
 *   template <class M, class T> struct map   of elements of type T; made from the states of a row and of a thread in it; at(x, w, b): the output, from an element as it
 *                                     was; kept(x, w, b): from what `of` left of it
 *   enum { WEIGHTS }                  how many of w and b there are
 *
 *   held      a group of threads keeps a row in registers, so that it is read once: up to a warp, several rows to a block; then a block
 *   spanned   longer rows: a cluster of 8 blocks, each with its part of the row, whose states meet in distributed shared memory (from
 *             compute capability 9.0 on). Clusters stay, and load their next row while they work on one; w and b stay in L1
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

/* --- states of threads into the state of a row ------------------------------------------------------------------------------ */

template <class S> __device__ static S from_lane(const S &state, int lane_mask) {
  S other;
  const int words = sizeof(S) / sizeof(int);
  const int *in = (const int *)&state;
  int *out = (int *)&other;
#pragma unroll
  for (int i = 0; i < words; i++) out[i] = __shfl_xor_sync(~0u, in[i], lane_mask);
  return other;
}

/* Of `lanes` neighbours, a power of two; every one gets it. */
template <class OP, class S> __device__ static S over_lanes(S state, uint32_t lanes) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) state = OP::merge(state, from_lane(state, mask));
  return state;
}

/* Of the block; every thread gets it. memory: a place for WARP states, which no one reads from before any more. */
template <class OP, class S> __device__ static S over_block(S state, S *memory) {
  const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
  state = over_lanes<OP>(state, WARP);
  if (warps == 1) return state;
  if (lane == 0) memory[warp] = state;
  __syncthreads();
  return over_lanes<OP>(memory[lane & (warps - 1)], warps);
}

/* --- kernels ------------------------------------------------------------------------------------------------------------------ */

/* WIDTH elements, as one access moves them. */
template <class T, int WIDTH> struct alignas(WIDTH * sizeof(T)) few { T at[WIDTH]; };

/* Shared memory for things with constructors, which it must not have. */
template <class S, int COUNT> struct alignas(16) raw {
  char bytes[COUNT * sizeof(S)];
  __device__ S *of() { return (S *)bytes; }
};

template <class OP, bool KEPT, class T, int WIDTH, class MAP>
__device__ static few<T, WIDTH> mapped(const MAP &map, const few<T, WIDTH> &x, const T *w, const T *b, uint32_t at) {
  typedef typename arithmetic<T>::type M;
  M xs[WIDTH], ws[WIDTH] = {}, bs[WIDTH] = {};
  few<T, WIDTH> y;
  widen_all<WIDTH>(x.at, xs);
  if (OP::WEIGHTS > 0) widen_all<WIDTH>(((const few<T, WIDTH> *)w)[at].at, ws);
  if (OP::WEIGHTS > 1) widen_all<WIDTH>(((const few<T, WIDTH> *)b)[at].at, bs);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) xs[k] = KEPT ? map.kept(xs[k], ws[k], bs[k]) : map.at(xs[k], ws[k], bs[k]);
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
  typedef typename OP::template state<typename arithmetic<T>::type> S;
  __shared__ raw<S, WARP> memory;
  const uint32_t log = log_of(group), row = blockIdx.x * (blockDim.x >> log) + (threadIdx.x >> log), first = threadIdx.x & (group - 1);
  const uint32_t have = row < count ? accesses_of(first, columns / WIDTH, group) : 0; /* the last block has threads too many */
  few<T, WIDTH> keeps[HOLDS];
  load(keeps, x + (size_t)row * columns, first, group, have);
  const S own = S::of(keeps, have);
  const S all = group <= WARP ? over_lanes<OP>(own, group) : over_block<OP>(own, memory.of());
  finish<OP>(typename OP::template map<typename arithmetic<T>::type, T>(all, own, columns), keeps, y + (size_t)row * columns, w, b, first, group, have);
}

/* Between two barriers each block of the cluster shows the state of its part, so a place for it may be used again two rows later. */
template <class OP, class T, int WIDTH, int HOLDS>
__global__ void __launch_bounds__(BLOCK_MAX) spanned(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b,
                                                     T *__restrict__ y, uint32_t count, uint32_t columns) {
#if __CUDA_ARCH__ >= 900
  typedef typename OP::template state<typename arithmetic<T>::type> S;
  __shared__ raw<S, WARP> of_warps[2];
  __shared__ raw<S, 1> of_block[2];
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const uint32_t blocks = cluster.num_blocks(), lane = threadIdx.x % WARP, step = blocks * blockDim.x;
  const uint32_t first = cluster.block_rank() * blockDim.x + threadIdx.x, have = accesses_of(first, columns / WIDTH, step);
  few<T, WIDTH> keeps[HOLDS], next[HOLDS];
  uint32_t row = blockIdx.x / blocks, turn = 0;
  load(keeps, x + (size_t)row * columns, first, step, have);
  for (; row < count; row += gridDim.x / blocks, turn ^= 1) {
    const uint32_t later = row + gridDim.x / blocks;
    load(next, x + (size_t)later * columns, first, step, later < count ? have : 0);
    const S own = S::of(keeps, have);
    S all = over_block<OP>(own, of_warps[turn].of());
    if (threadIdx.x == 0) *of_block[turn].of() = all;
    cluster.sync();
    all = over_lanes<OP>(*cluster.map_shared_rank(of_block[turn].of(), lane & (blocks - 1)), blocks);
    finish<OP>(typename OP::template map<typename arithmetic<T>::type, T>(all, own, columns), keeps, y + (size_t)row * columns, w, b, first, step, have);
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
  typedef typename OP::template state<typename arithmetic<T>::type> S;
  typedef few<T, WIDTH> F;
  __shared__ raw<S, WARP> memory;
  const F *from = (const F *)(x + (size_t)blockIdx.x * columns);
  F *to = (F *)(y + (size_t)blockIdx.x * columns);
  const uint32_t accesses = columns / WIDTH;
  S state = S::none();
  for (uint32_t i = threadIdx.x; i < accesses; i += blockDim.x) {
    F some[1] = {from[i]};
    state = OP::merge(state, S::of(some, 1));
  }
  state = over_block<OP>(state, memory.of());
  const typename OP::template map<typename arithmetic<T>::type, T> map(state, state, columns);
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
