/* Implements the rl_adam_ functions of kernels.h. Adam updates all parameters in one kernel (Kingma & Ba 2015, algorithm 1, in
 * the order of operations of torch.optim.Adam). The kernel adds up partial sums of gradients, divides by the loss scale, and
 * updates weights, moments and FP16 copies. If a gradient overflowed, it skips the step instead. Partial sums of a gradient are a
 * matrix [rows][parameters] (kernels.h): the gradient of a parameter is the sum of its column.
 *
 * Division of work: the first blocks update the large tensors, conv2.weight and then fc1.weight, with four parameters for each
 * thread. The other blocks update the small tensors: conv1.weight and conv1.bias, conv2.bias, and the head (fc1.bias, fc2.weight,
 * fc2.bias), whose gradients are always partial sums. All sums have a fixed order, so results are reproducible.
 *
 * Synchronisation: the last warp of a block reads the training state, while the others add up gradients. Then it increments a
 * counter (takes a ticket). The block with the last ticket writes the next state (WAR). Blocks exchange nothing else.
 *
 * Least memory traffic: 28 bytes for each parameter (read the gradient; read and write the weight and both moments), 8.8 MB in
 * all, which stays in L2. */
#include "pdl.cuh"
#include "train/cuda/adam.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum {
  THREADS = 256,               /* of a block: they update parameters */
  STEP_THREADS = THREADS + 32, /* of a block of adam_step: the last warp has the training state */
  /* If a gradient is stored as partial sums, a block adds up COLUMNS columns (small tensors), or COLUMNS groups of four
   * neighbouring columns (conv2.weight). Its threads share the rows. */
  COLUMNS = 32,
  ROW_SPLITS = THREADS / COLUMNS,               /* conv2.weight: threads that share the rows of a group of columns */
  HALF_VECTORS = COLUMNS / 2,                   /* conv2.weight in FP16: groups of eight columns that a block has */
  HALF_ROW_SPLITS = THREADS / HALF_VECTORS,     /* threads that share the rows of eight columns */
  COLUMN_QUADS = COLUMNS / 4,                   /* small tensors: groups of four columns that a block has */
  CONV2_BLOCKS = CONV2_COUNT / 4 / THREADS,     /* if conv2.weight's gradient is stored as one sum */
  CONV2_SUM_BLOCKS = CONV2_COUNT / 4 / COLUMNS, /* if it is stored as partial sums */
  FC1_BLOCKS = FC1_COUNT / 4 / THREADS,
  CONV1_BLOCKS = CONV2_OFFSET / COLUMNS,
  BIAS_BLOCKS = RL_CONV2_CHANNELS / COLUMNS,
  HEAD_BLOCKS = (RL_HEAD_PARAMETERS + COLUMNS - 1) / COLUMNS,
  SMALL_BLOCKS = CONV1_BLOCKS + BIAS_BLOCKS + HEAD_BLOCKS
};
static_assert(CONV2_COUNT % (4 * THREADS) == 0 && FC1_COUNT % (4 * THREADS) == 0,
              "the large tensors must divide into whole blocks");
static_assert(CONV2_OFFSET % 4 == 0 && RL_CONV2_CHANNELS % 4 == 0 && RL_HEAD_PITCH % 4 == 0,
              "rows of partial sums must consist of whole float4s");

static __host__ __device__ __forceinline__ uint32_t conv2_blocks(const rl_gradients &gradients) {
  return gradients.conv2_rows ? (uint32_t)CONV2_SUM_BLOCKS : (uint32_t)CONV2_BLOCKS;
}

static __host__ __device__ __forceinline__ uint32_t large_blocks(const rl_gradients &gradients) {
  return conv2_blocks(gradients) + (uint32_t)FC1_BLOCKS;
}

/* Returns the offset of this thread's four parameters in a large tensor. If conv2.weight's gradient is stored as partial sums,
 * ROW_SPLITS threads have the same four parameters and share the rows. */
