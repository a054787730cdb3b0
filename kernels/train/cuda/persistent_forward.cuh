/* The engine "persistent": the forward pass, and the backward pass of the head, which yields fc1_product_gradient. persistent.cuh
 * defines pair, group, slice, microbatch, the names of tensors and Format. All threads of the block call these functions unless a
 * comment says otherwise. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_FORWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_FORWARD_H

#include "train/cuda/head.cuh"
#include "train/cuda/persistent.cuh"

/* Returns the data set index of the pair's image in a microbatch, or 0 if the pair has no image. */
static __device__ __forceinline__ uint32_t dataset_index(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                         uint32_t pair) {
  if (!has_image(microbatch, pair)) return 0;
  const uint32_t position = microbatch.step * microbatch.batch_size + step_image(microbatch, pair);
  return args.order ? args.order[position] : position;
}

/* Begins to copy an image of the data set to image_bytes. */
template <class Format> static __device__ __forceinline__ void load_image_async(const rl_persistent_args &args, uint32_t image,
                                                                                block_memory<Format> &smem) {
  load_rows_async<Format::THREADS, RL_IMAGE_PIXELS>(threadIdx.x, &args.images[(size_t)image * RL_IMAGE_PIXELS], RL_IMAGE_PIXELS,
                                                    1, smem.image_bytes, RL_IMAGE_PIXELS);
}

/* Loads the label of the next microbatch's image and begins to copy its pixels; the next microbatch waits for the copy. Also
 * loads the data set index of the image of the microbatch that follows it (after_next). */
template <class Format>
static __device__ __forceinline__ void prefetch_next_image(const rl_persistent_args &args, const microbatch_state &after_next,
                                                           const block_coords &coords, prefetch_state *prefetch,
                                                           block_memory<Format> &smem) {
  load_image_async(args, prefetch->next_image, smem);
  prefetch->next_label = args.labels[prefetch->next_image];
  prefetch->image_after_next = dataset_index(args, after_next, coords.pair);
}

/* Shifts the prefetched values by one microbatch. */
static __device__ __forceinline__ void advance(prefetch_state *prefetch) {
  prefetch->label = prefetch->next_label;
  prefetch->next_image = prefetch->image_after_next;
}

/* Fills the border of the image, and, if not CONV1_IS_SPLIT, the rows of argmax1 and pooled1_gradient whose windows do not exist
 * (conv1_tile.cuh). No later write changes these. */
template <class Format> static __device__ __forceinline__ void clear_conv1_memory(block_memory<Format> &smem) {
  if constexpr (Format::CONV1_IS_SPLIT) {
    clear_float_image(smem.image);
  } else {
    clear_image(smem.image);
#pragma unroll 1
    for (int i = threadIdx.x; i < TILED_WINDOWS * Format::IN_PITCH; i += Format::THREADS)
      smem.argmax1[i] = 0, smem.pooled1_gradient[i] = 0.0f;
  }
}

/* Computes the normalised image from image_bytes. The copy to image_bytes must have completed. */
template <class Format>
static __device__ __forceinline__ void normalise_image(const block_coords &coords, block_memory<Format> &smem) {
  if constexpr (Format::CONV1_GRADIENT_IS_SPLIT)
    load_image_rows(smem.image_bytes, coords.rank * 2 * BLOCK_ROWS, IMAGE_ROWS, smem.image_rows);
  else if constexpr (Format::CONV1_IS_SPLIT) store_float_image(smem.image_bytes, smem.image);
  else store_image(smem.image_bytes, smem.image);
}

/* If TRANSFORMS_WEIGHTS: returns the weights of this block's channels of conv2 in global memory. */
template <class Format>
static __device__ __forceinline__ const typename Format::value *conv2_weights_of_block(const rl_persistent_args &args,
                                                                                       const block_coords &coords) {
  return published_weights<Format>::conv2(args) + coords.rank * CONV2_WEIGHTS_PER_BLOCK;
}

