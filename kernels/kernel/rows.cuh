/* Kernels that reduce each row of a table and compute the row's output from the result: softmax and the norms.
 *
 * An operator is a struct OP with
 *   template <class M> struct state     the reduction of some elements of a row, in the arithmetic type M:
 *     from_fragment(fragment, valid_vectors, count, group)
 *                                       reduces the `count` elements that a group of threads has in registers; the calling
 *                                       thread has `valid_vectors` vectors of them. May transform the elements in place
 *     empty(), add(x)                   the state of no element; adds an element of a stream
 *     reduced(count, group)             combines the states of all threads of the group, `count` elements in all
 *     output(count)                     the output function of a row with this state
 *     output(part, count)               the same, called on the state of the whole row by a group that holds only a part of it.
 *                                       part: the state that the group's from_fragment returned
 *
 *   template <class M> struct output    the output function:
 *     of_element(x, w, b)               the output for an element x with the weights w and b
 *     of_transformed<X>(x, w, b)        the same, for an x that from_fragment has transformed and stored in a variable of type X
 *   WEIGHT_VECTORS                      0: neither w nor b; 1: w; 2: both
 *   TRANSFORMS<X>                       whether from_fragment transforms elements of type X
 *   COMPUTE_HEAVY<X>                    whether the arithmetic takes about as long as reading and writing elements of type X
 * where `count` is an element_count and a group has sum(x) and max(x) over its threads (row_access.cuh).
 *
 * Three kernels:
 *   in_registers      a group of threads holds a row in registers and so reads it once. A group is either a power of two of
 *                     lanes, at most a warp (then a block has several rows), or a whole block
 *   cluster_per_row   longer rows: the blocks of a cluster share a row (cluster_per_row.cuh)
 *   streamed          a block reads its row twice: rows too long for the other two kernels, and the variant `scalar` */
#ifndef RL_KERNELS_KERNEL_ROWS_CUH
#define RL_KERNELS_KERNEL_ROWS_CUH

#include <cstdlib>
#include <errno.h>

#include "cuda_check.h"
#include "kernel/cluster_per_row.cuh"
#include "kernel/cuda.h"
#include "kernel/launch_sizes.h"
#include "kernel/row_access.cuh"
#include "kernel/rows.h"

namespace rows {

enum { BLOCK = 256, MAX_BLOCK_IN_REGISTERS = 512, BLOCK_STREAMED = 1024 };

/* --- kernels ---------------------------------------------------------------------------------------------------------------- */

__device__ static inline uint32_t log2_of(uint32_t power_of_two) { return 31 - __clz(power_of_two); }

/* group_threads: how many threads share a row: a power of two up to a warp, or the whole block. __launch_bounds__ limits the
 * registers so that three of the largest blocks are resident, because more resident blocks have more loads in flight. With scalar
 * accesses (WIDTH 1) a thread has up to 16 separate loads and their addresses in registers, so there is no such limit. */
template <class OP, class T, int WIDTH, int VECTORS> __global__ void __launch_bounds__(MAX_BLOCK_IN_REGISTERS, WIDTH > 1 ? 3 : 1)
    in_registers(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t rows,
                 uint32_t columns, uint32_t group_threads) {
  typedef typename arithmetic<T>::type M;
  __shared__ warp_partials buffers[2];
  const uint32_t log2_group = log2_of(group_threads), row = blockIdx.x * (blockDim.x >> log2_group) + (threadIdx.x >> log2_group);
  const uint32_t first = threadIdx.x & (group_threads - 1);
  const uint32_t valid =
      row < rows ? count_strided(first, group_threads, columns / WIDTH) : 0; /* the last block has surplus groups */
  const thread_vectors assigned = {first, group_threads, valid};
  row_fragment<T, WIDTH, VECTORS> fragment;
  load(fragment, x + (size_t)row * columns, assigned);
  thread_group threads = {buffers, group_threads, 0};
  const element_count<M> count(columns);
  const auto state = OP::template state<M>::from_fragment(fragment, assigned.count, count, threads);
  store_output<OP>(state.output(count), fragment, y + (size_t)row * columns, w, b, assigned);
}

/* Reads each row twice. The second read may hit L2. */
template <class OP, class T, int WIDTH> __global__ void __launch_bounds__(BLOCK_STREAMED)
    streamed(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t columns) {
  typedef typename arithmetic<T>::type M;
  typedef vec<T, WIDTH> vector;
  const vector *from = (const vector *)(x + (size_t)blockIdx.x * columns);
  vector *to = (vector *)(y + (size_t)blockIdx.x * columns);
  const uint32_t vectors = columns / WIDTH;
  __shared__ warp_partials buffers[2];
  typedef typename OP::template state<M> S;
  S state = S::empty();
  for (uint32_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const vector loaded = from[i];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) state.add(widen(loaded.elements[k]));
  }
  thread_group threads = {buffers, blockDim.x, 0};
  const element_count<M> count(columns);
  const auto output = state.reduced(count, threads).output(count);
  for (uint32_t i = threadIdx.x; i < vectors; i += blockDim.x) to[i] = output_vector<OP, false>(output, from[i], w, b, i);
}

