/* Implements rl_convolutions_backward (kernels.h): the backward passes of conv2 and conv1 in one kernel, in FP16 on the tensor
 * cores of Hopper. The gradient of conv1's pooled output stays on the chip.
 *
 * Division of work: a block processes its images on one SM, with three warpgroups:
 *
 *   weight gradient  one warpgroup, for all images: adds up nine products, one for each tap: [64 output channels × pixels] ·
 *                    [pixels × 32 channels]. The left operand is unpooled in registers. It is sparse: of four adjacent pixels
 *                    of a row, which belong to two pooling windows, at most two have a gradient.
 *   input gradient   two warpgroups, each for every second image. A warpgroup loads the image into its buffer in shared memory,
 *                    unpools the gradient of conv2's output, and adds up the gradient of conv2's bias. It computes conv1's
 *                    pooled gradient, two image rows in one product: [2 rows × 32 channels, 64 output channels] · [64 output
 *                    channels, pixels of row pairs] for each of 12 taps: four rows of conv2's output, three columns. A quarter
 *                    of the weights are zeros, because a row depends on three of the four rows. The sums of a lane, rounded to
 *                    FP16, are its left operand of the products that give conv1's gradients, which are the same as in
 *                    conv1_half.cu.
 *
 * Each block stores one row of partial sums of each gradient. Sums are FP32, in a fixed order; those of conv2's weights are
 * stored in FP16, so that Adam reads half as many bytes. Blocks exchange no data.
 *
 * Before the wait for the previous kernel (fc1's input gradient), a block loads conv2's weights, and pooled1 and the pixels of
 * its first images: kernels that had ended when the previous one began its work have written them (pdl.cuh).
 *
 * Shared memory: a pixel is a row of 64 bytes (conv1's output) or 128 bytes (the unpooled gradient), so operands that are shifted
 * by a tap begin at another pixel of the same image (wgmma_row_descriptor). An image row has PITCH pixels. The unpooled gradient
 * is in two parts, its even and its odd rows, so that the pixels of row pairs are adjacent, with rows and columns of zeros around
 * it.
 *
 * Synchronisation: full[buffer] ends a phase when an image has been loaded (RAW), empty[buffer] when the weight gradient has read
 * it (WAR).
 *
 * Shortest possible time: 8 µs on an H200 at batch 512: 3552 cycles for each image by wgmma. */
#include "clusters.cuh"
#include "hopper/wgmma.cuh"
#include "pdl.cuh"
#include "train/cuda/conv1_planes.cuh"
#include "train/cuda/gather.cuh"
#include "train/cuda/unpool.cuh"

enum {
  VECTOR = 8,                              /* FP16 values in 16 bytes */
  BUFFERS = 2,                             /* images in shared memory, and warpgroups for the input gradient */
  PITCH = 16,                              /* pixels from one row to the next in a plane */
  INPUT_THREADS = BUFFERS * WGMMA_THREADS, /* threads that compute the input gradient */
  THREADS = WGMMA_THREADS + INPUT_THREADS,
  MAX_BLOCKS = 132,                        /* SMs of an H200 */
  MIN_IMAGES = 2,                          /* of a block */
  IN_VECTORS = RL_CONV1_CHANNELS / VECTOR, /* of a pixel of conv1's output */
  IN_PIXEL_BYTES = RL_CONV1_CHANNELS * 2,
  IN_BYTES = 15 << 10, /* RL_POOLED1_SIDE · PITCH + 2 pixels, because the last operand begins at pixel 2 · PITCH + 2 */
  OUT_PIXEL_BYTES = RL_CONV2_CHANNELS * 2,
  ROW_PAIRS = RL_POOLED1_SIDE / 2,
  OUT_BORDER = 2, /* zero pixels before the first row */
  /* The even or odd rows: a row of zeros, six rows of the gradient, a row of zeros. */
  OUT_HALF_BYTES = 17 << 10,
  OUT_BYTES = 2 * OUT_HALF_BYTES,
  COLUMNS = ROW_PAIRS * PITCH,                      /* of the product of the input gradient */
  OUT_ROWS = 4,                                     /* rows of the gradient of conv2's output that a pair of rows depends on */
  WEIGHT_STEPS = OUT_ROWS * 3 * RL_CONV2_CHANNELS,  /* depth of the product of the input gradient */
  WEIGHT_ROW_BYTES = WEIGHT_STEPS * IN_PIXEL_BYTES, /* weights of one of the two rows of a pair */
  WEIGHT_BYTES = 2 * WEIGHT_ROW_BYTES,
  IMAGE_PLANE_HALVES = 776, /* 30 rows of PLANE_PITCH values; 4 banks more than a multiple of 32 banks */
  IMAGE_BYTES = 7 << 10,    /* PLANES · IMAGE_PLANE_HALVES values; buffers begin at multiples of 1024 bytes */
  BUFFER_BYTES = IN_BYTES + OUT_BYTES + IMAGE_BYTES,
  IMAGE_WORDS = RL_IMAGE_PIXELS / 4,
  IMAGE_WORDS_PER_THREAD = (IMAGE_WORDS + WGMMA_THREADS - 1) / WGMMA_THREADS,
  CONV2_COLUMNS = TAPS * RL_CONV1_CHANNELS,
  TAP_ROW_SUMS = RL_CONV2_CHANNELS * 3 * RL_CONV1_CHANNELS / WGMMA_THREADS /* of the weights of three taps */
};

