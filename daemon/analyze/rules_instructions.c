/* What is executed, by how many of a warp's threads, and on which pipeline. */
#include "analyze/rules_tables.h"

#define WARP \
  { "warp", "device__attribute_warp_size" }
#define THREADS \
  { "threads", "smsp__thread_inst_executed_per_inst_executed.ratio" }
#define EXECUTED(alias, op) \
  { alias, "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum.per_cycle_elapsed" }
#define PEAK(alias, op) \
  { alias, "sm__sass_thread_inst_executed_op_" op "_pred_on.sum.peak_sustained" }
#define FP64_PIPE \
  { "fp64", "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active" }
#define TENSOR_PIPE \
  { "tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active" }

/* Two operations in one instruction instead of two: half of those that are not fused, while their pipeline works. */
#define NOT_FUSED(type, chart, fma, add, mul, pipe)                                                                              \
  {                                                                                                                              \
    .id = "not_fused_" #type, .version = 1, .section = chart,                                                                    \
    .title = "Multiplications and additions are not fused (" #type ")",                                                          \
    .inputs = {EXECUTED("fused", fma),                                                                                           \
               EXECUTED("additions", add),                                                                                       \
               EXECUTED("multiplications", mul),                                                                                 \
               PEAK("peak", fma),                                                                                                \
               {"busy", pipe ".avg.pct_of_peak_sustained_elapsed"}},                                                             \
    .terms = {{"single", "additions + multiplications"}, {"all", "single + fused"}},                                             \
    .when = "all >= 0.1 * peak && single >= 0.2 * all", .speedup = "0.5 * busy * single / all", .scope = RL_SPEEDUP_GLOBAL,      \
    .kind = RL_FINDING_OPTIMIZATION,                                                                                             \
    .message = "{100 * single / all:0}% of the " #type                                                                           \
               " operations are single additions ({additions:0} threads a cycle) and "                                           \
               "multiplications ({multiplications:0}), {100 * fused / all:0}% fused ({fused:0}). A fused multiply-add does two " \
               "in one instruction: write a * b + c, and don't switch contraction off (--fmad)."                                 \
  }

/* FP16 instructions run on the tensor pipeline too: what they do not explain is products of matrices. Percent of elapsed time. */
#define TENSOR_CHART "SpeedOfLight_HierarchicalTensorRooflineChart"
#define TENSOR_INPUTS                                                                                                    \
  EXECUTED("fused", "hfma"), EXECUTED("additions", "hadd"), EXECUTED("multiplications", "hmul"), PEAK("peak", "hfma"), { \
    "tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"                                          \
  }
#define TENSOR_TERMS \
  {"half", "fused + additions + multiplications"}, { "matrix", "max(0, tensor - 100 * half / peak)" }

/* One rule for each pipeline. */
#define SATURATED(pipe, metric, advice)                                                                                          \
  {                                                                                                                              \
    .id = "pipe_" #pipe "_saturated", .version = 1, .section = "ComputeWorkloadAnalysis",                                        \
    .title = "The " #pipe " pipeline is saturated", .inputs = {{"busy", metric ".avg.pct_of_peak_sustained_active"}},            \
    .when = "busy >= 80", .speedup = "100 - busy", .scope = RL_SPEEDUP_LOCAL, .kind = RL_FINDING_INFO,                           \
    .message = "The " #pipe " pipeline works {busy}% of the time that multiprocessors are active and limits the kernel. " advice \
  }

