/* The second layer, 32→64 channels on 14×14, in FP32 on FMA units: one kernel each way, activations NHWC, weights [64][9
 * taps][32]. Its product is never written to memory. Forward is dense: 170 million FMA at batch 64, 5.1 µs at an H200's rate.
 * Backward is sparse: max-pooling lets at most one gradient in four of the product be something else than zero, and ReLU stops
 * some of those, so that both gradients together take at most half as many operations as forward. Sums go in a fixed order. */
#include "cuda_check.h"
#include "async_copy.cuh"
#include "train/cuda/pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/pool.cuh"

enum {
  TAPS = 9,
  DEPTH = TAPS * RL_C1,
  MAP1 = RL_P1 * RL_P1,
  MAP2 = RL_P2 * RL_P2,
  UNIT = 4, /* floats in 16 bytes */
  WARPS = 12,
  THREADS = WARPS * 32,
  WEIGHT_PITCH = DEPTH + UNIT /* 16-byte reads of eight rows meet no bank twice */
};

static __device__ __forceinline__ void load_weights(const float *from, int channels, float *to) {
  for (int i = threadIdx.x; i < channels * DEPTH / UNIT; i += THREADS) {
    int channel = i / (DEPTH / UNIT), part = i % (DEPTH / UNIT) * UNIT;
    cp_async_16(&to[channel * WEIGHT_PITCH + part], &from[channel * DEPTH + part]);
  }
}

static __device__ __forceinline__ void load_image(const float *from, float *to) {
  for (int i = threadIdx.x; i < MAP1 * RL_C1 / UNIT; i += THREADS) cp_async_16(&to[i * UNIT], &from[i * UNIT]);
}

/* --- forward: a block makes 32 channels of an image
 * ------------------------------------------------------------------------------ A warp has half a row of pooled pixels, 2 × 6 of
 * the product, and a lane a channel: what it reads of the image is the same for all lanes. */

enum {
  FORWARD_CHANNELS = 32,
  HALF = RL_H2 / 2,
  FORWARD_MOST = 66 /* blocks for each half of the channels; more images take turns */
};
static_assert(WARPS == 2 * RL_P2, "a warp for each half row of pooled pixels");

static __device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

static __global__ void __launch_bounds__(THREADS)
    conv2_forward(uint32_t batch, const float *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias,
                  float *__restrict__ pooled, uint8_t *__restrict__ codes) {
  extern __shared__ __align__(16) float shared[];
  float *w = shared, *image = shared + FORWARD_CHANNELS * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2, left = warp % 2 * HALF;
  const int channel = blockIdx.y * FORWARD_CHANNELS + lane;
  load_weights(&weights[blockIdx.y * FORWARD_CHANNELS * DEPTH], FORWARD_CHANNELS, w);
  const float b = bias[channel];
  const float4 *mine = (const float4 *)&w[lane * WEIGHT_PITCH];
  pdl_wait();
  for (uint32_t n = blockIdx.x; n < batch; n += gridDim.x) {
    __syncthreads();
    load_image(&in[(size_t)n * MAP1 * RL_C1], image);
    cp_async_wait_all();
    __syncthreads();
    float sum[2][HALF] = {};
    for (int part = 0; part < RL_C1 / UNIT; part++) {
      float4 tap[TAPS];
#pragma unroll
      for (int t = 0; t < TAPS; t++) tap[t] = mine[t * (RL_C1 / UNIT) + part];
#pragma unroll
      for (int y = 0; y < 4; y++) {
        float4 x[HALF + 2];
#pragma unroll
        for (int i = 0; i < HALF + 2; i++)
          x[i] = *(const float4 *)&image[((2 * row + y) * RL_P1 + left + i) * RL_C1 + part * UNIT];
#pragma unroll
        for (int to = 0; to < 2; to++)
#pragma unroll
          for (int i = 0; i < HALF * 3 && y - to >= 0 && y - to < 3; i++)
            sum[to][i / 3] = dot(x[i / 3 + i % 3], tap[(y - to) * 3 + i % 3], sum[to][i / 3]);
      }
    }
#pragma unroll
    for (int i = 0; i < HALF / 2; i++) {
      float best;
      uint8_t code;
      pool_four(sum[0][2 * i], sum[0][2 * i + 1], sum[1][2 * i], sum[1][2 * i + 1], b, &best, &code);
      size_t to = ((size_t)n * MAP2 + row * RL_P2 + left / 2 + i) * RL_C2 + channel;
      pooled[to] = best;
      codes[to] = code;
    }
  }
}

