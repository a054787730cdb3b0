/* The engine "persistent": the forward pass, and the head with its gradients back to d_fc1. persistent.cuh defines pair, group,
 * slice, microbatch, the names of tensors and F. All threads of the block call these functions unless their comments say
 * otherwise. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_FORWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_FORWARD_H

#include "train/cuda/head.cuh"
#include "train/cuda/persistent.cuh"

/* Returns the data set index of the pair's image in a microbatch, or 0 if the pair has no image. */
static __device__ __forceinline__ uint32_t dataset_index(const rl_persistent_args &args, const microbatch &mb, uint32_t pair) {
  if (!has_image(mb, pair)) return 0;
  const uint32_t position = mb.step * mb.batch_size + step_image(mb, pair);
  return args.order ? args.order[position] : position;
}

/* Begins to copy an image of the data set to image_bytes. */
template <class F>
static __device__ __forceinline__ void load_image_async(const rl_persistent_args &args, uint32_t image, block_memory<F> &smem) {
  load_rows_async<F::THREADS, RL_IMAGE_PIXELS>(threadIdx.x, &args.images[(size_t)image * RL_IMAGE_PIXELS], RL_IMAGE_PIXELS, 1,
                                               smem.image_bytes, RL_IMAGE_PIXELS);
}

/* Loads the label of the next microbatch and begins to copy its image; the next microbatch waits for the copy. Also loads the
 * data set index of the image of the microbatch after it (after_next). */
template <class F> static __device__ __forceinline__ void prefetch_next_image(const rl_persistent_args &args,
                                                                              const microbatch &after_next,
                                                                              const block_coords &coords,
                                                                              prefetch_state *prefetch, block_memory<F> &smem) {
  load_image_async(args, prefetch->next_image, smem);
  prefetch->next_label = args.labels[prefetch->next_image];
  prefetch->image_after_next = dataset_index(args, after_next, coords.pair);
}

/* Makes the next microbatch the current one. */
static __device__ __forceinline__ void advance(prefetch_state *prefetch) {
  prefetch->label = prefetch->next_label;
  prefetch->next_image = prefetch->image_after_next;
}

/* Fills the border of the image, and the rows of windows that do not exist, which later writes leave unchanged. */
template <class F> static __device__ __forceinline__ void clear_conv1_memory(block_memory<F> &smem) {
  clear_image(smem.image);
#pragma unroll 1
  for (int i = threadIdx.x; i < TILED_WINDOWS * F::IN_PITCH; i += F::THREADS) smem.argmax1[i] = 0, smem.d_pooled1[i] = 0.0f;
}

/* Computes the normalised image from image_bytes. The copy to image_bytes must have completed. */
template <class F> static __device__ __forceinline__ void normalise_image(const block_coords &coords, block_memory<F> &smem) {
  if constexpr (F::CONV1_IS_SPLIT) load_image_rows(smem.image_bytes, coords.rank * 2 * BLOCK_ROWS, IMAGE_ROWS, smem.image_rows);
  else store_image(smem.image_bytes, smem.image);
}

/* Receives the tagged words of phase `phase`: conv1's weights and biases, and the biases of this block's channels of conv2. A
 * thread receives four words. */
template <class F> static __device__ __forceinline__ void receive_tagged_weights(const rl_persistent_args &args, uint32_t phase,
                                                                                 const block_coords &coords,
                                                                                 block_memory<F> &smem) {
  const float *from = args.block_exchange->tagged_weights[coords.pair / GROUP_PAIRS];
  const int i = threadIdx.x * 4, channel = i - RL_CONV1_PARAMETERS;
  if (channel < 0) store4(&smem.conv1[i], receive_tagged(&from[i], phase));
  else if (channel < TILE_CHANNELS)
    store4(&smem.conv2_bias[channel], receive_tagged(&from[i + coords.rank * TILE_CHANNELS], phase));
}

/* Begins to copy the weights of this block's channels of conv2 to shared memory. Only the warps from FIRST_WARP on call it. */
template <class F, int FIRST_WARP> static __device__ __forceinline__ void load_conv2_async(const rl_persistent_args &args,
                                                                                           const block_coords &coords,
                                                                                           block_memory<F> &smem) {
  const typename F::value *conv2 = compute_weights<F>(args) + CONV2_OFFSET + coords.rank * CONV2_WEIGHTS_PER_BLOCK;
  typename F::value *to = step_schedule<F>::TRANSFORMS_WEIGHTS ? smem.conv2_untransformed : smem.conv2;
  load_rows_async<F::THREADS - FIRST_WARP * 32, CONV2_K>(threadIdx.x - FIRST_WARP * 32, conv2, CONV2_K, TILE_CHANNELS, to,
                                                         F::LOADED_WEIGHT_PITCH);
}

