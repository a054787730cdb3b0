/* Rules about issue slots and warp stalls. */
#include "analyze/rules_tables.h"

/* One rule for each stall reason: warps spend much of their time in it while issue slots stay empty and no unit is busy.
 * ending: the end of the message, with the "|" before its advice. */
#define STALL_RULE(reason, cause_id, stall_title, where, ending)                                                           \
  {                                                                                                                        \
    .id = "stall_" #reason, .version = 2, .section = "WarpStateStats", .title = stall_title, .cause = RL_CAUSE_##cause_id, \
    .inputs = {{"stalled", "smsp__average_warps_issue_stalled_" #reason "_per_issue_active.ratio"},                        \
               {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"},                                            \
               RL_INPUT_ISSUED_PER_CYCLE,                                                                                  \
               RL_INPUT_COMPUTE_PCT,                                                                                       \
               RL_INPUT_MEMORY_PCT},                                                                                       \
    .condition = "stalled >= 0.3 * latency && issued < 0.8 && " RL_NOT_BUSY,                                               \
    .speedup = "min(100 * stalled / latency, 100 * (1 - issued), " RL_HEADROOM ")", .scope = RL_SPEEDUP_GLOBAL,            \
    .kind = RL_FINDING_OPTIMIZATION,                                                                                       \
    .message =                                                                                                             \
        "Of the {latency} cycles between two instructions of a warp, {stalled} ({100 * stalled / latency:0} %) are "       \
        "spent waiting " where ". " ending                                                                                 \
  }

const rl_rule rl_rules_scheduling[] = {
    {.id = "issue_slots",
     .version = 2,
     .section = "SchedulerStats",
     .title = "Schedulers often have nothing to issue",
     .cause = RL_CAUSE_FEW_WARPS,
     .inputs = {RL_INPUT_ISSUED_PER_CYCLE,
                {"active", "smsp__warps_active.avg.per_cycle_active"},
                {"eligible", "smsp__warps_eligible.avg.per_cycle_active"},
                {"warp_slots", "smsp__warps_active.avg.peak_sustained"},
                RL_INPUT_COMPUTE_PCT,
                RL_INPUT_MEMORY_PCT},
     .condition = "issued < 0.6 && " RL_NOT_BUSY,
     .kind = RL_FINDING_WARNING,
     .reports_missing_inputs = true,
     .message = "A scheduler can issue an instruction every cycle but does so every {1 / issued} cycles. {active} of its "
                "{warp_slots:0} warp slots are occupied, and on average {eligible:2} of these warps are eligible in a cycle. "
                "|Shorten the stalls that the warp states show, or give each thread more independent instructions. More warps "
                "help only while warp slots are empty."},
    {.id = "dependent_loads",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Dependent loads (pointer chasing)",
     .cause = RL_CAUSE_MEMORY_LATENCY,
     .inputs = {RL_LONG_SCOREBOARD_INPUTS,
                {"dependent", "code__inst_executed_dependent_loads"},
                {"loads", "sass__inst_executed_global_loads"}},
     .condition = RL_LONG_SCOREBOARD_CONDITION " && dependent > 0 && dependent >= 0.3 * loads",
     .speedup = RL_LONG_SCOREBOARD_SPEEDUP,
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .opcodes = "LD LDG",
     .message = "{100 * dependent / loads:0} % of the loads from global memory have an address that depends on their own "
                "previous result, so a thread has one such load in flight, and warps wait {100 * stalled / latency:0} % of the "
                "time. |Follow several chains in each thread, run more warps if warp slots are empty, or store the data so that "
                "addresses are known in advance (arrays instead of lists, indices sorted by access)."},
    {.id = "shallow_cp_async",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Too few asynchronous copies in flight (cp.async)",
     .cause = RL_CAUSE_MEMORY_LATENCY,
     .inputs = {RL_LONG_SCOREBOARD_INPUTS,
                {"copies", "smsp__inst_executed_op_ldgsts.sum"},
                {"requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"}},
     .condition = RL_LONG_SCOREBOARD_CONDITION " && copies > 0 && copies >= 0.5 * requests",
     .speedup = RL_LONG_SCOREBOARD_SPEEDUP,
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "cp.async brings {100 * copies / requests:0} % of the loads to shared memory, and warps wait for them {100 * "
                "stalled / latency:0} % of the time, while memory works at {memory} % of its peak: the software pipeline is too "
                "shallow. |Add stages, and wait for the oldest group only (cp.async.wait_group N with N > 0)."},
    {.id = "shallow_tma",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Too few bulk copies in flight (TMA)",
     .cause = RL_CAUSE_MEMORY_LATENCY,
     .inputs = {RL_LONG_SCOREBOARD_INPUTS,
                {"copied", "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"},
                {"sectors", "lts__t_sectors_srcunit_tex_op_read.sum"}},
     .condition = RL_LONG_SCOREBOARD_CONDITION " && copied > 0 && copied >= 0.5 * sectors",
     .speedup = RL_LONG_SCOREBOARD_SPEEDUP,
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "The TMA reads {100 * min(1, copied / sectors):0} % of the sectors, and warps wait for it {100 * stalled / "
                "latency:0} % of the time, while memory works at {memory} % of its peak: the software pipeline is too shallow. "
                "|Issue copies several stages ahead, each with an mbarrier."},
    {.id = "stall_long_scoreboard",
     .version = 2,
     .section = "WarpStateStats",
     .title = "Stall long scoreboard (L1, L2 or DRAM)",
     .cause = RL_CAUSE_MEMORY_LATENCY,
     .inputs = {RL_LONG_SCOREBOARD_INPUTS,
                {"loaded", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
                {"reads", "lts__t_sectors_srcunit_tex_op_read.sum"},
                {"writes", "lts__t_sectors_srcunit_tex_op_write.sum"}},
     .condition = RL_LONG_SCOREBOARD_CONDITION
     " && loaded + reads > 0.1 * writes", /* otherwise the stall is about stores, which wait for their registers */
     .speedup = RL_LONG_SCOREBOARD_SPEEDUP,
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Of the {latency} cycles between two instructions of a warp, {stalled} ({100 * stalled / latency:0} %) are spent "
                "waiting for data from L1, L2 or DRAM. |Load earlier and more at once (unroll, wider loads, asynchronous "
                "copies), keep reused data in registers or shared memory, and coalesce accesses."},
    STALL_RULE(
        short_scoreboard, SHARED_LATENCY, "Stall short scoreboard (shared memory, special functions)",
        "for shared memory or special functions",
        "|Look for bank conflicts, use fewer and wider shared-memory accesses, and fewer special functions (sin, exp, rsqrt, "
        "conversions)."),
    STALL_RULE(mio_throttle, SHARED_LATENCY, "MIO throttle", "for a slot in the MIO (memory input/output) queue",
               "Too many shared-memory, special-function or dynamic branch instructions are issued in a row. |Use wider "
               "shared-memory accesses or shuffles, or interleave arithmetic."),
    STALL_RULE(
        lg_throttle, MEMORY_QUEUE, "LG throttle (local and global memory)", "for a slot in the queue of local and global memory",
        "Too many memory instructions are issued in a row. |Use wider accesses (16 bytes per thread) and avoid local memory."),
    STALL_RULE(tex_throttle, TEXTURE_QUEUE, "TEX throttle", "for a slot in the texture queue",
               "|Issue fewer texture, surface and FP64-by-texture operations in a row, or use ordinary loads."),
    STALL_RULE(barrier, BARRIERS, "Stall barrier", "at a barrier",
               "Warps arrive at different times. |Balance the work between barriers, use smaller blocks or fewer barriers, or "
               "synchronise only the warps that share data."),
    STALL_RULE(membar, FENCES, "Stall membar (memory fence)", "for a memory barrier",
               "|Use fewer fences and the narrowest scope that is right (block instead of device or system), and have fewer "
               "writes in flight before them."),
    STALL_RULE(wait, DEPENDENCIES, "Stall wait (fixed-latency dependency)", "for the fixed latency of an instruction",
               "Dependent instructions form chains, and other warps do not hide them. |Give each thread more independent work, "
               "or raise occupancy if warp slots are empty."),
    STALL_RULE(branch_resolving, BRANCHES, "Stall branch resolving", "for the target of a branch",
               "|Use fewer branches and calls: unroll short loops, replace branches with selects, avoid indirect calls."),
    STALL_RULE(no_instruction, INSTRUCTION_CACHE, "Stall no instruction (instruction cache misses)", "for instruction fetches",
               "The code does not fit the instruction cache, or jumps across it. |Unroll less, shrink the kernel, or run more "
               "warps on the same code."),
    STALL_RULE(imc_miss, CONSTANTS, "Stall IMC miss (constant cache)", "for constant memory",
               "Reads of constants miss in the cache. |Use fewer constants, read them with one index for the whole warp, or load "
               "them from global memory."),
    STALL_RULE(
        drain, STORES_AT_EXIT, "Stall drain (stores before exit)", "for their stores to complete before they exit",
        "Many warps store much data just before they exit. |Spread the stores, make them coalesced and wide, or give a thread "
        "more than one element."),
    STALL_RULE(sleeping, SLEEP, "Stall sleeping (__nanosleep)", "in __nanosleep",
               "|Use shorter __nanosleep intervals, or wait on a barrier object instead of polling."),
    STALL_RULE(dispatch_stall, DISPATCH, "Dispatch stall", "for the dispatcher",
               "It delays instructions because of conflicts, such as those over register banks. |Another mix of instructions "
               "may help; a program can rarely avoid this."),
    STALL_RULE(
        gmma, WARPGROUPS, "Stall GMMA (wgmma)", "for wgmma instructions",
        "|Keep more matrix operations in flight (a deeper pipeline, waits for older groups only), and let other warps load "
        "the tiles."),
    STALL_RULE(misc, OTHER_STALLS, "Stall misc", "for a miscellaneous reason",
               "The hardware does not report the reason. |PC samples by instruction show where it happens."),
    {.id = "tensor_waits_for_shared",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Tensor cores wait for loads from shared memory",
     .cause = RL_CAUSE_TENSOR,
     .inputs = {{"queued", "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio"},
                {"loading", "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"},
                {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"},
                {"tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"},
                {"shared", "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"}},
     .condition = "tensor >= 5 && tensor < " RL_TEXT(RL_BUSY_PCT) " && shared >= 10 && queued + loading >= 0.3 * latency",
     .speedup = "min(100 * (queued + loading) / latency, 100 - tensor)",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "The tensor cores work {tensor} % of the time, and warps wait {100 * (queued + loading) / latency:0} % of the time for "
         "shared memory, which works at {shared} %: operands are loaded more often than they are used. |Give each warp a larger "
         "tile, keep fragments in registers, load with ldmatrix, or use wgmma, which reads shared memory itself."},
    {.id = "stall_math_pipe_throttle",
     .version = 2,
     .section = "WarpStateStats",
     .title = "Math pipe throttle",
     .cause = RL_CAUSE_SATURATION,
     .inputs = {{"stalled", "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio"},
                {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"}},
     .condition = "stalled >= 0.3 * latency",
     .kind = RL_FINDING_INFO,
     .message = "Of the {latency} cycles between two instructions of a warp, {stalled} ({100 * stalled / latency:0} %) are spent "
                "waiting for a busy arithmetic pipeline. |Do less arithmetic, distribute it over more pipelines, or use a lower "
                "precision."},
    {.id = "stall_not_selected",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Stall not selected",
     .cause = RL_CAUSE_SATURATION,
     .inputs = {{"stalled", "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio"},
                {"latency", "smsp__average_warp_latency_per_inst_issued.ratio"}},
     .condition = "stalled >= 0.3 * latency",
     .kind = RL_FINDING_INFO,
     .message = "For {stalled} of the {latency} cycles between two instructions ({100 * stalled / latency:0} %) a warp is "
                "eligible but the scheduler selects another: there are more warps than needed. |Fewer warps with more registers "
                "or larger tiles would be as fast."},
    {NULL},
};
