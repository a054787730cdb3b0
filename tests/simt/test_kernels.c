/* The kernel families that are hand-written, in every type and variant, over those awkward shapes that the machine does in no
 * time. */
#include "tests/unit/kernel_cases.h"

static rl_device *device;
static char **families;

static void every_family_type_and_variant_is_right(void **state) {
  (void)state;
  case_bytes_most = 730000; /* with rows that a cluster shares, more than it has places for */
  check_everything(device, families);
  assert_int_equal(device->memory.total_bytes, 0);
}

int main(int count, char **arguments) {
  (void)count;
  rl_error err = {0};
  families = arguments + 1;
  device = rl_device_open(0, &err);
  if (!device) return fprintf(stderr, "%s\n", err.message), 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_family_type_and_variant_is_right)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