/* Begins to copy this block's slice of fc1's weights and, in the first microbatch of a step, the head's weights. Warps below
 * FIRST_WARP return at once. */
template <class F, int FIRST_WARP>
static __device__ __forceinline__ void load_fc1_and_head_async(const rl_persistent_args &args, const microbatch &mb,
                                                               const block_coords &coords, block_memory<F> &smem) {
  enum { LOADING_THREADS = F::THREADS - FIRST_WARP * 32 };
  const typename F::value *fc1 = compute_weights<F>(args) + FC1_OFFSET + coords.slice * SLICE_INPUTS;
  const int thread = (int)threadIdx.x - FIRST_WARP * 32;
  if (thread < 0) return;
  load_rows_async<LOADING_THREADS, SLICE_INPUTS>(thread, fc1, RL_FC1_INPUTS, RL_FC1_OUTPUTS, smem.fc1,
                                                 SLICE_INPUTS + F::SLICE_PADDING);
  if (mb.index == 0)
    load_rows_async<LOADING_THREADS, RL_HEAD_PITCH>(thread, args.adam.weights + HEAD_OFFSET, RL_HEAD_PITCH, 1, smem.head,
                                                    RL_HEAD_PITCH);
}

/* Loads conv2's weights in the first microbatch of a step, after the barrier `update`, and waits for all copies of this thread
 * that conv2 needs. With PREFETCH_EARLY, the warps that do not compute conv1 load the weights while the other warps still compute
 * conv1. Otherwise all warps load them after conv1. They then also begin to load fc1's weights, unless TRANSFORMS_WEIGHTS: in
 * that case fc1's weights share memory with the untransformed weights of conv2. */
template <class F> static __device__ __forceinline__ void wait_and_load_conv2(const rl_persistent_args &args,
                                                                              const microbatch &mb, const block_coords &coords,
                                                                              block_memory<F> &smem) {
  const uint32_t *update = args.block_exchange->update, phase = mb.step + 1;
  const bool is_first_microbatch = mb.index == 0;
  if constexpr (step_schedule<F>::PREFETCH_EARLY) {
    if (is_first_microbatch && !is_compute_warp<F>()) {
      if (coords.lane == 0) grid_barrier_spin(update, phase);
      __syncwarp();
      load_conv2_async<F, step_schedule<F>::COMPUTE_WARPS>(args, coords, smem);
    }
    cp_async_wait_all();
  } else {
    if (is_first_microbatch) grid_barrier_wait(update, phase);
    if (is_first_microbatch) load_conv2_async<F, 0>(args, coords, smem);
    cp_async_commit_group();
    if (!step_schedule<F>::TRANSFORMS_WEIGHTS && has_image(mb, coords.group_first_pair))
      load_fc1_and_head_async<F, 0>(args, mb, coords, smem);
    cp_async_commit_group();
    cp_async_wait_group<1>();
  }
}

/* Computes this block's pixels of pooled1 and stores them in both blocks of the pair. A lane computes two channels of a pixel
 * from a 4×4 patch of the image: per channel, the four outputs of conv1 in the pooling window. Only the compute warps call it. */
