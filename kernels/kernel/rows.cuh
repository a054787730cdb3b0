/* Kernels that find something out about each row of a table and make the row's output of that: softmax and the norms.
 *
 * A family is a struct OP with
 *   template <class M> struct state     what is known of some elements of a row:
 *     of(keeps, have, amount, group)    all that a group of threads keeps, so many elements; this one the first `have` accesses.
 *                                       It may change what is kept
 *     none(), add(x)                    what a thread has seen of a stream
 *     whole(amount, group)              what the states of all threads of the group know together; none() knows nothing
 *     map(amount)                       of the whole row, for elements that were kept or seen with this state
 *     map(part, amount)                 of the whole row, for elements that were kept with another, of a part of it
 *   template <class M> struct map       at(x, w, b): the output, from an element; kept<X>(x, w, b): from what of() left of an X
 *   enum { WEIGHTS }                    how many of w and b there are
 *   CHANGES<X>                          whether of() changes what is kept as X
 *   MUCH<X>                             whether arithmetic takes about as long as reading and writing an X
 * where a group has most(x) and sum(x) of its threads.
 *
 *   held      a group of threads keeps a row in registers, so that it is read once: up to a warp, several rows to a block; then
 *             a block
 *   spanned   longer rows: a cluster of up to 16 blocks, each with its part of the row (spanned.cuh)
 *   streamed  a block goes through its row twice: rows that nobody can hold, and the simple way of doing it */
#ifndef RL_KERNELS_KERNEL_ROWS_CUH
#define RL_KERNELS_KERNEL_ROWS_CUH

#include <cstdlib>
#include <errno.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/row_access.cuh"
#include "kernel/rows.h"
#include "kernel/spanned.cuh"

namespace rows {

enum { BLOCK = 256, BLOCK_HELD = 512 /* at most */, BLOCK_STREAMED = 1024 };

/* --- kernels ---------------------------------------------------------------------------------------------------------------- */

__device__ static inline uint32_t log_of(uint32_t power) { return 31 - __clz(power); }

/* group: threads of a block that share a row; a power of two up to a warp, or the whole block. The more of them an SM has, the
 * more bytes are on their way: three of the largest blocks. Element by element a thread holds more and may have all registers. */
template <class OP, class T, int WIDTH, int HOLDS> __global__ void __launch_bounds__(BLOCK_HELD, WIDTH > 1 ? 3 : 1)
    held(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t count,
         uint32_t columns, uint32_t group) {
  typedef typename arithmetic<T>::type M;
  __shared__ numbers_of_warps memory[2];
  const uint32_t log = log_of(group), row = blockIdx.x * (blockDim.x >> log) + (threadIdx.x >> log),
                 first = threadIdx.x & (group - 1);
  const uint32_t have = row < count ? accesses_of(first, columns / WIDTH, group) : 0; /* the last block has threads too many */
  registers<T, WIDTH, HOLDS> keeps;
  load(keeps, x + (size_t)row * columns, first, group, have);
  lanes_or_block together = {memory, group, 0};
  const amount<M> length(columns);
  const auto all = OP::template state<M>::of(keeps, have, length, together);
  finish<OP>(all.map(length), keeps, y + (size_t)row * columns, w, b, first, group, have);
}

/* The second time a row may come from L2. */
template <class OP, class T, int WIDTH> __global__ void __launch_bounds__(BLOCK_STREAMED)
    streamed(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t columns) {
  typedef typename arithmetic<T>::type M;
  typedef few<T, WIDTH> F;
  const F *from = (const F *)(x + (size_t)blockIdx.x * columns);
  F *to = (F *)(y + (size_t)blockIdx.x * columns);
  const uint32_t accesses = columns / WIDTH;
  __shared__ numbers_of_warps memory[2];
  typedef typename OP::template state<M> S;
  S state = S::none();
  for (uint32_t i = threadIdx.x; i < accesses; i += blockDim.x) {
    const F some = from[i];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) state.add(widen(some.at[k]));
  }
  lanes_or_block together = {memory, blockDim.x, 0};
  const amount<M> length(columns);
  const auto map = state.whole(length, together).map(length);
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

/* What launches need beside the buffers. */
struct workspace {
  rl_device *device;
  void *drawn; /* spanned's uint32_t, zero between launches */
};

static inline int open_workspace(rl_kernel_instance *instance, rl_error *err) {
  workspace *own = (workspace *)calloc(1, sizeof *own);
  if (!own) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a workspace");
  rl_device *device = own->device = instance->base.device;
  instance->engine = own;
  return device->ops->allocate(device, RL_MEMORY_WORKSPACE, sizeof(uint32_t), &own->drawn, err) ||
                 device->ops->clear(device, own->drawn, sizeof(uint32_t), err)
             ? -1
             : 0;
}

static inline void close_workspace(void *engine) {
  workspace *own = (workspace *)engine;
  own->device->ops->release(own->device, own->drawn);
  free(own);
}

/* What every launch takes. */
template <class T> struct work {
  const T *x, *w, *b;
  T *y;
  uint32_t rows, columns;
  uint32_t *drawn;
  cudaStream_t stream;
};

template <class OP, class T, int WIDTH, int HOLDS> static int launch_held(const work<T> &of, uint32_t group, rl_error *err) {
  const uint32_t block = group > WARP ? group : BLOCK;
  held<OP, T, WIDTH, HOLDS>
      <<<over(of.rows, block / group), block, 0, of.stream>>>(of.x, of.w, of.b, of.y, of.rows, of.columns, group);
  return rl_launch_ok("launching", err);
}

/* At once. None, which is no failure, where blocks have less shared memory or clusters fewer blocks than is asked for. */
template <class KERNEL> static uint32_t clusters_that_fit(KERNEL kernel, const cudaLaunchConfig_t &config) {
  int clusters = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)config.dynamicSmemBytes) == cudaSuccess &&
      cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess)
    return (uint32_t)clusters;
  cudaGetLastError();
  return 0;
}

