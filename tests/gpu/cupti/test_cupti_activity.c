/* Compares activity records with the launches of tiny.h, which are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <nvtx3/nvToolsExt.h>

#include "base/clock.h"
#include "device/ranges.h"
#include "load_profiler.h"

static rl_profiler *profiler;
static tiny_fixture tiny;
static rl_records records;
static rl_error err;

#define ASSERT_OK(call)                                      \
  do {                                                       \
    if ((call) != 0) fail_msg("%s: %s", #call, err.message); \
  } while (0)

static void start_trace(void) {
  rl_records_clear(&records);
  ASSERT_OK(profiler->ops->trace_start(profiler, &err));
}

static void stop_trace(void) { ASSERT_OK(profiler->ops->trace_stop(profiler, &records, &err)); }

static double measurement_value(const char *name) {
  for (size_t i = 0; i < records.measurement_count; i++)
    if (strcmp(records.measurements[i].name, name) == 0) return records.measurements[i].value;
  fail_msg("no measurement %s", name);
  return NAN;
}

static const char *name_of(const rl_activity_row *row) {
  assert_true(row->name < records.name_count);
  return records.names[row->name];
}

static size_t count_rows(rl_activity_kind kind, const char *name) {
  size_t found = 0;
  for (size_t i = 0; i < records.row_count; i++)
    if (records.rows[i].kind == (uint32_t)kind && (name == NULL || strcmp(name_of(&records.rows[i]), name) == 0)) found++;
  return found;
}

static const rl_activity_row *find_row(rl_activity_kind kind, const char *name) {
  for (size_t i = 0; i < records.row_count; i++)
    if (records.rows[i].kind == (uint32_t)kind && strcmp(name_of(&records.rows[i]), name) == 0) return &records.rows[i];
  fail_msg("no record of %s", name);
  return NULL;
}

static void assert_complete(double kernels) {
  assert_true(measurement_value("activity_kernel_records") == kernels);
  assert_true(measurement_value("activity_dropped_records") == 0);
  assert_true(measurement_value("activity_zero_time_records") == 0);
  assert_true(measurement_value("activity_records") == (double)records.row_count);
}

static void test_a_kernel_lasts_as_long_as_it_sleeps(void **state) {
  (void)state;
  ASSERT_OK(tiny_sleep(&tiny, &err)); /* loads the kernel */
  start_trace();
  for (int i = 0; i < 5; i++) ASSERT_OK(tiny_sleep(&tiny, &err));
  stop_trace();
  assert_complete(5);
  for (size_t i = 0; i < records.row_count; i++) {
    if (records.rows[i].kind != RL_ACTIVITY_KERNEL) continue;
    double us = (double)(records.rows[i].end_ns - records.rows[i].start_ns) / 1e3;
    print_message("sleep of %d us recorded as %.3f us\n", TINY_SLEEP_US, us);
    assert_true(fabs(us - TINY_SLEEP_US) <= 0.02 * TINY_SLEEP_US);
  }
}

static void test_every_stream_launch_is_recorded(void **state) {
  (void)state;
  start_trace();
  int64_t before = rl_monotonic_ns();
  ASSERT_OK(tiny_launch_empty(&tiny, 20000, &err));
  int64_t lasted = rl_monotonic_ns() - before;
  stop_trace();
  print_message("%.2f us per launch, traced\n", (double)lasted / 20000e3);
  assert_complete(20000);
  assert_int_equal(count_rows(RL_ACTIVITY_KERNEL, "tiny_empty()"), 20000);
  assert_int_equal(count_rows(RL_ACTIVITY_RUNTIME, NULL) >= 20000, 1);
  int64_t last = 0;
  for (size_t i = 0; i < records.row_count; i++) {
    const rl_activity_row *row = &records.rows[i];
    assert_true(row->start_ns >= last); /* sorted */
    last = row->start_ns;
    if (row->kind != RL_ACTIVITY_KERNEL) continue;
    assert_int_equal(row->grid[0] * row->grid[1] * row->grid[2], 3);
    assert_int_equal(row->block[0] * row->block[1] * row->block[2], 64);
    assert_true(row->registers > 0 && row->correlation != 0 && row->graph_node == 0);
    assert_true(row->context != 0 && row->device == 1 && row->thread == 0);
    assert_true(row->start_ns >= 0 && row->end_ns >= row->start_ns && row->end_ns <= lasted + 5000000);
  }
}

static void assert_replays(void *graph, int nodes, int replays) {
  double plain = 0, traced = 0;
  ASSERT_OK(tiny_graph_run(&tiny, graph, replays, &plain, &err));
  ASSERT_OK(tiny_graph_run(&tiny, graph, replays, &plain, &err));
  start_trace();
  ASSERT_OK(tiny_graph_run(&tiny, graph, replays, &traced, &err));
  stop_trace();
  print_message("%d nodes x %d: %.3f us per node, traced %.3f us\n", nodes, replays, plain / nodes, traced / nodes);
  assert_complete((double)nodes * replays);
  enum { MAX_NODES = 4096 };
  uint32_t seen[MAX_NODES];
  size_t distinct = 0;
  for (size_t i = 0; i < records.row_count; i++) {
    if (records.rows[i].kind != RL_ACTIVITY_KERNEL) continue;
    size_t index = 0;
    assert_int_not_equal(records.rows[i].graph_node, 0);
    while (index < distinct && seen[index] != records.rows[i].graph_node) index++;
    if (index == distinct && distinct < MAX_NODES) seen[distinct++] = records.rows[i].graph_node;
  }
  assert_int_equal(distinct, nodes);
}

