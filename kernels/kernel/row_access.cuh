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

template <class M> struct alone { /* a thread */
  __device__ M most(M x) const { return x; }
  __device__ M sum(M x) const { return x; }
};

/* Neighbouring lanes, a power of two. */
template <class M> struct lanes {
  uint32_t size;
  __device__ M most(M x) const { return over_lanes(x, size, true); }
  __device__ M sum(M x) const { return over_lanes(x, size, false); }
};

/* Shared memory is used in turns: whoever is in the turn after next has seen everyone leave this one. */
template <class M> struct lanes_or_block { /* size: threads; up to a warp, or all of the block */
  M (*memory)[WARP];
  uint32_t size, turn;
  __device__ M over_all(M x, bool most) {
    if (size <= WARP) return over_lanes(x, size, most);
    const uint32_t warps = size / WARP;
    M *of_warp = memory[turn ^= 1];
    x = over_lanes(x, WARP, most);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = x;
    __syncthreads();
    return over_lanes(of_warp[threadIdx.x & (warps - 1)], warps, most);
  }
  __device__ M most(M x) { return over_all(x, true); }
  __device__ M sum(M x) { return over_all(x, false); }
};

/* --- what they know --------------------------------------------------------------------------------------------------------- */

/* So many elements, and what to multiply by instead of dividing by that. */
template <class M> struct amount {
  M count, inverse;
  __device__ amount(uint32_t elements) : count((M)elements), inverse(elements ? 1 / (M)elements : 0) {}
};

/* The states that a thread has: one. There are lists of up to MOST. */
template <class S> struct one {
  enum { MOST = 1 };
  const S &state;
  __device__ bool has(int) const { return true; }
  __device__ const S &get(int) const { return state; }
};

/* What BODY says for each `known` state of a list. */
#define RL_FOR_KNOWN(BODY)                                      \
  _Pragma("unroll") for (int i = 0; i < LIST::MOST; i++)        \
    if (list.has(i)) {                                          \
      const auto &known = list.get(i);                          \
      BODY;                                                     \
    }

/* --- accesses --------------------------------------------------------------------------------------------------------------- */

/* WIDTH elements, as one access moves them. */
template <class T, int WIDTH> struct alignas(WIDTH * sizeof(T)) few { T at[WIDTH]; };

/* KEPT: x is what of() left. */
template <class OP, bool KEPT, class T, int WIDTH, class X, class MAP>
__device__ static few<T, WIDTH> mapped(const MAP &map, const few<X, WIDTH> &x, const T *w, const T *b, uint32_t at) {
  typedef typename arithmetic<T>::type M;
  M xs[WIDTH], ws[WIDTH] = {}, bs[WIDTH] = {};
  few<T, WIDTH> y, weights, biases; /* copied as a whole, or each element would be an access */
  widen_all<WIDTH>(x.at, xs);
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
__device__ static void load(few<T, WIDTH> (&keeps)[HOLDS], const T *row, uint32_t first, uint32_t step, uint32_t have) {
  const few<T, WIDTH> *from = (const few<T, WIDTH> *)row + first;
#pragma unroll
  for (uint32_t i = 0; i < HOLDS; i++)
    if (i < have) keeps[i] = from[i * step];
}

/* What BODY says for each access that a thread keeps, whose elements are M x[WIDTH]. */
#define RL_FOR_KEPT(BODY)                                \
  _Pragma("unroll") for (int i = 0; i < HOLDS; i++)      \
    if (i < have) {                                      \
      M x[WIDTH];                                        \
      widen_all<WIDTH>(keeps[i].at, x);                  \
      _Pragma("unroll") for (int k = 0; k < WIDTH; k++) BODY; \
    }

template <class OP, class MAP, class T, int WIDTH, int HOLDS>
__device__ static void finish(const MAP &map, const few<T, WIDTH> (&keeps)[HOLDS], T *row, const T *w, const T *b, uint32_t first,
                              uint32_t step, uint32_t have) {
  few<T, WIDTH> *to = (few<T, WIDTH> *)row;
#pragma unroll
  for (uint32_t i = 0; i < HOLDS; i++)
    if (i < have) to[first + i * step] = mapped<OP, true>(map, keeps[i], w, b, first + i * step);
}

} // namespace rows

#endif
