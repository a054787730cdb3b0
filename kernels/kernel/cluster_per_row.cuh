/* The kernel of the row operators (softmax and the norms, rows.cuh) for rows that one block cannot hold in registers: the blocks
 * of a thread block cluster, at most 16, share each row. It needs compute capability 9.0.
 *
 * Division of work: the grid has as many clusters as can be resident, and each cluster processes many rows. "Row n" is the n-th
 * row that a cluster processes. Its first STAGES rows are assigned statically. The others are assigned from an atomic counter,
 * because some clusters get twice the memory bandwidth of others. A block has compute warps and one reduction warp. A compute
 * thread processes the same 16-byte vectors of every row.
 *
 * Memory: cp.async prefetches rows into STAGES stages of shared memory, one row per stage. Partial reductions and results go
 * through exchange_ring, also in shared memory.
 *
 * The state of a part of a row is its partial reduction, such as maximum and sum (OP::state, rows.cuh). For each row:
 *   1. each compute warp reduces its part and publishes its state;
 *   2. the reduction warp of each block combines the states of the block's warps, exchanges the block's state with the reduction
 *      warps of the other blocks of the cluster, and broadcasts the result to the compute warps of its block;
 *   3. each compute warp writes its part of the output.
 *
 * Synchronisation: compute warps do not wait for each other; they wait only for the result of step 2 (mbarriers of
 * exchange_ring). To hide the latency of step 2, a compute warp does step 1 of row n + READ_AHEAD_ROWS before step 3 of row n. In
 * step 3 it reads row n from its stage and prefetches row n + STAGES into the same stage, each vector as soon as it has read the
 * old one.
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

/* Sizes of a block and of its pipeline of stages. */
template <int THREADS, int VECTORS, int PIPELINE_STAGES, int READ_AHEAD, int BLOCKS> struct cluster_config {
  enum {
    COMPUTE_THREADS = THREADS, /* compute threads of a block */
    COMPUTE_WARPS = COMPUTE_THREADS / WARP_SIZE,
    BLOCK_THREADS = COMPUTE_THREADS + WARP_SIZE, /* threads of a block, with the reduction warp */
    BLOCKS_PER_SM = BLOCKS,
    VECTORS_PER_THREAD = VECTORS, /* 16-byte vectors of a row that a compute thread processes */
    STAGES = PIPELINE_STAGES,     /* stages of shared memory, and rows that are assigned to each cluster statically */
    SHARED_BYTES = 16 * STAGES * VECTORS_PER_THREAD * COMPUTE_THREADS,
    READ_AHEAD_ROWS = READ_AHEAD, /* rows that a compute warp has reduced but not written yet */
    SLOTS = READ_AHEAD_ROWS + 1   /* slots of exchange_ring */
  };
  static_assert((int)COMPUTE_WARPS <= (int)MAX_CLUSTER_BLOCKS,
                "the reduction warp has a lane for each compute warp and each block");
  /* WAR with two slots: the messages of row n + 2 overwrite those of row n, so every block must have read the messages of row n
   * before any block sends its message of row n + 2. This holds: a block sends its message of row n + 2 after it has received
   * the messages of row n + 1 from all blocks, and each block sends its message of row n + 1 after it has read the messages of
   * row n. */
  static_assert(0 < READ_AHEAD_ROWS, "exchange_ring has at least two slots");
  static_assert((int)READ_AHEAD_ROWS < (int)STAGES, "at least one stage prefetches");
};

/* Chooses one block per multiprocessor with a long pipeline. If the arithmetic takes about as long as the memory traffic
 * (COMPUTE_HEAVY), chooses two blocks per multiprocessor, so that one block computes while the other waits for memory. */
template <class OP, class T> using cluster_config_for =
    std::conditional_t<OP::template COMPUTE_HEAVY<T>, cluster_config<352, 6, 3, 1, 2>, cluster_config<512, 4, 6, 2, 1>>;

