/* Tests the parsers of imported traces: exact numbers, awkward events, the selection of a GPU, and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/decimal.h"
#include "import/import.h"
#include "import/trace.h"

/* --- decimal numbers --------------------------------------------------------------------------------------------------- */

static void decimals_are_exact(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int scale;
    int64_t value;
  } cases[] = {{"0", 3, 0},
               {"-0", 3, 0},
               {"1", 3, 1000},
               {"1700000000123456.789", 3, 1700000000123456789},
               {"1.7000000001234567e15", 3, 1700000000123456700},
               {"0.0004", 3, 0},
               {"0.0005", 3, 1}, /* half of a nanosecond is rounded up */
               {"12.3456", 3, 12346},
               {"-12.3456", 3, -12346},
               {"000012", 0, 12},
               {"5e-1", 0, 1},
               {"4e-1", 0, 0},
               {"1e-999999", 3, 0},
               {"0e999999", 3, 0},
               {"1E+2", 0, 100},
               {"9223372036854775807", 0, INT64_MAX},
               {"99.99999999999999999999999999999", 0, 100}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t value = -1;
    assert_true(rl_decimal_parse_scaled(cases[i].text, strlen(cases[i].text), cases[i].scale, &value));
    assert_int_equal(value, cases[i].value);
  }
}

static void texts_that_are_no_numbers_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"",     "-",       "+1", ".5", "1.",  "1e",  "1e+",   "0x10",
                                      "NaN",  "inf",     "1 ", " 1", "1,5", "--1", "1e1.5", "9223372036854775808",
                                      "1e19", "1e999999"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    int64_t value = 7;
    assert_false(rl_decimal_parse_scaled(texts[i], strlen(texts[i]), 0, &value));
    assert_int_equal(value, 7);
  }
}

/* --- imports of texts -------------------------------------------------------------------------------------------------- */

typedef struct imported {
  rl_records records;
  char *notes;
  rl_error err;
  int rc;
} imported;

static bool cancel_at_once(void *context, double progress) {
  (void)progress;
  return *(bool *)context;
}

static imported import_text(const char *text, bool is_cancelled) {
  const rl_import_observer observer = {.cancelled = cancel_at_once, .context = &is_cancelled};
  imported result = {0};
  int file = memfd_create("trace", MFD_CLOEXEC);
  assert_int_equal(write(file, text, strlen(text)), strlen(text));
  result.rc = rl_import_read(file, RL_TRACE_FORMAT_AUTO, &observer, &result.records, &result.notes, &result.err);
  close(file);
  return result;
}

static void clear_import(imported *result) {
  rl_records_clear(&result->records);
  free(result->notes);
}

#define ASSERT_IMPORTED(RESULT) \
  if ((RESULT).rc < 0) fail_msg("%s", (RESULT).err.message)

static void names_are_sanitized(void **state) {
  (void)state;
  imported result = import_text(
      "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\\u0000b\xff\",\"ts\":1,\"dur\":1},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"\",\"ts\":2,\"dur\":1},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"gr\\u00fc\\u00dfe\",\"ts\":3,\"dur\":1}]",
      false);
  ASSERT_IMPORTED(result);
  assert_int_equal(result.records.name_count, 3);
  assert_string_equal(result.records.names[0], "a?b?");
  assert_string_equal(result.records.names[1], "(unnamed)");
  assert_string_equal(result.records.names[2],
                      "gr\xc3\xbc\xc3\x9f"
                      "e");
  clear_import(&result);
}

/* Rows are sorted by start, an outer range before the ranges in it, and times count from the first event. */
static void rows_are_sorted(void **state) {
  (void)state;
  imported result = import_text(
      "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"late\",\"ts\":9.5,\"dur\":0.001},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"inner\",\"ts\":5,\"dur\":1},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"outer\",\"ts\":5,\"dur\":2}]",
      false);
  static const char *const names[] = {"outer", "inner", "late"};
  static const int64_t start_ns[] = {0, 0, 4500}, end_ns[] = {2000, 1000, 4501};
  ASSERT_IMPORTED(result);
  assert_int_equal(result.records.row_count, 3);
  for (int i = 0; i < 3; i++) {
    const rl_activity_row row = result.records.rows[i];
    assert_string_equal(result.records.names[row.name], names[i]);
    assert_int_equal(row.start_ns, start_ns[i]);
    assert_int_equal(row.end_ns, end_ns[i]);
  }
  clear_import(&result);
}

