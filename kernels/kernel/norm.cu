/* rmsnorm and layernorm on CUDA (rows.cuh). layernorm keeps mean and sum of squared deviations of what it has seen, and merges two of
 * those without cancellation (Chan, Golub, LeVeque 1983). */
#include "kernel/norm.h"
#include "kernel/rows.cuh"

__device__ static inline float inverse_root(float x) { return rsqrtf(x); }
__device__ static inline double inverse_root(double x) { return rsqrt(x); }

__device__ static inline float quotient(float a, float b) { return __fdividef(a, b); }
__device__ static inline double quotient(double a, double b) { return a / b; }

struct rmsnorm {
  enum { WEIGHTS = 1 };

  template <class M> struct state {
    M squares;
    __device__ static state none() { return {0}; }
    template <class T, int WIDTH, int HOLDS> __device__ static state of(const rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have) {
      state s = none();
#pragma unroll
      for (int i = 0; i < HOLDS; i++)
        if (i < have) {
          M x[WIDTH];
          widen_all<WIDTH>(keeps[i].at, x);
#pragma unroll
          for (int k = 0; k < WIDTH; k++) s.squares += x[k] * x[k];
        }
      return s;
    }
  };

  template <class S> __device__ static S merge(const S &a, const S &b) { return {a.squares + b.squares}; }

  template <class M, class T> struct map {
    M scale;
    __device__ map(const state<M> &s, const state<M> &, uint32_t columns) : scale(inverse_root(s.squares / (M)columns + (M)RL_NORM_EPSILON)) {}
    __device__ M at(M x, M w, M) const { return x * scale * w; }
    __device__ M kept(M x, M w, M b) const { return at(x, w, b); }
  };
};

struct layernorm {
  enum { WEIGHTS = 2 };

  template <class M> struct state {
    M count, mean, squares;
    __device__ static state none() { return {0, 0, 0}; }
    template <class T, int WIDTH, int HOLDS> __device__ static state of(const rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have) {
      state s = {(M)(have * WIDTH), 0, 0};
#pragma unroll
      for (int i = 0; i < HOLDS; i++)
        if (i < have) {
          M x[WIDTH];
          widen_all<WIDTH>(keeps[i].at, x);
#pragma unroll
          for (int k = 0; k < WIDTH; k++) s.mean += x[k];
        }
      if (have > 0) s.mean = s.mean / s.count;
#pragma unroll
      for (int i = 0; i < HOLDS; i++)
        if (i < have) {
          M x[WIDTH];
          widen_all<WIDTH>(keeps[i].at, x);
#pragma unroll
          for (int k = 0; k < WIDTH; k++) s.squares += (x[k] - s.mean) * (x[k] - s.mean);
        }
      return s;
    }
  };

  template <class S> __device__ static S merge(const S &a, const S &b) {
    if (b.count == 0) return a;
    const auto count = a.count + b.count, part = quotient(b.count, count), apart = b.mean - a.mean;
    return {count, a.mean + apart * part, a.squares + b.squares + apart * apart * a.count * part};
  }

  template <class M, class T> struct map {
    M mean, scale;
    __device__ map(const state<M> &s, const state<M> &, uint32_t columns)
        : mean(s.mean), scale(inverse_root(s.squares / (M)columns + (M)RL_NORM_EPSILON)) {}
    __device__ M at(M x, M w, M b) const { return (x - mean) * scale * w + b; }
    __device__ M kept(M x, M w, M b) const { return at(x, w, b); }
  };
};

RL_KERNEL_CUDA(rmsnorm, rows::launch<rmsnorm>)
RL_KERNEL_CUDA(layernorm, rows::launch<layernorm>)
