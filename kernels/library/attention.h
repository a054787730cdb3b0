/* Attention, softmax(Q Kᵀ / √d) V with an optional causal mask, as one fused kernel of cuDNN. */
#ifndef RL_LIBRARY_ATTENTION_H
#define RL_LIBRARY_ATTENTION_H

#include "library/dnn.h"

typedef struct rl_attention_shape {
  /* q and o: batch×heads×sequence×head_size; k and v with kv_heads instead. */
  int64_t batch, heads, kv_heads, sequence, head_size;
  bool causal;          /* a row attends only to itself and to the rows before it */
  cudnnDataType_t type; /* HALF or BFLOAT16; scores and sums are FP32 */
} rl_attention_shape;

/* Builds the graph and calls rl_dnn_open. */
int rl_attention_open(cudnnHandle_t handle, const rl_attention_shape *shape, void *q, void *k, void *v, void *o,
                      const rl_dnn_search *search, rl_stream stream, rl_dnn **plan, rl_error *err);

#endif
