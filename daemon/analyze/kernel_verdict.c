/* Tables of the units that can limit a kernel, and the order in which causes are tested. */
#include "analyze/kernel_verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/rules_tables.h"
#include "analyze/thresholds.h"
#include "base/quantity.h"

const char *const rl_kernel_bound_names[] = {"unknown", "dram",   "l2",   "l1",        "pipeline", "atomics",
                                             "latency", "launch", "tail", "too_small", NULL};

/* --- units ------------------------------------------------------------------------------------------------------------- */

typedef struct counted_unit {
  rl_kernel_bound bound;
  const char *pipeline; /* name of the pipeline; NULL: the unit is not a pipeline */
  const char *label;    /* name of the unit in messages */
  const char *metric;
  const char *advice;
} counted_unit;

#define PCT(counter) counter ".avg.pct_of_peak_sustained_elapsed"

#define MEMORY PCT("gpu__compute_memory_throughput")
#define COMPUTE PCT("sm__throughput")
#define ATOMIC_UNITS PCT("lts__d_atomic_input_cycles_active")
#define HOTTEST_ATOMIC_UNIT "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"

#define DRAM_ADVICE "Move fewer bytes: fuse kernels that read the same data, reuse data while it is in L2, use smaller types."
#define L2_ADVICE "Request fewer sectors from L2: coalesce accesses, and reuse data in registers, shared memory or L1."
#define L1_ADVICE "Access shared memory and L1 less: no bank conflicts, 16 bytes per thread and access, more reuse in registers."
#define ATOMICS_ADVICE "Combine values in registers or shared memory first, so that fewer atomic operations reach L2."

