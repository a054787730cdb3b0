/* Implements the rl_conv1_half_ functions of kernels.h: conv1 (1→32 channels, 28×28 pixels, 3×3 taps), bias, ReLU and 2×2
 * max-pooling in FP16 on tensor cores (mma.sync m16n8k16), in NHWC, with one kernel for each direction.
 *
 * Division of work: a warp processes the same pooled row of one image after another, without synchronising with other warps. It
 * loads the pixels of the next image before it multiplies those of the current one. Blocks exchange no data.
 *
 *   forward   four products, one for each position of a pooling window: [14 pixels × 9 taps] · [9 taps × 32 channels]. The
 *             pooled value is the greatest of the four results
 *   backward  the sum of four products, one for each position: [32 channels × 14 pixels] · [14 pixels × 10 columns]. The left
 *             operand is the pooled gradient where the argmax is this position, else zero. The right operand has the pixels under
 *             the 9 taps, and a column of ones for the bias. Each block stores one row of partial sums
 *
 * Precision: the products are more exact than the FP16 values that are stored (conv1_exact.cuh).
 *
 * Shortest possible time at batch 64: below 1 µs for each direction on an H200, for 29 MFLOP forward, 8 MFLOP backward, and 1.2
 * MB of pooled values and argmaxes in each direction, which stay in L2. */
#include "pdl.cuh"
#include "train/cuda/conv1_planes.cuh"

enum {
  IMAGE_ROWS = 4 /* image rows that a pooled row depends on */,
  CONV2_WEIGHTS = RL_CONV2_CHANNELS * RL_CONV1_CHANNELS * 9 /* weights of conv2 */,
  CHANNEL_TILES = RL_CONV1_CHANNELS / 8 /* groups of eight channels, the columns (N) of an mma */,
  /* The window of a warp, in shared memory: planes (conv1_planes.cuh) of the IMAGE_ROWS rows of the image that it needs. In each
   * plane, rows of ones (for the bias) follow the image rows. */
  PLANE_HALVES = 200 /* FP16 values of a plane */,
  WINDOW_HALVES = PLANES * PLANE_HALVES,
  FORWARD_WARPS = 7,
  FORWARD_MAX_CONCURRENT_IMAGES = 198 /* in larger batches, warps loop over images */,
  BACKWARD_WARPS = 14,
  BACKWARD_MAX_CONCURRENT_IMAGES = 132
};
static_assert(RL_POOLED1_SIDE % FORWARD_WARPS == 0 && RL_POOLED1_SIDE % BACKWARD_WARPS == 0,
              "the rows of an image must divide into whole blocks");
static_assert((IMAGE_ROWS + 2) * PLANE_PITCH <= PLANE_HALVES, "a plane must have room for the image rows and two rows of ones");

/* State of a warp's loop over its images. */
typedef struct image_loop {
  int row;             /* pooled row, the same in each image */
  uint32_t n;          /* index of the current image in the batch */
  uint32_t stride;     /* images from one image of this warp to its next */
  uint32_t next_image; /* data set index of the next image */
  uint32_t position;   /* index in the epoch of the batch's first image */
  uint32_t pixels;     /* the lane's four pixels of the current image, one byte each */
} image_loop;

/* Returns the image row of this lane's four pixels. It may be -1 or RL_IMAGE_SIDE, which are in the border. */
static __device__ __forceinline__ int image_row(const image_loop &loop) {
  return loop.row * 2 - 1 + (int)(threadIdx.x % 32 / ROW_WORDS);
}

/* Returns whether this lane has pixels of the image. */
static __device__ __forceinline__ bool has_pixels(const image_loop &loop) {
  return threadIdx.x % 32 < IMAGE_ROWS * ROW_WORDS && image_row(loop) >= 0 && image_row(loop) < RL_IMAGE_SIDE;
}

static __device__ __forceinline__ void load_pixels(const rl_gather &gather, uint32_t image, image_loop *loop) {
  const size_t offset = (size_t)image * RL_IMAGE_PIXELS + image_row(*loop) * RL_IMAGE_SIDE + threadIdx.x % 32 % ROW_WORDS * 4;
  if (has_pixels(*loop)) loop->pixels = *(const uint32_t *)&gather.images[offset];
}

/* Returns the data set index of the warp's image `iterations` iterations after the current one; if the warp has no such image,
 * that of the last image of the batch. */
static __device__ __forceinline__ uint32_t dataset_index_after(const rl_gather &gather, const image_loop &loop,
                                                               uint32_t iterations) {
  return dataset_index_at(gather, loop.position + min(loop.n + iterations * loop.stride, gather.batch - 1));
}

