/* Rows that no block holds (rows.cuh), each shared by a cluster of up to 8 blocks: from compute capability 9.0 on.
 *
 * Clusters stay and take row after row: the first ones are each cluster's own, the others go to whichever cluster asks for one,
 * because some get twice the bandwidth of others. Each worker, a thread, has accesses of its own in every row, and places of its
 * own for them in shared memory, where those of the next rows are on their way.
 *
 * Warps of workers do not meet: each says what it knows of its part of a row and goes on to the next one. One more warp of each
 * block, its teller, puts that together, exchanges it with the cluster's other tellers and tells each warp how its part is to be
 * finished. So what comes from afar is waited for, and put together, by nobody else. A warp finishes its part of a row when it
 * has said what it knows of the next one, and every place that becomes free is filled at once. */
#ifndef RL_KERNELS_KERNEL_SPANNED_CUH
#define RL_KERNELS_KERNEL_SPANNED_CUH

#include "clusters.cuh"
#include "kernel/row_access.cuh"

namespace rows {

enum {
  CLUSTER = 8,                                               /* blocks at most */
  WORKERS = 512,                                             /* of a block */
  WORKING = WORKERS / WARP,                                  /* warps of them */
  BLOCK_SPANNED = WORKERS + WARP,                            /* threads */
  HOLDS_SPANNED = 8,                                         /* accesses of a worker in a row */
  PLACES = 3,                                                /* for rows: as many are each cluster's own */
  SHARED_BY_SPANNED = 16 * PLACES * HOLDS_SPANNED * WORKERS, /* bytes of them */
  TURNS = 2                                                  /* that rows take at the desk */
};

/* --- a block's part of a row ------------------------------------------------------------------------------------------------ */

/* Accesses next to each other. */
struct part {
  uint32_t first, count;
};

__device__ static inline part part_of_block(uint32_t accesses, uint32_t blocks) {
  const uint32_t each = (accesses + blocks - 1) / blocks, first = min(rank_in_cluster() * each, accesses);
  return {first, min(each, accesses - first)};
}

/* Of a block's `count`, if every WORKERS-th is the same worker's. */
__device__ static inline uint32_t accesses_of_warp(uint32_t count) {
  uint32_t accesses = 0;
  for (uint32_t at = threadIdx.x / WARP * WARP; at < count; at += WORKERS) accesses += min(WARP, count - at);
  return accesses;
}

/* Where a worker has its accesses of a row in shared memory. */
template <class T> struct place {
  typedef T type;
  enum { WIDTH = 16 / sizeof(T), HOLDS = HOLDS_SPANNED };
  few<T, WIDTH> *own;

  __device__ few<T, WIDTH> &operator[](int i) const { return own[i * WORKERS]; }
  /* One for each of PLACES rows, from this one on. */
  __device__ place of(uint32_t row) const { return {own + row % PLACES * HOLDS * WORKERS}; }
  __device__ void fetch(int i, const T *row) const { copy_16_bytes(&(*this)[i], (const few<T, WIDTH> *)row + i * WORKERS); }
  /* A group of copies; an empty one where there is no row. */
  __device__ void fetch(const T *row, uint32_t have) const {
#pragma unroll
    for (int i = 0; i < HOLDS; i++)
      if (row && i < have) fetch(i, row);
    end_copies();
  }
};

/* --- who tells whom --------------------------------------------------------------------------------------------------------- */

/* Which rows a cluster gets beside its own, for one of its warps. Numbers are drawn a row ahead. Each cluster draws one too many,
 * and who has the last of all sees to it that the next launch draws from zero. */
struct dealer {
  uint32_t *drawn, clusters, count; /* of rows */
  uint32_t number;

