/* Tests rl_kernel_verdict_make on metrics that yield each bound, with values on both sides of each threshold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/kernel_verdict.h"
#include "analyze/rules_tables.h"
#include "model/catalogue.h"

typedef struct alias {
  const char *name, *metric;
} alias;

#define PCT(counter) counter ".avg.pct_of_peak_sustained_elapsed"

static const alias aliases[] = {
    {"compute", PCT("sm__throughput")},
    {"memory", PCT("gpu__compute_memory_throughput")},
    {"ns", "gpu__time_duration.sum"},
    {"dram", PCT("gpu__dram_throughput")},
    {"l2", PCT("lts__t_sectors")},
    {"atomics", PCT("lts__d_atomic_input_cycles_active")},
    {"slice", "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"},
    {"shared_atomics", "smsp__inst_executed_op_shared_atom.sum"},
    {"conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"},
    {"ld_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
    {"st_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"},
    {"copy_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"},
    {"wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
    {"ld_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
    {"st_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"},
    {"l1", PCT("l1tex__data_pipe_lsu_wavefronts")},
    {"fma", PCT("sm__pipe_fma_cycles_active")},
    {"fp64", PCT("sm__pipe_fp64_cycles_active")},
    {"tensor", PCT("sm__pipe_tensor_cycles_active")},
    {"lsu", PCT("sm__inst_executed_pipe_lsu")},
    {"issue", PCT("sm__issue_active")},
    {"blocks", "launch__grid_size"},
    {"sms", "launch__sm_count"},
    {"longest", "sm__cycles_active.max"},
    {"average", "sm__cycles_active.avg"},
    {"elapsed", "sm__cycles_elapsed.max"},
    {"between", "smsp__average_warp_latency_per_inst_issued.ratio"},
    {"scoreboard", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"},
    {"barrier", "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"},
    {"warps", "sm__warps_active.avg.pct_of_peak_sustained_active"},
    {"possible", "sm__maximum_warps_per_active_cycle_pct"},
    {"by_registers", "launch__occupancy_limit_registers"},
    {"by_shared", "launch__occupancy_limit_shared_mem"},
    {"by_warps", "launch__occupancy_limit_warps"},
    {"by_maximum", "launch__occupancy_limit_blocks"},
    {"by_barriers", "launch__occupancy_limit_barriers"},
    {"unselected", "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio"},
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

static const alias *alias_of(const char *name) {
  for (size_t i = 0; i < ALIASES; i++)
    if (strcmp(aliases[i].name, name) == 0) return &aliases[i];
  fail_msg("there is no alias %s", name);
  return NULL;
}

/* Returns the verdict on metrics that a text lists as "alias=value ...". A metric whose value is nan is unavailable for the
 * reason "blocked". */
static rl_kernel_verdict make_verdict(const char *text) {
  rl_metric_value items[ALIASES];
  size_t count = 0;
  char name[32];
  double value;
  for (int read; sscanf(text, " %31[^=]=%lf%n", name, &value, &read) == 2; text += read) {
    size_t i = 0;
    while (i < count && strcmp(items[i].name, alias_of(name)->metric) != 0) i++; /* a second value replaces the first */
    items[i] = (rl_metric_value){alias_of(name)->metric, value, isnan(value) ? "blocked" : NULL};
    count += i == count;
  }
  rl_metric_values_sort(items, count);
  return rl_kernel_verdict_make(&(rl_metric_values){items, count});
}

typedef struct verdict_case {
  const char *metrics; /* "alias=value ..." */
  rl_kernel_bound bound;
  const char *evidence; /* an alias; NULL: none */
  const char *pipeline;
} verdict_case;

#define SHARED                                                                                            \
  "ns=50000 compute=80 memory=92 l1=92 ld_conflicts=0 st_conflicts=0 copy_conflicts=0 ld_wavefronts=300 " \
  "st_wavefronts=200 wavefronts=1000 shared_atomics=100 "
#define IDLE "ns=50000 compute=20 memory=20 issue=15 "
#define WHOLE_GRID "blocks=1056 sms=132 "

