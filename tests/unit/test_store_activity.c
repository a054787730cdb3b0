/* Tests how the store keeps activity rows: their size on disk, the dictionary of the values that they share, and how they are
 * stored in slices before their pass is committed. */
#include "base/clock.h"
#include "store_fixture.h"

#include "random_numbers.h" /* needs cmocka */

enum { MANY_ROWS = 200000, MAX_ROW_BYTES = 40 };

static char *names[] = {(char *)"conv1_forward", (char *)"cudaLaunchKernel"};

/* Returns row i of a trace with a launch each ms. Rows 2k and 2k + 1 are the call of launch k and its kernel, which starts 4 µs
 * after the call. The kernels belong to 25 nodes of a graph. */
static rl_activity_row make_row(uint32_t i) {
  uint32_t launch = i / 2, launch_delay_ns = 4000;
  bool is_kernel = i % 2 != 0;
  rl_activity_row row = {.start_ns = (int64_t)launch * 1000000 + (is_kernel ? launch_delay_ns : 0), .correlation = launch + 1};
  row.end_ns = row.start_ns + 1500 + (int64_t)launch * 37 % 9000;
  row.kind = is_kernel ? RL_ACTIVITY_KERNEL : RL_ACTIVITY_RUNTIME;
  row.name = is_kernel ? 0 : 1;
  if (is_kernel) row.context = 1, row.device = 1;
  else row.process = 4000, row.thread = 4001;
  if (!is_kernel) return row;
  row.stream = 7, row.registers = 40, row.dynamic_shared_bytes = 1024, row.graph_node = launch % 25;
  row.grid[0] = 128, row.grid[1] = row.grid[2] = 1;
  row.block[0] = 256, row.block[1] = row.block[2] = 1;
  return row;
}

/* Returns the records of an activity pass with these rows. The rows belong to the caller. */
static rl_records make_records(rl_activity_row *rows, size_t count) {
  return (rl_records){.has_metadata = true,
                      .metadata = {.engine = "fake", .floor_operations = NAN, .floor_bytes = NAN, .floor_written_bytes = NAN},
                      .names = names,
                      .name_count = 2,
                      .rows = rows,
                      .row_count = count};
}

