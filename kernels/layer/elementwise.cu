/* Implements layer/elementwise.h. Each thread processes vectors of 16 bytes, and computes in float. */
#include "layer/elementwise.h"

#include "cuda_check.h"
#include "kernel/dtype.h"
#include "kernel/norm.cuh"
#include "kernel/types.cuh"

/* Evaluates the expression CALL, in which T is the element type, and returns its value from the calling function. */
#define BY_TYPE(DTYPE, CALL)      \
  if ((DTYPE) == RL_DTYPE_FP16) { \
    typedef __half T;             \
    return CALL;                  \
  } else {                        \
    typedef __nv_bfloat16 T;      \
    return CALL;                  \
  }

namespace {

enum { THREADS = 256, WIDTH = 8 /* elements of a vector */ };

/* --- norm -------------------------------------------------------------------------------------------------------------- */

template <class T> int launch_norm(const rl_layer_norm *norm, cudaStream_t stream, rl_error *err) {
  const rows::launch_arguments<T> arguments = {
      (const T *)norm->x,   (const T *)norm->weight, (const T *)norm->bias,  (T *)norm->y,
      (uint32_t)norm->rows, (uint32_t)norm->columns, norm->next_row_counter, stream};
  return rows::launch_aligned<layernorm, T>(arguments, norm->has_clusters, err);
}

/* --- rope -------------------------------------------------------------------------------------------------------------- */

/* Each block rotates q and k of one token. VECTOR_WIDTH, the number of elements of a vector, must divide half_head, which is half
 * the size of a head. The other parameters are members of rl_layer_rope. */
template <class T, int VECTOR_WIDTH> __global__ void __launch_bounds__(THREADS)
    rotate(T *__restrict__ qkv, uint32_t tokens, uint32_t first_position, uint32_t context, uint32_t hidden, uint32_t half_head,
           const float2 *__restrict__ rotations) {
  const uint32_t sequence = blockIdx.x / tokens, token = blockIdx.x % tokens, vectors = half_head / VECTOR_WIDTH;
  T *row = qkv + ((size_t)sequence * context + token) * 3 * hidden;
  const float2 *pair_rotations = rotations + (size_t)(first_position + token) * half_head;
  /* q and k have 2 · hidden elements, which are `hidden` pairs. */
  for (uint32_t i = threadIdx.x; i < hidden / VECTOR_WIDTH; i += THREADS) {
    const uint32_t head = i / vectors, pair = i % vectors * VECTOR_WIDTH;
    vec<T, VECTOR_WIDTH> *first = (vec<T, VECTOR_WIDTH> *)(row + head * 2 * half_head + pair),
                         *second = (vec<T, VECTOR_WIDTH> *)(row + head * 2 * half_head + half_head + pair);
    vec<T, VECTOR_WIDTH> a = *first, b = *second;
    float x[VECTOR_WIDTH], y[VECTOR_WIDTH];
    widen_all<VECTOR_WIDTH>(a.elements, x);
    widen_all<VECTOR_WIDTH>(b.elements, y);
#pragma unroll
    for (int k = 0; k < VECTOR_WIDTH; k++) {
      const float2 rotation = pair_rotations[pair + k];
      const float rotated = x[k] * rotation.x - y[k] * rotation.y;
      y[k] = y[k] * rotation.x + x[k] * rotation.y;
      x[k] = rotated;
    }
    narrow_all<VECTOR_WIDTH>(x, a.elements);
    narrow_all<VECTOR_WIDTH>(y, b.elements);
    *first = a;
    *second = b;
  }
}

template <class T> int launch_rope(const rl_layer_rope *rope, cudaStream_t stream, rl_error *err) {
  const uint32_t half_head = (uint32_t)rope->head_size / 2, blocks = (uint32_t)(rope->batch * rope->tokens);
  const auto kernel = half_head % WIDTH == 0 ? rotate<T, WIDTH> : rotate<T, WIDTH / 2>;
  kernel<<<blocks, THREADS, 0, stream>>>((T *)rope->qkv, (uint32_t)rope->tokens, (uint32_t)rope->first_position,
                                         (uint32_t)rope->context, (uint32_t)rope->hidden, half_head, rope->rotations);
  return rl_cuda_check_launch("launching rope", err);
}

/* --- residual and gate -------------------------------------------------------------------------------------------------- */

template <class T> __global__ void __launch_bounds__(THREADS)
    add(const T *__restrict__ x, const T *__restrict__ residual, T *__restrict__ y, size_t vectors) {
  const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= vectors) return;
  vec<T> a = ((const vec<T> *)x)[i], b = ((const vec<T> *)residual)[i];
  float left[WIDTH], right[WIDTH];
  widen_all<WIDTH>(a.elements, left);
  widen_all<WIDTH>(b.elements, right);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) left[k] += right[k];
  narrow_all<WIDTH>(left, a.elements);
  ((vec<T> *)y)[i] = a;
}