static const verdict_case cases[] = {
    {"ns=50000 compute=30 memory=85 dram=85 l2=50 l1=20", RL_KERNEL_BOUND_DRAM, "dram", NULL},
    {"ns=50000 compute=30 memory=97 dram=0.01 l2=10 l1=97", RL_KERNEL_BOUND_L1, "l1", NULL},
    {"ns=50000 compute=30 memory=90 dram=20 l2=90 l1=50", RL_KERNEL_BOUND_L2, "l2", NULL},
    {"ns=50000 compute=10 memory=80 dram=1 l2=30 atomics=80", RL_KERNEL_BOUND_ATOMICS, "atomics", NULL},
    {"ns=50000 compute=1 memory=2 atomics=1 slice=60 issue=1", RL_KERNEL_BOUND_ATOMICS, "slice",
     NULL}, /* atomics on one address use one L2 slice */
    {"ns=50000 compute=1 memory=2 atomics=1 slice=59.9 issue=1", RL_KERNEL_BOUND_LATENCY, "issue", NULL},
    {"ns=50000 compute=10 memory=90 dram=20 atomics=90 slice=95", RL_KERNEL_BOUND_ATOMICS, "atomics", NULL},
    {"ns=50000 compute=10 memory=60 dram=20 atomics=60 slice=95", RL_KERNEL_BOUND_ATOMICS, "atomics", NULL},
    {"ns=50000 compute=10 memory=59.9 dram=20 atomics=59.9 slice=95", RL_KERNEL_BOUND_ATOMICS, "slice", NULL},
    {"ns=50000 compute=10 memory=75 dram=75 atomics=62 slice=78", RL_KERNEL_BOUND_DRAM, "dram", NULL},
    {"ns=50000 compute=10 memory=75 dram=61 atomics=62 slice=78", RL_KERNEL_BOUND_ATOMICS, "atomics", NULL},
    {"ns=50000 compute=10 memory=75 dram=75 atomics=59.9 slice=78", RL_KERNEL_BOUND_ATOMICS, "slice", NULL},
    {"ns=50000 compute=10 memory=61 dram=61 atomics=59.9 slice=62", RL_KERNEL_BOUND_DRAM, "dram",
     NULL}, /* all slices are nearly equally busy */
    {"ns=50000 compute=10 memory=61 dram=61 atomics=54 slice=63.9", RL_KERNEL_BOUND_DRAM, "dram", NULL},
    {"ns=50000 compute=10 memory=61 dram=61 atomics=54 slice=64", RL_KERNEL_BOUND_ATOMICS, "slice", NULL},
    {"ns=50000 compute=10 memory=61 dram=61 slice=90", RL_KERNEL_BOUND_DRAM, "dram", NULL}, /* the average is unknown */
    {"ns=50000 compute=10 memory=12 dram=12 atomics=1.1 slice=99.1", RL_KERNEL_BOUND_ATOMICS, "slice", NULL},
    {"ns=50000 compute=1 memory=70 dram=70 atomics=1 slice=65 issue=1", RL_KERNEL_BOUND_DRAM, "dram", NULL},
    {"ns=50000 compute=85 memory=20 tensor=85 atomics=1 slice=61", RL_KERNEL_BOUND_PIPELINE, "tensor", "tensor"},
    {"ns=50000 compute=85 memory=20 tensor=85 atomics=1 slice=85", RL_KERNEL_BOUND_PIPELINE, "tensor", "tensor"},
    {"ns=50000 compute=85 memory=20 tensor=85 atomics=1 slice=85.1", RL_KERNEL_BOUND_ATOMICS, "slice", NULL},
    {"ns=50000 compute=85 memory=62 tensor=85 atomics=62 slice=90", RL_KERNEL_BOUND_PIPELINE, "tensor",
     "tensor"}, /* the average of busy slices is compared with compute */
    {"ns=50000 compute=66 memory=62 lsu=66 l1=62 atomics=1 slice=65", RL_KERNEL_BOUND_L1, "l1", NULL},
    {SHARED "conflicts=25", RL_KERNEL_BOUND_ATOMICS, "l1", NULL},
    {SHARED "conflicts=24.9", RL_KERNEL_BOUND_L1, "l1", NULL},
    {SHARED "conflicts=25 ld_wavefronts=301", RL_KERNEL_BOUND_L1, "l1", NULL}, /* loads and stores are most of the wavefronts */
    {SHARED "conflicts=25 shared_atomics=0", RL_KERNEL_BOUND_L1, "l1", NULL},
    {"ns=50000 compute=30 memory=60 dram=60", RL_KERNEL_BOUND_DRAM, "dram", NULL},
    {"ns=50000 compute=30 memory=59.9 dram=59.9 issue=30", RL_KERNEL_BOUND_LATENCY, "issue", NULL},
    {"ns=50000 compute=90 memory=20 fma=90 issue=70", RL_KERNEL_BOUND_PIPELINE, "fma", "fma"},
    {"ns=50000 compute=96 memory=20 fma=90 issue=96", RL_KERNEL_BOUND_PIPELINE, "fma", "fma"},
    {"ns=50000 compute=96 memory=20 fma=85.9 issue=96", RL_KERNEL_BOUND_PIPELINE, "issue", "issue"},
    {"ns=50000 compute=98 memory=20 fp64=98 issue=50", RL_KERNEL_BOUND_PIPELINE, "fp64", "fp64"},
    {"ns=50000 compute=98 memory=70 tensor=98 l1=70", RL_KERNEL_BOUND_PIPELINE, "tensor", "tensor"},
    {"ns=50000 compute=97 memory=90 lsu=97 l1=90", RL_KERNEL_BOUND_L1, "l1", NULL},
    {"ns=50000 compute=97 memory=86.9 lsu=97 l1=86.9", RL_KERNEL_BOUND_PIPELINE, "lsu", "lsu"},
    {"ns=50000 compute=20 memory=80 dram=59", RL_KERNEL_BOUND_UNKNOWN, NULL, NULL}, /* no known counter is busy */
    {IDLE WHOLE_GRID "longest=1000 average=950 elapsed=1000", RL_KERNEL_BOUND_LATENCY, "issue", NULL},
    {IDLE WHOLE_GRID "longest=1000 average=599 elapsed=1000", RL_KERNEL_BOUND_TAIL, "longest", NULL},
    {IDLE WHOLE_GRID "longest=1000 average=600 elapsed=1000", RL_KERNEL_BOUND_LATENCY, "issue", NULL},
    {IDLE WHOLE_GRID "longest=1000 average=100 elapsed=2001", RL_KERNEL_BOUND_LATENCY, "issue",
     NULL}, /* every multiprocessor is idle for more than half of the kernel */
    {IDLE "blocks=79 sms=132 longest=1000 average=590 elapsed=1000", RL_KERNEL_BOUND_LAUNCH, "blocks", NULL},
    {IDLE "blocks=80 sms=132 longest=1000 average=598 elapsed=1000", RL_KERNEL_BOUND_LATENCY, "issue", NULL},
    {IDLE "blocks=33 sms=132 longest=1000 average=250 elapsed=1000", RL_KERNEL_BOUND_LAUNCH, "blocks", NULL},
    {IDLE "blocks=64 sms=132 longest=1000 average=15 elapsed=1000", RL_KERNEL_BOUND_TAIL, "longest",
     NULL}, /* one of 64 blocks takes much longer */
    {IDLE "blocks=33 sms=132", RL_KERNEL_BOUND_LAUNCH, "blocks", NULL},
    {IDLE, RL_KERNEL_BOUND_LATENCY, "issue", NULL},
    {"ns=9999 compute=20 memory=20 issue=15 blocks=1 sms=132", RL_KERNEL_BOUND_TOO_SMALL, "ns", NULL},
    {"ns=10000 compute=20 memory=20 issue=15 blocks=1 sms=132", RL_KERNEL_BOUND_LAUNCH, "blocks", NULL},
    {"ns=9999 compute=20 memory=60 dram=60", RL_KERNEL_BOUND_DRAM, "dram", NULL},
};

