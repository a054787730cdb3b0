/* A warp computes the outputs of one unit at a time: one output (ADD), or a pair, which the epilogue combines: gate and up
 * (GATE), or the two elements that rope rotates (ROPE). Each lane reads vectors of 16 bytes of the unit's rows of weights. It
 * keeps LOADS vectors in registers. As soon as it has used one, it replaces it by a vector of the next step, which may belong to
 * the warp's next unit, so the number of loads in flight is constant.
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

enum { WARPS = 16, THREADS = WARPS * 32, WIDTH = 8 /* elements of a vector */, LOADS = 16, MAX_SHARED_BYTES = 48 << 10 };

/* --- epilogues --------------------------------------------------------------------------------------------------------- */

/* Each epilogue has ROWS, the number of rows of weights of a unit; row_of, the index of row k of a unit; load, which returns what
 * finish needs besides the sums; and finish, which stores the outputs of a unit. */
template <class T> struct add_epilogue {
  enum { NORMALIZES = false, ROWS = 1 };
  const T *addend;
  T *out;
  __device__ uint32_t row_of(uint32_t unit, int) const { return unit; }
  __device__ float2 load(uint32_t unit) const {
    T added;
    *(uint16_t *)&added = __ldcg((const uint16_t *)addend + unit);
    return {widen(added), 0};
  }
  __device__ void finish(uint32_t unit, const float (&sums)[ROWS], float2 added) const { narrow(sums[0] + added.x, &out[unit]); }
};

template <class T> struct gate_epilogue { /* the weights of up follow up_offset rows after those of the gate */
  enum { NORMALIZES = true, ROWS = 2 };
  T *out;
  uint32_t up_offset;
  __device__ uint32_t row_of(uint32_t unit, int k) const { return unit + (uint32_t)k * up_offset; }
  __device__ float2 load(uint32_t) const { return {}; }
  __device__ void finish(uint32_t unit, const float (&sums)[ROWS], float2) const {
    narrow(sums[0] / (1 + expf(-sums[0])) * sums[1], &out[unit]);
  }
};

template <class T> struct rope_epilogue {
  enum { NORMALIZES = true, ROWS = 2 };
  T *out;
  const float2 *rotations; /* [half_head] */
  uint32_t half_head, rotated_columns;
  __device__ uint32_t row_of(uint32_t unit, int k) const {
    return unit / half_head * 2 * half_head + unit % half_head + (uint32_t)k * half_head;
  }
  __device__ float2 load(uint32_t unit) const {
    return row_of(unit, 0) < rotated_columns ? rotations[unit % half_head] : make_float2(1, 0);
  }
  __device__ void finish(uint32_t unit, const float (&sums)[ROWS], float2 rotation) const {
    narrow(sums[0] * rotation.x - sums[1] * rotation.y, &out[row_of(unit, 0)]);
    narrow(sums[1] * rotation.x + sums[0] * rotation.y, &out[row_of(unit, 1)]);
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

/* Copies a row to shared memory and pads it with zeros to whole steps of STEP vectors. Reads from L2, because the previous kernel
 * may write the row while this one runs. */
template <int STEP, class T> __device__ void copy_row(const vec<T> *from, vec<T> *to, uint32_t vectors) {
  for (uint32_t i = threadIdx.x; i < (vectors + STEP - 1) / STEP * STEP; i += THREADS)
    *(uint4 *)&to[i] = i < vectors ? __ldcg((const uint4 *)&from[i]) : make_uint4(0, 0, 0, 0);
}

/* --- the product --------------------------------------------------------------------------------------------------------- */

/* Assigns units of work to the warps of the grid: the first `warps` units statically, the others by tickets from a counter,
 * because some multiprocessors get more of the memory bandwidth than others. A warp takes each ticket one unit ahead, to hide the
 * latency. So each warp takes one ticket for which there is no unit; the warp that takes the last of these resets the counter for
 * the next launch. */
struct unit_scheduler {
  uint32_t *next_ticket, units, warps;
  uint32_t ticket; /* valid in lane 0 */

  __device__ void take_ticket() {
    if (threadIdx.x % WARP_SIZE == 0) ticket = atomicAdd(next_ticket, 1);
  }
  /* Returns the index of the warp's next unit, or `units` or more if none is left. Must not be called after that. */
  __device__ uint32_t next() {
    const uint32_t last_ticket = (units > warps ? units - warps : 0) + warps - 1;
    if (threadIdx.x % WARP_SIZE == 0 && ticket == last_ticket) *next_ticket = 0;
    const uint32_t unit = warps + __shfl_sync(~0u, ticket, 0);
    if (unit < units) take_ticket();
    return unit;
  }
};

/* Loads the rows of weights of a warp's units in order, a step of a unit at a time. */
template <class T, class EPILOGUE> struct weight_stream {
  enum { ROWS = EPILOGUE::ROWS, UNROLL = LOADS / ROWS, STEP = UNROLL * WARP_SIZE };
  const vec<T> *weight;
  const EPILOGUE &epilogue;
  unit_scheduler scheduler;
  uint32_t vectors, unit, first; /* first: index of the lane's first vector of the step in its row */
  const vec<T> *rows[ROWS];

  __device__ void begin(uint32_t next) {
    unit = next;
    first = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int k = 0; k < ROWS; k++) rows[k] = weight + (size_t)epilogue.row_of(unit, k) * vectors;
  }
  /* Loads vector j of the step. Returns zeros beyond the row and after the last unit. */
  __device__ void load(int j, vec<T> (&to)[ROWS]) const {
    const uint32_t i = first + (uint32_t)j * WARP_SIZE;
    const bool exists = unit < scheduler.units && i < vectors;
#pragma unroll
    for (int k = 0; k < ROWS; k++) *(uint4 *)&to[k] = exists ? __ldcs((const uint4 *)&rows[k][i]) : make_uint4(0, 0, 0, 0);
  }
  __device__ void advance() {
    first += STEP;
    if (first - threadIdx.x % WARP_SIZE >= vectors && unit < scheduler.units) begin(scheduler.next());
  }
};

template <class T, int ROWS> __device__ void multiply_add(const vec<T> &x, const vec<T> (&weights)[ROWS], float (&sums)[ROWS]) {
  float left[WIDTH], right[WIDTH];
  widen_all<WIDTH>(x.elements, left);
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    widen_all<WIDTH>(weights[k].elements, right);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sums[k] += left[i] * right[i];
  }
}

