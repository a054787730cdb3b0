/* The engine "persistent", from an image to the gradient of fc1's product. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_FORWARD_H
#define RL_TRAIN_CUDA_PERSISTENT_FORWARD_H

#include "train/cuda/head.cuh"
#include "train/cuda/persistent.cuh"
#include "train/cuda/pool.cuh"

static __device__ __forceinline__ uint32_t shown(const rl_persistent &e, const round_of &r, uint32_t pair) {
  const uint32_t position = r.steps_before * r.full_batch + image_at(r, pair);
  return e.order ? e.order[position] : position;
}

/* The rows of an image that this half of the pixels needs. */
static __device__ __forceinline__ void load_image(const rl_persistent &e, const round_of &r, const place &at, float *tile) {
  if (!has_image(r, at.pair)) return;
  load_image_rows(&e.images[(size_t)shown(e, r, at.pair) * RL_PIXELS], at.rank * 2 * HALF_ROWS, IMAGE_ROWS, tile);
}

/* The weights of the step: those of conv1, conv2 and the head, in three groups of copies of which the last is still open. */
template <class F> static __device__ __forceinline__ void fetch_weights(const rl_persistent &e, const place &at, block_memory<F> &m) {
  const typename F::value *conv2 = multiplied<F>(e) + CONV2_AT + at.rank * CONV2_HALF;
  fetch<F>(e.adam.weights, CONV1_ROW, 1, CONV1_ROW, m.conv1, CONV1_ROW);
  fetch<F>(e.adam.weights + CONV2_BIAS_AT + at.rank * TILE_CHANNELS, TILE_CHANNELS, 1, TILE_CHANNELS, m.conv2_bias, TILE_CHANNELS);
  end_copies();
  fetch<F>(conv2, TILE_DEPTH, TILE_CHANNELS, TILE_DEPTH, F::FORWARD_SCRATCH ? m.conv2_raw : m.conv2, F::RAW_PITCH);
  end_copies();
  fetch<F>(e.adam.weights + HEAD_AT, RL_HEAD_ROW, 1, RL_HEAD_ROW, m.head, RL_HEAD_ROW);
}

template <class F> static __device__ __forceinline__ void fetch_slice(const rl_persistent &e, const place &at, block_memory<F> &m) {
  fetch<F>(multiplied<F>(e) + FC1_AT + at.slice * SLICE, RL_FLAT, RL_FC1, SLICE, m.fc1, SLICE + F::SLICE_PAD);
}

/* conv1, bias, ReLU and pool of this half of the pixels, for both blocks of the pair; a lane is a channel. */
template <class F> static __device__ __forceinline__ void conv1_forward(const place &at, const float *image, block_memory<F> &m) {
  float w[9];
  for (int k = 0; k < 9; k++) w[k] = m.conv1[at.lane * 9 + k];
  const float bias = m.conv1[RL_C1 * 9 + at.lane];
  for (int pixel = at.warp; pixel < HALF_MAP1; pixel += team<F>::WARPS) {
    float patch[4][4], sum[4] = {}, best;
    for (int y = 0; y < 4; y++)
      for (int x = 0; x < 4; x += 2)
        *(float2 *)&patch[y][x] = *(const float2 *)&image[(pixel / RL_P1 * 2 + y) * CONV1_WIDTH + pixel % RL_P1 * 2 + x];
    for (int k = 0; k < 9; k++)
      for (int i = 0; i < 4; i++) sum[i] = fmaf(w[k], patch[i / 2 + k / 3][i % 2 + k % 3], sum[i]);
    pool_four(sum[0], sum[1], sum[2], sum[3], bias, &best, &m.codes1[pixel * RL_C1 + at.lane]);
    typename F::value *to = &m.pooled1[(at.rank * HALF_MAP1 + pixel) * F::IN_PITCH + at.lane];
    *to = (typename F::value)best;
    write_at(at.rank ^ 1, to, (typename F::value)best);
  }
}

