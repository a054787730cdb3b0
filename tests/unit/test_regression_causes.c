/* Tests the causes of a difference between two runs: the class of each known change, and of a change just below its threshold.
 * The causes must add up to the difference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/regression_causes.h"
#include "random_numbers.h"

static rl_regression_kernel make_kernel(const char *launch, double total_us, const char *code) {
  return (rl_regression_kernel){.launch = launch,
                                .phase = "forward",
                                .name = "kernel_f",
                                .launches = 100,
                                .total_us = total_us,
                                .code_sha256 = code,
                                .registers_per_thread = 64,
                                .static_shared_bytes = 0,
                                .dynamic_shared_bytes = 0,
                                .theoretical_occupancy_ratio = 0.5,
                                .grid = {128, 1, 1},
                                .block = {256, 1, 1}};
}

static rl_regression_run make_run(const rl_regression_kernel *kernels, size_t count) {
  return (rl_regression_run){.kernels = kernels,
                             .kernel_count = count,
                             .total_us = NAN,
                             .sm_clock_mhz = 1980,
                             .memory_clock_mhz = 3201,
                             .power_w = 400,
                             .throttle_reasons = "",
                             .device_uuid = "GPU-1",
                             .driver = "580",
                             .libraries = "cuDNN 9.14.0",
                             .engine = "cudnn",
                             .params = "{}",
                             .worker_commit = "aaaa"};
}

/* Returns the causes, after checking that they add up, are sorted by size with noise last, and have a text. */
static rl_regression_causes find_causes(const rl_regression_run *baseline, const rl_regression_run *current) {
  rl_regression_causes causes = {0};
  assert_int_equal(rl_regression_causes_find(baseline, current, &causes, NULL), 0);
  double sum = 0;
  for (size_t i = 0; i < causes.count; i++) {
    sum += causes.items[i].difference_us;
    if (i > 0 && (causes.items[i].class_ == RL_REGRESSION_NOISE) == (causes.items[i - 1].class_ == RL_REGRESSION_NOISE))
      assert_true(fabs(causes.items[i].difference_us) <= fabs(causes.items[i - 1].difference_us));
    if (i > 0 && causes.items[i - 1].class_ == RL_REGRESSION_NOISE) assert_int_equal(causes.items[i].class_, RL_REGRESSION_NOISE);
    const char *text = causes.items[i].text;
    assert_true(*text != '\0' && text[strlen(text) - 1] == '.');
  }
  assert_true(fabs(sum - causes.difference_us) <= 1e-6);
  return causes;
}

static bool has_evidence(const rl_regression_cause *cause, const char *property, const char *baseline, const char *current) {
  for (size_t i = 0; i < cause->evidence_count; i++)
    if (strcmp(cause->evidence[i].property, property) == 0)
      return strcmp(cause->evidence[i].baseline, baseline) == 0 && strcmp(cause->evidence[i].current, current) == 0;
  return false;
}

static void assert_class(const rl_regression_cause *cause, rl_regression_cause_class class_) {
  if (cause->class_ != class_)
    fail_msg("%s is not %s: %s", rl_regression_cause_class_name(cause->class_), rl_regression_cause_class_name(class_),
             cause->text);
}

/* A change of the current run or its kernel, and the class that the largest cause must have. The kernel takes 10000 us in the
 * baseline and 11000 us now, unless total_us is set. */
typedef struct change {
  const char *change_name;
  rl_regression_cause_class class_;
  const char *property; /* must be in the evidence of the cause; NULL: none */
  const char *code;     /* "": unknown in both runs */
  const char *posted_sha256, *worker_commit, *driver, *libraries, *params, *device_uuid, *throttle_reasons;
  double sm_clock_mhz, memory_clock_mhz, registers, dynamic_shared_bytes;
  int64_t grid, launches;
  double total_us;
} change;

