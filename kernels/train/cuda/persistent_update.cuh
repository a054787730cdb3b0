/* The engine "persistent": fc1's weight gradient and the update of the parameters that a block owns. */
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

/* Index in smem.owned of the parameter of conv2.weight or of the small values that this thread updates; negative: it has none.
 * The last threads of the block have one, because the first threads update the tile of fc1.weight. */
static __device__ __forceinline__ int owned_index(void) {
  return (int)threadIdx.x - (TILE_THREADS - CONV2_PER_BLOCK - SMALL_PER_BLOCK);
}
static __device__ __forceinline__ bool owns_conv2(void) { return owned_index() >= 0 && owned_index() < CONV2_PER_BLOCK; }
/* Index of this thread's small value among all SMALL_VALUES (persistent.cuh). */
static __device__ __forceinline__ uint32_t small_index(void) {
  return blockIdx.x * SMALL_PER_BLOCK + owned_index() - CONV2_PER_BLOCK;
}
static __device__ __forceinline__ bool owns_small(void) {
  return owned_index() >= CONV2_PER_BLOCK && small_index() < SMALL_VALUES - 1;
}
static __device__ __forceinline__ bool owns_loss(void) {
  return owned_index() >= CONV2_PER_BLOCK && small_index() == SMALL_VALUES - 1;
}

/* Offset of the parameter in rl_adam.weights. */
static __device__ __forceinline__ uint32_t owned_offset(void) {
  if (owns_conv2()) return CONV2_OFFSET + blockIdx.x * CONV2_PER_BLOCK + owned_index();
  if (small_index() < CONV2_OFFSET) return small_index();
  if (small_index() < CONV2_OFFSET + RL_C2) return CONV2_BIAS_OFFSET + small_index() - CONV2_OFFSET;
  return HEAD_OFFSET + small_index() - CONV2_OFFSET - RL_C2;
}

/* This block's tile of fc1.weight, and the offset in rl_adam.weights of this thread's pair i of it. */
static __device__ __forceinline__ uint32_t tile_first_row(void) { return blockIdx.x % (RL_FC1 / TILE_ROWS) * TILE_ROWS; }
static __device__ __forceinline__ uint32_t tile_first_column(void) { return blockIdx.x / (RL_FC1 / TILE_ROWS) * TILE_COLUMNS; }
template <class F> static __device__ __forceinline__ bool owns_tile(void) { return threadIdx.x < F::FC1_GRADIENT_WARPS * 32; }
template <class F> static __device__ __forceinline__ uint32_t tile_offset(int i) {
  return FC1_OFFSET + (tile_first_row() + F::tile_row(i)) * RL_FLAT + tile_first_column() + F::tile_column(i);
}

/* Pair i in full precision: in shared memory, or in global memory if that holds it in the format that is multiplied. */
template <class F>
static __device__ __forceinline__ float2 *tile_weight(const rl_persistent_args &args, int i, block_memory<F> &smem) {
  return F::SEPARATE_MASTER_WEIGHTS ? &smem.weight[i][threadIdx.x] : (float2 *)&args.adam.weights[tile_offset<F>(i)];
}

/* Begins to load the operands of the tile's gradient for up to TILE_BATCH images, starting with image `first`: TILE_ROWS outputs
 * of the gradient of fc1's product and TILE_COLUMNS of fc1's inputs. Fills the rows of missing images with zeros. */
template <class F> static __device__ __forceinline__ void load_fc1_operands_async(const rl_persistent_args &args, uint32_t first,
                                                                                  uint32_t batch, block_memory<F> &smem) {
  typedef typename F::value value;
  const value *d_fc1 = (const value *)args.d_fc1 + (size_t)first * RL_FC1 + tile_first_row(),
              *pooled2 = (const value *)args.pooled2 + (size_t)first * RL_FLAT + tile_first_column();
  const int rows = min(batch - first, (uint32_t)TILE_BATCH);
  load_rows_async<F::THREADS, TILE_ROWS>(threadIdx.x, d_fc1, RL_FC1, rows, smem.d_fc1_rows, F::D_FC1_TILE_PITCH);
  load_rows_async<F::THREADS, TILE_COLUMNS>(threadIdx.x, pooled2, RL_FLAT, rows, smem.pooled2_columns, F::FC1_IN_TILE_PITCH);
#pragma unroll 1
  for (int i = rows * F::D_FC1_TILE_PITCH + threadIdx.x; i < TILE_BATCH * F::D_FC1_TILE_PITCH; i += F::THREADS)
    smem.d_fc1_rows[i] = (value)0.0f;
#pragma unroll 1
  for (int i = rows * F::FC1_IN_TILE_PITCH + threadIdx.x; i < TILE_BATCH * F::FC1_IN_TILE_PITCH; i += F::THREADS)
    smem.pooled2_columns[i] = (value)0.0f;
}

