/* The first layer in FP16, on tensor cores: one kernel each way, in which warps work alone. A warp has a pooled row of one image
 * after another, and asks for the next one's inputs before it works on this one's:
 *
 *   forward   [14 pixels × 9 taps] · [9 taps × 32 channels] for each of the pool's four positions, of which the greatest stays
 *   backward  [32 channels × 14 pixels, where this position won] · [14 pixels × 9 taps and a one], added up over positions
 *
 * All of it is far more exact than the FP16 that is stored: a byte less MIDDLE is exact, a weight is the sum of two values of
 * FP16, to 22 bits or 3e-8. */
#include "train/cuda/chain.cuh"
#include "train/cuda/conv1.cuh"
#include "train/cuda/mma.cuh"

/* A normalised pixel is (byte − MIDDLE) · SLOPE + REST, and the zeros around an image are BORDER in the place of byte − MIDDLE,
 * which leaves 2e-7 of them. */
static const float MIDDLE = 33.375f, SLOPE = 1.0f / (255.0f * 0.3081f), REST = (MIDDLE - 0.1307f * 255.0f) * SLOPE,
                   BORDER = 0.1307f * 255.0f - MIDDLE;

enum {
  ROWS = 4 /* of an image, around a pooled row */,
  POSITIONS = 4,
  TAPS = 9,
  TILES = RL_C1 / 8,
  WORDS = RL_IMAGE / 4 /* of an image's row */,
  /* Image rows as four planes: pixel x of plane c is column 2x + c of the image with its border. So pooled neighbours are
   * neighbours for each tap, and nine taps of four pairs of them have banks of their own. Behind the rows are ones. */
  PLANES = 4,
  PLANE_ROW = 24,
  PLANE = 200,
  WINDOW = PLANES * PLANE,
  FORWARD_WARPS = 7,
  FORWARD_MOST = 198 /* images side by side */,
  BACKWARD_WARPS = 14,
  BACKWARD_MOST = 132
};
static_assert(RL_P1 % FORWARD_WARPS == 0 && RL_P1 % BACKWARD_WARPS == 0, "an image has whole blocks");
static_assert((ROWS + 2) * PLANE_ROW <= PLANE, "rows and ones");

static __device__ __forceinline__ uint32_t bits(__half2 pair) { return *(uint32_t *)&pair; }
static __device__ __forceinline__ __half2 pair_of(uint32_t bits) { return *(__half2 *)&bits; }

/* --- a warp's turns ---------------------------------------------------------------------------------------------------- */

typedef struct feed {
  int row;           /* pooled row of each image */
  uint32_t n;        /* this turn's image of the batch */
  uint32_t stride;   /* to the next turn's, */
  uint32_t next;     /* which is this one of the data set */
  uint32_t position; /* of the batch's first image */
  uint32_t pixels;   /* four of this turn's */
} feed;

/* Of the image row that this lane has four pixels of. */
static __device__ __forceinline__ int image_row(const feed &f) { return f.row * 2 - 1 + (int)(threadIdx.x % 32 / WORDS); }

static __device__ __forceinline__ bool has_pixels(const feed &f) {
  return threadIdx.x % 32 < ROWS * WORDS && image_row(f) >= 0 && image_row(f) < RL_IMAGE;
}

static __device__ __forceinline__ void load_pixels(const rl_gather &gather, uint32_t image, feed *f) {
  const size_t at = (size_t)image * RL_PIXELS + image_row(*f) * RL_IMAGE + threadIdx.x % 32 % WORDS * 4;
  if (has_pixels(*f)) f->pixels = *(const uint32_t *)&gather.images[at];
}

/* The image of the data set that comes `turns` later; the last one of the batch, where there is none. */
static __device__ __forceinline__ uint32_t image_later(const rl_gather &gather, const feed &f, uint32_t turns) {
  return index_at(gather, f.position + min(f.n + turns * f.stride, gather.batch - 1));
}

static __device__ __forceinline__ feed begin_feed(const rl_gather &gather) {
  const uint32_t warps = blockDim.x / 32, parts = RL_P1 / warps;
  feed f = {(int)(blockIdx.x % parts * warps + threadIdx.x / 32), blockIdx.x / parts, gridDim.x / parts};
  f.position = position_of(gather, 0);
  const uint32_t image = image_later(gather, f, 0);
  f.next = image_later(gather, f, 1);
  load_pixels(gather, image, &f);
  return f;
}