static const change changes[] = {
    {"other machine code", RL_REGRESSION_CODE, "code_sha256", .code = "c2", .worker_commit = "bbbb"},
    {"other machine code, same commit", RL_REGRESSION_CODE, "code_sha256", .code = "c2"},
    {"other posted code", RL_REGRESSION_CODE, "code_sha256", .code = "c2", .posted_sha256 = "p2"},
    {"other posted code, machine code unknown", RL_REGRESSION_CODE, "posted_sha256", .code = "", .posted_sha256 = "p2"},
    {"other posted code, same machine code", RL_REGRESSION_NOISE, NULL, .posted_sha256 = "p2"},
    {"machine code unknown", RL_REGRESSION_NOISE, NULL, .code = ""},
    {"another build, same machine code", RL_REGRESSION_HARNESS, "worker_commit", .worker_commit = "bbbb"},
    {"another library and machine code, same build", RL_REGRESSION_CONFIGURATION, "libraries", .code = "c2",
     .libraries = "cuDNN 9.19.0"},
    {"another library, build and machine code", RL_REGRESSION_CODE, "worker_commit", .code = "c2", .libraries = "cuDNN 9.19.0",
     .worker_commit = "bbbb"},
    {"lower occupancy by shared memory", RL_REGRESSION_CONFIGURATION, "dynamic_shared_bytes", .dynamic_shared_bytes = 65536,
     .worker_commit = "bbbb"},
    {"another grid", RL_REGRESSION_CONFIGURATION, "grid", .grid = 64},
    {"more launches", RL_REGRESSION_CONFIGURATION, "launches", .launches = 110},
    {"other inputs", RL_REGRESSION_CONFIGURATION, "params", .params = "{\"batch_size\":128}"},
    {"another driver", RL_REGRESSION_CONFIGURATION, "driver", .driver = "590"},
    {"a lower SM clock", RL_REGRESSION_DEVICE, "sm_clock_mhz", .sm_clock_mhz = 1800},
    {"a lower memory clock", RL_REGRESSION_DEVICE, "memory_clock_mhz", .memory_clock_mhz = 2600},
    {"another device", RL_REGRESSION_DEVICE, "device_uuid", .device_uuid = "GPU-2", .worker_commit = "bbbb"},
    {"power capped", RL_REGRESSION_DEVICE, "throttle_reasons", .throttle_reasons = "sw_power_cap"},
    {"an SM clock 0.9 % lower", RL_REGRESSION_NOISE, NULL, .sm_clock_mhz = 1963},
    {"a higher SM clock", RL_REGRESSION_NOISE, NULL, .sm_clock_mhz = 2100},
    {"nothing", RL_REGRESSION_NOISE, NULL},
    {"another build, 0.9 % more", RL_REGRESSION_NOISE, NULL, .worker_commit = "bbbb", .total_us = 10090},
    {"another build, 1.1 % more", RL_REGRESSION_HARNESS, "worker_commit", .worker_commit = "bbbb", .total_us = 10110}};

