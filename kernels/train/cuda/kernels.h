/* The training kernels that no library has: functions that enqueue a CUDA kernel on a stream and return 0, or -1 with err. The
 * files are gather.cu (order of the images), conv1.cu and conv1_half.cu (conv1), conv2_forward.cu and conv2_backward.cu (conv2 in
 * FP16), conv2_float.cu (conv2 in FP32), convolutions_forward.cu and convolutions_backward.cu (both convolutions in FP16 on
 * Hopper), pool.cu (pooling after a conv2 product from a library), head.cu (from fc1's product to its gradient),
 * fc1_half.cu (fc1 in FP16), adam.cu (optimizer). All pointers are to device memory. Everything that changes between steps is in
 * rl_train_state on the device, where kernels read it, so that a captured CUDA graph can be replayed.
 *
 * Terms (layers, batch, step: train/model.h):
 *   n              images of the batch
 *   product        a layer's output before the bias
 *   x_gradient     the gradient of the loss with respect to x, multiplied by the loss scale
 *   argmax         one byte for each pooled element: the position 0-3 (row-major) of the greatest input of its 2×2 window, or
 *                  RL_ARGMAX_RELU_ZERO. The backward pass reads it instead of the layer's output
 *   partial sums   a gradient is the sum of rows, each stored by one block or warp. adam.cu adds up the rows in a fixed order.
 *                  rl_*_partial_rows returns the number of rows for a batch
 *   overflow       in FP16, a kernel that finds an infinite or NaN gradient sets rl_train_state.overflow; then Adam skips the
 *                  step
 *
 * Layouts: activations and convolution weights are NHWC (channels_last) or NCHW. Activations and their gradients are FP16 if
 * `fp16` is set, else FP32. */
#ifndef RL_TRAIN_CUDA_KERNELS_H
#define RL_TRAIN_CUDA_KERNELS_H

#include <cuda_runtime.h>

#include "train/loss_scale.h"
#include "train/model.h"

/* Training state that changes from step to step, in device memory. The host writes it when the training is reset and reads it
 * between epochs. */
typedef struct rl_train_state {
  uint64_t seed;        /* of the shuffle */
  uint32_t epoch;       /* number of epochs that have begun */
  uint32_t step;        /* number of the current step within the epoch, from 0; skipped steps count */
  uint32_t test_step;   /* number of the current batch within the evaluation */
  uint32_t blocks_done; /* number of blocks of the current kernel that have finished; the last block updates this state */
  double beta1_power, beta2_power; /* beta1^t and beta2^t, where t is the number of the next step that Adam applies, from 1 */
  float step_size;                 /* learning rate / (1 - beta1^t) */
  float rsqrt_bias_correction2;    /* 1 / sqrt(1 - beta2^t) */
  rl_loss_scale loss_scale;
  float inverse_loss_scale;      /* 1 / loss_scale.scale */
  float last_inverse_loss_scale; /* inverse_loss_scale of the last step */
  uint32_t last_batch;           /* images of the last step */
  uint32_t overflow;             /* 1: a gradient of this step is infinite or NaN */
  uint32_t dynamic_loss_scale;   /* 0: the loss scale stays 1 */
} rl_train_state;

/* Selects the images of a batch from the data set: image i of the batch is images[order[*step · stride + i]]. */
typedef struct rl_gather {
  const uint8_t *images, *labels; /* [count][28][28], [count] */
  const uint32_t *order;          /* NULL: the order in which the images are stored */
  const uint32_t *step;           /* number of the batch, in device memory */
  uint32_t stride, batch; /* stride: images of a full batch; batch: images of this batch, fewer if it is the short last one */
} rl_gather;

enum {
  RL_CONV1_PARAMETERS = RL_CONV1_CHANNELS * 10 /* 288 weights, then 32 biases */
};

typedef struct rl_format {
  bool channels_last, fp16; /* fp16 implies channels_last */
  bool tf32;                /* products are computed in TF32 */
} rl_format;

/* gather.cu: begins an epoch. Shuffles order[count], sets state->step to 0 and increments state->epoch. */
int rl_epoch_begin(rl_train_state *state, uint32_t *order, uint32_t count, cudaStream_t stream, rl_error *err);

/* conv1.cu: gathers and normalises the images, and computes conv1 (1→32 channels), bias, ReLU and pooling in one kernel. Outputs:
 * pooled [n][14][14][32] (NHWC) or [n][32][14][14] (NCHW), and argmaxes in the same layout. weights: [32][9 taps], then the
 * biases [32]. */
int rl_conv1_forward(rl_format format, rl_gather gather, const float *weights, void *pooled, uint8_t *argmaxes,
                     cudaStream_t stream, rl_error *err);
/* Computes the gradients of conv1's 320 parameters from pooled_gradient, as partial sums partial[rows][320]. FP16: also checks
 * conv2_weight_gradient, which is FP16, for overflow, unless it is NULL. */
