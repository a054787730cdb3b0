/* The second layer, 32→64 channels on 14×14, in FP16 on tensor cores: one kernel each way. Its product (12×12×64 an image) is
 * never written to memory: forward pools in registers, backward spreads the pooled gradient in shared memory. Sums are FP32, in a
 * fixed order. At batch 64 forward is 340 MFLOP and backward 800 with the border, 1.2 µs at the rate of these instructions: what
 * counts is that each kernel waits for memory once. Weights are [64][9 taps][32], activations NHWC. */
#include "cuda_check.h"
#include "train/cuda/chain.cuh"
#include "train/cuda/conv1.cuh"
#include "train/cuda/mma.cuh"
#include "train/cuda/pool.cuh"

enum {
  TAPS = 9, DEPTH = TAPS * RL_C1, MAP1 = RL_P1 * RL_P1, MAP2 = RL_P2 * RL_P2, UNIT = 8, /* halves in 16 bytes */
  /* Pitches in shared memory, halves: odd numbers of units. */
  WEIGHT_PITCH = DEPTH + UNIT, IN_PITCH = RL_C1 + UNIT, OUT_PITCH = RL_C2 + UNIT
};

/* --- forward: a block makes 32 channels of an image
 * -------------------------------------------------------------------------------- A warp multiplies the four inputs of eight
 * pooled pixels (two tiles of 16 pixels: upper and lower, left ones before right ones) by 32 channels, so that the four values of
 * a pool meet in one thread. Even columns of the image lie before odd ones, and rows 15 pixels apart: the eight pixels that are
 * read at once are then neighbours, modulo 8. */

enum {
  FORWARD_WARPS = (MAP2 + 7) / 8, FORWARD_THREADS = FORWARD_WARPS * 32, FORWARD_CHANNELS = 32, FORWARD_ROW = 15,
  FORWARD_MOST = 264 /* blocks for each half of the channels: four a multiprocessor in all; more images are taken in turns */
};

static __device__ __forceinline__ void load_image(const __half *image, __half *tile) {
  for (int i = threadIdx.x; i < MAP1 * RL_C1 / UNIT; i += FORWARD_THREADS) {
    int pixel = i / (RL_C1 / UNIT), part = i % (RL_C1 / UNIT) * UNIT, y = pixel / RL_P1, x = pixel % RL_P1;
    copy_16_bytes(&tile[(y * FORWARD_ROW + x % 2 * (RL_P1 / 2) + x / 2) * IN_PITCH + part], &image[pixel * RL_C1 + part]);
  }
}

/* Bias, pool and ReLU of one value; false: the product is beyond FP16. */
static __device__ __forceinline__ bool pool(float a, float b, float c, float d, float bias, float *best, uint8_t *code) {
  const float most = 65520.0f; /* rounds to infinity */
  bool finite = fabsf(a) < most && fabsf(b) < most && fabsf(c) < most && fabsf(d) < most;
  pool_four(a, b, c, d, bias, best, code);
  return finite;
}

