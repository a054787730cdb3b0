/* The blocks of a cluster share one head. A group of LANES lanes reads the k or v of a token by one load of 16 bytes per lane;
 * the warps of the cluster take tokens in turn. Each group keeps its own maximum and sums (online softmax, Milakov and Gimelshein
 * 2018), which are combined at the end: in the warp by shuffles, in the block by shared memory, in the cluster by st.async to
 * block 0. */
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

enum { WARPS = 8, THREADS = WARPS * 32, WIDTH = 8 /* elements of a vector */, UNROLL = 6 };
enum { MAX_CLUSTER = 8 };

/* A partial result over some tokens: the weights are exp2(score - maximum). */
template <int COUNT> struct partial {
  float maximum, total /* of the weights */, sums[COUNT] /* weighted sums of elements of v */;

  /* Returns the factor for the sums after the maximum has been raised. */
  __device__ float raise(float to) {
    const float old = maximum;
    maximum = fmaxf(maximum, to);
    const float factor = exp2f(old - maximum);
    total *= factor;
#pragma unroll
    for (int i = 0; i < COUNT; i++) sums[i] *= factor;
    return factor;
  }
};

/* A partial result of a whole head in shared memory. */
struct alignas(16) head_partial {
  float2 maximum_and_total;
  float2 sums[RL_LAYER_GPU_HEAD_SIZE_MAX / 2];
};

/* The memory of one head. A group of lanes reads UNROLL tokens of each unit. */
template <class T, int LANES> struct head_tokens {
  enum { GROUPS = WARP_SIZE / LANES, TOKENS = UNROLL * GROUPS /* tokens of a unit */ };
  const T *keys, *values; /* the lane's elements of token 0 */
  size_t stride;          /* elements between tokens */
  uint32_t context;
  bool has_elements; /* false: the head has fewer elements than the group's lanes read */

  __device__ static uint32_t token_of(uint32_t unit, int j) {
    return unit * TOKENS + (uint32_t)j * GROUPS + threadIdx.x % WARP_SIZE / LANES;
  }
  /* Reads from L2, because the previous kernel may write to the same cache line while this one runs. */
  __device__ void load(const T *from, uint32_t unit, vec<T> (&to)[UNROLL]) const {
#pragma unroll
    for (int j = 0; j < UNROLL; j++) {
      const uint32_t token = token_of(unit, j);
      *(uint4 *)&to[j] =
          has_elements && token < context ? __ldcg((const uint4 *)(from + token * stride)) : make_uint4(0, 0, 0, 0);
    }
  }
};

/* Adds the tokens of a unit to the group's partial result, and loads the unit `next` in place of k and v. */
template <class T, int LANES> __device__ void add_unit(const head_tokens<T, LANES> &tokens, const vec<T> &query,
                                                       float score_scale, uint32_t unit, uint32_t next, vec<T> (&k)[UNROLL],
                                                       vec<T> (&v)[UNROLL], partial<WIDTH> &result) {
  float scores[UNROLL], elements[WIDTH], query_elements[WIDTH], maximum = result.maximum;
  widen_all<WIDTH>(query.elements, query_elements);
#pragma unroll
  for (int j = 0; j < UNROLL; j++) {
    widen_all<WIDTH>(k[j].elements, elements);
    scores[j] = 0;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) scores[j] += query_elements[i] * elements[i];
  }
  tokens.load(tokens.keys, next, k);
#pragma unroll
  for (int j = 0; j < UNROLL; j++) {
    scores[j] = score_scale * warp_sum(scores[j], LANES);
    if (tokens.token_of(unit, j) >= tokens.context) scores[j] = -INFINITY;
    maximum = fmaxf(maximum, scores[j]);
  }
  result.raise(maximum);
#pragma unroll
  for (int j = 0; j < UNROLL; j++) {
    const float weight = exp2f(scores[j] - result.maximum);
    widen_all<WIDTH>(v[j].elements, elements);
    result.total += weight;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) result.sums[i] += weight * elements[i];
  }
  tokens.load(tokens.values, next, v);
}

/* Combines the results of the groups of a warp. All groups get the result. */
template <int LANES> __device__ void combine_groups(partial<WIDTH> &result) {
  for (uint32_t mask = LANES; mask < WARP_SIZE; mask *= 2) result.raise(__shfl_xor_sync(~0u, result.maximum, mask));
  for (uint32_t mask = LANES; mask < WARP_SIZE; mask *= 2) {
    result.total += __shfl_xor_sync(~0u, result.total, mask);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) result.sums[i] += __shfl_xor_sync(~0u, result.sums[i], mask);
  }
}

/* Returns elements 2 · pair and 2 · pair + 1 of the combination of `count` results. */
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

