#include "worker/cupti/launch.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

static const double NOT_KNOWN = NAN;
enum { SCHEDULERS = 4, PROCESSORS_OF_TPC = 2 }; /* of every chip that the range profiler knows, since Volta */

static double limit(enum cudaLimit which) {
  size_t value = 0;
  return cudaDeviceGetLimit(&value, which) == cudaSuccess ? (double)value : NOT_KNOWN;
}

rl_launch_facts rl_launch_facts_of(const rl_occupancy *device, const rl_activity_row *row, const rl_launch_detail *detail,
                                   int barriers) {
  rl_launch_facts facts = {.device = device,
                           .row = row,
                           .detail = detail,
                           .stack_bytes = limit(cudaLimitStackSize),
                           .persisting_l2_bytes = limit(cudaLimitPersistingL2CacheSize)};
  rl_footprint footprint = rl_footprint_of(row, barriers);
  footprint.shared_config_bytes = detail->shared_config_bytes;
  facts.resident = rl_residency_of(device, &footprint, &facts.residency);
  return facts;
}

/* --- one function a fact ----------------------------------------------------------------------------------------------- */

#define PRODUCT(SIZE) ((double)(SIZE)[0] * (SIZE)[1] * (SIZE)[2])
static double in_limits(const rl_launch_facts *facts, int blocks) { return facts->resident ? blocks : NOT_KNOWN; }

#define FACT(NAME, EXPRESSION) \
  static double NAME(const rl_launch_facts *f) { return (void)f, EXPRESSION; }
FACT(grid_x, f->row->grid[0])
FACT(grid_y, f->row->grid[1])
FACT(grid_z, f->row->grid[2])
FACT(grid_size, PRODUCT(f->row->grid))
FACT(block_x, f->row->block[0])
FACT(block_y, f->row->block[1])
FACT(block_z, f->row->block[2])
FACT(block_size, PRODUCT(f->row->block))
FACT(thread_count, PRODUCT(f->row->grid) * PRODUCT(f->row->block))
FACT(registers, f->row->registers)
FACT(allocated_registers, in_limits(f, f->residency.allocated_registers))
FACT(shared_static, f->row->static_shared_bytes)
FACT(shared_dynamic, f->row->dynamic_shared_bytes)
FACT(shared_driver, (double)f->device->block_reserved_bytes)
FACT(shared_allocated, f->resident ? (double)f->residency.allocated_shared_bytes : NOT_KNOWN)
FACT(shared_config, f->detail->shared_config_bytes > 0 ? f->detail->shared_config_bytes : NOT_KNOWN)
FACT(cache_config, f->detail->cache_config)
FACT(cluster_x, f->detail->cluster[0])
FACT(cluster_y, f->detail->cluster[1])
FACT(cluster_z, f->detail->cluster[2])
FACT(cluster_size, PRODUCT(f->detail->cluster))
FACT(cluster_policy, f->detail->cluster_policy)
FACT(cluster_largest, f->detail->largest_cluster > 0 ? f->detail->largest_cluster : NOT_KNOWN)
FACT(cluster_active, f->detail->active_clusters)
FACT(by_blocks, in_limits(f, f->residency.by_blocks))
FACT(by_registers, in_limits(f, f->residency.by_registers))
FACT(by_shared, in_limits(f, f->residency.by_shared))
FACT(by_warps, in_limits(f, f->residency.by_warps))
FACT(by_barriers, in_limits(f, f->residency.by_barriers))
FACT(waves, f->resident ? PRODUCT(f->row->grid) / ((double)f->device->processors * f->residency.blocks) : NOT_KNOWN)
FACT(resident_warps, in_limits(f, f->residency.warps))
FACT(scheduler_warps, in_limits(f, f->residency.warps) / SCHEDULERS)
FACT(occupancy_pct, 100 * in_limits(f, f->residency.warps) * f->device->warp_threads / f->device->processor_threads)
FACT(processors, f->device->processors)
FACT(tpcs, f->device->processors / (double)PROCESSORS_OF_TPC)
FACT(stack, f->stack_bytes)
FACT(persisting_l2, f->persisting_l2_bytes)
FACT(block_places, f->device->processors *in_limits(f, f->residency.by_blocks))
FACT(clustered_blocks, PRODUCT(f->detail->cluster) * f->detail->active_clusters)
FACT(cluster_occupancy_pct, clustered_blocks(f) == 0 ? 0 : 100 * clustered_blocks(f) / block_places(f))
FACT(cluster_gpu_pct, cluster_occupancy_pct(f) == 0 ? 0 : cluster_occupancy_pct(f) * occupancy_pct(f) / 100)
FACT(green_context, 0) /* workers make none */
#undef FACT

static const struct {
  const char *metric;
  double (*of)(const rl_launch_facts *facts);
} table[] = {
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
    {"launch__cluster_max_potential_size", cluster_largest},
    {"launch__cluster_max_active", cluster_active},
    {"launch__occupancy_limit_blocks", by_blocks},
    {"launch__occupancy_limit_registers", by_registers},
    {"launch__occupancy_limit_shared_mem", by_shared},
    {"launch__occupancy_limit_warps", by_warps},
    {"launch__occupancy_limit_barriers", by_barriers},
    {"launch__waves_per_multiprocessor", waves},
    {"launch__sm_count", processors},
    {"launch__tpc_count", tpcs},
    {"launch__stack_size", stack},
    {"launch__persisting_l2_cache_size", persisting_l2},
    {"sm__maximum_warps_avg_per_active_cycle", resident_warps},
    {"smsp__maximum_warps_avg_per_active_cycle", scheduler_warps},
    {"sm__maximum_warps_per_active_cycle_pct", occupancy_pct},
    {"launch__occupancy_cluster_gpu_pct", cluster_gpu_pct},
    {"launch__occupancy_cluster_pct", cluster_occupancy_pct},
    {"launch__uses_green_context", green_context},
};

double rl_launch_fact(const rl_launch_facts *facts, const char *metric, const char **reason) {
  *reason = "a launch does not tell it";
  if (strcmp(metric, "launch__tpc_enabled") == 0) *reason = "no number: all of them, since no partition is in use";
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(table[i].metric, metric) != 0) continue;
    *reason = "neither the launch's record nor the occupancy calculator tells it";
    return table[i].of(facts);
  }
  return NAN;
}