/* --- a block's part of a row ------------------------------------------------------------------------------------------------ */

/* The vectors first, first + 1, …, first + count - 1 of a row. */
struct vector_range {
  uint32_t first, count;
};

/* Returns the calling block's part of a row of `vectors` vectors. blocks: number of blocks of the cluster. */
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

/* The vectors of a row that the calling compute thread has in one stage of shared memory: operator[](i) is its i-th vector. */
template <class CONFIG, class T> struct smem_stage {
  enum { WIDTH = 16 / sizeof(T) };
  typedef vec<T, WIDTH> vector;
  vector *vectors;

  __device__ vector &operator[](int i) const { return vectors[i * CONFIG::COMPUTE_THREADS]; }
  /* Returns the stage of row n. Call it on stage 0. */
  __device__ smem_stage of_row(uint32_t n) const {
    return {vectors + n % CONFIG::STAGES * CONFIG::VECTORS_PER_THREAD * CONFIG::COMPUTE_THREADS};
  }
  /* Begins to copy vector i of a row into this stage. thread_row: address of the thread's first vector of the row in global
   * memory. */
  __device__ void prefetch_vector(int i, const T *thread_row) const {
    cp_async_16(&(*this)[i], (const vector *)thread_row + i * CONFIG::COMPUTE_THREADS);
  }
  /* Begins to copy the thread's part of a row into this stage, and commits the copies as one cp.async group. thread_row: as in
   * prefetch_vector; NULL: the group is empty. */
  __device__ void prefetch(const T *thread_row, uint32_t valid_vectors) const {
#pragma unroll
    for (int i = 0; i < CONFIG::VECTORS_PER_THREAD; i++)
      if (thread_row && i < valid_vectors) prefetch_vector(i, thread_row);
    cp_async_commit_group();
  }
};

/* --- scheduling and exchange ------------------------------------------------------------------------------------------------ */

/* Assigns a cluster the rows that follow the statically assigned ones. Each value of an atomic counter is a ticket for one row of
 * the table. One warp of the cluster uses the scheduler. It takes each ticket one row ahead, to hide the latency of the atomic
 * operation; so each cluster takes one ticket for which there is no row. The cluster that takes the last of these tickets resets
 * the counter for the next launch. */
struct row_scheduler {
  uint32_t *next_row_counter;
  uint32_t clusters;          /* number of clusters of the grid */
  uint32_t rows;              /* number of rows of the table */
  uint32_t static_rows;       /* number of rows that are assigned statically, over all clusters */
  uint32_t prefetched_ticket; /* valid in lane 0 */

  /* Takes the ticket of the row that the next call of next() returns. */
  __device__ void take_ticket() {
    if (threadIdx.x % WARP_SIZE == 0) prefetched_ticket = atomicAdd(next_row_counter, 1);
  }
  /* Returns the index of the cluster's next row in the table, or `rows` or more if no row is left. */
  __device__ uint32_t next() {
    const uint32_t last_ticket = (rows > static_rows ? rows - static_rows : 0) + clusters - 1;
    if (threadIdx.x % WARP_SIZE == 0 && prefetched_ticket == last_ticket) *next_row_counter = 0;
    const uint32_t row = static_rows + __shfl_sync(~0u, prefetched_ticket, 0);
    if (row < rows) take_ticket();
    return row;
  }
};

/* The message that a reduction warp sends to the reduction warps of all blocks of the cluster, including its own. */
template <class STATE> struct block_message {
  STATE state;       /* state of the block's part of row n */
  uint32_t next_row; /* set in the message of block 0: index in the table of row n + STAGES */
};
/* A message with padding to whole 16-byte words, which st.async sends one by one. */
template <class STATE> union padded_message {
  block_message<STATE> message;
  uint4 words[(sizeof(block_message<STATE>) + 15) / 16];
};

