/* Tests the lanes of a timeline and the statistics of a window against a direct computation over random rows. */
#include "analyze/timeline_lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/timeline_statistics.h"
#include "model/records.h"
#include "random_numbers.h" /* needs cmocka */

enum { ROWS = 4000, TRACE_NS = 1 << 20, NAMES = 5 };

static rl_error err;
#define ASSERT_OK(CALL)                          \
  do {                                           \
    if ((CALL) < 0) fail_msg("%s", err.message); \
  } while (0)

typedef struct random_row {
  rl_lane_key key;
  rl_lane_item item;
} random_row;

static random_row make_row(void) {
  static const uint32_t kinds[] = {RL_ACTIVITY_KERNEL, RL_ACTIVITY_MEMCPY, RL_ACTIVITY_MEMSET, RL_ACTIVITY_RUNTIME,
                                   RL_ACTIVITY_NVTX_RANGE};
  random_row row = {
      .key = rl_lane_key_of(kinds[random_bits() % 5], 1 + random_bits() % 2, 7 + random_bits() % 2, 100 + random_bits() % 2)};
  int64_t start_ns = (int64_t)(random_bits() % TRACE_NS), duration_ns = (int64_t)(random_bits() % 4096 >> random_bits() % 12);
  row.item = (rl_lane_item){.start_ns = start_ns,
                            .end_ns = start_ns + duration_ns,
                            .row_count = 1,
                            .busy_ns = duration_ns,
                            .longest_ns = duration_ns,
                            .name = (uint32_t)(random_bits() % NAMES)};
  return row;
}

static bool overlaps(const rl_lane_item *item, int64_t from_ns, int64_t to_ns) {
  return item->start_ns < to_ns && (item->end_ns > from_ns || item->start_ns >= from_ns);
}

static random_row rows[ROWS];
static void make_rows(void) {
  choose_test_seed();
  for (int i = 0; i < ROWS; i++) rows[i] = make_row();
}

/* --- lanes -------------------------------------------------------------------------------------------------------------- */

static void steps_cover_the_window(void **state) {
  (void)state;
  choose_test_seed();
  for (int i = 0; i < 10000; i++) {
    int64_t from_ns = (int64_t)(random_bits() >> (random_bits() % 60 + 2));
    int64_t to_ns = from_ns + 1 + (int64_t)(random_bits() >> (random_bits() % 60 + 3));
    size_t max_steps = 1 + random_bits() % RL_MAX_STEPS;
    static rl_timeline_lanes lanes;
    rl_timeline_lanes_init(&lanes, from_ns, to_ns, max_steps);
    int64_t end_ns = lanes.from_ns + (int64_t)lanes.step_count * lanes.step_ns;
    assert_true(lanes.from_ns <= from_ns && lanes.from_ns % lanes.step_ns == 0 && end_ns >= to_ns);
    assert_true(lanes.step_count <= max_steps);
    /* Half the step would need more than max_steps steps. */
    bool is_shortest =
        lanes.step_ns == 1 || (to_ns - 1) / (lanes.step_ns / 2) - from_ns / (lanes.step_ns / 2) + 2 > (int64_t)max_steps;
    assert_true(is_shortest);
  }
}

static void build_lanes(rl_timeline_lanes *lanes, int64_t from_ns, int64_t to_ns, size_t steps) {
  rl_timeline_lanes_init(lanes, from_ns, to_ns, steps);
  for (int i = 0; i < ROWS; i++)
    if (overlaps(&rows[i].item, from_ns, to_ns)) ASSERT_OK(rl_timeline_lanes_add(lanes, rows[i].key, &rows[i].item, &err));
  ASSERT_OK(rl_timeline_lanes_finish(lanes, &err));
}

/* Checks that a lane's items have the same row count and busy time as its rows in the window, and that only rows shorter than a
 * step are merged. */
