/* Compares the Lomb-Scargle operator with results of SciPy. */
#include "kernel/lombscargle.h"
#include "kernel_cases.h"
#include "lombscargle_data.h"

static const rl_kernel_shape shape = {{SCIPY_SAMPLES, SCIPY_POINTS, 1, 1, 1, 1, 1, 1}};

static void reference_matches_scipy(void **state) {
  (void)state;
  scipy_data data;
  double power[SCIPY_POINTS];
  assert_true(scipy_read(RL_DATA, &data));
  const double *const in[] = {data.time, data.value, data.frequency};
  rl_kernel_lombscargle.reference(&shape, in, 0, SCIPY_POINTS, power);
  assert_true(scipy_error(&data, power) < 1e-14);
}

static void the_float_error_follows_from_the_rounding_of_angles(void **state) {
  (void)state;
  scipy_data data;
  float time[SCIPY_SAMPLES], value[SCIPY_SAMPLES], frequency[SCIPY_POINTS], power[SCIPY_POINTS];
  double widened[SCIPY_POINTS];
  assert_true(scipy_read(RL_DATA, &data));
  for (int i = 0; i < SCIPY_SAMPLES; i++) time[i] = (float)data.time[i], value[i] = (float)data.value[i];
  for (int i = 0; i < SCIPY_POINTS; i++) frequency[i] = (float)data.frequency[i];
  for (int i = 0; i < SCIPY_POINTS; i++) /* one by one, because SciPy's points are not equally spaced */
    rl_kernel_lombscargle.compute_float(&shape, (const float *const[]){time, value, frequency + i}, i, 1, power + i);
  for (int i = 0; i < SCIPY_POINTS; i++) widened[i] = power[i];
  assert_true(scipy_error(&data, widened) < 1e-6);
}

/* Compares one call for all frequencies of a grid, which rotates the angles from each frequency to the next, with a separate call
 * for each frequency. */
static void rotation_over_a_grid_agrees_with_single_frequencies(void **state) {
  (void)state;
  enum { SAMPLES = 131, FREQUENCIES = 1003 };
  static const rl_kernel_shape grid = {{SAMPLES, FREQUENCIES, 1, 1, 1, 1, 1, 1}};
  const rl_kernel_params params =
      kernel_params(&rl_kernel_lombscargle, RL_DTYPE_FP64, "uniform", "{\"samples\":131,\"frequencies\":1003}");
  static double time[SAMPLES], value[SAMPLES], frequency[FREQUENCIES], rotated[FREQUENCIES], one_by_one[FREQUENCIES],
      expected[FREQUENCIES];
  rl_kernel_fill_input(&params, &grid, RL_LOMBSCARGLE_TIME, 0, SAMPLES, time);
  rl_kernel_fill_input(&params, &grid, RL_LOMBSCARGLE_VALUE, 0, SAMPLES, value);
  rl_kernel_fill_input(&params, &grid, RL_LOMBSCARGLE_FREQUENCY, 0, FREQUENCIES, frequency);
  const double *const in[] = {time, value, frequency};
  rl_kernel_lombscargle.reference(&grid, in, 0, FREQUENCIES, expected);
  rl_kernel_lombscargle.compute_double(&grid, in, 0, FREQUENCIES, rotated);
  for (int i = 0; i < FREQUENCIES; i++)
    rl_kernel_lombscargle.compute_double(&grid, (const double *const[]){time, value, frequency + i}, i, 1, one_by_one + i);
  for (int i = 0; i < FREQUENCIES; i++)
    assert_true(fabs(rotated[i] / expected[i] - 1) < 1e-10 && fabs(one_by_one[i] / expected[i] - 1) < 1e-10);
  assert_memory_not_equal(rotated, one_by_one, sizeof rotated);
}