static void each_class_follows_from_what_differs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    const change *changed = &changes[i];
    rl_regression_kernel before = make_kernel("conv2", 10000, "c1"), now = before;
    now.total_us = changed->total_us > 0 ? changed->total_us : 11000;
    if (changed->code) now.code_sha256 = changed->code;
    if (changed->code && *changed->code == '\0') before.code_sha256 = changed->code;
    if (changed->dynamic_shared_bytes > 0) now.dynamic_shared_bytes = changed->dynamic_shared_bytes;
    if (changed->grid) now.grid[0] = changed->grid;
    if (changed->launches) now.launches = changed->launches;
    rl_regression_run baseline = make_run(&before, 1), current = make_run(&now, 1);
    if (changed->worker_commit) current.worker_commit = changed->worker_commit;
    if (changed->posted_sha256) baseline.posted_sha256 = "p1", current.posted_sha256 = changed->posted_sha256;
    if (changed->driver) current.driver = changed->driver;
    if (changed->libraries) current.libraries = changed->libraries;
    if (changed->params) current.params = changed->params;
    if (changed->device_uuid) current.device_uuid = changed->device_uuid;
    if (changed->throttle_reasons) current.throttle_reasons = changed->throttle_reasons;
    if (changed->sm_clock_mhz > 0) current.sm_clock_mhz = changed->sm_clock_mhz;
    if (changed->memory_clock_mhz > 0) current.memory_clock_mhz = changed->memory_clock_mhz;
    rl_regression_causes causes = find_causes(&baseline, &current);
    print_message("%s: %s\n", changed->change_name, causes.items[0].text);
    assert_true(causes.count >= 1);
    assert_class(&causes.items[0], changed->class_);
    bool found = changed->property == NULL;
    for (size_t k = 0; k < causes.items[0].evidence_count; k++)
      found = found || strcmp(causes.items[0].evidence[k].property, changed->property) == 0;
    if (!found) fail_msg("%s: no evidence %s", changed->change_name, changed->property);
    rl_regression_causes_clear(&causes);
  }
}

/* If machine code, launch and inputs are equal, the cause is never RL_REGRESSION_CODE, whatever else differs. */
static void equal_kernels_never_have_the_cause_code(void **state) {
  (void)state;
  choose_test_seed();
  static const char *const commits[] = {"aaaa", "bbbb", NULL}, *const drivers[] = {"580", "590", NULL};
  for (int trial = 0; trial < 500; trial++) {
    rl_regression_kernel before[3], now[3];
    for (int i = 0; i < 3; i++) {
      before[i] = now[i] = make_kernel(i == 0 ? "a" : i == 1 ? "b" : "c", 1000 * (2 + random_value()), "c1");
      now[i].total_us *= 1 + 0.3 * random_value();
    }
    rl_regression_run baseline = make_run(before, 3), current = make_run(now, 3);
    baseline.total_us = 10000, current.total_us = 10000 + 1000 * random_value();
    current.worker_commit = commits[random_bits() % 3], current.driver = drivers[random_bits() % 3];
    current.sm_clock_mhz = 1900 + 100 * random_value();
    rl_regression_causes causes = find_causes(&baseline, &current);
    for (size_t i = 0; i < causes.count; i++) assert_int_not_equal(causes.items[i].class_, RL_REGRESSION_CODE);
    rl_regression_causes_clear(&causes);
  }
}

static void a_clock_explains_its_part_of_a_difference(void **state) {
  (void)state;
  rl_regression_kernel before[] = {make_kernel("a", 9000, "c1"), make_kernel("b", 4500, "d1")}, now[] = {before[0], before[1]};
  now[0].total_us = 10000 + 3000, now[0].code_sha256 = "c2"; /* of 4000 us more, the clock causes 1000 us */
  now[1].total_us = 5000;
  rl_regression_run baseline = make_run(before, 2), current = make_run(now, 2);
  current.sm_clock_mhz = 1782; /* 0.9 of 1980 MHz: kernels take 11 % longer */
  current.power_w = 650;
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 2);
  assert_class(&causes.items[0], RL_REGRESSION_CODE), assert_class(&causes.items[1], RL_REGRESSION_DEVICE);
  assert_true(fabs(causes.items[0].difference_us - 3000) < 1e-6 && fabs(causes.items[1].difference_us - 1500) < 1e-6);
  assert_true(fabs(causes.items[0].share_ratio - 3000.0 / 4500) < 1e-9);
  assert_true(has_evidence(&causes.items[1], "sm_clock_mhz", "1980", "1782"));
  assert_true(has_evidence(&causes.items[1], "power_w", "400", "650"));
  rl_regression_causes_clear(&causes);
}

