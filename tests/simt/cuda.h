/* The language of device code, for the C++ that translate.py makes of it; included in front of everything. NVIDIA's own headers
 * give types and conversions, which they have for host code, too. Kernels see themselves compiled for compute capability 9.0. */
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

#include "machine.h"
#include "ptx.h"

#undef __launch_bounds__
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 900
/* The runtime's own template loses the kernel's type. */
#define cudaLaunchKernelEx simt::launch_by_config

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = simt::WARP;

namespace simt {

template <class T, size_t ALIGNMENT, class Site>
T &shared(Site) { /* Site: a type of its own for each declaration and instance of it */
  static const char key = 0;
  return *(T *)shared_variable(&key, sizeof(T), std::max(ALIGNMENT, alignof(T)));
}

template <class T, size_t ALIGNMENT> T *dynamic_shared() { return (T *)dynamic_memory(std::max(ALIGNMENT, alignof(T))); }

cudaError_t note_launch(cudaError_t status); /* for cudaGetLastError */

template <class... Parameters> struct launching {
  shape of;
  void (*kernel)(Parameters...);
  cudaError_t operator()(std::type_identity_t<Parameters>... parameters) const {
    return note_launch(launch(of, (const void *)kernel, [&] { kernel(parameters...); }));
  }
};

struct launcher { /* what stands between <<< and >>> */
  shape of;
  launcher(dim3 grid, dim3 block, size_t dynamic_bytes = 0, cudaStream_t = NULL) : of{grid, block, dynamic_bytes} {}
  template <class... Parameters> launching<Parameters...> operator()(void (*kernel)(Parameters...)) const { return {of, kernel}; }
};

template <class... Parameters> cudaError_t launch_by_config(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                                            std::type_identity_t<Parameters>... parameters) {
  shape of = {config->gridDim, config->blockDim, config->dynamicSmemBytes};
  for (unsigned i = 0; i < config->numAttrs; i++) switch (config->attrs[i].id) {
      case cudaLaunchAttributeProgrammaticStreamSerialization: break;
      case cudaLaunchAttributeCooperative: of.cooperative = config->attrs[i].val.cooperative; break;
      case cudaLaunchAttributeClusterDimension:
        of.cluster = {config->attrs[i].val.clusterDim.x, config->attrs[i].val.clusterDim.y, config->attrs[i].val.clusterDim.z};
        break;
      default: die("launch attribute %d is not known", (int)config->attrs[i].id);
    }
  return launching<Parameters...>{of, kernel}(parameters...);
}

}  // namespace simt

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

/* Compiled for what compute capability, so that kernels are launched as they see themselves. */
template <class... Parameters> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *of, void (*)(Parameters...)) {
  *of = {};
  of->ptxVersion = of->binaryVersion = __CUDA_ARCH__ / 10;
  return cudaSuccess;
}

/* Two: clusters take turns as soon as there are three; but as many as a cooperative launch needs. */
template <class... Parameters>
cudaError_t cudaOccupancyMaxActiveClusters(int *count, void (*)(Parameters...), const cudaLaunchConfig_t *config) {
  *count = 2;
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttribute &of = config->attrs[i];
    if (of.id == cudaLaunchAttributeCooperative) *count = (int)config->gridDim.x;
    if (of.id == cudaLaunchAttributeClusterDimension && of.val.clusterDim.x > simt_most_cluster)
      return cudaErrorInvalidClusterSize;
  }
  return cudaSuccess;
}

namespace simt {

/* --- warps ------------------------------------------------------------------------------------------------------------- */

template <class T> struct exchanged {
  T value;
  uint32_t from;
};

/* A lane that is not there leaves bytes of 0xff. */
template <class T> T exchange(const char *name, uint32_t mask, T value, uint32_t from) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2), "what can be shuffled");
  exchanged<T> mine = {value, from};
  meet(name, mask, &mine, [](void *const lanes[WARP]) {
    T values[WARP];
    memset((void *)values, 0xff, sizeof values);
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) values[i] = ((exchanged<T> *)lanes[i])->value;
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) ((exchanged<T> *)lanes[i])->value = values[((exchanged<T> *)lanes[i])->from];
  });
  return mine.value;
}

/* The lanes of the mask where the predicate holds. */
inline uint32_t vote(const char *name, uint32_t mask, bool holds) {
  uint32_t mine = holds;
  meet(name, mask, &mine, [](void *const lanes[WARP]) {
    uint32_t votes = 0;
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) votes |= *(uint32_t *)lanes[i] << i;
    for (int i = 0; i < WARP; i++)
      if (lanes[i]) *(uint32_t *)lanes[i] = votes;
  });
  return mine;
}

}  // namespace simt

