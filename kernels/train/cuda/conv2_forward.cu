/* Implements rl_conv2_forward (kernels.h): conv2, bias, ReLU and 2×2 max-pooling in one kernel, in FP16 on tensor cores
 * (conv2.cuh): in [n][14][14][32], pooled [n][6][6][64], n images. The 12×12×64 outputs of an image are pooled in registers and
 * never stored. Sums are FP32, in a fixed order.
 *
 * Division of work: a block computes 32 channels of a set of images; a warp computes tiles of 16 pixels × these 32 channels.
 *
 * Memory: loads of operands are the bottleneck. Therefore each warp keeps the weights of its 32 channels in registers, and shared
 * memory delivers only the pixels, 512 bytes for every four mma. Images are loaded in groups by cp.async into two buffers in
 * shared memory, one group ahead. The block calls __syncthreads before a group is read (RAW), and again before its buffer is
 * overwritten (WAR).
 *
 * Shortest possible time: 4 µs on an H200 at batch 512, for 2.7 GFLOP at the rate of mma.sync. */
#include "pdl.cuh"
#include "train/cuda/conv2.cuh"
#include "train/cuda/pool.cuh"
#include "train/cuda/vector.cuh"

enum {
  CHANNELS = 32 /* output channels of a block */,
  WARPS = 8,
  THREADS = WARPS * 32,
  STEPS = WEIGHT_COLUMNS / 16, /* mma instructions along the depth of a product */
  /* Blocks for each half of the channels. Both halves together have one block for each SM of an H200, because registers allow
   * only one block on an SM. In larger batches, blocks loop over images. */
  MAX_BLOCKS = 66,
  MAX_GROUP_IMAGES = 4 /* images that are loaded together: 36 tiles, nine for each warp scheduler */,
  WEIGHT_BYTES = 2 * CHANNELS * WEIGHT_PITCH, /* of the weights in shared memory */
  IMAGE_BYTES = 2 * IN_IMAGE_HALVES           /* of an image in shared memory */
};

/* Begins to copy a group of images: first, first + stride, …, at most group_images of them. Commits the copies as one cp.async
 * group. */
static __device__ __forceinline__ void load_group_async(const __half *in, uint32_t batch, uint32_t first, uint32_t stride,
                                                        uint32_t group_images, __half *to) {
  for (uint32_t i = 0; i < group_images && first + i * stride < batch; i++)
    load_image_async<THREADS>(&in[(size_t)(first + i * stride) * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS],
                              &to[i * IN_IMAGE_HALVES]);
  cp_async_commit_group();
}

/* Begins to copy the weights of 32 channels. The rows are permuted so that the eight channels of a lane's four accumulators are
 * adjacent channels. */
static __device__ __forceinline__ void load_weights_async(const __half *weights, __half *to) {
  for (int i = threadIdx.x; i < CHANNELS * WEIGHT_COLUMNS / VECTOR; i += THREADS) {
    const int channel = i / (WEIGHT_COLUMNS / VECTOR), column = i % (WEIGHT_COLUMNS / VECTOR) * VECTOR;
    const int row = channel % 8 / 2 * 8 + channel / 8 * 2 + channel % 2;
    cp_async_16(&to[row * WEIGHT_PITCH + column], &weights[channel * WEIGHT_COLUMNS + column]);
  }
}

/* Returns the greater value, or NaN if either is NaN (PTX ISA 9.0, "max"). */
static __device__ __forceinline__ float max_or_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/* Applies bias, pooling and ReLU to a tile and stores the result. A lane holds two pixels of a window for eight channels: the
 * left ones, or, if `right`, the right ones. The lane with index `lane ^ 4` holds the other two pixels. The two lanes exchange
 * half of the channels, so that each lane has all four pixels of four channels. */
static __device__ __forceinline__ void pool_tile(const float sum[4][4], bool right, float4 bias, __half *pooled,
                                                 uint8_t *argmaxes) {
  float own[4][2], received[4][2], greatest[4];
  uint8_t argmax[4];
  for (int c = 0; c < 4; c++)
    for (int row = 0; row < 2; row++) {
      const float low = sum[c / 2][row * 2 + c % 2], high = sum[2 + c / 2][row * 2 + c % 2];
      own[c][row] = right ? high : low;
      received[c][row] = __shfl_xor_sync(0xffffffffu, right ? low : high, 4);
    }
  for (int c = 0; c < 4; c++)
    bias_relu_pool(right ? received[c][0] : own[c][0], right ? own[c][0] : received[c][0], right ? received[c][1] : own[c][1],
                   right ? own[c][1] : received[c][1], (&bias.x)[c], &greatest[c], &argmax[c]);
  store4(pooled, make_float4(greatest[0], greatest[1], greatest[2], greatest[3]));
  *(uchar4 *)argmaxes = make_uchar4(argmax[0], argmax[1], argmax[2], argmax[3]);
}

/* group_images: number of images that are loaded together. state: NULL if overflow is not to be recorded. The pointers are
 * parameters instead of members of a struct, so that __restrict__ applies to them. */