static __global__ void __launch_bounds__(FORWARD_THREADS)
conv2_forward(uint32_t batch, const __half *__restrict__ in, const __half *__restrict__ weights, const float *__restrict__ bias,
              __half *__restrict__ pooled, uint8_t *__restrict__ codes, rl_train_state *state) {
  __shared__ __align__(16) __half w[FORWARD_CHANNELS * WEIGHT_PITCH], tile[RL_P1 * FORWARD_ROW * IN_PITCH];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.y * FORWARD_CHANNELS;
  for (int i = threadIdx.x; i < FORWARD_CHANNELS * DEPTH / UNIT; i += FORWARD_THREADS) {
    int channel = i / (DEPTH / UNIT), part = i % (DEPTH / UNIT) * UNIT;
    copy_16_bytes(&w[channel * WEIGHT_PITCH + part], &weights[(first + channel) * DEPTH + part]);
  }
  /* Where this lane's row of the tiles lies: column 2·px + right + dx is px + dx/2, behind the even ones when right + dx is
   * odd. */
  const int read = min(warp * 8 + lane % 8, MAP2 - 1), right = lane / 8 % 2;
  const uint32_t corner = shared_address(&tile[(read / RL_P2 * 2 * FORWARD_ROW + read % RL_P2) * IN_PITCH + lane / 16 * UNIT]),
                 outer = corner + right * (RL_P1 / 2) * IN_PITCH * 2, inner = corner + (right ? 1 : RL_P1 / 2) * IN_PITCH * 2,
                 row = shared_address(&w[(lane / 16 * 8 + lane % 8) * WEIGHT_PITCH + lane / 8 % 2 * UNIT]);
  const int made = warp * 8 + lane / 4;
  float b[FORWARD_CHANNELS / 8][2];
  for (int i = 0; i < FORWARD_CHANNELS / 8; i++) *(float2 *)b[i] = *(const float2 *)&bias[first + i * 8 + lane % 4 * 2];
  bool finite = true;

  chain_wait();
  for (uint32_t n = blockIdx.x; n < batch; n += gridDim.x) {
    __syncthreads();
    load_image(&in[(size_t)n * MAP1 * RL_C1], tile);
    copies_done();
    __syncthreads();
    float sum[2][FORWARD_CHANNELS / 8][4] = {};
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
      const int dy = k / 2 / 3, dx = k / 2 % 3;
      uint32_t a[2][4], by[FORWARD_CHANNELS / 16][4];
      for (int lower = 0; lower < 2; lower++)
        load_matrices(a[lower], (dx == 1 ? inner : outer) + (((lower + dy) * FORWARD_ROW + dx / 2) * IN_PITCH + k % 2 * 16) * 2);
      for (int i = 0; i < FORWARD_CHANNELS / 16; i++) load_matrices(by[i], row + (i * 16 * WEIGHT_PITCH + k * 16) * 2);
      for (int lower = 0; lower < 2; lower++)
        for (int i = 0; i < FORWARD_CHANNELS / 8; i++) multiply_add(sum[lower][i], a[lower], &by[i / 2][i % 2 * 2]);
    }
    if (made >= MAP2) continue;
    for (int i = 0; i < FORWARD_CHANNELS / 8; i++) {
      float best[2];
      uint8_t code[2];
      for (int c = 0; c < 2; c++)
        finite &= pool(sum[0][i][c], sum[0][i][2 + c], sum[1][i][c], sum[1][i][2 + c], b[i][c], &best[c], &code[c]);
      size_t to = ((size_t)n * MAP2 + made) * RL_C2 + first + i * 8 + lane % 4 * 2;
      *(__half2 *)&pooled[to] = __floats2half2_rn(best[0], best[1]);
      *(uchar2 *)&codes[to] = make_uchar2(code[0], code[1]);
    }
  }
  if (!finite && state) state->overflow = 1;
}

int rl_conv2_forward(uint32_t batch, const void *in, const void *weights, const float *bias, void *pooled, uint8_t *codes,
                     rl_train_state *state, cudaStream_t stream, rl_error *err) {
  dim3 grid(batch < FORWARD_MOST ? batch : (uint32_t)FORWARD_MOST, RL_C2 / FORWARD_CHANNELS);
  return rl_chain("conv2 forward", conv2_forward, grid, FORWARD_THREADS, 0, stream, err, batch, (const __half *)in,
                  (const __half *)weights, bias, (__half *)pooled, codes, state);
}

/* --- backward: the gradient of the product in shared memory
 * ------------------------------------------------------------------------ */

enum {
  THREADS = 128, GROUPS = RL_C2 / UNIT, TURNS = (MAP2 * GROUPS + THREADS - 1) / THREADS,
  /* Weight gradient: a block has one row of taps and some of the images. Image rows 20 pixels apart: 16 pixels of 12 in a row are
   * neighbours, modulo 8. Two images: the next one arrives while this one is worked on. */
  WEIGHT_COLUMNS = 3 * RL_C1, WEIGHT_IN_ROW = 20, WEIGHT_IN = RL_H2 * WEIGHT_IN_ROW * IN_PITCH,
  WEIGHT_OUT = RL_H2 * RL_H2 * OUT_PITCH, MOST_ROWS = 88,
  /* Input gradient: a block has half of an image, 7 rows, and the 9 rows of the product's gradient around them with a border of
   * zeros. Those lie 22 pixels apart: the 14 of a row are neighbours with the next row's, modulo 8. */
  DATA_ROWS = RL_P1 / 2, DATA_PIXELS = DATA_ROWS * RL_P1, DATA_OUT_ROW = 22,
  DATA_OUT = (DATA_ROWS + 2) * DATA_OUT_ROW * OUT_PITCH, MOST_IMAGES = 132,
  SHARED_BYTES = 2 * (RL_C2 * WEIGHT_PITCH + DATA_OUT),
  /* Where it goes on to conv1's gradients: what they need of the half image, whose pooled pixels' gradients lie IN_PITCH
   * apart. */
  WARPS = THREADS / 32, IMAGE_ROWS = 2 * DATA_ROWS + 2, DATA_VALUES = DATA_PIXELS * RL_C1,
  CHAIN_BYTES = SHARED_BYTES + 2 * DATA_PIXELS * IN_PITCH + IMAGE_ROWS * CONV1_WIDTH * (int)sizeof(float) + DATA_VALUES
};
static_assert(2 * (WEIGHT_OUT + 2 * WEIGHT_IN) <= SHARED_BYTES, "both kinds of block have room");
static_assert(DATA_PIXELS * IN_PITCH % UNIT == 0 && IMAGE_ROWS * CONV1_WIDTH % 4 == 0, "what lies behind is aligned, too");