/* Exchange of states and results between the warps of a block, and between the blocks of the cluster: a ring of SLOTS slots in
 * the shared memory of each block. Row n (the n-th row of the cluster) uses slot n % SLOTS. Each slot has three mbarriers:
 *
 *   warps_full     completes when all compute warps of the block have published their states
 *   cluster_full   completes when the messages of all blocks have been received
 *   result_full    completes when the result has been broadcast to the compute warps
 *
 * WAR: a compute warp publishes its state of row n after it has read the result of row n - SLOTS. So no step of row n overwrites
 * values of row n - SLOTS that another warp still has to read. An arrive on an mbarrier orders only the accesses of the lane that
 * arrives; where one lane arrives for its warp, __syncwarp precedes the arrive. */
template <class CONFIG, class STATE, class OUTPUT> struct exchange_ring {
  enum { SLOTS = CONFIG::SLOTS, COMPUTE_WARPS = CONFIG::COMPUTE_WARPS };
  STATE warp_states[SLOTS][COMPUTE_WARPS];
  padded_message<STATE> block_messages[SLOTS][MAX_CLUSTER_BLOCKS];
  OUTPUT outputs[SLOTS][COMPUTE_WARPS];
  uint32_t next_rows[SLOTS];
  mbarrier warps_full[SLOTS], cluster_full[SLOTS], result_full[SLOTS];

  /* Arrives on cluster_full for the next phase, which completes when the messages of all blocks have been received. */
  __device__ void expect_messages(uint32_t slot, uint32_t blocks) {
    mbarrier_arrive_expect_tx(&cluster_full[slot], blocks * sizeof(padded_message<STATE>));
  }
  /* Initialises the mbarriers. Call it before the first cluster_barrier. blocks: number of blocks of the cluster. */
  __device__ void init(uint32_t blocks) {
    if (threadIdx.x > 0) return;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      mbarrier_init(&warps_full[slot], COMPUTE_WARPS);
      mbarrier_init(&cluster_full[slot], 1);
      mbarrier_init(&result_full[slot], COMPUTE_WARPS);
      expect_messages(slot, blocks);
    }
  }
  /* Invalidates the mbarriers. Call it after the last cluster_barrier. */
  __device__ void invalidate() {
    if (threadIdx.x > 0) return;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      mbarrier_inval(&warps_full[slot]);
      mbarrier_inval(&cluster_full[slot]);
      mbarrier_inval(&result_full[slot]);
    }
  }
  /* Waits until the mbarrier of the slot of row n has completed the phase of row n. */
  __device__ static void wait_until_full(mbarrier *barriers, uint32_t n) {
    mbarrier_spin_cta(&barriers[n % SLOTS], n / SLOTS + 1);
  }

  /* --- called by compute warps */
  /* Publishes the state of the calling warp's part of row n. */
  __device__ void publish(uint32_t n, const STATE &state) {
    __syncwarp(); /* WAR: every lane has read this slot's result for row n - SLOTS */
    if (threadIdx.x % WARP_SIZE > 0) return;
    warp_states[n % SLOTS][threadIdx.x / WARP_SIZE] = state;
    mbarrier_arrive(&warps_full[n % SLOTS]);
  }
  /* Waits for the result of row n. Returns the calling warp's output function for row n; stores the index in the table of row n +
   * STAGES in *next_row. */
  __device__ OUTPUT wait_result(uint32_t n, uint32_t *next_row) {
    wait_until_full(result_full, n);
    *next_row = next_rows[n % SLOTS];
    return outputs[n % SLOTS][threadIdx.x / WARP_SIZE];
  }

  /* --- called by the reduction warp */
  /* Waits for the states of all compute warps for row n. Lane i returns the state of compute warp i. */
  __device__ STATE collect(uint32_t n) {
    wait_until_full(warps_full, n);
    return threadIdx.x % WARP_SIZE < COMPUTE_WARPS ? warp_states[n % SLOTS][threadIdx.x % WARP_SIZE] : STATE::empty();
  }
  /* Sends the message `sent` to every block and waits for the messages of all blocks for row n. Lane i returns the message of
   * block i. */
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
  /* Publishes the result of row n to the compute warps of this block. Lane i passes the output function of compute warp i. */
  __device__ void broadcast(uint32_t n, const OUTPUT &output, uint32_t next_row) {
    const uint32_t slot = n % SLOTS, lane = threadIdx.x % WARP_SIZE;
    /* WAR: all lanes have collected the states of row n, so every compute warp has read the result of row n - SLOTS in this
     * slot. */
    __syncwarp();
    if (lane == 0) next_rows[slot] = next_row;
    if (lane < COMPUTE_WARPS) {
      outputs[slot][lane] = output;
      mbarrier_arrive(&result_full[slot]);
    }
  }
};

