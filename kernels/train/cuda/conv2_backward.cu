/* conv2 backward in one kernel: the pooled gradient is spread in shared memory, and from there weights', bias' and input's are
 * made by teams of two kinds side by side. 6.4 GFLOP at batch 512, 10 µs at the rate of these instructions; what they are fed
 * with decides: operands are asked for one step ahead, their addresses are counted up, and the two teams of a multiprocessor
 * wait for each other's waits. Where there are two for each, a block is two teams, one of each kind as far as they go: as blocks
 * of their own some multiprocessors may be given two that make weights' gradients, which take longest (H200, batch 4096: the
 * kernel 133 or 153 µs by chance, and 136 in pairs). Sums are FP32, in a fixed order. */
#include "cuda_check.h"
#include "train/cuda/pdl.cuh"
#include "train/cuda/conv2.cuh"

enum {
  WARPS = 4,
  THREADS = WARPS * 32,
  GROUPS = RL_C2 / UNIT,
  TURNS = (MAP2 * GROUPS + THREADS - 1) / THREADS,
  MOST_ROWS = 88,
  MOST_TEAMS = 264 /* two a multiprocessor; more images are taken in turns */,
  FEW_IMAGES = 88
};

/* Of threadIdx.x threads each; threadIdx.y is which of the block. */
static __device__ __forceinline__ void team_sync() {
  asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "n"((int)THREADS) : "memory");
}

/* FEW: input gradient and weight gradient are made in parts, each by a team of its own. */
template <bool FEW> struct shape {
  enum {
    IN_PARTS = FEW ? 2 : 1,
    WEIGHT_PARTS = FEW ? 3 : 1,
    /* Input gradient: rows of pixels, in tiles of 16 neighbours. */
    IN_ROWS = RL_P1 / IN_PARTS,
    PIXELS = IN_ROWS * RL_P1,
    WARP_TILES = FEW ? 2 : 3,
    CORNER = WARPS * WARP_TILES * 16 /* the first pixel that is in none of them */,
    /* The product's gradient with a border of zeros: 12 pixels of a row and two zeros, which are the next row's border, too. */
    OUT_ROWS = IN_ROWS + 2,
    OUT_BORDER = 2,
    OUT = (OUT_BORDER + OUT_ROWS * RL_P1) * OUT_PITCH,
    /* Weight gradient: 64 channels × columns in groups of 8. */
    WARP_COLUMNS = DEPTH / UNIT / WARPS / WEIGHT_PARTS,
    COLUMN_PAIRS = (WARP_COLUMNS + 1) / 2,
    WEIGHT_OUT = RL_H2 * RL_P1 * OUT_PITCH,
    IN_BYTES = 2 * (RL_C2 * WEIGHT_PITCH + OUT),
    WEIGHT_BYTES = 2 * (WEIGHT_OUT + 2 * IN_IMAGE),
    SHARED_BYTES = IN_BYTES > WEIGHT_BYTES ? IN_BYTES : WEIGHT_BYTES
  };
};

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
                                     : make_uint2(RL_POOL_RELU_ZERO * 0x01010101u, RL_POOL_RELU_ZERO * 0x01010101u);
  }
  return p;
}

/* Two halves where their codes are `at`, else 0. chooser: each code twice, four bits each. */
static __device__ __forceinline__ uint32_t chosen(uint32_t halves, uint32_t chooser, uint32_t at) {
  return halves & __byte_perm(at < 4 ? 0xffu << at * 8 : 0, 0, chooser);
}

/* Writes rows [from, from + ROWS) of the product's gradient, y at row y - from of tile. */
template <int ROWS> static __device__ __forceinline__ void spread(const piece &p, int from, __half *tile) {
  for (int turn = 0; turn < TURNS; turn++) {
    const int i = threadIdx.x + turn * THREADS, pixel = i / GROUPS, part = i % GROUPS * UNIT;
    if (pixel >= MAP2) continue;
    const uint4 g = p.gradient[turn];
    uint32_t chooser[4];
    for (int k = 0; k < 4; k++) {
      const uint32_t codes = (&p.code[turn].x)[k / 2] >> k % 2 * 16;
      chooser[k] = (codes & 0xf) * 0x11 | (codes >> 8 & 0xf) * 0x1100;
    }
    for (uint32_t at = 0; at < 4; at++) {
      const int y = pixel / RL_P2 * 2 + (int)at / 2 - from, x = pixel % RL_P2 * 2 + at % 2;
      if (ROWS >= RL_H2 || (y >= 0 && y < ROWS))
        *(uint4 *)&tile[(y * RL_P1 + x) * OUT_PITCH + part] = make_uint4(
            chosen(g.x, chooser[0], at), chosen(g.y, chooser[1], at), chosen(g.z, chooser[2], at), chosen(g.w, chooser[3], at));
    }
  }
}

