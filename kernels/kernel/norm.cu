/* rmsnorm and layernorm on CUDA (rows.cuh). Of what is held layernorm finds the mean first, and then the deviations from it;
 * in a stream it finds them together, and of several parts from theirs, without cancellation (Welford 1962; Chan, Golub,
 * LeVeque 1983). */
#include "kernel/norm.h"
#include "kernel/rows.cuh"

__device__ static inline float inverse_root(float x) { return rsqrtf(x); }
__device__ static inline double inverse_root(double x) { return rsqrt(x); }

/* 1 / √(squares / columns + ε) */
template <class M> __device__ static M scale_of(M squares, const rows::amount<M> &columns) {
  return inverse_root(squares * columns.inverse + (M)RL_NORM_EPSILON);
}

struct rmsnorm {
  enum { WEIGHTS = 1 };
  template <class X> static constexpr bool CHANGES = false;
  template <class X> static constexpr bool MUCH = false;

  template <class M> struct map {
    M scale;
    __device__ M at(M x, M w, M) const { return x * scale * w; }
    template <class X> __device__ M kept(M x, M w, M b) const { return at(x, w, b); }
  };

  template <class M> struct state {
    M squares;
    template <class KEEPS, class GROUP>
    __device__ static state of(KEEPS &keeps, uint32_t have, const rows::amount<M> &, GROUP &&group) {
      M squares = 0;
      RL_FOR_KEPT(squares += x[k] * x[k])
      return {group.sum(squares)};
    }
    __device__ static state none() { return {0}; }
    __device__ void add(M x) { squares += x * x; }
    template <class GROUP> __device__ state whole(const rows::amount<M> &, GROUP &&group) const { return {group.sum(squares)}; }
    __device__ rmsnorm::map<M> map(const rows::amount<M> &columns) const { return {scale_of(squares, columns)}; }
    __device__ rmsnorm::map<M> map(const state &, const rows::amount<M> &columns) const { return map(columns); }
  };
};

struct layernorm {
  enum { WEIGHTS = 2 };
  template <class X> static constexpr bool CHANGES = false;
  template <class X> static constexpr bool MUCH = false;

  template <class M> struct map {
    M mean, scale;
    __device__ M at(M x, M w, M b) const { return (x - mean) * scale * w + b; }
    template <class X> __device__ M kept(M x, M w, M b) const { return at(x, w, b); }
  };

  template <class M> struct state {
    M count, mean, squares; /* of deviations */
    template <class KEEPS, class GROUP>
    __device__ static state of(KEEPS &keeps, uint32_t have, const rows::amount<M> &all, GROUP &&group) {
      M sum = 0, squares = 0;
      RL_FOR_KEPT(sum += x[k])
      const M mean = group.sum(sum) * all.inverse;
      RL_FOR_KEPT(squares += (x[k] - mean) * (x[k] - mean))
      return {all.count, mean, group.sum(squares)};
    }
    __device__ static state none() { return {0, 0, 0}; }
    __device__ void add(M x) {
      const M apart = x - mean;
      count += 1;
      mean += apart / count;
      squares += apart * (x - mean);
    }
    template <class GROUP> __device__ state whole(const rows::amount<M> &all, GROUP &&group) const {
      const M middle = group.sum(mean * count) * all.inverse, apart = mean - middle;
      return {all.count, middle, group.sum(squares + apart * apart * count)};
    }
    __device__ layernorm::map<M> map(const rows::amount<M> &columns) const { return {mean, scale_of(squares, columns)}; }
    __device__ layernorm::map<M> map(const state &, const rows::amount<M> &columns) const { return map(columns); }
  };
};

RL_KERNEL_CUDA_ROWS(rmsnorm)
RL_KERNEL_CUDA_ROWS(layernorm)
