/* softmax on CUDA (rows.cuh). Of what is held the maximum is found first, and then the sum; in a stream they are found together,
 * the sum being scaled whenever the maximum grows. */
#include <cfloat>

#include "kernel/functions.cuh"
#include "kernel/rows.cuh"

struct softmax {
  enum { WEIGHTS = 0 };

  template <class M> struct map {
    M most, scale;
    __device__ M at(M x, M, M) const { return exponential_of(x - most) * scale; }
    template <class T> __device__ M kept(M x, M w, M b) const { return sizeof(T) == sizeof(M) ? x * scale : at(x, w, b); }
  };

  template <class M> struct state {
    M most, sum;
    /* Finite, so that -∞ is below it: a part of a row may have nothing else. */
    __device__ static M least() { return sizeof(M) == sizeof(double) ? (M)-DBL_MAX : (M)-FLT_MAX; }
    /* Leaves exponentials, where they are not rounded by that. */
    template <class T, int WIDTH, int HOLDS, class GROUP>
    __device__ static state of(rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have, uint32_t, GROUP &&group) {
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
          if (sizeof(T) == sizeof(M)) narrow_all<WIDTH>(x, keeps[i].at);
        }
      return {most, group.sum(sum)};
    }
    __device__ static state none() { return {least(), 0}; }
    __device__ void add(M x) {
      if (x > most) *this = {x, sum * exponential_of(most - x)};
      sum += exponential_of(x - most);
    }
    template <class GROUP> __device__ state whole(uint32_t, GROUP &&group) const {
      const M all = group.most(most);
      return {all, group.sum(sum * exponential_of(most - all))};
    }
    __device__ softmax::map<M> map(uint32_t) const { return {most, 1 / sum}; }
    __device__ softmax::map<M> map(const state &part, uint32_t) const {
      return {part.most, exponential_of(part.most - most) / sum};
    }
  };
};

RL_KERNEL_CUDA(softmax, rows::launch<softmax>)
