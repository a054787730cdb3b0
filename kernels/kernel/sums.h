/* Sums of many products: how far they may be off. */
#ifndef RL_KERNELS_KERNEL_SUMS_H
#define RL_KERNELS_KERNEL_SUMS_H

#include <math.h>
#include <stdint.h>

enum { RL_SUM_LENGTH_MAX = 1 << 24 }; /* products in a sum: beyond it fp16 results overflow, and these bounds say little */

/* In units in the last place of the type that is summed in, relative to the typical size of the sum, for products of independent
 * inputs around zero. √n/2 covers rounding to nearest, whose errors partly cancel (Higham & Mary, "A new approach to
 * probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019). */
static inline double rl_sum_ulps(int64_t length) { return 1 + sqrt((double)length) / 2; }

/* What tensor cores add to that: they sum at least 16 products at a time and cut off what does not fit (Fasi, Higham, Mikaitis &
 * Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Comput. Sci. 7, 2021), which always errs towards zero, by half a
 * unit a time. */
static inline double rl_sum_truncation_ulps(int64_t length) { return (double)length / 32; }

/* The typical size of such a sum: inputs are uniform in [-2, 2), so a product's variance is (4/3)². */
static inline double rl_sum_scale(int64_t length) { return sqrt((double)length) * 4 / 3; }

/* rl_dot_double, rl_dot_float: Σ a[i] b[i] over count. */
#define LOOPS "kernel/loops/dot.h"
#include "kernel/in_both_types.h"

#endif
