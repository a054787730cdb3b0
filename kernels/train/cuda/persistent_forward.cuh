/* The engine "persistent": forward pass and head, up to the gradient of fc1's product. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_FORWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_FORWARD_H

#include "train/cuda/head.cuh"
#include "train/cuda/persistent.cuh"
#include "train/cuda/pool.cuh"

/* Data set index of the image of `pair` in a microbatch; 0 if it has none. */
static __device__ __forceinline__ uint32_t sample_index(const rl_persistent_args &args, const microbatch &mb, uint32_t pair) {
  if (!has_image(mb, pair)) return 0;
  const uint32_t position = mb.step * mb.batch_size + step_image(mb, pair);
  return args.order ? args.order[position] : position;
}

template <class F>
static __device__ __forceinline__ void load_image_async(const rl_persistent_args &args, uint32_t image, block_memory<F> &smem) {
  load_rows_async<F::THREADS, RL_PIXELS>(threadIdx.x, &args.images[(size_t)image * RL_PIXELS], RL_PIXELS, 1, smem.image_bytes,
                                         RL_PIXELS);
}

/* Begins to load the next image and its label, and reads the index of the image after it. The next microbatch waits for the
 * image. */
template <class F> static __device__ __forceinline__ void prefetch_next_image(const rl_persistent_args &args,
                                                                              const microbatch &after_next,
                                                                              const block_coords &coords,
                                                                              prefetch_state *prefetch, block_memory<F> &smem) {
  load_image_async(args, prefetch->next_image, smem);
  prefetch->next_label = args.labels[prefetch->next_image];
  prefetch->image_after_next = sample_index(args, after_next, coords.pair);
}

static __device__ __forceinline__ void advance(prefetch_state *prefetch) {
  prefetch->label = prefetch->next_label;
  prefetch->next_image = prefetch->image_after_next;
}

/* Normalises the image rows that this block needs. The copy to image_bytes must have completed. */
template <class F> static __device__ __forceinline__ void normalise_image(const block_coords &coords, block_memory<F> &smem) {
  load_image_rows(smem.image_bytes, coords.rank * 2 * BLOCK_ROWS, IMAGE_ROWS, smem.image_rows);
}

/* Receives conv1's weights and biases and this block's half of conv2's biases, four per thread. */
template <class F> static __device__ __forceinline__ void receive_tagged_weights(const rl_persistent_args &args, uint32_t phase,
                                                                                 const block_coords &coords,
                                                                                 block_memory<F> &smem) {
  const float *from = args.exchange->tagged_weights[coords.pair / GROUP_PAIRS];
  const int i = threadIdx.x * 4, bias = i - CONV1_PARAMETERS;
  if (bias < 0) store4(&smem.conv1[i], receive_tagged(&from[i], phase));
  else if (bias < TILE_CHANNELS) store4(&smem.conv2_bias[bias], receive_tagged(&from[i + coords.rank * TILE_CHANNELS], phase));
}

/* Begins to load this block's half of conv2's weights. Warps FIRST and up call it. */
template <class F, int FIRST> static __device__ __forceinline__ void load_conv2_async(const rl_persistent_args &args,
                                                                                      const block_coords &coords,
                                                                                      block_memory<F> &smem) {
  const typename F::value *conv2 = compute_weights<F>(args) + CONV2_OFFSET + coords.rank * CONV2_HALF;
  typename F::value *to = warp_roles<F>::TRANSFORMS_WEIGHTS ? smem.conv2_loaded : smem.conv2;
  load_rows_async<F::THREADS - FIRST * 32, TILE_K>(threadIdx.x - FIRST * 32, conv2, TILE_K, TILE_CHANNELS, to,
                                                   F::LOADED_WEIGHT_PITCH);
}

/* Begins to load this block's slice of fc1's weights and, in a step's first microbatch, the head's weights. Warps FIRST and up
 * load; the others return at once. */
template <class F, int FIRST>
static __device__ __forceinline__ void load_fc1_and_head_async(const rl_persistent_args &args, const microbatch &mb,
                                                               const block_coords &coords, block_memory<F> &smem) {
  enum { LOADERS = F::THREADS - FIRST * 32 };
  const typename F::value *fc1 = compute_weights<F>(args) + FC1_OFFSET + coords.slice * SLICE;
  const int thread = (int)threadIdx.x - FIRST * 32;
  if (thread < 0) return;
  load_rows_async<LOADERS, SLICE>(thread, fc1, RL_FLAT, RL_FC1, smem.fc1, SLICE + F::SLICE_PADDING);
  if (mb.index == 0)
    load_rows_async<LOADERS, RL_HEAD_ROW>(thread, args.adam.weights + HEAD_OFFSET, RL_HEAD_ROW, 1, smem.head, RL_HEAD_ROW);
}

