/* The subject (cupti/subject.h) of the tests in this folder: one step that consists of all launches of the folder's other .cu
 * files. It takes no arguments. */
#include "cupti/subject.h"

#include <cuda.h>
#include <string.h>

#include <initializer_list>

#include "kernels.h"
#include "sm_count.h"

rules_buffers buffers;

namespace {

struct rules_fixture {
  rl_instance base;
  rl_device device;
  rl_sequence sequence;
  rl_launch launches[128];
  CUmemGenericAllocationHandle compressed;
};
rules_fixture fixture;

int check(cudaError_t result, const char *what, rl_error *err) {
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s: %s", what, cudaGetErrorString(result));
}

/* Returns the function `name` of the CUDA driver API, or NULL when the driver has none. */
template <typename Function> Function driver_function(const char *name) {
  void *found = NULL;
  cudaDriverEntryPointQueryResult status;
  cudaError_t result = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status);
  return result == cudaSuccess ? (Function)found : NULL;
}

/* Maps `bytes` of device memory that L2 may compress and returns the address, or NULL where the device does not support
 * compression. */
uint32_t *map_compressible(size_t bytes) {
  auto create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  auto reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  auto map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  auto allow = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr address = 0;
  bool mapped = create && reserve && map && allow && create(&fixture.compressed, bytes, &kind, 0) == CUDA_SUCCESS &&
                reserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS &&
                map(address, bytes, 0, fixture.compressed, 0) == CUDA_SUCCESS &&
                allow(address, bytes, &access, 1) == CUDA_SUCCESS;
  return mapped ? (uint32_t *)address : NULL;
}

int make_texture(rl_error *err) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = buffers.from;
  resource.res.linear.desc = cudaCreateChannelDesc<uint32_t>();
  resource.res.linear.sizeInBytes = 1 << 20;
  cudaTextureDesc sampling = {};
  sampling.readMode = cudaReadModeElementType;
  return check(cudaCreateTextureObject(&buffers.texture, &resource, &sampling, NULL), "texture", err);
}

bool is_listed(const char *name, int count, char **names) {
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return true;
  return count == 0;
}

/* Adds the launches that are listed; count 0: all. */
void add(const rules_launches &group, int count, char **names) {
  for (size_t i = 0; i < group.count; i++)
    if (is_listed(group.items[i].name, count, names)) fixture.launches[fixture.sequence.launch_count++] = group.items[i];
}

int do_nothing(rl_instance *, rl_error *) { return 0; }
int no_report(rl_instance *, rl_iteration_results *, rl_error *) { return 0; }
void close_all(rl_instance *) {
  cudaDestroyTextureObject(buffers.texture);
  cudaFree(buffers.from);
  cudaFree(buffers.to);
  cudaStreamDestroy((cudaStream_t)fixture.device.stream);
}
const rl_instance_ops ops = {do_nothing, no_report, do_nothing, do_nothing, close_all, NULL};

}  // namespace

int rules_sm_count(void) { return buffers.sm_count; }

/* Arguments: names of launches; none: all launches. */
int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  int count = 0;
  cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    check(found == cudaSuccess ? cudaErrorNoDevice : found, "no GPU here", err);
    return 1;
  }
  if (check(cudaDeviceGetAttribute(&buffers.sm_count, cudaDevAttrMultiProcessorCount, 0), "attribute", err) != 0 ||
      check(cudaStreamCreateWithFlags((cudaStream_t *)&fixture.device.stream, cudaStreamNonBlocking), "stream", err) != 0 ||
      check(cudaMalloc((void **)&buffers.from, rules_buffers::bytes), "memory", err) != 0 ||
      check(cudaMalloc((void **)&buffers.to, rules_buffers::bytes), "memory", err) != 0 ||
      check(cudaMemset(buffers.from, 0, rules_buffers::bytes), "memory", err) != 0 || make_texture(err) != 0)
    return -1;
  buffers.compressible = map_compressible(rules_buffers::bytes);
  if (!buffers.compressible) buffers.compressible = buffers.to;
  fixture.device.kind = RL_DEVICE_CUDA;
  fixture.base.ops = &ops;
  fixture.base.device = &fixture.device;
  fixture.sequence = rl_sequence{"step", fixture.launches, 0, 1};
  for (const rules_launches *group : {&arithmetic_launches, &stall_launches, &memory_launches, &scheduling_launches,
                                      &atomic_launches, &pipeline_launches, &held_out_launches})
    add(*group, argc, argv);
  fixture.base.iteration = rl_sequence_list{"epoch", &fixture.sequence, 1};
  *instance = &fixture.base;
  return 0;
}