typedef struct piece { /* a thread's part of an image: eight channels of up to three pooled pixels */
  uint4 gradient[TURNS];
  uint2 code[TURNS];
} piece;

static __device__ __forceinline__ piece load_piece(const __half *d_pooled, const uint8_t *codes, uint32_t n) {
  piece p;
  for (int turn = 0; turn < TURNS; turn++) {
    uint32_t i = threadIdx.x + turn * THREADS;
    size_t from = ((size_t)n * MAP2 * GROUPS + i) * UNIT;
    p.gradient[turn] = i < MAP2 * GROUPS ? *(const uint4 *)&d_pooled[from] : make_uint4(0, 0, 0, 0);
    p.code[turn] = i < MAP2 * GROUPS ? *(const uint2 *)&codes[from]
                                     : make_uint2(RL_POOL_STOPPED * 0x01010101u, RL_POOL_STOPPED * 0x01010101u);
  }
  return p;
}

/* Two halves where their codes (the low bytes of `code`) are `at`, else 0. */
static __device__ __forceinline__ uint32_t chosen(uint32_t halves, uint32_t code, uint32_t at) {
  return ((code & 0xff) == at ? halves & 0xffff : 0) | ((code >> 8 & 0xff) == at ? halves & 0xffff0000u : 0);
}

/* Writes rows [from, from + rows) of the product's gradient, y at row y - from of tile, row_pitch pixels a row. */
static __device__ __forceinline__ void spread(const piece &p, int from, int rows, int row_pitch, __half *tile) {
  for (int turn = 0; turn < TURNS; turn++) {
    int i = threadIdx.x + turn * THREADS, pixel = i / GROUPS, part = i % GROUPS * UNIT;
    if (pixel >= MAP2) continue;
    uint4 g = p.gradient[turn];
    uint2 code = p.code[turn];
    for (uint32_t at = 0; at < 4; at++) {
      int y = pixel / RL_P2 * 2 + (int)at / 2 - from, x = pixel % RL_P2 * 2 + at % 2;
      if (y >= 0 && y < rows)
        *(uint4 *)&tile[(y * row_pitch + x) * OUT_PITCH + part] = make_uint4(
            chosen(g.x, code.x, at), chosen(g.y, code.x >> 16, at), chosen(g.z, code.y, at), chosen(g.w, code.y >> 16, at));
    }
  }
}

/* --- backward: weight gradient
 * ------------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ void load_window(const __half *image, int dy, __half *tile) {
  for (int i = threadIdx.x; i < RL_H2 * RL_P1 * RL_C1 / UNIT; i += THREADS) {
    int pixel = i / (RL_C1 / UNIT), part = i % (RL_C1 / UNIT) * UNIT;
    copy_16_bytes(&tile[(pixel / RL_P1 * WEIGHT_IN_ROW + pixel % RL_P1) * IN_PITCH + part],
                  &image[(dy * RL_P1 + pixel) * RL_C1 + part]);
  }
}

/* Adds what was let through to sums of this thread's eight channels; false: some of it is infinite or NaN. */
static __device__ __forceinline__ bool add_bias(const piece &p, float sums[UNIT]) {
  bool finite = true;
  for (int turn = 0; turn < TURNS; turn++)
    for (int c = 0; c < UNIT; c++) {
      uint32_t pair = (&p.gradient[turn].x)[c / 2], code = (&p.code[turn].x)[c / 4] >> c % 4 * 8 & 0xff;
      float value = code == RL_POOL_STOPPED ? 0.0f : __half2float(__ushort_as_half((unsigned short)(pair >> c % 2 * 16)));
      sums[c] += value;
      finite &= isfinite(value);
    }
  return finite;
}

