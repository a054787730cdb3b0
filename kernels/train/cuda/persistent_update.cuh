/* The engine "persistent": what a block updates. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_UPDATE_H
#define RL_TRAIN_CUDA_PERSISTENT_UPDATE_H

#include "train/cuda/persistent.cuh"

static __device__ __forceinline__ parameter load_parameter(const rl_adam &adam, uint32_t i) {
  return {adam.weights[i], adam.first[i], adam.second[i]};
}

static __device__ __forceinline__ void store_parameter(const rl_adam &adam, uint32_t i, const parameter &p) {
  adam.weights[i] = p.weight;
  adam.first[i] = p.first;
  adam.second[i] = p.second;
}

/* The parameter that this thread has alone: of conv2.weight, or one of the others, which are numbered conv1, conv2.bias, the
 * head, the loss. The last threads have them, since the first have the tile. */
static __device__ __forceinline__ int single(void) { return (int)threadIdx.x - (TILE_THREADS - CONV2_OWN - OTHERS_OWN); }
static __device__ __forceinline__ bool has_conv2(void) { return single() >= 0 && single() < CONV2_OWN; }
static __device__ __forceinline__ uint32_t other(void) { return blockIdx.x * OTHERS_OWN + single() - CONV2_OWN; }
static __device__ __forceinline__ bool has_other(void) { return single() >= CONV2_OWN && other() < OTHERS - 1; }
static __device__ __forceinline__ bool has_loss(void) { return single() >= CONV2_OWN && other() == OTHERS - 1; }

static __device__ __forceinline__ uint32_t single_place(void) {
  if (has_conv2()) return CONV2_AT + blockIdx.x * CONV2_OWN + single();
  if (other() < CONV2_AT) return other();
  if (other() < CONV2_AT + RL_C2) return CONV2_BIAS_AT + other() - CONV2_AT;
  return HEAD_AT + other() - CONV2_AT - RL_C2;
}

/* The tile of fc1.weight: its first row and column, and where pair i of this thread lies. */
static __device__ __forceinline__ uint32_t tile_top(void) { return blockIdx.x % (RL_FC1 / TILE_ROWS) * TILE_ROWS; }
static __device__ __forceinline__ uint32_t tile_left(void) { return blockIdx.x / (RL_FC1 / TILE_ROWS) * TILE_COLUMNS; }
template <class F> static __device__ __forceinline__ bool has_tile(void) { return threadIdx.x < F::TILE_WARPS_USED * 32; }
template <class F> static __device__ __forceinline__ uint32_t tile_place(int i) {
  return FC1_AT + (tile_top() + F::tile_row(i)) * RL_FLAT + tile_left() + F::tile_column(i);
}

/* That pair as it is updated: in the block, or where it is multiplied from. */
template <class F> static __device__ __forceinline__ float2 *tile_weight(const rl_persistent &e, int i, block_memory<F> &m) {
  return F::KEEPS_WEIGHTS ? &m.weight[i][threadIdx.x] : (float2 *)&e.adam.weights[tile_place<F>(i)];
}

/* fc1's operands for images first, …: the rows of its gradient and the columns of its input. */
template <class F> static __device__ __forceinline__ void fetch_operands(const rl_persistent &e, uint32_t first, uint32_t batch,
                                                                         block_memory<F> &m) {
  typedef typename F::value value;
  const value *d_fc1 = (const value *)e.d_fc1 + (size_t)first * RL_FC1 + tile_top(),
              *pooled2 = (const value *)e.pooled2 + (size_t)first * RL_FLAT + tile_left();
  const int rows = min(batch - first, (uint32_t)TILE_BATCH);
  fetch<F::THREADS, TILE_ROWS>(threadIdx.x, d_fc1, RL_FC1, rows, m.d_fc1_rows, F::ROW_PITCH);
  fetch<F::THREADS, TILE_COLUMNS>(threadIdx.x, pooled2, RL_FLAT, rows, m.pooled2_columns, F::COLUMN_PITCH);
#pragma unroll 1
  for (int i = rows * F::ROW_PITCH + threadIdx.x; i < TILE_BATCH * F::ROW_PITCH; i += F::THREADS) m.d_fc1_rows[i] = (value)0.0f;
#pragma unroll 1
  for (int i = rows * F::COLUMN_PITCH + threadIdx.x; i < TILE_BATCH * F::COLUMN_PITCH; i += F::THREADS)
    m.pooled2_columns[i] = (value)0.0f;
}

