/* Tests rl_findings_combine: it returns one finding for each cause, whose estimates never add up to more than the kernel's time,
 * and orders the findings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/findings.h"
#include "model/catalogue.h"
#include "random_numbers.h"

#define COMPUTE "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define MEMORY "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
#define DRAM "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
#define ACTIVE "sm__cycles_active.avg"
#define LONGEST "sm__cycles_active.max"
#define ELAPSED "sm__cycles_elapsed.max"

static rl_metric_value items[4096];
static size_t item_count;
static rl_finding findings[RL_MAX_FINDINGS];

static void set_metric(const char *metric, double value) {
  size_t i = 0;
  while (i < item_count && strcmp(items[i].name, metric) != 0) i++;
  items[i] = (rl_metric_value){metric, value, NULL};
  if (i == item_count) item_count++;
}

static rl_metric_values sorted_metrics(void) {
  rl_metric_values_sort(items, item_count);
  return (rl_metric_values){items, item_count};
}

static size_t apply_rules_and_combine(void) {
  rl_metric_values values = sorted_metrics();
  size_t count = rl_rules_apply(&values, findings, RL_MAX_FINDINGS);
  assert_true(count <= RL_MAX_FINDINGS);
  return rl_findings_combine(findings, count, &values);
}

/* --- random metrics ---------------------------------------------------------------------------------------------------- */

/* Draws percentages from 0 to 100 and counts of any magnitude, so that about half of the rules have a finding. */
static double random_metric(const char *name) {
  if (strstr(name, "pct")) return 100 * random_ratio();
  if (strstr(name, ".ratio") || strstr(name, "per_cycle")) return 32 * random_ratio();
  return floor(exp(random_ratio() * 16));
}

static void draw_metrics(void) {
  item_count = 0;
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++)
      for (const rl_rule_input *input = rule->inputs; input->name; input++)
        if (rule->cause != RL_CAUSE_NONE && random_ratio() < 0.95) set_metric(input->metric, random_metric(input->metric));
  double elapsed = 1000 + floor(1e6 * random_ratio()), longest = floor(elapsed * random_ratio());
  set_metric(ELAPSED, elapsed), set_metric(LONGEST, longest), set_metric(ACTIVE, floor(longest * random_ratio()));
  if (random_ratio() < 0.1) set_metric(ACTIVE, NAN);
  if (random_ratio() < 0.1) set_metric(LONGEST, NAN);
}

static double metric_of(const char *name) {
  for (size_t i = 0; i < item_count; i++)
    if (strcmp(items[i].name, name) == 0) return items[i].value;
  return NAN;
}

/* Asserts that a sum of estimates is at most the limit. NAN: the limit is unknown. */
static void check_sum(const char *what, double sum, double limit) {
  if (sum > fmax(0, limit) + 1e-9 && !isnan(limit))
    fail_msg("%s: the estimates add up to %g %%, more than %g %% (seed %llu)", what, sum, limit, (unsigned long long)test_seed);
}

static void check_that_estimates_fit_the_time(size_t count) {
  double whole = 0, same_bytes = 0, parts[RL_TIME_PART_COUNT] = {0};
  for (size_t i = 0; i < count; i++) {
    const rl_cause *cause = &rl_causes[findings[i].rule->cause];
    if (!findings[i].global || isnan(findings[i].speedup_pct)) continue;
    whole += findings[i].speedup_pct;
    parts[cause->part] += findings[i].speedup_pct;
    if (!cause->saves_dram) same_bytes += findings[i].speedup_pct;
  }
  double elapsed = metric_of(ELAPSED), without_blocks_pct = 100 * (elapsed - metric_of(ACTIVE)) / elapsed;
  double busy_pct = metric_of(COMPUTE) + metric_of(MEMORY) >= 0 ? fmax(metric_of(COMPUTE), metric_of(MEMORY)) : NAN;
  check_sum("whole", whole, 100);
  check_sum("same bytes", same_bytes, 100 - metric_of(DRAM));
  check_sum("launch", parts[RL_TIME_PART_LAUNCH], 100 * (elapsed - metric_of(LONGEST)) / elapsed);
  check_sum("idle", parts[RL_TIME_PART_IDLE], 100 * (metric_of(LONGEST) - metric_of(ACTIVE)) / elapsed);
  check_sum("launch and idle", parts[RL_TIME_PART_LAUNCH] + parts[RL_TIME_PART_IDLE], 100 - busy_pct);
  check_sum("latency", parts[RL_TIME_PART_LATENCY], 100 - without_blocks_pct - busy_pct);
  check_sum("busy", parts[RL_TIME_PART_BUSY], busy_pct);
}

