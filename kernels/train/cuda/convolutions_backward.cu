/* Implements rl_convolutions_backward (kernels.h): the backward passes of conv2 and conv1 in one kernel, in FP16 on the tensor
 * cores of Hopper. The gradient of conv1's pooled output stays on the chip.
 *
 * Sparsity: max-pooling passes the gradient of a window to at most one of its four pixels. Of four adjacent pixels in a row of
 * conv2's output, which belong to two windows, at most two have a gradient. So the gradient of conv2's output is a sparse operand
 * A of wgmma: for each window and row, the stored value is the pooled gradient if its argmax is in this row, else zero; the
 * metadata are the columns of the argmaxes. A sparse wgmma takes half the time of a dense one.
 *
 * Division of work: a block processes its images on one SM, with three warpgroups:
 *
 *   weight gradient  one warpgroup, for all images: adds up nine products, one for each tap: [64 output channels × pixels] ·
 *                    [pixels × 32 channels], with pixels of two rows as the depth. It also adds up conv2's bias gradient.
 *   input gradient   two warpgroups, each for every second image. A warpgroup computes conv1's pooled gradient in patches of
 *                    2 × 2 pixels, which depend on four rows and four columns of conv2's output. A row of the patches is the sum
 *                    of three products, one for each row of the filter: [patches × (4 columns × 64 channels)] · [(4 columns × 64
 *                    channels) × (2 pixels × 32 channels)]. A quarter of the weights are zeros, because a pixel depends on three
 *                    of the four columns. From the gradient the warpgroup computes those of conv1 by mma.sync, as in
 *                    conv1_half.cu: their operand A is the transpose of the gradient (in registers, by movmatrix), rounded to
 *                    FP16.
 *
 * There are 7 × 7 patches; the eighth patch of each row, and the eighth row, are zeros. Each warp has two rows of patches.
 *
 * Each block stores one row of partial sums of each gradient. Sums are FP32, in a fixed order; those of conv2's weights are
 * stored in FP16, so that Adam reads half as many bytes. Blocks exchange no data.
 *
 * Before the wait for the previous kernel (fc1's input gradient), a block loads conv2's weights, and pooled1 and the pixels of
 * its first images: kernels that had ended when the previous one began its work have written them (pdl.cuh).
 *
 * Shared memory: a pixel of conv1's output is a row of 64 bytes, and an image row has PITCH pixels, so operands that are shifted
 * by a tap begin at another pixel of the same image (wgmma_row_descriptor).
 *
 * Synchronisation: full[buffer] ends a phase when conv1's output has been loaded (RAW), empty[buffer] when the weight gradient
 * has read it (WAR).
 *
 * Shortest possible time: 5 µs on an H200 at batch 512: 2400 cycles for each image by wgmma. */
#include "clusters.cuh"
#include "hopper/wgmma.cuh"
#include "pdl.cuh"
#include "train/cuda/conv1_planes.cuh"
#include "train/cuda/gather.cuh"
#include "train/cuda/unpool.cuh"

enum {
  VECTOR = 8,                              /* FP16 values in 16 bytes */
  BUFFERS = 2,                             /* images in shared memory, and warpgroups for the input gradient */
  INPUT_THREADS = BUFFERS * WGMMA_THREADS, /* threads that compute the input gradient */
  INPUT_WARPS = INPUT_THREADS / 32,
  THREADS = WGMMA_THREADS + INPUT_THREADS,
  MAX_BLOCKS = 132,                        /* SMs of an H200 */
  MIN_IMAGES = 2,                          /* of a block */
  PITCH = 16,                              /* pixels from one row of conv1's output to the next in shared memory */
  IN_VECTORS = RL_CONV1_CHANNELS / VECTOR, /* of a pixel of conv1's output */
  IN_PIXEL_BYTES = RL_CONV1_CHANNELS * 2,
  IN_BYTES = 15 << 10, /* RL_POOLED1_SIDE · PITCH + 2 pixels, because the last operand begins at pixel 2 · PITCH + 2 */
  GRID_SIDE = RL_POOLED2_SIDE + 2,           /* windows of conv2, with a border of one window */
  STEP_CHANNELS = 8,                         /* of a product of the input gradient: four pixels of each */
  STEPS = RL_CONV2_CHANNELS / STEP_CHANNELS, /* of an operand A */
  LANE_CHANNELS = RL_CONV2_CHANNELS / 4,     /* of the four lanes of a patch */
  WEIGHT_K_BYTES = 2 * IN_PIXEL_BYTES,       /* weights of one k: two pixels of a patch, 32 channels */
  WEIGHT_STEP_BYTES = 4 * STEP_CHANNELS * WEIGHT_K_BYTES,
  WEIGHT_ROW_BYTES = STEPS * WEIGHT_STEP_BYTES, /* weights of one row of the filter */
  IMAGE_PLANES = 6,
  IMAGE_PITCH = 8,          /* FP16 values from a row of a plane to the next */
  IMAGE_PLANE_HALVES = 280, /* 34 rows; 12 banks more than a multiple of 32 banks */
  ARGMAX_ROW_BYTES = 16 * RL_CONV1_CHANNELS,
  CONV1_SUMS = 16, /* of a thread: conv1's gradients */
  IMAGE_WORDS = RL_IMAGE_PIXELS / 4,
  IMAGE_WORDS_PER_THREAD = (IMAGE_WORDS + WGMMA_THREADS - 1) / WGMMA_THREADS,
  CONV2_COLUMNS = TAPS * RL_CONV1_CHANNELS,
  TAP_ROW_SUMS = RL_CONV2_CHANNELS * 3 * RL_CONV1_CHANNELS / WGMMA_THREADS /* of the weights of three taps */
};
static_assert(IN_BYTES >= (RL_POOLED1_SIDE * PITCH + 2) * IN_PIXEL_BYTES, "an image must contain all operands");

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