  __device__ uint32_t dealt() const { return PLACES * clusters; }
  __device__ void draw() {
    if (threadIdx.x % WARP == 0) number = atomicAdd(drawn, 1);
  }
  __device__ uint32_t next() {
    const uint32_t last = (count > dealt() ? count - dealt() : 0) + clusters - 1;
    if (threadIdx.x % WARP == 0 && number == last) *drawn = 0;
    const uint32_t row = dealt() + __shfl_sync(~0u, number, 0);
    if (row < count) draw();
    return row;
  }
};

/* What a teller sends to the others: what its block knows of a row and, if it is the first of its cluster, which row comes PLACES
 * later. */
template <class S> struct message {
  S state;
  uint32_t later;
};
template <class S> union parcel {
  message<S> content;
  uint4 words[(sizeof(message<S>) + 15) / 16];
};

/* Where a block's warps talk, in shared memory. Rows take turns: whoever says something of row n has been told of n - 2. */
template <class S, class MAP> struct desk {
  S known[TURNS][WORKING];        /* to a warp */
  parcel<S> sent[TURNS][CLUSTER]; /* by a block */
  MAP maps[TURNS][WORKING];       /* for a warp */
  uint32_t later[TURNS];
  arrival all_said[TURNS], all_sent[TURNS], is_told[TURNS];

  __device__ void expect(uint32_t turn, uint32_t blocks) { expect_bytes(&all_sent[turn], blocks * sizeof(parcel<S>)); }
  /* In front of the first barrier of the cluster, and behind the last. */
  __device__ void begin(uint32_t blocks) {
    if (threadIdx.x > 0) return;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
      begin_arrival(&all_said[turn], WORKING), begin_arrival(&all_sent[turn], 1), begin_arrival(&is_told[turn], 1);
      expect(turn, blocks);
    }
  }
  __device__ void end() {
    if (threadIdx.x > 0) return;
    for (uint32_t turn = 0; turn < TURNS; turn++)
      end_arrival(&all_said[turn]), end_arrival(&all_sent[turn]), end_arrival(&is_told[turn]);
  }
  __device__ static void wait(arrival *of, uint32_t row) {
    while (!has_come(&of[row % TURNS], row / TURNS + 1)) {}
  }

  /* --- by a warp of workers */
  __device__ void say(uint32_t row, const S &state) {
    __syncwarp(); /* all its lanes have been told of the row two before */
    if (threadIdx.x % WARP > 0) return;
    known[row % TURNS][threadIdx.x / WARP] = state;
    arrive_at(&all_said[row % TURNS]);
  }
  __device__ MAP be_told(uint32_t row, uint32_t *later_row) {
    wait(is_told, row);
    *later_row = later[row % TURNS];
    return maps[row % TURNS][threadIdx.x / WARP];
  }

  /* --- by the teller: a lane has what a warp said, then what a block sent, then what a warp is told */
  __device__ S listen(uint32_t row) {
    wait(all_said, row);
    return threadIdx.x % WARP < WORKING ? known[row % TURNS][threadIdx.x % WARP] : S::none();
  }
  __device__ message<S> exchange(uint32_t row, uint32_t blocks, const message<S> &own) {
    const uint32_t turn = row % TURNS, lane = threadIdx.x % WARP;
    parcel<S> of_own;
    of_own.content = own;
    if (lane < blocks)
#pragma unroll
      for (int i = 0; i < sizeof of_own / sizeof *of_own.words; i++)
        send_to(lane, &sent[turn][rank_in_cluster()].words[i], of_own.words[i], &all_sent[turn]);
    wait(all_sent, row);
    if (lane == 0) expect(turn, blocks);
    return lane < blocks ? sent[turn][lane].content : message<S>{S::none(), 0};
  }
  __device__ void tell(uint32_t row, const MAP &map, uint32_t later_row) {
    const uint32_t turn = row % TURNS, lane = threadIdx.x % WARP;
    __syncwarp(); /* all its lanes have heard that who was told of the row two before has read it */
    if (lane < WORKING) maps[turn][lane] = map;
    if (lane == 0) later[turn] = later_row;
    __syncwarp();
    if (lane == 0) arrive_at(&is_told[turn]);
  }
};

/* --- the kernel ------------------------------------------------------------------------------------------------------------- */

/* Numbers of a cluster's rows; from `count` of them on there is none. */
struct rows_ahead {
  uint32_t now, soon, later;
  __device__ rows_ahead(uint32_t cluster, uint32_t clusters)
      : now(cluster), soon(cluster + clusters), later(cluster + 2 * clusters) {}
  __device__ void go_on(uint32_t next) { now = soon, soon = later, later = next; }
};

template <class M, class S, class MAP>
__device__ static void tell_of_rows(desk<S, MAP> &with, dealer deals, rows_ahead row, uint32_t elements, uint32_t columns,
                                    uint32_t blocks) {
  const amount<M> of_block(elements), of_row(columns);
  const lanes<M> warp = {WARP};
  const bool is_dealer = rank_in_cluster() == 0;
  if (is_dealer) deals.draw();
  cluster_barrier(); /* nothing is sent to a block that has not begun */
  for (uint32_t n = 0; row.now < deals.count; n++) {
    const uint32_t drawn = is_dealer ? deals.next() : 0;
    const S part = with.listen(n);
    const message<S> got = with.exchange(n, blocks, {part.whole(of_block, warp), drawn});
    const uint32_t next = __shfl_sync(~0u, got.later, 0);
    with.tell(n, got.state.whole(of_row, warp).map(part, of_row), next);
    row.go_on(next);
  }
}

