/* The table was written before any of these kernels had run. Its held-out half has not changed since; in the other half,
 * expectations that the metrics refuted were corrected. */
#include "known_causes.h"

#include <stdlib.h>
#include <string.h>

#define BOUNDS(...) \
  { __VA_ARGS__ }
#define ALLOWED(...) \
  { __VA_ARGS__ }
#define LATENCY_CAUSES RL_CAUSE_MEMORY_LATENCY, RL_CAUSE_FEW_WARPS

const known_kernel known_kernels[] = {
    /* used while the rules were written */
    {"copy", false, BOUNDS(RL_KERNEL_BOUND_DRAM)},
    {"fma", false, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "fma"},
    {"dfma", false, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "fp64", RL_CAUSE_FP64},
    {"wgmma", false, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "tensor"},
    {"ex2", false, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "xu"},
    {"read_banks", false, BOUNDS(RL_KERNEL_BOUND_L1), NULL, RL_CAUSE_BANK_CONFLICTS},
    {"chase", false, BOUNDS(RL_KERNEL_BOUND_LATENCY), NULL, RL_CAUSE_MEMORY_LATENCY,
     ALLOWED(RL_CAUSE_FEW_WARPS, RL_CAUSE_COALESCING)},
    {"few_blocks", false, BOUNDS(RL_KERNEL_BOUND_LAUNCH), NULL, RL_CAUSE_GRID,
     ALLOWED(RL_CAUSE_DEPENDENCIES, RL_CAUSE_FEW_WARPS)},
    {"one_long_block", false, BOUNDS(RL_KERNEL_BOUND_TAIL), NULL, RL_CAUSE_TAIL,
     ALLOWED(RL_CAUSE_GRID, RL_CAUSE_DEPENDENCIES, RL_CAUSE_FEW_WARPS)},
    {"tiny", false, BOUNDS(RL_KERNEL_BOUND_TOO_SMALL), NULL, RL_CAUSE_LAUNCH_OVERHEAD,
     ALLOWED(RL_CAUSE_FEW_WARPS, RL_CAUSE_INSTRUCTION_CACHE, RL_CAUSE_CONSTANTS, RL_CAUSE_DEPENDENCIES)},
    {"read_apart", false, BOUNDS(RL_KERNEL_BOUND_DRAM, RL_KERNEL_BOUND_L2), NULL, RL_CAUSE_COALESCING},
    {"write_apart", false, BOUNDS(RL_KERNEL_BOUND_DRAM, RL_KERNEL_BOUND_L2, RL_KERNEL_BOUND_LATENCY), NULL, RL_CAUSE_COALESCING},
    {"read_again", false, BOUNDS(RL_KERNEL_BOUND_L2)},
    {"diverge", false, BOUNDS(RL_KERNEL_BOUND_PIPELINE), NULL, RL_CAUSE_DIVERGENCE, ALLOWED(RL_CAUSE_UNFUSED)},
    {"barrier", false, BOUNDS(RL_KERNEL_BOUND_LATENCY), NULL, RL_CAUSE_BARRIERS, ALLOWED(RL_CAUSE_FEW_WARPS)},
    {"red_one_word", false, BOUNDS(RL_KERNEL_BOUND_ATOMICS), NULL, RL_CAUSE_GLOBAL_ATOMICS,
     ALLOWED(RL_CAUSE_HOT_UNITS, RL_CAUSE_MEMORY_QUEUE, RL_CAUSE_STORES_AT_EXIT)},
    {"shared_atomics_one_word", false, BOUNDS(RL_KERNEL_BOUND_ATOMICS), NULL, RL_CAUSE_SHARED_ATOMICS,
     ALLOWED(RL_CAUSE_SHARED_LATENCY, RL_CAUSE_BANK_CONFLICTS)},
    {"cp_async_one_stage", false, BOUNDS(RL_KERNEL_BOUND_LATENCY), NULL, RL_CAUSE_MEMORY_LATENCY,
     ALLOWED(RL_CAUSE_FEW_WARPS, RL_CAUSE_BARRIERS)},
    {"mma_from_shared", false, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "tensor"},
    {"local", false, BOUNDS(RL_KERNEL_BOUND_L1, RL_KERNEL_BOUND_L2, RL_KERNEL_BOUND_DRAM), NULL, RL_CAUSE_LOCAL_MEMORY,
     ALLOWED(RL_CAUSE_MEMORY_LATENCY, RL_CAUSE_MEMORY_QUEUE)},

    /* held out: not used while the rules were written */
    {"triad", true, BOUNDS(RL_KERNEL_BOUND_DRAM)},
    {"transpose_naive", true, BOUNDS(RL_KERNEL_BOUND_L2, RL_KERNEL_BOUND_L1, RL_KERNEL_BOUND_DRAM, RL_KERNEL_BOUND_LATENCY), NULL,
     RL_CAUSE_COALESCING, ALLOWED(LATENCY_CAUSES, RL_CAUSE_MEMORY_QUEUE, RL_CAUSE_STORES_AT_EXIT, RL_CAUSE_HOT_UNITS)},
    {"histogram_global", true, BOUNDS(RL_KERNEL_BOUND_ATOMICS), NULL, RL_CAUSE_GLOBAL_ATOMICS,
     ALLOWED(RL_CAUSE_HOT_UNITS, RL_CAUSE_MEMORY_QUEUE, RL_CAUSE_STORES_AT_EXIT, RL_CAUSE_MEMORY_LATENCY)},
    {"histogram_shared", true, BOUNDS(RL_KERNEL_BOUND_ATOMICS), NULL, RL_CAUSE_SHARED_ATOMICS,
     ALLOWED(RL_CAUSE_SHARED_LATENCY, RL_CAUSE_BANK_CONFLICTS)},
    {"linked_list", true, BOUNDS(RL_KERNEL_BOUND_LATENCY), NULL, RL_CAUSE_MEMORY_LATENCY,
     ALLOWED(RL_CAUSE_FEW_WARPS, RL_CAUSE_COALESCING)},
    {"matmul_naive", true, BOUNDS(RL_KERNEL_BOUND_L1, RL_KERNEL_BOUND_PIPELINE), "lsu mio", RL_CAUSE_NONE,
     ALLOWED(RL_CAUSE_MEMORY_QUEUE, RL_CAUSE_MEMORY_LATENCY)},
    {"nbody", true, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "fma issue xu", RL_CAUSE_NONE, ALLOWED(RL_CAUSE_UNFUSED)},
    {"escape_times", true, BOUNDS(RL_KERNEL_BOUND_PIPELINE), NULL, RL_CAUSE_DIVERGENCE,
     ALLOWED(RL_CAUSE_UNFUSED, RL_CAUSE_DEPENDENCIES, RL_CAUSE_TAIL)},
    {"exponentials", true, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "xu"},
    {"tree_reduction", true, BOUNDS(RL_KERNEL_BOUND_LATENCY), NULL, RL_CAUSE_BARRIERS,
     ALLOWED(RL_CAUSE_FEW_WARPS, RL_CAUSE_SHARED_LATENCY, RL_CAUSE_DIVERGENCE, RL_CAUSE_DEPENDENCIES)},
    {"one_block", true, BOUNDS(RL_KERNEL_BOUND_LAUNCH), NULL, RL_CAUSE_GRID},
    {"power_law", true, BOUNDS(RL_KERNEL_BOUND_TAIL), NULL, RL_CAUSE_TAIL, ALLOWED(RL_CAUSE_DEPENDENCIES, RL_CAUSE_FEW_WARPS)},
    {"tiny_add", true, BOUNDS(RL_KERNEL_BOUND_TOO_SMALL), NULL, RL_CAUSE_LAUNCH_OVERHEAD,
     ALLOWED(RL_CAUSE_GRID, LATENCY_CAUSES, RL_CAUSE_INSTRUCTION_CACHE, RL_CAUSE_CONSTANTS)},
    {"polynomial_double", true, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "fp64", RL_CAUSE_FP64},
    {"too_few_registers", true, BOUNDS(RL_KERNEL_BOUND_L1, RL_KERNEL_BOUND_L2, RL_KERNEL_BOUND_DRAM), NULL, RL_CAUSE_LOCAL_MEMORY,
     ALLOWED(RL_CAUSE_MEMORY_LATENCY, RL_CAUSE_MEMORY_QUEUE)},
    {"array_of_structs", true, BOUNDS(RL_KERNEL_BOUND_DRAM, RL_KERNEL_BOUND_L2), NULL, RL_CAUSE_COALESCING},
    {"products_from_shared", true, BOUNDS(RL_KERNEL_BOUND_L1, RL_KERNEL_BOUND_PIPELINE), "lsu mio", RL_CAUSE_TENSOR,
     ALLOWED(RL_CAUSE_SHARED_LATENCY)},
    {"tile_by_tile", true, BOUNDS(RL_KERNEL_BOUND_LATENCY), NULL, RL_CAUSE_MEMORY_LATENCY,
     ALLOWED(RL_CAUSE_FEW_WARPS, RL_CAUSE_BARRIERS)},
    {"l2_passes", true, BOUNDS(RL_KERNEL_BOUND_L2)},
    {"integer_hash", true, BOUNDS(RL_KERNEL_BOUND_PIPELINE), "alu issue"},
};
const size_t known_kernel_count = sizeof known_kernels / sizeof *known_kernels;