/* Pooled gradient and argmax of an image, as in global memory. */
typedef struct raw_gradient {
  uint4 gradient[IMAGE_VECTORS];
  uint2 argmax[IMAGE_VECTORS];
} raw_gradient;

/* The gradients of a window of conv2 as parts of sparse operands: where the argmax is in the upper row, and where it is in the
 * lower one. columns[s % 2][s / 2] has the columns of the argmaxes of step s: bit 4 j is that of the step's channel j. */
typedef struct window_gradients {
  uint32_t rows[2][STEPS][4]; /* [row][step][lane], two channels each */
  uint32_t columns[2][STEPS / 2];
  uint32_t padding[4]; /* the lanes' parts of eight adjacent windows are in different banks */
} window_gradients;

/* A buffer for an image in shared memory. */
typedef struct __align__(1024) image_buffer {
  char in[IN_BYTES];
  window_gradients windows[GRID_SIDE * GRID_SIDE];
  raw_gradient raw;
  uint8_t argmax1[(RL_POOLED1_SIDE + 2) * ARGMAX_ROW_BYTES];
  __half image[IMAGE_PLANES * IMAGE_PLANE_HALVES];
}
image_buffer;

typedef struct shared_memory {
  char weights[3 * WEIGHT_ROW_BYTES];
  image_buffer buffers[BUFFERS];
  float conv1_sums[CONV1_SUMS][INPUT_THREADS];
} shared_memory;

static_assert(sizeof(raw_gradient) >= 4 * RL_CONV1_PARAMETERS * sizeof(float), "raw must have room for the rows of a warpgroup");

typedef struct image_barriers {
  mbarrier full[BUFFERS], empty[BUFFERS];
} image_barriers;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* the target has wgmma */

template <int COUNT> static __device__ __forceinline__ void named_barrier(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(COUNT) : "memory");
}

/* --- images --------------------------------------------------------------------------------------------------------------- */

/* A thread's pixels of an image. */
typedef struct thread_pixels {
  uint32_t words[IMAGE_WORDS_PER_THREAD];
} thread_pixels;

/* index: in the data set. thread: index in the warpgroup. */
static __device__ __forceinline__ thread_pixels load_pixels(const backward_args &args, uint32_t index, int thread) {
  const uint32_t *words = (const uint32_t *)&args.gather.images[(size_t)index * RL_IMAGE_PIXELS];
  thread_pixels pixels;
  for (int k = 0; k < IMAGE_WORDS_PER_THREAD; k++)
    pixels.words[k] = thread + k * WGMMA_THREADS < IMAGE_WORDS ? words[thread + k * WGMMA_THREADS] : 0;
  return pixels;
}

/* Stores the image in planes: element x of plane c is column 4 x + c of a row, with the border. */
static __device__ __forceinline__ void store_pixels(const thread_pixels &pixels, int thread, __half *image) {
  for (int k = 0; k < IMAGE_WORDS_PER_THREAD; k++) {
    const int word = thread + k * WGMMA_THREADS, w = word % ROW_WORDS;
    if (word >= IMAGE_WORDS) continue;
    __half *to = &image[(word / ROW_WORDS + 1) * IMAGE_PITCH + w];
    const __half2 odd = minus_middle(pixels.words[k], 0x4240), even = minus_middle(pixels.words[k], 0x4341);
    to[1 * IMAGE_PLANE_HALVES] = __low2half(odd);
    if (w > 0) to[5 * IMAGE_PLANE_HALVES - 1] = __low2half(odd);
    to[2 * IMAGE_PLANE_HALVES] = __low2half(even);
    to[3 * IMAGE_PLANE_HALVES] = __high2half(odd);
    to[4 * IMAGE_PLANE_HALVES] = __high2half(even);
    to[1] = __high2half(even);
  }
}

