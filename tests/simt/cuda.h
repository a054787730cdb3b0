/* CUDA's built-in variables, functions and launch syntax, for the C++ that translate.py makes of a .cu file. The compiler
 * includes this file before everything else. Types and conversions come from NVIDIA's headers, which also support host code.
 * __CUDA_ARCH__ is that of compute capability 9.0. */
#ifndef SIMT_CUDA_H
#define SIMT_CUDA_H

#include <cooperative_groups.h>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "emulator.h"
#include "ptx.h"

#undef __launch_bounds__
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL 1
/* The CUDA runtime's template converts the kernel to a void pointer, which loses its type. launch_ex keeps the type. */
#define cudaLaunchKernelEx simt::launch_ex

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = simt::WARP;

namespace simt {

template <class T, size_t ALIGNMENT, class Site>
T &shared(Site) { /* Site: a different type for each declaration and each template instance of it */
  static const char key = 0;
  return *(T *)shared_variable(&key, sizeof(T), std::max(ALIGNMENT, alignof(T)));
}

template <class T, size_t ALIGNMENT> T *dynamic_shared() { return (T *)dynamic_shared_memory(std::max(ALIGNMENT, alignof(T))); }

cudaError_t set_last_error(cudaError_t status); /* for cudaGetLastError; returns status */

template <class... Parameters> struct bound_launch {
  launch_config config;
  void (*kernel)(Parameters...);
  cudaError_t operator()(std::type_identity_t<Parameters>... parameters) const {
    return set_last_error(launch(config, (const void *)kernel, [&] { kernel(parameters...); }));
  }
};

struct launcher { /* the arguments between <<< and >>> */
  launch_config config;
  launcher(dim3 grid, dim3 block, size_t dynamic_bytes = 0, cudaStream_t = NULL) : config{grid, block, dynamic_bytes} {}
  template <class... Parameters> bound_launch<Parameters...> operator()(void (*kernel)(Parameters...)) const {
    return {config, kernel};
  }
};

template <class... Parameters> cudaError_t launch_ex(const cudaLaunchConfig_t *requested, void (*kernel)(Parameters...),
                                                     std::type_identity_t<Parameters>... parameters) {
  launch_config config = {requested->gridDim, requested->blockDim, requested->dynamicSmemBytes};
  for (unsigned i = 0; i < requested->numAttrs; i++) switch (requested->attrs[i].id) {
      case cudaLaunchAttributeProgrammaticStreamSerialization: break;
      case cudaLaunchAttributeCooperative: config.cooperative = requested->attrs[i].val.cooperative; break;
      case cudaLaunchAttributeClusterDimension:
        config.cluster = {requested->attrs[i].val.clusterDim.x, requested->attrs[i].val.clusterDim.y,
                          requested->attrs[i].val.clusterDim.z};
        break;
      default: die("launch attribute %d is not known", (int)requested->attrs[i].id);
    }
  return bound_launch<Parameters...>{config, kernel}(parameters...);
}

}  // namespace simt

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

/* Reports the compute capability of __CUDA_ARCH__. */
template <class... Parameters> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*)(Parameters...)) {
  *attributes = {};
  attributes->ptxVersion = attributes->binaryVersion = __CUDA_ARCH__ / 10;
  return cudaSuccess;
}

/* Reports two clusters, so that in a grid of three or more, clusters wait until others have exited. For a cooperative launch,
 * reports all clusters. */
template <class... Parameters>
cudaError_t cudaOccupancyMaxActiveClusters(int *count, void (*)(Parameters...), const cudaLaunchConfig_t *config) {
  *count = 2;
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttribute &attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) *count = (int)config->gridDim.x;
    if (attribute.id == cudaLaunchAttributeClusterDimension && attribute.val.clusterDim.x > simt_max_cluster)
      return cudaErrorInvalidClusterSize;
  }
  return cudaSuccess;
}