/* Begins the loop: sets the first image and loads its pixels. */
static __device__ __forceinline__ image_loop begin_image_loop(const rl_gather &gather) {
  const uint32_t warps = blockDim.x / 32, parts = RL_POOLED1_SIDE / warps;
  image_loop loop = {(int)(blockIdx.x % parts * warps + threadIdx.x / 32), blockIdx.x / parts, gridDim.x / parts};
  loop.position = epoch_position(gather, 0);
  const uint32_t image = dataset_index_after(gather, loop, 0);
  loop.next_image = dataset_index_after(gather, loop, 1);
  load_pixels(gather, image, &loop);
  return loop;
}

/* Loads the pixels of the next image and makes it the current one. */
static __device__ __forceinline__ void advance_image_loop(const rl_gather &gather, image_loop *loop) {
  load_pixels(gather, loop->next_image, loop);
  loop->next_image = dataset_index_after(gather, *loop, 2);
  loop->n += loop->stride;
}

/* Fills the image rows of the warp's window with border pixels, and the other rows with ones. */
static __device__ __forceinline__ void clear_window(__half *window) {
  const __half2 border = __float2half2_rn(BORDER), one = __float2half2_rn(1.0f);
  for (int plane = 0; plane < PLANES; plane++)
    for (int i = threadIdx.x % 32; i < PLANE_HALVES / 2; i += 32)
      *(__half2 *)&window[plane * PLANE_HALVES + i * 2] = i < IMAGE_ROWS * PLANE_PITCH / 2 ? border : one;
  __syncwarp();
}

/* Stores the lane's four pixels in the warp's window, and leaves the border unchanged. */
static __device__ __forceinline__ void store_pixels(const image_loop &loop, __half *window) {
  const int lane = threadIdx.x % 32, w = lane % ROW_WORDS;
  if (has_pixels(loop)) store_word<PLANE_HALVES>(loop.pixels, w, &window[lane / ROW_WORDS * PLANE_PITCH + 2 * w]);
  __syncwarp();
}

/* A lane's fragments of the weights, which are operand B of the products. Each weight is split into a high and a low FP16 value.
 * The 16 rows of B are four groups of four: group y = 0, 1, 2 has the three taps in row y of the filter, and a zero; group 3 has
 * the bias, as a high and a low value, and two zeros. A lane holds the rows of group lane % 4. In tile t it holds the column of
 * channel lane / 8 · 8 + 2t + lane / 4 % 2. */
typedef struct weight_fragments {
  uint32_t high[CHANNEL_TILES][2], low[CHANNEL_TILES][2];
} weight_fragments;

/* Returns v minus v rounded to FP16. */
static __device__ __forceinline__ float rounding_error(float v) { return v - __half2float(__float2half_rn(v)); }

/* Returns, in lane i, the bias of channel i plus the contribution of PIXEL_INTERCEPT, divided by PIXEL_SLOPE. This bias plus the
 * product of byte − PIXEL_MIDDLE and the weights is the output of conv1 divided by PIXEL_SLOPE. */
static __device__ __forceinline__ float load_bias(const float *weights) {
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (int k = 0; k < TAPS; k++) sum += weights[lane * TAPS + k];
  return (weights[RL_CONV1_CHANNELS * TAPS + lane] + PIXEL_INTERCEPT * sum) * (1.0f / PIXEL_SLOPE);
}

static __device__ __forceinline__ weight_fragments load_fragments(const float *weights) {
  const int lane = threadIdx.x % 32, y = lane % 4, channel = lane / 8 * 8 + lane / 4 % 2;
  float taps[CHANNEL_TILES][3];
  for (int t = 0; t < CHANNEL_TILES; t++)
    for (int x = 0; x < 3; x++) taps[t][x] = weights[(channel + t * 2) * TAPS + min(y, 2) * 3 + x];
  const float biases = load_bias(weights);
  weight_fragments fragments;
  for (int t = 0; t < CHANNEL_TILES; t++) {
    const float bias = __shfl_sync(0xffffffffu, biases, channel + t * 2);
    const float a = y < 3 ? taps[t][0] : bias, b = y < 3 ? taps[t][1] : rounding_error(bias), c = y < 3 ? taps[t][2] : 0.0f;
    fragments.high[t][0] = half2_bits(__floats2half2_rn(a, b));
    fragments.high[t][1] = half2_bits(__floats2half2_rn(c, 0.0f));
    fragments.low[t][0] = y < 3 ? half2_bits(__floats2half2_rn(rounding_error(a), rounding_error(b))) : 0;
    fragments.low[t][1] = half2_bits(__floats2half2_rn(rounding_error(c), 0.0f));
  }
  return fragments;
}

