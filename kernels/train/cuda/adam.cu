/* Adam over all parameters in one kernel (Kingma & Ba 2015, algorithm 1, in torch.optim.Adam's order of operations). It adds up
 * partial gradients, removes the loss scale, skips the step on overflow, updates weights, moments and FP16 copies, and the last
 * block to have read the training state moves it on. At least 28 bytes a parameter: 8.8 MB, all of it in L2. Sums go in a fixed
 * order: results are reproducible. */
#include "train/cuda/adam.cuh"
#include "train/cuda/pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/mma.cuh"
#include "train/cuda/vector.cuh"

enum {
  THREADS = 256,
  LANES = 32,
  SPLITS = THREADS / LANES,
  QUADS = LANES / 4,
  CONV2_AT = RL_C1 * 10,
  CONV2_COUNT = RL_C2 * RL_C1 * 9,
  CONV2_BIAS_AT = CONV2_AT + CONV2_COUNT,
  FC1_AT = CONV2_BIAS_AT + RL_C2,
  FC1_COUNT = RL_FC1 * RL_FLAT,
  HEAD_AT = FC1_AT + FC1_COUNT,
  CONV2_BLOCKS = CONV2_COUNT / 4 / THREADS,
  CONV2_SUM_BLOCKS = CONV2_COUNT / 4 / LANES,
  FC1_BLOCKS = FC1_COUNT / 4 / THREADS,
  CONV1_BLOCKS = CONV2_AT / LANES,
  BIAS_BLOCKS = RL_C2 / LANES,
  HEAD_BLOCKS = (RL_HEAD_LOSS + LANES - 1) / LANES,
  SMALL_BLOCKS = CONV1_BLOCKS + BIAS_BLOCKS + HEAD_BLOCKS,
  /* Where fc1's weight gradient is made here (adam_gather): a block has 32 × 64 weights, a warp 16 × 16, and images come by 64.
   */
  TILE_ROWS = 32,
  TILE_COLUMNS = 64,
  TILE_IMAGES = 64,
  UNIT = 8 /* halves in 16 bytes */,
  PIECES = 4 /* pairs of weights a thread has */,
  ROW_TILES = RL_FC1 / TILE_ROWS,
  PRODUCT_BLOCKS = ROW_TILES * (RL_FLAT / TILE_COLUMNS)
};
static_assert(TILE_ROWS * TILE_COLUMNS == THREADS * PIECES * 2, "every weight has a thread");
static_assert(CONV2_COUNT % (4 * THREADS) == 0 && FC1_COUNT % (4 * THREADS) == 0, "whole blocks");
static_assert(CONV2_AT % 4 == 0 && RL_C2 % 4 == 0 && RL_HEAD_ROW % 4 == 0, "rows of partial sums are whole fours");
static_assert(HEAD_AT + RL_HEAD_LOSS == RL_PARAMETERS, "every parameter has a place");

/* Blocks 0… have conv2.weight and then fc1.weight, four parameters a thread (one row of threads where conv2's is a sum). */
static __host__ __device__ __forceinline__ uint32_t conv2_blocks(const rl_gradients &g) {
  return g.conv2_rows ? (uint32_t)CONV2_SUM_BLOCKS : (uint32_t)CONV2_BLOCKS;
}

/* PRODUCT: fc1's weight gradient is made here, for who wants to see it. */
template <bool PRODUCT> static __host__ __device__ __forceinline__ uint32_t whole_blocks(const rl_gradients &g) {
  return conv2_blocks(g) + (PRODUCT ? (uint32_t)PRODUCT_BLOCKS : (uint32_t)FC1_BLOCKS);
}

/* The first of this thread's parameters. */
static __device__ __forceinline__ uint32_t whole_place(const rl_gradients &g) {
  if (blockIdx.x >= conv2_blocks(g)) return FC1_AT + ((blockIdx.x - conv2_blocks(g)) * THREADS + threadIdx.x) * 4;
  return CONV2_AT + (g.conv2_rows ? blockIdx.x * LANES + threadIdx.x % LANES : blockIdx.x * THREADS + threadIdx.x) * 4;
}