static void each_bound_names_its_evidence(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const verdict_case *one_case = &cases[i];
    rl_kernel_verdict verdict = make_verdict(one_case->metrics);
    if (verdict.bound != one_case->bound)
      fail_msg("%s: %s: %s", one_case->metrics, rl_kernel_bound_names[verdict.bound], verdict.message);
    if (one_case->evidence) assert_string_equal(verdict.metric, alias_of(one_case->evidence)->metric);
    assert_int_equal(verdict.metric != NULL, one_case->evidence != NULL);
    assert_int_equal(verdict.advice != NULL, one_case->bound != RL_KERNEL_BOUND_UNKNOWN);
    assert_int_equal(verdict.pipeline != NULL, one_case->pipeline != NULL);
    if (one_case->pipeline) assert_string_equal(verdict.pipeline, one_case->pipeline);
    assert_true(verdict.message[0] && strlen(verdict.message) < sizeof verdict.message - 24 && !strstr(verdict.message, "nan"));
  }
}

static void a_missing_metric_is_named_with_its_reason(void **state) {
  (void)state;
  rl_kernel_verdict verdict = make_verdict("ns=50000 compute=20 memory=nan");
  assert_int_equal(verdict.bound, RL_KERNEL_BOUND_UNKNOWN);
  assert_string_equal(verdict.message, "The verdict needs " PCT("gpu__compute_memory_throughput") ": blocked.");
  verdict = make_verdict("compute=20 memory=20");
  assert_string_equal(verdict.message, "The verdict needs gpu__time_duration.sum: it was not collected.");
  verdict = make_verdict("ns=50000 compute=20 memory=20 issue=nan");
  assert_string_equal(verdict.message, "The verdict needs " PCT("sm__issue_active") ": blocked.");
  assert_true(isnan(verdict.value) && verdict.metric == NULL && verdict.unit == NULL && verdict.advice == NULL);
}

