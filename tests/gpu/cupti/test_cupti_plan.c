/* Tests the parts of the profiler that need no GPU: counter plans, metric selection, names, launch metrics, occupancy. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/cupti/launch_metrics.h"
#include "worker/cupti/name_table.h"
#include "worker/cupti/occupancy.h"
#include "worker/cupti/counter_plan.h"
#include "worker/cupti/check.h"
#include "worker/cupti/metric_selection.h"
#include "worker/cupti/plan_files.h"

static rl_counter_plan *make_plan(const char *chip, const char *const *names, size_t count) {
  rl_error err = {0};
  rl_counter_plan *plan = NULL;
  if (rl_counter_plan_open(chip, names, count, &plan, &err) != 0) fail_msg("%s", err.message);
  return plan;
}

static rl_metric_selection select_without(rl_instruction_classes absent_classes, const char *set, const char *metrics) {
  rl_profile_options requested = {.matching_index = RL_ALL_MATCHING_KERNELS};
  rl_metric_selection selection;
  rl_error err = {0};
  int set_index = 0;
  while (strcmp(rl_profile_set_names[set_index], set) != 0) set_index++;
  snprintf(requested.metrics, sizeof requested.metrics, "%s", metrics);
  const rl_profile_options profile_options = rl_profile_options_resolve(set_index, &requested);
  if (rl_metric_selection_make(&profile_options, absent_classes, &selection, &err) != 0) fail_msg("%s", err.message);
  return selection;
}

static rl_metric_selection select_metrics(const char *set, const char *metrics) { return select_without(0, set, metrics); }

static size_t list_counters(const rl_metric_selection *selection, const char **names) {
  for (size_t i = 0; i < selection->counter_count; i++) names[i] = selection->items[i].name;
  return selection->counter_count;
}

static const char *counter_names[4000];

/* Returns the index of the group's first metric of the unit. */
static size_t index_of_first_metric(const char *unit, const rl_counter_group *group) {
  size_t index = 0;
  while (index < group->count && strncmp(group->names[index], unit, strlen(unit)) != 0) index++;
  return index;
}

/* min_metrics detects misspelt names, which look like metrics that the chip does not have. max_passes are the numbers of passes
 * with CUPTI 13.0; a change may only lower them. */
static void test_hopper_has_the_metrics_of_the_sets(void **state) {
  (void)state;
  const struct {
    const char *set;
    rl_instruction_classes absent_classes;
    size_t min_metrics, max_passes;
  } cases[] = {{"auto", 0, 94, 9},       {"basic", 0, 82, 9},
               {"detailed", 0, 374, 17}, {"detailed", rl_all_instruction_classes("GH100"), 243, 15},
               {"full", 0, 762, 32},     {"full", rl_all_instruction_classes("GH100"), 471, 21}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_metric_selection selection = select_without(cases[i].absent_classes, cases[i].set, "");
    rl_counter_plan *plan = make_plan("GH100", counter_names, list_counters(&selection, counter_names));
    size_t placed = 0;
    for (size_t g = 0; g < plan->group_count; g++) placed += plan->groups[g].count;
    for (size_t m = 0; m < plan->metric_count; m++)
      if (plan->missing_reasons[m].text[0] != '\0') print_message("%s: %s\n", counter_names[m], plan->missing_reasons[m].text);
    print_message("%s without %x: %zu counters, %zu collected in %zu groups and %zu passes\n", cases[i].set,
                  cases[i].absent_classes, selection.counter_count, placed, plan->group_count, plan->passes);
    assert_int_equal(plan->group_count, 1);
    assert_true(placed >= cases[i].min_metrics && plan->passes <= cases[i].max_passes);
    assert_true(index_of_first_metric("gpu__", &plan->groups[0]) <
                index_of_first_metric("lts__", &plan->groups[0])); /* otherwise more passes count in L2 */
    rl_counter_plan_close(plan);
    rl_metric_selection_clear(&selection);
  }
}

/* Removes the names of metrics that only the raw page shows, and returns how many names are left. */
static size_t remove_raw_page_names(const char **names, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (!rl_raw_metric_is_only_on_raw_page(rl_raw_metric_find(names[i]))) names[kept++] = names[i];
  return kept;
}

/* The raw page shows further rollups of counters that the set "full" collects anyway, so that they need neither further passes
 * nor a larger configuration image. */
