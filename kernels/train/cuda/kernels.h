/* The training kernels that no library has, one subject a file: gather.cu, conv1.cu and conv1_half.cu (first layer), pool.cu
 * (second layer's bias, ReLU and pooling), conv2_forward.cu, conv2_backward.cu and conv2_float.cu (all of the second layer),
 * head.cu (what follows fc1's product), adam.cu (optimizer). They are queued on a stream and read everything that changes between
 * steps from rl_train_state on the device, so a captured graph of them can be replayed for ever.
 *
 * Layout: activations and convolution weights are NHWC (channels_last) or NCHW; `half` says that activations are FP16.
 * A pool code is one byte an element of the pooled tensor: which of the four inputs was the greatest (0–3 in row-major order), or
 * 4 where ReLU stopped it; it is all that backward needs of the layer below. */
#ifndef RL_TRAIN_CUDA_KERNELS_H
#define RL_TRAIN_CUDA_KERNELS_H

#include <cuda_runtime.h>

#include "train/loss_scale.h"
#include "train/model.h"

enum { RL_POOL_RELU_ZERO = 4 };

/* What changes from step to step. One on the device; the host writes it at reset and reads it between epochs. */
typedef struct rl_train_state {
  uint64_t seed;
  uint32_t epoch;                  /* epochs begun */
  uint32_t step;                   /* of the epoch, counts skipped ones too */
  uint32_t test_step;              /* of the evaluation */
  uint32_t blocks_done;            /* blocks done in a kernel that needs to know its last one */
  double beta1_power, beta2_power; /* of the step to come */
  float step_size, inverse_root;   /* lr/(1-beta1^t), 1/sqrt(1-beta2^t) of the step to come */
  rl_loss_scale scale;
  float inverse_scale;      /* of scale.scale */
  float last_inverse_scale; /* of the step done last */
  uint32_t last_batch;      /* its images */
  uint32_t overflow;        /* a gradient of this step is infinite or NaN */
  uint32_t dynamic_scale;   /* 0: the scale stays 1 */
} rl_train_state;

/* Which images a batch consists of: position i of it is images[order[*step * stride + i]]. */
typedef struct rl_gather {
  const uint8_t *images, *labels; /* [count][28][28], [count] */
  const uint32_t *order;          /* NULL: in their own order */
  const uint32_t *step;           /* on the device */
  uint32_t stride, batch;
} rl_gather;

typedef struct rl_format {
  bool channels_last, half; /* half implies channels_last */
  bool tensor_float;        /* multiplied in TF32 */
} rl_format;

/* gather.cu: start an epoch: a fresh order of `count` images, step 0. */
int rl_epoch_begin(rl_train_state *state, uint32_t *order, uint32_t count, cudaStream_t stream, rl_error *err);

/* conv1.cu: gather, normalise, convolve (1→32), add bias, ReLU and pool in one: pooled [n][14][14][32] or [n][32][14][14], and
 * codes. weights: [32][9] then the bias [32], float. */
int rl_conv1_forward(rl_format format, rl_gather gather, const float *weights, void *pooled, uint8_t *codes, cudaStream_t stream,
                     rl_error *err);
/* d_pooled → partial sums of the 320 gradients (weights, then bias), partial[rows][320]; rows as rl_conv1_partial_rows says.
 * FP16: notes an overflow in state, also of conv2.weight's gradient if conv2_gradient, which is in FP16 then, is not NULL. */
uint32_t rl_conv1_partial_rows(rl_format format, uint32_t batch);
int rl_conv1_backward(rl_format format, rl_gather gather, const void *d_pooled, const uint8_t *codes, float *partial,
                      const void *conv2_gradient, rl_train_state *state, cudaStream_t stream, rl_error *err);
/* conv1_half.cu: what these do in FP16. */
int rl_conv1_half_forward(rl_gather gather, const float *weights, void *pooled, uint8_t *codes, cudaStream_t stream,
                          rl_error *err);
uint32_t rl_conv1_half_partial_rows(uint32_t batch);
int rl_conv1_half_backward(rl_gather gather, const void *d_pooled, const uint8_t *codes, float *partial,
                           const void *conv2_gradient, rl_train_state *state, cudaStream_t stream, rl_error *err);

/* pool.cu: conv2's product [n][12][12][64] or [n][64][12][12] + bias, ReLU, pool → [n][6][6][64] or [n][64][6][6], and codes.
 * FP16: notes an overflow of the product in state, unless that is NULL; ReLU and pooling would hide it from what follows. */