static void check_row_counts_and_busy_times(const rl_timeline_lanes *lanes, const rl_timeline_lane *lane, int64_t from_ns,
                                            int64_t to_ns) {
  int64_t row_count = 0, busy_ns = 0, long_rows = 0;
  for (int i = 0; i < ROWS; i++) {
    if (rl_lane_key_compare(&rows[i].key, &lane->key) != 0 || !overlaps(&rows[i].item, from_ns, to_ns)) continue;
    row_count++, busy_ns += rows[i].item.busy_ns;
    long_rows += rows[i].item.busy_ns >= lanes->step_ns;
  }
  for (size_t i = 0; i < lane->count; i++) {
    const rl_lane_item *item = &lane->items[i];
    row_count -= item->row_count, busy_ns -= item->busy_ns;
    long_rows -= item->row_count == 1 && item->end_ns - item->start_ns >= lanes->step_ns;
    assert_true(item->row_count == 1 || item->end_ns - item->start_ns <= lanes->step_ns);
  }
  assert_int_equal(row_count, 0);
  assert_int_equal(busy_ns, 0);
  assert_int_equal(long_rows, 0);
}

/* Checks that long items of the same depth do not overlap, except at the largest depth, which holds all deeper items. */
static void check_depths(const rl_timeline_lanes *lanes, const rl_timeline_lane *lane) {
  for (size_t i = 0; i < lane->count; i++) {
    const rl_lane_item *item = &lane->items[i];
    assert_true(item->depth < lane->depth_count);
    if (item->end_ns - item->start_ns < lanes->step_ns || item->depth == RL_MAX_LANE_DEPTH - 1) continue;
    for (size_t j = i + 1; j < lane->count && lane->items[j].start_ns < item->end_ns; j++)
      assert_true(lane->items[j].depth != item->depth);
  }
}

static void lanes_keep_every_row(void **state) {
  (void)state;
  static rl_timeline_lanes lanes;
  make_rows();
  for (int i = 0; i < 50; i++) {
    int64_t from_ns = i == 0 ? 0 : (int64_t)(random_bits() % TRACE_NS);
    int64_t to_ns = i == 0 ? 2 * TRACE_NS : from_ns + 1 + (int64_t)(random_bits() % TRACE_NS >> random_bits() % 18);
    build_lanes(&lanes, from_ns, to_ns, 1 + random_bits() % 2000);
    for (size_t lane = 0; lane < lanes.count; lane++) {
      check_row_counts_and_busy_times(&lanes, &lanes.lanes[lane], from_ns, to_ns);
      bool is_thread_lane = lanes.lanes[lane].key.thread != 0; /* rows of a thread nest */
      if (is_thread_lane) check_depths(&lanes, &lanes.lanes[lane]);
      else assert_int_equal(lanes.lanes[lane].depth_count, 1);
    }
    rl_timeline_lanes_clear(&lanes);
  }
}

static void lanes_are_in_order(void **state) {
  (void)state;
  static rl_timeline_lanes lanes;
  make_rows();
  build_lanes(&lanes, 0, 2 * TRACE_NS, 100);
  assert_int_equal(lanes.count,
                   2 * 2 + 4 * 2); /* ranges and calls of 2 threads; kernels and copies of 2 streams on each of 2 devices */
  assert_int_equal(lanes.lanes[0].key.kind, RL_LANE_RANGES);
  assert_int_equal(lanes.lanes[1].key.kind, RL_LANE_CALLS);
  assert_int_equal(lanes.lanes[1].key.thread, 100);
  assert_int_equal(lanes.lanes[2].key.thread, 101);
  assert_int_equal(lanes.lanes[5].key.kind, RL_LANE_COPIES);
  assert_int_equal(lanes.lanes[5].key.stream, 7);
  assert_int_equal(lanes.lanes[11].key.device, 2);
  assert_false(lanes.truncated);
  rl_timeline_lanes_clear(&lanes);
}

/* Adds rows of more streams than RL_MAX_LANES and more overlapping long rows than RL_MAX_LONG_ITEMS: the lanes are marked as
 * truncated, and the lane of the long rows still counts every row. */
static void lanes_are_bounded(void **state) {
  (void)state;
  static rl_timeline_lanes lanes;
  rl_timeline_lanes_init(&lanes, 0, TRACE_NS, 100);
  for (uint32_t i = 0; i < 300000; i++) {
    const rl_lane_item item = {.start_ns = i, .end_ns = TRACE_NS, .row_count = 1, .busy_ns = TRACE_NS - i};
    ASSERT_OK(rl_timeline_lanes_add(&lanes, rl_lane_key_of(RL_ACTIVITY_RUNTIME, 0, 0, 1), &item, &err));
    if (i < 100) ASSERT_OK(rl_timeline_lanes_add(&lanes, rl_lane_key_of(RL_ACTIVITY_KERNEL, 0, i + 1, 0), &item, &err));
  }
  ASSERT_OK(rl_timeline_lanes_finish(&lanes, &err));
  assert_true(lanes.truncated);
  assert_int_equal(lanes.count, RL_MAX_LANES);
  assert_int_equal(lanes.lanes[0].depth_count, RL_MAX_LANE_DEPTH);
  assert_in_range(lanes.lanes[0].count, 1, RL_MAX_LONG_ITEMS + 100);
  int64_t row_count = 0;
  for (size_t i = 0; i < lanes.lanes[0].count; i++) row_count += lanes.lanes[0].items[i].row_count;
  assert_int_equal(row_count, 300000);
  rl_timeline_lanes_clear(&lanes);
}

