/* Implements rl_convolutions_forward (kernels.h): conv1 and conv2, each with bias, ReLU and 2×2 max-pooling, in one kernel, in
 * FP16 on the tensor cores of Hopper. conv1's pooled output goes to conv2 through shared memory; it is also stored for the
 * backward pass.
 *
 * Division of work: a block processes one image after another, on one SM. One warp loads the pixels, CONV1_WARPGROUPS warpgroups
 * compute conv1 in tiles of 32 pooling windows, and two warpgroups compute conv2, one for each half of its output rows.
 *
 * conv1 is two products for each tile, one for each row of the windows: [32 windows × 2 positions, 9 taps and the bias] · [9 taps
 * and the bias, 32 channels]. The pixels are operand A, in registers. Pixels and weights lose almost no precision
 * (conv1_exact.cuh). conv1 does not use mma.sync, because an mma.sync waits for an instruction of conv2: 46 cycles on an H200
 * beside wgmma m64n96k16, 6 without it.
 *
 * conv2 is nine products, one for each tap: [64 output channels × 32 channels] · [32 channels × pixels]. The operand for a tap
 * begins at another pixel of the same image in shared memory, where a pixel is a row of 64 bytes (wgmma_row_descriptor). An image
 * row has PITCH pixels, of which the last ones are undefined: they affect only sums that are not used.
 *
 * Both layers round their outputs to FP16 before pooling, as PyTorch does in mixed precision.
 *
 * Synchronisation: two rings of buffers in shared memory, for the pixels and for conv1's output. full[buffer] ends a phase when
 * an image has been written (RAW), empty[buffer] when it has been read (WAR).
 *
 * Shortest possible time: 5 µs on an H200 at batch 512, for 2300 cycles of the tensor cores for each image. */
#include "clusters.cuh"
#include "hopper/wgmma.cuh"
#include "pdl.cuh"
#include "train/cuda/conv1_exact.cuh"
#include "train/cuda/pool.cuh"

enum {
  TAPS = 9,
  VECTOR = 8,  /* FP16 values in 16 bytes */
  BUFFERS = 4, /* images in each ring */
  CONSUMERS = 2 /* warpgroups */,
  CONSUMER_WARPS = CONSUMERS * WGMMA_THREADS / 32,
  CONSUMER_THREADS = CONSUMERS * WGMMA_THREADS,
  CONV1_WARPGROUPS = 3,
  THREADS = CONSUMER_THREADS + CONV1_WARPGROUPS * WGMMA_THREADS + 32,
  MAX_BLOCKS = 132, /* SMs of an H200 */
  /* The pixels of an image as pairs of FP16 values: pair (y, x) holds the pixels (y, x) and (y, x + 1) of the image with its
   * border. Two rows of ones, for the bias, follow the rows. The pitch and the position of the ones let the four groups of k of
   * an mma be in different banks. */
  PAIR_PITCH = 40,
  FIRST_ONE = CONV1_WIDTH * PAIR_PITCH + 8,
  PAIRS = FIRST_ONE + PAIR_PITCH + 32,
  IMAGE_WORDS = RL_IMAGE_PIXELS / 4,
  WORDS_PER_LANE = (IMAGE_WORDS + 31) / 32,
  TILE_WINDOWS = 32, /* of conv1, eight for each warp of a warpgroup */
  CONV1_TILES = (RL_POOLED1_PIXELS + TILE_WINDOWS - 1) / TILE_WINDOWS,
  CONV1_DEPTH = 16,                      /* of conv1's products: nine taps and the bias, and zeros */
  CONV1_ROW_BYTES = 2 * CONV1_DEPTH * 2, /* the high and the low weights of a channel */
  PITCH = 16,                            /* pixels from one image row to the next in shared memory */
  HALF_ROWS = RL_CONV2_SIDE / CONSUMERS, /* rows of conv2's output that a consumer computes */
  COLUMNS = HALF_ROWS * PITCH,           /* of a consumer's product: pixels, also the undefined ones */
  SUMS = 64 * COLUMNS / WGMMA_THREADS,
  PIXEL_BYTES = RL_CONV1_CHANNELS * 2,
  PIXEL_VECTORS = RL_CONV1_CHANNELS / VECTOR,
  IMAGE_BYTES = 15 << 10 /* RL_POOLED1_SIDE · PITCH + 2 pixels, because the last operand begins at pixel 2 · PITCH + 2 */,
  TAP_BYTES = RL_CONV2_CHANNELS * PIXEL_BYTES /* weights of a tap */
};
static_assert(SUMS == 48, "the product must have the shape m64n96k16");
static_assert(IMAGE_BYTES >= (RL_POOLED1_SIDE * PITCH + 2) * PIXEL_BYTES, "an image must contain all operands");