template <class T>
int launch_add(const void *x, const void *residual, void *y, int64_t count, cudaStream_t stream, rl_error *err) {
  const size_t vectors = (size_t)count / WIDTH;
  add<T>
      <<<(uint32_t)((vectors + THREADS - 1) / THREADS), THREADS, 0, stream>>>((const T *)x, (const T *)residual, (T *)y, vectors);
  return rl_cuda_check_launch("launching a residual", err);
}

/* Each block processes THREADS vectors of a row. */
template <class T> __global__ void __launch_bounds__(THREADS)
    apply_gate(const T *__restrict__ gate, const T *__restrict__ up, size_t stride, T *__restrict__ y, uint32_t columns) {
  const uint32_t vectors = columns / WIDTH, blocks_per_row = (vectors + THREADS - 1) / THREADS;
  const uint32_t row = blockIdx.x / blocks_per_row, i = blockIdx.x % blocks_per_row * THREADS + threadIdx.x;
  if (i >= vectors) return;
  vec<T> a = ((const vec<T> *)(gate + row * stride))[i], b = ((const vec<T> *)(up + row * stride))[i];
  float left[WIDTH], right[WIDTH];
  widen_all<WIDTH>(a.elements, left);
  widen_all<WIDTH>(b.elements, right);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) left[k] = left[k] / (1 + expf(-left[k])) * right[k];
  narrow_all<WIDTH>(left, a.elements);
  ((vec<T> *)(y + (size_t)row * columns))[i] = a;
}

template <class T> int launch_gate(const rl_layer_gate *gate, cudaStream_t stream, rl_error *err) {
  const int64_t blocks_per_row = (gate->columns / WIDTH + THREADS - 1) / THREADS;
  apply_gate<T><<<(uint32_t)(gate->rows * blocks_per_row), THREADS, 0, stream>>>(
      (const T *)gate->gate, (const T *)gate->up, (size_t)gate->stride, (T *)gate->y, (uint32_t)gate->columns);
  return rl_cuda_check_launch("launching the gate", err);
}

}  // namespace

int rl_layer_norm_launch(int dtype, const rl_layer_norm *norm, cudaStream_t stream, rl_error *err) {
  BY_TYPE(dtype, launch_norm<T>(norm, stream, err))
}

int rl_layer_rope_launch(int dtype, const rl_layer_rope *rope, cudaStream_t stream, rl_error *err) {
  BY_TYPE(dtype, launch_rope<T>(rope, stream, err))
}

int rl_layer_add_launch(int dtype, const void *x, const void *residual, void *y, int64_t count, cudaStream_t stream,
                        rl_error *err) {
  BY_TYPE(dtype, launch_add<T>(x, residual, y, count, stream, err))
}

int rl_layer_gate_launch(int dtype, const rl_layer_gate *gate, cudaStream_t stream, rl_error *err) {
  BY_TYPE(dtype, launch_gate<T>(gate, stream, err))
}