/* blocks: of a cluster. Does nothing where none *fits. */
template <class OP, class T> static int launch_spanned(const work<T> &of, uint32_t blocks, bool *fits, rl_error *err) {
  typedef divided<OP, T> D;
  const auto kernel = spanned<OP, T>;
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.blockDim = dim3(D::BLOCK);
  config.gridDim = dim3(blocks);
  config.dynamicSmemBytes = D::SHARED;
  config.stream = of.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const uint32_t clusters = clusters_that_fit(kernel, config);
  *fits = clusters > 0;
  if (!*fits) return 0;
  config.gridDim.x *= clusters < of.rows ? clusters : of.rows;
  return rl_cuda_ok(cudaLaunchKernelEx(&config, kernel, of.x, of.w, of.b, of.y, of.rows, of.columns, blocks, of.drawn),
                    "launching", err);
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

/* A cluster is of two blocks at least: what is sent comes from another one. */
template <class OP, class T> static int launch_vector(const work<T> &of, bool has_clusters, rl_error *err) {
  enum { PACK = 16 / sizeof(T), HOLDS = 4 };
  typedef divided<OP, T> D;
  const uint32_t accesses = of.columns / PACK, blocks = 2 * power_of_two(over(accesses, 2 * D::WORKERS * D::HOLDS));
  bool fits = has_clusters && accesses > BLOCK_HELD * HOLDS && blocks <= CLUSTER;
  const int rc = fits ? launch_spanned<OP, T>(of, blocks, &fits, err) : 0;
  return fits ? rc : launch_held_or_streamed<OP, T, PACK, HOLDS>(of, err);
}

/* Rows whose length is no multiple of 16 bytes begin anywhere: they are read element by element, more of them by each thread. */
template <class OP, class T> static int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { SCALAR, PACK = 16 / sizeof(T), HOLDS_SINGLE = 16 };
  const work<T> of = {(const T *)instance->in[0],
                      (const T *)instance->in[1],
                      (const T *)instance->in[2],
                      (T *)instance->out,
                      (uint32_t)instance->shape.size[RL_ROWS],
                      (uint32_t)instance->shape.size[RL_COLUMNS],
                      (uint32_t *)((const workspace *)instance->engine)->drawn,
                      stream};
  if (instance->variant == SCALAR) return launch_streamed<OP, T, 1>(of, BLOCK, err);
  if (of.columns % PACK == 0) return launch_vector<OP, T>(of, has_clusters(instance->base.device->index), err);
  return launch_held_or_streamed<OP, T, 1, HOLDS_SINGLE>(of, err);
}

template <class OP> static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<OP, T>(instance, stream, err)))
}

}  // namespace rows

/* Defines the engine of a family. */
#define RL_KERNEL_CUDA_ROWS(NAME)                                                                                               \
  static const rl_kernel_launcher launcher_of_##NAME = {rows::launch<NAME>, NULL, rows::open_workspace, rows::close_workspace}; \
  RL_KERNEL_CUDA_ENGINE(NAME, "cuda", "hand-written", launcher_of_##NAME)

#endif