static __device__ __forceinline__ void advance(const rl_gather &gather, feed *f) {
  load_pixels(gather, f->next, f);
  f->next = image_later(gather, *f, 2);
  f->n += f->stride;
}

/* --- pixels ------------------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ void clear_window(__half *window) {
  const __half2 border = __float2half2_rn(BORDER), one = __float2half2_rn(1.0f);
  for (int plane = 0; plane < PLANES; plane++)
    for (int i = threadIdx.x % 32; i < PLANE / 2; i += 32)
      *(__half2 *)&window[plane * PLANE + i * 2] = i < ROWS * PLANE_ROW / 2 ? border : one;
  __syncwarp();
}

/* Two bytes of a word as FP16, less MIDDLE: behind a byte of 0x64 they are 1024 more than they are. */
static __device__ __forceinline__ __half2 less_middle(uint32_t word, uint32_t chosen) {
  const __half2 more = pair_of(__byte_perm(word, 0x64646464u, chosen));
  return __hsub2(__hsub2(more, __float2half2_rn(1024.0f)), __float2half2_rn(MIDDLE));
}

/* The warp's pixels into its window; a lane's lie in columns 4w + 1 to 4w + 4. What is border stays so. */
static __device__ __forceinline__ void store_pixels(const feed &f, __half *window) {
  const int lane = threadIdx.x % 32, w = lane % WORDS;
  const __half2 odd = less_middle(f.pixels, 0x4240), even = less_middle(f.pixels, 0x4341);
  __half *row = &window[lane / WORDS * PLANE_ROW + 2 * w];
  if (has_pixels(f)) {
    *(__half2 *)&row[PLANE] = odd;
    *(__half2 *)&row[2 * PLANE] = even;
    row[1] = __low2half(even);
    row[2] = __high2half(even);
    if (w > 0) row[3 * PLANE - 1] = __low2half(odd);
    row[3 * PLANE] = __high2half(odd);
  }
  __syncwarp();
}

/* --- forward ----------------------------------------------------------------------------------------------------------- */

/* What pixels are multiplied by. A product's 16 rows are three taps and a zero of each of a patch's rows, and a bias; a lane has
 * those of row lane % 4, and of tile t's columns channel lane / 8 · 8 + 2t + lane / 4 % 2. */
typedef struct fragments {
  uint32_t high[TILES][2], low[TILES][2];
} fragments;

static __device__ __forceinline__ float less_rounded(float v) { return v - __half2float(__float2half_rn(v)); }

/* The bias of channel `lane`, as a pixel's value times a weight: of byte − MIDDLE. */
static __device__ __forceinline__ float load_bias(const float *weights) {
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (int k = 0; k < TAPS; k++) sum += weights[lane * TAPS + k];
  return (weights[RL_C1 * TAPS + lane] + REST * sum) * (1.0f / SLOPE);
}

static __device__ __forceinline__ fragments load_fragments(const float *weights) {
  const int lane = threadIdx.x % 32, y = lane % 4, channel = lane / 8 * 8 + lane / 4 % 2;
  float taps[TILES][3];
  for (int t = 0; t < TILES; t++)
    for (int x = 0; x < 3; x++) taps[t][x] = weights[(channel + t * 2) * TAPS + min(y, 2) * 3 + x];
  const float biases = load_bias(weights);
  fragments made;
  for (int t = 0; t < TILES; t++) {
    const float bias = __shfl_sync(0xffffffffu, biases, channel + t * 2);
    const float a = y < 3 ? taps[t][0] : bias, b = y < 3 ? taps[t][1] : less_rounded(bias), c = y < 3 ? taps[t][2] : 0.0f;
    made.high[t][0] = bits(__floats2half2_rn(a, b));
    made.high[t][1] = bits(__floats2half2_rn(c, 0.0f));
    made.low[t][0] = y < 3 ? bits(__floats2half2_rn(less_rounded(a), less_rounded(b))) : 0;
    made.low[t][1] = bits(__floats2half2_rn(less_rounded(c), 0.0f));
  }
  return made;
}