/* Loads the fragments of operand A for each position of the pooling windows. The rows of A are the pooled pixels; a lane holds
 * pooled pixels lane / 4 and lane / 4 + 8. The columns of A match the rows of B (weight_fragments): a lane holds row lane % 4 of
 * the 3×3 pixels, or ones for the bias if lane % 4 is 3. */
static __device__ __forceinline__ void load_patches(const __half *window, uint32_t patches[POSITIONS][4]) {
  const int lane = threadIdx.x % 32, row = lane % 4 < 3 ? lane % 4 : (int)IMAGE_ROWS;
  for (int down = 0; down < 2; down++)
    for (int pixel = 0; pixel < 2; pixel++) {
      const __half *corner = &window[(row + down) * PLANE_PITCH + lane / 4 + pixel * 8];
      const __half a = corner[0], b = corner[PLANE_HALVES], c = corner[2 * PLANE_HALVES], d = corner[3 * PLANE_HALVES];
      patches[down * 2][pixel] = half2_bits(__halves2half2(a, b));
      patches[down * 2][pixel + 2] = half2_bits(__halves2half2(c, d));
      patches[down * 2 + 1][pixel] = half2_bits(__halves2half2(b, c));
      patches[down * 2 + 1][pixel + 2] = half2_bits(__halves2half2(d, d));
    }
}

/* Returns a byte for each of four floats: 0xff if the float's sign bit is set, else 0. prmt copies the sign bit of a byte into
 * all its bits if bit 3 of the selector is set (PTX ISA 9.0, "prmt"). */
static __device__ __forceinline__ uint32_t sign_bytes(const float v[4]) {
  uint32_t low, high;
  asm("prmt.b32 %0, %1, %2, 0xfbfb;" : "=r"(low) : "r"(__float_as_uint(v[0])), "r"(__float_as_uint(v[1])));
  asm("prmt.b32 %0, %1, %2, 0xfbfb;" : "=r"(high) : "r"(__float_as_uint(v[2])), "r"(__float_as_uint(v[3])));
  return __byte_perm(low, high, 0x5410);
}

/* Pools four windows: greatest[i] is the greatest of outputs[0 … 3][i]. Returns the four argmaxes, one byte each; the first of
 * equal values wins. Values are compared by the sign of their difference, because subtractions run on the FMA units; the signs
 * for the four windows are then processed together, one byte each. */
static __device__ __forceinline__ uint32_t pool_tile(const float outputs[POSITIONS][4], float greatest[4]) {
  float upper_difference[4], lower_difference[4], row_difference[4], negated[4];
  for (int i = 0; i < 4; i++) {
    const float upper = fmaxf(outputs[0][i], outputs[1][i]), lower = fmaxf(outputs[2][i], outputs[3][i]);
    upper_difference[i] = outputs[0][i] - outputs[1][i];
    lower_difference[i] = outputs[2][i] - outputs[3][i];
    row_difference[i] = upper - lower;
    greatest[i] = fmaxf(upper, lower);
    negated[i] = 0.0f - greatest[i];
  }
  const uint32_t is_down = sign_bytes(row_difference), passes_relu = sign_bytes(negated);
  const uint32_t is_right = (sign_bytes(lower_difference) & is_down) | (sign_bytes(upper_difference) & ~is_down);
  return (((is_down & 0x02020202u) | (is_right & 0x01010101u)) & passes_relu) |
         (RL_ARGMAX_RELU_ZERO * 0x01010101u & ~passes_relu);
}

/* A lane's results: eight channels, beginning with lane % 4 · 8, of pooled pixels lane / 4 and lane / 4 + 8. */
typedef struct pooled_pixels {
  uint4 values[2];
  uint2 argmaxes[2];
} pooled_pixels;

