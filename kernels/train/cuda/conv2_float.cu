/* Implements the rl_conv2_float_ functions of kernels.h: conv2 (3×3 convolution from 32 channels of 14×14 pixels to 64 channels
 * of 12×12 pixels), bias, ReLU and 2×2 max-pooling in FP32 on FMA units, with one kernel for each direction. Activations are
 * NHWC: in [n][14][14][32], pooled [n][6][6][64], n images; weights are [64][9 taps][32]. The output before pooling is never
 * stored. Sums are in a fixed order.
 *
 * Forward: a block computes 32 output channels of one image after another. A warp computes 2 × 6 output pixels, which are half a
 * row of pooled pixels; a lane computes one output channel. All lanes read the same pixels (broadcast). Shortest possible time:
 * 5.1 µs on an H200 at batch 64, for 170 million FMA.
 *
 * Backward: the first blocks compute the weight gradient, the others the input gradient; a lane is an input channel. The gradient
 * of conv2's product is sparse: max-pooling and ReLU leave at most one nonzero value in each window of four. So both gradients
 * together need at most half of forward's FMA. All lanes of a warp read the same argmax, so a warp branches without divergence to
 * one of four sequences of nine FMA, whose registers are known at compile time.
 *
 * Memory: weights and images are copied to shared memory by cp.async. The copy of an image does not overlap with the computation
 * of another image. The block calls __syncthreads before an image is overwritten (WAR) and after it has been copied (RAW). */
#include "async_copy.cuh"
#include "cuda_check.h"
#include "pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/pool.cuh"

enum {
  TAPS = 9,
  WEIGHT_COLUMNS = TAPS * RL_CONV1_CHANNELS, /* values in a row of weights */
  VECTOR = 4,                                /* floats in 16 bytes */
  WARPS = 12,                                /* of a block */
  THREADS = WARPS * 32,
  WEIGHT_PITCH = WEIGHT_COLUMNS + VECTOR /* floats from one row of weights to the next in shared memory; 16-byte reads of eight
                                            rows are free of bank conflicts */
};

/* Begins to copy the weights of `channels` output channels to shared memory. */
static __device__ __forceinline__ void load_weights_async(const float *from, int channels, float *to) {
  for (int i = threadIdx.x; i < channels * WEIGHT_COLUMNS / VECTOR; i += THREADS) {
    int channel = i / (WEIGHT_COLUMNS / VECTOR), column = i % (WEIGHT_COLUMNS / VECTOR) * VECTOR;
    cp_async_16(&to[channel * WEIGHT_PITCH + column], &from[channel * WEIGHT_COLUMNS + column]);
  }
}

/* Begins to copy an image [196 pixels][32] to shared memory. */
static __device__ __forceinline__ void load_image_async(const float *from, float *to) {
  for (int i = threadIdx.x; i < RL_POOLED1_PIXELS * RL_CONV1_CHANNELS / VECTOR; i += THREADS)
    cp_async_16(&to[i * VECTOR], &from[i * VECTOR]);
}

enum {
  FORWARD_CHANNELS = 32,        /* output channels of a block */
  HALF_ROW = RL_CONV2_SIDE / 2, /* output pixels that a warp computes in each of its two rows */
  MAX_FORWARD_BLOCKS = 66       /* blocks for each half of the channels; in larger batches, blocks loop over images */
};
static_assert(WARPS == 2 * RL_POOLED2_SIDE, "a block must have one warp for each half row of pooled pixels");

static __device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

