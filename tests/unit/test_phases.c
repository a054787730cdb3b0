/* Tests that phase timestamps of a launch become timeline rows and times over all blocks. Results were calculated by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/phases.h"

enum { BASE_NS = 5000000 };
static const rl_timed_phase phases[] = {{"load", "data"}, {"multiply", "forward"}, {"wait", "backward"}};
/* [block][step]: the begin of the step, then the end of each phase. Block 1 skips "multiply". In step 0, the timestamp of that
 * phase is 0. In step 1, an earlier step left it, so it is older than the timestamp of the phase before. */
static const uint64_t boundaries[2][2][4] = {
    {{BASE_NS + 100, BASE_NS + 200, BASE_NS + 500, BASE_NS + 600},
     {BASE_NS + 600, BASE_NS + 640, BASE_NS + 1000, BASE_NS + 1100}},
    {{BASE_NS + 110, BASE_NS + 310, 0, BASE_NS + 610}, {BASE_NS + 620, BASE_NS + 720, BASE_NS + 650, BASE_NS + 1080}}};
static const rl_phase_timestamps both_blocks = {.launch = "epoch",
                                                .phases = phases,
                                                .phase_count = 3,
                                                .steps = 2,
                                                .blocks = 2,
                                                .begin_ns = BASE_NS,
                                                .end_ns = BASE_NS + 2000,
                                                .ns = boundaries[0][0],
                                                .microbatches = 5};

/* Returns a trace: two kernels of the launch "epoch" between two kernels of another launch, and a range of the same name. */
static rl_records make_trace(int64_t launch_ns) {
  rl_records records = {0};
  rl_kernel other = {.ordinal = 0, .launch = "shuffle", .name = "shuffle()"},
            epoch = {.ordinal = 1, .launch = "epoch", .name = "epoch()"};
  const rl_activity_row rows[] = {{.start_ns = 10, .end_ns = 20, .kind = RL_ACTIVITY_KERNEL, .name = 0},
                                  {.start_ns = 30, .end_ns = 40, .kind = RL_ACTIVITY_KERNEL, .name = 1},
                                  {.start_ns = 70000,
                                   .end_ns = 70000 + launch_ns,
                                   .kind = RL_ACTIVITY_KERNEL,
                                   .name = 1,
                                   .stream = 7,
                                   .correlation = 9,
                                   .graph_node = 2,
                                   .context = 3,
                                   .device = 1},
                                  {.start_ns = 70000, .end_ns = 99000, .kind = RL_ACTIVITY_NVTX_RANGE, .name = 1},
                                  {.start_ns = 90000, .end_ns = 90010, .kind = RL_ACTIVITY_KERNEL, .name = 0}};
  assert_int_equal(rl_records_add(&records, RL_RECORD_KERNEL, &other, 1, NULL), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_KERNEL, &epoch, 1, NULL), 0);
  assert_int_equal(rl_records_add_name(&records, "shuffle()", 9, NULL), 0);
  assert_int_equal(rl_records_add_name(&records, "epoch()", 7, NULL), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, sizeof rows / sizeof *rows, NULL), 0);
  return records;
}

static void mean_times_add_up_to_a_step(void **state) {
  (void)state;
  static const rl_phase_durations expected[] = {{0.11, 0.04, 0.2}, {0.165, 0, 0.36}, {0.215, 0.1, 0.36}};
  double sum = 0;
  for (size_t p = 0; p < 3; p++) {
    rl_phase_durations found = rl_phase_summarize(&both_blocks, p);
    assert_true(fabs(found.mean_us - expected[p].mean_us) < 1e-12);
    assert_true(fabs(found.min_us - expected[p].min_us) < 1e-12 && fabs(found.max_us - expected[p].max_us) < 1e-12);
    sum += found.mean_us;
  }
  assert_true(fabs(sum - (0.5 + 0.5 + 0.5 + 0.46) / 4) < 1e-12);
}

static void phase_records_belong_to_their_kernel(void **state) {
  (void)state;
  rl_records records = make_trace(2400);
  double shares = 0;
  assert_int_equal(rl_phases_add(&records, &both_blocks, NULL), 0);
  assert_int_equal(records.phase_count, 3);
  for (size_t p = 0; p < 3; p++) {
    const rl_phase *phase = &records.phases[p];
    assert_int_equal(phase->ordinal, 1), assert_int_equal(phase->position, p);
    assert_string_equal(phase->name, phases[p].name), assert_string_equal(phase->phase, phases[p].nvtx_range);
    assert_true(phase->steps == 2 && phase->blocks == 2);
    shares += phase->share_ratio;
  }
  assert_true(fabs(shares - 1) < 1e-12);
  rl_records_clear(&records);
}

