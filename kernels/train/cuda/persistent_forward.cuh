/* The engine "persistent", from an image to the gradient of fc1's product. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_FORWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_FORWARD_H

#include "train/cuda/head.cuh"
#include "train/cuda/persistent.cuh"
#include "train/cuda/pool.cuh"

/* The image of the pair in round r, and 0 where it has none. */
static __device__ __forceinline__ uint32_t shown(const rl_persistent &e, const round_of &r, uint32_t pair) {
  if (!has_image(r, pair)) return 0;
  const uint32_t position = r.steps_before * r.full_batch + image_at(r, pair);
  return e.order ? e.order[position] : position;
}

template <class F>
static __device__ __forceinline__ void fetch_image(const rl_persistent &e, uint32_t image, block_memory<F> &m) {
  fetch<F::THREADS, RL_PIXELS>(threadIdx.x, &e.images[(size_t)image * RL_PIXELS], RL_PIXELS, 1, m.bytes, RL_PIXELS);
}

/* Asks for the next image, its label, and which one comes behind it: nothing of it is waited for in this round. */
template <class F> static __device__ __forceinline__ void look_ahead(const rl_persistent &e, const round_of &behind,
                                                                     const place &at, upcoming *u, block_memory<F> &m) {
  fetch_image(e, u->next_image, m);
  u->next_label = e.labels[u->next_image];
  u->image_behind = shown(e, behind, at.pair);
}

static __device__ __forceinline__ void move_on(upcoming *u) {
  u->label = u->next_label;
  u->next_image = u->image_behind;
}

/* The rows that this half of the pixels needs, from the bytes that have arrived. */
template <class F> static __device__ __forceinline__ void normalise_image(const place &at, block_memory<F> &m) {
  load_image_rows(m.bytes, at.rank * 2 * HALF_ROWS, IMAGE_ROWS, m.image);
}

/* conv1's weights and biases and this half of conv2's biases: letters, four to a thread. */
template <class F>
static __device__ __forceinline__ void receive_small(const rl_persistent &e, uint32_t turn, const place &at, block_memory<F> &m) {
  const float *from = ((const rl_exchange *)e.exchange)->small[at.pair / GROUP];
  const int i = threadIdx.x * 4, bias = i - CONV1_ROW;
  if (bias < 0) store4(&m.conv1[i], receive(&from[i], turn));
  else if (bias < TILE_CHANNELS) store4(&m.conv2_bias[bias], receive(&from[i + at.rank * TILE_CHANNELS], turn));
}

/* Weights, asked for by the warps from FIRST on: conv2's; this slice of fc1's and, first in a step, the head's. */
template <class F, int FIRST>
static __device__ __forceinline__ void fetch_conv2(const rl_persistent &e, const place &at, block_memory<F> &m) {
  const typename F::value *conv2 = multiplied<F>(e) + CONV2_AT + at.rank * CONV2_HALF;
  typename F::value *to = F::FORWARD_SCRATCH ? m.conv2_raw : m.conv2;
  fetch<F::THREADS - FIRST * 32, TILE_DEPTH>(threadIdx.x - FIRST * 32, conv2, TILE_DEPTH, TILE_CHANNELS, to, F::RAW_PITCH);
}

template <class F, int FIRST> static __device__ __forceinline__ void fetch_linear(const rl_persistent &e, const round_of &r,
                                                                                  const place &at, block_memory<F> &m) {
  enum { FETCHERS = F::THREADS - FIRST * 32 };
  const typename F::value *fc1 = multiplied<F>(e) + FC1_AT + at.slice * SLICE;
  const int thread = (int)threadIdx.x - FIRST * 32;
  if (thread < 0) return;
  fetch<FETCHERS, SLICE>(thread, fc1, RL_FLAT, RL_FC1, m.fc1, SLICE + F::SLICE_PAD);
  if (r.index == 0) fetch<FETCHERS, RL_HEAD_ROW>(thread, e.adam.weights + HEAD_AT, RL_HEAD_ROW, 1, m.head, RL_HEAD_ROW);
}