/* Computes the four products of the lane's pooled pixels and pools them. */
static __device__ __forceinline__ pooled_pixels multiply_and_pool(const uint32_t patches[POSITIONS][4],
                                                                  const weight_fragments &weights) {
  uint32_t values[2][CHANNEL_TILES], argmaxes[CHANNEL_TILES];
  for (int t = 0; t < CHANNEL_TILES; t++) {
    float sum[POSITIONS][4] = {}, greatest[4];
    for (int position = 0; position < POSITIONS; position++) mma_m16n8k16(sum[position], patches[position], weights.low[t]);
    for (int position = 0; position < POSITIONS; position++) mma_m16n8k16(sum[position], patches[position], weights.high[t]);
    argmaxes[t] = pool_tile(sum, greatest);
    for (int pixel = 0; pixel < 2; pixel++)
      values[pixel][t] = half2_bits(__hmax2(
          __floats2half2_rn(greatest[pixel * 2] * PIXEL_SLOPE, greatest[pixel * 2 + 1] * PIXEL_SLOPE), __float2half2_rn(0.0f)));
  }
  pooled_pixels result;
  for (int pixel = 0; pixel < 2; pixel++) {
    const uint32_t selector = pixel ? 0x7632 : 0x5410, *v = values[pixel];
    result.values[pixel] = make_uint4(v[0], v[1], v[2], v[3]);
    result.argmaxes[pixel] =
        make_uint2(__byte_perm(argmaxes[0], argmaxes[1], selector), __byte_perm(argmaxes[2], argmaxes[3], selector));
  }
  return result;
}

static __global__ void __launch_bounds__(FORWARD_WARPS * 32)
    conv1_forward(rl_gather gather, const float *__restrict__ weights, __half *__restrict__ pooled,
                  uint8_t *__restrict__ argmaxes) {
  __shared__ __align__(16) __half windows[FORWARD_WARPS][WINDOW_HALVES];
  const int lane = threadIdx.x % 32;
  __half *window = windows[threadIdx.x / 32];
  clear_window(window);
  pdl_wait();
  const weight_fragments fragments = load_fragments(weights);
  image_loop loop = begin_image_loop(gather);
  while (loop.n < gather.batch) {
    uint32_t patches[POSITIONS][4];
    store_pixels(loop, window);
    load_patches(window, patches);
    __syncwarp();
    const size_t to =
        (((size_t)loop.n * RL_POOLED1_SIDE + loop.row) * RL_POOLED1_SIDE + lane / 4) * RL_CONV1_CHANNELS + lane % 4 * 8;
    advance_image_loop(gather, &loop);
    const pooled_pixels result = multiply_and_pool(patches, fragments);
    for (int i = 0; i < 2; i++) {
      if (lane / 4 + i * 8 >= RL_POOLED1_SIDE) continue;
      __stcg((uint4 *)&pooled[to + i * 8 * RL_CONV1_CHANNELS], result.values[i]);
      __stcg((uint2 *)&argmaxes[to + i * 8 * RL_CONV1_CHANNELS], result.argmaxes[i]);
    }
  }
}

/* Returns the number of blocks of a launch. Each concurrent image needs RL_POOLED1_SIDE warps, one for each pooled row. */
static uint32_t block_count(uint32_t batch, uint32_t warps, uint32_t max_images) {
  return (batch < max_images ? batch : max_images) * (RL_POOLED1_SIDE / warps);
}

int rl_conv1_half_forward(rl_gather gather, const float *weights, void *pooled, uint8_t *argmaxes, cudaStream_t stream,
                          rl_error *err) {
  const uint32_t grid = block_count(gather.batch, FORWARD_WARPS, FORWARD_MAX_CONCURRENT_IMAGES);
  return rl_pdl_launch("conv1 forward", conv1_forward, grid, FORWARD_WARPS * 32, 0, stream, err, gather, weights,
                       (__half *)pooled, argmaxes);
}

/* A lane's pooled gradients and argmaxes: channels lane / 4 · 4 … lane / 4 · 4 + 3 of four pixels of the warp's pooled row,
 * lane_pixel(0 … 3). */
typedef struct lane_gradients {
  uint2 gradient[4];
  uint32_t argmax[4];
} lane_gradients;

static __device__ __forceinline__ int lane_pixel(int i) { return threadIdx.x % 4 * 2 + i % 2 + i / 2 * 8; }

/* Returns the offset, in pooled row `row` of image n, of pixel i of this lane's lane_gradients. */
static __device__ __forceinline__ size_t lane_offset(uint32_t n, int row, int i) {
  return (((size_t)n * RL_POOLED1_SIDE + row) * RL_POOLED1_SIDE + lane_pixel(i)) * RL_CONV1_CHANNELS + threadIdx.x % 32 / 4 * 4;
}

static __device__ __forceinline__ void load_argmaxes(const uint8_t *argmaxes, uint32_t n, int row, lane_gradients *to) {
  for (int i = 0; i < 4; i++)
    to->argmax[i] = lane_pixel(i) < RL_POOLED1_SIDE ? *(const uint32_t *)&argmaxes[lane_offset(n, row, i)]
                                                    : RL_ARGMAX_RELU_ZERO * 0x01010101u;
}