template <class T, class EPILOGUE> __global__ void __launch_bounds__(THREADS, 1)
    multiply_row(const vec<T> *__restrict__ x, const vec<T> *__restrict__ weight, uint32_t vectors, uint32_t units,
                 uint32_t *next_ticket, row_norm<T> norm, EPILOGUE epilogue) {
  typedef weight_stream<T, EPILOGUE> weights;
  extern __shared__ uint4 row_memory[];
  vec<T> *const row = (vec<T> *)row_memory, ring[weights::UNROLL][weights::ROWS];
  const uint32_t lane = threadIdx.x % WARP_SIZE;
  weights stream = {weight, epilogue, {next_ticket, units, gridDim.x * WARPS}, vectors};
  stream.begin(blockIdx.x + gridDim.x * (threadIdx.x / WARP_SIZE)); /* the last units are spread over all multiprocessors */
  uint32_t unit = stream.unit;
#pragma unroll
  for (int j = 0; j < weights::UNROLL; j++) stream.load(j, ring[j]);
  pdl_wait(); /* the loads above do not depend on the previous kernel */
  stream.scheduler.take_ticket();
  copy_row<weights::STEP>(x, row, vectors);
  if (EPILOGUE::NORMALIZES) normalize(row, vectors, norm);
  __syncthreads();
  stream.advance();
  if (unit >= units) stream.scheduler.next();
  while (unit < units) {
    const float2 operands = epilogue.load(unit);
    float sums[weights::ROWS] = {};
    uint32_t loaded_unit;
    for (uint32_t i = lane; i - lane < vectors; i += weights::STEP) {
      loaded_unit = stream.unit;
#pragma unroll
      for (int j = 0; j < weights::UNROLL; j++) {
        multiply_add<T, weights::ROWS>(row[i + (uint32_t)j * WARP_SIZE], ring[j], sums);
        stream.load(j, ring[j]);
      }
      stream.advance();
    }
#pragma unroll
    for (int k = 0; k < weights::ROWS; k++) sums[k] = warp_sum(sums[k]);
    if (lane == 0) epilogue.finish(unit, sums, operands);
    unit = loaded_unit;
  }
}

template <class T, class EPILOGUE>
int launch(const rl_row_product *p, uint32_t units, EPILOGUE epilogue, cudaStream_t stream, rl_error *err) {
  const uint32_t step = weight_stream<T, EPILOGUE>::STEP, vectors = (uint32_t)p->inputs / WIDTH,
                 shared_bytes = (vectors + step - 1) / step * step * 16, blocks = (units + WARPS - 1) / WARPS;
  const row_norm<T> norm = {(const vec<T> *)p->norm_weight, (const vec<T> *)p->norm_bias};
  return rl_pdl_launch("a product of a row", multiply_row<T, EPILOGUE>,
                       blocks < p->multiprocessors ? blocks : (uint32_t)p->multiprocessors, THREADS, shared_bytes, stream, err,
                       (const vec<T> *)p->x, (const vec<T> *)p->weight, vectors, units, p->next_ticket, norm, epilogue);
}

template <class T> int launch_epilogue(const rl_row_product *p, cudaStream_t stream, rl_error *err) {
  const uint32_t columns = (uint32_t)p->columns;
  T *out = (T *)p->out;
  switch (p->epilogue) {
    case RL_ROW_ADD: return launch<T>(p, columns, add_epilogue<T>{(const T *)p->addend, out}, stream, err);
    case RL_ROW_GATE: {
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

bool rl_row_product_supports(int64_t inputs) {
  const int64_t step = LOADS * WARP_SIZE, vectors = inputs / WIDTH;
  return (vectors + step - 1) / step * step * 16 <= MAX_SHARED_BYTES;
}

int rl_row_product_launch(const rl_row_product *product, cudaStream_t stream, rl_error *err) {
  return product->dtype == RL_DTYPE_FP16 ? launch_epilogue<__half>(product, stream, err)
                                         : launch_epilogue<__nv_bfloat16>(product, stream, err);
}