/* In a step's first microbatch: waits for the barrier `update`, then loads conv2's weights. In every microbatch: waits until this
 * thread's copies have completed. With PREFETCH_EARLY, some warps compute conv1 while the others load conv2's weights.
 * Otherwise all warps load after conv1, and also begin to load fc1's weights, for which they do not wait. */
template <class F> static __device__ __forceinline__ void wait_and_load_conv2(const rl_persistent_args &args,
                                                                              const microbatch &mb, const block_coords &coords,
                                                                              block_memory<F> &smem) {
  const uint32_t *update = args.exchange->update, phase = mb.step + 1;
  const bool first = mb.index == 0;
  if constexpr (warp_roles<F>::PREFETCH_EARLY) {
    if (first && !is_compute_warp<F>()) {
      if (coords.lane == 0) grid_barrier_spin(update, phase);
      __syncwarp();
      load_conv2_async<F, warp_roles<F>::COMPUTE_WARPS>(args, coords, smem);
    }
    cp_async_wait_all();
  } else {
    if (first) grid_barrier_wait(update, phase);
    if (first) load_conv2_async<F, 0>(args, coords, smem);
    cp_async_commit_group();
    if (!warp_roles<F>::TRANSFORMS_WEIGHTS && has_image(mb, coords.group_first_pair))
      load_fc1_and_head_async<F, 0>(args, mb, coords, smem);
    cp_async_commit_group();
    cp_async_wait_group<1>();
  }
}

/* Computes conv1, bias, ReLU and pool for this block's pixels and stores them in both blocks of the pair. A lane computes two
 * channels of a pixel. The compute warps call it. */
template <class F> static __device__ __forceinline__ void conv1_forward(const block_coords &coords, block_memory<F> &smem) {
  const int channel = coords.lane % 16 * 2;
  const float *biases = &smem.conv1[RL_C1 * 9];
  float w[2][9];
#pragma unroll
  for (int k = 0; k < 18; k++) w[k / 9][k % 9] = smem.conv1[channel * 9 + k];
#pragma unroll 1
  for (int pixel = coords.warp * 2 + coords.lane / 16; pixel < BLOCK_PIXELS; pixel += warp_roles<F>::COMPUTE_WARPS * 2) {
    float patch[4][4], sum[2][4] = {}, best[2];
    uchar2 code;
    const float *corner = &smem.image_rows[pixel / RL_P1 * 2 * CONV1_WIDTH + pixel % RL_P1 * 2];
#pragma unroll
    for (int i = 0; i < 8; i++) *(float2 *)&patch[i / 2][i % 2 * 2] = *(const float2 *)&corner[i / 2 * CONV1_WIDTH + i % 2 * 2];
#pragma unroll
    for (int k = 0; k < 9; k++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        for (int c = 0; c < 2; c++) sum[c][i] = fmaf(w[c][k], patch[i / 2 + k / 3][i % 2 + k % 3], sum[c][i]);
    pool_four(sum[0][0], sum[0][1], sum[0][2], sum[0][3], biases[channel], &best[0], &code.x);
    pool_four(sum[1][0], sum[1][1], sum[1][2], sum[1][3], biases[channel + 1], &best[1], &code.y);
    *(uchar2 *)&smem.pool_codes1[pixel * RL_C1 + channel] = code;
    store_local_and_peer(coords.rank ^ 1, &smem.pooled1[(coords.rank * BLOCK_PIXELS + pixel) * F::IN_PITCH + channel], best[0],
                         best[1], &smem.pixels_mbarrier);
  }
}

/* Computes conv2, bias, ReLU and pool for this block's channels and sends the results, which are fc1's inputs, to the group. */
template <class F> static __device__ __forceinline__ void conv2_forward(const rl_persistent_args &args, const microbatch &mb,
                                                                        const block_coords &coords, block_memory<F> &smem,
                                                                        bool *overflow) {
  typedef typename F::value value;
  const uint32_t phase = message_phase(mb, coords.pair), half = coords.rank * TILE_CHANNELS;
  float *inputs = args.exchange->pooled2[coords.pair];
  value *stored = (value *)args.pooled2 + (size_t)step_image(mb, coords.pair) * RL_FLAT;
  F::conv2_forward(smem.pooled1, smem.conv2, warp_roles<F>::TRANSFORMS_WEIGHTS ? smem.forward_scratch : smem.forward_exchange,
                   [&](int pixel, int channel, const float a[4], const float b[4]) {
                     float best[2];
                     uint8_t *codes = &smem.pool_codes2[pixel * TILE_CHANNELS + channel];
                     for (int i = 0; i < 4; i++)
                       *overflow |= !is_representable(value(), a[i]) || !is_representable(value(), b[i]);
                     pool_four(a[0], a[1], a[2], a[3], smem.conv2_bias[channel], &best[0], &codes[0]);
                     pool_four(b[0], b[1], b[2], b[3], smem.conv2_bias[channel + 1], &best[1], &codes[1]);
                     const int k = pixel * RL_C2 + half + channel;
                     send_tagged(&inputs[k], phase, rounded_to<value>(best[0]), rounded_to<value>(best[1]));
                     if (args.pooled2) store2(&stored[k], best[0], best[1]);
                   });
}

/* For tests, if args.pooled1 is set: copies to global memory those activations and pool codes of conv1 and conv2 that the
 * backward pass reads from shared memory. */
template <class F> static __device__ __forceinline__ void dump_activations(const rl_persistent_args &args, const microbatch &mb,
                                                                           const block_coords &coords,
                                                                           const block_memory<F> &smem) {
  typedef typename F::value value;
  if (!args.pooled1) return;
  const size_t n = step_image(mb, coords.pair), first = n * CONV1_PIXELS + coords.rank * BLOCK_PIXELS;
  for (int i = threadIdx.x; i < BLOCK_PIXELS * RL_C1; i += F::THREADS) {
    ((value *)args.pooled1)[first * RL_C1 + i] = smem.pooled1[(coords.rank * BLOCK_PIXELS + i / RL_C1) * F::IN_PITCH + i % RL_C1];
    args.pool_codes1[first * RL_C1 + i] = smem.pool_codes1[i];
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < CONV2_PIXELS * TILE_CHANNELS; i += F::THREADS)
    args.pool_codes2[n * RL_FLAT + i / TILE_CHANNELS * RL_C2 + coords.rank * TILE_CHANNELS + i % TILE_CHANNELS] =
        smem.pool_codes2[i];
}

/* For each image of the group, receives COLUMNS tagged words that start at from[pair][column], and stores them as a row of
 * to[][PITCH]. */
template <class F, int COLUMNS, int PITCH, int STRIDE>
static __device__ __forceinline__ void receive_rows(const float (*from)[STRIDE], int column, const microbatch &mb,
                                                    const block_coords &coords, typename F::value *to) {
  const int quads = COLUMNS / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < GROUP_PAIRS * quads; i += F::THREADS) {
    const uint32_t pair = coords.group_first_pair + i / quads;
    if (has_image(mb, pair))
      store4(&to[i / quads * PITCH + i % quads * 4],
             receive_tagged(&from[pair][column + i % quads * 4], message_phase(mb, pair)));
  }
}

