/* The engine "persistent": the backward pass, from fc1_product_gradient to the partial sums of all gradients except that of
 * fc1.weight, which persistent_update.cuh computes. persistent.cuh defines pair, group, slice, microbatch, the names of tensors
 * and Format. All threads of the block call these functions unless a comment says otherwise. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_BACKWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_BACKWARD_H

#include "train/cuda/persistent_forward.cuh"

/* Receives fc1_product_gradient of the group's images, computes this block's slice of their pooled2_gradient, and sends it to the
 * images' pairs as tagged words. */
template <class Format>
static __device__ __forceinline__ void fc1_backward(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                    const block_coords &coords, block_memory<Format> &smem) {
  typedef typename Format::value value;
  rl_block_exchange *exchange = args.block_exchange;
  const pending_words words =
      begin_to_receive_rows<Format, RL_FC1_OUTPUTS>(exchange->fc1_product_gradient, 0, microbatch, coords);
  Format::template fc1_backward<SLICE_INPUTS>(
      smem.fc1_product_gradient, smem.fc1,
      [&] {
        receive_rows<Format, RL_FC1_OUTPUTS, Format::FC1_PRODUCT_GRADIENT_PITCH>(words, smem.fc1_product_gradient);
        __syncthreads();
        record_timestamp<Format>(args, microbatch.step, RL_TIMED_fc1_gradients);
      },
      [&](int image, int k, float a, float b) {
        const uint32_t pair = coords.group_first_pair + image;
        if (has_image(microbatch, pair))
          send_tagged(&exchange->pooled2_gradient[pair][coords.slice * SLICE_INPUTS + k], message_phase<Format>(microbatch, pair),
                      rounded_to<value>(a), rounded_to<value>(b));
      });
}

/* Receives pooled2_gradient of the pair's image, and computes out_gradient and the gradient of conv2's bias for this block's
 * channels. An element of pooled2_gradient that is not finite makes the gradient of its channel's bias not finite. WAR:
 * out_gradient may overwrite smem.fc1, so every thread must have finished reading fc1 before. */
template <class Format> static __device__ __forceinline__ void unpool2(const rl_persistent_args &args,
                                                                       const microbatch_state &microbatch,
                                                                       const block_coords &coords, block_memory<Format> &smem,
                                                                       gradient_sums<Format> &sums) {
  typedef typename Format::value value;
  enum { CHANNEL_QUADS = TILE_CHANNELS / 4 };
  const float *received_gradient = args.block_exchange->pooled2_gradient[coords.pair];
#pragma unroll 1
  for (int i = threadIdx.x; i < RL_POOLED2_PIXELS * CHANNEL_QUADS; i += Format::THREADS) {
    const int pixel = i / CHANNEL_QUADS, channel = i % CHANNEL_QUADS * 4,
              from = pixel * RL_CONV2_CHANNELS + coords.rank * TILE_CHANNELS + channel;
    const uchar4 argmax = *(const uchar4 *)&smem.argmax2[pixel * TILE_CHANNELS + channel];
    const float4 gradient = receive_tagged(&received_gradient[from], message_phase<Format>(microbatch, coords.pair));
    if (Format::RECORDS && args.pooled2_gradient)
      store4((value *)args.pooled2_gradient + (size_t)step_image(microbatch, coords.pair) * RL_FC1_INPUTS + from, gradient);
    if constexpr (Format::CONV2_GRADIENTS_TOGETHER)
      Format::unpool(pixel, channel, argmax, gradient, smem.conv2_gradients.out_gradient);
    else Format::unpool(pixel, channel, argmax, gradient, smem.out_gradient);
    const float4 passed =
        make_float4(argmax.x == RL_ARGMAX_RELU_ZERO ? 0 : gradient.x, argmax.y == RL_ARGMAX_RELU_ZERO ? 0 : gradient.y,
                    argmax.z == RL_ARGMAX_RELU_ZERO ? 0 : gradient.z, argmax.w == RL_ARGMAX_RELU_ZERO ? 0 : gradient.w);
    sums.conv2_bias = add4(sums.conv2_bias, passed);
  }
}

