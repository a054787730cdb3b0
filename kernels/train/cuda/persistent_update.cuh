/* The engine "persistent": fc1's weight gradient, and the update of the parameters that a block owns. persistent.cuh defines
 * Format, and which block updates which parameters. All threads of the block call these functions unless a comment says
 * otherwise. */
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

/* The last CONV2_PER_BLOCK threads before the poller's warp each update one element of conv2.weight. Returns the index in
 * smem.conv2_parameters of this thread's element, if owns_conv2_weight. */
static __device__ __forceinline__ int conv2_parameter_index(void) {
  return (int)threadIdx.x - (FIRST_POLLING_THREAD - CONV2_PER_BLOCK);
}
static __device__ __forceinline__ bool owns_conv2_weight(void) {
  return conv2_parameter_index() >= 0 && threadIdx.x < FIRST_POLLING_THREAD;
}
static __device__ __forceinline__ uint32_t conv2_parameter_offset(void) {
  return CONV2_OFFSET + blockIdx.x * CONV2_PER_BLOCK + conv2_parameter_index();
}

/* Every thread except those of the poller's warp has one of the block's BLOCK_SUMS, and updates the block's copy of that
 * parameter. Those of conv1 come first. */
static __device__ __forceinline__ bool has_block_sum(void) { return threadIdx.x / 32 != FIRST_POLLING_THREAD / 32; }
static __device__ __forceinline__ int block_sum_index(void) {
  return threadIdx.x < FIRST_POLLING_THREAD ? threadIdx.x : threadIdx.x - 32;
}

/* Returns the block's copy of this thread's parameter. Valid if has_block_sum. */
template <class Format> static __device__ __forceinline__ float *block_copy(block_memory<Format> &smem) {
  const int i = block_sum_index();
  return i < RL_CONV1_PARAMETERS ? &smem.conv1[i] : &smem.conv2_bias[i - RL_CONV1_PARAMETERS];
}

/* Returns the offset in rl_adam.weights of the parameter of a grid sum. */
static __device__ __forceinline__ uint32_t grid_parameter_offset(uint32_t grid_sum) {
  return grid_sum < CONV2_OFFSET ? grid_sum : CONV2_BIAS_OFFSET + grid_sum - CONV2_OFFSET;
}

/* The first HEAD_PER_BLOCK threads each have a value of the head. Returns its index in a row of partial sums of the head (its
 * offset in the head, RL_HEAD_LOSS for the loss), or RL_HEAD_PITCH if the thread has none. */