static void test_the_raw_page_needs_no_further_passes(void **state) {
  (void)state;
  for (int absent = 0; absent <= 1; absent++) {
    rl_metric_selection full = select_without(absent ? rl_all_instruction_classes("GH100") : 0, "full", "");
    const size_t count = list_counters(&full, counter_names);
    rl_counter_plan *all = make_plan("GH100", counter_names, count);
    const size_t with_rows_count = remove_raw_page_names(counter_names, count);
    rl_counter_plan *with_rows = make_plan("GH100", counter_names, with_rows_count);
    assert_true(with_rows_count + 250 < count);
    assert_true(all->group_count == 1 && with_rows->group_count == 1);
    assert_int_equal(all->passes, with_rows->passes);
    assert_int_equal(all->groups[0].config_image_size, with_rows->groups[0].config_image_size);
    rl_counter_plan_close(with_rows);
    rl_counter_plan_close(all);
    rl_metric_selection_clear(&full);
  }
}

static void test_a_metric_that_no_pass_can_collect_has_its_reason(void **state) {
  (void)state;
  rl_metric_selection selection = select_metrics("auto", "launch__kernel_name");
  assert_int_equal(selection.count, 1);
  assert_string_equal(selection.items[0].skip_reason, "a text, not a number");
  assert_true(selection.counter_count == 0 && isnan(selection.items[0].known_value));
  rl_metric_selection_clear(&selection);
}

/* Returns the number of counters that only the raw page has and only special instructions increment. */
static size_t count_left_out(const rl_metric_selection *selection) {
  size_t count = 0;
  for (size_t i = 0; i < selection->counter_count; i++) {
    const char *name = selection->items[i].name;
    count += rl_instruction_classes_of_metric(name) != 0 && rl_raw_metric_is_only_on_raw_page(rl_raw_metric_find(name));
  }
  return count;
}

/* Each counter of the catalogue is collected, skipped with the value 0 or the sum of other counters, or, if only the raw page
 * shows it, left out. */
static void test_counters_of_absent_instruction_classes_are_not_collected(void **state) {
  (void)state;
  rl_metric_selection all = select_metrics("full", ""), reduced = select_without(rl_all_instruction_classes("GH100"), "full", "");
  const size_t left_out = count_left_out(&all);
  assert_true(left_out > 200);
  assert_int_equal(reduced.count + left_out, all.count);
  size_t known_zeros = 0, derived_counters = 0;
  for (size_t i = 0; i < reduced.count; i++) {
    const rl_selected_metric *metric = &reduced.items[i];
    derived_counters += metric->term_count > 0;
    if (isnan(metric->known_value)) continue;
    known_zeros++;
    assert_true(i >= reduced.counter_count && metric->known_value == 0 && rl_instruction_classes_of_metric(metric->name) != 0);
    assert_non_null(strstr(metric->skip_reason, "not counted: the code has no "));
  }
  assert_int_equal(derived_counters, 16);
  assert_int_equal(all.counter_count, reduced.counter_count + known_zeros + derived_counters + left_out);
  /* GH100 does not have two of these counters. */
  rl_error err = {0};
  size_t not_on_chip = 0;
  assert_int_equal(rl_metric_selection_limit_to_chip(&reduced, "GH100", &err), 0);
  for (size_t i = reduced.counter_count; i < reduced.count; i++) {
    not_on_chip += reduced.items[i].skip_reason != NULL &&
                   strcmp(reduced.items[i].skip_reason, "CUPTI has no such metric for this chip") == 0;
    if (strncmp(reduced.items[i].name, "sm__ops_path_tensor_src_fp16_dst_", 33) == 0 &&
        strstr(reduced.items[i].name, "per_cycle") != NULL)
      assert_true(isnan(reduced.items[i].known_value));
    if (strcmp(reduced.items[i].name, "smsp__inst_executed_op_texture.sum") == 0) assert_true(reduced.items[i].known_value == 0);
  }
  assert_int_equal(not_on_chip, 2);
  rl_metric_selection named = select_without(rl_all_instruction_classes("GH100"), "full", "smsp__inst_executed_op_texture.sum");
  assert_int_equal(named.counter_count, reduced.counter_count + 1);
  rl_metric_selection_clear(&named);
  rl_metric_selection_clear(&reduced);
  rl_metric_selection_clear(&all);
}

static void test_a_metric_is_selected_once_with_its_origin(void **state) {
  (void)state;
  rl_metric_selection selection = select_metrics(
      "basic", "gpu__time_duration.sum\nlaunch__grid_dim_x\ndevice__attribute_warp_size\nsm__nothing.sum\nderived__x");
  size_t times = 0, found = 0;
  for (size_t i = 0; i < selection.count; i++) {
    const rl_selected_metric *metric = &selection.items[i];
    assert_int_equal(metric->origin == RL_ORIGIN_COUNTER && metric->skip_reason == NULL, i < selection.counter_count);
    times += strcmp(metric->name, "gpu__time_duration.sum") == 0;
    found += strcmp(metric->name, "launch__grid_dim_x") == 0 && metric->origin == RL_ORIGIN_LAUNCH;
    found += strcmp(metric->name, "device__attribute_warp_size") == 0 && metric->origin == RL_ORIGIN_DEVICE;
    found += strcmp(metric->name, "sm__nothing.sum") == 0 && metric->origin == RL_ORIGIN_COUNTER;
    found += strcmp(metric->name, "derived__x") == 0 && metric->origin == RL_ORIGIN_SASS;
    found += strcmp(metric->name, "launch__waves_per_multiprocessor") == 0 && metric->origin == RL_ORIGIN_LAUNCH;
  }
  assert_int_equal(times, 1);
  assert_int_equal(found, 5);
  rl_metric_selection_clear(&selection);
}