uint32_t rl_conv1_partial_rows(rl_format format, uint32_t batch);
int rl_conv1_backward(rl_format format, rl_gather gather, const void *pooled_gradient, const uint8_t *argmaxes, float *partial,
                      const void *conv2_weight_gradient, rl_train_state *state, cudaStream_t stream, rl_error *err);
/* conv1_half.cu: the FP16 implementations. The functions above call them if format.fp16 is set. */
int rl_conv1_half_forward(rl_gather gather, const float *weights, void *pooled, uint8_t *argmaxes, cudaStream_t stream,
                          rl_error *err);
uint32_t rl_conv1_half_partial_rows(uint32_t batch);
int rl_conv1_half_backward(rl_gather gather, const void *pooled_gradient, const uint8_t *argmaxes, float *partial,
                           const void *conv2_weight_gradient, rl_train_state *state, cudaStream_t stream, rl_error *err);

/* pool.cu: adds the bias to conv2's product [n][12][12][64] (NHWC) or [n][64][12][12] (NCHW), then computes ReLU and pooling:
 * pooled [n][6][6][64] or [n][64][6][6], and argmaxes in the same layout. FP16: checks the product for overflow unless state is
 * NULL, because ReLU and pooling can hide an overflow from later kernels. */
int rl_pool2_forward(rl_format format, uint32_t batch, const void *product, const float *bias, void *pooled, uint8_t *argmaxes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err);
/* From pooled_gradient, computes the gradient of conv2's product, and the gradient of the bias as partial sums
 * partial[rows][64]. */
uint32_t rl_pool2_partial_rows(rl_format format, uint32_t batch);
int rl_pool2_backward(rl_format format, uint32_t batch, const void *pooled_gradient, const uint8_t *argmaxes,
                      void *product_gradient, float *partial, rl_train_state *state, cudaStream_t stream, rl_error *err);

/* conv2_forward.cu, FP16: computes conv2, bias, ReLU and pooling in one kernel. in [n][14][14][32], weights [64][9][32], pooled
 * and argmaxes [n][6][6][64]. Checks the product for overflow unless state is NULL. */
int rl_conv2_forward(uint32_t batch, const void *in, const void *weights, const float *bias, void *pooled, uint8_t *argmaxes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err);
/* conv2_backward.cu, FP16: computes in_gradient [n][14][14][32], and the gradients of weights and bias as partial sums
 * partial_weight[rows][64][9][32] and partial_bias[rows][64]. Checks pooled_gradient for overflow. */
uint32_t rl_conv2_partial_rows(uint32_t batch);
int rl_conv2_backward(uint32_t batch, const void *in, const void *weights, const void *pooled_gradient, const uint8_t *argmaxes,
                      void *in_gradient, float *partial_weight, float *partial_bias, rl_train_state *state, cudaStream_t stream,
                      rl_error *err);

/* convolutions_forward.cu, FP16: conv1 and conv2 in one kernel, on a device with wgmma. Layouts as above. */
typedef struct rl_convolutions {
  rl_gather gather;
  const float *conv1_weights, *conv2_bias;
  const void *conv2_weights;
  void *pooled1, *pooled2;
  uint8_t *argmax1, *argmax2;
  rl_train_state *state; /* NULL: overflow is not recorded */
} rl_convolutions;
int rl_convolutions_forward(const rl_convolutions *convolutions, cudaStream_t stream, rl_error *err);
/* convolutions_backward.cu, FP16: the gradients of both convolutions in one kernel, on a device with wgmma, as partial sums:
 * partial_conv1[rows][320], partial_conv2_weight[rows][64][9][32] (FP16) and partial_conv2_bias[rows][64]. Checks all gradients
 * for overflow. Prefetches the images of the next step into L2. */
typedef struct rl_convolutions_gradients {
  rl_gather gather;
  const void *pooled1, *conv2_weights, *pooled2_gradient;
  const uint8_t *argmax1, *argmax2;
  float *partial_conv1;
  void *partial_conv2_weight; /* FP16 */
  float *partial_conv2_bias;
  void *pooled1_gradient; /* NULL: not stored */
  uint32_t epoch_images;  /* images of an epoch */
  rl_train_state *state;
} rl_convolutions_gradients;
uint32_t rl_convolutions_partial_rows(uint32_t batch);
int rl_convolutions_backward(const rl_convolutions_gradients *gradients, cudaStream_t stream, rl_error *err);

/* conv2_float.cu: the same functions in FP32, without checks for overflow. */
int rl_conv2_float_forward(uint32_t batch, const float *in, const float *weights, const float *bias, float *pooled,
                           uint8_t *argmaxes, cudaStream_t stream, rl_error *err);
uint32_t rl_conv2_float_partial_rows(uint32_t batch);
int rl_conv2_float_backward(uint32_t batch, const float *in, const float *weights, const float *pooled_gradient,
                            const uint8_t *argmaxes, float *in_gradient, float *partial, float *partial_bias, cudaStream_t stream,
                            rl_error *err);

