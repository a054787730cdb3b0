/* Rules about occupancy: which resource limits it, and how much of it is achieved. */
#include "analyze/rules_tables.h"

/* One rule for each resource that can limit the resident blocks of a multiprocessor. More warps help only a kernel that is bound
 * by latency. Below one wave all blocks are resident at once, so no resource limits them, but the grid. A limit of 0 blocks gives
 * no finding: it must be wrong, because the kernel ran. BELOW_BLOCK_LIMIT: the resource allows fewer blocks than the hardware
 * limit of resident blocks, which has its own rule. */
#define BELOW_BLOCK_LIMIT " && fewest < blocks"
#define OCCUPANCY_LIMIT_RULE(resource, extra_condition, limit, advice)                                                          \
  {                                                                                                                             \
    .id = "occupancy_" #resource, .version = 4, .section = "Occupancy", .title = "Occupancy is limited by " limit,              \
    .cause = RL_CAUSE_FEW_WARPS,                                                                                                \
    .inputs = {RL_INPUT_THEORETICAL_WARPS_PCT,                                                                                  \
               {"registers", "launch__occupancy_limit_registers"},                                                              \
               {"shared", "launch__occupancy_limit_shared_mem"},                                                                \
               {"blocks", "launch__occupancy_limit_blocks"},                                                                    \
               {"barriers", "launch__occupancy_limit_barriers"},                                                                \
               {"warps", "launch__occupancy_limit_warps"},                                                                      \
               RL_INPUT_WAVES,                                                                                                  \
               RL_INPUT_COMPUTE_PCT,                                                                                            \
               RL_INPUT_MEMORY_PCT},                                                                                            \
    .terms = {{"fewest", "min(registers, shared, blocks, barriers, warps)"}},                                                   \
    .condition = "waves >= 1 && fewest >= 1 && theoretical < 80 && " RL_NOT_BUSY " && " #resource " == fewest" extra_condition, \
    .speedup = "100 - theoretical", .scope = RL_SPEEDUP_LOCAL, .kind = RL_FINDING_OPTIMIZATION,                                 \
    .message = "Blocks on a multiprocessor: at most {fewest:0} ({theoretical} % of its warps), limited by " limit ". |" advice  \
  }

const rl_rule rl_rules_occupancy[] = {
    {.id = "partial_wave",
     .version = 2,
     .section = "Occupancy",
     .title = "Less than one full wave",
     .cause = RL_CAUSE_GRID,
     .inputs = {RL_INPUT_GRID_BLOCKS, RL_INPUT_SM_COUNT, RL_INPUT_WAVES, RL_INPUT_COMPUTE_PCT, RL_INPUT_MEMORY_PCT},
     .condition = "blocks >= sms && waves < 0.9 && " RL_NOT_BUSY,
     .kind = RL_FINDING_WARNING,
     .message = "All {blocks:0} blocks are resident at once and fill {100 * waves:0} % of the multiprocessors' block slots. "
                "Latencies are hidden by fewer warps than the theoretical occupancy suggests."},
    OCCUPANCY_LIMIT_RULE(
        registers, BELOW_BLOCK_LIMIT, "registers per thread",
        "Limit them (__launch_bounds__, -maxrregcount) as long as nothing spills, shorten live ranges, or use smaller blocks."),
    OCCUPANCY_LIMIT_RULE(shared, BELOW_BLOCK_LIMIT, "shared memory per block",
                         "Use smaller tiles or types, fewer pipeline stages, or a larger share of L1 as shared memory."),
    OCCUPANCY_LIMIT_RULE(blocks, "", "the maximum of resident blocks", "Use larger blocks: 128 to 256 threads."),
    OCCUPANCY_LIMIT_RULE(barriers, BELOW_BLOCK_LIMIT, "barriers per block", "Use fewer named barriers, or larger blocks."),
    OCCUPANCY_LIMIT_RULE(warps, BELOW_BLOCK_LIMIT, "the block size",
                         "Choose a block size that divides the threads of a multiprocessor: 128, 256 or 512 threads."),
    {.id = "occupancy_achieved",
     .version = 2,
     .section = "Occupancy",
     .title = "Achieved occupancy is far below theoretical occupancy",
     .cause = RL_CAUSE_FEW_WARPS,
     .inputs = {RL_INPUT_THEORETICAL_WARPS_PCT,
                {"achieved", "sm__warps_active.avg.pct_of_peak_sustained_active"},
                RL_INPUT_WAVES,
                RL_INPUT_COMPUTE_PCT,
                RL_INPUT_MEMORY_PCT},
     .condition = "waves >= 1 && theoretical - achieved >= 20 && " RL_NOT_BUSY, /* below one wave the grid is the cause */
     .speedup = "min(100 * (1 - achieved / theoretical), " RL_HEADROOM ")",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .reports_missing_inputs = true,
     .message = "{theoretical} % of the warps could be resident, but on average {achieved} % were. Blocks that end at different "
                "times, a short kernel, a partly full last wave, or the launch of many tiny blocks leave warp slots empty."},
    {NULL},
};
