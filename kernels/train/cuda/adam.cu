/* Implements the rl_adam_ functions of kernels.h. Adam updates all parameters in one kernel (Kingma & Ba 2015, algorithm 1, in
 * the order of operations of torch.optim.Adam). The kernel adds up partial sums of gradients, divides by the loss scale, and
 * updates weights, moments and FP16 copies. If a gradient overflowed, it skips the step instead. Partial sums of a gradient are a
 * matrix [rows][parameters] (kernels.h): the gradient of a parameter is the sum of its column.
 *
 * Division of work: the first blocks update the large tensors, conv2.weight and then fc1.weight, with four parameters for each
 * thread. The other blocks update the small tensors: conv1.weight and conv1.bias, conv2.bias, and the head (fc1.bias, fc2.weight,
 * fc2.bias), whose gradients are always partial sums. All sums have a fixed order, so results are reproducible.
 *
 * Synchronisation: each block increments a counter (takes a ticket) after it has read the training state. The block with the last
 * ticket then writes the next state (WAR). Blocks exchange nothing else.
 *
 * Least memory traffic: 28 bytes for each parameter (read the gradient; read and write the weight and both moments), 8.8 MB in
 * all, which stays in L2. */
#include "pdl.cuh"
#include "train/cuda/adam.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum {
  THREADS = 256,
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

/* Returns the sums of the columns column … column + 3 of partial[rows][CONV2_COUNT]. All threads of the block call it; ROW_SPLITS
 * threads share the rows of these columns. */
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

/* Returns the sums of four columns of FP16 partial sums, from first_column + threadIdx.x % COLUMNS · 4 on. All threads of the
 * block call it. A thread adds up eight columns; HALF_ROW_SPLITS threads share the rows of these columns. */
