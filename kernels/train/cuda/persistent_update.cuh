/* The engine "persistent": fc1's weight gradient, and the update of the parameters that a block owns. persistent.cuh defines the
 * small values, F, and which block updates which parameters. All threads of the block call these functions unless their comments
 * say otherwise. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_UPDATE_H
#define RL_TRAIN_CUDA_PERSISTENT_UPDATE_H

#include "train/cuda/persistent.cuh"

static __device__ __forceinline__ parameter load_parameter(const rl_adam &adam, uint32_t i) {
  return {adam.weights[i], adam.first_moment[i], adam.second_moment[i]};
}

static __device__ __forceinline__ void store_parameter(const rl_adam &adam, uint32_t i, const parameter &p) {
  adam.weights[i] = p.weight;
  adam.first_moment[i] = p.first_moment;
  adam.second_moment[i] = p.second_moment;
}

/* Returns the index in smem.owned_parameters of the one parameter (of conv2.weight or of the small values) that this thread
 * updates; a negative index means that it updates none. The last threads of the block update these parameters, because the first
 * threads update the tile of fc1.weight. */
static __device__ __forceinline__ int owned_parameter_index(void) {
  return (int)threadIdx.x - (TILE_THREADS - CONV2_PER_BLOCK - SMALL_PER_BLOCK);
}
static __device__ __forceinline__ bool owns_conv2_weight(void) {
  return owned_parameter_index() >= 0 && owned_parameter_index() < CONV2_PER_BLOCK;
}
/* Returns the index of this thread's small value among all SMALL_VALUES (persistent.cuh). */
static __device__ __forceinline__ uint32_t small_index(void) {
  return blockIdx.x * SMALL_PER_BLOCK + owned_parameter_index() - CONV2_PER_BLOCK;
}
static __device__ __forceinline__ bool owns_small_value(void) {
  return owned_parameter_index() >= CONV2_PER_BLOCK && small_index() < SMALL_VALUES - 1;
}
static __device__ __forceinline__ bool owns_loss(void) {
  return owned_parameter_index() >= CONV2_PER_BLOCK && small_index() == SMALL_VALUES - 1;
}

/* Returns the offset in rl_adam.weights of the parameter that this thread owns. */
static __device__ __forceinline__ uint32_t owned_parameter_offset(void) {
  if (owns_conv2_weight()) return CONV2_OFFSET + blockIdx.x * CONV2_PER_BLOCK + owned_parameter_index();
  if (small_index() < CONV2_OFFSET) return small_index();
  if (small_index() < CONV2_OFFSET + RL_CONV2_CHANNELS) return CONV2_BIAS_OFFSET + small_index() - CONV2_OFFSET;
  return HEAD_OFFSET + small_index() - CONV2_OFFSET - RL_CONV2_CHANNELS;
}

/* tile_first_row and tile_first_column return the first output and the first input of this block's tile of fc1.weight.
 * tile_offset returns the offset in rl_adam.weights of this thread's i-th pair of adjacent weights of the tile. */
static __device__ __forceinline__ uint32_t tile_first_row(void) { return blockIdx.x % (RL_FC1_OUTPUTS / TILE_ROWS) * TILE_ROWS; }
static __device__ __forceinline__ uint32_t tile_first_column(void) {
  return blockIdx.x / (RL_FC1_OUTPUTS / TILE_ROWS) * TILE_COLUMNS;
}
template <class F> static __device__ __forceinline__ bool owns_tile(void) { return threadIdx.x < F::FC1_GRADIENT_WARPS * 32; }
template <class F> static __device__ __forceinline__ uint32_t tile_offset(int i) {
  return FC1_OFFSET + (tile_first_row() + F::fc1_gradient_row(i)) * RL_FC1_INPUTS + tile_first_column() +
         F::fc1_gradient_column(i);
}

/* Returns the address of the FP32 weights of this thread's pair i: in shared memory, or in global memory if the products read
 * FP32 weights too. */
template <class F>
static __device__ __forceinline__ float2 *tile_master_weight(const rl_persistent_args &args, int i, block_memory<F> &smem) {
  return F::HAS_FP32_MASTER_WEIGHTS ? &smem.weight[i][threadIdx.x] : (float2 *)&args.adam.weights[tile_offset<F>(i)];
}

/* Begins to copy the operands of the tile's gradient for up to TILE_BATCH images, starting with image `first` of the step:
 * TILE_ROWS outputs of d_fc1 and TILE_COLUMNS inputs of fc1. Fills the rows of images that the step does not have with zeros. */