static bool has_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *found = words; (found = strstr(found, word)) != NULL; found += length)
    if ((found == words || found[-1] == ' ') && (found[length] == ' ' || found[length] == '\0')) return true;
  return false;
}

static bool verdict_is_right(const known_kernel *kernel, const rl_kernel_verdict *verdict) {
  for (int i = 0; i < KNOWN_MAX_BOUNDS && kernel->bounds[i] != RL_KERNEL_BOUND_UNKNOWN; i++)
    if (kernel->bounds[i] == verdict->bound)
      return verdict->bound != RL_KERNEL_BOUND_PIPELINE || !kernel->pipelines || has_word(kernel->pipelines, verdict->pipeline);
  return false;
}

static bool is_allowed(const known_kernel *kernel, rl_cause_id cause) {
  for (int i = 0; i < KNOWN_MAX_CAUSES; i++)
    if (kernel->allowed[i] == cause && cause != RL_CAUSE_NONE) return true;
  return cause == kernel->cause;
}

known_result known_kernel_judge(const known_kernel *kernel, const rl_metric_values *values) {
  rl_finding *findings = calloc(RL_MAX_FINDINGS, sizeof *findings);
  known_result result = {.verdict = rl_kernel_verdict_make(values)};
  if (!findings) abort();
  size_t count = rl_findings_combine(findings, rl_rules_apply(values, findings, RL_MAX_FINDINGS), values);
  result.verdict_is_right = verdict_is_right(kernel, &result.verdict);
  result.cause_is_found = kernel->cause == RL_CAUSE_NONE;
  for (size_t i = 0; i < count; i++) {
    rl_cause_id cause = findings[i].rule->cause;
    if (cause == kernel->cause) result.cause_is_found = true;
    if (findings[i].is_part || findings[i].kind != RL_FINDING_OPTIMIZATION) continue;
    if (!result.first.rule) result.first = findings[i];
    if (!result.false_rule && !is_allowed(kernel, cause)) result.false_rule = findings[i].rule;
  }
  free(findings);
  return result;
}
