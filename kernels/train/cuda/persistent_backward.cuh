/* The engine "persistent", from the gradient of fc1's product to the partial sums of all gradients. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_BACKWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_BACKWARD_H

#include "train/cuda/persistent_forward.cuh"

/* The gradient of this slice of fc1's inputs, for the group's images. */
template <class F> static __device__ __forceinline__ void fc1_backward(const rl_persistent &e, const round_of &r, const place &at,
                                                                       block_memory<F> &m) {
  typedef typename F::value value;
  rl_exchange *x = (rl_exchange *)e.exchange;
  receive_rows<F>(x->d_fc1, 0, RL_FC1, r, at, m.d_fc1, F::HIDDEN_PITCH);
  __syncthreads();
  record_timestamp(e, r.steps_before, RL_PHASE_fc1_gradients);
  F::template fc1_backward<SLICE>(m.d_fc1, m.fc1, [&](int image, int k, float a, float b) {
    const uint32_t pair = at.first + image;
    if (has_image(r, pair))
      post(&x->d_pooled2[pair][at.slice * SLICE + k], turn_of(r, pair), as_stored<value>(a), as_stored<value>(b));
  });
}

/* The gradient of conv2's product, this half of the channels. Nobody reads m.fc1 any more. */
template <class F> static __device__ __forceinline__ void unpool2(const rl_persistent &e, const round_of &r, const place &at,
                                                                  block_memory<F> &m, gradient_sums<F> &sums) {
  typedef typename F::value value;
  enum { QUADS = TILE_CHANNELS / 4 };
  const float *mail = ((const rl_exchange *)e.exchange)->d_pooled2[at.pair];
#pragma unroll 1
  for (int i = threadIdx.x; i < MAP2 * QUADS; i += F::THREADS) {
    const int pixel = i / QUADS, channel = i % QUADS * 4, from = pixel * RL_C2 + at.rank * TILE_CHANNELS + channel;
    const uchar4 code = *(const uchar4 *)&m.codes2[pixel * TILE_CHANNELS + channel];
    const float4 d = receive(&mail[from], turn_of(r, at.pair));
    if (e.d_pooled2) store4((value *)e.d_pooled2 + (size_t)image_at(r, at.pair) * RL_FLAT + from, d);
    F::unpool(pixel, channel, code, d, m.d_out);
    const float4 let_through = make_float4(code.x == RL_POOL_STOPPED ? 0 : d.x, code.y == RL_POOL_STOPPED ? 0 : d.y,
                                           code.z == RL_POOL_STOPPED ? 0 : d.z, code.w == RL_POOL_STOPPED ? 0 : d.w);
    sums.overflow |= !finite4(let_through);
    sums.conv2_bias = added(sums.conv2_bias, let_through);
  }
}

/* Where channel and the next of a pixel lie in d_pooled1: neighbours, and pixels three rows apart, are in different banks. */
static __device__ __forceinline__ int d_pooled1_at(int pixel, int channel) {
  return pixel * RL_C1 + (channel ^ (pixel + pixel / 32) % 4 * 8);
}

/* The gradient of conv2's input to the block that has the pixel, once the other may write to this one's d_pooled1. */
template <class F> static __device__ __forceinline__ void conv2_input_gradient(const rl_persistent &e, const round_of &r,
                                                                               const place &at, block_memory<F> &m) {
  F::conv2_input_gradient(m.conv2, m.d_out, cluster_wait, [&](int pixel, int channel, float a, float b) {
    const uint32_t owner = pixel >= HALF_MAP1;
    float *to = &m.d_pooled1[owner != at.rank][d_pooled1_at(pixel - owner * HALF_MAP1, channel)];
    if (owner == at.rank) *(float2 *)to = make_float2(a, b);
    else st_async(owner, to, make_float2(a, b), &m.gradients_came);
  });
  record_timestamp(e, r.steps_before, RL_PHASE_conv2_input_gradient);
}

/* From the gradient of conv2's pools on. Where d_out outlives the input's gradient, that one is first: it is under way while the
 * other is made. last: image of the pair in this step. */
