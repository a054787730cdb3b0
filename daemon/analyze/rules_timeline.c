/* Rules about the time between a run's operations. Each estimate is a different class of idle time (time_classes.h), or a part of
 * a class, so the estimates of a run can be added and never exceed its idle time. */
#include "analyze/rules_tables.h"

#define IDLE(time_class)                                                                  \
  {"idle", "timeline__" time_class "_pct"}, {"idle_us", "timeline__" time_class "_us"}, { \
    "gaps", "timeline__" time_class "_intervals"                                          \
  }
#define IDLE_TEXT "The device is idle for {idle_us:us}, {idle} % of the window, in {gaps:0} intervals, "

const rl_rule rl_rules_timeline[] = {
    {.id = "timeline_host_work",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The device waits for host code",
     .inputs = {IDLE("idle_host_work")},
     .condition = "idle >= 5",
     .speedup = "idle",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = IDLE_TEXT "before the host calls the next launch. Capture the launches in a CUDA graph, or do the host's work "
                          "before the first launch or in another thread."},
    {.id = "timeline_launch_latency",
     .version = 2,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The device waits for launch calls",
     .inputs = {IDLE("idle_launch_latency")},
     .condition = "idle >= 5",
     .speedup = "idle",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = IDLE_TEXT "while a launch call is in progress: the operation before it ends sooner than the host can launch the "
                          "next one. If these calls launch single kernels, launch a CUDA graph, or fuse kernels. If they launch "
                          "graphs, call cudaGraphUpload beforehand, or put more iterations into one graph."},
    {.id = "timeline_first_launch",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "First launches are slow",
     .inputs = {IDLE("idle_first_launch")},
     .condition = "idle >= 5",
     .kind = RL_FINDING_WARNING,
     .message = IDLE_TEXT "while the driver loads code, or a kernel or graph is launched for the first time and takes several "
                          "times as long as later. Launch once before the time that matters, call cudaGraphUpload, or set "
                          "CUDA_MODULE_LOADING=EAGER. A graph's first launch under a profiler also includes the profiler's work, "
                          "so there is no estimate."},
    {.id = "timeline_synchronization",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The device waits until the host has synchronised",
     .inputs = {IDLE("idle_synchronization")},
     .condition = "idle >= 5",
     .speedup = "idle",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = IDLE_TEXT "while the host is in a synchronising call and has launched nothing more. Launch the next work before "
                          "the host synchronises, or let streams wait for events (cudaStreamWaitEvent)."},
    {.id = "timeline_blocking_copies",
     .version = 3,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The device waits for copies to start",
     .inputs = {IDLE("idle_copy")},
     .condition = "idle >= 5",
     .speedup = "idle",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = IDLE_TEXT "in blocking copy calls or next to copies from or to host memory. Copy with cudaMemcpyAsync from "
                          "pinned memory in a stream beside the kernels."},
    {.id = "timeline_graph_gaps",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The device is idle between graph launches",
     .inputs = {IDLE("idle_graph")},
     .condition = "idle >= 5",
     .speedup = "idle",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = IDLE_TEXT "between graphs that were launched in time. Put several iterations into one graph."},
    {.id = "timeline_small_kernels",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "Many kernels are shorter than 10 µs",
     .inputs = {{"kernels", "timeline__small_kernels"},
                {"time", "timeline__small_kernels_pct"},
                {"idle", "timeline__small_kernels_latency_pct"}},
     .condition = "kernels >= 10 && idle >= 5",
     .speedup = "idle",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "{kernels:0} kernels are shorter than 10 µs. They run during {time} % of the window, and the device takes another "
         "{idle} % to start them although they are queued. Fusing neighbours saves at most this idle time and the memory "
         "traffic between them."},
    {.id = "timeline_small_launches",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "Many short kernels wait for the host",
     .inputs = {{"kernels", "timeline__small_kernels"},
                {"time", "timeline__small_kernels_pct"},
                {"launch", "timeline__small_kernels_launch_pct"}},
     .condition = "kernels >= 10 && launch >= 5",
     .kind = RL_FINDING_WARNING,
     .message =
         "{kernels:0} kernels are shorter than 10 µs. They run during {time} % of the window, and the device waits another "
         "{launch} % for the host to launch those that are not in a graph. A CUDA graph, or fusing neighbours, saves at most "
         "this time, which the findings about the host estimate."},
    {.id = "timeline_copies_alone",
     .version = 2,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "Copies run while no kernel does",
     .inputs = {{"copy", "timeline__host_copies_alone_pct"}, {"beside", "timeline__host_copies_beside_pct"}},
     .condition = "copy >= 5",
     .kind = RL_FINDING_WARNING,
     .message =
         "Copies from or to host memory run without kernels during {copy} % of the window, and beside kernels during {beside} "
         "%. Copy the next inputs in a second stream while kernels run, if the kernels do not need them yet."},
    {.id = "timeline_device_copies_alone",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "Memsets or copies within the device run alone",
     .inputs = {{"copy", "timeline__device_copies_alone_pct"}},
     .condition = "copy >= 5",
     .kind = RL_FINDING_WARNING,
     .message =
         "Memsets, and copies that use no host memory, run alone during {copy} % of the window. Let the kernel before or after "
         "them write these values or read the source of the copy, or run them in a second stream beside kernels."},
    {.id = "timeline_pageable_copies",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "Copies use pageable memory",
     .inputs = {{"copies", "timeline__pageable_copies"},
                {"bytes", "timeline__pageable_copies_bytes"},
                {"time", "timeline__pageable_copies_pct"},
                {"rate", "timeline__pageable_copies_rate"}},
     .condition = "time >= 5",
     .kind = RL_FINDING_WARNING,
     .message =
         "{copies:0} copies from or to pageable memory move {bytes / 1000000} MB at {rate / 1000000000} GB/s. In sum they "
         "last {time} % of the window. The driver stages them through pinned memory, and their calls can block. Allocate the "
         "host memory with cudaMallocHost, or pin it with cudaHostRegister."},
    {.id = "timeline_pinned_rate",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "Copies of pinned memory are faster",
     .inputs = {{"time", "timeline__pageable_copies_pct"},
                {"rate", "timeline__pageable_large_rate"},
                {"pinned", "timeline__pinned_large_rate"}},
     .condition = "time >= 5 && pinned >= 1.05 * rate",
     .speedup = "100 * (1 - rate / pinned)",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "Of the copies of 1 MiB or more in this trace, copies of pageable memory reach {rate / 1000000000} GB/s, and copies of "
         "pinned memory in the same direction {pinned / 1000000000} GB/s. At the rate of pinned memory, the copies of pageable "
         "memory would take {100 * (1 - rate / pinned)} % less time."},
    {.id = "timeline_independent_launches",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "Successive launches are independent",
     .inputs = {{"launches", "timeline__independent_launches"},
                {"time", "timeline__independent_pct"},
                {"blocks", "timeline__independent_blocks_pct"},
                {"memory", "timeline__independent_memory_pct"},
                {"saving", "timeline__independent_saving_pct"}},
     .condition = "time >= 5",
     .speedup = "saving",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "{launches:0} successive launches of the step are independent but run in sequence, {time} % of the window. Their blocks "
         "occupy {blocks} % of the device, and they access memory at {memory} % of the measured DRAM read bandwidth. Concurrent "
         "execution could save about {saving} % of their time. Merge them into one launch, for instance one product with "
         "concatenated weights. A stream for each saved less on an H200."},
    {.id = "timeline_empty_queue",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "No launch is queued while the device is idle",
     .inputs = {{"idle", "timeline__queue_empty_idle_pct"}, {"median", "timeline__queue_depth_median"}},
     .condition = "idle >= 5",
     .kind = RL_FINDING_WARNING,
     .message =
         "During {idle} % of the window the device is idle and no launched operation waits for it. For half of the window, "
         "at most {median:0} operations wait. The host is not ahead of the device. The findings about "
         "idle time estimate what this time costs, by what the host does in it."},
    {.id = "timeline_critical_path",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The host determines the critical path",
     .inputs = {{"host", "timeline__critical_path_host_pct"}, {"kernels", "timeline__critical_path_kernels_pct"}},
     .condition = "host >= 50",
     .kind = RL_FINDING_INFO,
     .message =
         "{host} % of the critical path is host time: work, launch calls and synchronisation. Kernels are {kernels} % of it, "
         "so faster kernels shorten the window by at most that. The findings about idle time estimate the host's part."},
    {.id = "timeline_profiler",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The device waits for the profiler",
     .inputs = {IDLE("idle_profiler")},
     .condition = "idle >= 5",
     .kind = RL_FINDING_INFO,
     .message = IDLE_TEXT "while CUPTI works on the thread that launches. Without a profiler this time does not exist."},
    {.id = "timeline_unknown",
     .version = 1,
     .section = RL_RULE_TIMELINE_SECTION,
     .title = "The cause of idle time is unknown",
     .inputs = {IDLE("idle_unknown"), {"unrecorded", "timeline__unrecorded_launches"}},
     .condition = "idle >= 5",
     .kind = RL_FINDING_WARNING,
     .message =
         IDLE_TEXT "that no record explains; {unrecorded:0} launch calls have no recorded operation. No advice follows from "
                   "this part: the device may have been busy. Trace fewer iterations."},
    {NULL},
};