static void kernels_of_only_one_run_and_time_between_kernels_are_causes(void **state) {
  (void)state;
  rl_regression_kernel before[] = {make_kernel("a", 5000, "c1"), make_kernel("relu", 700, "d1")},
                       now[] = {make_kernel("a", 5000, "c1"), make_kernel("softmax", 1500, "e1")};
  before[1].name = "relu_f", now[1].name = "softmax_f";
  rl_regression_run baseline = make_run(before, 2), current = make_run(now, 2);
  baseline.total_us = 6000, current.total_us = 7200;
  current.worker_commit = "bbbb";
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 3);
  assert_string_equal(causes.items[0].subject, "softmax"), assert_true(causes.items[0].difference_us == 1500);
  assert_string_equal(causes.items[1].subject, "relu"), assert_true(causes.items[1].difference_us == -700);
  assert_class(&causes.items[0], RL_REGRESSION_CODE);
  assert_class(&causes.items[2], RL_REGRESSION_HARNESS), assert_true(fabs(causes.items[2].difference_us - 400) < 1e-9);
  assert_non_null(strstr(causes.items[2].text, "attributed to a kernel"));
  rl_regression_causes_clear(&causes);
  current.worker_commit = "aaaa", current.libraries = "cuDNN 9.19.0"; /* the library chose another algorithm */
  causes = find_causes(&baseline, &current);
  assert_class(&causes.items[0], RL_REGRESSION_CONFIGURATION), assert_class(&causes.items[2], RL_REGRESSION_NOISE);
  rl_regression_causes_clear(&causes);
}

/* First, the metric is kernel time, 20 % shorter than the kernels in the traces: their difference explains all of it. Then, the
 * metric is an epoch, which has 300 us between kernels in the baseline and 900 us in the current run. */
static void a_metric_of_kernels_has_no_time_between_them(void **state) {
  (void)state;
  rl_regression_kernel before[] = {make_kernel("a", 5000, "c1"), make_kernel("b", 5000, "d1")},
                       now[] = {make_kernel("a", 6000, "c2"), make_kernel("b", 5000, "d1")};
  rl_regression_run baseline = make_run(before, 2), current = make_run(now, 2);
  baseline.total_us = 8000, current.total_us = 8800;
  baseline.is_kernel_time = current.is_kernel_time = true;
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 1);
  assert_class(&causes.items[0], RL_REGRESSION_CODE);
  assert_true(fabs(causes.items[0].difference_us - 800) < 1e-6 && fabs(causes.items[0].share_ratio - 1) < 1e-9);
  rl_regression_causes_clear(&causes);
  baseline.is_kernel_time = current.is_kernel_time = false; /* an epoch: the time between kernels is a cause */
  baseline.total_us = 10300, current.total_us = 11900;
  causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 2);
  assert_true(causes.items[0].difference_us == 1000 && fabs(causes.items[1].difference_us - 600) < 1e-9);
  rl_regression_causes_clear(&causes);
}

/* Up to 1 % of 10000 us between kernels is noise, even if the build differs. */
static void one_percent_of_time_between_kernels_is_noise(void **state) {
  (void)state;
  rl_regression_kernel before = make_kernel("a", 9000, "c1"), now = make_kernel("a", 9900, "c2");
  rl_regression_run baseline = make_run(&before, 1), current = make_run(&now, 1);
  baseline.total_us = 10000, current.worker_commit = "bbbb";
  for (int i = 0; i < 2; i++) {
    current.total_us = i == 0 ? 10990 : 11010;
    rl_regression_causes causes = find_causes(&baseline, &current);
    assert_int_equal(causes.count, 2);
    assert_class(&causes.items[1], i == 0 ? RL_REGRESSION_NOISE : RL_REGRESSION_HARNESS);
    rl_regression_causes_clear(&causes);
  }
}