typedef struct backward {
  uint32_t batch, rows; /* images; rows of partial sums */
  const __half *in, *weights, *d_pooled;
  const uint8_t *codes;
  __half *d_in;
  float *partial, *partial_bias;
  rl_train_state *state;
  rl_conv1_chain conv1; /* where input gradients go on to conv1's */
} backward;

/* d_weight[64][32·3 taps of row dy] over images index, index + rows, …: 4 warps of 32 × 48. */
static __device__ void weight_gradient(const backward &b, uint32_t index, int dy, __half *shared) {
  __half *out = shared, *in = shared + WEIGHT_OUT;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, channel = warp % 2 * 32, columns = warp / 2 * (WEIGHT_COLUMNS / 2);
  const uint32_t a_row = shared_address(&out[(lane / 16 * 8 + lane % 8) * OUT_PITCH + channel + lane / 8 % 2 * UNIT]);
  uint32_t b_row[3];
  for (int i = 0; i < 3; i++) {
    int pixel = i * 16 + lane % 16;
    b_row[i] = shared_address(&in[(pixel / RL_H2 * WEIGHT_IN_ROW + pixel % RL_H2) * IN_PITCH + lane / 16 * UNIT]);
  }
  uint32_t b_column[3]; /* of 16 columns: tap and channel */
  for (int i = 0; i < 3; i++) b_column[i] = ((columns / 16 + i) / 2 * IN_PITCH + (columns / 16 + i) % 2 * 16) * 2;
  float sum[2][6][4] = {}, bias[UNIT] = {};
  bool finite = true;

  chain_wait();
  piece p = load_piece(b.d_pooled, b.codes, index);
  load_window(&b.in[(size_t)index * MAP1 * RL_C1], dy, in);
  uint32_t buffer = 0;
  for (uint32_t n = index; n < b.batch; n += b.rows, buffer = WEIGHT_IN - buffer) {
    spread(p, 0, RL_H2, RL_H2, out);
    if (dy == 0) finite &= add_bias(p, bias);
    copies_done();
    __syncthreads();
    if (n + b.rows < b.batch) {
      p = load_piece(b.d_pooled, b.codes, n + b.rows);
      load_window(&b.in[(size_t)(n + b.rows) * MAP1 * RL_C1], dy, &in[WEIGHT_IN - buffer]);
    }
#pragma unroll
    for (int k = 0; k < RL_H2 * RL_H2 / 16; k++) {
      uint32_t a[2][4], by[3][4];
      for (int t = 0; t < 2; t++) load_transposed(a[t], a_row + (k * 16 * OUT_PITCH + t * 16) * 2);
      for (int i = 0; i < 3; i++)
        load_transposed(by[i], b_row[k % 3] + b_column[i] + (buffer + k / 3 * 4 * WEIGHT_IN_ROW * IN_PITCH) * 2);
      for (int t = 0; t < 2; t++)
        for (int i = 0; i < 6; i++) multiply_add(sum[t][i], a[t], &by[i / 2][i % 2 * 2]);
    }
    __syncthreads();
  }

  for (int t = 0; t < 2; t++)
    for (int i = 0; i < 6; i++)
      for (int half = 0; half < 2; half++) {
        int k = channel + t * 16 + half * 8 + lane / 4, column = columns + i * 8 + lane % 4 * 2;
        *(float2 *)&b.partial[((size_t)index * RL_C2 + k) * DEPTH + dy * WEIGHT_COLUMNS + column] =
          make_float2(sum[t][i][half * 2], sum[t][i][half * 2 + 1]);
      }
  if (dy != 0) return;
  if (!finite) b.state->overflow = 1;
  float *sums = (float *)shared; /* [THREADS / GROUPS][64] */
  for (int c = 0; c < UNIT; c++) sums[threadIdx.x * UNIT + c] = bias[c];
  __syncthreads();
  if (threadIdx.x < RL_C2) {
    float total = 0.0f;
    for (int i = 0; i < THREADS / GROUPS; i++) total += sums[i * RL_C2 + threadIdx.x];
    b.partial_bias[index * RL_C2 + threadIdx.x] = total;
  }
}

