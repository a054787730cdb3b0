/* attention on CUDA, by cuDNN: both products and the softmax in one kernel. */
#include "kernel/cudnn.cuh"
#include "library/attention.h"

enum { BATCH, HEADS, KV_HEADS, SEQUENCE, HEAD_SIZE, CAUSAL }; /* indices of the shape's sizes */
enum { MAX_WORKSPACE_BYTES = 64 << 20, MAX_SEARCHED_PLANS = 10 };

static int open_plan(const rl_kernel_instance *kernel, cudnnHandle_t cudnn, rl_dnn **plan, rl_error *err) {
  const int64_t *size = kernel->shape.size;
  const rl_attention_strides of_heads = rl_attention_dense(size[HEADS], size[SEQUENCE], size[HEAD_SIZE]);
  const rl_attention_shape shape = {size[BATCH],       size[HEADS],
                                    size[KV_HEADS],    size[SEQUENCE],
                                    size[SEQUENCE],    size[HEAD_SIZE],
                                    size[CAUSAL] != 0, rl_kernel_cudnn_type(kernel->params.dtype),
                                    of_heads,          rl_attention_dense(size[KV_HEADS], size[SEQUENCE], size[HEAD_SIZE]),
                                    of_heads};
  const rl_dnn_search search = {MAX_WORKSPACE_BYTES, kernel->variant == RL_VARIANT_SEARCHED ? MAX_SEARCHED_PLANS : 1};
  return rl_attention_open(cudnn, &shape, kernel->in[0], kernel->in[1], kernel->in[2], kernel->out, &search,
                           kernel->base.device->stream, plan, err);
}

RL_KERNEL_CUDNN(attention, open_plan)