/* Begins to copy pooled1 and argmax1 of image n. argmax1 is stored so that pixels 4, 8 and 12 columns apart are adjacent. */
static __device__ __forceinline__ void load_in_async(const backward_args &args, uint32_t n, int thread, image_buffer *to) {
  const size_t offset = (size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS;
#pragma unroll 1
  for (int i = thread; i < RL_POOLED1_PIXELS * IN_VECTORS; i += WGMMA_THREADS) {
    const int pixel = i / IN_VECTORS, unit = pixel / RL_POOLED1_SIDE * PITCH + pixel % RL_POOLED1_SIDE;
    cp_async_16(&to->in[wgmma_row_offset<IN_PIXEL_BYTES>(unit, i % IN_VECTORS)], &args.pooled1[offset + i * VECTOR]);
  }
#pragma unroll 1
  for (int i = thread; i < RL_POOLED1_PIXELS * 2; i += WGMMA_THREADS) {
    const int y = i / 2 / RL_POOLED1_SIDE, x = i / 2 % RL_POOLED1_SIDE;
    cp_async_16(&to->argmax1[y * ARGMAX_ROW_BYTES + (x % 4 * 4 + x / 4) * RL_CONV1_CHANNELS + i % 2 * 16],
                &args.argmax1[offset + i * 16]);
  }
  cp_async_commit_group();
}

/* Begins to copy the gradient of image n. Each thread copies what it stores in store_windows. */
static __device__ __forceinline__ void load_gradient_async(const backward_args &args, uint32_t n, int thread, raw_gradient *to) {
  for (int i = thread; i < IMAGE_VECTORS; i += WGMMA_THREADS) {
    const size_t offset = ((size_t)n * IMAGE_VECTORS + i) * VECTOR;
    cp_async_16(&to->gradient[i], &args.pooled2_gradient[offset]);
    cp_async_8(&to->argmax[i], &args.argmax2[offset]);
  }
  cp_async_commit_group();
}

/* Returns 16 bits for each of two bytes of `bytes`, copies of their bit 7. SELECTOR: the indices of the bytes plus 8, twice. */
template <uint32_t SELECTOR> static __device__ __forceinline__ uint32_t spread_signs(uint32_t bytes) {
  uint32_t mask;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(mask) : "r"(bytes), "r"(0), "n"(SELECTOR));
  return mask;
}

/* Splits a window's gradients of two channels by the row of the argmax. argmax: two bytes, the other two are ignored. */
static __device__ __forceinline__ void split_rows(uint32_t gradient, uint32_t argmax, uint32_t *upper, uint32_t *lower) {
  const uint32_t is_lower = spread_signs<0x9988>(argmax << 6), is_zero = spread_signs<0x9988>(argmax << 5);
  *upper = gradient & ~(is_lower | is_zero);
  *lower = gradient & is_lower;
}

/* The four lanes that have the same channels of a window modulo LANE_CHANNELS combine their bits of four words, and each returns
 * one word: with index lane / 2 % 2 · 2 + lane / 4 % 2. */
static __device__ __forceinline__ uint32_t combine_among_four(const uint32_t words[4]) {
  const bool high = threadIdx.x & 2, odd = threadIdx.x & 4;
  uint32_t kept[2];
  for (int k = 0; k < 2; k++)
    kept[k] = (high ? words[2 + k] : words[k]) | __shfl_xor_sync(0xffffffffu, high ? words[k] : words[2 + k], 2);
  return (odd ? kept[1] : kept[0]) | __shfl_xor_sync(0xffffffffu, odd ? kept[0] : kept[1], 4);
}