namespace simt {

/* --- warps ------------------------------------------------------------------------------------------------------------- */

template <class T> struct shuffle_operand {
  T value;
  uint32_t source; /* lane */
};

/* Returns the value of lane `source`, or bytes of 0xff if that lane does not take part. */
template <class T> T shuffle(const char *name, uint32_t mask, T value, uint32_t source) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2),
                "a type that can be shuffled");
  shuffle_operand<T> own = {value, source};
  sync_lanes(name, mask, &own, [](void *const lanes[WARP]) {
    T values[WARP];
    memset((void *)values, 0xff, sizeof values);
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) values[i] = ((shuffle_operand<T> *)lanes[i])->value;
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) ((shuffle_operand<T> *)lanes[i])->value = values[((shuffle_operand<T> *)lanes[i])->source];
  });
  return own.value;
}

/* Returns the mask of the lanes whose predicate holds. */
inline uint32_t vote(const char *name, uint32_t mask, bool predicate) {
  uint32_t own = predicate;
  sync_lanes(name, mask, &own, [](void *const lanes[WARP]) {
    uint32_t votes = 0;
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) votes |= *(uint32_t *)lanes[i] << i;
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) *(uint32_t *)lanes[i] = votes;
  });
  return own;
}

}  // namespace simt

template <class T> T __shfl_sync(uint32_t mask, T value, int from, int width = simt::WARP) {
  return simt::shuffle("__shfl_sync", mask, value,
                       (simt::lane() & ~(uint32_t)(width - 1)) | ((uint32_t)from & (uint32_t)(width - 1)));
}
template <class T> T __shfl_xor_sync(uint32_t mask, T value, int with, int width = simt::WARP) {
  const uint32_t own = simt::lane(), from = own ^ (uint32_t)with;
  return simt::shuffle("__shfl_xor_sync", mask, value, from / (uint32_t)width > own / (uint32_t)width ? own : from);
}
template <class T> T __shfl_down_sync(uint32_t mask, T value, unsigned by, int width = simt::WARP) {
  const uint32_t own = simt::lane();
  return simt::shuffle("__shfl_down_sync", mask, value, own % (uint32_t)width + by < (uint32_t)width ? own + by : own);
}
template <class T> T __shfl_up_sync(uint32_t mask, T value, unsigned by, int width = simt::WARP) {
  const uint32_t own = simt::lane();
  return simt::shuffle("__shfl_up_sync", mask, value, own % (uint32_t)width >= by ? own - by : own);
}
inline int __reduce_max_sync(uint32_t mask, int value) {
  int own = value;
  simt::sync_lanes("__reduce_max_sync", mask, &own, [](void *const lanes[simt::WARP]) {
    int largest = INT32_MIN;
    for (int i = 0; i < simt::WARP; i++)
      if (lanes[i]) largest = std::max(largest, *(int *)lanes[i]);
    for (int i = 0; i < simt::WARP; i++)
      if (lanes[i]) *(int *)lanes[i] = largest;
  });
  return own;
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate) { return simt::vote("__ballot_sync", mask, predicate); }
inline int __any_sync(uint32_t mask, int predicate) { return simt::vote("__any_sync", mask, predicate) != 0; }
inline int __all_sync(uint32_t mask, int predicate) { return simt::vote("__all_sync", mask, !predicate) == 0; }
inline void __syncwarp(uint32_t mask = ~0u) { simt::vote("__syncwarp", mask, false); }

/* --- blocks, fences, atomics ------------------------------------------------------------------------------------------- */

inline void __syncthreads() { simt::block_barrier("__syncthreads"); }
inline void __threadfence_block() { simt::yield_point(); }
inline void __threadfence() { simt::yield_point(); }
inline void __trap() { simt::die("__trap"); }
inline void __threadfence_system() { simt::yield_point(); }
inline void __nanosleep(unsigned) { simt::yield_point(); }
inline double cospi(double x) { return cos(M_PI * x); }
inline long long clock64() { return 0; } /* the emulator does not model time */
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

