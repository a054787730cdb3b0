/* Tests the findings of a trace: on generated traces, whose causes must be found exactly, and on traces that other tools judged
 * wrongly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/launch_queue.h"
#include "analyze/rules.h"
#include "trace_generator.h"

enum { MAX_FINDINGS = 32 };

typedef struct explained_trace {
  rl_trace_index index;
  rl_time_classes classes;
  rl_finding findings[MAX_FINDINGS];
  size_t count;
  double saved_pct, idle_pct;
} explained_trace;

static void find_causes(const rl_trace_events *events, explained_trace *explained) {
  rl_metric_value metrics[RL_TIME_METRIC_COUNT + RL_QUEUE_METRIC_COUNT];
  rl_launch_queue queue;
  rl_error err = {0};
  *explained = (explained_trace){0};
  assert_return_code(rl_trace_index_build(events, &explained->index, &err), 0);
  assert_return_code(rl_time_classes_compute(&explained->index, NULL, &explained->classes, &err), 0);
  assert_return_code(rl_launch_queue_compute(&explained->index, &explained->classes, &queue, &err), 0);
  size_t count = rl_time_classes_metrics(&explained->classes, NULL, metrics);
  count +=
      rl_launch_queue_metrics(&queue, &explained->classes, rl_launch_queue_reason(&explained->index, &queue), metrics + count);
  rl_metric_values_sort(metrics, count);
  explained->count = rl_rules_apply(&(rl_metric_values){metrics, count}, explained->findings, MAX_FINDINGS);
  rl_launch_queue_clear(&queue);
  assert_true(explained->count <= MAX_FINDINGS);
  for (size_t i = 0; i < explained->count; i++)
    explained->saved_pct += isnan(explained->findings[i].speedup_pct) ? 0 : explained->findings[i].speedup_pct;
  for (int i = RL_TIME_FIRST_IDLE; i < RL_TIME_CLASS_COUNT; i++)
    explained->idle_pct +=
        100.0 * (double)explained->classes.class_ns[i] / (double)(explained->index.end_ns - explained->index.start_ns);
}

static void clear_trace(explained_trace *explained) {
  rl_time_classes_clear(&explained->classes);
  rl_trace_index_clear(&explained->index);
}

static const rl_finding *find_finding(const explained_trace *explained, const char *rule) {
  for (size_t i = 0; i < explained->count; i++)
    if (strcmp(explained->findings[i].rule->id, rule) == 0) return &explained->findings[i];
  return NULL;
}

/* --- generated traces -------------------------------------------------------------------------------------------------- */

typedef struct class_rule {
  rl_time_class time_class;
  const char *rule;
  bool is_estimated;
} class_rule;

static const class_rule class_rules[] = {{RL_TIME_IDLE_HOST_WORK, "timeline_host_work", true},
                                         {RL_TIME_IDLE_LAUNCH_LATENCY, "timeline_launch_latency", true},
                                         {RL_TIME_IDLE_FIRST_LAUNCH, "timeline_first_launch", false},
                                         {RL_TIME_IDLE_SYNCHRONIZATION, "timeline_synchronization", true},
                                         {RL_TIME_IDLE_COPY, "timeline_blocking_copies", true},
                                         {RL_TIME_IDLE_GRAPH, "timeline_graph_gaps", true},
                                         {RL_TIME_IDLE_PROFILER, "timeline_profiler", false},
                                         {RL_TIME_IDLE_UNKNOWN, "timeline_unknown", false},
                                         {RL_TIME_COPY, "timeline_copies_alone", false}};

static void check_finding_of_class(const explained_trace *explained, const class_rule *each) {
  double pct = 100.0 * (double)explained->classes.class_ns[each->time_class] /
               (double)(explained->classes.end_ns - explained->classes.start_ns);
  const rl_finding *finding = find_finding(explained, each->rule);
  if ((finding != NULL) != (pct >= 5)) fail_msg("%s at %g%%", each->rule, pct);
  if (finding != NULL && each->is_estimated) assert_true(fabs(finding->speedup_pct - pct) < 1e-9);
  if (finding != NULL && !each->is_estimated) assert_true(isnan(finding->speedup_pct));
}