/* Multiplies this block's slice of fc1 for the group's images, and sends each pair its part of the product. */
template <class F> static __device__ __forceinline__ void fc1_forward(const rl_persistent_args &args, const microbatch &mb,
                                                                      const block_coords &coords, block_memory<F> &smem) {
  rl_exchange *exchange = args.exchange;
  receive_rows<F, SLICE, SLICE + F::SLICE_PADDING>(exchange->pooled2, coords.slice * SLICE, mb, coords, smem.pooled2);
  cp_async_wait_all();
  __syncthreads();
  record_timestamp(args, mb.step, RL_PHASE_fc1_inputs);
  F::template fc1_forward<SLICE>(smem.pooled2, smem.fc1, [&](int image, int output, float a, float b) {
    const uint32_t pair = coords.group_first_pair + image;
    if (has_image(mb, pair)) send_tagged(&exchange->fc1_parts[pair][coords.slice][output], message_phase(mb, pair), a, b);
  });
}

/* Adds up the parts of fc1's product for the pair's image, adds the bias and applies ReLU. Returns four hidden values per lane,
 * the same in every warp. */
template <class F> static __device__ __forceinline__ float4 hidden_values(const rl_persistent_args &args, const microbatch &mb,
                                                                          const block_coords &coords, block_memory<F> &smem) {
  const float(*parts)[RL_FC1] = args.exchange->fc1_parts[coords.pair];
  const int second = coords.warp + warp_roles<F>::WARPS; /* a warp adds up one part or two */
  static_assert(2 * (int)warp_roles<F>::WARPS >= (int)FC1_SLICES && (int)warp_roles<F>::WARPS <= (int)FC1_SLICES,
                "every part has a warp");
  const float4_pair received =
      receive_tagged(&parts[coords.warp][coords.lane * 4], &parts[second < FC1_SLICES ? second : coords.warp][coords.lane * 4],
                     message_phase(mb, coords.pair));
  store4(&smem.hidden[coords.warp][coords.lane * 4], second < FC1_SLICES ? add4(received.a, received.b) : received.a);
  __syncthreads();
  if (threadIdx.x < RL_FC1) {
    float total = smem.head[threadIdx.x];
    for (int warp = 0; warp < warp_roles<F>::WARPS; warp++) total += smem.hidden[warp][threadIdx.x];
    smem.hidden[0][threadIdx.x] = fmaxf(total, 0.0f);
  }
  __syncthreads();
  return load4(&smem.hidden[0][coords.lane * 4]);
}

