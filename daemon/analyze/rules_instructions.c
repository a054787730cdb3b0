/* Rules about executed instructions: active threads, fused operations, pipelines. */
#include "analyze/rules_tables.h"

#define WARP_SIZE \
  { "warp_size", "device__attribute_warp_size" }
#define THREADS_PER_INSTRUCTION \
  { "threads", "smsp__thread_inst_executed_per_inst_executed.ratio" }
#define EXECUTED(alias, op) \
  { alias, "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum.per_cycle_elapsed" }
#define PEAK_EXECUTED(alias, op) \
  { alias, "sm__sass_thread_inst_executed_op_" op "_pred_on.sum.peak_sustained" }
#define FP64_PIPE \
  { "fp64", "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active" }
#define TENSOR_PIPE \
  { "tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active" }

/* One rule for each type. Estimate: each addition that is fused with a multiplication saves one instruction of a busy
 * pipeline. If memory limits the kernel, fewer instructions save no time. */
#define NOT_FUSED_RULE(type, section_id, fma, add, mul, pipe)                                                                  \
  {                                                                                                                            \
    .id = "not_fused_" #type, .version = 3, .section = section_id,                                                             \
    .title = "Multiplications and additions are not fused (" #type ")", .cause = RL_CAUSE_UNFUSED,                             \
    .inputs = {EXECUTED("fused", fma),                                                                                         \
               EXECUTED("additions", add),                                                                                     \
               EXECUTED("multiplications", mul),                                                                               \
               PEAK_EXECUTED("peak", fma),                                                                                     \
               {"busy", pipe ".avg.pct_of_peak_sustained_elapsed"},                                                            \
               RL_INPUT_COMPUTE_PCT,                                                                                           \
               RL_INPUT_MEMORY_PCT},                                                                                           \
    .terms = {{"unfused", "additions + multiplications"},                                                                      \
              {"total", "unfused + fused"},                                                                                    \
              {"pairs", "min(additions, multiplications)"}},                                                                   \
    .condition = "total >= 0.1 * peak && pairs >= 0.1 * total && (memory < " RL_TEXT(                                          \
        RL_BUSY_PCT) " || memory - compute < " RL_TEXT(RL_BALANCED_DIFFERENCE_PCT) ")",                                        \
    .speedup = "busy * pairs / total", .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION,                            \
    .message = "{100 * unfused / total:0} % of the " #type                                                                     \
               " instructions are separate additions ({additions:0} threads a cycle) and multiplications "                     \
               "({multiplications:0} threads a cycle); {100 * fused / total:0} % are fused ({fused:0}). A fused multiply-add " \
               "does both in "                                                                                                 \
               "one instruction. |Write a * b + c, and do not disable contraction (--fmad=false)."                             \
  }

/* FP16 instructions also occupy the tensor pipeline. matrix: percent of the elapsed time in which the pipeline works on matrix
 * products: its busy time without the time for FP16 instructions. */
#define TENSOR_SECTION "SpeedOfLight_HierarchicalTensorRooflineChart"
#define TENSOR_INPUTS                                                                                                           \
  EXECUTED("fused", "hfma"), EXECUTED("additions", "hadd"), EXECUTED("multiplications", "hmul"), PEAK_EXECUTED("peak", "hfma"), \
  {                                                                                                                             \
    "tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"                                                 \
  }
#define TENSOR_TERMS \
  {"half", "fused + additions + multiplications"}, { "matrix", "max(0, tensor - 100 * half / peak)" }

/* One rule for each pipeline. */
#define PIPE_SATURATED_RULE(pipe, metric, ending)                                                                             \
  {                                                                                                                           \
    .id = "pipe_" #pipe "_saturated", .version = 2, .section = "ComputeWorkloadAnalysis",                                     \
    .title = "The " #pipe " pipeline is saturated", .cause = RL_CAUSE_SATURATION,                                             \
    .inputs = {{"busy", metric ".avg.pct_of_peak_sustained_active"}}, .condition = "busy >= " RL_TEXT(RL_SATURATED_PCT),      \
    .kind = RL_FINDING_INFO,                                                                                                  \
    .message =                                                                                                                \
        "The " #pipe " pipeline is busy {busy} % of the time that multiprocessors are active, and limits the kernel. " ending \
  }

