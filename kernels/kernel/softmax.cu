/* softmax on CUDA (rows.cuh): online, as the largest element so far and the sum of the exponentials relative to it. */
#include "kernel/rows.cuh"

/* By the base that the hardware knows. */
__device__ static inline float exp_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504088896340736f));
  return y;
}
__device__ static inline double exp_of(double x) { return exp(x); }

struct softmax {
  enum { WEIGHTS = 0 };

  template <class M> struct state {
    M most, sum;
    __device__ static state none() { return {-(M)INFINITY, 0}; }

    /* Leaves exponentials relative to its own maximum. */
    template <class T, int WIDTH, int HOLDS> __device__ static state of(rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have) {
      state s = none();
#pragma unroll
      for (int i = 0; i < HOLDS; i++)
        if (i < have) {
          M x[WIDTH];
          widen_all<WIDTH>(keeps[i].at, x);
#pragma unroll
          for (int k = 0; k < WIDTH; k++) s.most = x[k] > s.most ? x[k] : s.most;
        }
#pragma unroll
      for (int i = 0; i < HOLDS; i++)
        if (i < have) {
          M x[WIDTH];
          widen_all<WIDTH>(keeps[i].at, x);
#pragma unroll
          for (int k = 0; k < WIDTH; k++) s.sum += x[k] = exp_of(x[k] - s.most);
          if (sizeof(T) == sizeof(M)) narrow_all<WIDTH>(x, keeps[i].at);
        }
      return s;
    }
  };

  /* Where both maxima are equal, infinite ones too, there is nothing to scale. */
  template <class S> __device__ static S merge(const S &a, const S &b) {
    const bool less = a.most < b.most;
    const S &low = less ? a : b, &high = less ? b : a;
    return {high.most, high.sum + (low.most == high.most ? low.sum : low.sum * exp_of(low.most - high.most))};
  }

  template <class M, class T> struct map {
    M most, scale, own_scale;
    __device__ map(const state<M> &row, const state<M> &own, uint32_t)
        : most(row.most), scale(1 / row.sum), own_scale(exp_of(own.most - row.most) / row.sum) {}
    __device__ M at(M x, M, M) const { return exp_of(x - most) * scale; }
    __device__ M kept(M x, M w, M b) const { return sizeof(T) == sizeof(M) ? x * own_scale : at(x, w, b); }
  };
};

RL_KERNEL_CUDA(softmax, rows::launch<softmax>)
