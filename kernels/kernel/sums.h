/* Error bounds of long sums of products. */
#ifndef RL_KERNELS_KERNEL_SUMS_H
#define RL_KERNELS_KERNEL_SUMS_H

#include <math.h>
#include <stdint.h>

enum { RL_SUM_LENGTH_MAX = 1 << 24 }; /* longer sums overflow fp16, and their error bounds would be too wide to find errors */

/* Returns a bound of the error of a sum of `length` products of independent inputs with mean 0, in units in the last place of the
 * accumulator, relative to rl_sum_scale. √n/2 covers rounding to nearest, whose errors partly cancel (Higham & Mary, "A new
 * approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019). */
static inline double rl_sum_ulps(int64_t length) { return 1 + sqrt((double)length) / 2; }

/* Returns the error that tensor cores add to rl_sum_ulps, in the same units. Tensor cores sum at least 16 products at a time and
 * truncate (Fasi, Higham, Mikaitis & Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Comput. Sci. 7, 2021), which
 * errs towards zero by half a unit each time. */
static inline double rl_sum_truncation_ulps(int64_t length) { return (double)length / 32; }

/* Returns the standard deviation of a sum of `length` products: inputs are uniform in [-2, 2), so the variance of a product is
 * (4/3)². */
static inline double rl_sum_scale(int64_t length) { return sqrt((double)length) * 4 / 3; }

/* Defines rl_dot_double and rl_dot_float, which return the dot product of two vectors. */
#define RL_LOOPS_HEADER "kernel/loops/dot.h"
#include "kernel/float_and_double.h"

#endif
