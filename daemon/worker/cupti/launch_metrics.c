/* A table maps each metric name to a function that computes it from the launch's parameters, its occupancy and the device. */
#include "worker/cupti/launch_metrics.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

static const double UNKNOWN = NAN;
enum { SCHEDULERS_PER_SM = 4, SMS_PER_TPC = 2 }; /* every chip since Volta */

static double device_limit(enum cudaLimit limit) {
  size_t value = 0;
  return cudaDeviceGetLimit(&value, limit) == cudaSuccess ? (double)value : UNKNOWN;
}

static rl_block_resources resources_of(const rl_activity_row *row, const rl_launch_attributes *attributes, int barriers) {
  rl_block_resources resources = rl_block_resources_of(row, barriers);
  resources.shared_config_bytes = attributes->shared_config_bytes;
  resources.has_carveout_request = attributes->has_carveout_request;
  resources.carveout_request_pct = attributes->carveout_request_pct;
  return resources;
}

rl_launch_metric_inputs rl_launch_metric_inputs_of(const rl_device_limits *device, const rl_activity_row *row,
                                                   const rl_launch_attributes *attributes, int barriers) {
  rl_launch_metric_inputs launch = {.device = device,
                                    .row = row,
                                    .attributes = attributes,
                                    .barriers = barriers,
                                    .stack_bytes = device_limit(cudaLimitStackSize),
                                    .persisting_l2_bytes = device_limit(cudaLimitPersistingL2CacheSize)};
  const rl_block_resources resources = resources_of(row, attributes, barriers);
  launch.has_residency = rl_residency_of(device, &resources, &launch.residency);
  launch.shared_config_fits =
      launch.has_residency ? rl_shared_config_fits(&resources, &launch.residency) : attributes->shared_config_bytes > 0;
  return launch;
}

/* Number of blocks in a grid, or of threads in a block. */
#define VOLUME(SIZE) ((double)(SIZE)[0] * (SIZE)[1] * (SIZE)[2])
typedef double sum_over_curve(const rl_device_limits *limits, const rl_block_resources *resources, rl_occupancy_resource varied);

static double curve_sum(const rl_launch_metric_inputs *launch, rl_occupancy_resource varied, sum_over_curve *sum) {
  rl_block_resources resources = resources_of(launch->row, launch->attributes, launch->barriers);
  if (!launch->shared_config_fits) resources.shared_config_bytes = 0;
  return launch->has_residency ? sum(launch->device, &resources, varied) : UNKNOWN;
}

static double if_residency_known(const rl_launch_metric_inputs *launch, int value) {
  return launch->has_residency ? value : UNKNOWN;
}

/* Defines a function that returns EXPRESSION, a metric of the launch `l`. */
#define METRIC(NAME, EXPRESSION) \
  static double NAME(const rl_launch_metric_inputs *l) { return (void)l, EXPRESSION; }
METRIC(grid_x, l->row->grid[0])
METRIC(grid_y, l->row->grid[1])
METRIC(grid_z, l->row->grid[2])
METRIC(grid_size, VOLUME(l->row->grid))
METRIC(block_x, l->row->block[0])
METRIC(block_y, l->row->block[1])
METRIC(block_z, l->row->block[2])
METRIC(block_size, VOLUME(l->row->block))
METRIC(thread_count, VOLUME(l->row->grid) * VOLUME(l->row->block))
METRIC(registers, l->row->registers)
METRIC(allocated_registers, if_residency_known(l, l->residency.allocated_registers))
METRIC(shared_static, l->row->static_shared_bytes)
METRIC(shared_dynamic, l->row->dynamic_shared_bytes)
METRIC(shared_driver, (double)l->device->reserved_block_shared_bytes)
METRIC(shared_allocated, l->has_residency ? (double)l->residency.allocated_shared_bytes : UNKNOWN)
METRIC(shared_config, l->shared_config_fits ? l->attributes->shared_config_bytes : UNKNOWN)
METRIC(cache_config, l->attributes->cache_config)
METRIC(cluster_x, l->attributes->cluster[0])
METRIC(cluster_y, l->attributes->cluster[1])
METRIC(cluster_z, l->attributes->cluster[2])
METRIC(cluster_size, VOLUME(l->attributes->cluster))
METRIC(cluster_policy, l->attributes->cluster_policy)
METRIC(max_cluster_blocks, l->attributes->max_cluster_blocks > 0 ? l->attributes->max_cluster_blocks : UNKNOWN)
METRIC(max_active_clusters, l->attributes->max_active_clusters)
METRIC(block_limit, if_residency_known(l, l->residency.block_limit))
METRIC(register_limit, if_residency_known(l, l->residency.register_limit))
METRIC(shared_limit, if_residency_known(l, l->residency.shared_limit))
METRIC(warp_limit, if_residency_known(l, l->residency.warp_limit))
METRIC(barrier_limit, if_residency_known(l, l->residency.barrier_limit))
METRIC(waves_per_sm, l->has_residency ? VOLUME(l->row->grid) / ((double)l->device->sm_count * l->residency.blocks) : UNKNOWN)
METRIC(resident_warps, if_residency_known(l, l->residency.warps))
METRIC(scheduler_warps, if_residency_known(l, l->residency.warps) / SCHEDULERS_PER_SM)
METRIC(occupancy_pct, 100 * if_residency_known(l, l->residency.warps) * l->device->warp_size / l->device->max_sm_threads)
METRIC(sm_count, l->device->sm_count)
METRIC(tpcs, l->device->sm_count / (double)SMS_PER_TPC)
METRIC(stack, l->stack_bytes)
METRIC(persisting_l2, l->persisting_l2_bytes)
METRIC(max_device_blocks, l->device->sm_count *if_residency_known(l, l->residency.block_limit))
METRIC(clustered_blocks, VOLUME(l->attributes->cluster) * l->attributes->max_active_clusters)
METRIC(cluster_occupancy_pct, clustered_blocks(l) == 0 ? 0 : 100 * clustered_blocks(l) / max_device_blocks(l))
METRIC(cluster_gpu_pct, cluster_occupancy_pct(l) == 0 ? 0 : cluster_occupancy_pct(l) * occupancy_pct(l) / 100)
METRIC(green_context, 0) /* workers use no green contexts */
METRIC(barrier_count, l->barriers >= 0 ? l->barriers : UNKNOWN)
METRIC(context_id, l->row->context)
METRIC(device_id, l->row->device > 0 ? l->row->device - 1 : UNKNOWN)
METRIC(stream_id, l->row->stream)
METRIC(warps_by_registers, curve_sum(l, RL_OCCUPANCY_REGISTERS, rl_occupancy_sum))
METRIC(warps_by_threads, curve_sum(l, RL_OCCUPANCY_THREADS, rl_occupancy_sum))
METRIC(warps_by_barriers, curve_sum(l, RL_OCCUPANCY_BARRIERS, rl_occupancy_sum))
METRIC(clusters_by_size, VOLUME(l->attributes->cluster) == 0 ? 0 : UNKNOWN) /* ncu has no curve for launches without clusters */
METRIC(occupancy_by_registers_pct, curve_sum(l, RL_OCCUPANCY_REGISTERS, rl_occupancy_pct_sum))
METRIC(occupancy_by_threads_pct, curve_sum(l, RL_OCCUPANCY_THREADS, rl_occupancy_pct_sum))
METRIC(occupancy_by_barriers_pct, curve_sum(l, RL_OCCUPANCY_BARRIERS, rl_occupancy_pct_sum))
#undef METRIC