static void counted_metrics_are_evidence(void **state) {
  (void)state;
  static const rl_metric_value counted[2][4] = {
      {{"dram__bytes.sum", 1e6, NULL},
       {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", 1.0, NULL},
       {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 2.0, NULL},
       {"smsp__inst_executed.sum", 5e5, NULL}},
      {{"dram__bytes.sum", 1.001e6, NULL},
       {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", 1.5, NULL},
       {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 6.0, NULL},
       {"smsp__inst_executed.sum", 6e5, NULL}}};
  rl_regression_kernel before = make_kernel("a", 5000, "c1"), now = make_kernel("a", 6000, "c2");
  before.metrics = (rl_metric_values){counted[0], 4}, now.metrics = (rl_metric_values){counted[1], 4};
  now.registers_per_thread = 96, now.theoretical_occupancy_ratio = 0.25;
  rl_regression_run baseline = make_run(&before, 1), current = make_run(&now, 1);
  rl_regression_causes causes = find_causes(&baseline, &current);
  const rl_regression_cause *cause = &causes.items[0];
  assert_true(has_evidence(cause, "smsp__inst_executed.sum", "500000", "600000"));
  assert_true(has_evidence(cause, "registers_per_thread", "64", "96"));
  assert_true(has_evidence(cause, "theoretical_occupancy_ratio", "0.5", "0.25"));
  assert_true(has_evidence(cause, "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "2", "6"));
  assert_false(has_evidence(cause, "dram__bytes.sum", "1e+06", "1.001e+06"));
  assert_int_equal(cause->evidence_count, 5);
  rl_regression_causes_clear(&causes);
}

/* On a CPU, machine code is unknown. The build decides. */
static void the_build_decides_if_machine_code_is_unknown(void **state) {
  (void)state;
  rl_regression_kernel before = make_kernel("conv2", 5000, NULL), now = make_kernel("conv2", 6000, "");
  rl_regression_run baseline = make_run(&before, 1), current = make_run(&now, 1);
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_class(&causes.items[0], RL_REGRESSION_NOISE);
  assert_null(strstr(causes.items[0].text, "machine code"));
  rl_regression_causes_clear(&causes);
  current.worker_commit = "bbbb";
  causes = find_causes(&baseline, &current);
  assert_class(&causes.items[0], RL_REGRESSION_CODE);
  assert_non_null(strstr(causes.items[0].text, "machine code is unknown"));
  rl_regression_causes_clear(&causes);
}

static void small_differences_of_equal_kernels_are_one_entry(void **state) {
  (void)state;
  enum { KERNELS = 40 };
  rl_regression_kernel before[KERNELS], now[KERNELS];
  char names[KERNELS][16];
  for (int i = 0; i < KERNELS; i++) {
    snprintf(names[i], sizeof names[i], "launch %d", i);
    before[i] = now[i] = make_kernel(names[i], 1000, "c1");
    now[i].total_us += i % 2 ? 4 : -2;
  }
  now[7].total_us = 3000, now[7].code_sha256 = "c2";
  rl_regression_run baseline = make_run(before, KERNELS), current = make_run(now, KERNELS);
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 2);
  assert_string_equal(causes.items[0].subject, "launch 7");
  assert_class(&causes.items[1], RL_REGRESSION_NOISE);
  assert_non_null(strstr(causes.items[1].text, "39 small differences"));
  rl_regression_causes_clear(&causes);
}

static void kernels_are_paired_by_launch_and_order(void **state) {
  (void)state;
  rl_regression_kernel before[] = {make_kernel("conv2", 100, "c1"), make_kernel("conv2", 200, "c1"), make_kernel("fc", 50, "f1")},
                       now[] = {make_kernel("fc", 80, "f2"), make_kernel("conv2", 100, "c1"), make_kernel("conv2", 290, "c3")};
  now[0].name = "renamed_f";
  rl_regression_run baseline = make_run(before, 3), current = make_run(now, 3);
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 2);
  assert_true(causes.items[0].difference_us == 90 && causes.items[1].difference_us == 30);
  assert_true(has_evidence(&causes.items[1], "kernel", "kernel_f", "renamed_f"));
  rl_regression_causes_clear(&causes);
}

/* Streams change the order of two executions of one kernel. Without equal grids, the order decides. */
static void executions_of_a_launch_are_paired_by_grid(void **state) {
  (void)state;
  rl_regression_kernel before[] = {make_kernel("conv2", 100, "c1"), make_kernel("conv2", 200, "c1")},
                       now[] = {make_kernel("conv2", 290, "c1"), make_kernel("conv2", 100, "c1")};
  before[1].grid[0] = now[0].grid[0] = 36;
  rl_regression_run baseline = make_run(before, 2), current = make_run(now, 2);
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 1);
  assert_true(causes.items[0].difference_us == 90);
  rl_regression_causes_clear(&causes);
  before[1].grid[0] = 35;
  now[1].grid[0] = 34;
  causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 2);
  assert_true(causes.items[0].difference_us == 190 && causes.items[1].difference_us == -100);
  rl_regression_causes_clear(&causes);
}