typedef struct forward_args {
  rl_gather gather;
  const float *conv1_weights, *conv2_bias;
  const __half *conv2_weights; /* [64][9][32] */
  __half *pooled1, *pooled2;
  uint8_t *argmax1, *argmax2;
  rl_train_state *state; /* NULL: overflow is not recorded */
} forward_args;

typedef struct ring_barriers {
  mbarrier full[BUFFERS], empty[BUFFERS];
} ring_barriers;

typedef struct shared_memory {
  char weights[TAPS * TAP_BYTES];
  char conv1_weights[RL_CONV1_CHANNELS * CONV1_ROW_BYTES];
  char pooled1[BUFFERS][IMAGE_BYTES];
  __half2 pixels[BUFFERS][PAIRS];
  ring_barriers pooled1_ring, pixel_ring;
} shared_memory;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* the target has wgmma */

/* Waits until the i-th image has been written to its buffer. */
static __device__ __forceinline__ void wait_full(ring_barriers *ring, uint32_t i) {
  mbarrier_spin_cta(&ring->full[i % BUFFERS], i / BUFFERS + 1);
}

/* Waits until the buffer of the i-th image is empty. */
static __device__ __forceinline__ void wait_empty(ring_barriers *ring, uint32_t i) {
  if (i >= BUFFERS) mbarrier_spin_cta(&ring->empty[i % BUFFERS], i / BUFFERS);
}

/* --- pixels --------------------------------------------------------------------------------------------------------------- */

typedef struct lane_words {
  uint32_t word[WORDS_PER_LANE]; /* four pixels each */
} lane_words;

static __device__ __forceinline__ lane_words load_words(const rl_gather &gather, uint32_t n) {
  const uint32_t *words = (const uint32_t *)image_pixels(gather, min(n, gather.batch - 1));
  lane_words loaded;
  for (int k = 0; k < WORDS_PER_LANE; k++) loaded.word[k] = words[min(threadIdx.x % 32 + k * 32, IMAGE_WORDS - 1)];
  return loaded;
}

/* Stores the pairs of four pixels, the first of which is the first value of *to. */
static __device__ __forceinline__ void store_word(uint32_t word, __half2 *to) {
  const uint32_t low = half2_bits(minus_middle(word, 0x4140)), high = half2_bits(minus_middle(word, 0x4342));
  *(uint32_t *)&to[0] = low;
  *(uint32_t *)&to[1] = __byte_perm(low, high, 0x5432);
  *(uint32_t *)&to[2] = high;
  *(uint16_t *)&to[3] = (uint16_t)(high >> 16);
  *((uint16_t *)to - 1) = (uint16_t)low;
}

static __device__ __forceinline__ void load_pixels(const forward_args &args, shared_memory *shared) {
  const int lane = threadIdx.x % 32;
  lane_words words = load_words(args.gather, blockIdx.x);
  uint32_t i = 0;
  for (uint32_t n = blockIdx.x; n < args.gather.batch; n += gridDim.x, i++) {
    const lane_words next = load_words(args.gather, n + gridDim.x);
    wait_empty(&shared->pixel_ring, i);
    for (int k = 0; k < WORDS_PER_LANE; k++) {
      const int word = lane + k * 32, row = word / (RL_IMAGE_SIDE / 4), column = word % (RL_IMAGE_SIDE / 4) * 4;
      if (word < IMAGE_WORDS) store_word(words.word[k], &shared->pixels[i % BUFFERS][(row + 1) * PAIR_PITCH + column + 1]);
    }
    mbarrier_arrive(&shared->pixel_ring.full[i % BUFFERS]);
    words = next;
  }
}

/* --- conv1 ---------------------------------------------------------------------------------------------------------------- */

/* Returns two k values of a row of conv1's operand B: the two weights themselves, rounded to FP16, or, if `low`, their rounding
 * errors. */
static __device__ __forceinline__ uint32_t weight_pair(float a, float b, bool low) {
  uint32_t high_pair, low_pair;
  split_halves(a, b, &high_pair, &low_pair);
  return low ? low_pair : high_pair;
}

