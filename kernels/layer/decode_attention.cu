/* Implements decode_attention.h. The blocks of a cluster share one head. A group of LANES lanes reads the k or v of a token by
 * one load of 16 bytes per lane. The tokens are divided into units, which the warps of the cluster process in turn; a group
 * processes GROUP_TOKENS tokens of a unit. Each group has its own maximum and sums (online softmax, Milakov and Gimelshein 2018).
 * These partial results are combined at the end: in the warp by shuffles, in the block through shared memory, and in the cluster
 * by st.async to block 0. */
#include "layer/decode_attention.h"

#include <float.h>
#include <math.h>

#include "clusters.cuh"
#include "cuda_check.h"
#include "kernel/dtype.h"
#include "kernel/types.cuh"
#include "pdl.cuh"
#include "warp.cuh"

namespace {

enum { WARPS = 8, THREADS = WARPS * 32, WIDTH = 8 /* elements of a vector */ };
enum { GROUP_TOKENS = 6 /* tokens of a unit that a group of lanes processes */, MAX_CLUSTER_BLOCKS = 8 };

/* A partial result over some tokens: the weights are exp2(score - maximum). */
template <int COUNT> struct partial {
  float maximum, total /* of the weights */, sums[COUNT] /* weighted sums of elements of v */;

  /* Raises the maximum to at least `to`, and scales the total and the sums accordingly. */
  __device__ void raise_maximum(float to) {
    const float old = maximum;
    maximum = fmaxf(maximum, to);
    const float factor = exp2f(old - maximum);
    total *= factor;
#pragma unroll
    for (int i = 0; i < COUNT; i++) sums[i] *= factor;
  }
};

/* A partial result of a whole head in shared memory. */
struct alignas(16) head_partial {
  float2 maximum_and_total;
  float2 sums[RL_LAYER_GPU_HEAD_SIZE_MAX / 2];
};

/* The k and v of one head, as the calling lane reads them. */
template <class T, int LANES> struct head_tokens {
  enum { GROUPS = WARP_SIZE / LANES, UNIT_TOKENS = GROUP_TOKENS * GROUPS };
  const T *keys, *values; /* the lane's elements of token 0 */
  size_t stride;          /* elements between tokens */
  uint32_t context;       /* number of tokens */
  bool has_elements;      /* whether the lane's elements are inside the head, which may have fewer than LANES · WIDTH elements */

  /* Returns the token that the calling lane's group reads as number j of a unit. */
  __device__ static uint32_t token_of(uint32_t unit, int j) {
    return unit * UNIT_TOKENS + (uint32_t)j * GROUPS + threadIdx.x % WARP_SIZE / LANES;
  }
  /* Loads the group's tokens of a unit; zeros where there is no token. Reads from L2, because the previous kernel may write to
   * the same cache lines while this kernel runs. */
  __device__ void load(const T *from, uint32_t unit, vec<T> (&to)[GROUP_TOKENS]) const {
#pragma unroll
    for (int j = 0; j < GROUP_TOKENS; j++) {
      const uint32_t token = token_of(unit, j);
      *(uint4 *)&to[j] =
          has_elements && token < context ? __ldcg((const uint4 *)(from + token * stride)) : make_uint4(0, 0, 0, 0);
    }
  }
};

/* What a lane keeps in registers while its warp processes units. */
template <class T> struct lane_registers {
  vec<T> query, k[GROUP_TOKENS], v[GROUP_TOKENS]; /* k and v: of the group's tokens of the current unit */
  float score_scale;
  partial<WIDTH> result; /* over the group's tokens of the earlier units */
};

template <class T, int LANES>
__device__ void load_unit(const head_tokens<T, LANES> &tokens, uint32_t unit, lane_registers<T> &lane) {
  tokens.load(tokens.keys, unit, lane.k);
  tokens.load(tokens.values, unit, lane.v);
}

/* Adds the group's tokens of a unit, whose k and v are loaded, to the group's partial result. Loads k and v of the unit `next`.
 */
template <class T, int LANES>
__device__ void add_unit(const head_tokens<T, LANES> &tokens, uint32_t unit, uint32_t next, lane_registers<T> &lane) {
  float scores[GROUP_TOKENS], elements[WIDTH], query_elements[WIDTH], maximum = lane.result.maximum;
  widen_all<WIDTH>(lane.query.elements, query_elements);
#pragma unroll
  for (int j = 0; j < GROUP_TOKENS; j++) {
    widen_all<WIDTH>(lane.k[j].elements, elements);
    scores[j] = 0;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) scores[j] += query_elements[i] * elements[i];
  }
  tokens.load(tokens.keys, next, lane.k);
#pragma unroll
  for (int j = 0; j < GROUP_TOKENS; j++) {
    scores[j] = lane.score_scale * warp_sum(scores[j], LANES);
    if (tokens.token_of(unit, j) >= tokens.context) scores[j] = -INFINITY;
    maximum = fmaxf(maximum, scores[j]);
  }
  lane.result.raise_maximum(maximum);
#pragma unroll
  for (int j = 0; j < GROUP_TOKENS; j++) {
    const float weight = exp2f(scores[j] - lane.result.maximum);
    widen_all<WIDTH>(lane.v[j].elements, elements);
    lane.result.total += weight;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) lane.result.sums[i] += weight * elements[i];
  }
  tokens.load(tokens.values, next, lane.v);
}