static void test_metrics_that_exclude_each_other_get_separate_groups(void **state) {
  (void)state;
  static const char *const list[] = {"dram__bytes.sum", "pcie__read_bytes.sum", "smsp__inst_executed.sum"};
  rl_counter_plan *plan = make_plan("GH100", list, 3);
  assert_int_equal(plan->group_count, 2);
  assert_int_equal(plan->groups[0].count, 2);
  assert_int_equal(plan->groups[0].metrics[0], 2); /* the metric that is hardest to place goes first */
  assert_int_equal(plan->groups[0].metrics[1], 0);
  assert_int_equal(plan->groups[1].count, 1);
  assert_string_equal(plan->groups[1].names[0], "pcie__read_bytes.sum");
  rl_counter_plan_close(plan);
}

static void test_links_are_collected_when_they_are_named(void **state) {
  (void)state;
  rl_metric_selection plain = select_metrics("full", ""), named = select_metrics("full", "pcie__read_bytes.sum.per_second");
  assert_int_equal(named.counter_count, plain.counter_count + 1);
  assert_int_equal(named.count, plain.count);
  size_t skipped_count = 0;
  for (size_t i = plain.counter_count; i < plain.count; i++)
    skipped_count += plain.items[i].skip_reason != NULL && strncmp(plain.items[i].name, "pcie__", 6) == 0;
  assert_true(skipped_count >= 2);
  rl_metric_selection_clear(&plain);
  rl_metric_selection_clear(&named);
}

