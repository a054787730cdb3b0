/* Implements rl_pool2_forward and rl_pool2_backward (kernels.h): bias, ReLU and 2×2 max-pooling of conv2, and the gradient of
 * these three, for engines whose conv2 product (its output before the bias) is computed by a library: one kernel for each
 * direction.
 *
 * The product and its gradient are [n][12][12][64] in NHWC and [n][64][12][12] in NCHW, n images. The pooled output has 6×6
 * pixels.
 *
 * Division of work: in NHWC a thread computes one pooled pixel of four channels, in NCHW one pooled element. Each element of the
 * product is read once, and each element of its gradient is written once. Shortest possible time: the bytes of the product
 * divided by the bandwidth of DRAM, or of L2 if the product fits there. */
#include "pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum { CHANNEL_QUADS = RL_CONV2_CHANNELS / 4 /* groups of four adjacent channels */ };

/* Replaces *best and *argmax if the value is greater than *best, or if it is the first value of the window (position 0). */
static __device__ __forceinline__ void update_best(float value, int position, float *best, int *argmax) {
  if (position == 0 || value > *best) {
    *best = value;
    *argmax = position;
  }
}

/* Returns the index, among the 12×12 pixels of the product, of `position` (0 to 3, row-major) in the 2×2 window of a pooled
 * pixel. */
static __device__ __forceinline__ int product_pixel(int pixel, int position) {
  return (2 * (pixel / RL_POOLED2_SIDE) + position / 2) * RL_CONV2_SIDE + 2 * (pixel % RL_POOLED2_SIDE) + position % 2;
}

template <typename T> static __global__ void pool2_forward_nhwc(uint32_t count, const T *__restrict__ product,
                                                                const float *__restrict__ bias, T *__restrict__ pooled,
                                                                uint8_t *__restrict__ argmaxes, rl_train_state *state) {
  pdl_wait();
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t quad = i % CHANNEL_QUADS, pixel = i / CHANNEL_QUADS % RL_POOLED2_PIXELS, n = i / CHANNEL_QUADS / RL_POOLED2_PIXELS;
  float best[4];
  int argmax[4];
  float4 in[4], b = load4(&bias[quad * 4]);
  for (int position = 0; position < 4; position++)
    in[position] = load4(&product[((size_t)n * RL_CONV2_PIXELS + product_pixel(pixel, position)) * RL_CONV2_CHANNELS + quad * 4]);
  float sum = 0.0f; /* overflow check: an FP32 sum of FP16 values is finite if and only if all values are finite */
  for (int position = 0; position < 4; position++) {
    sum += in[position].x + in[position].y + in[position].z + in[position].w;
    update_best(in[position].x + b.x, position, &best[0], &argmax[0]);
    update_best(in[position].y + b.y, position, &best[1], &argmax[1]);
    update_best(in[position].z + b.z, position, &best[2], &argmax[2]);
    update_best(in[position].w + b.w, position, &best[3], &argmax[3]);
  }
  if (sizeof(T) == 2 && state && !isfinite(sum)) state->overflow = 1;
  for (int c = 0; c < 4; c++) {
    if (!(best[c] > 0.0f)) argmax[c] = RL_ARGMAX_RELU_ZERO;
    best[c] = fmaxf(best[c], 0.0f);
  }
  store4(&pooled[(size_t)i * 4], make_float4(best[0], best[1], best[2], best[3]));
  *(uchar4 *)&argmaxes[(size_t)i * 4] = make_uchar4(argmax[0], argmax[1], argmax[2], argmax[3]);
}

static __global__ void pool2_forward_nchw(uint32_t count, const float *__restrict__ product, const float *__restrict__ bias,
                                          float *__restrict__ pooled, uint8_t *__restrict__ argmaxes) {
  pdl_wait();
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t pixel = i % RL_POOLED2_PIXELS, plane = i / RL_POOLED2_PIXELS;
  const float *from = &product[(size_t)plane * RL_CONV2_PIXELS + product_pixel(pixel, 0)];
  float2 top = *(const float2 *)from, bottom = *(const float2 *)(from + RL_CONV2_SIDE);
  float b = bias[plane % RL_CONV2_CHANNELS], best;
  int argmax;
  update_best(top.x + b, 0, &best, &argmax);
  update_best(top.y + b, 1, &best, &argmax);
  update_best(bottom.x + b, 2, &best, &argmax);
  update_best(bottom.y + b, 3, &best, &argmax);
  pooled[i] = fmaxf(best, 0.0f);
  argmaxes[i] = best > 0.0f ? argmax : RL_ARGMAX_RELU_ZERO;
}