/* A resident worker instantiates graphs before it starts a trace. */
static void test_every_node_of_an_older_graph_is_recorded(void **state) {
  (void)state;
  void *graph = NULL;
  ASSERT_OK(tiny_graph_open(&tiny, TINY_NODES, &graph, &err));
  assert_replays(graph, TINY_NODES, 1000);
  tiny_graph_close(graph);
}

static void test_every_node_of_a_large_graph_is_recorded(void **state) {
  (void)state;
  void *graph = NULL;
  ASSERT_OK(tiny_graph_open(&tiny, 2000, &graph, &err));
  assert_replays(graph, 2000, 10);
  tiny_graph_close(graph);
}

static void test_copies_memsets_and_allocations_have_their_bytes(void **state) {
  (void)state;
  const size_t bytes = 3 << 20;
  start_trace();
  ASSERT_OK(tiny_copy_new_memory(&tiny, bytes, &err));
  stop_trace();
  assert_complete(0);
  assert_int_equal(find_row(RL_ACTIVITY_MEMSET, "memset")->bytes, bytes);
  assert_int_equal(find_row(RL_ACTIVITY_MEMCPY, "memcpy DtoD")->bytes, bytes);
  assert_int_equal(find_row(RL_ACTIVITY_MEMCPY, "memcpy DtoH")->bytes, bytes);
  assert_int_equal(find_row(RL_ACTIVITY_MEMORY, "allocate device")->bytes, bytes);
  assert_int_equal(find_row(RL_ACTIVITY_MEMORY, "free device")->bytes, bytes);
}

static void assert_memory(const rl_activity_row *row, rl_memory_kind source, rl_memory_kind destination) {
  assert_int_equal(row->source_memory, source);
  assert_int_equal(row->destination_memory, destination);
  assert_int_equal(row->device, 1);
  assert_int_not_equal(row->context, 0);
}

static void test_copies_have_the_kinds_of_their_memory(void **state) {
  (void)state;
  start_trace();
  ASSERT_OK(tiny_copy_new_memory(&tiny, 3 << 20, &err));
  stop_trace();
  assert_memory(find_row(RL_ACTIVITY_MEMSET, "memset"), RL_MEMORY_UNKNOWN, RL_MEMORY_DEVICE);
  assert_memory(find_row(RL_ACTIVITY_MEMCPY, "memcpy DtoD"), RL_MEMORY_DEVICE, RL_MEMORY_DEVICE);
  assert_memory(find_row(RL_ACTIVITY_MEMCPY, "memcpy DtoH"), RL_MEMORY_DEVICE, RL_MEMORY_PAGEABLE);
}

static void test_a_kernel_has_the_correlation_of_its_launch_call(void **state) {
  (void)state;
  start_trace();
  ASSERT_OK(tiny_launch_empty(&tiny, 1, &err));
  stop_trace();
  uint32_t correlation = find_row(RL_ACTIVITY_KERNEL, "tiny_empty()")->correlation;
  size_t calls = 0;
  for (size_t i = 0; i < records.row_count; i++)
    if (records.rows[i].kind == RL_ACTIVITY_RUNTIME && records.rows[i].correlation == correlation) {
      assert_non_null(strstr(name_of(&records.rows[i]), "cudaLaunchKernel"));
      assert_int_equal(records.rows[i].process, getpid());
      assert_int_equal(records.rows[i].thread, gettid());
      calls++;
    }
  assert_int_equal(calls, 1);
}

static const rl_activity_row *find_call(const char *name) {
  for (size_t i = 0; i < records.row_count; i++)
    if (records.rows[i].kind == RL_ACTIVITY_RUNTIME && strncmp(name_of(&records.rows[i]), name, strlen(name)) == 0)
      return &records.rows[i];
  fail_msg("no call of %s", name);
  return NULL;
}

static void test_a_wait_names_the_record_of_its_event(void **state) {
  (void)state;
  ASSERT_OK(tiny_wait_for_stream(&tiny, &err)); /* loads the kernels */
  start_trace();
  ASSERT_OK(tiny_wait_for_stream(&tiny, &err));
  stop_trace();
  assert_complete(2);
  const rl_activity_row *record = find_call("cudaEventRecord"), *wait = find_call("cudaStreamWaitEvent");
  assert_int_not_equal(record->event, 0);
  assert_int_equal(wait->event, record->event);
  assert_int_equal(record->call_stream, find_row(RL_ACTIVITY_KERNEL, "tiny_sleeps(unsigned long)")->stream);
  assert_int_equal(wait->call_stream, find_row(RL_ACTIVITY_KERNEL, "tiny_empty()")->stream);
  assert_int_not_equal(wait->call_stream, record->call_stream);
}