static __device__ __forceinline__ uint32_t large_offset(const rl_gradients &gradients) {
  if (blockIdx.x >= conv2_blocks(gradients))
    return FC1_OFFSET + ((blockIdx.x - conv2_blocks(gradients)) * THREADS + threadIdx.x) * 4;
  return CONV2_OFFSET +
         (gradients.conv2_rows ? blockIdx.x * COLUMNS + threadIdx.x % COLUMNS : blockIdx.x * THREADS + threadIdx.x) * 4;
}

/* Sums of rows of conv2.weight's gradient: sums[split][k] of the columns 4 k … 4 k + 3 of the block. Each split has another part
 * of the rows. */
typedef float4 conv2_sums[HALF_ROW_SPLITS][COLUMNS];

/* Adds up the columns column … column + 3 of partial[rows][CONV2_COUNT]. ROW_SPLITS threads share the rows of these columns. */
static __device__ void add_conv2_rows(const float *partial, uint32_t rows, uint32_t column, conv2_sums &sums) {
  uint32_t lane = threadIdx.x % COLUMNS, split = threadIdx.x / COLUMNS;
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (uint32_t row = split; row < rows; row += ROW_SPLITS) sum = add4(sum, load4(&partial[(size_t)row * CONV2_COUNT + column]));
  sums[split][lane] = sum;
}

/* Adds up FP16 partial sums, in the columns from first_column on. A thread adds up eight columns; HALF_ROW_SPLITS threads share
 * the rows of these columns. */
static __device__ void add_conv2_half_rows(const __half *partial, uint32_t rows, uint32_t first_column, conv2_sums &sums) {
  const uint32_t vector = threadIdx.x % HALF_VECTORS, split = threadIdx.x / HALF_VECTORS;
  float4 low = make_float4(0, 0, 0, 0), high = low;
#pragma unroll 8
  for (uint32_t row = split; row < rows; row += HALF_ROW_SPLITS) {
    const uint4 eight = *(const uint4 *)&partial[(size_t)row * CONV2_COUNT + first_column + vector * 8];
    low = add4(low, load4((const __half *)&eight.x));
    high = add4(high, load4((const __half *)&eight.z));
  }
  sums[split][vector * 2] = low;
  sums[split][vector * 2 + 1] = high;
}

/* Returns the gradients of four neighbouring weights of fc1, from weight i on, computed as fc1_product_gradientᵀ · fc1_inputs. */
template <class T> static __device__ float4 fc1_product(const rl_gradients &gradients, uint32_t i) {
  const T *fc1_product_gradient = (const T *)gradients.fc1_product_gradient + i / RL_FC1_INPUTS,
          *fc1_inputs = (const T *)gradients.fc1_inputs + i % RL_FC1_INPUTS;
  float4 sum = make_float4(0, 0, 0, 0);
  for (uint32_t n = 0; n < gradients.batch; n++)
    sum =
        add4(sum, scale4(load4(&fc1_inputs[(size_t)n * RL_FC1_INPUTS]), (float)fc1_product_gradient[(size_t)n * RL_FC1_OUTPUTS]));
  return sum;
}

/* Returns whether the block adds up partial sums of conv2.weight's gradient. */
static __device__ __forceinline__ bool adds_conv2_rows(const rl_gradients &gradients) {
  return gradients.conv2_rows && blockIdx.x < conv2_blocks(gradients);
}

/* Returns the gradients of the four parameters at `offset`, multiplied by the loss scale. If the block adds up partial sums, only
 * adds up parts of the rows. */
static __device__ __forceinline__ float4 load_large_gradient(const rl_gradients &gradients, uint32_t offset, conv2_sums &sums) {
  const uint32_t i = offset - CONV2_OFFSET;
  if (blockIdx.x >= conv2_blocks(gradients)) return load4(&gradients.fc1_weight[offset - FC1_OFFSET]);
  if (!gradients.conv2_rows)
    return gradients.fp16 ? load4((const __half *)gradients.conv2_weight + i) : load4((const float *)gradients.conv2_weight + i);
  if (gradients.conv2_rows_fp16)
    add_conv2_half_rows((const __half *)gradients.conv2_weight, gradients.conv2_rows, blockIdx.x * COLUMNS * 4, sums);
  else add_conv2_rows((const float *)gradients.conv2_weight, gradients.conv2_rows, i, sums);
  return make_float4(0, 0, 0, 0);
}

