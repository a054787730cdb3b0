/* The head of the network in FP32: ReLU after fc1, fc2, softmax, cross-entropy, and their gradients. A warp computes one image. A
 * lane holds four of the 128 hidden values (fc1's outputs after ReLU), and the same four columns of each of fc2's ten rows. All
 * lanes of the warp call the functions. */
#ifndef RL_TRAIN_CUDA_HEAD_H
#define RL_TRAIN_CUDA_HEAD_H

#include "train/cuda/gather.cuh"
#include "train/cuda/vector.cuh"

/* The weights that a lane holds. */
typedef struct head_weights {
  float4 fc1_bias, fc2_weight[RL_CLASSES];
  float fc2_bias[RL_CLASSES];
} head_weights;

/* Loads the lane's weights. parameters: fc1.bias [128], fc2.weight [10][128], fc2.bias [10], one after the other. */
static __device__ __forceinline__ head_weights load_head_weights(const float *parameters, int lane) {
  const float *fc2_weight = &parameters[RL_FC1_OUTPUTS], *fc2_bias = &fc2_weight[RL_CLASSES * RL_FC1_OUTPUTS];
  head_weights weights;
  weights.fc1_bias = load4(&parameters[lane * 4]);
  for (int class_index = 0; class_index < RL_CLASSES; class_index++) {
    weights.fc2_weight[class_index] = load4(&fc2_weight[class_index * RL_FC1_OUTPUTS + lane * 4]);
    weights.fc2_bias[class_index] = fc2_bias[class_index];
  }
  return weights;
}

static __device__ __forceinline__ float dot4(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

static __device__ __forceinline__ float4 relu4(float4 v) {
  return make_float4(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f), fmaxf(v.z, 0.0f), fmaxf(v.w, 0.0f));
}

/* Returns the gradient of a ReLU's input. output: the output of the ReLU; output_gradient: its gradient. */
static __device__ __forceinline__ float4 relu4_gradient(float4 output, float4 output_gradient) {
  return make_float4(output.x > 0 ? output_gradient.x : 0, output.y > 0 ? output_gradient.y : 0,
                     output.z > 0 ? output_gradient.z : 0, output.w > 0 ? output_gradient.w : 0);
}

/* Computes fc2, softmax and the image's loss (cross-entropy) from the lane's hidden values, and returns the loss. Every lane gets
 * the loss, probability[] of all classes, and the most probable class. */
static __device__ __forceinline__ float head_forward(float4 hidden, const head_weights &weights, uint32_t label,
                                                     float probability[RL_CLASSES], int *predicted_class) {
  float max_logit = -INFINITY, sum = 0.0f, label_logit = 0.0f;
  for (int class_index = 0; class_index < RL_CLASSES; class_index++) {
    probability[class_index] = warp_sum(dot4(hidden, weights.fc2_weight[class_index])) + weights.fc2_bias[class_index];
    if (probability[class_index] > max_logit) {
      max_logit = probability[class_index];
      *predicted_class = class_index;
    }
  }
  for (int class_index = 0; class_index < RL_CLASSES; class_index++) {
    float shifted = probability[class_index] - max_logit;
    if (class_index == (int)label) label_logit = shifted;
    probability[class_index] = expf(shifted);
    sum += probability[class_index];
  }
  for (int class_index = 0; class_index < RL_CLASSES; class_index++) probability[class_index] /= sum;
  return logf(sum) - label_logit;
}

/* Sums of gradients and losses over a warp's images. A lane holds the same elements as in head_weights. */
typedef struct head_gradients {
  float4 fc1_bias, fc2_weight[RL_CLASSES];
  float fc2_bias[RL_CLASSES], loss;
} head_gradients;

/* Adds an image's gradients, multiplied by `factor`, to the sums. Returns the lane's part of the gradient of fc1's product,
 * multiplied by `factor`. */
static __device__ __forceinline__ float4 head_backward(float4 hidden, const head_weights &weights,
                                                       const float probability[RL_CLASSES], uint32_t label, float factor,
                                                       head_gradients *sums) {
  float4 hidden_gradient = make_float4(0, 0, 0, 0);
  for (int class_index = 0; class_index < RL_CLASSES; class_index++) {
    float logit_gradient = (probability[class_index] - (class_index == (int)label ? 1.0f : 0.0f)) * factor;
    float4 *sum = &sums->fc2_weight[class_index], w = weights.fc2_weight[class_index];
    sums->fc2_bias[class_index] += logit_gradient;
    *sum = make_float4(fmaf(logit_gradient, hidden.x, sum->x), fmaf(logit_gradient, hidden.y, sum->y),
                       fmaf(logit_gradient, hidden.z, sum->z), fmaf(logit_gradient, hidden.w, sum->w));
    hidden_gradient = make_float4(fmaf(logit_gradient, w.x, hidden_gradient.x), fmaf(logit_gradient, w.y, hidden_gradient.y),
                                  fmaf(logit_gradient, w.z, hidden_gradient.z), fmaf(logit_gradient, w.w, hidden_gradient.w));
  }
  hidden_gradient = relu4_gradient(hidden, hidden_gradient);
  float4 *bias_sum = &sums->fc1_bias;
  *bias_sum = make_float4(bias_sum->x + hidden_gradient.x, bias_sum->y + hidden_gradient.y, bias_sum->z + hidden_gradient.z,
                          bias_sum->w + hidden_gradient.w);
  return hidden_gradient;
}

/* Stores a warp's sums as a row of RL_HEAD_PITCH floats: the gradients of fc1.bias, fc2.weight and fc2.bias, then the loss. */
static __device__ __forceinline__ void store_head_row(const head_gradients &sums, int lane, float *row) {
  store4(&row[lane * 4], sums.fc1_bias);
  for (int class_index = 0; class_index < RL_CLASSES; class_index++)
    store4(&row[RL_FC1_OUTPUTS + class_index * RL_FC1_OUTPUTS + lane * 4], sums.fc2_weight[class_index]);
  if (lane != 0) return;
  for (int class_index = 0; class_index < RL_CLASSES; class_index++)
    row[RL_HEAD_LOSS - RL_CLASSES + class_index] = sums.fc2_bias[class_index];
  row[RL_HEAD_LOSS] = sums.loss;
}

/* Adds up the rows of the block's warps and stores the total as row blockIdx.x of partial[rows][RL_HEAD_PITCH]. All threads of
 * the block call it. */
static __device__ __forceinline__ void reduce_head_rows(const float (*rows)[RL_HEAD_PITCH], int count, float *partial) {
  for (int i = threadIdx.x; i <= RL_HEAD_LOSS; i += blockDim.x) {
    float sum = 0.0f;
    for (int row = 0; row < count; row++) sum += rows[row][i];
    partial[blockIdx.x * RL_HEAD_PITCH + i] = sum;
  }
}

/* Increments state->test_step in the block that calls this function last, because all blocks have read test_step then (WAR). All
 * threads of every block call it at the end of the kernel. */
static __device__ __forceinline__ void advance_test_step(rl_train_state *state) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&state->blocks_done, 1) != gridDim.x - 1) return;
  state->blocks_done = 0;
  state->test_step++;
}

static __device__ __forceinline__ bool finite4(float4 v) {
  return isfinite(v.x) && isfinite(v.y) && isfinite(v.z) && isfinite(v.w);
}

#endif