static_assert(IN_BYTES >= (RL_POOLED1_SIDE * PITCH + 2) * IN_PIXEL_BYTES &&
                  OUT_HALF_BYTES >= (OUT_BORDER + (RL_POOLED2_SIDE + 2) * PITCH) * OUT_PIXEL_BYTES,
              "the buffers must contain all operands");

typedef struct backward_args {
  rl_gather gather;
  const __half *pooled1, *conv2_weights, *pooled2_gradient;
  const uint8_t *argmax1, *argmax2;
  float *partial_conv1;
  __half *partial_conv2_weight;
  float *partial_conv2_bias;
  __half *pooled1_gradient; /* NULL: not stored */
  uint32_t epoch_images;    /* images of an epoch */
  rl_train_state *state;
} backward_args;

/* A buffer for an image in shared memory. */
typedef struct image_buffer {
  char in[IN_BYTES], out_gradient[OUT_BYTES];
  __half image[IMAGE_BYTES / 2];
} image_buffer;
static_assert(sizeof(image_buffer) == BUFFER_BYTES, "the members need no padding");

typedef struct shared_memory {
  char weights[WEIGHT_BYTES];
  image_buffer buffers[BUFFERS];
  float conv1_rows[2 * BUFFERS][RL_CONV1_PARAMETERS], bias_sums[INPUT_THREADS][VECTOR];
} shared_memory;

typedef struct image_barriers {
  mbarrier full[BUFFERS], empty[BUFFERS];
} image_barriers;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* the target has wgmma */

template <int COUNT> static __device__ __forceinline__ void named_barrier(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(COUNT) : "memory");
}

/* --- images --------------------------------------------------------------------------------------------------------------- */

/* A thread's part of an image in global memory. */
typedef struct image_part {
  pooled_part pooled2;
  uint32_t pixels[IMAGE_WORDS_PER_THREAD];
} image_part;

/* index: in the data set. thread: index in the warpgroup. */
static __device__ __forceinline__ void load_pixels(const backward_args &args, uint32_t index, int thread, image_part *part) {
  const uint32_t *pixels = (const uint32_t *)&args.gather.images[(size_t)index * RL_IMAGE_PIXELS];
  for (int k = 0; k < IMAGE_WORDS_PER_THREAD; k++)
    part->pixels[k] = thread + k * WGMMA_THREADS < IMAGE_WORDS ? pixels[thread + k * WGMMA_THREADS] : 0;
}

static __device__ __forceinline__ image_part load_part(const backward_args &args, uint32_t n, int thread) {
  image_part part;
  load_pixels(args, dataset_index_of(args.gather, n), thread, &part);
  part.pooled2 = load_pooled(args.pooled2_gradient, args.argmax2, thread, n);
  return part;
}

