/* Implements conv.h: builds cuDNN's operation graph of a convolution or of one of its gradients. */
#include "library/conv.h"

#include <stdio.h>

#include "cuda_check.h"

typedef rl_dnn_descriptor descriptor;

static descriptor add_tensor(rl_dnn_graph *graph, cudnnDataType_t type, bool channels_last, int64_t n, int64_t c, int64_t h,
                             int64_t w, void *memory) {
  const int64_t sizes[RL_DNN_RANK] = {n, c, h, w};
  const int64_t strides[RL_DNN_RANK] = {c * h * w, channels_last ? 1 : h * w, channels_last ? c * w : w, channels_last ? c : 1};
  return rl_dnn_tensor(graph, type, sizes, strides, memory);
}

/* Describes the convolution, which computes in FP32. Returns NULL when cuDNN refuses. */
static descriptor create_convolution(const rl_conv_shape *shape) {
  const int64_t rank = 2, pads[2] = {shape->pad, shape->pad}, strides[2] = {shape->stride, shape->stride}, ones[2] = {1, 1};
  const cudnnDataType_t sum = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  descriptor convolution = rl_dnn_create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  if (!rl_dnn_set(convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &rank) ||
      !rl_dnn_set(convolution, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sum) ||
      !rl_dnn_set(convolution, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode) ||
      !rl_dnn_set(convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads) ||
      !rl_dnn_set(convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads) ||
      !rl_dnn_set(convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides) ||
      !rl_dnn_set(convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones) ||
      cudnnBackendFinalize(convolution) != CUDNN_STATUS_SUCCESS)
    rl_dnn_release(&convolution);
  return convolution;
}

/* cuDNN's operation for each value of rl_conv_shape.pass, and the attributes of that operation. */
static const struct operation_attributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
} passes[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

/* Returns the number of output pixels along a side of `size` input pixels. */
static int64_t output_side(const rl_conv_shape *shape, int64_t size) {
  return (size + 2 * shape->pad - shape->kernel) / shape->stride + 1;
}

static void add_convolution(rl_dnn_graph *graph, const rl_conv_shape *shape, void *x, void *weights, void *y) {
  const struct operation_attributes *attributes = &passes[shape->pass];
  const float one = 1.0f, zero = 0.0f;
  const bool channels_last = shape->channels_last;
  rl_dnn_owned convolution = create_convolution(shape), operation = rl_dnn_create(attributes->operation);
  if (!rl_dnn_set_descriptor(operation, attributes->convolution, convolution) ||
      !rl_dnn_set_descriptor(operation, attributes->x,
                             add_tensor(graph, shape->type, channels_last, shape->n, shape->c, shape->h, shape->w, x)) ||
      !rl_dnn_set_descriptor(
          operation, attributes->w,
          add_tensor(graph, shape->weight_type, channels_last, shape->k, shape->c, shape->kernel, shape->kernel, weights)) ||
      !rl_dnn_set_descriptor(operation, attributes->y,
                             add_tensor(graph, shape->type, channels_last, shape->n, shape->k, output_side(shape, shape->h),
                                        output_side(shape, shape->w), y)) ||
      !rl_dnn_set(operation, attributes->alpha, CUDNN_TYPE_FLOAT, 1, &one) ||
      !rl_dnn_set(operation, attributes->beta, CUDNN_TYPE_FLOAT, 1, &zero))
    rl_dnn_release(&operation);
  rl_dnn_add(graph, operation);
  operation = NULL; /* the graph owns it now */
}

int rl_conv_open(cudnnHandle_t handle, const rl_conv_shape *shape, void *x, void *weights, void *y, rl_dnn_search search,
                 rl_stream stream, rl_dnn **plan, rl_error *err) {
  __attribute__((cleanup(rl_dnn_graph_close))) rl_dnn_graph graph = {};
  char key[144];
  add_convolution(&graph, shape, x, weights, y);
  snprintf(key, sizeof key, "conv %d %lld %lld %lld %lld %lld %lld %lld %lld %d %d %d %d %d %d", shape->pass, (long long)shape->n,
           (long long)shape->c, (long long)shape->h, (long long)shape->w, (long long)shape->k, (long long)shape->kernel,
           (long long)shape->stride, (long long)shape->pad, shape->channels_last, shape->type, shape->weight_type,
           shape->allow_tf32, search.no_winograd, search.max_trials);
  search.strict_fp32 = shape->type == CUDNN_DATA_FLOAT && !shape->allow_tf32;
  return rl_dnn_open(handle, &graph, "a convolution", key, &search, stream, plan, err);
}