static void test_a_plan_is_the_same_from_a_file(void **state) {
  (void)state;
  static const char *const list[] = {"dram__bytes.sum", "pcie__read_bytes.sum", "sm__nothing.sum", "smsp__inst_executed.sum"};
  char path[] = "/tmp/rooflined-plan-XXXXXX";
  rl_error err = {0};
  rl_counter_plan *saved = make_plan("GH100", list, 4), *loaded = NULL;
  close(mkstemp(path));
  assert_int_equal(rl_counter_plan_save(saved, list, "one key", path, &err), 0);
  if (rl_counter_plan_load("GH100", list, 4, "one key", path, &loaded, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(loaded->passes, saved->passes);
  assert_int_equal(loaded->group_count, saved->group_count);
  for (size_t i = 0; i < 4; i++) assert_string_equal(loaded->missing_reasons[i].text, saved->missing_reasons[i].text);
  for (size_t g = 0; g < loaded->group_count; g++) {
    assert_int_equal(loaded->groups[g].count, saved->groups[g].count);
    assert_int_equal(loaded->groups[g].passes, saved->groups[g].passes);
    assert_int_equal(loaded->groups[g].config_image_size, saved->groups[g].config_image_size);
    assert_memory_equal(loaded->groups[g].config_image, saved->groups[g].config_image, saved->groups[g].config_image_size);
    for (size_t i = 0; i < loaded->groups[g].count; i++)
      assert_string_equal(loaded->groups[g].names[i], saved->groups[g].names[i]);
  }
  rl_counter_plan_close(loaded);
  /* A file is refused if it has another key, if it was made for another list of metrics, or if it is truncated. */
  assert_int_equal(rl_counter_plan_load("GH100", list, 4, "another key", path, &loaded, &err), -1);
  assert_int_equal(rl_counter_plan_load("GH100", list, 3, "one key", path, &loaded, &err), -1);
  struct stat file;
  assert_int_equal(stat(path, &file), 0);
  for (off_t size = 0; size < file.st_size; size += 1 + file.st_size / 50) {
    assert_int_equal(truncate(path, size), 0);
    assert_int_equal(rl_counter_plan_load("GH100", list, 4, "one key", path, &loaded, &err), -1);
    assert_int_equal(rl_counter_plan_save(saved, list, "one key", path, &err), 0);
  }
  remove(path);
  rl_counter_plan_close(saved);
}

static size_t count_files(const char *path) {
  size_t count = 0;
  DIR *entries = opendir(path);
  assert_non_null(entries);
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) count += entry->d_name[0] != '.';
  closedir(entries);
  return count;
}

static rl_counter_plan *open_files(const char *const *names, size_t count) {
  rl_error err = {0};
  rl_counter_plan *plan = NULL;
  if (rl_plan_files_open("GH100", names, count, &plan, &err) != 0) fail_msg("%s", err.message);
  return plan;
}

static void assert_equal_plans(const rl_counter_plan *a, const rl_counter_plan *b) {
  assert_int_equal(a->passes, b->passes);
  assert_int_equal(a->group_count, b->group_count);
  for (size_t g = 0; g < a->group_count; g++) {
    assert_int_equal(a->groups[g].config_image_size, b->groups[g].config_image_size);
    assert_memory_equal(a->groups[g].config_image, b->groups[g].config_image, a->groups[g].config_image_size);
  }
}

/* The shipped plan has the metrics of the plan that CUPTI makes. packed_passes: if not 0, the shipped plan was packed into this
 * number of passes; otherwise it is CUPTI's plan. */
static void assert_shipped_plan(const rl_counter_plan *shipped, const rl_counter_plan *made, size_t packed_passes) {
  if (packed_passes == 0) {
    assert_equal_plans(shipped, made);
    return;
  }
  assert_int_equal(shipped->passes, packed_passes);
  assert_true(packed_passes < made->passes);
  assert_int_equal(shipped->group_count, 1);
  assert_int_equal(made->group_count, 1);
  assert_int_equal(shipped->groups[0].count, made->groups[0].count);
  for (size_t i = 0; i < made->groups[0].count; i++) assert_string_equal(shipped->groups[0].names[i], made->groups[0].names[i]);
}

/* A metric set's plan comes with the build, so the cache does not get it; the plan of another list is made once and then
 * cached. */
static void test_plans_come_from_the_build_or_the_cache(void **state) {
  (void)state;
  static const char *const list[] = {"dram__bytes.sum", "smsp__inst_executed.sum"};
  char cache[] = "/tmp/rooflined-plans-XXXXXX", command[64];
  assert_non_null(mkdtemp(cache));
  setenv("ROOFLINED_CACHE_DIR", cache, 1);
  for (rl_instruction_classes absent_classes = 0; absent_classes <= 1; absent_classes++) {
    rl_metric_selection selection = select_without(absent_classes == 0 ? 0 : rl_all_instruction_classes("GH100"), "full", "");
    const size_t count = list_counters(&selection, counter_names);
    rl_counter_plan *shipped = open_files(counter_names, count), *made = make_plan("GH100", counter_names, count);
    assert_int_equal(count_files(cache), 0);
    assert_shipped_plan(shipped, made, absent_classes == 0 ? 0 : 20);
    rl_counter_plan_close(made);
    rl_counter_plan_close(shipped);
    rl_metric_selection_clear(&selection);
  }
  rl_counter_plan *made = open_files(list, 2);
  assert_int_equal(count_files(cache), 1);
  rl_counter_plan *cached = open_files(list, 2);
  assert_int_equal(count_files(cache), 1);
  assert_equal_plans(made, cached);
  rl_counter_plan_close(made);
  rl_counter_plan_close(cached);
  unsetenv("ROOFLINED_CACHE_DIR");
  snprintf(command, sizeof command, "rm -r %s", cache);
  assert_int_equal(system(command), 0);
}

/* A plan for sampling has one group of one pass. It leaves out metrics that need another pass or that the chip does not have. */
static void test_a_plan_for_sampling_has_one_pass(void **state) {
  (void)state;
  static const char *const list[] = {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
                                     "sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__nothing.sum",
                                     "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"};
  rl_error err = {0};
  rl_counter_plan *plan = NULL;
  if (rl_counter_plan_open_for_sampling("GH100", list, 4, &plan, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(plan->group_count, 1);
  assert_int_equal(plan->passes, 1);
  assert_int_equal(plan->groups[0].count, 2);
  assert_string_equal(plan->groups[0].names[1], list[3]);
  for (size_t i = 0; i < 4; i++) assert_int_equal(plan->missing_reasons[i].text[0] == '\0', i == 0 || i == 3);
  rl_counter_plan_close(plan);
  if (rl_counter_plan_open_for_sampling("GH100", &list[2], 1, &plan, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(plan->group_count, 0);
  rl_counter_plan_close(plan);
}

static void test_an_unknown_metric_has_a_reason(void **state) {
  (void)state;
  static const char *const list[] = {"launch__registers_per_thread", "dram__bytes.sum"};
  rl_counter_plan *plan = make_plan("GH100", list, 2);
  assert_non_null(strstr(plan->missing_reasons[0].text, "GH100"));
  assert_string_equal(plan->missing_reasons[1].text, "");
  assert_int_equal(plan->group_count, 1);
  rl_counter_plan_close(plan);
}

static void test_an_unknown_chip_is_an_error(void **state) {
  (void)state;
  static const char *const list[] = {"dram__bytes.sum"};
  rl_error err = {0};
  rl_counter_plan *plan = NULL;
  assert_int_equal(rl_counter_plan_open("XX999", list, 1, &plan, &err), -1);
  assert_int_equal(err.domain, RL_CUPTI);
  assert_null(plan);
}

static void test_refusals_are_distinguished_from_errors(void **state) {
  (void)state;
  rl_error err = {0};
  assert_int_equal(rl_cupti_check(CUPTI_SUCCESS, "x", &err), 0);
  assert_int_equal(rl_cupti_check(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "start", &err), -1);
  assert_true(rl_cupti_error_means_unavailable(&err));
  assert_non_null(strstr(err.message, "NVreg_RestrictProfilingToAdminUsers"));
  assert_int_equal(rl_cupti_check(CUPTI_ERROR_INVALID_PARAMETER, "start", &err), -1);
  assert_false(rl_cupti_error_means_unavailable(&err));
}

static void test_names_are_demangled_and_kept_once(void **state) {
  (void)state;
  rl_name_table names = {0};
  rl_error err = {0};
  uint32_t index = 9, same = 9, plain = 9;
  char reused_pointer[] = "_Z3addPfi";
  assert_int_equal(rl_name_table_intern(&names, "_Z3addPfi", &index, &err), 0);
  assert_int_equal(rl_name_table_intern(&names, reused_pointer, &same, &err), 0);
  assert_int_equal(rl_name_table_intern(&names, "memset", &plain, &err), 0);
  assert_string_equal(names.items[index].demangled, "add(float*, int)");
  assert_int_equal(index, same);
  assert_string_equal(names.items[plain].demangled, "memset");
  strcpy(reused_pointer, "_Z3subPfi"); /* the same pointer, another name */
  assert_int_equal(rl_name_table_intern(&names, reused_pointer, &same, &err), 0);
  assert_string_equal(names.items[same].demangled, "sub(float*, int)");
  for (int i = 0; i < 5000; i++) { /* the table grows */
    static char many[5000][12];
    snprintf(many[i], sizeof many[i], "kernel%d", i % 1000);
    assert_int_equal(rl_name_table_intern(&names, many[i], &same, &err), 0);
    assert_string_equal(names.items[same].demangled, many[i]);
  }
  assert_int_equal(names.count, 1003);
  rl_name_table_clear(&names);
}

/* H100 and H200: an SM has 2048 threads, 65536 registers and 228 KiB of shared memory, of which 1 KiB per block is reserved. */
static const rl_device_limits hopper = {.major = 9,
                                        .minor = 0,
                                        .sm_count = 132,
                                        .warp_size = 32,
                                        .max_block_threads = 1024,
                                        .max_sm_threads = 2048,
                                        .max_block_registers = 65536,
                                        .max_sm_registers = 65536,
                                        .max_block_shared_bytes = 48 << 10,
                                        .max_block_shared_optin_bytes = 227 << 10,
                                        .reserved_block_shared_bytes = 1 << 10,
                                        .max_sm_shared_bytes = 228 << 10};

static void test_occupancy_is_limited_by_the_scarcest_resource(void **state) {
  (void)state;
  static const struct {
    uint32_t threads, registers, shared, dynamic;
    double ratio;
  } cases[] = {
      {256, 32, 0, 0, 1.0},           /* threads: 8 blocks */
      {256, 64, 0, 0, 0.5},           /* registers: 4 blocks */
      {1024, 64, 0, 0, 0.5},          /* registers: 1 block */
      {32, 16, 0, 0, 0.5},            /* blocks: 32 per SM */
      {256, 32, 0, 75 << 10, 0.375},  /* shared memory: 3 blocks of 76 KiB */
      {256, 32, 48 << 10, 0, 0.5},    /* shared memory: 4 blocks of 49 KiB */
      {128, 33, 0, 0, 12 * 4 / 64.0}, /* 40 registers per thread, allocated by 256 per warp: 12 blocks */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL,
                           .grid = {1, 1, 1},
                           .block = {cases[i].threads, 1, 1},
                           .registers = cases[i].registers,
                           .static_shared_bytes = cases[i].shared,
                           .dynamic_shared_bytes = cases[i].dynamic};
    double ratio = rl_occupancy_ratio(&hopper, &row, -1);
    if (ratio != cases[i].ratio) fail_msg("case %zu: %.4f, not %.4f", i, ratio, cases[i].ratio);
  }
}

static void test_barriers_limit_occupancy(void **state) {
  (void)state;
  static const struct {
    int barriers;
    double limit, occupancy_pct;
  } cases[] = {{-1, 32, 100},   {0, 32, 100}, {1, 32, 100}, {2, 32, 100}, /* of 64 per SM */
               {3, 21, 65.625}, {16, 4, 12.5}};
  const rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .grid = {4224, 1, 1}, .block = {64, 1, 1}, .registers = 16};
  const rl_launch_attributes attributes = {0};
  const char *reason = NULL;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_launch_metric_inputs launch = rl_launch_metric_inputs_of(&hopper, &row, &attributes, cases[i].barriers);
    assert_true(rl_launch_metric(&launch, "launch__occupancy_limit_barriers", &reason) == cases[i].limit);
    assert_true(rl_launch_metric(&launch, "sm__maximum_warps_per_active_cycle_pct", &reason) == cases[i].occupancy_pct);
    assert_true(rl_occupancy_ratio(&hopper, &row, cases[i].barriers) == cases[i].occupancy_pct / 100);
  }
}

/* ncu's values for the fused ReLU of docs/measurements: 128 threads, 16 registers, 32768 blocks. */
static void test_launch_metrics_are_as_in_ncu(void **state) {
  (void)state;
  static const struct {
    const char *metric;
    double value;
  } expected[] = {{"launch__block_size", 128},
                  {"launch__grid_size", 32768},
                  {"launch__thread_count", 4194304},
                  {"launch__registers_per_thread", 16},
                  {"launch__registers_per_thread_allocated", 16},
                  {"launch__occupancy_limit_blocks", 32},
                  {"launch__occupancy_limit_registers", 32},
                  {"launch__occupancy_limit_shared_mem", 32},
                  {"launch__occupancy_limit_warps", 16},
                  {"launch__occupancy_limit_barriers", 32},
                  {"launch__shared_mem_config_size", 32768},
                  {"launch__shared_mem_per_block_driver", 1024},
                  {"launch__shared_mem_per_block_static", 0},
                  {"launch__shared_mem_per_block_allocated", 1024},
                  {"launch__shared_mem_per_block", 1024},
                  {"launch__cluster_size", 0},
                  {"launch__cluster_max_potential_size", 8},
                  {"launch__cluster_scheduling_policy", 1},
                  {"launch__sm_count", 132},
                  {"launch__tpc_count", 66},
                  {"sm__maximum_warps_per_active_cycle_pct", 100},
                  {"smsp__maximum_warps_avg_per_active_cycle", 16},
                  {"launch__uses_green_context", 0}};
  const rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .grid = {32768, 1, 1}, .block = {128, 1, 1}, .registers = 16};
  const rl_launch_attributes attributes = {.shared_config_bytes = 32768, .cluster_policy = 1, .max_cluster_blocks = 8};
  const rl_launch_metric_inputs launch = rl_launch_metric_inputs_of(&hopper, &row, &attributes, 0);
  const char *reason = NULL;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    double value = rl_launch_metric(&launch, expected[i].metric, &reason);
    if (value != expected[i].value) fail_msg("%s is %g, not %g", expected[i].metric, value, expected[i].value);
  }
  assert_true(fabs(rl_launch_metric(&launch, "launch__waves_per_multiprocessor", &reason) - 15.52) < 0.005);
  assert_true(isnan(rl_launch_metric(&launch, "launch__no_such_thing", &reason)) && reason[0] != '\0');
}