/* Patches of pixels lane / 4 and 8 more, for each position; of them, row lane % 4, or ones. */
static __device__ __forceinline__ void load_patches(const __half *window, uint32_t patches[POSITIONS][4]) {
  const int lane = threadIdx.x % 32, row = lane % 4 < 3 ? lane % 4 : (int)ROWS;
  for (int down = 0; down < 2; down++)
    for (int pixel = 0; pixel < 2; pixel++) {
      const __half *at = &window[(row + down) * PLANE_ROW + lane / 4 + pixel * 8];
      const __half a = at[0], b = at[PLANE], c = at[2 * PLANE], d = at[3 * PLANE];
      patches[down * 2][pixel] = bits(__halves2half2(a, b));
      patches[down * 2][pixel + 2] = bits(__halves2half2(c, d));
      patches[down * 2 + 1][pixel] = bits(__halves2half2(b, c));
      patches[down * 2 + 1][pixel + 2] = bits(__halves2half2(d, d));
    }
}

/* Of four floats: a byte of ones where the sign is set. */
static __device__ __forceinline__ uint32_t signs(const float of[4]) {
  uint32_t low, high;
  asm("prmt.b32 %0, %1, %2, 0xfbfb;" : "=r"(low) : "r"(__float_as_uint(of[0])), "r"(__float_as_uint(of[1])));
  asm("prmt.b32 %0, %1, %2, 0xfbfb;" : "=r"(high) : "r"(__float_as_uint(of[2])), "r"(__float_as_uint(of[3])));
  return __byte_perm(low, high, 0x5410);
}

/* Four pools: the greatest of each one's four positions, the first of equals, and their codes, a byte each. Comparisons are
 * subtractions, which have units of their own, and whose signs are looked at for four pools at once. */
static __device__ __forceinline__ uint32_t pool(const float from[POSITIONS][4], float greatest[4]) {
  float right[4], lower_right[4], down[4], stopped[4];
  for (int i = 0; i < 4; i++) {
    const float upper = fmaxf(from[0][i], from[1][i]), lower = fmaxf(from[2][i], from[3][i]);
    right[i] = from[0][i] - from[1][i];
    lower_right[i] = from[2][i] - from[3][i];
    down[i] = upper - lower;
    greatest[i] = fmaxf(upper, lower);
    stopped[i] = 0.0f - greatest[i];
  }
  const uint32_t is_down = signs(down), passes = signs(stopped);
  const uint32_t is_right = (signs(lower_right) & is_down) | (signs(right) & ~is_down);
  return (((is_down & 0x02020202u) | (is_right & 0x01010101u)) & passes) | (RL_POOL_RELU_ZERO * 0x01010101u & ~passes);
}

/* Pixels lane / 4 and 8 more: channels lane % 4 · 8 and the next seven. */
typedef struct pieces {
  uint4 values[2];
  uint2 codes[2];
} pieces;

static __device__ __forceinline__ pieces make_pixels(const uint32_t patches[POSITIONS][4], const fragments &weights) {
  uint32_t values[2][TILES], codes[TILES];
  for (int t = 0; t < TILES; t++) {
    float sum[POSITIONS][4] = {}, greatest[4];
    for (int at = 0; at < POSITIONS; at++) mma_m16n8k16(sum[at], patches[at], weights.low[t]);
    for (int at = 0; at < POSITIONS; at++) mma_m16n8k16(sum[at], patches[at], weights.high[t]);
    codes[t] = pool(sum, greatest);
    for (int pixel = 0; pixel < 2; pixel++)
      values[pixel][t] =
          bits(__hmax2(__floats2half2_rn(greatest[pixel * 2] * SLOPE, greatest[pixel * 2 + 1] * SLOPE), __float2half2_rn(0.0f)));
  }
  pieces made;
  for (int pixel = 0; pixel < 2; pixel++) {
    const uint32_t chosen = pixel ? 0x7632 : 0x5410, *of = values[pixel];
    made.values[pixel] = make_uint4(of[0], of[1], of[2], of[3]);
    made.codes[pixel] = make_uint2(__byte_perm(codes[0], codes[1], chosen), __byte_perm(codes[2], codes[3], chosen));
  }
  return made;
}

