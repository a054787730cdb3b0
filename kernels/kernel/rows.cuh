/* Kernels that find something out about each row of a table and make the row's output of that: softmax and the norms.
 *
 * A family is a struct OP with
 *   template <class M> struct state   what is known of some elements of a row:
 *     of(keeps, have, count, group)   all `count` that a group of threads keeps, this one the first `have` accesses. It may
 *                                     change what is kept
 *     none(), add(x)                  what a thread has seen of a stream
 *     whole(count, group)             what the threads of the group know of `count` elements, together
 *     map(columns)                    of the whole row, for elements that were kept or seen with this state
 *     map(part, columns)              of the whole row, for elements that were kept with another, of a part of it
 *   template <class M> struct map     at(x, w, b): the output, from an element; kept<T>(x, w, b): from what of() left of it
 *   enum { WEIGHTS }                  how many of w and b there are
 * where a group has most(x) and sum(x) of its threads.
 *
 *   held      a group of threads keeps a row in registers, so that it is read once: up to a warp, several rows to a block; then
 *             a block
 *   spanned   longer rows: a cluster of up to 8 blocks, each with its part of the row, which meet in distributed shared memory
 *             (from compute capability 9.0 on). Clusters stay; as soon as a thread has taken an access from its place in shared
 *             memory, that of the next row is on its way there
 *   streamed  a block goes through its row twice: rows that nobody can hold, and the simple way of doing it */
#ifndef RL_KERNELS_KERNEL_ROWS_CUH
#define RL_KERNELS_KERNEL_ROWS_CUH

#include <cooperative_groups.h>

#include "async_copy.cuh"
#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/rows.h"
#include "kernel/types.cuh"

namespace rows {

enum { WARP = 32, BLOCK = 256, BLOCK_HELD = 512 /* at most */, BLOCK_STREAMED = 1024, CLUSTER = 8 };

/* --- groups of threads ------------------------------------------------------------------------------------------------------ */

template <class M> __device__ static M of_both(M a, M b, bool most) { return !most ? a + b : a > b ? a : b; }

/* Of `lanes` neighbours, a power of two; every one gets it. */
template <class M> __device__ static M over_lanes(M x, uint32_t lanes, bool most) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) x = of_both(x, __shfl_xor_sync(~0u, x, mask), most);
  return x;
}

template <class M> struct alone { /* a thread */
  __device__ M most(M x) const { return x; }
  __device__ M sum(M x) const { return x; }
};

/* Neighbouring lanes, a power of two. */
template <class M> struct lanes {
  uint32_t size;
  __device__ M most(M x) const { return over_lanes(x, size, true); }
  __device__ M sum(M x) const { return over_lanes(x, size, false); }
};

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
/* What the blocks of a cluster know, together. Places are used in turns, too. */
template <class M, class S> struct whole_cluster {
  S (*of_block)[CLUSTER]; /* two */
  uint32_t turn;
  __device__ S whole(const S &of_this_block, uint32_t columns) {
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const uint32_t blocks = cluster.num_blocks();
    turn ^= 1;
    if (threadIdx.x < blocks) *cluster.map_shared_rank(&of_block[turn][cluster.block_rank()], threadIdx.x) = of_this_block;
    cluster.sync();
    return of_block[turn][threadIdx.x & (blocks - 1)].whole(columns, lanes<M>{blocks});
  }
};
#endif

/* --- kernels ---------------------------------------------------------------------------------------------------------------- */

/* WIDTH elements, as one access moves them. */
template <class T, int WIDTH> struct alignas(WIDTH * sizeof(T)) few { T at[WIDTH]; };

template <class OP, bool KEPT, class T, int WIDTH, class MAP>
__device__ static few<T, WIDTH> mapped(const MAP &map, const few<T, WIDTH> &x, const T *w, const T *b, uint32_t at) {
  typedef typename arithmetic<T>::type M;
  M xs[WIDTH], ws[WIDTH] = {}, bs[WIDTH] = {};
  few<T, WIDTH> y, weights, biases; /* copied as a whole, or each element would be an access */
  widen_all<WIDTH>(x.at, xs);
  if (OP::WEIGHTS > 0) weights = ((const few<T, WIDTH> *)w)[at], widen_all<WIDTH>(weights.at, ws);
  if (OP::WEIGHTS > 1) biases = ((const few<T, WIDTH> *)b)[at], widen_all<WIDTH>(biases.at, bs);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) xs[k] = KEPT ? map.template kept<T>(xs[k], ws[k], bs[k]) : map.at(xs[k], ws[k], bs[k]);
  narrow_all<WIDTH>(xs, y.at);
  return y;
}

/* Of `count` accesses of a row a thread has number `first` and every step-th from there on. */
__device__ static inline uint32_t accesses_of(uint32_t first, uint32_t count, uint32_t step) {
  return first < count ? (count - first + step - 1) / step : 0;
}