typedef struct conv2_gradients {
  uint32_t batch, rows; /* images; rows of partial sums */
  const __half *in, *weights, *d_pooled;
  const uint8_t *codes;
  __half *d_in;
  float *partial, *partial_bias;
  rl_train_state *state;
} conv2_gradients;

/* --- weight gradient ------------------------------------------------------------------------------------------------------- */

/* Adds what was let through to sums of this thread's eight channels; false: some of it is infinite or NaN. */
static __device__ __forceinline__ bool add_bias(const piece &p, float sums[UNIT]) {
  bool finite = true;
  for (int turn = 0; turn < TURNS; turn++)
    for (int c = 0; c < UNIT; c++) {
      uint32_t pair = (&p.gradient[turn].x)[c / 2], code = (&p.code[turn].x)[c / 4] >> c % 4 * 8 & 0xff;
      float value = code == RL_POOL_RELU_ZERO ? 0.0f : __half2float(__ushort_as_half((unsigned short)(pair >> c % 2 * 16)));
      sums[c] += value;
      finite &= isfinite(value);
    }
  return finite;
}

/* Columns of a pair of groups, or of its first one alone. */
template <class S> static __device__ __forceinline__ void load_columns(uint32_t by[4], int pair, uint32_t row) {
  if (pair * 2 + 1 < S::WARP_COLUMNS) ldmatrix_x4_trans(by, row);
  else ldmatrix_x2_trans(by, row);
}

/* Adds an image's product by tiles of 16 pixels. What the next tile is multiplied with is asked for as soon as there is room. */
template <class S> static __device__ __forceinline__ void add_weights(float sum[4][S::WARP_COLUMNS][4], uint32_t a_at,
                                                                      const uint32_t b_row[S::COLUMN_PAIRS], uint32_t b_at) {
  const int columns = S::WARP_COLUMNS;
  uint32_t a[2][4], by[S::COLUMN_PAIRS][4];
  ldmatrix_x4_trans(a[0], a_at);
  for (int i = 0; i < S::COLUMN_PAIRS; i++) load_columns<S>(by[i], i, b_row[i] + b_at);
#pragma unroll 1
  for (int y = 0; y < TILES_IN_ROW; y++)
#pragma unroll
    for (int x = 0; x < TILES_IN_ROW; x++) {
      const bool more = x + 1 < TILES_IN_ROW || y + 1 < TILES_IN_ROW;
      const int pixels = TILE_SIDE * (x + 1 < TILES_IN_ROW ? 1 : RL_P1 + 1 - TILES_IN_ROW); /* to the next tile */
      b_at += pixels * IN_PITCH * 2;
#pragma unroll
      for (int t = 0; t < 4; t++) {
        if (t == 3) a_at += pixels * OUT_PITCH * 2;
        if (t < 3 || more) ldmatrix_x4_trans(a[(t + 1) % 2], a_at + (t + 1) % 4 * 16 * 2);
        for (int i = 0; i < columns; i++) {
          mma_m16n8k16(sum[t][i], a[t % 2], &by[i / 2][i % 2 * 2]);
          if (t == 3 && more && (i % 2 || i + 1 == columns)) load_columns<S>(by[i / 2], i / 2, b_row[i / 2] + b_at);
        }
      }
    }
}

/* This thread's sums of eight channels to a row of them all. */
static __device__ __forceinline__ void store_bias(const float mine[UNIT], float *sums, float *row) {
  for (int c = 0; c < UNIT; c++) sums[threadIdx.x * UNIT + c] = mine[c];
  team_sync();
  if (threadIdx.x >= RL_C2) return;
  float total = 0.0f;
  for (int i = 0; i < THREADS / GROUPS; i++) total += sums[i * RL_C2 + threadIdx.x];
  row[threadIdx.x] = total;
}