static void generated_causes_are_found_exactly(void **state) {
  (void)state;
  static generated_trace generated;
  choose_test_seed();
  for (int i = 0; i < 1000; i++) {
    explained_trace explained;
    generate_trace(&generated, (int)(random_bits() % 24));
    find_causes(&generated.events, &explained);
    for (int k = 0; k < RL_TIME_CLASS_COUNT; k++)
      if (explained.classes.class_ns[k] != generated.class_ns[k])
        fail_msg("%s: %lld ns, not %lld (seed %llu)", rl_time_class_names[k], (long long)explained.classes.class_ns[k],
                 (long long)generated.class_ns[k], (unsigned long long)test_seed);
    for (size_t k = 0; k < sizeof class_rules / sizeof *class_rules; k++) check_finding_of_class(&explained, &class_rules[k]);
    assert_true(explained.saved_pct <= explained.idle_pct + 1e-9);
    clear_trace(&explained);
  }
}

/* --- mistakes of other tools ------------------------------------------------------------------------------------------- */

#define KERNEL(start, end, correlation_, stream_)                                                                              \
  {                                                                                                                            \
    .kind = RL_ACTIVITY_KERNEL, .name = GENERATED_KERNEL, .start_ns = (start), .end_ns = (end), .correlation = (correlation_), \
    .stream = (stream_)                                                                                                        \
  }
#define COPY(start, end, correlation_)                                                                  \
  {                                                                                                     \
    .kind = RL_ACTIVITY_MEMCPY, .name = GENERATED_COPY_OPERATION, .start_ns = (start), .end_ns = (end), \
    .correlation = (correlation_)                                                                       \
  }
#define CALL(name_, start, end, correlation_) \
  { .kind = RL_ACTIVITY_RUNTIME, .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_) }

static void explain_items(const rl_trace_event *items, size_t count, explained_trace *explained) {
  const rl_trace_events events = {items, count, generated_names, GENERATED_NAME_COUNT, NULL};
  find_causes(&events, explained);
}

/* GindaChen/nsys-ai#240 summed the gaps of each stream and called the device idle: here 50 % on each of two streams. */
static void gaps_of_streams_are_not_summed(void **state) {
  (void)state;
  rl_trace_event items[40];
  explained_trace explained;
  for (uint32_t i = 0; i < 20; i++) {
    items[2 * i] = (rl_trace_event)CALL(GENERATED_LAUNCH_CALL, 50 * i - 30, 50 * i - 20, i + 1);
    items[2 * i + 1] = (rl_trace_event)KERNEL(100 * i, 100 * i + 100, i + 1, 7 + i % 2);
  }
  explain_items(items, 40, &explained);
  assert_int_equal(explained.classes.class_ns[RL_TIME_COMPUTE], 2000);
  assert_int_equal(explained.count, 0);
  clear_trace(&explained);
}

/* GindaChen/nsys-ai#599 counted copies as idle time. */
static void copies_are_not_idle_time(void **state) {
  (void)state;
  const rl_trace_event items[] = {CALL(GENERATED_LAUNCH_CALL, -90, -80, 1),       KERNEL(0, 100, 1, 7),
                                  CALL(GENERATED_MEMCPY_ASYNC_CALL, -70, -60, 2), COPY(100, 900, 2),
                                  CALL(GENERATED_LAUNCH_CALL, -50, -40, 3),       KERNEL(900, 1000, 3, 7)};
  explained_trace explained;
  explain_items(items, 6, &explained);
  assert_true(explained.idle_pct == 0);
  assert_int_equal(explained.count, 1);
  assert_non_null(find_finding(&explained, "timeline_copies_alone"));
  assert_true(isnan(explained.findings[0].speedup_pct));
  clear_trace(&explained);
}

/* Fills `items` with 20 steps of a kernel (10 µs), a gap (1 µs), a memset or copy (1.5 µs) and a gap (1 µs), all launched before
 * they start. Returns the number of events. */
static size_t queue_small_operations(rl_trace_event items[80], uint32_t kind) {
  size_t count = 0;
  for (uint32_t i = 0; i < 20; i++) {
    int64_t start_ns = 13500 * (int64_t)i, call_ns = 100 * (int64_t)i - 90000;
    items[count++] = (rl_trace_event)CALL(GENERATED_LAUNCH_CALL, call_ns, call_ns + 20, 2 * i + 1);
    items[count++] = (rl_trace_event)CALL(GENERATED_MEMCPY_ASYNC_CALL, call_ns + 50, call_ns + 70, 2 * i + 2);
    items[count++] = (rl_trace_event)KERNEL(start_ns, start_ns + 10000, 2 * i + 1, 7);
    items[count] = (rl_trace_event)COPY(start_ns + 11000, start_ns + 12500, 2 * i + 2);
    items[count++].kind = kind;
  }
  return count;
}