/* All BLOCK_HELD threads together, the first of which has number `first`. */
__device__ static inline uint32_t accesses_of_block(uint32_t first, uint32_t count, uint32_t step) {
  uint32_t all = 0;
  for (uint32_t at = first; at < count; at += step) all += min(BLOCK_HELD, count - at);
  return all;
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
__device__ static void finish(const MAP &map, const few<T, WIDTH> (&keeps)[HOLDS], T *row, const T *w, const T *b, uint32_t first,
                              uint32_t step, uint32_t have) {
  few<T, WIDTH> *to = (few<T, WIDTH> *)row;
#pragma unroll
  for (uint32_t i = 0; i < HOLDS; i++)
    if (i < have) to[first + i * step] = mapped<OP, true>(map, keeps[i], w, b, first + i * step);
}

/* group: threads of a block that share a row; a power of two up to a warp, or the whole block. The more of them an SM has, the
 * more bytes are on their way: three of the largest blocks. Element by element a thread holds more and may have all registers. */
template <class OP, class T, int WIDTH, int HOLDS>
__global__ void __launch_bounds__(BLOCK_HELD, WIDTH > 1 ? 3 : 1)
    held(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t count,
         uint32_t columns, uint32_t group) {
  typedef typename arithmetic<T>::type M;
  __shared__ M memory[2][WARP];
  const uint32_t log = log_of(group), row = blockIdx.x * (blockDim.x >> log) + (threadIdx.x >> log),
                 first = threadIdx.x & (group - 1);
  const uint32_t have = row < count ? accesses_of(first, columns / WIDTH, group) : 0; /* the last block has threads too many */
  few<T, WIDTH> keeps[HOLDS];
  load(keeps, x + (size_t)row * columns, first, group, have);
  lanes_or_block<M> together = {memory, group, 0};
  const auto all = OP::template state<M>::of(keeps, have, columns, together);
  finish<OP>(all.map(columns), keeps, y + (size_t)row * columns, w, b, first, group, have);
}

/* A thread's accesses of a row, in places of its own in shared memory, every BLOCK_HELD-th. */
template <class T, int HOLDS> struct places {
  typedef few<T, 16 / sizeof(T)> F;
  F *own;
  uint32_t step;

  __device__ void fetch(const T *from, int i, uint32_t have) const {
    if (i < have) copy_16_bytes(own + i * BLOCK_HELD, (const F *)from + i * step);
    end_copies();
  }
  __device__ void fetch_all(const T *from, uint32_t have) const {
#pragma unroll
    for (int i = 0; i < HOLDS; i++) fetch(from, i, have);
  }
  /* What was fetched last, while `have` accesses from `next` on are fetched. */
  __device__ void take(F (&keeps)[HOLDS], const T *next, uint32_t have) const {
#pragma unroll
    for (int i = 0; i < HOLDS; i++) {
      copies_done_but<HOLDS - 1>();
      keeps[i] = own[i * BLOCK_HELD];
      fetch(next, i, have);
    }
  }
};

template <class OP, class T, int HOLDS>
__global__ void __launch_bounds__(BLOCK_HELD, 2)
    spanned(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t count,
            uint32_t columns) {
#if __CUDA_ARCH__ >= 900
  enum { WIDTH = 16 / sizeof(T) };
  typedef typename arithmetic<T>::type M;
  typedef typename OP::template state<M> S;
  extern __shared__ __align__(16) char memory[];
  __shared__ M of_warps[2][WARP];
  /* States have constructors, which shared memory must not have. */
  __shared__ alignas(16) char of_blocks[2 * CLUSTER * sizeof(S)];
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const uint32_t blocks = cluster.num_blocks(), clusters = gridDim.x / blocks, step = blocks * BLOCK_HELD,
                 accesses = columns / WIDTH;
  const uint32_t begin = cluster.block_rank() * BLOCK_HELD, first = begin + threadIdx.x,
                 have = accesses_of(first, accesses, step);
  const uint32_t elements = accesses_of_block(begin, accesses, step) * WIDTH, cluster_rank = blockIdx.x / blocks;
  const size_t skipped = (size_t)cluster_rank * columns + first * WIDTH, apart = (size_t)clusters * columns;
  const places<T, HOLDS> mine = {(few<T, WIDTH> *)memory + threadIdx.x, step};
  lanes_or_block<M> block = {of_warps, BLOCK_HELD, 0};
  whole_cluster<M, S> all_blocks = {(S(*)[CLUSTER])of_blocks, 0};
  x += skipped, y += skipped; /* where the thread's own accesses begin */
  if (OP::WEIGHTS > 0) w += first * WIDTH;
  if (OP::WEIGHTS > 1) b += first * WIDTH;
  mine.fetch_all(x, have);
  cluster.sync(); /* no block is written into before it has begun, */
  for (uint32_t row = cluster_rank; row < count; row += clusters) {
    few<T, WIDTH> keeps[HOLDS];
    x += apart;
    mine.take(keeps, x, row + clusters < count ? have : 0);
    const S part = have > 0 ? S::of(keeps, have, have * WIDTH, alone<M>()) : S::none();
    const S all = all_blocks.whole(part.whole(elements, block), columns);
    finish<OP>(all.map(part, columns), keeps, y, w, b, 0, step, have);
    y += apart;
  }
  cluster.sync(); /* and none ends while others write into it */
#endif
}

/* The second time a row may come from L2. */
template <class OP, class T, int WIDTH>
__global__ void __launch_bounds__(BLOCK_STREAMED)
    streamed(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t columns) {
  typedef typename arithmetic<T>::type M;
  typedef few<T, WIDTH> F;
  const F *from = (const F *)(x + (size_t)blockIdx.x * columns);
  F *to = (F *)(y + (size_t)blockIdx.x * columns);
  const uint32_t accesses = columns / WIDTH;
  __shared__ M memory[2][WARP];
  typename OP::template state<M> state = OP::template state<M>::none();
  for (uint32_t i = threadIdx.x; i < accesses; i += blockDim.x) {
    const F some = from[i];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) state.add(widen(some.at[k]));
  }
  lanes_or_block<M> together = {memory, blockDim.x, 0};
  const auto map = state.whole(columns, together).map(columns);
  for (uint32_t i = threadIdx.x; i < accesses; i += blockDim.x) to[i] = mapped<OP, false>(map, from[i], w, b, i);
}

