/* The operators of elementwise.c on CUDA.
 *   scalar  one element per thread
 *   vector  vectors of 16 bytes, one or several per thread; the last block also processes the remaining elements one by one
 * fp64 is computed in double, and the other types in float. */
#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/functions.cuh"
#include "kernel/types.cuh"

enum { BLOCK_THREADS = 256, SCALAR = 0 /* index of the variant */ };

/* --- operators ---------------------------------------------------------------------------------------------------------- */

__device__ static inline float exp_of(float x) { return expf(x); }
__device__ static inline double exp_of(double x) { return exp(x); }

/* An operator is a struct. Its function of(x, second) returns the output for an element x of the first input and the
 * corresponding element of the second input. Its constants:
 *   HAS_SECOND     whether there is a second input
 *   SHARED_ROW     1: the second input is one row, which all rows of x share; 0: it has as many elements as x
 *   COMPUTE_HEAVY  1: the arithmetic takes long enough to overlap it with loads (vector_config) */
struct copy {
  enum { HAS_SECOND = 0, SHARED_ROW = 0, COMPUTE_HEAVY = 0 };
  template <class M> __device__ static M of(M x, M) { return x; }
};
struct relu {
  enum { HAS_SECOND = 0, SHARED_ROW = 0, COMPUTE_HEAVY = 0 };
  template <class M> __device__ static M of(M x, M) { return x < 0 ? 0 : x; }
};
struct residual_add {
  enum { HAS_SECOND = 1, SHARED_ROW = 0, COMPUTE_HEAVY = 0 };
  template <class M> __device__ static M of(M x, M residual) { return x + residual; }
};
struct bias_gelu {
  enum { HAS_SECOND = 1, SHARED_ROW = 1, COMPUTE_HEAVY = 1 };
  template <class M> __device__ static M of(M x, M bias) { return gelu(x + bias); }
};
struct silu_mul {
  enum { HAS_SECOND = 1, SHARED_ROW = 0, COMPUTE_HEAVY = 0 };
  template <class M> __device__ static M of(M x, M gate) { return x / (1 + exp_of(-x)) * gate; }
};

template <class OP, class T> __device__ static inline void compute_element(T x, T second, T *y) {
  typedef typename arithmetic<T>::type M;
  narrow(OP::template of<M>(widen(x), widen(second)), y);
}

/* A divisor that is the same for all threads. Its quotients are computed by a multiplication and a shift: for n < 2^28 the
 * quotient is ⌊n · multiplier / 2^shift⌋ with shift = 28 + ⌈log2 number⌉ and multiplier = ⌈2^shift / number⌉ (Granlund,
 * Montgomery 1994). */
struct divisor {
  uint32_t number, multiplier, shift;
  __device__ uint32_t remainder(uint32_t n) const { return n - (uint32_t)((uint64_t)n * multiplier >> shift) * number; }
};

static divisor divisor_of(uint32_t number) {
  uint32_t shift = 28;
  while ((1ull << (shift - 28)) < number) shift++;
  return {number, (uint32_t)(((1ull << shift) + number - 1) / number), shift};
}

/* Returns the element of the second input that belongs to element i; returns 0 for an operator without a second input. */
template <class OP, class T> __device__ static inline T load_second(const T *second, uint32_t i, const divisor &columns) {
  if (!OP::HAS_SECOND) return T(0.0f);
  return second[OP::SHARED_ROW ? columns.remainder(i) : i];
}

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

template <class OP, class T> __global__ void __launch_bounds__(BLOCK_THREADS)
    scalar(const T *__restrict__ x, const T *__restrict__ second, T *__restrict__ y, uint32_t count, divisor columns) {
  uint32_t i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
  if (i < count) compute_element<OP>(x[i], load_second<OP>(second, i, columns), &y[i]);
}

/* Loads the elements of the second input for the vector that begins at element `first`. ALIGNED: these elements are always
 * contiguous and aligned to 16 bytes. */
template <class OP, class T, bool ALIGNED>
__device__ static inline vec<T> load_second_vector(const T *second, uint32_t first, const divisor &columns) {
  vec<T> second_vector = {};
  if constexpr (OP::HAS_SECOND) {
    uint32_t column = OP::SHARED_ROW ? columns.remainder(first) : first;
    if constexpr (ALIGNED) second_vector = *(const vec<T> *)(second + column);
    else
#pragma unroll
      for (uint32_t k = 0; k < 16 / sizeof(T); k++) {
        second_vector.elements[k] = second[column];
        column = column + 1 < columns.number ? column + 1 : 0;
      }
  }
  return second_vector;
}

