/* Kernels that reduce each row of a table and compute the output of the row from the result: softmax, rmsnorm and layernorm. x,
 * y: input and output [rows][columns]; w, b: weights and biases [columns].
 *
 * Three kernels:
 *   in_registers      a group of threads holds a row in registers. A group is a part of a warp, a warp, or a whole block; groups
 *                     of at most a warp share a block
 *   cluster_per_row   for longer rows: the blocks of a cluster share a row (cluster_per_row.cuh)
 *   streamed          a block reads its row twice: for rows that are too long for the other two kernels, and for the variant
 *                     `scalar`
 *
 * Template parameters: OP operator · T element type · M arithmetic type, float or double · WIDTH elements of a vector, which one
 * access loads or stores · VECTORS vectors that a thread holds at most.
 *
 * An operator is a struct OP with
 *   template <class M> struct state     the reduction of some elements of a row, in the arithmetic type M:
 *     from_fragment(fragment, valid_vectors, count, group)
 *                                       returns the state of the `count` elements that a group of threads holds in registers;
 *                                       the calling thread holds `valid_vectors` vectors of them. May transform the elements
 *                                       in place
 *     empty()                           returns the state of no elements
 *     add(x)                            adds the element x to the state
 *     reduced(count, group)             combines the states of all threads of the group, which together have `count` elements
 *     output(count)                     returns the output function of the row; *this is the state of the whole row
 *     output(part, count)               returns the output function for threads that hold only a part of the row: `part` is the
 *                                       state that from_fragment returned for this part, and *this is the state of the whole row
 *
 *   template <class M> struct output    the output function of a row:
 *     of_element(x, w, b)               returns the output for an element x with weight w and bias b
 *     of_transformed<X>(x, w, b)        the same for an x that from_fragment has transformed and stored as type X
 *   WEIGHT_VECTORS                      0: neither weights nor biases; 1: weights; 2: both
 *   TRANSFORMS<X>                       whether from_fragment transforms elements of type X
 *   COMPUTE_HEAVY<X>                    whether the arithmetic takes about as long as reading and writing elements of type X
 *
 * `count` is an element_count; a group has sum(x) and max(x) over its threads (row_access.cuh). */
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

enum { BLOCK_THREADS = 256, MAX_IN_REGISTERS_BLOCK_THREADS = 512, STREAMED_BLOCK_THREADS = 1024 }; /* threads of a block */

/* --- kernels ---------------------------------------------------------------------------------------------------------------- */

__device__ static inline uint32_t log2_of(uint32_t power_of_two) { return 31 - __clz(power_of_two); }

/* The kernel in_registers. group_threads: number of threads that share a row, which is a power of two up to a warp, or the block
 * size.
 * __launch_bounds__ limits the registers so that three of the largest blocks are resident on a multiprocessor, because more
 * resident blocks have more loads in flight. With scalar accesses (WIDTH 1) there is no such limit, because a thread then holds
 * up to 16 separate elements and their addresses. */
template <class OP, class T, int WIDTH, int VECTORS>
__global__ void __launch_bounds__(MAX_IN_REGISTERS_BLOCK_THREADS, WIDTH > 1 ? 3 : 1)
    in_registers(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t rows,
                 uint32_t columns, uint32_t group_threads) {
  typedef typename arithmetic<T>::type M;
  __shared__ warp_partials buffers[2];
  const uint32_t log2_group = log2_of(group_threads), row = blockIdx.x * (blockDim.x >> log2_group) + (threadIdx.x >> log2_group);
  const uint32_t first_vector = threadIdx.x & (group_threads - 1);
  /* In the last block, some groups may have no row; their threads have no valid vectors. */
  const uint32_t valid_vectors = row < rows ? count_strided(first_vector, group_threads, columns / WIDTH) : 0;
  const thread_vectors assigned = {first_vector, group_threads, valid_vectors};
  row_fragment<T, WIDTH, VECTORS> fragment;
  load(fragment, x + (size_t)row * columns, assigned);
  thread_group group = {buffers, group_threads, 0};
  const element_count<M> count(columns);
  const auto state = OP::template state<M>::from_fragment(fragment, assigned.count, count, group);
  store_output<OP>(state.output(count), fragment, y + (size_t)row * columns, w, b, assigned);
}

