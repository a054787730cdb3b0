/* Numbers that look random and are the same for a seed everywhere: on the host and on devices, in any order. */
#ifndef RL_KERNELS_MIX_H
#define RL_KERNELS_MIX_H

#include <stdint.h>

#ifdef __CUDACC__
#define RL_BOTH __host__ __device__ static inline
#else
#define RL_BOTH static inline
#endif

/* SplitMix64's finaliser (Steele, Lea, Flood 2014). */
RL_BOTH uint64_t rl_mix64(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

#endif
