/* Converts a launch to the inputs of cuda_occupancy.h. For the occupancy curves, varies one of these inputs. */
#include "worker/cupti/occupancy.h"

#include <cuda_occupancy.h>
#include <cuda_runtime_api.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "worker/cupti/check.h"

int rl_device_limits_read(int device_index, rl_device_limits *limits, rl_error *err) {
  struct cudaDeviceProp device;
  if (rl_cuda_check(cudaGetDeviceProperties(&device, device_index), "cudaGetDeviceProperties", err) < 0) return -1;
  *limits = (rl_device_limits){.major = device.major,
                               .minor = device.minor,
                               .sm_count = device.multiProcessorCount,
                               .warp_size = device.warpSize,
                               .max_block_threads = device.maxThreadsPerBlock,
                               .max_sm_threads = device.maxThreadsPerMultiProcessor,
                               .max_block_registers = device.regsPerBlock,
                               .max_sm_registers = device.regsPerMultiprocessor,
                               .max_block_shared_bytes = device.sharedMemPerBlock,
                               .max_block_shared_optin_bytes = device.sharedMemPerBlockOptin,
                               .reserved_block_shared_bytes = device.reservedSharedMemPerBlock,
                               .max_sm_shared_bytes = device.sharedMemPerMultiprocessor};
  return 0;
}

rl_block_resources rl_block_resources_of(const rl_activity_row *row, int barriers) {
  return (rl_block_resources){.threads = (int)(row->block[0] * row->block[1] * row->block[2]),
                              .registers = (int)row->registers,
                              .barriers = barriers,
                              .static_shared_bytes = row->static_shared_bytes,
                              .dynamic_shared_bytes = row->dynamic_shared_bytes};
}

bool rl_shared_config_fits(const rl_block_resources *resources, const rl_residency *residency) {
  return resources->shared_config_bytes > 0 &&
         resources->shared_config_bytes >= residency->allocated_shared_bytes * (size_t)residency->blocks;
}

static int min_int(int a, int b) { return a < b ? a : b; }

static int smallest_limit(const rl_residency *residency) {
  const int by_code = min_int(min_int(residency->register_limit, residency->shared_limit), residency->barrier_limit);
  return min_int(by_code, min_int(residency->block_limit, residency->warp_limit));
}

bool rl_residency_of(const rl_device_limits *limits, const rl_block_resources *resources, rl_residency *residency) {
  if (resources->threads <= 0) return false;
  cudaOccDeviceProp device = {.computeMajor = limits->major,
                              .computeMinor = limits->minor,
                              .maxThreadsPerBlock = limits->max_block_threads,
                              .maxThreadsPerMultiprocessor = limits->max_sm_threads,
                              .regsPerBlock = limits->max_block_registers,
                              .regsPerMultiprocessor = limits->max_sm_registers,
                              .warpSize = limits->warp_size,
                              .numSms = limits->sm_count,
                              .sharedMemPerBlock = limits->max_block_shared_bytes,
                              .sharedMemPerMultiprocessor = limits->max_sm_shared_bytes,
                              .sharedMemPerBlockOptin = limits->max_block_shared_optin_bytes,
                              .reservedSharedMemPerBlock = limits->reserved_block_shared_bytes};
  cudaOccFuncAttributes function = {.maxThreadsPerBlock = resources->threads,
                                    .numRegs = resources->registers,
                                    .sharedSizeBytes = resources->static_shared_bytes,
                                    .partitionedGCConfig = PARTITIONED_GC_OFF,
                                    .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                    .maxDynamicSharedSizeBytes = INT_MAX,
                                    .numBlockBarriers = resources->barriers >= 0 ? resources->barriers : 1};
  cudaOccDeviceState state = {.carveoutConfig =
                                  resources->has_carveout_request ? resources->carveout_request_pct : SHAREDMEM_CARVEOUT_DEFAULT};
  cudaOccResult result;
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, resources->threads,
                                              resources->dynamic_shared_bytes) != CUDA_OCC_SUCCESS ||
      result.activeBlocksPerMultiprocessor == 0)
    return false;
  int warps = (resources->threads + limits->warp_size - 1) / limits->warp_size;
  *residency = (rl_residency){.block_limit = result.blockLimitBlocks,
                              .register_limit = result.blockLimitRegs,
                              .shared_limit = result.blockLimitSharedMem,
                              .warp_limit = result.blockLimitWarps,
                              .barrier_limit = min_int(result.blockLimitBarriers, result.blockLimitBlocks),
                              .blocks = result.activeBlocksPerMultiprocessor,
                              .allocated_registers = result.allocatedRegistersPerBlock / (warps * limits->warp_size),
                              .allocated_shared_bytes = result.allocatedSharedMemPerBlock};
  if (residency->allocated_shared_bytes > 0 && rl_shared_config_fits(resources, residency)) {
    residency->shared_limit = (int)(resources->shared_config_bytes / residency->allocated_shared_bytes);
    residency->blocks = smallest_limit(residency);
  }
  residency->warps = residency->blocks * warps;
  return true;
}

