/* Adam over all parameters in one kernel (Kingma & Ba 2015, algorithm 1, in the order of operations of torch.optim.Adam).
 * Partial sums of a gradient are a matrix [rows][parameters] (kernels.h); the gradient of a parameter is the sum of its column.
 *
 * The kernel adds up partial sums of gradients, removes the loss scale, updates weights, moments and FP16 copies, or skips the
 * step if a gradient overflowed. The first blocks update the large tensors, conv2.weight and then fc1.weight, four parameters
 * per thread. The others update the small tensors, conv1, conv2.bias and the head, whose gradients are partial sums. Each block
 * takes a ticket (an atomic counter) after it has read the training state; the block with the last ticket advances the state.
 * Blocks exchange nothing else. All sums have a fixed order, so results are reproducible. Least memory traffic: 28 bytes a
 * parameter (read the gradient; read and write the weight and both moments), 8.8 MB in all, which stays in L2. */
#include "train/cuda/adam.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/pdl.cuh"
#include "train/cuda/vector.cuh"

enum {
  THREADS = 256,
  /* Where gradients are sums over rows, the threads of a block share the rows of COLUMNS columns (small tensors) or of
   * COLUMNS groups of four neighbouring columns (conv2.weight). */
  COLUMNS = 32,
  ROW_SPLITS = THREADS / COLUMNS, /* threads that share the rows of a column */
  COLUMN_QUADS = COLUMNS / 4,
  CONV2_BLOCKS = CONV2_COUNT / 4 / THREADS,     /* if conv2.weight's gradient is whole */
  CONV2_SUM_BLOCKS = CONV2_COUNT / 4 / COLUMNS, /* if it is partial sums */
  FC1_BLOCKS = FC1_COUNT / 4 / THREADS,
  CONV1_BLOCKS = CONV2_OFFSET / COLUMNS,
  BIAS_BLOCKS = RL_C2 / COLUMNS,
  HEAD_BLOCKS = (RL_HEAD_PARAMETERS + COLUMNS - 1) / COLUMNS,
  SMALL_BLOCKS = CONV1_BLOCKS + BIAS_BLOCKS + HEAD_BLOCKS
};
static_assert(CONV2_COUNT % (4 * THREADS) == 0 && FC1_COUNT % (4 * THREADS) == 0, "the large tensors are whole blocks");
static_assert(CONV2_OFFSET % 4 == 0 && RL_C2 % 4 == 0 && RL_HEAD_PITCH % 4 == 0, "rows of partial sums are whole float4s");

static __host__ __device__ __forceinline__ uint32_t conv2_blocks(const rl_gradients &g) {
  return g.conv2_rows ? (uint32_t)CONV2_SUM_BLOCKS : (uint32_t)CONV2_BLOCKS;
}

static __host__ __device__ __forceinline__ uint32_t large_blocks(const rl_gradients &g) {
  return conv2_blocks(g) + (uint32_t)FC1_BLOCKS;
}

/* Offset of this thread's four parameters of the large tensors. If conv2's gradient is partial sums, ROW_SPLITS threads share the
 * same four parameters. */
static __device__ __forceinline__ uint32_t large_offset(const rl_gradients &g) {
  if (blockIdx.x >= conv2_blocks(g)) return FC1_OFFSET + ((blockIdx.x - conv2_blocks(g)) * THREADS + threadIdx.x) * 4;
  return CONV2_OFFSET + (g.conv2_rows ? blockIdx.x * COLUMNS + threadIdx.x % COLUMNS : blockIdx.x * THREADS + threadIdx.x) * 4;
}