const rl_rule rl_rules_instructions[] = {
    {.id = "thread_divergence",
     .version = 1,
     .section = "WarpStateStats",
     .title = "Warp divergence",
     .cause = RL_CAUSE_DIVERGENCE,
     .inputs = {THREADS_PER_INSTRUCTION, WARP_SIZE, RL_INPUT_COMPUTE_PCT},
     .condition = "threads <= 0.875 * warp_size",
     .speedup = "compute * (1 - threads / warp_size)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "On average {threads} of a warp's {warp_size:0} threads are active in an instruction. Branches that diverge "
                "inside a warp, loops of different lengths, and a block size that is not a multiple of the warp size leave the "
                "others idle. |Sort the work so that neighbouring threads take the same path."},
    {.id = "predication",
     .version = 2,
     .section = "WarpStateStats",
     .title = "Predicates disable threads",
     .cause = RL_CAUSE_DIVERGENCE,
     .inputs = {THREADS_PER_INSTRUCTION,
                {"predicated_on", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"},
                WARP_SIZE,
                RL_INPUT_ISSUED_PER_CYCLE,
                RL_INPUT_COMPUTE_PCT},
     .condition = "threads - predicated_on >= 0.125 * warp_size && " /* issue slots limit the kernel */
                  "100 * issued >= max(" RL_TEXT(RL_BUSY_PCT) ", compute - " RL_TEXT(RL_BALANCED_DIFFERENCE_PCT) ")",
     .speedup = "min(compute, 100 * issued) * (threads - predicated_on) / warp_size",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Of the {threads} threads that are active in an instruction, {predicated_on} execute it; the predicate of the "
                "others is false. Compilers turn short branches into predicates. |Move tests out of loops, and handle borders "
                "separately from the interior."},
    {.id = "branch_divergence",
     .version = 1,
     .section = "SourceCounters",
     .title = "Divergent branches",
     .cause = RL_CAUSE_DIVERGENCE,
     .inputs = {{"uniform", "smsp__sass_average_branch_targets_threads_uniform.pct"},
                {"divergent", "smsp__sass_branch_targets_threads_divergent.sum"},
                {"branches", "smsp__inst_executed_op_branch.sum"},
                {"instructions", "smsp__inst_executed.sum"}},
     .condition = "divergent > 0 && uniform < 90 && branches >= 0.01 * instructions",
     .kind = RL_FINDING_WARNING,
     .message = "{uniform} % of the branches are uniform; {divergent:0} of {branches:0} diverge, and the warp then executes both "
                "paths one after the other. |The per-instruction counts show which branches diverge."},
    {.id = "fp64_slow_device",
     .version = 1,
     .section = "ComputeWorkloadAnalysis",
     .title = "Double precision on a device with slow FP64",
     .cause = RL_CAUSE_FP64,
     .inputs = {FP64_PIPE, {"ratio", "device__attribute_single_to_double_precision_perf_ratio"}},
     .condition = "ratio >= 16 && fp64 >= 10",
     .speedup = "100 * (fp64 / 100) * (1 - 1 / ratio)",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "This device executes {ratio:0} single-precision operations in the time of one in double precision, and the FP64 "
                "pipeline is busy {fp64} % of the time. |Look for literals without the suffix f and for double-precision "
                "functions, or represent a number as two floats."},
    {.id = "fp64_dominates",
     .version = 2,
     .section = "ComputeWorkloadAnalysis",
     .title = "Double precision dominates",
     .cause = RL_CAUSE_FP64,
     .inputs = {FP64_PIPE,
                {"fma", "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"},
                TENSOR_PIPE,
                {"issue", "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"},
                {"ratio", "device__attribute_single_to_double_precision_perf_ratio"}},
     .condition = "fp64 >= " RL_TEXT(RL_BUSY_PCT) " && fp64 > fma && fp64 > tensor",
     .speedup = "fp64 * (1 - 1 / ratio)",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "The FP64 pipeline is busy {fp64} % of the time, with {issue} % of the issue slots used: it limits the kernel, and more "
         "warps do not help. The device is {ratio:0} times as fast in single precision. |Where accuracy allows it, compute in "
         "FP32 or refine an FP32 result. Use tensor cores for FP64 matrix products if the device has FP64 tensor cores."},
    NOT_FUSED_RULE(fp32, "SpeedOfLight_RooflineChart", "ffma", "fadd", "fmul", "sm__pipe_fma_cycles_active"),
    NOT_FUSED_RULE(fp64, "SpeedOfLight_RooflineChart", "dfma", "dadd", "dmul", "sm__pipe_fp64_cycles_active"),
    NOT_FUSED_RULE(fp16, "SpeedOfLight_HierarchicalHalfRooflineChart", "hfma", "hadd", "hmul", "sm__pipe_fma_cycles_active"),
    {.id = "tensor_unused",
     .version = 1,
     .section = TENSOR_SECTION,
     .title = "FP16 matrix product without tensor cores",
     .cause = RL_CAUSE_TENSOR,
     .inputs = {TENSOR_INPUTS},
     .terms = {TENSOR_TERMS},
     .condition = "matrix < 5 && fused >= 0.1 * peak && fused >= 0.8 * half",
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "The kernel executes fused FP16 instructions at {100 * fused / peak:0} % of their peak, almost no other FP16 "
                "instructions, and almost no matrix instructions. |If it computes a matrix product, mma instructions or a "
                "library are many times as fast on the tensor cores."},
    {.id = "tensor_underused",
     .version = 2,
     .section = TENSOR_SECTION,
     .title = "Tensor cores are underused",
     .cause = RL_CAUSE_TENSOR,
     .inputs = {TENSOR_INPUTS, RL_INPUT_COMPUTE_PCT, RL_INPUT_MEMORY_PCT},
     .terms = {TENSOR_TERMS},
     .condition = "matrix >= 5 && matrix < " RL_TEXT(RL_BUSY_PCT) " && " RL_NOT_BUSY,
     .speedup = RL_TEXT(RL_BUSY_PCT) " - matrix",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "Tensor cores are busy {matrix} % of the time; a good matrix product exceeds 60 %. Neither memory ({memory} %) nor "
         "another pipeline limits them. |Use larger tiles, more pipeline stages, sizes that are multiples of the tile, and a "
         "grid of whole waves."},
    {.id = "tensor_saturated",
     .version = 1,
     .section = TENSOR_SECTION,
     .title = "Tensor cores are saturated",
     .cause = RL_CAUSE_SATURATION,
     .inputs = {TENSOR_INPUTS},
     .terms = {TENSOR_TERMS},
     .condition = "matrix >= " RL_TEXT(RL_SATURATED_PCT),
     .kind = RL_FINDING_INFO,
     .message = "Tensor cores are busy {matrix} % of the time, as in a good matrix product. |Only a lower precision or fewer "
                "operations make it faster."},
    PIPE_SATURATED_RULE(
        alu, "sm__pipe_alu_cycles_active",
        "It executes integer, logic and comparison instructions. |Simplify index arithmetic, or use wider types."),
    PIPE_SATURATED_RULE(fma, "sm__pipe_fma_cycles_active",
                        "It executes FP32 and FP16 arithmetic and integer multiplications. |Use tensor cores, or compute less."),
    PIPE_SATURATED_RULE(fp64, "sm__pipe_fp64_cycles_active", "|Compute in FP32 where accuracy allows it."),
    PIPE_SATURATED_RULE(xu, "sm__inst_executed_pipe_xu",
                        "It executes transcendental functions and conversions. |Use polynomials, tables or fewer conversions."),
    PIPE_SATURATED_RULE(lsu, "sm__inst_executed_pipe_lsu",
                        "It issues loads, stores and shuffles. |Use wider accesses and keep values in registers."),
    {NULL},
};