/* Returns the index in pooled1_gradient_parts[…] of a channel of a pixel. If the channel is even, the next channel is at the next
 * index. An XOR swizzle puts neighbouring pixels, and pixels three rows apart, into different banks. */
static __device__ __forceinline__ int pooled1_gradient_index(int pixel, int channel) {
  return pixel * RL_CONV1_CHANNELS + (channel ^ (pixel + pixel / 32) % 4 * 8);
}

/* If CONV2_GRADIENTS_TOGETHER: computes the gradients of conv2's weights and input. Stores the part of each pixel of
 * pooled1_gradient that comes from this block's channels in the block of the pair that owns the pixel. WAR: these stores
 * overwrite pooled1_gradient_parts, so cluster_wait delays them until the peer has read the previous contents. */
template <class Format> static __device__ __forceinline__ void conv2_gradients(const block_coords &coords,
                                                                               block_memory<Format> &smem,
                                                                               gradient_sums<Format> &sums) {
  static_assert(Format::CONV1_GRADIENT_IS_SPLIT, "the parts are exchanged");
  Format::conv2_gradients(
      smem.pooled1, smem.conv2_gradients, sums.conv2, cluster_wait, [&](int pixel, int channel, float a, float b) {
        const uint32_t owner = pixel >= BLOCK_PIXELS;
        float *to =
            &smem.pooled1_gradient_parts[owner != coords.rank][pooled1_gradient_index(pixel - owner * BLOCK_PIXELS, channel)];
        if (owner == coords.rank) *(float2 *)to = make_float2(a, b);
        else st_async(owner, to, make_float2(a, b), &smem.gradients_mbarrier);
      });
}

/* Computes the gradients of conv2's weights, bias and input. After the pair's last image of the step (is_last_image), stores the
 * sums of the weight gradient. The caller synchronises the block before it reads the gradient of the input.
 *
 * If not CONV2_GRADIENTS_TOGETHER, the sums are stored while the input gradient is computed: all at once, they would fill the
 * queue of stores. */
template <class Format>
static __device__ __forceinline__ void conv2_backward(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                      const block_coords &coords, bool is_last_image, block_memory<Format> &smem,
                                                      gradient_sums<Format> &sums) {
  if (Format::CONV1_GRADIENT_IS_SPLIT && threadIdx.x == 0)
    mbarrier_arrive_expect_tx(&smem.gradients_mbarrier, BLOCK_PIXELS * RL_CONV1_CHANNELS * sizeof(float));
  if (Format::CONV1_GRADIENT_IS_SPLIT) cluster_arrive_relaxed();
  unpool2(args, microbatch, coords, smem, sums);
  if (Format::CONV2_GRADIENTS_TOGETHER) cp_async_wait_all(); /* the weights */
  __syncthreads();
  record_timestamp<Format>(args, microbatch.step, RL_TIMED_unpool2);
  if constexpr (Format::CONV2_GRADIENTS_TOGETHER) {
    conv2_gradients(coords, smem, sums);
    record_timestamp<Format>(args, microbatch.step, RL_TIMED_conv2_gradients);
  } else {
    Format::conv2_weight_gradient(smem.pooled1, smem.out_gradient, sums.conv2);
    record_timestamp<Format>(args, microbatch.step, RL_TIMED_conv2_weight_gradient);
    typename Format::row_value *row = conv2_weight_partial_row<Format>(args, coords);
    Format::conv2_input_gradient(
        smem.conv2, smem.out_gradient,
        [&](int third) {
          if (is_last_image) sums.overflow |= !Format::store_weight_gradient(sums.conv2, third, row);
        },
        [&](int pixel, int channel, float a, float b) {
          store2(&smem.pooled1_gradient[pixel * Format::IN_PITCH + channel], a, b);
        });
    record_timestamp<Format>(args, microbatch.step, RL_TIMED_conv2_input_gradient);
  }
  if (Format::CONV1_GRADIENT_IS_SPLIT) mbarrier_wait(&smem.gradients_mbarrier, message_phase<Format>(microbatch, coords.pair));
}

