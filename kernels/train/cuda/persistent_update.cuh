/* The engine "persistent": fc1's weight gradient, and the update of the parameters that a block owns. persistent.cuh defines the
 * small values, Format, and which block updates which parameters. All threads of the block call these functions unless a comment
 * says otherwise. */
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

/* Besides the tile of fc1.weight, a block owns CONV2_PER_BLOCK elements of conv2.weight and then SMALL_PER_BLOCK small values.
 * Each of its last threads owns one of them, because the first threads update the tile. Returns the index in
 * smem.owned_parameters of this thread's parameter; negative: the thread owns none. */
static __device__ __forceinline__ int owned_parameter_index(void) {
  return (int)threadIdx.x - (TILE_THREADS - CONV2_PER_BLOCK - SMALL_PER_BLOCK);
}
static __device__ __forceinline__ bool owns_conv2_weight(void) {
  return owned_parameter_index() >= 0 && owned_parameter_index() < CONV2_PER_BLOCK;
}
/* Returns the index of this thread's small value among all SMALL_VALUES (persistent.cuh). Valid if the thread owns a small value
 * or the loss. */
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

/* tile_first_row and tile_first_column return the first output and the first input in this block's tile of fc1.weight.
 * tile_offset returns the offset in rl_adam.weights of this thread's pair i of adjacent weights in the tile. */
static __device__ __forceinline__ uint32_t tile_first_row(void) { return blockIdx.x % (RL_FC1_OUTPUTS / TILE_ROWS) * TILE_ROWS; }
static __device__ __forceinline__ uint32_t tile_first_column(void) {
  return blockIdx.x / (RL_FC1_OUTPUTS / TILE_ROWS) * TILE_COLUMNS;
}
template <class Format> static __device__ __forceinline__ bool owns_tile(void) {
  return threadIdx.x < Format::FC1_GRADIENT_WARPS * 32;
}
template <class Format> static __device__ __forceinline__ uint32_t tile_offset(int i) {
  return FC1_OFFSET + (tile_first_row() + Format::fc1_gradient_row(i)) * RL_FC1_INPUTS + tile_first_column() +
         Format::fc1_gradient_column(i);
}

/* Returns the address of the FP32 weights of this thread's pair i. They are in shared memory; or in global memory, if the
 * products read FP32 weights too. */
template <class Format>
static __device__ __forceinline__ float2 *tile_master_weight(const rl_persistent_args &args, int i, block_memory<Format> &smem) {
  return Format::HAS_FP32_MASTER_WEIGHTS ? &smem.tile_weight[i][threadIdx.x]
                                         : (float2 *)&args.adam.weights[tile_offset<Format>(i)];
}

/* Begins to copy the operands of the tile's gradient for up to TILE_BATCH images, beginning with image `first` of the step:
 * TILE_ROWS outputs of fc1_product_gradient and TILE_COLUMNS inputs of fc1. If the step has fewer images, fills the remaining
 * rows with zeros. */
template <class Format> static __device__ __forceinline__ void load_fc1_operands_async(const rl_persistent_args &args,
                                                                                       uint32_t first, uint32_t batch,
                                                                                       block_memory<Format> &smem) {
  typedef typename Format::value value;
  const value *fc1_product_gradient =
                  (const value *)args.fc1_product_gradient + (size_t)first * RL_FC1_OUTPUTS + tile_first_row(),
              *pooled2 = (const value *)args.pooled2 + (size_t)first * RL_FC1_INPUTS + tile_first_column();
  const int rows = min(batch - first, (uint32_t)TILE_BATCH);
  load_rows_async<Format::THREADS, TILE_ROWS>(threadIdx.x, fc1_product_gradient, RL_FC1_OUTPUTS, rows,
                                              smem.tile_fc1_product_gradient, Format::FC1_PRODUCT_GRADIENT_TILE_PITCH);
  load_rows_async<Format::THREADS, TILE_COLUMNS>(threadIdx.x, pooled2, RL_FC1_INPUTS, rows, smem.tile_pooled2,
                                                 Format::FC1_INPUT_TILE_PITCH);
#pragma unroll 1
  for (int i = rows * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH + threadIdx.x;
       i < TILE_BATCH * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH; i += Format::THREADS)
    smem.tile_fc1_product_gradient[i] = (value)0.0f;
#pragma unroll 1
  for (int i = rows * Format::FC1_INPUT_TILE_PITCH + threadIdx.x; i < TILE_BATCH * Format::FC1_INPUT_TILE_PITCH;
       i += Format::THREADS)
    smem.tile_pooled2[i] = (value)0.0f;
}

