/* Kernel for rows that one block cannot hold in registers (rows.cuh): the blocks of a cluster, at most 16, share each row. Needs
 * compute capability 9.0.
 *
 * The clusters are persistent; row n is the n-th row that a cluster processes. Its first STAGES rows are assigned statically, the
 * following ones from an atomic counter, because some clusters get twice the memory bandwidth of others. A compute thread
 * processes the same 16-byte vectors of every row. cp.async prefetches rows into STAGES stages of shared memory, one row per
 * stage.
 *
 * The state of a part of a row is its partial reduction, such as maximum and sum (OP::state, rows.cuh). For each row:
 *   1. each compute warp reduces its part and publishes its state;
 *   2. the reduction warp of each block combines the states of the block's warps, exchanges the block's state with the reduction
 *      warps of the cluster's other blocks, and broadcasts the result to the block's compute warps;
 *   3. each compute warp writes its part of the output.
 * Compute warps do not synchronise with each other. A compute warp does step 1 of row n + READ_AHEAD_ROWS before step 3 of row n,
 * to hide the latency of step 2. In step 3 it reads row n from its stage and prefetches row n + STAGES into the same stage, each
 * vector as soon as it has read the old one.
 *
 * Template parameters:
 *   OP      operator: softmax or a norm (rows.cuh)    CONFIG  cluster_config
 *   T       element type                              STATE   state of a row or of a part: OP::state<M>
 *   M       arithmetic type: float or double          OUTPUT  output function of a row: OP::output<M> */
#ifndef RL_KERNELS_KERNEL_CLUSTER_PER_ROW_CUH
#define RL_KERNELS_KERNEL_CLUSTER_PER_ROW_CUH

#include <type_traits>

#include "clusters.cuh"
#include "kernel/row_access.cuh"