typedef struct carveout_case {
  uint32_t shared, config; /* bytes of a block's static shared memory and of the reported carveout */
  int request_pct;         /* the function's preferred carveout; -1: none */
  double limit, warps;     /* expected number of blocks by shared memory and of resident warps */
  bool has_config;
} carveout_case;

/* A driver that chooses the carveout limits no block by it. So a carveout for fewer blocks is that of another launch, unless the
 * function asked for it. On an H200, CUPTI reported 32 KiB for a transpose with 4 KiB a block, of which 60.8 warps
 * were active. */
static void test_a_carveout_smaller_than_the_resident_blocks_belongs_to_another_launch(void **state) {
  (void)state;
  static const carveout_case cases[] = {
      {4096, 32 << 10, -1, 45, 64, false}, {4096, 40960, -1, 8, 64, true},      {4096, 40959, -1, 45, 64, false},
      {4096, 100 << 10, -1, 20, 64, true}, {0, 16 << 10, -1, 16, 64, true},     {4096, 228 << 10, 100, 45, 64, true},
      {4096, 32 << 10, 14, 6, 48, true},   {4096, 64 << 10, 14, 12, 64, true},  {4096, 16 << 10, 14, 6, 48, false},
      {86400, 135168, -1, 2, 16, false},   {86400, 200 << 10, -1, 2, 16, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const carveout_case *c = &cases[i];
    const rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL,
                                 .grid = {4096, 1, 1},
                                 .block = {256, 1, 1},
                                 .registers = 32,
                                 .static_shared_bytes = c->shared};
    const rl_launch_attributes attributes = {.shared_config_bytes = c->config,
                                             .has_carveout_request = c->request_pct >= 0,
                                             .carveout_request_pct = (uint8_t)(c->request_pct >= 0 ? c->request_pct : 0)};
    const rl_launch_metric_inputs launch = rl_launch_metric_inputs_of(&hopper, &row, &attributes, -1);
    const char *reason = NULL;
    const double limit = rl_launch_metric(&launch, "launch__occupancy_limit_shared_mem", &reason),
                 warps = rl_launch_metric(&launch, "sm__maximum_warps_avg_per_active_cycle", &reason),
                 config = rl_launch_metric(&launch, "launch__shared_mem_config_size", &reason);
    if (limit != c->limit || warps != c->warps || isnan(config) == c->has_config)
      fail_msg("case %zu: limit %g, warps %g, carveout %g", i, limit, warps, config);
  }
}

