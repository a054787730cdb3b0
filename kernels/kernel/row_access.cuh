/* What kernels of rows (rows.cuh) are made of: threads that find something out together, and accesses of a row. */
#ifndef RL_KERNELS_KERNEL_ROW_ACCESS_CUH
#define RL_KERNELS_KERNEL_ROW_ACCESS_CUH

#include "kernel/types.cuh"

namespace rows {

enum { WARP = 32 };

/* --- groups of threads ------------------------------------------------------------------------------------------------------ */

template <class M> __device__ static M of_both(M a, M b, bool most) { return !most ? a + b : a > b ? a : b; }

/* Of `lanes` neighbours, a power of two; every one gets it. */
template <class M> __device__ static M over_lanes(M x, uint32_t lanes, bool most) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) x = of_both(x, __shfl_xor_sync(~0u, x, mask), most);
  return x;
}

/* A whole warp needs one instruction for that. */
__device__ static inline int32_t over_lanes(int32_t x, uint32_t lanes, bool most) {
  return lanes == WARP && most ? __reduce_max_sync(~0u, x) : over_lanes<int32_t>(x, lanes, most);
}

/* Neighbouring lanes, a power of two. */
struct lanes {
  uint32_t size;
  template <class M> __device__ M most(M x) const { return over_lanes(x, size, true); }
  template <class M> __device__ M sum(M x) const { return over_lanes(x, size, false); }
};

/* Of any type, one of each warp of a block. */
struct alignas(8) numbers_of_warps {
  char bytes[8 * WARP];
};

/* Shared memory is used in turns: whoever is in the turn after next has seen everyone leave this one. */
struct lanes_or_block {     /* size: threads; up to a warp, or all of the block */
  numbers_of_warps *memory; /* two */
  uint32_t size, turn;
  template <class M> __device__ M over_all(M x, bool most) {
    if (size <= WARP) return over_lanes(x, size, most);
    const uint32_t warps = size / WARP;
    M *of_warp = (M *)memory[turn ^= 1].bytes;
    x = over_lanes(x, WARP, most);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = x;
    __syncthreads();
    return over_lanes(of_warp[threadIdx.x & (warps - 1)], warps, most);
  }
  template <class M> __device__ M most(M x) { return over_all(x, true); }
  template <class M> __device__ M sum(M x) { return over_all(x, false); }
};

/* So many elements, and what to multiply by instead of dividing by that. */
template <class M> struct amount {
  M count, inverse;
  __device__ amount(uint32_t elements) : count((M)elements), inverse(elements ? 1 / (M)elements : 0) {}
};

/* --- accesses --------------------------------------------------------------------------------------------------------------- */

/* WIDTH elements, as one access moves them. */
template <class T, int WIDTH> struct alignas(WIDTH * sizeof(T)) few { T at[WIDTH]; };

/* What a thread keeps of a row, in registers: so many accesses, or as many of them as it has. */
template <class T, int WIDTH_OF_EACH, int MOST> struct registers {
  typedef T type;
  enum { WIDTH = WIDTH_OF_EACH, HOLDS = MOST };
  few<T, WIDTH> access[HOLDS];
  __device__ few<T, WIDTH> &operator[](int i) { return access[i]; }
  __device__ const few<T, WIDTH> &operator[](int i) const { return access[i]; }
};

/* The same, though the compiler can't know: else what stays the same is widened once, and kept so in twice the registers. */
template <class T, int WIDTH> __device__ static few<T, WIDTH> made_anew(few<T, WIDTH> of) {
  uint32_t *words = (uint32_t *)&of;
#pragma unroll
  for (int i = 0; i < sizeof of / sizeof *words; i++) asm volatile("" : "+r"(words[i]));
  return of;
}

/* KEPT: x is what of() left. */
template <class OP, bool KEPT, class T, int WIDTH, class X, class MAP>
__device__ static few<T, WIDTH> mapped(const MAP &map, const few<X, WIDTH> &x, const T *w, const T *b, uint32_t at) {
  typedef typename arithmetic<T>::type M;
  M xs[WIDTH], ws[WIDTH] = {}, bs[WIDTH] = {};
  few<T, WIDTH> y, weights, biases; /* copied as a whole, or each element would be an access */
  const few<X, WIDTH> access = x;
  widen_all<WIDTH>(access.at, xs);
  if (OP::WEIGHTS > 0) weights = ((const few<T, WIDTH> *)w)[at], widen_all<WIDTH>(weights.at, ws);
  if (OP::WEIGHTS > 1) biases = ((const few<T, WIDTH> *)b)[at], widen_all<WIDTH>(biases.at, bs);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) xs[k] = KEPT ? map.template kept<X>(xs[k], ws[k], bs[k]) : map.at(xs[k], ws[k], bs[k]);
  narrow_all<WIDTH>(xs, y.at);
  return y;
}

/* Of `count` accesses of a row a thread has number `first` and every step-th from there on. */
__device__ static inline uint32_t accesses_of(uint32_t first, uint32_t count, uint32_t step) {
  return first < count ? (count - first + step - 1) / step : 0;
}

template <class T, int WIDTH, int HOLDS>
__device__ static void load(registers<T, WIDTH, HOLDS> &keeps, const T *row, uint32_t first, uint32_t step, uint32_t have) {
  const few<T, WIDTH> *from = (const few<T, WIDTH> *)row + first;
#pragma unroll
  for (uint32_t i = 0; i < HOLDS; i++)
    if (i < have) keeps[i] = from[i * step];
}

/* What BODY says for each access that a thread keeps, whose elements are M x[KEEPS::WIDTH]. */
#define RL_FOR_KEPT(BODY)                                                  \
  _Pragma("unroll") for (int i = 0; i < KEEPS::HOLDS; i++) if (i < have) { \
    M x[KEEPS::WIDTH];                                                     \
    const auto access = keeps[i]; /* as a whole */                         \
    widen_all<KEEPS::WIDTH>(access.at, x);                                 \
    _Pragma("unroll") for (int k = 0; k < KEEPS::WIDTH; k++) BODY;         \
  }

/* The largest element of what a thread keeps, or `least`. */
template <class KEEPS, class M> __device__ static M most_of(const KEEPS &keeps, uint32_t have, M least) {
  enum { WIDTH = KEEPS::WIDTH };
  few<typename KEEPS::type, WIDTH> most = keeps[0];
#pragma unroll
  for (int i = 1; i < KEEPS::HOLDS; i++)
    if (i < have) {
      const auto access = keeps[i];
      larger_all<WIDTH>(access.at, most.at);
    }
  M all[WIDTH];
  widen_all<WIDTH>(most.at, all);
  for (int k = 0; k < WIDTH && have > 0; k++) least = all[k] > least ? all[k] : least;
  return least;
}

template <class OP, class MAP, class T, int WIDTH, int HOLDS>
__device__ static void finish(const MAP &map, const registers<T, WIDTH, HOLDS> &keeps, T *row, const T *w, const T *b,
                              uint32_t first, uint32_t step, uint32_t have) {
  few<T, WIDTH> *to = (few<T, WIDTH> *)row;
#pragma unroll
  for (uint32_t i = 0; i < HOLDS; i++)
    if (i < have) to[first + i * step] = mapped<OP, true>(map, keeps[i], w, b, first + i * step);
}

}  // namespace rows

#endif