static __global__ void __launch_bounds__(THREADS)
    conv2_forward(uint32_t batch, uint32_t group_images, const __half *__restrict__ in, const __half *__restrict__ weights,
                  const float *__restrict__ biases, __half *__restrict__ pooled, uint8_t *__restrict__ argmaxes,
                  rl_train_state *state) {
  extern __shared__ __align__(16) __half shared[];
  __half *images = shared + CHANNELS * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first_channel = blockIdx.y * CHANNELS;
  const uint32_t b_address = shared_address(&shared[(lane / 16 * 8 + lane % 8) * WEIGHT_PITCH + lane / 8 % 2 * VECTOR]);
  uint32_t weight_fragments[STEPS][2][4];
  load_weights_async(&weights[first_channel * WEIGHT_COLUMNS], shared);
  cp_async_wait_all();
  __syncthreads();
#pragma unroll
  for (int k = 0; k < STEPS; k++)
    for (int i = 0; i < 2; i++) ldmatrix_x4(weight_fragments[k][i], b_address + (i * 16 * WEIGHT_PITCH + k * 16) * 2);
  /* A lane stores four channels of a window. */
  const bool right = lane / 4 % 2;
  const int channel = first_channel + lane % 4 * 8 + right * 4, window = lane / 16 * RL_POOLED2_SIDE + lane / 8 % 2;
  const float4 bias = load4(&biases[channel]);
  const uint32_t a_address = shared_address(&images[tile_pixel_offset(lane % 16) * IN_PITCH + lane / 16 * VECTOR]);
  float largest_magnitude[4] = {}; /* of the products, for the overflow check */

  pdl_wait();
  const uint32_t stride = gridDim.x;
  for (int i = 0; i < 2; i++)
    load_group_async(in, batch, blockIdx.x + i * group_images * stride, stride, group_images,
                     &images[i * group_images * IN_IMAGE_HALVES]);
  uint32_t buffer_offset = 0;
  for (uint32_t first_image = blockIdx.x; first_image < batch;
       first_image += group_images * stride, buffer_offset = group_images * IN_IMAGE_HALVES - buffer_offset) {
    cp_async_wait_group<1>();
    __syncthreads();
    const uint32_t count = min((batch - first_image + stride - 1) / stride, group_images);
#pragma unroll 1
    for (uint32_t i = warp; i < count * TILES; i += WARPS) {
      const int image = i / TILES, tile = i % TILES;
      const uint32_t origin = a_address + (buffer_offset + image * IN_IMAGE_HALVES + tile_origin(tile) * IN_PITCH) * 2;
      float sum[4][4] = {};
#pragma unroll
      for (int k = 0; k < STEPS; k++) {
        uint32_t a[4];
        ldmatrix_x4(a, origin + ((k / 2 / 3 * RL_POOLED1_SIDE + k / 2 % 3) * IN_PITCH + k % 2 * 16) * 2);
        for (int i = 0; i < 4; i++) mma_m16n8k16(sum[i], a, &weight_fragments[k][i / 2][i % 2 * 2]);
      }
      const int pixel = tile / TILES_IN_ROW * 2 * RL_POOLED2_SIDE + tile % TILES_IN_ROW * 2 + window;
      const size_t to = ((size_t)(first_image + image * stride) * RL_POOLED2_PIXELS + pixel) * RL_CONV2_CHANNELS + channel;
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) largest_magnitude[i] = max_or_nan(largest_magnitude[i], fabsf(sum[i][j]));
      pool_tile(sum, right, bias, &pooled[to], &argmaxes[to]);
    }
    __syncthreads();
    load_group_async(in, batch, first_image + 2 * group_images * stride, stride, group_images, &images[buffer_offset]);
  }
  const float rounds_to_infinity = 65520.0f; /* the smallest float that FP16 rounds to infinity */
  for (int i = 0; i < 4; i++)
    if (!(largest_magnitude[i] < rounds_to_infinity) && state) state->overflow = 1;
}

/* Sets *images to the number of images in a group: two groups must fit into shared memory beside the weights, and a group has at
 * most MAX_GROUP_IMAGES images. */
static int group_size(uint32_t *images, rl_error *err) {
  int device = 0, max_bytes = 0;
  if (rl_cuda_check(cudaGetDevice(&device), "finding the device", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&max_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                    "querying the device's shared memory per block", err) < 0)
    return -1;
  const int fit = (max_bytes - WEIGHT_BYTES) / (2 * IMAGE_BYTES);
  *images = fit < MAX_GROUP_IMAGES ? (uint32_t)fit : (uint32_t)MAX_GROUP_IMAGES;
  return 0;
}

int rl_conv2_forward(uint32_t batch, const void *in, const void *weights, const float *bias, void *pooled, uint8_t *argmaxes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err) {
  const uint32_t blocks = batch < MAX_BLOCKS ? batch : (uint32_t)MAX_BLOCKS, images_per_block = (batch + blocks - 1) / blocks;
  uint32_t group_images;
  if (group_size(&group_images, err) < 0) return -1;
  const uint32_t max_bytes = WEIGHT_BYTES + 2 * group_images * IMAGE_BYTES,
                 images = images_per_block < 2 * group_images ? images_per_block : 2 * group_images;
  if (rl_cuda_check(cudaFuncSetAttribute(conv2_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)max_bytes),
                    "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("conv2 forward", conv2_forward, dim3(blocks, RL_CONV2_CHANNELS / CHANNELS), THREADS,
                       WEIGHT_BYTES + images * IMAGE_BYTES, stream, err, batch, group_images, (const __half *)in,
                       (const __half *)weights, bias, (__half *)pooled, argmaxes, state);
}
