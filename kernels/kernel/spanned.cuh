/* Rows that no block holds (rows.cuh), each shared by a cluster of up to 16 blocks: from compute capability 9.0 on.
 *
 * Clusters stay and take row after row: the first ones are each cluster's own, the others go to whichever cluster asks for one,
 * because some get twice the bandwidth of others. Each worker, a thread, has accesses of its own in every row, and places of its
 * own for them in shared memory, where those of the next rows are on their way.
 *
 * Warps of workers do not meet: each says what it knows of its part of a row and goes on to the next one. One more warp of each
 * block, its teller, puts that together, exchanges it with the cluster's other tellers and tells each warp how its part is to be
 * finished. So what comes from afar is waited for, and put together, by nobody else. A warp finishes its part of a row a row or
 * two later, and every place that becomes free is filled at once. */
#ifndef RL_KERNELS_KERNEL_SPANNED_CUH
#define RL_KERNELS_KERNEL_SPANNED_CUH

#include <type_traits>

#include "clusters.cuh"
#include "kernel/row_access.cuh"

namespace rows {

enum { CLUSTER = 16 }; /* blocks at most */

/* How a multiprocessor is shared out. */
template <int WORKERS_OF_BLOCK, int HELD_BY_WORKER, int ROWS_AT_ONCE, int ROWS_BEHIND, int BLOCKS_OF_SM> struct division {
  enum {
    WORKERS = WORKERS_OF_BLOCK,
    WORKING = WORKERS / WARP,               /* warps of them */
    BLOCK = WORKERS + WARP,                 /* threads */
    BLOCKS = BLOCKS_OF_SM,                  /* that a multiprocessor has at once */
    HOLDS = HELD_BY_WORKER,                 /* accesses of a worker in a row */
    PLACES = ROWS_AT_ONCE,                  /* for rows: as many are each cluster's own */
    SHARED = 16 * PLACES * HOLDS * WORKERS, /* bytes of them */
    BEHIND = ROWS_BEHIND,                   /* rows that are begun before one is finished */
    TURNS = BEHIND + 1                      /* that rows take at the desk */
  };
  static_assert((int)WORKING <= (int)CLUSTER, "a teller's first CLUSTER lanes stand for warps, then for blocks");
  static_assert(0 < ROWS_BEHIND, "what a block sends of the next row says that it has read what came of this one");
  static_assert(ROWS_BEHIND < ROWS_AT_ONCE, "some places are those of rows on their way");
};

/* Many rows are on their way; but where arithmetic takes about as long as that, one block's goes on while another one waits. */
template <class OP, class T> using divided =
    std::conditional_t<OP::template MUCH<T>, division<352, 6, 3, 1, 2>, division<512, 4, 6, 2, 1>>;

/* --- a block's part of a row ------------------------------------------------------------------------------------------------ */

/* Accesses next to each other. */
struct part {
  uint32_t first, count;
};

__device__ static inline part part_of_block(uint32_t accesses, uint32_t blocks) {
  const uint32_t each = (accesses + blocks - 1) / blocks, first = min(rank_in_cluster() * each, accesses);
  return {first, min(each, accesses - first)};
}

/* Of a block's `count`, if every workers-th is the same worker's. */
__device__ static inline uint32_t accesses_of_warp(uint32_t count, uint32_t workers) {
  uint32_t accesses = 0;
  for (uint32_t at = threadIdx.x / WARP * WARP; at < count; at += workers) accesses += min(WARP, count - at);
  return accesses;
}

/* Where a worker has its accesses of a row in shared memory. */
template <class D, class T> struct place {
  enum { WIDTH = 16 / sizeof(T) };
  typedef few<T, WIDTH> F;
  F *own;

  __device__ F &operator[](int i) const { return own[i * D::WORKERS]; }
  /* One for each of PLACES rows, from this one on. */
  __device__ place of(uint32_t row) const { return {own + row % D::PLACES * D::HOLDS * D::WORKERS}; }
  __device__ void fetch(int i, const T *row) const { cp_async_16(&(*this)[i], (const F *)row + i * D::WORKERS); }
  /* A group of copies; an empty one where there is no row. */
  __device__ void fetch(const T *row, uint32_t have) const {
#pragma unroll
    for (int i = 0; i < D::HOLDS; i++)
      if (row && i < have) fetch(i, row);
    cp_async_commit_group();
  }
};

/* --- who tells whom --------------------------------------------------------------------------------------------------------- */

/* Which rows a cluster gets beside its own, for one of its warps. Numbers are drawn a row ahead. Each cluster draws one too many,
 * and who has the last of all sees to it that the next launch draws from zero. */
struct dealer {
  uint32_t *drawn, clusters, count, dealt; /* of rows; how many of them clusters have as their own */
  uint32_t number;