static void test_ranges_of_our_domain_nest_and_others_are_ignored(void **state) {
  (void)state;
  nvtxDomainHandle_t other = nvtxDomainCreateA("other");
  nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                 .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                 .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                 .message.ascii = "foreign"};
  start_trace();
  rl_nvtx_range_push("epoch");
  for (int i = 0; i < 3; i++) {
    rl_nvtx_range_push("forward");
    nvtxDomainRangePushEx(other, &event);
    ASSERT_OK(tiny_launch_empty(&tiny, 1, &err));
    nvtxDomainRangePop(other);
    rl_nvtx_range_pop();
  }
  rl_nvtx_range_pop();
  stop_trace();
  assert_int_equal(count_rows(RL_ACTIVITY_NVTX_RANGE, "epoch"), 1);
  assert_int_equal(count_rows(RL_ACTIVITY_NVTX_RANGE, "forward"), 3);
  assert_int_equal(count_rows(RL_ACTIVITY_NVTX_RANGE, NULL), 4);
  const rl_activity_row *outer = find_row(RL_ACTIVITY_NVTX_RANGE, "epoch"), *inner = find_row(RL_ACTIVITY_NVTX_RANGE, "forward");
  assert_true(outer->process == (uint32_t)getpid() && inner->thread == (uint32_t)gettid());
  assert_true(outer->start_ns <= inner->start_ns && inner->end_ns <= outer->end_ns && inner->start_ns < inner->end_ns);
  size_t inside = 0; /* launch calls within the outer range; both have host times */
  for (size_t i = 0; i < records.row_count; i++)
    inside += records.rows[i].kind == RL_ACTIVITY_RUNTIME && strstr(name_of(&records.rows[i]), "cudaLaunchKernel") != NULL &&
              records.rows[i].start_ns >= outer->start_ns && records.rows[i].end_ns <= outer->end_ns;
  assert_int_equal(inside, 3);
}

static void test_nothing_is_recorded_between_traces(void **state) {
  (void)state;
  start_trace();
  stop_trace();
  ASSERT_OK(tiny_launch_empty(&tiny, 100, &err));
  start_trace();
  ASSERT_OK(tiny_launch_empty(&tiny, 7, &err));
  stop_trace();
  assert_complete(7);
}

/* The activity pass discards the trace of a warm-up that launches the same graphs. */
static void test_a_discarded_trace_leaves_no_records(void **state) {
  (void)state;
  void *graph = NULL;
  double us = 0;
  ASSERT_OK(tiny_graph_open(&tiny, TINY_NODES, &graph, &err));
  start_trace();
  rl_nvtx_range_push("discarded");
  ASSERT_OK(tiny_graph_run(&tiny, graph, 500, &us, &err));
  rl_nvtx_range_pop();
  ASSERT_OK(profiler->ops->trace_stop(profiler, NULL, &err));
  assert_int_equal(records.row_count + records.measurement_count, 0);
  start_trace();
  ASSERT_OK(tiny_graph_run(&tiny, graph, 3, &us, &err));
  stop_trace();
  tiny_graph_close(graph);
  assert_complete(3 * TINY_NODES);
  assert_int_equal(count_rows(RL_ACTIVITY_NVTX_RANGE, NULL), 0);
  for (size_t i = 0; i < records.row_count; i++) assert_true(records.rows[i].start_ns >= 0);
}

static void test_occupancy_comes_from_the_calculator(void **state) {
  (void)state;
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .grid = {132, 1, 1}, .block = {256, 1, 1}, .registers = 32};
  assert_true(profiler->ops->occupancy(profiler, &row) == 1.0);
  row.registers = 255; /* one block of 256 threads uses all 65536 registers */
  assert_true(profiler->ops->occupancy(profiler, &row) < 0.26);
  row.kind = RL_ACTIVITY_MEMCPY;
  assert_true(isnan(profiler->ops->occupancy(profiler, &row)));
}

int main(void) {
  profiler = open_profiler(&tiny);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_kernel_lasts_as_long_as_it_sleeps),
      cmocka_unit_test(test_every_stream_launch_is_recorded),
      cmocka_unit_test(test_every_node_of_an_older_graph_is_recorded),
      cmocka_unit_test(test_every_node_of_a_large_graph_is_recorded),
      cmocka_unit_test(test_copies_memsets_and_allocations_have_their_bytes),
      cmocka_unit_test(test_copies_have_the_kinds_of_their_memory),
      cmocka_unit_test(test_a_kernel_has_the_correlation_of_its_launch_call),
      cmocka_unit_test(test_a_wait_names_the_record_of_its_event),
      cmocka_unit_test(test_ranges_of_our_domain_nest_and_others_are_ignored),
      cmocka_unit_test(test_nothing_is_recorded_between_traces),
      cmocka_unit_test(test_a_discarded_trace_leaves_no_records),
      cmocka_unit_test(test_occupancy_comes_from_the_calculator),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rl_records_clear(&records);
  profiler->ops->close(profiler);
  tiny_close(&tiny);
  return failed;
}
