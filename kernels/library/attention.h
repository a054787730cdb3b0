/* Attention, softmax(Q Kᵀ / √d) V with an optional causal mask, as one fused kernel of cuDNN. */
#ifndef RL_LIBRARY_ATTENTION_H
#define RL_LIBRARY_ATTENTION_H

#include "library/dnn.h"

/* Distances in elements between sequences of the batch, heads and rows of a tensor. The elements of a row are adjacent. */
typedef struct rl_attention_strides {
  int64_t sequence, head, row;
} rl_attention_strides;

typedef struct rl_attention_shape {
  int64_t batch, heads, kv_heads; /* heads: heads of q and o; kv_heads: heads of k and v */
  int64_t rows, kv_rows;          /* rows of a sequence in q and o, and in k and v */
  int64_t head_size;
  bool causal;          /* a row attends only to itself and to the rows before it */
  cudnnDataType_t type; /* HALF or BFLOAT16; scores and sums are FP32 */
  rl_attention_strides q, kv, o;
} rl_attention_shape;

/* The strides of a dense tensor [batch][heads][rows][head_size]. */
static inline rl_attention_strides rl_attention_dense(int64_t heads, int64_t rows, int64_t head_size) {
  return {heads * rows * head_size, rows * head_size, head_size};
}

/* Builds the graph and calls rl_dnn_open. */
int rl_attention_open(cudnnHandle_t handle, const rl_attention_shape *shape, void *q, void *k, void *v, void *o,
                      const rl_dnn_search *search, rl_stream stream, rl_dnn **plan, rl_error *err);

#endif