/* A step's new weights of conv2, once they are there: where some warps have no part in conv2, by those who are no workers, while
 * the others are at conv1; else by all behind it, and those of fc1 right behind them. On return conv2's have come. */
template <class F> static __device__ __forceinline__ void await_conv2(const rl_persistent &e, const round_of &r, const place &at,
                                                                      block_memory<F> &m) {
  const uint32_t *update = ((const rl_exchange *)e.exchange)->update, turn = r.steps_before + 1;
  const bool first = r.index == 0;
  if constexpr (team<F>::ASKS_BESIDE) {
    if (first && !works<F>()) {
      if (at.lane == 0) watch(update, turn);
      __syncwarp();
      fetch_conv2<F, team<F>::WORKERS>(e, at, m);
    }
    cp_async_wait_all();
  } else {
    if (first) barrier_wait(update, turn);
    if (first) fetch_conv2<F, 0>(e, at, m);
    cp_async_commit_group();
    if (!F::FORWARD_SCRATCH && has_image(r, at.first)) fetch_linear<F, 0>(e, r, at, m);
    cp_async_commit_group();
    cp_async_wait_group<1>();
  }
}

/* The workers': conv1, bias, ReLU and pool of this half of the pixels, for both blocks; a lane has two channels of a pixel. */
template <class F> static __device__ __forceinline__ void conv1_forward(const place &at, block_memory<F> &m) {
  const int channel = at.lane % 16 * 2;
  const float *biases = &m.conv1[RL_C1 * 9];
  float w[2][9];
#pragma unroll
  for (int k = 0; k < 18; k++) w[k / 9][k % 9] = m.conv1[channel * 9 + k];
#pragma unroll 1
  for (int pixel = at.warp * 2 + at.lane / 16; pixel < HALF_MAP1; pixel += team<F>::WORKERS * 2) {
    float patch[4][4], sum[2][4] = {}, best[2];
    uchar2 code;
    const float *corner = &m.image[pixel / RL_P1 * 2 * CONV1_WIDTH + pixel % RL_P1 * 2];
#pragma unroll
    for (int i = 0; i < 8; i++) *(float2 *)&patch[i / 2][i % 2 * 2] = *(const float2 *)&corner[i / 2 * CONV1_WIDTH + i % 2 * 2];
#pragma unroll
    for (int k = 0; k < 9; k++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        for (int c = 0; c < 2; c++) sum[c][i] = fmaf(w[c][k], patch[i / 2 + k / 3][i % 2 + k % 3], sum[c][i]);
    pool_four(sum[0][0], sum[0][1], sum[0][2], sum[0][3], biases[channel], &best[0], &code.x);
    pool_four(sum[1][0], sum[1][1], sum[1][2], sum[1][3], biases[channel + 1], &best[1], &code.y);
    *(uchar2 *)&m.codes1[pixel * RL_C1 + channel] = code;
    store_both(at.rank ^ 1, &m.pooled1[(at.rank * HALF_MAP1 + pixel) * F::IN_PITCH + channel], best[0], best[1], &m.pixels_came);
  }
}

/* conv2, bias, ReLU and pool of this half of the channels, to the group's slices of fc1's inputs. */
template <class F> static __device__ __forceinline__ void conv2_forward(const rl_persistent &e, const round_of &r,
                                                                        const place &at, block_memory<F> &m, bool *overflow) {
  typedef typename F::value value;
  const uint32_t turn = turn_of(r, at.pair), half = at.rank * TILE_CHANNELS;
  float *mail = ((rl_exchange *)e.exchange)->pooled2[at.pair];
  value *kept = (value *)e.pooled2 + (size_t)image_at(r, at.pair) * RL_FLAT;
  F::conv2_forward(m.pooled1, m.conv2, F::FORWARD_SCRATCH ? m.forward_scratch : m.forward_mail,
                   [&](int pixel, int channel, const float a[4], const float b[4]) {
                     float best[2];
                     uint8_t *codes = &m.codes2[pixel * TILE_CHANNELS + channel];
                     for (int i = 0; i < 4; i++) *overflow |= !fits(value(), a[i]) || !fits(value(), b[i]);
                     pool_four(a[0], a[1], a[2], a[3], m.conv2_bias[channel], &best[0], &codes[0]);
                     pool_four(b[0], b[1], b[2], b[3], m.conv2_bias[channel + 1], &best[1], &codes[1]);
                     const int k = pixel * RL_C2 + half + channel;
                     post(&mail[k], turn, as_stored<value>(best[0]), as_stored<value>(best[1]));
                     if (e.pooled2) store2(&kept[k], best[0], best[1]);
                   });
}

/* What backward needs of both layers, for who wants to see it. */
template <class F> static __device__ __forceinline__ void show_layers(const rl_persistent &e, const round_of &r, const place &at,
                                                                      const block_memory<F> &m) {
  typedef typename F::value value;
  if (!e.pooled1) return;
  const size_t n = image_at(r, at.pair), first = n * MAP1 + at.rank * HALF_MAP1;
  for (int i = threadIdx.x; i < HALF_MAP1 * RL_C1; i += F::THREADS) {
    ((value *)e.pooled1)[first * RL_C1 + i] = m.pooled1[(at.rank * HALF_MAP1 + i / RL_C1) * F::IN_PITCH + i % RL_C1];
    e.codes1[first * RL_C1 + i] = m.codes1[i];
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < MAP2 * TILE_CHANNELS; i += F::THREADS)
    e.codes2[n * RL_FLAT + i / TILE_CHANNELS * RL_C2 + at.rank * TILE_CHANNELS + i % TILE_CHANNELS] = m.codes2[i];
}

/* Letters of the group, `columns` to an image from[pair], as rows of values. */
template <class F, int STRIDE>
static __device__ __forceinline__ void receive_rows(const float (*from)[STRIDE], int column, int columns, const round_of &r,
                                                    const place &at, typename F::value *to, int pitch) {
  const int quads = columns / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < GROUP * quads; i += F::THREADS) {
    const uint32_t pair = at.first + i / quads;
    if (has_image(r, pair))
      store4(&to[i / quads * pitch + i % quads * 4], receive(&from[pair][column + i % quads * 4], turn_of(r, pair)));
  }
}