static void check_causes(size_t count) {
  bool seen[RL_CAUSE_COUNT] = {false};
  rl_cause_id leading = RL_CAUSE_NONE;
  assert_true(count == 0 || !findings[0].is_part);
  for (size_t i = 0; i < count; i++) {
    rl_cause_id cause = findings[i].rule->cause;
    if (findings[i].is_part) {
      assert_true(isnan(findings[i].speedup_pct));
      assert_true(cause == leading || rl_causes[cause].joins[0] == leading || rl_causes[cause].joins[1] == leading ||
                  (rl_causes[cause].summarizes && rl_causes[cause].part == rl_causes[leading].part));
      continue;
    }
    leading = cause;
    assert_false(seen[cause]);
    seen[cause] = true;
  }
}

static double rank_of(size_t i) { return isnan(findings[i].speedup_pct) ? 0 : findings[i].global ? 2 : 1; }

static void check_order(size_t count) {
  double previous = 3;
  for (size_t i = 0; i < count; i++) {
    if (findings[i].is_part) continue;
    assert_true(rank_of(i) <= previous);
    previous = rank_of(i);
  }
}

static void estimates_of_random_metrics_never_exceed_the_time(void **state) {
  (void)state;
  size_t total = 0;
  for (int round = 0; round < 3000; round++) {
    draw_metrics();
    size_t count = apply_rules_and_combine();
    check_that_estimates_fit_the_time(count), check_causes(count), check_order(count);
    total += count;
  }
  assert_true(total > 3000 * 10); /* many rules have findings */
}

/* --- given findings ---------------------------------------------------------------------------------------------------- */

typedef struct given_finding {
  const char *rule;
  double speedup_pct; /* NAN: none */
} given_finding;

/* Percentages of a kernel's duration. dram_pct: DRAM is busy; 0 if nothing is known. */
typedef struct kernel_times {
  double launch_pct, idle_pct, busy_pct, dram_pct;
} kernel_times;

/* Combines findings with these rules and estimates. */
static size_t combine_findings(kernel_times times, const given_finding *list, size_t count) {
  item_count = 0;
  set_metric(COMPUTE, times.busy_pct), set_metric(MEMORY, times.busy_pct / 2), set_metric(DRAM, times.dram_pct);
  set_metric(ELAPSED, 1000), set_metric(LONGEST, 1000 - 10 * times.launch_pct);
  set_metric(ACTIVE, 1000 - 10 * times.launch_pct - 10 * times.idle_pct);
  for (size_t i = 0; i < count; i++) {
    const rl_rule *rule = rl_rule_find(list[i].rule);
    assert_non_null(rule);
    findings[i] = (rl_finding){
        .rule = rule, .kind = rule->kind, .speedup_pct = list[i].speedup_pct, .global = rule->scope == RL_SPEEDUP_GLOBAL};
  }
  rl_metric_values values = sorted_metrics();
  return rl_findings_combine(findings, count, &values);
}

static void assert_finding(size_t i, const char *rule, double speedup_pct) {
  assert_string_equal(findings[i].rule->id, rule);
  if (isnan(speedup_pct) ? !isnan(findings[i].speedup_pct) : !(fabs(findings[i].speedup_pct - speedup_pct) < 1e-9))
    fail_msg("%s: %g, not %g", rule, findings[i].speedup_pct, speedup_pct);
}

#define TIMES(...) ((kernel_times){__VA_ARGS__})
#define COMBINE(times, ...)                                     \
  combine_findings(times, (const given_finding[]){__VA_ARGS__}, \
                   sizeof(const given_finding[]){__VA_ARGS__} / sizeof(given_finding))