/* Stores the gradients of an image as parts of sparse operands. */
static __device__ __forceinline__ void store_windows(const raw_gradient &raw, int thread, window_gradients *windows) {
#pragma unroll
  for (int k = 0; k < VECTORS_PER_THREAD; k++) {
    const int i = thread + k * WGMMA_THREADS;
    if (i >= IMAGE_VECTORS) continue; /* whole warps */
    const int window = i / CHANNEL_VECTORS, lane = i % CHANNEL_VECTORS / 2, half = i % 2;
    window_gradients *to = &windows[(window / RL_POOLED2_SIDE + 1) * GRID_SIDE + window % RL_POOLED2_SIDE + 1];
    const uint4 gradient = raw.gradient[i];
    const uint2 argmax = raw.argmax[i];
    uint32_t upper[4], lower[4], columns[4];
    for (int pair = 0; pair < 4; pair++) {
      const uint32_t two = (&argmax.x)[pair / 2] >> pair % 2 * 16;
      split_rows((&gradient.x)[pair], two, &upper[pair], &lower[pair]);
      columns[pair] = ((two & 1) | (two << 8 & 0x10000)) << lane * 4;
    }
    for (int p = 0; p < 4; p++) to->rows[0][half * 4 + p][lane] = upper[p], to->rows[1][half * 4 + p][lane] = lower[p];
    const uint32_t combined = combine_among_four(columns);
    to->columns[lane / 2][half * 2 + lane % 2] = combined;
  }
}

/* --- weight gradient ------------------------------------------------------------------------------------------------------ */

/* Two rows of pixels as operand A of a sparse wgmma: the rows of A are channels. */
typedef struct sparse_rows {
  uint32_t values[4], metadata;
} sparse_rows;

/* Returns the first of the two channels of a lane, which are rows lane / 4 and lane / 4 + 8 of a warp's operand A. */
static __device__ __forceinline__ int lane_channel(int warp) {
  const int row = threadIdx.x % 32 / 4;
  return row % 4 * LANE_CHANNELS + warp * 4 + row / 4 * 2;
}

/* Returns a row of windows as two rows of pixels. Both have the same metadata, which the four lanes of a channel collect. All
 * lanes of the warp call it. windows: the first of the row. */
static __device__ __forceinline__ sparse_rows load_rows(const window_gradients *windows, int warp) {
  const int row = threadIdx.x % 32 / 4, lane = threadIdx.x % 4;
  const window_gradients *left = &windows[lane * 2], *right = left + 1;
  sparse_rows rows;
  for (int lower = 0; lower < 2; lower++) {
    const uint32_t two[2] = {left->rows[lower][warp * 2 + row / 4][row % 4], right->rows[lower][warp * 2 + row / 4][row % 4]};
    rows.values[lower * 2] = __byte_perm(two[0], two[1], 0x5410);
    rows.values[lower * 2 + 1] = __byte_perm(two[0], two[1], 0x7632);
  }
  const uint32_t columns[2] = {left->columns[row / 4][warp] >> row % 4 * 4, right->columns[row / 4][warp] >> row % 4 * 4};
  rows.metadata = ((columns[0] & 0x00010001) | (columns[1] << 2 & 0x00040004) | 0x00080008) << lane * 4;
  rows.metadata |= __shfl_xor_sync(0xffffffffu, rows.metadata, 1);
  rows.metadata |= __shfl_xor_sync(0xffffffffu, rows.metadata, 2);
  return rows;
}

/* Adds the gradients of the lane's two channels to their bias gradients. */
static __device__ __forceinline__ void add_to_bias(const sparse_rows &rows, float bias[2]) {
  for (int channel = 0; channel < 2; channel++) {
    const __half2 windows = half2_from_bits(rows.values[channel] | rows.values[2 + channel]);
    bias[channel] += __low2float(windows) + __high2float(windows);
  }
}

/* Stores the bias gradients of a warp. Returns false if one of them is infinite or NaN. */
static __device__ __forceinline__ bool store_bias(float bias[2], float *to) {
  for (int channel = 0; channel < 2; channel++)
    for (int lanes = 1; lanes < 4; lanes *= 2) bias[channel] += __shfl_xor_sync(0xffffffffu, bias[channel], lanes);
  if (threadIdx.x % 4 == 0) *(float2 *)to = make_float2(bias[0], bias[1]);
  return isfinite(bias[0]) && isfinite(bias[1]);
}

/* Stores the sums, rounded to FP16. Four lanes exchange pairs of columns, so that each stores eight adjacent columns. Returns
 * false if a stored sum is infinite or NaN. */