/* For tests: if args.pooled1_gradient is set, stores this block's part of pooled1_gradient in global memory. Only for formats
 * without CONV1_GRADIENT_IS_SPLIT; for the others, conv1_backward_split stores it. */
template <class Format>
static __device__ __forceinline__ void store_pooled1_gradient_for_tests(const rl_persistent_args &args,
                                                                        const microbatch_state &microbatch,
                                                                        const block_coords &coords,
                                                                        const block_memory<Format> &smem) {
  typedef typename Format::value value;
  enum { VALUES = RL_POOLED1_PIXELS * RL_CONV1_CHANNELS };
  if (!args.pooled1_gradient) return;
  value *part = (value *)args.pooled1_gradient +
                (coords.rank * (size_t)microbatch.step_images + step_image(microbatch, coords.pair)) * VALUES;
  for (int i = threadIdx.x; i < VALUES; i += Format::THREADS)
    part[i] = smem.pooled1_gradient[i / RL_CONV1_CHANNELS * Format::IN_PITCH + i % RL_CONV1_CHANNELS];
}

/* Implements conv1_backward if CONV1_GRADIENT_IS_SPLIT: adds the contributions of this block's pixels. Lane c computes channel c.
 */
template <class Format>
static __device__ __forceinline__ void conv1_backward_split(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                            const block_coords &coords, block_memory<Format> &smem,
                                                            gradient_sums<Format> &sums) {
  typedef typename Format::value value;
  value *stored_gradient =
      Format::RECORDS && args.pooled1_gradient
          ? (value *)args.pooled1_gradient +
                ((size_t)step_image(microbatch, coords.pair) * RL_POOLED1_PIXELS + coords.rank * BLOCK_PIXELS) * RL_CONV1_CHANNELS
          : NULL;
#pragma unroll 2
  for (int pixel = coords.warp; pixel < BLOCK_PIXELS; pixel += step_schedule<Format>::CONV1_BACKWARD_WARPS) {
    const int i = pixel * RL_CONV1_CHANNELS + coords.lane, from = pooled1_gradient_index(pixel, coords.lane),
              argmax = smem.argmax1[i];
    const float gradient = rounded_to<value>(smem.pooled1_gradient_parts[0][from] + smem.pooled1_gradient_parts[1][from]);
    if (stored_gradient) stored_gradient[i] = (value)gradient;
    add_pooled_gradient(gradient, argmax, pixel, smem.image_rows, sums.conv1.of_channel);
  }
}

/* Adds this block's contributions to the gradients of conv1's weights and biases. Only the warps that compute conv1 call it
 * (is_conv1_backward_warp). */
template <class Format>
static __device__ __forceinline__ void conv1_backward(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                      const block_coords &coords, block_memory<Format> &smem,
                                                      gradient_sums<Format> &sums) {
  if constexpr (Format::CONV1_GRADIENT_IS_SPLIT) conv1_backward_split(args, microbatch, coords, smem, sums);
  else if constexpr (Format::CONV1_IS_SPLIT)
    conv1_tile_gradient<step_schedule<Format>::CONV1_BACKWARD_WARPS, Format::IN_PITCH>(coords.warp, smem.pooled1_gradient,
                                                                                       smem.pooled1, smem.image, sums.conv1);
  else
    conv1_tile_gradient<step_schedule<Format>::CONV1_BACKWARD_WARPS, Format::IN_PITCH>(coords.warp, smem.pooled1_gradient,
                                                                                       smem.argmax1, smem.image, sums.conv1);
}

/* Stores the warp's sums of conv1's gradients in a row of smem.warp_sums. An element of pooled1_gradient that is not finite makes
 * the gradient of its channel's bias not finite. */