/* Computes the tile of fc1's weight gradient. The caller has begun to load the first operands. */
template <class F> static __device__ __forceinline__ void fc1_weight_gradient_tile(const rl_persistent_args &args, uint32_t batch,
                                                                                   block_memory<F> &smem,
                                                                                   float gradient[F::PAIRS_PER_THREAD][2]) {
  for (uint32_t first = 0; first < batch; first += TILE_BATCH) {
    if (first) {
      __syncthreads();
      load_fc1_operands_async(args, first, batch, smem);
    }
    cp_async_wait_all();
    __syncthreads();
    if (owns_tile<F>()) F::fc1_weight_gradient(smem.d_fc1_rows, smem.pooled2_columns, gradient);
  }
}

/* Partial sums of one small value: `rows` floats, `stride` apart. */
typedef struct partial_sums {
  const float *first;
  uint32_t stride, rows;
} partial_sums;

static __device__ __forceinline__ partial_sums small_column(const rl_persistent_args &args, uint32_t i, uint32_t rows) {
  if (i < CONV2_OFFSET) return {&args.partial_conv1[i], CONV2_OFFSET, 2 * rows};
  if (i < CONV2_OFFSET + RL_C2) return {&args.partial_conv2_bias[i - CONV2_OFFSET], RL_C2, rows};
  if (i < SMALL_VALUES) return {&args.partial_head[i - CONV2_OFFSET - RL_C2], RL_HEAD_ROW, rows};
  return {NULL, 0, 0};
}

/* Adds up the partial sums of the parameters in smem.owned, by all threads. Returns the gradient of this thread's parameter,
 * which is still multiplied by the loss scale, or the sum of the losses. All loads are issued before the first addition. */