/* Each access makes room for the one of a later row, if there is one. */
template <class OP, class T, class MAP, class WEIGHTS>
__device__ static void finish(const MAP &map, const place<T> &of, uint32_t have, const WEIGHTS &w, const WEIGHTS &b, T *row,
                              const T *later) {
  typedef few<T, place<T>::WIDTH> F;
#pragma unroll
  for (int i = 0; i < HOLDS_SPANNED; i++)
    if (i < have) {
      const F weights = made_anew(w[i]), biases = made_anew(b[i]);
      ((F *)row)[i * WORKERS] = mapped<OP, true>(map, of[i], weights.at, biases.at, 0);
      if (later) of.fetch(i, later);
    }
  end_copies();
}

template <class OP, class T, class S, class MAP>
__device__ static void work_on_rows(desk<S, MAP> &with, void *memory, rows_ahead row, const part &own, uint32_t count,
                                    uint32_t columns, const T *x, const T *w, const T *b, T *y) {
  typedef typename arithmetic<T>::type M;
  enum { WIDTH = 16 / sizeof(T), HOLDS = HOLDS_SPANNED };
  const uint32_t first = own.first + threadIdx.x, have = accesses_of(threadIdx.x, own.count, WORKERS);
  const amount<M> of_warp(accesses_of_warp(own.count) * WIDTH);
  const place<T> places = {(few<T, WIDTH> *)memory + threadIdx.x};
  const auto at = [&](auto *table, uint32_t row) { return row < count ? table + (size_t)row * columns + first * WIDTH : NULL; };
  places.of(0).fetch(at(x, row.now), have);
  places.of(1).fetch(at(x, row.soon), have);
  registers<T, WIDTH, HOLDS> weights, biases; /* of the same columns in every row */
  if (OP::WEIGHTS > 0) load(weights, w, first, WORKERS, have);
  if (OP::WEIGHTS > 1) load(biases, b, first, WORKERS, have);
  cluster_barrier();
  /* Where no access is looked for several are computed at once, for which there are no registers beside two weights. */
  const bool full = OP::WEIGHTS < 2 && __all_sync(~0u, have == HOLDS);
  uint32_t before = count;
  for (uint32_t n = 0; row.now < count || before < count; n++) {
    if (row.now < count) {
      copies_done_but<PLACES - 2>();
      const place<T> mine = places.of(n);
      with.say(n, full ? S::of(mine, HOLDS, of_warp, lanes<M>{WARP}) : S::of(mine, have, of_warp, lanes<M>{WARP}));
    }
    if (n > 0) {
      const MAP map = with.be_told(n - 1, &row.later);
      const place<T> last = places.of(n - 1);
      if (full) finish<OP>(map, last, HOLDS, weights, biases, at(y, before), at(x, row.later));
      else finish<OP>(map, last, have, weights, biases, at(y, before), at(x, row.later));
    }
    if (n == 0) places.of(2).fetch(at(x, row.later), have);
    before = row.now;
    row.go_on(count);
  }
}

/* drawn: zero, and so again behind the launch. */
template <class OP, class T>
__global__ void __launch_bounds__(BLOCK_SPANNED, 1)
    spanned(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t count,
            uint32_t columns, uint32_t blocks, uint32_t *drawn) {
  enum { WIDTH = 16 / sizeof(T) };
  typedef typename arithmetic<T>::type M;
  typedef typename OP::template state<M> S;
  typedef typename OP::template map<M> MAP;
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(16) desk<S, MAP> with;
  const uint32_t clusters = gridDim.x / blocks;
  const rows_ahead row(blockIdx.x / blocks, clusters);
  const part own = part_of_block(columns / WIDTH, blocks);
  with.begin(blocks);
  if (threadIdx.x < WORKERS) work_on_rows<OP>(with, memory, row, own, count, columns, x, w, b, y);
  else tell_of_rows<M>(with, {drawn, clusters, count}, row, own.count * WIDTH, columns, blocks);
  cluster_barrier(); /* none ends while others send to it */
  with.end();
}

} // namespace rows

#endif
