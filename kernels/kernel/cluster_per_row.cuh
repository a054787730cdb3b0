/* Kernel for rows that are too long for one block to hold (rows.cuh): the blocks of a cluster, at most 16, share each row. Needs
 * compute capability 9.0.
 *
 * Clusters are persistent. Each starts with STAGES statically assigned rows and takes further ones from an atomic counter,
 * because some clusters get twice the memory bandwidth of others. A compute thread processes the same 16-byte vectors of every
 * row. Shared memory has STAGES stages, one per row, into which cp.async prefetches the next rows.
 *
 * Compute warps do not synchronise with each other: each publishes the state (the partial reduction, such as maximum and sum)
 * of its part of a row and continues with the next row. One more warp of each block, the reduction warp, combines the states of
 * its block, exchanges the block's state with the reduction warps of the cluster's other blocks and broadcasts the result to the
 * compute warps. So it alone waits for other blocks. Compute warps read READ_AHEAD_ROWS rows ahead of what they write: a warp
 * reads its part of row n + READ_AHEAD_ROWS before it writes its part of row n. While it writes row n from its stage, it refills
 * each vector of that stage as soon as it has read the vector.
 *
 * Template parameters: OP the operator, softmax or a norm (rows.cuh), T element type, M its arithmetic type, C cluster_config,
 * S state of a row (OP::state<M>), OUTPUT output function of a row (OP::output<M>). */
#ifndef RL_KERNELS_KERNEL_CLUSTER_PER_ROW_CUH
#define RL_KERNELS_KERNEL_CLUSTER_PER_ROW_CUH

#include <type_traits>

#include "clusters.cuh"
#include "kernel/row_access.cuh"

namespace rows {

enum { MAX_CLUSTER = 16 }; /* blocks */

/* How the kernel uses the threads, shared memory and registers of a multiprocessor. */
template <int THREADS, int VECTORS, int PIPELINE_STAGES, int READ_AHEAD, int BLOCKS> struct cluster_config {
  enum {
    COMPUTE_THREADS = THREADS, /* of a block */
    COMPUTE_WARPS = COMPUTE_THREADS / WARP_SIZE,
    BLOCK = COMPUTE_THREADS + WARP_SIZE, /* with the reduction warp */
    BLOCKS_PER_SM = BLOCKS,
    VECTORS_PER_THREAD = VECTORS, /* of a row */
    STAGES = PIPELINE_STAGES,     /* rows in shared memory; also the rows that each cluster is assigned statically */
    SHARED_BYTES = 16 * STAGES * VECTORS_PER_THREAD * COMPUTE_THREADS,
    READ_AHEAD_ROWS = READ_AHEAD, /* rows that a warp has read and not yet written */
    SLOTS = READ_AHEAD_ROWS + 1   /* of exchange_ring */
  };
  static_assert((int)COMPUTE_WARPS <= (int)MAX_CLUSTER, "the reduction warp has a lane for each compute warp and each block");
  /* With two slots, the messages of row n + 2 reuse the slot of row n. A block sends them only after it has received every
   * block's message of row n + 1, and a block sends that one only after it has read its messages of row n. So no unread message
   * is overwritten. */
  static_assert(0 < READ_AHEAD_ROWS, "exchange_ring has at least two slots");
  static_assert((int)READ_AHEAD_ROWS < (int)STAGES, "at least one stage prefetches");
};

/* One block with a deep pipeline per multiprocessor; where arithmetic takes about as long as memory traffic, two blocks, of which
 * one computes while the other waits. */
template <class OP, class T> using cluster_config_for =
    std::conditional_t<OP::template COMPUTE_HEAVY<T>, cluster_config<352, 6, 3, 1, 2>, cluster_config<512, 4, 6, 2, 1>>;

/* --- a block's part of a row ------------------------------------------------------------------------------------------------ */

/* Neighbouring vectors of a row. */
struct vector_range {
  uint32_t first, count;
};

__device__ static inline vector_range range_of_block(uint32_t vectors, uint32_t blocks) {
  const uint32_t per_block = (vectors + blocks - 1) / blocks, first = min(rank_in_cluster() * per_block, vectors);
  return {first, min(per_block, vectors - first)};
}

/* Returns how many of a block's `count` vectors the calling warp processes, when thread i processes vectors i, i + threads, … */
__device__ static inline uint32_t vectors_of_warp(uint32_t count, uint32_t threads) {
  uint32_t vectors = 0;
  for (uint32_t first = threadIdx.x / WARP_SIZE * WARP_SIZE; first < count; first += threads)
    vectors += min(WARP_SIZE, count - first);
  return vectors;
}

/* The calling compute thread's vectors in one stage; [i] is its i-th vector of the row. */
template <class C, class T> struct smem_stage {
  enum { WIDTH = 16 / sizeof(T) };
  typedef vec<T, WIDTH> vector;
  vector *vectors;

  __device__ vector &operator[](int i) const { return vectors[i * C::COMPUTE_THREADS]; }
  /* Returns the stage that holds the cluster's n-th row. Call it on the stage of row 0. */
  __device__ smem_stage of_row(uint32_t n) const {
    return {vectors + n % C::STAGES * C::VECTORS_PER_THREAD * C::COMPUTE_THREADS};
  }
  /* thread_row: address of the thread's first vector of the row in global memory. */
  __device__ void prefetch_vector(int i, const T *thread_row) const {
    cp_async_16(&(*this)[i], (const vector *)thread_row + i * C::COMPUTE_THREADS);
  }
  /* Commits one group of copies; an empty one when thread_row is NULL. */
  __device__ void prefetch(const T *thread_row, uint32_t valid_vectors) const {
#pragma unroll
    for (int i = 0; i < C::VECTORS_PER_THREAD; i++)
      if (thread_row && i < valid_vectors) prefetch_vector(i, thread_row);
    cp_async_commit_group();
  }
};

/* --- scheduling and exchange ------------------------------------------------------------------------------------------------ */

/* Assigns a cluster its rows beyond the static ones, from an atomic counter: each value of the counter is a ticket for one row.
 * One warp uses it, and takes a ticket one row ahead. Each cluster takes one ticket too many; the cluster that takes the last
 * ticket resets the counter for the next launch. */
struct row_scheduler {
  uint32_t *next_row_counter, clusters, rows, static_rows; /* static_rows: of all clusters together */
  uint32_t prefetched_ticket;                              /* in lane 0 */

