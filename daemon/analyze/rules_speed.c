/* Rules about the throughput of compute and memory as a percentage of the peak. */
#include "analyze/rules_tables.h"

#define BUSY_PCT RL_TEXT(RL_BUSY_PCT)
#define BELOW_BUSY_PCT BUSY_PCT " - 0.1" /* not printed as the threshold */
#define BALANCED_DIFFERENCE_PCT RL_TEXT(RL_BALANCED_DIFFERENCE_PCT)
#define SATURATED_PCT RL_TEXT(RL_SATURATED_PCT)

const rl_rule rl_rules_speed_of_light[] = {
    {.id = "bound_memory",
     .version = 4,
     .section = "SpeedOfLight",
     .title = "Memory bound",
     .cause = RL_CAUSE_SATURATION,
     /* lts__throughput is no input: it contains units of L2 that the memory throughput does not contain, and can exceed it. */
     .inputs = {RL_INPUT_COMPUTE_PCT, RL_INPUT_MEMORY_PCT, RL_INPUT_DRAM_PCT},
     .condition = "memory >= " BUSY_PCT " && memory - compute >= " BALANCED_DIFFERENCE_PCT,
     .kind = RL_FINDING_INFO,
     .reports_missing_inputs = true,
     .message = "The memory system works at {memory} % of its peak (DRAM {dram} %), the multiprocessors at "
                "{compute} %. Arithmetic is not the limit. The verdict names the busiest level. |If it is DRAM or L2, move fewer "
                "bytes or reuse them; if it is L1 and shared memory, access them less, or without conflicts."},
    {.id = "bound_compute",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Compute bound",
     .cause = RL_CAUSE_SATURATION,
     .inputs = {RL_INPUT_COMPUTE_PCT, RL_INPUT_MEMORY_PCT},
     .condition = "compute >= " BUSY_PCT " && compute - memory >= " BALANCED_DIFFERENCE_PCT,
     .kind = RL_FINDING_INFO,
     .message = "The multiprocessors work at {compute} % of their peak, the memory system at {memory} %. The number of "
                "instructions and the rate of the pipelines that execute them determine the speed. |Look at the compute tables, "
                "then compute less, fuse instructions, or use a lower precision."},
    {.id = "bound_balanced",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Compute and memory are balanced",
     .cause = RL_CAUSE_SATURATION,
     .inputs = {RL_INPUT_COMPUTE_PCT, RL_INPUT_MEMORY_PCT},
     .condition = "max(compute, memory) >= " BUSY_PCT " && compute - memory < " BALANCED_DIFFERENCE_PCT
                  " && memory - compute < " BALANCED_DIFFERENCE_PCT,
     .kind = RL_FINDING_INFO,
     .message = "Multiprocessors ({compute} %) and memory system ({memory} %) are about equally busy. |The kernel becomes faster "
                "only with fewer instructions and fewer bytes."},
    {.id = "near_peak",
     .version = 2,
     .section = "SpeedOfLight",
     .title = "Near the peak",
     .cause = RL_CAUSE_SATURATION,
     .inputs = {RL_INPUT_COMPUTE_PCT, RL_INPUT_MEMORY_PCT},
     .condition = "max(compute, memory) >= " SATURATED_PCT,
     .kind = RL_FINDING_INFO,
     .message = "The busiest unit works at {max(compute, memory)} % of its sustained peak, so the same work takes it at "
                "least {max(compute, memory)} % of this time. |Give it less work, or move work to another unit."},
    {.id = "low_utilization",
     .version = 1,
     .section = "SpeedOfLight",
     .title = "Neither compute nor memory is busy",
     .cause = RL_CAUSE_FEW_WARPS,
     .inputs = {RL_INPUT_COMPUTE_PCT, RL_INPUT_MEMORY_PCT},
     .condition = "max(compute, memory) < " BUSY_PCT,
     .kind = RL_FINDING_WARNING,
     .message = "Multiprocessors reach {min(compute, " BELOW_BUSY_PCT ")} % and the memory system {min(memory, " BELOW_BUSY_PCT
                ")} % of their peaks, both below " BUSY_PCT " %: the kernel waits for latencies or has too little work. |The "
                "scheduler and warp state sections show the reason. More independent work in each thread hides latencies, and "
                "so do a larger grid and higher occupancy if warp slots are empty."},
    {.id = "dram_saturated",
     .version = 2,
     .section = "MemoryWorkloadAnalysis",
     .title = "DRAM is saturated",
     .cause = RL_CAUSE_SATURATION,
     .inputs = {RL_INPUT_DRAM_PCT, {"rate", "dram__bytes.sum.per_second"}},
     .condition = "dram >= " SATURATED_PCT,
     .kind = RL_FINDING_INFO,
     .message =
         "DRAM moves {rate / 1000000000:0} GB/s, {dram} % of its peak, so the same bytes take at least {dram} % of this "
         "time. |Move fewer bytes: fuse the kernel with the previous and the next one, keep data in L2, use smaller types."},
    {NULL},
};
