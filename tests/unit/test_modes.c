/* Draws samples from distributions with one mode and with two. Bounds how often a sample of the former is called bimodal, and how
 * often a sample of the latter is not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/modes.h"
#include "random_numbers.h"

enum { MAX_VALUES = 70, TRIALS = 10000 };

static double random_normal(void) { return sqrt(-2 * log(1 - random_ratio())) * cos(2 * M_PI * random_ratio()); }
static double random_laplace(void) { return random_value() < 0 ? log(1 - random_ratio()) : -log(1 - random_ratio()); }
static double random_student_3(void) {
  double x = random_normal(), y = random_normal(), z = random_normal();
  return random_normal() / sqrt((x * x + y * y + z * z) / 3);
}
static double random_of_two_normals(void) { return random_normal() + (random_value() < 0 ? 0 : 10); }

static double share_of_bimodal_samples(double (*draw)(void), size_t count) {
  int found = 0;
  for (int trial = 0; trial < TRIALS; trial++) {
    double values[MAX_VALUES];
    for (size_t i = 0; i < count; i++) values[i] = draw();
    found += rl_modes_find(values, count).bimodal;
  }
  return (double)found / TRIALS;
}

static void samples_with_one_mode_are_rarely_bimodal(void **state) {
  (void)state;
  choose_test_seed();
  static const size_t counts[] = {6, 7, 8, 10, 14, 21, 35, 70};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    assert_below("normal", share_of_bimodal_samples(random_normal, counts[i]), 0.01);
    assert_below("uniform", share_of_bimodal_samples(random_ratio, counts[i]), 0.025);
    assert_below("Laplace", share_of_bimodal_samples(random_laplace, counts[i]), 0.01);
    assert_below("Student's t, 3 degrees of freedom", share_of_bimodal_samples(random_student_3, counts[i]), 0.01);
  }
}

/* The modes lie ten standard deviations apart. Of 7 values, often fewer than two belong to one of the modes, which is then not
 * found. */
static void samples_with_two_modes_are_bimodal(void **state) {
  (void)state;
  choose_test_seed();
  assert_below("7 values", 0.5, share_of_bimodal_samples(random_of_two_normals, 7));
  assert_below("14 values", 0.8, share_of_bimodal_samples(random_of_two_normals, 14));
  assert_below("35 values", 0.95, share_of_bimodal_samples(random_of_two_normals, 35));
}

static void modes_have_their_medians_and_counts(void **state) {
  (void)state;
  double values[] = {27.7, 22.7, 22.8, 27.8, 22.6, 22.7, 27.6, 22.9};
  rl_modes modes = rl_modes_find(values, 8);
  assert_true(modes.bimodal && modes.low_count == 5 && modes.high_count == 3);
  assert_true(modes.low == 22.7 && modes.high == 27.7);
  assert_true(modes.boundary > 22.9 && modes.boundary < 27.6);
}

static void one_outlier_is_no_mode(void **state) {
  (void)state;
  double values[] = {22.7, 22.7, 22.8, 27.7, 22.6, 22.7, 22.8}, equal[] = {3, 3, 3, 3, 3, 3, 3}, two[] = {3, 3, 3, 4, 4, 4},
         few[] = {1, 1, 2, 2, 2};
  rl_modes modes = rl_modes_find(values, 7);
  assert_true(!modes.bimodal && isnan(modes.low) && isnan(modes.high));
  assert_false(rl_modes_find(equal, 7).bimodal);
  assert_true(rl_modes_find(two, 6).bimodal);
  assert_false(rl_modes_find(few, 5).bimodal);
  assert_false(rl_modes_find(NULL, 0).bimodal);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_with_one_mode_are_rarely_bimodal), cmocka_unit_test(samples_with_two_modes_are_bimodal),
      cmocka_unit_test(modes_have_their_medians_and_counts), cmocka_unit_test(one_outlier_is_no_mode)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