/* Stores conv1's weights as operand B, whose rows are channels: row 8 t + c is channel c / 2 · 8 + 2 t + c % 2, so that the
 * lane's sums are eight adjacent channels. k has four groups of four values: group y = 0, 1, 2 has the three taps in row y of the
 * filter, and a zero; group 3 has the bias, as a high and a low value, and two zeros. Group y has the k values 2 y, 2 y + 1, 2 y
 * + 8 and 2 y + 9. The high FP16 values of the weights are followed by the low ones. The products of byte − PIXEL_MIDDLE and
 * these weights are the output of conv1. thread: index among conv1's threads, which all call it. */
static __device__ __forceinline__ void store_conv1_weights(const float *weights, int thread, char *to) {
  if (thread < RL_CONV1_CHANNELS * 2) {
    const int row = thread / 2, channel = row % 8 / 2 * 8 + row / 8 * 2 + row % 2;
    const bool low = thread % 2;
    float sum = 0.0f;
    uint32_t k[CONV1_DEPTH / 2];
    for (int y = 0; y < 3; y++) {
      const float *taps = &weights[channel * TAPS + y * 3];
      k[y] = weight_pair(taps[0] * PIXEL_SLOPE, taps[1] * PIXEL_SLOPE, low);
      k[y + 4] = weight_pair(taps[2] * PIXEL_SLOPE, 0.0f, low);
      sum += taps[0] + taps[1] + taps[2];
    }
    const float bias = weights[RL_CONV1_CHANNELS * TAPS + channel] + PIXEL_INTERCEPT * sum, high = (float)(__half)bias;
    k[3] = low ? 0 : half2_bits(__floats2half2_rn(high, bias - high));
    k[7] = 0;
    for (int v = 0; v < 2; v++)
      *(uint4 *)&to[wgmma_row_offset<CONV1_ROW_BYTES>(row, low * 2 + v)] =
          make_uint4(k[v * 4], k[v * 4 + 1], k[v * 4 + 2], k[v * 4 + 3]);
  }
  fence_async_proxy();
  asm volatile("bar.sync 2, %0;" ::"n"(CONV1_WARPGROUPS * WGMMA_THREADS) : "memory");
}

/* A lane's results: eight channels, beginning with lane % 4 · 8, of one window. */
typedef struct pooled_window {
  uint32_t values[4], argmaxes[4];
} pooled_window;

/* Computes the window lane / 4 of the warp. row: the first pair under the window in the image row of the lane's group of k, or a
 * pair of ones. weights: descriptor of operand B. The rows of a warp's operand A are the positions of a row of its windows: the
 * left ones, then the right ones. */
static __device__ __forceinline__ pooled_window compute_window(uint64_t weights, const __half2 *row) {
  float sum[2][16]; /* [row of positions] */
  uint32_t a[2][4];
  for (int y = 0; y < 2; y++) {
    const uint2 left = *(const uint2 *)&row[y * PAIR_PITCH], right = *(const uint2 *)&row[y * PAIR_PITCH + 2];
    a[y][0] = left.x, a[y][1] = left.y, a[y][2] = right.x, a[y][3] = right.y;
  }
  wgmma_fence();
  for (int y = 0; y < 2; y++) {
    wgmma_m64n32k16(sum[y], a[y], weights + WGMMA_STEP_BYTES / 16, false); /* the low values */
    wgmma_m64n32k16(sum[y], a[y], weights, true);
  }
  wgmma_commit_group();
  wgmma_wait_group<0>();
  for (int y = 0; y < 2; y++) wgmma_fence_sums(sum[y]);
  pooled_window window;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    __half2 outputs[4], greatest;
    for (int position = 0; position < 4; position++) {
      const float *output = &sum[position / 2][i * 4 + position % 2 * 2];
      outputs[position] = __floats2half2_rn(output[0], output[1]);
    }
    relu_pool_half2(outputs, &greatest, &window.argmaxes[i]);
    window.values[i] = half2_bits(greatest);
  }
  return window;
}

/* Computes conv1 of the block's images: tiles warpgroup, warpgroup + CONV1_WARPGROUPS, … of all tiles of all images. warp: index
 * among conv1's warps. */