/* This slice's part of fc1's product, for the group's images. */
template <class F> static __device__ __forceinline__ void fc1_forward(const rl_persistent &e, const round_of &r, const place &at,
                                                                      block_memory<F> &m) {
  rl_exchange *x = (rl_exchange *)e.exchange;
  receive_rows<F>(x->pooled2, at.slice * SLICE, SLICE, r, at, m.pooled2, SLICE + F::SLICE_PAD);
  cp_async_wait_all();
  __syncthreads();
  record_timestamp(e, r.steps_before, RL_PHASE_fc1_inputs);
  F::template fc1_forward<SLICE>(m.pooled2, m.fc1, [&](int image, int output, float a, float b) {
    const uint32_t pair = at.first + image;
    if (has_image(r, pair)) post(&x->parts[pair][at.slice][output], turn_of(r, pair), a, b);
  });
}

/* Four hidden values of the pair's image, the same in every warp. */
template <class F>
static __device__ __forceinline__ float4 hidden(const rl_persistent &e, const round_of &r, const place &at, block_memory<F> &m) {
  const float(*parts)[RL_FC1] = ((const rl_exchange *)e.exchange)->parts[at.pair];
  const int other = at.warp + team<F>::WARPS; /* a warp has one part, or two */
  static_assert(2 * (int)team<F>::WARPS >= (int)SLICES && (int)team<F>::WARPS <= (int)SLICES, "warps for all parts");
  float4 sum, beside;
  receive(&parts[at.warp][at.lane * 4], &parts[other < SLICES ? other : at.warp][at.lane * 4], turn_of(r, at.pair), &sum,
          &beside);
  store4(&m.hidden[at.warp][at.lane * 4], other < SLICES ? added(sum, beside) : sum);
  __syncthreads();
  if (threadIdx.x < RL_FC1) {
    float total = m.head[threadIdx.x];
    for (int warp = 0; warp < team<F>::WARPS; warp++) total += m.hidden[warp][threadIdx.x];
    m.hidden[0][threadIdx.x] = fmaxf(total, 0.0f);
  }
  __syncthreads();
  return load4(&m.hidden[0][at.lane * 4]);
}