/* A block of a cuBLASLt GEMM needs 208 KiB, plus 1 KiB that the driver reserves. CUPTI may report the carveout of an earlier
 * launch. */
static void test_a_carveout_smaller_than_a_block_belongs_to_another_launch(void **state) {
  (void)state;
  static const struct {
    uint32_t config;
    double limit;
  } cases[] = {{233472, 1}, {214272, 1}, {214271, 1}, {135168, 1}, {0, 1}};
  const rl_activity_row row = {
      .kind = RL_ACTIVITY_KERNEL, .grid = {2, 64, 1}, .block = {384, 1, 1}, .registers = 168, .dynamic_shared_bytes = 213188};
  const char *reason = NULL;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_launch_attributes attributes = {.shared_config_bytes = cases[i].config};
    const rl_launch_metric_inputs launch = rl_launch_metric_inputs_of(&hopper, &row, &attributes, -1);
    assert_true(rl_launch_metric(&launch, "launch__shared_mem_per_block_allocated", &reason) == 214272);
    assert_true(rl_launch_metric(&launch, "launch__occupancy_limit_shared_mem", &reason) == cases[i].limit);
    double config = rl_launch_metric(&launch, "launch__shared_mem_config_size", &reason);
    if (cases[i].config >= 214272) assert_true(config == cases[i].config);
    else assert_true(isnan(config) && (cases[i].config == 0) == !strstr(reason, "an earlier launch"));
  }
}