int rl_pool2_forward(rl_format format, uint32_t batch, const void *y, const float *bias, void *pooled, uint8_t *codes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err);
/* d_pooled → gradient of conv2's product into d_y, and partial sums of the bias gradient, partial[rows][64]. */
uint32_t rl_pool2_partial_rows(rl_format format, uint32_t batch);
int rl_pool2_backward(rl_format format, uint32_t batch, const void *d_pooled, const uint8_t *codes, void *d_y, float *partial,
                      rl_train_state *state, cudaStream_t stream, rl_error *err);

/* conv2_forward.cu, FP16 alone: conv2, bias, ReLU and pooling in one: in [n][14][14][32], weights [64][9][32] → pooled
 * [n][6][6][64] and codes. Notes an overflow of the product in state, unless that is NULL. */
int rl_conv2_forward(uint32_t batch, const void *in, const void *weights, const float *bias, void *pooled, uint8_t *codes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err);
/* conv2_backward.cu: d_pooled → d_in [n][14][14][32] and partial sums of the gradients of weights and bias,
 * partial[rows][64][9][32] and partial_bias[rows][64], rows as rl_conv2_partial_rows says. Notes an overflow of d_pooled in
 * state. */
uint32_t rl_conv2_partial_rows(uint32_t batch);
int rl_conv2_backward(uint32_t batch, const void *in, const void *weights, const void *d_pooled, const uint8_t *codes, void *d_in,
                      float *partial, float *partial_bias, rl_train_state *state, cudaStream_t stream, rl_error *err);

/* conv2_float.cu: the same in FP32. */
int rl_conv2_float_forward(uint32_t batch, const float *in, const float *weights, const float *bias, float *pooled,
                           uint8_t *codes, cudaStream_t stream, rl_error *err);
uint32_t rl_conv2_float_partial_rows(uint32_t batch);
int rl_conv2_float_backward(uint32_t batch, const float *in, const float *weights, const float *d_pooled, const uint8_t *codes,
                            float *d_in, float *partial, float *partial_bias, cudaStream_t stream, rl_error *err);

/* head.cu: from fc1's product, split along K into parts[count][batch][128] floats, to the gradient of that product: sums the
 * parts, adds fc1's bias, ReLU, fc2, softmax, mean cross-entropy, and back. All of it is FP32, but d_fc1 [batch][128] is stored
 * in the format. */
enum { RL_HEAD_LOSS = RL_FC1 + RL_CLASSES * RL_FC1 + RL_CLASSES, RL_HEAD_ROW = RL_HEAD_LOSS + 2 };
typedef struct rl_head {
  rl_gather gather;
  const float *parts;
  uint32_t part_count;
  const float *weights; /* fc1.bias, fc2.weight, fc2.bias, one after the other */
} rl_head;
/* partial[rows][RL_HEAD_ROW]: gradients of fc1.bias, fc2.weight, fc2.bias, then the sum of the losses. */
uint32_t rl_head_partial_rows(uint32_t batch);
int rl_head_train(rl_format format, const rl_head *head, void *d_fc1, float *partial, rl_train_state *state, cudaStream_t stream,
                  rl_error *err);
/* Evaluation: each image's loss and whether it was recognised, at its position; then counts state->test_step up. */
int rl_head_evaluate(const rl_head *head, float *losses, uint8_t *correct, rl_train_state *state, cudaStream_t stream,
                     rl_error *err);

/* adam.cu: gradients where they lie: fc1.weight whole or still to be multiplied, conv2.weight whole or not, the rest as rows of
 * partial sums. */
typedef struct rl_gradients {
  const void *conv2_weight;
  uint32_t conv2_rows;                    /* of partial sums, float; 0: whole, */
  bool half;                              /* its type then, and that of d_fc1 and fc1_in */
  const float *fc1_weight;                /* NULL: still to be multiplied, */
  const float *conv1, *conv2_bias, *head; /* partial sums */
  uint32_t conv1_rows, conv2_bias_rows, head_rows;
  uint32_t batch;
  /* From these, FP16 [batch][128] and [batch][2304]; then the kernel in front may have made conv2's. */
  const void *d_fc1, *fc1_in;
} rl_gradients;

typedef struct rl_adam {
  float *weights, *first, *second; /* [RL_PARAMETERS] each: parameters and the two moments */
  void *halves;                    /* FP16 copies of the weights at their offsets; NULL in FP32 */
  float *losses;                   /* one per step of the epoch */
  float learning_rate;
  rl_train_state *state;
} rl_adam;
int rl_adam_step(const rl_adam *adam, const rl_gradients *gradients, cudaStream_t stream, rl_error *err);
/* The gradients that the last step used, unscaled, all in one place. */
int rl_adam_gather(const rl_gradients *gradients, const rl_train_state *state, float *flat, cudaStream_t stream, rl_error *err);
/* Halves from the weights, after the host changed them. */
int rl_adam_halves(const rl_adam *adam, cudaStream_t stream, rl_error *err);

#endif