/* The launch takes 2400 ns in the trace and 2000 ns by its timestamps, which are therefore placed 200 ns after its begin. */
static void phase_rows_are_centred_in_their_launch(void **state) {
  (void)state;
  static const struct {
    int64_t start_ns, end_ns;
    const char *name;
    uint32_t step;
  } expected[] = {{300, 400, "load", 1}, {400, 700, "multiply", 1},  {700, 800, "wait", 1},
                  {800, 840, "load", 2}, {840, 1200, "multiply", 2}, {1200, 1300, "wait", 2}};
  rl_records records = make_trace(2400);
  assert_int_equal(rl_phases_add(&records, &both_blocks, NULL), 0);
  assert_int_equal(records.row_count, 5 + 6);
  for (size_t i = 0; i < 6; i++) {
    const rl_activity_row *row = &records.rows[5 + i];
    assert_int_equal(row->kind, RL_ACTIVITY_PHASE);
    assert_int_equal(row->start_ns, 70000 + expected[i].start_ns), assert_int_equal(row->end_ns, 70000 + expected[i].end_ns);
    assert_string_equal(records.names[row->name], expected[i].name);
    assert_true(row->step == expected[i].step && row->stream == 7 && row->correlation == 9 && row->graph_node == 2);
    assert_true(row->context == 3 && row->device == 1 && row->thread == 0);
  }
  assert_string_equal(records.measurements[0].name, "phase_rounds");
  assert_true(records.measurements[0].value == 5);
  assert_string_equal(records.measurements[1].name, "phase_clock_error_us");
  assert_true(fabs(records.measurements[1].value - 0.2) < 1e-12);
  rl_records_clear(&records);
}

static void a_phase_that_a_block_skips_has_no_row(void **state) {
  (void)state;
  rl_phase_timestamps only_block_1 = both_blocks;
  only_block_1.blocks = only_block_1.microbatches = 1;
  only_block_1.ns = boundaries[1][0];
  rl_records records = make_trace(2000);
  assert_int_equal(rl_phases_add(&records, &only_block_1, NULL), 0);
  assert_int_equal(records.row_count, 5 + 4);
  assert_string_equal(records.names[records.rows[6].name], "wait");
  assert_int_equal(records.rows[6].start_ns, records.rows[5].end_ns);
  rl_records_clear(&records);
}

static void a_phase_that_all_blocks_skip_has_no_record(void **state) {
  (void)state;
  static const uint64_t without_multiply[1][4] = {{BASE_NS + 100, BASE_NS + 200, 0, BASE_NS + 600}};
  rl_phase_timestamps one_block = both_blocks;
  one_block.steps = one_block.blocks = one_block.microbatches = 1;
  one_block.ns = without_multiply[0];
  rl_records records = make_trace(2000);
  assert_int_equal(rl_phases_add(&records, &one_block, NULL), 0);
  assert_int_equal(records.phase_count, 2);
  assert_string_equal(records.phases[1].name, "wait");
  assert_int_equal(records.phases[1].position, 2);
  rl_records_clear(&records);
}

static void timestamps_that_cannot_be_placed_give_a_reason(void **state) {
  (void)state;
  rl_phase_timestamps other_launch = both_blocks, not_recorded = both_blocks;
  other_launch.launch = "evaluate";
  not_recorded.end_ns = not_recorded.begin_ns = 0;
  const struct {
    int64_t launch_ns;
    const rl_phase_timestamps *timestamps;
    const char *reason;
    size_t phases;
  } cases[] = {{1999, &both_blocks, "than the launch in the trace is long", 3},
               {2400, &other_launch, "does not contain the launch", 0},
               {2400, &not_recorded, "recorded no timestamps", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_records records = make_trace(cases[i].launch_ns);
    assert_int_equal(rl_phases_add(&records, cases[i].timestamps, NULL), 0);
    assert_true(records.row_count == 5 && records.name_count == 2 && records.phase_count == cases[i].phases);
    const rl_measurement *error = &records.measurements[records.measurement_count - 1];
    assert_true(strcmp(error->name, "phase_clock_error_us") == 0 && isnan(error->value));
    assert_non_null(strstr(error->reason, cases[i].reason));
    rl_records_clear(&records);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mean_times_add_up_to_a_step),
                                     cmocka_unit_test(phase_records_belong_to_their_kernel),
                                     cmocka_unit_test(phase_rows_are_centred_in_their_launch),
                                     cmocka_unit_test(a_phase_that_a_block_skips_has_no_row),
                                     cmocka_unit_test(a_phase_that_all_blocks_skip_has_no_record),
                                     cmocka_unit_test(timestamps_that_cannot_be_placed_give_a_reason)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