/* --- backward: input gradient
 * ------------------------------------------------------------------------------------------------------- */

/* What conv1's gradients need of half an image beside the gradients of its pooled pixels. */
typedef struct layer1 {
  __half *gradient; /* [98][IN_PITCH] */
  float *image;     /* [16][30] */
  uint8_t *codes;   /* [98][32] */
} layer1;

static __device__ __forceinline__ layer1 layer1_in(__half *shared) {
  layer1 made;
  made.gradient = shared;
  made.image = (float *)(made.gradient + DATA_PIXELS * IN_PITCH);
  made.codes = (uint8_t *)(made.image + IMAGE_ROWS * CONV1_WIDTH);
  return made;
}

/* Half image i; none of it is made by a kernel that may still run. */
static __device__ __forceinline__ void load_layer1(const rl_conv1_chain &from, uint32_t i, const layer1 &to) {
  const uint32_t n = i / 2, top = i % 2 * DATA_ROWS;
  for (int at = threadIdx.x; at < DATA_VALUES / 16; at += THREADS)
    copy_16_bytes(&to.codes[at * 16], &from.codes[((size_t)n * MAP1 + top * RL_P1) * RL_C1 + at * 16]);
  load_image_rows(image_of(from.gather, n), 2 * top, IMAGE_ROWS, to.image);
}

/* Adds half an image to the sums of this lane's channel; false: some gradient is infinite or NaN. */
static __device__ __forceinline__ bool add_layer1(const layer1 &from, float sums[10]) {
  const int lane = threadIdx.x % 32;
  bool finite = true;
#pragma unroll 5
  for (int pixel = threadIdx.x / 32; pixel < DATA_PIXELS; pixel += WARPS) {
    const float gradient = __half2float(from.gradient[pixel * IN_PITCH + lane]);
    const int code = from.codes[pixel * RL_C1 + lane];
    finite &= code == RL_POOL_STOPPED || isfinite(gradient);
    add_element(gradient, code, pixel, from.image, sums);
  }
  return finite;
}

/* Half images index, index + blocks, …; blocks is even, so it is always the same half. A warp has 32 pixels × 32 channels.
 * CONV1: and from there to a row of partial sums of conv1's gradients. */
template <bool CONV1> static __device__ void input_gradient(const backward &b, uint32_t index, uint32_t blocks, __half *shared) {
  __half *w = shared, *out = shared + RL_C2 * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, top = index % 2 * DATA_ROWS;
  for (int i = threadIdx.x; i < RL_C2 * DEPTH / UNIT; i += THREADS) {
    int channel = i / (DEPTH / UNIT), part = i % (DEPTH / UNIT) * UNIT;
    copy_16_bytes(&w[channel * WEIGHT_PITCH + part], &b.weights[channel * DEPTH + part]);
  }
  for (int i = threadIdx.x; i < DATA_OUT / UNIT; i += THREADS) ((uint4 *)out)[i] = make_uint4(0, 0, 0, 0);
  const layer1 below = layer1_in(out + DATA_OUT);
  float mine[10] = {};
  bool finite = true;
  if (CONV1) load_layer1(b.conv1, index, below);
  chain_wait();
  piece p = load_piece(b.d_pooled, b.codes, index / 2);
  __syncthreads();
  uint32_t a_row[2];
  for (int t = 0; t < 2; t++) {
    int pixel = min(warp * 32 + t * 16 + lane % 16, DATA_PIXELS - 1);
    a_row[t] = shared_address(&out[((pixel / RL_P1 + 2) * DATA_OUT_ROW + pixel % RL_P1 + 2) * OUT_PITCH + lane / 16 * UNIT]);
  }
  const uint32_t b_row = shared_address(&w[lane % 16 * WEIGHT_PITCH + lane / 16 * UNIT]);

  for (uint32_t i = index; i < 2 * b.batch; i += blocks) {
    spread(p, top - 2, DATA_ROWS + 2, DATA_OUT_ROW, &out[2 * OUT_PITCH]);
    copies_done();
    __syncthreads();
    if (i + blocks < 2 * b.batch) p = load_piece(b.d_pooled, b.codes, (i + blocks) / 2);
    float sum[2][4][4] = {};
#pragma unroll
    for (int k = 0; k < TAPS * RL_C2 / 16; k++) {
      const int tap = k / 4, channel = k % 4 * 16;
      uint32_t a[2][4], by[2][4];
      for (int t = 0; t < 2; t++)
        load_matrices(a[t], a_row[t] - ((tap / 3 * DATA_OUT_ROW + tap % 3) * OUT_PITCH - channel) * 2);
      for (int c = 0; c < 2; c++) load_transposed(by[c], b_row + (channel * WEIGHT_PITCH + tap * RL_C1 + c * 16) * 2);
      for (int t = 0; t < 2; t++)
        for (int c = 0; c < 4; c++) multiply_add(sum[t][c], a[t], &by[c / 2][c % 2 * 2]);
    }
    for (int t = 0; t < 2; t++)
      for (int half = 0; half < 2; half++) {
        int pixel = warp * 32 + t * 16 + half * 8 + lane / 4;
        if (pixel >= DATA_PIXELS) continue;
        __half *to = &b.d_in[((size_t)(i / 2) * MAP1 + top * RL_P1 + pixel) * RL_C1 + lane % 4 * 2];
        for (int c = 0; c < 4; c++) {
          const __half2 made = __floats2half2_rn(sum[t][c][half * 2], sum[t][c][half * 2 + 1]);
          *(__half2 *)&to[c * 8] = made;
          if (CONV1) *(__half2 *)&below.gradient[pixel * IN_PITCH + c * 8 + lane % 4 * 2] = made;
        }
      }
    __syncthreads();
    if (!CONV1) continue;
    finite &= add_layer1(below, mine);
    if (i + blocks >= 2 * b.batch) break;
    __syncthreads();
    load_layer1(b.conv1, i + blocks, below);
  }
  if (!CONV1) return;
  if (!finite) b.state->overflow = 1;
  add_channel_sums<WARPS>(mine, (float(*)[CONV1_ROW])shared, b.conv1.partial, index);
}