/* Begins to copy pooled1 of image n. */
static __device__ __forceinline__ void load_in_async(const backward_args &args, uint32_t n, int thread, char *to) {
  const __half *pooled1 = &args.pooled1[(size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS];
#pragma unroll 1
  for (int i = thread; i < RL_POOLED1_PIXELS * IN_VECTORS; i += WGMMA_THREADS) {
    const int pixel = i / IN_VECTORS, unit = pixel / RL_POOLED1_SIDE * PITCH + pixel % RL_POOLED1_SIDE;
    cp_async_16(&to[wgmma_row_offset<IN_PIXEL_BYTES>(unit, i % IN_VECTORS)], &pooled1[i * VECTOR]);
  }
}

/* Stores an image in a buffer, and waits for pooled1. thread: index in the warpgroup. */
static __device__ __forceinline__ void store_image(const image_part &part, int thread, image_buffer *buffer) {
  unpool_vectors(part.pooled2, thread, [&](int pixel, int vector, int position, uint4 values) {
    const int unit = OUT_BORDER + (pixel / RL_POOLED2_SIDE + 1) * PITCH + pixel % RL_POOLED2_SIDE * 2 + position % 2;
    *(uint4 *)&buffer->out_gradient[position / 2 * OUT_HALF_BYTES + wgmma_row_offset<OUT_PIXEL_BYTES>(unit, vector)] = values;
  });
  for (int k = 0; k < IMAGE_WORDS_PER_THREAD; k++) {
    const int word = thread + k * WGMMA_THREADS, w = word % ROW_WORDS;
    if (word < IMAGE_WORDS)
      store_word<IMAGE_PLANE_HALVES>(part.pixels[k], w, &buffer->image[(word / ROW_WORDS + 1) * PLANE_PITCH + 2 * w]);
  }
  cp_async_wait_all();
  fence_async_proxy();
}

/* Adds up the bias gradients of the INPUT_THREADS threads through scratch, and stores the totals in `row`. */
static __device__ __forceinline__ void store_bias(const float sums[VECTOR], int thread, float (*scratch)[VECTOR], float *row) {
  for (int c = 0; c < VECTOR; c++) scratch[thread][c] = sums[c];
  named_barrier<INPUT_THREADS>(1);
  if (thread >= RL_CONV2_CHANNELS) return;
  float total = 0.0f;
  for (int i = 0; i < INPUT_THREADS / CHANNEL_VECTORS; i++)
    total += scratch[i * CHANNEL_VECTORS + thread / VECTOR][thread % VECTOR];
  row[thread] = total;
}

/* --- weight gradient ------------------------------------------------------------------------------------------------------ */

/* A lane's part of a row of windows: the pooled gradient and the argmax of two adjacent channels, for the windows 2 (lane % 4)
 * and 2 (lane % 4) + 1. */
typedef struct lane_windows {
  uint32_t gradient[2], argmax[2];
} lane_windows;

/* offset: that of the lane's first window of the row and its first channel. */
static __device__ __forceinline__ lane_windows load_windows(const backward_args &args, size_t offset) {
  lane_windows windows = {{0, 0}, {RL_ARGMAX_RELU_ZERO * 0x0101u, RL_ARGMAX_RELU_ZERO * 0x0101u}};
  if (threadIdx.x % 4 < RL_POOLED2_SIDE / 2)
    for (int w = 0; w < 2; w++) {
      windows.gradient[w] = *(const uint32_t *)&args.pooled2_gradient[offset + w * RL_CONV2_CHANNELS];
      windows.argmax[w] = *(const uint16_t *)&args.argmax2[offset + w * RL_CONV2_CHANNELS];
    }
  return windows;
}

/* Two rows of pixels as operand A of a sparse wgmma: the rows of A are channels. */
typedef struct sparse_rows {
  uint32_t values[4], metadata;
} sparse_rows;

/* Returns 16 bits for each of two bytes of `bytes`, copies of their bit 7. SELECTOR: the indices of the bytes plus 8, twice. */
template <uint32_t SELECTOR> static __device__ __forceinline__ uint32_t spread_signs(uint32_t bytes) {
  uint32_t mask;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(mask) : "r"(bytes), "r"(0), "n"(SELECTOR));
  return mask;
}