template <class F> static __device__ __forceinline__ void conv1_forward_split(const block_coords &coords, block_memory<F> &smem) {
  const int channel = coords.lane % 16 * 2;
  const float *biases = &smem.conv1[RL_CONV1_CHANNELS * 9];
  float w[2][9];
#pragma unroll
  for (int k = 0; k < 18; k++) w[k / 9][k % 9] = smem.conv1[channel * 9 + k];
#pragma unroll 1
  for (int pixel = coords.warp * 2 + coords.lane / 16; pixel < BLOCK_PIXELS; pixel += step_schedule<F>::COMPUTE_WARPS * 2) {
    float patch[4][4], sum[2][4] = {}, pooled[2];
    uchar2 argmax;
    const float *corner = &smem.image_rows[pixel / RL_POOLED1_SIDE * 2 * CONV1_WIDTH + pixel % RL_POOLED1_SIDE * 2];
#pragma unroll
    for (int i = 0; i < 8; i++) *(float2 *)&patch[i / 2][i % 2 * 2] = *(const float2 *)&corner[i / 2 * CONV1_WIDTH + i % 2 * 2];
#pragma unroll
    for (int k = 0; k < 9; k++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        for (int c = 0; c < 2; c++) sum[c][i] = fmaf(w[c][k], patch[i / 2 + k / 3][i % 2 + k % 3], sum[c][i]);
    bias_relu_pool(sum[0][0], sum[0][1], sum[0][2], sum[0][3], biases[channel], &pooled[0], &argmax.x);
    bias_relu_pool(sum[1][0], sum[1][1], sum[1][2], sum[1][3], biases[channel + 1], &pooled[1], &argmax.y);
    *(uchar2 *)&smem.argmax1[pixel * RL_CONV1_CHANNELS + channel] = argmax;
    store_local_and_peer(coords.rank ^ 1, &smem.pooled1[(coords.rank * BLOCK_PIXELS + pixel) * F::IN_PITCH + channel], pooled[0],
                         pooled[1], &smem.pooled1_mbarrier);
  }
}

/* Computes the pixels of pooled1 that this block computes. Only the compute warps call it. */
template <class F> static __device__ __forceinline__ void conv1_forward(const block_coords &coords, block_memory<F> &smem) {
  if constexpr (F::CONV1_IS_SPLIT) conv1_forward_split(coords, smem);
  else
    conv1_tile_forward<step_schedule<F>::COMPUTE_WARPS, F::IN_PITCH>(coords.warp, smem.conv1, smem.image, smem.pooled1,
                                                                     smem.argmax1);
}

/* Returns the argmax of a channel of one of this block's pixels of pooled1. */
template <class F> static __device__ __forceinline__ uint8_t argmax1_of(const block_coords &coords, int pixel, int channel,
                                                                        const block_memory<F> &smem) {
  if constexpr (F::CONV1_IS_SPLIT) return smem.argmax1[pixel * RL_CONV1_CHANNELS + channel];
  else return (uint8_t)smem.argmax1[(coords.rank * BLOCK_PIXELS + pixel) * F::IN_PITCH + channel];
}

/* Computes this block's channels of pooled2 and sends them to the group as tagged words. Sets *overflow if an output of conv2 is
 * not finite in F::value. The epilogue gets the four outputs of a 2×2 window, for a channel (a) and for the next channel (b). */
template <class F> static __device__ __forceinline__ void conv2_forward(const rl_persistent_args &args, const microbatch &mb,
                                                                        const block_coords &coords, block_memory<F> &smem,
                                                                        bool *overflow) {
  typedef typename F::value value;
  const uint32_t phase = message_phase(mb, coords.pair), first_channel = coords.rank * TILE_CHANNELS;
  float *sent_pooled2 = args.block_exchange->pooled2[coords.pair];
  value *stored_pooled2 = (value *)args.pooled2 + (size_t)step_image(mb, coords.pair) * RL_FC1_INPUTS;
  F::conv2_forward(
      smem.pooled1, smem.conv2, step_schedule<F>::TRANSFORMS_WEIGHTS ? smem.conv2_forward_scratch : smem.conv2_warp_scratch,
      [&](int pixel, int channel, const float a[4], const float b[4]) {
        const float2 pooled =
            F::pool_channels(a, b, &smem.conv2_bias[channel], &smem.argmax2[pixel * TILE_CHANNELS + channel], overflow);
        const int i = pixel * RL_CONV2_CHANNELS + first_channel + channel;
        send_tagged(&sent_pooled2[i], phase, pooled.x, pooled.y);
        if (args.pooled2) store2(&stored_pooled2[i], pooled.x, pooled.y);
      });
}

/* For tests: if args.pooled1 is set, copies this block's parts of pooled1, argmax1 and argmax2 to global memory. */
template <class F> static __device__ __forceinline__ void dump_activations(const rl_persistent_args &args, const microbatch &mb,
                                                                           const block_coords &coords,
                                                                           const block_memory<F> &smem) {
  typedef typename F::value value;
  if (!args.pooled1) return;
  const size_t n = step_image(mb, coords.pair), first = n * RL_POOLED1_PIXELS + coords.rank * BLOCK_PIXELS;
  for (int i = threadIdx.x; i < BLOCK_PIXELS * RL_CONV1_CHANNELS; i += F::THREADS) {
    const int pixel = i / RL_CONV1_CHANNELS, channel = i % RL_CONV1_CHANNELS;
    ((value *)args.pooled1)[first * RL_CONV1_CHANNELS + i] =
        smem.pooled1[(coords.rank * BLOCK_PIXELS + pixel) * F::IN_PITCH + channel];
    args.argmax1[first * RL_CONV1_CHANNELS + i] = argmax1_of(coords, pixel, channel, smem);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < RL_POOLED2_PIXELS * TILE_CHANNELS; i += F::THREADS)
    args.argmax2[n * RL_FC1_INPUTS + i / TILE_CHANNELS * RL_CONV2_CHANNELS + coords.rank * TILE_CHANNELS + i % TILE_CHANNELS] =
        smem.argmax2[i];
}

/* Receives the tagged words from[pair][column … column + COLUMNS - 1] of each image of the group, and stores them in
 * to[image][PITCH]. */
template <class F, int COLUMNS, int PITCH, int STRIDE>
static __device__ __forceinline__ void receive_rows(const float (*from)[STRIDE], int column, const microbatch &mb,
                                                    const block_coords &coords, typename F::value *to) {
  const int row_quads = COLUMNS / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < GROUP_PAIRS * row_quads; i += F::THREADS) {
    const uint32_t pair = coords.group_first_pair + i / row_quads;
    if (has_image(mb, pair))
      store4(&to[i / row_quads * PITCH + i % row_quads * 4],
             receive_tagged(&from[pair][column + i % row_quads * 4], message_phase(mb, pair)));
  }
}