/* Adds up columns column … column + 3 of partial[rows][CONV2_COUNT]; ROW_SPLITS threads share the rows. */
static __device__ float4 conv2_sum(const float *partial, uint32_t rows, uint32_t column) {
  __shared__ float4 sums[ROW_SPLITS][COLUMNS];
  uint32_t lane = threadIdx.x % COLUMNS, split = threadIdx.x / COLUMNS;
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (uint32_t row = split; row < rows; row += ROW_SPLITS) sum = add4(sum, load4(&partial[(size_t)row * CONV2_COUNT + column]));
  sums[split][lane] = sum;
  __syncthreads();
  sum = sums[0][lane];
  for (int i = 1; i < ROW_SPLITS; i++) {
    float4 v = sums[i][lane];
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  return sum;
}

/* Gradient of four neighbouring weights of fc1, from `i` on, as a product: d_fc1ᵀ · fc1_in. */
template <class T> static __device__ float4 fc1_product(const rl_gradients &g, uint32_t i) {
  const T *d_fc1 = (const T *)g.d_fc1 + i / RL_FC1_INPUTS, *fc1_in = (const T *)g.fc1_in + i % RL_FC1_INPUTS;
  float4 sum = make_float4(0, 0, 0, 0);
  for (uint32_t n = 0; n < g.batch; n++)
    sum = add4(sum, scale4(load4(&fc1_in[(size_t)n * RL_FC1_INPUTS]), (float)d_fc1[(size_t)n * RL_FC1_OUTPUTS]));
  return sum;
}

/* Returns the gradients of the four parameters at `offset`, still multiplied by the loss scale. Sets *is_owner to whether this
 * thread updates the parameters. */
static __device__ __forceinline__ float4 load_large_gradient(const rl_gradients &g, uint32_t offset, bool *is_owner) {
  *is_owner = true;
  if (blockIdx.x >= conv2_blocks(g)) return load4(&g.fc1_weight[offset - FC1_OFFSET]);
  uint32_t i = offset - CONV2_OFFSET;
  if (g.conv2_rows) {
    *is_owner = threadIdx.x < COLUMNS;
    return conv2_sum((const float *)g.conv2_weight, g.conv2_rows, i);
  }
  return g.fp16 ? load4((const __half *)g.conv2_weight + i) : load4((const float *)g.conv2_weight + i);
}

/* Partial sums that a block of the small tensors adds up: COLUMNS columns of partial[rows][stride]. */
typedef struct small_columns {
  const float *partial;
  uint32_t rows, stride;
  uint32_t column;       /* of this thread */
  uint32_t column_count; /* of the tensor */
  uint32_t offset;       /* of the tensor's first parameter */
} small_columns;

/* block: index among the blocks of the small tensors. */
static __device__ __forceinline__ small_columns small_columns_of(const rl_gradients &g, uint32_t block) {
  const uint32_t lane = threadIdx.x % COLUMNS;
  if (block < CONV1_BLOCKS) return {g.conv1, g.conv1_rows, CONV2_OFFSET, block * COLUMNS + lane, CONV2_OFFSET, 0};
  block -= CONV1_BLOCKS;
  if (block < BIAS_BLOCKS) return {g.conv2_bias, g.conv2_bias_rows, RL_C2, block * COLUMNS + lane, RL_C2, CONV2_BIAS_OFFSET};
  return {g.head, g.head_rows, RL_HEAD_PITCH, (block - BIAS_BLOCKS) * COLUMNS + lane, RL_HEAD_PARAMETERS, HEAD_OFFSET};
}

static __device__ __forceinline__ bool owns_column(const small_columns &columns) {
  return threadIdx.x < COLUMNS && columns.column < columns.column_count;
}

/* Adds up a block's columns: a thread loads four neighbouring columns, and THREADS / COLUMN_QUADS threads share their rows.
 * Returns the sum of this thread's column, which is valid if owns_column. */
static __device__ float column_sum(const small_columns &columns) {
  __shared__ __align__(16) float parts[THREADS / 32][COLUMNS];
  const uint32_t quad = threadIdx.x % COLUMN_QUADS,
                 column = min(columns.column / COLUMNS * COLUMNS + quad * 4, columns.stride - 4);
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (uint32_t row = threadIdx.x / COLUMN_QUADS; row < columns.rows; row += THREADS / COLUMN_QUADS)
    sum = add4(sum, load4(&columns.partial[row * columns.stride + column]));
  for (int offset = COLUMN_QUADS; offset < 32; offset *= 2) {
    const float4 other = make_float4(__shfl_xor_sync(0xffffffffu, sum.x, offset), __shfl_xor_sync(0xffffffffu, sum.y, offset),
                                     __shfl_xor_sync(0xffffffffu, sum.z, offset), __shfl_xor_sync(0xffffffffu, sum.w, offset));
    sum = add4(sum, other);
  }
  if (threadIdx.x % 32 < COLUMN_QUADS) store4(&parts[threadIdx.x / 32][quad * 4], sum);
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < THREADS / 32; i++) total += parts[i][threadIdx.x % COLUMNS];
  return total;
}

