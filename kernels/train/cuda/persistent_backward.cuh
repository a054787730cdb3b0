/* The engine "persistent": the backward pass from d_fc1 to the partial sums of all gradients except that of fc1.weight, which the
 * update computes. persistent.cuh defines pair, group, slice, microbatch, the names of tensors and F. All threads of the block
 * call these functions unless their comments say otherwise. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_BACKWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_BACKWARD_H

#include "train/cuda/persistent_forward.cuh"

/* Receives d_fc1 of the group's images, computes this block's slice of their d_pooled2, and sends it to their pairs as tagged
 * words. */
template <class F> static __device__ __forceinline__ void fc1_backward(const rl_persistent_args &args, const microbatch &mb,
                                                                       const block_coords &coords, block_memory<F> &smem) {
  typedef typename F::value value;
  rl_block_exchange *exchange = args.block_exchange;
  receive_rows<F, RL_FC1_OUTPUTS, F::D_FC1_PITCH>(exchange->d_fc1, 0, mb, coords, smem.d_fc1);
  __syncthreads();
  record_timestamp(args, mb.step, RL_TIMED_fc1_gradients);
  F::template fc1_backward<SLICE_INPUTS>(smem.d_fc1, smem.fc1, [&](int image, int k, float a, float b) {
    const uint32_t pair = coords.group_first_pair + image;
    if (has_image(mb, pair))
      send_tagged(&exchange->d_pooled2[pair][coords.slice * SLICE_INPUTS + k], message_phase(mb, pair), rounded_to<value>(a),
                  rounded_to<value>(b));
  });
}

/* Receives d_pooled2 and computes from it d_out and the gradient of conv2's bias, for this block's channels. d_out overwrites
 * smem.fc1 (WAR): every thread must have finished reading fc1 before. */
template <class F> static __device__ __forceinline__ void unpool2(const rl_persistent_args &args, const microbatch &mb,
                                                                  const block_coords &coords, block_memory<F> &smem,
                                                                  gradient_sums<F> &sums) {
  typedef typename F::value value;
  enum { CHANNEL_QUADS = TILE_CHANNELS / 4 };
  const float *received_d_pooled2 = args.block_exchange->d_pooled2[coords.pair];
#pragma unroll 1
  for (int i = threadIdx.x; i < RL_POOLED2_PIXELS * CHANNEL_QUADS; i += F::THREADS) {
    const int pixel = i / CHANNEL_QUADS, channel = i % CHANNEL_QUADS * 4,
              from = pixel * RL_CONV2_CHANNELS + coords.rank * TILE_CHANNELS + channel;
    const uchar4 argmax = *(const uchar4 *)&smem.argmax2[pixel * TILE_CHANNELS + channel];
    const float4 d = receive_tagged(&received_d_pooled2[from], message_phase(mb, coords.pair));
    if (args.d_pooled2) store4((value *)args.d_pooled2 + (size_t)step_image(mb, coords.pair) * RL_FC1_INPUTS + from, d);
    F::unpool(pixel, channel, argmax, d, smem.d_out);
    const float4 passed = make_float4(argmax.x == RL_ARGMAX_RELU_ZERO ? 0 : d.x, argmax.y == RL_ARGMAX_RELU_ZERO ? 0 : d.y,
                                      argmax.z == RL_ARGMAX_RELU_ZERO ? 0 : d.z, argmax.w == RL_ARGMAX_RELU_ZERO ? 0 : d.w);
    sums.overflow |= !finite4(passed);
    sums.conv2_bias = add4(sums.conv2_bias, passed);
  }
}

/* Returns the index in d_pooled1 of a channel of a pixel. If the channel is even, the next channel is at the next index. The XOR
 * swizzle puts neighbouring pixels, and pixels three rows apart, into different banks. */
static __device__ __forceinline__ int d_pooled1_index(int pixel, int channel) {
  return pixel * RL_CONV1_CHANNELS + (channel ^ (pixel + pixel / 32) % 4 * 8);
}

/* Computes this block's part of d_pooled1, which is the sum over its channels of conv2. With CONV1_IS_SPLIT, it stores each pixel
 * in the block of the pair that owns the pixel. WAR: cluster_wait orders these stores after the last read, by the peer,
 * of the d_pooled1_parts that they overwrite. */