/* The kernel `streamed`: each block processes one row and reads it twice; the second read may hit L2. */
template <class OP, class T, int WIDTH> __global__ void __launch_bounds__(STREAMED_BLOCK_THREADS)
    streamed(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t columns) {
  typedef typename arithmetic<T>::type M;
  typedef vec<T, WIDTH> vector;
  const vector *from = (const vector *)(x + (size_t)blockIdx.x * columns);
  vector *to = (vector *)(y + (size_t)blockIdx.x * columns);
  const uint32_t vectors = columns / WIDTH;
  __shared__ warp_partials buffers[2];
  typedef typename OP::template state<M> STATE;
  STATE state = STATE::empty();
  for (uint32_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const vector loaded = from[i];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) state.add(widen(loaded.elements[k]));
  }
  thread_group group = {buffers, blockDim.x, 0};
  const element_count<M> count(columns);
  const auto output = state.reduced(count, group).output(count);
  for (uint32_t i = threadIdx.x; i < vectors; i += blockDim.x) to[i] = output_vector<OP, false>(output, from[i], w, b, i);
}

/* --- launching -------------------------------------------------------------------------------------------------------------- */

static inline bool supports_clusters(int device) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

/* Device memory of an instance in addition to its inputs and output. */
struct workspace {
  rl_device *device;
  void *next_row_counter; /* a uint32_t, argument of cluster_per_row; zero between launches */
};

static inline int open_workspace(rl_kernel_instance *instance, rl_error *err) {
  workspace *self = (workspace *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a workspace");
  rl_device *device = self->device = instance->base.device;
  instance->engine_state = self;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, sizeof(uint32_t), &self->next_row_counter, err) < 0) return -1;
  return device->ops->fill(device, self->next_row_counter, 0, sizeof(uint32_t), err);
}

static inline void close_workspace(void *engine_state) {
  workspace *self = (workspace *)engine_state;
  self->device->ops->release(self->device, self->next_row_counter);
  free(self);
}

/* The arguments of the three kernels, and the stream. Only cluster_per_row uses next_row_counter. */
template <class T> struct launch_arguments {
  const T *x, *w, *b;
  T *y;
  uint32_t rows, columns;
  uint32_t *next_row_counter;
  cudaStream_t stream;
};

template <class OP, class T, int WIDTH, int VECTORS>
static int launch_in_registers(const launch_arguments<T> &arguments, uint32_t group_threads, rl_error *err) {
  const uint32_t block_threads = group_threads > WARP_SIZE ? group_threads : BLOCK_THREADS;
  in_registers<OP, T, WIDTH, VECTORS>
      <<<ceil_div(arguments.rows, block_threads / group_threads), block_threads, 0, arguments.stream>>>(
          arguments.x, arguments.w, arguments.b, arguments.y, arguments.rows, arguments.columns, group_threads);
  return rl_cuda_check_launch("launching", err);
}

/* Returns how many clusters can be resident at once: 0 if a block needs more shared memory, or a cluster needs more blocks, than
 * the device allows. */
template <class KERNEL> static uint32_t resident_clusters(KERNEL kernel, const cudaLaunchConfig_t &config) {
  int clusters = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)config.dynamicSmemBytes) == cudaSuccess &&
      cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess)
    return (uint32_t)clusters;
  cudaGetLastError();
  return 0;
}

/* Launches clusters of `blocks` blocks: at most one per row, and only as many as can be resident. If none can, sets *launched to
 * false and launches nothing. */
template <class OP, class T>
static int launch_cluster_per_row(const launch_arguments<T> &arguments, uint32_t blocks, bool *launched, rl_error *err) {
  typedef cluster_config_for<OP, T> CONFIG;
  const auto kernel = cluster_per_row<OP, T>;
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.blockDim = dim3(CONFIG::BLOCK_THREADS);
  config.gridDim = dim3(blocks);
  config.dynamicSmemBytes = CONFIG::SHARED_BYTES;
  config.stream = arguments.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const uint32_t clusters = resident_clusters(kernel, config);
  *launched = clusters > 0;
  if (!*launched) return 0;
  config.gridDim.x *= clusters < arguments.rows ? clusters : arguments.rows;
  return rl_cuda_check(cudaLaunchKernelEx(&config, kernel, arguments.x, arguments.w, arguments.b, arguments.y, arguments.rows,
                                          arguments.columns, blocks, arguments.next_row_counter),
                       "launching", err);
}