namespace rows {

enum { MAX_CLUSTER_BLOCKS = 16 };

/* Sizes of blocks and pipelines: how the kernel uses the threads, shared memory and registers of a multiprocessor. */
template <int THREADS, int VECTORS, int PIPELINE_STAGES, int READ_AHEAD, int BLOCKS> struct cluster_config {
  enum {
    COMPUTE_THREADS = THREADS, /* of a block */
    COMPUTE_WARPS = COMPUTE_THREADS / WARP_SIZE,
    BLOCK = COMPUTE_THREADS + WARP_SIZE, /* threads of a block, with the reduction warp */
    BLOCKS_PER_SM = BLOCKS,
    VECTORS_PER_THREAD = VECTORS, /* of a row; 16 bytes each */
    STAGES = PIPELINE_STAGES,     /* also the number of rows that are assigned to each cluster statically */
    SHARED_BYTES = 16 * STAGES * VECTORS_PER_THREAD * COMPUTE_THREADS,
    READ_AHEAD_ROWS = READ_AHEAD, /* rows that a compute warp has reduced and not yet written */
    SLOTS = READ_AHEAD_ROWS + 1   /* of exchange_ring */
  };
  static_assert((int)COMPUTE_WARPS <= (int)MAX_CLUSTER_BLOCKS,
                "the reduction warp has a lane for each compute warp and each block");
  /* WAR with two slots: the messages of row n + 2 overwrite those of row n, which must have been read. A block sends them after
   * it has received all messages of row n + 1, and every block sends its message of row n + 1 after it has read those of row n.
   */
  static_assert(0 < READ_AHEAD_ROWS, "exchange_ring has at least two slots");
  static_assert((int)READ_AHEAD_ROWS < (int)STAGES, "at least one stage prefetches");
};

/* One block with a deep pipeline per multiprocessor. If arithmetic takes about as long as memory traffic (COMPUTE_HEAVY), two
 * blocks, so that one computes while the other waits. */
template <class OP, class T> using cluster_config_for =
    std::conditional_t<OP::template COMPUTE_HEAVY<T>, cluster_config<352, 6, 3, 1, 2>, cluster_config<512, 4, 6, 2, 1>>;

/* --- a block's part of a row ------------------------------------------------------------------------------------------------ */

/* Vectors first, first + 1, … first + count - 1 of a row. */
struct vector_range {
  uint32_t first, count;
};

/* Returns the calling block's part of a row of `vectors` vectors. blocks: of the cluster. */
__device__ static inline vector_range range_of_block(uint32_t vectors, uint32_t blocks) {
  const uint32_t per_block = (vectors + blocks - 1) / blocks, first = min(rank_in_cluster() * per_block, vectors);
  return {first, min(per_block, vectors - first)};
}

/* Returns how many of a block's `count` vectors the calling warp processes. Thread i processes vectors i, i + threads, … */
__device__ static inline uint32_t vectors_of_warp(uint32_t count, uint32_t threads) {
  uint32_t vectors = 0;
  for (uint32_t first = threadIdx.x / WARP_SIZE * WARP_SIZE; first < count; first += threads)
    vectors += min(WARP_SIZE, count - first);
  return vectors;
}

/* The calling compute thread's vectors in one stage: operator[](i) is its i-th vector of the row. */
template <class CONFIG, class T> struct smem_stage {
  enum { WIDTH = 16 / sizeof(T) };
  typedef vec<T, WIDTH> vector;
  vector *vectors;

  __device__ vector &operator[](int i) const { return vectors[i * CONFIG::COMPUTE_THREADS]; }
  /* Called on stage 0: returns the stage of row n. */
  __device__ smem_stage of_row(uint32_t n) const {
    return {vectors + n % CONFIG::STAGES * CONFIG::VECTORS_PER_THREAD * CONFIG::COMPUTE_THREADS};
  }
  /* thread_row: address of the thread's first vector of the row in global memory. */
  __device__ void prefetch_vector(int i, const T *thread_row) const {
    cp_async_16(&(*this)[i], (const vector *)thread_row + i * CONFIG::COMPUTE_THREADS);
  }
  /* Commits one cp.async group; it is empty if thread_row is NULL. */
  __device__ void prefetch(const T *thread_row, uint32_t valid_vectors) const {
#pragma unroll
    for (int i = 0; i < CONFIG::VECTORS_PER_THREAD; i++)
      if (thread_row && i < valid_vectors) prefetch_vector(i, thread_row);
    cp_async_commit_group();
  }
};

/* --- scheduling and exchange ------------------------------------------------------------------------------------------------ */

/* Assigns a cluster its rows after the static ones, from an atomic counter: each value of the counter is a ticket for one row of
 * the table. One warp of the cluster uses it. It takes each ticket one row ahead, to hide the latency of the atomic; so each
 * cluster takes one ticket for which there is no row. The cluster that takes the last of these resets the counter for the next
 * launch. */
struct row_scheduler {
  uint32_t *next_row_counter, clusters, rows, static_rows; /* clusters of the grid; rows of the table; rows assigned statically */
  uint32_t prefetched_ticket;                              /* in lane 0 */

