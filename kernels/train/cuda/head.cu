/* Implements the rl_head_ functions of kernels.h: the head of the network, from fc1's product to the gradient of this product, in
 * one kernel: bias, ReLU, fc2, softmax, mean cross-entropy, and their gradients (head.cuh).
 *
 * Division of work: a warp computes one image after another. Each block stores the sums of its gradients as a row of partial
 * sums, which Adam adds up. Blocks exchange nothing else.
 *
 * Shortest possible time: the 0.8 MFLOP of a batch of 64 take far less time than the launch latency and the loads from L2. */
#include "pdl.cuh"
#include "train/cuda/head.cuh"

enum {
  WARPS = 4,
  MAX_ROWS = 128,                    /* rows of partial sums, and blocks of head_train */
  MAX_IMAGES = MAX_ROWS * WARPS * 32 /* of a step, because each lane loads the label of one image of its warp */
};

/* Returns the lane's four hidden values of image n: adds up the parts of fc1's product, adds the bias and applies ReLU. */
static __device__ __forceinline__ float4 hidden_values(const rl_head &head, uint32_t n, int lane, float4 bias) {
  const float *from = &head.fc1_parts[(size_t)n * RL_FC1_OUTPUTS + lane * 4];
  size_t stride = (size_t)head.gather.batch * RL_FC1_OUTPUTS;
  float4 sum = bias;
#pragma unroll 6
  for (uint32_t part = 0; part < head.part_count; part++) {
    float4 v = load4(&from[part * stride]);
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  return relu4(sum);
}

template <typename T> static __global__ void __launch_bounds__(WARPS * 32)
    head_train(rl_head head, T *__restrict__ fc1_product_gradient, float *__restrict__ partial, rl_train_state *state) {
  __shared__ __align__(16) float sums[WARPS][RL_HEAD_PITCH];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const head_weights weights = load_head_weights(head.weights, lane);
  head_gradients gradients = {};
  const uint32_t first = blockIdx.x * WARPS + warp, stride = gridDim.x * WARPS, label_image = first + lane * stride;
  const uint32_t lane_label = label_image < head.gather.batch ? label_of(head.gather, label_image) : 0;
  pdl_wait(); /* the loads above do not depend on the previous kernel */
  float factor = state->loss_scale.scale / head.gather.batch;
  bool overflow = false;
  for (uint32_t n = first, i = 0; n < head.gather.batch; n += stride, i++) {
    uint32_t label = __shfl_sync(0xffffffffu, lane_label, i);
    float4 hidden = hidden_values(head, n, lane, weights.fc1_bias);
    float probability[RL_CLASSES];
    int predicted_class = 0;
    gradients.loss += head_forward(hidden, weights, label, probability, &predicted_class);
    T *to = &fc1_product_gradient[(size_t)n * RL_FC1_OUTPUTS + lane * 4];
    store4(to, head_backward(hidden, weights, probability, label, factor, &gradients));
    overflow |= !finite4(load4(to)); /* check the stored values, because rounding to FP16 may overflow */
  }
  if (sizeof(T) == 2 && (overflow || !isfinite(gradients.loss))) state->overflow = 1;
  store_head_row(gradients, lane, sums[warp]);
  __syncthreads();
  reduce_head_rows(sums, WARPS, partial);
}

static __global__ void __launch_bounds__(WARPS * 32)
    head_evaluate(rl_head head, float *__restrict__ losses, uint8_t *__restrict__ correct, rl_train_state *state) {
  int lane = threadIdx.x % 32;
  const head_weights weights = load_head_weights(head.weights, lane);
  uint32_t n = blockIdx.x * WARPS + threadIdx.x / 32;
  if (n < head.gather.batch) {
    uint32_t label = label_of(head.gather, n), position = epoch_position(head.gather, n);
    float probability[RL_CLASSES];
    int predicted_class = 0;
    float loss = head_forward(hidden_values(head, n, lane, weights.fc1_bias), weights, label, probability, &predicted_class);
    if (lane == 0) {
      losses[position] = loss;
      correct[position] = predicted_class == (int)label;
    }
  }
  advance_test_step(state);
}

uint32_t rl_head_partial_rows(uint32_t batch) {
  uint32_t rows = (batch + WARPS - 1) / WARPS;
  return rows < MAX_ROWS ? rows : (uint32_t)MAX_ROWS;
}

int rl_head_train(rl_format format, const rl_head *head, void *fc1_product_gradient, float *partial, rl_train_state *state,
                  cudaStream_t stream, rl_error *err) {
  uint32_t rows = rl_head_partial_rows(head->gather.batch);
  if (head->gather.batch > MAX_IMAGES)
    return rl_fail(err, RL_INPUT, 0, "the head takes at most %d images in a step, not %u", MAX_IMAGES, head->gather.batch);
  if (format.fp16)
    return rl_pdl_launch("the head", head_train<__half>, rows, WARPS * 32, 0, stream, err, *head, (__half *)fc1_product_gradient,
                         partial, state);
  return rl_pdl_launch("the head", head_train<float>, rows, WARPS * 32, 0, stream, err, *head, (float *)fc1_product_gradient,
                       partial, state);
}

int rl_head_evaluate(const rl_head *head, float *losses, uint8_t *correct, rl_train_state *state, cudaStream_t stream,
                     rl_error *err) {
  head_evaluate<<<(head->gather.batch + WARPS - 1) / WARPS, WARPS * 32, 0, stream>>>(*head, losses, correct, state);
  return rl_cuda_check_launch("evaluating", err);
}