/* Sum of four columns of partial[rows][CONV2_COUNT], by SPLITS threads. */
static __device__ float4 conv2_sum(const float *partial, uint32_t rows, uint32_t column) {
  __shared__ float4 sums[SPLITS][LANES];
  uint32_t lane = threadIdx.x % LANES, split = threadIdx.x / LANES;
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (uint32_t row = split; row < rows; row += SPLITS) {
    float4 v = load4(&partial[(size_t)row * CONV2_COUNT + column]);
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  sums[split][lane] = sum;
  __syncthreads();
  sum = sums[0][lane];
  for (int i = 1; i < SPLITS; i++) {
    float4 v = sums[i][lane];
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  return sum;
}

/* Gradients of the four parameters at `at`, still scaled. *mine: they are this thread's to use. */
static __device__ __forceinline__ float4 whole_gradient(const rl_gradients &g, uint32_t at, bool *mine) {
  *mine = true;
  if (blockIdx.x >= conv2_blocks(g)) return load4(&g.fc1_weight[at - FC1_AT]);
  uint32_t i = at - CONV2_AT;
  if (g.conv2_rows) {
    *mine = threadIdx.x < LANES;
    return conv2_sum((const float *)g.conv2_weight, g.conv2_rows, i);
  }
  return g.half ? load4((const __half *)g.conv2_weight + i) : load4((const float *)g.conv2_weight + i);
}

/* --- fc1's weight gradient as a product, FP16: d_fc1ᵀ · fc1_in --------------------------------------------------------- */

/* Where pair i of this thread's weights begins: of the 16 × 16 of its warp, rows lane / 4 and lane / 4 + 8 of columns 0–7, then
 * the same of columns 8–15. */
static __device__ __forceinline__ uint32_t product_place(const rl_gradients &g, int i) {
  const uint32_t tile = blockIdx.x - conv2_blocks(g), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t row = tile % ROW_TILES * TILE_ROWS + warp % 2 * 16 + i % 2 * 8 + lane / 4,
                 column = tile / ROW_TILES * TILE_COLUMNS + warp / 2 * 16 + i / 2 * 8 + lane % 4 * 2;
  return FC1_AT + row * RL_FLAT + column;
}

/* gradient[i]: of the pair at product_place(i), still scaled. */
static __device__ __forceinline__ void product_gradient(const rl_gradients &g, float2 gradient[PIECES]) {
  __shared__ __align__(16) __half out[TILE_IMAGES][TILE_ROWS + UNIT], in[TILE_IMAGES][TILE_COLUMNS + UNIT];
  const uint32_t tile = blockIdx.x - conv2_blocks(g), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const __half *d_fc1 = (const __half *)g.d_fc1 + tile % ROW_TILES * TILE_ROWS,
               *fc1_in = (const __half *)g.fc1_in + tile / ROW_TILES * TILE_COLUMNS;
  float sum[2][4] = {};
  for (uint32_t first = 0; first < g.batch; first += TILE_IMAGES) {
    __syncthreads();
    cp_async_rows<THREADS>(d_fc1, RL_FC1, first, g.batch, out);
    cp_async_rows<THREADS>(fc1_in, RL_FLAT, first, g.batch, in);
    cp_async_wait_all();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE_IMAGES; k += 16) {
      uint32_t a[4], by[4];
      ldmatrix_x4_trans(a, shared_address(&out[k + lane / 16 * 8 + lane % 8][warp % 2 * 16 + lane / 8 % 2 * UNIT]));
      ldmatrix_x4_trans(by, shared_address(&in[k + lane % 16][warp / 2 * 16 + lane / 16 * UNIT]));
      for (int c = 0; c < 2; c++) mma_m16n8k16(sum[c], a, &by[c * 2]);
    }
  }
  for (int i = 0; i < PIECES; i++) gradient[i] = make_float2(sum[i / 2][i % 2 * 2], sum[i / 2][i % 2 * 2 + 1]);
}

/* Of block `index` behind the whole ones: which partial sums it adds up, and the first parameter they are the gradients of. */
typedef struct sums {
  const float *partial;
  uint32_t rows, stride, column /* of this thread */, at, end;
} sums;

static __device__ __forceinline__ sums sums_of(const rl_gradients &g, uint32_t index) {
  const uint32_t lane = threadIdx.x % LANES;
  if (index < CONV1_BLOCKS) return {g.conv1, g.conv1_rows, CONV2_AT, index * LANES + lane, 0, CONV2_AT};
  index -= CONV1_BLOCKS;
  if (index < BIAS_BLOCKS) return {g.conv2_bias, g.conv2_bias_rows, RL_C2, index * LANES + lane, CONV2_BIAS_AT, RL_C2};
  return {g.head, g.head_rows, RL_HEAD_ROW, (index - BIAS_BLOCKS) * LANES + lane, HEAD_AT, RL_HEAD_LOSS};
}

/* Of a block's LANES columns, four a thread, each by THREADS / QUADS threads; column threadIdx.x's sum, where is_mine. It is the
 * gradient of parameter of.at + of.column, still scaled. */
static __device__ float column_sum(const sums &of) {
  __shared__ __align__(16) float parts[THREADS / 32][LANES];
  const uint32_t quad = threadIdx.x % QUADS, column = min(of.column / LANES * LANES + quad * 4, of.stride - 4);
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (uint32_t row = threadIdx.x / QUADS; row < of.rows; row += THREADS / QUADS)
    sum = add4(sum, load4(&of.partial[row * of.stride + column]));
  for (int offset = QUADS; offset < 32; offset *= 2) {
    const float4 other = make_float4(__shfl_xor_sync(0xffffffffu, sum.x, offset), __shfl_xor_sync(0xffffffffu, sum.y, offset),
                                     __shfl_xor_sync(0xffffffffu, sum.z, offset), __shfl_xor_sync(0xffffffffu, sum.w, offset));
    sum = add4(sum, other);
  }
  if (threadIdx.x % 32 < QUADS) store4(&parts[threadIdx.x / 32][quad * 4], sum);
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < THREADS / 32; i++) total += parts[i][threadIdx.x % LANES];
  return total;
}

