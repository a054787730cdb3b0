/* A matrix product for Hopper with wgmma and TMA: out = epilogue(x · weightᵀ), for fp16 and bf16. All matrices are row-major.
 * Sums are FP32 until the epilogue rounds the results to the type of `out`. The epilogues:
 *
 *   ADD   out = x · weightᵀ + addend
 *   GATE  out = silu(x · weightᵀ) · (x · up_weightᵀ)
 *   ROPE  out = x · weightᵀ, where every head in the first rotated_columns columns is rotated (kernel/rope.h) */
#ifndef RL_HOPPER_PRODUCT_H
#define RL_HOPPER_PRODUCT_H

#include "device/device.h"

typedef enum rl_hopper_epilogue { RL_HOPPER_ADD, RL_HOPPER_GATE, RL_HOPPER_ROPE } rl_hopper_epilogue;

typedef struct rl_hopper_shape {
  int dtype; /* RL_DTYPE_FP16 or RL_DTYPE_BF16 */
  rl_hopper_epilogue epilogue;
  /* x[rows][inputs], weight[columns][inputs], out[rows][columns]. inputs and columns are multiples of 8. */
  int64_t rows, columns, inputs;
  const void *x, *weight, *up_weight; /* up_weight: only for GATE */
  void *out;
  int64_t out_stride;     /* elements between rows of out; a multiple of 8 */
  const void *addend;     /* matrix [rows][columns] that ADD adds */
  const float *rotations; /* for ROPE: rotations[position][head_size], the cosine and the sine for each pair of elements */
  int64_t head_size, rotated_columns, tokens, first_position; /* for ROPE: row r has the position first_position + r % tokens */
} rl_hopper_shape;

typedef struct rl_hopper_product rl_hopper_product;

/* Returns true if the kernel supports this shape and this build has machine code with wgmma for the device. */
bool rl_hopper_product_supports(const rl_device *device, const rl_hopper_shape *shape);
/* Prepares a product on the current device. Returns 0, or -1 with err. The caller closes *product; the matrices of `shape` must
 * outlive it. */
int rl_hopper_product_open(const rl_hopper_shape *shape, rl_hopper_product **product, rl_error *err);
void rl_hopper_product_close(rl_hopper_product *product); /* NULL is allowed */
/* Enqueues the product on the stream. Returns 0, or -1 with err. */
int rl_hopper_product_enqueue(const rl_hopper_product *product, rl_stream stream, rl_error *err);

#endif