/* --- the kernel ------------------------------------------------------------------------------------------------------------- */

/* COUNT successive rows of a cluster, as indices in the table. An index that is not below the table's number of rows means that
 * there is no row. */
template <int COUNT> struct row_window {
  uint32_t rows[COUNT];
  /* Sets the first `leading` indices to no_row and the others to first, first + stride, … */
  __device__ row_window(int leading, uint32_t first, uint32_t stride, uint32_t no_row) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) rows[i] = i < leading ? no_row : first + (i - leading) * stride;
  }
  __device__ uint32_t &operator[](int i) { return rows[i]; }
  /* Removes the first index and appends `next`. */
  __device__ void advance(uint32_t next) {
#pragma unroll
    for (int i = 0; i + 1 < COUNT; i++) rows[i] = rows[i + 1];
    rows[COUNT - 1] = next;
  }
};

/* Executes step 2 of each row, in the reduction warp. first_row: row 0 of the cluster. block_elements: number of elements of
 * the block's part of a row. blocks: number of blocks of the cluster. */
template <class CONFIG, class M, class STATE, class OUTPUT>
__device__ static void reduction_warp(exchange_ring<CONFIG, STATE, OUTPUT> &ring, row_scheduler scheduler, uint32_t first_row,
                                      uint32_t block_elements, uint32_t columns, uint32_t blocks) {
  const element_count<M> elements_of_block(block_elements), elements_of_row(columns);
  const lane_group group = {MAX_CLUSTER_BLOCKS};
  const bool is_scheduler = rank_in_cluster() == 0;
  row_window<CONFIG::STAGES> window(0, first_row, scheduler.clusters, scheduler.rows);
  if (is_scheduler) scheduler.take_ticket();
  cluster_barrier(); /* the mbarriers of all blocks are initialised before messages are sent to them */
  for (uint32_t n = 0; window[0] < scheduler.rows; n++) {
    const uint32_t scheduled_row = is_scheduler ? scheduler.next() : 0;
    const STATE warp_state = ring.collect(n);
    const block_message<STATE> received = ring.exchange(n, blocks, {warp_state.reduced(elements_of_block, group), scheduled_row});
    const uint32_t next_row = __shfl_sync(~0u, received.next_row, 0);
    ring.broadcast(n, received.state.reduced(elements_of_row, group).output(warp_state, elements_of_row), next_row);
    window.advance(next_row);
  }
}

/* Input x [rows][columns], output y [rows][columns], weights w [columns], biases b [columns]. */
template <class T> struct row_table {
  const T *x, *w, *b;
  T *y;
  uint32_t rows, columns;
};

/* The calling thread's vectors of weights and biases in registers; they are the same for every row. */
template <class CONFIG, class T> struct weight_fragments {
  row_fragment<T, 16 / sizeof(T), CONFIG::VECTORS_PER_THREAD> weights, biases;
};

/* Step 3: computes the thread's part of a row from its stage and writes it to y_row. After each vector it begins to copy the same
 * vector of next_x_row into the stage, unless next_x_row is NULL: reads and writes of global memory delay each other least when
 * they alternate. y_row, next_x_row: addresses of the thread's first vector in these rows. */
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

/* Step 1: returns the state of the calling warp's part of a row. If OP transforms elements (rows.cuh), stores the transformed
 * elements in the stage. */
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