static __device__ __forceinline__ uint32_t head_index(void) {
  const uint32_t i = blockIdx.x * HEAD_PER_BLOCK + threadIdx.x;
  return threadIdx.x < HEAD_PER_BLOCK && i <= RL_HEAD_LOSS ? i : (uint32_t)RL_HEAD_PITCH;
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

/* Begins to copy the operands of the tile's gradient for up to TILE_BATCH images, beginning with image `first` of the step. One
 * thread calls it; fill_missing_operands must be called for the other rows. */
template <class Format> static __device__ __forceinline__ void begin_operand_copies(const rl_persistent_args &args,
                                                                                    uint32_t first, uint32_t batch,
                                                                                    block_memory<Format> &smem) {
  typedef typename Format::value value;
  const fc1_operands<Format> from(args, first);
  const uint32_t rows = min(batch - first, (uint32_t)TILE_BATCH),
                 input_bytes = rows * Format::FC1_INPUT_TILE_PITCH * sizeof(value),
                 gradient_bytes = rows * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH * sizeof(value);
  fence_all_async_proxies();
  mbarrier_arrive_expect_tx(&smem.operands_mbarrier, input_bytes + gradient_bytes);
  bulk_copy(smem.tile_fc1_product_gradient, from.gradient(0, tile_first_row()), gradient_bytes, &smem.operands_mbarrier);
  bulk_copy(smem.tile_pooled2, from.input(0, tile_first_column()), input_bytes, &smem.operands_mbarrier);
}

/* Returns the phase of operands_mbarrier that completes when the operands from image `first` on have been copied. */
static __device__ __forceinline__ uint32_t operands_phase(const rl_persistent_args &args, uint32_t step, uint32_t first) {
  return step * ((args.batch + TILE_BATCH - 1) / TILE_BATCH) + first / TILE_BATCH + 1;
}

/* Fills the rows of the operands for which the step has no images with zeros. */
template <class Format>
static __device__ __forceinline__ void fill_missing_operands(uint32_t first, uint32_t batch, block_memory<Format> &smem) {
  typedef typename Format::value value;
  const int rows = min(batch - first, (uint32_t)TILE_BATCH);
#pragma unroll 1
  for (int i = rows * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH + threadIdx.x;
       i < TILE_BATCH * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH; i += Format::THREADS)
    smem.tile_fc1_product_gradient[i] = (value)0.0f;
#pragma unroll 1
  for (int i = rows * Format::FC1_INPUT_TILE_PITCH + threadIdx.x; i < TILE_BATCH * Format::FC1_INPUT_TILE_PITCH;
       i += Format::THREADS)
    smem.tile_pooled2[i] = (value)0.0f;
}

/* Computes the gradient of the block's tile of fc1.weight over all images of the step. The operands for the first TILE_BATCH
 * images are in shared memory. */
template <class Format>
static __device__ __forceinline__ void fc1_weight_gradient_tile(const rl_persistent_args &args,
                                                                const microbatch_state &microbatch, block_memory<Format> &smem,
                                                                float gradient[Format::FC1_GRADIENT_PAIRS_PER_THREAD][2]) {
  const uint32_t batch = microbatch.step_images;
  for (uint32_t first = 0; first < batch; first += TILE_BATCH) {
    if (first) {
      __syncthreads();
      if (is_leader()) begin_operand_copies(args, first, batch, smem);
      fill_missing_operands(first, batch, smem);
      mbarrier_wait_cta(&smem.operands_mbarrier, operands_phase(args, microbatch.step, first));
      __syncthreads();
    }
    if (owns_tile<Format>()) Format::fc1_weight_gradient(smem.tile_fc1_product_gradient, smem.tile_pooled2, gradient);
  }
}

/* A thread's share of the rows of partial sums of conv2.weight's gradient, for the neighbouring weights in 16 bytes of a row. */
template <class Format> struct conv2_rows {
  typedef typename Format::row_value row_value;
  enum { SPLITS = step_schedule<Format>::CONV2_ROW_SPLITS, PER_THREAD = (BLOCK_PAIRS + SPLITS - 1) / SPLITS };
  uint4 parts[PER_THREAD];
};

/* Loads this thread's share. The caller has waited for the grid barrier `rows`. rows: partial_rows of the step. */
template <class Format>
static __device__ __forceinline__ conv2_rows<Format> load_conv2_rows(const rl_persistent_args &args, uint32_t rows) {
  typedef conv2_rows<Format> share;
  enum { VECTORS = step_schedule<Format>::CONV2_VECTORS, VECTOR_SIZE = step_schedule<Format>::CONV2_VECTOR_SIZE };
  const uint32_t split = threadIdx.x / VECTORS;
  const typename share::row_value *from = (const typename share::row_value *)args.partial_conv2_weight +
                                          blockIdx.x * CONV2_PER_BLOCK + threadIdx.x % VECTORS * VECTOR_SIZE;
  share loaded;
#pragma unroll
  for (uint32_t i = 0; i < share::PER_THREAD; i++) {
    const uint32_t row = split + i * share::SPLITS;
    loaded.parts[i] =
        split < share::SPLITS && row < rows ? __ldcg((const uint4 *)&from[(size_t)row * CONV2_COUNT]) : make_uint4(0, 0, 0, 0);
  }
  return loaded;
}

/* Adds up this thread's share and stores the sums in smem.conv2_sums. */
template <class Format>
static __device__ __forceinline__ void add_conv2_rows(const conv2_rows<Format> &share, block_memory<Format> &smem) {
  typedef conv2_rows<Format> rows;
  enum { VECTORS = step_schedule<Format>::CONV2_VECTORS, VECTOR_SIZE = step_schedule<Format>::CONV2_VECTOR_SIZE };
  const uint32_t split = threadIdx.x / VECTORS;
  if (split >= rows::SPLITS) return;
#pragma unroll
  for (int first = 0; first < VECTOR_SIZE; first += 4) {
    float4 sum = load4((const typename rows::row_value *)&share.parts[0] + first);
#pragma unroll
    for (int i = 1; i < rows::PER_THREAD; i++) sum = add4(sum, load4((const typename rows::row_value *)&share.parts[i] + first));
    store4(&smem.conv2_sums[split][threadIdx.x % VECTORS * VECTOR_SIZE + first], sum);
  }
}

/* The same for the rows of the head and one of the block's values. */
template <class Format> struct head_rows {
  enum { SPLITS = step_schedule<Format>::HEAD_ROW_SPLITS, PER_THREAD = (BLOCK_PAIRS + SPLITS - 1) / SPLITS };
  float parts[PER_THREAD];
};

template <class Format>
static __device__ __forceinline__ head_rows<Format> load_head_rows(const rl_persistent_args &args, uint32_t rows) {
  typedef head_rows<Format> share;
  const uint32_t split = threadIdx.x / HEAD_PITCH, i = threadIdx.x % HEAD_PITCH, value = blockIdx.x * HEAD_PER_BLOCK + i;
  share loaded;
#pragma unroll
  for (uint32_t k = 0; k < share::PER_THREAD; k++) {
    const uint32_t row = split + k * share::SPLITS;
    loaded.parts[k] = i < HEAD_PER_BLOCK && value <= RL_HEAD_LOSS && row < rows
                          ? __ldcg(&args.partial_head[(size_t)row * RL_HEAD_PITCH + value])
                          : 0.0f;
  }
  return loaded;
}

template <class Format>
static __device__ __forceinline__ void add_head_rows(const head_rows<Format> &share, block_memory<Format> &smem) {
  float sum = share.parts[0];
  for (int k = 1; k < head_rows<Format>::PER_THREAD; k++) sum += share.parts[k];
  smem.head_sums[threadIdx.x / HEAD_PITCH][threadIdx.x % HEAD_PITCH] = sum;
}

/* Returns the total of smem.head_sums for this thread's value of the head: its gradient, multiplied by the loss scale, or the sum
 * of the losses. */
template <class Format> static __device__ __forceinline__ float head_total(const block_memory<Format> &smem) {
  enum { CHAINS = 4 }; /* independent sums, to hide the latency of additions */
  static_assert((int)step_schedule<Format>::HEAD_ROW_SPLITS % CHAINS == 0, "the chains must have equal lengths");
  float totals[CHAINS] = {};
#pragma unroll
  for (int i = 0; i < step_schedule<Format>::HEAD_ROW_SPLITS; i++) totals[i % CHAINS] += smem.head_sums[i][threadIdx.x];
  return (totals[0] + totals[1]) + (totals[2] + totals[3]);
}

/* Returns the gradient of this thread's weight of conv2, multiplied by the loss scale: the total of smem.conv2_sums, divided by
 * ROW_SCALE. */
template <class Format> static __device__ __forceinline__ float conv2_weight_total(const block_memory<Format> &smem) {
  float total = 0.0f;
  for (int i = 0; i < step_schedule<Format>::CONV2_ROW_SPLITS; i++) total += smem.conv2_sums[i][conv2_parameter_index()];
  return total * (1.0f / Format::ROW_SCALE);
}

/* Updates a parameter and its moments by Adam. */
static __device__ __forceinline__ void update_parameter(parameter *p, float gradient, adam_rates rates) {
  p->weight = adam_update_weight(p->weight, gradient, &p->first_moment, &p->second_moment, rates);
}

/* Stores this thread's pair i of weights of the tile where the other blocks read it. */
template <class Format>
static __device__ __forceinline__ void publish_tile_weights(const rl_persistent_args &args, int i, float2 weights) {
  typedef published_weights<Format> published;
  static_assert((int)TILE_COLUMNS == (int)SLICE_INPUTS, "a tile must be in one slice");
  if constexpr (step_schedule<Format>::HAS_BULK_WEIGHTS)
    store2(published::fc1_slice(args, blockIdx.x / (RL_FC1_OUTPUTS / TILE_ROWS)) +
               (tile_first_row() + Format::fc1_gradient_row(i)) * published::FC1_PITCH + Format::fc1_gradient_column(i),
           weights.x, weights.y);
  else *(float2 *)&args.adam.weights[tile_offset<Format>(i)] = weights;
}

/* A thread's weights of the tile, and their moments. */
template <class Format> struct tile_weights { float2 pairs[Format::FC1_GRADIENT_PAIRS_PER_THREAD]; };
template <class Format> struct tile_moments {
  float2 first[Format::FC1_GRADIENT_PAIRS_PER_THREAD], second[Format::FC1_GRADIENT_PAIRS_PER_THREAD];
};

/* Loads this thread's weights of the tile. Only threads that own weights of the tile use the result. */
template <class Format> static __device__ __forceinline__ tile_weights<Format> load_tile_weights(const rl_persistent_args &args,
                                                                                                 block_memory<Format> &smem) {
  tile_weights<Format> weights = {};
#pragma unroll
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>(); i++)
    weights.pairs[i] = *tile_master_weight(args, i, smem);
  return weights;
}

