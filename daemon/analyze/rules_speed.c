/* Which of the device's limits a kernel is near. */
#include "analyze/rules_tables.h"

/* At least this much of its peak is needed for a unit to be what a kernel waits for. */
#define BUSY "60"

const rl_rule rl_rules_speed[] = {
    {.id = "bound_memory",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Memory bound",
     .inputs = {RL_COMPUTE_PCT, RL_MEMORY_PCT},
     .when = "memory >= " BUSY " && memory - compute >= 10",
     .kind = RL_FINDING_INFO,
     .says_missing = true,
     .message = "The memory system works at {memory}% of its peak, the multiprocessors at {compute}%: what decides is how many "
                "bytes move and how well, so look at the memory tables, and fetch less or reuse more before touching the "
                "arithmetic."},
    {.id = "bound_compute",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Compute bound",
     .inputs = {RL_COMPUTE_PCT, RL_MEMORY_PCT},
     .when = "compute >= " BUSY " && compute - memory >= 10",
     .kind = RL_FINDING_INFO,
     .message = "The multiprocessors work at {compute}% of their peak, the memory system at {memory}%: what decides is how "
                "many instructions run and on which pipeline, so look there, and compute less, fuse, or use a cheaper "
                "precision."},
    {.id = "bound_balanced",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Compute and memory balanced",
     .inputs = {RL_COMPUTE_PCT, RL_MEMORY_PCT},
     .when = "max(compute, memory) >= " BUSY " && compute - memory < 10 && memory - compute < 10",
     .kind = RL_FINDING_INFO,
     .message = "Multiprocessors ({compute}%) and memory system ({memory}%) are about equally busy: to get faster, both "
                "instructions and bytes have to become fewer."},
    {.id = "near_peak",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Near the peak",
     .inputs = {RL_COMPUTE_PCT, RL_MEMORY_PCT},
     .when = "max(compute, memory) >= 80",
     .speedup = "100 - max(compute, memory)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_INFO,
     .message = "The busiest unit works at {max(compute, memory)}% of what it can sustain. Tuning can gain little more; moving "
                "work to another unit, or doing less of it, can."},
    {.id = "low_utilization",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Neither compute nor memory is busy",
     .inputs = {RL_COMPUTE_PCT, RL_MEMORY_PCT},
     .when = "max(compute, memory) < " BUSY,
     .kind = RL_FINDING_WARNING,
     .message = "Multiprocessors reach {compute}% and the memory system {memory}% of their peak, both below " BUSY "%: the "
                "kernel waits, for latencies or for work. The scheduler and warp state sections say for what; a larger grid, "
                "more independent work in each thread and higher occupancy hide it."},
    {.id = "dram_saturated",
     .version = 1,
     .section = "MemoryWorkloadAnalysis",
     .title = "DRAM is saturated",
     .inputs = {RL_DRAM_PCT, {"rate", "dram__bytes.sum.per_second"}},
     .when = "dram >= 80",
     .speedup = "100 - dram",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_INFO,
     .message = "DRAM moves {rate / 1000000000:0} GB/s, {dram}% of its peak. Faster is only possible with fewer bytes: fuse "
                "with the kernels before and after, keep data in L2, use smaller types."},
    {NULL},
};