/* --- statistics --------------------------------------------------------------------------------------------------------- */

/* Returns the number of ns in which at least one row of the lane runs. */
static int64_t count_busy_ns(const rl_lane_key *key, int64_t from_ns, int64_t to_ns) {
  static char busy[2 * TRACE_NS];
  int64_t count = 0;
  memset(busy, 0, sizeof busy);
  for (int i = 0; i < ROWS; i++)
    if (rl_lane_key_compare(&rows[i].key, key) == 0)
      memset(busy + rows[i].item.start_ns, 1, (size_t)(rows[i].item.end_ns - rows[i].item.start_ns));
  for (int64_t ns = from_ns; ns < to_ns; ns++) count += busy[ns];
  return count;
}

static void statistics_equal_those_of_a_full_scan(void **state) {
  (void)state;
  make_rows();
  for (int i = 0; i < 5; i++) {
    rl_timeline_statistics statistics = {.from_ns = i == 0 ? 0 : (int64_t)(random_bits() % TRACE_NS)};
    statistics.to_ns = i == 0 ? 2 * TRACE_NS : statistics.from_ns + 1 + (int64_t)(random_bits() % TRACE_NS);
    for (int row = 0; row < ROWS; row++)
      if (overlaps(&rows[row].item, statistics.from_ns, statistics.to_ns))
        ASSERT_OK(rl_timeline_statistics_add(&statistics, rows[row].key, rows[row].item.start_ns, rows[row].item.end_ns,
                                             rows[row].item.name, &err));
    rl_timeline_statistics_finish(&statistics);
    int64_t row_count = 0;
    for (size_t lane = 0; lane < statistics.lane_count; lane++) {
      row_count += statistics.lanes[lane].row_count;
      assert_int_equal(statistics.lanes[lane].busy_ns,
                       count_busy_ns(&statistics.lanes[lane].key, statistics.from_ns, statistics.to_ns));
    }
    for (size_t name = 0; name < statistics.name_count; name++) {
      row_count -= statistics.names[name].row_count;
      if (name > 0) assert_true(statistics.names[name].total_ns <= statistics.names[name - 1].total_ns);
    }
    assert_int_equal(row_count, 0);
    rl_timeline_statistics_clear(&statistics);
  }
}

static void totals_count_only_the_time_inside_the_window(void **state) {
  (void)state;
  rl_timeline_statistics statistics = {.from_ns = 100, .to_ns = 200};
  const rl_lane_key key = rl_lane_key_of(RL_ACTIVITY_KERNEL, 1, 7, 0);
  ASSERT_OK(rl_timeline_statistics_add(&statistics, key, 0, 120, 3, &err));
  ASSERT_OK(rl_timeline_statistics_add(&statistics, key, 110, 150, 3, &err));
  ASSERT_OK(rl_timeline_statistics_add(&statistics, key, 190, 500, 4, &err));
  rl_timeline_statistics_finish(&statistics);
  assert_int_equal(statistics.lanes[0].busy_ns, 60);
  assert_int_equal(statistics.name_count, 2);
  assert_int_equal(statistics.names[0].name, 3);
  assert_int_equal(statistics.names[0].total_ns, 60);
  assert_int_equal(statistics.names[0].longest_ns, 40);
  assert_int_equal(statistics.names[1].total_ns, 10);
  rl_timeline_statistics_clear(&statistics);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps_cover_the_window),
                                     cmocka_unit_test(lanes_keep_every_row),
                                     cmocka_unit_test(lanes_are_in_order),
                                     cmocka_unit_test(lanes_are_bounded),
                                     cmocka_unit_test(statistics_equal_those_of_a_full_scan),
                                     cmocka_unit_test(totals_count_only_the_time_inside_the_window)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