/* Part `part` of d_weight[64][288] over images index, index + rows, …: a warp has all channels of 8 · WARP_COLUMNS columns. */
template <bool FEW> static __device__ void weight_gradient(const conv2_gradients &b, uint32_t index, int part, __half *shared) {
  typedef shape<FEW> S;
  __half *out = shared, *in = shared + S::WEIGHT_OUT;
  const int lane = threadIdx.x % 32, first = (threadIdx.x / 32 + part * WARPS) * S::WARP_COLUMNS;
  const uint32_t a_row = shared_address(&out[tile_pixel(lane / 16 * 8 + lane % 8) * OUT_PITCH + lane / 8 % 2 * UNIT]);
  uint32_t b_row[S::COLUMN_PAIRS]; /* tap and channel */
  for (int i = 0; i < S::COLUMN_PAIRS; i++) {
    const int group = min(first + i * 2 + lane / 16, DEPTH / UNIT - 1), tap = group / (RL_C1 / UNIT);
    const int pixel = tile_pixel(lane % 16) + tap / 3 * RL_P1 + tap % 3;
    b_row[i] = shared_address(&in[pixel * IN_PITCH + group % (RL_C1 / UNIT) * UNIT]);
  }
  float sum[4][S::WARP_COLUMNS][4] = {}, bias[UNIT] = {};
  bool finite = true;

  pdl_wait();
  piece p = load_piece(b.d_pooled, b.codes, index);
  copy_image<THREADS>(&b.in[(size_t)index * MAP1 * RL_C1], in);
  uint32_t buffer = 0;
  for (uint32_t n = index; n < b.batch; n += b.rows, buffer = IN_IMAGE - buffer) {
    spread<RL_H2>(p, 0, out);
    if (part == 0) finite &= add_bias(p, bias);
    cp_async_wait_all();
    team_sync();
    if (n + b.rows < b.batch) {
      p = load_piece(b.d_pooled, b.codes, n + b.rows);
      copy_image<THREADS>(&b.in[(size_t)(n + b.rows) * MAP1 * RL_C1], &in[IN_IMAGE - buffer]);
    }
    add_weights<S>(sum, a_row, b_row, buffer * 2);
    team_sync();
  }

  float *row = &b.partial[(size_t)index * RL_C2 * DEPTH];
  for (int t = 0; t < 4; t++)
    for (int i = 0; i < S::WARP_COLUMNS; i++)
      for (int half = 0; half < 2; half++) {
        const int k = t * 16 + half * 8 + lane / 4, column = (first + i) * UNIT + lane % 4 * 2;
        *(float2 *)&row[k * DEPTH + column] = make_float2(sum[t][i][half * 2], sum[t][i][half * 2 + 1]);
      }
  if (part != 0) return;
  if (!finite) b.state->overflow = 1;
  store_bias(bias, (float *)shared, &b.partial_bias[index * RL_C2]);
}

/* --- input gradient -------------------------------------------------------------------------------------------------------- */

/* What a warp multiplies at a step: 16 channels of the product at a tap. */
template <class S> struct fragments { uint32_t a[S::WARP_TILES][4], by[2][4]; };

/* At the tap whose rows of the product's gradient and whose weights begin at a_row + a_at and b_at. */
template <class S> static __device__ __forceinline__ void load_fragments(fragments<S> &to, const uint32_t a_row[S::WARP_TILES],
                                                                         uint32_t a_at, uint32_t b_at, int channel) {
  for (int t = 0; t < S::WARP_TILES; t++) ldmatrix_x4(to.a[t], a_row[t] + a_at + channel * 2);
  for (int c = 0; c < 2; c++) ldmatrix_x4_trans(to.by[c], b_at + (channel * WEIGHT_PITCH + c * 16) * 2);
}

/* All taps of this warp's tiles; each step's operands are asked for before the one in front is multiplied. */
template <class S> static __device__ __forceinline__ void add_taps(float sum[S::WARP_TILES][4][4],
                                                                   const uint32_t a_row[S::WARP_TILES], uint32_t b_at) {
  const int parts = RL_C2 / 16, steps = 3 * parts; /* of a tap; of a row of them */
  fragments<S> f[2];
  uint32_t a_at = 0;
  load_fragments(f[0], a_row, a_at, b_at, 0);
#pragma unroll 1
  for (int dy = 0; dy < 3; dy++)
#pragma unroll
    for (int k = 0; k < steps; k++) {
      if (k % parts == parts - 1) {
        a_at -= (k + 1 < steps ? 1 : RL_P1 - 2) * OUT_PITCH * 2;
        b_at += RL_C1 * 2;
      }
      if (k + 1 < steps || dy + 1 < 3) load_fragments(f[(k + 1) % 2], a_row, a_at, b_at, (k + 1) % parts * 16);
      for (int t = 0; t < S::WARP_TILES; t++)
        for (int c = 0; c < 4; c++) mma_m16n8k16(sum[t][c], f[k % 2].a[t], &f[k % 2].by[c / 2][c % 2 * 2]);
    }
}

