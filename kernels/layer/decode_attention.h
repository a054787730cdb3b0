/* Attention of one new token over the tokens of its sequence: out = softmax(q Kᵀ / √head_size) V for each head, for fp16 and
 * bf16. Scores and sums are FP32. Needs compute capability 9.0. Launched with programmatic dependent launch: it begins to load
 * the cached k and v, which the previous kernel must not write. Included by .cu files only. */
#ifndef RL_LAYER_DECODE_ATTENTION_H
#define RL_LAYER_DECODE_ATTENTION_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/error.h"
#include "layer/layer.h"

typedef struct rl_decode_attention {
  int dtype;                         /* RL_DTYPE_FP16 or RL_DTYPE_BF16 */
  const void *qkv;                   /* [context][3][heads][head_size]; the last token is the new one. Aligned to 16 bytes */
  void *out;                         /* [heads][head_size] */
  int64_t heads, head_size, context; /* head_size: a multiple of 8, at most RL_LAYER_GPU_HEAD_SIZE_MAX */
  int64_t multiprocessors;           /* of the device: at most as many blocks are launched */
} rl_decode_attention;

/* Returns 0, or -1 and sets err. */
int rl_decode_attention_launch(const rl_decode_attention *attention, cudaStream_t stream, rl_error *err);

#endif