/* Replaces the gradients that load_large_gradient returned by the sums of all rows, if the block adds up partial sums. Call it
 * after a barrier. Several threads may then have the same parameters; returns whether this thread updates them. */
static __device__ __forceinline__ bool finish_large_gradient(const rl_gradients &gradients, const conv2_sums &sums,
                                                             float4 *gradient) {
  if (!adds_conv2_rows(gradients)) return true;
  const int splits = gradients.conv2_rows_fp16 ? HALF_ROW_SPLITS : ROW_SPLITS;
  if (threadIdx.x >= COLUMNS) return false;
  *gradient = sums[0][threadIdx.x];
#pragma unroll 8
  for (int i = 1; i < splits; i++) *gradient = add4(*gradient, sums[i][threadIdx.x]);
  return true;
}

/* The columns of partial[rows][stride] that a block adds up for a small tensor: COLUMNS columns, one of which belongs to this
 * thread. */
typedef struct small_columns {
  const float *partial;
  uint32_t rows, stride;
  uint32_t column;       /* index of this thread's column */
  uint32_t column_count; /* columns of the tensor, one for each parameter */
  uint32_t offset;       /* offset of the tensor's first parameter in rl_adam.weights */
} small_columns;

/* Returns the columns of a block. block: its index among the blocks of the small tensors. */
static __device__ __forceinline__ small_columns small_columns_of(const rl_gradients &gradients, uint32_t block) {
  const uint32_t lane = threadIdx.x % COLUMNS;
  if (block < CONV1_BLOCKS) return {gradients.conv1, gradients.conv1_rows, CONV2_OFFSET, block * COLUMNS + lane, CONV2_OFFSET, 0};
  block -= CONV1_BLOCKS;
  if (block < BIAS_BLOCKS)
    return {gradients.conv2_bias,   gradients.conv2_bias_rows, RL_CONV2_CHANNELS,
            block * COLUMNS + lane, RL_CONV2_CHANNELS,         CONV2_BIAS_OFFSET};
  return {gradients.head,     gradients.head_rows, RL_HEAD_PITCH, (block - BIAS_BLOCKS) * COLUMNS + lane,
          RL_HEAD_PARAMETERS, HEAD_OFFSET};
}

/* Returns whether this thread updates the parameter of its column. */
static __device__ __forceinline__ bool owns_column(const small_columns &columns) {
  return threadIdx.x < COLUMNS && columns.column < columns.column_count;
}

/* Sums of rows of a small tensor's gradient, for each warp. */
typedef float small_sums[THREADS / 32][COLUMNS];

/* Adds up the block's columns. A thread adds up four neighbouring columns, and THREADS / COLUMN_QUADS threads share the rows of
 * these. */
static __device__ void add_small_rows(const small_columns &columns, small_sums &sums) {
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
  if (threadIdx.x % 32 < COLUMN_QUADS) store4(&sums[threadIdx.x / 32][quad * 4], sum);
}

/* Returns the sum of this thread's column. Call it after a barrier. */
static __device__ float column_sum(const small_sums &sums) {
  float total = 0.0f;
  for (int i = 0; i < THREADS / 32; i++) total += sums[i][threadIdx.x % COLUMNS];
  return total;
}

/* A block's copy of the training state, in shared memory. All threads take their adam_rates from it, and the block with the last
 * ticket computes the next state from it. */
typedef struct step_state {
  rl_train_state state; /* the member blocks_done may be out of date */
  float loss;           /* sum of the losses of the batch */
} step_state;
enum { STATE_WORDS = sizeof(rl_train_state) / 4 };
static_assert(sizeof(rl_train_state) % 4 == 0 && STATE_WORDS <= 32, "a warp must be able to load the state with one instruction");