/* Keeps the weights of this thread's pair i and their moments, and publishes the weights. */
template <class Format>
static __device__ __forceinline__ void store_tile_pair(const rl_persistent_args &args, int i, float2 weights,
                                                       float2 first_moments, float2 second_moments, block_memory<Format> &smem) {
  publish_tile_weights<Format>(args, i, weights);
  if (Format::HAS_FP32_MASTER_WEIGHTS) smem.tile_weight[i][threadIdx.x] = weights;
  smem.tile_first_moment[i][threadIdx.x] = first_moments;
  smem.tile_second_moment[i][threadIdx.x] = second_moments;
}

/* Updates the thread's weights of the tile and publishes them. Returns the previous moments. */
template <class Format>
static __device__ __forceinline__ tile_moments<Format> update_tile(const rl_persistent_args &args,
                                                                   const float gradient[Format::FC1_GRADIENT_PAIRS_PER_THREAD][2],
                                                                   const tile_weights<Format> &old, adam_rates rates,
                                                                   block_memory<Format> &smem) {
  tile_moments<Format> moments = {};
#pragma unroll
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>(); i++) {
    moments.first[i] = smem.tile_first_moment[i][threadIdx.x], moments.second[i] = smem.tile_second_moment[i][threadIdx.x];
    parameter a = {old.pairs[i].x, moments.first[i].x, moments.second[i].x},
              b = {old.pairs[i].y, moments.first[i].y, moments.second[i].y};
    update_parameter(&a, gradient[i][0], rates);
    update_parameter(&b, gradient[i][1], rates);
    store_tile_pair(args, i, make_float2(a.weight, b.weight), make_float2(a.first_moment, b.first_moment),
                    make_float2(a.second_moment, b.second_moment), smem);
  }
  return moments;
}

