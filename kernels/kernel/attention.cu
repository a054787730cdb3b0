/* attention by cuDNN, both products and the softmax in one kernel. */
#include "kernel/cudnn.cuh"
#include "library/attention.h"

enum { BATCH, HEADS, KV_HEADS, SEQUENCE, HEAD_SIZE, CAUSAL }; /* sizes of the shape */
enum { WORKSPACE = 64 << 20, MOST = 10, HEAD_STEP = 8, HEAD_MAX = 256 };

static int plan(const rl_kernel_instance *kernel, cudnnHandle_t cudnn, rl_dnn **made, rl_error *err) {
  const int64_t *size = kernel->shape.size;
  const rl_attention_shape shape = {size[BATCH],
                                    size[HEADS],
                                    size[KV_HEADS],
                                    size[SEQUENCE],
                                    size[HEAD_SIZE],
                                    size[CAUSAL] != 0,
                                    rl_kernel_cudnn_type(kernel->params.dtype)};
  const rl_dnn_search search = {WORKSPACE, kernel->variant == RL_SEARCHED ? MOST : 1};
  return rl_attention_open(cudnn, &shape, kernel->in[0], kernel->in[1], kernel->in[2], kernel->out, &search,
                           kernel->base.device->stream, made, err);
}

static int what_cudnn_fuses(const rl_kernel_params *params, rl_error *err) {
  rl_kernel_shape shape;
  if (params->dtype != RL_DTYPE_FP16 && params->dtype != RL_DTYPE_BF16)
    return rl_fail_at(err, "/dtype", "attention on a GPU is cuDNN's fused one: fp16 or bf16");
  if (rl_kernel_shape_of(params, &shape, err)) return -1;
  if (shape.size[HEAD_SIZE] % HEAD_STEP != 0 || shape.size[HEAD_SIZE] > HEAD_MAX)
    return rl_fail_at(err, "/shape/head_size", "attention on a GPU is cuDNN's fused one: head_size a multiple of %d, at most %d",
                      HEAD_STEP, HEAD_MAX);
  return 0;
}

RL_KERNEL_CUDNN(attention, plan, what_cudnn_fuses)
