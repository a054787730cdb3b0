#include "worker/cupti/occupancy.h"

#include <cuda_occupancy.h>
#include <cuda_runtime_api.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "worker/cupti/result.h"

int rl_occupancy_of_device(int device_index, rl_occupancy *occupancy, rl_error *err) {
  struct cudaDeviceProp device;
  if (rl_cuda_check(cudaGetDeviceProperties(&device, device_index), "cudaGetDeviceProperties", err) != 0) return -1;
  *occupancy = (rl_occupancy){.major = device.major,
                              .minor = device.minor,
                              .processors = device.multiProcessorCount,
                              .warp_threads = device.warpSize,
                              .block_threads = device.maxThreadsPerBlock,
                              .processor_threads = device.maxThreadsPerMultiProcessor,
                              .block_registers = device.regsPerBlock,
                              .processor_registers = device.regsPerMultiprocessor,
                              .block_shared_bytes = device.sharedMemPerBlock,
                              .block_shared_optin_bytes = device.sharedMemPerBlockOptin,
                              .block_reserved_bytes = device.reservedSharedMemPerBlock,
                              .processor_shared_bytes = device.sharedMemPerMultiprocessor};
  return 0;
}

rl_footprint rl_footprint_of(const rl_activity_row *row, int barriers) {
  return (rl_footprint){.threads = (int)(row->block[0] * row->block[1] * row->block[2]),
                        .registers = (int)row->registers,
                        .barriers = barriers,
                        .static_shared_bytes = row->static_shared_bytes,
                        .dynamic_shared_bytes = row->dynamic_shared_bytes};
}

static int least(int a, int b) { return a < b ? a : b; }

bool rl_residency_of(const rl_occupancy *occupancy, const rl_footprint *footprint, rl_residency *residency) {
  if (footprint->threads <= 0) return false;
  cudaOccDeviceProp device = {.computeMajor = occupancy->major,
                              .computeMinor = occupancy->minor,
                              .maxThreadsPerBlock = occupancy->block_threads,
                              .maxThreadsPerMultiprocessor = occupancy->processor_threads,
                              .regsPerBlock = occupancy->block_registers,
                              .regsPerMultiprocessor = occupancy->processor_registers,
                              .warpSize = occupancy->warp_threads,
                              .numSms = occupancy->processors,
                              .sharedMemPerBlock = occupancy->block_shared_bytes,
                              .sharedMemPerMultiprocessor = occupancy->processor_shared_bytes,
                              .sharedMemPerBlockOptin = occupancy->block_shared_optin_bytes,
                              .reservedSharedMemPerBlock = occupancy->block_reserved_bytes};
  cudaOccFuncAttributes function = {.maxThreadsPerBlock = footprint->threads,
                                    .numRegs = footprint->registers,
                                    .sharedSizeBytes = footprint->static_shared_bytes,
                                    .partitionedGCConfig = PARTITIONED_GC_OFF,
                                    .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                    .maxDynamicSharedSizeBytes = INT_MAX,
                                    .numBlockBarriers = footprint->barriers >= 0 ? footprint->barriers : 1};
  cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
  cudaOccResult result;
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, footprint->threads,
                                              footprint->dynamic_shared_bytes) != CUDA_OCC_SUCCESS ||
      result.activeBlocksPerMultiprocessor == 0)
    return false;
  int warps = (footprint->threads + occupancy->warp_threads - 1) / occupancy->warp_threads;
  *residency = (rl_residency){.by_blocks = result.blockLimitBlocks,
                              .by_registers = result.blockLimitRegs,
                              .by_shared = result.blockLimitSharedMem,
                              .by_warps = result.blockLimitWarps,
                              .by_barriers = least(result.blockLimitBarriers, result.blockLimitBlocks),
                              .blocks = result.activeBlocksPerMultiprocessor,
                              .warps = result.activeBlocksPerMultiprocessor * warps,
                              .allocated_registers = result.allocatedRegistersPerBlock / (warps * occupancy->warp_threads),
                              .allocated_shared_bytes = result.allocatedSharedMemPerBlock};
  if (footprint->shared_config_bytes > 0 && residency->allocated_shared_bytes > 0)
    residency->by_shared = (int)(footprint->shared_config_bytes / residency->allocated_shared_bytes);
  return true;
}

double rl_occupancy_ratio(const rl_occupancy *occupancy, const rl_activity_row *row, int barriers) {
  rl_footprint footprint = rl_footprint_of(row, barriers);
  rl_residency residency;
  if (row->kind != RL_ACTIVITY_KERNEL || !rl_residency_of(occupancy, &footprint, &residency)) return NAN;
  return (double)residency.warps / (occupancy->processor_threads / occupancy->warp_threads);
}

/* The footprint with one thing set to x, from first to last. */
typedef struct curve {
  const char *series;
  void (*set)(rl_footprint *footprint, int x);
  int first, last, step;
} curve;

static void set_registers(rl_footprint *footprint, int x) { footprint->registers = x; }
static void set_threads(rl_footprint *footprint, int x) { footprint->threads = x; }
static void set_shared(rl_footprint *footprint, int x) {
  footprint->static_shared_bytes = 0;
  footprint->dynamic_shared_bytes = (size_t)x;
}

/* Where no block fits, no warp is resident. */
static int add_curve(const rl_occupancy *occupancy, const rl_footprint *footprint, const curve *along, int64_t ordinal,
                     rl_records *records, rl_error *err) {
  rl_series_point point = {.ordinal = ordinal};
  snprintf(point.name, sizeof point.name, "%s", along->series);
  for (int x = along->first; x <= along->last; x += along->step) {
    rl_footprint changed = *footprint;
    rl_residency residency;
    along->set(&changed, x);
    point.x = x;
    point.value = rl_residency_of(occupancy, &changed, &residency) ? residency.warps : 0;
    if (rl_records_add(records, RL_RECORD_POINT, &point, 1, err) < 0) return -1;
  }
  return 0;
}

int rl_occupancy_curves(const rl_occupancy *occupancy, const rl_footprint *footprint, int64_t ordinal, rl_records *records,
                        rl_error *err) {
  enum { REGISTER_STEP = 8, MOST_REGISTERS = 256, SHARED_STEP = 4 << 10 };
  const int warp = occupancy->warp_threads;
  const curve curves[] = {{"occupancy_by_registers", set_registers, REGISTER_STEP, MOST_REGISTERS, REGISTER_STEP},
                          {"occupancy_by_block_size", set_threads, warp, occupancy->block_threads, warp},
                          {"occupancy_by_shared_bytes", set_shared, 0, (int)occupancy->block_shared_optin_bytes, SHARED_STEP}};
  for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
    if (add_curve(occupancy, footprint, &curves[i], ordinal, records, err) != 0) return -1;
  return 0;
}