/* Undoes update_tile. */
template <class Format>
static __device__ __forceinline__ void restore_tile(const rl_persistent_args &args, const tile_weights<Format> &old,
                                                    const tile_moments<Format> &moments, block_memory<Format> &smem) {
#pragma unroll
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>(); i++)
    store_tile_pair(args, i, old.pairs[i], moments.first[i], moments.second[i], smem);
}

/* Stores a weight of conv2 where the other blocks read it after the grid barrier `weights` or `update`. */
template <class Format>
static __device__ __forceinline__ void publish_conv2_weight(const rl_persistent_args &args, float weight) {
  enum { BLOCKS_PER_ROW = CONV2_K / CONV2_PER_BLOCK };
  static_assert(CONV2_K % CONV2_PER_BLOCK == 0, "the weights of a block must be in one row");
  const uint32_t row = blockIdx.x / BLOCKS_PER_ROW,
                 column = blockIdx.x % BLOCKS_PER_ROW * CONV2_PER_BLOCK + conv2_parameter_index();
  enum { PITCH = step_schedule<Format>::HAS_BULK_WEIGHTS ? Format::WEIGHT_VALUES / TILE_CHANNELS : (int)CONV2_K };
  published_weights<Format>::conv2(args)[row * PITCH + column] = (typename Format::value)weight;
}