/* Receives this block's slice of pooled2 of the group's images, multiplies it with fc1's weights, and sends the resulting part of
 * fc1's product to the pair of each image. */
template <class F> static __device__ __forceinline__ void fc1_forward(const rl_persistent_args &args, const microbatch &mb,
                                                                      const block_coords &coords, block_memory<F> &smem) {
  rl_block_exchange *exchange = args.block_exchange;
  receive_rows<F, SLICE_INPUTS, SLICE_INPUTS + F::SLICE_PADDING>(exchange->pooled2, coords.slice * SLICE_INPUTS, mb, coords,
                                                                 smem.pooled2);
  cp_async_wait_all();
  __syncthreads();
  record_timestamp(args, mb.step, RL_TIMED_fc1_inputs);
  F::template fc1_forward<SLICE_INPUTS>(smem.pooled2, smem.fc1, [&](int image, int output, float a, float b) {
    const uint32_t pair = coords.group_first_pair + image;
    if (has_image(mb, pair)) send_tagged(&exchange->fc1_parts[pair][coords.slice][output], message_phase(mb, pair), a, b);
  });
}

/* Receives and adds up the parts of fc1's product for the pair's image, adds the bias and applies ReLU. Lane i of every warp
 * returns the hidden values 4 i … 4 i + 3. */
template <class F> static __device__ __forceinline__ float4 hidden_values(const rl_persistent_args &args, const microbatch &mb,
                                                                          const block_coords &coords, block_memory<F> &smem) {
  const float(*parts)[RL_FC1_OUTPUTS] = args.block_exchange->fc1_parts[coords.pair];
  const int second_part = coords.warp + step_schedule<F>::WARPS; /* a warp receives one part or two */
  static_assert(2 * (int)step_schedule<F>::WARPS >= (int)FC1_SLICES && (int)step_schedule<F>::WARPS <= (int)FC1_SLICES,
                "every part has a warp");
  const float4_pair received = receive_tagged(&parts[coords.warp][coords.lane * 4],
                                              &parts[second_part < FC1_SLICES ? second_part : coords.warp][coords.lane * 4],
                                              message_phase(mb, coords.pair));
  store4(&smem.hidden[coords.warp][coords.lane * 4], second_part < FC1_SLICES ? add4(received.a, received.b) : received.a);
  __syncthreads();
  if (threadIdx.x < RL_FC1_OUTPUTS) {
    float total = smem.head[threadIdx.x]; /* fc1.bias */
    for (int warp = 0; warp < step_schedule<F>::WARPS; warp++) total += smem.hidden[warp][threadIdx.x];
    smem.hidden[0][threadIdx.x] = fmaxf(total, 0.0f);
  }
  __syncthreads();
  return load4(&smem.hidden[0][coords.lane * 4]);
}

/* A lane's results of one image: lane c < 10 has class c; every lane has the loss. */
typedef struct class_result {
  float logit, probability; /* of the lane's class; -∞ and 0 if the lane has no class */
  float loss;
  bool has_class;
} class_result;

/* Computes fc2, softmax and cross-entropy. Each of the first ten warps computes one logit; then every warp computes the results
 * of all classes. hidden: the lane's four values from hidden_values. */