  __device__ void draw() {
    if (threadIdx.x % WARP == 0) number = atomicAdd(drawn, 1);
  }
  __device__ uint32_t next() {
    const uint32_t last = (count > dealt ? count - dealt : 0) + clusters - 1;
    if (threadIdx.x % WARP == 0 && number == last) *drawn = 0;
    const uint32_t row = dealt + __shfl_sync(~0u, number, 0);
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

/* Where a block's warps talk, in shared memory. Rows take turns: whoever says something of row n has been told of n - TURNS. Who
 * reads or writes speaks for no other lane, but for those of its warp that it has met. */
template <class D, class S, class MAP> struct desk {
  enum { TURNS = D::TURNS, WORKING = D::WORKING };
  S known[TURNS][WORKING];        /* to a warp */
  parcel<S> sent[TURNS][CLUSTER]; /* by a block */
  MAP maps[TURNS][WORKING];       /* for a warp */
  uint32_t later[TURNS];
  mbarrier all_said[TURNS], all_sent[TURNS], is_told[TURNS];

  __device__ void expect(uint32_t turn, uint32_t blocks) {
    mbarrier_arrive_expect_tx(&all_sent[turn], blocks * sizeof(parcel<S>));
  }
  /* In front of the first barrier of the cluster, and behind the last. */
  __device__ void begin(uint32_t blocks) {
    if (threadIdx.x > 0) return;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
      mbarrier_init(&all_said[turn], WORKING), mbarrier_init(&all_sent[turn], 1), mbarrier_init(&is_told[turn], WORKING);
      expect(turn, blocks);
    }
  }
  __device__ void end() {
    if (threadIdx.x > 0) return;
    for (uint32_t turn = 0; turn < TURNS; turn++)
      mbarrier_inval(&all_said[turn]), mbarrier_inval(&all_sent[turn]), mbarrier_inval(&is_told[turn]);
  }
  __device__ static void wait_here(mbarrier *of, uint32_t row) {
    while (!mbarrier_try_wait_cta(&of[row % TURNS], row / TURNS + 1)) {
    }
  }

  /* --- by a warp of workers */
  __device__ void say(uint32_t row, const S &state) {
    __syncwarp(); /* all its lanes have been told of the row TURNS before */
    if (threadIdx.x % WARP > 0) return;
    known[row % TURNS][threadIdx.x / WARP] = state;
    mbarrier_arrive(&all_said[row % TURNS]);
  }
  __device__ MAP be_told(uint32_t row, uint32_t *later_row) {
    wait_here(is_told, row);
    *later_row = later[row % TURNS];
    return maps[row % TURNS][threadIdx.x / WARP];
  }

  /* --- by the teller: a lane has what a warp said, then what a block sent, then what a warp is told */
  __device__ S listen(uint32_t row) {
    wait_here(all_said, row);
    return threadIdx.x % WARP < WORKING ? known[row % TURNS][threadIdx.x % WARP] : S::none();
  }
  __device__ message<S> exchange(uint32_t row, uint32_t blocks, const message<S> &own) {
    const uint32_t turn = row % TURNS, lane = threadIdx.x % WARP;
    parcel<S> of_own;
    of_own.content = own;
    if (lane < blocks)
#pragma unroll
      for (int i = 0; i < sizeof of_own / sizeof *of_own.words; i++)
        st_async(lane, &sent[turn][rank_in_cluster()].words[i], of_own.words[i], &all_sent[turn]);
    while (!mbarrier_try_wait(&all_sent[turn], row / TURNS + 1)) {
    }
    if (lane == 0) expect(turn, blocks);
    return lane < blocks ? sent[turn][lane].content : message<S>{S::none(), 0};
  }
  __device__ void tell(uint32_t row, const MAP &map, uint32_t later_row) {
    const uint32_t turn = row % TURNS, lane = threadIdx.x % WARP;
    __syncwarp(); /* all its lanes have heard that who was told of the row TURNS before has read it */
    if (lane == 0) later[turn] = later_row;
    if (lane < WORKING) maps[turn][lane] = map, mbarrier_arrive(&is_told[turn]);
  }
};

/* --- the kernel ------------------------------------------------------------------------------------------------------------- */

/* Numbers of some of a cluster's rows, one after the other. From the count of all rows on there is none. */
template <int COUNT> struct rows_in_turn {
  uint32_t at[COUNT];
  /* Own ones from `first` on at `begin`, none in front of it. */
  __device__ rows_in_turn(int begin, uint32_t first, uint32_t apart, uint32_t none) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) at[i] = i < begin ? none : first + (i - begin) * apart;
  }
  __device__ void go_on(uint32_t next) {
#pragma unroll
    for (int i = 0; i + 1 < COUNT; i++) at[i] = at[i + 1];
    at[COUNT - 1] = next;
  }
};