/* A copy of the training state in shared memory. All blocks take their rates from it; the block with the last ticket also
 * advances it. It is loaded early, because a load at the end would lengthen the kernel. */
typedef struct step_state {
  rl_train_state state; /* its `overflow` and `blocks_done` are stale */
  float loss;           /* sum over the batch */
} step_state;
enum { STATE_WORDS = sizeof(rl_train_state) / 4 };
static_assert(sizeof(rl_train_state) % 4 == 0 && STATE_WORDS <= 32, "a warp loads the state at once");

/* The first warp loads the state and sums the loss. It need not wait for the previous kernel (pdl_wait), which writes neither,
 * apart from the state's `overflow`. */
static __device__ __forceinline__ void load_step_state(const rl_adam &adam, const rl_gradients &g, step_state *step) {
  if (threadIdx.x >= 32) return;
  float loss = 0.0f;
  for (uint32_t row = threadIdx.x; row < g.head_rows; row += 32) loss += g.head[row * RL_HEAD_PITCH + RL_HEAD_LOSS];
  loss = warp_sum(loss);
  if (threadIdx.x == 0) step->loss = loss;
  if (threadIdx.x < STATE_WORDS) ((uint32_t *)&step->state)[threadIdx.x] = ((const uint32_t *)adam.state)[threadIdx.x];
}

/* Takes a ticket: returns how many were taken before. acq_rel: reads that any block makes before it takes its ticket happen
 * before the writes of the block that takes the last ticket. */
static __device__ __forceinline__ uint32_t take_ticket(uint32_t *counter) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

/* Returns whether the step is skipped. Reads state->overflow before it takes the block's ticket, because the block with the
 * last ticket resets overflow. Sets *is_last in the thread that advances the state. All threads call it. */
static __device__ __forceinline__ bool read_overflow_and_take_ticket(const rl_adam &adam, bool *is_last) {
  const bool skip = *(volatile uint32_t *)&adam.state->overflow;
  __syncthreads();
  *is_last = threadIdx.x == 0 && take_ticket(&adam.state->blocks_done) == gridDim.x - 1;
  return skip;
}

static __device__ __forceinline__ void store_loss_and_state(const rl_adam &adam, const rl_gradients &g, const step_state &step,
                                                            bool skip) {
  rl_train_state state = step.state;
  adam.losses[state.step] = step.loss / g.batch;
  state.blocks_done = 0;
  state.overflow = skip;
  advance_train_state(&state, adam.learning_rate, g.batch);
  *adam.state = state;
}

static __device__ void update_large_tensors(const rl_adam &adam, const rl_gradients &g) {
  __half *fp16_weights = (__half *)adam.fp16_weights;
  __shared__ step_state step;
  bool is_owner;
  const uint32_t offset = large_offset(g);
  float4 w = load4(&adam.weights[offset]), first_moment = load4(&adam.first_moment[offset]),
         second_moment = load4(&adam.second_moment[offset]);
  load_step_state(adam, g, &step);
  const float4 gradient = load_large_gradient(g, offset, &is_owner);
  pdl_wait(); /* the loads above do not depend on the previous kernel */
  bool is_last;
  const bool skip = read_overflow_and_take_ticket(adam, &is_last);
  const adam_rates rates = adam_rates_of(step.state);
  if (is_owner && !skip) {
    w.x = adam_update_weight(w.x, gradient.x, &first_moment.x, &second_moment.x, rates);
    w.y = adam_update_weight(w.y, gradient.y, &first_moment.y, &second_moment.y, rates);
    w.z = adam_update_weight(w.z, gradient.z, &first_moment.z, &second_moment.z, rates);
    w.w = adam_update_weight(w.w, gradient.w, &first_moment.w, &second_moment.w, rates);
    store4(&adam.weights[offset], w);
    store4(&adam.first_moment[offset], first_moment);
    store4(&adam.second_moment[offset], second_moment);
    if (fp16_weights) store4(&fp16_weights[offset], w);
  }
  if (is_last) store_loss_and_state(adam, g, step, skip);
}

