/* Bias, ReLU and 2×2 pooling after conv2, and the way back: one kernel each, bound by the bytes of conv2's output. */
#include "train/cuda/pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum { MAP = RL_P2 * RL_P2, FULL = RL_H2 * RL_H2, GROUPS = RL_C2 / 4 };

static __device__ __forceinline__ void take(float value, int at, float *best, int *code) {
  if (at == 0 || value > *best) {
    *best = value;
    *code = at;
  }
}

/* Where the four inputs of a pooled pixel lie in conv2's output. */
static __device__ __forceinline__ int source(int pixel, int at) {
  return (2 * (pixel / RL_P2) + at / 2) * RL_H2 + 2 * (pixel % RL_P2) + at % 2;
}

/* NHWC: a thread makes one pooled pixel of four channels. */
template <typename T> static __global__ void pool2_forward_last(uint32_t count, const T *__restrict__ y,
                                                                const float *__restrict__ bias, T *__restrict__ pooled,
                                                                uint8_t *__restrict__ codes, rl_train_state *state) {
  pdl_wait();
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t group = i % GROUPS, pixel = i / GROUPS % MAP, n = i / GROUPS / MAP;
  float best[4];
  int code[4];
  float4 in[4], b = load4(&bias[group * 4]);
  for (int at = 0; at < 4; at++) in[at] = load4(&y[((size_t)n * FULL + source(pixel, at)) * RL_C2 + group * 4]);
  float all = 0.0f; /* of FP16 values: finite unless one of them is not */
  for (int at = 0; at < 4; at++) {
    all += in[at].x + in[at].y + in[at].z + in[at].w;
    take(in[at].x + b.x, at, &best[0], &code[0]);
    take(in[at].y + b.y, at, &best[1], &code[1]);
    take(in[at].z + b.z, at, &best[2], &code[2]);
    take(in[at].w + b.w, at, &best[3], &code[3]);
  }
  if (sizeof(T) == 2 && state && !isfinite(all)) state->overflow = 1;
  for (int c = 0; c < 4; c++) {
    if (!(best[c] > 0.0f)) code[c] = RL_POOL_RELU_ZERO;
    best[c] = fmaxf(best[c], 0.0f);
  }
  store4(&pooled[(size_t)i * 4], make_float4(best[0], best[1], best[2], best[3]));
  *(uchar4 *)&codes[(size_t)i * 4] = make_uchar4(code[0], code[1], code[2], code[3]);
}

/* NCHW: a thread makes one pooled element. */
static __global__ void pool2_forward_first(uint32_t count, const float *__restrict__ y, const float *__restrict__ bias,
                                           float *__restrict__ pooled, uint8_t *__restrict__ codes) {
  pdl_wait();
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t pixel = i % MAP, plane = i / MAP;
  const float *from = &y[(size_t)plane * FULL + source(pixel, 0)];
  float2 top = *(const float2 *)from, bottom = *(const float2 *)(from + RL_H2);
  float b = bias[plane % RL_C2], best;
  int code;
  take(top.x + b, 0, &best, &code);
  take(top.y + b, 1, &best, &code);
  take(bottom.x + b, 2, &best, &code);
  take(bottom.y + b, 3, &best, &code);
  pooled[i] = fmaxf(best, 0.0f);
  codes[i] = best > 0.0f ? code : RL_POOL_RELU_ZERO;
}

int rl_pool2_forward(rl_format format, uint32_t batch, const void *y, const float *bias, void *pooled, uint8_t *codes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err) {
  uint32_t count = batch * MAP * (format.channels_last ? (uint32_t)GROUPS : (uint32_t)RL_C2), blocks = (count + 255) / 256;
  if (format.half)
    return rl_pdl_launch("pool2 forward", pool2_forward_last<__half>, blocks, 256, 0, stream, err, count, (const __half *)y, bias,
                         (__half *)pooled, codes, state);
  if (format.channels_last)
    return rl_pdl_launch("pool2 forward", pool2_forward_last<float>, blocks, 256, 0, stream, err, count, (const float *)y, bias,
                         (float *)pooled, codes, state);
  return rl_pdl_launch("pool2 forward", pool2_forward_first, blocks, 256, 0, stream, err, count, (const float *)y, bias,
                       (float *)pooled, codes);
}

/* --- backward ---------------------------------------------------------------------------------------------------------- */

enum { THREADS = 256, LANES = THREADS / GROUPS, MOST_ROWS = 128, WARPS = THREADS / 32, CHANNELS = 16 };