template <class Format> static __device__ __forceinline__ void store_conv1_sums(const block_coords &coords,
                                                                                block_memory<Format> &smem,
                                                                                const gradient_sums<Format> &sums) {
  if constexpr (Format::CONV1_GRADIENT_IS_SPLIT) {
    float *row = smem.warp_sums[coords.warp];
    for (int k = 0; k < 9; k++) row[coords.lane * 9 + k] = sums.conv1.of_channel[k];
    row[RL_CONV1_CHANNELS * 9 + coords.lane] = sums.conv1.of_channel[9];
  } else if (is_conv1_backward_warp<Format>()) {
    float *row = smem.warp_sums[coords.warp];
    const int i = coords.lane / 4;
    conv1_tile_sums_epilogue(
        sums.conv1,
        [&](int m, int half) { return Format::CONV1_IS_SPLIT ? first_channel_of_row(i) + m * 2 + half : m * 16 + half * 8 + i; },
        [&](int index, float sum) { row[index] = sum; });
  }
}

/* Returns the sum of element i of ROWS rows. ROWS is a constant, so that all loads are issued before the first addition. */
template <int ROWS> static __device__ __forceinline__ float sum_of_rows(const float (*rows)[BLOCK_SUMS], int i) {
  float sum = rows[0][i];
#pragma unroll
  for (int row = 1; row < ROWS; row++) sum += rows[row][i];
  return sum;
}

/* Stores the pair's gradients of the head and its loss in its row of partial sums. Only rank 0 of the pair calls it. */
template <class Format> static __device__ __forceinline__ void store_head_row(const rl_persistent_args &args,
                                                                              const block_coords &coords,
                                                                              const gradient_sums<Format> &sums) {
  float *row = &args.partial_head[(size_t)coords.pair * RL_HEAD_PITCH], *weights = &row[RL_FC1_OUTPUTS],
        *biases = &weights[RL_CLASSES * RL_FC1_OUTPUTS];
  if (coords.warp <= RL_CLASSES)
    store4(coords.warp < RL_CLASSES ? &weights[coords.warp * RL_FC1_OUTPUTS + coords.lane * 4] : &row[coords.lane * 4],
           sums.fc2_weight_or_fc1_bias);
  if (coords.warp != RL_CLASSES && coords.lane == 0)
    (coords.warp < RL_CLASSES ? biases[coords.warp] : row[RL_HEAD_LOSS]) = sums.fc2_bias_or_loss;
}

/* Adds the block's gradients of conv1 and of its channels of conv2.bias to the step's sums over the grid, not multiplied by the
 * loss scale. They are first added up over the warps of the block. */
template <class Format>
static __device__ __forceinline__ void add_block_sums(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                      const block_coords &coords, block_memory<Format> &smem,
                                                      gradient_sums<Format> &sums) {
  store_conv1_sums(coords, smem, sums);
  float *warp_row = smem.warp_sums[coords.warp];
  const float biases[4] = {sums.conv2_bias.x, sums.conv2_bias.y, sums.conv2_bias.z, sums.conv2_bias.w};
  for (int c = 0; c < 4; c++) { /* adds up the sums of the four lanes that have the same channels; their indices are 8 apart */
    float sum = biases[c];
    sum += __shfl_xor_sync(0xffffffffu, sum, 8);
    sum += __shfl_xor_sync(0xffffffffu, sum, 16);
    if (coords.lane < 8) warp_row[RL_CONV1_PARAMETERS + coords.lane * 4 + c] = sum;
  }
  __syncthreads();
  static_assert((int)BLOCK_SUMS <= (int)Format::THREADS && RL_CONV1_PARAMETERS % 32 == 0,
                "every sum must have a thread, and a warp must not add up sums of both kinds");
  const int i = threadIdx.x;
  if (i < BLOCK_SUMS) {
    const float sum = i < RL_CONV1_PARAMETERS ? sum_of_rows<conv1_memory<Format>::SUM_ROWS>(smem.warp_sums, i)
                                              : sum_of_rows<step_schedule<Format>::WARPS>(smem.warp_sums, i);
    sums.overflow |=
        !add_to_fixed_point_sum(grid_sum(args, microbatch.step, grid_sum_index(coords, i)), sum * smem.state.inverse_loss_scale);
  }
}

#endif