/* On a CPU, each other variant would run the same code as one of these two, so the CPU refuses it. */
static void the_cpu_has_two_variants(void **state) {
  (void)state;
  rl_error err = {0};
  static const char *const on_cpu[] = {"template", "uniform"};
  static const char *const gpu_only[] = {"typed", "fast_math", "launch_bounds", "capped_registers"};
  for (int i = 0; i < 6; i++) {
    const char *variant = i < 2 ? on_cpu[i] : gpu_only[i - 2];
    rl_kernel_params params = kernel_params(&rl_kernel_lombscargle, RL_DTYPE_FP32, variant, "{\"samples\":8,\"frequencies\":9}");
    bool found = rl_engine_find("lombscargle", "auto", &params, &err) != NULL;
    assert_int_equal(found, i < 2);
    if (!found) assert_string_equal(err.json_pointer, "/variant");
  }
}

static void inputs_are_times_and_equally_spaced_frequencies(void **state) {
  (void)state;
  const rl_kernel_params params =
      kernel_params(&rl_kernel_lombscargle, RL_DTYPE_FP64, "typed", "{\"samples\":114,\"frequencies\":530}");
  double time[SCIPY_SAMPLES], frequency[SCIPY_POINTS], first_time = INFINITY, last_time = -INFINITY;
  rl_kernel_fill_input(&params, &shape, RL_LOMBSCARGLE_TIME, 0, SCIPY_SAMPLES, time);
  for (int i = 0; i < SCIPY_SAMPLES; i++) first_time = fmin(first_time, time[i]), last_time = fmax(last_time, time[i]);
  assert_true(first_time >= 0 && first_time < 2 && last_time > RL_LOMBSCARGLE_TIME_SPAN - 2 &&
              last_time < RL_LOMBSCARGLE_TIME_SPAN);
  rl_kernel_fill_input(&params, &shape, RL_LOMBSCARGLE_FREQUENCY, 0, SCIPY_POINTS, frequency);
  assert_true(frequency[0] == RL_LOMBSCARGLE_FIRST_FREQUENCY &&
              fabs(frequency[SCIPY_POINTS - 1] - RL_LOMBSCARGLE_LAST_FREQUENCY) < 1e-12);
  for (int i = 2; i < SCIPY_POINTS; i++) assert_true(fabs(frequency[i] - 2 * frequency[i - 1] + frequency[i - 2]) < 1e-12);
}

static void unsupported_parameters_are_refused(void **state) {
  (void)state;
  rl_error err = {0};
  rl_kernel_params params = kernel_params(&rl_kernel_lombscargle, RL_DTYPE_FP32, "typed", "{\"samples\":7,\"frequencies\":530}");
  assert_int_equal(rl_kernel_supports(&params, &err), -1);
  assert_string_equal(err.json_pointer, "/shape/samples");
  params = kernel_params(&rl_kernel_lombscargle, RL_DTYPE_FP16, "typed", "{\"samples\":8,\"frequencies\":530}");
  assert_int_equal(rl_kernel_supports(&params, &err), -1);
  assert_string_equal(err.json_pointer, "/dtype");
  params = kernel_params(&rl_kernel_lombscargle, RL_DTYPE_FP32, "typed", "{\"samples\":8,\"frequencies\":530}");
  snprintf(params.build, sizeof params.build, "ptx");
  assert_int_equal(rl_kernel_supports(&params, &err), -1);
  assert_string_equal(err.json_pointer, "/build");
  snprintf(params.build, sizeof params.build, "nvrtc");
  assert_int_equal(rl_kernel_supports(&params, &err), 0);
  params = kernel_params(&rl_kernel_relu, RL_DTYPE_FP32, "scalar", "{\"n\":8}");
  snprintf(params.build, sizeof params.build, "nvrtc");
  assert_int_equal(rl_kernel_supports(&params, &err), -1);
  assert_string_equal(err.json_pointer, "/build");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reference_matches_scipy),
                                     cmocka_unit_test(the_float_error_follows_from_the_rounding_of_angles),
                                     cmocka_unit_test(rotation_over_a_grid_agrees_with_single_frequencies),
                                     cmocka_unit_test(the_cpu_has_two_variants),
                                     cmocka_unit_test(inputs_are_times_and_equally_spaced_frequencies),
                                     cmocka_unit_test(unsupported_parameters_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