/* The program of the compute warps: steps 1 and 3 of each row. range: the block's part of each row. first_row: row 0 of the
 * cluster. clusters: number of clusters of the grid. */
template <class OP, class CONFIG, class T, class STATE, class OUTPUT>
__device__ static void compute_warps(exchange_ring<CONFIG, STATE, OUTPUT> &ring, void *smem, const row_table<T> &table,
                                     const vector_range &range, uint32_t first_row, uint32_t clusters) {
  enum { WIDTH = 16 / sizeof(T), READ_INDEX = CONFIG::READ_AHEAD_ROWS, PREFETCH_INDEX = CONFIG::STAGES };
  const uint32_t first_vector = range.first + threadIdx.x,
                 valid_vectors = count_strided(threadIdx.x, CONFIG::COMPUTE_THREADS, range.count);
  const element_count<typename arithmetic<T>::type> elements_of_warp(vectors_of_warp(range.count, CONFIG::COMPUTE_THREADS) *
                                                                     WIDTH);
  const smem_stage<CONFIG, T> stage_0 = {(vec<T, WIDTH> *)smem + threadIdx.x};
  /* Returns the address of the thread's first vector in a row of x or y, or NULL if there is no such row. */
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
  /* If all vectors are valid, the loops have no bounds checks, and the compiler interleaves the computation of several vectors.
   * With two weight vectors there are no registers left for that. */
  const bool omits_bounds_checks = OP::WEIGHT_VECTORS < 2 && __all_sync(~0u, valid_vectors == CONFIG::VECTORS_PER_THREAD);
  for (uint32_t n = 0, drain_iterations = CONFIG::READ_AHEAD_ROWS; drain_iterations > 0 || window[READ_INDEX] < table.rows; n++) {
    if (window[READ_INDEX] < table.rows) {
      cp_async_wait_group<PREFETCH_INDEX - READ_INDEX - 1>();
      ring.publish(n, omits_bounds_checks
                          ? local_reduce<OP, CONFIG, STATE>(stage_0.of_row(n), CONFIG::VECTORS_PER_THREAD, elements_of_warp)
                          : local_reduce<OP, CONFIG, STATE>(stage_0.of_row(n), valid_vectors, elements_of_warp));
    } else drain_iterations--;
    /* The stage that holds row n - READ_AHEAD_ROWS. Adding STAGES keeps the index from being negative and does not change the
     * stage. */
    const smem_stage<CONFIG, T> stage = stage_0.of_row(n + CONFIG::STAGES - CONFIG::READ_AHEAD_ROWS);
    if (window[0] < table.rows) {
      const OUTPUT output = ring.wait_result(n - CONFIG::READ_AHEAD_ROWS, &window[PREFETCH_INDEX]);
      const auto write = [&](uint32_t vectors) {
        write_row<OP>(output, stage, vectors, weight_vectors, thread_row(table.y, window[0]),
                      thread_row(table.x, window[PREFETCH_INDEX]));
      };
      if (omits_bounds_checks) write(CONFIG::VECTORS_PER_THREAD);
      else write(valid_vectors);
    } else stage.prefetch(thread_row(table.x, window[PREFETCH_INDEX]), valid_vectors);
    /* Appends a row as if it were assigned statically. wait_result overwrites this index before it is used. */
    window.advance(window[PREFETCH_INDEX] + clusters);
  }
}

/* The kernel. x, y: [rows][columns]; w, b: [columns]. blocks: number of blocks of a cluster.
 * *next_row_counter must be zero before the launch, and is zero again after it. */
template <class OP, class T>
__global__ void __launch_bounds__(cluster_config_for<OP, T>::BLOCK_THREADS, cluster_config_for<OP, T>::BLOCKS_PER_SM)
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
  cluster_barrier(); /* no block exits while messages to it are outstanding */
  ring.invalidate();
}

}  // namespace rows

#endif