static __device__ __forceinline__ void compute_conv1(const forward_args &args, int warp, shared_memory *shared) {
  const int lane = threadIdx.x % 32, group = lane % 4, vector = lane % 4;
  const uint64_t weights = wgmma_row_descriptor<CONV1_ROW_BYTES>(shared_address(shared->conv1_weights));
  store_conv1_weights(args.conv1_weights, warp * 32 + lane, shared->conv1_weights);
  const uint32_t images = (args.gather.batch - blockIdx.x + gridDim.x - 1) / gridDim.x;
#pragma unroll 1
  for (uint32_t i = warp / 4; i < images * CONV1_TILES; i += CONV1_WARPGROUPS) {
    const uint32_t image = i / CONV1_TILES, buffer = image % BUFFERS;
    const int window = i % CONV1_TILES * TILE_WINDOWS + warp % 4 * 8 + lane / 4, row = window / RL_POOLED1_SIDE,
              column = window % RL_POOLED1_SIDE;
    const __half2 *pixels = shared->pixels[buffer];
    wait_full(&shared->pixel_ring, image);
    const pooled_window pooled =
        compute_window(weights, group < 3 && window < RL_POOLED1_PIXELS ? &pixels[(2 * row + group) * PAIR_PITCH + 2 * column]
                                                                        : &pixels[FIRST_ONE]);
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&shared->pixel_ring.empty[buffer]);
    const uint4 values = make_uint4(pooled.values[0], pooled.values[1], pooled.values[2], pooled.values[3]);
    wait_empty(&shared->pooled1_ring, image);
    if (window < RL_POOLED1_PIXELS)
      *(uint4 *)&shared->pooled1[buffer][wgmma_row_offset<PIXEL_BYTES>(row * PITCH + column, vector)] = values;
    fence_async_proxy();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&shared->pooled1_ring.full[buffer]);
    if (window >= RL_POOLED1_PIXELS) continue;
    const size_t to =
        ((size_t)(blockIdx.x + image * gridDim.x) * RL_POOLED1_PIXELS + window) * RL_CONV1_CHANNELS + vector * VECTOR;
    __stcg((uint4 *)&args.pooled1[to], values);
    __stcg((uint2 *)&args.argmax1[to], make_uint2(__byte_perm(pooled.argmaxes[0], pooled.argmaxes[1], 0x6420),
                                                  __byte_perm(pooled.argmaxes[2], pooled.argmaxes[3], 0x6420)));
  }
}

/* --- conv2 ---------------------------------------------------------------------------------------------------------------- */

/* Copies conv2's weights to shared memory. Row r of a product is the output channel r / 16 · 16 + r % 8 · 2 + r / 8 % 2, so that
 * a lane has two adjacent channels. All consumers call it. */
static __device__ __forceinline__ void load_conv2_weights(const __half *weights, char *to) {
  for (int i = threadIdx.x; i < TAPS * RL_CONV2_CHANNELS * PIXEL_VECTORS; i += CONSUMER_THREADS) {
    const int vector = i % PIXEL_VECTORS, row = i / PIXEL_VECTORS % RL_CONV2_CHANNELS,
              tap = i / (PIXEL_VECTORS * RL_CONV2_CHANNELS), channel = row / 16 * 16 + row % 8 * 2 + row / 8 % 2;
    cp_async_16(&to[tap * TAP_BYTES + wgmma_row_offset<PIXEL_BYTES>(row, vector)],
                &weights[(channel * TAPS + tap) * RL_CONV1_CHANNELS + vector * VECTOR]);
  }
  cp_async_wait_all();
  fence_async_proxy();
  asm volatile("bar.sync 1, %0;" ::"n"((int)CONSUMER_THREADS) : "memory");
}

/* Multiplies the taps of a consumer's half of an image. weights, pixels: descriptors of the first operands. */
static __device__ __forceinline__ void multiply_taps(float (&sums)[SUMS], uint64_t weights, uint64_t pixels) {
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < TAPS * RL_CONV1_CHANNELS / 16; k++) {
    const int tap = k / 2, step_bytes = k % 2 * WGMMA_STEP_BYTES;
    wgmma_m64n96k16(sums, weights + (tap * TAP_BYTES + step_bytes) / 16,
                    pixels + ((tap / 3 * PITCH + tap % 3) * PIXEL_BYTES + step_bytes) / 16, k > 0);
  }
  wgmma_commit_group();
  wgmma_wait_group<0>();
  wgmma_fence_sums(sums);
}

/* Pools the sums of half an image and stores them at the address of its first window and of the lane's two channels. A lane has
 * windows lane % 4 of each row; if lane % 4 is 0 or 1, also windows 4 + lane % 4. Sets *overflow to NaN if an output is infinite
 * or NaN. */
static __device__ __forceinline__ void pool_half(const float (&sums)[SUMS], float2 bias, __half *pooled, uint8_t *argmaxes,
                                                 __half2 *overflow) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int row = 0; row < HALF_ROWS / 2; row++)