static void loads_and_stores_of_one_pipeline_are_one_finding(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.busy_pct = 90), {"bank_conflicts_ld", 20}, {"bank_conflicts_st", 30}), 2);
  assert_finding(0, "bank_conflicts_st", 50);
  assert_finding(1, "bank_conflicts_ld", NAN);
  assert_true(!findings[0].is_part && findings[1].is_part);
  assert_int_equal(COMBINE(TIMES(.busy_pct = 90), {"bank_conflicts_ld", 60.6}, {"bank_conflicts_st", 59.6}), 2);
  assert_finding(0, "bank_conflicts_ld", 90); /* limited to the time in which the pipeline is busy */
}

static void overlapping_estimates_count_once(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.busy_pct = 80), {"uncoalesced_ld", 40}, {"l2_sectors_excess", 55}, {"dram_sector_use", 30}), 3);
  assert_finding(0, "l2_sectors_excess", 55);
  assert_finding(1, "uncoalesced_ld", NAN);
  assert_finding(2, "dram_sector_use", NAN);
}

static void summaries_join_the_largest_finding_of_their_part(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.busy_pct = 10), {"issue_slots", NAN}, {"stall_barrier", 30}, {"stall_long_scoreboard", 50}), 3);
  assert_finding(0, "stall_long_scoreboard", 50);
  assert_finding(1, "issue_slots", NAN);
  assert_finding(2, "stall_barrier", 30);
  assert_int_equal(COMBINE(TIMES(.busy_pct = 10), {"issue_slots", NAN}, {"bank_conflicts_ld", 9}), 2);
  assert_finding(0, "bank_conflicts_ld", 9);
  assert_finding(1, "issue_slots", NAN); /* bank conflicts belong to another part of the time */
  assert_false(findings[1].is_part);
}

static void stalls_on_atomics_are_a_part_of_the_atomics_finding(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.busy_pct = 2), {"stall_long_scoreboard", 92}, {"global_atomics", 78}, {"stall_barrier", 30}),
                   3);
  assert_finding(0, "global_atomics", 78);
  assert_finding(1, "stall_long_scoreboard", NAN);
  assert_finding(2, "stall_barrier", 20);
}

static void stalls_on_spread_atomics_are_a_part_of_their_finding(void **state) {
  (void)state;
  assert_int_equal(
      COMBINE(TIMES(.busy_pct = 65), {"stall_long_scoreboard", 92}, {"global_atomics_spread", 65}, {"stall_barrier", 30}), 3);
  assert_finding(0, "global_atomics_spread", 65);
  assert_finding(1, "stall_long_scoreboard", NAN);
  assert_true(findings[1].is_part);
  assert_finding(2, "stall_barrier", 30);
  assert_int_equal(COMBINE(TIMES(.busy_pct = 65), {"stall_long_scoreboard", 92}, {"shared_atomics", 65}), 2);
  assert_false(findings[1].is_part); /* atomics in shared memory do not cause this stall */
}

static void spread_atomics_are_busy_time(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.busy_pct = 90), {"global_atomics_spread", 95}), 1);
  assert_finding(0, "global_atomics_spread", 90);
}

static void latencies_get_only_the_time_that_a_tail_leaves(void **state) {
  (void)state;
  assert_int_equal(
      COMBINE(TIMES(.idle_pct = 96, .busy_pct = 1), {"launch_too_small", 51}, {"imbalance_sm", 95.5}, {"stall_wait", 70}), 2);
  assert_finding(0, "imbalance_sm", 95.5);
  assert_finding(1, "stall_wait", 3);
  assert_int_equal(COMBINE(TIMES(.idle_pct = 97, .busy_pct = 1.5), {"launch_too_small", 51}, {"stall_wait", 70}),
                   1); /* 1.5 % are left to stalls */
  assert_finding(0, "launch_too_small", 51);
}

