/* How many warps can be resident, what limits them, and how many are. */
#include "analyze/rules_tables.h"

/* One rule for each resource: it speaks when that allows the fewest blocks, and fewer than a multiprocessor holds anyway. */
#define BEYOND_BLOCKS " && least < blocks"
#define LIMITED(resource, further, what, advice)                                                                             \
  {                                                                                                                          \
    .id = "occupancy_" #resource, .version = 1, .section = "Occupancy", .title = "Occupancy is limited by " what,            \
    .inputs = {RL_THEORETICAL_PCT,                                                                                           \
               {"registers", "launch__occupancy_limit_registers"},                                                           \
               {"shared", "launch__occupancy_limit_shared_mem"},                                                             \
               {"blocks", "launch__occupancy_limit_blocks"},                                                                 \
               {"barriers", "launch__occupancy_limit_barriers"},                                                             \
               {"warps", "launch__occupancy_limit_warps"}},                                                                  \
    .terms = {{"least", "min(registers, shared, blocks, barriers, warps)"}},                                                 \
    .when = "theoretical < 80 && " #resource " == least" further, .speedup = "100 - theoretical", .scope = RL_SPEEDUP_LOCAL, \
    .kind = RL_FINDING_OPTIMIZATION,                                                                                         \
    .message = "At most {least:0} blocks fit on a multiprocessor, {theoretical}% of its warps, because of " what ". " advice \
  }

const rl_rule rl_rules_occupancy[] = {
    LIMITED(registers, BEYOND_BLOCKS, "the registers of a thread",
            "Cap them (launch bounds, maxrregcount) as long as nothing spills, shorten live ranges, or use smaller blocks."),
    LIMITED(shared, BEYOND_BLOCKS, "the shared memory of a block",
            "Use smaller tiles or types, fewer pipeline stages, or a larger share of L1 as shared memory."),
    LIMITED(blocks, "", "the number of blocks that a multiprocessor holds", "Use larger blocks: 128 to 256 threads."),
    LIMITED(barriers, BEYOND_BLOCKS, "the barriers of a block", "Use fewer named barriers, or larger blocks."),
    LIMITED(warps, BEYOND_BLOCKS, "the size of a block",
            "Choose a block of which a whole number fills the multiprocessor: 128, 256 or 512 threads."),
    {.id = "occupancy_achieved",
     .version = 1,
     .section = "Occupancy",
     .title = "Achieved far below theoretical occupancy",
     .inputs =
         {RL_THEORETICAL_PCT, {"achieved", "sm__warps_active.avg.pct_of_peak_sustained_active"}, RL_COMPUTE_PCT, RL_MEMORY_PCT},
     .when = "theoretical - achieved >= 10",
     .speedup = "min(100 * (1 - achieved / theoretical), " RL_HEADROOM ")",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .says_missing = true,
     .message = "{theoretical}% of the warps could be resident, {achieved}% were on average. Blocks that end early or "
                "unevenly, a short kernel, a partly filled last wave or the launching of many tiny blocks leave places empty."},
    {NULL},
};