#pragma unroll
    for (int group = 0; group < 2; group++) {
      if (group == 1 && lane % 4 >= 2) continue;
      __half2 outputs[4], greatest;
      uint32_t argmax;
      for (int position = 0; position < 4; position++) {
        const float *output = &sums[(row * 4 + position / 2 * 2 + group) * 4 + position % 2];
        outputs[position] = __floats2half2_rn(output[0] + bias.x, output[2] + bias.y);
        *overflow = __hfma2(outputs[position], __float2half2_rn(0.0f), *overflow);
      }
      relu_pool_half2(outputs, &greatest, &argmax);
      const int to = (row * RL_POOLED2_SIDE + group * 4 + lane % 4) * RL_CONV2_CHANNELS;
      *(__half2 *)&pooled[to] = greatest;
      *(uint16_t *)&argmaxes[to] = (uint16_t)__byte_perm(argmax, 0, 0x4420);
    }
}

/* Computes conv2 of the block's images, half `half` of the output rows. */
static __device__ __forceinline__ void compute_conv2(const forward_args &args, int half, shared_memory *shared) {
  load_conv2_weights(args.conv2_weights, shared->weights);
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, channel = warp * 16 + lane / 4 * 2;
  const float2 bias = *(const float2 *)&args.conv2_bias[channel];
  const uint64_t weights = wgmma_row_descriptor<PIXEL_BYTES>(shared_address(shared->weights));
  __half2 overflow = __float2half2_rn(0.0f);
  uint32_t i = 0;
  for (uint32_t n = blockIdx.x; n < args.gather.batch; n += gridDim.x, i++) {
    const uint32_t pixels = shared_address(&shared->pooled1[i % BUFFERS][half * HALF_ROWS * PITCH * PIXEL_BYTES]);
    float sums[SUMS];
    wait_full(&shared->pooled1_ring, i);
    multiply_taps(sums, weights, wgmma_row_descriptor<PIXEL_BYTES>(pixels));
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&shared->pooled1_ring.empty[i % BUFFERS]);
    const size_t to = ((size_t)n * RL_POOLED2_PIXELS + half * (RL_POOLED2_PIXELS / 2)) * RL_CONV2_CHANNELS + channel;
    pool_half(sums, bias, &args.pooled2[to], &args.argmax2[to], &overflow);
  }
  if ((__hisnan(__low2half(overflow)) || __hisnan(__high2half(overflow))) && args.state) args.state->overflow = 1;
}

/* ------------------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ void initialise(shared_memory *shared) {
  for (int i = threadIdx.x; i < BUFFERS * PAIRS; i += THREADS)
    ((__half2 *)shared->pixels)[i] = __float2half2_rn(i % PAIRS < FIRST_ONE ? BORDER : 1.0f);
  if (threadIdx.x == 0)
    for (int i = 0; i < BUFFERS; i++) {
      mbarrier_init(&shared->pixel_ring.full[i], 32);
      mbarrier_init(&shared->pixel_ring.empty[i], CONV1_TILES * 4);
      mbarrier_init(&shared->pooled1_ring.full[i], CONV1_TILES * 4);
      mbarrier_init(&shared->pooled1_ring.empty[i], CONSUMER_WARPS);
    }
  __syncthreads();
}

#endif

static __global__ void __launch_bounds__(THREADS, 1) convolutions_forward(const forward_args args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char dynamic[];
  shared_memory *shared = (shared_memory *)dynamic;
  const int warp = threadIdx.x / 32, conv1_warp = warp - CONSUMER_WARPS;
  initialise(shared);
  pdl_wait();
  if (conv1_warp < 0) compute_conv2(args, warp / 4, shared);
  else if (conv1_warp < CONV1_WARPGROUPS * 4) compute_conv1(args, conv1_warp, shared);
  else load_pixels(args, shared);
#else
  __trap();
#endif
}

int rl_convolutions_forward(const rl_convolutions *c, cudaStream_t stream, rl_error *err) {
  const forward_args args = {
      c->gather,  c->conv1_weights, c->conv2_bias, (const __half *)c->conv2_weights, (__half *)c->pooled1, (__half *)c->pooled2,
      c->argmax1, c->argmax2,       c->state};
  const uint32_t blocks = c->gather.batch < MAX_BLOCKS ? c->gather.batch : (uint32_t)MAX_BLOCKS;
  if (rl_cuda_check(
          cudaFuncSetAttribute(convolutions_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(shared_memory)),
          "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("convolutions forward", convolutions_forward, blocks, THREADS, sizeof(shared_memory), stream, err, args);
}
