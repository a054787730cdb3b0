/* The end of the network: everything between fc1's product and the gradient of that product, 0.8 MFLOP for a batch of 64, in one
 * kernel. A warp takes an image at a time; a lane holds four of the 128 hidden values, and of fc2's ten rows. */
#include "train/cuda/chain.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum { WARPS = 4, MOST_ROWS = 64 };

static __device__ __forceinline__ uint32_t label_of(const rl_gather &gather, uint32_t n) {
  uint32_t position = *gather.step * gather.stride + n;
  return gather.labels[gather.order ? gather.order[position] : position];
}

static __device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

/* Four hidden values of image n: the parts' sum, bias and ReLU. */
static __device__ __forceinline__ float4 hidden(const rl_head &head, uint32_t n, int lane, float4 bias) {
  const float *from = &head.parts[(size_t)n * RL_FC1 + lane * 4];
  size_t stride = (size_t)head.gather.batch * RL_FC1;
  float4 sum = bias;
#pragma unroll 6
  for (uint32_t part = 0; part < head.part_count; part++) {
    float4 v = load4(&from[part * stride]);
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  return make_float4(fmaxf(sum.x, 0.0f), fmaxf(sum.y, 0.0f), fmaxf(sum.z, 0.0f), fmaxf(sum.w, 0.0f));
}

/* fc2 and log-softmax, the same in every lane: the loss; probability[] per class. */
static __device__ __forceinline__ float classify(float4 h, const float4 w[RL_CLASSES], const float *bias, uint32_t label,
                                                 float probability[RL_CLASSES], int *answer) {
  float most = -INFINITY, sum = 0.0f, wanted = 0.0f;
  for (int j = 0; j < RL_CLASSES; j++) {
    probability[j] = warp_sum(dot(h, w[j])) + bias[j];
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

template <typename T>
static __global__ void __launch_bounds__(WARPS * 32)
head_train(rl_head head, T *__restrict__ d_fc1, float *__restrict__ partial, rl_train_state *state) {
  __shared__ float sums[WARPS][RL_HEAD_ROW];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float *weights = &head.weights[RL_FC1], *biases = &weights[RL_CLASSES * RL_FC1];
  float4 fc1_bias = load4(&head.weights[lane * 4]), w[RL_CLASSES], d_w[RL_CLASSES], d_bias1 = make_float4(0, 0, 0, 0);
  float bias[RL_CLASSES], d_bias2[RL_CLASSES], loss = 0.0f;
  for (int j = 0; j < RL_CLASSES; j++) {
    w[j] = load4(&weights[j * RL_FC1 + lane * 4]);
    d_w[j] = make_float4(0, 0, 0, 0);
    bias[j] = biases[j];
    d_bias2[j] = 0.0f;
  }
  chain_wait();
  float factor = state->scale.scale / head.gather.batch;
  bool overflow = false;
  for (uint32_t n = blockIdx.x * WARPS + warp; n < head.gather.batch; n += gridDim.x * WARPS) {
    uint32_t label = label_of(head.gather, n);
    float4 h = hidden(head, n, lane, fc1_bias), d_h = make_float4(0, 0, 0, 0);
    float probability[RL_CLASSES];
    int answer = 0;
    loss += classify(h, w, bias, label, probability, &answer);
    for (int j = 0; j < RL_CLASSES; j++) {
      float d = (probability[j] - (j == (int)label ? 1.0f : 0.0f)) * factor;
      d_bias2[j] += d;
      d_w[j] = make_float4(fmaf(d, h.x, d_w[j].x), fmaf(d, h.y, d_w[j].y), fmaf(d, h.z, d_w[j].z), fmaf(d, h.w, d_w[j].w));
      d_h = make_float4(fmaf(d, w[j].x, d_h.x), fmaf(d, w[j].y, d_h.y), fmaf(d, w[j].z, d_h.z), fmaf(d, w[j].w, d_h.w));
    }
    d_h = make_float4(h.x > 0 ? d_h.x : 0, h.y > 0 ? d_h.y : 0, h.z > 0 ? d_h.z : 0, h.w > 0 ? d_h.w : 0);
    d_bias1 = make_float4(d_bias1.x + d_h.x, d_bias1.y + d_h.y, d_bias1.z + d_h.z, d_bias1.w + d_h.w);
    T *to = &d_fc1[(size_t)n * RL_FC1 + lane * 4];
    store4(to, d_h);
    float4 stored = load4(to); /* an infinity may come from rounding to FP16 */
    overflow |= !(isfinite(stored.x) && isfinite(stored.y) && isfinite(stored.z) && isfinite(stored.w));
  }
  if (sizeof(T) == 2 && (overflow || !isfinite(loss))) state->overflow = 1;
  store4(&sums[warp][lane * 4], d_bias1);
  for (int j = 0; j < RL_CLASSES; j++) store4(&sums[warp][RL_FC1 + j * RL_FC1 + lane * 4], d_w[j]);
  if (lane == 0) {
    for (int j = 0; j < RL_CLASSES; j++) sums[warp][RL_HEAD_LOSS - RL_CLASSES + j] = d_bias2[j];
    sums[warp][RL_HEAD_LOSS] = loss;
  }
  __syncthreads();
  for (int i = threadIdx.x; i <= RL_HEAD_LOSS; i += blockDim.x) {
    float sum = 0.0f;
    for (int from = 0; from < WARPS; from++) sum += sums[from][i];
    partial[blockIdx.x * RL_HEAD_ROW + i] = sum;
  }
}

static __global__ void __launch_bounds__(WARPS * 32)
head_evaluate(rl_head head, float *__restrict__ losses, uint8_t *__restrict__ correct, rl_train_state *state) {
  int lane = threadIdx.x % 32;
  const float *weights = &head.weights[RL_FC1], *biases = &weights[RL_CLASSES * RL_FC1];
  float4 fc1_bias = load4(&head.weights[lane * 4]), w[RL_CLASSES];
  float bias[RL_CLASSES];
  for (int j = 0; j < RL_CLASSES; j++) {
    w[j] = load4(&weights[j * RL_FC1 + lane * 4]);
    bias[j] = biases[j];
  }
  uint32_t n = blockIdx.x * WARPS + threadIdx.x / 32;
  if (n < head.gather.batch) {
    uint32_t label = label_of(head.gather, n), position = *head.gather.step * head.gather.stride + n;
    float probability[RL_CLASSES];
    int answer = 0;
    float loss = classify(hidden(head, n, lane, fc1_bias), w, bias, label, probability, &answer);
    if (lane == 0) {
      losses[position] = loss;
      correct[position] = answer == (int)label;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&state->ticket, 1) == gridDim.x - 1) { /* every block has read the step */
      state->ticket = 0;
      state->test_step++;
    }
  }
}

uint32_t rl_head_rows(uint32_t batch) {
  uint32_t rows = (batch + WARPS - 1) / WARPS;
  return rows < MOST_ROWS ? rows : (uint32_t)MOST_ROWS;
}

int rl_head_train(rl_format format, const rl_head *head, void *d_fc1, float *partial, rl_train_state *state,
                  cudaStream_t stream, rl_error *err) {
  uint32_t rows = rl_head_rows(head->gather.batch);
  if (format.half)
    return rl_chain("the head", head_train<__half>, rows, WARPS * 32, 0, stream, err, *head, (__half *)d_fc1, partial, state);
  return rl_chain("the head", head_train<float>, rows, WARPS * 32, 0, stream, err, *head, (float *)d_fc1, partial, state);
}

int rl_head_evaluate(const rl_head *head, float *losses, uint8_t *correct, rl_train_state *state, cudaStream_t stream,
                     rl_error *err) {
  head_evaluate<<<(head->gather.batch + WARPS - 1) / WARPS, WARPS * 32, 0, stream>>>(*head, losses, correct, state);
  return rl_launch_ok("evaluating", err);
}