static void a_percentage_below_the_threshold_is_not_printed_as_the_threshold(void **state) {
  (void)state;
  const rl_kernel_verdict verdict = make_verdict("compute=59.96 memory=59.97 ns=90000 issue=35");
  assert_int_equal(verdict.bound, RL_KERNEL_BOUND_LATENCY);
  assert_non_null(strstr(verdict.message, "memory (59.9 %) and compute (59.9 %) stay below 60 %"));
}

/* "Not selected" is never the longest stall, because such a warp waits for nothing. If the time between a warp's instructions is
 * unknown, no stall is named, because its share of that time is unknown. */
static void the_verdict_on_latency_names_the_longest_stall(void **state) {
  (void)state;
  static const struct {
    const char *metrics, *stall;
  } waits[] = {
      {IDLE "between=20 scoreboard=12 barrier=3", "Longest stall: long scoreboard (L1, L2 or DRAM), 60 % of a warp's time."},
      {IDLE "between=20 scoreboard=3 barrier=12 unselected=15", "Longest stall: barrier, 60 % of a warp's time."},
      {IDLE "between=20 unselected=15", NULL},
      {IDLE "scoreboard=12", NULL}};
  for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
    rl_kernel_verdict verdict = make_verdict(waits[i].metrics);
    assert_int_equal(verdict.bound, RL_KERNEL_BOUND_LATENCY);
    const char *found = strstr(verdict.message, "Longest stall");
    if (waits[i].stall == NULL) assert_null(found);
    else assert_string_equal(found, waits[i].stall);
    assert_int_equal(strstr(verdict.advice, "WarpStateStats") != NULL, waits[i].stall == NULL);
  }
}

/* Further warps hide a latency while warp slots are empty. Otherwise, and for stalls that they do not hide, the advice is that of
 * the rule about the stall. */
static void more_warps_are_advised_only_if_they_hide_the_stall(void **state) {
  (void)state;
  static const char more_warps[] = "Overlap this stall with more warps, or more independent work per thread.",
                    about_loads[] =
                        "Load earlier and more at once (unroll, wider loads, asynchronous copies), keep reused data in "
                        "registers or shared memory, and coalesce accesses.",
                    about_barriers[] =
                        "Balance the work between barriers, use smaller blocks or fewer barriers, or synchronise "
                        "only the warps that share data.";
  static const struct {
    const char *metrics, *advice;
  } stalls[] = {{IDLE "between=20 scoreboard=12 warps=79.9", more_warps},
                {IDLE "between=20 scoreboard=12", more_warps},
                {IDLE "between=20 scoreboard=12 warps=80", about_loads},
                {IDLE "between=20 scoreboard=12 warps=99 blocks=132 sms=132", about_loads},
                {IDLE "between=20 scoreboard=12 warps=99 blocks=80 sms=132", more_warps},
                {IDLE "between=20 barrier=12 warps=20", about_barriers},
                {IDLE "between=20 barrier=12 scoreboard=12.1 warps=20", more_warps}};
  for (size_t i = 0; i < sizeof stalls / sizeof *stalls; i++)
    assert_string_equal(make_verdict(stalls[i].metrics).advice, stalls[i].advice);
}

#define MANY_BLOCKS "by_maximum=32 by_barriers=32 "
#define SMALL_BLOCKS "warps=48 possible=50 by_warps=64 "