/* Returns this thread's weight of conv2 after the update, and publishes it. The caller has called add_conv2_rows and has
 * synchronised the block. WAR: all blocks have read the weights of this step: they have arrived at the grid barrier `rows`. */
template <class Format> static __device__ __forceinline__ parameter updated_conv2_weight(const rl_persistent_args &args,
                                                                                         adam_rates rates,
                                                                                         const block_memory<Format> &smem) {
  parameter own = {};
  if (!owns_conv2_weight()) return own;
  own = smem.conv2_parameters[conv2_parameter_index()];
  update_parameter(&own, conv2_weight_total(smem), rates);
  publish_conv2_weight<Format>(args, own.weight);
  return own;
}

/* Stores the updated weight, or publishes the previous one again if the step is skipped. */
template <class Format> static __device__ __forceinline__ void store_conv2_weight(const rl_persistent_args &args,
                                                                                  const parameter &updated, bool skip_step,
                                                                                  block_memory<Format> &smem) {
  if (!owns_conv2_weight()) return;
  parameter &own = smem.conv2_parameters[conv2_parameter_index()];
  if (skip_step) publish_conv2_weight<Format>(args, own.weight);
  else own = updated;
}

/* What a thread polls at the end of a step: its sum over the grid, and, in the leader, the votes. */
typedef struct polled_words {
  const uint64_t *sum; /* NULL: none */
  uint32_t addends;
  uint64_t sum_bits, votes; /* as loaded last */
} polled_words;

static __device__ __forceinline__ void load_polled_words(const rl_persistent_args &args, polled_words *words) {
  if (is_leader()) words->votes = load_relaxed(&args.block_exchange->votes);
  words->sum_bits = load_relaxed(words->sum);
}

/* Begins to load the words of this thread. Two blocks of each pair that has an image add to the sums of conv1, one to the others.
 */
static __device__ __forceinline__ polled_words begin_poll(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                          const block_coords &coords) {
  const uint32_t pairs = partial_rows(microbatch.step_images), i = block_sum_index();
  polled_words words = {};
  if (!has_block_sum()) return words;
  words.sum = grid_sum(args, microbatch.step, grid_sum_index(coords, i));
  words.addends = i < RL_CONV1_PARAMETERS ? 2 * pairs : pairs;
  load_polled_words(args, &words);
  return words;
}

/* Waits until the sum is complete, and returns it. The leader also waits until all blocks have decided, and sets smem.skip_step;
 * the others wait for it. All threads that have a sum call it. */
