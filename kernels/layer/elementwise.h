/* Launch functions of the CUDA kernels that the layer runs between its matrix products: layernorm, rope, residual and gate.
 * Tensors are fp16 or bf16; dtype is an rl_dtype. hidden and ffn must be multiples of 8, and rows must be aligned to 16 bytes.
 * All functions return 0, or -1 and set err. Only .cu files include this header. */
#ifndef RL_KERNELS_LAYER_ELEMENTWISE_H
#define RL_KERNELS_LAYER_ELEMENTWISE_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_layer_norm { /* y[rows][columns] = layernorm(x) · weight + bias */
  const void *x, *weight, *bias;
  void *y;
  int64_t rows, columns;
  uint32_t *next_row_counter; /* device memory; zero between launches */
  bool has_clusters;          /* whether the device supports thread block clusters */
} rl_layer_norm;
int rl_layer_norm_launch(int dtype, const rl_layer_norm *norm, cudaStream_t stream, rl_error *err);

typedef struct rl_layer_rope {     /* rotates all heads of q and k of the new tokens in place */
  void *qkv;                       /* address of q of the first new token; new tokens of a sequence have adjacent rows */
  int64_t batch, tokens;           /* sequences; new tokens of a sequence */
  int64_t first_position, context; /* position of the first new token; rows of a sequence in qkv */
  int64_t hidden, head_size;
  const float2 *rotations; /* [context][head_size / 2]: cosine and sine */
} rl_layer_rope;
int rl_layer_rope_launch(int dtype, const rl_layer_rope *rope, cudaStream_t stream, rl_error *err);

/* Computes y[count] = x + residual. count must be a multiple of 8. */
int rl_layer_add_launch(int dtype, const void *x, const void *residual, void *y, int64_t count, cudaStream_t stream,
                        rl_error *err);

typedef struct rl_layer_gate { /* y[rows][columns] = silu(gate) · up */
  const void *gate, *up;
  int64_t stride; /* elements between rows of gate and of up */
  void *y;
  int64_t rows, columns;
} rl_layer_gate;
int rl_layer_gate_launch(int dtype, const rl_layer_gate *gate, cudaStream_t stream, rl_error *err);

#endif