/* ncu's sums for the kernels of tests/reference/ncu_2025.3_h200.cu. */
static void test_sums_over_occupancy_curves_are_as_in_ncu(void **state) {
  (void)state;
  static const struct {
    const char *metric;
    double relu, stride;
  } expected[] = {{"launch__occupancy_per_register_count", 5792, 5504},
                  {"derived__pct_occupancy_per_register_count", 8956, 8524},
                  {"launch__occupancy_per_block_size", 3670, 3670},
                  {"derived__pct_occupancy_per_block_size", 5706, 5706},
                  {"launch__occupancy_per_barrier_count", 908, 1440},
                  {"derived__pct_occupancy_per_barrier_count", 1399, 2230},
                  {"launch__occupancy_per_cluster_size", 0, 0},
                  {"launch__barrier_count", 0, 0},
                  {"launch__context_id", 1, 1},
                  {"launch__device_id", 0, 0},
                  {"launch__stream_id", 7, 7}};
  const rl_activity_row relu = {.kind = RL_ACTIVITY_KERNEL,
                                .grid = {32768, 1, 1},
                                .block = {128, 1, 1},
                                .registers = 16,
                                .context = 1,
                                .device = 1,
                                .stream = 7},
                        stride = {.kind = RL_ACTIVITY_KERNEL,
                                  .grid = {16384, 1, 1},
                                  .block = {256, 1, 1},
                                  .registers = 20,
                                  .context = 1,
                                  .device = 1,
                                  .stream = 7};
  const rl_launch_attributes attributes = {0}, clustered = {.cluster = {2, 1, 1}};
  const rl_launch_metric_inputs of_relu = rl_launch_metric_inputs_of(&hopper, &relu, &attributes, 0),
                                of_stride = rl_launch_metric_inputs_of(&hopper, &stride, &attributes, 0),
                                of_unknown = rl_launch_metric_inputs_of(&hopper, &relu, &clustered, -1);
  const char *reason = "";
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    assert_true(rl_launch_metric(&of_relu, expected[i].metric, &reason) == expected[i].relu);
    assert_true(rl_launch_metric(&of_stride, expected[i].metric, &reason) == expected[i].stride);
  }
  assert_true(isnan(rl_launch_metric(&of_unknown, "launch__occupancy_per_cluster_size", &reason)));
  assert_true(isnan(rl_launch_metric(&of_unknown, "launch__barrier_count", &reason)));
}

/* ncu's sums for kernels of the gallery (docs/measurements/h200-ncu-agreement.csv). A carveout that holds the launch's blocks can
 * hold fewer blocks of another size than the SM. */