/* Both gradients side by side: the first blocks have the weights', which take longer. */
template <bool CONV1> static __global__ void __launch_bounds__(THREADS) conv2_backward(backward b) {
  extern __shared__ __align__(16) __half shared[];
  uint32_t weight_blocks = 3 * b.rows;
  if (blockIdx.x < weight_blocks) weight_gradient(b, blockIdx.x / 3, blockIdx.x % 3, shared);
  else input_gradient<CONV1>(b, blockIdx.x - weight_blocks, gridDim.x - weight_blocks, shared);
}

uint32_t rl_conv2_rows(uint32_t batch) {
  uint32_t pairs = (batch + 1) / 2;
  return pairs < MOST_ROWS ? pairs : (uint32_t)MOST_ROWS;
}

static uint32_t data_blocks(uint32_t batch) { return 2 * (batch < MOST_IMAGES ? batch : (uint32_t)MOST_IMAGES); }

template <bool CONV1> static int start_backward(const backward &b, cudaStream_t stream, rl_error *err) {
  const int bytes = CONV1 ? CHAIN_BYTES : SHARED_BYTES;
  if (rl_cuda_ok(cudaFuncSetAttribute(conv2_backward<CONV1>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "reserving shared memory", err))
    return -1;
  return rl_chain("conv2 backward", conv2_backward<CONV1>, 3 * b.rows + data_blocks(b.batch), THREADS, bytes, stream, err, b);
}

int rl_conv2_backward(uint32_t batch, const void *in, const void *weights, const void *d_pooled, const uint8_t *codes, void *d_in,
                      float *partial, float *partial_bias, rl_train_state *state, cudaStream_t stream, rl_error *err) {
  return start_backward<false>({batch, rl_conv2_rows(batch), (const __half *)in, (const __half *)weights,
                                (const __half *)d_pooled, codes,
                                (__half *)d_in, partial, partial_bias, state, {}}, stream, err);
}

uint32_t rl_conv_rows(uint32_t batch) { return data_blocks(batch); }

int rl_conv_backward(const rl_conv1_chain *conv1, const void *in, const void *weights, const void *d_pooled, const uint8_t *codes,
                     void *d_in, float *partial, float *partial_bias, rl_train_state *state, cudaStream_t stream, rl_error *err) {
  const uint32_t batch = conv1->gather.batch;
  return start_backward<true>({batch, rl_conv2_rows(batch), (const __half *)in, (const __half *)weights, (const __half *)d_pooled,
                               codes, (__half *)d_in, partial, partial_bias, state, *conv1},
                              stream, err);
}