/* --- launching -------------------------------------------------------------------------------------------------------------- */

static inline bool supports_clusters(int device) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

/* Device memory of an instance in addition to its buffers. */
struct workspace {
  rl_device *device;
  void *next_row_counter; /* uint32_t of cluster_per_row; zero between launches */
};

static inline int open_workspace(rl_kernel_instance *instance, rl_error *err) {
  workspace *self = (workspace *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a workspace");
  rl_device *device = self->device = instance->base.device;
  instance->engine_state = self;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, sizeof(uint32_t), &self->next_row_counter, err) < 0) return -1;
  return device->ops->zero(device, self->next_row_counter, sizeof(uint32_t), err);
}

static inline void close_workspace(void *engine_state) {
  workspace *self = (workspace *)engine_state;
  self->device->ops->release(self->device, self->next_row_counter);
  free(self);
}

/* Arguments of every launch. */
template <class T> struct launch_arguments {
  const T *x, *w, *b;
  T *y;
  uint32_t rows, columns;
  uint32_t *next_row_counter;
  cudaStream_t stream;
};

template <class OP, class T, int WIDTH, int VECTORS>
static int launch_in_registers(const launch_arguments<T> &a, uint32_t group_threads, rl_error *err) {
  const uint32_t block = group_threads > WARP_SIZE ? group_threads : BLOCK;
  in_registers<OP, T, WIDTH, VECTORS>
      <<<ceil_div(a.rows, block / group_threads), block, 0, a.stream>>>(a.x, a.w, a.b, a.y, a.rows, a.columns, group_threads);
  return rl_cuda_check_launch("launching", err);
}

/* Returns how many clusters can be resident at once: 0 if a block needs more shared memory, or a cluster more
 * blocks, than the device allows. */
template <class KERNEL> static uint32_t resident_clusters(KERNEL kernel, const cudaLaunchConfig_t &config) {
  int clusters = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)config.dynamicSmemBytes) == cudaSuccess &&
      cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess)
    return (uint32_t)clusters;
  cudaGetLastError();
  return 0;
}

/* Where no cluster of `blocks` blocks can be resident, sets *launched to false and launches nothing. */
template <class OP, class T>
static int launch_cluster_per_row(const launch_arguments<T> &a, uint32_t blocks, bool *launched, rl_error *err) {
  typedef cluster_config_for<OP, T> C;
  const auto kernel = cluster_per_row<OP, T>;
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.blockDim = dim3(C::BLOCK);
  config.gridDim = dim3(blocks);
  config.dynamicSmemBytes = C::SHARED_BYTES;
  config.stream = a.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const uint32_t clusters = resident_clusters(kernel, config);
  *launched = clusters > 0;
  if (!*launched) return 0;
  config.gridDim.x *= clusters < a.rows ? clusters : a.rows;
  return rl_cuda_check(cudaLaunchKernelEx(&config, kernel, a.x, a.w, a.b, a.y, a.rows, a.columns, blocks, a.next_row_counter),
                       "launching", err);
}