template <class F>
static __device__ __forceinline__ void conv2_input_gradient(const block_coords &coords, block_memory<F> &smem) {
  if constexpr (F::CONV1_IS_SPLIT) {
    F::conv2_input_gradient(smem.conv2, smem.d_out, cluster_wait, [&](int pixel, int channel, float a, float b) {
      const uint32_t owner = pixel >= BLOCK_PIXELS;
      float *to = &smem.d_pooled1_parts[owner != coords.rank][d_pooled1_index(pixel - owner * BLOCK_PIXELS, channel)];
      if (owner == coords.rank) *(float2 *)to = make_float2(a, b);
      else st_async(owner, to, make_float2(a, b), &smem.gradients_mbarrier);
    });
  } else {
    F::conv2_input_gradient(
        smem.conv2, smem.d_out, [] {},
        [&](int pixel, int channel, float a, float b) { store2(&smem.d_pooled1[pixel * F::IN_PITCH + channel], a, b); });
  }
}

/* Computes the gradients of conv2's weights, bias and input, and after the pair's last image of the step (is_last_image) stores
 * the sums of the weight gradient. With CONV1_IS_SPLIT, the input gradient is computed first, because its stores to the peer then
 * drain while the weight gradient is computed; but not if the format uses scratch, which requires the weight gradient to be first
 * (tile.cuh). Otherwise the weight gradient is computed first, so that the stores of its sums drain while the input gradient is
 * computed. The caller synchronises the block before it reads d_pooled1. */
template <class F> static __device__ __forceinline__ void conv2_backward(const rl_persistent_args &args, const microbatch &mb,
                                                                         const block_coords &coords, bool is_last_image,
                                                                         block_memory<F> &smem, gradient_sums<F> &sums) {
  const bool input_gradient_first = F::CONV1_IS_SPLIT && !F::CONV2_BACKWARD_SCRATCH_FLOATS;
  if (F::CONV1_IS_SPLIT && threadIdx.x == 0)
    mbarrier_arrive_expect_tx(&smem.gradients_mbarrier, BLOCK_PIXELS * RL_CONV1_CHANNELS * sizeof(float));
  if (F::CONV1_IS_SPLIT && input_gradient_first) cluster_arrive_relaxed();
  unpool2(args, mb, coords, smem, sums);
  __syncthreads();
  record_timestamp(args, mb.step, RL_TIMED_unpool2);
  if (input_gradient_first) conv2_input_gradient(coords, smem);
  F::conv2_weight_gradient(smem.pooled1, smem.d_out, smem.conv2_backward_scratch, sums.conv2);
  if (is_last_image) F::store_weight_gradient(sums.conv2, conv2_weight_partial_row(args, coords));
  if (!input_gradient_first) {
    record_timestamp(args, mb.step, RL_TIMED_conv2_weight_gradient);
    if (F::CONV1_IS_SPLIT) cluster_arrive_relaxed();
    conv2_input_gradient(coords, smem);
  }
  record_timestamp(args, mb.step, RL_TIMED_conv2_input_gradient);
  if (F::CONV1_IS_SPLIT) mbarrier_wait(&smem.gradients_mbarrier, message_phase(mb, coords.pair));
}

/* For tests: if args.d_pooled1 is set, stores this block's part of d_pooled1 in global memory. Only without CONV1_IS_SPLIT;
 * otherwise conv1_backward_split stores d_pooled1. */
template <class F> static __device__ __forceinline__ void dump_d_pooled1(const rl_persistent_args &args, const microbatch &mb,
                                                                         const block_coords &coords,
                                                                         const block_memory<F> &smem) {
  typedef typename F::value value;
  enum { VALUES = RL_POOLED1_PIXELS * RL_CONV1_CHANNELS };
  if (!args.d_pooled1) return;
  value *part = (value *)args.d_pooled1 + (coords.rank * (size_t)mb.step_images + step_image(mb, coords.pair)) * VALUES;
  for (int i = threadIdx.x; i < VALUES; i += F::THREADS)
    part[i] = smem.d_pooled1[i / RL_CONV1_CHANNELS * F::IN_PITCH + i % RL_CONV1_CHANNELS];
}

/* Adds the contributions of this block's pixels to conv1's gradients; lane c computes channel c. Only the compute warps call
 * it. */
template <class F> static __device__ __forceinline__ void conv1_backward_split(const rl_persistent_args &args,
                                                                               const microbatch &mb, const block_coords &coords,
                                                                               block_memory<F> &smem, gradient_sums<F> &sums) {
  typedef typename F::value value;
  value *stored_d_pooled1 =
      args.d_pooled1
          ? (value *)args.d_pooled1 +
                ((size_t)step_image(mb, coords.pair) * RL_POOLED1_PIXELS + coords.rank * BLOCK_PIXELS) * RL_CONV1_CHANNELS
          : NULL;
#pragma unroll 2
  for (int pixel = coords.warp; pixel < BLOCK_PIXELS; pixel += step_schedule<F>::COMPUTE_WARPS) {
    const int i = pixel * RL_CONV1_CHANNELS + coords.lane, from = d_pooled1_index(pixel, coords.lane), argmax = smem.argmax1[i];
    const float gradient = rounded_to<value>(smem.d_pooled1_parts[0][from] + smem.d_pooled1_parts[1][from]);
    if (stored_d_pooled1) stored_d_pooled1[i] = (value)gradient;
    sums.overflow |= argmax != RL_ARGMAX_RELU_ZERO && !isfinite(gradient);
    add_pooled_gradient(gradient, argmax, pixel, smem.image_rows, sums.conv1.of_channel);
  }
}

