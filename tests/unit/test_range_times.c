/* Tests the times of NVTX ranges: first on traces where they are known, then on random traces, where the test attributes every
 * nanosecond to a range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "analyze/critical_path.h"
#include "analyze/range_times.h"
#include "analyze/thresholds.h"
#include "model/records.h"
#include "random_numbers.h"

enum { KERNEL_NAME, COPY, LAUNCH, SYNC, EPOCH, DATA, FORWARD, BLOCKING_COPY, ASYNC_COPY, NAME_COUNT };
static const char *const names[NAME_COUNT] = {
    "kernel", "memcpy HtoD", "cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020", "epoch",
    "data",   "forward",     "cudaMemcpy_v3020",       "cudaMemcpyAsync_v3020"};

#define EVENT(kind_, name_, start, end, correlation_) \
  { .kind = (kind_), .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_) }
#define KERNEL(start, end, correlation) EVENT(RL_ACTIVITY_KERNEL, KERNEL_NAME, start, end, correlation)
#define COPY_OF(start, end, correlation) EVENT(RL_ACTIVITY_MEMCPY, COPY, start, end, correlation)
#define CALL(start, end, correlation) EVENT(RL_ACTIVITY_RUNTIME, LAUNCH, start, end, correlation)
#define RANGE(name, start, end) EVENT(RL_ACTIVITY_NVTX_RANGE, name, start, end, 0)

typedef struct analysis {
  rl_trace_index index;
  rl_critical_path path;
  rl_time_classes classes;
  rl_range_times times;
} analysis;

static const int64_t copy_sizes[] = {0, 4096, 65536, -1}; /* in bytes; rl_trace_event.size is an index; -1: unknown */
enum { SIZE_COUNT = sizeof copy_sizes / sizeof *copy_sizes };

static void analyze_trace(const rl_trace_event *items, size_t count, analysis *results) {
  static rl_trace_events events;
  rl_error err = {0};
  events = (rl_trace_events){items, count, names, NAME_COUNT, NULL, copy_sizes, SIZE_COUNT};
  assert_return_code(rl_trace_index_build(&events, &results->index, &err), 0);
  assert_return_code(rl_critical_path_compute(&results->index, &results->path, &err), 0);
  assert_return_code(
      rl_range_times_compute(&results->index, NULL, results->path.operation_ns, &results->classes, &results->times, &err), 0);
}

static void clear_analysis(analysis *results) {
  rl_range_times_clear(&results->times);
  rl_time_classes_clear(&results->classes);
  rl_critical_path_clear(&results->path);
  rl_trace_index_clear(&results->index);
}

static const rl_range_time *time_of_range(const analysis *results, uint32_t name) {
  for (size_t i = 0; i < results->times.count; i++)
    if (results->times.items[i].name == name) return &results->times.items[i];
  return NULL;
}

/* The copy of "data" runs after the end of its range, during "forward"; then the host works during "forward". */
static void an_operation_belongs_to_the_range_that_launches_it(void **state) {
  (void)state;
  const rl_trace_event items[] = {RANGE(EPOCH, 0, 100),   RANGE(DATA, 10, 30), CALL(12, 20, 1),    COPY_OF(40, 60, 1),
                                  RANGE(FORWARD, 30, 90), CALL(70, 75, 2),     KERNEL(80, 180, 2), CALL(95, 98, 3),
                                  KERNEL(180, 190, 3),    CALL(200, 205, 4),   KERNEL(210, 220, 4)};
  analysis results;
  analyze_trace(items, sizeof items / sizeof *items, &results);
  assert_int_equal(results.times.count, 3);
  const rl_range_time *epoch = time_of_range(&results, EPOCH), *data = time_of_range(&results, DATA),
                      *forward = time_of_range(&results, FORWARD);
  assert_int_equal(data->class_ns[RL_TIME_COPY], 20);
  assert_int_equal(data->time_ns, 20);
  assert_int_equal(data->projected_ns, 20);
  assert_int_equal(data->host_ns, 20);
  assert_int_equal(forward->class_ns[RL_TIME_COMPUTE], 100);
  assert_int_equal(forward->class_ns[RL_TIME_IDLE_HOST_WORK], 10);
  assert_int_equal(forward->class_ns[RL_TIME_IDLE_LAUNCH_LATENCY], 10);
  assert_int_equal(forward->time_ns, 120);
  assert_int_equal(forward->projected_ns, 100);
  assert_int_equal(epoch->time_ns, 150);
  assert_int_equal(epoch->own_ns, 10);
  assert_int_equal(epoch->projected_ns, 150);
  assert_int_equal(epoch->operation_count, 3);
  assert_int_equal(epoch->depth, 0);
  assert_int_equal(forward->depth, 1);
  assert_int_equal(results.times.outside.time_ns, 30);
  assert_int_equal(results.times.outside.operation_count, 1);
  clear_analysis(&results);
}