  __device__ void take_ticket() {
    if (threadIdx.x % WARP_SIZE == 0) prefetched_ticket = atomicAdd(next_row_counter, 1);
  }
  /* Returns `rows` or more when none is left. */
  __device__ uint32_t next() {
    const uint32_t last = (rows > static_rows ? rows - static_rows : 0) + clusters - 1;
    if (threadIdx.x % WARP_SIZE == 0 && prefetched_ticket == last) *next_row_counter = 0;
    const uint32_t row = static_rows + __shfl_sync(~0u, prefetched_ticket, 0);
    if (row < rows) take_ticket();
    return row;
  }
};

/* What a block's reduction warp sends to the reduction warps of all blocks of the cluster, its own included. */
template <class S> struct message {
  S state;           /* of the block's part of the row */
  uint32_t next_row; /* from block 0: the row that the cluster processes STAGES rows later */
};
template <class S> union padded_message {
  message<S> content;
  uint4 words[(sizeof(message<S>) + 15) / 16];
};

/* Exchange between a block's warps and between blocks, in shared memory: a ring of SLOTS slots, row n in slot n % SLOTS. A warp
 * publishes row n only after it has read the result of row n - SLOTS. An mbarrier orders the accesses of the arriving lane; for
 * the warp's other lanes, __syncwarp must come before. */
template <class C, class S, class OUTPUT> struct exchange_ring {
  enum { SLOTS = C::SLOTS, COMPUTE_WARPS = C::COMPUTE_WARPS };
  S warp_states[SLOTS][COMPUTE_WARPS];
  padded_message<S> block_messages[SLOTS][MAX_CLUSTER];
  OUTPUT outputs[SLOTS][COMPUTE_WARPS];
  uint32_t next_rows[SLOTS];
  mbarrier warps_full[SLOTS], cluster_full[SLOTS], result_full[SLOTS];

  __device__ void expect_messages(uint32_t slot, uint32_t blocks) {
    mbarrier_arrive_expect_tx(&cluster_full[slot], blocks * sizeof(padded_message<S>));
  }
  /* Before the first cluster_barrier. */
  __device__ void init(uint32_t blocks) {
    if (threadIdx.x > 0) return;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      mbarrier_init(&warps_full[slot], COMPUTE_WARPS);
      mbarrier_init(&cluster_full[slot], 1);
      mbarrier_init(&result_full[slot], COMPUTE_WARPS);
      expect_messages(slot, blocks);
    }
  }
  /* After the last cluster_barrier. */
  __device__ void invalidate() {
    if (threadIdx.x > 0) return;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      mbarrier_inval(&warps_full[slot]);
      mbarrier_inval(&cluster_full[slot]);
      mbarrier_inval(&result_full[slot]);
    }
  }
  /* Waits until the mbarrier of the row's slot has completed the phase that belongs to the row. */
  __device__ static void wait_until_full(mbarrier *barriers, uint32_t row) {
    while (!mbarrier_try_wait_cta(&barriers[row % SLOTS], row / SLOTS + 1)) {
    }
  }

  /* --- called by a compute warp */
  __device__ void publish(uint32_t row, const S &state) {
    __syncwarp(); /* WAR: every lane has read this slot's result for row - SLOTS */
    if (threadIdx.x % WARP_SIZE > 0) return;
    warp_states[row % SLOTS][threadIdx.x / WARP_SIZE] = state;
    mbarrier_arrive(&warps_full[row % SLOTS]);
  }
  __device__ OUTPUT wait_result(uint32_t row, uint32_t *next_row) {
    wait_until_full(result_full, row);
    *next_row = next_rows[row % SLOTS];
    return outputs[row % SLOTS][threadIdx.x / WARP_SIZE];
  }

  /* --- called by the reduction warp */
  /* Lane i returns the state of compute warp i. */
  __device__ S collect(uint32_t row) {
    wait_until_full(warps_full, row);
    return threadIdx.x % WARP_SIZE < COMPUTE_WARPS ? warp_states[row % SLOTS][threadIdx.x % WARP_SIZE] : S::empty();
  }
  /* Lane i sends `sent` to block i and returns the message of block i. */
  __device__ message<S> exchange(uint32_t row, uint32_t blocks, const message<S> &sent) {
    const uint32_t slot = row % SLOTS, lane = threadIdx.x % WARP_SIZE;
    padded_message<S> padded;
    padded.content = sent;
    if (lane < blocks)
#pragma unroll
      for (int i = 0; i < sizeof padded / sizeof *padded.words; i++)
        st_async(lane, &block_messages[slot][rank_in_cluster()].words[i], padded.words[i], &cluster_full[slot]);
    while (!mbarrier_try_wait(&cluster_full[slot], row / SLOTS + 1)) {
    }
    if (lane == 0) expect_messages(slot, blocks);
    return lane < blocks ? block_messages[slot][lane].content : message<S>{S::empty(), 0};
  }
  /* Lane i has the output function for compute warp i. */
  __device__ void broadcast(uint32_t row, const OUTPUT &output, uint32_t next_row) {
    const uint32_t slot = row % SLOTS, lane = threadIdx.x % WARP_SIZE;
    /* WAR: a warp publishes this row only after it has read the result of row - SLOTS from the slot, and every lane here has
     * collected what the warps published. */
    __syncwarp();
    if (lane == 0) next_rows[slot] = next_row;
    if (lane < COMPUTE_WARPS) {
      outputs[slot][lane] = output;
      mbarrier_arrive(&result_full[slot]);
    }
  }
};