/* Loads the state and adds up the loss. Needs no pdl_wait, because the previous kernel writes neither of them, except `overflow`
 * in the state. A warp calls it. */
static __device__ __forceinline__ void load_step_state(const rl_adam &adam, const rl_gradients &gradients, step_state *step) {
  const uint32_t lane = threadIdx.x % 32;
  float loss = 0.0f;
  for (uint32_t row = lane; row < gradients.head_rows; row += 32) loss += gradients.head[row * RL_HEAD_PITCH + RL_HEAD_LOSS];
  loss = warp_sum(loss);
  if (lane == 0) step->loss = loss;
  if (lane < STATE_WORDS) ((uint32_t *)&step->state)[lane] = ((const uint32_t *)adam.state)[lane];
}

/* Takes a ticket: increments the counter and returns its previous value. WAR: the release orders the reads that a warp made
 * before it took its ticket before the writes of the warp with the last ticket, which calls __threadfence. */
static __device__ __forceinline__ uint32_t take_ticket(uint32_t *counter) {
  uint32_t previous;
  asm volatile("atom.release.gpu.global.add.u32 %0, [%1], 1;" : "=r"(previous) : "l"(counter) : "memory");
  return previous;
}

/* In the last warp of the block: reads the state for the other warps, which see it after a barrier, and returns in lane 0 the
 * block's ticket. */
static __device__ __forceinline__ uint32_t read_state_and_take_ticket(const rl_adam &adam, const rl_gradients &gradients,
                                                                      step_state *step) {
  load_step_state(adam, gradients, step);
  __syncwarp();
  pdl_wait();
  if (threadIdx.x % 32) return 0;
  step->state.overflow = *(volatile uint32_t *)&adam.state->overflow;
  return take_ticket(&adam.state->blocks_done);
}

/* In the last warp of the block, after a barrier: if the block has the last ticket, stores the mean loss of the step and the next
 * training state. */
static __device__ __forceinline__ void store_loss_and_state(const rl_adam &adam, const rl_gradients &gradients,
                                                            const step_state &step, uint32_t ticket) {
  if (threadIdx.x % 32 || ticket != gridDim.x - 1) return;
  __threadfence();
  rl_train_state state = step.state;
  adam.losses[state.step] = step.loss / gradients.batch;
  state.blocks_done = 0;
  advance_train_state(&state, adam.learning_rate, gradients.batch);
  *adam.state = state;
}

static __device__ void update_large_tensors(const rl_adam &adam, const rl_gradients &gradients) {
  __half *fp16_weights = (__half *)adam.fp16_weights;
  __shared__ step_state step;
  __shared__ conv2_sums sums;
  const uint32_t offset = large_offset(gradients);
  float4 weight, first_moment, second_moment, gradient;
  uint32_t ticket;
  if (threadIdx.x >= THREADS) ticket = read_state_and_take_ticket(adam, gradients, &step);
  else {
    weight = load4(&adam.weights[offset]), first_moment = load4(&adam.first_moment[offset]),
    second_moment = load4(&adam.second_moment[offset]);
    if (!gradients.only_head_is_early) gradient = load_large_gradient(gradients, offset, sums);
    pdl_wait(); /* the loads above do not depend on the previous launch */
    if (gradients.only_head_is_early) gradient = load_large_gradient(gradients, offset, sums);
  }
  __syncthreads();
  if (threadIdx.x >= THREADS) return store_loss_and_state(adam, gradients, step, ticket);
  const adam_rates rates = adam_rates_of(step.state);
  if (!finish_large_gradient(gradients, sums, &gradient) || step.state.overflow) return;
  weight.x = adam_update_weight(weight.x, gradient.x, &first_moment.x, &second_moment.x, rates);
  weight.y = adam_update_weight(weight.y, gradient.y, &first_moment.y, &second_moment.y, rates);
  weight.z = adam_update_weight(weight.z, gradient.z, &first_moment.z, &second_moment.z, rates);
  weight.w = adam_update_weight(weight.w, gradient.w, &first_moment.w, &second_moment.w, rates);
  store4(&adam.weights[offset], weight);
  store4(&adam.first_moment[offset], first_moment);
  store4(&adam.second_moment[offset], second_moment);
  if (fp16_weights) store4(&fp16_weights[offset], weight);
}

