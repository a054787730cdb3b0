/* records: growing arrays with a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/records.h"
#include "wire/wire.h"

static void arrays_grow_and_keep_their_order(void **state) {
  (void)state;
  rl_records records = {0};
  rl_error err;
  char name[32];
  for (int i = 0; i < 1000; i++) {
    rl_epoch epoch = {.epoch = i};
    rl_kernel kernel = {.ordinal = i};
    rl_kernel_metric metric = {.ordinal = i};
    rl_phase phase = {.position = i};
    rl_instruction instruction = {.offset = 16 * i};
    rl_series_point point = {.x = i};
    rl_activity_row rows[3] = {{.start_ns = 3 * i}, {.start_ns = 3 * i + 1}, {.start_ns = 3 * i + 2}};
    int length = snprintf(name, sizeof name, "name %d and more", i);
    assert_int_equal(rl_records_add(&records, RL_RECORD_EPOCH, &epoch, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_KERNEL, &kernel, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_PHASE, &phase, 1, &err), 0);
    assert_int_equal(rl_records_add_metric(&records, &metric, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_INSTRUCTION, &instruction, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_POINT, &point, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 3, &err), 0);
    assert_int_equal(rl_records_add_name(&records, name, (size_t)length - strlen(" and more"), &err), 0);
    assert_int_equal(rl_records_measure(&records, "wait_ms", i, NULL, &err), 0);
  }
  assert_int_equal(records.row_count, 3000);
  for (int i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, "name %d", i);
    assert_int_equal(records.epochs[i].epoch, i);
    assert_int_equal(records.kernels[i].ordinal, i);
    assert_int_equal(records.phases[i].position, i);
    assert_int_equal(records.metrics[i].ordinal, i);
    assert_int_equal(records.instructions[i].offset, 16 * i);
    assert_true(records.points[i].x == i);
    assert_int_equal(records.rows[3 * i + 2].start_ns, 3 * i + 2);
    assert_string_equal(records.names[i], name);
    assert_true(records.measurements[i].value == i);
  }
  records.limit_bytes = 77;
  rl_records_clear(&records);
  assert_int_equal(records.bytes, 0);
  assert_int_equal(records.limit_bytes, 77);
  assert_null(records.rows);
}

static void growth_stops_at_the_limit(void **state) {
  (void)state;
  rl_records records = {.limit_bytes = 10 * sizeof(rl_activity_row)};
  rl_error err;
  rl_activity_row rows[8] = {0};
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 8, &err), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 3, &err), -1);
  assert_int_equal(err.domain, RL_WIRE);
  assert_int_equal(err.code, RL_WIRE_LIMIT);
  assert_int_equal(records.row_count, 8);
  assert_int_equal(rl_records_add_name(&records, "x", 500, &err), -1);
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 2, &err), 0); /* what failed took nothing of the limit */
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, SIZE_MAX / 8, &err), -1);
  rl_records_clear(&records);
}

static void a_missing_value_needs_a_reason(void **state) {
  (void)state;
  rl_records records = {0};
  rl_error err;
  assert_int_equal(rl_records_measure(&records, "power_w", NAN, NULL, &err), -1);
  assert_int_equal(rl_records_measure(&records, "power_w", INFINITY, "", &err), -1);
  assert_int_equal(records.measurement_count, 0);
  assert_int_equal(rl_records_measure(&records, "power_w", NAN, "no sensor", &err), 0);
  assert_string_equal(records.measurements[0].reason, "no sensor");
  rl_records_clear(&records);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_grow_and_keep_their_order),
                                     cmocka_unit_test(growth_stops_at_the_limit),
                                     cmocka_unit_test(a_missing_value_needs_a_reason)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