template <class F>
static __device__ __forceinline__ float owned_gradient(const rl_persistent_args &args, uint32_t rows, block_memory<F> &smem) {
  enum {
    SPLITS = warp_roles<F>::CONV2_SPLITS,
    SMALL_SPLITS = warp_roles<F>::SMALL_SPLITS,
    ROWS = (PAIRS + SPLITS - 1) / SPLITS,
    SMALL_ROWS = (2 * PAIRS + SMALL_SPLITS - 1) / SMALL_SPLITS
  };
  const uint32_t quad = threadIdx.x % CONV2_QUADS, split = threadIdx.x / CONV2_QUADS, small_split = threadIdx.x / SMALL_PITCH,
                 value = threadIdx.x % SMALL_PITCH;
  const float *from = &args.partial_conv2[blockIdx.x * CONV2_PER_BLOCK + quad * 4];
  const partial_sums small =
      value < SMALL_PER_BLOCK ? small_column(args, blockIdx.x * SMALL_PER_BLOCK + value, rows) : partial_sums{NULL, 0, 0};
  float4 parts[ROWS];
  float small_parts[SMALL_ROWS];
#pragma unroll
  for (uint32_t i = 0; i < ROWS; i++) {
    const uint32_t row = split + i * SPLITS;
    parts[i] = split < SPLITS && row < rows ? load4(&from[(size_t)row * CONV2_COUNT]) : make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (uint32_t i = 0; i < SMALL_ROWS; i++) {
    const uint32_t row = small_split + i * SMALL_SPLITS;
    small_parts[i] = row < small.rows ? small.first[row * small.stride] : 0.0f;
  }
  for (int i = 1; i < ROWS; i++) parts[0] = add4(parts[0], parts[i]);
  for (int i = 1; i < SMALL_ROWS; i++) small_parts[0] += small_parts[i];
  if (split < SPLITS) store4(&smem.conv2_sums[split][quad * 4], parts[0]);
  smem.small_sums[small_split][value] = small_parts[0];
  __syncthreads();
  float total = 0.0f;
  if (owns_conv2())
    for (int i = 0; i < SPLITS; i++) total += smem.conv2_sums[i][owned_index()];
  else if (owned_index() >= CONV2_PER_BLOCK)
    for (int i = 0; i < SMALL_SPLITS; i++) total += smem.small_sums[i][owned_index() - CONV2_PER_BLOCK];
  return total;
}

static __device__ __forceinline__ void update(parameter *p, float gradient, adam_rates rates) {
  p->weight = adam_updated(p->weight, gradient, &p->first_moment, &p->second_moment, rates);
}

template <class F> static __device__ __forceinline__ void update_tile(const rl_persistent_args &args,
                                                                      const float gradient[F::PAIRS_PER_THREAD][2],
                                                                      adam_rates rates, block_memory<F> &smem) {
  if (!owns_tile<F>()) return;
  for (int i = 0; i < F::PAIRS_PER_THREAD; i++) {
    float2 *w = tile_weight(args, i, smem), *first_moment = &smem.first_moment[i][threadIdx.x],
           *second_moment = &smem.second_moment[i][threadIdx.x];
    parameter a = {w->x, first_moment->x, second_moment->x}, b = {w->y, first_moment->y, second_moment->y};
    update(&a, gradient[i][0], rates);
    update(&b, gradient[i][1], rates);
    *w = make_float2(a.weight, b.weight);
    *first_moment = make_float2(a.first_moment, b.first_moment);
    *second_moment = make_float2(a.second_moment, b.second_moment);
    if (F::SEPARATE_MASTER_WEIGHTS) store2(compute_weights<F>(args) + tile_offset<F>(i), a.weight, b.weight);
  }
}

/* Publishes the weight that this thread owns. Weights of conv1 and conv2.bias are sent as tagged words of `phase`. Others are
 * stored in global memory; readers wait for the barrier `update`. */
template <class F> static __device__ __forceinline__ void publish(const rl_persistent_args &args, uint32_t phase, float weight) {
  for (int group = 0; group < PAIRS / GROUP_PAIRS && owns_small() && small_index() < TAGGED_WEIGHTS; group++)
    send_tagged(&args.exchange->tagged_weights[group][small_index()], phase, weight);
  if (owns_conv2()) compute_weights<F>(args)[owned_offset()] = (typename F::value)weight;
  else if (owns_small()) args.adam.weights[owned_offset()] = weight;
}

/* After the barrier `backward`: updates the block's parameters, or leaves them unchanged if a gradient overflowed. Updates the
 * weights that other blocks wait for before the tile of fc1.weight. */
template <class F> static __device__ __forceinline__ void update_parameters(const rl_persistent_args &args, const microbatch &mb,
                                                                            const float gradient[F::PAIRS_PER_THREAD][2],
                                                                            block_memory<F> &smem) {
  const bool skip = __ldcg(&args.exchange->overflow) == mb.step + 1;
  const adam_rates rates = rates_of(smem.state);
  const float total = owned_gradient(args, partial_rows(mb.step_images), smem);
  if (threadIdx.x == 0) smem.state.overflow = skip;
  if (owns_loss()) args.adam.losses[mb.step] = total / mb.step_images;
  if (owns_conv2() || owns_small()) {
    parameter &own = smem.owned[owned_index()];
    if (!skip) update(&own, total, rates);
    publish<F>(args, mb.step + 2, own.weight); /* readers wait for this phase even if the step is skipped */
  }
  if (!skip) update_tile<F>(args, gradient, rates, smem);
}

/* Loads the block's parameters from global memory, at the start of a launch. */
template <class F> static __device__ __forceinline__ void load_parameters(const rl_persistent_args &args, block_memory<F> &smem) {
  for (int i = 0; i < F::PAIRS_PER_THREAD && owns_tile<F>(); i++) {
    const uint32_t offset = tile_offset<F>(i);
    if (F::SEPARATE_MASTER_WEIGHTS) smem.weight[i][threadIdx.x] = *(const float2 *)&args.adam.weights[offset];
    smem.first_moment[i][threadIdx.x] = *(const float2 *)&args.adam.first_moment[offset];
    smem.second_moment[i][threadIdx.x] = *(const float2 *)&args.adam.second_moment[offset];
  }
  if (owns_conv2() || owns_small()) smem.owned[owned_index()] = load_parameter(args.adam, owned_offset());
}

/* Publishes the block's weights in the format that is multiplied. WAR: they overwrite parameters that every block has loaded. */
template <class F>
static __device__ __forceinline__ void publish_parameters(const rl_persistent_args &args, const block_memory<F> &smem) {
  for (int i = 0; i < F::PAIRS_PER_THREAD && owns_tile<F>() && F::SEPARATE_MASTER_WEIGHTS; i++) {
    const float2 w = smem.weight[i][threadIdx.x];
    store2(compute_weights<F>(args) + tile_offset<F>(i), w.x, w.y);
  }
  if (owns_conv2() || owns_small()) publish<F>(args, 1, smem.owned[owned_index()].weight);
}

/* Stores the block's parameters to global memory, at the end of a launch. WAR: every block has read the published weights. */
template <class F>
static __device__ __forceinline__ void store_parameters(const rl_persistent_args &args, const block_memory<F> &smem) {
  for (int i = 0; i < F::PAIRS_PER_THREAD && owns_tile<F>(); i++) {
    const uint32_t offset = tile_offset<F>(i);
    if (F::SEPARATE_MASTER_WEIGHTS) *(float2 *)&args.adam.weights[offset] = smem.weight[i][threadIdx.x];
    *(float2 *)&args.adam.first_moment[offset] = smem.first_moment[i][threadIdx.x];
    *(float2 *)&args.adam.second_moment[offset] = smem.second_moment[i][threadIdx.x];
  }
  if (owns_conv2() || owns_small()) store_parameter(args.adam, owned_offset(), smem.owned[owned_index()]);
}

#endif