static __device__ void update_small_tensors(const rl_adam &adam, const rl_gradients &gradients) {
  const uint32_t index = blockIdx.x - large_blocks(gradients);
  const small_columns columns = small_columns_of(gradients, index);
  const uint32_t offset = columns.offset + min(columns.column, columns.column_count - 1);
  __shared__ step_state step;
  __shared__ __align__(16) small_sums sums;
  float weight, first_moment, second_moment;
  uint32_t ticket;
  if (threadIdx.x >= THREADS) ticket = read_state_and_take_ticket(adam, gradients, &step);
  else {
    /* The previous kernel stores conv1's partial sums. */
    const bool needs_previous_kernel = index < CONV1_BLOCKS + (gradients.only_head_is_early ? BIAS_BLOCKS : 0);
    weight = adam.weights[offset], first_moment = adam.first_moment[offset], second_moment = adam.second_moment[offset];
    if (!needs_previous_kernel) add_small_rows(columns, sums);
    pdl_wait();
    if (needs_previous_kernel) add_small_rows(columns, sums);
  }
  __syncthreads();
  if (threadIdx.x >= THREADS) return store_loss_and_state(adam, gradients, step, ticket);
  if (!owns_column(columns) || step.state.overflow) return;
  const float gradient = column_sum(sums);
  adam.weights[offset] = adam_update_weight(weight, gradient, &first_moment, &second_moment, adam_rates_of(step.state));
  adam.first_moment[offset] = first_moment;
  adam.second_moment[offset] = second_moment;
}

static __global__ void __launch_bounds__(STEP_THREADS) adam_step(rl_adam adam, rl_gradients gradients) {
  if (blockIdx.x < large_blocks(gradients)) update_large_tensors(adam, gradients);
  else update_small_tensors(adam, gradients);
}

static uint32_t block_count(const rl_gradients &gradients) { return large_blocks(gradients) + SMALL_BLOCKS; }

int rl_adam_step(const rl_adam *adam, const rl_gradients *gradients, cudaStream_t stream, rl_error *err) {
  return rl_pdl_launch("Adam", adam_step, block_count(*gradients), STEP_THREADS, 0, stream, err, *adam, *gradients);
}

/* Returns the same gradients as load_large_gradient, but computes those of fc1.weight if the engine does not store them. */
static __device__ __forceinline__ float4 load_or_compute_large_gradient(const rl_gradients &gradients, uint32_t offset,
                                                                        conv2_sums &sums) {
  if (offset < FC1_OFFSET || gradients.fc1_weight) return load_large_gradient(gradients, offset, sums);
  return gradients.fp16 ? fc1_product<__half>(gradients, offset - FC1_OFFSET)
                        : fc1_product<float>(gradients, offset - FC1_OFFSET);
}

static __global__ void __launch_bounds__(THREADS)
    gather_gradients(rl_gradients gradients, const rl_train_state *state, float *flat) {
  const float scale = state->last_inverse_loss_scale;
  if (blockIdx.x < large_blocks(gradients)) {
    __shared__ conv2_sums sums;
    const uint32_t offset = large_offset(gradients);
    float4 gradient = load_or_compute_large_gradient(gradients, offset, sums);
    __syncthreads();
    const float row_scale = adds_conv2_rows(gradients) ? gradients.conv2_row_scale : 1.0f;
    if (finish_large_gradient(gradients, sums, &gradient)) store4(&flat[offset], scale4(gradient, scale / row_scale));
  } else {
    __shared__ __align__(16) small_sums sums;
    const small_columns columns = small_columns_of(gradients, blockIdx.x - large_blocks(gradients));
    add_small_rows(columns, sums);
    __syncthreads();
    if (owns_column(columns)) flat[columns.offset + columns.column] = column_sum(sums) * scale;
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