template <class OP, class T, int WIDTH> static int launch_streamed(const launch_arguments<T> &a, uint32_t block, rl_error *err) {
  streamed<OP, T, WIDTH><<<a.rows, block, 0, a.stream>>>(a.x, a.w, a.b, a.y, a.columns);
  return rl_cuda_check_launch("launching", err);
}

/* Launches in_registers with the smallest group that holds a row, or `streamed` if a block cannot hold one. */
template <class OP, class T, int WIDTH, int VECTORS>
static int launch_in_registers_or_streamed(const launch_arguments<T> &a, rl_error *err) {
  const uint32_t threads = bit_ceil(ceil_div(a.columns / WIDTH, VECTORS));
  return threads <= MAX_BLOCK_IN_REGISTERS ? launch_in_registers<OP, T, WIDTH, VECTORS>(a, threads, err)
                                           : launch_streamed<OP, T, WIDTH>(a, BLOCK_STREAMED, err);
}

/* For rows whose length is a multiple of 16 bytes. A cluster has at least two blocks, because cluster_per_row relies on messages
 * between blocks. */
template <class OP, class T> static int launch_aligned(const launch_arguments<T> &a, bool clusters_supported, rl_error *err) {
  enum { WIDTH = 16 / sizeof(T), VECTORS = 4 };
  typedef cluster_config_for<OP, T> C;
  const uint32_t vectors = a.columns / WIDTH,
                 blocks = 2 * bit_ceil(ceil_div(vectors, 2 * C::COMPUTE_THREADS * C::VECTORS_PER_THREAD));
  bool launched = clusters_supported && vectors > MAX_BLOCK_IN_REGISTERS * VECTORS && blocks <= MAX_CLUSTER;
  const int rc = launched ? launch_cluster_per_row<OP, T>(a, blocks, &launched, err) : 0;
  return launched ? rc : launch_in_registers_or_streamed<OP, T, WIDTH, VECTORS>(a, err);
}

/* Rows whose length is no multiple of 16 bytes are not aligned to 16 bytes. They are read element by element. */
template <class OP, class T> static int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { SCALAR /* index of the variant */, WIDTH = 16 / sizeof(T), MAX_ELEMENTS_PER_THREAD = 16 };
  const launch_arguments<T> a = {(const T *)instance->in[0],
                                 (const T *)instance->in[1],
                                 (const T *)instance->in[2],
                                 (T *)instance->out,
                                 (uint32_t)instance->shape.size[RL_ROWS],
                                 (uint32_t)instance->shape.size[RL_COLUMNS],
                                 (uint32_t *)((const workspace *)instance->engine_state)->next_row_counter,
                                 stream};
  if (instance->variant == SCALAR) return launch_streamed<OP, T, 1>(a, BLOCK, err);
  if (a.columns % WIDTH == 0) return launch_aligned<OP, T>(a, supports_clusters(instance->base.device->index), err);
  return launch_in_registers_or_streamed<OP, T, 1, MAX_ELEMENTS_PER_THREAD>(a, err);
}

template <class OP> static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<OP, T>(instance, stream, err)))
}

}  // namespace rows

/* Defines the engine of an operator. */
#define RL_KERNEL_CUDA_ROWS(NAME)                                                                                               \
  static const rl_kernel_launcher launcher_of_##NAME = {rows::launch<NAME>, NULL, rows::open_workspace, rows::close_workspace}; \
  RL_KERNEL_CUDA_ENGINE(NAME, "cuda", "hand-written", launcher_of_##NAME)

#endif