template <class Format> static __device__ __forceinline__ float finish_poll(const rl_persistent_args &args,
                                                                            const microbatch_state &microbatch,
                                                                            polled_words words, block_memory<Format> &smem) {
  const uint32_t phase = microbatch.step + 1, mask = (1u << ADDEND_COUNT_BITS) - 1;
  for (uint32_t polls = 0;
       ((uint32_t)words.sum_bits & mask) != words.addends || (is_leader() && (uint32_t)words.votes != phase * BLOCKS);
       trap_on_timeout(&polls))
    load_polled_words(args, &words);
  if (is_leader()) {
    const uint32_t votes = (uint32_t)(words.votes >> VOTE_COUNT_BITS);
    smem.skip_step = votes != smem.overflow_votes;
    smem.overflow_votes = votes;
    mbarrier_arrive(&smem.votes_mbarrier);
  }
  mbarrier_wait_cta(&smem.votes_mbarrier, phase);
  return fixed_point_sum(words.sum_bits);
}

/* Updates the block's copy of this thread's parameter of conv1 or conv2.bias from the sum over the grid. For tests: if
 * args.small_gradients is set, stores the gradient, multiplied by the loss scale. */
template <class Format>
static __device__ __forceinline__ void update_block_copy(const rl_persistent_args &args, const block_coords &coords, float sum,
                                                         bool skip_step, adam_rates rates, block_memory<Format> &smem) {
  if (!has_block_sum()) return;
  const uint32_t i = block_sum_index();
  const float gradient = sum * smem.state.loss_scale.scale;
  if (Format::RECORDS && args.small_gradients && coords.pair == 0) args.small_gradients[grid_sum_index(coords, i)] = gradient;
  if (skip_step) return;
  float *weight = block_copy(smem);
  *weight = adam_update_weight(*weight, gradient, &smem.moments[i].x, &smem.moments[i].y, rates);
}

/* Updates this thread's parameter of the head, or stores the step's mean loss. total: head_total. For tests: as
 * update_block_copy. */
template <class Format>
static __device__ __forceinline__ void update_head(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                   float total, bool skip_step, adam_rates rates, block_memory<Format> &smem) {
  const uint32_t i = head_index();
  if (i > RL_HEAD_LOSS) return;
  if (i == RL_HEAD_LOSS) args.adam.losses[microbatch.step] = total / microbatch.step_images;
  if (Format::RECORDS && args.small_gradients) args.small_gradients[GRID_SUMS + i] = total;
  if (i == RL_HEAD_LOSS || skip_step) return;
  parameter &own = smem.head_parameters[threadIdx.x];
  update_parameter(&own, total, rates);
  args.adam.weights[HEAD_OFFSET + i] = own.weight;
}

/* A thread's updates that are computed before the votes are known, because most steps are not skipped. */
template <class Format> struct prepared_update {
  adam_rates rates;
  float fc1_gradient[Format::FC1_GRADIENT_PAIRS_PER_THREAD][2];
  tile_weights<Format> old_tile;    /* if OVERLAPS_UPDATES */
  tile_moments<Format> old_moments; /* if OVERLAPS_UPDATES */
  parameter conv2_weight;
  float head_gradient;
  polled_words words;
};

/* Computes the gradient of the tile of fc1.weight and adds up the rows of partial sums of conv2 and the head. If
 * OVERLAPS_UPDATES, updates the tile too, before it uses the rows. */