/* fc1's weight gradient; the operands of the first images are on their way. */
template <class F> static __device__ __forceinline__ void tile_gradient(const rl_persistent &e, uint32_t batch,
                                                                        block_memory<F> &m, float gradient[F::TILE_PAIRS][2]) {
  for (uint32_t first = 0; first < batch; first += TILE_BATCH) {
    if (first) {
      __syncthreads();
      fetch_operands(e, first, batch, m);
    }
    cp_async_wait_all();
    __syncthreads();
    if (has_tile<F>()) F::fc1_weight_gradient(m.d_fc1_rows, m.pooled2_columns, gradient);
  }
}

/* Rows of partial sums of one of the others. */
typedef struct column {
  const float *top;
  uint32_t stride, rows;
} column;

static __device__ __forceinline__ column other_column(const rl_persistent &e, uint32_t i, uint32_t rows) {
  if (i < CONV2_AT) return {&e.partial_conv1[i], CONV2_AT, 2 * rows};
  if (i < CONV2_AT + RL_C2) return {&e.partial_conv2_bias[i - CONV2_AT], RL_C2, rows};
  if (i < OTHERS) return {&e.partial_head[i - CONV2_AT - RL_C2], RL_HEAD_ROW, rows};
  return {NULL, 0, 0};
}

/* The gradient of this thread's single parameter, still scaled, or the sum of the losses. All rows are asked for before
 * one is added. */
