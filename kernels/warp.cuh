/* Reductions over the lanes of a warp, or over groups of `lanes` neighbouring lanes (a power of two). All lanes of the warp call
 * the function together, and each lane gets the result of its group. */
#ifndef RL_KERNELS_WARP_CUH
#define RL_KERNELS_WARP_CUH

#include <stdint.h>

enum { WARP_SIZE = 32 };

template <class T> static __device__ __forceinline__ T warp_sum(T x, uint32_t lanes = WARP_SIZE) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(~0u, x, mask);
  return x;
}

static __device__ __forceinline__ float warp_max(float x, uint32_t lanes = WARP_SIZE) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, mask));
  return x;
}

/* For a whole warp this is one instruction, redux.sync, which needs compute capability 8.0. */
static __device__ __forceinline__ int32_t warp_max(int32_t x, uint32_t lanes = WARP_SIZE) {
  if (lanes == WARP_SIZE) return __reduce_max_sync(~0u, x);
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) x = max(x, __shfl_xor_sync(~0u, x, mask));
  return x;
}

#endif
