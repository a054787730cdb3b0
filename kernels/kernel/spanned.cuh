/* Rows that no block holds (rows.cuh), each shared by a cluster of up to 8 blocks: from compute capability 9.0 on.
 *
 * Clusters stay and take row after row. Each thread has accesses of its own in every row, and places of its own for them in
 * shared memory, where those of the next rows are on their way. Warps do not meet: each sends what it knows of its part of a row
 * to every block of the cluster and goes on to the next row. When it has sent that, too, what all know of this one has come: the
 * warp finishes its part, and the places are free for a later row. */
#ifndef RL_KERNELS_KERNEL_SPANNED_CUH
#define RL_KERNELS_KERNEL_SPANNED_CUH

#include "clusters.cuh"
#include "kernel/row_access.cuh"

namespace rows {

enum { BLOCK_SPANNED = 512, CLUSTER = 8 /* blocks at most */, PLACES = 3 /* for rows */, TURNS = 4 };

/* A thread's accesses of a row, every step-th, in places of its own in shared memory, every BLOCK_SPANNED-th. */
template <class T, int HOLDS> struct places {
  typedef few<T, 16 / sizeof(T)> F;
  F *own;
  uint32_t step, have;

  __device__ F &at(uint32_t place, int i) const { return own[(place * HOLDS + i) * BLOCK_SPANNED]; }
  /* A group of copies, an empty one where there is no such row. */
  __device__ void fetch(uint32_t place, const T *row, bool is_there) const {
#pragma unroll
    for (int i = 0; i < HOLDS; i++)
      if (is_there && i < have) copy_16_bytes(&at(place, i), (const F *)row + i * step);
    end_copies();
  }
  __device__ void take(few<typename arithmetic<T>::type, 16 / sizeof(T)> (&keeps)[HOLDS], uint32_t place) const {
#pragma unroll
    for (int i = 0; i < HOLDS; i++) widen_all<16 / sizeof(T)>(at(place, i).at, keeps[i].at);
  }
};

/* A state as it is sent. */
template <class S> union parcel {
  S state;
  uint4 words[(sizeof(S) + 15) / 16];
};

/* Those of all warps of a cluster; a thread has every 32nd from its lane on. */
template <class S> struct sent_states {
  enum { MOST = CLUSTER * BLOCK_SPANNED / WARP / WARP };
  const parcel<S> *memory;
  uint32_t first, count;
  __device__ bool has(int i) const { return first + i * WARP < count; }
  __device__ const S &get(int i) const { return memory[first + i * WARP].state; }
};

/* What each warp of a cluster knows of a row, in the memory of every block. Rows take turns: whoever sends what it knows of row n
 * has got what all know of n - 2, so all have sent that and read what was known of n - 4. */
template <class M, class S> struct reports {
  parcel<S> *memory; /* [TURNS][warps] */
  arrival *came;     /* [TURNS] */
  uint32_t blocks, warps; /* of the cluster */

  __device__ void expect(uint32_t turn) const { expect_bytes(&came[turn], warps * sizeof(parcel<S>)); }
  /* In front of the first barrier of the cluster, and behind the last. */
  __device__ void begin() const {
    if (threadIdx.x > 0) return;
#pragma unroll
    for (uint32_t turn = 0; turn < TURNS; turn++) begin_arrival(&came[turn]), expect(turn);
  }
  __device__ void end() const {
    if (threadIdx.x > 0) return;
#pragma unroll
    for (uint32_t turn = 0; turn < TURNS; turn++) end_arrival(&came[turn]);
  }
  /* Each lane gives one block what its warp knows. */
  __device__ void send(uint32_t row, uint32_t warp, const S &known) const {
    const uint32_t turn = row % TURNS, to = threadIdx.x % WARP;
    parcel<S> sent;
    sent.state = known;
    if (to < blocks)
#pragma unroll
      for (int i = 0; i < sizeof sent / sizeof *sent.words; i++)
        send_to(to, &memory[turn * warps + warp].words[i], sent.words[i], &came[turn]);
  }
  /* What all know of a row. */
  __device__ S get(uint32_t row, const amount<M> &columns) const {
    const uint32_t turn = row % TURNS;
    while (!has_come(&came[turn], row / TURNS + 1)) {}
    if (threadIdx.x == 0) expect(turn);
    return S::whole(sent_states<S>{memory + turn * warps, threadIdx.x % WARP, warps}, columns, lanes<M>{WARP});
  }
};

/* Elements of a row that a warp has, whose first access is number `first`. */
template <int WIDTH> __device__ static uint32_t elements_of_warp(uint32_t first, uint32_t count, uint32_t step) {
  uint32_t accesses = 0;
  for (uint32_t at = first; at < count; at += step) accesses += min(WARP, count - at);
  return accesses * WIDTH;
}

template <class S> static size_t shared_by_spanned(int holds, uint32_t blocks) {
  return (size_t)16 * PLACES * holds * BLOCK_SPANNED + TURNS * blocks * BLOCK_SPANNED / WARP * sizeof(parcel<S>);
}

template <class OP, class T, int HOLDS>
__global__ void __launch_bounds__(BLOCK_SPANNED, 1)
    spanned(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t count,
            uint32_t columns, uint32_t blocks) {
  enum { WIDTH = 16 / sizeof(T), WARPS = BLOCK_SPANNED / WARP };
  typedef typename arithmetic<T>::type M;
  typedef typename OP::template state<M> S;
  typedef few<T, WIDTH> F;
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(8) arrival came[TURNS];
  const uint32_t clusters = gridDim.x / blocks, cluster = blockIdx.x / blocks, rows = (count - cluster + clusters - 1) / clusters;
  const uint32_t warp = rank_in_cluster() * WARPS + threadIdx.x / WARP, first = warp * WARP + threadIdx.x % WARP;
  const uint32_t step = blocks * BLOCK_SPANNED, accesses = columns / WIDTH, have = accesses_of(first, accesses, step);
  const amount<M> of_thread(have * WIDTH), of_warp(elements_of_warp<WIDTH>(warp * WARP, accesses, step)), of_row(columns);
  const places<T, HOLDS> mine = {(F *)memory + threadIdx.x, step, have};
  const reports<M, S> all = {(parcel<S> *)(memory + 16 * PLACES * HOLDS * BLOCK_SPANNED), came, blocks, blocks * WARPS};
  const size_t apart = (size_t)clusters * columns;
  x += (size_t)cluster * columns + first * WIDTH, y += (size_t)cluster * columns + first * WIDTH;
  for (uint32_t place = 0; place < PLACES - 1; place++, x += apart) mine.fetch(place, x, place < rows);
  F weights[HOLDS], biases[HOLDS]; /* of the same columns in every row */
  if (OP::WEIGHTS > 0) load(weights, w, first, step, have);
  if (OP::WEIGHTS > 1) load(biases, b, first, step, have);
  all.begin();
  cluster_barrier(); /* nothing is sent to a block that has not begun, */
  few<M, WIDTH> left[HOLDS]; /* by of(), where it changes them */
  S part = S::none();
  for (uint32_t row = 0; row <= rows; row++, x += apart) {
    few<M, WIDTH> keeps[HOLDS];
    S next = part;
    if (row < rows) {
      copies_done_but<PLACES - 2>();
      mine.take(keeps, row % PLACES);
      if (have > 0) next = S::of(keeps, have, of_thread, alone<M>());
      all.send(row, warp, S::whole(one<S>{next}, of_warp, lanes<M>{WARP}));
    }
    if (row > 0) {
      const auto map = all.get(row - 1, of_row).map(part, of_row);
#pragma unroll
      for (int i = 0; i < HOLDS; i++)
        if (i < have)
          ((F *)y)[i * step] =
              OP::template CHANGES<M>
                  ? mapped<OP, true>(map, left[i], (const T *)weights, (const T *)biases, i)
                  : mapped<OP, true>(map, mine.at((row - 1) % PLACES, i), (const T *)weights, (const T *)biases, i);
      y += apart;
    }
    mine.fetch((row + PLACES - 1) % PLACES, x, row + PLACES - 1 < rows);
    part = next;
#pragma unroll
    for (int i = 0; i < HOLDS; i++) left[i] = keeps[i];
  }
  cluster_barrier(); /* and none ends while others send to it */
  all.end();
}

} // namespace rows

#endif