int rl_pool2_forward(rl_format format, uint32_t batch, const void *product, const float *bias, void *pooled, uint8_t *argmaxes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err) {
  uint32_t count = batch * RL_POOLED2_PIXELS * (format.channels_last ? (uint32_t)CHANNEL_QUADS : (uint32_t)RL_CONV2_CHANNELS),
           blocks = (count + 255) / 256;
  if (format.fp16)
    return rl_pdl_launch("pool2 forward", pool2_forward_nhwc<__half>, blocks, 256, 0, stream, err, count, (const __half *)product,
                         bias, (__half *)pooled, argmaxes, state);
  if (format.channels_last)
    return rl_pdl_launch("pool2 forward", pool2_forward_nhwc<float>, blocks, 256, 0, stream, err, count, (const float *)product,
                         bias, (float *)pooled, argmaxes, state);
  return rl_pdl_launch("pool2 forward", pool2_forward_nchw, blocks, 256, 0, stream, err, count, (const float *)product, bias,
                       (float *)pooled, argmaxes);
}

enum {
  THREADS = 256,
  WARPS = THREADS / 32,
  MAX_PARTIAL_ROWS = 128,                 /* rows of partial sums of the bias gradient */
  BLOCK_PIXELS = THREADS / CHANNEL_QUADS, /* NHWC: pooled pixels that a block processes at a time */
  BLOCK_CHANNELS = 16                     /* NCHW: channels that a block processes */
};

/* NHWC: a block processes BLOCK_PIXELS pooled pixels at a time, a thread four channels of one of them. The blocks loop over all
 * pooled pixels of the batch; `pixels` is the number of these. Each block stores one row of partial sums of the bias gradient. */
template <typename T> static __global__ void __launch_bounds__(THREADS)
    pool2_backward_nhwc(uint32_t pixels, const T *__restrict__ pooled_gradient, const uint8_t *__restrict__ argmaxes,
                        T *__restrict__ product_gradient, float *__restrict__ partial, rl_train_state *state) {
  __shared__ float4 sums[BLOCK_PIXELS][CHANNEL_QUADS];
  uint32_t quad = threadIdx.x % CHANNEL_QUADS, block_pixel = threadIdx.x / CHANNEL_QUADS;
  float4 sum = make_float4(0, 0, 0, 0);
  bool overflow = false;
  pdl_wait();
  for (uint32_t i = blockIdx.x * BLOCK_PIXELS + block_pixel; i < pixels; i += gridDim.x * BLOCK_PIXELS) {
    size_t from = ((size_t)i * CHANNEL_QUADS + quad) * 4;
    float4 gradient = load4(&pooled_gradient[from]);
    uchar4 argmax = *(const uchar4 *)&argmaxes[from];
    if (argmax.x == RL_ARGMAX_RELU_ZERO) gradient.x = 0.0f;
    if (argmax.y == RL_ARGMAX_RELU_ZERO) gradient.y = 0.0f;
    if (argmax.z == RL_ARGMAX_RELU_ZERO) gradient.z = 0.0f;
    if (argmax.w == RL_ARGMAX_RELU_ZERO) gradient.w = 0.0f;
    overflow |= !(isfinite(gradient.x) && isfinite(gradient.y) && isfinite(gradient.z) && isfinite(gradient.w));
    uint32_t pixel = i % RL_POOLED2_PIXELS, n = i / RL_POOLED2_PIXELS;
    for (int position = 0; position < 4; position++)
      store4(&product_gradient[((size_t)n * RL_CONV2_PIXELS + product_pixel(pixel, position)) * RL_CONV2_CHANNELS + quad * 4],
             make_float4(argmax.x == position ? gradient.x : 0.0f, argmax.y == position ? gradient.y : 0.0f,
                         argmax.z == position ? gradient.z : 0.0f, argmax.w == position ? gradient.w : 0.0f));
    sum.x += gradient.x;
    sum.y += gradient.y;
    sum.z += gradient.z;
    sum.w += gradient.w;
  }
  if (sizeof(T) == 2 && overflow) state->overflow = 1;
  sums[block_pixel][quad] = sum;
  __syncthreads();
  if (threadIdx.x < RL_CONV2_CHANNELS) {
    float total = 0.0f;
    for (int from = 0; from < BLOCK_PIXELS; from++) total += ((const float *)sums[from])[threadIdx.x];
    partial[blockIdx.x * RL_CONV2_CHANNELS + threadIdx.x] = total;
  }
}