template <class OP, class T, int WIDTH>
static int launch_streamed(const launch_arguments<T> &arguments, uint32_t block_threads, rl_error *err) {
  streamed<OP, T, WIDTH><<<arguments.rows, block_threads, 0, arguments.stream>>>(arguments.x, arguments.w, arguments.b,
                                                                                 arguments.y, arguments.columns);
  return rl_cuda_check_launch("launching", err);
}

/* Launches in_registers with the smallest group that can hold a row, or `streamed` if a block cannot hold one. */
template <class OP, class T, int WIDTH, int VECTORS>
static int launch_in_registers_or_streamed(const launch_arguments<T> &arguments, rl_error *err) {
  const uint32_t threads = bit_ceil(ceil_div(arguments.columns / WIDTH, VECTORS));
  return threads <= MAX_IN_REGISTERS_BLOCK_THREADS ? launch_in_registers<OP, T, WIDTH, VECTORS>(arguments, threads, err)
                                                   : launch_streamed<OP, T, WIDTH>(arguments, STREAMED_BLOCK_THREADS, err);
}

/* Launches a kernel for rows whose length is a multiple of 16 bytes. A cluster has at least two blocks, because cluster_per_row
 * relies on messages between blocks. */
template <class OP, class T>
static int launch_aligned(const launch_arguments<T> &arguments, bool clusters_supported, rl_error *err) {
  enum { WIDTH = 16 / sizeof(T), VECTORS = 4 };
  typedef cluster_config_for<OP, T> CONFIG;
  const uint32_t vectors = arguments.columns / WIDTH,
                 blocks = 2 * bit_ceil(ceil_div(vectors, 2 * CONFIG::COMPUTE_THREADS * CONFIG::VECTORS_PER_THREAD));
  bool in_clusters = clusters_supported && vectors > MAX_IN_REGISTERS_BLOCK_THREADS * VECTORS && blocks <= MAX_CLUSTER_BLOCKS;
  const int rc = in_clusters ? launch_cluster_per_row<OP, T>(arguments, blocks, &in_clusters, err) : 0;
  return in_clusters ? rc : launch_in_registers_or_streamed<OP, T, WIDTH, VECTORS>(arguments, err);
}

/* Chooses the kernel and launches it. If the length of a row is no multiple of 16 bytes, not all rows are aligned to 16 bytes;
 * they are then read element by element. */
template <class OP, class T> static int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { SCALAR /* index of the variant */, WIDTH = 16 / sizeof(T), MAX_ELEMENTS_PER_THREAD = 16 };
  const launch_arguments<T> arguments = {(const T *)instance->in[0],
                                         (const T *)instance->in[1],
                                         (const T *)instance->in[2],
                                         (T *)instance->out,
                                         (uint32_t)instance->shape.size[RL_ROWS],
                                         (uint32_t)instance->shape.size[RL_COLUMNS],
                                         (uint32_t *)((const workspace *)instance->engine_state)->next_row_counter,
                                         stream};
  if (instance->variant == SCALAR) return launch_streamed<OP, T, 1>(arguments, BLOCK_THREADS, err);
  if (arguments.columns % WIDTH == 0)
    return launch_aligned<OP, T>(arguments, supports_clusters(instance->base.device->index), err);
  return launch_in_registers_or_streamed<OP, T, 1, MAX_ELEMENTS_PER_THREAD>(arguments, err);
}

template <class OP> static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<OP, T>(instance, stream, err)))
}

}  // namespace rows

/* Defines the CUDA engine of the operator NAME, which is also the name of the struct OP. */
#define RL_KERNEL_CUDA_ROWS(NAME)                                                                                         \
  static const rl_kernel_launcher launcher_of_##NAME = {rows::launch<NAME>, rows::open_workspace, rows::close_workspace}; \
  RL_KERNEL_CUDA_ENGINE(NAME, "cuda", "hand-written", launcher_of_##NAME)

#endif