/* --- the kernel ------------------------------------------------------------------------------------------------------------- */

/* The indices of the next COUNT rows of a cluster, in the order in which it processes them. An index that is not less than the
 * number of rows means no row. */
template <int COUNT> struct row_window {
  uint32_t rows[COUNT];
  /* rows[leading], rows[leading + 1], … are first, first + stride, …; those before are no_row. */
  __device__ row_window(int leading, uint32_t first, uint32_t stride, uint32_t no_row) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) rows[i] = i < leading ? no_row : first + (i - leading) * stride;
  }
  __device__ uint32_t &operator[](int i) { return rows[i]; }
  __device__ void advance(uint32_t next) {
#pragma unroll
    for (int i = 0; i + 1 < COUNT; i++) rows[i] = rows[i + 1];
    rows[COUNT - 1] = next;
  }
};

template <class C, class M, class S, class OUTPUT>
__device__ static void reduction_warp(exchange_ring<C, S, OUTPUT> &ring, row_scheduler scheduler, uint32_t first_row,
                                      uint32_t block_elements, uint32_t columns, uint32_t blocks) {
  const element_count<M> elements_of_block(block_elements), elements_of_row(columns);
  const lane_group group = {MAX_CLUSTER};
  const bool is_scheduler = rank_in_cluster() == 0;
  row_window<C::STAGES> window(0, first_row, scheduler.clusters, scheduler.rows);
  if (is_scheduler) scheduler.take_ticket();
  cluster_barrier(); /* every block's mbarriers are initialised before messages are sent to it */
  for (uint32_t n = 0; window[0] < scheduler.rows; n++) {
    const uint32_t scheduled_row = is_scheduler ? scheduler.next() : 0;
    const S warp_state = ring.collect(n);
    const message<S> received = ring.exchange(n, blocks, {warp_state.reduced(elements_of_block, group), scheduled_row});
    const uint32_t next_row = __shfl_sync(~0u, received.next_row, 0);
    ring.broadcast(n, received.state.reduced(elements_of_row, group).output(warp_state, elements_of_row), next_row);
    window.advance(next_row);
  }
}

