/* Our matrix product for Hopper: out = epilogue(x · weightᵀ), by wgmma and bulk tensor copies, for fp16 and bf16. All matrices
 * are row-major, and sums are FP32 until the epilogue has been applied:
 *
 *   ADD   out = x · weightᵀ + addend
 *   GATE  out = silu(x · weightᵀ) · (x · up_weightᵀ)
 *   ROPE  out = x · weightᵀ, in whose first rotated_columns columns every head is rotated (kernel/rope.h)
 */
#ifndef RL_HOPPER_PRODUCT_H
#define RL_HOPPER_PRODUCT_H

#include "device/device.h"

typedef enum rl_hopper_epilogue { RL_HOPPER_ADD, RL_HOPPER_GATE, RL_HOPPER_ROPE } rl_hopper_epilogue;

typedef struct rl_hopper_shape {
  int dtype; /* RL_DTYPE_FP16 or RL_DTYPE_BF16 */
  rl_hopper_epilogue epilogue;
  int64_t rows, columns, inputs; /* x[rows][inputs], weight[columns][inputs], out[rows][columns]; multiples of 8, rows apart */
  const void *x, *weight, *up_weight; /* up_weight: GATE */
  void *out;
  int64_t out_stride;                                         /* elements between rows of out; a multiple of 8 */
  const void *addend;                                         /* ADD: [rows][columns] */
  const float *rotations;                                     /* ROPE: [positions][head_size]: cosine and sine of each pair */
  int64_t head_size, rotated_columns, tokens, first_position; /* ROPE: row r has the position first_position + r % tokens */
} rl_hopper_shape;

typedef struct rl_hopper_product rl_hopper_product;

/* Returns whether the device and this build have the kernel, and it computes this shape. */
bool rl_hopper_supports(const rl_device *device, const rl_hopper_shape *shape);
int rl_hopper_open(const rl_hopper_shape *shape, rl_hopper_product **product, rl_error *err);
void rl_hopper_close(rl_hopper_product *product); /* NULL is allowed */
int rl_hopper_enqueue(const rl_hopper_product *product, rl_stream stream, rl_error *err);

#endif