double rl_occupancy_ratio(const rl_device_limits *limits, const rl_activity_row *row, int barriers) {
  rl_block_resources resources = rl_block_resources_of(row, barriers);
  rl_residency residency;
  if (row->kind != RL_ACTIVITY_KERNEL || !rl_residency_of(limits, &resources, &residency)) return NAN;
  return (double)residency.warps / (limits->max_sm_threads / limits->warp_size);
}

/* A curve over one resource (registers, threads, barriers or shared memory). `set` sets it to first, first + step, ..., last. */
typedef struct occupancy_curve {
  const char *series; /* name of the series that stores the curve; NULL: not stored */
  void (*set)(rl_block_resources *resources, int x);
  int first, last, step;
} occupancy_curve;

static void set_registers(rl_block_resources *resources, int x) { resources->registers = x; }
static void set_threads(rl_block_resources *resources, int x) { resources->threads = x; }
static void set_barriers(rl_block_resources *resources, int x) { resources->barriers = x; }
static void set_shared(rl_block_resources *resources, int x) {
  resources->static_shared_bytes = 0;
  resources->dynamic_shared_bytes = (size_t)x;
}

/* Returns the resident warps per SM at a point of the curve: 0 where no block fits on an SM. If resources has a carveout, the
 * blocks must fit into it, although the driver could choose a larger one for other blocks. */
static int warps_at(const rl_device_limits *limits, const rl_block_resources *resources, const occupancy_curve *curve, int x) {
  rl_block_resources changed = *resources;
  rl_residency residency;
  changed.shared_config_bytes = 0;
  curve->set(&changed, x);
  if (!rl_residency_of(limits, &changed, &residency)) return 0;
  if (resources->shared_config_bytes == 0 || residency.allocated_shared_bytes == 0) return residency.warps;
  const int fitting_blocks = (int)(resources->shared_config_bytes / residency.allocated_shared_bytes);
  return residency.warps / residency.blocks * min_int(residency.blocks, fitting_blocks);
}

enum { MAX_REGISTERS = 256, MAX_BARRIERS = 64, NCU_THREAD_STEP = 16 };

/* Returns the curve over which ncu sums. Its first point stands for 1 register or thread. */
static occupancy_curve ncu_curve(const rl_device_limits *limits, rl_occupancy_resource varied) {
  switch (varied) {
    case RL_OCCUPANCY_REGISTERS: return (occupancy_curve){NULL, set_registers, 0, MAX_REGISTERS, 1};
    case RL_OCCUPANCY_THREADS: return (occupancy_curve){NULL, set_threads, 0, limits->max_block_threads, NCU_THREAD_STEP};
    default: return (occupancy_curve){NULL, set_barriers, 0, MAX_BARRIERS, 1};
  }
}

/* Returns the sum of factor * warps over the points of ncu's curve. Each product is rounded down. */
static double occupancy_sum(const rl_device_limits *limits, const rl_block_resources *resources, rl_occupancy_resource varied,
                            double factor) {
  const occupancy_curve curve = ncu_curve(limits, varied);
  double sum = 0;
  for (int x = curve.first; x <= curve.last; x += curve.step)
    sum += floor(factor * warps_at(limits, resources, &curve, x > 0 || varied == RL_OCCUPANCY_BARRIERS ? x : 1));
  return sum;
}

double rl_occupancy_sum(const rl_device_limits *limits, const rl_block_resources *resources, rl_occupancy_resource varied) {
  return occupancy_sum(limits, resources, varied, 1);
}

double rl_occupancy_pct_sum(const rl_device_limits *limits, const rl_block_resources *resources, rl_occupancy_resource varied) {
  return occupancy_sum(limits, resources, varied, 100.0 * limits->warp_size / limits->max_sm_threads);
}

/* Appends one curve. */
static int add_curve(const rl_device_limits *limits, const rl_block_resources *resources, const occupancy_curve *curve,
                     int64_t ordinal, rl_records *records, rl_error *err) {
  rl_series_point point = {.ordinal = ordinal};
  snprintf(point.name, sizeof point.name, "%s", curve->series);
  for (int x = curve->first; x <= curve->last; x += curve->step) {
    point.x = x;
    point.value = warps_at(limits, resources, curve, x);
    if (rl_records_add(records, RL_RECORD_POINT, &point, 1, err) < 0) return -1;
  }
  return 0;
}

int rl_occupancy_curves(const rl_device_limits *limits, const rl_block_resources *resources, int64_t ordinal, rl_records *records,
                        rl_error *err) {
  enum { REGISTER_STEP = 8, SHARED_STEP = 4 << 10 };
  const int warp = limits->warp_size;
  const occupancy_curve curves[] = {
      {"occupancy_by_registers", set_registers, REGISTER_STEP, MAX_REGISTERS, REGISTER_STEP},
      {"occupancy_by_block_size", set_threads, warp, limits->max_block_threads, warp},
      {"occupancy_by_shared_bytes", set_shared, 0, (int)limits->max_block_shared_optin_bytes, SHARED_STEP}};
  for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
    if (add_curve(limits, resources, &curves[i], ordinal, records, err) < 0) return -1;
  return 0;
}
