/* Kernels that each do one thing badly, or well: a step of them for the counters pass, so that every rule sees one that it must
 * speak of and one that it must not. */
#ifndef RL_TESTS_RULES_KERNELS_H
#define RL_TESTS_RULES_KERNELS_H

#include <cuda_runtime.h>

#include "workload.h"

/* Shared by all launches; filled by subject_open. */
struct rules_memory {
  static constexpr size_t bytes = size_t{256} << 20;
  uint32_t *from, *to;         /* bytes each; from is zero */
  uint32_t *compressible;      /* bytes; NULL where the device does not compress */
  cudaTextureObject_t texture; /* the beginning of from */
  int processors;
};
extern rules_memory held;

/* Launch and say whether that went well. */
template <typename... Parameters, typename... Arguments> int go(rl_stream stream, rl_error *err, void (*kernel)(Parameters...),
                                                                unsigned blocks, unsigned threads, size_t shared,
                                                                Arguments... arguments) {
  cudaError_t result = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (result == cudaSuccess) kernel<<<blocks, threads, shared, (cudaStream_t)stream>>>(arguments...);
  if (result == cudaSuccess) result = cudaGetLastError();
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s", cudaGetErrorString(result));
}

/* A launch named after what it shows: RULES_LAUNCH(name, kernel, blocks, threads, dynamic shared bytes, arguments...). */
#define RULES_LAUNCH(NAME, ...)                                                                                      \
  {                                                                                                                  \
    NAME, "rules", [](void *, rl_stream stream, rl_error *err) -> int { return go(stream, err, __VA_ARGS__); }, NULL \
  }

struct rules_launches {
  const rl_launch *items;
  size_t count;
};
extern const rules_launches arithmetic_launches, waiting_launches, moving_launches, placing_launches;

#endif