static __global__ void __launch_bounds__(FORWARD_WARPS * 32)
    conv1_forward(rl_gather gather, const float *__restrict__ weights, __half *__restrict__ pooled, uint8_t *__restrict__ codes) {
  __shared__ __align__(16) __half windows[FORWARD_WARPS][WINDOW];
  const int lane = threadIdx.x % 32;
  __half *window = windows[threadIdx.x / 32];
  clear_window(window);
  chain_wait();
  const fragments by = load_fragments(weights);
  feed f = begin_feed(gather);
  while (f.n < gather.batch) {
    uint32_t patches[POSITIONS][4];
    store_pixels(f, window);
    load_patches(window, patches);
    __syncwarp();
    const size_t to = (((size_t)f.n * RL_P1 + f.row) * RL_P1 + lane / 4) * RL_C1 + lane % 4 * 8;
    advance(gather, &f);
    const pieces made = make_pixels(patches, by);
    for (int i = 0; i < 2; i++) {
      if (lane / 4 + i * 8 >= RL_P1) continue;
      __stcg((uint4 *)&pooled[to + i * 8 * RL_C1], made.values[i]);
      __stcg((uint2 *)&codes[to + i * 8 * RL_C1], made.codes[i]);
    }
  }
}

static uint32_t blocks(uint32_t batch, uint32_t warps, uint32_t most) { return (batch < most ? batch : most) * (RL_P1 / warps); }

int rl_conv1_half_forward(rl_gather gather, const float *weights, void *pooled, uint8_t *codes, cudaStream_t stream,
                          rl_error *err) {
  const uint32_t grid = blocks(gather.batch, FORWARD_WARPS, FORWARD_MOST);
  return rl_chain("conv1 forward", conv1_forward, grid, FORWARD_WARPS * 32, 0, stream, err, gather, weights, (__half *)pooled,
                  codes);
}

/* --- backward ---------------------------------------------------------------------------------------------------------- */

/* Four channels, from lane / 4 · 4 on, of pooled pixels lane % 4 · 2 and the next, and of those eight further on. */
typedef struct share {
  uint2 gradient[4];
  uint32_t code[4];
} share;

static __device__ __forceinline__ int share_pixel(int i) { return threadIdx.x % 4 * 2 + i % 2 + i / 2 * 8; }

/* In pooled row `row` of image n. */
static __device__ __forceinline__ size_t share_place(uint32_t n, int row, int i) {
  return (((size_t)n * RL_P1 + row) * RL_P1 + share_pixel(i)) * RL_C1 + threadIdx.x % 32 / 4 * 4;
}

static __device__ __forceinline__ void load_codes(const uint8_t *codes, uint32_t n, int row, share *to) {
  for (int i = 0; i < 4; i++)
    to->code[i] = share_pixel(i) < RL_P1 ? *(const uint32_t *)&codes[share_place(n, row, i)] : RL_POOL_RELU_ZERO * 0x01010101u;
}

static __device__ __forceinline__ void load_gradients(const __half *d_pooled, uint32_t n, int row, share *to) {
  for (int i = 0; i < 4; i++)
    to->gradient[i] = share_pixel(i) < RL_P1 ? *(const uint2 *)&d_pooled[share_place(n, row, i)] : make_uint2(0, 0);
}

/* Fragments of channels × pixels: in tile m, rows lane / 4 are channels lane / 4 · 4 + 2m, and rows 8 further on the next ones.
 * A code is twice in the 16 bits of a gradient. */
static __device__ __forceinline__ void turn_share(const share &from, uint32_t gradient[2][4], uint32_t code[2][4]) {
  for (int m = 0; m < 2; m++)
    for (int i = 0; i < 4; i++) {
      const int pixels = i / 2 * 2, odd = i % 2;
      const uint2 first = from.gradient[pixels], second = from.gradient[pixels + 1];
      gradient[m][i] = __byte_perm(m ? first.y : first.x, m ? second.y : second.x, odd ? 0x7632 : 0x5410);
      code[m][i] = __byte_perm(from.code[pixels], from.code[pixels + 1], 0x4400 + (m * 2 + odd) * 0x1111);
    }
}

