/* conv2 forward in one kernel: its product (12×12×64 an image) is pooled in registers and never written to memory. 2.7 GFLOP at
 * batch 512, 4 µs at the rate of these instructions; what they are fed with decides. So a warp keeps the weights of 32 channels
 * in registers, where shared memory gives 512 bytes for four products, and images are on their way while others are
 * multiplied. Sums are FP32, in a fixed order. */
#include "train/cuda/pdl.cuh"
#include "train/cuda/conv2.cuh"
#include "train/cuda/pool.cuh"
#include "train/cuda/vector.cuh"

enum {
  CHANNELS = 32 /* of a block */,
  WARPS = 8,
  THREADS = WARPS * 32,
  STEPS = DEPTH / 16,
  MOST_BLOCKS = 66 /* for each half of the channels: one a multiprocessor, as registers have it; more images take turns */,
  MOST_GROUP = 4 /* images that are waited for together: 36 tiles, nine for each scheduler */,
  WEIGHT_BYTES = 2 * CHANNELS * WEIGHT_PITCH,
  IMAGE_BYTES = 2 * IN_IMAGE
};

/* Images first, first + by, …: a group of them, as far as there are any. */
static __device__ __forceinline__ void copy_group(const __half *in, uint32_t batch, uint32_t first, uint32_t by, uint32_t group,
                                                  __half *to) {
  for (uint32_t i = 0; i < group && first + i * by < batch; i++)
    copy_image<THREADS>(&in[(size_t)(first + i * by) * MAP1 * RL_C1], &to[i * IN_IMAGE]);
  cp_async_commit_group();
}

/* In rows that make neighbours of the eight channels that a lane has of four products. */
static __device__ __forceinline__ void copy_weights(const __half *weights, __half *to) {
  for (int i = threadIdx.x; i < CHANNELS * DEPTH / UNIT; i += THREADS) {
    const int channel = i / (DEPTH / UNIT), part = i % (DEPTH / UNIT) * UNIT;
    const int row = channel % 8 / 2 * 8 + channel / 8 * 2 + channel % 2;
    cp_async_16(&to[row * WEIGHT_PITCH + part], &weights[channel * DEPTH + part]);
  }
}

/* The greater one, or NaN where either is (PTX ISA 9.0, "max"). */
static __device__ __forceinline__ float greater_or_nan(float a, float b) {
  float made;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(made) : "f"(a), "f"(b));
  return made;
}

/* Bias, pool and ReLU of a tile's product. A lane has two pixels of eight channels, one below the other, and its neighbour the
 * two beside them: each gives the other four channels. */
static __device__ __forceinline__ void pool_tile(const float sum[4][4], bool right, float4 bias, __half *pooled, uint8_t *codes) {
  float kept[4][2], got[4][2], best[4];
  uint8_t code[4];
  for (int c = 0; c < 4; c++)
    for (int below = 0; below < 2; below++) {
      const float low = sum[c / 2][below * 2 + c % 2], high = sum[2 + c / 2][below * 2 + c % 2];
      kept[c][below] = right ? high : low;
      got[c][below] = __shfl_xor_sync(0xffffffffu, right ? low : high, 4);
    }
  for (int c = 0; c < 4; c++)
    pool_four(right ? got[c][0] : kept[c][0], right ? kept[c][0] : got[c][0], right ? got[c][1] : kept[c][1],
              right ? kept[c][1] : got[c][1], (&bias.x)[c], &best[c], &code[c]);
  store4(pooled, make_float4(best[0], best[1], best[2], best[3]));
  *(uchar4 *)codes = make_uchar4(code[0], code[1], code[2], code[3]);
}