/* conv2, bias, ReLU and pool of this half of the channels, to the group's slices of fc1's inputs. */
template <class F>
static __device__ __forceinline__ void conv2_forward(const rl_persistent &e, const round_of &r, const place &at, block_memory<F> &m, bool *overflow) {
  typedef typename F::value value;
  const uint32_t turn = turn_of(r, at.pair), half = at.rank * TILE_CHANNELS;
  float *mail = ((rl_exchange *)e.exchange)->pooled2[at.pair];
  value *kept = (value *)e.pooled2 + (size_t)image_at(r, at.pair) * RL_FLAT;
  F::conv2_forward(m.pooled1, m.conv2, F::FORWARD_SCRATCH ? m.forward_scratch : m.forward_mail, [&](int pixel, int channel, const float a[4], const float b[4]) {
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
template <class F> static __device__ __forceinline__ void show_layers(const rl_persistent &e, const round_of &r, const place &at, const block_memory<F> &m) {
  typedef typename F::value value;
  if (!e.pooled1) return;
  const size_t n = image_at(r, at.pair), first = n * MAP1 + at.rank * HALF_MAP1;
  for (int i = threadIdx.x; i < HALF_MAP1 * RL_C1; i += F::THREADS) {
    ((value *)e.pooled1)[first * RL_C1 + i] = m.pooled1[(at.rank * HALF_MAP1 + i / RL_C1) * F::IN_PITCH + i % RL_C1];
    e.codes1[first * RL_C1 + i] = m.codes1[i];
  }
  for (int i = threadIdx.x; i < MAP2 * TILE_CHANNELS; i += F::THREADS)
    e.codes2[n * RL_FLAT + i / TILE_CHANNELS * RL_C2 + at.rank * TILE_CHANNELS + i % TILE_CHANNELS] = m.codes2[i];
}

/* Letters of the group, `columns` to an image from[pair], as rows of values. */
template <class F, int STRIDE>
static __device__ __forceinline__ void receive_rows(const float (*from)[STRIDE], int column, int columns, const round_of &r, const place &at, typename F::value *to,
                                                    int pitch) {
  const int quads = columns / 4;
  for (int i = threadIdx.x; i < GROUP * quads; i += F::THREADS) {
    const uint32_t pair = at.first + i / quads;
    if (has_image(r, pair)) store4(&to[i / quads * pitch + i % quads * 4], receive(&from[pair][column + i % quads * 4], turn_of(r, pair)));
  }
}

/* This slice's part of fc1's product, for the group's images. */
template <class F> static __device__ __forceinline__ void fc1_forward(const rl_persistent &e, const round_of &r, const place &at, block_memory<F> &m) {
  rl_exchange *x = (rl_exchange *)e.exchange;
  receive_rows<F>(x->pooled2, at.slice * SLICE, SLICE, r, at, m.pooled2, SLICE + F::SLICE_PAD);
  copies_done();
  __syncthreads();
  mark(e, r.steps_before, RL_PHASE_fc1_inputs);
  F::template fc1_forward<SLICE>(m.pooled2, m.fc1, [&](int image, int output, float a, float b) {
    const uint32_t pair = at.first + image;
    if (has_image(r, pair)) post(&x->parts[pair][at.slice][output], turn_of(r, pair), a, b);
  });
}

/* Four hidden values of the pair's image, the same in every warp. */
template <class F> static __device__ __forceinline__ float4 hidden(const rl_persistent &e, const round_of &r, const place &at, block_memory<F> &m) {
  const float(*parts)[RL_FC1] = ((const rl_exchange *)e.exchange)->parts[at.pair];
  float4 sum = make_float4(0, 0, 0, 0);
  for (int part = at.warp; part < SLICES; part += team<F>::WARPS) sum = added(sum, receive(&parts[part][at.lane * 4], turn_of(r, at.pair)));
  store4(&m.hidden[at.warp][at.lane * 4], sum);
  __syncthreads();
  sum = load4(&m.head[at.lane * 4]);
  for (int warp = 0; warp < team<F>::WARPS; warp++) sum = added(sum, load4(&m.hidden[warp][at.lane * 4]));
  return rectified(sum);
}

/* The logits of the pair's image from its hidden values, in every thread: the first ten warps have a class each. */
template <class F> static __device__ __forceinline__ void classify(const place &at, float4 h, block_memory<F> &m, float logits[RL_CLASSES]) {
  const float *weights = &m.head[RL_FC1], *biases = &weights[RL_CLASSES * RL_FC1];
  if (at.warp < RL_CLASSES) {
    const float logit = warp_sum(dot(h, load4(&weights[at.warp * RL_FC1 + at.lane * 4]))) + biases[at.warp];
    if (at.lane == 0) m.logits[at.warp] = logit;
  }
  __syncthreads();
  for (int j = 0; j < RL_CLASSES; j++) logits[j] = m.logits[j];
}

/* From log-softmax's inputs to their gradients; the loss. */
static __device__ __forceinline__ float cross_entropy(float logits[RL_CLASSES], uint32_t label, float factor) {
  float most = logits[0], sum = 0.0f, wanted = 0.0f;
  for (int j = 1; j < RL_CLASSES; j++) most = fmaxf(most, logits[j]);
  for (int j = 0; j < RL_CLASSES; j++) {
    if (j == (int)label) wanted = logits[j] - most;
    logits[j] = expf(logits[j] - most);
    sum += logits[j];
  }
  for (int j = 0; j < RL_CLASSES; j++) logits[j] = (logits[j] / sum - (j == (int)label ? 1.0f : 0.0f)) * factor;
  return logf(sum) - wanted;
}

/* The head of the pair's image: the first ten warps have a class each, the next the gradient of fc1's product, the others the loss. */
template <class F>
static __device__ __forceinline__ void head(const rl_persistent &e, const round_of &r, const place &at, block_memory<F> &m, gradient_sums<F> &sums) {
  typedef typename F::value value;
  const float *weights = &m.head[RL_FC1];
  const uint32_t label = e.labels[shown(e, r, at.pair)];
  const float4 h = hidden(e, r, at, m);
  float d[RL_CLASSES];
  classify(at, h, m, d);
  const float loss = cross_entropy(d, label, m.state.scale.scale / r.batch);
  if (at.warp < RL_CLASSES) {
    float own = 0.0f;
    for (int j = 0; j < RL_CLASSES; j++) own = j == at.warp ? d[j] : own;
    sums.head_weight = added(sums.head_weight, scaled(h, own));
    sums.head_bias += own;
  } else if (at.warp == RL_CLASSES) {
    float4 d_h = make_float4(0, 0, 0, 0);
    for (int j = 0; j < RL_CLASSES; j++) d_h = added(d_h, scaled(load4(&weights[j * RL_FC1 + at.lane * 4]), d[j]));
    d_h = make_float4(h.x > 0 ? d_h.x : 0, h.y > 0 ? d_h.y : 0, h.z > 0 ? d_h.z : 0, h.w > 0 ? d_h.w : 0);
    sums.head_weight = added(sums.head_weight, d_h);
    value *kept = (value *)e.d_fc1 + (size_t)image_at(r, at.pair) * RL_FC1 + at.lane * 4;
    store4(kept, d_h);
    const float4 stored = make_float4(as_stored<value>(d_h.x), as_stored<value>(d_h.y), as_stored<value>(d_h.z), as_stored<value>(d_h.w));
    post(&((rl_exchange *)e.exchange)->d_fc1[at.pair][at.lane * 4], turn_of(r, at.pair), stored);
    sums.overflow |= !finite4(stored);
  } else {
    sums.head_bias += loss;
    sums.overflow |= !isfinite(loss);
  }
}

/* The same without a way back: the image's loss, and whether it was recognised. */
template <class F>
static __device__ __forceinline__ void head_evaluate(const rl_persistent &e, const round_of &r, const place &at, block_memory<F> &m, float *losses, uint8_t *correct) {
  const uint32_t n = image_at(r, at.pair), label = e.labels[shown(e, r, at.pair)];
  float logits[RL_CLASSES];
  classify(at, hidden(e, r, at, m), m, logits);
  uint32_t answer = 0;
  for (uint32_t j = 1; j < RL_CLASSES; j++)
    if (logits[j] > logits[answer]) answer = j;
  const float loss = cross_entropy(logits, label, 1.0f);
  if (threadIdx.x != 0) return;
  losses[n] = loss;
  correct[n] = answer == label;
}

#endif