static void assert_totals(const int64_t found[RL_OPERATION_TOTAL_COUNT], const int64_t expected[RL_OPERATION_TOTAL_COUNT]) {
  for (int i = 0; i < RL_OPERATION_TOTAL_COUNT; i++)
    if (found[i] != expected[i])
      fail_msg("%s is %lld, not %lld", rl_operation_total_names[i], (long long)found[i], (long long)expected[i]);
}

/* "data" has a blocking copy and an asynchronous one, "forward" a kernel just below and one just above the limit of short
 * kernels. The second kernel was queued when the first one ended. Both launches, the copies before them and the host work between
 * them are on the critical path: 1000 ns of the window belong to the copies, the rest to the kernels. */
static void a_range_has_the_totals_of_its_operations(void **state) {
  (void)state;
  enum { SHORT_NS = RL_SHORT_KERNEL_NS - 1, LONG_NS = RL_SHORT_KERNEL_NS };
  rl_trace_event items[] = {RANGE(EPOCH, 0, 3000),
                            RANGE(DATA, 0, 1500),
                            EVENT(RL_ACTIVITY_RUNTIME, BLOCKING_COPY, 100, 1100, 1),
                            COPY_OF(500, 1100, 1),
                            EVENT(RL_ACTIVITY_RUNTIME, ASYNC_COPY, 1100, 1150, 2),
                            COPY_OF(1100, 1500, 2),
                            RANGE(FORWARD, 1500, 3000),
                            CALL(1600, 1700, 3),
                            CALL(1700, 1800, 4),
                            KERNEL(2000, 2000 + SHORT_NS, 3),
                            KERNEL(2000 + SHORT_NS, 2000 + SHORT_NS + LONG_NS, 4)};
  analysis results;
  items[3].size = 1, items[5].size = 2;
  analyze_trace(items, sizeof items / sizeof *items, &results);
  const int64_t data[] = {0, 0, 2, 4096 + 65536, 0, 1000, 1, 600, 600},
                forward[] = {1, SHORT_NS, 0, 0, 0, 0, 0, 0, SHORT_NS + LONG_NS},
                epoch[] = {1, SHORT_NS, 2, 4096 + 65536, 0, 1000, 1, 600, 600 + SHORT_NS + LONG_NS},
                none[RL_OPERATION_TOTAL_COUNT] = {0};
  assert_totals(time_of_range(&results, DATA)->totals, data);
  assert_totals(time_of_range(&results, FORWARD)->totals, forward);
  assert_totals(time_of_range(&results, EPOCH)->totals, epoch);
  assert_totals(results.times.outside.totals, none);
  clear_analysis(&results);
}

/* A copy of unknown size is counted, and adds nothing to the bytes. */
static void copies_without_a_size_are_counted(void **state) {
  (void)state;
  rl_trace_event items[] = {RANGE(DATA, 0, 1500), EVENT(RL_ACTIVITY_RUNTIME, ASYNC_COPY, 100, 200, 1), COPY_OF(500, 1100, 1),
                            COPY_OF(1100, 1200, 1), COPY_OF(1200, 1300, 1)};
  analysis results;
  items[2].size = 1, items[3].size = 3, items[4].size = 0;
  analyze_trace(items, sizeof items / sizeof *items, &results);
  const int64_t *totals = time_of_range(&results, DATA)->totals;
  assert_int_equal(totals[RL_TOTAL_COPIES], 3);
  assert_int_equal(totals[RL_TOTAL_UNSIZED_COPIES], 1);
  assert_int_equal(totals[RL_TOTAL_COPIES_BYTES], 4096);
  clear_analysis(&results);
}

/* Each of NESTED ranges contains the next one and launches a kernel. The time must not grow with the square of the depth: adding
 * each kernel to all ranges around it would take half a minute. */
