/* The table of causes, the limits of their estimates, and the grouping of findings by cause. */
#include "analyze/findings.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "analyze/expression.h"
#include "analyze/thresholds.h"

/* Atomic operations on global memory also make warps wait. */
#define JOINS_ATOMICS \
  { RL_CAUSE_GLOBAL_ATOMICS, RL_CAUSE_ATOMIC_THROUGHPUT }

const rl_cause rl_causes[RL_CAUSE_COUNT] = {
    [RL_CAUSE_NONE] = {"none", RL_TIME_PART_IDLE},
    [RL_CAUSE_SATURATION] = {"saturation", RL_TIME_PART_BUSY,
                             .caller_advice = "A lower precision, or less work in a call, makes it faster."},
    [RL_CAUSE_GRID] = {"grid", RL_TIME_PART_IDLE,
                       .caller_advice =
                           "Give one call more work (a larger batch, larger extents), or run other kernels beside it."},
    [RL_CAUSE_LAUNCH_OVERHEAD] = {"launch_overhead", RL_TIME_PART_LAUNCH,
                                  .caller_advice =
                                      "Give one call more work, use a fused epilogue, or capture the calls in a CUDA graph."},
    [RL_CAUSE_TAIL] = {"tail", RL_TIME_PART_IDLE,
                       .caller_advice =
                           "Choose extents for which the tiles of the library fill whole waves, or another algorithm."},
    [RL_CAUSE_FEW_WARPS] = {"few_warps", RL_TIME_PART_LATENCY, .summarizes = true,
                            .caller_advice = "The library chose its tiles: another algorithm, precision or shape has others."},
    [RL_CAUSE_MEMORY_LATENCY] = {"memory_latency", RL_TIME_PART_LATENCY, .joins = JOINS_ATOMICS,
                                 .caller_advice = "Give one call more work, or try the library's other algorithms."},
    [RL_CAUSE_SHARED_LATENCY] = {"shared_latency", RL_TIME_PART_LATENCY},
    [RL_CAUSE_MEMORY_QUEUE] = {"memory_queue", RL_TIME_PART_LATENCY, .joins = JOINS_ATOMICS},
    [RL_CAUSE_TEXTURE_QUEUE] = {"texture_queue", RL_TIME_PART_LATENCY},
    [RL_CAUSE_BARRIERS] = {"barriers", RL_TIME_PART_LATENCY},
    [RL_CAUSE_FENCES] = {"fences", RL_TIME_PART_LATENCY},
    [RL_CAUSE_DEPENDENCIES] = {"dependencies", RL_TIME_PART_LATENCY},
    [RL_CAUSE_BRANCHES] = {"branches", RL_TIME_PART_LATENCY},
    [RL_CAUSE_INSTRUCTION_CACHE] = {"instruction_cache", RL_TIME_PART_LATENCY},
    [RL_CAUSE_CONSTANTS] = {"constants", RL_TIME_PART_LATENCY},
    [RL_CAUSE_STORES_AT_EXIT] = {"stores_at_exit", RL_TIME_PART_LATENCY, .joins = JOINS_ATOMICS},
    [RL_CAUSE_SLEEP] = {"sleep", RL_TIME_PART_LATENCY},
    [RL_CAUSE_DISPATCH] = {"dispatch", RL_TIME_PART_LATENCY},
    [RL_CAUSE_WARPGROUPS] = {"warpgroups", RL_TIME_PART_LATENCY},
    [RL_CAUSE_OTHER_STALLS] = {"other_stalls", RL_TIME_PART_LATENCY},
    [RL_CAUSE_DIVERGENCE] = {"divergence", RL_TIME_PART_BUSY, .adds = true},
    [RL_CAUSE_FP64] = {"fp64", RL_TIME_PART_BUSY, .caller_advice = "Call the library in FP32 where accuracy allows it."},
    [RL_CAUSE_UNFUSED] = {"unfused", RL_TIME_PART_BUSY, .adds = true},
    [RL_CAUSE_TENSOR] = {"tensor", RL_TIME_PART_LATENCY,
                         .caller_advice = "Use extents that are multiples of the tile, a larger batch, or another algorithm."},
    [RL_CAUSE_COALESCING] =
        {"coalescing", RL_TIME_PART_BUSY, .saves_dram = true,
         .caller_advice = "Use a layout whose innermost extent is contiguous and aligned to 16 bytes, or another algorithm."},
    [RL_CAUSE_TRAFFIC] = {"traffic", RL_TIME_PART_BUSY, .saves_dram = true,
                          .caller_advice =
                              "Use a fused epilogue, a lower precision, or a layout that the library does not have to convert."},
    [RL_CAUSE_BANK_CONFLICTS] =
        {"bank_conflicts", RL_TIME_PART_BUSY, .adds = true,
         .caller_advice = "Use extents and leading dimensions that are multiples of 8 elements, or another algorithm."},
    [RL_CAUSE_CACHE_REUSE] = {"cache_reuse", RL_TIME_PART_BUSY, .saves_dram = true,
                              .caller_advice = "Use larger extents in a call, or an algorithm with larger tiles."},
    [RL_CAUSE_LOCAL_MEMORY] = {"local_memory", RL_TIME_PART_BUSY, .saves_dram = true},
    [RL_CAUSE_COMPRESSION] = {"compression", RL_TIME_PART_BUSY, .saves_dram = true,
                              .caller_advice = "Allocate data that does not compress as ordinary memory."},
    [RL_CAUSE_HOT_UNITS] = {"hot_units", RL_TIME_PART_LATENCY, .joins = JOINS_ATOMICS,
                            .caller_advice = "Pad leading dimensions that are large powers of two."},
    [RL_CAUSE_GLOBAL_ATOMICS] = {"global_atomics", RL_TIME_PART_LATENCY,
                                 .caller_advice = "Choose an algorithm without split-K and without atomic accumulation."},
    [RL_CAUSE_ATOMIC_THROUGHPUT] = {"atomic_throughput", RL_TIME_PART_BUSY,
                                    .caller_advice = "Choose an algorithm without split-K and without atomic accumulation."},
    [RL_CAUSE_SHARED_ATOMICS] = {"shared_atomics", RL_TIME_PART_BUSY},
};

