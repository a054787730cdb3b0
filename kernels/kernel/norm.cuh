/* The operators rmsnorm and layernorm for the row kernels (rows.cuh). layernorm has three ways to compute the mean and the sum
 * of squared deviations from the mean, none of which suffers from cancellation: for elements in registers (from_fragment), first
 * the mean, then the sum; for a stream of elements (add), an update of both with each element (Welford 1962); for parts of a row
 * (reduced), a combination of the results of the parts (Chan, Golub, LeVeque 1983). */
#ifndef RL_KERNELS_KERNEL_NORM_CUH
#define RL_KERNELS_KERNEL_NORM_CUH

#include "kernel/norm.h"
#include "kernel/rows.cuh"

__device__ static inline float reciprocal_sqrt(float x) { return rsqrtf(x); }
__device__ static inline double reciprocal_sqrt(double x) { return rsqrt(x); }

/* Returns the factor of the normalisation, 1 / √(squares / columns + ε). */
template <class M> __device__ static M normalization_scale(M squares, const rows::element_count<M> &columns) {
  return reciprocal_sqrt(squares * columns.reciprocal + (M)RL_NORM_EPSILON);
}

struct rmsnorm {
  enum { WEIGHT_VECTORS = 1 };
  template <class X> static constexpr bool TRANSFORMS = false;
  template <class X> static constexpr bool COMPUTE_HEAVY = false;

  template <class M> struct output {
    M scale;
    __device__ M of_element(M x, M w, M) const { return x * scale * w; }
    template <class X> __device__ M of_transformed(M x, M w, M b) const { return of_element(x, w, b); }
  };

  template <class M> struct state {
    M squares; /* sum of the squared elements */
    template <class FRAGMENT, class GROUP> __device__ static state from_fragment(FRAGMENT &fragment, uint32_t valid_vectors,
                                                                                 const rows::element_count<M> &, GROUP &&group) {
      M squares = 0;
      RL_FOR_EACH_ELEMENT(squares += x[k] * x[k])
      return {group.sum(squares)};
    }
    __device__ static state empty() { return {0}; }
    __device__ void add(M x) { squares += x * x; }
    template <class GROUP> __device__ state reduced(const rows::element_count<M> &, GROUP &&group) const {
      return {group.sum(squares)};
    }
    __device__ rmsnorm::output<M> output(const rows::element_count<M> &columns) const {
      return {normalization_scale(squares, columns)};
    }
    __device__ rmsnorm::output<M> output(const state &, const rows::element_count<M> &columns) const { return output(columns); }
  };
};

struct layernorm {
  enum { WEIGHT_VECTORS = 2 };
  template <class X> static constexpr bool TRANSFORMS = false;
  template <class X> static constexpr bool COMPUTE_HEAVY = false;

  template <class M> struct output {
    M mean, scale;
    __device__ M of_element(M x, M w, M b) const { return (x - mean) * scale * w + b; }
    template <class X> __device__ M of_transformed(M x, M w, M b) const { return of_element(x, w, b); }
  };

  template <class M> struct state {
    M count, mean, squared_deviations; /* squared_deviations: sum of the squared deviations from the mean */
    template <class FRAGMENT, class GROUP> __device__ static state from_fragment(FRAGMENT &fragment, uint32_t valid_vectors,
                                                                                 const rows::element_count<M> &elements,
                                                                                 GROUP &&group) {
      M sum = 0, squared_deviations = 0;
      RL_FOR_EACH_ELEMENT(sum += x[k])
      const M mean = group.sum(sum) * elements.reciprocal;
      RL_FOR_EACH_ELEMENT(squared_deviations += (x[k] - mean) * (x[k] - mean))
      return {elements.count, mean, group.sum(squared_deviations)};
    }
    __device__ static state empty() { return {0, 0, 0}; }
    __device__ void add(M x) {
      const M deviation = x - mean;
      count += 1;
      mean += deviation / count;
      squared_deviations += deviation * (x - mean);
    }
    template <class GROUP> __device__ state reduced(const rows::element_count<M> &elements, GROUP &&group) const {
      const M total_mean = group.sum(mean * count) * elements.reciprocal, deviation = mean - total_mean;
      return {elements.count, total_mean, group.sum(squared_deviations + deviation * deviation * count)};
    }
    __device__ layernorm::output<M> output(const rows::element_count<M> &columns) const {
      return {mean, normalization_scale(squared_deviations, columns)};
    }
    __device__ layernorm::output<M> output(const state &, const rows::element_count<M> &columns) const { return output(columns); }
  };
};

#endif