static __device__ __forceinline__ bool is_mine(const sums &of) { return threadIdx.x < LANES && of.column < of.end; }

/* What a block keeps in shared memory while it works. Every block takes a ticket once it has read whether the step is skipped,
 * and the block with the last one may change the state; all that this needs is asked for early, because at the end of the kernel
 * everybody waits for it. */
typedef struct turn {
  rl_train_state state; /* of the step in front, as to overflow and ticket */
  float loss;
} turn;
enum { STATE_WORDS = sizeof(rl_train_state) / 4 };

/* What was ready before the kernel in front began; the first warp. */
static __device__ __forceinline__ void begin_turn(const rl_adam &adam, const rl_gradients &g, turn *mine) {
  if (threadIdx.x >= 32) return;
  float loss = 0.0f;
  for (uint32_t row = threadIdx.x; row < g.head_rows; row += 32) loss += g.head[row * RL_HEAD_ROW + RL_HEAD_LOSS];
  loss = warp_sum(loss);
  if (threadIdx.x == 0) mine->loss = loss;
  if (threadIdx.x < STATE_WORDS) ((uint32_t *)&mine->state)[threadIdx.x] = ((const uint32_t *)adam.state)[threadIdx.x];
}
static_assert(sizeof(rl_train_state) % 4 == 0 && STATE_WORDS <= 32, "a warp reads it at once");

/* How many came before. What this thread has read was read before the next one comes. */
static __device__ __forceinline__ uint32_t take_ticket(uint32_t *counter) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

/* Whether the step is skipped; *last: this is the first thread of the block with the last ticket. All threads. */
static __device__ __forceinline__ bool take_turn(const rl_adam &adam, bool *last) {
  const bool skip = *(volatile uint32_t *)&adam.state->overflow;
  __syncthreads();
  *last = threadIdx.x == 0 && take_ticket(&adam.state->blocks_done) == gridDim.x - 1;
  return skip;
}

/* Loss, scale, counters; by who has the last ticket. */
static __device__ __forceinline__ void end_turn(const rl_adam &adam, const rl_gradients &g, const turn &mine, bool skip) {
  rl_train_state s = mine.state;
  adam.losses[s.step] = mine.loss / g.batch;
  s.blocks_done = 0;
  s.overflow = skip;
  advance_state(&s, adam.learning_rate, g.batch);
  *adam.state = s;
}

static __device__ void step_whole(const rl_adam &adam, const rl_gradients &g) {
  __half *halves = (__half *)adam.halves;
  __shared__ turn turn;
  bool mine;
  const uint32_t at = whole_place(g);
  float4 w = load4(&adam.weights[at]), m = load4(&adam.first[at]), v = load4(&adam.second[at]);
  begin_turn(adam, g, &turn);
  const float4 gradient = whole_gradient(g, at, &mine);
  pdl_wait(); /* what came so far was ready before the kernel in front began */
  bool last;
  const bool skip = take_turn(adam, &last);
  const adam_rates r = rates_of(turn.state);
  if (mine && !skip) {
    w.x = adam_updated(w.x, gradient.x, &m.x, &v.x, r);
    w.y = adam_updated(w.y, gradient.y, &m.y, &v.y, r);
    w.z = adam_updated(w.z, gradient.z, &m.z, &v.z, r);
    w.w = adam_updated(w.w, gradient.w, &m.w, &v.w, r);
    store4(&adam.weights[at], w);
    store4(&adam.first[at], m);
    store4(&adam.second[at], v);
    if (halves) store4(&halves[at], w);
  }
  if (last) end_turn(adam, g, turn, skip);
}