const rl_rule rl_rules_instructions[] = {
    {.id = "thread_divergence",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Threads of a warp go different ways",
     .inputs = {THREADS, WARP, RL_COMPUTE_PCT},
     .when = "threads <= 0.875 * warp",
     .speedup = "compute * (1 - threads / warp)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Of a warp's {warp:0} threads {threads} take part in an instruction on average. Branches that differ inside a "
                "warp, loops of different length and blocks that are no whole number of warps idle the others: sort work so "
                "that neighbours take the same way."},
    {.id = "predication",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Threads are switched off by predicates",
     .inputs = {THREADS, {"on", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"}, WARP, RL_COMPUTE_PCT},
     .when = "threads - on >= 0.125 * warp",
     .speedup = "compute * (threads - on) / warp",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Of the {threads} threads that take part in an instruction {on} do its work; for the others a predicate is "
                "false. Short branches are executed that way: hoist tests out of loops, and treat borders apart from the "
                "inside."},
    {.id = "branch_divergence",
     .version = 1,
     .section = "SourceCounters",
     .title = "Branches split warps",
     .inputs = {{"uniform", "smsp__sass_average_branch_targets_threads_uniform.pct"},
                {"divergent", "smsp__sass_branch_targets_threads_divergent.sum"},
                {"branches", "smsp__inst_executed_op_branch.sum"},
                {"instructions", "smsp__inst_executed.sum"}},
     .when = "divergent > 0 && uniform < 90 && branches >= 0.01 * instructions",
     .kind = RL_FINDING_WARNING,
     .message = "{uniform}% of the branches take a whole warp the same way; {divergent:0} of {branches:0} split it, and then "
                "both ways are executed one after the other. The per-instruction counts show which ones."},
    {.id = "fp64_slow_device",
     .version = 1,
     .section = "ComputeWorkloadAnalysis",
     .title = "Double precision on a device that is slow at it",
     .inputs = {FP64_PIPE, {"ratio", "device__attribute_single_to_double_precision_perf_ratio"}},
     .when = "ratio >= 16 && fp64 >= 10",
     .speedup = "100 * (fp64 / 100) * (1 - 1 / ratio)",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "This device does {ratio:0} single-precision operations in the time of one in double precision, and the FP64 "
                "pipeline works {fp64}% of the time. Look for literals without an f and for functions in double, or split "
                "numbers into two floats."},
    {.id = "fp64_dominates",
     .version = 1,
     .section = "ComputeWorkloadAnalysis",
     .title = "Double precision dominates",
     .inputs = {FP64_PIPE,
                {"fma", "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"},
                TENSOR_PIPE,
                {"ratio", "device__attribute_single_to_double_precision_perf_ratio"}},
     .when = "fp64 >= 20 && fp64 > fma && fp64 > tensor",
     .speedup = "fp64 * (1 - 1 / ratio)",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "The FP64 pipeline is the busiest, {fp64}% of the time, and the device is {ratio:0} times as fast in single "
                "precision. Where the result bears it, compute in FP32 or refine an FP32 result; matrix products in double "
                "belong on the tensor cores where there are such."},
    NOT_FUSED(fp32, "SpeedOfLight_RooflineChart", "ffma", "fadd", "fmul", "sm__pipe_fma_cycles_active"),
    NOT_FUSED(fp64, "SpeedOfLight_RooflineChart", "dfma", "dadd", "dmul", "sm__pipe_fp64_cycles_active"),
    NOT_FUSED(fp16, "SpeedOfLight_HierarchicalHalfRooflineChart", "hfma", "hadd", "hmul", "sm__pipe_fma_cycles_active"),
    {.id = "tensor_unused",
     .version = 1,
     .section = TENSOR_CHART,
     .title = "A matrix product in FP16 without tensor cores",
     .inputs = {TENSOR_INPUTS},
     .terms = {TENSOR_TERMS},
     .when = "matrix < 5 && fused >= 0.1 * peak && fused >= 0.8 * half",
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "The kernel does fused FP16 operations at {100 * fused / peak:0}% of the peak of single instructions, almost "
                "nothing else in FP16, and no product of matrices. If that is what it computes, mma instructions or a library do "
                "it on the tensor cores at many times that rate."},
    {.id = "tensor_underused",
     .version = 1,
     .section = TENSOR_CHART,
     .title = "Tensor cores wait",
     .inputs = {TENSOR_INPUTS, RL_MEMORY_PCT},
     .terms = {TENSOR_TERMS},
     .when = "matrix >= 5 && matrix < 60 && memory < 60",
     .speedup = "60 - matrix",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Tensor cores work {matrix}% of the time where a good matrix product exceeds 60%, and memory ({memory}%) is not "
                "what stops them. Larger tiles, more stages in flight, sizes that are multiples of the tile, and a grid of whole "
                "waves keep them fed."},
    {.id = "tensor_saturated",
     .version = 1,
     .section = TENSOR_CHART,
     .title = "The tensor cores are saturated",
     .inputs = {TENSOR_INPUTS},
     .terms = {TENSOR_TERMS},
     .when = "matrix >= 80",
     .speedup = "100 - matrix",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_INFO,
     .message = "Tensor cores work {matrix}% of the time. That is what a good matrix product looks like: only a cheaper "
                "precision or fewer operations make it faster."},
    SATURATED(alu, "sm__pipe_alu_cycles_active",
              "It does integer and logic operations and comparisons: simplify index arithmetic, or use wider types."),
    SATURATED(fma, "sm__pipe_fma_cycles_active",
              "It does FP32 and FP16 arithmetic and integer products: use tensor cores, or compute less."),
    SATURATED(fp64, "sm__pipe_fp64_cycles_active", "Compute in FP32 where the result bears it."),
    SATURATED(xu, "sm__inst_executed_pipe_xu",
              "It does transcendental functions and conversions: use polynomials, tables or fewer conversions."),
    SATURATED(lsu, "sm__inst_executed_pipe_lsu",
              "It issues loads, stores and shuffles: use wider accesses and keep values in registers."),
    {NULL},
};