static __device__ __forceinline__ bool store_weight_gradient(const float (&sums)[3][TAP_ROW_SUMS], int channel, __half *row) {
  half2_check check;
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
          check.add(pair);
          values[k] = half2_bits(pair);
        }
        transpose_among_four(values);
        const int group = first + threadIdx.x % 4;
        *(uint4 *)&row[(channel + i) * CONV2_COLUMNS + tap_row * 3 * RL_CONV1_CHANNELS + group * VECTOR] =
            make_uint4(values[0], values[1], values[2], values[3]);
      }
  return check.all_finite();
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
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, channel = lane_channel(warp);
  float sums[3][TAP_ROW_SUMS], bias[2] = {};
  prefetch_next_images(args);
  pdl_wait();
  uint32_t i = 0;
  for (uint32_t n = blockIdx.x; n < args.gather.batch; n += gridDim.x, i++) {
    const image_buffer *buffer = &shared->buffers[i % BUFFERS];
    const window_gradients *windows = &buffer->windows[GRID_SIDE + 1];
    uint64_t in = wgmma_row_descriptor<IN_PIXEL_BYTES>(shared_address(buffer->in), IN_PIXEL_BYTES);
    mbarrier_spin_cta(&barriers->full[i % BUFFERS], i / BUFFERS + 1);
#pragma unroll 1
    for (int row = 0; row < RL_POOLED2_SIDE; row += 2) {
      sparse_rows rows[2];
#pragma unroll
      for (int k = 0; k < 2; k++, windows += GRID_SIDE, in += 2 * PITCH * (IN_PIXEL_BYTES / 16)) {
        rows[k] = load_rows(windows, warp);
        add_to_bias(rows[k], bias);
        multiply_rows(sums, rows[k], in, i == 0 && row == 0 && k == 0);
      }
      wgmma_wait_group<0>();
    }
    for (int tap_row = 0; tap_row < 3; tap_row++) wgmma_fence_sums(sums[tap_row]);
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&barriers->empty[i % BUFFERS]);
  }
  __half *row = &args.partial_conv2_weight[(size_t)blockIdx.x * RL_CONV2_CHANNELS * CONV2_COLUMNS];
  bool finite = store_weight_gradient(sums, channel, row);
  finite &= store_bias(bias, &args.partial_conv2_bias[blockIdx.x * RL_CONV2_CHANNELS + channel]);
  if (!finite) args.state->overflow = 1;
}

/* --- input gradient, and conv1's gradients -------------------------------------------------------------------------------- */

/* A lane's parts of operand A: those of the windows around its two patches, in the columns left and right of the patches. The
 * patches are 2 × 2 pixels, those of the lane are in the same column. */
typedef struct lane_patches {
  const window_gradients *left, *right; /* windows of the first row */
  int last_row;                         /* from these to the windows of the third row */
  uint32_t metadata[2][STEPS / 2];      /* [rows of windows][pair of steps] */
} lane_patches;

/* Begins to copy conv2's weights, operand B of the input gradient. For each row of the filter, k is (channel · 4 + column): four
 * columns of conv2's output, of which the two pixels of a patch row depend on three each. Channels are in the order of the steps:
 * channel j of step s is LANE_CHANNELS · (j % 4) + 2 s + j / 4. The INPUT_THREADS threads call it; each has the same k and vector
 * of every step. */
static __device__ __forceinline__ void load_weights(const __half *weights, int thread, char *to) {
  const int vector = thread % IN_VECTORS, pixel = thread / IN_VECTORS % 2, k = thread / (IN_VECTORS * 2), j = k / 4,
            tap_column = pixel + 2 - k % 4;
  const __half *from =
      &weights[(LANE_CHANNELS * (j % 4) + j / 4) * CONV2_COLUMNS + tap_column * RL_CONV1_CHANNELS + vector * VECTOR];
  to += wgmma_row_offset<WEIGHT_K_BYTES>(k, pixel * IN_VECTORS + vector);
#pragma unroll
  for (int row = 0; row < 3; row++)
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
      char *unit = &to[row * WEIGHT_ROW_BYTES + step * WEIGHT_STEP_BYTES];
      if (tap_column >= 0 && tap_column < 3) cp_async_16(unit, &from[step * 2 * CONV2_COLUMNS + row * 3 * RL_CONV1_CHANNELS]);
      else *(uint4 *)unit = make_uint4(0, 0, 0, 0);
    }
}
static_assert(INPUT_THREADS * 16 == WEIGHT_STEP_BYTES, "each thread must copy a vector of every step");

/* Returns the lane's patches. The windows of a patch in row `row` of the patches are in the rows `row` and `row` + 1 of the grid;
 * a warp has the rows 2 · warp and 2 · warp + 1 of patches, of which the last one does not exist. */
static __device__ __forceinline__ lane_patches prepare_patches(const window_gradients *windows, int warp) {
  const int lane = threadIdx.x % 32, column = lane / 4;
  lane_patches patches = {&windows[warp * 2 * GRID_SIDE + column],
                          &windows[warp * 2 * GRID_SIDE + min(column + 1, GRID_SIDE - 1)], (warp < 3 ? 2 : 1) * GRID_SIDE};
  uint32_t indices[3][STEPS / 2];
  for (int row = 0; row < 3; row++) {
    const int shift = row < 2 ? row * GRID_SIDE : patches.last_row;
    const uint4 left = *(const uint4 *)patches.left[shift].columns[lane / 2 % 2],
                right = *(const uint4 *)patches.right[shift].columns[lane / 2 % 2];
    for (int k = 0; k < STEPS / 2; k++) indices[row][k] = (&left.x)[k] | (&right.x)[k] << 2 | 0x88888888;
  }
  for (int k = 0; k < STEPS / 2; k++)
    for (int rows = 0; rows < 2; rows++)
      patches.metadata[rows][k] = __byte_perm(indices[rows][k], indices[rows + 1][k], lane % 2 ? 0x7632 : 0x5410);
  return patches;
}

