/* A convolution without dilation and its two gradients, by cuDNN. */
#ifndef RL_LIBRARY_CONV_H
#define RL_LIBRARY_CONV_H

#include "library/dnn.h"

typedef enum rl_conv_pass { RL_CONV_FORWARD, RL_CONV_BACKWARD_DATA, RL_CONV_BACKWARD_FILTER } rl_conv_pass;

typedef struct rl_conv_shape {
  rl_conv_pass pass;
  /* cuDNN's names. x: n×c×h×w, weights: k×c×kernel×kernel, y: n×k×p×q with p = (h + 2 pad - kernel) / stride + 1, and q from w
   * likewise */
  int64_t n, c, h, w, k, kernel, stride, pad;
  bool channels_last;          /* x and y NHWC, weights k×kernel×kernel×c; else NCHW, k×c×kernel×kernel */
  cudnnDataType_t type;        /* type of x, weights and y: FLOAT, HALF or BFLOAT16; products are summed in FP32 */
  cudnnDataType_t weight_type; /* type of the weights, or in BACKWARD_FILTER of their gradient */
  bool allow_tf32;             /* for type FLOAT: allows TF32 tensor cores */
} rl_conv_shape;

/* Builds the graph and calls rl_dnn_open. FORWARD writes y, BACKWARD_DATA writes x, BACKWARD_FILTER writes weights. Sets
 * search.strict_fp32 from the shape. */
int rl_conv_open(cudnnHandle_t handle, const rl_conv_shape *shape, void *x, void *weights, void *y, rl_dnn_search search,
                 rl_stream stream, rl_dnn **plan, rl_error *err);

#endif