static void deeply_nested_ranges_take_little_time(void **state) {
  (void)state;
  enum { NESTED = 100000, LIMIT_S = 5 };
  rl_trace_event *items = malloc(3 * NESTED * sizeof *items);
  analysis results;
  for (int i = 0; i < NESTED; i++) {
    items[3 * i] = (rl_trace_event)RANGE((uint32_t)(EPOCH + i % 3), 10 * i, 100 * NESTED - i);
    items[3 * i + 1] = (rl_trace_event)CALL(10 * i + 1, 10 * i + 2, (uint32_t)i + 1);
    items[3 * i + 2] = (rl_trace_event)KERNEL(10 * i + 3, 10 * i + 8, (uint32_t)i + 1);
  }
  const clock_t begin = clock();
  analyze_trace(items, 3 * NESTED, &results);
  assert_true(clock() - begin < (clock_t)LIMIT_S * CLOCKS_PER_SEC);
  assert_int_equal(time_of_range(&results, EPOCH)->totals[RL_TOTAL_SHORT_KERNELS], NESTED);
  assert_int_equal(time_of_range(&results, DATA)->totals[RL_TOTAL_SHORT_KERNELS], NESTED - 1);
  clear_analysis(&results);
  free(items);
}

/* While two kernels run, the time belongs to the kernel that started first. */
static void overlapping_operations_share_the_window(void **state) {
  (void)state;
  const rl_trace_event items[] = {RANGE(DATA, 0, 10), CALL(1, 2, 1),      RANGE(FORWARD, 10, 20),
                                  CALL(11, 12, 2),    KERNEL(20, 120, 1), KERNEL(60, 200, 2)};
  analysis results;
  analyze_trace(items, sizeof items / sizeof *items, &results);
  assert_int_equal(time_of_range(&results, DATA)->time_ns, 100);
  assert_int_equal(time_of_range(&results, FORWARD)->time_ns, 80);
  assert_int_equal(time_of_range(&results, FORWARD)->projected_ns, 140);
  assert_int_equal(results.times.outside.time_ns, 0);
  clear_analysis(&results);
}

/* Time in a range inside a range of the same name counts once. A range that outlasts the range around it keeps its calls. */
static void ranges_may_repeat_a_name_and_overlap(void **state) {
  (void)state;
  const rl_trace_event items[] = {RANGE(EPOCH, 0, 100), RANGE(EPOCH, 10, 50), CALL(20, 21, 1),
                                  KERNEL(30, 40, 1),    RANGE(DATA, 60, 200), CALL(150, 151, 2),
                                  KERNEL(160, 170, 2),  CALL(300, 301, 3),    KERNEL(310, 320, 3)};
  analysis results;
  analyze_trace(items, sizeof items / sizeof *items, &results);
  assert_int_equal(time_of_range(&results, EPOCH)->range_count, 2);
  assert_int_equal(time_of_range(&results, EPOCH)->operation_count, 2);
  assert_int_equal(time_of_range(&results, EPOCH)->time_ns, 140);
  assert_int_equal(time_of_range(&results, EPOCH)->own_ns, 10);
  assert_int_equal(time_of_range(&results, DATA)->time_ns, 130);
  assert_int_equal(results.times.outside.time_ns, 150);
  clear_analysis(&results);
}

/* Ranges of two threads overlap. A launch belongs to the innermost range of the thread that launched it. If that thread has no
 * range, the launch belongs to a range of the process (thread 0). */
static void ranges_nest_by_thread(void **state) {
  (void)state;
  rl_trace_event items[] = {RANGE(EPOCH, 0, 900), RANGE(DATA, 10, 200),  RANGE(FORWARD, 20, 300), CALL(30, 31, 1),
                            KERNEL(40, 50, 1),    CALL(60, 61, 2),       KERNEL(70, 90, 2),       CALL(210, 211, 3),
                            KERNEL(220, 223, 3),  RANGE(EPOCH, 400, 500)};
  const uint32_t threads[] = {0, 5, 6, 5, 0, 6, 0, 5, 0, 5};
  for (size_t i = 0; i < sizeof items / sizeof *items; i++) items[i].thread = threads[i];
  analysis results;
  analyze_trace(items, sizeof items / sizeof *items, &results);
  assert_int_equal(time_of_range(&results, DATA)->class_ns[RL_TIME_COMPUTE], 10);
  assert_int_equal(time_of_range(&results, FORWARD)->class_ns[RL_TIME_COMPUTE], 20);
  assert_int_equal(time_of_range(&results, FORWARD)->depth, 1);
  assert_int_equal(time_of_range(&results, EPOCH)->class_ns[RL_TIME_COMPUTE], 33);
  assert_int_equal(time_of_range(&results, EPOCH)->own_ns, 223 - 90);
  assert_int_equal(time_of_range(&results, EPOCH)->range_count, 2);
  assert_int_equal(results.times.outside.time_ns, 0);
  clear_analysis(&results);
}

