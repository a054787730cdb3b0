/* softmax on CUDA (rows.cuh). Of what is held the largest element is found first, and then the sum of exponentials in units of
 * the power of two next to the largest; in a stream they are found together, and the sum changes its units whenever the largest
 * grows. Sums in different units are added without another exponential. The largest is of a magnitude of up to 7e8. */
#include "kernel/functions.cuh"
#include "kernel/rows.cuh"

struct softmax {
  enum { WEIGHTS = 0 };
  /* Into exponentials, where they are not rounded by that. */
  template <class X> static constexpr bool CHANGES = sizeof(X) == sizeof(typename arithmetic<X>::type);
  template <class X> static constexpr bool MUCH = sizeof(X) == sizeof(double);

  template <class M> struct map {
    int32_t power;
    M scale;
    __device__ M at(M x, M, M) const { return exponentials<M>(power)(x) * scale; }
    template <class X> __device__ M kept(M x, M w, M b) const { return CHANGES<X> ? x * scale : at(x, w, b); }
  };

  template <class M> struct state {
    int32_t power;
    M sum; /* in units of 2^power */
    template <class KEEPS, class GROUP>
    __device__ static state of(KEEPS &keeps, uint32_t have, const rows::amount<M> &, GROUP &&group) {
      const int32_t power = group.most(power_next_to(rows::most_of(keeps, have, (M)-INFINITY)));
      const exponentials<M> exponential(power);
      M sum = 0;
#pragma unroll
      for (int i = 0; i < KEEPS::HOLDS; i++)
        if (i < have) {
          M x[KEEPS::WIDTH];
          const auto access = keeps[i];
          widen_all<KEEPS::WIDTH>(access.at, x);
#pragma unroll
          for (int k = 0; k < KEEPS::WIDTH; k++) sum += x[k] = exponential(x[k]);
          if constexpr (CHANGES<typename KEEPS::type>) narrow_all<KEEPS::WIDTH>(x, keeps[i].at);
        }
      return {power, group.sum(sum)};
    }
    __device__ static state none() { return {LEAST_POWER, 0}; }
    __device__ void add(M x) {
      const int32_t now = power_next_to(x);
      if (now > power) *this = {now, sum * unit_of<M>(power - now)};
      sum += exponentials<M>(power)(x);
    }
    template <class GROUP> __device__ state whole(const rows::amount<M> &, GROUP &&group) const {
      const int32_t all = group.most(power);
      return {all, group.sum(sum * unit_of<M>(power - all))};
    }
    __device__ softmax::map<M> map(const rows::amount<M> &) const { return {power, 1 / sum}; }
    __device__ softmax::map<M> map(const state &part, const rows::amount<M> &) const {
      return {part.power, unit_of<M>(part.power - power) / sum};
    }
  };
};

RL_KERNEL_CUDA_ROWS(softmax)