template <class OP, class T> __device__ static inline vec<T> compute_vector(const vec<T> &x, const vec<T> &second) {
  const uint32_t width = 16 / sizeof(T);
  typename arithmetic<T>::type a[width], b[width];
  vec<T> y;
  widen_all<width>(x.elements, a);
  widen_all<width>(second.elements, b);
#pragma unroll
  for (uint32_t k = 0; k < width; k++) a[k] = OP::of(a[k], b[k]);
  narrow_all<width>(a, y.elements);
  return y;
}

/* Sizes of the kernel `vector`. A block processes BLOCK_THREADS vectors. A thread of a compute-heavy operator processes several
 * of them, to compute one while others are loaded. */
template <class OP, class T> struct vector_config {
  enum { VECTORS_PER_THREAD = !OP::COMPUTE_HEAVY ? 1 : sizeof(T) == 8 ? 4 : 2, THREADS = BLOCK_THREADS / VECTORS_PER_THREAD };
};

/* Processes the vectors first, first + THREADS, … of an input of `vectors` vectors. ALL_VALID: none of these vectors is past the
 * end. */
template <class OP, class T, bool ALIGNED, bool ALL_VALID>
__device__ static inline void process_vectors(const T *x, const T *second, T *y, uint32_t first, uint32_t vectors,
                                              const divisor &columns) {
  enum { COUNT = vector_config<OP, T>::VECTORS_PER_THREAD, STRIDE = vector_config<OP, T>::THREADS, WIDTH = 16 / sizeof(T) };
  vec<T> xs[COUNT], second_vectors[COUNT];
#pragma unroll
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint32_t index = first + i * STRIDE;
    if (ALL_VALID || index < vectors)
      xs[i] = ((const vec<T> *)x)[index], second_vectors[i] = load_second_vector<OP, T, ALIGNED>(second, index * WIDTH, columns);
  }
#pragma unroll
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint32_t index = first + i * STRIDE;
    if (ALL_VALID || index < vectors) ((vec<T> *)y)[index] = compute_vector<OP>(xs[i], second_vectors[i]);
  }
}

template <class OP, class T, bool ALIGNED> __global__ void __launch_bounds__(BLOCK_THREADS)
    vector(const T *__restrict__ x, const T *__restrict__ second, T *__restrict__ y, uint32_t count, divisor columns) {
  const uint32_t vectors = count / (uint32_t)(16 / sizeof(T)), first_of_block = blockIdx.x * BLOCK_THREADS,
                 first = first_of_block + threadIdx.x;
  if (first_of_block + BLOCK_THREADS <= vectors)
    return process_vectors<OP, T, ALIGNED, true>(x, second, y, first, vectors, columns);
  process_vectors<OP, T, ALIGNED, false>(x, second, y, first, vectors, columns);
  const uint32_t i = vectors * (uint32_t)(16 / sizeof(T)) + threadIdx.x;
  if (i < count) compute_element<OP>(x[i], load_second<OP>(second, i, columns), &y[i]);
}

template <class OP, class T>
static int launch_typed(const rl_kernel_instance *instance, uint32_t count, divisor columns, cudaStream_t stream, rl_error *err) {
  const T *x = (const T *)instance->in[0], *second = (const T *)instance->in[1];
  T *y = (T *)instance->out;
  /* If the second input is not a shared row, its vectors are aligned like those of x. */
  const bool always_aligned = !OP::SHARED_ROW;
  const uint32_t width = 16 / sizeof(T), threads_needed = instance->variant == SCALAR ? count : count / width + 1;
  const uint32_t grid = (threads_needed + BLOCK_THREADS - 1) / BLOCK_THREADS, threads = vector_config<OP, T>::THREADS;
  if (instance->variant == SCALAR) scalar<OP, T><<<grid, BLOCK_THREADS, 0, stream>>>(x, second, y, count, columns);
  else if (OP::SHARED_ROW && columns.number % width != 0)
    vector<OP, T, always_aligned><<<grid, threads, 0, stream>>>(x, second, y, count, columns);
  else vector<OP, T, true><<<grid, threads, 0, stream>>>(x, second, y, count, columns);
  return rl_cuda_check_launch("launching", err);
}

template <class OP> static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  const rl_kernel_operator *op = instance->params.op;
  const uint32_t count = (uint32_t)op->output_elements(&instance->shape);
  const divisor columns = divisor_of(OP::SHARED_ROW ? (uint32_t)op->input_elements(&instance->shape, 1) : 1);
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<OP, T>(instance, count, columns, stream, err)))
}

RL_KERNEL_CUDA(copy, launch<copy>)
RL_KERNEL_CUDA(relu, launch<relu>)
RL_KERNEL_CUDA(residual_add, launch<residual_add>)
RL_KERNEL_CUDA(bias_gelu, launch<bias_gelu>)
RL_KERNEL_CUDA(silu_mul, launch<silu_mul>)