static __device__ void update_small_tensors(const rl_adam &adam, const rl_gradients &g) {
  const uint32_t index = blockIdx.x - large_blocks(g);
  const bool needs_previous_kernel = index < CONV1_BLOCKS; /* the previous kernel stores conv1's partial sums */
  const small_columns columns = small_columns_of(g, index);
  const uint32_t offset = columns.offset + min(columns.column, columns.column_count - 1);
  float gradient, w = adam.weights[offset], first_moment = adam.first_moment[offset], second_moment = adam.second_moment[offset];
  __shared__ step_state step;
  load_step_state(adam, g, &step);
  if (!needs_previous_kernel) gradient = column_sum(columns);
  pdl_wait();
  if (needs_previous_kernel) gradient = column_sum(columns);
  bool is_last;
  const bool skip = read_overflow_and_take_ticket(adam, &is_last);
  const adam_rates rates = adam_rates_of(step.state);
  if (owns_column(columns) && !skip) {
    adam.weights[offset] = adam_update_weight(w, gradient, &first_moment, &second_moment, rates);
    adam.first_moment[offset] = first_moment;
    adam.second_moment[offset] = second_moment;
  }
  if (is_last) store_loss_and_state(adam, g, step, skip);
}

static __global__ void __launch_bounds__(THREADS) adam_step(rl_adam adam, rl_gradients g) {
  if (blockIdx.x < large_blocks(g)) update_large_tensors(adam, g);
  else update_small_tensors(adam, g);
}

static uint32_t block_count(const rl_gradients &g) { return large_blocks(g) + SMALL_BLOCKS; }

int rl_adam_step(const rl_adam *adam, const rl_gradients *gradients, cudaStream_t stream, rl_error *err) {
  return rl_pdl_launch("Adam", adam_step, block_count(*gradients), THREADS, 0, stream, err, *adam, *gradients);
}

/* Returns the gradients that adam_step uses. Computes those of fc1.weight if the engine does not store them. */
static __device__ __forceinline__ float4 load_or_compute_large_gradient(const rl_gradients &g, uint32_t offset, bool *is_owner) {
  if (offset < FC1_OFFSET || g.fc1_weight) return load_large_gradient(g, offset, is_owner);
  *is_owner = true;
  return g.fp16 ? fc1_product<__half>(g, offset - FC1_OFFSET) : fc1_product<float>(g, offset - FC1_OFFSET);
}

static __global__ void __launch_bounds__(THREADS) gather_gradients(rl_gradients g, const rl_train_state *state, float *flat) {
  const float scale = state->last_inverse_loss_scale;
  if (blockIdx.x < large_blocks(g)) {
    bool is_owner;
    const uint32_t offset = large_offset(g);
    const float4 gradient = load_or_compute_large_gradient(g, offset, &is_owner);
    if (is_owner) store4(&flat[offset], scale4(gradient, scale));
  } else {
    const small_columns columns = small_columns_of(g, blockIdx.x - large_blocks(g));
    const float gradient = column_sum(columns);
    if (owns_column(columns)) flat[columns.offset + columns.column] = gradient * scale;
  }
}

int rl_adam_gather_gradients(const rl_gradients *gradients, const rl_train_state *state, float *flat, cudaStream_t stream,
                             rl_error *err) {
  gather_gradients<<<block_count(*gradients), THREADS, 0, stream>>>(*gradients, state, flat);
  return rl_cuda_check_launch("gathering the gradients", err);
}

static __global__ void round_weights(const float *weights, __half *fp16_weights) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < RL_PARAMETERS) fp16_weights[i] = __float2half_rn(weights[i]);
}

int rl_adam_round_weights(const rl_adam *adam, cudaStream_t stream, rl_error *err) {
  round_weights<<<(RL_PARAMETERS + THREADS - 1) / THREADS, THREADS, 0, stream>>>(adam->weights, (__half *)adam->fp16_weights);
  return rl_cuda_check_launch("rounding the weights", err);
}