static const struct {
  const char *metric;
  double (*value)(const rl_launch_metric_inputs *launch);
} metric_functions[] = {
    {"launch__grid_dim_x", grid_x},
    {"launch__grid_dim_y", grid_y},
    {"launch__grid_dim_z", grid_z},
    {"launch__grid_size", grid_size},
    {"launch__block_dim_x", block_x},
    {"launch__block_dim_y", block_y},
    {"launch__block_dim_z", block_z},
    {"launch__block_size", block_size},
    {"launch__thread_count", thread_count},
    {"launch__registers_per_thread", registers},
    {"launch__registers_per_thread_allocated", allocated_registers},
    {"launch__shared_mem_per_block_static", shared_static},
    {"launch__shared_mem_per_block_dynamic", shared_dynamic},
    {"launch__shared_mem_per_block_driver", shared_driver},
    {"launch__shared_mem_per_block", shared_allocated},
    {"launch__shared_mem_per_block_allocated", shared_allocated},
    {"launch__shared_mem_config_size", shared_config},
    {"launch__func_cache_config", cache_config},
    {"launch__cluster_dim_x", cluster_x},
    {"launch__cluster_dim_y", cluster_y},
    {"launch__cluster_dim_z", cluster_z},
    {"launch__cluster_size", cluster_size},
    {"launch__cluster_scheduling_policy", cluster_policy},
    {"launch__cluster_max_potential_size", max_cluster_blocks},
    {"launch__cluster_max_active", max_active_clusters},
    {"launch__occupancy_limit_blocks", block_limit},
    {"launch__occupancy_limit_registers", register_limit},
    {"launch__occupancy_limit_shared_mem", shared_limit},
    {"launch__occupancy_limit_warps", warp_limit},
    {"launch__occupancy_limit_barriers", barrier_limit},
    {"launch__waves_per_multiprocessor", waves_per_sm},
    {"launch__sm_count", sm_count},
    {"launch__tpc_count", tpcs},
    {"launch__stack_size", stack},
    {"launch__persisting_l2_cache_size", persisting_l2},
    {"sm__maximum_warps_avg_per_active_cycle", resident_warps},
    {"smsp__maximum_warps_avg_per_active_cycle", scheduler_warps},
    {"sm__maximum_warps_per_active_cycle_pct", occupancy_pct},
    {"launch__occupancy_cluster_gpu_pct", cluster_gpu_pct},
    {"launch__occupancy_cluster_pct", cluster_occupancy_pct},
    {"launch__uses_green_context", green_context},
    {"launch__barrier_count", barrier_count},
    {"launch__context_id", context_id},
    {"launch__device_id", device_id},
    {"launch__stream_id", stream_id},
    {"launch__occupancy_per_register_count", warps_by_registers},
    {"launch__occupancy_per_block_size", warps_by_threads},
    {"launch__occupancy_per_barrier_count", warps_by_barriers},
    {"launch__occupancy_per_cluster_size", clusters_by_size},
    {"derived__pct_occupancy_per_register_count", occupancy_by_registers_pct},
    {"derived__pct_occupancy_per_block_size", occupancy_by_threads_pct},
    {"derived__pct_occupancy_per_barrier_count", occupancy_by_barriers_pct},
};

double rl_launch_metric(const rl_launch_metric_inputs *launch, const char *metric, const char **reason) {
  *reason = "no metric of a launch has this name";
  if (strcmp(metric, "launch__tpc_enabled") == 0) *reason = "not a number: all TPCs are enabled";
  for (size_t i = 0; i < sizeof metric_functions / sizeof *metric_functions; i++) {
    if (strcmp(metric_functions[i].metric, metric) != 0) continue;
    *reason = metric_functions[i].value == shared_config && launch->attributes->shared_config_bytes > 0
                  ? "CUPTI reported the carveout of an earlier launch, which cannot hold the resident blocks"
                  : "the activity record and the occupancy calculator do not have this value";
    return metric_functions[i].value(launch);
  }
  return NAN;
}