/* --- launching -------------------------------------------------------------------------------------------------------------- */

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
  held<OP, T, WIDTH, HOLDS>
      <<<over(of.rows, block / group), block, 0, of.stream>>>(of.x, of.w, of.b, of.y, of.rows, of.columns, group);
  return rl_launch_ok("launching", err);
}

/* blocks: of a cluster. */
template <class OP, class T, int HOLDS> static int launch_spanned(const work<T> &of, uint32_t blocks, rl_error *err) {
  const auto kernel = spanned<OP, T, HOLDS>;
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  int fit = 0;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.blockDim = dim3(BLOCK_HELD);
  config.gridDim = dim3(blocks);
  config.dynamicSmemBytes = 16 * HOLDS * BLOCK_HELD;
  config.stream = of.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const int bytes = (int)config.dynamicSmemBytes;
  if (rl_cuda_ok(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "asking for shared memory",
                 err) ||
      rl_cuda_ok(cudaOccupancyMaxActiveClusters(&fit, kernel, &config), "counting clusters", err))
    return -1;
  config.gridDim.x *= (uint32_t)fit < of.rows ? (uint32_t)fit : of.rows;
  return rl_cuda_ok(cudaLaunchKernelEx(&config, kernel, of.x, of.w, of.b, of.y, of.rows, of.columns), "launching", err);
}

template <class OP, class T, int WIDTH> static int launch_streamed(const work<T> &of, uint32_t block, rl_error *err) {
  streamed<OP, T, WIDTH><<<of.rows, block, 0, of.stream>>>(of.x, of.w, of.b, of.y, of.columns);
  return rl_launch_ok("launching", err);
}

/* As few threads as hold a row. */
template <class OP, class T, int WIDTH, int HOLDS> static int launch_held_or_streamed(const work<T> &of, rl_error *err) {
  const uint32_t threads = power_of_two(over(of.columns / WIDTH, HOLDS));
  return threads <= BLOCK_HELD ? launch_held<OP, T, WIDTH, HOLDS>(of, threads, err)
                               : launch_streamed<OP, T, WIDTH>(of, BLOCK_STREAMED, err);
}

/* Two blocks have an SM's registers, and its shared memory has room for what they fetch; one computes while the other waits. Rows
 * that a block holds with half as many accesses a thread need no fetching ahead: there are more blocks then. */
template <class OP, class T> static int launch_vector(const work<T> &of, bool clusters, rl_error *err) {
  enum { PACK = 16 / sizeof(T), HOLDS = 4, SPAN_HOLDS = 8 };
  const uint32_t accesses = of.columns / PACK, blocks = power_of_two(over(accesses, BLOCK_HELD * SPAN_HOLDS));
  if (!clusters || accesses <= BLOCK_HELD * HOLDS || blocks > CLUSTER)
    return launch_held_or_streamed<OP, T, PACK, HOLDS>(of, err);
  return launch_spanned<OP, T, SPAN_HOLDS>(of, blocks, err);
}

/* Rows whose length is no multiple of 16 bytes begin anywhere: they are read element by element, more of them by each thread. */
template <class OP, class T>
static int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { SCALAR, PACK = 16 / sizeof(T), HOLDS_SINGLE = 16 };
  const work<T> of = {(const T *)instance->in[0],
                      (const T *)instance->in[1],
                      (const T *)instance->in[2],
                      (T *)instance->out,
                      (uint32_t)instance->shape.size[RL_ROWS],
                      (uint32_t)instance->shape.size[RL_COLUMNS],
                      stream};
  if (instance->variant == SCALAR) return launch_streamed<OP, T, 1>(of, BLOCK, err);
  if (of.columns % PACK == 0) return launch_vector<OP, T>(of, has_clusters(instance->base.device->index), err);
  return launch_held_or_streamed<OP, T, 1, HOLDS_SINGLE>(of, err);
}

template <class OP>
static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<OP, T>(instance, stream, err)))
}

} // namespace rows

#endif