/* If TRANSFORMS_WEIGHTS: begins to copy the weights of this block's channels of conv2 to shared memory. */
template <class Format> static __device__ __forceinline__ void load_conv2_async(const rl_persistent_args &args,
                                                                                const block_coords &coords,
                                                                                typename Format::value *to) {
  load_rows_async<Format::THREADS, CONV2_K>(threadIdx.x, conv2_weights_of_block<Format>(args, coords), CONV2_K, TILE_CHANNELS, to,
                                            Format::LOADED_WEIGHT_PITCH);
}

/* If TRANSFORMS_WEIGHTS: begins to copy this block's slice of fc1's weights. Here and in the next two functions, the warps from
 * FIRST_WARP on copy; the others return at once. */
template <class Format, int FIRST_WARP> static __device__ __forceinline__ void load_fc1_async(const rl_persistent_args &args,
                                                                                              const block_coords &coords,
                                                                                              block_memory<Format> &smem) {
  const auto *fc1 = (const typename Format::value *)&args.adam.weights[FC1_OFFSET] + coords.slice * SLICE_INPUTS;
  const int thread = (int)threadIdx.x - FIRST_WARP * 32;
  if (thread < 0) return;
  load_rows_async<Format::THREADS - FIRST_WARP * 32, SLICE_INPUTS>(thread, fc1, RL_FC1_INPUTS, RL_FC1_OUTPUTS, smem.fc1,
                                                                   SLICE_INPUTS + Format::SLICE_PADDING);
}

/* Without HAS_BULK_WEIGHTS: in the first microbatch of a step, begins to copy the head's weights. */
template <class Format, int FIRST_WARP> static __device__ __forceinline__ void load_head_async(const rl_persistent_args &args,
                                                                                               const microbatch_state &microbatch,
                                                                                               block_memory<Format> &smem) {
  const int thread = (int)threadIdx.x - FIRST_WARP * 32;
  if (thread < 0 || microbatch.index > 0) return;
  load_rows_async<Format::THREADS - FIRST_WARP * 32, RL_HEAD_PITCH>(thread, args.adam.weights + HEAD_OFFSET, RL_HEAD_PITCH, 1,
                                                                    smem.head, RL_HEAD_PITCH);
}

template <class Format, int FIRST_WARP>
static __device__ __forceinline__ void load_fc1_and_head_async(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                               const block_coords &coords, block_memory<Format> &smem) {
  load_fc1_async<Format, FIRST_WARP>(args, coords, smem);
  load_head_async<Format, FIRST_WARP>(args, microbatch, smem);
}

/* If HAS_BULK_WEIGHTS: begins the bulk copies of conv2's weights, in the first microbatch of a step, and of fc1's, whose memory
 * the block has used since. The weights are in global memory after the grid barrier `weights`, or, in the first step of a launch
 * and after a step that was skipped, `update`. One thread calls it. WAR: the block has been synchronised since it has read the
 * previous contents. */
template <class Format>
static __device__ __forceinline__ void begin_bulk_copies(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                         const block_coords &coords, block_memory<Format> &smem) {
  typedef published_weights<Format> published;
  rl_block_exchange *exchange = args.block_exchange;
  if (microbatch.index == 0)
    grid_barrier_wait_in_one_thread(smem.skip_step ? exchange->update : exchange->weights, microbatch.step + smem.skip_step);
  fence_all_async_proxies();
  if (microbatch.index == 0) {
    mbarrier_arrive_expect_tx(&smem.conv2_mbarrier, sizeof(smem.conv2));
    bulk_copy(smem.conv2, published::conv2(args) + coords.rank * Format::WEIGHT_VALUES, sizeof(smem.conv2), &smem.conv2_mbarrier);
  }
  if (!has_image(microbatch, coords.group_first_pair)) return;
  mbarrier_arrive_expect_tx(&smem.fc1_mbarrier, sizeof(smem.fc1));
  bulk_copy(smem.fc1, published::fc1_slice(args, coords.slice), sizeof(smem.fc1), &smem.fc1_mbarrier);
}