/* The memory throughput of section SpeedOfLight is the maximum of these counters. */
static const counted_unit memory_units[] = {
    {RL_KERNEL_BOUND_DRAM, NULL, "DRAM", PCT("gpu__dram_throughput"), DRAM_ADVICE},
    {RL_KERNEL_BOUND_DRAM, NULL, "DRAM", PCT("dram__cycles_active"), DRAM_ADVICE},
    {RL_KERNEL_BOUND_DRAM, NULL, "DRAM", PCT("fbpa__dram_sectors"), DRAM_ADVICE},
    {RL_KERNEL_BOUND_ATOMICS, NULL, "the atomic units of L2", ATOMIC_UNITS, ATOMICS_ADVICE},
    {RL_KERNEL_BOUND_ATOMICS, NULL, "the atomic unit of one L2 slice", HOTTEST_ATOMIC_UNIT, ATOMICS_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "L2 (data)", PCT("lts__d_sectors"), L2_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "L2 (fills from DRAM)", PCT("lts__d_sectors_fill_device"), L2_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "L2 (sectors)", PCT("lts__t_sectors"), L2_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "L2 (tag lookups)", PCT("lts__t_tag_requests"), L2_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "the link from L2 to the multiprocessors", PCT("lts__lts2xbar_cycles_active"), L2_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "the link from the multiprocessors to L2", PCT("lts__xbar2lts_cycles_active"), L2_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "the link from L1 to L2", PCT("l1tex__m_l1tex2xbar_req_cycles_active"), L2_ADVICE},
    {RL_KERNEL_BOUND_L2, NULL, "the link from L2 to L1", PCT("l1tex__m_xbar2l1tex_read_sectors"), L2_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 and shared memory (reads)", PCT("l1tex__data_bank_reads"), L1_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 and shared memory (writes)", PCT("l1tex__data_bank_writes"), L1_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 and shared memory (wavefronts)", PCT("l1tex__data_pipe_lsu_wavefronts"), L1_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 (texture wavefronts)", PCT("l1tex__data_pipe_tex_wavefronts"), L1_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 (filter wavefronts)", PCT("l1tex__f_wavefronts"), L1_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 and shared memory (returns to registers)", PCT("l1tex__lsu_writeback_active"), L1_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 and shared memory (requests)", PCT("l1tex__lsuin_requests"), L1_ADVICE},
    {RL_KERNEL_BOUND_L1, NULL, "L1 (texture returns)", PCT("l1tex__tex_writeback_active"), L1_ADVICE},
    {0}};

#define PIPELINE(name, metric, advice) \
  { RL_KERNEL_BOUND_PIPELINE, name, "the " name " pipeline", PCT(metric), advice }
#define MIO_ADVICE "Issue fewer and wider loads, stores and shuffles, and keep values in registers."
#define ISSUE_ADVICE \
  "Execute fewer instructions: unroll, use wider loads and packed types, move invariant expressions out of loops."
#define BRANCH_ADVICE "Execute fewer branches, barriers and address instructions: unroll loops, and use selects instead."

/* The compute throughput of section SpeedOfLight is the maximum of these counters. */
static const counted_unit compute_units[] = {
    PIPELINE("tensor", "sm__pipe_tensor_cycles_active",
             "Use a lower precision, or fewer operations: the matrix units are the limit."),
    PIPELINE("fma", "sm__pipe_fma_cycles_active",
             "Use tensor cores if this is a matrix product; otherwise fuse multiply-adds, or compute less."),
    PIPELINE("fma", "sm__pipe_fmaheavy_cycles_active", "Compute fewer integer products and FP32 operations."),
    PIPELINE("alu", "sm__pipe_alu_cycles_active",
             "Simplify index arithmetic, comparisons and logic, or hoist them out of loops."),
    PIPELINE("fp64", "sm__pipe_fp64_cycles_active", "Compute in FP32 where accuracy allows it, or use FP64 tensor cores."),
    PIPELINE(
        "xu", "sm__inst_executed_pipe_xu",
        "Compute fewer transcendental functions and conversions: approximations, tables, or polynomials on the FMA pipeline."),
    PIPELINE("tma", "sm__pipe_tma_cycles_active", "Copy larger boxes with fewer TMA instructions."),
    PIPELINE("tex", "sm__inst_executed_pipe_tex", "Fetch fewer texels, or use ordinary loads."),
    PIPELINE("lsu", "sm__inst_executed_pipe_lsu", MIO_ADVICE),
    PIPELINE("mio", "sm__mio_inst_issued", MIO_ADVICE),
    PIPELINE("mio", "sm__mio_pq_read_cycles_active", MIO_ADVICE),
    PIPELINE("mio", "sm__mio_pq_write_cycles_active", MIO_ADVICE),
    PIPELINE("mio", "sm__mio2rf_writeback_active", MIO_ADVICE),
    PIPELINE("adu", "sm__inst_executed_pipe_adu", BRANCH_ADVICE),
    PIPELINE("cbu", "sm__inst_executed_pipe_cbu_pred_on_any", BRANCH_ADVICE),
    PIPELINE("uniform", "sm__inst_executed_pipe_uniform", BRANCH_ADVICE),
    {RL_KERNEL_BOUND_PIPELINE, "issue", "the issue slots", PCT("sm__issue_active"), ISSUE_ADVICE},
    {RL_KERNEL_BOUND_PIPELINE, "issue", "the issue slots", PCT("sm__inst_executed"), ISSUE_ADVICE},
    {0}};

/* Returns the unit with the highest percentage, the first one if several are equal, among the units that do not have the metric
 * `excluded` (NULL: among all units); NULL if no percentage is known. */
static const counted_unit *busiest(const counted_unit *units, const char *excluded, const rl_metric_values *values) {
  const counted_unit *found = NULL;
  for (const counted_unit *each = units; each->metric; each++) {
    double pct = rl_metric_values_get(values, each->metric);
    if (excluded && strcmp(each->metric, excluded) == 0) continue;
    if (!isnan(pct) && (!found || pct > rl_metric_values_get(values, found->metric))) found = each;
  }
  return found;
}

/* Returns whether the atomic unit of one L2 slice is busier than any other unit. Averages over the slices hide one busy slice. If
 * all slices are busy, or nearly equally busy, their average counts, because the maximum over the slices is at least as high and
 * says nothing about the other units. */
static bool is_one_atomic_unit_busiest(const rl_metric_values *values) {
  const double hottest = rl_metric_values_get(values, HOTTEST_ATOMIC_UNIT), average = rl_metric_values_get(values, ATOMIC_UNITS);
  return hottest >= RL_BUSY_PCT && average < RL_BUSY_PCT && hottest - average >= RL_BALANCED_DIFFERENCE_PCT &&
         hottest > fmax(rl_metric_values_get(values, MEMORY), rl_metric_values_get(values, COMPUTE));
}

static const counted_unit *busiest_memory_unit(const rl_metric_values *values) {
  return busiest(memory_units, is_one_atomic_unit_busiest(values) ? NULL : HOTTEST_ATOMIC_UNIT, values);
}

static bool has_pipeline_of(const counted_unit *unit, const char *const names[]) {
  while (*names && strcmp(*names, unit->pipeline) != 0) names++;
  return *names != NULL;
}

/* --- verdicts ---------------------------------------------------------------------------------------------------------- */

#define DURATION "gpu__time_duration.sum"
#define BLOCKS "launch__grid_size"
#define SM_COUNT "launch__sm_count"
#define SM_ACTIVE_MAX "sm__cycles_active.max"
#define SM_ACTIVE_AVG "sm__cycles_active.avg"
#define ELAPSED "sm__cycles_elapsed.max"
#define ISSUE PCT("sm__issue_active")
#define WARP_LATENCY "smsp__average_warp_latency_per_inst_issued.ratio"
#define OCCUPIED_WARP_SLOTS "sm__warps_active.avg.pct_of_peak_sustained_active"
#define THEORETICAL_WARP_SLOTS "sm__maximum_warps_per_active_cycle_pct"
#define BLOCKS_BY_REGISTERS "launch__occupancy_limit_registers"
#define BLOCKS_BY_SHARED "launch__occupancy_limit_shared_mem"
#define BLOCKS_BY_WARPS "launch__occupancy_limit_warps"
#define BLOCKS_BY_MAXIMUM "launch__occupancy_limit_blocks"
#define BLOCKS_BY_BARRIERS "launch__occupancy_limit_barriers"
#define SHARED_ATOMICS "smsp__inst_executed_op_shared_atom.sum"
#define SHARED_CONFLICTS "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
#define SHARED_WAVEFRONTS "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
#define SHARED_LOADS "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
#define SHARED_STORES "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"

static rl_kernel_verdict verdict_of(rl_kernel_bound bound, const char *metric, double value, const char *unit_name,
                                    const char *advice) {
  return (rl_kernel_verdict){.bound = bound, .metric = metric, .value = value, .unit = unit_name, .advice = advice};
}

static rl_kernel_verdict verdict_of_unit(const counted_unit *unit, const rl_metric_values *values) {
  rl_kernel_verdict v = verdict_of(unit->bound, unit->metric, rl_metric_values_get(values, unit->metric), "%", unit->advice);
  v.pipeline = unit->pipeline;
  snprintf(v.message, sizeof v.message, "Bound by %s: %.1f %% of the peak, over the whole duration.", unit->label, v.value);
  return v;
}

/* Returns the unit that limits compute. If the LSU or MIO pipeline is the busiest, and the busiest memory unit belongs to L1 and
 * shared memory and is nearly as busy, returns the memory unit, because the pipeline's instructions access it. If the issue slots
 * are the busiest and a pipeline is nearly as busy, returns the pipeline. */
static const counted_unit *limiting_compute_unit(const rl_metric_values *values) {
  static const char *const pipelines_into_l1[] = {"lsu", "mio", NULL}, *const issue[] = {"issue", NULL};
  const counted_unit *top = busiest(compute_units, NULL, values), *memory = busiest_memory_unit(values);
  if (!top) return NULL;
  double min_pct = fmax(RL_BUSY_PCT, rl_metric_values_get(values, top->metric) - RL_BALANCED_DIFFERENCE_PCT);
  if (has_pipeline_of(top, pipelines_into_l1) && memory && memory->bound == RL_KERNEL_BOUND_L1 &&
      rl_metric_values_get(values, memory->metric) >= min_pct)
    return memory;
  for (const counted_unit *each = compute_units; has_pipeline_of(top, issue) && each->metric; each++)
    if (!has_pipeline_of(each, issue) && rl_metric_values_get(values, each->metric) >= min_pct) return each;
  return top;
}

/* Returns whether atomic operations in shared memory limit the kernel: most wavefronts are neither loads nor stores, and the
 * atomics have bank conflicts (as in the rule shared_atomics). */
static bool is_limited_by_shared_atomics(const rl_metric_values *values) {
  static const char *const plain_conflicts[] = {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                                                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
                                                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"};
  double atomics = rl_metric_values_get(values, SHARED_ATOMICS), shared = rl_metric_values_get(values, SHARED_WAVEFRONTS);
  double plain = rl_metric_values_get(values, SHARED_LOADS) + rl_metric_values_get(values, SHARED_STORES);
  double conflicts = rl_metric_values_get(values, SHARED_CONFLICTS);
  for (size_t i = 0; i < sizeof plain_conflicts / sizeof *plain_conflicts; i++)
    conflicts -= rl_metric_values_get(values, plain_conflicts[i]);
  return atomics > 0 && conflicts >= 0.25 * atomics && shared - plain >= 0.5 * shared;
}

static const counted_unit shared_atomics = {
    RL_KERNEL_BOUND_ATOMICS, NULL, "atomic operations in shared memory", PCT("l1tex__data_pipe_lsu_wavefronts"),
    "Combine values in registers or in the warp first, or give each warp its own copy of the words."};

static rl_kernel_verdict verdict_missing_metric(const char *metric, const rl_metric_values *values) {
  const rl_metric_value *found = rl_metric_find(values, metric);
  rl_kernel_verdict v = {.value = NAN};
  snprintf(v.message, sizeof v.message, "The verdict needs %s: %s.", metric,
           found && found->reason ? found->reason : "it was not collected");
  return v;
}

static rl_kernel_verdict verdict_of_busy(const rl_metric_values *values, rl_bound side) {
  const counted_unit *unit = side == RL_BOUND_MEMORY ? busiest_memory_unit(values) : limiting_compute_unit(values);
  if (unit && unit->bound == RL_KERNEL_BOUND_L1 && is_limited_by_shared_atomics(values)) unit = &shared_atomics;
  if (unit && rl_metric_values_get(values, unit->metric) >= RL_BUSY_PCT) return verdict_of_unit(unit, values);
  rl_kernel_verdict v = {.value = NAN};
  snprintf(v.message, sizeof v.message,
           "The roofline gives %s as the limit, but no counter of a unit reaches " RL_TEXT(RL_BUSY_PCT) " %% of its peak.",
           rl_bound_names[side]);
  return v;
}

/* Returns the percentage of multiprocessors that get no block; 0 if it is unknown. */
static double unused_sm_pct(const rl_metric_values *values) {
  return 100 * fmax(0, 1 - rl_metric_values_get(values, BLOCKS) / rl_metric_values_get(values, SM_COUNT));
}

/* Returns by how many percent the multiprocessors with blocks are active for a shorter time, on average, than the longest active
 * one. NAN: the longest active time is unknown, or the launch takes most of the kernel's time. */
static double tail_idle_pct(const rl_metric_values *values) {
  double with_blocks = fmin(1, rl_metric_values_get(values, BLOCKS) / rl_metric_values_get(values, SM_COUNT));
  double longest = rl_metric_values_get(values, SM_ACTIVE_MAX), average = rl_metric_values_get(values, SM_ACTIVE_AVG);
  bool is_long = longest >= 0.5 * rl_metric_values_get(values, ELAPSED); /* false: the launch takes most of the time */
  return is_long && with_blocks > 0 ? 100 * fmax(0, 1 - average / (longest * with_blocks)) : NAN;
}

static rl_kernel_verdict verdict_of_short(double duration_ns) {
  rl_kernel_verdict v = verdict_of(RL_KERNEL_BOUND_TOO_SMALL, DURATION, duration_ns, "ns",
                                   "Fuse it with its neighbours, or launch the sequence as a CUDA graph.");
  snprintf(v.message, sizeof v.message, "Too short to tell: it runs for %s, and keeps no unit busy.",
           rl_us_text(duration_ns / 1000).text);
  return v;
}

static rl_kernel_verdict verdict_of_few_blocks(const rl_metric_values *values) {
  double blocks = rl_metric_values_get(values, BLOCKS), sms = rl_metric_values_get(values, SM_COUNT);
  rl_kernel_verdict v = verdict_of(RL_KERNEL_BOUND_LAUNCH, BLOCKS, blocks, "block",
                                   "Divide the work into more blocks, or run other kernels at the same time.");
  snprintf(v.message, sizeof v.message, "Bound by its launch: %.0f of %.0f multiprocessors have no block.", sms - blocks, sms);
  return v;
}

static rl_kernel_verdict verdict_of_tail(const rl_metric_values *values, double idle_pct) {
  double longest = rl_metric_values_get(values, SM_ACTIVE_MAX);
  rl_kernel_verdict v = verdict_of(RL_KERNEL_BOUND_TAIL, SM_ACTIVE_MAX, longest, "cycle",
                                   "Give all blocks the same work: split long ones, or use dynamic scheduling.");
  snprintf(v.message, sizeof v.message,
           "Bound by its longest blocks: one multiprocessor works for %.0f cycles; on average, those that got blocks are idle "
           "for %.0f %% of that time.",
           longest, idle_pct);
  return v;
}

/* A reason why warps wait, with its share of the time between two instructions of a warp. */
typedef struct warp_stall {
  const rl_rule *rule; /* about this reason; NULL: no reason is known */
  double pct;
} warp_stall;

/* Returns the longest stall among those that the rules stall_* are about, except stall_not_selected: a warp that is not selected
 * is eligible. */
static warp_stall longest_stall(const rl_metric_values *values) {
  const double latency = rl_metric_values_get(values, WARP_LATENCY);
  warp_stall longest = {NULL, 0};
  for (const rl_rule *rule = rl_rules_scheduling; rule->id != NULL; rule++) {
    if (strncmp(rule->id, "stall_", 6) != 0 || strcmp(rule->id, "stall_not_selected") == 0) continue;
    const double pct = 100 * rl_metric_values_get(values, rule->inputs[0].metric) / latency;
    if (pct > longest.pct) longest = (warp_stall){rule, pct};
  }
  return longest;
}

/* Limits a percentage below the threshold to one that is not printed as the threshold: 59.97 to 59.9. */
static double below_busy(double pct) { return fmin(pct, RL_BUSY_PCT - 0.1); }

/* Returns whether further warps have work while a warp waits. They also wait if a queue is full, and at the barriers of their own
 * block. */
static bool is_hidden_by_warps(const rl_rule *stall) {
  static const char *const rules[] = {"stall_long_scoreboard", "stall_short_scoreboard", "stall_wait", "stall_branch_resolving",
                                      "stall_imc_miss"};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (strcmp(stall->id, rules[i]) == 0) return true;
  return false;
}

enum { NEARLY_FULL_PCT = 80 }; /* with fewer occupied warp slots, further warps can hide latencies */

/* What permits no more resident warps than the kernel has. */
typedef struct warp_limit {
  const char *permits; /* subject and verb: "registers permit"; NULL: more warps would fit, or the limit is unknown */
  const char *advice;
} warp_limit;

static const warp_limit no_limit = {NULL, NULL},
                        register_limit = {"registers permit",
                                          "Overlap this stall with more independent work per thread. More warps fit only if a "
                                          "thread needs fewer registers."},
                        shared_limit = {"shared memory permits",
                                        "Overlap this stall with more independent work per thread, or let more warps share the "
                                        "shared memory of a block."},
                        register_and_shared_limit = {"registers and shared memory permit",
                                                     "Overlap this stall with more independent work per thread. More blocks fit "
                                                     "only if each needs fewer registers and less shared memory."},
                        block_limit = {"the maximum of resident blocks permits",
                                       "Overlap this stall with more warps per block (128 to 256 threads), or more independent "
                                       "work per thread."},
                        barrier_limit = {"barriers permit",
                                         "Overlap this stall with more independent work per thread. More warps fit only with "
                                         "fewer named barriers, or larger blocks."};

static warp_limit warp_limit_of(const rl_metric_values *values) {
  const double occupied_pct = rl_metric_values_get(values, OCCUPIED_WARP_SLOTS),
               theoretical_pct = rl_metric_values_get(values, THEORETICAL_WARP_SLOTS),
               by_registers = rl_metric_values_get(values, BLOCKS_BY_REGISTERS),
               by_shared = rl_metric_values_get(values, BLOCKS_BY_SHARED),
               by_warps = rl_metric_values_get(values, BLOCKS_BY_WARPS),
               by_maximum = rl_metric_values_get(values, BLOCKS_BY_MAXIMUM),
               by_barriers = rl_metric_values_get(values, BLOCKS_BY_BARRIERS), by_memory = fmin(by_registers, by_shared),
               by_others = fmin(by_maximum, by_barriers);
  const bool is_at_limit = theoretical_pct < NEARLY_FULL_PCT && occupied_pct >= 0.9 * theoretical_pct;
  const bool is_known = isfinite(by_registers + by_shared + by_warps + by_maximum + by_barriers);
  /* A limit of 0 blocks must be wrong, because the kernel ran. If warps are the limit, it is the block size. */
  if (!is_at_limit || !is_known || fmin(by_memory, by_others) < 1 || by_warps <= fmin(by_memory, by_others)) return no_limit;
  if (by_memory < by_others)
    return by_registers < by_shared ? register_limit : by_shared < by_registers ? shared_limit : register_and_shared_limit;
  /* The size that the driver chooses for shared memory often permits exactly the maximum of blocks. */
  if (by_maximum <= by_barriers) return by_maximum < by_registers ? block_limit : no_limit;
  return by_barriers < by_memory ? barrier_limit : no_limit;
}

static const char *advice_on_latency(const rl_metric_values *values, const warp_stall *stall) {
  if (!stall->rule) return "Collect section WarpStateStats: it shows the longest warp stall.";
  const double used_sm_ratio = 1 - unused_sm_pct(values) / 100; /* the metric counts only the slots of active multiprocessors */
  if (is_hidden_by_warps(stall->rule) &&
      !(rl_metric_values_get(values, OCCUPIED_WARP_SLOTS) * used_sm_ratio >= NEARLY_FULL_PCT)) {
    const warp_limit limit = warp_limit_of(values);
    return limit.permits ? limit.advice : "Overlap this stall with more warps, or more independent work per thread.";
  }
  return strchr(stall->rule->message, '|') + 1; /* the advice of the rule */
}

/* Appends a sentence to the message of a verdict. */
static void append(rl_kernel_verdict *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(rl_kernel_verdict *v, const char *format, ...) {
  const size_t length = strlen(v->message);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(v->message + length, sizeof v->message - length, format, arguments);
  va_end(arguments);
}

static rl_kernel_verdict verdict_of_latency(const rl_metric_values *values) {
  const double issue_pct = rl_metric_values_get(values, ISSUE);
  const warp_stall stall = longest_stall(values);
  if (isnan(issue_pct)) return verdict_missing_metric(ISSUE, values);
  rl_kernel_verdict v = verdict_of(RL_KERNEL_BOUND_LATENCY, ISSUE, issue_pct, "%", advice_on_latency(values, &stall));
  append(&v,
         "Bound by latency: memory (%.1f %%) and compute (%.1f %%) stay below " RL_TEXT(
             RL_BUSY_PCT) " %%, and %.1f %% of the issue slots are used.",
         below_busy(rl_metric_values_get(values, MEMORY)), below_busy(rl_metric_values_get(values, COMPUTE)), issue_pct);
  if (stall.rule) {
    const char *title = stall.rule->title;
    append(&v, " Longest stall: %s, %.0f %% of a warp's time.", strncmp(title, "Stall ", 6) == 0 ? title + 6 : title, stall.pct);
  }
  const warp_limit limit = warp_limit_of(values);
  if (limit.permits)
    append(&v, " Warps occupy %.0f %% of their slots; %s %.0f %%.", rl_metric_values_get(values, OCCUPIED_WARP_SLOTS),
           limit.permits, rl_metric_values_get(values, THEORETICAL_WARP_SLOTS));
  return v;
}

/* If multiprocessors are used for less than RL_BUSY_PCT of their time, no unit can be busy on average, so idleness is the
 * cause. */
static rl_kernel_verdict verdict_of_idle(const rl_metric_values *values) {
  double unused_pct = unused_sm_pct(values), tail_pct = tail_idle_pct(values),
         duration_ns = rl_metric_values_get(values, DURATION);
  if (duration_ns < RL_SHORT_KERNEL_NS) return verdict_of_short(duration_ns);
  if (fmax(unused_pct, tail_pct) <= 100 - RL_BUSY_PCT || (isnan(unused_pct) && isnan(tail_pct)))
    return verdict_of_latency(values);
  return tail_pct > unused_pct ? verdict_of_tail(values, tail_pct) : verdict_of_few_blocks(values);
}

rl_kernel_verdict rl_kernel_verdict_make(const rl_metric_values *values) {
  static const char *const needed[] = {DURATION, MEMORY, COMPUTE};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (isnan(rl_metric_values_get(values, needed[i]))) return verdict_missing_metric(needed[i], values);
  rl_bound side = rl_roofline_compute(values).classification.bound;
  if (is_one_atomic_unit_busiest(values)) side = RL_BOUND_MEMORY;
  return side == RL_BOUND_LATENCY ? verdict_of_idle(values) : verdict_of_busy(values, side);
}

const char *rl_kernel_verdict_metric(size_t index) {
  static const char *const others[] = {DURATION,
                                       BLOCKS,
                                       SM_COUNT,
                                       SM_ACTIVE_MAX,
                                       SM_ACTIVE_AVG,
                                       ELAPSED,
                                       ISSUE,
                                       MEMORY,
                                       COMPUTE,
                                       SHARED_ATOMICS,
                                       SHARED_CONFLICTS,
                                       SHARED_WAVEFRONTS,
                                       SHARED_LOADS,
                                       SHARED_STORES,
                                       WARP_LATENCY,
                                       OCCUPIED_WARP_SLOTS,
                                       THEORETICAL_WARP_SLOTS,
                                       BLOCKS_BY_REGISTERS,
                                       BLOCKS_BY_SHARED,
                                       BLOCKS_BY_WARPS,
                                       BLOCKS_BY_MAXIMUM,
                                       BLOCKS_BY_BARRIERS};
  enum {
    MEMORY_UNITS = sizeof memory_units / sizeof *memory_units - 1,
    COMPUTE_UNITS = sizeof compute_units / sizeof *compute_units - 1,
    OTHERS = sizeof others / sizeof *others
  };
  if (index < MEMORY_UNITS) return memory_units[index].metric;
  if ((index -= MEMORY_UNITS) < COMPUTE_UNITS) return compute_units[index].metric;
  return (index -= COMPUTE_UNITS) < OTHERS ? others[index] : NULL;
}