static void memsets_get_no_advice_about_host_memory(void **state) {
  (void)state;
  rl_trace_event items[80];
  explained_trace explained;
  explain_items(items, queue_small_operations(items, RL_ACTIVITY_MEMSET), &explained);
  assert_null(find_finding(&explained, "timeline_blocking_copies"));
  assert_null(find_finding(&explained, "timeline_copies_alone"));
  assert_non_null(find_finding(&explained, "timeline_device_copies_alone"));
  clear_trace(&explained);
  explain_items(items, queue_small_operations(items, RL_ACTIVITY_MEMCPY), &explained); /* from the host */
  assert_non_null(find_finding(&explained, "timeline_blocking_copies"));
  assert_non_null(find_finding(&explained, "timeline_copies_alone"));
  assert_null(find_finding(&explained, "timeline_device_copies_alone"));
  clear_trace(&explained);
}

/* GindaChen/nsys-ai#246 claimed savings of 1.97 times the time that existed. Here, each gap has several causes: the queue is
 * empty, a small kernel is late, and the host synchronises, works and launches. */
static void savings_are_claimed_once(void **state) {
  (void)state;
  rl_trace_event items[60];
  size_t count = 0;
  explained_trace explained;
  for (uint32_t i = 0; i < 12; i++) {
    int64_t start = 1000 * i;
    items[count++] = (rl_trace_event)CALL(GENERATED_SYNCHRONIZE_CALL, start - 850, start - 500, 100 + i);
    items[count++] = (rl_trace_event)CALL(GENERATED_LAUNCH_CALL, start - 200, start - 100, i + 1);
    items[count++] = (rl_trace_event)KERNEL(start, start + 100, i + 1, 7);
    items[count++] = (rl_trace_event)KERNEL(start + 160, start + 150 + 50, i + 1, 7);
    items[count - 1].graph_node = items[count - 2].graph_node = 1; /* two operations of one launch */
  }
  explain_items(items, count, &explained);
  assert_non_null(find_finding(&explained, "timeline_host_work"));
  assert_non_null(find_finding(&explained, "timeline_launch_latency"));
  assert_non_null(find_finding(&explained, "timeline_synchronization"));
  assert_non_null(find_finding(&explained, "timeline_small_kernels"));
  assert_non_null(find_finding(&explained, "timeline_empty_queue"));
  assert_true(explained.saved_pct <= explained.idle_pct + 1e-9 && explained.saved_pct > 0.98 * explained.idle_pct);
  clear_trace(&explained);
}

/* GindaChen/nsys-ai#284 reported 1 % of idle time as a problem. */
static void one_percent_of_idle_time_is_no_finding(void **state) {
  (void)state;
  const rl_trace_event items[] = {CALL(GENERATED_LAUNCH_CALL, -90, -80, 1), KERNEL(0, 50000, 1, 7),
                                  CALL(GENERATED_LAUNCH_CALL, 50900, 50950, 2), KERNEL(51000, 100000, 2, 7)};
  explained_trace explained;
  explain_items(items, 4, &explained);
  assert_true(fabs(explained.idle_pct - 1) < 1e-9);
  assert_int_equal(explained.count, 0);
  clear_trace(&explained);
}

/* Hyperloom#1047 read graph replays without recorded nodes as 99 % idle time. */
static void unrecorded_graph_replays_are_not_idle_time(void **state) {
  (void)state;
  rl_trace_event items[102] = {CALL(GENERATED_LAUNCH_CALL, -10, -5, 1), KERNEL(0, 1000, 1, 7)};
  explained_trace explained;
  for (uint32_t i = 2; i < 100; i++) items[i] = (rl_trace_event)CALL(GENERATED_GRAPH_LAUNCH_CALL, 1000 * i, 1000 * i + 10, i);
  items[100] = (rl_trace_event)CALL(GENERATED_LAUNCH_CALL, 200000, 200010, 100);
  items[101] = (rl_trace_event)KERNEL(200100, 201100, 100, 7);
  explain_items(items, 102, &explained);
  assert_int_equal(explained.classes.unrecorded_launch_count, 98);
  assert_non_null(find_finding(&explained, "timeline_unknown"));
  assert_true(explained.count == 1 && explained.saved_pct == 0);
  clear_trace(&explained);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(generated_causes_are_found_exactly),
                                     cmocka_unit_test(gaps_of_streams_are_not_summed),
                                     cmocka_unit_test(copies_are_not_idle_time),
                                     cmocka_unit_test(memsets_get_no_advice_about_host_memory),
                                     cmocka_unit_test(savings_are_claimed_once),
                                     cmocka_unit_test(one_percent_of_idle_time_is_no_finding),
                                     cmocka_unit_test(unrecorded_graph_replays_are_not_idle_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