static void copies_have_kinds_of_memory(void **state) {
  (void)state;
  imported result = import_text(
      "[{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pageable -> "
      "Device)\",\"ts\":1,\"dur\":1,\"pid\":3,\"tid\":7},"
      "{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"Memset (Device)\",\"ts\":2,\"dur\":1,\"pid\":3,\"tid\":7},"
      "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy (odd)\",\"ts\":3,\"dur\":1,\"pid\":3,\"tid\":7}]",
      false);
  ASSERT_IMPORTED(result);
  const rl_activity_row *rows = result.records.rows;
  assert_string_equal(result.records.names[rows[0].name], "memcpy HtoD");
  assert_int_equal(rows[0].source_memory, RL_MEMORY_PAGEABLE);
  assert_int_equal(rows[0].destination_memory, RL_MEMORY_DEVICE);
  assert_string_equal(result.records.names[rows[1].name], "memset");
  assert_int_equal(rows[1].destination_memory, RL_MEMORY_DEVICE);
  assert_string_equal(result.records.names[rows[2].name], "Memcpy (odd)");
  assert_int_equal(rows[0].device, 4); /* args name neither: the device is 1 + pid, the stream is tid */
  assert_int_equal(rows[0].stream, 7);
  clear_import(&result);
}

static void copies_have_rooflined_names(void **state) {
  (void)state;
  static const char *const directions[] = {"HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  for (size_t i = 0; i < sizeof directions / sizeof *directions; i++) {
    char text[256], name[32];
    snprintf(text, sizeof text,
             "[{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy %s (Pinned -> Array)\",\"ts\":1,\"dur\":1}]",
             directions[i]);
    snprintf(name, sizeof name, "memcpy %s", directions[i]);
    imported result = import_text(text, false);
    ASSERT_IMPORTED(result);
    assert_string_equal(result.records.names[result.records.rows[0].name], name);
    assert_int_equal(result.records.rows[0].destination_memory, RL_MEMORY_ARRAY);
    clear_import(&result);
  }
}

/* Of the values that kernels and copies lack, the rows say so; 0 is a value. */
static void lacking_values_are_unknown(void **state) {
  (void)state;
  static const struct {
    const char *category, *args;
    uint8_t unknown;
    uint32_t registers, static_shared, dynamic_shared;
  } cases[] = {
      {"kernel", "", RL_UNKNOWN_REGISTERS | RL_UNKNOWN_STATIC_SHARED | RL_UNKNOWN_DYNAMIC_SHARED, 0, 0, 0},
      {"kernel", "\"registers per thread\":32,\"shared memory\":9", RL_UNKNOWN_STATIC_SHARED | RL_UNKNOWN_SHARED_PARTS, 32, 0, 9},
      {"kernel", "\"registers\":0,\"dynamic_shared_bytes\":16,\"shared memory\":99", RL_UNKNOWN_STATIC_SHARED, 0, 0, 16},
      {"kernel", "\"registers\":0,\"static_shared_bytes\":8,\"dynamic_shared_bytes\":16,\"shared memory\":99", 0, 0, 8, 16},
      {"kernel", "\"registers\":1,\"static_shared_bytes\":8,\"shared memory\":99", RL_UNKNOWN_DYNAMIC_SHARED, 1, 8, 0},
      {"kernel", "\"registers\":-1,\"shared memory\":4294967296", 7, 0, 0, 0},
      {"gpu_memcpy", "", RL_UNKNOWN_BYTES, 0, 0, 0},
      {"gpu_memcpy", "\"bytes\":0", 0, 0, 0, 0},
      {"gpu_memset", "\"bytes\":\"many\"", RL_UNKNOWN_BYTES, 0, 0, 0},
      {"cuda_runtime", "", 0, 0, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text, "[{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"args\":{%s}}]",
             cases[i].category, cases[i].args);
    imported result = import_text(text, false);
    ASSERT_IMPORTED(result);
    const rl_activity_row row = result.records.rows[0];
    assert_int_equal(row.unknown, cases[i].unknown);
    assert_int_equal(row.registers, cases[i].registers);
    assert_int_equal(row.static_shared_bytes, cases[i].static_shared);
    assert_int_equal(row.dynamic_shared_bytes, cases[i].dynamic_shared);
    assert_int_equal(row.bytes, 0);
    clear_import(&result);
  }
}