template <class Format>
static __device__ __forceinline__ void add_gradients(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                     const block_coords &coords, prepared_update<Format> &update,
                                                     block_memory<Format> &smem) {
  const uint32_t step = microbatch.step, rows = partial_rows(microbatch.step_images);
  const bool adds_conv2_rows = coords.warp < CONV2_ADDING_WARPS;
  if (step_schedule<Format>::OVERLAPS_UPDATES) update.old_tile = load_tile_weights(args, smem);
  fc1_weight_gradient_tile(args, microbatch, smem, update.fc1_gradient);
  record_timestamp<Format>(args, step, RL_TIMED_fc1_weight_gradient);
  mbarrier_wait_cta(&smem.rows_mbarrier, step + 1);
  record_timestamp<Format>(args, step, RL_TIMED_rows_barrier);
  if constexpr (step_schedule<Format>::LOADS_ROWS_EARLY) {
    conv2_rows<Format> conv2;
    if (adds_conv2_rows) conv2 = load_conv2_rows<Format>(args, rows);
    const head_rows<Format> head = load_head_rows<Format>(args, rows);
    update.old_moments = update_tile(args, update.fc1_gradient, update.old_tile, update.rates, smem);
    update.words = begin_poll(args, microbatch, coords);
    if (adds_conv2_rows) add_conv2_rows(conv2, smem);
    add_head_rows(head, smem);
  } else {
    enum { OVERLAPS = step_schedule<Format>::OVERLAPS_UPDATES };
    if (OVERLAPS) update.old_moments = update_tile(args, update.fc1_gradient, update.old_tile, update.rates, smem);
    if (OVERLAPS) update.words = begin_poll(args, microbatch, coords);
    if (adds_conv2_rows) add_conv2_rows(load_conv2_rows<Format>(args, rows), smem);
    add_head_rows(load_head_rows<Format>(args, rows), smem);
    if (!OVERLAPS) update.words = begin_poll(args, microbatch, coords);
  }
}

/* Computes what can be updated before the votes are known, and publishes the new weights of conv2 and, if OVERLAPS_UPDATES, of
 * fc1. Also normalises the next image. All threads of the block are synchronised at the end. */
template <class Format>
static __device__ __forceinline__ prepared_update<Format> prepare_update(const rl_persistent_args &args,
                                                                         const microbatch_state &microbatch,
                                                                         const block_coords &coords, block_memory<Format> &smem) {
  prepared_update<Format> update = {};
  update.rates = adam_rates_of(smem.state);
  add_gradients(args, microbatch, coords, update, smem);
  normalise_image(coords, smem);
  __syncthreads();
  record_timestamp<Format>(args, microbatch.step, RL_TIMED_add_rows);
  update.conv2_weight = updated_conv2_weight(args, update.rates, smem);
  update.head_gradient = head_index() <= RL_HEAD_LOSS ? head_total(smem) : 0.0f;
  __syncthreads();
  record_timestamp<Format>(args, microbatch.step, RL_TIMED_conv2_update);
  return update;
}

/* Updates the other parameters and keeps what was prepared; or, if the step is skipped, publishes the previous weights again.
 * grid_sum: the thread's result of finish_poll. */
template <class Format>
static __device__ __forceinline__ void finish_update(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                     const block_coords &coords, float grid_sum, prepared_update<Format> &update,
                                                     block_memory<Format> &smem) {
  enum { OVERLAPS = step_schedule<Format>::OVERLAPS_UPDATES };
  const bool skip_step = smem.skip_step;
  if (!OVERLAPS) update.old_tile = load_tile_weights(args, smem);
  update_block_copy(args, coords, grid_sum, skip_step, update.rates, smem);
  update_head(args, microbatch, update.head_gradient, skip_step, update.rates, smem);
  store_conv2_weight(args, update.conv2_weight, skip_step, smem);
  if (!OVERLAPS && !skip_step) update_tile(args, update.fc1_gradient, update.old_tile, update.rates, smem);
  if (OVERLAPS && skip_step) restore_tile(args, update.old_tile, update.old_moments, smem);
}

/* Sets this block's share of the grid sums of the next step to 0. All blocks have read what these sums were two steps ago: they
 * have arrived at the grid barrier `forward` since. They add to them after the grid barrier `forward` of the next step, at which
 * this block has not arrived yet. */
static __device__ __forceinline__ void clear_next_grid_sums(const rl_persistent_args &args, uint32_t step) {
  enum { PER_BLOCK = (GRID_SUMS + BLOCKS - 1) / BLOCKS };
  const uint32_t i = blockIdx.x * PER_BLOCK + threadIdx.x;
  if (threadIdx.x < PER_BLOCK && i < GRID_SUMS) *grid_sum(args, step + 1, i) = 0;
}