/* Unpools a row of windows to two rows of pixels. Of four adjacent pixels of a row, two windows have at most one gradient each:
 * the pooled gradient if the argmax is in this row, else zero. The metadata, the columns of the argmaxes, are those of both rows;
 * the four lanes of a channel collect them. All lanes of the warp call it. */
static __device__ __forceinline__ sparse_rows unpool_rows(const lane_windows &windows) {
  const uint32_t argmax = __byte_perm(windows.argmax[0], windows.argmax[1], 0x5140); /* by channel, then by window */
  const uint32_t gradient[2] = {__byte_perm(windows.gradient[0], windows.gradient[1], 0x5410),
                                __byte_perm(windows.gradient[0], windows.gradient[1], 0x7632)};
  const uint32_t is_below[2] = {spread_signs<0x9988>(argmax << 6), spread_signs<0xbbaa>(argmax << 6)},
                 is_zero[2] = {spread_signs<0x9988>(argmax << 5), spread_signs<0xbbaa>(argmax << 5)};
  sparse_rows rows;
  for (int channel = 0; channel < 2; channel++) {
    rows.values[channel] = gradient[channel] & ~(is_below[channel] | is_zero[channel]);
    rows.values[2 + channel] = gradient[channel] & is_below[channel];
  }
  rows.metadata = ((argmax & 0x00010001) | (argmax >> 6 & 0x00040004) | 0x00080008) << threadIdx.x % 4 * 4;
  rows.metadata |= __shfl_xor_sync(0xffffffffu, rows.metadata, 1);
  rows.metadata |= __shfl_xor_sync(0xffffffffu, rows.metadata, 2);
  return rows;
}

/* Stores the sums, rounded to FP16. Four lanes exchange pairs of columns, so that each stores eight adjacent columns. Returns
 * false if a stored sum is infinite or NaN. */
static __device__ __forceinline__ bool store_weight_gradient(const float (&sums)[3][TAP_ROW_SUMS], int channel, __half *row) {
  __half2 zero_or_nan = __float2half2_rn(0.0f);
#pragma unroll
  for (int tap_row = 0; tap_row < 3; tap_row++)
#pragma unroll
    for (int first = 0; first < 3 * IN_VECTORS; first += 4)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        uint32_t values[4];
        for (int k = 0; k < 4; k++) {
          const float *two = &sums[tap_row][(first + k) * 4 + i * 2];
          const __half2 pair = __floats2half2_rn(two[0], two[1]);
          zero_or_nan = __hfma2(pair, __float2half2_rn(0.0f), zero_or_nan);
          values[k] = half2_bits(pair);
        }
        transpose_among_four(values);
        const int group = first + threadIdx.x % 4;
        *(uint4 *)&row[(channel + i) * CONV2_COLUMNS + tap_row * 3 * RL_CONV1_CHANNELS + group * VECTOR] =
            make_uint4(values[0], values[1], values[2], values[3]);
      }
  return !__hisnan(__low2half(zero_or_nan)) && !__hisnan(__high2half(zero_or_nan));
}

/* Adds the products of all taps for two rows of pixels; if `first`, sets the sums. in: descriptor of the operand B of the first
 * row and tap, whose k are PITCH pixels of each row. The three taps of a row are one product: the blocks of its operand B begin
 * at adjacent pixels. */
static __device__ __forceinline__ void multiply_rows(float (&sums)[3][TAP_ROW_SUMS], const sparse_rows &rows, uint64_t in,
                                                     bool first) {
  wgmma_fence();
#pragma unroll
  for (int tap_row = 0; tap_row < 3; tap_row++)
    wgmma_sparse_m64n96k32(sums[tap_row], rows.values, rows.metadata, in + tap_row * PITCH * (IN_PIXEL_BYTES / 16), !first);
  wgmma_commit_group();
}

