/* Tests that reading the sensors of a GPU that does not exist yields NAN with a reason, and no error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "worker/sensors.h"

static void assert_no_values(const char *properties, const char *expected) {
  rl_sensor_reading reading;
  memset(&reading, 0x5a, sizeof reading);
  rl_sensors *sensors = rl_sensors_open(properties);
  assert_non_null(sensors);
  rl_sensors_read(sensors, &reading);
  assert_true(isnan(reading.sm_clock_mhz) && isnan(reading.memory_clock_mhz) && isnan(reading.temperature_c) &&
              isnan(reading.power_w) && isnan(reading.memory_used_bytes));
  assert_string_equal(reading.throttle_reasons, "");
  assert_false(reading.throttle_known);
  if (expected) assert_string_equal(reading.reason, expected);
  assert_true(reading.reason[0] != '\0');
  rl_sensors_close(sensors);
}

static void a_device_without_uuid_has_no_values(void **state) {
  (void)state;
  assert_no_values("{}", "the device's UUID is not known");
  assert_no_values("not JSON", "the device's UUID is not known");
}

/* NVML is either not installed here or does not know this GPU. */
static void a_device_that_does_not_exist_has_no_values(void **state) {
  (void)state;
  assert_no_values("{\"uuid\":\"GPU-00000000-0000-0000-0000-000000000000\"}", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_device_without_uuid_has_no_values),
                                     cmocka_unit_test(a_device_that_does_not_exist_has_no_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