/* Reads numbers and a grid that are strings. Ignores values of wrong types. */
static void odd_values_are_read_or_ignored(void **state) {
  (void)state;
  imported result = import_text(
      "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"ts\":\"1\",\"dur\":\"2.5\",\"args\":{\"stream\":\"9\","
      "\"correlation\":\"12\",\"grid\":\"64\xc3\x97"
      "2\xc3\x97"
      "1\",\"block\":[32,-1,99999999999,5],\"registers per "
      "thread\":{\"a\":[1]},"
      "\"device\":1.5,\"bytes\":null}}],\"schemaVersion\":{},\"deviceProperties\":[7,{\"name\":[]}]}",
      false);
  ASSERT_IMPORTED(result);
  const rl_activity_row row = result.records.rows[0];
  assert_int_equal(row.end_ns, 2500);
  assert_int_equal(row.stream, 9);
  assert_int_equal(row.correlation, 12);
  assert_int_equal(row.grid[0], 64);
  assert_int_equal(row.grid[1], 2);
  assert_int_equal(row.block[0], 32);
  assert_int_equal(row.block[1], 0);
  assert_int_equal(row.block[2], 0);
  assert_int_equal(row.registers, 0);
  clear_import(&result);
}

/* A key that continues after a NUL is another key. */
static void keys_that_differ_after_a_nul_are_different(void **state) {
  (void)state;
  imported result = import_text(
      "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":1,"
      "\"name\\u0000and much more text than any key has\":\"b\",\"dur\\u0000\":7}]",
      false);
  ASSERT_IMPORTED(result);
  assert_string_equal(result.records.names[0], "a");
  assert_int_equal(result.records.rows[0].end_ns, 1000);
  clear_import(&result);
}

/* Imports ranges of threads a, b, a and c; *thread gets the threads of these rows. tids: JSON values. */
static void import_threads(const char *const tids[3], uint32_t thread[4]) {
  static const int tid_of_row[4] = {0, 1, 0, 2};
  char text[1024] = "[";
  for (int i = 0; i < 4; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text),
             "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"r\",\"ts\":%d,\"dur\":1,\"pid\":9%s%s}", i > 0 ? "," : "", i,
             tids[tid_of_row[i]][0] != '\0' ? ",\"tid\":" : "", tids[tid_of_row[i]]);
  imported result = import_text(strcat(text, "]"), false);
  ASSERT_IMPORTED(result);
  assert_int_equal(result.records.row_count, 4);
  for (int i = 0; i < 4; i++) thread[i] = result.records.rows[i].thread;
  clear_import(&result);
}

/* Thread ids of Linux stay. Threads with other ids get free numbers in the order of their first events; 0 means that the event
 * names no thread. */