/* Combines the partial results of the groups of a warp; all groups get the combination. */
template <int LANES> __device__ void combine_groups(partial<WIDTH> &result) {
  for (uint32_t mask = LANES; mask < WARP_SIZE; mask *= 2) result.raise_maximum(__shfl_xor_sync(~0u, result.maximum, mask));
  for (uint32_t mask = LANES; mask < WARP_SIZE; mask *= 2) {
    result.total += __shfl_xor_sync(~0u, result.total, mask);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) result.sums[i] += __shfl_xor_sync(~0u, result.sums[i], mask);
  }
}

/* Stores a lane's elements of a partial result; lane 0 of the group also stores the maximum and the total. */
__device__ void store_partial(const partial<WIDTH> &result, uint32_t group_lane, head_partial &to) {
  if (group_lane == 0) to.maximum_and_total = {result.maximum, result.total};
#pragma unroll
  for (int i = 0; i < WIDTH; i += 2) to.sums[(group_lane * WIDTH + i) / 2] = {result.sums[i], result.sums[i + 1]};
}

/* Combines `count` partial results, and returns elements 2 · pair and 2 · pair + 1 of the combination. */
__device__ partial<2> combine(const head_partial *partials, uint32_t count, uint32_t pair) {
  partial<2> result = {partials[0].maximum_and_total.x};
  for (uint32_t i = 1; i < count; i++) result.maximum = fmaxf(result.maximum, partials[i].maximum_and_total.x);
  for (uint32_t i = 0; i < count; i++) {
    const float factor = exp2f(partials[i].maximum_and_total.x - result.maximum);
    const float2 sums = partials[i].sums[pair];
    result.total += factor * partials[i].maximum_and_total.y;
    result.sums[0] += factor * sums.x;
    result.sums[1] += factor * sums.y;
  }
  return result;
}

/* The arguments of the kernel. */
template <class T> struct attend_arguments {
  const T *qkv;
  T *out;
  uint32_t hidden; /* number of elements of a token's q */
  uint32_t head_size;
  uint32_t context; /* number of tokens, of which the last one is new */
  uint32_t blocks_per_head;
  float score_scale;
};

/* Writes elements 2 · pair and 2 · pair + 1 of a head's result. */
template <class T> __device__ void write_pair(const partial<2> &combined, T *out, uint32_t pair) {
  vec<T, 2> rounded;
  narrow(combined.sums[0] / combined.total, &rounded.elements[0]);
  narrow(combined.sums[1] / combined.total, &rounded.elements[1]);
  ((vec<T, 2> *)out)[pair] = rounded;
}