/* The gradients of a step around a lane's patches: [row of windows][left or right][upper or lower row]. */
typedef uint32_t step_gradients[3][2][2];

static __device__ __forceinline__ void load_step(const lane_patches &patches, int step, step_gradients &gradients) {
  for (int row = 0; row < 3; row++)
    for (int lower = 0; lower < 2; lower++) {
      const int shift = row < 2 ? row * GRID_SIDE : patches.last_row, lane = threadIdx.x % 4;
      gradients[row][0][lower] = patches.left[shift].rows[lower][step][lane];
      gradients[row][1][lower] = patches.right[shift].rows[lower][step][lane];
    }
}

/* Returns operand A of a step in a[row], for the four rows of conv2's output that the patches depend on. */
static __device__ __forceinline__ void build_operands(const step_gradients &gradients, uint32_t (&a)[4][4]) {
  for (int row = 0; row < 4; row++)
    for (int k = 0; k < 4; k++)
      a[row][k] =
          __byte_perm(gradients[row / 2 + k % 2][0][row % 2], gradients[row / 2 + k % 2][1][row % 2], k < 2 ? 0x5410 : 0x7632);
}

/* Begins the products of one step. sums: of the upper row of the patches, then of the lower row. weights: descriptor of operand B
 * of the step for the first row of the filter. */
template <int ODD> static __device__ __forceinline__ void multiply_step(float (&sums)[2][32], const uint32_t (&a)[4][4],
                                                                        const uint32_t metadata[2], uint64_t weights,
                                                                        bool first) {
  enum { ROW = WEIGHT_ROW_BYTES / 16 };
  wgmma_fence();
  wgmma_sparse_m64n64k32<ODD>(sums[0], a[0], metadata[0], weights + 2 * ROW, !first);
  wgmma_sparse_m64n64k32<ODD>(sums[1], a[1], metadata[0], weights + 2 * ROW, !first);
  wgmma_sparse_m64n64k32<ODD>(sums[0], a[1], metadata[0], weights + ROW, true);
  wgmma_sparse_m64n64k32<ODD>(sums[1], a[2], metadata[1], weights + ROW, true);
  wgmma_sparse_m64n64k32<ODD>(sums[0], a[2], metadata[1], weights, true);
  wgmma_sparse_m64n64k32<ODD>(sums[1], a[3], metadata[1], weights, true);
  wgmma_commit_group();
}

/* Computes the input gradient of the patches. in_the_middle is called while products run. */
template <class Function> static __device__ __forceinline__ void multiply_patches(const lane_patches &patches, uint32_t weights,
                                                                                  float (&sums)[2][32], Function in_the_middle) {
  const uint64_t b = wgmma_row_descriptor<WEIGHT_K_BYTES>(weights, WEIGHT_ROW_BYTES);
  uint32_t a[2][4][4];
  step_gradients gradients;
  load_step(patches, 0, gradients);
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    const uint32_t metadata[2] = {patches.metadata[0][step / 2], patches.metadata[1][step / 2]};
    const uint64_t step_b = b + step * (WEIGHT_STEP_BYTES / 16);
    if (step > 1) wgmma_wait_group<1>();
    build_operands(gradients, a[step % 2]);
    if (step % 2) multiply_step<1>(sums, a[1], metadata, step_b, false);
    else multiply_step<0>(sums, a[0], metadata, step_b, step == 0);
    if (step + 1 < STEPS) load_step(patches, step + 1, gradients);
    if (step == 1) in_the_middle();
  }
  wgmma_wait_group<0>();
  for (int row = 0; row < 2; row++) wgmma_fence_sums(sums[row]);
}

/* Stores a lane's rounded gradients of image n, for tests. */
static __device__ __forceinline__ void store_gradient(const float (&sums)[2][32], int warp, __half *to) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 32; i++) { /* i: row and column in the patch, eight channels, patch */
    const int y = warp * 4 + i % 2 * 2 + i / 16, x = lane / 4 * 2 + i / 8 % 2, channel = i / 2 % 4 * 8 + lane % 4 * 2;
    if (y < RL_POOLED1_SIDE && x < RL_POOLED1_SIDE)
      *(__half2 *)&to[(y * RL_POOLED1_SIDE + x) * RL_CONV1_CHANNELS + channel] =
          __floats2half2_rn(sums[i / 16][i % 16 * 2], sums[i / 16][i % 16 * 2 + 1]);
  }
}