/* Workers of an older build have one row for two executions, newer ones have a row for each grid. The sum of a worker of an older
 * build is not distinguishable from executions with one grid, so no text says that the launch is equal. */
static void executions_are_merged_if_the_other_build_may_have_their_sum(void **state) {
  (void)state;
  rl_regression_kernel whole[] = {make_kernel("fc", 50, "f1"), make_kernel("conv2", 300, "c1")},
                       split[] = {make_kernel("fc", 50, "f1"), make_kernel("conv2", 100, "c1"), make_kernel("conv2", 240, "c1")};
  split[2].grid[0] = 36, split[2].theoretical_occupancy_ratio = 0.25;
  whole[1].launches = split[1].launches + split[2].launches;
  for (int reversed = 0; reversed < 2; reversed++)
    for (int is_noise = 0; is_noise < 2; is_noise++) {
      rl_regression_run runs[] = {make_run(whole, 2), make_run(split, 3)};
      runs[reversed].worker_commit = "bbbb";
      split[2].total_us = is_noise ? 201 : 240;
      rl_regression_causes causes = find_causes(&runs[reversed], &runs[1 - reversed]);
      assert_int_equal(causes.count, 1);
      const rl_regression_cause *cause = &causes.items[0];
      assert_class(cause, is_noise ? RL_REGRESSION_NOISE : RL_REGRESSION_HARNESS);
      assert_string_equal(cause->subject, "conv2");
      assert_true(cause->difference_us == (reversed ? -1 : 1) * (is_noise ? 1 : 40));
      assert_null(strstr(cause->text, "executes it"));
      assert_null(strstr(cause->text, "launch and inputs"));
      assert_non_null(strstr(cause->text, "the launch may differ."));
      assert_int_equal(cause->evidence_count, is_noise ? 0 : 1); /* the builds */
      rl_regression_causes_clear(&causes);
    }
}

/* Workers of one build count alike, so the launches differ. The other pair has one execution more: the rows are not the parts of
 * a sum. */
static void executions_are_not_merged_without_the_same_count_and_another_build(void **state) {
  (void)state;
  rl_regression_kernel whole[] = {make_kernel("conv2", 300, "c1")},
                       split[] = {make_kernel("conv2", 100, "c1"), make_kernel("conv2", 240, "c1")};
  split[1].grid[0] = 36;
  for (int test = 0; test < 4; test++) {
    bool has_another_build = test / 2;
    int reversed = test % 2;
    rl_regression_run runs[] = {make_run(whole, 1), make_run(split, 2)};
    whole[0].launches = split[0].launches + split[1].launches + has_another_build;
    if (has_another_build) runs[1].worker_commit = "bbbb";
    rl_regression_causes causes = find_causes(&runs[reversed], &runs[1 - reversed]);
    assert_int_equal(causes.count, 2);
    for (size_t i = 0; i < causes.count; i++) {
      bool is_pair = strstr(causes.items[i].text, "executes it") == NULL;
      if (is_pair || !has_another_build) assert_class(&causes.items[i], RL_REGRESSION_CONFIGURATION);
      if (is_pair) assert_non_null(strstr(causes.items[i].text, "launch differs"));
      assert_null(strstr(causes.items[i].text, "may differ"));
    }
    rl_regression_causes_clear(&causes);
  }
}