  __device__ void take_ticket() {
    if (threadIdx.x % WARP_SIZE == 0) prefetched_ticket = atomicAdd(next_row_counter, 1);
  }
  /* Returns the next row; `rows` or more if none is left. */
  __device__ uint32_t next() {
    const uint32_t last_ticket = (rows > static_rows ? rows - static_rows : 0) + clusters - 1;
    if (threadIdx.x % WARP_SIZE == 0 && prefetched_ticket == last_ticket) *next_row_counter = 0;
    const uint32_t row = static_rows + __shfl_sync(~0u, prefetched_ticket, 0);
    if (row < rows) take_ticket();
    return row;
  }
};

/* Message of a block's reduction warp to the reduction warp of every block of the cluster, also its own. */
template <class STATE> struct block_message {
  STATE state;       /* of the block's part of row n */
  uint32_t next_row; /* from block 0: index in the table of row n + STAGES */
};
template <class STATE> union padded_message {
  block_message<STATE> message;
  uint4 words[(sizeof(block_message<STATE>) + 15) / 16];
};

/* Exchange between a block's warps and between blocks, in shared memory: a ring of SLOTS slots; row n (the n-th
 * row of the cluster) uses slot n % SLOTS.
 *
 * WAR: a compute warp publishes row n after it has read the result of row n - SLOTS, so that no step of row n overwrites values
 * of row n - SLOTS that are still needed. An arrive on an mbarrier orders only the accesses of the lane that arrives; where it
 * stands for the whole warp, __syncwarp precedes it. */
template <class CONFIG, class STATE, class OUTPUT> struct exchange_ring {
  enum { SLOTS = CONFIG::SLOTS, COMPUTE_WARPS = CONFIG::COMPUTE_WARPS };
  STATE warp_states[SLOTS][COMPUTE_WARPS];
  padded_message<STATE> block_messages[SLOTS][MAX_CLUSTER_BLOCKS];
  OUTPUT outputs[SLOTS][COMPUTE_WARPS];
  uint32_t next_rows[SLOTS];
  mbarrier warps_full[SLOTS], cluster_full[SLOTS], result_full[SLOTS];

  __device__ void expect_messages(uint32_t slot, uint32_t blocks) {
    mbarrier_arrive_expect_tx(&cluster_full[slot], blocks * sizeof(padded_message<STATE>));
  }
  /* Call it before the first cluster_barrier. blocks: of the cluster. */
  __device__ void init(uint32_t blocks) {
    if (threadIdx.x > 0) return;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      mbarrier_init(&warps_full[slot], COMPUTE_WARPS);
      mbarrier_init(&cluster_full[slot], 1);
      mbarrier_init(&result_full[slot], COMPUTE_WARPS);
      expect_messages(slot, blocks);
    }
  }
  /* Call it after the last cluster_barrier. */
  __device__ void invalidate() {
    if (threadIdx.x > 0) return;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      mbarrier_inval(&warps_full[slot]);
      mbarrier_inval(&cluster_full[slot]);
      mbarrier_inval(&result_full[slot]);
    }
  }
  /* Waits until the mbarrier of row n's slot has completed the phase of row n. */
  __device__ static void wait_until_full(mbarrier *barriers, uint32_t n) {
    while (!mbarrier_try_wait_cta(&barriers[n % SLOTS], n / SLOTS + 1)) {
    }
  }

  /* --- called by compute warps */
  /* Publishes the state of the calling warp's part of row n. */
  __device__ void publish(uint32_t n, const STATE &state) {
    __syncwarp(); /* WAR: every lane has read this slot's result for row n - SLOTS */
    if (threadIdx.x % WARP_SIZE > 0) return;
    warp_states[n % SLOTS][threadIdx.x / WARP_SIZE] = state;
    mbarrier_arrive(&warps_full[n % SLOTS]);
  }
  /* Returns the calling warp's output function for row n, and row n + STAGES of the cluster in *next_row. */
  __device__ OUTPUT wait_result(uint32_t n, uint32_t *next_row) {
    wait_until_full(result_full, n);
    *next_row = next_rows[n % SLOTS];
    return outputs[n % SLOTS][threadIdx.x / WARP_SIZE];
  }

  /* --- called by the reduction warp */
  /* Waits for all compute warps. Lane i returns the state of compute warp i. */
  __device__ STATE collect(uint32_t n) {
    wait_until_full(warps_full, n);
    return threadIdx.x % WARP_SIZE < COMPUTE_WARPS ? warp_states[n % SLOTS][threadIdx.x % WARP_SIZE] : STATE::empty();
  }
  /* Lane i sends `sent` to block i and returns the message of block i. */
  __device__ block_message<STATE> exchange(uint32_t n, uint32_t blocks, const block_message<STATE> &sent) {
    const uint32_t slot = n % SLOTS, lane = threadIdx.x % WARP_SIZE;
    padded_message<STATE> padded;
    padded.message = sent;
    if (lane < blocks)
#pragma unroll
      for (int i = 0; i < sizeof padded / sizeof *padded.words; i++)
        st_async(lane, &block_messages[slot][rank_in_cluster()].words[i], padded.words[i], &cluster_full[slot]);
    while (!mbarrier_try_wait(&cluster_full[slot], n / SLOTS + 1)) {
    }
    if (lane == 0) expect_messages(slot, blocks);
    return lane < blocks ? block_messages[slot][lane].message : block_message<STATE>{STATE::empty(), 0};
  }
  /* Publishes the result. Lane i has the output function of compute warp i. */
  __device__ void broadcast(uint32_t n, const OUTPUT &output, uint32_t next_row) {
    const uint32_t slot = n % SLOTS, lane = threadIdx.x % WARP_SIZE;
    /* WAR: every lane has collected the row's states, so every compute warp has read this slot's result for row n - SLOTS. */
    __syncwarp();
    if (lane == 0) next_rows[slot] = next_row;
    if (lane < COMPUTE_WARPS) {
      outputs[slot][lane] = output;
      mbarrier_arrive(&result_full[slot]);
    }
  }
};

