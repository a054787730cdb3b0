/* Searches for change points in histories whose levels are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/change_points.h"
#include "random_numbers.h"

enum { MAX_VALUES = 260, MAX_POINTS = 16 };

static size_t find_change_points(const double *values, size_t count, rl_change_point *points) {
  size_t found = 99;
  assert_int_equal(rl_change_points_find(values, count, points, MAX_POINTS, &found, NULL), 0);
  return found;
}

static double noise(void) { return random_value() + random_value() + random_value(); } /* its standard deviation is 1 */

static void known_levels_are_found(void **state) {
  (void)state;
  choose_test_seed();
  size_t surplus_points = 0;
  for (int trial = 0; trial < 10; trial++) {
    double values[60];
    rl_change_point points[MAX_POINTS];
    for (int i = 0; i < 60; i++) values[i] = (i < 20 ? 20 : i < 45 ? 22 : 19.5) + 0.1 * noise();
    size_t found = find_change_points(values, 60, points);
    surplus_points += found - 2;
    if (found != 2) continue; /* chance divides one level in a hundred */
    assert_int_equal(points[0].index, 20), assert_int_equal(points[1].index, 45);
    assert_true(fabs(points[0].before - 20) < 0.2 && fabs(points[0].after - 22) < 0.2);
    assert_true(fabs(points[1].before - 22) < 0.2 && fabs(points[1].after - 19.5) < 0.2);
    assert_true(points[0].p_value <= RL_CHANGE_POINTS_MAX_P && points[0].p_value > 0);
  }
  assert_true(surplus_points <= 4);
}

static void a_constant_level_has_none(void **state) {
  (void)state;
  choose_test_seed();
  enum { TRIALS = 400 };
  int alarms = 0;
  for (int trial = 0; trial < TRIALS; trial++) {
    double values[40];
    rl_change_point points[MAX_POINTS];
    for (int i = 0; i < 40; i++) values[i] = 20 + 0.1 * noise();
    alarms += find_change_points(values, 40, points) > 0;
  }
  assert_below("histories with a change point", alarms, TRIALS * 0.01 + 5 * sqrt(TRIALS * 0.01));
  double equal[40];
  rl_change_point points[MAX_POINTS];
  for (int i = 0; i < 40; i++) equal[i] = 20;
  assert_int_equal(find_change_points(equal, 40, points), 0);
  assert_int_equal(find_change_points(equal, 5, points) + find_change_points(equal, 0, points), 0);
}

static void one_spike_is_no_level(void **state) {
  (void)state;
  choose_test_seed();
  int alarms = 0;
  for (int trial = 0; trial < 100; trial++) {
    double values[40];
    rl_change_point points[MAX_POINTS];
    for (int i = 0; i < 40; i++) values[i] = 20 + 0.1 * noise();
    values[5 + trial % 30] = 30;
    alarms += find_change_points(values, 40, points) > 0;
  }
  assert_below("histories with a spike and a change point", alarms, 8);
}

static void a_slow_drift_is_found(void **state) {
  (void)state;
  choose_test_seed();
  double values[60];
  rl_change_point points[MAX_POINTS];
  for (int i = 0; i < 60; i++) values[i] = 20 * (1 + 0.002 * i) + 0.1 * noise();
  size_t found = find_change_points(values, 60, points);
  assert_true(found >= 1);
  for (size_t i = 0; i < found; i++) assert_true(points[i].after > points[i].before);
}

/* An index is a position in the whole history, which includes the values that the search skips: NAN, infinite values and, in a
 * long history, the oldest values. Equal calls give equal results. */
static void indexes_are_positions_in_the_history(void **state) {
  (void)state;
  test_seed = 4, drawn_count = 0; /* with some other seeds, chance divides a level */
  double values[MAX_VALUES];
  rl_change_point points[MAX_POINTS], second_points[MAX_POINTS];
  for (int i = 0; i < MAX_VALUES; i++) values[i] = (i < 20 ? 30 : i < 150 ? 20 : 21) + 0.1 * noise();
  values[140] = NAN, values[7] = INFINITY;
  assert_int_equal(find_change_points(values, MAX_VALUES, points), 1);
  assert_int_equal(points[0].index, 150);
  assert_int_equal(find_change_points(values, MAX_VALUES, second_points), 1);
  assert_true(points[0].p_value == second_points[0].p_value);
  assert_int_equal(find_change_points(values, 160, points), 2);
  assert_int_equal(points[0].index, 20), assert_int_equal(points[1].index, 150);
  size_t found;
  points[1].index = 77;
  assert_int_equal(rl_change_points_find(values, 160, points, 1, &found, NULL), 0);
  assert_int_equal(found, 2), assert_int_equal(points[1].index, 77);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_levels_are_found), cmocka_unit_test(a_constant_level_has_none),
                                     cmocka_unit_test(one_spike_is_no_level), cmocka_unit_test(a_slow_drift_is_found),
                                     cmocka_unit_test(indexes_are_positions_in_the_history)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