/* A table of rows with the weight vectors that all rows share. */
template <class T> struct row_table {
  const T *x, *w, *b;
  T *y;
  uint32_t rows, columns;
};

/* The calling thread's vectors of w and b: the same for every row. */
template <class C, class T> struct weight_fragments { row_fragment<T, 16 / sizeof(T), C::VECTORS_PER_THREAD> weights, biases; };

/* Writes the thread's part of a row from its stage. Refills each vector from next_row (unless that is NULL) as soon as it has
 * read the vector, because reads and writes of global memory delay each other least when they alternate. */
template <class OP, class C, class T, class OUTPUT>
__device__ static void write_row(const OUTPUT &output, const smem_stage<C, T> &stage, uint32_t valid_vectors,
                                 const weight_fragments<C, T> &weight_vectors, T *row, const T *next_row) {
  typedef typename smem_stage<C, T>::vector vector;
#pragma unroll
  for (int i = 0; i < C::VECTORS_PER_THREAD; i++)
    if (i < valid_vectors) {
      const vector w = optimization_barrier(weight_vectors.weights[i]), b = optimization_barrier(weight_vectors.biases[i]);
      ((vector *)row)[i * C::COMPUTE_THREADS] = output_vector<OP, true>(output, stage[i], w.elements, b.elements, 0);
      if (next_row) stage.prefetch_vector(i, next_row);
    }
  cp_async_commit_group();
}

/* Returns the state of the calling warp's part of a row. If OP transforms elements, the stage holds the transformed ones. */
template <class OP, class C, class S, class T, class M>
__device__ static S local_reduce(const smem_stage<C, T> &stage, uint32_t valid_vectors,
                                 const element_count<M> &elements_of_warp) {
  row_fragment<T, smem_stage<C, T>::WIDTH, C::VECTORS_PER_THREAD> fragment;
  load(fragment, (const T *)stage.vectors, {0, C::COMPUTE_THREADS, valid_vectors});
  const S state = S::from_fragment(fragment, valid_vectors, elements_of_warp, lane_group{WARP_SIZE});
  if constexpr (OP::template TRANSFORMS<T>)
#pragma unroll
    for (int i = 0; i < C::VECTORS_PER_THREAD; i++)
      if (i < valid_vectors) stage[i] = fragment[i];
  return state;
}