static void blocks_save_only_the_time_in_which_blocks_exist(void **state) {
  (void)state;
  const double idle_pct = 100 * (1 - 8. / 132), active_ratio = 3478. / 5844; /* 8 blocks run on 132 multiprocessors */
  assert_int_equal(COMBINE(TIMES(.launch_pct = 100 * (1 - active_ratio), .idle_pct = idle_pct * active_ratio, .busy_pct = 1),
                           {"launch_too_small", idle_pct}, {"launch_overhead", 40}),
                   2);
  assert_finding(0, "launch_too_small", idle_pct * active_ratio); /* 55.9 */
  assert_finding(1, "launch_overhead", 40);
  assert_int_equal(COMBINE(TIMES(.idle_pct = idle_pct), {"launch_too_small", idle_pct}), 1);
  assert_finding(0, "launch_too_small", idle_pct); /* 93.9: the blocks run from the start to the end */
}

/* Four blocks fit on a multiprocessor. In 1.5 waves each gets two blocks of the last wave, and none is idle. In 1.125 waves half
 * of them get one block: if that takes a quarter of the time of four, the others are idle for a fifth of 1.25, a tenth on
 * average. */
static void a_tail_costs_the_time_of_multiprocessors_without_blocks(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.busy_pct = 40), {"tail_effect", 25}), 0);
  assert_int_equal(COMBINE(TIMES(.idle_pct = 10, .busy_pct = 40), {"tail_effect", 43.75}), 1);
  assert_finding(0, "tail_effect", 10);
  assert_int_equal(COMBINE(TIMES(.idle_pct = 25, .busy_pct = 40), {"tail_effect", 25}), 1); /* one block fits */
  assert_finding(0, "tail_effect", 25);
}

static void idle_multiprocessors_cost_at_most_what_the_busiest_unit_leaves(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.idle_pct = 33.3, .busy_pct = 20), {"launch_too_small", 33.3}), 1);
  assert_finding(0, "launch_too_small", 33.3);
  assert_int_equal(COMBINE(TIMES(.idle_pct = 33.3, .busy_pct = 77.7), {"launch_too_small", 33.3}), 1);
  assert_finding(0, "launch_too_small", 22.3);
  assert_int_equal(
      COMBINE(TIMES(.launch_pct = 20, .idle_pct = 30, .busy_pct = 60), {"launch_too_small", 30}, {"launch_overhead", 20}), 2);
  assert_finding(0, "launch_too_small", 30);
  assert_finding(1, "launch_overhead", 10);
}

static void causes_that_do_not_reduce_dram_traffic_save_only_the_time_without_dram(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.idle_pct = 20, .busy_pct = 60, .dram_pct = 50), {"bank_conflicts_ld", 40}, {"tail_effect", 20},
                           {"traffic_above_model", 12}),
                   3);
  assert_finding(0, "bank_conflicts_ld", 40);
  assert_finding(1, "traffic_above_model", 12); /* fewer bytes take less time of DRAM */
  assert_finding(2, "tail_effect", 10);
}

static void findings_are_ordered_by_their_limited_estimates(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.launch_pct = 79, .busy_pct = 13), {"launch_overhead", 78}, {"stall_no_instruction", 87}), 2);
  assert_finding(0, "launch_overhead", 78);
  assert_finding(1, "stall_no_instruction", 8);
}

static void local_estimates_stand_after_global_ones(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(.busy_pct = 20), {"bound_memory", NAN}, {"tensor_underused", 90}, {"stall_wait", 2},
                           {"branch_divergence", NAN}),
                   4);
  assert_finding(0, "stall_wait", 2);
  assert_finding(1, "tensor_underused", 90);
  assert_finding(2, "branch_divergence", NAN); /* a warning stands before an info */
  assert_finding(3, "bound_memory", NAN);
}

static void rules_without_a_cause_stay_alone(void **state) {
  (void)state;
  assert_int_equal(COMBINE(TIMES(NAN, NAN, NAN, NAN), {"timeline_host_work", 70}, {"timeline_synchronization", 20}), 2);
  assert_finding(0, "timeline_host_work", 70);
  assert_finding(1, "timeline_synchronization", 20);
}

