/* Types and functions that the row kernels (rows.cuh) share: reductions over groups of threads, and the vectors of a row that a
 * thread processes. M is the arithmetic type, float or double; T is the element type; a vector is WIDTH elements that one access
 * loads or stores. */
#ifndef RL_KERNELS_KERNEL_ROW_ACCESS_CUH
#define RL_KERNELS_KERNEL_ROW_ACCESS_CUH

#include "kernel/types.cuh"
#include "warp.cuh"

namespace rows {

/* --- groups of threads ------------------------------------------------------------------------------------------------------ */

/* All threads of a group call sum(x) or max(x); each gets the sum or the maximum of x over the group. */

/* A group of `size` neighbouring lanes of a warp, a power of two. */
struct lane_group {
  uint32_t size;
  template <class M> __device__ M max(M x) const { return warp_max(x, size); }
  template <class M> __device__ M sum(M x) const { return warp_sum(x, size); }
};

/* One value for each warp of a block, of a type of at most 8 bytes. */
struct alignas(8) warp_partials {
  char bytes[8 * WARP_SIZE];
};

/* A group of `size` threads, a power of two: neighbouring lanes of a warp, or the whole block. A whole block exchanges values
 * through two buffers in shared memory, which its reductions use alternately. WAR: the __syncthreads of the reduction in between,
 * which uses the other buffer, orders the reads of a buffer before the next writes to it. */
struct thread_group {
  warp_partials *buffers;     /* two buffers in shared memory; used if size is greater than a warp */
  uint32_t size, last_buffer; /* last_buffer: index of the buffer that was used last */

  template <class M> __device__ M max(M x) {
    return reduce(x, [](M value, uint32_t lanes) { return warp_max(value, lanes); });
  }
  template <class M> __device__ M sum(M x) {
    return reduce(x, [](M value, uint32_t lanes) { return warp_sum(value, lanes); });
  }

