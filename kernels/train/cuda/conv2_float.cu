/* conv2, 32→64 channels on 14×14 pixels, in FP32 on FMA units: one kernel for each direction, activations NHWC, weights [64][9
 * taps][32]. The output before pooling is never stored. Sums are in a fixed order.
 *
 * Forward, partition: a block computes 32 channels of an image, a warp 2 × 6 output pixels (half a row of pooled ones), a lane a
 * channel; image values are the same for all lanes (broadcast). Floor: 170 million FMA at batch 64, 5.1 µs on an H200.
 *
 * Backward, partition: some blocks compute the weight gradient, the others the input gradient; lanes are input channels. The
 * product's gradient is sparse: max-pooling and ReLU leave at most one nonzero value per window of four. So both gradients
 * together need at most half of forward's FMA. All lanes of a warp have the same argmax, so a warp branches without divergence
 * to one of four sequences of nine FMA with fixed registers.
 *
 * Data movement: weights and images are copied to shared memory by cp.async, without overlap between images. */
#include "cuda_check.h"
#include "async_copy.cuh"
#include "train/cuda/pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/pool.cuh"

enum {
  TAPS = 9,
  WEIGHT_COLUMNS = TAPS * RL_C1,
  VECTOR = 4, /* floats in 16 bytes */
  WARPS = 12,
  THREADS = WARPS * 32,
  WEIGHT_PITCH = WEIGHT_COLUMNS + VECTOR /* 16-byte reads of eight rows are free of bank conflicts */
};

/* Begins to copy `channels` rows of weights. */
static __device__ __forceinline__ void load_weights_async(const float *from, int channels, float *to) {
  for (int i = threadIdx.x; i < channels * WEIGHT_COLUMNS / VECTOR; i += THREADS) {
    int channel = i / (WEIGHT_COLUMNS / VECTOR), column = i % (WEIGHT_COLUMNS / VECTOR) * VECTOR;
    cp_async_16(&to[channel * WEIGHT_PITCH + column], &from[channel * WEIGHT_COLUMNS + column]);
  }
}

static __device__ __forceinline__ void load_image_async(const float *from, float *to) {
  for (int i = threadIdx.x; i < RL_POOLED1_PIXELS * RL_C1 / VECTOR; i += THREADS) cp_async_16(&to[i * VECTOR], &from[i * VECTOR]);
}

enum {
  FORWARD_CHANNELS = 32,
  HALF_ROW = RL_CONV2_SIDE / 2, /* output pixels of a warp in each of its two rows */
  MAX_FORWARD_BLOCKS = 66       /* for each half of the channels; blocks loop over more images */
};
static_assert(WARPS == 2 * RL_POOLED2_SIDE, "one warp for each half row of pooled pixels");

static __device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

static __global__ void __launch_bounds__(THREADS)
    conv2_forward(uint32_t batch, const float *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias,
                  float *__restrict__ pooled, uint8_t *__restrict__ argmaxes) {
  extern __shared__ __align__(16) float shared[];
  float *w = shared, *image = shared + FORWARD_CHANNELS * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2, left = warp % 2 * HALF_ROW;
  const int channel = blockIdx.y * FORWARD_CHANNELS + lane;
  load_weights_async(&weights[blockIdx.y * FORWARD_CHANNELS * WEIGHT_COLUMNS], FORWARD_CHANNELS, w);
  const float b = bias[channel];
  const float4 *lane_weights = (const float4 *)&w[lane * WEIGHT_PITCH];
  pdl_wait();
  for (uint32_t n = blockIdx.x; n < batch; n += gridDim.x) {
    __syncthreads();
    load_image_async(&in[(size_t)n * RL_POOLED1_PIXELS * RL_C1], image);
    cp_async_wait_all();
    __syncthreads();
    float sum[2][HALF_ROW] = {};
    for (int vector = 0; vector < RL_C1 / VECTOR; vector++) {
      float4 tap[TAPS];
#pragma unroll
      for (int t = 0; t < TAPS; t++) tap[t] = lane_weights[t * (RL_C1 / VECTOR) + vector];
#pragma unroll
      for (int y = 0; y < 4; y++) {
        float4 x[HALF_ROW + 2];
#pragma unroll
        for (int i = 0; i < HALF_ROW + 2; i++)
          x[i] = *(const float4 *)&image[((2 * row + y) * RL_POOLED1_SIDE + left + i) * RL_C1 + vector * VECTOR];
#pragma unroll
        for (int out_row = 0; out_row < 2; out_row++)
#pragma unroll
          for (int i = 0; i < HALF_ROW * 3 && y - out_row >= 0 && y - out_row < 3; i++)
            sum[out_row][i / 3] = dot(x[i / 3 + i % 3], tap[(y - out_row) * 3 + i % 3], sum[out_row][i / 3]);
      }
    }
#pragma unroll
    for (int i = 0; i < HALF_ROW / 2; i++) {
      float best;
      uint8_t argmax;
      bias_relu_pool(sum[0][2 * i], sum[0][2 * i + 1], sum[1][2 * i], sum[1][2 * i + 1], b, &best, &argmax);
      size_t offset = ((size_t)n * RL_POOLED2_PIXELS + row * RL_POOLED2_SIDE + left / 2 + i) * RL_C2 + channel;
      pooled[offset] = best;
      argmaxes[offset] = argmax;
    }
  }
}