/* What a lane has of the ten classes, one each. */
typedef struct class_of {
  float logit, probability, loss;
  bool there;
} class_of;

/* The classes of the pair's image from its hidden values, in every warp: the first ten warps make a logit each. */
template <class F>
static __device__ __forceinline__ class_of classify(const place &at, float4 h, uint32_t label, block_memory<F> &m) {
  const float *weights = &m.head[RL_FC1], *biases = &weights[RL_CLASSES * RL_FC1];
  if (at.warp < RL_CLASSES) {
    const float logit = warp_sum(dot(h, load4(&weights[at.warp * RL_FC1 + at.lane * 4]))) + biases[at.warp];
    if (at.lane == 0) m.logits[at.warp] = logit;
  }
  __syncthreads();
  class_of own;
  own.there = at.lane < RL_CLASSES;
  own.logit = own.there ? m.logits[at.lane] : -INFINITY;
  const float shifted = own.logit - warp_max(own.logit), power = own.there ? __expf(shifted) : 0.0f, sum = warp_sum(power);
  own.probability = power / sum;
  own.loss = __logf(sum) - __shfl_sync(0xffffffffu, shifted, label);
  return own;
}

/* The head of the pair's image: the first ten warps have a class each, the next d(fc1's product), the others the loss. */
template <class F> static __device__ __forceinline__ void head(const rl_persistent &e, const round_of &r, const place &at,
                                                               uint32_t label, block_memory<F> &m, gradient_sums<F> &sums) {
  typedef typename F::value value;
  const float *weights = &m.head[RL_FC1];
  const float4 h = hidden(e, r, at, m);
  const class_of own = classify(at, h, label, m);
  const float d = (own.probability - (at.lane == (int)label ? 1.0f : 0.0f)) * (m.state.scale.scale / r.batch);
  if (at.warp < RL_CLASSES) {
    const float d_class = __shfl_sync(0xffffffffu, d, at.warp);
    sums.head_weight = added(sums.head_weight, scaled(h, d_class));
    sums.head_bias += d_class;
  } else if (at.warp == RL_CLASSES) {
    float4 d_h = make_float4(0, 0, 0, 0);
    for (int j = 0; j < RL_CLASSES; j++)
      d_h = added(d_h, scaled(load4(&weights[j * RL_FC1 + at.lane * 4]), __shfl_sync(0xffffffffu, d, j)));
    d_h = make_float4(h.x > 0 ? d_h.x : 0, h.y > 0 ? d_h.y : 0, h.z > 0 ? d_h.z : 0, h.w > 0 ? d_h.w : 0);
    const float4 stored =
        make_float4(as_stored<value>(d_h.x), as_stored<value>(d_h.y), as_stored<value>(d_h.z), as_stored<value>(d_h.w));
    post(&((rl_exchange *)e.exchange)->d_fc1[at.pair][at.lane * 4], turn_of(r, at.pair), stored);
    store4((value *)e.d_fc1 + (size_t)image_at(r, at.pair) * RL_FC1 + at.lane * 4, d_h);
    sums.head_weight = added(sums.head_weight, d_h);
    sums.overflow |= !finite4(stored);
  } else {
    sums.head_bias += own.loss;
    sums.overflow |= !isfinite(own.loss);
  }
}

/* The same without a way back: the image's loss, and whether it was recognised. */
template <class F> static __device__ __forceinline__ void head_evaluate(const rl_persistent &e, const round_of &r,
                                                                        const place &at, uint32_t label, block_memory<F> &m,
                                                                        float *losses, uint8_t *correct) {
  const uint32_t n = image_at(r, at.pair);
  const class_of own = classify(at, hidden(e, r, at, m), label, m);
  const float most = warp_max(own.logit);
  const uint32_t answer = __ffs(__ballot_sync(0xffffffffu, own.logit == most)) - 1;
  if (threadIdx.x != 0) return;
  losses[n] = own.loss;
  correct[n] = answer == label;
}

#endif