template <class F> static __device__ __forceinline__ void load_fc1_operands_async(const rl_persistent_args &args, uint32_t first,
                                                                                  uint32_t batch, block_memory<F> &smem) {
  typedef typename F::value value;
  const value *d_fc1 = (const value *)args.d_fc1 + (size_t)first * RL_FC1_OUTPUTS + tile_first_row(),
              *pooled2 = (const value *)args.pooled2 + (size_t)first * RL_FC1_INPUTS + tile_first_column();
  const int rows = min(batch - first, (uint32_t)TILE_BATCH);
  load_rows_async<F::THREADS, TILE_ROWS>(threadIdx.x, d_fc1, RL_FC1_OUTPUTS, rows, smem.tile_d_fc1, F::D_FC1_TILE_PITCH);
  load_rows_async<F::THREADS, TILE_COLUMNS>(threadIdx.x, pooled2, RL_FC1_INPUTS, rows, smem.tile_pooled2, F::FC1_IN_TILE_PITCH);
#pragma unroll 1
  for (int i = rows * F::D_FC1_TILE_PITCH + threadIdx.x; i < TILE_BATCH * F::D_FC1_TILE_PITCH; i += F::THREADS)
    smem.tile_d_fc1[i] = (value)0.0f;
#pragma unroll 1
  for (int i = rows * F::FC1_IN_TILE_PITCH + threadIdx.x; i < TILE_BATCH * F::FC1_IN_TILE_PITCH; i += F::THREADS)
    smem.tile_pooled2[i] = (value)0.0f;
}

/* Computes the tile of fc1's weight gradient over all images of the step. The caller has begun to copy the operands of the first
 * TILE_BATCH images. */
template <class F>
static __device__ __forceinline__ void fc1_weight_gradient_tile(const rl_persistent_args &args, uint32_t batch,
                                                                block_memory<F> &smem,
                                                                float gradient[F::FC1_GRADIENT_PAIRS_PER_THREAD][2]) {
  for (uint32_t first = 0; first < batch; first += TILE_BATCH) {
    if (first) {
      __syncthreads();
      load_fc1_operands_async(args, first, batch, smem);
    }
    cp_async_wait_all();
    __syncthreads();
    if (owns_tile<F>()) F::fc1_weight_gradient(smem.tile_d_fc1, smem.tile_pooled2, gradient);
  }
}

/* Partial sums of one small value: `rows` floats, `stride` apart. */
typedef struct partial_sums {
  const float *first;
  uint32_t stride, rows;
} partial_sums;

/* Returns the location of the partial sums of small value i. rows: partial_rows of the step. */
static __device__ __forceinline__ partial_sums small_value_sums(const rl_persistent_args &args, uint32_t i, uint32_t rows) {
  if (i < CONV2_OFFSET) return {&args.partial_conv1[i], CONV2_OFFSET, 2 * rows};
  if (i < CONV2_OFFSET + RL_CONV2_CHANNELS) return {&args.partial_conv2_bias[i - CONV2_OFFSET], RL_CONV2_CHANNELS, rows};
  if (i < SMALL_VALUES) return {&args.partial_head[i - CONV2_OFFSET - RL_CONV2_CHANNELS], RL_HEAD_PITCH, rows};
  return {NULL, 0, 0};
}

/* Adds up the rows of partial sums of conv2.weight that this thread shares, and stores the result in smem.conv2_sums. The caller
 * has waited for the barrier `conv2_sums`. rows: partial_rows of the step. All loads are issued before the first addition, so
 * that their latencies overlap. */
template <class F>
static __device__ __forceinline__ void add_conv2_rows(const rl_persistent_args &args, uint32_t rows, block_memory<F> &smem) {
  enum { ROW_SPLITS = step_schedule<F>::CONV2_ROW_SPLITS, ROWS_PER_THREAD = (BLOCK_PAIRS + ROW_SPLITS - 1) / ROW_SPLITS };
  const uint32_t quad = threadIdx.x % CONV2_QUADS, row_split = threadIdx.x / CONV2_QUADS;
  const float *from = &args.partial_conv2_weight[blockIdx.x * CONV2_PER_BLOCK + quad * 4];
  float4 parts[ROWS_PER_THREAD];
#pragma unroll
  for (uint32_t i = 0; i < ROWS_PER_THREAD; i++) {
    const uint32_t row = row_split + i * ROW_SPLITS;
    parts[i] = row_split < ROW_SPLITS && row < rows ? load4(&from[(size_t)row * CONV2_COUNT]) : make_float4(0, 0, 0, 0);
  }
  for (int i = 1; i < ROWS_PER_THREAD; i++) parts[0] = add4(parts[0], parts[i]);
  if (row_split < ROW_SPLITS) store4(&smem.conv2_sums[row_split][quad * 4], parts[0]);
}

