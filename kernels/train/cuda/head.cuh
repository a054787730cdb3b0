/* The head of the network, for one image by one warp: ReLU, fc2, softmax, cross-entropy, and their gradients, all in FP32. A lane
 * holds four of the 128 hidden values (fc1's outputs), and the same four of each of fc2's ten rows. */
#ifndef RL_TRAIN_CUDA_HEAD_H
#define RL_TRAIN_CUDA_HEAD_H

#include "train/cuda/gather.cuh"
#include "train/cuda/vector.cuh"

typedef struct head_weights {
  float4 fc1_bias, fc2_weight[RL_CLASSES];
  float fc2_bias[RL_CLASSES];
} head_weights;

/* parameters: fc1.bias, fc2.weight, fc2.bias, one after the other. */
static __device__ __forceinline__ head_weights load_head_weights(const float *parameters, int lane) {
  const float *fc2_weight = &parameters[RL_FC1_OUTPUTS], *fc2_bias = &fc2_weight[RL_CLASSES * RL_FC1_OUTPUTS];
  head_weights weights;
  weights.fc1_bias = load4(&parameters[lane * 4]);
  for (int j = 0; j < RL_CLASSES; j++) {
    weights.fc2_weight[j] = load4(&fc2_weight[j * RL_FC1_OUTPUTS + lane * 4]);
    weights.fc2_bias[j] = fc2_bias[j];
  }
  return weights;
}

static __device__ __forceinline__ float dot4(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

static __device__ __forceinline__ float4 relu4(float4 v) {
  return make_float4(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f), fmaxf(v.z, 0.0f), fmaxf(v.w, 0.0f));
}

/* Returns the gradient of a ReLU's input. h: its output; d: gradient of its output. */
static __device__ __forceinline__ float4 relu4_gradient(float4 h, float4 d) {
  return make_float4(h.x > 0 ? d.x : 0, h.y > 0 ? d.y : 0, h.z > 0 ? d.z : 0, h.w > 0 ? d.w : 0);
}

/* Computes fc2 and softmax of the hidden values h, and returns the image's loss. In every lane: probability[] of all classes, and
 * the most probable class. */
static __device__ __forceinline__ float head_forward(float4 h, const head_weights &weights, uint32_t label,
                                                     float probability[RL_CLASSES], int *predicted_class) {
  float max_logit = -INFINITY, sum = 0.0f, label_logit = 0.0f;
  for (int j = 0; j < RL_CLASSES; j++) {
    probability[j] = warp_sum(dot4(h, weights.fc2_weight[j])) + weights.fc2_bias[j];
    if (probability[j] > max_logit) {
      max_logit = probability[j];
      *predicted_class = j;
    }
  }
  for (int j = 0; j < RL_CLASSES; j++) {
    float shifted = probability[j] - max_logit;
    if (j == (int)label) label_logit = shifted;
    probability[j] = expf(shifted);
    sum += probability[j];
  }
  for (int j = 0; j < RL_CLASSES; j++) probability[j] /= sum;
  return logf(sum) - label_logit;
}

/* Sums of gradients, and of the loss, over a warp's images; lanes hold their part as in head_weights. */
typedef struct head_gradients {
  float4 fc1_bias, fc2_weight[RL_CLASSES];
  float fc2_bias[RL_CLASSES], loss;
} head_gradients;

/* Adds an image's gradients, multiplied by `factor`, to the sums, and returns the gradient of fc1's product (its output before
 * the bias). */
static __device__ __forceinline__ float4 head_backward(float4 h, const head_weights &weights, const float probability[RL_CLASSES],
                                                       uint32_t label, float factor, head_gradients *sums) {
  float4 d_h = make_float4(0, 0, 0, 0);
  for (int j = 0; j < RL_CLASSES; j++) {
    float d = (probability[j] - (j == (int)label ? 1.0f : 0.0f)) * factor;
    float4 *d_w = &sums->fc2_weight[j], w = weights.fc2_weight[j];
    sums->fc2_bias[j] += d;
    *d_w = make_float4(fmaf(d, h.x, d_w->x), fmaf(d, h.y, d_w->y), fmaf(d, h.z, d_w->z), fmaf(d, h.w, d_w->w));
    d_h = make_float4(fmaf(d, w.x, d_h.x), fmaf(d, w.y, d_h.y), fmaf(d, w.z, d_h.z), fmaf(d, w.w, d_h.w));
  }
  d_h = relu4_gradient(h, d_h);
  float4 *d_bias = &sums->fc1_bias;
  *d_bias = make_float4(d_bias->x + d_h.x, d_bias->y + d_h.y, d_bias->z + d_h.z, d_bias->w + d_h.w);
  return d_h;
}

/* Stores a warp's sums as a row of RL_HEAD_PITCH floats: gradients of fc1.bias, fc2.weight and fc2.bias, then the loss. */
static __device__ __forceinline__ void store_head_row(const head_gradients &sums, int lane, float *row) {
  store4(&row[lane * 4], sums.fc1_bias);
  for (int j = 0; j < RL_CLASSES; j++) store4(&row[RL_FC1_OUTPUTS + j * RL_FC1_OUTPUTS + lane * 4], sums.fc2_weight[j]);
  if (lane != 0) return;
  for (int j = 0; j < RL_CLASSES; j++) row[RL_HEAD_LOSS - RL_CLASSES + j] = sums.fc2_bias[j];
  row[RL_HEAD_LOSS] = sums.loss;
}

/* Adds up the rows of a block's warps into row blockIdx.x of `partial`. All threads of the block call it. */
static __device__ __forceinline__ void reduce_head_rows(const float (*rows)[RL_HEAD_PITCH], int count, float *partial) {
  for (int i = threadIdx.x; i <= RL_HEAD_LOSS; i += blockDim.x) {
    float sum = 0.0f;
    for (int row = 0; row < count; row++) sum += rows[row][i];
    partial[blockIdx.x * RL_HEAD_PITCH + i] = sum;
  }
}

/* The last block of the grid that calls this increments state->test_step, after all blocks have read it (WAR). All threads of
 * every block call it at their end. */
static __device__ __forceinline__ void end_evaluated_batch(rl_train_state *state) {
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