static __device__ float4 conv2_half_sum(const __half *partial, uint32_t rows, uint32_t first_column) {
  __shared__ float4 sums[HALF_ROW_SPLITS][COLUMNS];
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
  __syncthreads();
  float4 sum = sums[0][threadIdx.x % COLUMNS];
  for (int i = 1; i < HALF_ROW_SPLITS; i++) sum = add4(sum, sums[i][threadIdx.x % COLUMNS]);
  return sum;
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

/* Returns the gradients of the four parameters at `offset`, multiplied by the loss scale. Several threads may have the same
 * parameters; sets *is_owner to whether this thread updates them. */
static __device__ __forceinline__ float4 load_large_gradient(const rl_gradients &gradients, uint32_t offset, bool *is_owner) {
  *is_owner = true;
  if (blockIdx.x >= conv2_blocks(gradients)) return load4(&gradients.fc1_weight[offset - FC1_OFFSET]);
  uint32_t i = offset - CONV2_OFFSET;
  if (gradients.conv2_rows) {
    *is_owner = threadIdx.x < COLUMNS;
    if (gradients.conv2_rows_fp16)
      return conv2_half_sum((const __half *)gradients.conv2_weight, gradients.conv2_rows, blockIdx.x * COLUMNS * 4);
    return conv2_sum((const float *)gradients.conv2_weight, gradients.conv2_rows, i);
  }
  return gradients.fp16 ? load4((const __half *)gradients.conv2_weight + i) : load4((const float *)gradients.conv2_weight + i);
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

/* Returns the sum of this thread's column; valid if owns_column returns true. All threads of the block call it. A thread adds up
 * four neighbouring columns, and THREADS / COLUMN_QUADS threads share the rows of these. */
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

/* A block's copy of the training state, in shared memory. All threads take their adam_rates from it, and the block with the last
 * ticket computes the next state from it. It is loaded at the beginning of the kernel, because a load at the end would lengthen
 * the kernel. */
typedef struct step_state {
  rl_train_state state; /* the members overflow and blocks_done may be out of date */
  float loss;           /* sum of the losses of the batch */
} step_state;
enum { STATE_WORDS = sizeof(rl_train_state) / 4 };
static_assert(sizeof(rl_train_state) % 4 == 0 && STATE_WORDS <= 32, "a warp must be able to load the state with one instruction");

/* In the first warp, loads the state and adds up the loss. Needs no pdl_wait, because the previous kernel writes neither of them,
 * except `overflow` in the state. */
static __device__ __forceinline__ void load_step_state(const rl_adam &adam, const rl_gradients &gradients, step_state *step) {
  if (threadIdx.x >= 32) return;
  float loss = 0.0f;
  for (uint32_t row = threadIdx.x; row < gradients.head_rows; row += 32)
    loss += gradients.head[row * RL_HEAD_PITCH + RL_HEAD_LOSS];
  loss = warp_sum(loss);
  if (threadIdx.x == 0) step->loss = loss;
  if (threadIdx.x < STATE_WORDS) ((uint32_t *)&step->state)[threadIdx.x] = ((const uint32_t *)adam.state)[threadIdx.x];
}

/* Takes a ticket: increments the counter and returns its previous value. WAR: acq_rel orders the reads that a block made before
 * it took its ticket before the writes of the block with the last ticket. */
static __device__ __forceinline__ uint32_t take_ticket(uint32_t *counter) {
  uint32_t previous;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(previous) : "l"(counter) : "memory");
  return previous;
}

/* Returns whether the step is skipped, and takes the block's ticket. Reads state->overflow first, because the block with the last
 * ticket resets it. Sets *is_last to true in the one thread that must write the next state. All threads of the block call it. */
static __device__ __forceinline__ bool read_overflow_and_take_ticket(const rl_adam &adam, bool *is_last) {
  const bool skip = *(volatile uint32_t *)&adam.state->overflow;
  __syncthreads();
  *is_last = threadIdx.x == 0 && take_ticket(&adam.state->blocks_done) == gridDim.x - 1;
  return skip;
}

/* Stores the mean loss of the step and the next training state. */
static __device__ __forceinline__ void store_loss_and_state(const rl_adam &adam, const rl_gradients &gradients,
                                                            const step_state &step, bool skip) {
  rl_train_state state = step.state;
  adam.losses[state.step] = step.loss / gradients.batch;
  state.blocks_done = 0;
  state.overflow = skip;
  advance_train_state(&state, adam.learning_rate, gradients.batch);
  *adam.state = state;
}

static __device__ void update_large_tensors(const rl_adam &adam, const rl_gradients &gradients) {
  __half *fp16_weights = (__half *)adam.fp16_weights;
  __shared__ step_state step;
  bool is_owner;
  const uint32_t offset = large_offset(gradients);
  float4 weight = load4(&adam.weights[offset]), first_moment = load4(&adam.first_moment[offset]),
         second_moment = load4(&adam.second_moment[offset]);
  load_step_state(adam, gradients, &step);
  const bool needs_previous_kernel = gradients.conv2_is_last && blockIdx.x < conv2_blocks(gradients);
  float4 gradient;
  if (!needs_previous_kernel) gradient = load_large_gradient(gradients, offset, &is_owner);
  pdl_wait(); /* the loads above do not depend on the previous kernel */
  if (needs_previous_kernel) gradient = load_large_gradient(gradients, offset, &is_owner);
  bool is_last;
  const bool skip = read_overflow_and_take_ticket(adam, &is_last);
  const adam_rates rates = adam_rates_of(step.state);
  if (is_owner && !skip) {
    weight.x = adam_update_weight(weight.x, gradient.x, &first_moment.x, &second_moment.x, rates);
    weight.y = adam_update_weight(weight.y, gradient.y, &first_moment.y, &second_moment.y, rates);
    weight.z = adam_update_weight(weight.z, gradient.z, &first_moment.z, &second_moment.z, rates);
    weight.w = adam_update_weight(weight.w, gradient.w, &first_moment.w, &second_moment.w, rates);
    store4(&adam.weights[offset], weight);
    store4(&adam.first_moment[offset], first_moment);
    store4(&adam.second_moment[offset], second_moment);
    if (fp16_weights) store4(&fp16_weights[offset], weight);
  }
  if (is_last) store_loss_and_state(adam, gradients, step, skip);
}

static __device__ void update_small_tensors(const rl_adam &adam, const rl_gradients &gradients) {
  const uint32_t index = blockIdx.x - large_blocks(gradients);
  /* The previous kernel stores conv1's partial sums. */
  const bool needs_previous_kernel = index < CONV1_BLOCKS + (gradients.conv2_is_last ? BIAS_BLOCKS : 0);
  const small_columns columns = small_columns_of(gradients, index);
  const uint32_t offset = columns.offset + min(columns.column, columns.column_count - 1);
  float gradient, weight = adam.weights[offset], first_moment = adam.first_moment[offset],
                  second_moment = adam.second_moment[offset];
  __shared__ step_state step;
  load_step_state(adam, gradients, &step);
  if (!needs_previous_kernel) gradient = column_sum(columns);
  pdl_wait();
  if (needs_previous_kernel) gradient = column_sum(columns);
  bool is_last;
  const bool skip = read_overflow_and_take_ticket(adam, &is_last);
  const adam_rates rates = adam_rates_of(step.state);
  if (owns_column(columns) && !skip) {
    adam.weights[offset] = adam_update_weight(weight, gradient, &first_moment, &second_moment, rates);
    adam.first_moment[offset] = first_moment;
    adam.second_moment[offset] = second_moment;
  }
  if (is_last) store_loss_and_state(adam, gradients, step, skip);
}

static __global__ void __launch_bounds__(THREADS) adam_step(rl_adam adam, rl_gradients gradients) {
  if (blockIdx.x < large_blocks(gradients)) update_large_tensors(adam, gradients);
  else update_small_tensors(adam, gradients);
}

static uint32_t block_count(const rl_gradients &gradients) { return large_blocks(gradients) + SMALL_BLOCKS; }

int rl_adam_step(const rl_adam *adam, const rl_gradients *gradients, cudaStream_t stream, rl_error *err) {
  return rl_pdl_launch("Adam", adam_step, block_count(*gradients), THREADS, 0, stream, err, *adam, *gradients);
}

/* Returns the same gradients as load_large_gradient, but computes those of fc1.weight if the engine does not store them. */
static __device__ __forceinline__ float4 load_or_compute_large_gradient(const rl_gradients &gradients, uint32_t offset,
                                                                        bool *is_owner) {
  if (offset < FC1_OFFSET || gradients.fc1_weight) return load_large_gradient(gradients, offset, is_owner);
  *is_owner = true;
  return gradients.fp16 ? fc1_product<__half>(gradients, offset - FC1_OFFSET)
                        : fc1_product<float>(gradients, offset - FC1_OFFSET);
}

static __global__ void __launch_bounds__(THREADS)
    gather_gradients(rl_gradients gradients, const rl_train_state *state, float *flat) {
  const float scale = state->last_inverse_loss_scale;
  if (blockIdx.x < large_blocks(gradients)) {
    bool is_owner;
    const uint32_t offset = large_offset(gradients);
    const float4 gradient = load_or_compute_large_gradient(gradients, offset, &is_owner);
    if (is_owner) store4(&flat[offset], scale4(gradient, scale));
  } else {
    const small_columns columns = small_columns_of(gradients, blockIdx.x - large_blocks(gradients));
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