static __device__ __forceinline__ void load_gradients(const __half *pooled_gradient, uint32_t n, int row, lane_gradients *to) {
  for (int i = 0; i < 4; i++)
    to->gradient[i] =
        lane_pixel(i) < RL_POOLED1_SIDE ? *(const uint2 *)&pooled_gradient[lane_offset(n, row, i)] : make_uint2(0, 0);
}

/* Arranges a lane's gradients as fragments of operand A, channels × pixels. In tile m (0 or 1), row lane / 4 is channel lane / 4
 * · 4 + 2m, and row lane / 4 + 8 is the next channel. Each 16 bits of `argmax` belong to the same 16 bits of `gradient`: both
 * bytes are the argmax of that gradient. */
static __device__ __forceinline__ void make_fragments(const lane_gradients &from, uint32_t gradient[2][4],
                                                      uint32_t argmax[2][4]) {
  for (int m = 0; m < 2; m++)
    for (int i = 0; i < 4; i++) {
      const int pixels = i / 2 * 2, odd = i % 2;
      const uint2 first = from.gradient[pixels], second = from.gradient[pixels + 1];
      gradient[m][i] = __byte_perm(m ? first.y : first.x, m ? second.y : second.x, odd ? 0x7632 : 0x5410);
      argmax[m][i] = __byte_perm(from.argmax[pixels], from.argmax[pixels + 1], 0x4400 + (m * 2 + odd) * 0x1111);
    }
}

/* Stores a row of partial sums of conv1's gradients for each block. Also checks conv2_weight_gradient[conv2_count] for
 * overflow. */
static __global__ void __launch_bounds__(BACKWARD_WARPS * 32)
    conv1_backward(rl_gather gather, const __half *__restrict__ pooled_gradient, const uint8_t *__restrict__ argmaxes,
                   float *__restrict__ partial, const __half *__restrict__ conv2_weight_gradient, uint32_t conv2_count,
                   rl_train_state *state) {
  __shared__ __align__(16) __half windows[BACKWARD_WARPS][WINDOW_HALVES];
  __shared__ float sums[BACKWARD_WARPS][RL_CONV1_PARAMETERS];
  __half *window = windows[threadIdx.x / 32];
  float sum[2][2][4] = {};
  lane_gradients gradients;
  clear_window(window);
  image_loop loop = begin_image_loop(gather);
  load_argmaxes(argmaxes, loop.n, loop.row, &gradients);
  pdl_wait(); /* the loads above do not depend on the previous kernel */
  load_gradients(pooled_gradient, loop.n, loop.row, &gradients);
  while (loop.n < gather.batch) {
    uint32_t gradient[2][4], argmax[2][4];
    store_pixels(loop, window);
    make_fragments(gradients, gradient, argmax);
    advance_image_loop(gather, &loop);
    load_argmaxes(argmaxes, min(loop.n, gather.batch - 1), loop.row, &gradients);
    load_gradients(pooled_gradient, min(loop.n, gather.batch - 1), loop.row, &gradients);
    for (int position = 0; position < POSITIONS; position++)
      add_position<PLANE_HALVES, PLANE_PITCH, 8, 2>(gradient, argmax, position, window, sum);
    __syncwarp();
  }
  const int first_channel = threadIdx.x % 32 / 4 * 4;
  bool overflow =
      !store_sums<2>(sum, sums[threadIdx.x / 32], [&](int tile, int half) { return first_channel + tile * 2 + half; });
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < conv2_count; i += gridDim.x * blockDim.x)
    overflow |= !isfinite(__half2float(conv2_weight_gradient[i]));
  if (overflow) state->overflow = 1;
  __syncthreads();
  reduce_rows<BACKWARD_WARPS>(sums, partial, blockIdx.x);
}

uint32_t rl_conv1_half_partial_rows(uint32_t batch) { return block_count(batch, BACKWARD_WARPS, BACKWARD_MAX_CONCURRENT_IMAGES); }

int rl_conv1_half_backward(rl_gather gather, const void *pooled_gradient, const uint8_t *argmaxes, float *partial,
                           const void *conv2_weight_gradient, rl_train_state *state, cudaStream_t stream, rl_error *err) {
  return rl_pdl_launch("conv1 backward", conv1_backward, rl_conv1_half_partial_rows(gather.batch), BACKWARD_WARPS * 32, 0, stream,
                       err, gather, (const __half *)pooled_gradient, argmaxes, partial, (const __half *)conv2_weight_gradient,
                       conv2_weight_gradient ? (uint32_t)CONV2_WEIGHTS : 0, state);
}