/* A kernel with as many warps as its registers, shared memory or blocks permit can't get more warps by a larger grid. */
static void a_verdict_on_latency_names_what_limits_the_warps(void **state) {
  (void)state;
  static const char about_registers[] = "if a thread needs fewer registers.", about_blocks[] = "more warps per block",
                    about_barriers[] = "fewer named barriers, or larger blocks.", unspecific[] = "with more warps,";
  static const struct {
    const char *metrics, *limit, *advice;
  } kernels[] = {
      {MANY_BLOCKS "warps=19 possible=18.75 by_registers=1 by_shared=1 by_warps=5",
       " Warps occupy 19 % of their slots; registers and shared memory permit 19 %.",
       "More blocks fit only if each needs fewer registers and less shared memory."},
      {MANY_BLOCKS "warps=17 possible=18.75 by_registers=1 by_shared=2 by_warps=5",
       " Warps occupy 17 % of their slots; registers permit 19 %.", about_registers},
      {MANY_BLOCKS "warps=19 possible=18.75 by_registers=2 by_shared=1 by_warps=5",
       " Warps occupy 19 % of their slots; shared memory permits 19 %.", "share the shared memory of a block."},
      {MANY_BLOCKS "warps=16 possible=18.75 by_registers=1 by_shared=1 by_warps=5", NULL, unspecific}, /* the grid is small */
      {MANY_BLOCKS "warps=75 possible=80 by_registers=4 by_shared=5 by_warps=5", NULL, unspecific},
      {MANY_BLOCKS "warps=75 possible=75 by_registers=4 by_shared=5 by_warps=4", NULL,
       unspecific}, /* the block size is the limit */
      {MANY_BLOCKS "warps=19 possible=18.75 by_registers=0 by_shared=1 by_warps=5", NULL, unspecific}, /* 0 blocks can't run */
      {MANY_BLOCKS "warps=19 possible=18.75 by_shared=1", NULL, unspecific},
      {"warps=19 possible=18.75 by_registers=1 by_shared=2 by_warps=5", NULL, unspecific},
      /* blocks of 32 threads, of which a multiprocessor holds at most 32 */
      {SMALL_BLOCKS "by_registers=42 by_shared=228 by_maximum=32 by_barriers=64",
       " Warps occupy 48 % of their slots; the maximum of resident blocks permits 50 %.", about_blocks},
      {SMALL_BLOCKS "by_registers=33 by_shared=32 by_maximum=32 by_barriers=32",
       " Warps occupy 48 % of their slots; the maximum of resident blocks permits 50 %.", about_blocks},
      {SMALL_BLOCKS "by_registers=32 by_shared=228 by_maximum=32 by_barriers=32", NULL, unspecific},
      {SMALL_BLOCKS "by_registers=31 by_shared=228 by_maximum=32 by_barriers=32",
       " Warps occupy 48 % of their slots; registers permit 50 %.", about_registers},
      {SMALL_BLOCKS "by_registers=42 by_shared=228 by_maximum=32 by_barriers=31",
       " Warps occupy 48 % of their slots; barriers permit 50 %.", about_barriers},
      {SMALL_BLOCKS "by_registers=31 by_shared=228 by_maximum=32 by_barriers=31", NULL, unspecific},
      {SMALL_BLOCKS "by_registers=30 by_shared=228 by_maximum=32 by_barriers=31",
       " Warps occupy 48 % of their slots; registers permit 50 %.", about_registers},
  };
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    char metrics[256];
    snprintf(metrics, sizeof metrics, IDLE "between=20 scoreboard=12 %s", kernels[i].metrics);
    const rl_kernel_verdict verdict = make_verdict(metrics);
    const char *found = strstr(verdict.message, " Warps occupy");
    if (kernels[i].limit == NULL) assert_null(found);
    else assert_string_equal(found ? found : verdict.message, kernels[i].limit);
    assert_non_null(strstr(verdict.advice, kernels[i].advice));
  }
}

static void every_rule_about_a_stall_has_advice(void **state) {
  (void)state;
  for (const rl_rule *rule = rl_rules_scheduling; rule->id != NULL; rule++) {
    if (strncmp(rule->id, "stall_", 6) != 0 || strcmp(rule->id, "stall_not_selected") == 0) continue;
    const char *advice = strchr(rule->message, '|');
    assert_true(advice && advice[1] != '\0' && !strchr(advice, '{'));
  }
}

static bool is_collected(const char *metric) { return rl_raw_metric_find(metric) != NULL; }

static void the_metrics_of_verdicts_are_collected(void **state) {
  (void)state;
  size_t count = 0;
  for (const char *metric; (metric = rl_kernel_verdict_metric(count)) != NULL; count++)
    if (!is_collected(metric)) fail_msg("%s is not a raw metric", metric);
  assert_true(count > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_bound_names_its_evidence),
      cmocka_unit_test(a_missing_metric_is_named_with_its_reason),
      cmocka_unit_test(a_percentage_below_the_threshold_is_not_printed_as_the_threshold),
      cmocka_unit_test(the_verdict_on_latency_names_the_longest_stall),
      cmocka_unit_test(more_warps_are_advised_only_if_they_hide_the_stall),
      cmocka_unit_test(a_verdict_on_latency_names_what_limits_the_warps),
      cmocka_unit_test(every_rule_about_a_stall_has_advice),
      cmocka_unit_test(the_metrics_of_verdicts_are_collected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