const char *const rl_time_part_names[RL_TIME_PART_COUNT] = {"launch", "idle", "latency", "busy"};

#define WITHOUT_BLOCKS_PCT "100 * max(0, 1 - sm__cycles_active.avg / sm__cycles_elapsed.max)"
#define BUSY_PCT                                           \
  "max(sm__throughput.avg.pct_of_peak_sustained_elapsed, " \
  "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed)"

enum {
  LAUNCH = 1 << RL_TIME_PART_LAUNCH,
  IDLE = 1 << RL_TIME_PART_IDLE,
  LATENCY = 1 << RL_TIME_PART_LATENCY,
  BUSY = 1 << RL_TIME_PART_BUSY
};

/* A unit that is busy for 70 % of the duration needs this time also in a kernel without idle multiprocessors, and so does DRAM
 * as long as the kernel moves as many bytes. */
const rl_time_limit rl_time_limits[RL_TIME_LIMIT_COUNT] = {
    {LAUNCH, false, "100 * max(0, 1 - sm__cycles_active.max / sm__cycles_elapsed.max)"},
    {IDLE, false, "100 * max(0, sm__cycles_active.max - sm__cycles_active.avg) / sm__cycles_elapsed.max"},
    {LATENCY, false, "max(0, 100 - " WITHOUT_BLOCKS_PCT " - " BUSY_PCT ")"},
    {BUSY, false, BUSY_PCT},
    {LAUNCH | IDLE, false, "100 - " BUSY_PCT},
    {LAUNCH | IDLE | LATENCY | BUSY, true, "100 - gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {LAUNCH | IDLE | LATENCY | BUSY, false, "100"},
};

bool rl_time_limit_applies(const rl_time_limit *limit, const rl_cause *cause) {
  return (limit->parts & 1u << cause->part) != 0 && !(limit->exempts_saves_dram && cause->saves_dram);
}

/* --- groups ------------------------------------------------------------------------------------------------------------ */

typedef struct groups {
  const rl_finding *findings;
  size_t count;
  size_t leader[RL_MAX_FINDINGS];   /* leader[i]: index of the finding that leads the group of finding i */
  double estimate[RL_MAX_FINDINGS]; /* estimate[i]: combined estimate of the group that finding i leads; NAN: none */
} groups;

static const rl_cause *cause_of(const groups *g, size_t i) { return &rl_causes[g->findings[i].rule->cause]; }

static bool is_global(const rl_finding *finding) { return finding->global && !isnan(finding->speedup_pct); }

/* Returns a number by which findings are sorted: above 200 with a global estimate, above 100 with a local one, else the kind. */
static double rank_of(const rl_finding *finding, double estimate) {
  return isnan(estimate) ? (double)finding->kind : estimate + (finding->global ? 205 : 102);
}

static double own_rank(const rl_finding *finding) { return rank_of(finding, finding->speedup_pct); }

/* Returns the index of the cause's finding with the highest rank; of equal ranks, the first. */
static size_t leader_of(const groups *g, rl_cause_id cause) {
  size_t leader = g->count;
  for (size_t i = 0; i < g->count; i++)
    if (g->findings[i].rule->cause == cause && (leader == g->count || own_rank(&g->findings[i]) > own_rank(&g->findings[leader])))
      leader = i;
  return leader;
}

static void lead_causes(groups *g) {
  for (size_t i = 0; i < g->count; i++) {
    rl_cause_id cause = g->findings[i].rule->cause;
    g->leader[i] = cause == RL_CAUSE_NONE ? i : leader_of(g, cause);
  }
}

static double combined_estimate(const groups *g, size_t leader) {
  const rl_finding *first = &g->findings[leader];
  double sum = 0;
  if (!is_global(first) || !cause_of(g, leader)->adds) return first->speedup_pct;
  for (size_t i = 0; i < g->count; i++)
    if (g->leader[i] == leader && is_global(&g->findings[i])) sum += g->findings[i].speedup_pct;
  return fmin(sum, 100);
}

/* Returns the leader of the first cause that the cause joins and that has a finding; g->count if there is none. */
static size_t joined_leader(const groups *g, const rl_cause *cause) {
  size_t leader = g->count;
  for (size_t i = 0; i < sizeof cause->joins / sizeof *cause->joins && leader == g->count; i++)
    if (cause->joins[i] != RL_CAUSE_NONE) leader = leader_of(g, cause->joins[i]);
  return leader;
}

/* Adds findings whose cause joins another cause to the group of that cause. */
static void attach_joining(groups *g) {
  for (size_t i = 0; i < g->count; i++) {
    size_t leader = joined_leader(g, cause_of(g, i));
    if (leader < g->count) g->leader[i] = leader;
  }
}

/* Adds the findings of summarizing causes to the largest finding about the same part of the duration. */
static void attach_summaries(groups *g) {
  for (size_t i = 0; i < g->count; i++) {
    size_t largest = i;
    for (size_t k = 0; k < g->count && cause_of(g, i)->summarizes; k++)
      if (g->leader[k] == k && !cause_of(g, k)->summarizes && cause_of(g, k)->part == cause_of(g, i)->part &&
          is_global(&g->findings[k]) && (largest == i || g->estimate[k] > g->estimate[largest]))
        largest = k;
    if (largest != i) g->leader[i] = largest;
  }
}

static void make_groups(groups *g) {
  lead_causes(g);
  for (size_t i = 0; i < g->count; i++) g->estimate[i] = g->leader[i] == i ? combined_estimate(g, i) : NAN;
  attach_joining(g);
  attach_summaries(g);
}

/* --- limits ------------------------------------------------------------------------------------------------------------ */

static double look_up(void *context, const char *name) { return rl_metric_values_get(context, name); }

/* Returns the limit's percentage of the duration; 100 if it is unknown. */
static double limit_of(const rl_time_limit *limit, const rl_metric_values *values) {
  rl_scope scope = {look_up, (void *)(uintptr_t)values};
  double value = NAN;
  bool known = rl_expression_evaluate(limit->expression, strlen(limit->expression), &scope, &value, NULL) == 0 && !isnan(value);
  return known ? fmin(fmax(value, 0), 100) : 100;
}

typedef struct time_left {
  double pct[RL_TIME_LIMIT_COUNT];
} time_left;

static time_left all_time(const rl_metric_values *values) {
  time_left left;
  for (int i = 0; i < RL_TIME_LIMIT_COUNT; i++) left.pct[i] = limit_of(&rl_time_limits[i], values);
  return left;
}

/* Lowers the estimate to the smallest remainder of the limits that apply to the cause, subtracts it from these remainders and
 * returns it. Returns NAN and subtracts nothing if it is less than RL_MIN_SAVING_PCT. */
static double take_time(time_left *left, const rl_cause *cause, double estimate) {
  double taken = estimate;
  for (int i = 0; i < RL_TIME_LIMIT_COUNT; i++)
    if (rl_time_limit_applies(&rl_time_limits[i], cause)) taken = fmin(taken, left->pct[i]);
  if (taken < RL_MIN_SAVING_PCT) return NAN;
  for (int i = 0; i < RL_TIME_LIMIT_COUNT; i++)
    if (rl_time_limit_applies(&rl_time_limits[i], cause)) left->pct[i] -= taken;
  return taken;
}

/* --- all findings ------------------------------------------------------------------------------------------------------ */

static double group_rank(const groups *g, size_t leader) { return rank_of(&g->findings[leader], g->estimate[leader]); }

/* Sorts by descending rank. The sort is stable. */
static void sort_leaders(const groups *g, size_t *leaders, size_t count) {
  for (size_t i = 1; i < count; i++)
    for (size_t k = i; k > 0 && group_rank(g, leaders[k]) > group_rank(g, leaders[k - 1]); k--) {
      size_t swapped = leaders[k];
      leaders[k] = leaders[k - 1];
      leaders[k - 1] = swapped;
    }
}

static size_t list_leaders(const groups *g, size_t leaders[RL_MAX_FINDINGS]) {
  size_t count = 0;
  for (size_t i = 0; i < g->count; i++)
    if (g->leader[i] == i) leaders[count++] = i;
  return count;
}

/* Limits the global estimates of leaders with a cause, in the order of their rank, and removes leaders whose limited estimate is
 * too small. Returns the number that remains. */
static size_t limit_estimates(groups *g, size_t *leaders, size_t count, const rl_metric_values *values) {
  time_left left = all_time(values);
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    size_t leader = leaders[i];
    bool is_limited = is_global(&g->findings[leader]) && g->findings[leader].rule->cause != RL_CAUSE_NONE;
    if (is_limited) g->estimate[leader] = take_time(&left, cause_of(g, leader), g->estimate[leader]);
    if (!is_limited || !isnan(g->estimate[leader])) leaders[kept++] = leader;
  }
  return kept;
}