static void the_caller_of_a_library_gets_other_advice(void **state) {
  (void)state;
  static const char fact[] = "Blocks on a multiprocessor: at most 1. ";
  rl_finding finding = {.rule = rl_rule_find("occupancy_registers"), .advice_offset = sizeof fact - 1};
  snprintf(finding.message, sizeof finding.message, "%sLimit them (-maxrregcount).", fact);
  rl_findings_advise_caller(&finding, 1);
  assert_memory_equal(finding.message, fact, sizeof fact - 1);
  assert_string_equal(finding.message + finding.advice_offset, rl_causes[RL_CAUSE_FEW_WARPS].caller_advice);
  rl_finding without = {.rule = rl_rule_find("partial_wave"), .message = "All 10 blocks are resident.", .advice_offset = 27};
  rl_findings_advise_caller(&without, 1);
  assert_string_equal(without.message, "All 10 blocks are resident.");
}

/* Words that address the author of a kernel, or someone who can read its code. */
static const char *const author_words[] = {"launch_bounds", "maxrregcount", "unroll",         "registers",
                                           "shared memory", "__",           "per-instruction"};

static void advice_to_callers_is_not_about_code(void **state) {
  (void)state;
  for (int cause = RL_CAUSE_NONE + 1; cause < RL_CAUSE_COUNT; cause++)
    for (size_t i = 0; i < sizeof author_words / sizeof *author_words && rl_causes[cause].caller_advice; i++)
      if (strstr(rl_causes[cause].caller_advice, author_words[i])) fail_msg("%s", rl_causes[cause].caller_advice);
}

static void every_cause_has_a_name_and_a_rule(void **state) {
  (void)state;
  for (int cause = RL_CAUSE_NONE + 1; cause < RL_CAUSE_COUNT; cause++) {
    bool used = false;
    assert_non_null(rl_causes[cause].name);
    for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
      for (const rl_rule *rule = group->rules; rule->id; rule++) used |= (int)rule->cause == cause;
    if (!used) fail_msg("no rule has the cause %s", rl_causes[cause].name);
  }
}

static void every_rule_of_a_kernel_has_a_cause(void **state) {
  (void)state;
  size_t rules = 0;
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++, rules++) {
      bool is_of_timeline = strcmp(rule->section, RL_RULE_TIMELINE_SECTION) == 0;
      if ((rule->cause == RL_CAUSE_NONE) != is_of_timeline) fail_msg("%s has no cause", rule->id);
    }
  assert_true(rules <= RL_MAX_FINDINGS);
}

int main(void) {
  choose_test_seed();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_caller_of_a_library_gets_other_advice),
      cmocka_unit_test(advice_to_callers_is_not_about_code),
      cmocka_unit_test(every_cause_has_a_name_and_a_rule),
      cmocka_unit_test(every_rule_of_a_kernel_has_a_cause),
      cmocka_unit_test(estimates_of_random_metrics_never_exceed_the_time),
      cmocka_unit_test(loads_and_stores_of_one_pipeline_are_one_finding),
      cmocka_unit_test(overlapping_estimates_count_once),
      cmocka_unit_test(summaries_join_the_largest_finding_of_their_part),
      cmocka_unit_test(stalls_on_atomics_are_a_part_of_the_atomics_finding),
      cmocka_unit_test(stalls_on_spread_atomics_are_a_part_of_their_finding),
      cmocka_unit_test(spread_atomics_are_busy_time),
      cmocka_unit_test(latencies_get_only_the_time_that_a_tail_leaves),
      cmocka_unit_test(blocks_save_only_the_time_in_which_blocks_exist),
      cmocka_unit_test(a_tail_costs_the_time_of_multiprocessors_without_blocks),
      cmocka_unit_test(idle_multiprocessors_cost_at_most_what_the_busiest_unit_leaves),
      cmocka_unit_test(causes_that_do_not_reduce_dram_traffic_save_only_the_time_without_dram),
      cmocka_unit_test(findings_are_ordered_by_their_limited_estimates),
      cmocka_unit_test(local_estimates_stand_after_global_ones),
      cmocka_unit_test(rules_without_a_cause_stay_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