static __device__ void step_partial(const rl_adam &adam, const rl_gradients &g) {
  const uint32_t index = blockIdx.x - whole_blocks<false>(g);
  const bool late = index < CONV1_BLOCKS; /* made by the kernel in front */
  const sums from = sums_of(g, index);
  const uint32_t at = from.at + min(from.column, from.end - 1);
  float gradient, w = adam.weights[at], m = adam.first[at], v = adam.second[at];
  __shared__ turn turn;
  begin_turn(adam, g, &turn);
  if (!late) gradient = column_sum(from);
  pdl_wait();
  if (late) gradient = column_sum(from);
  bool last;
  const bool skip = take_turn(adam, &last);
  const adam_rates r = rates_of(turn.state);
  if (is_mine(from) && !skip) {
    adam.weights[at] = adam_updated(w, gradient, &m, &v, r);
    adam.first[at] = m;
    adam.second[at] = v;
  }
  if (last) end_turn(adam, g, turn, skip);
}

static __global__ void __launch_bounds__(THREADS) adam_step(rl_adam adam, rl_gradients g) {
  if (blockIdx.x < whole_blocks<false>(g)) step_whole(adam, g);
  else step_partial(adam, g);
}

template <bool PRODUCT> static uint32_t blocks(const rl_gradients &g) { return whole_blocks<PRODUCT>(g) + SMALL_BLOCKS; }

int rl_adam_step(const rl_adam *adam, const rl_gradients *gradients, cudaStream_t stream, rl_error *err) {
  return rl_pdl_launch("Adam", adam_step, blocks<false>(*gradients), THREADS, 0, stream, err, *adam, *gradients);
}

/* The same of floats, for who wants to see it: what trains with floats makes its own. */
static __device__ void product_of_floats(const rl_gradients &g, float2 gradient[PIECES]) {
  for (int i = 0; i < PIECES; i++) {
    const uint32_t at = product_place(g, i) - FC1_AT;
    const float *out = (const float *)g.d_fc1 + at / RL_FLAT, *in = (const float *)g.fc1_in + at % RL_FLAT;
    gradient[i] = make_float2(0, 0);
    for (uint32_t n = 0; n < g.batch; n++, out += RL_FC1, in += RL_FLAT)
      gradient[i] = make_float2(fmaf(*out, in[0], gradient[i].x), fmaf(*out, in[1], gradient[i].y));
  }
}

static __device__ void gather_product(const rl_gradients &g, float scale, float *flat) {
  float2 gradient[PIECES];
  if (g.half) product_gradient(g, gradient);
  else product_of_floats(g, gradient);
  for (int i = 0; i < PIECES; i++)
    *(float2 *)&flat[product_place(g, i)] = make_float2(gradient[i].x * scale, gradient[i].y * scale);
}

template <bool PRODUCT> static __global__ void __launch_bounds__(THREADS)
    adam_gather(rl_gradients g, const rl_train_state *state, float *flat) {
  float scale = state->last_inverse_scale;
  uint32_t at;
  bool mine;
  if (PRODUCT && blockIdx.x >= conv2_blocks(g) && blockIdx.x < whole_blocks<PRODUCT>(g)) {
    gather_product(g, scale, flat);
  } else if (blockIdx.x < whole_blocks<PRODUCT>(g)) {
    at = whole_place(g);
    float4 v = whole_gradient(g, at, &mine);
    if (mine) store4(&flat[at], make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale));
  } else {
    const sums from = sums_of(g, blockIdx.x - whole_blocks<PRODUCT>(g));
    const float v = column_sum(from);
    if (is_mine(from)) flat[from.at + from.column] = v * scale;
  }
}

int rl_adam_gather(const rl_gradients *gradients, const rl_train_state *state, float *flat, cudaStream_t stream, rl_error *err) {
  const rl_gradients &g = *gradients;
  if (g.fc1_weight) adam_gather<false><<<blocks<false>(g), THREADS, 0, stream>>>(g, state, flat);
  else adam_gather<true><<<blocks<true>(g), THREADS, 0, stream>>>(g, state, flat);
  return rl_launch_ok("collecting gradients", err);
}

static __global__ void adam_halves(const float *weights, __half *halves) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < RL_PARAMETERS) halves[i] = __float2half_rn(weights[i]);
}

int rl_adam_halves(const rl_adam *adam, cudaStream_t stream, rl_error *err) {
  adam_halves<<<(RL_PARAMETERS + THREADS - 1) / THREADS, THREADS, 0, stream>>>(adam->weights, (__half *)adam->halves);
  return rl_launch_ok("rounding the weights", err);
}