/* --- the kernel ------------------------------------------------------------------------------------------------------------- */

/* Indices in the table of COUNT successive rows of a cluster. An index that is not less than the table's number of rows means no
 * row. */
template <int COUNT> struct row_window {
  uint32_t rows[COUNT];
  /* Sets the first `leading` indices to no_row, the others to first, first + stride, … */
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

/* Code of the reduction warp. block_elements: number of elements in the block's part of a row. blocks: of the cluster. */
template <class CONFIG, class M, class STATE, class OUTPUT>
__device__ static void reduction_warp(exchange_ring<CONFIG, STATE, OUTPUT> &ring, row_scheduler scheduler, uint32_t first_row,
                                      uint32_t block_elements, uint32_t columns, uint32_t blocks) {
  const element_count<M> elements_of_block(block_elements), elements_of_row(columns);
  const lane_group group = {MAX_CLUSTER_BLOCKS};
  const bool is_scheduler = rank_in_cluster() == 0;
  row_window<CONFIG::STAGES> window(0, first_row, scheduler.clusters, scheduler.rows);
  if (is_scheduler) scheduler.take_ticket();
  cluster_barrier(); /* every block's mbarriers are initialised before messages are sent to it */
  for (uint32_t n = 0; window[0] < scheduler.rows; n++) {
    const uint32_t scheduled_row = is_scheduler ? scheduler.next() : 0;
    const STATE warp_state = ring.collect(n);
    const block_message<STATE> received = ring.exchange(n, blocks, {warp_state.reduced(elements_of_block, group), scheduled_row});
    const uint32_t next_row = __shfl_sync(~0u, received.next_row, 0);
    ring.broadcast(n, received.state.reduced(elements_of_row, group).output(warp_state, elements_of_row), next_row);
    window.advance(next_row);
  }
}

/* Input x and output y [rows][columns], weights w and biases b [columns]. */
template <class T> struct row_table {
  const T *x, *w, *b;
  T *y;
  uint32_t rows, columns;
};

/* The calling thread's vectors of w and b, which are the same for every row. */
template <class CONFIG, class T> struct weight_fragments {
  row_fragment<T, 16 / sizeof(T), CONFIG::VECTORS_PER_THREAD> weights, biases;
};

/* Computes the thread's part of a row from its stage and writes it to y_row. After each vector it prefetches the same vector of
 * next_x_row, unless that is NULL, because reads and writes of global memory delay each other least when they alternate. y_row
 * and next_x_row: addresses of the thread's first vector. */
template <class OP, class CONFIG, class T, class OUTPUT>
__device__ static void write_row(const OUTPUT &output, const smem_stage<CONFIG, T> &stage, uint32_t valid_vectors,
                                 const weight_fragments<CONFIG, T> &weight_vectors, T *y_row, const T *next_x_row) {
  typedef typename smem_stage<CONFIG, T>::vector vector;
#pragma unroll
  for (int i = 0; i < CONFIG::VECTORS_PER_THREAD; i++)
    if (i < valid_vectors) {
      const vector w = optimization_barrier(weight_vectors.weights[i]), b = optimization_barrier(weight_vectors.biases[i]);
      ((vector *)y_row)[i * CONFIG::COMPUTE_THREADS] = output_vector<OP, true>(output, stage[i], w.elements, b.elements, 0);
      if (next_x_row) stage.prefetch_vector(i, next_x_row);
    }
  cp_async_commit_group();
}

/* Returns the state of the calling warp's part of a row. If OP transforms elements (rows.cuh), stores them back in the stage. */
template <class OP, class CONFIG, class STATE, class T, class M>
__device__ static STATE local_reduce(const smem_stage<CONFIG, T> &stage, uint32_t valid_vectors,
                                     const element_count<M> &elements_of_warp) {
  row_fragment<T, smem_stage<CONFIG, T>::WIDTH, CONFIG::VECTORS_PER_THREAD> fragment;
  load(fragment, (const T *)stage.vectors, {0, CONFIG::COMPUTE_THREADS, valid_vectors});
  const STATE state = STATE::from_fragment(fragment, valid_vectors, elements_of_warp, lane_group{WARP_SIZE});
  if constexpr (OP::template TRANSFORMS<T>)
#pragma unroll
    for (int i = 0; i < CONFIG::VECTORS_PER_THREAD; i++)
      if (i < valid_vectors) stage[i] = fragment[i];
  return state;
}

/* Code of the compute warps. range: the block's part of each row. first_row: row 0 of the cluster. clusters: of the grid. */
template <class OP, class CONFIG, class T, class STATE, class OUTPUT>
__device__ static void compute_warps(exchange_ring<CONFIG, STATE, OUTPUT> &ring, void *smem, const row_table<T> &table,
                                     const vector_range &range, uint32_t first_row, uint32_t clusters) {
  enum { WIDTH = 16 / sizeof(T), READ_INDEX = CONFIG::READ_AHEAD_ROWS, PREFETCH_INDEX = CONFIG::STAGES };
  const uint32_t first_vector = range.first + threadIdx.x,
                 valid_vectors = count_strided(threadIdx.x, CONFIG::COMPUTE_THREADS, range.count);
  const element_count<typename arithmetic<T>::type> elements_of_warp(vectors_of_warp(range.count, CONFIG::COMPUTE_THREADS) *
                                                                     WIDTH);
  const smem_stage<CONFIG, T> stage_0 = {(vec<T, WIDTH> *)smem + threadIdx.x};
  /* Address of the thread's first vector in a row of x or y; NULL if there is no such row. */
  const auto thread_row = [&](auto *x_or_y, uint32_t row) {
    return row < table.rows ? x_or_y + (size_t)row * table.columns + first_vector * WIDTH : NULL;
  };
  /* window[0] is the row to write, window[READ_INDEX] the row to reduce, window[PREFETCH_INDEX] the row to prefetch. */
  row_window<PREFETCH_INDEX + 1> window(READ_INDEX, first_row, clusters, table.rows);
#pragma unroll
  for (int i = READ_INDEX; i < PREFETCH_INDEX; i++)
    stage_0.of_row(i - READ_INDEX).prefetch(thread_row(table.x, window[i]), valid_vectors);
  weight_fragments<CONFIG, T> weight_vectors;
  if (OP::WEIGHT_VECTORS > 0) load(weight_vectors.weights, table.w, {first_vector, CONFIG::COMPUTE_THREADS, valid_vectors});
  if (OP::WEIGHT_VECTORS > 1) load(weight_vectors.biases, table.b, {first_vector, CONFIG::COMPUTE_THREADS, valid_vectors});
  cluster_barrier();
  /* Without bounds checks, the compiler interleaves the computation of several vectors. Two weight vectors leave no registers for
   * that. */
  const bool all_vectors_valid = OP::WEIGHT_VECTORS < 2 && __all_sync(~0u, valid_vectors == CONFIG::VECTORS_PER_THREAD);
  for (uint32_t n = 0, drain_iterations = CONFIG::READ_AHEAD_ROWS; drain_iterations > 0 || window[READ_INDEX] < table.rows; n++) {
    if (window[READ_INDEX] < table.rows) {
      cp_async_wait_group<PREFETCH_INDEX - READ_INDEX - 1>();
      ring.publish(n, all_vectors_valid
                          ? local_reduce<OP, CONFIG, STATE>(stage_0.of_row(n), CONFIG::VECTORS_PER_THREAD, elements_of_warp)
                          : local_reduce<OP, CONFIG, STATE>(stage_0.of_row(n), valid_vectors, elements_of_warp));
    } else drain_iterations--;
    /* The stage of row n - READ_AHEAD_ROWS; adding STAGES keeps the number from being negative. */
    const smem_stage<CONFIG, T> stage = stage_0.of_row(n + CONFIG::STAGES - CONFIG::READ_AHEAD_ROWS);
    if (window[0] < table.rows) {
      const OUTPUT output = ring.wait_result(n - CONFIG::READ_AHEAD_ROWS, &window[PREFETCH_INDEX]);
      const auto write = [&](uint32_t vectors) {
        write_row<OP>(output, stage, vectors, weight_vectors, thread_row(table.y, window[0]),
                      thread_row(table.x, window[PREFETCH_INDEX]));
      };
      if (all_vectors_valid) write(CONFIG::VECTORS_PER_THREAD);
      else write(valid_vectors);
    } else stage.prefetch(thread_row(table.x, window[PREFETCH_INDEX]), valid_vectors);
    /* Appends the next statically assigned row. From row STAGES on, wait_result overwrites it before its use. */
    window.advance(window[PREFETCH_INDEX] + clusters);
  }
}

/* blocks: of a cluster. *next_row_counter must be zero, and is zero again after the launch. */
template <class OP, class T>
__global__ void __launch_bounds__(cluster_config_for<OP, T>::BLOCK, cluster_config_for<OP, T>::BLOCKS_PER_SM)
    cluster_per_row(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t rows,
                    uint32_t columns, uint32_t blocks, uint32_t *next_row_counter) {
  typedef cluster_config_for<OP, T> CONFIG;
  typedef typename arithmetic<T>::type M;
  extern __shared__ __align__(16) char smem[];
  __shared__ __align__(16) exchange_ring<CONFIG, typename OP::template state<M>, typename OP::template output<M>> ring;
  const uint32_t clusters = gridDim.x / blocks, first_row = blockIdx.x / blocks;
  const vector_range range = range_of_block(columns / smem_stage<CONFIG, T>::WIDTH, blocks);
  ring.init(blocks);
  if (threadIdx.x < CONFIG::COMPUTE_THREADS)
    compute_warps<OP>(ring, smem, row_table<T>{x, w, b, y, rows, columns}, range, first_row, clusters);
  else
    reduction_warp<CONFIG, M>(ring, {next_row_counter, clusters, rows, CONFIG::STAGES * clusters}, first_row,
                              range.count * smem_stage<CONFIG, T>::WIDTH, columns, blocks);
  cluster_barrier(); /* no block exits before all messages to it have been received */
  ring.invalidate();
}

}  // namespace rows

#endif
