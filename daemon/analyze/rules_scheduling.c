/* Rules about issue slots and warp stalls. */
#include "analyze/rules_tables.h"

/* One rule for each stall reason: warps spend much of their time in it while issue slots stay empty. */
#define STALL_RULE(reason, cause, advice)                                                                           \
  {                                                                                                                 \
    .id = "stall_" #reason, .version = 1, .section = "WarpStateStats", .title = "Warps wait " cause,                \
    .inputs = {{"stalled", "smsp__average_warps_issue_stalled_" #reason "_per_issue_active.ratio"},                 \
               {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"},                                     \
               RL_ISSUED,                                                                                           \
               RL_COMPUTE_PCT,                                                                                      \
               RL_MEMORY_PCT},                                                                                      \
    .condition = "stalled >= 0.3 * latency && issued < 0.8",                                                        \
    .speedup = "min(100 * stalled / latency, 100 * (1 - issued), " RL_HEADROOM ")", .scope = RL_SPEEDUP_GLOBAL,     \
    .kind = RL_FINDING_OPTIMIZATION,                                                                                \
    .message =                                                                                                      \
        "Of the {latency} cycles between two instructions of a warp, {stalled} ({100 * stalled / latency:0}%) are " \
        "spent waiting " cause ". " advice                                                                          \
  }

const rl_rule rl_rules_scheduling[] = {
    {.id = "issue_slots",
     .version = 1,
     .section = "SchedulerStats",
     .title = "Schedulers often have nothing to issue",
     .inputs = {RL_ISSUED,
                {"active", "smsp__warps_active.avg.per_cycle_active"},
                {"eligible", "smsp__warps_eligible.avg.per_cycle_active"},
                {"warp_slots", "smsp__warps_active.avg.peak_sustained"},
                RL_COMPUTE_PCT,
                RL_MEMORY_PCT},
     .condition = "issued < 0.6",
     .speedup = "min(100 * (1 - issued), " RL_HEADROOM ")",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .reports_missing_inputs = true,
     .message = "A scheduler can issue an instruction every cycle but does so every {1 / issued} cycles. {active} of its "
                "{warp_slots:0} warp slots are occupied, and on average {eligible:2} of these warps are eligible in a cycle. "
                "More warps, or more independent instructions in each, hide latencies; the warp states show why warps wait."},
    STALL_RULE(
        long_scoreboard, "for data from L1, L2 or DRAM",
        "Load earlier and more at once (unroll, wider loads, asynchronous copies), keep reused data in registers or shared "
        "memory, and coalesce accesses."),
    STALL_RULE(
        short_scoreboard, "for shared memory or special functions",
        "Look for bank conflicts, use fewer and wider shared-memory accesses, and fewer special functions (sin, exp, rsqrt, "
        "conversions)."),
    STALL_RULE(mio_throttle, "for a slot in the MIO (memory input/output) queue",
               "Too many shared-memory, special-function or dynamic branch instructions are issued in a row: use wider "
               "shared-memory accesses or shuffles, or interleave arithmetic."),
    STALL_RULE(
        lg_throttle, "for a slot in the queue of local and global memory",
        "Too many memory instructions are issued in a row: use wider accesses (16 bytes per thread) and avoid local memory."),
    STALL_RULE(tex_throttle, "for a slot in the texture queue",
               "Issue fewer texture, surface and FP64-by-texture operations in a row, or use ordinary loads."),
    STALL_RULE(math_pipe_throttle, "for a busy arithmetic pipeline",
               "This is typical of a compute-bound kernel: do less arithmetic, distribute it over more pipelines, or use a lower "
               "precision."),
    STALL_RULE(barrier, "at a barrier",
               "Warps arrive at different times: balance the work between barriers, use smaller blocks or fewer barriers, or "
               "synchronise only the warps that share data."),
    STALL_RULE(membar, "for a memory barrier",
               "Use fewer fences and the narrowest scope that is right (block instead of device or system), and have fewer "
               "writes in flight before them."),
    STALL_RULE(wait, "for the fixed latency of an instruction",
               "Dependent instructions form chains, and there are too few warps to hide them: give each thread more independent "
               "work, or raise occupancy."),
    STALL_RULE(branch_resolving, "for the target of a branch",
               "Use fewer branches and calls: unroll short loops, replace branches with selects, avoid indirect calls."),
    STALL_RULE(no_instruction, "for instruction fetches",
               "The code does not fit the instruction cache, or jumps across it: unroll less, shrink the kernel, or run more "
               "warps on the same code."),
    STALL_RULE(imc_miss, "for constant memory",
               "Reads of constants miss in the cache: use fewer constants, read them with one index for the whole warp, or load "
               "them from global memory."),
    STALL_RULE(
        drain, "for their stores to complete before they exit",
        "Many warps store much data just before they exit: spread the stores, make them coalesced and wide, or give a thread "
        "more than one element."),
    STALL_RULE(sleeping, "in __nanosleep", "Use shorter __nanosleep intervals, or wait on a barrier object instead of polling."),
    STALL_RULE(dispatch_stall, "for the dispatcher",
               "It delays instructions because of conflicts, such as those over register banks. A program can rarely avoid this: "
               "another mix of instructions may help."),
    STALL_RULE(gmma, "for wgmma instructions",
               "Keep more matrix operations in flight (a deeper pipeline, waits for older groups only), and let other warps load "
               "the tiles."),
    STALL_RULE(misc, "for a miscellaneous reason",
               "The hardware does not report the reason; PC samples by instruction show where it happens."),
    {.id = "stall_not_selected",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Eligible warps are not selected",
     .inputs = {{"stalled", "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio"},
                {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"}},
     .condition = "stalled >= 0.3 * latency",
     .kind = RL_FINDING_INFO,
     .message = "For {stalled} of the {latency} cycles between two instructions ({100 * stalled / latency:0}%) a warp is "
                "eligible but the scheduler selects another: there are more warps than needed. Fewer warps with more "
                "registers or larger tiles would be as fast."},
    {NULL},
};