template <class OP, class C, class T, class S, class OUTPUT>
__device__ static void compute_warps(exchange_ring<C, S, OUTPUT> &ring, void *smem, const row_table<T> &table,
                                     const vector_range &range, uint32_t first_row, uint32_t clusters) {
  enum { WIDTH = 16 / sizeof(T), READ_INDEX = C::READ_AHEAD_ROWS, PREFETCH_INDEX = C::STAGES };
  const uint32_t first = range.first + threadIdx.x, valid_vectors = count_strided(threadIdx.x, C::COMPUTE_THREADS, range.count);
  const element_count<typename arithmetic<T>::type> elements_of_warp(vectors_of_warp(range.count, C::COMPUTE_THREADS) * WIDTH);
  const smem_stage<C, T> stages = {(vec<T, WIDTH> *)smem + threadIdx.x};
  const auto row_of = [&](auto *elements, uint32_t row) {
    return row < table.rows ? elements + (size_t)row * table.columns + first * WIDTH : NULL;
  };
  /* window[0] is the row to write, window[READ_INDEX] the row to read, window[PREFETCH_INDEX] the row to prefetch. */
  row_window<PREFETCH_INDEX + 1> window(READ_INDEX, first_row, clusters, table.rows);
#pragma unroll
  for (int i = READ_INDEX; i < PREFETCH_INDEX; i++)
    stages.of_row(i - READ_INDEX).prefetch(row_of(table.x, window[i]), valid_vectors);
  weight_fragments<C, T> weight_vectors;
  if (OP::WEIGHT_VECTORS > 0) load(weight_vectors.weights, table.w, {first, C::COMPUTE_THREADS, valid_vectors});
  if (OP::WEIGHT_VECTORS > 1) load(weight_vectors.biases, table.b, {first, C::COMPUTE_THREADS, valid_vectors});
  cluster_barrier();
  /* Without bounds checks several vectors are computed at once; two weight vectors leave no registers for that. */
  const bool all_vectors_valid = OP::WEIGHT_VECTORS < 2 && __all_sync(~0u, valid_vectors == C::VECTORS_PER_THREAD);
  for (uint32_t n = 0, drain_iterations = C::READ_AHEAD_ROWS; drain_iterations > 0 || window[READ_INDEX] < table.rows; n++) {
    if (window[READ_INDEX] < table.rows) {
      cp_async_wait_group<PREFETCH_INDEX - READ_INDEX - 1>();
      ring.publish(n, all_vectors_valid ? local_reduce<OP, C, S>(stages.of_row(n), C::VECTORS_PER_THREAD, elements_of_warp)
                                        : local_reduce<OP, C, S>(stages.of_row(n), valid_vectors, elements_of_warp));
    } else drain_iterations--;
    const smem_stage<C, T> stage =
        stages.of_row(n + C::STAGES - C::READ_AHEAD_ROWS); /* of row n - READ_AHEAD_ROWS, without a negative number */
    if (window[0] < table.rows) {
      const OUTPUT output = ring.wait_result(n - C::READ_AHEAD_ROWS, &window[PREFETCH_INDEX]);
      const auto write = [&](uint32_t vectors) {
        write_row<OP>(output, stage, vectors, weight_vectors, row_of(table.y, window[0]),
                      row_of(table.x, window[PREFETCH_INDEX]));
      };
      if (all_vectors_valid) write(C::VECTORS_PER_THREAD);
      else write(valid_vectors);
    } else stage.prefetch(row_of(table.x, window[PREFETCH_INDEX]), valid_vectors);
    /* The new window[PREFETCH_INDEX] is right while rows are statically assigned; later, wait_result overwrites it before use. */
    window.advance(window[PREFETCH_INDEX] + clusters);
  }
}

/* blocks: number of blocks in a cluster. *next_row_counter must be zero, and is zero again after the launch. */
template <class OP, class T>
__global__ void __launch_bounds__(cluster_config_for<OP, T>::BLOCK, cluster_config_for<OP, T>::BLOCKS_PER_SM)
    cluster_per_row(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t rows,
                    uint32_t columns, uint32_t blocks, uint32_t *next_row_counter) {
  typedef cluster_config_for<OP, T> C;
  typedef typename arithmetic<T>::type M;
  extern __shared__ __align__(16) char smem[];
  __shared__ __align__(16) exchange_ring<C, typename OP::template state<M>, typename OP::template output<M>> ring;
  const uint32_t clusters = gridDim.x / blocks, first_row = blockIdx.x / blocks;
  const vector_range range = range_of_block(columns / smem_stage<C, T>::WIDTH, blocks);
  ring.init(blocks);
  if (threadIdx.x < C::COMPUTE_THREADS)
    compute_warps<OP>(ring, smem, row_table<T>{x, w, b, y, rows, columns}, range, first_row, clusters);
  else
    reduction_warp<C, M>(ring, {next_row_counter, clusters, rows, C::STAGES * clusters}, first_row,
                         range.count * smem_stage<C, T>::WIDTH, columns, blocks);
  cluster_barrier(); /* no block exits while messages are sent to it */
  ring.invalidate();
}

}  // namespace rows

#endif