/* Adds an image's contribution to conv1's gradients. sums: conv1's pooled gradient. The fragments of operand A have the gradients
 * of eight patches in each of the warp's two rows: of the pixel (y, x) of each patch, of 16 channels. */
static __device__ __forceinline__ void add_conv1_gradients(const float (&sums)[2][32], const image_buffer &buffer, int warp,
                                                           float (*thread_sums)[INPUT_THREADS]) {
  const int lane = threadIdx.x % 32;
  float conv1_sums[2][2][4];
  for (int i = 0; i < CONV1_SUMS; i++) (&conv1_sums[0][0][0])[i] = *thread_sums[i];
  const uint8_t *argmax1 = &buffer.argmax1[warp * 4 * ARGMAX_ROW_BYTES + lane % 4 * RL_CONV1_CHANNELS + lane / 4];
  const __half *image = &buffer.image[warp * 8 * IMAGE_PITCH];
#pragma unroll
  for (int pixel = 0; pixel < 4; pixel++) {
    const int y = pixel / 2, x = pixel % 2;
    uint32_t gradient[2][4], argmax[2][4];
    for (int tile = 0; tile < 2; tile++)
      for (int k = 0; k < 4; k++) {
        const float *two = &sums[y][(x * 4 + tile * 2 + k % 2) * 4 + k / 2 * 2];
        const uint8_t *from = &argmax1[(k / 2 * 2 + y) * ARGMAX_ROW_BYTES + x * 4 * RL_CONV1_CHANNELS + tile * 16 + k % 2 * 8];
        gradient[tile][k] = movmatrix_trans(half2_bits(__floats2half2_rn(two[0], two[1])));
        argmax[tile][k] = __byte_perm(from[0], from[8 * RL_CONV1_CHANNELS], 0x4400);
      }
    for (int position = 0; position < POSITIONS; position++)
      add_position<IMAGE_PLANE_HALVES, IMAGE_PITCH, 4 * IMAGE_PITCH, 2>(
          gradient, argmax, position, &image[2 * x * IMAGE_PLANE_HALVES + 2 * y * IMAGE_PITCH], conv1_sums);
  }
  for (int i = 0; i < CONV1_SUMS; i++) *thread_sums[i] = (&conv1_sums[0][0][0])[i];
}

/* Adds up the rows of conv1's gradients, which are in `raw` of the buffers, and stores the total. */
static __device__ __forceinline__ void store_conv1_sums(const shared_memory *shared, int thread, float *to) {
  named_barrier<INPUT_THREADS>(1);
  for (int k = thread; k < RL_CONV1_PARAMETERS; k += INPUT_THREADS) {
    float sum = 0.0f;
    for (int r = 0; r < INPUT_WARPS; r++) sum += ((const float(*)[RL_CONV1_PARAMETERS])(&shared->buffers[r / 4].raw))[r % 4][k];
    to[k] = sum;
  }
}

/* Returns the first image of an input warpgroup, or the last image of the batch if it has none. */
static __device__ __forceinline__ uint32_t first_image(const backward_args &args, int w) {
  return min(blockIdx.x + w * gridDim.x, args.gather.batch - 1);
}

/* Computes the input gradients, and from them conv1's gradients, of images w, w + 2, … of the block, in buffer w. conv1's output
 * of the first image is being loaded. thread: index among the INPUT_THREADS. */