/* If HAS_BULK_WEIGHTS: waits for the grid barrier `update`, and begins to copy the head's weights. The leader of a block that
 * computes the head calls it in the first microbatch of a step; in TF32, other warps multiply fc1's inputs meanwhile. */
template <class Format> static __device__ __forceinline__ void begin_head_copy(const rl_persistent_args &args,
                                                                               const microbatch_state &microbatch,
                                                                               block_memory<Format> &smem) {
  grid_barrier_wait_in_one_thread(args.block_exchange->update, microbatch.step + 1);
  fence_all_async_proxies();
  mbarrier_arrive_expect_tx(&smem.head_mbarrier, sizeof(smem.head));
  bulk_copy(smem.head, &args.adam.weights[HEAD_OFFSET], sizeof(smem.head), &smem.head_mbarrier);
}

/* If HAS_BULK_WEIGHTS: waits until the step's weights of conv2 have been copied. */
template <class Format> static __device__ __forceinline__ void wait_for_conv2(const rl_persistent_args &args,
                                                                              const microbatch_state &microbatch,
                                                                              block_memory<Format> &smem) {
  mbarrier_wait_cta(&smem.conv2_mbarrier, microbatch.step + 1);
  if (Format::CONV2_LOADS_INPUT_FIRST) record_timestamp<Format>(args, microbatch.step, RL_TIMED_conv2_weights);
}

/* In the first microbatch of a step, waits for the weights of conv2, unless CONV2_LOADS_INPUT_FIRST: then conv2_forward waits.
 * Without HAS_BULK_WEIGHTS, also waits for all copies of this thread in every microbatch.
 *
 * If HAS_BULK_WEIGHTS, the poller begins the copies while the other warps compute conv1. Otherwise the caller loads conv2's
 * weights into registers, and conv2_forward begins to load fc1's. */
template <class Format>
static __device__ __forceinline__ void wait_and_load_conv2(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                           const block_coords &coords, block_memory<Format> &smem) {
  const bool is_first_microbatch = microbatch.index == 0;
  if constexpr (step_schedule<Format>::HAS_BULK_WEIGHTS) {
    if (is_poller<Format>()) begin_bulk_copies(args, microbatch, coords, smem);
    if (!Format::CONV2_LOADS_INPUT_FIRST) wait_for_conv2(args, microbatch, smem);
  } else {
    if (is_first_microbatch && is_leader()) grid_barrier_wait_in_one_thread(args.block_exchange->update, microbatch.step + 1);
    if (is_first_microbatch) __syncthreads();
    cp_async_wait_all();
  }
}

/* If CONV1_IS_SPLIT and CONV1_GRADIENT_IS_SPLIT: stores a pixel of pooled1 and its argmaxes for two channels. sums: of the four
 * positions of the window, for each channel. */
template <class Format> static __device__ __forceinline__ void pool_and_send(const block_coords &coords, int pixel, int channel,
                                                                             const float sums[2][4], const float biases[2],
                                                                             block_memory<Format> &smem) {
  float pooled[2];
  uchar2 argmax;
  bias_relu_pool(sums[0][0], sums[0][1], sums[0][2], sums[0][3], biases[0], &pooled[0], &argmax.x);
  bias_relu_pool(sums[1][0], sums[1][1], sums[1][2], sums[1][3], biases[1], &pooled[1], &argmax.y);
  *(uchar2 *)&smem.argmax1[pixel * RL_CONV1_CHANNELS + channel] = argmax;
  store_local_and_peer(coords.rank ^ 1, &smem.pooled1[(coords.rank * BLOCK_PIXELS + pixel) * Format::IN_PITCH + channel],
                       pooled[0], pooled[1], &smem.pooled1_mbarrier);
}