static void each_thread_has_a_number(void **state) {
  (void)state;
  static const struct {
    const char *tids[3];
    uint32_t numbers[3];
  } cases[] = {{{"5", "7", "\"2147483647\""}, {5, 7, INT32_MAX}},
               {{"-5", "-7", "3"}, {1, 2, 3}},
               {{"-5", "1", "-7"}, {2, 1, 3}}, /* 1 is the id of a thread */
               {{"2", "\"main\"", "\"worker\""}, {2, 1, 3}},
               {{"139872345675520", "139872345679999", "2147483648"}, {1, 2, 3}},
               {{"99999999999999999999", "-0.5e-3", "0"}, {1, 2, 3}},
               {{"", "4", "-4"}, {0, 4, 1}},
               {{"null", "{\"a\":3}", "[8]"}, {0, 0, 0}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t thread[4];
    import_threads(cases[i].tids, thread);
    assert_int_equal(thread[0], cases[i].numbers[0]);
    assert_int_equal(thread[1], cases[i].numbers[1]);
    assert_int_equal(thread[2], cases[i].numbers[0]);
    assert_int_equal(thread[3], cases[i].numbers[2]);
  }
}

/* Equal texts name different threads in different processes. The order of pid and tid in an event does not matter. */
static void threads_of_processes_are_different(void **state) {
  (void)state;
  imported result = import_text(
      "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":8,\"tid\":-1},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"ts\":2,\"dur\":1,\"pid\":9,\"tid\":-1},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"c\",\"ts\":3,\"dur\":1,\"tid\":-1,\"pid\":8},"
      "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Resource\",\"ts\":4,\"dur\":1,\"pid\":-1,\"tid\":0}]",
      false);
  static const uint32_t threads[] = {1, 2, 1, 0};
  ASSERT_IMPORTED(result);
  for (int i = 0; i < 4; i++) assert_int_equal(result.records.rows[i].thread, threads[i]);
  clear_import(&result);
}

/* rooflined's exports name the thread in the arguments if `tid` is not its id. */
static void a_host_thread_replaces_the_tid(void **state) {
  (void)state;
  imported result = import_text(
      "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":8,\"tid\":0,\"args\":{\"host thread\":0}},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"ts\":2,\"dur\":1,\"pid\":8,\"tid\":1500000002,\"args\":{\"host "
      "thread\":5}},"
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"c\",\"ts\":3,\"dur\":1,\"pid\":8,\"tid\":6,\"args\":{\"host thread\":-1}}]",
      false);
  static const uint32_t threads[] = {0, 5, 6};
  ASSERT_IMPORTED(result);
  for (int i = 0; i < 3; i++) assert_int_equal(result.records.rows[i].thread, threads[i]);
  clear_import(&result);
}

static void threads_without_thread_ids_are_limited(void **state) {
  (void)state;
  rl_error err;
  rl_trace *trace = rl_trace_new();
  uint32_t thread;
  for (uint64_t i = 0; i < RL_MAX_NUMBERED_THREADS; i++)
    assert_int_equal(rl_trace_number_thread(trace, (rl_thread_key){.thread = i}, &thread, &err), 0);
  assert_int_equal(rl_trace_number_thread(trace, (rl_thread_key){.thread = 7}, &thread, &err), 0);
  assert_int_equal(rl_trace_number_thread(trace, (rl_thread_key){.process = 1, .thread = 7}, &thread, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
  rl_trace_free(trace);
}

/* Converts the numbers of graph nodes in a file: 0 for no node, 1 and more in rooflined's exports, and CUPTI's, which have the
 * graph in the upper 32 bits and count nodes from 0. */
static void graph_nodes_count_from_1(void **state) {
  (void)state;
  assert_int_equal(rl_trace_graph_node(0), 0);
  assert_int_equal(rl_trace_graph_node(-1), 0);
  assert_int_equal(rl_trace_graph_node(3), 3);
  assert_int_equal(rl_trace_graph_node(INT64_C(5) << 32), 1);
  assert_int_equal(rl_trace_graph_node((INT64_C(5) << 32) + 3), 4);
}

static void an_import_can_be_cancelled(void **state) {
  (void)state;
  imported result = import_text("[]", true);
  assert_int_equal(result.rc, -1);
  assert_int_equal(result.err.domain, RL_ERRNO);
  clear_import(&result);
}

/* --- traces ------------------------------------------------------------------------------------------------------------ */

static void add_event(rl_trace *trace, uint32_t kind, int64_t start_ns, uint32_t process, uint16_t device, uint32_t correlation) {
  rl_error err;
  uint32_t name;
  assert_int_equal(rl_trace_add_name(trace, "work", 4, &name, &err), 0);
  rl_activity_row row = {.start_ns = start_ns, .end_ns = start_ns + 10, .kind = kind, .process = process, .device = device};
  row.name = name;
  row.correlation = correlation;
  if (rl_trace_add_row(trace, &row, &err) < 0) fail_msg("%s", err.message);
}

static double find_measurement_value(const rl_records *records, const char *name) {
  for (size_t i = 0; i < records->measurement_count; i++)
    if (strcmp(records->measurements[i].name, name) == 0) return records->measurements[i].value;
  fail_msg("there is no measurement %s", name);
  return NAN;
}

/* An import keeps the GPU and the process with the most operations, and their calls. Correlation ids of two processes can be
 * equal. */
static void the_most_used_gpu_is_kept(void **state) {
  (void)state;
  rl_error err;
  rl_records records = {0};
  char *notes = NULL;
  rl_trace *trace = rl_trace_new();
  add_event(trace, RL_ACTIVITY_KERNEL, 100, 5, 1, 1);
  for (uint32_t i = 0; i < 3; i++) add_event(trace, RL_ACTIVITY_KERNEL, 200 + 20 * i, 5, 2, 10 + i);
  for (uint32_t i = 0; i < 2; i++) add_event(trace, RL_ACTIVITY_KERNEL, 200 + 20 * i, 6, 2, 10 + i);
  add_event(trace, RL_ACTIVITY_RUNTIME, 50, 5, 0, 1);   /* launches the kernel on the other GPU: dropped */
  add_event(trace, RL_ACTIVITY_RUNTIME, 150, 5, 0, 10); /* kept */
  add_event(trace, RL_ACTIVITY_RUNTIME, 150, 6, 0, 10); /* of the other process: dropped */
  add_event(trace, RL_ACTIVITY_NVTX_RANGE, 140, 5, 0, 0);
  if (rl_trace_finish(trace, &records, &notes, &err) < 0) fail_msg("%s", err.message);
  assert_int_equal(records.row_count, 5);
  assert_int_equal(records.rows[0].kind, RL_ACTIVITY_NVTX_RANGE);
  assert_int_equal(records.rows[1].process, 5);
  assert_int_equal(records.rows[2].process, 0); /* operations have no process */
  assert_true(find_measurement_value(&records, "skipped_other_gpu_events") == 2);
  assert_true(find_measurement_value(&records, "skipped_other_process_events") == 3);
  rl_records_clear(&records);
  free(notes);
  rl_trace_free(trace);
}

/* A call that launches work on two GPUs is kept with either of them. */
static void calls_of_several_gpus_are_kept(void **state) {
  (void)state;
  rl_error err;
  rl_records records = {0};
  char *notes = NULL;
  rl_trace *trace = rl_trace_new();
  for (uint32_t i = 0; i < 3; i++) add_event(trace, RL_ACTIVITY_KERNEL, 200 + 20 * i, 5, 1, 10);
  add_event(trace, RL_ACTIVITY_KERNEL, 200, 5, 2, 10);
  add_event(trace, RL_ACTIVITY_KERNEL, 300, 5, 2, 11);
  add_event(trace, RL_ACTIVITY_RUNTIME, 150, 5, 0, 10); /* kept */
  add_event(trace, RL_ACTIVITY_RUNTIME, 160, 5, 0, 11); /* has work on the other GPU only */
  if (rl_trace_finish(trace, &records, &notes, &err) < 0) fail_msg("%s", err.message);
  assert_int_equal(records.row_count, 4);
  assert_int_equal(records.rows[0].kind, RL_ACTIVITY_RUNTIME);
  assert_int_equal(records.rows[0].correlation, 10);
  assert_true(find_measurement_value(&records, "skipped_other_gpu_events") == 3);
  rl_records_clear(&records);
  free(notes);
  rl_trace_free(trace);
}

/* Operations without a process, and calls of the processes 5 and 6 with the id 10: either call can be the launch. The id 11 has
 * two calls of one process, of which the first is the launch. */
static void ambiguous_calls_launch_nothing(void **state) {
  (void)state;
  rl_error err;
  rl_records records = {0};
  char *notes = NULL;
  rl_trace *trace = rl_trace_new();
  add_event(trace, RL_ACTIVITY_RUNTIME, 100, 5, 0, 10);
  add_event(trace, RL_ACTIVITY_RUNTIME, 110, 6, 0, 10);
  add_event(trace, RL_ACTIVITY_RUNTIME, 120, 5, 0, 11);
  add_event(trace, RL_ACTIVITY_DRIVER, 122, 5, 0, 11);
  for (uint32_t i = 0; i < 2; i++) add_event(trace, RL_ACTIVITY_KERNEL, 200 + 20 * i, 0, 1, 10 + i);
  if (rl_trace_finish(trace, &records, &notes, &err) < 0) fail_msg("%s", err.message);
  assert_int_equal(records.row_count, 6);
  assert_int_equal(records.rows[0].correlation, 10);
  assert_int_equal(records.rows[4].correlation, 0);
  assert_int_equal(records.rows[5].correlation, 11);
  assert_true(find_measurement_value(&records, "ambiguous_operations") == 1);
  assert_non_null(strstr(notes, "1 operations without a launch call"));
  rl_records_clear(&records);
  free(notes);
  rl_trace_free(trace);
}

static void rows_are_limited(void **state) {
  (void)state;
  rl_error err;
  rl_trace *trace = rl_trace_new();
  rl_activity_row row = {.kind = RL_ACTIVITY_NVTX_RANGE, .end_ns = 1};
  uint32_t name;
  assert_int_equal(rl_trace_add_name(trace, "r", 1, &name, &err), 0);
  for (int i = 0; i < RL_TRACE_MAX_ROWS; i++) assert_int_equal(rl_trace_add_row(trace, &row, &err), 0);
  assert_int_equal(rl_trace_add_row(trace, &row, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
  assert_non_null(strstr(err.message, "2000000"));
  rl_trace_free(trace);
}

static void formats_are_recognised(void **state) {
  (void)state;
  static const struct {
    const char *start;
    size_t length;
    int rc, format;
  } cases[] = {{"{", 1, 0, RL_TRACE_FORMAT_KINETO},
               {" \n[", 3, 0, RL_TRACE_FORMAT_KINETO},
               {"\x1f\x8b\x08", 3, 0, RL_TRACE_FORMAT_KINETO},
               {"SQLite format 3\0", 16, 0, RL_TRACE_FORMAT_NSYS},
               {"SQLite format 3", 15, -1, 0},
               {"\0[", 2, -1, 0},
               {"", 0, -1, 0},
               {"PK\3\4", 4, -1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_trace_format format = RL_TRACE_FORMAT_AUTO;
    rl_error err;
    assert_int_equal(rl_trace_format_detect(cases[i].start, cases[i].length, &format, &err), cases[i].rc);
    assert_int_equal(format, cases[i].format);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(decimals_are_exact),
                                     cmocka_unit_test(texts_that_are_no_numbers_are_refused),
                                     cmocka_unit_test(names_are_sanitized),
                                     cmocka_unit_test(rows_are_sorted),
                                     cmocka_unit_test(copies_have_kinds_of_memory),
                                     cmocka_unit_test(copies_have_rooflined_names),
                                     cmocka_unit_test(lacking_values_are_unknown),
                                     cmocka_unit_test(odd_values_are_read_or_ignored),
                                     cmocka_unit_test(keys_that_differ_after_a_nul_are_different),
                                     cmocka_unit_test(each_thread_has_a_number),
                                     cmocka_unit_test(threads_of_processes_are_different),
                                     cmocka_unit_test(a_host_thread_replaces_the_tid),
                                     cmocka_unit_test(threads_without_thread_ids_are_limited),
                                     cmocka_unit_test(graph_nodes_count_from_1),
                                     cmocka_unit_test(an_import_can_be_cancelled),
                                     cmocka_unit_test(the_most_used_gpu_is_kept),
                                     cmocka_unit_test(calls_of_several_gpus_are_kept),
                                     cmocka_unit_test(ambiguous_calls_launch_nothing),
                                     cmocka_unit_test(rows_are_limited),
                                     cmocka_unit_test(formats_are_recognised)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