/* Computes the gradient of the block's tile of fc1.weight over all images of the step. The caller has copied the operands
 * for the first TILE_BATCH images. */
template <class Format>
static __device__ __forceinline__ void fc1_weight_gradient_tile(const rl_persistent_args &args, uint32_t batch,
                                                                block_memory<Format> &smem,
                                                                float gradient[Format::FC1_GRADIENT_PAIRS_PER_THREAD][2]) {
  for (uint32_t first = 0; first < batch; first += TILE_BATCH) {
    if (first) {
      __syncthreads();
      load_fc1_operands_async(args, first, batch, smem);
      cp_async_wait_all();
      __syncthreads();
    }
    if (owns_tile<Format>()) Format::fc1_weight_gradient(smem.tile_fc1_product_gradient, smem.tile_pooled2, gradient);
  }
}

/* The partial sums of one small value: `rows` floats, `stride` floats apart. */
typedef struct partial_sums {
  const float *first;
  uint32_t stride, rows;
} partial_sums;

/* Returns the partial sums of small value i. rows: partial_rows of the step. */
static __device__ __forceinline__ partial_sums small_value_sums(const rl_persistent_args &args, uint32_t i, uint32_t rows) {
  if (i < CONV2_OFFSET) return {&args.partial_conv1[i], CONV2_OFFSET, 2 * rows};
  if (i < CONV2_OFFSET + RL_CONV2_CHANNELS) return {&args.partial_conv2_bias[i - CONV2_OFFSET], RL_CONV2_CHANNELS, rows};
  if (i < SMALL_VALUES) return {&args.partial_head[i - CONV2_OFFSET - RL_CONV2_CHANNELS], RL_HEAD_PITCH, rows};
  return {NULL, 0, 0};
}

/* Adds up this thread's share of the rows of partial sums of conv2.weight's gradient, for its four weights, and stores the sums
 * in smem.conv2_sums. The caller has waited for the grid barrier `conv2_sums`. rows: partial_rows of the step. All loads are
 * issued before the first addition, so that their latencies overlap. */