static void equal_runs_have_no_cause_and_unknown_times_are_refused(void **state) {
  (void)state;
  rl_regression_kernel kernel = make_kernel("a", 100, "c1");
  rl_regression_run run = make_run(&kernel, 1), empty = make_run(NULL, 0);
  rl_regression_causes causes = find_causes(&run, &run);
  assert_int_equal(causes.count, 0);
  rl_regression_causes_clear(&causes);
  causes = find_causes(&empty, &empty);
  assert_int_equal(causes.count, 0);
  rl_regression_causes_clear(&causes);
  rl_error err = {0};
  kernel.total_us = NAN;
  assert_int_equal(rl_regression_causes_find(&run, &empty, &causes, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
}

/* Another process takes time from every kernel: neither the changed kernel nor the time between kernels is the cause. */
static void other_processes_on_the_device_are_the_cause(void **state) {
  (void)state;
  const rl_regression_kernel before[] = {make_kernel("a", 1000, "code1"), make_kernel("b", 1000, "code2"),
                                         make_kernel("c", 1000, "x")},
                             now[] = {make_kernel("a", 1500, "code1"), make_kernel("b", 1600, "other"),
                                      make_kernel("c", 1001, "x")};
  rl_regression_run baseline = make_run(before, 3), current = make_run(now, 3);
  baseline.total_us = 4000, current.total_us = 6000;
  current.other_processes = "pid 4711 (1200 MiB)";
  rl_regression_causes causes = find_causes(&baseline, &current);
  assert_int_equal(causes.count, 4);
  for (size_t i = 0; i < 3; i++) {
    assert_class(&causes.items[i], RL_REGRESSION_DEVICE);
    assert_true(has_evidence(&causes.items[i], "other_processes", "none", "pid 4711 (1200 MiB)"));
    assert_non_null(strstr(causes.items[i].text, "Other processes used the device"));
  }
  assert_true(has_evidence(&causes.items[1], "code_sha256", "code2", "other"));
  assert_class(&causes.items[3], RL_REGRESSION_NOISE);
  rl_regression_causes_clear(&causes);

  baseline.other_processes = "pid 4711 (1200 MiB)"; /* the process took time from both runs */
  causes = find_causes(&baseline, &current);
  assert_class(&causes.items[0], RL_REGRESSION_CODE);
  rl_regression_causes_clear(&causes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_class_follows_from_what_differs),
                                     cmocka_unit_test(equal_kernels_never_have_the_cause_code),
                                     cmocka_unit_test(a_clock_explains_its_part_of_a_difference),
                                     cmocka_unit_test(kernels_of_only_one_run_and_time_between_kernels_are_causes),
                                     cmocka_unit_test(a_metric_of_kernels_has_no_time_between_them),
                                     cmocka_unit_test(one_percent_of_time_between_kernels_is_noise),
                                     cmocka_unit_test(counted_metrics_are_evidence),
                                     cmocka_unit_test(the_build_decides_if_machine_code_is_unknown),
                                     cmocka_unit_test(small_differences_of_equal_kernels_are_one_entry),
                                     cmocka_unit_test(kernels_are_paired_by_launch_and_order),
                                     cmocka_unit_test(executions_of_a_launch_are_paired_by_grid),
                                     cmocka_unit_test(executions_are_merged_if_the_other_build_may_have_their_sum),
                                     cmocka_unit_test(executions_are_not_merged_without_the_same_count_and_another_build),
                                     cmocka_unit_test(equal_runs_have_no_cause_and_unknown_times_are_refused),
                                     cmocka_unit_test(other_processes_on_the_device_are_the_cause)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
