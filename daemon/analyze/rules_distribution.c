/* Rules about the balance of load between units of one kind. */
#include "analyze/rules_tables.h"

/* A kernel takes as long as its busiest unit; with even load it would take the average. Units of which even the busiest is active
 * for less than half of the time do not limit the kernel. */
#define IMBALANCE_RULE(unit, unit_name, clock, advice)                                                                    \
  {                                                                                                                       \
    .id = "imbalance_" #unit, .version = 1, .section = "WorkloadDistribution", .title = unit_name " are unevenly loaded", \
    .inputs = {{"longest", clock "__cycles_active.max"},                                                                  \
               {"average", clock "__cycles_active.avg"},                                                                  \
               {"shortest", clock "__cycles_active.min"},                                                                 \
               {"elapsed", clock "__cycles_elapsed.max"}},                                                                \
    .condition = "longest >= 0.5 * elapsed && longest - average >= 0.1 * longest",                                        \
    .speedup = "100 * (longest - average) / elapsed", .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION,        \
    .message = unit_name                                                                                                  \
        " are active for {shortest:0} to {longest:0} cycles, {average:0} on average: the busiest is active "              \
        "{100 * (longest / average - 1):0}% longer than the average. " advice                                             \
  }

const rl_rule rl_rules_distribution[] = {
    IMBALANCE_RULE(
        sm, "Multiprocessors", "sm",
        "Blocks take different times, or there are too few to balance: use more and smaller blocks, or distribute work with an "
        "atomic counter."),
    IMBALANCE_RULE(l2, "L2 slices", "lts",
                   "Accesses concentrate on few slices: strides that are large powers of two, or one hot address, cause this."),
    IMBALANCE_RULE(dram, "DRAM channels", "dram",
                   "Accesses concentrate on few channels: avoid strides that are large powers of two."),
    {NULL},
};