/* Adds the products of one position's winners with their taps (sum[m][0]: taps 0–7, sum[m][1]: tap 8, a one, and nothing). */
static __device__ __forceinline__ void add_position(const uint32_t gradient[2][4], const uint32_t code[2][4], int at,
                                                    const __half *window, float sum[2][2][4]) {
  const int lane = threadIdx.x % 32, tap = lane / 4;
  const __half *first = &window[tap % 3 * PLANE + tap / 3 * PLANE_ROW + lane % 4 * 2],
               *last = &window[2 * PLANE + 2 * PLANE_ROW + lane % 4 * 2];
  const int shift = at % 2 * PLANE + at / 2 * PLANE_ROW;
  const __half2 wanted = pair_of(at * 0x01010101u), one = __float2half2_rn(1.0f);
  uint32_t taps[2][2], won[4];
  for (int i = 0; i < 2; i++) {
    taps[0][i] = *(const uint32_t *)&first[shift + i * 8];
    taps[1][i] = tap == 1 ? bits(one) : *(const uint32_t *)&last[shift + i * 8];
  }
  for (int m = 0; m < 2; m++) {
    for (int i = 0; i < 4; i++) won[i] = gradient[m][i] & __heq2_mask(pair_of(code[m][i]), wanted);
    for (int s = 0; s < 2; s++) mma_m16n8k16(sum[m][s], won, taps[s]);
  }
}

/* A warp's sums as a row of gradients; false: some gradient was infinite or NaN, and then its sum is. */
static __device__ __forceinline__ bool store_sums(const float sum[2][2][4], float row[CONV1_ROW]) {
  const int lane = threadIdx.x % 32;
  bool finite = true;
  for (int m = 0; m < 2; m++)
    for (int odd = 0; odd < 2; odd++) {
      const int channel = lane / 4 * 4 + m * 2 + odd;
      const float bias = __shfl_sync(0xffffffffu, sum[m][1][odd * 2 + 1], lane / 4 * 4);
      for (int i = 0; i < 2; i++) row[channel * TAPS + lane % 4 * 2 + i] = fmaf(sum[m][0][odd * 2 + i], SLOPE, REST * bias);
      if (lane % 4 == 0) {
        row[channel * TAPS + 8] = fmaf(sum[m][1][odd * 2], SLOPE, REST * bias);
        row[RL_C1 * TAPS + channel] = bias;
      }
      finite &= isfinite(bias);
    }
  return finite;
}

static __global__ void __launch_bounds__(BACKWARD_WARPS * 32)
    conv1_backward(rl_gather gather, const __half *__restrict__ d_pooled, const uint8_t *__restrict__ codes,
                   float *__restrict__ partial, const __half *__restrict__ watched, uint32_t watched_count,
                   rl_train_state *state) {
  __shared__ __align__(16) __half windows[BACKWARD_WARPS][WINDOW];
  __shared__ float sums[BACKWARD_WARPS][CONV1_ROW];
  __half *window = windows[threadIdx.x / 32];
  float sum[2][2][4] = {};
  share mine;
  clear_window(window);
  feed f = begin_feed(gather); /* neither is made by a kernel that may still run */
  load_codes(codes, f.n, f.row, &mine);
  chain_wait();
  load_gradients(d_pooled, f.n, f.row, &mine);
  while (f.n < gather.batch) {
    uint32_t gradient[2][4], code[2][4];
    store_pixels(f, window);
    turn_share(mine, gradient, code);
    advance(gather, &f);
    load_codes(codes, min(f.n, gather.batch - 1), f.row, &mine);
    load_gradients(d_pooled, min(f.n, gather.batch - 1), f.row, &mine);
    for (int at = 0; at < POSITIONS; at++) add_position(gradient, code, at, window, sum);
    __syncwarp();
  }
  bool overflow = !store_sums(sum, sums[threadIdx.x / 32]);
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < watched_count; i += gridDim.x * blockDim.x)
    overflow |= !isfinite(__half2float(watched[i]));
  if (overflow) state->overflow = 1;
  __syncthreads();
  add_rows<BACKWARD_WARPS>(sums, partial, blockIdx.x);
}

uint32_t rl_conv1_half_partial_rows(uint32_t batch) { return blocks(batch, BACKWARD_WARPS, BACKWARD_MOST); }

int rl_conv1_half_backward(rl_gather gather, const void *d_pooled, const uint8_t *codes, float *partial, const void *watched,
                           uint32_t watched_count, rl_train_state *state, cudaStream_t stream, rl_error *err) {
  return rl_chain("conv1 backward", conv1_backward, rl_conv1_half_partial_rows(gather.batch), BACKWARD_WARPS * 32, 0, stream, err,
                  gather, (const __half *)d_pooled, codes, partial, (const __half *)watched, watched_count, state);
}