/* Results for one class: lanes 0 to 9 have a class each. The loss is the image's, and valid in every lane. */
typedef struct class_lane {
  float logit, probability, loss;
  bool valid;
} class_lane;

/* Computes fc2, softmax and cross-entropy from the hidden values; every warp returns all classes. Each of the first ten warps
 * computes one logit. */
template <class F> static __device__ __forceinline__ class_lane classify(const block_coords &coords, float4 h, uint32_t label,
                                                                         block_memory<F> &smem) {
  const float *weights = &smem.head[RL_FC1], *biases = &weights[RL_CLASSES * RL_FC1];
  if (coords.warp < RL_CLASSES) {
    const float logit = warp_sum(dot4(h, load4(&weights[coords.warp * RL_FC1 + coords.lane * 4]))) + biases[coords.warp];
    if (coords.lane == 0) smem.logits[coords.warp] = logit;
  }
  __syncthreads();
  class_lane own;
  own.valid = coords.lane < RL_CLASSES;
  own.logit = own.valid ? smem.logits[coords.lane] : -INFINITY;
  const float shifted = own.logit - warp_max(own.logit), exponential = own.valid ? __expf(shifted) : 0.0f,
              sum = warp_sum(exponential);
  own.probability = exponential / sum;
  own.loss = __logf(sum) - __shfl_sync(0xffffffffu, shifted, label);
  return own;
}

/* Computes the head and its gradients for the pair's image. Each of the first ten warps adds up one class's gradients of fc2, the
 * next warp computes and sends the gradient of fc1's product, the others add up the loss. */
template <class F> static __device__ __forceinline__ void train_head(const rl_persistent_args &args, const microbatch &mb,
                                                                     const block_coords &coords, uint32_t label,
                                                                     block_memory<F> &smem, gradient_sums<F> &sums) {
  typedef typename F::value value;
  const float *weights = &smem.head[RL_FC1];
  const float4 h = hidden_values(args, mb, coords, smem);
  const class_lane own = classify(coords, h, label, smem);
  const float d_logit = (own.probability - (coords.lane == (int)label ? 1.0f : 0.0f)) * (smem.state.scale.scale / mb.step_images);
  if (coords.warp < RL_CLASSES) {
    const float d_class = __shfl_sync(0xffffffffu, d_logit, coords.warp);
    sums.head_sum4 = add4(sums.head_sum4, scale4(h, d_class));
    sums.head_sum += d_class;
  } else if (coords.warp == RL_CLASSES) {
    float4 d_h = make_float4(0, 0, 0, 0);
    for (int j = 0; j < RL_CLASSES; j++)
      d_h = add4(d_h, scale4(load4(&weights[j * RL_FC1 + coords.lane * 4]), __shfl_sync(0xffffffffu, d_logit, j)));
    d_h = relu4_gradient(h, d_h);
    const float4 stored =
        make_float4(rounded_to<value>(d_h.x), rounded_to<value>(d_h.y), rounded_to<value>(d_h.z), rounded_to<value>(d_h.w));
    send_tagged(&args.exchange->d_fc1[coords.pair][coords.lane * 4], message_phase(mb, coords.pair), stored);
    store4((value *)args.d_fc1 + (size_t)step_image(mb, coords.pair) * RL_FC1 + coords.lane * 4, d_h);
    sums.head_sum4 = add4(sums.head_sum4, d_h);
    sums.overflow |= !finite4(stored);
  } else {
    sums.head_sum += own.loss;
    sums.overflow |= !isfinite(own.loss);
  }
}

/* Where evaluation stores its results, by image. */
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
  const class_lane own = classify(coords, hidden_values(args, mb, coords, smem), label, smem);
  const float max_logit = warp_max(own.logit);
  const uint32_t answer = __ffs(__ballot_sync(0xffffffffu, own.logit == max_logit)) - 1;
  if (threadIdx.x != 0) return;
  results.losses[n] = own.loss;
  results.correct[n] = answer == label;
}

#endif
