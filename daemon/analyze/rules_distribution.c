/* Whether all units of a kind have as much to do. */
#include "analyze/rules_tables.h"

/* The kernel lasts until the busiest is done; evenly spread it would need the average. Units that idle anyway do not matter. */
#define UNEVEN(unit, what, clock, advice)                                                                           \
  {                                                                                                                 \
    .id = "imbalance_" #unit, .version = 1, .section = "WorkloadDistribution", .title = what " are unevenly busy",  \
    .inputs = {{"most", clock "__cycles_active.max"},                                                               \
               {"average", clock "__cycles_active.avg"},                                                            \
               {"least", clock "__cycles_active.min"},                                                              \
               {"elapsed", clock "__cycles_elapsed.max"}},                                                          \
    .when = "most >= 0.5 * elapsed && most - average >= 0.1 * most", .speedup = "100 * (most - average) / elapsed", \
    .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION,                                                    \
    .message = what                                                                                                 \
        " are active for {least:0} to {most:0} cycles, {average:0} on average: the busiest has "                    \
        "{100 * (most / average - 1):0}% more to do. " advice                                                       \
  }

const rl_rule rl_rules_distribution[] = {
    UNEVEN(sm, "Multiprocessors", "sm",
           "Blocks take different times, or are too few to spread: use more and smaller ones, or hand out work by a counter."),
    UNEVEN(l2, "L2 slices", "lts", "Accesses fall on few slices: large powers of two as strides and one hot address do that."),
    UNEVEN(dram, "DRAM channels", "dram", "Accesses fall on few channels: avoid strides that are large powers of two."),
    {NULL},
};