/* NHWC: a thread takes four channels and every so many pixels. */
template <typename T> static __global__ void __launch_bounds__(THREADS)
    pool2_backward_last(uint32_t pixels, const T *__restrict__ d_pooled, const uint8_t *__restrict__ codes, T *__restrict__ d_y,
                        float *__restrict__ partial, rl_train_state *state) {
  __shared__ float4 sums[LANES][GROUPS];
  uint32_t group = threadIdx.x % GROUPS, lane = threadIdx.x / GROUPS;
  float4 sum = make_float4(0, 0, 0, 0);
  bool overflow = false;
  pdl_wait();
  for (uint32_t i = blockIdx.x * LANES + lane; i < pixels; i += gridDim.x * LANES) {
    size_t from = ((size_t)i * GROUPS + group) * 4;
    float4 gradient = load4(&d_pooled[from]);
    uchar4 code = *(const uchar4 *)&codes[from];
    if (code.x == RL_POOL_RELU_ZERO) gradient.x = 0.0f;
    if (code.y == RL_POOL_RELU_ZERO) gradient.y = 0.0f;
    if (code.z == RL_POOL_RELU_ZERO) gradient.z = 0.0f;
    if (code.w == RL_POOL_RELU_ZERO) gradient.w = 0.0f;
    overflow |= !(isfinite(gradient.x) && isfinite(gradient.y) && isfinite(gradient.z) && isfinite(gradient.w));
    uint32_t pixel = i % MAP, n = i / MAP;
    for (int at = 0; at < 4; at++)
      store4(&d_y[((size_t)n * FULL + source(pixel, at)) * RL_C2 + group * 4],
             make_float4(code.x == at ? gradient.x : 0.0f, code.y == at ? gradient.y : 0.0f, code.z == at ? gradient.z : 0.0f,
                         code.w == at ? gradient.w : 0.0f));
    sum.x += gradient.x;
    sum.y += gradient.y;
    sum.z += gradient.z;
    sum.w += gradient.w;
  }
  if (sizeof(T) == 2 && overflow) state->overflow = 1;
  sums[lane][group] = sum;
  __syncthreads();
  if (threadIdx.x < RL_C2) {
    float total = 0.0f;
    for (int from = 0; from < LANES; from++) total += ((const float *)sums[from])[threadIdx.x];
    partial[blockIdx.x * RL_C2 + threadIdx.x] = total;
  }
}

/* NCHW: blocks of CHANNELS channels of an image (in turns when there are many); a warp takes a channel after the other. */
static __global__ void __launch_bounds__(THREADS)
    pool2_backward_first(uint32_t batch, const float *__restrict__ d_pooled, const uint8_t *__restrict__ codes,
                         float *__restrict__ d_y, float *__restrict__ partial) {
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  pdl_wait();
  for (uint32_t c = 0; c < CHANNELS / WARPS; c++) {
    uint32_t channel = blockIdx.y * CHANNELS + c * WARPS + warp;
    float sum = 0.0f;
    for (uint32_t n = blockIdx.x; n < batch; n += gridDim.x) {
      size_t plane = (size_t)n * RL_C2 + channel;
      for (uint32_t pixel = lane; pixel < MAP; pixel += 32) {
        int code = codes[plane * MAP + pixel];
        float gradient = code == RL_POOL_RELU_ZERO ? 0.0f : d_pooled[plane * MAP + pixel];
        float *to = &d_y[plane * FULL + source(pixel, 0)];
        *(float2 *)to = make_float2(code == 0 ? gradient : 0.0f, code == 1 ? gradient : 0.0f);
        *(float2 *)(to + RL_H2) = make_float2(code == 2 ? gradient : 0.0f, code == 3 ? gradient : 0.0f);
        sum += gradient;
      }
    }
    sum = warp_sum(sum);
    if (lane == 0) partial[blockIdx.x * RL_C2 + channel] = sum;
  }
}

uint32_t rl_pool2_partial_rows(rl_format format, uint32_t batch) {
  uint32_t rows = format.channels_last ? (batch * MAP + LANES - 1) / LANES : batch;
  return rows < MOST_ROWS ? rows : (uint32_t)MOST_ROWS;
}

int rl_pool2_backward(rl_format format, uint32_t batch, const void *d_pooled, const uint8_t *codes, void *d_y, float *partial,
                      rl_train_state *state, cudaStream_t stream, rl_error *err) {
  uint32_t rows = rl_pool2_partial_rows(format, batch);
  if (format.half)
    return rl_pdl_launch("pool2 backward", pool2_backward_last<__half>, rows, THREADS, 0, stream, err, batch * MAP,
                         (const __half *)d_pooled, codes, (__half *)d_y, partial, state);
  if (format.channels_last)
    return rl_pdl_launch("pool2 backward", pool2_backward_last<float>, rows, THREADS, 0, stream, err, batch * MAP,
                         (const float *)d_pooled, codes, (float *)d_y, partial, state);
  return rl_pdl_launch("pool2 backward", pool2_backward_first, dim3(rows, RL_C2 / CHANNELS), THREADS, 0, stream, err, batch,
                       (const float *)d_pooled, codes, (float *)d_y, partial);
}
