/* softmax on CUDA (rows.cuh). Of rows that are held the maximum is found first, and then the sum; in a stream they are found together, the
 * sum being scaled whenever the maximum grows. */
#include "kernel/functions.cuh"
#include "kernel/rows.cuh"

struct softmax {
  enum { WEIGHTS = 0 };

  template <class M> struct map {
    M most, scale;
    __device__ M at(M x, M, M) const { return exponential_of(x - most) * scale; }
  };

  /* Leaves exponentials, where they are not rounded by that. */
  template <class M, class T, int WIDTH, int HOLDS, class GROUP>
  __device__ static map<M> held(rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have, uint32_t, GROUP &group) {
    M most = -(M)INFINITY, sum = 0;
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
    return {most, 1 / group.sum(sum)};
  }

  template <class T, class M> __device__ static M kept(const map<M> &map, M x, M w, M b) {
    return sizeof(T) == sizeof(M) ? x * map.scale : map.at(x, w, b);
  }

  template <class M> struct state {
    M most, sum;
    __device__ static state none() { return {-(M)INFINITY, 0}; }
    __device__ void add(M x) { *this = merge(*this, {x, 1}); }
    /* Where both maxima are equal, infinite ones too, there is nothing to scale. */
    __device__ static state merge(const state &a, const state &b) {
      const bool less = a.most < b.most;
      const state &low = less ? a : b, &high = less ? b : a;
      return {high.most, high.sum + (low.most == high.most ? low.sum : low.sum * exponential_of(low.most - high.most))};
    }
    __device__ softmax::map<M> map(uint32_t) const { return {most, 1 / sum}; }
  };
};

RL_KERNEL_CUDA(softmax, rows::launch<softmax>)