static void spans_of_a_cpu_belong_to_the_range_in_which_they_start(void **state) {
  (void)state;
  const rl_trace_event items[] = {RANGE(DATA, 0, 10), EVENT(RL_ACTIVITY_CPU_SPAN, KERNEL_NAME, 5, 30, 0),
                                  EVENT(RL_ACTIVITY_CPU_SPAN, KERNEL_NAME, 40, 50, 0)};
  analysis results;
  analyze_trace(items, sizeof items / sizeof *items, &results);
  assert_int_equal(time_of_range(&results, DATA)->time_ns, 25);
  assert_int_equal(results.times.outside.class_ns[RL_TIME_IDLE_HOST_WORK], 10);
  clear_analysis(&results);
}

/* --- random traces ----------------------------------------------------------------------------------------------------- */

enum { WINDOW_NS = 300, MAX_EVENTS = 60 };

/* Adds ranges between start and end, which nest and do not overlap otherwise. */
static size_t add_ranges(rl_trace_event *items, size_t count, int start, int end, int depth) {
  while (end - start > 4 && count < MAX_EVENTS / 2) {
    int from = start + random_below((end - start) / 2), to = from + 1 + random_below(end - from);
    items[count++] = (rl_trace_event)RANGE((uint32_t)(EPOCH + random_below(3)), from, to);
    if (depth < 3 && random_below(2)) count = add_ranges(items, count, from, to, depth + 1);
    start = to;
  }
  return count;
}

static size_t add_work(rl_trace_event *items, size_t count) {
  for (int more = random_below(12); more > 0; more--) {
    uint32_t correlation = (uint32_t)random_below(12);
    int call = random_below(WINDOW_NS), start = call + random_below(40), end = start + random_below(30);
    items[count++] = (rl_trace_event)CALL(call, call + random_below(10), correlation);
    items[count++] =
        random_below(4) ? (rl_trace_event)KERNEL(start, end, correlation) : (rl_trace_event)COPY_OF(start, end, correlation);
  }
  return count;
}

/* Returns the operation that the nanosecond belongs to, and its class. */
static size_t owner_at(const analysis *results, int64_t time_ns, rl_time_class *time_class) {
  bool kernel = false, copy = false;
  size_t owner = SIZE_MAX;
  for (size_t i = results->index.operation_count; i-- > 0;) {
    const rl_trace_event *operation = results->index.operations[i];
    if (operation->start_ns > time_ns || operation->end_ns <= time_ns) continue;
    owner = i;
    *(operation->kind == RL_ACTIVITY_KERNEL ? &kernel : &copy) = true;
  }
  *time_class = kernel && copy ? RL_TIME_COMPUTE_AND_COPY : kernel ? RL_TIME_COMPUTE : RL_TIME_COPY;
  if (owner != SIZE_MAX) return owner;
  for (size_t i = 0; i < results->classes.idle_count; i++)
    if (results->classes.idle[i].start_ns <= time_ns && time_ns < results->classes.idle[i].end_ns)
      *time_class = results->classes.idle[i].time_class;
  for (owner = 0; results->index.operations[owner]->start_ns <= time_ns;) owner++;
  return owner;
}

/* Adds the operation to each name with a range around its call. The last array is for the time outside of ranges. */
static void add_operation(const analysis *results, const rl_trace_event *items, size_t count, size_t operation, int64_t call_ns,
                          int64_t expected[NAME_COUNT + 1][RL_OPERATION_TOTAL_COUNT]) {
  bool counted[NAME_COUNT] = {false}, is_inside = false;
  for (size_t i = 0; i < count; i++) {
    const rl_trace_event *range = &items[i];
    if (range->kind != RL_ACTIVITY_NVTX_RANGE || range->start_ns > call_ns || range->end_ns <= call_ns) continue;
    if (!counted[range->name])
      rl_operation_totals_add(&results->index, results->path.operation_ns, operation, expected[range->name]);
    counted[range->name] = is_inside = true;
  }
  if (!is_inside) rl_operation_totals_add(&results->index, results->path.operation_ns, operation, expected[NAME_COUNT]);
}

/* Returns the start of the first call with the correlation id; -1: there is none. */
static int64_t call_start(const rl_trace_event *items, size_t count, uint32_t correlation) {
  int64_t start_ns = -1;
  for (size_t i = 0; i < count && correlation != 0; i++)
    if (items[i].kind == RL_ACTIVITY_RUNTIME && items[i].correlation == correlation &&
        (start_ns < 0 || items[i].start_ns < start_ns))
      start_ns = items[i].start_ns;
  return start_ns;
}