template <class F> static __device__ __forceinline__ void conv2_backward(const rl_persistent &e, const round_of &r,
                                                                         const place &at, bool last, block_memory<F> &m,
                                                                         gradient_sums<F> &sums) {
  const bool input_first = !F::BACKWARD_SCRATCH;
  if (threadIdx.x == 0) mbarrier_arrive_expect_tx(&m.gradients_came, HALF_MAP1 * RL_C1 * sizeof(float));
  if (input_first) cluster_arrive_relaxed();
  unpool2(e, r, at, m, sums);
  __syncthreads();
  record_timestamp(e, r.steps_before, RL_PHASE_unpool2);
  if (!input_first) {
    F::conv2_weight_gradient(m.pooled1, m.d_out, m.backward_scratch, sums.conv2);
    cluster_arrive_relaxed();
  }
  conv2_input_gradient(e, r, at, m);
  if (input_first) {
    F::conv2_weight_gradient(m.pooled1, m.d_out, m.backward_scratch, sums.conv2);
    record_timestamp(e, r.steps_before, RL_PHASE_conv2_weight_gradient);
  }
  if (last) F::store_weight_gradient(sums.conv2, conv2_row(e, at));
  await(&m.gradients_came, turn_of(r, at.pair));
  __syncthreads();
}

/* conv1's gradients from this half of the pixels; a lane is a channel. By the workers. */
template <class F> static __device__ __forceinline__ void conv1_backward(const rl_persistent &e, const round_of &r,
                                                                         const place &at, block_memory<F> &m,
                                                                         gradient_sums<F> &sums) {
  typedef typename F::value value;
  value *shown = e.d_pooled1 ? (value *)e.d_pooled1 + ((size_t)image_at(r, at.pair) * MAP1 + at.rank * HALF_MAP1) * RL_C1 : NULL;
#pragma unroll 2
  for (int pixel = at.warp; pixel < HALF_MAP1; pixel += team<F>::WORKERS) {
    const int i = pixel * RL_C1 + at.lane, from = d_pooled1_at(pixel, at.lane), code = m.codes1[i];
    const float gradient = as_stored<value>(m.d_pooled1[0][from] + m.d_pooled1[1][from]);
    if (shown) shown[i] = (value)gradient;
    sums.overflow |= code != RL_POOL_STOPPED && !isfinite(gradient);
    add_element(gradient, code, pixel, m.image, sums.conv1);
  }
}

/* The step's other sums to their rows of partial sums. */
template <class F> static __device__ __forceinline__ void store_sums(const rl_persistent &e, const place &at, block_memory<F> &m,
                                                                     gradient_sums<F> &sums) {
  if (at.rank == 0) {
    float *row = &e.partial_head[(size_t)at.pair * RL_HEAD_ROW], *weights = &row[RL_FC1], *biases = &weights[RL_CLASSES * RL_FC1];
    if (at.warp <= RL_CLASSES)
      store4(at.warp < RL_CLASSES ? &weights[at.warp * RL_FC1 + at.lane * 4] : &row[at.lane * 4], sums.head_weight);
    if (at.warp != RL_CLASSES && at.lane == 0) (at.warp < RL_CLASSES ? biases[at.warp] : row[RL_HEAD_LOSS]) = sums.head_bias;
  }
  float *own = m.channels[at.warp];
  for (int k = 0; k < 9; k++) own[at.lane * 9 + k] = sums.conv1[k];
  own[RL_C1 * 9 + at.lane] = sums.conv1[9];
  const float biases[4] = {sums.conv2_bias.x, sums.conv2_bias.y, sums.conv2_bias.z, sums.conv2_bias.w};
  for (int c = 0; c < 4; c++) { /* lanes of the same four channels are eight apart */
    float sum = biases[c];
    sum += __shfl_xor_sync(0xffffffffu, sum, 8);
    sum += __shfl_xor_sync(0xffffffffu, sum, 16);
    if (at.lane < 8) own[CONV1_ROW + at.lane * 4 + c] = sum;
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < SUMS_ROW; i += F::THREADS) {
    float sum = 0.0f;
    for (int warp = 0; warp < team<F>::WARPS; warp++) sum += m.channels[warp][i];
    if (i < CONV1_ROW) e.partial_conv1[blockIdx.x * CONV1_ROW + i] = sum;
    else e.partial_conv2_bias[at.pair * RL_C2 + at.rank * TILE_CHANNELS + i - CONV1_ROW] = sum;
  }
}

#endif
