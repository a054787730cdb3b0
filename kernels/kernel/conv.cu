/* conv, conv_dgrad and conv_wgrad (conv.c) on CUDA, by cuDNN's direct algorithms. Algorithms with fewer multiplications, such as
 * Winograd's, are excluded: they could be faster than the operator's floor, and they lose precision.
 *
 * Variants: `heuristic` takes the first plan of cuDNN's heuristic. `searched` times several plans and takes the fastest. For
 * IEEE fp32, cuDNN has few implementations and its heuristic rarely proposes them, so `searched` times all of them. For tensor
 * cores, cuDNN has many. Each must be compiled, and the heuristic ranks them well, so `searched` times only the first MAX_PLANS.
 */
#include "kernel/cudnn.cuh"
#include "library/conv.h"

enum { IMAGES, HEIGHT, WIDTH, CHANNELS, FILTERS, FILTER_SIDE, STRIDE, PADDING }; /* indices of the shape's sizes */
enum {
  MAX_WORKSPACE_BYTES = 256 << 20,
  MAX_FP32_PLANS = 64, /* plans that `searched` times for fp32 */
  MAX_PLANS = 10       /* plans that `searched` times for the other types */
};

template <rl_conv_pass PASS>
static int open_plan(const rl_kernel_instance *kernel, cudnnHandle_t cudnn, rl_dnn **plan, rl_error *err) {
  const int64_t *size = kernel->shape.size;
  const int dtype = kernel->params.dtype;
  const cudnnDataType_t type = rl_kernel_cudnn_type(dtype);
  const bool fp32 = dtype == RL_DTYPE_FP32;
  const rl_conv_shape shape = {
      PASS,         size[IMAGES],  size[CHANNELS], size[HEIGHT], size[WIDTH], size[FILTERS],         size[FILTER_SIDE],
      size[STRIDE], size[PADDING], true,           type,         type,        dtype == RL_DTYPE_TF32};
  rl_dnn_search search = {MAX_WORKSPACE_BYTES, kernel->variant == RL_VARIANT_SEARCHED ? (fp32 ? MAX_FP32_PLANS : MAX_PLANS) : 1,
                          fp32};
  search.no_winograd = true;
  void *const *in = kernel->in, *out = kernel->out;
  switch (PASS) { /* in[0] and in[1] are: FORWARD: x, weights; BACKWARD_DATA: dy, weights; BACKWARD_FILTER: x, dy */
    case RL_CONV_FORWARD: return rl_conv_open(cudnn, &shape, in[0], in[1], out, search, kernel->base.device->stream, plan, err);
    case RL_CONV_BACKWARD_DATA:
      return rl_conv_open(cudnn, &shape, out, in[1], in[0], search, kernel->base.device->stream, plan, err);
    default: return rl_conv_open(cudnn, &shape, in[0], out, in[1], search, kernel->base.device->stream, plan, err);
  }
}

RL_KERNEL_CUDNN(conv, open_plan<RL_CONV_FORWARD>)
RL_KERNEL_CUDNN(conv_dgrad, open_plan<RL_CONV_BACKWARD_DATA>)
RL_KERNEL_CUDNN(conv_wgrad, open_plan<RL_CONV_BACKWARD_FILTER>)