template <class T, int LANES> __global__ void __launch_bounds__(THREADS, 2)
    attend(const T *qkv, T *out, uint32_t hidden, uint32_t head_size, uint32_t context, uint32_t splits, float score_scale) {
  __shared__ head_partial of_warps[WARPS], of_blocks[MAX_CLUSTER];
  __shared__ mbarrier received;
  const uint32_t rank = blockIdx.x % splits, head = blockIdx.x / splits, warp = threadIdx.x / WARP_SIZE;
  const uint32_t lane = threadIdx.x % LANES, element = head * head_size + lane * WIDTH, stride = splits * WARPS;
  const T *const tokens_of_head = qkv + element;
  const head_tokens<T, LANES> tokens = {tokens_of_head + hidden, tokens_of_head + 2 * hidden, (size_t)3 * hidden, context,
                                        lane * WIDTH < head_size};
  if (splits > 1) {
    if (threadIdx.x == 0) mbarrier_init(&received);
    cluster_arrive();
  }

  vec<T> k[UNROLL], v[UNROLL], query = {};
  uint32_t unit = rank * WARPS + warp;
  const bool has_new_token = (unit + 1) * tokens.TOKENS >= context;
  if (!has_new_token) tokens.load(tokens.keys, unit, k), tokens.load(tokens.values, unit, v);
  pdl_wait(); /* the loads above are those of cached tokens */
  if (has_new_token) tokens.load(tokens.keys, unit, k), tokens.load(tokens.values, unit, v);
  if (tokens.has_elements) *(uint4 *)&query = __ldcg((const uint4 *)(tokens_of_head + (size_t)(context - 1) * 3 * hidden));
  partial<WIDTH> result = {-FLT_MAX};
  for (; unit * tokens.TOKENS < context; unit += stride) add_unit(tokens, query, score_scale, unit, unit + stride, k, v, result);
  combine_groups<LANES>(result);
  if (threadIdx.x % WARP_SIZE < LANES && tokens.has_elements) {
    if (lane == 0) of_warps[warp].maximum_and_total = {result.maximum, result.total};
#pragma unroll
    for (int i = 0; i < WIDTH; i += 2) of_warps[warp].sums[(lane * WIDTH + i) / 2] = {result.sums[i], result.sums[i + 1]};
  }
  __syncthreads();

  const uint32_t pair = threadIdx.x;
  const bool has_pair = pair < head_size / 2;
  partial<2> combined = {};
  if (has_pair) combined = combine(of_warps, WARPS, pair);
  if (splits > 1) {
    cluster_wait(); /* the mbarrier of block 0 is initialised */
    if (rank > 0) {
      if (has_pair) st_async(0, (float *)&of_blocks[rank].sums[pair], {combined.sums[0], combined.sums[1]}, &received);
      if (pair == 0) st_async(0, (float *)&of_blocks[rank].maximum_and_total, {combined.maximum, combined.total}, &received);
      return;
    }
    if (has_pair) of_blocks[0].sums[pair] = {combined.sums[0], combined.sums[1]};
    if (pair == 0) {
      of_blocks[0].maximum_and_total = {combined.maximum, combined.total};
      mbarrier_arrive_expect_tx(&received, (splits - 1) * (head_size + 2) * (uint32_t)sizeof(float));
    }
    __syncthreads();
    while (!mbarrier_try_wait(&received, 1)) {
    }
    if (has_pair) combined = combine(of_blocks, splits, pair);
  }
  if (!has_pair) return;
  vec<T, 2> rounded;
  narrow(combined.sums[0] / combined.total, &rounded.elements[0]);
  narrow(combined.sums[1] / combined.total, &rounded.elements[1]);
  ((vec<T, 2> *)out)[head * head_size / 2 + pair] = rounded;
}

/* Returns the number of blocks of a head: as many as multiprocessors allow, a power of two. */
uint32_t splits_of(const rl_decode_attention *a) {
  uint32_t splits = 1;
  while (2 * splits * a->heads <= a->multiprocessors && splits < MAX_CLUSTER) splits *= 2;
  return splits;
}

template <class T, int LANES> int launch(const rl_decode_attention *a, cudaStream_t stream, rl_error *err) {
  const uint32_t splits = splits_of(a);
  const float score_scale = (float)(M_LOG2E / sqrt((double)a->head_size)); /* weights are powers of two */
  const rl_pdl_sizes sizes = {(uint32_t)a->heads * splits, THREADS, 0, splits};
  return rl_pdl_launch_sizes("attention", attend<T, LANES>, sizes, stream, err, (const T *)a->qkv, (T *)a->out,
                             (uint32_t)(a->heads * a->head_size), (uint32_t)a->head_size, (uint32_t)a->context, splits,
                             score_scale);
}

template <class T> int launch_lanes(const rl_decode_attention *a, cudaStream_t stream, rl_error *err) {
  return a->head_size <= 64    ? launch<T, 8>(a, stream, err)
         : a->head_size <= 128 ? launch<T, 16>(a, stream, err)
                               : launch<T, 32>(a, stream, err);
}

}  // namespace

int rl_decode_attention_launch(const rl_decode_attention *attention, cudaStream_t stream, rl_error *err) {
  return attention->dtype == RL_DTYPE_FP16 ? launch_lanes<__half>(attention, stream, err)
                                           : launch_lanes<__nv_bfloat16>(attention, stream, err);
}