int rl_conv2_float_forward(uint32_t batch, const float *in, const float *weights, const float *bias, float *pooled,
                           uint8_t *codes, cudaStream_t stream, rl_error *err) {
  const int bytes = (FORWARD_CHANNELS * WEIGHT_PITCH + MAP1 * RL_C1) * (int)sizeof(float);
  dim3 grid(batch < FORWARD_MOST ? batch : (uint32_t)FORWARD_MOST, RL_C2 / FORWARD_CHANNELS);
  if (rl_cuda_ok(cudaFuncSetAttribute(conv2_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "reserving shared memory", err))
    return -1;
  return rl_pdl_launch("conv2 forward", conv2_forward, grid, THREADS, bytes, stream, err, batch, in, weights, bias, pooled,
                       codes);
}

/* --- backward: both gradients from the pooled one
 * ------------------------------------------------------------------------------------ Lanes are input channels. Which of the
 * four inputs of a pool gets the gradient is the same for all lanes, so that a warp branches to one of four stretches of nine FMA
 * with fixed registers. Codes of neighbours lie in one word, CODE_BITS each. */

enum {
  CODE_BITS = 4,
  CODE_MASK = (1 << CODE_BITS) - 1,
  /* Weight gradient: a block has GROUP output channels and some of the images; a warp half the channels and a row of pooled
   * pixels of them. */
  GROUP = 16,
  GROUPS = RL_C2 / GROUP,
  EACH = GROUP / 2,
  MOST_ROWS = 16,
  IMAGES = 4 /* of a block, where there are so many */,
  WEIGHT_SUMS = GROUP * DEPTH,
  PIECE = MAP2 * GROUP,
  WEIGHT_SHARED = MAP1 * RL_C1 + PIECE + MAP2 * 2,
  /* Input gradient: a block has an image; a warp half of the output channels and a row of pooled pixels. */
  PITCH = 8 /* of a row of pooled gradients */,
  MOST_IMAGES = 64,
  DATA_SHARED = RL_C2 * WEIGHT_PITCH + RL_C2 * RL_P2 * (PITCH + 1) + MAP1 * RL_C1
};
static_assert(WEIGHT_SUMS <= MAP1 * RL_C1 && WEIGHT_SHARED <= DATA_SHARED, "both kinds of block have room");
static_assert(THREADS == RL_C2 * RL_P2, "a thread for each output channel's row of pooled pixels");

typedef struct backward {
  uint32_t batch, rows; /* images; rows of partial sums */
  const float *in, *weights, *d_pooled;
  const uint8_t *codes;
  float *d_in, *partial, *partial_bias;
} backward;

/* The pooled gradients of 16 channels, [36][16] with zeros where ReLU stopped them, and their codes, a word for eight. */
static __device__ __forceinline__ void load_group(const backward &b, uint32_t n, int first, float *gradients, uint32_t *codes) {
  for (int i = threadIdx.x; i < MAP2 * 2; i += THREADS) {
    size_t from = ((size_t)n * MAP2 + i / 2) * RL_C2 + first + i % 2 * EACH;
    uint2 raw = *(const uint2 *)&b.codes[from];
    float4 g[2] = {*(const float4 *)&b.d_pooled[from], *(const float4 *)&b.d_pooled[from + 4]};
    uint32_t word = 0;
#pragma unroll
    for (int c = 0; c < EACH; c++) {
      uint32_t code = (c < 4 ? raw.x : raw.y) >> c % 4 * 8 & 0xff;
      word |= code << c * CODE_BITS;
      if (code == RL_POOL_RELU_ZERO) (&g[c / 4].x)[c % 4] = 0.0f;
    }
    codes[i] = word;
    *(float4 *)&gradients[i * EACH] = g[0];
    *(float4 *)&gradients[i * EACH + 4] = g[1];
  }
}

/* sums[tap] += g × the nine inputs below input `AT` of a pool; x: the 4 × 4 inputs of the pool's four. */
template <int AT> static __device__ __forceinline__ void add_taps(float *sums, float g, const float *x) {
#pragma unroll
  for (int t = 0; t < TAPS; t++) sums[t] = fmaf(g, x[(AT / 2 + t / 3) * 4 + AT % 2 + t % 3], sums[t]);
}

static __device__ void weight_gradient(const backward &b, uint32_t index, int group, float *shared) {
  float *image = shared, *gradients = shared + MAP1 * RL_C1, *sums = shared;
  uint32_t *words = (uint32_t *)(gradients + PIECE);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp % 2, row = warp / 2;
  float sum[EACH][TAPS] = {}, bias = 0.0f;
  for (uint32_t n = index; n < b.batch; n += b.rows) {
    __syncthreads();
    load_image(&b.in[(size_t)n * MAP1 * RL_C1], image);
    load_group(b, n, group * GROUP, gradients, words);
    cp_async_wait_all();
    __syncthreads();
    if (threadIdx.x < GROUP)
      for (int i = 0; i < MAP2; i++) bias += gradients[i * GROUP + threadIdx.x];
    for (int i = 0; i < RL_P2; i++) {
      const int pixel = row * RL_P2 + i;
      const uint32_t word = words[pixel * 2 + half];
      const float4 *from = (const float4 *)&gradients[pixel * GROUP + half * EACH], low = from[0], high = from[1];
      const float g[EACH] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      float x[16];
#pragma unroll
      for (int k = 0; k < 16; k++) x[k] = image[((2 * row + k / 4) * RL_P1 + 2 * i + k % 4) * RL_C1 + lane];
#pragma unroll
      for (int c = 0; c < EACH; c++) switch (word >> c * CODE_BITS & CODE_MASK) {
          case 0: add_taps<0>(sum[c], g[c], x); break;
          case 1: add_taps<1>(sum[c], g[c], x); break;
          case 2: add_taps<2>(sum[c], g[c], x); break;
          case 3: add_taps<3>(sum[c], g[c], x); break;
          default: break;
        }
    }
  }
  if (threadIdx.x < GROUP) b.partial_bias[index * RL_C2 + group * GROUP + threadIdx.x] = bias;
  for (int turn = 0; turn < RL_P2; turn++) { /* the rows' sums one after another */
    __syncthreads();
    if (row != turn) continue;
#pragma unroll
    for (int c = 0; c < EACH; c++)
#pragma unroll
      for (int t = 0; t < TAPS; t++) {
        float *to = &sums[(half * EACH + c) * DEPTH + t * RL_C1 + lane];
        *to = turn == 0 ? sum[c][t] : *to + sum[c][t];
      }
  }
  __syncthreads();
  float4 *to = (float4 *)&b.partial[((size_t)index * RL_C2 + group * GROUP) * DEPTH];
  for (int i = threadIdx.x; i < WEIGHT_SUMS / UNIT; i += THREADS) to[i] = ((const float4 *)sums)[i];
}

/* to[4][14] += g × the weights of the nine outputs that input `AT` of pool i is under. */
template <int AT> static __device__ __forceinline__ void spread_taps(float to[4][RL_P1], int i, float g, const float *w) {
#pragma unroll
  for (int t = 0; t < TAPS; t++)
    to[AT / 2 + t / 3][2 * i + AT % 2 + t % 3] = fmaf(g, w[t], to[AT / 2 + t / 3][2 * i + AT % 2 + t % 3]);
}

/* A thread's row of pooled gradients, with zeros where ReLU stopped them, and its codes in a word. */
static __device__ __forceinline__ void load_rows(const backward &b, uint32_t n, float *gradients, uint32_t *words) {
  const int channel = threadIdx.x % RL_C2, row = threadIdx.x / RL_C2;
  uint32_t word = 0;
  for (int i = 0; i < RL_P2; i++) {
    size_t from = ((size_t)n * MAP2 + row * RL_P2 + i) * RL_C2 + channel;
    uint32_t code = b.codes[from];
    word |= code << i * CODE_BITS;
    gradients[(row * RL_C2 + channel) * PITCH + i] = code == RL_POOL_RELU_ZERO ? 0.0f : b.d_pooled[from];
  }
  words[row * RL_C2 + channel] = word;
}

static __device__ void input_gradient(const backward &b, uint32_t index, uint32_t blocks, float *shared) {
  float *w = shared, *gradients = w + RL_C2 * WEIGHT_PITCH, *image = gradients + RL_C2 * RL_P2 * PITCH;
  uint32_t *words = (uint32_t *)(image + MAP1 * RL_C1);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp % 2, row = warp / 2;
  load_weights(b.weights, RL_C2, w);
  pdl_wait();
  for (uint32_t n = index; n < b.batch; n += blocks) {
    __syncthreads();
    load_rows(b, n, gradients, words);
    cp_async_wait_all();
    __syncthreads();
    float to[4][RL_P1] = {};
    for (int c = half * (RL_C2 / 2); c < (half + 1) * (RL_C2 / 2); c++) {
      const float4 low = *(const float4 *)&gradients[(row * RL_C2 + c) * PITCH];
      const float2 high = *(const float2 *)&gradients[(row * RL_C2 + c) * PITCH + 4];
      const float g[RL_P2] = {low.x, low.y, low.z, low.w, high.x, high.y};
      const uint32_t word = words[row * RL_C2 + c];
      float tap[TAPS];
#pragma unroll
      for (int t = 0; t < TAPS; t++) tap[t] = w[c * WEIGHT_PITCH + t * RL_C1 + lane];
#pragma unroll
      for (int i = 0; i < RL_P2; i++) switch (word >> i * CODE_BITS & CODE_MASK) {
          case 0: spread_taps<0>(to, i, g[i], tap); break;
          case 1: spread_taps<1>(to, i, g[i], tap); break;
          case 2: spread_taps<2>(to, i, g[i], tap); break;
          case 3: spread_taps<3>(to, i, g[i], tap); break;
          default: break;
        }
    }
    /* A row of pools reaches four rows of the image. Even rows reach all but the last two, each of them others. */
    for (int turn = 0; turn < 4; turn++) {
      __syncthreads();
      if (row % 2 != turn / 2 || half != turn % 2) continue;
#pragma unroll
      for (int y = 0; y < 4; y++) {
        const bool first = turn == 0 || (turn == 2 && row == RL_P2 - 1 && y >= 2);
#pragma unroll
        for (int x = 0; x < RL_P1; x++) {
          float *at = &image[((2 * row + y) * RL_P1 + x) * RL_C1 + lane];
          *at = first ? to[y][x] : *at + to[y][x];
        }
      }
    }
    __syncthreads();
    float4 *out = (float4 *)&b.d_in[(size_t)n * MAP1 * RL_C1];
    for (int i = threadIdx.x; i < MAP1 * RL_C1 / UNIT; i += THREADS) out[i] = ((const float4 *)image)[i];
  }
}

/* Both gradients side by side, one block a multiprocessor at batch 64. */
static __global__ void __launch_bounds__(THREADS, 1) conv2_backward(backward b) {
  extern __shared__ __align__(16) float shared[];
  const uint32_t weight_blocks = GROUPS * b.rows;
  if (blockIdx.x < weight_blocks) {
    pdl_wait();
    weight_gradient(b, blockIdx.x / GROUPS, blockIdx.x % GROUPS, shared);
  } else {
    input_gradient(b, blockIdx.x - weight_blocks, gridDim.x - weight_blocks, shared);
  }
}

uint32_t rl_conv2_float_partial_rows(uint32_t batch) {
  uint32_t rows = (batch + IMAGES - 1) / IMAGES;
  return rows < MOST_ROWS ? rows : (uint32_t)MOST_ROWS;
}

int rl_conv2_float_backward(uint32_t batch, const float *in, const float *weights, const float *d_pooled, const uint8_t *codes,
                            float *d_in, float *partial, float *partial_bias, cudaStream_t stream, rl_error *err) {
  const int bytes = DATA_SHARED * (int)sizeof(float);
  backward b = {batch, rl_conv2_float_partial_rows(batch), in, weights, d_pooled, codes, d_in, partial, partial_bias};
  uint32_t blocks = GROUPS * b.rows + (batch < MOST_IMAGES ? batch : (uint32_t)MOST_IMAGES);
  if (rl_cuda_ok(cudaFuncSetAttribute(conv2_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "reserving shared memory", err))
    return -1;
  return rl_pdl_launch("conv2 backward", conv2_backward, blocks, THREADS, bytes, stream, err, b);
}
