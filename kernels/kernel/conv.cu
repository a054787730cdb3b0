/* conv, conv_dgrad and conv_wgrad by cuDNN, as sums of products: what does fewer, as Winograd's algorithms do, would be faster
 * than the family's floor and lose digits. fp32 is IEEE single, whose engines are few and rarely recommended, so all are looked
 * at; those with tensor cores are many and cost a compilation each, and cuDNN ranks them well. */
#include "kernel/cudnn.cuh"
#include "library/conv.h"

enum { IMAGES, HEIGHT, WIDTH, CHANNELS, FILTERS, KERNEL, STRIDE, PADDING }; /* sizes of the shape */
enum { WORKSPACE = 256 << 20, MOST_SINGLE = 64, MOST = 10 };

template <rl_conv_pass PASS>
static int plan(const rl_kernel_instance *kernel, cudnnHandle_t cudnn, rl_dnn **made, rl_error *err) {
  const int64_t *size = kernel->shape.size;
  const int dtype = kernel->params.dtype;
  const cudnnDataType_t type = rl_kernel_cudnn_type(dtype);
  const bool single = dtype == RL_DTYPE_FP32;
  const rl_conv_shape shape = {PASS,          size[IMAGES], size[CHANNELS],        size[HEIGHT],  size[WIDTH],
                               size[FILTERS], size[KERNEL], size[STRIDE],          size[PADDING], true,
                               type,          type,         dtype == RL_DTYPE_TF32};
  rl_dnn_search search = {WORKSPACE, kernel->variant == RL_SEARCHED ? (single ? MOST_SINGLE : MOST) : 1, single};
  search.direct = true;
  void *const *in = kernel->in, *out = kernel->out;
  switch (PASS) { /* inputs in the order of the family */
    case RL_CONV_FORWARD: return rl_conv_open(cudnn, &shape, in[0], in[1], out, search, kernel->base.device->stream, made, err);
    case RL_CONV_BACKWARD_DATA:
      return rl_conv_open(cudnn, &shape, out, in[1], in[0], search, kernel->base.device->stream, made, err);
    default: return rl_conv_open(cudnn, &shape, in[0], out, in[1], search, kernel->base.device->stream, made, err);
  }
}

static int no_double(const rl_kernel_params *params, rl_error *err) {
  if (params->dtype != RL_DTYPE_FP64) return 0;
  return rl_fail_at(err, "/dtype", "a convolution on a GPU is cuDNN's, channels last: fp32, tf32, fp16 or bf16");
}

RL_KERNEL_CUDNN(conv, plan<RL_CONV_FORWARD>, no_double)
RL_KERNEL_CUDNN(conv_dgrad, plan<RL_CONV_BACKWARD_DATA>, no_double)
RL_KERNEL_CUDNN(conv_wgrad, plan<RL_CONV_BACKWARD_FILTER>, no_double)