/* Begins to load the images of the next step into L2, where convolutions_forward finds them. The warpgroup calls it. */
static __device__ __forceinline__ void prefetch_next_images(const backward_args &args) {
  const uint32_t first = epoch_position(args.gather, 0) + args.gather.stride, line = threadIdx.x % 8 * 128;
  for (uint32_t n = blockIdx.x + threadIdx.x / 8 * gridDim.x; n < args.gather.stride; n += WGMMA_THREADS / 8 * gridDim.x)
    if (first + n < args.epoch_images) {
      const uint8_t *image = args.gather.images + (size_t)dataset_index_at(args.gather, first + n) * RL_IMAGE_PIXELS;
      asm volatile("prefetch.global.L2 [%0];" ::"l"(&image[min(line, RL_IMAGE_PIXELS - 1)]));
    }
}

static __device__ __forceinline__ void weight_gradient(const backward_args &args, shared_memory *shared,
                                                       image_barriers *barriers) {
  enum { ROW_VALUES = RL_POOLED2_SIDE * RL_CONV2_CHANNELS, IMAGE_VALUES = RL_POOLED2_SIDE * ROW_VALUES };
  const int lane = threadIdx.x % 32, channel = threadIdx.x / 32 % 4 * 16 + lane / 4 * 2;
  const size_t lane_offset = lane % 4 * 2 * RL_CONV2_CHANNELS + channel;
  float sums[3][TAP_ROW_SUMS];
  prefetch_next_images(args);
  pdl_wait();
  lane_windows windows = load_windows(args, blockIdx.x * (size_t)IMAGE_VALUES + lane_offset);
  uint32_t i = 0;
  for (uint32_t n = blockIdx.x; n < args.gather.batch; n += gridDim.x, i++) {
    uint64_t in = wgmma_row_descriptor<IN_PIXEL_BYTES>(shared_address(shared->buffers[i % BUFFERS].in), IN_PIXEL_BYTES);
    mbarrier_spin_cta(&barriers->full[i % BUFFERS], i / BUFFERS + 1);
#pragma unroll 1
    for (int row = 0; row < RL_POOLED2_SIDE; row++, in += 2 * PITCH * (IN_PIXEL_BYTES / 16)) {
      const bool last = row + 1 == RL_POOLED2_SIDE;
      const uint32_t next = last ? min(n + gridDim.x, args.gather.batch - 1) : n;
      const sparse_rows rows = unpool_rows(windows);
      windows = load_windows(args, next * (size_t)IMAGE_VALUES + (last ? 0 : row + 1) * ROW_VALUES + lane_offset);
      multiply_rows(sums, rows, in, i == 0 && row == 0);
      wgmma_wait_group<0>();
    }
    for (int tap_row = 0; tap_row < 3; tap_row++) wgmma_fence_sums(sums[tap_row]);
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&barriers->empty[i % BUFFERS]);
  }
  __half *row = &args.partial_conv2_weight[(size_t)blockIdx.x * RL_CONV2_CHANNELS * CONV2_COLUMNS];
  if (!store_weight_gradient(sums, channel, row)) args.state->overflow = 1;
}

/* --- input gradient, and conv1's gradients -------------------------------------------------------------------------------- */

/* Copies conv2's weights, the transposed operand A. Its k is (row · 3 + column) · 64 + output channel: the weight for row `row` -
 * 2 of the gradient, relative to the pair, and `column` columns to the left. The INPUT_THREADS threads call it. */
static __device__ __forceinline__ void load_weights(const __half *weights, int thread, char *to) {
  for (int i = thread; i < 2 * WEIGHT_STEPS * IN_VECTORS; i += INPUT_THREADS) {
    const int vector = i % IN_VECTORS, k = i / IN_VECTORS % WEIGHT_STEPS, pair_row = i / (IN_VECTORS * WEIGHT_STEPS),
              tap_row = pair_row + 2 - k / (3 * RL_CONV2_CHANNELS), tap = tap_row * 3 + k / RL_CONV2_CHANNELS % 3;
    char *row = &to[pair_row * WEIGHT_ROW_BYTES + wgmma_row_offset<IN_PIXEL_BYTES>(k, vector)];
    if (tap_row >= 0 && tap_row < 3)
      cp_async_16(row, &weights[k % RL_CONV2_CHANNELS * CONV2_COLUMNS + tap * RL_CONV1_CHANNELS + vector * VECTOR]);
    else *(uint4 *)row = make_uint4(0, 0, 0, 0);
  }
}