/* The kernel. The grid has blocks_per_head blocks for each head. */
template <class T, int LANES> __global__ void __launch_bounds__(THREADS, 2) attend(attend_arguments<T> arguments) {
  const uint32_t hidden = arguments.hidden, head_size = arguments.head_size, context = arguments.context,
                 blocks_per_head = arguments.blocks_per_head;
  __shared__ head_partial warp_partials[WARPS], block_partials[MAX_CLUSTER_BLOCKS];
  __shared__ mbarrier partials_received;
  const uint32_t rank = blockIdx.x % blocks_per_head, head = blockIdx.x / blocks_per_head, warp = threadIdx.x / WARP_SIZE;
  const uint32_t group_lane = threadIdx.x % LANES, element = head * head_size + group_lane * WIDTH,
                 unit_stride = blocks_per_head * WARPS;
  const T *const first_query = arguments.qkv + element;
  const head_tokens<T, LANES> tokens = {first_query + hidden, first_query + 2 * hidden, (size_t)3 * hidden, context,
                                        group_lane * WIDTH < head_size};
  if (blocks_per_head > 1) {
    if (threadIdx.x == 0) mbarrier_init(&partials_received);
    cluster_arrive();
  }

  lane_registers<T> lane;
  lane.query = {};
  lane.score_scale = arguments.score_scale;
  lane.result = {-FLT_MAX};
  uint32_t unit = rank * WARPS + warp;
  const bool includes_new_token = (unit + 1) * tokens.UNIT_TOKENS >= context;
  if (!includes_new_token) load_unit(tokens, unit, lane);
  pdl_wait(); /* the loads above read only cached tokens, which the previous kernel does not write */
  if (includes_new_token) load_unit(tokens, unit, lane);
  if (tokens.has_elements) *(uint4 *)&lane.query = __ldcg((const uint4 *)(first_query + (size_t)(context - 1) * 3 * hidden));
  for (; unit * tokens.UNIT_TOKENS < context; unit += unit_stride) add_unit(tokens, unit, unit + unit_stride, lane);
  combine_groups<LANES>(lane.result);
  if (threadIdx.x % WARP_SIZE < LANES && tokens.has_elements) store_partial(lane.result, group_lane, warp_partials[warp]);
  __syncthreads();

  const uint32_t pair = threadIdx.x;
  const bool has_pair = pair < head_size / 2;
  partial<2> combined = {};
  if (has_pair) combined = combine(warp_partials, WARPS, pair);
  if (blocks_per_head > 1) {
    cluster_wait(); /* the mbarrier of block 0 is initialised */
    if (rank > 0) {
      if (has_pair)
        st_async(0, (float *)&block_partials[rank].sums[pair], {combined.sums[0], combined.sums[1]}, &partials_received);
      if (pair == 0)
        st_async(0, (float *)&block_partials[rank].maximum_and_total, {combined.maximum, combined.total}, &partials_received);
      return;
    }
    if (has_pair) block_partials[0].sums[pair] = {combined.sums[0], combined.sums[1]};
    if (pair == 0) {
      block_partials[0].maximum_and_total = {combined.maximum, combined.total};
      mbarrier_arrive_expect_tx(&partials_received, (blocks_per_head - 1) * (head_size + 2) * (uint32_t)sizeof(float));
    }
    __syncthreads();
    while (!mbarrier_try_wait(&partials_received, 1)) {
    }
    if (has_pair) combined = combine(block_partials, blocks_per_head, pair);
  }
  if (has_pair) write_pair(combined, arguments.out + head * head_size, pair);
}

/* Returns the largest power of two up to MAX_CLUSTER_BLOCKS with which each block has its own multiprocessor; at least 1. */
uint32_t choose_blocks_per_head(const rl_decode_attention *attention) {
  uint32_t blocks_per_head = 1;
  while (2 * blocks_per_head * attention->heads <= attention->multiprocessors && blocks_per_head < MAX_CLUSTER_BLOCKS)
    blocks_per_head *= 2;
  return blocks_per_head;
}

template <class T, int LANES> int launch(const rl_decode_attention *attention, cudaStream_t stream, rl_error *err) {
  const uint32_t blocks_per_head = choose_blocks_per_head(attention);
  const float score_scale = (float)(M_LOG2E / sqrt((double)attention->head_size)); /* weights are computed by exp2 */
  const rl_pdl_sizes sizes = {(uint32_t)attention->heads * blocks_per_head, THREADS, 0, blocks_per_head};
  const attend_arguments<T> arguments = {(const T *)attention->qkv,
                                         (T *)attention->out,
                                         (uint32_t)(attention->heads * attention->head_size),
                                         (uint32_t)attention->head_size,
                                         (uint32_t)attention->context,
                                         blocks_per_head,
                                         score_scale};
  return rl_pdl_launch_sizes("attention", attend<T, LANES>, sizes, stream, err, arguments);
}

/* Launches the kernel with as many lanes per group as cover a head. */
template <class T> int launch_with_lanes(const rl_decode_attention *attention, cudaStream_t stream, rl_error *err) {
  return attention->head_size <= 64    ? launch<T, 8>(attention, stream, err)
         : attention->head_size <= 128 ? launch<T, 16>(attention, stream, err)
                                       : launch<T, 32>(attention, stream, err);
}

}  // namespace

int rl_decode_attention_launch(const rl_decode_attention *attention, cudaStream_t stream, rl_error *err) {
  return attention->dtype == RL_DTYPE_FP16 ? launch_with_lanes<__half>(attention, stream, err)
                                           : launch_with_lanes<__nv_bfloat16>(attention, stream, err);
}
