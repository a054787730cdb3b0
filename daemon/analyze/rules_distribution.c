/* Rules about the balance of load between units of one kind. */
#include "analyze/rules_tables.h"

#define L2_SLICE_INPUT(name, counter, rollup) \
  { name, "lts__" counter "." rollup ".pct_of_peak_sustained_elapsed" }

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
                "different times, or some multiprocessors get more blocks than others. |Split long "
                "blocks, use more and smaller ones, or use dynamic scheduling."},
    /* With even load, the busiest slice would be as busy as the average one. Cycles in which a slice is active are no measure of
     * its load, because a slice is active while a request waits. Slices differ by some percent in every kernel. */
    {.id = "imbalance_l2",
     .version = 4,
     .section = "WorkloadDistribution",
     .title = "L2 slices are unevenly loaded",
     .cause = RL_CAUSE_HOT_UNITS,
     .inputs = {L2_SLICE_INPUT("lookups", "t_tag_requests", "max"), L2_SLICE_INPUT("average_lookups", "t_tag_requests", "avg"),
                L2_SLICE_INPUT("sent", "lts2xbar_cycles_active", "max"),
                L2_SLICE_INPUT("average_sent", "lts2xbar_cycles_active", "avg"),
                L2_SLICE_INPUT("received", "xbar2lts_cycles_active", "max"),
                L2_SLICE_INPUT("average_received", "xbar2lts_cycles_active", "avg"), RL_INPUT_ATOMIC_UNIT_PCT},
     .terms = {{"busiest", "max(lookups, sent, received)"}, {"average", "max(average_lookups, average_sent, average_received)"}},
     .condition = "busiest >= " RL_TEXT(RL_BUSY_PCT) " && busiest - average >= 0.2 * busiest && atomic < " RL_TEXT(
         RL_BUSY_PCT), /* otherwise the rule global_atomics or global_atomics_spread applies */
     .speedup = "busiest - average",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Tag lookups or a link of the busiest L2 slice work at {busiest} % of their peak, those of the average slice at "
                "{average} %. Accesses concentrate on few slices: strides that are large powers of two, or one hot address, "
                "cause this. |Pad such strides, or use several copies of the address."},
    /* A channel does not limit the kernel if it is active for less than half of the time. */
    {.id = "imbalance_dram",
     .version = 3,
     .section = "WorkloadDistribution",
     .title = "DRAM channels are unevenly loaded",
     .cause = RL_CAUSE_HOT_UNITS,
     .inputs = {{"longest", "dram__cycles_active.max"},
                {"average", "dram__cycles_active.avg"},
                {"shortest", "dram__cycles_active.min"},
                {"elapsed", "dram__cycles_elapsed.max"}},
     .condition = "longest >= 0.5 * elapsed && longest - average >= 0.1 * longest",
     .speedup = "100 * (longest - average) / elapsed",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "DRAM channels are active for {shortest:0} to {longest:0} cycles. The average, {average:0}, is {100 * average / "
         "longest:0} % of the longest. Accesses concentrate on few channels. |Avoid strides that are large powers of two."},
    {NULL},
};
