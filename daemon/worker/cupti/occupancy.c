#include "worker/cupti/occupancy.h"

#include <cuda_occupancy.h>
#include <cuda_runtime_api.h>
#include <limits.h>
#include <math.h>

#include "worker/cupti/result.h"

int rl_occupancy_of_device(int device_index, rl_occupancy *occupancy, rl_error *err) {
  struct cudaDeviceProp device;
  if (rl_cuda_check(cudaGetDeviceProperties(&device, device_index), "cudaGetDeviceProperties", err) != 0) return -1;
  *occupancy = (rl_occupancy){.major = device.major, .minor = device.minor, .processors = device.multiProcessorCount,
                              .warp_threads = device.warpSize, .block_threads = device.maxThreadsPerBlock,
                              .processor_threads = device.maxThreadsPerMultiProcessor,
                              .block_registers = device.regsPerBlock,
                              .processor_registers = device.regsPerMultiprocessor,
                              .block_shared_bytes = device.sharedMemPerBlock,
                              .block_shared_optin_bytes = device.sharedMemPerBlockOptin,
                              .block_reserved_bytes = device.reservedSharedMemPerBlock,
                              .processor_shared_bytes = device.sharedMemPerMultiprocessor};
  return 0;
}

double rl_occupancy_ratio(const rl_occupancy *occupancy, const rl_activity_row *row) {
  int threads = (int)(row->block[0] * row->block[1] * row->block[2]);
  if (row->kind != RL_ACTIVITY_KERNEL || threads == 0) return NAN;
  cudaOccDeviceProp device = {.computeMajor = occupancy->major, .computeMinor = occupancy->minor,
                              .maxThreadsPerBlock = occupancy->block_threads,
                              .maxThreadsPerMultiprocessor = occupancy->processor_threads,
                              .regsPerBlock = occupancy->block_registers,
                              .regsPerMultiprocessor = occupancy->processor_registers,
                              .warpSize = occupancy->warp_threads, .numSms = occupancy->processors,
                              .sharedMemPerBlock = occupancy->block_shared_bytes,
                              .sharedMemPerMultiprocessor = occupancy->processor_shared_bytes,
                              .sharedMemPerBlockOptin = occupancy->block_shared_optin_bytes,
                              .reservedSharedMemPerBlock = occupancy->block_reserved_bytes};
  cudaOccFuncAttributes function = {.maxThreadsPerBlock = threads, .numRegs = (int)row->registers,
                                    .sharedSizeBytes = row->static_shared_bytes,
                                    .partitionedGCConfig = PARTITIONED_GC_OFF,
                                    .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                    .maxDynamicSharedSizeBytes = INT_MAX, .numBlockBarriers = 1};
  cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
  cudaOccResult result;
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, row->dynamic_shared_bytes) !=
          CUDA_OCC_SUCCESS ||
      result.activeBlocksPerMultiprocessor == 0)
    return NAN;
  int warps = (threads + occupancy->warp_threads - 1) / occupancy->warp_threads;
  return (double)(result.activeBlocksPerMultiprocessor * warps) / (occupancy->processor_threads / occupancy->warp_threads);
}
