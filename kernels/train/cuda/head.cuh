/* What a warp does with an image behind fc1's product: ReLU, fc2, softmax, cross-entropy, and back. A lane holds four of the 128
 * hidden values, and of each of fc2's ten rows; all of it is FP32. */
#ifndef RL_TRAIN_CUDA_HEAD_H
#define RL_TRAIN_CUDA_HEAD_H

#include "train/cuda/gather.cuh"
#include "train/cuda/vector.cuh"

typedef struct head_weights {
  float4 fc1_bias, w[RL_CLASSES];
  float bias[RL_CLASSES];
} head_weights;

/* from: fc1.bias, fc2.weight, fc2.bias, one after the other. */
static __device__ __forceinline__ head_weights load_head_weights(const float *from, int lane) {
  const float *weights = &from[RL_FC1], *biases = &weights[RL_CLASSES * RL_FC1];
  head_weights made;
  made.fc1_bias = load4(&from[lane * 4]);
  for (int j = 0; j < RL_CLASSES; j++) {
    made.w[j] = load4(&weights[j * RL_FC1 + lane * 4]);
    made.bias[j] = biases[j];
  }
  return made;
}

static __device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

static __device__ __forceinline__ float4 rectified(float4 v) {
  return make_float4(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f), fmaxf(v.z, 0.0f), fmaxf(v.w, 0.0f));
}

/* fc2 and log-softmax of hidden values h, the same in every lane: the loss; probability[] per class. */
static __device__ __forceinline__ float classify(float4 h, const head_weights &of, uint32_t label, float probability[RL_CLASSES],
                                                 int *answer) {
  float most = -INFINITY, sum = 0.0f, wanted = 0.0f;
  for (int j = 0; j < RL_CLASSES; j++) {
    probability[j] = warp_sum(dot(h, of.w[j])) + of.bias[j];
    if (probability[j] > most) {
      most = probability[j];
      *answer = j;
    }
  }
  for (int j = 0; j < RL_CLASSES; j++) {
    float shifted = probability[j] - most;
    if (j == (int)label) wanted = shifted;
    probability[j] = expf(shifted);
    sum += probability[j];
  }
  for (int j = 0; j < RL_CLASSES; j++) probability[j] /= sum;
  return logf(sum) - wanted;
}

typedef struct head_gradients { /* sums over a warp's images */
  float4 fc1_bias, w[RL_CLASSES];
  float bias[RL_CLASSES], loss;
} head_gradients;

/* Adds an image's gradients, times factor; returns that of its hidden values before ReLU. */
static __device__ __forceinline__ float4 head_back(float4 h, const head_weights &of, const float probability[RL_CLASSES],
                                                   uint32_t label, float factor, head_gradients *sums) {
  float4 d_h = make_float4(0, 0, 0, 0);
  for (int j = 0; j < RL_CLASSES; j++) {
    float d = (probability[j] - (j == (int)label ? 1.0f : 0.0f)) * factor;
    float4 *d_w = &sums->w[j], w = of.w[j];
    sums->bias[j] += d;
    *d_w = make_float4(fmaf(d, h.x, d_w->x), fmaf(d, h.y, d_w->y), fmaf(d, h.z, d_w->z), fmaf(d, h.w, d_w->w));
    d_h = make_float4(fmaf(d, w.x, d_h.x), fmaf(d, w.y, d_h.y), fmaf(d, w.z, d_h.z), fmaf(d, w.w, d_h.w));
  }
  d_h = make_float4(h.x > 0 ? d_h.x : 0, h.y > 0 ? d_h.y : 0, h.z > 0 ? d_h.z : 0, h.w > 0 ? d_h.w : 0);
  float4 *b = &sums->fc1_bias;
  *b = make_float4(b->x + d_h.x, b->y + d_h.y, b->z + d_h.z, b->w + d_h.w);
  return d_h;
}

/* A warp's sums as a row of RL_HEAD_ROW floats: gradients of fc1.bias, fc2.weight, fc2.bias, then the loss. */
static __device__ __forceinline__ void store_head_row(const head_gradients &sums, int lane, float *row) {
  store4(&row[lane * 4], sums.fc1_bias);
  for (int j = 0; j < RL_CLASSES; j++) store4(&row[RL_FC1 + j * RL_FC1 + lane * 4], sums.w[j]);
  if (lane != 0) return;
  for (int j = 0; j < RL_CLASSES; j++) row[RL_HEAD_LOSS - RL_CLASSES + j] = sums.bias[j];
  row[RL_HEAD_LOSS] = sums.loss;
}

/* Adds up the rows of a block's warps into partial[block]; all its threads. */
static __device__ __forceinline__ void add_head_rows(const float (*rows)[RL_HEAD_ROW], int count, float *partial) {
  for (int i = threadIdx.x; i <= RL_HEAD_LOSS; i += blockDim.x) {
    float sum = 0.0f;
    for (int from = 0; from < count; from++) sum += rows[from][i];
    partial[blockIdx.x * RL_HEAD_ROW + i] = sum;
  }
}

/* Counts the evaluated batch once every block has read which one it is. */
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
