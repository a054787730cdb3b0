/* softmax on CUDA (rows.cuh). Of what is held the maximum is found first, and then the sum; in a stream they are found together,
 * the sum being scaled whenever the maximum grows. */
#include <cfloat>

#include "kernel/functions.cuh"
#include "kernel/rows.cuh"

struct softmax {
  enum { WEIGHTS = 0 };
  /* Into exponentials, where they are not rounded by that. */
  template <class X> static constexpr bool CHANGES = sizeof(X) == sizeof(typename arithmetic<X>::type);

  template <class M> struct map {
    M most, scale;
    __device__ M at(M x, M, M) const { return exponential_of(x - most) * scale; }
    template <class X> __device__ M kept(M x, M w, M b) const { return CHANGES<X> ? x * scale : at(x, w, b); }
  };

  template <class M> struct state {
    M most, sum;
    /* Finite, so that -∞ is below it: a part of a row may have nothing else. */
    __device__ static M least() { return sizeof(M) == sizeof(double) ? (M)-DBL_MAX : (M)-FLT_MAX; }
    template <class T, int WIDTH, int HOLDS, class GROUP>
    __device__ static state of(rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have, const rows::amount<M> &, GROUP &&group) {
      M most = least(), sum = 0;
      RL_FOR_KEPT(most = x[k] > most ? x[k] : most)
      most = group.most(most);
#pragma unroll
      for (int i = 0; i < HOLDS; i++)
        if (i < have) {
          M x[WIDTH];
          widen_all<WIDTH>(keeps[i].at, x);
#pragma unroll
          for (int k = 0; k < WIDTH; k++) sum += x[k] = exponential_of(x[k] - most);
          if constexpr (CHANGES<T>) narrow_all<WIDTH>(x, keeps[i].at);
        }
      return {most, group.sum(sum)};
    }
    __device__ static state none() { return {least(), 0}; }
    __device__ void add(M x) {
      if (x > most) *this = {x, sum * exponential_of(most - x)};
      sum += exponential_of(x - most);
    }
    template <class LIST, class GROUP>
    __device__ static state whole(const LIST &list, const rows::amount<M> &, GROUP &&group) {
      M most = least(), sum = 0;
      RL_FOR_KNOWN(most = known.most > most ? known.most : most)
      most = group.most(most);
      RL_FOR_KNOWN(sum += known.sum * exponential_of(known.most - most))
      return {most, group.sum(sum)};
    }
    __device__ softmax::map<M> map(const rows::amount<M> &) const { return {most, 1 / sum}; }
    __device__ softmax::map<M> map(const state &part, const rows::amount<M> &) const {
      return {part.most, exponential_of(part.most - most) / sum};
    }
  };
};

RL_KERNEL_CUDA(softmax, rows::launch<softmax>)
