/* The families of elementwise.c on CUDA. scalar: one element a thread; vector: as many as 16 bytes hold, from one place or
 * several, and the last block the rest one by one. Arithmetic is in double for fp64, else in float. */
#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/functions.cuh"
#include "kernel/types.cuh"

enum { BLOCK = 256, SCALAR = 0 }; /* SCALAR: index of the variant */

/* --- families ---------------------------------------------------------------------------------------------------------- */

__device__ static inline float exp_of(float x) { return expf(x); }
__device__ static inline double exp_of(double x) { return exp(x); }

struct copy { /* SECOND: there is another input; SHARED: one row of it for all rows; BUSY: much is computed of each element */
  enum { SECOND = 0, SHARED = 0, BUSY = 0 };
  template <class M> __device__ static M of(M x, M) { return x; }
};
struct relu {
  enum { SECOND = 0, SHARED = 0, BUSY = 0 };
  template <class M> __device__ static M of(M x, M) { return x < 0 ? 0 : x; }
};
struct residual_add {
  enum { SECOND = 1, SHARED = 0, BUSY = 0 };
  template <class M> __device__ static M of(M x, M r) { return x + r; }
};
struct bias_gelu {
  enum { SECOND = 1, SHARED = 1, BUSY = 1 };
  template <class M> __device__ static M of(M x, M b) { return gelu_of(x + b); }
};
struct silu_mul {
  enum { SECOND = 1, SHARED = 0, BUSY = 0 };
  template <class M> __device__ static M of(M x, M g) { return x / (1 + exp_of(-x)) * g; }
};

template <class FAMILY, class T> __device__ static inline void element(T x, T second, T *y) {
  typedef typename arithmetic<T>::type M;
  narrow(FAMILY::template of<M>(widen(x), widen(second)), y);
}

/* Remainders by the same number again and again: for n < 2^28 the quotient is n · multiplier / 2^shift, rounded down, with shift
 * 28 bits above those of the number and multiplier = 2^shift / number, rounded up (Granlund, Montgomery 1994). */
struct divisor {
  uint32_t number, multiplier, shift;
  __device__ uint32_t remainder(uint32_t n) const { return n - (uint32_t)((uint64_t)n * multiplier >> shift) * number; }
};

static divisor divisor_of(uint32_t number) {
  uint32_t shift = 28;
  while ((1ull << (shift - 28)) < number) shift++;
  return {number, (uint32_t)(((1ull << shift) + number - 1) / number), shift};
}

/* Where element i finds its second input; without one it reads nothing. */
template <class FAMILY, class T> __device__ static inline T second_of(const T *second, uint32_t i, const divisor &columns) {
  if (!FAMILY::SECOND) return T(0.0f);
  return second[FAMILY::SHARED ? columns.remainder(i) : i];
}

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

template <class FAMILY, class T> __global__ void __launch_bounds__(BLOCK)
    scalar(const T *__restrict__ x, const T *__restrict__ second, T *__restrict__ y, uint32_t count, divisor columns) {
  uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < count) element<FAMILY>(x[i], second_of<FAMILY>(second, i, columns), &y[i]);
}

/* What the second input holds for the elements from `first` on: at the same place, or in the one row for all. WHOLE: that row is
 * made of accesses, and so each lies together. */
template <class FAMILY, class T, bool WHOLE>
__device__ static inline pack<T> seconds_of(const T *second, uint32_t first, const divisor &columns) {
  pack<T> seconds = {};
  if constexpr (FAMILY::SECOND) {
    uint32_t column = FAMILY::SHARED ? columns.remainder(first) : first;
    if constexpr (WHOLE) seconds = *(const pack<T> *)(second + column);
    else
#pragma unroll
      for (uint32_t k = 0; k < 16 / sizeof(T); k++) {
        seconds.at[k] = second[column];
        column = column + 1 < columns.number ? column + 1 : 0;
      }
  }
  return seconds;
}

template <class FAMILY, class T> __device__ static inline pack<T> elements(const pack<T> &x, const pack<T> &second) {
  const uint32_t width = 16 / sizeof(T);
  typename arithmetic<T>::type a[width], b[width];
  pack<T> y;
  widen_all<width>(x.at, a);
  widen_all<width>(second.at, b);
#pragma unroll
  for (uint32_t k = 0; k < width; k++) a[k] = FAMILY::of(a[k], b[k]);
  narrow_all<width>(a, y.at);
  return y;
}

