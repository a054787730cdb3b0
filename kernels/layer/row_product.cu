/* Implements row_product.h. Each warp computes pairs of outputs, which the epilogue combines: neighbours (ADD), gate and up
 * (GATE), or the two elements that rope rotates (ROPE). A lane reads vectors of 16 bytes of both rows of weights, and holds
 * UNROLL vectors of each row in registers. As soon as it has used a vector, it loads the vector UNROLL places ahead into the same
 * registers. That vector may belong to the warp's next pair, so the number of loads in flight is constant.
 *
 * A block occupies all registers of a multiprocessor. The blocks of the next kernel therefore start one by one, as those of this
 * kernel exit, and load their first vectors while the last blocks of this kernel run. */
#include "layer/row_product.h"

#include "cuda_check.h"
#include "kernel/dtype.h"
#include "kernel/norm.h"
#include "kernel/types.cuh"
#include "pdl.cuh"
#include "warp.cuh"

namespace {

enum { WARPS = 16, THREADS = WARPS * 32, WIDTH = 8 /* elements of a vector */, UNROLL = 8 };
enum { STEP = UNROLL * 32 /* vectors of a row that a warp reads at once */, MAX_SHARED_BYTES = 48 << 10 };

/* --- epilogues --------------------------------------------------------------------------------------------------------- */

struct weight_rows { /* indices of the rows of weights of a pair of outputs */
  uint32_t first, second;
};

/* An epilogue is a struct with
 *   NORMALIZES                            whether the product multiplies layernorm(x) instead of x
 *   rows_of(pair)                         returns the rows of weights of a pair
 *   load(pair)                            returns the operands of `finish` in addition to the sums
 *   finish(pair, first, second, operands) computes a pair of outputs from its two sums, and stores them */
template <class T> struct add_epilogue {
  enum { NORMALIZES = false };
  const T *addend;
  T *out;
  __device__ weight_rows rows_of(uint32_t pair) const { return {2 * pair, 2 * pair + 1}; }
  __device__ float2 load(uint32_t pair) const {
    vec<T, 2> addends;
    *(uint32_t *)&addends = __ldcg((const uint32_t *)addend + pair);
    return {widen(addends.elements[0]), widen(addends.elements[1])};
  }
  __device__ void finish(uint32_t pair, float first, float second, float2 addends) const {
    narrow(first + addends.x, &out[2 * pair]);
    narrow(second + addends.y, &out[2 * pair + 1]);
  }
};

template <class T> struct gate_epilogue { /* the weights of up follow up_offset rows after those of the gate */
  enum { NORMALIZES = true };
  T *out;
  uint32_t up_offset;
  __device__ weight_rows rows_of(uint32_t pair) const { return {pair, pair + up_offset}; }
  __device__ float2 load(uint32_t) const { return {}; }
  __device__ void finish(uint32_t pair, float gate, float up, float2) const { narrow(gate / (1 + expf(-gate)) * up, &out[pair]); }
};

template <class T> struct rope_epilogue {
  enum { NORMALIZES = true };
  T *out;
  const float2 *rotations; /* [half_head] */
  uint32_t half_head, rotated_columns;
  __device__ weight_rows rows_of(uint32_t pair) const {
    const uint32_t first = pair / half_head * 2 * half_head + pair % half_head;
    return {first, first + half_head};
  }
  __device__ float2 load(uint32_t pair) const {
    return rows_of(pair).first < rotated_columns ? rotations[pair % half_head] : make_float2(1, 0);
  }
  __device__ void finish(uint32_t pair, float first, float second, float2 rotation) const {
    const weight_rows rows = rows_of(pair);
    narrow(first * rotation.x - second * rotation.y, &out[rows.first]);
    narrow(second * rotation.x + first * rotation.y, &out[rows.second]);
  }
};

/* --- the row x --------------------------------------------------------------------------------------------------------- */

/* Returns the sum over the block. All threads call it. */
__device__ float block_sum(float x) {
  __shared__ float sums[WARPS];
  x = warp_sum(x);
  __syncthreads(); /* WAR: all threads have read the sums of the previous call */
  if (threadIdx.x % WARP_SIZE == 0) sums[threadIdx.x / WARP_SIZE] = x;
  __syncthreads();
  x = 0;
#pragma unroll
  for (int i = 0; i < WARPS; i++) x += sums[i];
  return x;
}

template <class T> struct row_norm { const vec<T> *weight, *bias; };

/* Replaces x by layernorm(x). A thread processes the vectors threadIdx.x, threadIdx.x + THREADS, …, as in copy_row. */
template <class T> __device__ void normalize(vec<T> *x, uint32_t vectors, row_norm<T> norm) {
  float sum = 0, squares = 0, values[WIDTH];
  for (uint32_t i = threadIdx.x; i < vectors; i += THREADS) {
    const vec<T> vector = x[i];
    widen_all<WIDTH>(vector.elements, values);
#pragma unroll
    for (int k = 0; k < WIDTH; k++) sum += values[k];
  }
  const float columns = (float)(vectors * WIDTH), mean = block_sum(sum) / columns;
  for (uint32_t i = threadIdx.x; i < vectors; i += THREADS) {
    const vec<T> vector = x[i];
    widen_all<WIDTH>(vector.elements, values);
#pragma unroll
    for (int k = 0; k < WIDTH; k++) squares += (values[k] - mean) * (values[k] - mean);
  }
  const float scale = rsqrtf(block_sum(squares) / columns + (float)RL_NORM_EPSILON);
  for (uint32_t i = threadIdx.x; i < vectors; i += THREADS) {
    vec<T> vector = x[i];
    const vec<T> weight = norm.weight[i], bias = norm.bias[i];
    float weights[WIDTH], biases[WIDTH];
    widen_all<WIDTH>(vector.elements, values);
    widen_all<WIDTH>(weight.elements, weights);
    widen_all<WIDTH>(bias.elements, biases);
#pragma unroll
    for (int k = 0; k < WIDTH; k++) values[k] = (values[k] - mean) * scale * weights[k] + biases[k];
    narrow_all<WIDTH>(values, vector.elements);
    x[i] = vector;
  }
}

/* Copies a row to shared memory and pads it with zeros to a multiple of STEP vectors. Reads from L2, because the previous kernel
 * may write the row while this kernel runs. */
template <class T> __device__ void copy_row(const vec<T> *from, vec<T> *to, uint32_t vectors) {
  for (uint32_t i = threadIdx.x; i < (vectors + STEP - 1) / STEP * STEP; i += THREADS)
    *(uint4 *)&to[i] = i < vectors ? __ldcg((const uint4 *)&from[i]) : make_uint4(0, 0, 0, 0);
}

/* --- the product --------------------------------------------------------------------------------------------------------- */

/* Loads the weights of a warp's pairs in order, STEP vectors of each of a pair's two rows at a time. */
template <class T, class EPILOGUE> struct weight_stream {
  const vec<T> *weight;
  const EPILOGUE &epilogue;
  uint32_t vectors, pairs; /* vectors of a row; number of pairs of the product */
  uint32_t pair, first;    /* current pair; index of the lane's first vector of the step in each row */
  const vec<T> *rows[2];

  __device__ void begin_pair(uint32_t next) {
    pair = next;
    first = threadIdx.x % WARP_SIZE;
    const weight_rows indices = epilogue.rows_of(pair);
    rows[0] = weight + (size_t)indices.first * vectors;
    rows[1] = weight + (size_t)indices.second * vectors;
  }
  /* Loads vector j of the step from both rows; zeros beyond the end of a row and after the last pair. */
  __device__ void load(int j, vec<T> (&to)[2]) const {
    const uint32_t i = first + (uint32_t)j * WARP_SIZE;
    const bool exists = pair < pairs && i < vectors;
#pragma unroll
    for (int k = 0; k < 2; k++) *(uint4 *)&to[k] = exists ? __ldcs((const uint4 *)&rows[k][i]) : make_uint4(0, 0, 0, 0);
  }
  __device__ void advance() {
    first += STEP;
    if (first - threadIdx.x % WARP_SIZE >= vectors) begin_pair(pair + gridDim.x * WARPS);
  }
};

template <class T> __device__ void multiply_add(const vec<T> &x, const vec<T> (&weights)[2], float (&sums)[2]) {
  float left[WIDTH], right[WIDTH];
  widen_all<WIDTH>(x.elements, left);
#pragma unroll
  for (int k = 0; k < 2; k++) {
    widen_all<WIDTH>(weights[k].elements, right);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sums[k] += left[i] * right[i];
  }
}

/* The kernel. The pairs of a warp are gridDim.x · WARPS apart, so that the last pairs of the product are spread over all
 * multiprocessors. */
template <class T, class EPILOGUE> __global__ void __launch_bounds__(THREADS, 1)
    multiply_row(const vec<T> *__restrict__ x, const vec<T> *__restrict__ weight, uint32_t vectors, uint32_t pairs,
                 row_norm<T> norm, EPILOGUE epilogue) {
  extern __shared__ uint4 row_memory[];
  vec<T> *const row = (vec<T> *)row_memory, prefetched[UNROLL][2];
  const uint32_t lane = threadIdx.x % WARP_SIZE;
  weight_stream<T, EPILOGUE> stream = {weight, epilogue, vectors, pairs};
  stream.begin_pair(blockIdx.x + gridDim.x * (threadIdx.x / WARP_SIZE));
  uint32_t pair = stream.pair;
#pragma unroll
  for (int j = 0; j < UNROLL; j++) stream.load(j, prefetched[j]);
  stream.advance();
  pdl_wait(); /* the loads above do not depend on the previous kernel */
  copy_row(x, row, vectors);
  if (EPILOGUE::NORMALIZES) normalize(row, vectors, norm);
  __syncthreads();
  for (; pair < pairs; pair += gridDim.x * WARPS) {
    const float2 operands = epilogue.load(pair);
    float sums[2] = {0, 0};
    for (uint32_t i = lane; i - lane < vectors; i += STEP) {
#pragma unroll
      for (int j = 0; j < UNROLL; j++) {
        multiply_add(row[i + (uint32_t)j * WARP_SIZE], prefetched[j], sums);
        stream.load(j, prefetched[j]);
      }
      stream.advance();
    }
    sums[0] = warp_sum(sums[0]), sums[1] = warp_sum(sums[1]);
    if (lane == 0) epilogue.finish(pair, sums[0], sums[1], operands);
  }
}

template <class T, class EPILOGUE>
int launch(const rl_row_product *p, uint32_t pairs, EPILOGUE epilogue, cudaStream_t stream, rl_error *err) {
  const uint32_t vectors = (uint32_t)p->inputs / WIDTH, shared_bytes = (vectors + STEP - 1) / STEP * STEP * 16,
                 blocks = (pairs + WARPS - 1) / WARPS;
  const row_norm<T> norm = {(const vec<T> *)p->norm_weight, (const vec<T> *)p->norm_bias};
  return rl_pdl_launch("a product of a row", multiply_row<T, EPILOGUE>,
                       blocks < p->multiprocessors ? blocks : (uint32_t)p->multiprocessors, THREADS, shared_bytes, stream, err,
                       (const vec<T> *)p->x, (const vec<T> *)p->weight, vectors, pairs, norm, epilogue);
}

template <class T> int launch_epilogue(const rl_row_product *p, cudaStream_t stream, rl_error *err) {
  const uint32_t columns = (uint32_t)p->columns;
  T *out = (T *)p->out;
  switch (p->epilogue) {
    case RL_HOPPER_ADD: return launch<T>(p, columns / 2, add_epilogue<T>{(const T *)p->addend, out}, stream, err);
    case RL_HOPPER_GATE: {
      const ptrdiff_t up_elements = (const T *)p->up_weight - (const T *)p->weight;
      return launch<T>(p, columns, gate_epilogue<T>{out, (uint32_t)(up_elements / p->inputs)}, stream, err);
    }
    default:
      return launch<T>(
          p, columns / 2,
          rope_epilogue<T>{out, (const float2 *)p->rotations, (uint32_t)p->head_size / 2, (uint32_t)p->rotated_columns}, stream,
          err);
  }
}

}  // namespace

bool rl_row_product_supports(rl_hopper_epilogue epilogue, int64_t inputs) {
  const int64_t row_bytes = (inputs / WIDTH + STEP - 1) / STEP * STEP * 16;
  const int64_t static_bytes = epilogue == RL_HOPPER_ADD ? 0 : WARPS * (int64_t)sizeof(float); /* of block_sum, for layernorm */
  return row_bytes + static_bytes <= MAX_SHARED_BYTES;
}

int rl_row_product_launch(const rl_row_product *product, cudaStream_t stream, rl_error *err) {
  return product->dtype == RL_DTYPE_FP16 ? launch_epilogue<__half>(product, stream, err)
                                         : launch_epilogue<__nv_bfloat16>(product, stream, err);
}
