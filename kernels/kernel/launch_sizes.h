/* Integer arithmetic for the sizes of grids and blocks. */
#ifndef RL_KERNELS_KERNEL_LAUNCH_SIZES_H
#define RL_KERNELS_KERNEL_LAUNCH_SIZES_H

#include <stdint.h>

/* Returns count / divisor, rounded up. */
static inline uint32_t ceil_div(uint32_t count, uint32_t divisor) { return (count + divisor - 1) / divisor; }

/* Returns the smallest power of two that is at least `minimum`. */
static inline uint32_t bit_ceil(uint32_t minimum) {
  uint32_t power = 1;
  while (power < minimum) power *= 2;
  return power;
}

#endif
