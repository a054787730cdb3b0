/* The element types of rl_dtype in device code: the type of their arithmetic, conversions, and vectors for wide accesses. "Widen"
 * converts an element to the type of the arithmetic; "narrow" converts back, rounding to nearest even. */
#ifndef RL_KERNELS_KERNEL_TYPES_CUH
#define RL_KERNELS_KERNEL_TYPES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* The type of the arithmetic on elements of type T: double for double, else float. */
template <class T> struct arithmetic { typedef float type; };
template <> struct arithmetic<double> { typedef double type; };

/* N elements that one instruction loads or stores, by default 16 bytes. Copy a vec as a whole before you read its elements;
 * otherwise each element becomes a separate access. */
template <class T, int N = 16 / sizeof(T)> struct alignas(N * sizeof(T)) vec { T elements[N]; };

__device__ static inline double widen(double x) { return x; }
__device__ static inline float widen(float x) { return x; }
__device__ static inline float widen(__half x) { return __half2float(x); }
__device__ static inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ static inline void narrow(double x, double *y) { *y = x; }
__device__ static inline void narrow(float x, float *y) { *y = x; }
__device__ static inline void narrow(float x, __half *y) { *y = __float2half_rn(x); }
__device__ static inline void narrow(float x, __nv_bfloat16 *y) { *y = __float2bfloat16_rn(x); }

/* Converts two bf16 to float like __bfloat1622float2, but by operations on the 32-bit word. The compiler then extracts an element
 * again where it is used, instead of keeping both floats in registers. */
__device__ static inline float2 widen_pair(__nv_bfloat162 x) {
  const uint32_t word = *(const uint32_t *)&x;
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}

/* widen_all and narrow_all convert COUNT elements. For types of two bytes, RL_CONVERT_IN_PAIRS below defines these functions and
 * update_maxima: they process elements in pairs, with half the instructions. */
template <int COUNT> __device__ static inline void widen_all(const double *x, double *y) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) y[i] = x[i];
}
template <int COUNT> __device__ static inline void widen_all(const float *x, float *y) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) y[i] = x[i];
}
template <int COUNT> __device__ static inline void narrow_all(const double *x, double *y) { widen_all<COUNT>(x, y); }
template <int COUNT> __device__ static inline void narrow_all(const float *x, float *y) { widen_all<COUNT>(x, y); }

/* Sets maxima[i] to the greater of maxima[i] and x[i], for COUNT elements. */
template <int COUNT, class T> __device__ static inline void update_maxima(const T *x, T *maxima) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) maxima[i] = x[i] > maxima[i] ? x[i] : maxima[i];
}

/* PAIR: two elements of type T. FROM_PAIR converts a PAIR to a float2, and TO_PAIR two floats to a PAIR. */
#define RL_CONVERT_IN_PAIRS(T, PAIR, FROM_PAIR, TO_PAIR)                                    \
  template <int COUNT> __device__ static inline void widen_all(const T *x, float *y) {      \
    if (COUNT % 2 == 1) y[COUNT - 1] = widen(x[COUNT - 1]);                                 \
    _Pragma("unroll") for (int i = 0; i + 1 < COUNT; i += 2) {                              \
      const float2 pair = FROM_PAIR(PAIR(x[i], x[i + 1]));                                  \
      y[i] = pair.x, y[i + 1] = pair.y;                                                     \
    }                                                                                       \
  }                                                                                         \
  template <int COUNT> __device__ static inline void narrow_all(const float *x, T *y) {     \
    if (COUNT % 2 == 1) narrow(x[COUNT - 1], &y[COUNT - 1]);                                \
    _Pragma("unroll") for (int i = 0; i + 1 < COUNT; i += 2) {                              \
      const PAIR pair = TO_PAIR(x[i], x[i + 1]);                                            \
      y[i] = pair.x, y[i + 1] = pair.y;                                                     \
    }                                                                                       \
  }                                                                                         \
  template <int COUNT> __device__ static inline void update_maxima(const T *x, T *maxima) { \
    if (COUNT % 2 == 1) maxima[COUNT - 1] = __hmax(x[COUNT - 1], maxima[COUNT - 1]);        \
    _Pragma("unroll") for (int i = 0; i + 1 < COUNT; i += 2) {                              \
      const PAIR pair = __hmax2(PAIR(x[i], x[i + 1]), PAIR(maxima[i], maxima[i + 1]));      \
      maxima[i] = pair.x, maxima[i + 1] = pair.y;                                           \
    }                                                                                       \
  }
RL_CONVERT_IN_PAIRS(__half, __half2, __half22float2, __floats2half2_rn)
RL_CONVERT_IN_PAIRS(__nv_bfloat16, __nv_bfloat162, widen_pair, __floats2bfloat162_rn)
#undef RL_CONVERT_IN_PAIRS

/* Evaluates the expression CALL, in which T is the element type that DTYPE stands for, and returns its value from the calling
 * function. DTYPE is one of RL_KERNEL_COMMON_DTYPES (kernel.h). */
#define RL_KERNEL_BY_DTYPE(DTYPE, CALL) \
  switch (DTYPE) {                      \
    case RL_DTYPE_FP64: {               \
      typedef double T;                 \
      return CALL;                      \
    }                                   \
    case RL_DTYPE_FP32: {               \
      typedef float T;                  \
      return CALL;                      \
    }                                   \
    case RL_DTYPE_FP16: {               \
      typedef __half T;                 \
      return CALL;                      \
    }                                   \
    default: {                          \
      typedef __nv_bfloat16 T;          \
      return CALL;                      \
    }                                   \
  }

#endif