template <class Format>
static __device__ __forceinline__ void add_conv2_rows(const rl_persistent_args &args, uint32_t rows, block_memory<Format> &smem) {
  enum { ROW_SPLITS = step_schedule<Format>::CONV2_ROW_SPLITS, ROWS_PER_THREAD = (BLOCK_PAIRS + ROW_SPLITS - 1) / ROW_SPLITS };
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

/* A thread's share of the rows of partial sums of its small value. */
template <class Format> struct small_rows {
  enum { SPLITS = step_schedule<Format>::SMALL_ROW_SPLITS, PER_THREAD = (2 * BLOCK_PAIRS + SPLITS - 1) / SPLITS };
  float parts[PER_THREAD];
};

/* Loads this thread's share. The caller has waited for the grid barrier `backward`. rows: partial_rows of the step. */
template <class Format>
static __device__ __forceinline__ small_rows<Format> load_small_rows(const rl_persistent_args &args, uint32_t rows) {
  typedef small_rows<Format> share;
  const uint32_t row_split = threadIdx.x / SMALL_PITCH, value = threadIdx.x % SMALL_PITCH;
  const partial_sums sums =
      value < SMALL_PER_BLOCK ? small_value_sums(args, blockIdx.x * SMALL_PER_BLOCK + value, rows) : partial_sums{NULL, 0, 0};
  share loaded;
#pragma unroll
  for (uint32_t i = 0; i < share::PER_THREAD; i++) {
    const uint32_t row = row_split + i * share::SPLITS;
    loaded.parts[i] = row < sums.rows ? __ldcg(&sums.first[row * sums.stride]) : 0.0f;
  }
  return loaded;
}

/* Adds up this thread's share and stores the sum in smem.small_sums. */
template <class Format>
static __device__ __forceinline__ void add_small_rows(const small_rows<Format> &share, block_memory<Format> &smem) {
  float sum = share.parts[0];
  for (int i = 1; i < small_rows<Format>::PER_THREAD; i++) sum += share.parts[i];
  smem.small_sums[threadIdx.x / SMALL_PITCH][threadIdx.x % SMALL_PITCH] = sum;
}

/* Returns the gradient of this thread's weight of conv2, multiplied by the loss scale: the total of smem.conv2_sums. */
template <class Format> static __device__ __forceinline__ float conv2_weight_total(const block_memory<Format> &smem) {
  float total = 0.0f;
  for (int i = 0; i < step_schedule<Format>::CONV2_ROW_SPLITS; i++) total += smem.conv2_sums[i][owned_parameter_index()];
  return total;
}

/* Returns the total of smem.small_sums for this thread's small value: its gradient, multiplied by the loss scale, or the sum of
 * the losses (owns_loss). */
template <class Format> static __device__ __forceinline__ float small_value_total(const block_memory<Format> &smem) {
  enum { CHAINS = 4 }; /* independent sums, to hide the latency of additions */
  static_assert((int)step_schedule<Format>::SMALL_ROW_SPLITS % CHAINS == 0, "the chains must have equal lengths");
  float totals[CHAINS] = {};
#pragma unroll
  for (int i = 0; i < step_schedule<Format>::SMALL_ROW_SPLITS; i++)
    totals[i % CHAINS] += smem.small_sums[i][owned_parameter_index() - CONV2_PER_BLOCK];
  return (totals[0] + totals[1]) + (totals[2] + totals[3]);
}

/* Updates a parameter and its moments by Adam. */
static __device__ __forceinline__ void update_parameter(parameter *p, float gradient, adam_rates rates) {
  p->weight = adam_update_weight(p->weight, gradient, &p->first_moment, &p->second_moment, rates);
}

/* Updates this block's tile of fc1.weight, and stores the new weights for the products. */
template <class Format>
static __device__ __forceinline__ void update_tile(const rl_persistent_args &args,
                                                   const float gradient[Format::FC1_GRADIENT_PAIRS_PER_THREAD][2],
                                                   adam_rates rates, block_memory<Format> &smem) {
  if (!owns_tile<Format>()) return;
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD; i++) {
    float2 *weights = tile_master_weight(args, i, smem), *first_moment = &smem.tile_first_moment[i][threadIdx.x],
           *second_moment = &smem.tile_second_moment[i][threadIdx.x];
    parameter a = {weights->x, first_moment->x, second_moment->x}, b = {weights->y, first_moment->y, second_moment->y};
    update_parameter(&a, gradient[i][0], rates);
    update_parameter(&b, gradient[i][1], rates);
    *weights = make_float2(a.weight, b.weight);
    *first_moment = make_float2(a.first_moment, b.first_moment);
    *second_moment = make_float2(a.second_moment, b.second_moment);
    if (Format::HAS_FP32_MASTER_WEIGHTS) store2(weights_for_products<Format>(args) + tile_offset<Format>(i), a.weight, b.weight);
  }
}

/* Makes the weight that this thread owns available to the other blocks. Weights of conv1 and elements of conv2.bias are sent as
 * tagged words of this phase. The others are stored in global memory, where readers find them after the grid barrier `update`. */
template <class Format>
static __device__ __forceinline__ void publish_weight(const rl_persistent_args &args, uint32_t phase, float weight) {
  for (int group = 0; group < BLOCK_PAIRS / GROUP_PAIRS && owns_small_value() && small_index() < TAGGED_WEIGHTS; group++)
    send_tagged(&args.block_exchange->tagged_weights[group][small_index()], phase, weight);
  if (owns_conv2_weight()) weights_for_products<Format>(args)[owned_parameter_offset()] = (typename Format::value)weight;
  else if (owns_small_value()) args.adam.weights[owned_parameter_offset()] = weight;
}

/* Updates the parameter that this thread owns, unless the step is skipped, and makes its weight available to the other blocks. */
template <class Format>
static __device__ __forceinline__ void update_owned_parameter(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                              bool skip_step, float gradient, adam_rates rates,
                                                              block_memory<Format> &smem) {
  parameter &own_parameter = smem.owned_parameters[owned_parameter_index()];
  if (!skip_step) update_parameter(&own_parameter, gradient, rates);
  publish_weight<Format>(
      args, microbatch.step + 2,
      own_parameter.weight); /* also if the step is skipped, because readers wait for the words of this phase */
}