/* A block does BLOCK accesses, each thread as many as have enough elements to compute with while others are on their way. */
template <class FAMILY, class T> struct thread {
  enum { ACCESSES = !FAMILY::BUSY ? 1 : sizeof(T) == 8 ? 4 : 2, OF_BLOCK = BLOCK / ACCESSES };
};

/* ALL: of the accesses from `begin` on, every STEP-th, none is behind the last of `packs`. */
template <class FAMILY, class T, bool WHOLE, bool ALL> __device__ static inline void accesses(const T *x, const T *second, T *y,
                                                                                              uint32_t begin, uint32_t packs,
                                                                                              const divisor &columns) {
  enum { ACCESSES = thread<FAMILY, T>::ACCESSES, STEP = thread<FAMILY, T>::OF_BLOCK, WIDTH = 16 / sizeof(T) };
  pack<T> xs[ACCESSES], seconds[ACCESSES];
#pragma unroll
  for (uint32_t i = 0; i < ACCESSES; i++) {
    const uint32_t at = begin + i * STEP;
    if (ALL || at < packs)
      xs[i] = ((const pack<T> *)x)[at], seconds[i] = seconds_of<FAMILY, T, WHOLE>(second, at * WIDTH, columns);
  }
#pragma unroll
  for (uint32_t i = 0; i < ACCESSES; i++) {
    const uint32_t at = begin + i * STEP;
    if (ALL || at < packs) ((pack<T> *)y)[at] = elements<FAMILY>(xs[i], seconds[i]);
  }
}

template <class FAMILY, class T, bool WHOLE> __global__ void __launch_bounds__(BLOCK)
    vector(const T *__restrict__ x, const T *__restrict__ second, T *__restrict__ y, uint32_t count, divisor columns) {
  const uint32_t packs = count / (uint32_t)(16 / sizeof(T)), block = blockIdx.x * BLOCK, begin = block + threadIdx.x;
  if (block + BLOCK <= packs) return accesses<FAMILY, T, WHOLE, true>(x, second, y, begin, packs, columns);
  accesses<FAMILY, T, WHOLE, false>(x, second, y, begin, packs, columns);
  const uint32_t rest = packs * (uint32_t)(16 / sizeof(T)) + threadIdx.x;
  if (rest < count) element<FAMILY>(x[rest], second_of<FAMILY>(second, rest, columns), &y[rest]);
}

template <class FAMILY, class T>
static int launch_typed(const rl_kernel_instance *instance, uint32_t count, divisor columns, cudaStream_t stream, rl_error *err) {
  const T *x = (const T *)instance->in[0], *second = (const T *)instance->in[1];
  T *y = (T *)instance->out;
  const bool always = !FAMILY::SHARED; /* whole: what lies at the same place */
  const uint32_t width = 16 / sizeof(T), parts = instance->variant == SCALAR ? count : count / width + 1;
  const uint32_t grid = (parts + BLOCK - 1) / BLOCK, threads = thread<FAMILY, T>::OF_BLOCK;
  if (instance->variant == SCALAR) scalar<FAMILY, T><<<grid, BLOCK, 0, stream>>>(x, second, y, count, columns);
  else if (FAMILY::SHARED && columns.number % width != 0)
    vector<FAMILY, T, always><<<grid, threads, 0, stream>>>(x, second, y, count, columns);
  else vector<FAMILY, T, true><<<grid, threads, 0, stream>>>(x, second, y, count, columns);
  return rl_launch_ok("launching", err);
}

template <class FAMILY> static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  const rl_kernel_family *family = instance->params.family;
  const uint32_t count = (uint32_t)family->output_elements(&instance->shape);
  const divisor columns = divisor_of(FAMILY::SHARED ? (uint32_t)family->input_elements(&instance->shape, 1) : 1);
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<FAMILY, T>(instance, count, columns, stream, err)))
}

RL_KERNEL_CUDA(copy, launch<copy>)
RL_KERNEL_CUDA(relu, launch<relu>)
RL_KERNEL_CUDA(residual_add, launch<residual_add>)
RL_KERNEL_CUDA(bias_gelu, launch<bias_gelu>)
RL_KERNEL_CUDA(silu_mul, launch<silu_mul>)
