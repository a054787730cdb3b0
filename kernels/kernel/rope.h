/* Declarations that the definition of rope (rope.c) and its CUDA kernels (rope.cu) share. */
#ifndef RL_KERNELS_KERNEL_ROPE_H
#define RL_KERNELS_KERNEL_ROPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_TOKENS = 0, RL_HEADS = 1, RL_HEAD_SIZE = 2 }; /* indices of the shape's sizes */

/* Returns the angle by which a pair of a head is rotated from one position to the next, in full turns:
 * 10000^(-2 pair / head_size) / 2π. */
long double rl_rope_turns_per_position(int64_t pair, int64_t head_size);
/* Returns the angle at a position in radians, reduced to [-π, π]. position < 2^20. */
double rl_rope_angle(int64_t position, long double turns_per_position);

#ifdef __cplusplus
}
#endif
#endif
