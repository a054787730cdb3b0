/* What the shape of a launch and its place in a sequence cost. */
#include "analyze/rules_tables.h"

#define WARP \
  { "warp", "device__attribute_warp_size" }

const rl_rule rl_rules_launch[] = {
    {.id = "launch_too_small",
     .version = 1,
     .section = "LaunchStats",
     .title = "Fewer blocks than multiprocessors",
     .inputs = {RL_GRID, RL_SM_COUNT},
     .when = "blocks < sms",
     .speedup = "100 * (1 - blocks / sms)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "{blocks:0} blocks run on {sms:0} multiprocessors, so {sms - blocks:0} have nothing to do. Cut the work into "
                "more blocks, or run something else beside this kernel."},
    {.id = "partial_wave",
     .version = 1,
     .section = "LaunchStats",
     .title = "The grid does not fill the device once",
     .inputs = {RL_GRID, RL_SM_COUNT, RL_WAVES},
     .when = "blocks >= sms && waves < 0.9",
     .kind = RL_FINDING_WARNING,
     .message = "All {blocks:0} blocks fit at once and fill {100 * waves:0}% of the places that the multiprocessors have for "
                "them. Latencies are hidden by fewer warps than the theoretical occupancy promises."},
    {.id = "tail_effect",
     .version = 1,
     .section = "LaunchStats",
     .title = "A partly filled last wave",
     .inputs = {RL_GRID, RL_WAVES},
     .terms = {{"rounds", "ceil(waves)"}, {"lost", "100 * (rounds - waves) / rounds"}},
     .when = "waves > 1 && lost >= 10",
     .speedup = "lost",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "{blocks:0} blocks make {waves:2} waves, so the last of {rounds:0} rounds is {100 * (1 - rounds + waves):0}% "
                "full. When all blocks take equally long, {lost}% of the places stay empty: choose a grid near a whole number "
                "of waves, or let blocks loop over the work."},
    {.id = "block_not_whole_warps",
     .version = 1,
     .section = "LaunchStats",
     .title = "The block is no whole number of warps",
     .inputs = {{"threads", "launch__block_size"}, WARP},
     .terms = {{"warps", "ceil(threads / warp)"}},
     .when = "warps * warp > threads",
     .speedup = "100 * (1 - threads / (warps * warp))",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "A block of {threads:0} threads takes {warps:0} warps of {warp:0}, the last of them with idle lanes. Make the "
                "block a multiple of {warp:0}."},
    {.id = "short_kernel",
     .version = 1,
     .section = "LaunchStats",
     .title = "A very short kernel",
     .inputs = {RL_DURATION},
     .when = "duration < 10000",
     .kind = RL_FINDING_INFO,
     .message = "The kernel runs {duration / 1000} µs. Below 10 µs the launch itself costs as much: fuse it with its "
                "neighbours, or launch the sequence as a graph."},
    {.id = "launch_bound",
     .version = 1,
     .section = "LaunchStats",
     .title = "The sequence waits for launches",
     .inputs = {{"gap", "activity__launch_gap_ratio"}},
     .when = "gap >= 0.2",
     .speedup = "100 * gap",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "In the timing of the run no kernel was at work for {100 * gap}% of the time: the device waits between "
                "kernels. Capture the sequence in a graph, fuse small kernels, or give each of them more to do."},
    {NULL},
};