template <class D, class M, class S, class MAP> __device__ static void tell_of_rows(desk<D, S, MAP> &with, dealer deals,
                                                                                    uint32_t first_row, uint32_t elements,
                                                                                    uint32_t columns, uint32_t blocks) {
  const amount<M> of_block(elements), of_row(columns);
  const lanes telling = {CLUSTER};
  const bool is_dealer = rank_in_cluster() == 0;
  rows_in_turn<D::PLACES> row(0, first_row, deals.clusters, deals.count);
  if (is_dealer) deals.draw();
  cluster_barrier(); /* nothing is sent to a block that has not begun */
  for (uint32_t n = 0; row.at[0] < deals.count; n++) {
    const uint32_t drawn = is_dealer ? deals.next() : 0;
    const S part = with.listen(n);
    const message<S> got = with.exchange(n, blocks, {part.whole(of_block, telling), drawn});
    const uint32_t later = __shfl_sync(~0u, got.later, 0);
    with.tell(n, got.state.whole(of_row, telling).map(part, of_row), later);
    row.go_on(later);
  }
}

/* Each access makes room for the one of a later row, if there is one: reads and writes that take turns delay each other least. */
template <class OP, class D, class T, class MAP, class WEIGHTS>
__device__ static void finish(const MAP &map, const place<D, T> &of, uint32_t have, const WEIGHTS &w, const WEIGHTS &b, T *row,
                              const T *later) {
  typedef typename place<D, T>::F F;
#pragma unroll
  for (int i = 0; i < D::HOLDS; i++)
    if (i < have) {
      const F weights = made_anew(w[i]), biases = made_anew(b[i]);
      ((F *)row)[i * D::WORKERS] = mapped<OP, true>(map, of[i], weights.at, biases.at, 0);
      if (later) of.fetch(i, later);
    }
  cp_async_commit_group();
}

/* What there is to say of one's accesses; they are left as OP changes them. */
template <class OP, class D, class S, class T, class M>
__device__ static S look_over(const place<D, T> &of, uint32_t have, const amount<M> &of_warp) {
  registers<T, place<D, T>::WIDTH, D::HOLDS> keeps;
  load(keeps, (const T *)of.own, 0, D::WORKERS, have);
  const S state = S::of(keeps, have, of_warp, lanes{WARP});
  if constexpr (OP::template CHANGES<T>)
#pragma unroll
    for (int i = 0; i < D::HOLDS; i++)
      if (i < have) of[i] = keeps[i];
  return state;
}