static void test_sums_over_block_sizes_keep_the_carveout(void **state) {
  (void)state;
  static const struct {
    uint32_t threads, registers, shared_bytes, config_bytes;
    double sum;
  } cases[] = {{256, 20, 4096, 100 << 10, 3580},
               {1024, 32, 0, 8 << 10, 3282},
               {256, 16, 0, 32 << 10, 3670},
               {256, 20, 4096, 0, 3670},
               {1024, 32, 0, 1 << 10, 3670}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL,
                                 .grid = {1, 1, 1},
                                 .block = {cases[i].threads, 1, 1},
                                 .registers = cases[i].registers,
                                 .static_shared_bytes = cases[i].shared_bytes};
    const rl_launch_attributes attributes = {.shared_config_bytes = cases[i].config_bytes};
    const rl_launch_metric_inputs launch = rl_launch_metric_inputs_of(&hopper, &row, &attributes, 0);
    const char *reason = "";
    assert_true(rl_launch_metric(&launch, "launch__occupancy_per_block_size", &reason) == cases[i].sum);
  }
}

static void test_occupancy_curves_have_known_points(void **state) {
  (void)state;
  rl_records records = {0};
  rl_error err = {0};
  const rl_block_resources resources = {.threads = 256, .registers = 32};
  assert_int_equal(rl_occupancy_curves(&hopper, &resources, 7, &records, &err), 0);
  size_t found = 0;
  for (size_t i = 0; i < records.point_count; i++) {
    const rl_series_point *point = &records.points[i];
    assert_int_equal(point->ordinal, 7);
    double expected = NAN;
    if (strcmp(point->name, "occupancy_by_registers") == 0 && point->x == 64) expected = 32;
    if (strcmp(point->name, "occupancy_by_block_size") == 0 && point->x == 1024) expected = 64;
    if (strcmp(point->name, "occupancy_by_block_size") == 0 && point->x == 32) expected = 32;
    if (strcmp(point->name, "occupancy_by_shared_bytes") == 0 && point->x == 76 << 10) expected = 16;
    if (isnan(expected)) continue;
    if (point->value != expected) fail_msg("%s at %g is %g, not %g", point->name, point->x, point->value, expected);
    found++;
  }
  assert_int_equal(found, 4);
  rl_records_clear(&records);
}

static void test_a_launch_that_does_not_fit_has_no_occupancy(void **state) {
  (void)state;
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .block = {256, 1, 1}, .registers = 32, .dynamic_shared_bytes = 300 << 10};
  assert_true(isnan(rl_occupancy_ratio(&hopper, &row, -1)));
  row.dynamic_shared_bytes = 0;
  row.kind = RL_ACTIVITY_MEMCPY;
  assert_true(isnan(rl_occupancy_ratio(&hopper, &row, -1)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_hopper_has_the_metrics_of_the_sets),
      cmocka_unit_test(test_the_raw_page_needs_no_further_passes),
      cmocka_unit_test(test_a_metric_that_no_pass_can_collect_has_its_reason),
      cmocka_unit_test(test_counters_of_absent_instruction_classes_are_not_collected),
      cmocka_unit_test(test_a_metric_is_selected_once_with_its_origin),
      cmocka_unit_test(test_links_are_collected_when_they_are_named),
      cmocka_unit_test(test_a_plan_is_the_same_from_a_file),
      cmocka_unit_test(test_plans_come_from_the_build_or_the_cache),
      cmocka_unit_test(test_metrics_that_exclude_each_other_get_separate_groups),
      cmocka_unit_test(test_a_plan_for_sampling_has_one_pass),
      cmocka_unit_test(test_an_unknown_metric_has_a_reason),
      cmocka_unit_test(test_an_unknown_chip_is_an_error),
      cmocka_unit_test(test_refusals_are_distinguished_from_errors),
      cmocka_unit_test(test_names_are_demangled_and_kept_once),
      cmocka_unit_test(test_occupancy_is_limited_by_the_scarcest_resource),
      cmocka_unit_test(test_a_launch_that_does_not_fit_has_no_occupancy),
      cmocka_unit_test(test_barriers_limit_occupancy),
      cmocka_unit_test(test_launch_metrics_are_as_in_ncu),
      cmocka_unit_test(test_a_carveout_smaller_than_a_block_belongs_to_another_launch),
      cmocka_unit_test(test_a_carveout_smaller_than_the_resident_blocks_belongs_to_another_launch),
      cmocka_unit_test(test_sums_over_occupancy_curves_are_as_in_ncu),
      cmocka_unit_test(test_sums_over_block_sizes_keep_the_carveout),
      cmocka_unit_test(test_occupancy_curves_have_known_points),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