/* The pixels from CORNER on, four of the last row, where the last row of taps alone meets the product: a warp makes eight
 * channels of them. */
template <class S> static __device__ __forceinline__ void corner_gradient(const __half *w, const __half *out, __half *d_in) {
  const int lane = threadIdx.x % 32, channel = threadIdx.x / 32 * UNIT, pixel = min(S::CORNER + lane % 16, S::PIXELS - 1);
  const uint32_t a_row = shared_address(&out[(S::OUT_BORDER + pixel) * OUT_PITCH + lane / 16 * UNIT]),
                 b_row = shared_address(&w[lane % 16 * WEIGHT_PITCH + 6 * RL_C1 + channel]);
  float sum[2][4] = {};
#pragma unroll
  for (int k = 0; k < 3 * RL_C2 / 16; k++) {
    const int dx = k / (RL_C2 / 16), from = k % (RL_C2 / 16) * 16;
    uint32_t a[4], by[2];
    ldmatrix_x4(a, a_row + (from - dx * OUT_PITCH) * 2);
    ldmatrix_x2_trans(by, b_row + (from * WEIGHT_PITCH + dx * RL_C1) * 2);
    mma_m16n8k16(sum[k % 2], a, by);
  }
  if (lane / 4 < S::PIXELS - S::CORNER)
    *(__half2 *)&d_in[(S::CORNER + lane / 4) * RL_C1 + channel + lane % 4 * 2] =
        __floats2half2_rn(sum[0][0] + sum[1][0], sum[0][1] + sum[1][1]);
}

/* Of a pixel's 32 channels four neighbouring lanes have two in each of four sums: lane j gets the eight from 8·j on. */
static __device__ __forceinline__ uint4 eight_channels(const float sum[4][4], int half) {
  uint32_t made[4];
  for (int c = 0; c < 4; c++) {
    const __half2 pair = __floats2half2_rn(sum[c][half * 2], sum[c][half * 2 + 1]);
    made[c] = *(const uint32_t *)&pair;
  }
  for (int bit = 1; bit < 4; bit *= 2)
    for (int c = 0; c < 4; c++) {
      if (c & bit) continue;
      const bool high = threadIdx.x & bit;
      const uint32_t got = __shfl_xor_sync(0xffffffffu, high ? made[c] : made[c | bit], bit);
      (high ? made[c] : made[c | bit]) = got;
    }
  return make_uint4(made[0], made[1], made[2], made[3]);
}

/* Parts index, index + teams, … of images; teams is a multiple of IN_PARTS, so that they are all the same part. A warp has
 * WARP_TILES tiles × 32 channels. */
template <bool FEW>
static __device__ void input_gradient(const conv2_gradients &b, uint32_t index, uint32_t teams, __half *shared) {
  typedef shape<FEW> S;
  __half *w = shared, *out = shared + RL_C2 * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, top = index % S::IN_PARTS * S::IN_ROWS;
  const uint32_t count = b.batch * S::IN_PARTS;
  for (int i = threadIdx.x; i < RL_C2 * DEPTH / UNIT; i += THREADS) {
    int channel = i / (DEPTH / UNIT), part = i % (DEPTH / UNIT) * UNIT;
    cp_async_16(&w[channel * WEIGHT_PITCH + part], &b.weights[channel * DEPTH + part]);
  }
  for (int i = threadIdx.x; i < S::OUT / UNIT; i += THREADS) ((uint4 *)out)[i] = make_uint4(0, 0, 0, 0);
  pdl_wait();
  piece p = load_piece(b.d_pooled, b.codes, index / S::IN_PARTS);
  team_sync();
  uint32_t a_row[S::WARP_TILES];
  for (int t = 0; t < S::WARP_TILES; t++) {
    const int pixel = min((warp * S::WARP_TILES + t) * 16 + lane % 16, S::PIXELS - 1);
    a_row[t] = shared_address(&out[(S::OUT_BORDER + 2 * RL_P1 + pixel) * OUT_PITCH + lane / 16 * UNIT]);
  }
  const uint32_t b_row = shared_address(&w[lane % 16 * WEIGHT_PITCH + lane / 16 * UNIT]);

  for (uint32_t i = index; i < count; i += teams) {
    spread<S::OUT_ROWS>(p, top - 2, &out[S::OUT_BORDER * OUT_PITCH]);
    cp_async_wait_all();
    team_sync();
    if (i + teams < count) p = load_piece(b.d_pooled, b.codes, (i + teams) / S::IN_PARTS);
    const size_t at = ((size_t)(i / S::IN_PARTS) * MAP1 + top * RL_P1) * RL_C1;
    float sum[S::WARP_TILES][4][4] = {};
    add_taps<S>(sum, a_row, b_row);
    for (int t = 0; t < S::WARP_TILES; t++)
      for (int half = 0; half < 2; half++) {
        const int pixel = (warp * S::WARP_TILES + t) * 16 + half * 8 + lane / 4, channel = lane % 4 * UNIT;
        const uint4 eight = eight_channels(sum[t], half);
        if (pixel < S::PIXELS) *(uint4 *)&b.d_in[at + pixel * RL_C1 + channel] = eight;
      }
    if (S::CORNER < S::PIXELS) corner_gradient<S>(w, out, &b.d_in[at]);
    team_sync();
  }
}

