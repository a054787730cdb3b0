/* The workload transformer_layer: one decoder layer of a transformer, in several implementations (variants).
 *
 *   n = layernorm(x)              [rows][hidden]           rows = batch · tokens
 *   q, k, v = n Wqkvᵀ             [rows][3][hidden]        q and k are rotated by rope
 *   a = attention(q, k, v)        [rows][hidden]           over the cached tokens and the new ones
 *   h = x + a Woᵀ                 [rows][hidden]
 *   g = silu(m Wgateᵀ) · m Wupᵀ   [rows][ffn]              m = layernorm(h)
 *   y = h + g Wdownᵀ              [rows][hidden]
 *
 * Prefill: cached_tokens is 0. Decode: tokens is 1, and cached_tokens tokens are in the KV cache. Weights are [outputs][inputs],
 * as in PyTorch's nn.Linear, without bias. The norms compute the same function as the workload layernorm, and rope the same as
 * the workload rope; the position of the first new token is cached_tokens. Matrix products accumulate in FP32.
 *
 * q, k and v of a token are adjacent: the buffer qkv is [batch][cached_tokens + tokens][3][hidden]. It includes the KV cache. */
#ifndef RL_KERNELS_LAYER_LAYER_H
#define RL_KERNELS_LAYER_LAYER_H

#include <stdint.h>

#include "base/fields.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Implementations of the layer. The CPU has only the variants in the bit set RL_LAYER_CPU_VARIANTS. */
typedef enum rl_layer_variant {
  RL_LAYER_BASELINE, /* each operation is a launch, and the host enqueues one launch after another */
  RL_LAYER_GRAPH,    /* the same launches in a CUDA graph */
  RL_LAYER_FUSED,    /* like graph, but q, k and v are one product, gate and up are one product, and products add the residual */
  RL_LAYER_STREAMS,  /* like fused, but gate and up are two products on two streams */
  RL_LAYER_TUNED,    /* like fused, but each library algorithm is the fastest of several measured ones */
  RL_LAYER_BEST, /* like tuned, but our kernel computes each product for which it is faster (its epilogue computes rope, gate or
                    residual); if the layer has one row, our kernels compute the whole layer if they are faster */
  RL_LAYER_VARIANT_COUNT
} rl_layer_variant;
enum { RL_LAYER_GPU_HEAD_SIZE_MAX = 256 };
enum { RL_LAYER_CPU_VARIANTS = 1 << RL_LAYER_BASELINE | 1 << RL_LAYER_FUSED };
extern const char *const rl_layer_variant_names[]; /* NULL-terminated */

typedef struct rl_layer_params {
  int dtype, variant; /* dtype: index into rl_layer_dtype_names, not an rl_dtype */
  int64_t batch, tokens, cached_tokens, hidden, heads, ffn;
  int64_t causal; /* 0: every token attends to all tokens of its sequence */
  int64_t samples, pause_ms, seed;
} rl_layer_params;
extern const rl_field rl_layer_fields[];
extern const char *const rl_layer_dtype_names[]; /* "fp16" "bf16", NULL */
extern const rl_workload rl_transformer_layer;
extern const rl_engine_description rl_layer_cpu_description, rl_layer_cuda_description;

/* Returns the rl_dtype that corresponds to params->dtype. */
int rl_layer_element_dtype(const rl_layer_params *params);
static inline int64_t rl_layer_rows(const rl_layer_params *p) { return p->batch * p->tokens; }
static inline int64_t rl_layer_context(const rl_layer_params *p) { return p->cached_tokens + p->tokens; }
static inline int64_t rl_layer_head_size(const rl_layer_params *p) { return p->hidden / p->heads; }
static inline int64_t rl_layer_position(const rl_layer_params *p, int64_t row) { return p->cached_tokens + row % p->tokens; }
/* Returns the number of tokens to which a row attends. They are the first tokens of its sequence. */
static inline int64_t rl_layer_attended_tokens(const rl_layer_params *p, int64_t row) {
  return p->causal ? rl_layer_position(p, row) + 1 : rl_layer_context(p);
}
/* Returns the index of a row's q, k and v in the buffer qkv, in units of 3 · hidden elements. */
static inline int64_t rl_layer_qkv_row(const rl_layer_params *p, int64_t row) {
  return row / p->tokens * rl_layer_context(p) + rl_layer_position(p, row);
}

/* Implements rl_workload.launch_data (launch_data.c). */
bool rl_layer_launch_data(const void *params, const char *launch, rl_launch_data *data);

/* Checks that the sizes are consistent and not too large. Fails with RL_INPUT if they are not. */
int rl_layer_check_sizes(const rl_layer_params *params, rl_error *err);
/* Returns the number of operations of the products with weights, that is, without attention. */
double rl_layer_product_operations(const rl_layer_params *params);

#ifdef __cplusplus
}
#endif
#endif
