/* The tables of rules, one for each subject, and the inputs that several tables use: RL_INPUT_… is {name in expressions,
 * metric}. */
#ifndef RL_ANALYZE_RULES_TABLES_H
#define RL_ANALYZE_RULES_TABLES_H

#include "analyze/rule.h"
#include "analyze/thresholds.h"

extern const rl_rule rl_rules_speed_of_light[], rl_rules_launch[], rl_rules_occupancy[], rl_rules_scheduling[],
    rl_rules_instructions[], rl_rules_memory[], rl_rules_work_distribution[], rl_rules_timeline[];

#define RL_INPUT_COMPUTE_PCT \
  { "compute", "sm__throughput.avg.pct_of_peak_sustained_elapsed" }
#define RL_INPUT_MEMORY_PCT \
  { "memory", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed" }
/* Distance of compute or memory, whichever is busier, to 100 % of its peak: an upper bound for estimates. */
#define RL_HEADROOM "100 - max(compute, memory)"
/* If this condition is false, a unit limits the kernel, not latency. */
#define RL_NOT_BUSY "max(compute, memory) < " RL_TEXT(RL_BUSY_PCT)
#define RL_INPUT_DRAM_PCT \
  { "dram", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed" }
#define RL_INPUT_ISSUED_PER_CYCLE \
  { "issued", "smsp__issue_active.avg.per_cycle_active" } /* instructions per cycle and scheduler, at most 1 */
/* The atomic unit of the busiest L2 slice. */
#define RL_INPUT_ATOMIC_UNIT_PCT \
  { "atomic", "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed" }
#define RL_INPUT_DURATION_NS \
  { "duration_ns", "gpu__time_duration.sum" }
#define RL_INPUT_GRID_BLOCKS \
  { "blocks", "launch__grid_size" }
#define RL_INPUT_SM_COUNT \
  { "sms", "launch__sm_count" }
#define RL_INPUT_WAVES \
  { "waves", "launch__waves_per_multiprocessor" }
#define RL_INPUT_THEORETICAL_WARPS_PCT \
  { "theoretical", "sm__maximum_warps_per_active_cycle_pct" }

/* The rules about waiting for global memory share these inputs. */
#define RL_LONG_SCOREBOARD_INPUTS                                                                                       \
  {"stalled", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"},                              \
      {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"}, RL_INPUT_ISSUED_PER_CYCLE, RL_INPUT_COMPUTE_PCT, \
      RL_INPUT_MEMORY_PCT
#define RL_LONG_SCOREBOARD_CONDITION "stalled >= 0.3 * latency && issued < 0.8 && " RL_NOT_BUSY
#define RL_LONG_SCOREBOARD_SPEEDUP "min(100 * stalled / latency, 100 * (1 - issued), " RL_HEADROOM ")"

#endif