  /* Reduces x over the group. warp_reduce(x, lanes) must reduce x over `lanes` neighbouring lanes. */
  template <class M, class WARP_REDUCE> __device__ M reduce(M x, const WARP_REDUCE &warp_reduce) {
    if (size <= WARP_SIZE) return warp_reduce(x, size);
    const uint32_t warps = size / WARP_SIZE;
    M *partials = (M *)buffers[last_buffer ^= 1].bytes;
    x = warp_reduce(x, WARP_SIZE);
    if (threadIdx.x % WARP_SIZE == 0) partials[threadIdx.x / WARP_SIZE] = x;
    __syncthreads();
    return warp_reduce(partials[threadIdx.x & (warps - 1)], warps);
  }
};

/* A number of elements, and its reciprocal, which is 0 if there are no elements. */
template <class M> struct element_count {
  M count, reciprocal;
  __device__ element_count(uint32_t elements) : count((M)elements), reciprocal(elements ? 1 / (M)elements : 0) {}
};

/* --- vectors of a row ------------------------------------------------------------------------------------------------------- */

/* The vectors of a row that a thread processes: `count` vectors, with the numbers first, first + stride, … */
struct thread_vectors {
  uint32_t first, stride, count;
};

/* Returns how many of the numbers first, first + stride, … are below `end`. */
__device__ static inline uint32_t count_strided(uint32_t first, uint32_t stride, uint32_t end) {
  return first < end ? (end - first + stride - 1) / stride : 0;
}

/* A thread's vectors of a row, in registers. Only the first ones are valid; thread_vectors.count is their number. */
template <class T, int VECTOR_WIDTH, int MAX_VECTORS> struct row_fragment {
  typedef T type;
  enum { WIDTH = VECTOR_WIDTH, VECTORS = MAX_VECTORS };
  vec<T, WIDTH> vectors[VECTORS];
  __device__ vec<T, WIDTH> &operator[](int i) { return vectors[i]; }
  __device__ const vec<T, WIDTH> &operator[](int i) const { return vectors[i]; }
};

template <class T, int WIDTH, int VECTORS>
__device__ static void load(row_fragment<T, WIDTH, VECTORS> &fragment, const T *row, const thread_vectors &assigned) {
  const vec<T, WIDTH> *from = (const vec<T, WIDTH> *)row + assigned.first;
#pragma unroll
  for (uint32_t i = 0; i < VECTORS; i++)
    if (i < assigned.count) fragment[i] = from[i * assigned.stride];
}

/* Runs BODY for each element of the first `valid_vectors` vectors of `fragment`. In BODY, x[k] is the element, converted to M; x
 * is the whole vector, M[FRAGMENT::WIDTH]. The names fragment, FRAGMENT, M and valid_vectors are the caller's. */
#define RL_FOR_EACH_ELEMENT(BODY)                                                        \
  _Pragma("unroll") for (int i = 0; i < FRAGMENT::VECTORS; i++) if (i < valid_vectors) { \
    M x[FRAGMENT::WIDTH];                                                                \
    const auto vector = fragment[i];                                                     \
    widen_all<FRAGMENT::WIDTH>(vector.elements, x);                                      \
    _Pragma("unroll") for (int k = 0; k < FRAGMENT::WIDTH; k++) BODY;                    \
  }

/* Returns the largest of `initial` and the elements of the first `valid_vectors` vectors. */
template <class FRAGMENT, class M> __device__ static M max_element(const FRAGMENT &fragment, uint32_t valid_vectors, M initial) {
  enum { WIDTH = FRAGMENT::WIDTH };
  vec<typename FRAGMENT::type, WIDTH> maxima = fragment[0];
#pragma unroll
  for (int i = 1; i < FRAGMENT::VECTORS; i++)
    if (i < valid_vectors) {
      const auto vector = fragment[i];
      update_maxima<WIDTH>(vector.elements, maxima.elements);
    }
  M widened[WIDTH];
  widen_all<WIDTH>(maxima.elements, widened);
  for (int k = 0; k < WIDTH && valid_vectors > 0; k++) initial = widened[k] > initial ? widened[k] : initial;
  return initial;
}

/* Returns x, but hides its value from the compiler. Otherwise the compiler would convert a loop-invariant vector to M once,
 * outside of the loop, and keep it in twice the registers. */
template <class T, int WIDTH> __device__ static vec<T, WIDTH> optimization_barrier(vec<T, WIDTH> x) {
  uint32_t *words = (uint32_t *)&x;
#pragma unroll
  for (int i = 0; i < sizeof x / sizeof *words; i++) asm volatile("" : "+r"(words[i]));
  return x;
}

/* Returns vector number `index` of a row's output, computed from vector x of its input. TRANSFORMED: state::from_fragment has
 * transformed x (rows.cuh). w, b: weights and biases of all columns; unused if OP has none. */
template <class OP, bool TRANSFORMED, class T, int WIDTH, class X, class OUTPUT>
__device__ static vec<T, WIDTH> output_vector(const OUTPUT &output, const vec<X, WIDTH> &x, const T *w, const T *b,
                                              uint32_t index) {
  typedef typename arithmetic<T>::type M;
  M xs[WIDTH], ws[WIDTH] = {}, bs[WIDTH] = {};
  vec<T, WIDTH> y, weights, biases;
  const vec<X, WIDTH> vector = x;
  widen_all<WIDTH>(vector.elements, xs);
  if (OP::WEIGHT_VECTORS > 0) weights = ((const vec<T, WIDTH> *)w)[index], widen_all<WIDTH>(weights.elements, ws);
  if (OP::WEIGHT_VECTORS > 1) biases = ((const vec<T, WIDTH> *)b)[index], widen_all<WIDTH>(biases.elements, bs);
#pragma unroll
  for (int k = 0; k < WIDTH; k++)
    xs[k] = TRANSFORMED ? output.template of_transformed<X>(xs[k], ws[k], bs[k]) : output.of_element(xs[k], ws[k], bs[k]);
  narrow_all<WIDTH>(xs, y.elements);
  return y;
}

template <class OP, class OUTPUT, class T, int WIDTH, int VECTORS>
__device__ static void store_output(const OUTPUT &output, const row_fragment<T, WIDTH, VECTORS> &fragment, T *row, const T *w,
                                    const T *b, const thread_vectors &assigned) {
  vec<T, WIDTH> *to = (vec<T, WIDTH> *)row;
#pragma unroll
  for (uint32_t i = 0; i < VECTORS; i++)
    if (i < assigned.count)
      to[assigned.first + i * assigned.stride] =
          output_vector<OP, true>(output, fragment[i], w, b, assigned.first + i * assigned.stride);
}

}  // namespace rows

#endif