/* Adds one nanosecond to each name with a range around the call, and to the own time of the innermost range. */
static void add_nanosecond(const rl_trace_event *items, size_t count, int64_t call_ns, rl_time_class time_class,
                           int64_t expected[NAME_COUNT][RL_TIME_CLASS_COUNT], int64_t own[NAME_COUNT]) {
  bool counted[NAME_COUNT] = {false};
  const rl_trace_event *innermost = NULL;
  for (size_t i = 0; i < count; i++) {
    const rl_trace_event *range = &items[i];
    if (range->kind != RL_ACTIVITY_NVTX_RANGE || range->start_ns > call_ns || range->end_ns <= call_ns) continue;
    if (!counted[range->name]) expected[range->name][time_class]++;
    counted[range->name] = true;
    bool is_inner = innermost == NULL || range->start_ns > innermost->start_ns ||
                    (range->start_ns == innermost->start_ns && range->end_ns <= innermost->end_ns);
    if (is_inner) innermost = range;
  }
  own[innermost != NULL ? innermost->name : KERNEL_NAME]++; /* own[KERNEL_NAME]: time outside of ranges */
}

static void check_random_trace(void) {
  rl_trace_event items[MAX_EVENTS + 8];
  int64_t expected[NAME_COUNT][RL_TIME_CLASS_COUNT] = {{0}}, own[NAME_COUNT] = {0};
  size_t count = add_work(items, add_ranges(items, 0, 0, WINDOW_NS, 0));
  analysis results;
  analyze_trace(items, count, &results);
  for (int64_t t = results.index.start_ns; t < results.index.end_ns; t++) {
    rl_time_class time_class;
    const rl_trace_event *owner = results.index.operations[owner_at(&results, t, &time_class)];
    add_nanosecond(items, count, call_start(items, count, owner->correlation), time_class, expected, own);
  }
  int64_t totals[NAME_COUNT + 1][RL_OPERATION_TOTAL_COUNT] = {{0}};
  for (size_t i = 0; i < results.index.operation_count; i++)
    add_operation(&results, items, count, i, call_start(items, count, results.index.operations[i]->correlation), totals);
  assert_totals(results.times.outside.totals, totals[NAME_COUNT]);
  int64_t sum_ns = results.times.outside.time_ns;
  assert_int_equal(results.times.outside.time_ns, own[KERNEL_NAME]);
  for (size_t i = 0; i < results.times.count; i++) {
    const rl_range_time *row = &results.times.items[i];
    int64_t classes_ns = 0;
    for (int k = 0; k < RL_TIME_CLASS_COUNT; k++) {
      assert_int_equal(row->class_ns[k], expected[row->name][k]);
      classes_ns += row->class_ns[k];
    }
    assert_int_equal(row->time_ns, classes_ns);
    assert_totals(row->totals, totals[row->name]);
    assert_int_equal(row->own_ns, own[row->name]);
    sum_ns += row->own_ns;
  }
  assert_int_equal(sum_ns, results.classes.end_ns - results.classes.start_ns);
  clear_analysis(&results);
}

static void random_traces_equal_an_attribution_of_each_nanosecond(void **state) {
  (void)state;
  choose_test_seed();
  for (int i = 0; i < 2000; i++) check_random_trace();
}

/* Ranges that overlap at random, as those of several threads do. */
static void own_times_add_up_for_any_ranges(void **state) {
  (void)state;
  for (int i = 0; i < 2000; i++) {
    rl_trace_event items[MAX_EVENTS];
    size_t count = 0;
    while (count < 20) {
      int start = random_below(WINDOW_NS);
      items[count++] = (rl_trace_event)RANGE((uint32_t)(EPOCH + random_below(3)), start, start + random_below(100));
    }
    analysis results;
    count = add_work(items, count);
    for (size_t k = 0; k < count; k++) items[k].thread = (uint32_t)random_below(3);
    analyze_trace(items, count, &results);
    int64_t sum_ns = results.times.outside.time_ns;
    for (size_t k = 0; k < results.times.count; k++) sum_ns += results.times.items[k].own_ns;
    assert_int_equal(sum_ns, results.classes.end_ns - results.classes.start_ns);
    clear_analysis(&results);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_operation_belongs_to_the_range_that_launches_it),
                                     cmocka_unit_test(a_range_has_the_totals_of_its_operations),
                                     cmocka_unit_test(copies_without_a_size_are_counted),
                                     cmocka_unit_test(deeply_nested_ranges_take_little_time),
                                     cmocka_unit_test(overlapping_operations_share_the_window),
                                     cmocka_unit_test(ranges_may_repeat_a_name_and_overlap),
                                     cmocka_unit_test(ranges_nest_by_thread),
                                     cmocka_unit_test(spans_of_a_cpu_belong_to_the_range_in_which_they_start),
                                     cmocka_unit_test(random_traces_equal_an_attribution_of_each_nanosecond),
                                     cmocka_unit_test(own_times_add_up_for_any_ranges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
