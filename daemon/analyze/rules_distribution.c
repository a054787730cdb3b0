/* Rules about the balance of load between units of one kind. */
#include "analyze/rules_tables.h"

/* A kernel takes as long as its busiest unit. With even load it would take as long as the average unit. Units do not limit the
 * kernel if the busiest one is active for less than half of the time. */
#define IMBALANCE_RULE(unit, unit_name, clock, extra_input, extra_condition, ending)                                             \
  {                                                                                                                              \
    .id = "imbalance_" #unit, .version = 3, .section = "WorkloadDistribution", .title = unit_name " are unevenly loaded",        \
    .cause = RL_CAUSE_HOT_UNITS,                                                                                                 \
    .inputs = {{"longest", clock "__cycles_active.max"},                                                                         \
               {"average", clock "__cycles_active.avg"},                                                                         \
               {"shortest", clock "__cycles_active.min"},                                                                        \
               {"elapsed", clock "__cycles_elapsed.max"} extra_input},                                                           \
    .condition = "longest >= 0.5 * elapsed && longest - average >= 0.1 * longest" extra_condition,                               \
    .speedup = "100 * (longest - average) / elapsed", .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION,               \
    .message = unit_name                                                                                                         \
        " are active for {shortest:0} to {longest:0} cycles. The average, {average:0}, is {100 * average / longest:0} % of the " \
        "longest. " ending                                                                                                       \
  }

const rl_rule rl_rules_work_distribution[] = {
    {.id = "imbalance_sm",
     .version = 3,
     .section = "WorkloadDistribution",
     .title = "Tail effect: unbalanced blocks",
     .cause = RL_CAUSE_TAIL,
     .inputs = {{"longest", "sm__cycles_active.max"},
                {"average", "sm__cycles_active.avg"},
                {"elapsed", "sm__cycles_elapsed.max"},
                RL_INPUT_GRID_BLOCKS,
                RL_INPUT_SM_COUNT},
     /* average_used is the average over the multiprocessors that executed blocks. */
     .terms = {{"used", "min(blocks, sms)"}, {"average_used", "min(longest, average * sms / used)"}},
     .condition = "longest >= 0.5 * elapsed && longest - average_used >= 0.15 * longest",
     .speedup = "100 * (longest - average_used) / elapsed",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "The busiest multiprocessor is active for {longest:0} cycles. The {used:0} multiprocessors that can have blocks "
                "are active for {average_used:0} cycles on average, {100 * average_used / longest:0} % of that. Blocks take "
                "different times, or the number of blocks is not a multiple of the number of multiprocessors. |Split long "
                "blocks, use more and smaller ones, or use dynamic scheduling."},
    IMBALANCE_RULE(
        l2, "L2 slices", "lts", RL_COMMA RL_INPUT_ATOMIC_UNIT_PCT,
        " && atomic < " RL_TEXT(RL_BUSY_PCT), /* otherwise the rule global_atomics applies */
        "Accesses concentrate on few slices: strides that are large powers of two, or one hot address, cause this. |Pad "
        "such strides, or use several copies of the address."),
    IMBALANCE_RULE(dram, "DRAM channels", "dram", , "",
                   "Accesses concentrate on few channels. |Avoid strides that are large powers of two."),
    {NULL},
};