/* head.cu: adds up fc1's product, which is split along its depth into fc1_parts[part_count][batch][128]; then computes bias,
 * ReLU, fc2, softmax and the mean cross-entropy, and their gradients back to fc1's product, all in FP32. fc1_product_gradient
 * [batch][128] is stored in the type of the format. */
enum {
  RL_HEAD_PARAMETERS = RL_FC1_OUTPUTS + RL_CLASSES * RL_FC1_OUTPUTS + RL_CLASSES,
  RL_HEAD_LOSS = RL_HEAD_PARAMETERS, /* index of the loss in a row of partial sums */
  /* Floats from one row of partial sums to the next: a multiple of 4, so that rows can be read as float4. */
  RL_HEAD_PITCH = RL_HEAD_LOSS + 2
};
typedef struct rl_head {
  rl_gather gather;
  const float *fc1_parts;
  uint32_t part_count;
  const float *weights; /* fc1.bias, fc2.weight, fc2.bias, contiguous */
} rl_head;
/* Stores fc1_product_gradient and partial[rows][RL_HEAD_PITCH]: the gradients of fc1.bias, fc2.weight and fc2.bias, then the sum
 * of the losses. */
uint32_t rl_head_partial_rows(uint32_t batch);
int rl_head_train(rl_format format, const rl_head *head, void *fc1_product_gradient, float *partial, rl_train_state *state,
                  cudaStream_t stream, rl_error *err);
/* For evaluation: stores each image's loss and whether its class was recognised at the image's position in the test set, then
 * increments state->test_step. */
int rl_head_evaluate(const rl_head *head, float *losses, uint8_t *correct, rl_train_state *state, cudaStream_t stream,
                     rl_error *err);

/* fc1_half.cu, FP16: fc1's product as RL_FC1_HALF_PARTS parts, whose sum is inputs[batch][2304] · weights[128][2304]ᵀ:
 * parts[RL_FC1_HALF_PARTS][batch][128]. */
enum { RL_FC1_HALF_PARTS = 9 };
int rl_fc1_half_forward(uint32_t batch, const void *inputs, const void *weights, float *parts, cudaStream_t stream,
                        rl_error *err);
/* fc1_half.cu, FP16: input_gradient[batch][2304] = product_gradient[batch][128] · weights, and weight_gradient[128][2304] =
 * product_gradientᵀ · inputs, in FP32, unless it is NULL. The previous kernel in the stream may write only product_gradient of
 * the operands. */
int rl_fc1_half_backward(uint32_t batch, const void *product_gradient, const void *inputs, const void *weights,
                         void *input_gradient, float *weight_gradient, cudaStream_t stream, rl_error *err);

/* adam.cu: the gradients of a step, all multiplied by the loss scale. */
typedef struct rl_gradients {
  const void *conv2_weight;
  uint32_t conv2_rows;     /* rows of partial sums in conv2_weight; 0: it is the gradient itself */
  bool conv2_rows_fp16;    /* the partial sums are FP16, else FP32 */
  float conv2_row_scale;   /* factor by which the partial sums are multiplied, beside the loss scale; rl_adam_step expects 1 */
  bool fp16;               /* fc1_product_gradient, fc1_inputs, and conv2_weight if conv2_rows is 0, are FP16; else FP32 */
  const float *fc1_weight; /* NULL: not stored; the gradient is fc1_product_gradientᵀ · fc1_inputs */
  const float *conv1, *conv2_bias, *head; /* partial sums */
  uint32_t conv1_rows, conv2_bias_rows, head_rows;
  bool only_head_is_early; /* the launch before Adam stores all gradients except those of the head; else only those of conv1 */
  uint32_t batch;
  const void *fc1_product_gradient, *fc1_inputs; /* [batch][128], [batch][2304]; read only if fc1_weight is NULL */
} rl_gradients;

typedef struct rl_adam {
  float *weights, *first_moment, *second_moment; /* [RL_PARAMETERS] each */
  void *fp16_weights;                            /* copies of the weights, at the same offsets; NULL in FP32 */
  float *losses;                                 /* one for each step of the epoch */
  float learning_rate;
  rl_train_state *state;
} rl_adam;
/* Updates all parameters, or none if a gradient overflowed. Stores the step's mean loss and advances the state to the next
 * step. */
int rl_adam_step(const rl_adam *adam, const rl_gradients *gradients, cudaStream_t stream, rl_error *err);
/* For tests: writes the gradients of the last step, divided by the loss scale, to flat[RL_PARAMETERS]. This is the only function
 * for which gradients->fc1_weight may be NULL. */
int rl_adam_gather_gradients(const rl_gradients *gradients, const rl_train_state *state, float *flat, cudaStream_t stream,
                             rl_error *err);
/* Rounds adam->weights to adam->fp16_weights, after the host has changed the weights. */
int rl_adam_round_weights(const rl_adam *adam, cudaStream_t stream, rl_error *err);

#endif