/* Both gradients side by side: the first teams have the weights', which take longer. */
template <bool FEW> static __global__ void __launch_bounds__(FEW ? THREADS : 2 * THREADS, FEW ? 3 : 1)
    conv2_backward(conv2_gradients b, uint32_t teams) {
  extern __shared__ __align__(16) __half shared[];
  const uint32_t parts = shape<FEW>::WEIGHT_PARTS, weight_teams = parts * b.rows, team = blockIdx.x + threadIdx.y * gridDim.x;
  __half *own = shared + threadIdx.y * (shape<FEW>::SHARED_BYTES / sizeof *shared);
  if (team < weight_teams) weight_gradient<FEW>(b, team / parts, team % parts, own);
  else if (team < teams) input_gradient<FEW>(b, team - weight_teams, teams - weight_teams, own);
}

uint32_t rl_conv2_partial_rows(uint32_t batch) {
  uint32_t pairs = (batch + 1) / 2;
  return pairs < MOST_ROWS ? pairs : (uint32_t)MOST_ROWS;
}

template <bool FEW> static uint32_t data_teams(uint32_t batch) {
  const uint32_t most = FEW ? (uint32_t)MOST_TEAMS : MOST_TEAMS - rl_conv2_partial_rows(batch),
                 count = batch * shape<FEW>::IN_PARTS;
  return count < most ? count : most;
}

static int most_shared_bytes(int *bytes, rl_error *err) {
  int device = 0;
  return rl_cuda_ok(cudaGetDevice(&device), "the device", err) ||
                 rl_cuda_ok(cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "its shared memory",
                            err)
             ? -1
             : 0;
}

template <bool FEW> static int start_backward(const conv2_gradients &b, cudaStream_t stream, rl_error *err) {
  typedef shape<FEW> S;
  const int team_bytes = S::SHARED_BYTES;
  const uint32_t teams = S::WEIGHT_PARTS * b.rows + data_teams<FEW>(b.batch);
  int most_bytes = 0;
  if (most_shared_bytes(&most_bytes, err) != 0) return -1;
  const uint32_t each = !FEW && teams == MOST_TEAMS && 2 * team_bytes <= most_bytes ? 2 : 1; /* teams a block */
  const int bytes = each * team_bytes;
  if (rl_cuda_ok(cudaFuncSetAttribute(conv2_backward<FEW>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "reserving shared memory", err))
    return -1;
  return rl_pdl_launch("conv2 backward", conv2_backward<FEW>, teams / each, dim3(THREADS, each), bytes, stream, err, b, teams);
}

int rl_conv2_backward(uint32_t batch, const void *in, const void *weights, const void *d_pooled, const uint8_t *codes, void *d_in,
                      float *partial, float *partial_bias, rl_train_state *state, cudaStream_t stream, rl_error *err) {
  const conv2_gradients b = {batch,
                             rl_conv2_partial_rows(batch),
                             (const __half *)in,
                             (const __half *)weights,
                             (const __half *)d_pooled,
                             codes,
                             (__half *)d_in,
                             partial,
                             partial_bias,
                             state};
  return batch > FEW_IMAGES ? start_backward<false>(b, stream, err) : start_backward<true>(b, stream, err);
}