/* Adds this block's contributions to conv1's gradients. Only the compute warps call it (is_compute_warp). */
template <class F> static __device__ __forceinline__ void conv1_backward(const rl_persistent_args &args, const microbatch &mb,
                                                                         const block_coords &coords, block_memory<F> &smem,
                                                                         gradient_sums<F> &sums) {
  if constexpr (F::CONV1_IS_SPLIT) conv1_backward_split(args, mb, coords, smem, sums);
  else
    conv1_tile_gradient<step_schedule<F>::COMPUTE_WARPS, F::IN_PITCH>(coords.warp, smem.d_pooled1, smem.argmax1, smem.image,
                                                                      sums.conv1);
}

/* Stores the warp's sums of conv1's gradients in a row of smem.warp_sums. With CONV1_IS_SPLIT each warp fills a row; without it
 * each pair of compute warps does. There, an element of d_pooled1 that is not finite makes the gradient of its channel's bias not
 * finite. */
template <class F> static __device__ __forceinline__ void store_conv1_sums(const block_coords &coords, block_memory<F> &smem,
                                                                           gradient_sums<F> &sums) {
  if constexpr (F::CONV1_IS_SPLIT) {
    float *row = smem.warp_sums[coords.warp];
    for (int k = 0; k < 9; k++) row[coords.lane * 9 + k] = sums.conv1.of_channel[k];
    row[RL_CONV1_CHANNELS * 9 + coords.lane] = sums.conv1.of_channel[9];
  } else if (is_compute_warp<F>()) {
    float *row = smem.warp_sums[coords.warp / 2];
    conv1_tile_sums_epilogue(coords.warp, sums.conv1, [&](int i, float sum) {
      row[i] = sum;
      sums.overflow |= !isfinite(sum);
    });
  }
}

/* Stores the step's gradients of the head, conv1 and conv2.bias in the pair's rows of partial sums. The gradients of conv1 and
 * conv2.bias are first added up over the warps of the block. */
template <class F> static __device__ __forceinline__ void store_partial_sums(const rl_persistent_args &args,
                                                                             const block_coords &coords, block_memory<F> &smem,
                                                                             gradient_sums<F> &sums) {
  if (coords.rank == 0) {
    float *row = &args.partial_head[(size_t)coords.pair * RL_HEAD_PITCH], *weights = &row[RL_FC1_OUTPUTS],
          *biases = &weights[RL_CLASSES * RL_FC1_OUTPUTS];
    if (coords.warp <= RL_CLASSES)
      store4(coords.warp < RL_CLASSES ? &weights[coords.warp * RL_FC1_OUTPUTS + coords.lane * 4] : &row[coords.lane * 4],
             sums.fc2_weight_or_fc1_bias);
    if (coords.warp != RL_CLASSES && coords.lane == 0)
      (coords.warp < RL_CLASSES ? biases[coords.warp] : row[RL_HEAD_LOSS]) = sums.fc2_bias_or_loss;
  }
  store_conv1_sums(coords, smem, sums);
  float *warp_row = smem.warp_sums[coords.warp];
  const float biases[4] = {sums.conv2_bias.x, sums.conv2_bias.y, sums.conv2_bias.z, sums.conv2_bias.w};
  for (int c = 0; c < 4; c++) { /* adds up the four lanes that have the same channels and are 8 apart */
    float sum = biases[c];
    sum += __shfl_xor_sync(0xffffffffu, sum, 8);
    sum += __shfl_xor_sync(0xffffffffu, sum, 16);
    if (coords.lane < 8) warp_row[RL_CONV1_PARAMETERS + coords.lane * 4 + c] = sum;
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < WARP_SUMS; i += F::THREADS) {
    const int rows = i < RL_CONV1_PARAMETERS ? (int)conv1_memory<F>::SUM_ROWS : (int)step_schedule<F>::WARPS;
    float sum = 0.0f;
    for (int row = 0; row < rows; row++) sum += smem.warp_sums[row][i];
    if (i < RL_CONV1_PARAMETERS) args.partial_conv1[blockIdx.x * RL_CONV1_PARAMETERS + i] = sum;
    else args.partial_conv2_bias[coords.pair * RL_CONV2_CHANNELS + coords.rank * TILE_CHANNELS + i - RL_CONV1_PARAMETERS] = sum;
  }
}

#endif