static __global__ void __launch_bounds__(THREADS)
    conv2_forward(uint32_t batch, uint32_t group, const __half *__restrict__ in, const __half *__restrict__ weights,
                  const float *__restrict__ bias, __half *__restrict__ pooled, uint8_t *__restrict__ codes,
                  rl_train_state *state) {
  extern __shared__ __align__(16) __half shared[];
  __half *images = shared + CHANNELS * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.y * CHANNELS;
  const uint32_t row = shared_address(&shared[(lane / 16 * 8 + lane % 8) * WEIGHT_PITCH + lane / 8 % 2 * UNIT]);
  uint32_t w[STEPS][2][4];
  copy_weights(&weights[first * DEPTH], shared);
  cp_async_wait_all();
  __syncthreads();
#pragma unroll
  for (int k = 0; k < STEPS; k++)
    for (int i = 0; i < 2; i++) ldmatrix_x4(w[k][i], row + (i * 16 * WEIGHT_PITCH + k * 16) * 2);
  /* What this lane stores: four channels of a pool. */
  const bool right = lane / 4 % 2;
  const int channel = first + lane % 4 * 8 + right * 4, place = lane / 16 * RL_P2 + lane / 8 % 2;
  const float4 b = load4(&bias[channel]);
  const uint32_t corner = shared_address(&images[tile_pixel(lane % 16) * IN_PITCH + lane / 16 * UNIT]);
  float greatest[4] = {};

  pdl_wait();
  const uint32_t by = gridDim.x;
  for (int i = 0; i < 2; i++) copy_group(in, batch, blockIdx.x + i * group * by, by, group, &images[i * group * IN_IMAGE]);
  uint32_t buffer = 0;
  for (uint32_t from = blockIdx.x; from < batch; from += group * by, buffer = group * IN_IMAGE - buffer) {
    cp_async_wait_group<1>();
    __syncthreads();
    const uint32_t count = min((batch - from + by - 1) / by, group);
#pragma unroll 1
    for (uint32_t t = warp; t < count * TILES; t += WARPS) {
      const int image = t / TILES, tile = t % TILES;
      const uint32_t at = corner + (buffer + image * IN_IMAGE + tile_corner(tile) * IN_PITCH) * 2;
      float sum[4][4] = {};
#pragma unroll
      for (int k = 0; k < STEPS; k++) {
        uint32_t a[4];
        ldmatrix_x4(a, at + ((k / 2 / 3 * RL_P1 + k / 2 % 3) * IN_PITCH + k % 2 * 16) * 2);
        for (int i = 0; i < 4; i++) mma_m16n8k16(sum[i], a, &w[k][i / 2][i % 2 * 2]);
      }
      const int pixel = tile / TILES_IN_ROW * 2 * RL_P2 + tile % TILES_IN_ROW * 2 + place;
      const size_t to = ((size_t)(from + image * by) * MAP2 + pixel) * RL_C2 + channel;
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) greatest[i] = greater_or_nan(greatest[i], fabsf(sum[i][j]));
      pool_tile(sum, right, b, &pooled[to], &codes[to]);
    }
    __syncthreads();
    copy_group(in, batch, from + 2 * group * by, by, group, &images[buffer]);
  }
  const float most = 65520.0f; /* rounds to infinity */
  for (int i = 0; i < 4; i++)
    if (!(greatest[i] < most) && state) state->overflow = 1;
}

/* The images of a group: as many as there is room for twice. */
static int group_size(uint32_t *images, rl_error *err) {
  int device = 0, most = 0;
  if (rl_cuda_ok(cudaGetDevice(&device), "finding the device", err) ||
      rl_cuda_ok(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory", err))
    return -1;
  const int room = (most - WEIGHT_BYTES) / (2 * IMAGE_BYTES);
  *images = room < MOST_GROUP ? (uint32_t)room : (uint32_t)MOST_GROUP;
  return 0;
}

int rl_conv2_forward(uint32_t batch, const void *in, const void *weights, const float *bias, void *pooled, uint8_t *codes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err) {
  const uint32_t blocks = batch < MOST_BLOCKS ? batch : (uint32_t)MOST_BLOCKS, each = (batch + blocks - 1) / blocks;
  uint32_t group;
  if (group_size(&group, err)) return -1;
  const uint32_t most_bytes = WEIGHT_BYTES + 2 * group * IMAGE_BYTES, images = each < 2 * group ? each : 2 * group;
  if (rl_cuda_ok(cudaFuncSetAttribute(conv2_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most_bytes),
                 "reserving shared memory", err))
    return -1;
  return rl_pdl_launch("conv2 forward", conv2_forward, dim3(blocks, RL_C2 / CHANNELS), THREADS,
                       WEIGHT_BYTES + images * IMAGE_BYTES, stream, err, batch, group, (const __half *)in,
                       (const __half *)weights, bias, (__half *)pooled, codes, state);
}
