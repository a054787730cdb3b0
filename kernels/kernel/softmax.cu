/* The operator softmax in the form that the row kernels take (rows.cuh, which describes an operator's members). For each row, y =
 * exp(x - maximum) / sum of these exponentials. Exponentials are computed in units of 2^power, the power of two that is nearest
 * to exp(maximum), so that they do not overflow. For elements in registers (from_fragment), the maximum is found first, then the
 * sum of exponentials. For a stream of elements (add), power and sum are updated with each element: when the power grows, the sum
 * is rescaled. Rescaling is exact, so sums in different units can be added. Elements may have magnitudes of up to 7e8 (scaled_exp
 * in functions.cuh).
 *
 * Template parameters: X is the type of elements in memory, M the arithmetic type (float or double), FRAGMENT the elements of a
 * row that a thread holds in registers, and GROUP the threads that share a row, with reductions over them. */
#include "kernel/functions.cuh"
#include "kernel/rows.cuh"

struct softmax {
  enum { WEIGHT_VECTORS = 0 };
  /* true: from_fragment replaces the elements by their exponentials, because X is the arithmetic type and so does not round
   * them */
  template <class X> static constexpr bool TRANSFORMS = sizeof(X) == sizeof(typename arithmetic<X>::type);
  /* true: the arithmetic takes about as long as reading and writing the elements */
  template <class X> static constexpr bool COMPUTE_HEAVY = sizeof(X) == sizeof(double);

  /* The output function of a row (rows.cuh). softmax ignores the weight w and the bias b. */
  template <class M> struct output {
    int32_t power;
    M scale;
    __device__ M of_element(M x, M, M) const { return scaled_exp<M>(power)(x) * scale; }
    template <class X> __device__ M of_transformed(M x, M w, M b) const {
      return TRANSFORMS<X> ? x * scale : of_element(x, w, b);
    }
  };

  /* The state of a row, or of the part of it that has been processed. */
  template <class M> struct state {
    int32_t power;
    M sum; /* sum of exponentials in units of 2^power */
    template <class FRAGMENT, class GROUP> __device__ static state from_fragment(FRAGMENT &fragment, uint32_t valid_vectors,
                                                                                 const rows::element_count<M> &, GROUP &&group) {
      const int32_t power = group.max(nearest_power(rows::max_element(fragment, valid_vectors, (M)-INFINITY)));
      const scaled_exp<M> exponential(power);
      M sum = 0;
#pragma unroll
      for (int i = 0; i < FRAGMENT::VECTORS; i++)
        if (i < valid_vectors) {
          M x[FRAGMENT::WIDTH];
          const auto vector = fragment[i];
          widen_all<FRAGMENT::WIDTH>(vector.elements, x);
#pragma unroll
          for (int k = 0; k < FRAGMENT::WIDTH; k++) sum += x[k] = exponential(x[k]);
          if constexpr (TRANSFORMS<typename FRAGMENT::type>) narrow_all<FRAGMENT::WIDTH>(x, fragment[i].elements);
        }
      return {power, group.sum(sum)};
    }
    __device__ static state empty() { return {MIN_POWER, 0}; }
    __device__ void add(M x) {
      const int32_t power_of_x = nearest_power(x);
      if (power_of_x > power) *this = {power_of_x, sum * power_of_two<M>(power - power_of_x)};
      sum += scaled_exp<M>(power)(x);
    }
    template <class GROUP> __device__ state reduced(const rows::element_count<M> &, GROUP &&group) const {
      const int32_t max_power = group.max(power);
      return {max_power, group.sum(sum * power_of_two<M>(power - max_power))};
    }
    __device__ softmax::output<M> output(const rows::element_count<M> &) const { return {power, 1 / sum}; }
    /* Returns the output for elements of `part`, whose exponentials are in units of 2^part.power; *this is the whole row. */
    __device__ softmax::output<M> output(const state &part, const rows::element_count<M> &) const {
      return {part.power, power_of_two<M>(part.power - power) / sum};
    }
  };
};

RL_KERNEL_CUDA_ROWS(softmax)
