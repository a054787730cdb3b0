/* Tests the comparison of two traces: first with known differences, then of random traces, whose rows must add up to the time of
 * each trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/trace_comparison.h"
#include "model/records.h"
#include "random_numbers.h"

enum { FIRST_KERNEL, SECOND_KERNEL, LAUNCH, NAME_COUNT };
static const char *const names_a[NAME_COUNT] = {"k", "l", "cudaLaunchKernel_v7000"};
static const char *const names_b[NAME_COUNT] = {"m", "k", "cudaLaunchKernel_v7000"};

#define KERNEL(name_, start, end, correlation_) \
  { .kind = RL_ACTIVITY_KERNEL, .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_) }
#define CALL(start, end, correlation_) \
  { .kind = RL_ACTIVITY_RUNTIME, .name = LAUNCH, .start_ns = (start), .end_ns = (end), .correlation = (correlation_) }

typedef struct compared {
  rl_trace_events events[2];
  int64_t window_ns[2];
  rl_trace_times times[2];
  rl_trace_comparison found;
} compared;

static void compare_traces(const rl_trace_event *a, size_t a_count, const rl_trace_event *b, size_t b_count, compared *c) {
  rl_error err = {0};
  c->events[0] = (rl_trace_events){a, a_count, names_a, NAME_COUNT, NULL};
  c->events[1] = (rl_trace_events){b, b_count, names_b, NAME_COUNT, NULL};
  for (int i = 0; i < 2; i++) {
    rl_trace_index index;
    assert_return_code(rl_trace_index_build(&c->events[i], &index, &err), 0);
    assert_return_code(rl_trace_times_compute(&index, &c->times[i], &err), 0);
    c->window_ns[i] = index.end_ns - index.start_ns;
    rl_trace_index_clear(&index);
  }
  assert_return_code(rl_trace_comparison_compute(&c->times[0], &c->times[1], &c->found, &err), 0);
}

static void clear_comparison(compared *c) {
  rl_trace_comparison_clear(&c->found);
  for (int i = 0; i < 2; i++) rl_trace_times_clear(&c->times[i]);
}

static const rl_compared_time *find_row(const compared *c, const char *name, bool is_idle) {
  for (size_t i = 0; i < c->found.count; i++)
    if (strcmp(c->found.rows[i].name, name) == 0 && c->found.rows[i].is_idle == is_idle) return &c->found.rows[i];
  fail_msg("no row of %s", name);
  return NULL;
}

static void check_that_rows_add_up(const compared *c) {
  for (int run = 0; run < 2; run++) {
    int64_t rows_ns = 0, classes_ns = 0;
    for (size_t i = 0; i < c->found.count; i++) rows_ns += c->found.rows[i].time_ns[run];
    for (int i = 0; i < RL_TIME_CLASS_COUNT; i++) classes_ns += c->found.class_ns[run][i];
    assert_int_equal(rows_ns, c->window_ns[run]);
    assert_int_equal(rows_ns, c->found.window_ns[run]);
    assert_int_equal(classes_ns, rows_ns);
  }
}

/* Run b lacks the kernel l and the idle time before l, has a kernel m, and its kernel k takes 200 ns longer. */
static void rows_are_new_gone_and_longer(void **state) {
  (void)state;
  const rl_trace_event a[] = {KERNEL(FIRST_KERNEL, 0, 100, 1), CALL(140, 150, 2), KERNEL(SECOND_KERNEL, 150, 250, 2)};
  const rl_trace_event b[] = {KERNEL(SECOND_KERNEL, 1000, 1300, 1), KERNEL(FIRST_KERNEL, 1300, 1350, 2)};
  compared c;
  compare_traces(a, 3, b, 2, &c);
  assert_int_equal(c.found.count, 5);
  assert_int_equal(find_row(&c, "k", false)->change, RL_TRACE_LONGER);
  assert_int_equal(find_row(&c, "k", false)->time_ns[1], 300);
  assert_int_equal(find_row(&c, "l", false)->change, RL_TRACE_GONE);
  assert_int_equal(find_row(&c, "l", true)->change, RL_TRACE_GONE);
  assert_int_equal(find_row(&c, "m", false)->change, RL_TRACE_NEW);
  assert_ptr_equal(c.found.rows, find_row(&c, "k", false)); /* the largest difference */
  check_that_rows_add_up(&c);
  clear_comparison(&c);
}

/* If operations overlap, total_ns of the later one is its whole duration, and time_ns is the part that it adds to the trace's
 * time. */
static void overlaps_count_once(void **state) {
  (void)state;
  const rl_trace_event a[] = {KERNEL(FIRST_KERNEL, 0, 100, 1), KERNEL(SECOND_KERNEL, 50, 120, 2)};
  compared c;
  compare_traces(a, 2, a, 2, &c);
  assert_int_equal(find_row(&c, "l", false)->total_ns[0], 70);
  assert_int_equal(find_row(&c, "l", false)->time_ns[0], 20);
  check_that_rows_add_up(&c);
  clear_comparison(&c);
}

static rl_trace_change classify_change(int64_t a_ns, int64_t b_ns) {
  const rl_trace_event a[] = {KERNEL(FIRST_KERNEL, 0, a_ns, 1)}, b[] = {KERNEL(SECOND_KERNEL, 0, b_ns, 1)};
  compared c;
  compare_traces(a, 1, b, 1, &c);
  assert_int_equal(c.found.count, 1);
  rl_trace_change change = c.found.rows[0].change;
  clear_comparison(&c);
  return change;
}

static void one_percent_is_a_change(void **state) {
  (void)state;
  assert_int_equal(classify_change(990, 1000), RL_TRACE_LONGER);
  assert_int_equal(classify_change(991, 1000), RL_TRACE_SAME);
  assert_int_equal(classify_change(1000, 990), RL_TRACE_SHORTER);
  assert_int_equal(classify_change(1000, 991), RL_TRACE_SAME);
  assert_int_equal(classify_change(0, 0), RL_TRACE_SAME);
}

static void a_trace_without_operations_has_no_rows(void **state) {
  (void)state;
  const rl_trace_event a[] = {CALL(0, 10, 1)}, b[] = {KERNEL(FIRST_KERNEL, 0, 30, 1)};
  compared c;
  compare_traces(a, 1, b, 1, &c);
  assert_int_equal(c.found.count, 1);
  assert_int_equal(c.found.rows[0].change, RL_TRACE_NEW);
  check_that_rows_add_up(&c);
  clear_comparison(&c);
}

static size_t make_random_trace(rl_trace_event *items) {
  size_t count = 0;
  for (int more = random_below(12); more > 0; more--) {
    uint32_t correlation = (uint32_t)random_below(12);
    int call = random_below(300), start = call + random_below(60);
    items[count++] = (rl_trace_event)CALL(call, call + random_below(20), correlation);
    items[count++] = (rl_trace_event)KERNEL((uint32_t)random_below(2), start, start + random_below(30), correlation);
  }
  return count;
}

static void rows_of_random_traces_add_up(void **state) {
  (void)state;
  choose_test_seed();
  for (int i = 0; i < 3000; i++) {
    rl_trace_event a[24], b[24];
    compared c;
    size_t a_count = make_random_trace(a);
    compare_traces(a, a_count, b, make_random_trace(b), &c);
    check_that_rows_add_up(&c);
    clear_comparison(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_new_gone_and_longer), cmocka_unit_test(overlaps_count_once),
                                     cmocka_unit_test(one_percent_is_a_change),
                                     cmocka_unit_test(a_trace_without_operations_has_no_rows),
                                     cmocka_unit_test(rows_of_random_traces_add_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