/* NCHW: a block processes BLOCK_CHANNELS channels of the images blockIdx.x, blockIdx.x + gridDim.x, … A warp processes one
 * channel at a time, a lane every 32nd pooled pixel. */
static __global__ void __launch_bounds__(THREADS)
    pool2_backward_nchw(uint32_t batch, const float *__restrict__ pooled_gradient, const uint8_t *__restrict__ argmaxes,
                        float *__restrict__ product_gradient, float *__restrict__ partial) {
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  pdl_wait();
  for (uint32_t c = 0; c < BLOCK_CHANNELS / WARPS; c++) {
    uint32_t channel = blockIdx.y * BLOCK_CHANNELS + c * WARPS + warp;
    float sum = 0.0f;
    for (uint32_t n = blockIdx.x; n < batch; n += gridDim.x) {
      size_t plane = (size_t)n * RL_CONV2_CHANNELS + channel;
      for (uint32_t pixel = lane; pixel < RL_POOLED2_PIXELS; pixel += 32) {
        int argmax = argmaxes[plane * RL_POOLED2_PIXELS + pixel];
        float gradient = argmax == RL_ARGMAX_RELU_ZERO ? 0.0f : pooled_gradient[plane * RL_POOLED2_PIXELS + pixel];
        float *to = &product_gradient[plane * RL_CONV2_PIXELS + product_pixel(pixel, 0)];
        *(float2 *)to = make_float2(argmax == 0 ? gradient : 0.0f, argmax == 1 ? gradient : 0.0f);
        *(float2 *)(to + RL_CONV2_SIDE) = make_float2(argmax == 2 ? gradient : 0.0f, argmax == 3 ? gradient : 0.0f);
        sum += gradient;
      }
    }
    sum = warp_sum(sum);
    if (lane == 0) partial[blockIdx.x * RL_CONV2_CHANNELS + channel] = sum;
  }
}

uint32_t rl_pool2_partial_rows(rl_format format, uint32_t batch) {
  uint32_t rows = format.channels_last ? (batch * RL_POOLED2_PIXELS + BLOCK_PIXELS - 1) / BLOCK_PIXELS : batch;
  return rows < MAX_PARTIAL_ROWS ? rows : (uint32_t)MAX_PARTIAL_ROWS;
}

int rl_pool2_backward(rl_format format, uint32_t batch, const void *pooled_gradient, const uint8_t *argmaxes,
                      void *product_gradient, float *partial, rl_train_state *state, cudaStream_t stream, rl_error *err) {
  uint32_t rows = rl_pool2_partial_rows(format, batch);
  if (format.fp16)
    return rl_pdl_launch("pool2 backward", pool2_backward_nhwc<__half>, rows, THREADS, 0, stream, err, batch * RL_POOLED2_PIXELS,
                         (const __half *)pooled_gradient, argmaxes, (__half *)product_gradient, partial, state);
  if (format.channels_last)
    return rl_pdl_launch("pool2 backward", pool2_backward_nhwc<float>, rows, THREADS, 0, stream, err, batch * RL_POOLED2_PIXELS,
                         (const float *)pooled_gradient, argmaxes, (float *)product_gradient, partial, state);
  return rl_pdl_launch("pool2 backward", pool2_backward_nchw, dim3(rows, RL_CONV2_CHANNELS / BLOCK_CHANNELS), THREADS, 0, stream,
                       err, batch, (const float *)pooled_gradient, argmaxes, (float *)product_gradient, partial);
}