static __global__ void __launch_bounds__(THREADS)
    conv2_forward(uint32_t batch, const float *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias,
                  float *__restrict__ pooled, uint8_t *__restrict__ argmaxes) {
  extern __shared__ __align__(16) float shared[];
  float *weights_of_channel = shared, *image = shared + FORWARD_CHANNELS * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2, left = warp % 2 * HALF_ROW;
  const int channel = blockIdx.y * FORWARD_CHANNELS + lane;
  load_weights_async(&weights[blockIdx.y * FORWARD_CHANNELS * WEIGHT_COLUMNS], FORWARD_CHANNELS, weights_of_channel);
  const float channel_bias = bias[channel];
  const float4 *lane_weights = (const float4 *)&weights_of_channel[lane * WEIGHT_PITCH];
  pdl_wait();
  for (uint32_t n = blockIdx.x; n < batch; n += gridDim.x) {
    __syncthreads();
    load_image_async(&in[(size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS], image);
    cp_async_wait_all();
    __syncthreads();
    float sum[2][HALF_ROW] = {};
    for (int vector = 0; vector < RL_CONV1_CHANNELS / VECTOR; vector++) {
      float4 tap[TAPS];
#pragma unroll
      for (int t = 0; t < TAPS; t++) tap[t] = lane_weights[t * (RL_CONV1_CHANNELS / VECTOR) + vector];
#pragma unroll
      for (int y = 0; y < 4; y++) {
        float4 x[HALF_ROW + 2];
#pragma unroll
        for (int i = 0; i < HALF_ROW + 2; i++)
          x[i] = *(const float4 *)&image[((2 * row + y) * RL_POOLED1_SIDE + left + i) * RL_CONV1_CHANNELS + vector * VECTOR];
#pragma unroll
        for (int out_row = 0; out_row < 2; out_row++)
#pragma unroll
          for (int i = 0; i < HALF_ROW * 3 && y - out_row >= 0 && y - out_row < 3; i++)
            sum[out_row][i / 3] = dot(x[i / 3 + i % 3], tap[(y - out_row) * 3 + i % 3], sum[out_row][i / 3]);
      }
    }
#pragma unroll
    for (int i = 0; i < HALF_ROW / 2; i++) {
      float greatest;
      uint8_t argmax;
      bias_relu_pool(sum[0][2 * i], sum[0][2 * i + 1], sum[1][2 * i], sum[1][2 * i + 1], channel_bias, &greatest, &argmax);
      size_t offset = ((size_t)n * RL_POOLED2_PIXELS + row * RL_POOLED2_SIDE + left / 2 + i) * RL_CONV2_CHANNELS + channel;
      pooled[offset] = greatest;
      argmaxes[offset] = argmax;
    }
  }
}

int rl_conv2_float_forward(uint32_t batch, const float *in, const float *weights, const float *bias, float *pooled,
                           uint8_t *argmaxes, cudaStream_t stream, rl_error *err) {
  const int bytes = (FORWARD_CHANNELS * WEIGHT_PITCH + RL_POOLED1_PIXELS * RL_CONV1_CHANNELS) * (int)sizeof(float);
  dim3 grid(batch < MAX_FORWARD_BLOCKS ? batch : (uint32_t)MAX_FORWARD_BLOCKS, RL_CONV2_CHANNELS / FORWARD_CHANNELS);
  if (rl_cuda_check(cudaFuncSetAttribute(conv2_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                    "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("conv2 forward", conv2_forward, grid, THREADS, bytes, stream, err, batch, in, weights, bias, pooled,
                       argmaxes);
}

enum {
  ARGMAX_BITS = 4, /* a packed word holds the argmaxes of up to eight channels or pixels, ARGMAX_BITS bits each */
  ARGMAX_MASK = (1 << ARGMAX_BITS) - 1,
  /* Weight gradient: a block adds up the gradients of GROUP_CHANNELS output channels over a set of images and stores one row of
   * partial sums; a warp computes half of these channels from one row of pooled pixels. */
  GROUP_CHANNELS = 16,
  GROUPS = RL_CONV2_CHANNELS / GROUP_CHANNELS,
  WARP_CHANNELS = GROUP_CHANNELS / 2,
  MAX_PARTIAL_ROWS = 16,
  /* Images added up in a row of partial sums; more if the batch would otherwise need over MAX_PARTIAL_ROWS rows. */
  IMAGES_PER_ROW = 4,
  WEIGHT_SUMS = GROUP_CHANNELS * WEIGHT_COLUMNS,
  GROUP_VALUES = RL_POOLED2_PIXELS * GROUP_CHANNELS, /* pooled gradients of an image in a group of channels */
  WEIGHT_SHARED_FLOATS = RL_POOLED1_PIXELS * RL_CONV1_CHANNELS + GROUP_VALUES + RL_POOLED2_PIXELS * 2,
  /* Input gradient: a block computes one image after another; a warp adds up over half of the output channels, from one row of
   * pooled pixels. */
  ROW_PITCH = 8 /* floats from one row of six pooled gradients to the next */,
  MAX_INPUT_BLOCKS = 64,
  INPUT_SHARED_FLOATS = RL_CONV2_CHANNELS * WEIGHT_PITCH + RL_CONV2_CHANNELS * RL_POOLED2_SIDE * (ROW_PITCH + 1) +
                        RL_POOLED1_PIXELS * RL_CONV1_CHANNELS
};
static_assert(WEIGHT_SUMS <= RL_POOLED1_PIXELS * RL_CONV1_CHANNELS && WEIGHT_SHARED_FLOATS <= INPUT_SHARED_FLOATS,
              "both kinds of block must fit into the shared memory of the launch");
static_assert(THREADS == RL_CONV2_CHANNELS * RL_POOLED2_SIDE,
              "a block must have a thread for each row of pooled pixels of each output channel");

typedef struct conv2_backward_args {
  uint32_t batch, partial_rows; /* number of images; rows of partial sums */
  const float *in, *weights, *pooled_gradient;
  const uint8_t *argmaxes;
  float *in_gradient, *partial, *partial_bias; /* partial sums: [partial_rows][64][288], [partial_rows][64] */
} conv2_backward_args;

/* Loads the pooled gradients of image n into gradients[36 pixels][16], for 16 output channels beginning with `first`, with 0
 * where ReLU's output is zero. Loads their argmaxes into argmaxes[36][2], one packed word for eight channels. */
static __device__ __forceinline__ void load_group(const conv2_backward_args &args, uint32_t n, int first, float *gradients,
                                                  uint32_t *argmaxes) {
  for (int i = threadIdx.x; i < RL_POOLED2_PIXELS * 2; i += THREADS) {
    size_t offset = ((size_t)n * RL_POOLED2_PIXELS + i / 2) * RL_CONV2_CHANNELS + first + i % 2 * WARP_CHANNELS;
    uint2 raw = *(const uint2 *)&args.argmaxes[offset];
    float4 gradient[2] = {*(const float4 *)&args.pooled_gradient[offset], *(const float4 *)&args.pooled_gradient[offset + 4]};
    uint32_t packed = 0;
#pragma unroll
    for (int c = 0; c < WARP_CHANNELS; c++) {
      uint32_t argmax = (c < 4 ? raw.x : raw.y) >> c % 4 * 8 & 0xff;
      packed |= argmax << c * ARGMAX_BITS;
      if (argmax == RL_ARGMAX_RELU_ZERO) (&gradient[c / 4].x)[c % 4] = 0.0f;
    }
    argmaxes[i] = packed;
    *(float4 *)&gradients[i * WARP_CHANNELS] = gradient[0];
    *(float4 *)&gradients[i * WARP_CHANNELS + 4] = gradient[1];
  }
}

/* Adds to sums[tap] the product of the gradient of the output at POSITION of a window and the input pixel under the tap. x: the 4
 * × 4 input pixels that the window depends on. */
template <int POSITION>
static __device__ __forceinline__ void accumulate_weight_taps(float *sums, float gradient, const float *x) {
#pragma unroll
  for (int t = 0; t < TAPS; t++) sums[t] = fmaf(gradient, x[(POSITION / 2 + t / 3) * 4 + POSITION % 2 + t % 3], sums[t]);
}

/* Computes row partial_row of the partial sums of the gradients of weights and bias, for a group of GROUP_CHANNELS output
 * channels, from the images partial_row, partial_row + args.partial_rows, … */
static __device__ void weight_gradient(const conv2_backward_args &args, uint32_t partial_row, int group, float *shared) {
  float *image = shared, *gradients = shared + RL_POOLED1_PIXELS * RL_CONV1_CHANNELS, *sums = shared;
  uint32_t *packed_argmaxes = (uint32_t *)(gradients + GROUP_VALUES);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp % 2, row = warp / 2;
  float sum[WARP_CHANNELS][TAPS] = {}, bias = 0.0f;
  for (uint32_t n = partial_row; n < args.batch; n += args.partial_rows) {
    __syncthreads();
    load_image_async(&args.in[(size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS], image);
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
      const float gradient[WARP_CHANNELS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      float x[16];
#pragma unroll
      for (int k = 0; k < 16; k++) x[k] = image[((2 * row + k / 4) * RL_POOLED1_SIDE + 2 * i + k % 4) * RL_CONV1_CHANNELS + lane];
#pragma unroll
      for (int c = 0; c < WARP_CHANNELS; c++) switch (packed >> c * ARGMAX_BITS & ARGMAX_MASK) {
          case 0: accumulate_weight_taps<0>(sum[c], gradient[c], x); break;
          case 1: accumulate_weight_taps<1>(sum[c], gradient[c], x); break;
          case 2: accumulate_weight_taps<2>(sum[c], gradient[c], x); break;
          case 3: accumulate_weight_taps<3>(sum[c], gradient[c], x); break;
          default: break;
        }
    }
  }
  if (threadIdx.x < GROUP_CHANNELS)
    args.partial_bias[partial_row * RL_CONV2_CHANNELS + group * GROUP_CHANNELS + threadIdx.x] = bias;
  /* The warps add up their sums in shared memory, one row of windows after another. */
  for (int sum_row = 0; sum_row < RL_POOLED2_SIDE; sum_row++) {
    __syncthreads();
    if (row != sum_row) continue;
#pragma unroll
    for (int c = 0; c < WARP_CHANNELS; c++)
#pragma unroll
      for (int t = 0; t < TAPS; t++) {
        float *to = &sums[(half * WARP_CHANNELS + c) * WEIGHT_COLUMNS + t * RL_CONV1_CHANNELS + lane];
        *to = sum_row == 0 ? sum[c][t] : *to + sum[c][t];
      }
  }
  __syncthreads();
  float4 *to = (float4 *)&args.partial[((size_t)partial_row * RL_CONV2_CHANNELS + group * GROUP_CHANNELS) * WEIGHT_COLUMNS];
  for (int i = threadIdx.x; i < WEIGHT_SUMS / VECTOR; i += THREADS) to[i] = ((const float4 *)sums)[i];
}

/* Adds to in_gradient[4][14] the products of the gradient of the output at POSITION of window i of a row and the nine weights. */
template <int POSITION> static __device__ __forceinline__ void accumulate_input_taps(float in_gradient[4][RL_POOLED1_SIDE], int i,
                                                                                     float gradient,
                                                                                     const float *weights_of_channel) {
#pragma unroll
  for (int t = 0; t < TAPS; t++)
    in_gradient[POSITION / 2 + t / 3][2 * i + POSITION % 2 + t % 3] =
        fmaf(gradient, weights_of_channel[t], in_gradient[POSITION / 2 + t / 3][2 * i + POSITION % 2 + t % 3]);
}

/* Loads this thread's row of six pooled gradients of image n, with 0 where ReLU's output is zero, and stores their argmaxes in a
 * packed word. A thread has one output channel and one row. */
static __device__ __forceinline__ void load_rows(const conv2_backward_args &args, uint32_t n, float *gradients,
                                                 uint32_t *packed_argmaxes) {
  const int channel = threadIdx.x % RL_CONV2_CHANNELS, row = threadIdx.x / RL_CONV2_CHANNELS;
  uint32_t packed = 0;
  for (int i = 0; i < RL_POOLED2_SIDE; i++) {
    size_t offset = ((size_t)n * RL_POOLED2_PIXELS + row * RL_POOLED2_SIDE + i) * RL_CONV2_CHANNELS + channel;
    uint32_t argmax = args.argmaxes[offset];
    packed |= argmax << i * ARGMAX_BITS;
    gradients[(row * RL_CONV2_CHANNELS + channel) * ROW_PITCH + i] =
        argmax == RL_ARGMAX_RELU_ZERO ? 0.0f : args.pooled_gradient[offset];
  }
  packed_argmaxes[row * RL_CONV2_CHANNELS + channel] = packed;
}

/* Computes in_gradient of the images block, block + blocks, … block: index of this block among the `blocks` input gradient
 * blocks. */
static __device__ void input_gradient(const conv2_backward_args &args, uint32_t block, uint32_t blocks, float *shared) {
  float *weights_of_channel = shared, *gradients = weights_of_channel + RL_CONV2_CHANNELS * WEIGHT_PITCH,
        *image = gradients + RL_CONV2_CHANNELS * RL_POOLED2_SIDE * ROW_PITCH;
  uint32_t *packed_argmaxes = (uint32_t *)(image + RL_POOLED1_PIXELS * RL_CONV1_CHANNELS);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp % 2, row = warp / 2;
  load_weights_async(args.weights, RL_CONV2_CHANNELS, weights_of_channel);
  pdl_wait();
  for (uint32_t n = block; n < args.batch; n += blocks) {
    __syncthreads();
    load_rows(args, n, gradients, packed_argmaxes);
    cp_async_wait_all();
    __syncthreads();
    float in_gradient[4][RL_POOLED1_SIDE] = {};
    for (int c = half * (RL_CONV2_CHANNELS / 2); c < (half + 1) * (RL_CONV2_CHANNELS / 2); c++) {
      const float4 low = *(const float4 *)&gradients[(row * RL_CONV2_CHANNELS + c) * ROW_PITCH];
      const float2 high = *(const float2 *)&gradients[(row * RL_CONV2_CHANNELS + c) * ROW_PITCH + 4];
      const float gradient[RL_POOLED2_SIDE] = {low.x, low.y, low.z, low.w, high.x, high.y};
      const uint32_t packed = packed_argmaxes[row * RL_CONV2_CHANNELS + c];
      float tap[TAPS];
#pragma unroll
      for (int t = 0; t < TAPS; t++) tap[t] = weights_of_channel[c * WEIGHT_PITCH + t * RL_CONV1_CHANNELS + lane];
#pragma unroll
      for (int i = 0; i < RL_POOLED2_SIDE; i++) switch (packed >> i * ARGMAX_BITS & ARGMAX_MASK) {
          case 0: accumulate_input_taps<0>(in_gradient, i, gradient[i], tap); break;
          case 1: accumulate_input_taps<1>(in_gradient, i, gradient[i], tap); break;
          case 2: accumulate_input_taps<2>(in_gradient, i, gradient[i], tap); break;
          case 3: accumulate_input_taps<3>(in_gradient, i, gradient[i], tap); break;
          default: break;
        }
    }
    /* The warps add up their in_gradient in the image in shared memory. Each row of windows has the sums of two warps, which
     * cover four image rows; two of these rows are also covered by the next row of windows. Therefore the warps add in four
     * turns, with a __syncthreads before each: first the even rows of windows, for one half of the output channels and then for
     * the other half, then the odd rows in the same way. */
    for (int turn = 0; turn < 4; turn++) {
      __syncthreads();
      if (row % 2 != turn / 2 || half != turn % 2) continue;
#pragma unroll
      for (int y = 0; y < 4; y++) {
        const bool is_first = turn == 0 || (turn == 2 && row == RL_POOLED2_SIDE - 1 && y >= 2);
#pragma unroll
        for (int x = 0; x < RL_POOLED1_SIDE; x++) {
          float *sum = &image[((2 * row + y) * RL_POOLED1_SIDE + x) * RL_CONV1_CHANNELS + lane];
          *sum = is_first ? in_gradient[y][x] : *sum + in_gradient[y][x];
        }
      }
    }
    __syncthreads();
    float4 *out = (float4 *)&args.in_gradient[(size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS];
    for (int i = threadIdx.x; i < RL_POOLED1_PIXELS * RL_CONV1_CHANNELS / VECTOR; i += THREADS)
      out[i] = ((const float4 *)image)[i];
  }
}

/* The first blocks compute the weight gradient, the others the input gradient. At batch 64 every block has an SM to itself. */
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
  uint32_t rows = (batch + IMAGES_PER_ROW - 1) / IMAGES_PER_ROW;
  return rows < MAX_PARTIAL_ROWS ? rows : (uint32_t)MAX_PARTIAL_ROWS;
}

int rl_conv2_float_backward(uint32_t batch, const float *in, const float *weights, const float *pooled_gradient,
                            const uint8_t *argmaxes, float *in_gradient, float *partial, float *partial_bias, cudaStream_t stream,
                            rl_error *err) {
  const int bytes = INPUT_SHARED_FLOATS * (int)sizeof(float);
  const conv2_backward_args args = {
      batch, rl_conv2_float_partial_rows(batch), in, weights, pooled_gradient, argmaxes, in_gradient, partial, partial_bias};
  uint32_t blocks = GROUPS * args.partial_rows + (batch < MAX_INPUT_BLOCKS ? batch : (uint32_t)MAX_INPUT_BLOCKS);
  if (rl_cuda_check(cudaFuncSetAttribute(conv2_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                    "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("conv2 backward", conv2_backward, blocks, THREADS, bytes, stream, err, args);
}