/* Begins to compute the input gradient of an image. weights, out_gradient: shared addresses. */
static __device__ __forceinline__ void begin_input_gradient(float (&sums)[COLUMNS / 2], uint32_t weights, uint32_t out_gradient) {
  const uint64_t a = wgmma_row_descriptor<IN_PIXEL_BYTES>(weights, WEIGHT_ROW_BYTES),
                 b = wgmma_row_descriptor<OUT_PIXEL_BYTES>(out_gradient);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < WEIGHT_STEPS / 16; k++) {
    const int out_row = k / 12, column = k / 4 % 3, pixel = OUT_BORDER + out_row / 2 * PITCH - column,
              bytes = out_row % 2 * OUT_HALF_BYTES + pixel * OUT_PIXEL_BYTES + k % 4 * WGMMA_STEP_BYTES;
    wgmma_m64n112k16(sums, a + k * 16 * IN_PIXEL_BYTES / 16, b + bytes / 16, k > 0);
  }
  wgmma_commit_group();
}

/* Loads the argmaxes of conv1 that belong to the lane's sums, as the fragments of add_position. offset: that of the image, the
 * lane's first channel and its first pixel in the first row pair. */
static __device__ __forceinline__ void load_argmaxes(const uint8_t *argmax1, size_t offset, uint32_t argmax[ROW_PAIRS][1][4]) {
  for (int pair = 0; pair < ROW_PAIRS; pair++)
    for (int i = 0; i < 4; i++) {
      const uint8_t *from = &argmax1[offset + (pair * 2 * RL_POOLED1_SIDE + i / 2 * 8) * RL_CONV1_CHANNELS + i % 2 * 8];
      const bool is_inside = i < 2 || threadIdx.x % 4 < 3;
      argmax[pair][0][i] = is_inside ? __byte_perm(from[0], from[RL_CONV1_CHANNELS], 0x4400) : 0;
    }
}

/* Stores a lane's rounded gradients of row pair `pair`, for tests. */
static __device__ __forceinline__ void store_gradient(const uint32_t gradient[4], __half *to) {
  for (int i = 0; i < 4; i++) {
    if (i >= 2 && threadIdx.x % 4 == 3) continue;
    const __half2 pair = half2_from_bits(gradient[i]);
    __half *pixel = &to[i / 2 * 8 * RL_CONV1_CHANNELS + i % 2 * 8];
    pixel[0] = __low2half(pair);
    pixel[RL_CONV1_CHANNELS] = __high2half(pair);
  }
}

/* Adds an image's contribution to conv1's gradients. sums: conv1's pooled gradient. offset: that of the lane's first channel and
 * pixel in the tensors of conv1's pooled output. rows: the image from the first row under the lane's pixels on. */
static __device__ __forceinline__ void add_conv1_gradients(const backward_args &args, const float (&sums)[COLUMNS / 2],
                                                           const uint32_t argmax[ROW_PAIRS][1][4], size_t offset,
                                                           const __half *rows, float conv1_sums[1][2][4]) {
#pragma unroll
  for (int pair = 0; pair < ROW_PAIRS; pair++) {
    uint32_t gradient[1][4];
    for (int k = 0; k < 4; k++) {
      const float *two = &sums[(pair * 2 + k / 2) * 4 + k % 2 * 2];
      gradient[0][k] = half2_bits(__floats2half2_rn(two[0], two[1]));
    }
    if (args.pooled1_gradient)
      store_gradient(gradient[0], &args.pooled1_gradient[offset + pair * 2 * RL_POOLED1_SIDE * RL_CONV1_CHANNELS]);
    for (int position = 0; position < POSITIONS; position++)
      add_position<IMAGE_PLANE_HALVES, 1>(gradient, argmax[pair], position, &rows[pair * 4 * PLANE_PITCH], conv1_sums);
  }
}

