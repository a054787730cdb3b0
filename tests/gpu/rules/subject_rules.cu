/* One step of all the launches. */
#include "cupti/subject.h"

#include <cuda.h>
#include <string.h>

#include "kernels.h"
#include "processors.h"

rules_memory held;

namespace {

struct rig {
  rl_instance base;
  rl_device device;
  rl_sequence sequence;
  rl_launch launches[128];
  CUmemGenericAllocationHandle compressed;
};
rig only;

int check(cudaError_t result, const char *what, rl_error *err) {
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s: %s", what, cudaGetErrorString(result));
}

template <typename Function> Function driver(const char *name) {
  void *found = NULL;
  cudaDriverEntryPointQueryResult status;
  cudaError_t result = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status);
  return result == cudaSuccess ? (Function)found : NULL;
}

/* Memory that L2 may compress; NULL where there is none. */
uint32_t *map_compressible(size_t bytes) {
  auto create = driver<decltype(&cuMemCreate)>("cuMemCreate");
  auto reserve = driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  auto map = driver<decltype(&cuMemMap)>("cuMemMap");
  auto allow = driver<decltype(&cuMemSetAccess)>("cuMemSetAccess");
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = 0;
  bool mapped = create && reserve && map && allow && create(&only.compressed, bytes, &kind, 0) == CUDA_SUCCESS &&
                reserve(&at, bytes, 0, 0, 0) == CUDA_SUCCESS && map(at, bytes, 0, only.compressed, 0) == CUDA_SUCCESS &&
                allow(at, bytes, &access, 1) == CUDA_SUCCESS;
  return mapped ? (uint32_t *)at : NULL;
}

int make_texture(rl_error *err) {
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeLinear;
  what.res.linear.devPtr = held.from;
  what.res.linear.desc = cudaCreateChannelDesc<uint32_t>();
  what.res.linear.sizeInBytes = 1 << 20;
  cudaTextureDesc how = {};
  how.readMode = cudaReadModeElementType;
  return check(cudaCreateTextureObject(&held.texture, &what, &how, NULL), "texture", err);
}

void add(const rules_launches &more) {
  for (size_t i = 0; i < more.count; i++) only.launches[only.sequence.launch_count++] = more.items[i];
}

int nothing(rl_instance *, rl_error *) { return 0; }
int no_report(rl_instance *, rl_report *, rl_error *) { return 0; }
void close_all(rl_instance *) {
  cudaDestroyTextureObject(held.texture);
  cudaFree(held.from);
  cudaFree(held.to);
  cudaStreamDestroy((cudaStream_t)only.device.stream);
}
const rl_instance_ops ops = {nothing, no_report, nothing, nothing, close_all, NULL};

}  // namespace

int rules_processors(void) { return held.processors; }

int subject_open(int, char **, rl_instance **instance, rl_error *err) {
  int count = 0;
  cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    check(found == cudaSuccess ? cudaErrorNoDevice : found, "no GPU here", err);
    return 1;
  }
  if (check(cudaDeviceGetAttribute(&held.processors, cudaDevAttrMultiProcessorCount, 0), "attribute", err) != 0 ||
      check(cudaStreamCreateWithFlags((cudaStream_t *)&only.device.stream, cudaStreamNonBlocking), "stream", err) != 0 ||
      check(cudaMalloc((void **)&held.from, rules_memory::bytes), "memory", err) != 0 ||
      check(cudaMalloc((void **)&held.to, rules_memory::bytes), "memory", err) != 0 ||
      check(cudaMemset(held.from, 0, rules_memory::bytes), "memory", err) != 0 || make_texture(err) != 0)
    return -1;
  held.compressible = map_compressible(rules_memory::bytes);
  if (!held.compressible) held.compressible = held.to;
  only.device.kind = RL_DEVICE_CUDA;
  only.base.ops = &ops;
  only.base.device = &only.device;
  only.sequence = rl_sequence{"step", only.launches, 0, 1};
  add(arithmetic_launches), add(waiting_launches), add(moving_launches), add(placing_launches);
  only.base.iteration = rl_program{"epoch", &only.sequence, 1};
  *instance = &only.base;
  return 0;
}
