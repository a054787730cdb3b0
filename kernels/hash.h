/* A 64-bit hash with the same result on the host and on devices. Pseudo-random numbers are hashes of a seed and an index, so any
 * thread can compute any of them, in any order. */
#ifndef RL_KERNELS_HASH_H
#define RL_KERNELS_HASH_H

#include <stdint.h>

#ifdef __CUDACC__
#define RL_HOST_DEVICE __host__ __device__ static inline
#else
#define RL_HOST_DEVICE static inline
#endif

/* SplitMix64: one step of the generator and its finaliser (Steele, Lea, Flood 2014). */
RL_HOST_DEVICE uint64_t rl_hash64(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

#endif
