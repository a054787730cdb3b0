/* How often the schedulers issue, and what warps wait for. */
#include "analyze/rules_tables.h"

/* One rule for each state of a warp: it speaks when warps spend much of their time in it while schedulers are idle. */
#define STALLED(reason, what, advice)                                                                               \
  {                                                                                                                 \
    .id = "stall_" #reason, .version = 1, .section = "WarpStateStats", .title = "Warps wait " what,                 \
    .inputs = {{"stalled", "smsp__average_warps_issue_stalled_" #reason "_per_issue_active.ratio"},                 \
               {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"},                                     \
               RL_ISSUED,                                                                                           \
               RL_COMPUTE_PCT,                                                                                      \
               RL_MEMORY_PCT},                                                                                      \
    .when = "stalled >= 0.3 * latency && issued < 0.8",                                                             \
    .speedup = "min(100 * stalled / latency, 100 * (1 - issued), " RL_HEADROOM ")", .scope = RL_SPEEDUP_GLOBAL,     \
    .kind = RL_FINDING_OPTIMIZATION,                                                                                \
    .message =                                                                                                      \
        "Of the {latency} cycles between two instructions of a warp, {stalled} ({100 * stalled / latency:0}%) are " \
        "spent waiting " what ". " advice                                                                           \
  }

const rl_rule rl_rules_scheduling[] = {
    {.id = "issue_slots",
     .version = 1,
     .section = "SchedulerStats",
     .title = "Schedulers often have nothing to issue",
     .inputs = {RL_ISSUED,
                {"active", "smsp__warps_active.avg.per_cycle_active"},
                {"eligible", "smsp__warps_eligible.avg.per_cycle_active"},
                {"places", "smsp__warps_active.avg.peak_sustained"},
                RL_COMPUTE_PCT,
                RL_MEMORY_PCT},
     .when = "issued < 0.6",
     .speedup = "min(100 * (1 - issued), " RL_HEADROOM ")",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .says_missing = true,
     .message = "A scheduler could issue every cycle and does so every {1 / issued} cycles. Of its {places:0} places for warps "
                "{active} are taken, and of those only {eligible:2} warps are ready in a cycle. More warps, or more "
                "independent instructions in each, hide the waiting; the warp states say what they wait for."},
    STALLED(long_scoreboard, "for data from L1, L2 or DRAM",
            "Load earlier and more at once (unroll, wider loads, asynchronous copies), keep what is used again in registers "
            "or shared memory, and make accesses coalesced."),
    STALLED(short_scoreboard, "for shared memory or special functions",
            "Look for bank conflicts, use fewer and wider shared accesses, and fewer special functions (sin, exp, rsqrt, "
            "conversions)."),
    STALLED(mio_throttle, "for a place in the queue of memory input and output",
            "Too many shared, special function or dynamic branch instructions are issued in a row: use wider shared accesses, "
            "shuffles, or mix in arithmetic."),
    STALLED(lg_throttle, "for a place in the queue of local and global memory",
            "Too many memory instructions are issued in a row: use wider accesses (16 bytes a thread) and avoid local memory."),
    STALLED(tex_throttle, "for a place in the texture queue",
            "Issue fewer texture, surface and FP64-by-texture operations in a row, or use ordinary loads."),
    STALLED(math_pipe_throttle, "for a busy arithmetic pipeline",
            "That is what a compute-bound kernel looks like: do less arithmetic, spread it over more pipelines, or use a "
            "cheaper precision."),
    STALLED(barrier, "at a barrier of the block",
            "Warps reach it at different times: balance the work between barriers, use smaller blocks or fewer barriers, or "
            "synchronise only the warps that share data."),
    STALLED(membar, "for a memory barrier",
            "Use fewer fences and the narrowest scope that is right (block instead of device or system), and fewer writes in "
            "flight before them."),
    STALLED(wait, "a fixed time for the instruction before",
            "Chains of dependent arithmetic with too few warps: give each thread more independent work, or raise occupancy."),
    STALLED(branch_resolving, "for the target of a branch",
            "Use fewer branches and calls: unroll short loops, replace branches by selection, avoid indirect calls."),
    STALLED(no_instruction, "for instructions to be fetched",
            "The code does not fit the instruction cache, or jumps about in it: unroll less, shrink the kernel, or run more "
            "warps on the same code."),
    STALLED(imc_miss, "for constant memory",
            "Constants are fetched that no cache holds yet: use fewer of them, read them with one index for the whole warp, "
            "or load by index from global memory."),
    STALLED(drain, "for their stores to be written before they end",
            "Many warps store much at their very end: spread the stores, make them coalesced and wide, or give a thread more "
            "than one element."),
    STALLED(sleeping, "asleep", "Use shorter __nanosleep intervals, or wait on a barrier object instead of polling."),
    STALLED(dispatch_stall, "for the dispatcher",
            "It holds instructions back because of conflicts between units, such as those over register banks. This is rarely "
            "in the program's hands: another mix of instructions may help."),
    STALLED(gmma, "for the warp-group matrix unit",
            "Keep more matrix operations in flight (deeper pipeline, wait for older groups only) and let other warps bring "
            "the tiles."),
    STALLED(misc, "for something rare",
            "The hardware does not name this reason any closer; sampling by instruction shows where it happens."),
    {.id = "stall_not_selected",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Ready warps wait for their turn",
     .inputs = {{"stalled", "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio"},
                {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"}},
     .when = "stalled >= 0.3 * latency",
     .kind = RL_FINDING_INFO,
     .message = "For {stalled} of the {latency} cycles between two instructions of a warp ({100 * stalled / latency:0}%) it is "
                "ready while another is chosen: there are more warps than needed. Fewer warps with more registers or larger "
                "tiles each would do as well."},
    {NULL},
};