int rl_conv2_float_forward(uint32_t batch, const float *in, const float *weights, const float *bias, float *pooled,
                           uint8_t *argmaxes, cudaStream_t stream, rl_error *err) {
  const int bytes = (FORWARD_CHANNELS * WEIGHT_PITCH + RL_POOLED1_PIXELS * RL_C1) * (int)sizeof(float);
  dim3 grid(batch < MAX_FORWARD_BLOCKS ? batch : (uint32_t)MAX_FORWARD_BLOCKS, RL_C2 / FORWARD_CHANNELS);
  if (rl_cuda_check(cudaFuncSetAttribute(conv2_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                    "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("conv2 forward", conv2_forward, grid, THREADS, bytes, stream, err, batch, in, weights, bias, pooled,
                       argmaxes);
}

enum {
  ARGMAX_BITS = 4, /* a packed word holds the argmaxes of several channels or pixels */
  ARGMAX_MASK = (1 << ARGMAX_BITS) - 1,
  /* Weight gradient: a block computes GROUP_CHANNELS output channels over a set of images; a warp half of these channels, from
   * one row of pooled pixels. */
  GROUP_CHANNELS = 16,
  GROUPS = RL_C2 / GROUP_CHANNELS,
  WARP_CHANNELS = GROUP_CHANNELS / 2,
  MAX_PARTIAL_ROWS = 16,
  IMAGES_PER_BLOCK = 4 /* up to MAX_PARTIAL_ROWS rows; then more */,
  WEIGHT_SUMS = GROUP_CHANNELS * WEIGHT_COLUMNS,
  GROUP_VALUES = RL_POOLED2_PIXELS * GROUP_CHANNELS,
  WEIGHT_SHARED_FLOATS = RL_POOLED1_PIXELS * RL_C1 + GROUP_VALUES + RL_POOLED2_PIXELS * 2,
  /* Input gradient: a block computes an image; a warp sums over half of the output channels, from one row of pooled pixels. */
  ROW_PITCH = 8 /* floats from a row of six pooled gradients to the next */,
  MAX_INPUT_BLOCKS = 64,
  INPUT_SHARED_FLOATS = RL_C2 * WEIGHT_PITCH + RL_C2 * RL_POOLED2_SIDE * (ROW_PITCH + 1) + RL_POOLED1_PIXELS * RL_C1
};
static_assert(WEIGHT_SUMS <= RL_POOLED1_PIXELS * RL_C1 && WEIGHT_SHARED_FLOATS <= INPUT_SHARED_FLOATS,
              "both kinds of block fit into the shared memory of the launch");
static_assert(THREADS == RL_C2 * RL_POOLED2_SIDE, "one thread for each row of pooled pixels of an output channel");

typedef struct conv2_backward_args {
  uint32_t batch, partial_rows; /* images; rows of partial sums */
  const float *in, *weights, *d_pooled;
  const uint8_t *argmaxes;
  float *d_in, *partial, *partial_bias;
} conv2_backward_args;

/* Loads the pooled gradients of 16 channels into gradients[36][16], 0 where ReLU gave zero, and their argmaxes into
 * argmaxes[36][2], one word for eight channels. */
static __device__ __forceinline__ void load_group(const conv2_backward_args &args, uint32_t n, int first, float *gradients,
                                                  uint32_t *argmaxes) {
  for (int i = threadIdx.x; i < RL_POOLED2_PIXELS * 2; i += THREADS) {
    size_t offset = ((size_t)n * RL_POOLED2_PIXELS + i / 2) * RL_C2 + first + i % 2 * WARP_CHANNELS;
    uint2 raw = *(const uint2 *)&args.argmaxes[offset];
    float4 g[2] = {*(const float4 *)&args.d_pooled[offset], *(const float4 *)&args.d_pooled[offset + 4]};
    uint32_t packed = 0;
#pragma unroll
    for (int c = 0; c < WARP_CHANNELS; c++) {
      uint32_t argmax = (c < 4 ? raw.x : raw.y) >> c % 4 * 8 & 0xff;
      packed |= argmax << c * ARGMAX_BITS;
      if (argmax == RL_ARGMAX_RELU_ZERO) (&g[c / 4].x)[c % 4] = 0.0f;
    }
    argmaxes[i] = packed;
    *(float4 *)&gradients[i * WARP_CHANNELS] = g[0];
    *(float4 *)&gradients[i * WARP_CHANNELS + 4] = g[1];
  }
}

/* sums[tap] += g × input, for the output at POSITION of a window. x: the window's 4 × 4 inputs. */
template <int POSITION> static __device__ __forceinline__ void accumulate_weight_taps(float *sums, float g, const float *x) {
#pragma unroll
  for (int t = 0; t < TAPS; t++) sums[t] = fmaf(g, x[(POSITION / 2 + t / 3) * 4 + POSITION % 2 + t % 3], sums[t]);
}

/* Computes row partial_row of the partial sums, for a group of GROUP_CHANNELS channels, from images partial_row, partial_row +
 * args.partial_rows, … */
static __device__ void weight_gradient(const conv2_backward_args &args, uint32_t partial_row, int group, float *shared) {
  float *image = shared, *gradients = shared + RL_POOLED1_PIXELS * RL_C1, *sums = shared;
  uint32_t *packed_argmaxes = (uint32_t *)(gradients + GROUP_VALUES);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp % 2, row = warp / 2;
  float sum[WARP_CHANNELS][TAPS] = {}, bias = 0.0f;
  for (uint32_t n = partial_row; n < args.batch; n += args.partial_rows) {
    __syncthreads();
    load_image_async(&args.in[(size_t)n * RL_POOLED1_PIXELS * RL_C1], image);
    load_group(args, n, group * GROUP_CHANNELS, gradients, packed_argmaxes);
    cp_async_wait_all();
    __syncthreads();
    if (threadIdx.x < GROUP_CHANNELS)
      for (int i = 0; i < RL_POOLED2_PIXELS; i++) bias += gradients[i * GROUP_CHANNELS + threadIdx.x];
    for (int i = 0; i < RL_POOLED2_SIDE; i++) {
      const int pixel = row * RL_POOLED2_SIDE + i;
      const uint32_t packed = packed_argmaxes[pixel * 2 + half];
      const float4 *pair = (const float4 *)&gradients[pixel * GROUP_CHANNELS + half * WARP_CHANNELS], low = pair[0],
                   high = pair[1];
      const float g[WARP_CHANNELS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      float x[16];
#pragma unroll
      for (int k = 0; k < 16; k++) x[k] = image[((2 * row + k / 4) * RL_POOLED1_SIDE + 2 * i + k % 4) * RL_C1 + lane];
#pragma unroll
      for (int c = 0; c < WARP_CHANNELS; c++) switch (packed >> c * ARGMAX_BITS & ARGMAX_MASK) {
          case 0: accumulate_weight_taps<0>(sum[c], g[c], x); break;
          case 1: accumulate_weight_taps<1>(sum[c], g[c], x); break;
          case 2: accumulate_weight_taps<2>(sum[c], g[c], x); break;
          case 3: accumulate_weight_taps<3>(sum[c], g[c], x); break;
          default: break;
        }
    }
  }
  if (threadIdx.x < GROUP_CHANNELS) args.partial_bias[partial_row * RL_C2 + group * GROUP_CHANNELS + threadIdx.x] = bias;
  for (int sum_row = 0; sum_row < RL_POOLED2_SIDE; sum_row++) { /* adds up the sums of the six rows of windows, a row at a time */
    __syncthreads();
    if (row != sum_row) continue;
#pragma unroll
    for (int c = 0; c < WARP_CHANNELS; c++)
#pragma unroll
      for (int t = 0; t < TAPS; t++) {
        float *to = &sums[(half * WARP_CHANNELS + c) * WEIGHT_COLUMNS + t * RL_C1 + lane];
        *to = sum_row == 0 ? sum[c][t] : *to + sum[c][t];
      }
  }
  __syncthreads();
  float4 *to = (float4 *)&args.partial[((size_t)partial_row * RL_C2 + group * GROUP_CHANNELS) * WEIGHT_COLUMNS];
  for (int i = threadIdx.x; i < WEIGHT_SUMS / VECTOR; i += THREADS) to[i] = ((const float4 *)sums)[i];
}

/* d_in[4][14] += g × the nine weights, for the output at POSITION of window i of a row. */
template <int POSITION>
static __device__ __forceinline__ void accumulate_input_taps(float d_in[4][RL_POOLED1_SIDE], int i, float g, const float *w) {
#pragma unroll
  for (int t = 0; t < TAPS; t++)
    d_in[POSITION / 2 + t / 3][2 * i + POSITION % 2 + t % 3] =
        fmaf(g, w[t], d_in[POSITION / 2 + t / 3][2 * i + POSITION % 2 + t % 3]);
}

/* Loads this thread's row of pooled gradients, 0 where ReLU gave zero, and its argmaxes into a word. */
static __device__ __forceinline__ void load_rows(const conv2_backward_args &args, uint32_t n, float *gradients,
                                                 uint32_t *packed_argmaxes) {
  const int channel = threadIdx.x % RL_C2, row = threadIdx.x / RL_C2;
  uint32_t packed = 0;
  for (int i = 0; i < RL_POOLED2_SIDE; i++) {
    size_t offset = ((size_t)n * RL_POOLED2_PIXELS + row * RL_POOLED2_SIDE + i) * RL_C2 + channel;
    uint32_t argmax = args.argmaxes[offset];
    packed |= argmax << i * ARGMAX_BITS;
    gradients[(row * RL_C2 + channel) * ROW_PITCH + i] = argmax == RL_ARGMAX_RELU_ZERO ? 0.0f : args.d_pooled[offset];
  }
  packed_argmaxes[row * RL_C2 + channel] = packed;
}

/* Computes d_in of images block, block + blocks, … */
static __device__ void input_gradient(const conv2_backward_args &args, uint32_t block, uint32_t blocks, float *shared) {
  float *w = shared, *gradients = w + RL_C2 * WEIGHT_PITCH, *image = gradients + RL_C2 * RL_POOLED2_SIDE * ROW_PITCH;
  uint32_t *packed_argmaxes = (uint32_t *)(image + RL_POOLED1_PIXELS * RL_C1);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp % 2, row = warp / 2;
  load_weights_async(args.weights, RL_C2, w);
  pdl_wait();
  for (uint32_t n = block; n < args.batch; n += blocks) {
    __syncthreads();
    load_rows(args, n, gradients, packed_argmaxes);
    cp_async_wait_all();
    __syncthreads();
    float d_in[4][RL_POOLED1_SIDE] = {};
    for (int c = half * (RL_C2 / 2); c < (half + 1) * (RL_C2 / 2); c++) {
      const float4 low = *(const float4 *)&gradients[(row * RL_C2 + c) * ROW_PITCH];
      const float2 high = *(const float2 *)&gradients[(row * RL_C2 + c) * ROW_PITCH + 4];
      const float g[RL_POOLED2_SIDE] = {low.x, low.y, low.z, low.w, high.x, high.y};
      const uint32_t packed = packed_argmaxes[row * RL_C2 + c];
      float tap[TAPS];
#pragma unroll
      for (int t = 0; t < TAPS; t++) tap[t] = w[c * WEIGHT_PITCH + t * RL_C1 + lane];
#pragma unroll
      for (int i = 0; i < RL_POOLED2_SIDE; i++) switch (packed >> i * ARGMAX_BITS & ARGMAX_MASK) {
          case 0: accumulate_input_taps<0>(d_in, i, g[i], tap); break;
          case 1: accumulate_input_taps<1>(d_in, i, g[i], tap); break;
          case 2: accumulate_input_taps<2>(d_in, i, g[i], tap); break;
          case 3: accumulate_input_taps<3>(d_in, i, g[i], tap); break;
          default: break;
        }
    }
    /* Two warps compute each row of windows, and the row covers four image rows, of which it shares two with the next row of
     * windows. So warps add their sums to the image in four turns: the first warps of the even rows of windows, the second warps
     * of the even rows, then the same for the odd rows. */
    for (int turn = 0; turn < 4; turn++) {
      __syncthreads();
      if (row % 2 != turn / 2 || half != turn % 2) continue;
#pragma unroll
      for (int y = 0; y < 4; y++) {
        const bool is_first = turn == 0 || (turn == 2 && row == RL_POOLED2_SIDE - 1 && y >= 2);
#pragma unroll
        for (int x = 0; x < RL_POOLED1_SIDE; x++) {
          float *sum = &image[((2 * row + y) * RL_POOLED1_SIDE + x) * RL_C1 + lane];
          *sum = is_first ? d_in[y][x] : *sum + d_in[y][x];
        }
      }
    }
    __syncthreads();
    float4 *out = (float4 *)&args.d_in[(size_t)n * RL_POOLED1_PIXELS * RL_C1];
    for (int i = threadIdx.x; i < RL_POOLED1_PIXELS * RL_C1 / VECTOR; i += THREADS) out[i] = ((const float4 *)image)[i];
  }
}

/* Both gradients at once; one block per multiprocessor at batch 64. */
static __global__ void __launch_bounds__(THREADS, 1) conv2_backward(conv2_backward_args args) {
  extern __shared__ __align__(16) float shared[];
  const uint32_t weight_blocks = GROUPS * args.partial_rows;
  if (blockIdx.x < weight_blocks) {
    pdl_wait();
    weight_gradient(args, blockIdx.x / GROUPS, blockIdx.x % GROUPS, shared);
  } else {
    input_gradient(args, blockIdx.x - weight_blocks, gridDim.x - weight_blocks, shared);
  }
}

uint32_t rl_conv2_float_partial_rows(uint32_t batch) {
  uint32_t rows = (batch + IMAGES_PER_BLOCK - 1) / IMAGES_PER_BLOCK;
  return rows < MAX_PARTIAL_ROWS ? rows : (uint32_t)MAX_PARTIAL_ROWS;
}

int rl_conv2_float_backward(uint32_t batch, const float *in, const float *weights, const float *d_pooled, const uint8_t *argmaxes,
                            float *d_in, float *partial, float *partial_bias, cudaStream_t stream, rl_error *err) {
  const int bytes = INPUT_SHARED_FLOATS * (int)sizeof(float);
  const conv2_backward_args args = {
      batch, rl_conv2_float_partial_rows(batch), in, weights, d_pooled, argmaxes, d_in, partial, partial_bias};
  uint32_t blocks = GROUPS * args.partial_rows + (batch < MAX_INPUT_BLOCKS ? batch : (uint32_t)MAX_INPUT_BLOCKS);
  if (rl_cuda_check(cudaFuncSetAttribute(conv2_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                    "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("conv2 backward", conv2_backward, blocks, THREADS, bytes, stream, err, args);
}