/* Does the same for the small values; the result is in smem.small_sums. The caller has waited for the barrier `backward`. */
template <class F>
static __device__ __forceinline__ void add_small_rows(const rl_persistent_args &args, uint32_t rows, block_memory<F> &smem) {
  enum { ROW_SPLITS = step_schedule<F>::SMALL_ROW_SPLITS, ROWS_PER_THREAD = (2 * BLOCK_PAIRS + ROW_SPLITS - 1) / ROW_SPLITS };
  const uint32_t row_split = threadIdx.x / SMALL_PITCH, value = threadIdx.x % SMALL_PITCH;
  const partial_sums sums =
      value < SMALL_PER_BLOCK ? small_value_sums(args, blockIdx.x * SMALL_PER_BLOCK + value, rows) : partial_sums{NULL, 0, 0};
  float parts[ROWS_PER_THREAD];
#pragma unroll
  for (uint32_t i = 0; i < ROWS_PER_THREAD; i++) {
    const uint32_t row = row_split + i * ROW_SPLITS;
    parts[i] = row < sums.rows ? sums.first[row * sums.stride] : 0.0f;
  }
  for (int i = 1; i < ROWS_PER_THREAD; i++) parts[0] += parts[i];
  smem.small_sums[row_split][value] = parts[0];
}

/* Returns the gradient of this thread's weight of conv2, multiplied by the loss scale. */
template <class F> static __device__ __forceinline__ float conv2_weight_total(const block_memory<F> &smem) {
  float total = 0.0f;
  for (int i = 0; i < step_schedule<F>::CONV2_ROW_SPLITS; i++) total += smem.conv2_sums[i][owned_parameter_index()];
  return total;
}

/* Returns the gradient of this thread's small value, multiplied by the loss scale, or the sum of the losses (owns_loss). */
template <class F> static __device__ __forceinline__ float small_value_total(const block_memory<F> &smem) {
  float total = 0.0f;
  for (int i = 0; i < step_schedule<F>::SMALL_ROW_SPLITS; i++)
    total += smem.small_sums[i][owned_parameter_index() - CONV2_PER_BLOCK];
  return total;
}

/* Updates a parameter and its moments by Adam. */
static __device__ __forceinline__ void update_parameter(parameter *p, float gradient, adam_rates rates) {
  p->weight = adam_update_weight(p->weight, gradient, &p->first_moment, &p->second_moment, rates);
}

/* Updates this block's tile of fc1.weight, and stores the new weights for the products. */
template <class F> static __device__ __forceinline__ void update_tile(const rl_persistent_args &args,
                                                                      const float gradient[F::FC1_GRADIENT_PAIRS_PER_THREAD][2],
                                                                      adam_rates rates, block_memory<F> &smem) {
  if (!owns_tile<F>()) return;
  for (int i = 0; i < F::FC1_GRADIENT_PAIRS_PER_THREAD; i++) {
    float2 *weights = tile_master_weight(args, i, smem), *first_moment = &smem.first_moment[i][threadIdx.x],
           *second_moment = &smem.second_moment[i][threadIdx.x];
    parameter a = {weights->x, first_moment->x, second_moment->x}, b = {weights->y, first_moment->y, second_moment->y};
    update_parameter(&a, gradient[i][0], rates);
    update_parameter(&b, gradient[i][1], rates);
    *weights = make_float2(a.weight, b.weight);
    *first_moment = make_float2(a.first_moment, b.first_moment);
    *second_moment = make_float2(a.second_moment, b.second_moment);
    if (F::HAS_FP32_MASTER_WEIGHTS) store2(compute_weights<F>(args) + tile_offset<F>(i), a.weight, b.weight);
  }
}

/* Makes the weight that this thread owns available to the other blocks. Weights of conv1 and of conv2.bias are sent as tagged
 * words of phase `phase`. Others are stored in global memory, where readers find them after the barrier `update`. */
template <class F>
static __device__ __forceinline__ void publish_weight(const rl_persistent_args &args, uint32_t phase, float weight) {
  for (int group = 0; group < BLOCK_PAIRS / GROUP_PAIRS && owns_small_value() && small_index() < TAGGED_WEIGHTS; group++)
    send_tagged(&args.block_exchange->tagged_weights[group][small_index()], phase, weight);
  if (owns_conv2_weight()) compute_weights<F>(args)[owned_parameter_offset()] = (typename F::value)weight;
  else if (owns_small_value()) args.adam.weights[owned_parameter_offset()] = weight;
}