/* Updates the block's parameters, or leaves them unchanged if a gradient overflowed. The caller has called add_conv2_rows, has
 * waited for the grid barrier `backward` and has synchronised the block. conv2's weights are updated while the partial sums of
 * the small values are loaded. */
template <class Format>
static __device__ __forceinline__ void update_parameters(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                         const float gradient[Format::FC1_GRADIENT_PAIRS_PER_THREAD][2],
                                                         block_memory<Format> &smem) {
  const bool skip_step = smem.skip_step, tile_first = step_schedule<Format>::UPDATES_TILE_FIRST;
  const adam_rates rates = adam_rates_of(smem.state);
  const small_rows<Format> small = load_small_rows<Format>(args, partial_rows(microbatch.step_images));
  if (threadIdx.x == 0) smem.state.overflow = skip_step;
  if (owns_conv2_weight()) update_owned_parameter<Format>(args, microbatch, skip_step, conv2_weight_total(smem), rates, smem);
  if (tile_first && !skip_step) update_tile<Format>(args, gradient, rates, smem);
  add_small_rows(small, smem);
  __syncthreads();
  if (owns_small_value()) update_owned_parameter<Format>(args, microbatch, skip_step, small_value_total(smem), rates, smem);
  if (owns_loss()) args.adam.losses[microbatch.step] = small_value_total(smem) / microbatch.step_images;
  if (!tile_first && !skip_step) update_tile<Format>(args, gradient, rates, smem);
}

/* Loads the block's parameters and moments from global memory, at the start of a launch. */
template <class Format>
static __device__ __forceinline__ void load_parameters(const rl_persistent_args &args, block_memory<Format> &smem) {
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>(); i++) {
    const uint32_t offset = tile_offset<Format>(i);
    if (Format::HAS_FP32_MASTER_WEIGHTS) smem.tile_weight[i][threadIdx.x] = *(const float2 *)&args.adam.weights[offset];
    smem.tile_first_moment[i][threadIdx.x] = *(const float2 *)&args.adam.first_moment[offset];
    smem.tile_second_moment[i][threadIdx.x] = *(const float2 *)&args.adam.second_moment[offset];
  }
  if (owns_conv2_weight() || owns_small_value())
    smem.owned_parameters[owned_parameter_index()] = load_parameter(args.adam, owned_parameter_offset());
}

/* Makes the block's weights available to the other blocks, as Format::value, at the start of a launch. WAR: the stored weights
 * overwrite FP32 parameters, so every block must have loaded its own parameters before. */
template <class Format>
static __device__ __forceinline__ void publish_parameters(const rl_persistent_args &args, const block_memory<Format> &smem) {
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>() && Format::HAS_FP32_MASTER_WEIGHTS; i++) {
    const float2 w = smem.tile_weight[i][threadIdx.x];
    store2(weights_for_products<Format>(args) + tile_offset<Format>(i), w.x, w.y);
  }
  if (owns_conv2_weight() || owns_small_value())
    publish_weight<Format>(args, 1, smem.owned_parameters[owned_parameter_index()].weight);
}

/* Stores the block's parameters and moments in global memory, at the end of a launch. WAR: they overwrite the weights that the
 * products read, so every block must have finished reading these. */
template <class Format>
static __device__ __forceinline__ void store_parameters(const rl_persistent_args &args, const block_memory<Format> &smem) {
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>(); i++) {
    const uint32_t offset = tile_offset<Format>(i);
    if (Format::HAS_FP32_MASTER_WEIGHTS) *(float2 *)&args.adam.weights[offset] = smem.tile_weight[i][threadIdx.x];
    *(float2 *)&args.adam.first_moment[offset] = smem.tile_first_moment[i][threadIdx.x];
    *(float2 *)&args.adam.second_moment[offset] = smem.tile_second_moment[i][threadIdx.x];
  }
  if (owns_conv2_weight() || owns_small_value())
    store_parameter(args.adam, owned_parameter_offset(), smem.owned_parameters[owned_parameter_index()]);
}

#endif