/* Loads the block's parameters and moments from global memory, at the start of a launch. */
template <class Format> static __device__ __forceinline__ void load_parameters(const rl_persistent_args &args,
                                                                               const block_coords &coords,
                                                                               block_memory<Format> &smem) {
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>(); i++) {
    const uint32_t offset = tile_offset<Format>(i);
    if (Format::HAS_FP32_MASTER_WEIGHTS) smem.tile_weight[i][threadIdx.x] = *(const float2 *)&args.adam.weights[offset];
    smem.tile_first_moment[i][threadIdx.x] = *(const float2 *)&args.adam.first_moment[offset];
    smem.tile_second_moment[i][threadIdx.x] = *(const float2 *)&args.adam.second_moment[offset];
  }
  if (owns_conv2_weight()) smem.conv2_parameters[conv2_parameter_index()] = load_parameter(args.adam, conv2_parameter_offset());
  if (head_index() < RL_HEAD_LOSS) smem.head_parameters[threadIdx.x] = load_parameter(args.adam, HEAD_OFFSET + head_index());
  if (!has_block_sum()) return;
  const uint32_t i = block_sum_index();
  const parameter own = load_parameter(args.adam, grid_parameter_offset(grid_sum_index(coords, i)));
  *block_copy(smem) = own.weight;
  smem.moments[i] = make_float2(own.first_moment, own.second_moment);
}

/* Makes the block's weights available to the other blocks, as Format::value, at the start of a launch. WAR: the stored weights
 * overwrite FP32 parameters, so every block must have loaded its own parameters before. */
template <class Format> static __device__ __forceinline__ void publish_parameters(const rl_persistent_args &args,
                                                                                  const block_coords &coords,
                                                                                  block_memory<Format> &smem) {
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>() && Format::HAS_FP32_MASTER_WEIGHTS; i++) {
    publish_tile_weights<Format>(args, i, smem.tile_weight[i][threadIdx.x]);
  }
  if (owns_conv2_weight()) publish_conv2_weight<Format>(args, smem.conv2_parameters[conv2_parameter_index()].weight);
}

/* Stores the block's parameters and moments in global memory, at the end of a launch. WAR: they overwrite the weights that the
 * products read, so every block must have finished reading these. */
template <class Format> static __device__ __forceinline__ void store_parameters(const rl_persistent_args &args,
                                                                                const block_coords &coords,
                                                                                block_memory<Format> &smem) {
  for (int i = 0; i < Format::FC1_GRADIENT_PAIRS_PER_THREAD && owns_tile<Format>(); i++) {
    const uint32_t offset = tile_offset<Format>(i);
    if (Format::HAS_FP32_MASTER_WEIGHTS) *(float2 *)&args.adam.weights[offset] = smem.tile_weight[i][threadIdx.x];
    *(float2 *)&args.adam.first_moment[offset] = smem.tile_first_moment[i][threadIdx.x];
    *(float2 *)&args.adam.second_moment[offset] = smem.tile_second_moment[i][threadIdx.x];
  }
  if (owns_conv2_weight()) store_parameter(args.adam, conv2_parameter_offset(), smem.conv2_parameters[conv2_parameter_index()]);
  if (head_index() < RL_HEAD_LOSS) store_parameter(args.adam, HEAD_OFFSET + head_index(), smem.head_parameters[threadIdx.x]);
  if (coords.pair != 0 || !has_block_sum()) return; /* the first pair stores its copies */
  const uint32_t i = block_sum_index();
  store_parameter(args.adam, grid_parameter_offset(grid_sum_index(coords, i)),
                  {*block_copy(smem), smem.moments[i].x, smem.moments[i].y});
}

#endif