/* Updates the parameter that this thread owns, unless the step is skipped, and makes its weight available to other blocks. */
template <class F> static __device__ __forceinline__ void update_owned_parameter(const rl_persistent_args &args,
                                                                                 const microbatch &mb, bool skip_step,
                                                                                 float gradient, adam_rates rates,
                                                                                 block_memory<F> &smem) {
  parameter &own_parameter = smem.owned_parameters[owned_parameter_index()];
  if (!skip_step) update_parameter(&own_parameter, gradient, rates);
  publish_weight<F>(args, mb.step + 2, own_parameter.weight); /* also if the step is skipped: readers wait for this phase */
}

/* Updates the block's parameters, or leaves them unchanged if a gradient overflowed. The caller has called add_conv2_rows and has
 * waited for the barrier `backward`. The weights that other blocks wait for are updated before the tile of fc1.weight. */
template <class F>
static __device__ __forceinline__ void update_parameters(const rl_persistent_args &args, const microbatch &mb,
                                                         const float gradient[F::FC1_GRADIENT_PAIRS_PER_THREAD][2],
                                                         block_memory<F> &smem) {
  const bool skip_step = __ldcg(&args.block_exchange->overflow) == mb.step + 1;
  const adam_rates rates = adam_rates_of(smem.state);
  add_small_rows(args, partial_rows(mb.step_images), smem);
  __syncthreads();
  if (threadIdx.x == 0) smem.state.overflow = skip_step;
  if (owns_conv2_weight()) update_owned_parameter<F>(args, mb, skip_step, conv2_weight_total(smem), rates, smem);
  if (owns_small_value()) update_owned_parameter<F>(args, mb, skip_step, small_value_total(smem), rates, smem);
  if (owns_loss()) args.adam.losses[mb.step] = small_value_total(smem) / mb.step_images;
  if (!skip_step) update_tile<F>(args, gradient, rates, smem);
}

/* Loads the block's parameters and moments from global memory, at the start of a launch. */
template <class F> static __device__ __forceinline__ void load_parameters(const rl_persistent_args &args, block_memory<F> &smem) {
  for (int i = 0; i < F::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<F>(); i++) {
    const uint32_t offset = tile_offset<F>(i);
    if (F::HAS_FP32_MASTER_WEIGHTS) smem.weight[i][threadIdx.x] = *(const float2 *)&args.adam.weights[offset];
    smem.first_moment[i][threadIdx.x] = *(const float2 *)&args.adam.first_moment[offset];
    smem.second_moment[i][threadIdx.x] = *(const float2 *)&args.adam.second_moment[offset];
  }
  if (owns_conv2_weight() || owns_small_value())
    smem.owned_parameters[owned_parameter_index()] = load_parameter(args.adam, owned_parameter_offset());
}

/* Makes the block's weights available to the other blocks, as F::value, at the start of a launch. WAR: they overwrite FP32
 * parameters, so every block must have loaded its own parameters before. */
template <class F>
static __device__ __forceinline__ void publish_parameters(const rl_persistent_args &args, const block_memory<F> &smem) {
  for (int i = 0; i < F::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<F>() && F::HAS_FP32_MASTER_WEIGHTS; i++) {
    const float2 w = smem.weight[i][threadIdx.x];
    store2(compute_weights<F>(args) + tile_offset<F>(i), w.x, w.y);
  }
  if (owns_conv2_weight() || owns_small_value())
    publish_weight<F>(args, 1, smem.owned_parameters[owned_parameter_index()].weight);
}

/* Stores the block's parameters and moments in global memory, at the end of a launch. WAR: every block must have finished reading
 * the weights that the products use. */
template <class F>
static __device__ __forceinline__ void store_parameters(const rl_persistent_args &args, const block_memory<F> &smem) {
  for (int i = 0; i < F::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<F>(); i++) {
    const uint32_t offset = tile_offset<F>(i);
    if (F::HAS_FP32_MASTER_WEIGHTS) *(float2 *)&args.adam.weights[offset] = smem.weight[i][threadIdx.x];
    *(float2 *)&args.adam.first_moment[offset] = smem.first_moment[i][threadIdx.x];
    *(float2 *)&args.adam.second_moment[offset] = smem.second_moment[i][threadIdx.x];
  }
  if (owns_conv2_weight() || owns_small_value())
    store_parameter(args.adam, owned_parameter_offset(), smem.owned_parameters[owned_parameter_index()]);
}

#endif