template <class F>
static __device__ __forceinline__ float single_gradient(const rl_persistent &e, uint32_t rows, block_memory<F> &m) {
  enum {
    SPLITS = team<F>::CONV2_SPLITS,
    OTHER_SPLITS = team<F>::OTHER_SPLITS,
    ROWS = (PAIRS + SPLITS - 1) / SPLITS,
    OTHER_ROWS = (2 * PAIRS + OTHER_SPLITS - 1) / OTHER_SPLITS
  };
  const uint32_t quad = threadIdx.x % CONV2_QUADS, split = threadIdx.x / CONV2_QUADS, other_split = threadIdx.x / OTHERS_PITCH,
                 which = threadIdx.x % OTHERS_PITCH;
  const float *from = &e.partial_conv2[blockIdx.x * CONV2_OWN + quad * 4];
  const column others = which < OTHERS_OWN ? other_column(e, blockIdx.x * OTHERS_OWN + which, rows) : column{NULL, 0, 0};
  float4 parts[ROWS];
  float other_parts[OTHER_ROWS];
#pragma unroll
  for (uint32_t i = 0; i < ROWS; i++) {
    const uint32_t row = split + i * SPLITS;
    parts[i] = split < SPLITS && row < rows ? load4(&from[(size_t)row * CONV2_COUNT]) : make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (uint32_t i = 0; i < OTHER_ROWS; i++) {
    const uint32_t row = other_split + i * OTHER_SPLITS;
    other_parts[i] = row < others.rows ? others.top[row * others.stride] : 0.0f;
  }
  for (int i = 1; i < ROWS; i++) parts[0] = added(parts[0], parts[i]);
  for (int i = 1; i < OTHER_ROWS; i++) other_parts[0] += other_parts[i];
  if (split < SPLITS) store4(&m.conv2_sums[split][quad * 4], parts[0]);
  m.other_sums[other_split][which] = other_parts[0];
  __syncthreads();
  float total = 0.0f;
  if (has_conv2())
    for (int i = 0; i < SPLITS; i++) total += m.conv2_sums[i][single()];
  else if (single() >= CONV2_OWN)
    for (int i = 0; i < OTHER_SPLITS; i++) total += m.other_sums[i][single() - CONV2_OWN];
  return total;
}

static __device__ __forceinline__ void update(parameter *p, float gradient, rates r) {
  p->weight = updated(p->weight, gradient, &p->first, &p->second, r);
}

template <class F> static __device__ __forceinline__ void update_tile(const rl_persistent &e,
                                                                      const float gradient[F::TILE_PAIRS][2], rates r,
                                                                      block_memory<F> &m) {
  if (!has_tile<F>()) return;
  for (int i = 0; i < F::TILE_PAIRS; i++) {
    float2 *w = tile_weight(e, i, m), *first = &m.first[i][threadIdx.x], *second = &m.second[i][threadIdx.x];
    parameter a = {w->x, first->x, second->x}, b = {w->y, first->y, second->y};
    update(&a, gradient[i][0], r);
    update(&b, gradient[i][1], r);
    *w = make_float2(a.weight, b.weight);
    *first = make_float2(a.first, b.first);
    *second = make_float2(a.second, b.second);
    if (F::KEEPS_WEIGHTS) store2(multiplied<F>(e) + tile_place<F>(i), a.weight, b.weight);
  }
}

/* This thread's single weight to where others read it in step `turn`, counted from 1. */
template <class F> static __device__ __forceinline__ void publish(const rl_persistent &e, uint32_t turn, float weight) {
  for (int group = 0; group < PAIRS / GROUP && has_other() && other() < SMALL; group++)
    post(&((rl_exchange *)e.exchange)->small[group][other()], turn, weight);
  if (has_conv2()) multiplied<F>(e)[single_place()] = (typename F::value)weight;
  else if (has_other()) e.adam.weights[single_place()] = weight;
}

/* Behind the barrier that all gradients are in front of. What others want first is updated first. */
template <class F> static __device__ __forceinline__ void update_parameters(const rl_persistent &e, const round_of &r,
                                                                            const float gradient[F::TILE_PAIRS][2],
                                                                            block_memory<F> &m) {
  const bool skip = __ldcg(&((rl_exchange *)e.exchange)->overflow) == r.steps_before + 1;
  const rates rate = rates_of(m.state);
  const float total = single_gradient(e, rows_of(r.batch), m);
  if (threadIdx.x == 0) m.state.overflow = skip;
  if (has_loss()) e.adam.losses[r.steps_before] = total / r.batch;
  if (has_conv2() || has_other()) {
    parameter &own = m.single[single()];
    if (!skip) update(&own, total, rate);
    publish<F>(e, r.steps_before + 2, own.weight); /* letters come every step */
  }
  if (!skip) update_tile<F>(e, gradient, rate, m);
}

/* A block's parameters: from memory at the start of a launch; once all have done so, there as they are multiplied; back at its
 * end, once all have done with that. */
template <class F> static __device__ __forceinline__ void load_parameters(const rl_persistent &e, block_memory<F> &m) {
  for (int i = 0; i < F::TILE_PAIRS && has_tile<F>(); i++) {
    const uint32_t at = tile_place<F>(i);
    if (F::KEEPS_WEIGHTS) m.weight[i][threadIdx.x] = *(const float2 *)&e.adam.weights[at];
    m.first[i][threadIdx.x] = *(const float2 *)&e.adam.first[at];
    m.second[i][threadIdx.x] = *(const float2 *)&e.adam.second[at];
  }
  if (has_conv2() || has_other()) m.single[single()] = load_parameter(e.adam, single_place());
}

template <class F> static __device__ __forceinline__ void publish_parameters(const rl_persistent &e, const block_memory<F> &m) {
  for (int i = 0; i < F::TILE_PAIRS && has_tile<F>() && F::KEEPS_WEIGHTS; i++) {
    const float2 w = m.weight[i][threadIdx.x];
    store2(multiplied<F>(e) + tile_place<F>(i), w.x, w.y);
  }
  if (has_conv2() || has_other()) publish<F>(e, 1, m.single[single()].weight);
}

template <class F> static __device__ __forceinline__ void store_parameters(const rl_persistent &e, const block_memory<F> &m) {
  for (int i = 0; i < F::TILE_PAIRS && has_tile<F>(); i++) {
    const uint32_t at = tile_place<F>(i);
    if (F::KEEPS_WEIGHTS) *(float2 *)&e.adam.weights[at] = m.weight[i][threadIdx.x];
    *(float2 *)&e.adam.first[at] = m.first[i][threadIdx.x];
    *(float2 *)&e.adam.second[at] = m.second[i][threadIdx.x];
  }
  if (has_conv2() || has_other()) store_parameter(e.adam, single_place(), m.single[single()]);
}

#endif
