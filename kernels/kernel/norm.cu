/* rmsnorm and layernorm on CUDA (rows.cuh). Of rows that are held layernorm finds the mean first, and then the deviations from it; in a
 * stream it finds them together, without cancellation (Welford 1962; Chan, Golub, LeVeque 1983). */
#include "kernel/norm.h"
#include "kernel/rows.cuh"

__device__ static inline float inverse_root(float x) { return rsqrtf(x); }
__device__ static inline double inverse_root(double x) { return rsqrt(x); }

/* 1 / √(squares / columns + ε) */
template <class M> __device__ static M scale_of(M squares, uint32_t columns) {
  return inverse_root(squares / (M)columns + (M)RL_NORM_EPSILON);
}

struct rmsnorm {
  enum { WEIGHTS = 1 };

  template <class M> struct map {
    M scale;
    __device__ M at(M x, M w, M) const { return x * scale * w; }
  };

  template <class M, class T, int WIDTH, int HOLDS, class GROUP>
  __device__ static map<M> held(const rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have, uint32_t columns, GROUP &group) {
    M squares = 0;
    RL_FOR_KEPT(squares += x[k] * x[k])
    return {scale_of(group.sum(squares), columns)};
  }

  template <class T, class M> __device__ static M kept(const map<M> &map, M x, M w, M b) { return map.at(x, w, b); }

  template <class M> struct state {
    M squares;
    __device__ static state none() { return {0}; }
    __device__ void add(M x) { squares += x * x; }
    __device__ static state merge(const state &a, const state &b) { return {a.squares + b.squares}; }
    __device__ rmsnorm::map<M> map(uint32_t columns) const { return {scale_of(squares, columns)}; }
  };
};

struct layernorm {
  enum { WEIGHTS = 2 };

  template <class M> struct map {
    M mean, scale;
    __device__ M at(M x, M w, M b) const { return (x - mean) * scale * w + b; }
  };

  template <class M, class T, int WIDTH, int HOLDS, class GROUP>
  __device__ static map<M> held(const rows::few<T, WIDTH> (&keeps)[HOLDS], uint32_t have, uint32_t columns, GROUP &group) {
    M sum = 0, squares = 0;
    RL_FOR_KEPT(sum += x[k])
    const M mean = group.sum(sum) / (M)columns;
    RL_FOR_KEPT(squares += (x[k] - mean) * (x[k] - mean))
    return {mean, scale_of(group.sum(squares), columns)};
  }

  template <class T, class M> __device__ static M kept(const map<M> &map, M x, M w, M b) { return map.at(x, w, b); }

  template <class M> struct state {
    M count, mean, squares;
    __device__ static state none() { return {0, 0, 0}; }
    __device__ void add(M x) { *this = merge(*this, {1, x, 0}); }
    __device__ static state merge(const state &a, const state &b) {
      if (b.count == 0) return a;
      const M count = a.count + b.count, part = b.count / count, apart = b.mean - a.mean;
      return {count, a.mean + apart * part, a.squares + b.squares + apart * apart * a.count * part};
    }
    __device__ layernorm::map<M> map(uint32_t columns) const { return {mean, scale_of(squares, columns)}; }
  };
};

RL_KERNEL_CUDA(rmsnorm, rows::launch<rmsnorm>)
RL_KERNEL_CUDA(layernorm, rows::launch<layernorm>)
