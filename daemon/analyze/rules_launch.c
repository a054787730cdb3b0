/* Rules about launch configuration and launch overhead. */
#include "analyze/rules_tables.h"

#define WARP_SIZE \
  { "warp_size", "device__attribute_warp_size" }

const rl_rule rl_rules_launch[] = {
    /* If DRAM is saturated, further multiprocessors would only share its bandwidth. */
    {.id = "launch_too_small",
     .version = 2,
     .section = "LaunchStats",
     .title = "Fewer blocks than multiprocessors",
     .cause = RL_CAUSE_GRID,
     .inputs = {RL_INPUT_GRID_BLOCKS, RL_INPUT_SM_COUNT, RL_INPUT_DRAM_PCT},
     .condition = "blocks < sms && dram < " RL_TEXT(RL_SATURATED_PCT),
     .speedup = "100 * (1 - blocks / sms)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "The grid has fewer blocks ({blocks:0}) than the device has multiprocessors ({sms:0}), so {100 * (1 - blocks / "
                "sms):0} % of these are idle. |Divide the work into more blocks, or run another kernel concurrently."},
    /* The cost of a partial last wave lies between two bounds. If a unit limits the blocks, fewer blocks on a multiprocessor run
     * faster, and only multiprocessors without a block cost time. If latency limits them, they take as long as in a full wave,
     * and every empty slot costs time: `idle`. RL_CAUSE_TAIL limits the estimate to the first bound. The achieved occupancy does
     * not tell the cases apart, because slots are also empty while blocks are replaced. */
    {.id = "tail_effect",
     .version = 1,
     .section = "LaunchStats",
     .title = "Tail effect: partial last wave",
     .cause = RL_CAUSE_TAIL,
     .inputs = {RL_INPUT_GRID_BLOCKS, RL_INPUT_WAVES},
     .terms = {{"whole_waves", "ceil(waves)"}, {"idle", "100 * (whole_waves - waves) / whole_waves"}},
     .condition = "waves > 1 && idle >= 10",
     .speedup = "idle",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "{blocks:0} blocks make {waves:2} waves, so the last of {whole_waves:0} waves is {100 * (1 - whole_waves + "
                "waves):0} % full. If all blocks take equally long, {idle} % of the block slots stay empty. The estimate counts "
                "only multiprocessors without a block, because fewer blocks on one may run faster. |Choose a grid close to a "
                "whole number of waves, or use dynamic scheduling."},
    {.id = "block_not_whole_warps",
     .version = 3,
     .section = "LaunchStats",
     .title = "The block size is not a multiple of the warp size",
     .cause = RL_CAUSE_DIVERGENCE,
     .inputs = {{"threads", "launch__block_size"}, WARP_SIZE, RL_INPUT_GRID_BLOCKS, RL_INPUT_SM_COUNT},
     .terms = {{"warps", "ceil(threads / warp_size)"}},
     /* Idle lanes matter only if there is work for them: a grid of one thread initializes a workspace. With fewer blocks, the
      * verdict is that the launch has too few. */
     .condition = "warps * warp_size > threads && 100 * blocks >= " RL_TEXT(RL_BUSY_PCT) " * sms",
     .speedup = "100 * (1 - threads / (warps * warp_size))",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "A block of {threads:0} threads takes {warps:0} warps of {warp_size:0} threads, and the last warp has idle "
                "lanes. |Make the block size a multiple of {warp_size:0}."},
    {.id = "short_kernel",
     .version = 1,
     .section = "LaunchStats",
     .title = "The kernel is very short",
     .cause = RL_CAUSE_LAUNCH_OVERHEAD,
     .inputs = {RL_INPUT_DURATION_NS},
     .condition = "duration_ns < " RL_TEXT(RL_SHORT_KERNEL_NS),
     .kind = RL_FINDING_INFO,
     .message = "The kernel runs for {duration_ns / 1000:us}. Below 10 µs, the start and the end of a kernel can be a large "
                "part of its time. |Fuse it with its neighbours, or launch the sequence as a graph."},
    {.id = "launch_overhead",
     .version = 1,
     .section = "LaunchStats",
     .title = "Launch overhead",
     .cause = RL_CAUSE_LAUNCH_OVERHEAD,
     .inputs = {RL_INPUT_DURATION_NS, {"longest", "sm__cycles_active.max"}, {"elapsed", "sm__cycles_elapsed.max"}},
     .terms = {{"overhead", "max(0, elapsed - longest)"}},
     .condition = "overhead >= 0.2 * elapsed",
     .speedup = "100 * overhead / elapsed",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "The kernel takes {duration_ns / 1000:us}, and no multiprocessor has a block for {100 * overhead / elapsed:0} % "
                "of this time: the launch takes longer than the work justifies. |Fuse the kernel with its neighbours, give it "
                "more work, or launch the sequence as a CUDA graph."},
    {.id = "launch_bound",
     .version = 2,
     .section = "LaunchStats",
     .title = "The device idles between kernels",
     .cause = RL_CAUSE_LAUNCH_OVERHEAD,
     .inputs = {{"gap", "activity__launch_gap_ratio"}},
     .condition = "gap >= 0.2",
     .kind = RL_FINDING_WARNING,
     .message = "The device had no work during {100 * gap} % of an iteration of this run. The findings of the run's timeline say "
                "what it waits for, and estimate what a change would save."},
    {NULL},
};