/* Adds up the rows of conv1's gradients and stores the total. */
static __device__ __forceinline__ void store_conv1_sums(const float (*rows)[RL_CONV1_PARAMETERS], int thread, float *to) {
  named_barrier<INPUT_THREADS>(1);
  for (int k = thread; k < RL_CONV1_PARAMETERS; k += INPUT_THREADS) {
    float sum = 0.0f;
    for (int r = 0; r < 2 * BUFFERS; r++) sum += rows[r][k];
    to[k] = sum;
  }
}

/* Returns the first image of an input warpgroup, or the last image of the batch if it has none. */
static __device__ __forceinline__ uint32_t first_image(const backward_args &args, int w) {
  return min(blockIdx.x + w * gridDim.x, args.gather.batch - 1);
}

/* Computes the input gradients, and from them conv1's gradients, of images w, w + 2, … of the block, in buffer w. thread: index
 * among the INPUT_THREADS. part: has the pixels of the first image. */
static __device__ __forceinline__ void input_gradient(const backward_args &args, int w, int thread, shared_memory *shared,
                                                      image_barriers *barriers, image_part part) {
  const int lane = thread % 32, warp = thread / 32 % 4, row = warp / 2, channel = warp % 2 * 16;
  const size_t lane_offset = (row * RL_POOLED1_SIDE + lane % 4 * 2) * RL_CONV1_CHANNELS + channel + lane / 4;
  const uint32_t stride = BUFFERS * gridDim.x;
  image_buffer *buffer = &shared->buffers[w];
  float conv1_sums[1][2][4] = {}, bias[VECTOR] = {};
  bool finite = true;
  uint32_t phase = 0;
  load_in_async(args, first_image(args, w), thread % WGMMA_THREADS, buffer->in);
  pdl_wait(); /* the loads before do not depend on the previous kernel */
  part.pooled2 = load_pooled(args.pooled2_gradient, args.argmax2, thread % WGMMA_THREADS, first_image(args, w));
  for (uint32_t n = blockIdx.x + w * gridDim.x; n < args.gather.batch; n += stride, phase++) {
    const size_t offset = (size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS + lane_offset;
    uint32_t argmax[ROW_PAIRS][1][4];
    float sums[COLUMNS / 2];
    if (phase > 0) {
      mbarrier_spin_cta(&barriers->empty[w], phase);
      load_in_async(args, n, thread % WGMMA_THREADS, buffer->in);
    }
    store_image(part, thread % WGMMA_THREADS, buffer);
    named_barrier<WGMMA_THREADS>(2 + w);
    if (thread % WGMMA_THREADS == 0) mbarrier_arrive(&barriers->full[w]);
    if (phase == 0) named_barrier<INPUT_THREADS>(1); /* RAW: the weights */
    begin_input_gradient(sums, shared_address(shared->weights), shared_address(buffer->out_gradient));
    finite &= accumulate_bias(part.pooled2, bias);
    load_argmaxes(args.argmax1, offset, argmax);
    part = load_part(args, min(n + stride, args.gather.batch - 1), thread % WGMMA_THREADS);
    wgmma_wait_group<0>();
    wgmma_fence_sums(sums);
    add_conv1_gradients(args, sums, argmax, offset, &buffer->image[row * 2 * PLANE_PITCH], conv1_sums);
    named_barrier<WGMMA_THREADS>(2 + w); /* WAR: the buffer */
  }
  if (phase == 0) { /* a block with one image: the other warpgroup waits for the weights */
    cp_async_wait_all();
    fence_async_proxy();
    named_barrier<INPUT_THREADS>(1);
  }
  finite &=
      store_sums<1>(conv1_sums, shared->conv1_rows[w * 2 + row], [&](int, int half) { return channel + half * 8 + lane / 4; });
  if (!finite) args.state->overflow = 1;
  store_conv1_sums(shared->conv1_rows, thread, &args.partial_conv1[blockIdx.x * RL_CONV1_PARAMETERS]);
  store_bias(bias, thread, shared->bias_sums, &args.partial_conv2_bias[blockIdx.x * RL_CONV2_CHANNELS]);
}

/* ------------------------------------------------------------------------------------------------------------------------- */

/* Fills the parts of the buffers that images do not set: image planes with border pixels, the rest with zeros. */
static __device__ __forceinline__ void clear_buffers(shared_memory *shared) {
  const uint4 zeros = make_uint4(0, 0, 0, 0);
  const uint32_t border = half2_bits(__float2half2_rn(BORDER));
  for (int b = 0; b < BUFFERS; b++) {
    for (int i = threadIdx.x; i < IN_BYTES / 16; i += THREADS) {
      const int pixel = i / IN_VECTORS;
      if (pixel % PITCH >= RL_POOLED1_SIDE || pixel >= RL_POOLED1_SIDE * PITCH) ((uint4 *)shared->buffers[b].in)[i] = zeros;
    }
    for (int i = threadIdx.x; i < OUT_BYTES / 16; i += THREADS) {
      const int pixel = i / CHANNEL_VECTORS % (OUT_HALF_BYTES / OUT_PIXEL_BYTES) - OUT_BORDER - PITCH;
      if (pixel < 0 || pixel >= RL_POOLED2_SIDE * PITCH || pixel % PITCH >= RL_CONV2_SIDE)
        ((uint4 *)shared->buffers[b].out_gradient)[i] = zeros;
    }
    for (int i = threadIdx.x; i < IMAGE_BYTES / 16; i += THREADS)
      ((uint4 *)shared->buffers[b].image)[i] = make_uint4(border, border, border, border);
  }
}

#endif

static __global__ void __launch_bounds__(THREADS, 1) convolutions_backward(const backward_args args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char dynamic[];
  __shared__ image_barriers barriers;
  shared_memory *shared = (shared_memory *)dynamic;
  const int warpgroup = threadIdx.x / WGMMA_THREADS;
  if (threadIdx.x == 0)
    for (int i = 0; i < BUFFERS; i++) {
      mbarrier_init(&barriers.full[i]);
      mbarrier_init(&barriers.empty[i], WGMMA_THREADS / 32);
    }
  image_part part;
  uint32_t index = 0;
  if (warpgroup > 0) {
    const uint32_t position = epoch_position(args.gather, first_image(args, warpgroup - 1));
    load_weights(args.conv2_weights, threadIdx.x - WGMMA_THREADS, shared->weights);
    index = dataset_index_at(args.gather, position);
  }
  clear_buffers(shared);
  if (warpgroup > 0) load_pixels(args, index, threadIdx.x % WGMMA_THREADS, &part);
  fence_async_proxy();
  __syncthreads();
  if (warpgroup == 0) {
    raise_register_limit<184>();
    weight_gradient(args, shared, &barriers);
  } else {
    lower_register_limit<160>();
    input_gradient(args, warpgroup - 1, threadIdx.x - WGMMA_THREADS, shared, &barriers, part);
  }
#else
  __trap();
#endif
}

/* Returns the number of blocks: as few as have the fewest images on the busiest SM, with at least MIN_IMAGES images each. */
uint32_t rl_convolutions_partial_rows(uint32_t batch) {
  const uint32_t images = (batch + MAX_BLOCKS - 1) / MAX_BLOCKS, per_block = images < MIN_IMAGES ? (uint32_t)MIN_IMAGES : images;
  return (batch + per_block - 1) / per_block;
}

int rl_convolutions_backward(const rl_convolutions_gradients *g, cudaStream_t stream, rl_error *err) {
  const backward_args args = {g->gather,
                              (const __half *)g->pooled1,
                              (const __half *)g->conv2_weights,
                              (const __half *)g->pooled2_gradient,
                              g->argmax1,
                              g->argmax2,
                              g->partial_conv1,
                              (__half *)g->partial_conv2_weight,
                              g->partial_conv2_bias,
                              (__half *)g->pooled1_gradient,
                              g->epoch_images,
                              g->state};
  if (rl_cuda_check(
          cudaFuncSetAttribute(convolutions_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(shared_memory)),
          "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("convolutions backward", convolutions_backward, rl_convolutions_partial_rows(g->gather.batch), THREADS,
                       sizeof(shared_memory), stream, err, args);
}
