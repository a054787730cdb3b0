/* Numbers of every rl_dtype in device code: what they are computed in, and how many one access moves. */
#ifndef RL_KERNELS_KERNEL_TYPES_CUH
#define RL_KERNELS_KERNEL_TYPES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Arithmetic is in double for fp64, else in float. */
template <class T> struct arithmetic { typedef float type; };
template <> struct arithmetic<double> { typedef double type; };

__device__ static inline double widen(double x) { return x; }
__device__ static inline float widen(float x) { return x; }
__device__ static inline float widen(__half x) { return __half2float(x); }
__device__ static inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ static inline void narrow(double x, double *y) { *y = x; }
__device__ static inline void narrow(float x, float *y) { *y = x; }
__device__ static inline void narrow(float x, __half *y) { *y = __float2half_rn(x); }
__device__ static inline void narrow(float x, __nv_bfloat16 *y) { *y = __float2bfloat16_rn(x); }

/* As many as an access of 16 bytes moves. */
template <class T> struct alignas(16) pack { T at[16 / sizeof(T)]; };

/* Returns CALL with T the type of a dtype of RL_KERNEL_FLOATS. */
#define RL_KERNEL_BY_DTYPE(DTYPE, CALL)                     \
  switch (DTYPE) {                                          \
    case RL_DTYPE_FP64: { typedef double T; return CALL; }  \
    case RL_DTYPE_FP32: { typedef float T; return CALL; }   \
    case RL_DTYPE_FP16: { typedef __half T; return CALL; }  \
    default: { typedef __nv_bfloat16 T; return CALL; }      \
  }

#endif