/* Submits a job with one activity pass and claims it. */
static rl_claim claim_activity(fixture *f) {
  rl_job_spec spec = make_spec("cpu", 1u << RL_PASS_ACTIVITY);
  int64_t id;
  bool existing;
  spec.run_count = 1;
  ASSERT_OK(rl_store_job_insert(f->store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  return claim(f->store, "cpu");
}

static int64_t database_bytes(const fixture *f) {
  return query_integer(f, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
}

static void a_row_takes_few_bytes(void **state) {
  fixture *f = *state;
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row *rows = calloc(MANY_ROWS, sizeof *rows);
  for (uint32_t i = 0; i < MANY_ROWS; i++) rows[i] = make_row(i);
  rl_records records = make_records(rows, MANY_ROWS);
  int64_t before = database_bytes(f);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  free(rows);
  assert_in_range((database_bytes(f) - before) / MANY_ROWS, 1, MAX_ROW_BYTES);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity_dictionary"), 1 + 25);
  assert_int_equal(query_integer(f, "SELECT activity_rows FROM passes WHERE activity_kept"), MANY_ROWS);
}

/* Each trace stores its own names, shared values and groups. A short trace has no intervals, which would store its rows a second
 * time, as sums. */
static void a_row_of_a_short_trace_takes_few_bytes(void **state) {
  enum { PASSES = 50, ROWS = 400 };
  fixture *f = *state;
  bool done;
  rl_activity_row rows[ROWS];
  for (uint32_t i = 0; i < ROWS; i++) rows[i] = make_row(i);
  rl_records records = make_records(rows, ROWS);
  for (int i = 0; i < PASSES; i++) {
    rl_claim claimed = claim_activity(f);
    ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  }
  assert_in_range(query_integer(f, "SELECT sum(pgsize) FROM dbstat WHERE name GLOB 'activity*' OR name = 'names'"), PASSES * ROWS,
                  MAX_ROW_BYTES * PASSES * ROWS);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity_intervals"), 0);
}

/* The rows have more combinations of values than the dictionary in memory holds. Each combination occurs in two rows that are far
 * apart. */
static void every_row_keeps_its_values(void **state) {
  fixture *f = *state;
  enum { COMBINATIONS = 45000, ROWS = 2 * COMBINATIONS };
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row *rows = calloc(ROWS, sizeof *rows);
  for (uint32_t i = 0; i < ROWS; i++)
    rows[i] = (rl_activity_row){.start_ns = i,
                                .end_ns = (int64_t)i + 1,
                                .kind = RL_ACTIVITY_MEMCPY,
                                .bytes = (uint64_t)(i % COMBINATIONS) << 33,
                                .stream = UINT32_MAX - i % COMBINATIONS};
  rl_records records = make_records(rows, ROWS);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  free(rows);
  assert_int_equal(query_integer(f,
                                 "SELECT count(*) FROM v_activity WHERE name = 'conv1_forward' AND duration_ns = 1 "
                                 "AND bytes = start_ns % 45000 << 33 AND stream = 4294967295 - start_ns % 45000"),
                   ROWS);
}

/* Rows that differ in one value have separate dictionary entries. */
static void entries_differ_in_every_value(void **state) {
  fixture *f = *state;
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row rows[21] = {0};
  rows[1].name = rows[2].stream = rows[3].graph_node = rows[4].grid[0] = rows[5].grid[1] = rows[6].grid[2] = 1;
  rows[7].block[0] = rows[8].block[1] = rows[9].block[2] = rows[10].registers = rows[11].static_shared_bytes = 1;
  rows[12].dynamic_shared_bytes = 1;
  rows[13].bytes = 1;
  rows[14].process = rows[15].thread = rows[16].context = rows[17].device = 1;
  rows[18].source_memory = RL_MEMORY_PAGEABLE, rows[19].destination_memory = RL_MEMORY_PAGEABLE;
  rows[20].unknown = RL_UNKNOWN_BYTES;
  rl_records records = make_records(rows, 21);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity_dictionary"), 21);
  assert_int_equal(query_integer(f,
                                 "SELECT count(*) FROM (SELECT DISTINCT name, stream, graph_node, grid_x, grid_y, grid_z, "
                                 "block_x, block_y, block_z, registers, static_shared_bytes, dynamic_shared_bytes, bytes, "
                                 "process, thread, device, context, source_memory, destination_memory FROM v_activity)"),
                   21);
}

/* Values that a trace does not have are null in the view and in the timeline; a value of 0 stays. */
static void unknown_values_are_null(void **state) {
  fixture *f = *state;
  static const char *const members[] = {"registers", "static_shared_bytes", "dynamic_shared_bytes", "bytes"};
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row rows[5] = {0};
  for (uint8_t i = 0; i < 5; i++) {
    rows[i].start_ns = rows[i].end_ns = i;
    rows[i].kind = i == 3 ? RL_ACTIVITY_MEMCPY : RL_ACTIVITY_KERNEL;
    rows[i].grid[0] = rows[i].block[0] = 1;
    rows[i].unknown = i < 4 ? (uint8_t)(1u << i) : 0;
  }
  rows[4].kind = RL_ACTIVITY_MEMSET;
  rl_records records = make_records(rows, 5);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  cJSON *timeline = QUERY_ROWS(f->store, RL_QUERY_TIMELINE, RL_BIND_INTEGER(":job", 1));
  for (int row = 0; row < 5; row++)
    for (int i = 0; i < 4; i++) {
      const bool has_member = i < 3 || row >= 3, is_unknown = row == i || !has_member;
      assert_true(cJSON_IsNull(json_at(cJSON_GetArrayItem(timeline, row), members[i])) == is_unknown);
    }
  cJSON_Delete(timeline);
  assert_int_equal(query_integer(f,
                                 "SELECT sum((registers IS NULL) + 10 * (static_shared_bytes IS NULL) + 100 * "
                                 "(dynamic_shared_bytes IS NULL) + 1000 * (bytes IS NULL)) FROM v_activity"),
                   1111);
}

/* The view and the timeline show the ids and kinds of memory of a row, and null for those that the row lacks. */
static void ids_and_memory_kinds_are_shown(void **state) {
  fixture *f = *state;
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row rows[] = {{.kind = RL_ACTIVITY_RUNTIME, .name = 1, .process = 4000, .thread = UINT32_MAX},
                            {.start_ns = 1,
                             .end_ns = 2,
                             .kind = RL_ACTIVITY_MEMCPY,
                             .context = 3,
                             .device = 1,
                             .source_memory = RL_MEMORY_PINNED,
                             .destination_memory = RL_MEMORY_MANAGED_STATIC}};
  rl_records records = make_records(rows, 2);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  assert_int_equal(
      query_integer(f,
                    "SELECT count(*) FROM v_activity WHERE process = 4000 AND thread = 4294967295 AND device IS NULL "
                    "AND context IS NULL AND source_memory IS NULL AND destination_memory IS NULL"),
      1);
  assert_int_equal(query_integer(f,
                                 "SELECT count(*) FROM v_activity WHERE process IS NULL AND thread IS NULL AND device = 0 AND "
                                 "context = 3 AND source_memory = 'pinned' AND destination_memory = 'managed_static'"),
                   1);
  cJSON *timeline = QUERY_ROWS(f->store, RL_QUERY_TIMELINE, RL_BIND_INTEGER(":job", 1));
  const cJSON *call = timeline->child, *copy = call->next;
  assert_true(json_at(call, "thread")->valuedouble == UINT32_MAX && cJSON_IsNull(json_at(call, "device")));
  assert_true(json_at(copy, "device")->valueint == 0 && json_at(copy, "context")->valueint == 3);
  assert_true(cJSON_IsNull(json_at(copy, "thread")) && cJSON_IsNull(json_at(copy, "process")));
  assert_string_equal(json_at(copy, "source_memory")->valuestring, "pinned");
  assert_string_equal(json_at(copy, "destination_memory")->valuestring, "managed_static");
  cJSON_Delete(timeline);
}

/* --- windows ----------------------------------------------------------------------------------------------------------- */

enum { RANDOM_ROWS = 5000, WINDOWS = 300, TRACE_BITS = 30 };

/* Returns a row of any kind that starts anywhere in the trace and lasts from 0 ns to the trace's duration. Many rows start at the
 * same time. */
static rl_activity_row make_random_row(uint32_t i) {
  rl_activity_row row = {.kind = (uint32_t)(random_bits() % RL_ACTIVITY_KIND_COUNT), .correlation = i + 1};
  row.start_ns = (int64_t)(random_bits() >> (64 - TRACE_BITS) & ~UINT64_C(0xffff));
  row.end_ns = row.start_ns + (int64_t)(random_bits() >> (64 - TRACE_BITS) >> random_bits() % (TRACE_BITS + 1));
  return row;
}

/* Compares rows in the order of a timeline: by start, then longest first, then by ordinal, whose order their correlation has. */
static int compare_rows(const void *left, const void *right) {
  const rl_activity_row *a = left, *b = right;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  if (a->end_ns != b->end_ns) return a->end_ns > b->end_ns ? -1 : 1;
  return a->correlation < b->correlation ? -1 : a->correlation > b->correlation;
}

/* Checks that the timeline's window has the rows that a scan of all rows finds. to_ns < 0: until the end. */
static void check_window(fixture *f, const rl_activity_row *sorted, int64_t from_ns, int64_t to_ns, int64_t limit) {
  cJSON *timeline =
      QUERY_ROWS(f->store, RL_QUERY_TIMELINE, RL_BIND_INTEGER(":job", 1), RL_BIND_INTEGER(":from", from_ns),
                 to_ns >= 0 ? (rl_binding)RL_BIND_INTEGER(":to", to_ns) : (rl_binding){.name = ":to", .type = RL_SQL_NULL},
                 RL_BIND_INTEGER(":limit", limit));
  const cJSON *item = timeline->child;
  int64_t count = 0;
  for (const rl_activity_row *row = sorted; row < sorted + RANDOM_ROWS && count < limit; row++) {
    if ((row->end_ns <= from_ns && row->start_ns < from_ns) || (to_ns >= 0 && row->start_ns >= to_ns)) continue;
    if (item == NULL || json_at(item, "correlation")->valueint != (int)row->correlation)
      fail_msg("seed %llu, [%lld, %lld), limit %lld: item %lld is not row %u", (unsigned long long)test_seed, (long long)from_ns,
               (long long)to_ns, (long long)limit, (long long)count, row->correlation);
    item = item->next;
    count++;
  }
  if (item != NULL)
    fail_msg("seed %llu, [%lld, %lld): too many items", (unsigned long long)test_seed, (long long)from_ns, (long long)to_ns);
  cJSON_Delete(timeline);
}

static void windows_are_those_of_a_full_scan(void **state) {
  fixture *f = *state;
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row *rows = calloc(RANDOM_ROWS, sizeof *rows);
  choose_test_seed();
  for (uint32_t i = 0; i < RANDOM_ROWS; i++) rows[i] = make_random_row(i);
  rl_records records = make_records(rows, RANDOM_ROWS);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  qsort(rows, RANDOM_ROWS, sizeof *rows, compare_rows);
  for (int i = 0; i < WINDOWS; i++) {
    int64_t from_ns = i % 10 == 0 ? 0 : (int64_t)(random_bits() >> (63 - TRACE_BITS));
    int64_t to_ns = i % 3 == 0 ? -1 : from_ns + (int64_t)(random_bits() >> (64 - TRACE_BITS) >> random_bits() % TRACE_BITS);
    check_window(f, rows, from_ns, to_ns, i % 2 == 0 ? RANDOM_ROWS : 1 + (int64_t)(random_bits() % 300));
  }
  free(rows);
}

/* --- levels of detail ---------------------------------------------------------------------------------------------------- */

/* The last slice is too short for intervals. */
enum { LEVELS = 20, SHORT_SLICE_ROWS = 500, DENSE_ROWS = 3 * RL_SLICE_ROWS + SHORT_SLICE_ROWS };

/* Returns a row of one of three kinds, streams and threads. Most rows are short and close to each other; some last long. */
static rl_activity_row make_dense_row(uint32_t i) {
  rl_activity_row row = {.kind = (uint32_t)(random_bits() % 3 == 0 ? RL_ACTIVITY_RUNTIME : RL_ACTIVITY_KERNEL)};
  row.name = (uint32_t)(random_bits() % 2);
  if (row.kind == RL_ACTIVITY_KERNEL) row.stream = (uint32_t)(7 + random_bits() % 2), row.device = 1;
  else row.thread = (uint32_t)(100 + random_bits() % 2);
  row.start_ns = (int64_t)i * 1500 + (int64_t)(random_bits() % 1000);
  row.end_ns = row.start_ns + (int64_t)(random_bits() % 2000 << (random_bits() % 16 == 0 ? random_bits() % 16 : 0));
  return row;
}

static int64_t query_level_sum(fixture *f, const char *format, int level) {
  char sql[512];
  snprintf(sql, sizeof sql, format, level, level);
  return query_integer(f, sql);
}

/* At each level, every row is either in the sums of an interval or read by itself. */
static void each_level_has_every_row_once(void **state) {
  fixture *f = *state;
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row *rows = calloc(DENSE_ROWS, sizeof *rows);
  choose_test_seed();
  for (uint32_t i = 0; i < DENSE_ROWS; i++) rows[i] = make_dense_row(i);
  rl_records records = make_records(rows, DENSE_ROWS);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  free(rows);
  const int64_t all_ns = query_integer(f, "SELECT sum(duration_ns) FROM activity");
  int64_t in_intervals = 0;
  for (int level = 0; level < LEVELS; level++) {
    int64_t count = 0, busy_ns = 0;
    const char *json;
    int more;
    RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
    ASSERT_OK(rl_store_query(f->store, RL_QUERY_TIMELINE_ROWS,
                             RL_BINDINGS(RL_BIND_INTEGER(":run", 1), RL_BIND_INTEGER(":level", level),
                                         RL_BIND_INTEGER(":from", 0), RL_BIND_INTEGER(":to", INT64_MAX)),
                             &cursor, &err));
    while ((more = rl_cursor_next(cursor, &json, &err)) > 0) count++, busy_ns += rl_cursor_integer(cursor, 6);
    assert_int_equal(more, 0);
    in_intervals = query_level_sum(f, "SELECT coalesce(sum(activity_rows), 0) FROM activity_intervals WHERE level = %d", level);
    assert_int_equal(count + in_intervals, DENSE_ROWS);
    assert_int_equal(
        busy_ns + query_level_sum(f, "SELECT coalesce(sum(busy_ns), 0) FROM activity_intervals WHERE level = %d", level), all_ns);
    assert_true(query_level_sum(f, "SELECT count(*) FROM activity_intervals WHERE level = %d", level) * 8 <= in_intervals);
  }
  assert_int_equal(in_intervals, DENSE_ROWS - SHORT_SLICE_ROWS); /* at the highest level */
}

/* The sums of an interval are those of the rows that start in it. */
static void intervals_are_sums_of_their_rows(void **state) {
  fixture *f = *state;
  bool done;
  rl_claim claimed = claim_activity(f);
  rl_activity_row *rows = calloc(DENSE_ROWS, sizeof *rows);
  choose_test_seed();
  for (uint32_t i = 0; i < DENSE_ROWS; i++) rows[i] = make_dense_row(i);
  rl_records records = make_records(rows, DENSE_ROWS);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  free(rows);
  assert_true(query_integer(f, "SELECT count(*) FROM activity_intervals WHERE level < 8") > 0);
  assert_int_equal(
      query_integer(
          f,
          "WITH row AS MATERIALIZED (SELECT g.kind, d.device, d.stream, d.thread, d.name, a.start_ns, a.duration_ns, "
          "max(g.first_level, g.activity_group / 16 % 32) AS first_level FROM activity a JOIN activity_groups g "
          "USING (pass_id, activity_group) JOIN activity_dictionary d USING (pass_id, entry)), "
          "expected AS (SELECT level.value AS level, start_ns >> 10 + 2 * level.value << 10 + 2 * level.value AS start, "
          "kind, device, stream, thread, count(*) AS rows, sum(duration_ns) AS busy, max(duration_ns) AS longest "
          "FROM row JOIN (SELECT DISTINCT level AS value FROM activity_intervals) level ON level.value >= first_level GROUP BY "
          "1, 2, 3, 4, 5, 6) "
          "SELECT count(*) FROM (SELECT * FROM expected EXCEPT SELECT level, start_ns, kind, device, stream, thread, "
          "activity_rows, busy_ns, longest_ns FROM activity_intervals)"),
      0);
}

/* --- a reader of all rows ------------------------------------------------------------------------------------------------ */

static atomic_bool stop_requested; /* for rl_store_apply_retention; true only inside a test of retention */

/* The dictionary has more entries than the reader keeps in memory. Rows that are far apart use the same entry. */
static void a_reader_has_every_row_in_order(void **state) {
  fixture *f = *state;
  enum { ENTRIES = 20000, ROWS = 2 * ENTRIES };
  bool done;
  rl_trace_row row;
  rl_claim claimed = claim_activity(f);
  rl_activity_row *rows = calloc(ROWS, sizeof *rows);
  choose_test_seed();
  for (uint32_t i = 0; i < ROWS; i++) {
    rows[i] = make_random_row(i);
    rows[i].name = i % 2, rows[i].thread = i % ENTRIES + 1, rows[i].step = i % 7, rows[i].source_memory = i % 8;
  }
  rl_records records = make_records(rows, ROWS);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  qsort(rows, ROWS, sizeof *rows, compare_rows);
  rl_trace_reader *reader = NULL;
  ASSERT_OK(rl_trace_reader_open(f->store, query_integer(f, "SELECT run_id FROM passes"), &reader, &err));
  for (uint32_t i = 0; i < ROWS; i++) {
    assert_int_equal(rl_trace_reader_next(reader, &row, &err), 1);
    assert_string_equal(row.name, names[rows[i].name]);
    if (memcmp(&row.values, &rows[i], sizeof rows[i]) != 0)
      fail_msg("seed %llu: row %u is not the stored one", (unsigned long long)test_seed, i);
    if (i == 0) { /* the reader's snapshot keeps what retention deletes */
      int64_t removed;
      const rl_retention retention = {.activity_days = 1};
      const int64_t later_ns = rl_realtime_ns() + 2 * INT64_C(86400000000000);
      ASSERT_OK(rl_store_apply_retention(f->store, &retention, later_ns, &stop_requested, &removed, &err));
      assert_int_equal(query_integer(f, "SELECT count(*) FROM activity_dictionary"), 0);
    }
  }
  assert_int_equal(rl_trace_reader_next(reader, &row, &err), 0);
  assert_int_equal(rl_trace_reader_next(reader, &row, &err), 0);
  rl_trace_reader_close(reader);
  free(rows);
}

/* --- slices ------------------------------------------------------------------------------------------------------------ */

enum { SLICES = 3, SLICED_ROWS = SLICES * RL_SLICE_ROWS + 100 };

/* Stores the first `count` rows of make_row in slices. *records has no rows afterwards. */
static void append_rows(fixture *f, const rl_claim *claimed, rl_activity_appender *appender, rl_records *records,
                        uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    rl_activity_row row = make_row(i);
    ASSERT_OK(rl_records_add(records, RL_RECORD_ROW, &row, 1, &err));
    if (records->row_count == RL_SLICE_ROWS || i == count - 1)
      ASSERT_OK(rl_store_append_activity(f->store, claimed, appender, records, &err));
  }
  assert_int_equal(records->row_count, 0);
}

/* Returns the records of a pass before its first row: metadata and names. */
static rl_records start_records(void) {
  rl_records records = {.has_metadata = true,
                        .metadata = {.engine = "fake", .floor_operations = NAN, .floor_bytes = NAN, .floor_written_bytes = NAN}};
  for (int i = 0; i < 2; i++) ASSERT_OK(rl_records_add_name(&records, names[i], strlen(names[i]), &err));
  return records;
}

/* Stores a pass in slices and commits it. */
static void execute_in_slices(fixture *f, const rl_claim *claimed) {
  rl_activity_appender *appender = rl_activity_appender_new();
  rl_records records = start_records();
  bool done = false;
  append_rows(f, claimed, appender, &records, SLICED_ROWS);
  ASSERT_OK(rl_store_pass_commit(f->store, claimed, &records, NULL, &done, &err));
  assert_true(done);
  rl_records_clear(&records);
  rl_activity_appender_free(appender);
}

static int64_t count_visible_rows(fixture *f, int64_t job) {
  cJSON *timeline = QUERY_ROWS(f->store, RL_QUERY_TIMELINE, RL_BIND_INTEGER(":job", job), RL_BIND_INTEGER(":limit", 1000000));
  int64_t count = cJSON_GetArraySize(timeline);
  rl_trace_reader *trace = NULL;
  rl_trace_row row;
  ASSERT_OK(rl_trace_reader_open(f->store, 1, &trace, &err));
  assert_int_equal(rl_trace_reader_next(trace, &row, &err), count > 0);
  rl_trace_reader_close(trace);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_activity"), count);
  cJSON_Delete(timeline);
  return count;
}

/* Checks that the only pass has exactly the rows of execute_in_slices. */
static void assert_sliced_rows(fixture *f) {
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity"), SLICED_ROWS);
  assert_int_equal(query_integer(f, "SELECT count(DISTINCT ordinal) FROM activity"), SLICED_ROWS);
  assert_int_equal(query_integer(f, "SELECT max(ordinal) FROM activity"), SLICED_ROWS - 1);
  assert_int_equal(query_integer(f, "SELECT activity_rows FROM passes"), SLICED_ROWS);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity_dictionary"), 1 + 25);
  assert_int_equal(query_integer(f,
                                 "SELECT count(*) FROM activity_groups g WHERE (activity_rows, longest_ns) <> (SELECT count(*), "
                                 "max(duration_ns) FROM activity a WHERE a.activity_group = g.activity_group)"),
                   0);
}

static void rows_are_invisible_until_the_commit(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_activity(f);
  rl_activity_appender *appender = rl_activity_appender_new();
  rl_records records = start_records();
  bool done = false;
  append_rows(f, &claimed, appender, &records, SLICED_ROWS);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity"), SLICED_ROWS);
  assert_int_equal(count_visible_rows(f, claimed.job_id), 0);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  assert_int_equal(count_visible_rows(f, claimed.job_id), SLICED_ROWS);
  assert_sliced_rows(f);
  rl_activity_row row = make_row(0);
  ASSERT_OK(rl_records_add(&records, RL_RECORD_ROW, &row, 1, &err));
  ASSERT_FAILS(rl_store_append_activity(f->store, &claimed, appender, &records, &err), RL_HTTP, 409);
  rl_records_clear(&records);
  rl_activity_appender_free(appender);
}

/* If the transaction of a slice fails, none of its rows is stored. A second attempt stores each row once. */
static void a_failed_slice_can_be_repeated(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_activity(f);
  rl_activity_appender *appender = rl_activity_appender_new();
  rl_records records = start_records();
  bool done = false;
  for (uint32_t i = 0; i < SLICED_ROWS; i++) {
    rl_activity_row row = make_row(i);
    ASSERT_OK(rl_records_add(&records, RL_RECORD_ROW, &row, 1, &err));
    if (i != SLICED_ROWS - 1 && records.row_count < RL_SLICE_ROWS) continue;
    query_integer(f,
                  "CREATE TRIGGER refuse BEFORE INSERT ON activity WHEN new.ordinal % 4096 = 90 "
                  "BEGIN SELECT RAISE(ABORT, 'refused'); END");
    size_t count = records.row_count;
    ASSERT_SQLITE_FAILS(rl_store_append_activity(f->store, &claimed, appender, &records, &err), RL_STORAGE_CONSTRAINT,
                        SQLITE_CONSTRAINT_TRIGGER);
    assert_int_equal(records.row_count, count);
    query_integer(f, "DROP TRIGGER refuse");
    ASSERT_OK(rl_store_append_activity(f->store, &claimed, appender, &records, &err));
    assert_int_equal(records.row_count, 0);
  }
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  assert_sliced_rows(f);
  rl_records_clear(&records);
  rl_activity_appender_free(appender);
}

/* Counting waits for no lock, neither another program's nor the writer's. */
static void rows_are_counted_while_another_program_writes(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_activity(f);
  int64_t count = -1;
  ASSERT_OK(rl_store_count_activity_rows(f->store, claimed.pass_id, &count, &err));
  assert_int_equal(count, 0);
  RL_CLEANUP(rl_activity_appender_cleanup) rl_activity_appender *appender = rl_activity_appender_new();
  rl_records records = start_records();
  append_rows(f, &claimed, appender, &records, SLICED_ROWS);
  rl_records_clear(&records);
  sqlite3 *other = connect_to(f);
  query_integer_on(other, "BEGIN IMMEDIATE");
  ASSERT_OK(rl_store_count_activity_rows(f->store, claimed.pass_id, &count, &err));
  assert_int_equal(count, SLICED_ROWS);
  sqlite3_close(other);
}

/* A crash of the daemon leaves slices. They are deleted before the pass runs again, so that it has only the rows of its second
 * run. */
static void slices_of_a_crash_are_discarded(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_activity(f);
  rl_activity_appender *appender = rl_activity_appender_new();
  rl_records records = start_records();
  int64_t requeued;
  append_rows(f, &claimed, appender, &records, 2 * RL_SLICE_ROWS);
  reopen_store(f);
  ASSERT_OK(rl_store_jobs_requeue(f->store, 5, &requeued, &err));
  assert_int_equal(count_visible_rows(f, claimed.job_id), 0);
  rl_claim second_claim = claim(f->store, "cpu");
  assert_int_equal(second_claim.pass_id, claimed.pass_id);
  ASSERT_OK(rl_store_discard_activity(f->store, second_claim.pass_id, &stop_requested, &err));
  assert_int_equal(query_integer(f,
                                 "SELECT (SELECT count(*) FROM activity) + (SELECT count(*) FROM activity_dictionary) + "
                                 "(SELECT count(*) FROM names) + (SELECT count(*) FROM activity_groups) + "
                                 "(SELECT count(*) FROM activity_intervals) + "
                                 "(SELECT activity_stored FROM passes)"),
                   0);
  execute_in_slices(f, &second_claim);
  ASSERT_OK(
      rl_store_discard_activity(f->store, second_claim.pass_id, &stop_requested, &err)); /* a committed pass keeps its rows */
  assert_sliced_rows(f);
  rl_records_clear(&records);
  rl_activity_appender_free(appender);
}

/* Whatever its limits, retention deletes the slices of passes that do not run, and keeps the slices of a running pass. */
static void retention_deletes_abandoned_slices(void **state) {
  fixture *f = *state;
  const rl_retention no_limits = {0};
  rl_claim claimed = claim_activity(f);
  rl_activity_appender *appender = rl_activity_appender_new();
  rl_records records = start_records();
  int64_t removed = 0;
  append_rows(f, &claimed, appender, &records, RL_SLICE_ROWS);
  ASSERT_OK(rl_store_apply_retention(f->store, &no_limits, rl_realtime_ns(), &stop_requested, &removed, &err));
  assert_int_equal(removed, 0);
  ASSERT_OK(rl_store_job_finish(f->store, claimed.job_id, RL_JOB_FAILED, &(rl_error){.domain = RL_CUDA}, &err));
  ASSERT_OK(rl_store_apply_retention(f->store, &no_limits, rl_realtime_ns(), &stop_requested, &removed, &err));
  assert_int_equal(removed, RL_SLICE_ROWS);
  assert_int_equal(query_integer(f, "SELECT (SELECT count(*) FROM activity) + (SELECT count(*) FROM names)"), 0);
  rl_records_clear(&records);
  rl_activity_appender_free(appender);
}

static int request_stop(void *context) {
  atomic_store((atomic_bool *)context, true);
  return 0; /* 0: the commit continues */
}

/* Readers see no row of a run once retention has begun to delete its rows. */
static void retention_hides_all_rows_at_once(void **state) {
  fixture *f = *state;
  const rl_retention retention = {.activity_days = 1};
  const int64_t later_ns = rl_realtime_ns() + 2 * INT64_C(86400000000000);
  rl_claim claimed = claim_activity(f);
  int64_t removed = 0;
  execute_in_slices(f, &claimed);
  sqlite3_commit_hook(f->store->writer.handle, request_stop, &stop_requested);
  ASSERT_OK(rl_store_apply_retention(f->store, &retention, later_ns, &stop_requested, &removed, &err));
  sqlite3_commit_hook(f->store->writer.handle, NULL, NULL);
  atomic_store(&stop_requested, false);
  assert_in_range(query_integer(f, "SELECT count(*) FROM activity"), 1, SLICED_ROWS - 1);
  assert_int_equal(count_visible_rows(f, claimed.job_id), 0);
  ASSERT_OK(rl_store_apply_retention(f->store, &retention, later_ns, &stop_requested, &removed, &err));
  assert_int_equal(query_integer(f, "SELECT (SELECT count(*) FROM activity) + (SELECT activity_stored FROM passes)"), 0);
}

#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {WITH_STORE(a_row_takes_few_bytes),
                                     WITH_STORE(a_row_of_a_short_trace_takes_few_bytes),
                                     WITH_STORE(every_row_keeps_its_values),
                                     WITH_STORE(entries_differ_in_every_value),
                                     WITH_STORE(unknown_values_are_null),
                                     WITH_STORE(ids_and_memory_kinds_are_shown),
                                     WITH_STORE(windows_are_those_of_a_full_scan),
                                     WITH_STORE(a_reader_has_every_row_in_order),
                                     WITH_STORE(each_level_has_every_row_once),
                                     WITH_STORE(intervals_are_sums_of_their_rows),
                                     WITH_STORE(rows_are_invisible_until_the_commit),
                                     WITH_STORE(rows_are_counted_while_another_program_writes),
                                     WITH_STORE(a_failed_slice_can_be_repeated),
                                     WITH_STORE(slices_of_a_crash_are_discarded),
                                     WITH_STORE(retention_deletes_abandoned_slices),
                                     WITH_STORE(retention_hides_all_rows_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