static __device__ __forceinline__ void input_gradient(const backward_args &args, int w, int thread, shared_memory *shared,
                                                      image_barriers *barriers) {
  const int lane = thread % 32, warp = thread / 32 % 4, own = thread % WGMMA_THREADS;
  const uint32_t stride = BUFFERS * gridDim.x, position = epoch_position(args.gather, 0);
  image_buffer *buffer = &shared->buffers[w];
  float(*thread_sums)[INPUT_THREADS] = (float(*)[INPUT_THREADS])(&shared->conv1_sums[0][thread]);
  for (int i = 0; i < CONV1_SUMS; i++) *thread_sums[i] = 0.0f;
  uint32_t phase = 0;
  const uint32_t first = first_image(args, w);
  uint32_t next_index = dataset_index_at(args.gather, position + min(first + stride, args.gather.batch - 1));
  thread_pixels pixels = load_pixels(args, dataset_index_at(args.gather, position + first), own);
  pdl_wait(); /* the loads before do not depend on the previous kernel */
  load_gradient_async(args, first, own, &buffer->raw);
  for (uint32_t n = blockIdx.x + w * gridDim.x; n < args.gather.batch; n += stride, phase++) {
    const uint32_t next = min(n + stride, args.gather.batch - 1);
    float sums[2][32];
    if (phase == 0) {
      cp_async_wait_all();
      fence_async_proxy();
    } else {
      mbarrier_spin_cta(&barriers->empty[w], phase);
      load_in_async(args, n, own, buffer);
      cp_async_wait_group<1>();
    }
    store_windows(buffer->raw, own, buffer->windows);
    store_pixels(pixels, own, buffer->image);
    load_gradient_async(args, next, own, &buffer->raw);
    pixels = load_pixels(args, next_index, own);
    next_index = dataset_index_at(args.gather, position + min(next + stride, args.gather.batch - 1));
    named_barrier<WGMMA_THREADS>(2 + w);
    if (phase == 0) named_barrier<INPUT_THREADS>(1); /* RAW: the weights */
    const lane_patches patches = prepare_patches(buffer->windows, warp);
    multiply_patches(patches, shared_address(shared->weights), sums, [&] {
      cp_async_wait_group<1>();
      fence_async_proxy();
      mbarrier_arrive(&barriers->full[w]); /* RAW: conv1's output, for the weight gradient */
    });
    named_barrier<WGMMA_THREADS>(2 + w); /* RAW: argmax1 */
    if (args.pooled1_gradient)
      store_gradient(sums, warp, &args.pooled1_gradient[(size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS]);
    add_conv1_gradients(sums, *buffer, warp, thread_sums);
    named_barrier<WGMMA_THREADS>(2 + w); /* WAR: the buffer */
  }
  cp_async_wait_all();
  if (phase == 0) { /* a block with one image: the other warpgroup waits for the weights */
    fence_async_proxy();
    named_barrier<INPUT_THREADS>(1);
  }
  named_barrier<WGMMA_THREADS>(2 + w); /* WAW: raw */
  float conv1_sums[2][2][4];
  for (int i = 0; i < CONV1_SUMS; i++) (&conv1_sums[0][0][0])[i] = *thread_sums[i];
  const bool finite = store_sums<2>(conv1_sums, ((float(*)[RL_CONV1_PARAMETERS])(&buffer->raw))[warp],
                                    [&](int tile, int half) { return tile * 16 + half * 8 + lane / 4; });
  if (!finite) args.state->overflow = 1;
  store_conv1_sums(shared, thread, &args.partial_conv1[blockIdx.x * RL_CONV1_PARAMETERS]);
}

/* ------------------------------------------------------------------------------------------------------------------------- */

/* Fills the parts of the buffers that images do not set: image planes with border pixels, the rest with zeros. */
static __device__ __forceinline__ void clear_buffers(shared_memory *shared) {
  const uint4 zeros = make_uint4(0, 0, 0, 0);
  const uint32_t border = half2_bits(__float2half2_rn(BORDER));
  for (int b = 0; b < BUFFERS; b++) {
    image_buffer *buffer = &shared->buffers[b];
#pragma unroll 1
    for (int i = threadIdx.x; i < IN_BYTES / 16; i += THREADS) {
      const int pixel = i / IN_VECTORS;
      if (pixel % PITCH >= RL_POOLED1_SIDE || pixel >= RL_POOLED1_SIDE * PITCH) ((uint4 *)buffer->in)[i] = zeros;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < (int)sizeof buffer->windows / 16; i += THREADS) ((uint4 *)buffer->windows)[i] = zeros;
#pragma unroll 1
    for (int i = threadIdx.x; i < (int)sizeof buffer->image / 16; i += THREADS)
      ((uint4 *)buffer->image)[i] = make_uint4(border, border, border, border);
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
      mbarrier_init(&barriers.full[i], WGMMA_THREADS);
      mbarrier_init(&barriers.empty[i], WGMMA_THREADS / 32);
    }
  if (warpgroup > 0) {
    load_in_async(args, first_image(args, warpgroup - 1), threadIdx.x % WGMMA_THREADS, &shared->buffers[warpgroup - 1]);
    load_weights(args.conv2_weights, threadIdx.x - WGMMA_THREADS, shared->weights);
  }
  clear_buffers(shared);
  fence_async_proxy();
  __syncthreads();
  if (warpgroup == 0) {
    raise_register_limit<184>();
    weight_gradient(args, shared, &barriers);
  } else {
    lower_register_limit<160>();
    input_gradient(args, warpgroup - 1, threadIdx.x - WGMMA_THREADS, shared, &barriers);
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
