/* The families of elementwise.c on CUDA. scalar: one element a thread; vector: as many as 16 bytes hold, and a thread more for
 * the tail. Arithmetic is in double for fp64, else in float. */
#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/functions.cuh"
#include "kernel/types.cuh"

enum { BLOCK = 256, SCALAR = 0 }; /* SCALAR: index of the variant */

/* --- families ------------------------------------------------------------------------------------------------------ */

__device__ static inline float exp_of(float x) { return expf(x); }
__device__ static inline double exp_of(double x) { return exp(x); }

struct copy { /* second: what the other input is */
  enum { SECOND = 0, SHARED = 0 };
  template <class M> __device__ static M of(M x, M) { return x; }
};
struct relu {
  enum { SECOND = 0, SHARED = 0 };
  template <class M> __device__ static M of(M x, M) { return x < 0 ? 0 : x; }
};
struct residual_add {
  enum { SECOND = 1, SHARED = 0 };
  template <class M> __device__ static M of(M x, M r) { return x + r; }
};
struct bias_gelu {
  enum { SECOND = 1, SHARED = 1 };
  template <class M> __device__ static M of(M x, M b) { return gelu_of(x + b); }
};
struct silu_mul {
  enum { SECOND = 1, SHARED = 0 };
  template <class M> __device__ static M of(M x, M g) { return x / (1 + exp_of(-x)) * g; }
};

template <class FAMILY, class T>
__device__ static inline void element(T x, T second, T *y) {
  typedef typename arithmetic<T>::type M;
  narrow(FAMILY::template of<M>(widen(x), widen(second)), y);
}

/* Where element i finds its second input; without one it reads nothing. */
template <class FAMILY, class T>
__device__ static inline T second_of(const T *second, uint32_t i, uint32_t columns) {
  if (!FAMILY::SECOND) return T(0.0f);
  return second[FAMILY::SHARED ? i % columns : i];
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

template <class FAMILY, class T>
__global__ void __launch_bounds__(BLOCK) scalar(const T *__restrict__ x, const T *__restrict__ second, T *__restrict__ y,
                                                uint32_t count, uint32_t columns) {
  uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < count) element<FAMILY>(x[i], second_of<FAMILY>(second, i, columns), &y[i]);
}

/* What the second input holds for the elements from `first` on: at the same place, or in the one row for all, where a whole access lies
 * together if the row is made of such. */
template <class FAMILY, class T>
__device__ static inline pack<T> seconds_of(const T *second, uint32_t first, uint32_t columns) {
  const uint32_t width = 16 / sizeof(T);
  pack<T> seconds = {};
  if (!FAMILY::SECOND) return seconds;
  if (!FAMILY::SHARED) return *(const pack<T> *)(second + first);
  uint32_t column = first % columns;
  if (columns % width == 0) return *(const pack<T> *)(second + column);
#pragma unroll
  for (uint32_t k = 0; k < width; k++) {
    seconds.at[k] = second[column];
    column = column + 1 < columns ? column + 1 : 0;
  }
  return seconds;
}

template <class FAMILY, class T>
__global__ void __launch_bounds__(BLOCK) vector(const T *__restrict__ x, const T *__restrict__ second, T *__restrict__ y,
                                                uint32_t count, uint32_t columns) {
  const uint32_t width = 16 / sizeof(T), packs = count / width, at = blockIdx.x * BLOCK + threadIdx.x, first = at * width;
  if (at < packs) {
    typedef typename arithmetic<T>::type M;
    const pack<T> xs = ((const pack<T> *)x)[at], seconds = seconds_of<FAMILY>(second, first, columns);
    pack<T> ys;
    M a[width], b[width];
    widen_all<width>(xs.at, a);
    widen_all<width>(seconds.at, b);
#pragma unroll
    for (uint32_t k = 0; k < width; k++) a[k] = FAMILY::template of<M>(a[k], b[k]);
    narrow_all<width>(a, ys.at);
    ((pack<T> *)y)[at] = ys;
  } else if (at == packs) {
    for (uint32_t i = first; i < count; i++) element<FAMILY>(x[i], second_of<FAMILY>(second, i, columns), &y[i]);
  }
}

template <class FAMILY, class T>
static int launch_typed(const rl_kernel_instance *instance, uint32_t count, uint32_t columns, cudaStream_t stream, rl_error *err) {
  const T *x = (const T *)instance->in[0], *second = (const T *)instance->in[1];
  T *y = (T *)instance->out;
  uint32_t threads = instance->variant == SCALAR ? count : count / (uint32_t)(16 / sizeof(T)) + 1;
  uint32_t grid = (threads + BLOCK - 1) / BLOCK;
  if (instance->variant == SCALAR)
    scalar<FAMILY, T><<<grid, BLOCK, 0, stream>>>(x, second, y, count, columns);
  else
    vector<FAMILY, T><<<grid, BLOCK, 0, stream>>>(x, second, y, count, columns);
  return rl_launch_ok("launching", err);
}

template <class FAMILY>
static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  const rl_kernel_family *family = instance->params.family;
  const uint32_t count = (uint32_t)family->output_elements(&instance->shape);
  const uint32_t columns = FAMILY::SHARED ? (uint32_t)family->input_elements(&instance->shape, 1) : 1;
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<FAMILY, T>(instance, count, columns, stream, err)))
}

RL_KERNEL_CUDA(copy, launch<copy>)
RL_KERNEL_CUDA(relu, launch<relu>)
RL_KERNEL_CUDA(residual_add, launch<residual_add>)
RL_KERNEL_CUDA(bias_gelu, launch<bias_gelu>)
RL_KERNEL_CUDA(silu_mul, launch<silu_mul>)