template <class F> static __device__ __forceinline__ class_result classify(const block_coords &coords, float4 hidden,
                                                                           uint32_t label, block_memory<F> &smem) {
  const float *weights = &smem.head[RL_FC1_OUTPUTS], *biases = &weights[RL_CLASSES * RL_FC1_OUTPUTS];
  if (coords.warp < RL_CLASSES) {
    const float logit =
        warp_sum(dot4(hidden, load4(&weights[coords.warp * RL_FC1_OUTPUTS + coords.lane * 4]))) + biases[coords.warp];
    if (coords.lane == 0) smem.logits[coords.warp] = logit;
  }
  __syncthreads();
  class_result result;
  result.has_class = coords.lane < RL_CLASSES;
  result.logit = result.has_class ? smem.logits[coords.lane] : -INFINITY;
  const float shifted_logit = result.logit - warp_max(result.logit), /* at most 0, so that the exponential is finite */
      exponential = result.has_class ? __expf(shifted_logit) : 0.0f, sum = warp_sum(exponential);
  result.probability = exponential / sum;
  result.loss = __logf(sum) - __shfl_sync(0xffffffffu, shifted_logit, label);
  return result;
}

/* Computes the head and its gradients for the pair's image. Warp c < 10 adds up the gradients of class c: a row of fc2.weight and
 * an element of fc2.bias. Warp 10 computes and sends d_fc1 and adds up the gradient of fc1.bias. The other warps add up the
 * loss. */
template <class F> static __device__ __forceinline__ void train_head(const rl_persistent_args &args, const microbatch &mb,
                                                                     const block_coords &coords, uint32_t label,
                                                                     block_memory<F> &smem, gradient_sums<F> &sums) {
  typedef typename F::value value;
  const float *weights = &smem.head[RL_FC1_OUTPUTS];
  const float4 hidden = hidden_values(args, mb, coords, smem);
  const class_result result = classify(coords, hidden, label, smem);
  const float d_logit =
      (result.probability - (coords.lane == (int)label ? 1.0f : 0.0f)) * (smem.state.loss_scale.scale / mb.step_images);
  if (coords.warp < RL_CLASSES) {
    const float d_logit_of_warp = __shfl_sync(0xffffffffu, d_logit, coords.warp);
    sums.fc2_weight_or_fc1_bias = add4(sums.fc2_weight_or_fc1_bias, scale4(hidden, d_logit_of_warp));
    sums.fc2_bias_or_loss += d_logit_of_warp;
  } else if (coords.warp == RL_CLASSES) {
    float4 d = make_float4(0, 0, 0, 0); /* first the gradient of the hidden values, then that of fc1's product */
    for (int c = 0; c < RL_CLASSES; c++)
      d = add4(d, scale4(load4(&weights[c * RL_FC1_OUTPUTS + coords.lane * 4]), __shfl_sync(0xffffffffu, d_logit, c)));
    d = relu4_gradient(hidden, d);
    const float4 rounded =
        make_float4(rounded_to<value>(d.x), rounded_to<value>(d.y), rounded_to<value>(d.z), rounded_to<value>(d.w));
    send_tagged(&args.block_exchange->d_fc1[coords.pair][coords.lane * 4], message_phase(mb, coords.pair), rounded);
    store4((value *)args.d_fc1 + (size_t)step_image(mb, coords.pair) * RL_FC1_OUTPUTS + coords.lane * 4, d);
    sums.fc2_weight_or_fc1_bias = add4(sums.fc2_weight_or_fc1_bias, d);
    sums.overflow |= !finite4(rounded);
  } else {
    sums.fc2_bias_or_loss += result.loss;
    sums.overflow |= !isfinite(result.loss);
  }
}

/* Results of an evaluation in global memory, one element per image. */
typedef struct evaluation_results {
  float *losses;
  uint8_t *correct;
} evaluation_results;

/* Computes the head for evaluation: stores the image's loss and whether its class was recognised. */
template <class F> static __device__ __forceinline__ void evaluate_head(const rl_persistent_args &args, const microbatch &mb,
                                                                        const block_coords &coords, uint32_t label,
                                                                        block_memory<F> &smem,
                                                                        const evaluation_results &results) {
  const uint32_t n = step_image(mb, coords.pair);
  const class_result result = classify(coords, hidden_values(args, mb, coords, smem), label, smem);
  const float max_logit = warp_max(result.logit);
  const uint32_t predicted_class =
      __ffs(__ballot_sync(0xffffffffu, result.logit == max_logit)) - 1; /* the first of equal maxima */
  if (threadIdx.x != 0) return;
  results.losses[n] = result.loss;
  results.correct[n] = predicted_class == label;
}

#endif
