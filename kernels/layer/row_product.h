/* Matrix products of one row x[inputs], for decoding one token: out = epilogue(x · weightᵀ), for fp16 and bf16. Such a product is
 * bound by the memory bandwidth, because it reads each weight once. Matrices are row-major. Sums are FP32. The epilogue rounds
 * its results, not the sums. The epilogues are those of hopper/product.h, but GATE and ROPE multiply layernorm(x) instead of x.
 *
 * Kernels are launched with programmatic dependent launch: a kernel begins to load weights, which no kernel writes, while the
 * previous kernel of the stream runs. Included by .cu files only. */
#ifndef RL_LAYER_ROW_PRODUCT_H
#define RL_LAYER_ROW_PRODUCT_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/error.h"
#include "hopper/product.h"

typedef struct rl_row_product {
  int dtype; /* RL_DTYPE_FP16 or RL_DTYPE_BF16 */
  rl_hopper_epilogue epilogue;
  int64_t columns, inputs;             /* weight[columns][inputs]; inputs: a multiple of 8; columns: even */
  const void *x, *weight, *up_weight;  /* up_weight: only for GATE */
  const void *norm_weight, *norm_bias; /* [inputs], for GATE and ROPE */
  const void *addend;                  /* [columns], for ADD */
  void *out;                           /* [columns] */
  const float *rotations;              /* for ROPE: [head_size], cosine and sine for each pair of elements of a head */
  int64_t head_size, rotated_columns;  /* for ROPE; head_size must divide columns and rotated_columns */
  int64_t multiprocessors;             /* of the device: at most as many blocks are launched */
} rl_row_product;

/* Returns whether the row, and what the epilogue needs besides it, fit into shared memory. */
bool rl_row_product_supports(rl_hopper_epilogue epilogue, int64_t inputs);
/* Returns 0, or -1 and sets err. */
int rl_row_product_launch(const rl_row_product *product, cudaStream_t stream, rl_error *err);

#endif