template <class T> T __shfl_sync(uint32_t mask, T value, int from, int width = simt::WARP) {
  return simt::exchange("__shfl_sync", mask, value,
                        (simt::lane() & ~(uint32_t)(width - 1)) | ((uint32_t)from & (uint32_t)(width - 1)));
}
template <class T> T __shfl_xor_sync(uint32_t mask, T value, int with, int width = simt::WARP) {
  const uint32_t own = simt::lane(), from = own ^ (uint32_t)with;
  return simt::exchange("__shfl_xor_sync", mask, value, from / (uint32_t)width > own / (uint32_t)width ? own : from);
}
template <class T> T __shfl_down_sync(uint32_t mask, T value, unsigned by, int width = simt::WARP) {
  const uint32_t own = simt::lane();
  return simt::exchange("__shfl_down_sync", mask, value, own % (uint32_t)width + by < (uint32_t)width ? own + by : own);
}
template <class T> T __shfl_up_sync(uint32_t mask, T value, unsigned by, int width = simt::WARP) {
  const uint32_t own = simt::lane();
  return simt::exchange("__shfl_up_sync", mask, value, own % (uint32_t)width >= by ? own - by : own);
}
inline int __reduce_max_sync(uint32_t mask, int value) {
  int most = value;
  simt::meet("__reduce_max_sync", mask, &most, [](void *const lanes[simt::WARP]) {
    int all = INT32_MIN;
    for (int i = 0; i < simt::WARP; i++)
      if (lanes[i]) all = std::max(all, *(int *)lanes[i]);
    for (int i = 0; i < simt::WARP; i++)
      if (lanes[i]) *(int *)lanes[i] = all;
  });
  return most;
}
inline uint32_t __ballot_sync(uint32_t mask, int holds) { return simt::vote("__ballot_sync", mask, holds); }
inline int __any_sync(uint32_t mask, int holds) { return simt::vote("__any_sync", mask, holds) != 0; }
inline int __all_sync(uint32_t mask, int holds) { return simt::vote("__all_sync", mask, !holds) == 0; }
inline void __syncwarp(uint32_t mask = ~0u) { simt::vote("__syncwarp", mask, false); }

/* --- blocks, fences, atomics ------------------------------------------------------------------------------------------- */

inline void __syncthreads() { simt::block_barrier("__syncthreads"); }
inline void __threadfence_block() { simt::pass(); }
inline void __threadfence() { simt::pass(); }
inline void __trap() { simt::die("__trap"); }
inline void __threadfence_system() { simt::pass(); }
inline void __nanosleep(unsigned) { simt::pass(); }
inline long long clock64() { return 0; } /* there is no time here */
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

namespace simt {
/* Nothing comes between reading and writing, but anything may in front and behind. */
template <class T, class Change> T atomically(T *at, Change change) {
  pass();
  const T old = *at;
  *at = change(old);
  pass();
  return old;
}
}  // namespace simt
template <class T> T atomicAdd(T *at, std::type_identity_t<T> by) {
  return simt::atomically(at, [&](T old) { return old + by; });
}
template <class T> T atomicSub(T *at, std::type_identity_t<T> by) {
  return simt::atomically(at, [&](T old) { return old - by; });
}
template <class T> T atomicExch(T *at, std::type_identity_t<T> to) {
  return simt::atomically(at, [&](T) { return to; });
}
template <class T> T atomicMax(T *at, std::type_identity_t<T> with) {
  return simt::atomically(at, [&](T old) { return std::max(old, with); });
}
template <class T> T atomicMin(T *at, std::type_identity_t<T> with) {
  return simt::atomically(at, [&](T old) { return std::min(old, with); });
}
template <class T> T atomicOr(T *at, std::type_identity_t<T> with) {
  return simt::atomically(at, [&](T old) { return old | with; });
}
template <class T> T atomicAnd(T *at, std::type_identity_t<T> with) {
  return simt::atomically(at, [&](T old) { return old & with; });
}
template <class T> T atomicCAS(T *at, std::type_identity_t<T> expected, std::type_identity_t<T> to) {
  return simt::atomically(at, [&](T old) { return old == expected ? to : old; });
}

template <class T> T __ldg(const T *from) { return *from; }
template <class T> T __ldcs(const T *from) { return *from; }
template <class T> T __ldcg(const T *from) {
  simt::pass(); /* what others write is waited for so */
  return *from;
}
template <class T> void __stcg(T *to, std::type_identity_t<T> value) { *to = value; }
template <class T> void __stcs(T *to, std::type_identity_t<T> value) { *to = value; }

inline size_t __cvta_generic_to_shared(const void *of) { return simt::shared_address(of); }

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
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned chosen) { /* without its modes that repeat a sign */
  const uint64_t bytes = (uint64_t)y << 32 | x;
  unsigned made = 0;
  for (int i = 0; i < 4; i++) made |= (unsigned)(bytes >> (chosen >> i * 4 & 7) * 8 & 0xff) << i * 8;
  return made;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __double2hiint(double x) { return (int)(std::bit_cast<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return (int)std::bit_cast<uint64_t>(x); }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
/* To the nearest integer there is; of what is no number double makes the least one, float zero (PTX ISA, "cvt"). */
inline int __double2int_rn(double x) {
  return std::isnan(x) ? INT32_MIN : (int)std::nearbyint(std::clamp(x, (double)INT32_MIN, (double)INT32_MAX));
}
inline int __float2int_rn(float x) { return std::isnan(x) ? 0 : __double2int_rn(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }

#endif