/* Implements conv1_forward if CONV1_IS_SPLIT and CONV1_GRADIENT_IS_SPLIT: computes this block's pixels of pooled1 and stores them
 * in both blocks of the pair. A lane computes two channels of a pixel from a 4×4 patch of the image: for each channel, the four
 * outputs of conv1 in the pooling window. */
template <class Format>
static __device__ __forceinline__ void conv1_forward_of_pixels(const block_coords &coords, block_memory<Format> &smem) {
  const int channel = coords.lane % 16 * 2;
  float weights[2][9], biases[2];
#pragma unroll
  for (int k = 0; k < 18; k++) weights[k / 9][k % 9] = smem.conv1[channel * 9 + k];
  for (int c = 0; c < 2; c++) biases[c] = smem.conv1[RL_CONV1_CHANNELS * 9 + channel + c];
#pragma unroll 1
  for (int pixel = coords.warp * 2 + coords.lane / 16; pixel < BLOCK_PIXELS;
       pixel += step_schedule<Format>::CONV1_FORWARD_WARPS * 2) {
    float patch[4][4], sum[2][4] = {};
    const float *corner = &smem.image_rows[pixel / RL_POOLED1_SIDE * 2 * CONV1_WIDTH + pixel % RL_POOLED1_SIDE * 2];
#pragma unroll
    for (int i = 0; i < 8; i++) *(float2 *)&patch[i / 2][i % 2 * 2] = *(const float2 *)&corner[i / 2 * CONV1_WIDTH + i % 2 * 2];
#pragma unroll
    for (int k = 0; k < 9; k++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        for (int c = 0; c < 2; c++) sum[c][i] = fmaf(weights[c][k], patch[i / 2 + k / 3][i % 2 + k % 3], sum[c][i]);
    pool_and_send(coords, pixel, channel, sum, biases, smem);
  }
}

/* Computes pooled1 and argmax1: this block's half if CONV1_IS_SPLIT, which it stores in both blocks of the pair, else all of it.
 * Only the warps that compute conv1 call it (is_conv1_forward_warp). */
template <class Format>
static __device__ __forceinline__ void conv1_forward(const block_coords &coords, block_memory<Format> &smem) {
  enum { WARPS = step_schedule<Format>::CONV1_FORWARD_WARPS };
  if constexpr (Format::CONV1_GRADIENT_IS_SPLIT) conv1_forward_of_pixels(coords, smem);
  else if constexpr (Format::CONV1_IS_SPLIT)
    conv1_tile_forward<WARPS, Format::IN_PITCH>(coords.warp, coords.rank, smem.conv1, smem.image, [&](int i, uint4 pooled) {
      store_local_and_peer(coords.rank ^ 1, (uint4 *)&smem.pooled1[i], pooled, &smem.pooled1_mbarrier);
    });
  else conv1_tile_forward<WARPS, Format::IN_PITCH>(coords.warp, smem.conv1, smem.image, smem.pooled1, smem.argmax1);
}

/* Returns the argmax of a channel of one of this block's pixels of pooled1. */
template <class Format> static __device__ __forceinline__ uint8_t argmax1_of(const block_coords &coords, int pixel, int channel,
                                                                             const block_memory<Format> &smem) {
  const int i = (coords.rank * BLOCK_PIXELS + pixel) * Format::IN_PITCH + channel;
  if constexpr (Format::CONV1_GRADIENT_IS_SPLIT) return smem.argmax1[pixel * RL_CONV1_CHANNELS + channel];
  else if constexpr (Format::CONV1_IS_SPLIT) return (uint8_t)argmax_bit::argmax(__float_as_uint(smem.pooled1[i]) & ARGMAX_BITS);
  else return (uint8_t)argmax_group_code::argmax(smem.argmax1[i]);
}

/* Computes this block's channels of pooled2 and sends them to the group as tagged words. Sets *overflow if an output of conv2 is
 * not finite as Format::value. Format::conv2_forward passes the four outputs of a 2×2 window, for two adjacent channels (`a`,
 * `b`) or, if TRANSFORMS_WEIGHTS, for four (`products`). If TRANSFORMS_WEIGHTS, the warps without outputs to transform begin to
 * load fc1's weights. */
template <class Format>
static __device__ __forceinline__ void conv2_forward(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                     const block_coords &coords, const typename Format::loaded_weights &loaded,
                                                     block_memory<Format> &smem, bool *overflow) {
  typedef typename Format::value value;
  const uint32_t phase = message_phase<Format>(microbatch, coords.pair), first_channel = coords.rank * TILE_CHANNELS;
  float *sent_pooled2 = args.block_exchange->pooled2[coords.pair];
  const fc1_operands<Format> operands(args, step_image(microbatch, coords.pair));
  value *stored_pooled2 = (value *)args.pooled2 + (size_t)step_image(microbatch, coords.pair) * RL_FC1_INPUTS;
  if constexpr (step_schedule<Format>::TRANSFORMS_WEIGHTS) {
    Format::conv2_forward(
        smem.pooled1, loaded, smem.conv2, smem.conv2_forward_scratch,
        [&] { load_fc1_and_head_async<Format, Format::OUTPUT_WARPS>(args, microbatch, coords, smem); },
        [&](int pixel, int channel, const float products[4][4]) {
          uint8_t argmaxes[4];
          const float2 a = Format::pool_channels(products[0], products[1], &smem.conv2_bias[channel], &argmaxes[0], overflow),
                       b = Format::pool_channels(products[2], products[3], &smem.conv2_bias[channel + 2], &argmaxes[2], overflow);
          const float4 pooled = make_float4(a.x, a.y, b.x, b.y);
          const int i = pixel * RL_CONV2_CHANNELS + first_channel + channel;
          send_tagged(&sent_pooled2[i], phase, pooled);
          *(uchar4 *)&smem.argmax2[pixel * TILE_CHANNELS + channel] =
              make_uchar4(argmaxes[0], argmaxes[1], argmaxes[2], argmaxes[3]);
          if (args.fc1_operands) store4(operands.input(coords.pair, i), pooled);
          if (Format::RECORDS && args.pooled2) store4(&stored_pooled2[i], pooled);
        });
  } else {
    Format::conv2_forward(
        smem.pooled1, smem.conv2, smem.conv2_warp_scratch,
        [&] {
          if (Format::CONV2_LOADS_INPUT_FIRST) wait_for_conv2(args, microbatch, smem);
        },
        [&](int pixel, int channel, const float a[4], const float b[4]) {
          const float2 pooled =
              Format::pool_channels(a, b, &smem.conv2_bias[channel], &smem.argmax2[pixel * TILE_CHANNELS + channel], overflow);
          const int i = pixel * RL_CONV2_CHANNELS + first_channel + channel;
          send_tagged(&sent_pooled2[i], phase, pooled.x, pooled.y);
          if (args.fc1_operands) store2(operands.input(coords.pair, i), pooled.x, pooled.y);
          if (Format::RECORDS && args.pooled2) store2(&stored_pooled2[i], pooled.x, pooled.y);
        });
  }
}

/* For tests: if args.pooled1 is set, copies this block's pixels of pooled1 and argmax1, and its channels of argmax2, to global
 * memory. */
template <class Format> static __device__ __forceinline__ void store_activations_for_tests(const rl_persistent_args &args,
                                                                                           const microbatch_state &microbatch,
                                                                                           const block_coords &coords,
                                                                                           const block_memory<Format> &smem) {
  typedef typename Format::value value;
  if (!args.pooled1) return;
  const size_t n = step_image(microbatch, coords.pair), first = n * RL_POOLED1_PIXELS + coords.rank * BLOCK_PIXELS;
  for (int i = threadIdx.x; i < BLOCK_PIXELS * RL_CONV1_CHANNELS; i += Format::THREADS) {
    const int pixel = i / RL_CONV1_CHANNELS, channel = i % RL_CONV1_CHANNELS;
    ((value *)args.pooled1)[first * RL_CONV1_CHANNELS + i] =
        without_argmax(smem.pooled1[(coords.rank * BLOCK_PIXELS + pixel) * Format::IN_PITCH + channel]);
    args.argmax1[first * RL_CONV1_CHANNELS + i] = argmax1_of(coords, pixel, channel, smem);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < RL_POOLED2_PIXELS * TILE_CHANNELS; i += Format::THREADS)
    args.argmax2[n * RL_FC1_INPUTS + i / TILE_CHANNELS * RL_CONV2_CHANNELS + coords.rank * TILE_CHANNELS + i % TILE_CHANNELS] =
        smem.argmax2[i];
}

/* Four tagged words that a thread receives, of one image of the group. */
typedef struct pending_words {
  const float *from; /* NULL: the thread receives none */
  uint32_t phase;
  uint4 bits; /* as first loaded */
} pending_words;

/* For each image of the group, begins to receive the tagged words column … column + COLUMNS - 1 of from[pair]: loads them for the
 * first time, so that this load is in flight while the caller does other work. */
template <class Format, int COLUMNS, int STRIDE>
static __device__ __forceinline__ pending_words begin_to_receive_rows(const float (*from)[STRIDE], int column,
                                                                      const microbatch_state &microbatch,
                                                                      const block_coords &coords) {
  enum { ROW_QUADS = COLUMNS / 4 };
  static_assert(GROUP_PAIRS * ROW_QUADS <= Format::THREADS, "every four words must have a thread");
  const uint32_t pair = coords.group_first_pair + threadIdx.x / ROW_QUADS;
  pending_words words = {};
  if (threadIdx.x >= GROUP_PAIRS * ROW_QUADS || !has_image(microbatch, pair)) return words;
  words.from = &from[pair][column + threadIdx.x % ROW_QUADS * 4];
  words.phase = message_phase<Format>(microbatch, pair);
  words.bits = load_relaxed(words.from);
  return words;
}

/* Receives the words, and stores those of each image in row `image` of to[…][PITCH]. */
template <class Format, int COLUMNS, int PITCH>
static __device__ __forceinline__ void receive_rows(const pending_words &words, typename Format::value *to) {
  enum { ROW_QUADS = COLUMNS / 4 };
  if (words.from)
    store4(&to[threadIdx.x / ROW_QUADS * PITCH + threadIdx.x % ROW_QUADS * 4],
           receive_tagged(words.from, words.bits, words.phase));
}

/* Receives this block's slice of pooled2 of the group's images, multiplies it by fc1's weights, and sends the resulting part of
 * fc1's product to each image's pair. */
template <class Format>
static __device__ __forceinline__ void fc1_forward(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                   const block_coords &coords, block_memory<Format> &smem) {
  rl_block_exchange *exchange = args.block_exchange;
  const auto wait_for_weights = [&] {
    cp_async_wait_all();
    if (step_schedule<Format>::HAS_BULK_WEIGHTS)
      mbarrier_wait_cta(&smem.fc1_mbarrier, message_phase<Format>(microbatch, coords.group_first_pair));
    __syncthreads();
  };
  if (Format::FC1_LOADS_WEIGHTS_FIRST) wait_for_weights();
  const pending_words words =
      begin_to_receive_rows<Format, SLICE_INPUTS>(exchange->pooled2, coords.slice * SLICE_INPUTS, microbatch, coords);
  Format::template fc1_forward<SLICE_INPUTS>(
      smem.pooled2, smem.fc1,
      [&] {
        receive_rows<Format, SLICE_INPUTS, SLICE_INPUTS + Format::SLICE_PADDING>(words, smem.pooled2);
        if (Format::FC1_LOADS_WEIGHTS_FIRST) __syncthreads();
        else wait_for_weights();
        record_timestamp<Format>(args, microbatch.step, RL_TIMED_fc1_inputs);
      },
      [&](int image, int output, float a, float b) {
        const uint32_t pair = coords.group_first_pair + image;
        if (has_image(microbatch, pair))
          send_tagged(&exchange->fc1_parts[pair][coords.slice][output], message_phase<Format>(microbatch, pair), a, b);
      });
}

/* Receives and adds up the parts of fc1's product for the pair's image, adds the bias and applies ReLU. Lane i of every warp
 * returns the hidden values 4 i … 4 i + 3. */
template <class Format>
static __device__ __forceinline__ float4 hidden_values(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                       const block_coords &coords, block_memory<Format> &smem) {
  const float(*parts)[RL_FC1_OUTPUTS] = args.block_exchange->fc1_parts[coords.pair];
  const int second_part = coords.warp + step_schedule<Format>::WARPS; /* if this part exists, the warp receives two parts */
  static_assert(2 * (int)step_schedule<Format>::WARPS >= (int)FC1_SLICES && (int)step_schedule<Format>::WARPS <= (int)FC1_SLICES,
                "every part must have a warp");
  const float4_pair received = receive_tagged(&parts[coords.warp][coords.lane * 4],
                                              &parts[second_part < FC1_SLICES ? second_part : coords.warp][coords.lane * 4],
                                              message_phase<Format>(microbatch, coords.pair));
  store4(&smem.hidden[coords.warp][coords.lane * 4], second_part < FC1_SLICES ? add4(received.a, received.b) : received.a);
  if (step_schedule<Format>::HAS_BULK_WEIGHTS) mbarrier_wait_cta(&smem.head_mbarrier, microbatch.step + 1);
  __syncthreads();
  if (threadIdx.x < RL_FC1_OUTPUTS) {
    float total = smem.head[threadIdx.x]; /* fc1.bias */
    for (int warp = 0; warp < step_schedule<Format>::WARPS; warp++) total += smem.hidden[warp][threadIdx.x];
    smem.hidden[0][threadIdx.x] = fmaxf(total, 0.0f);
  }
  __syncthreads();
  return load4(&smem.hidden[0][coords.lane * 4]);
}

/* Results of one image, as a lane holds them: lane c < 10 has class c, and every lane has the loss. */
typedef struct class_result {
  float logit, probability; /* of the lane's class; -∞ and 0 if the lane has no class */
  float loss;
  bool has_class;
} class_result;

/* Maps the bits of floats to integers that have the order of the floats, and such integers to the bits. */
static __device__ __forceinline__ int32_t ordered_integer(int32_t bits) { return bits ^ (bits >> 31 & 0x7fffffff); }

/* Returns the maximum of the lanes' values by redux.sync on ordered integers. warp_max(float) takes five shuffles. A NaN may be
 * the maximum. */
static __device__ __forceinline__ float warp_max_by_redux(float x) {
  return __int_as_float(ordered_integer(warp_max(ordered_integer(__float_as_int(x)))));
}

/* Computes fc2, softmax and cross-entropy. Each of the first ten warps computes one logit; then every warp computes the
 * probabilities of all classes and the loss. hidden: the lane's result of hidden_values. */
template <class Format> static __device__ __forceinline__ class_result classify(const block_coords &coords, float4 hidden,
                                                                                uint32_t label, block_memory<Format> &smem) {
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
  const float shifted_logit = result.logit - warp_max_by_redux(result.logit), /* at most 0, so that the exponential is finite */
      exponential = result.has_class ? __expf(shifted_logit) : 0.0f, sum = warp_sum(exponential);
  result.probability = __fdividef(exponential, sum); /* error of up to 2 ulp; an exact division would take 0.2 µs */
  result.loss = __logf(sum) - __shfl_sync(0xffffffffu, shifted_logit, label);
  return result;
}

/* Computes the head and its gradients for the pair's image. Warp c < 10 adds up the gradients of class c: a row of fc2.weight and
 * an element of fc2.bias. Warp 10 computes and sends fc1_product_gradient, and adds up the gradient of fc1.bias. The other warps
 * add up the loss. */
template <class Format>
static __device__ __forceinline__ void train_head(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                  const block_coords &coords, uint32_t label, block_memory<Format> &smem,
                                                  gradient_sums<Format> &sums) {
  typedef typename Format::value value;
  const float *weights = &smem.head[RL_FC1_OUTPUTS];
  const float image_scale = smem.state.loss_scale.scale / microbatch.step_images;
  const float4 hidden = hidden_values(args, microbatch, coords, smem);
  const class_result result = classify(coords, hidden, label, smem);
  const float logit_gradient = (result.probability - (coords.lane == (int)label ? 1.0f : 0.0f)) * image_scale;
  if (coords.warp < RL_CLASSES) {
    const float logit_gradient_of_warp = __shfl_sync(0xffffffffu, logit_gradient, coords.warp);
    sums.fc2_weight_or_fc1_bias = add4(sums.fc2_weight_or_fc1_bias, scale4(hidden, logit_gradient_of_warp));
    sums.fc2_bias_or_loss += logit_gradient_of_warp;
  } else if (coords.warp == RL_CLASSES) {
    /* First the gradient of the hidden values, then, after relu4_gradient, the gradient of fc1's product. */
    float4 gradient = make_float4(0, 0, 0, 0);
    for (int c = 0; c < RL_CLASSES; c++)
      gradient = add4(gradient,
                      scale4(load4(&weights[c * RL_FC1_OUTPUTS + coords.lane * 4]), __shfl_sync(0xffffffffu, logit_gradient, c)));
    gradient = relu4_gradient(hidden, gradient);
    const float4 rounded = make_float4(rounded_to<value>(gradient.x), rounded_to<value>(gradient.y),
                                       rounded_to<value>(gradient.z), rounded_to<value>(gradient.w));
    send_tagged(&args.block_exchange->fc1_product_gradient[coords.pair][coords.lane * 4],
                message_phase<Format>(microbatch, coords.pair), rounded);
    store4(fc1_operands<Format>(args, step_image(microbatch, coords.pair)).gradient(coords.pair, coords.lane * 4), gradient);
    if (Format::RECORDS && args.fc1_product_gradient)
      store4((value *)args.fc1_product_gradient + (size_t)step_image(microbatch, coords.pair) * RL_FC1_OUTPUTS + coords.lane * 4,
             gradient);
    sums.fc2_weight_or_fc1_bias = add4(sums.fc2_weight_or_fc1_bias, gradient);
    sums.overflow |= !finite4(rounded);
  } else {
    sums.fc2_bias_or_loss += result.loss;
    sums.overflow |= !isfinite(result.loss);
  }
}

/* Results of an evaluation in global memory, with one element for each image. */
typedef struct evaluation_results {
  float *losses;
  uint8_t *correct;
} evaluation_results;

/* Computes the head in an evaluation: stores the image's loss and whether its class was recognised. */
template <class Format>
static __device__ __forceinline__ void evaluate_head(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                     const block_coords &coords, uint32_t label, block_memory<Format> &smem,
                                                     const evaluation_results &results) {
  const uint32_t n = step_image(microbatch, coords.pair);
  const class_result result = classify(coords, hidden_values(args, microbatch, coords, smem), label, smem);
  const float max_logit = warp_max(result.logit);
  const uint32_t predicted_class =
      __ffs(__ballot_sync(0xffffffffu, result.logit == max_logit)) - 1; /* the first of equal maxima */
  if (threadIdx.x != 0) return;
  results.losses[n] = result.loss;
  results.correct[n] = predicted_class == label;
}

#endif