template <class OP, class D, class T, class S, class MAP>
__device__ static void work_on_rows(desk<D, S, MAP> &with, void *memory, uint32_t first_row, uint32_t clusters, const part &own,
                                    uint32_t count, uint32_t columns, const T *x, const T *w, const T *b, T *y) {
  enum { WIDTH = 16 / sizeof(T), HOLDS = D::HOLDS, NOW = D::BEHIND, NEXT = D::PLACES };
  const uint32_t first = own.first + threadIdx.x, have = accesses_of(threadIdx.x, own.count, D::WORKERS);
  const amount<typename arithmetic<T>::type> of_warp(accesses_of_warp(own.count, D::WORKERS) * WIDTH);
  const place<D, T> places = {(few<T, WIDTH> *)memory + threadIdx.x};
  const auto at = [&](auto *table, uint32_t row) { return row < count ? table + (size_t)row * columns + first * WIDTH : NULL; };
  rows_in_turn<NEXT + 1> row(NOW, first_row, clusters, count); /* from the one that is finished to the one that gets its place */
#pragma unroll
  for (int i = NOW; i < NEXT; i++) places.of(i - NOW).fetch(at(x, row.at[i]), have);
  registers<T, WIDTH, HOLDS> weights, biases; /* of the same columns in every row */
  if (OP::WEIGHTS > 0) load(weights, w, first, D::WORKERS, have);
  if (OP::WEIGHTS > 1) load(biases, b, first, D::WORKERS, have);
  cluster_barrier();
  /* Where no access is looked for several are computed at once, for which there are no registers beside two weights. */
  const bool full = OP::WEIGHTS < 2 && __all_sync(~0u, have == HOLDS);
  for (uint32_t n = 0, left = D::BEHIND; left > 0 || row.at[NOW] < count; n++) {
    if (row.at[NOW] < count) {
      cp_async_wait_group<NEXT - NOW - 1>();
      with.say(n, full ? look_over<OP, D, S>(places.of(n), HOLDS, of_warp) : look_over<OP, D, S>(places.of(n), have, of_warp));
    } else left--;
    const place<D, T> last = places.of(n + D::PLACES - D::BEHIND);
    if (row.at[0] < count) {
      const MAP map = with.be_told(n - D::BEHIND, &row.at[NEXT]);
      if (full) finish<OP>(map, last, HOLDS, weights, biases, at(y, row.at[0]), at(x, row.at[NEXT]));
      else finish<OP>(map, last, have, weights, biases, at(y, row.at[0]), at(x, row.at[NEXT]));
    } else last.fetch(at(x, row.at[NEXT]), have);
    row.go_on(row.at[NEXT] + clusters); /* until one is told of it */
  }
}

/* drawn: zero, and so again behind the launch. */
template <class OP, class T> __global__ void __launch_bounds__(divided<OP, T>::BLOCK, divided<OP, T>::BLOCKS)
    spanned(const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b, T *__restrict__ y, uint32_t count,
            uint32_t columns, uint32_t blocks, uint32_t *drawn) {
  typedef divided<OP, T> D;
  typedef typename arithmetic<T>::type M;
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(16) desk<D, typename OP::template state<M>, typename OP::template map<M>> with;
  const uint32_t clusters = gridDim.x / blocks, first_row = blockIdx.x / blocks;
  const part own = part_of_block(columns / place<D, T>::WIDTH, blocks);
  with.begin(blocks);
  if (threadIdx.x < D::WORKERS) work_on_rows<OP>(with, memory, first_row, clusters, own, count, columns, x, w, b, y);
  else
    tell_of_rows<D, M>(with, {drawn, clusters, count, D::PLACES * clusters}, first_row, own.count * place<D, T>::WIDTH, columns,
                       blocks);
  cluster_barrier(); /* none ends while others send to it */
  with.end();
}

}  // namespace rows

#endif