namespace simt {
/* Changes a value atomically: other threads may run before and after the change. */
template <class T, class Change> T atomically(T *address, Change change) {
  yield_point();
  const T old = *address;
  *address = change(old);
  yield_point();
  return old;
}
}  // namespace simt
template <class T> T atomicAdd(T *address, std::type_identity_t<T> by) {
  return simt::atomically(address, [&](T old) { return old + by; });
}
template <class T> T atomicSub(T *address, std::type_identity_t<T> by) {
  return simt::atomically(address, [&](T old) { return old - by; });
}
template <class T> T atomicExch(T *address, std::type_identity_t<T> to) {
  return simt::atomically(address, [&](T) { return to; });
}
template <class T> T atomicMax(T *address, std::type_identity_t<T> with) {
  return simt::atomically(address, [&](T old) { return std::max(old, with); });
}
template <class T> T atomicMin(T *address, std::type_identity_t<T> with) {
  return simt::atomically(address, [&](T old) { return std::min(old, with); });
}
template <class T> T atomicOr(T *address, std::type_identity_t<T> with) {
  return simt::atomically(address, [&](T old) { return old | with; });
}
template <class T> T atomicAnd(T *address, std::type_identity_t<T> with) {
  return simt::atomically(address, [&](T old) { return old & with; });
}
template <class T> T atomicCAS(T *address, std::type_identity_t<T> expected, std::type_identity_t<T> to) {
  return simt::atomically(address, [&](T old) { return old == expected ? to : old; });
}

template <class T> T __ldg(const T *from) { return *from; }
template <class T> T __ldcs(const T *from) { return *from; }
inline long long __float2ll_rn(float v) { return llrintf(v); }
inline float __ll2float_rn(long long v) { return (float)v; }
template <class T> T __ldcg(const T *from) {
  simt::yield_point(); /* kernels use it in spin loops */
  return *from;
}
template <class T> void __stcg(T *to, std::type_identity_t<T> value) { *to = value; }
template <class T> void __stcs(T *to, std::type_identity_t<T> value) { *to = value; }

inline size_t __cvta_generic_to_shared(const void *generic) { return simt::shared_address(generic); }

/* --- arithmetic -------------------------------------------------------------------------------------------------------- */

using std::max;
using std::min;
inline unsigned min(unsigned a, int b) { return std::min(a, (unsigned)b); }
inline unsigned min(int a, unsigned b) { return std::min((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return std::max(a, (unsigned)b); }
inline unsigned max(int a, unsigned b) { return std::max((unsigned)a, b); }
inline float rsqrtf(float x) { return (float)(1 / std::sqrt((double)x)); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline void sincospi(double x, double *sine, double *cosine) {
  const double half_turns = std::remainder(x, 2.0);
  *sine = std::sin(M_PI * half_turns);
  *cosine = std::cos(M_PI * half_turns);
}
inline void sincospif(float x, float *sine, float *cosine) {
  double s, c;
  sincospi(x, &s, &c);
  *sine = (float)s;
  *cosine = (float)c;
}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __floats2half2_rn(std::fma(__low2float(a), __low2float(b), __low2float(c)),
                           std::fma(__high2float(a), __high2float(b), __high2float(c)));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) { /* without the modes that replicate a sign */
  const uint64_t bytes = (uint64_t)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) result |= (unsigned)(bytes >> (selector >> i * 4 & 7) * 8 & 0xff) << i * 8;
  return result;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __double2hiint(double x) { return (int)(std::bit_cast<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return (int)std::bit_cast<uint64_t>(x); }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
/* Conversions that saturate. NaN becomes INT32_MIN from double and 0 from float (PTX ISA, "cvt"). */
inline int __double2int_rn(double x) {
  return std::isnan(x) ? INT32_MIN : (int)std::nearbyint(std::clamp(x, (double)INT32_MIN, (double)INT32_MAX));
}
inline int __float2int_rn(float x) { return std::isnan(x) ? 0 : __double2int_rn(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }

#endif