/* Writes the index of the leader, then the indices of its parts by descending rank. Returns their number. */
static size_t list_group(const groups *g, size_t leader, size_t list[RL_MAX_FINDINGS]) {
  size_t count = 1;
  list[0] = leader;
  for (size_t i = 0; i < g->count; i++) {
    if (g->leader[i] != leader || i == leader) continue;
    size_t k = count++;
    for (; k > 1 && own_rank(&g->findings[i]) > own_rank(&g->findings[list[k - 1]]); k--) list[k] = list[k - 1];
    list[k] = i;
  }
  return count;
}

/* Moves findings[order[i]] to findings[i] for i < count. The elements of `order` are distinct. */
static void permute(rl_finding *findings, size_t *order, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t from = order[i];
    rl_finding swapped = findings[i];
    findings[i] = findings[from];
    findings[from] = swapped;
    for (size_t k = i + 1; k < count; k++)
      if (order[k] == i) order[k] = from;
  }
}

size_t rl_findings_combine(rl_finding *findings, size_t count, const rl_metric_values *values) {
  groups g = {.findings = findings, .count = count < RL_MAX_FINDINGS ? count : RL_MAX_FINDINGS};
  size_t leaders[RL_MAX_FINDINGS], order[RL_MAX_FINDINGS], kept = 0;
  make_groups(&g);
  size_t leader_count = list_leaders(&g, leaders);
  sort_leaders(&g, leaders, leader_count);
  leader_count = limit_estimates(&g, leaders, leader_count, values);
  sort_leaders(&g, leaders, leader_count); /* limits may have changed the order */
  for (size_t i = 0; i < leader_count; i++) {
    size_t size = list_group(&g, leaders[i], order + kept);
    findings[leaders[i]].speedup_pct = g.estimate[leaders[i]];
    for (size_t k = 1; k < size; k++) findings[order[kept + k]].is_part = true, findings[order[kept + k]].speedup_pct = NAN;
    kept += size;
  }
  permute(findings, order, kept);
  return kept;
}

void rl_findings_advise_caller(rl_finding *findings, size_t count) {
  for (rl_finding *finding = findings; finding < findings + count; finding++) {
    const char *advice = rl_causes[finding->rule->cause].caller_advice;
    if (finding->message[finding->advice_offset] == '\0') continue;
    snprintf(finding->message + finding->advice_offset, sizeof finding->message - finding->advice_offset, "%s",
             advice ? advice : "Try the library's other algorithms.");
  }
}
