/* Implements layer/elementwise.h. Each thread processes vectors of 16 bytes. Arithmetic is in float. */
#include "layer/elementwise.h"

#include "cuda_check.h"
#include "kernel/dtype.h"
#include "kernel/norm.cuh"
#include "kernel/types.cuh"

/* Evaluates CALL with T defined as the element type, and returns its result. */
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

template <class T> int launch_norm(const rl_layer_norm *n, cudaStream_t stream, rl_error *err) {
  const rows::launch_arguments<T> arguments = {(const T *)n->x,   (const T *)n->weight, (const T *)n->bias,  (T *)n->y,
                                               (uint32_t)n->rows, (uint32_t)n->columns, n->next_row_counter, stream};
  return rows::launch_aligned<layernorm, T>(arguments, n->has_clusters, err);
}

/* --- rope -------------------------------------------------------------------------------------------------------------- */

/* Each block rotates q and k of one token. VECTOR is the number of elements per vector; it divides half_head. */
template <class T, int VECTOR> __global__ void __launch_bounds__(THREADS)
    rotate(T *__restrict__ qkv, uint32_t tokens, uint32_t first_position, uint32_t context, uint32_t hidden, uint32_t half_head,
           const float2 *__restrict__ rotations) {
  const uint32_t sequence = blockIdx.x / tokens, token = blockIdx.x % tokens, vectors = half_head / VECTOR;
  T *row = qkv + ((size_t)sequence * context + token) * 3 * hidden;
  const float2 *pairs = rotations + (size_t)(first_position + token) * half_head;
  /* q and k have 2 · hidden elements, which are `hidden` pairs. */
  for (uint32_t i = threadIdx.x; i < hidden / VECTOR; i += THREADS) {
    const uint32_t head = i / vectors, pair = i % vectors * VECTOR;
    vec<T, VECTOR> *first = (vec<T, VECTOR> *)(row + head * 2 * half_head + pair),
                   *second = (vec<T, VECTOR> *)(row + head * 2 * half_head + half_head + pair);
    vec<T, VECTOR> a = *first, b = *second;
    float x[VECTOR], y[VECTOR];
    widen_all<VECTOR>(a.elements, x);
    widen_all<VECTOR>(b.elements, y);
#pragma unroll
    for (int k = 0; k < VECTOR; k++) {
      const float2 rotation = pairs[pair + k];
      const float rotated = x[k] * rotation.x - y[k] * rotation.y;
      y[k] = y[k] * rotation.x + x[k] * rotation.y;
      x[k] = rotated;
    }
    narrow_all<VECTOR>(x, a.elements);
    narrow_all<VECTOR>(y, b.elements);
    *first = a;
    *second = b;
  }
}

template <class T> int launch_rope(const rl_layer_rope *r, cudaStream_t stream, rl_error *err) {
  const uint32_t half_head = (uint32_t)r->head_size / 2, blocks = (uint32_t)(r->batch * r->tokens);
  const auto kernel = half_head % WIDTH == 0 ? rotate<T, WIDTH> : rotate<T, WIDTH / 2>;
  kernel<<<blocks, THREADS, 0, stream>>>((T *)r->qkv, (uint32_t)r->tokens, (uint32_t)r->first_position, (uint32_t)r->context,
                                         (uint32_t)r->hidden, half_head, r->rotations);
  return rl_cuda_check_launch("launching rope", err);
}

/* --- residual and gate -------------------------------------------------------------------------------------------------- */

template <class T> __global__ void __launch_bounds__(THREADS)
    add(const T *__restrict__ x, const T *__restrict__ r, T *__restrict__ y, size_t vectors) {
  const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= vectors) return;
  vec<T> a = ((const vec<T> *)x)[i], b = ((const vec<T> *)r)[i];
  float left[WIDTH], right[WIDTH];
  widen_all<WIDTH>(a.elements, left);
  widen_all<WIDTH>(b.elements, right);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) left[k] += right[k];
  narrow_all<WIDTH>(left, a.elements);
  ((vec<T> *)y)[i] = a;
}

template <class T> int launch_add(const void *x, const void *r, void *y, int64_t count, cudaStream_t stream, rl_error *err) {
  const size_t vectors = (size_t)count / WIDTH;
  add<T><<<(uint32_t)((vectors + THREADS - 1) / THREADS), THREADS, 0, stream>>>((const T *)x, (const T *)r, (T *)y, vectors);
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

template <class T> int launch_gate(const rl_layer_gate *g, cudaStream_t stream, rl_error *err) {
  const int64_t blocks_per_row = (g->columns / WIDTH + THREADS - 1) / THREADS;
  apply_gate<T><<<(uint32_t)(g->rows * blocks_per_row), THREADS, 0, stream>>>((const T *)g->gate, (const T *)g->up,
                                                                              (size_t)g->stride, (T *)g->y, (uint32_t)g->columns);
  return rl_cuda_check_launch("launching the gate", err);
}

}  // namespace

int rl_layer_norm_launch(int dtype, const rl_layer_norm *norm, cudaStream_t stream, rl_error *err) {
  BY_TYPE(dtype, launch_norm<T>(norm, stream, err))
}

int rl_layer_rope_launch(int dtype, const rl_layer_rope *rope, cudaStream_t stream, rl_error *err) {
  BY_TYPE(dtype, launch_rope<T>(rope, stream, err))
}

int rl_layer_add_launch(int dtype, const void *x, const void *r, void *y, int64_t count, cudaStream_t stream, rl_error *err) {
  BY_TYPE(dtype, launch_add<T>(x, r, y, count, stream, err))
}

int rl_layer_gate_launch(int dtype, const rl_layer_gate *gate, cudaStream_t stream, rl_error *err) {
  BY_TYPE(dtype, launch_gate<T>(gate, stream, err))
}
