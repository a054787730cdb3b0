/* Tests how the store keeps the kernels of a pass with many metrics, instructions and points: in slices that no query finds
 * until the pass is committed. */
#include "store_fixture.h"

enum { KERNELS = 3, METRICS = 900, INSTRUCTIONS = 400, POINTS = 50, RECORDS = METRICS + INSTRUCTIONS + POINTS };

static rl_records make_records(void) {
  rl_records records = {.has_metadata = true,
                        .metadata = {.engine = "fake", .floor_operations = NAN, .floor_bytes = NAN, .floor_written_bytes = NAN}};
  for (int kernel = 0; kernel < KERNELS; kernel++) {
    rl_kernel row = {.ordinal = kernel, .launches = 1, .total_us = 1, .name = "kernel"};
    ASSERT_OK(rl_records_add(&records, RL_RECORD_KERNEL, &row, 1, &err));
    for (int i = 0; i < METRICS; i++) {
      rl_kernel_metric metric = {.ordinal = kernel, .value = 1000 * kernel + i};
      snprintf(metric.metric, sizeof metric.metric, "metric_%d", i);
      ASSERT_OK(rl_records_add(&records, RL_RECORD_METRIC, &metric, 1, &err));
    }
    for (int i = 0; i < INSTRUCTIONS; i++) {
      rl_instruction instruction = {.ordinal = kernel, .offset = 16 * i, .line = kernel + 1, .counts = "{}"};
      ASSERT_OK(rl_records_add(&records, RL_RECORD_INSTRUCTION, &instruction, 1, &err));
    }
    for (int i = 0; i < POINTS; i++) {
      rl_series_point point = {.ordinal = kernel, .name = "sm_active_pct", .x = i, .value = kernel};
      ASSERT_OK(rl_records_add(&records, RL_RECORD_POINT, &point, 1, &err));
    }
  }
  return records;
}

static rl_claim claim_counters(fixture *f) {
  rl_job_spec spec = make_spec("cpu", 1u << RL_PASS_COUNTERS);
  int64_t id;
  bool existing;
  spec.run_count = 1;
  ASSERT_OK(rl_store_job_insert(f->store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  return claim(f->store, "cpu");
}

static const char count_visible[] =
    "SELECT (SELECT count(*) FROM v_kernels) + (SELECT count(*) FROM v_instructions) + (SELECT count(*) FROM v_series)";
static const char count_stored[] =
    "SELECT (SELECT count(*) FROM kernels) + (SELECT count(*) FROM kernel_metrics) + (SELECT count(*) FROM instructions) + "
    "(SELECT count(*) FROM series)";

/* Checks that each record is stored once and belongs to its kernel. */
static void assert_complete(const fixture *f) {
  assert_int_equal(query_integer(f, count_stored), KERNELS * (1 + RECORDS));
  assert_int_equal(query_integer(f, count_visible), KERNELS * (1 + INSTRUCTIONS + POINTS));
  assert_int_equal(query_integer(f, "SELECT count(*) FROM kernels WHERE pass_id IS NULL OR stored_for IS NOT NULL"), 0);
  assert_int_equal(query_integer(f,
                                 "SELECT count(*) FROM kernel_metrics m JOIN kernels k ON k.id = m.kernel_id "
                                 "WHERE value = 1000 * ordinal + substr(metric, 8)"),
                   KERNELS * METRICS);
  assert_int_equal(query_integer(f, "SELECT sum(line = kernel + 1) FROM v_instructions"), KERNELS * INSTRUCTIONS);
  assert_int_equal(query_integer(f, "SELECT sum(value = kernel) FROM v_series"), KERNELS * POINTS);
}

typedef struct commits {
  sqlite3 *reader;
  int count, visible; /* visible: rows that the reader has seen before a commit */
} commits;

static int observe_commit(void *context) {
  commits *seen = context;
  seen->count++;
  seen->visible += (int)query_integer_on(seen->reader, count_visible);
  return 0; /* 0: the commit continues */
}

static void kernels_are_invisible_until_the_commit(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_counters(f);
  rl_records records = make_records();
  commits seen = {.reader = connect_to(f)};
  bool done = false;
  sqlite3_commit_hook(f->store->writer.handle, observe_commit, &seen);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  sqlite3_commit_hook(f->store->writer.handle, NULL, NULL);
  assert_true(done);
  assert_in_range(seen.count, 6, 12);
  assert_int_equal(seen.visible, 0);
  assert_complete(f);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err)); /* a second commit changes nothing */
  assert_complete(f);
  sqlite3_close(seen.reader);
  rl_records_clear(&records);
}

/* If a slice fails, the commit also removes the slices before it. */
static void a_failed_commit_can_be_repeated(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_counters(f);
  rl_records records = make_records();
  bool done = false;
  query_integer(f,
                "CREATE TRIGGER refuse BEFORE INSERT ON series WHEN new.x = 49 AND new.value = 2 "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END");
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_TRIGGER);
  assert_int_equal(query_integer(f, count_stored), 0);
  query_integer(f, "DROP TRIGGER refuse");
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  assert_complete(f);
  rl_records_clear(&records);
}

static void cancel_makes_the_commit_fail(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_counters(f);
  rl_records records = make_records();
  bool done = false;
  ASSERT_OK(rl_store_job_finish(f->store, claimed.job_id, RL_JOB_CANCELLED, NULL, &err));
  ASSERT_FAILS(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err), RL_HTTP, 409);
  assert_int_equal(query_integer(f, count_stored), 0);
  rl_records_clear(&records);
}

/* Inserts the rows that a crash between two slices leaves. */
static void leave_slices(fixture *f, const rl_claim *claimed, const rl_records *records) {
  rl_kernel_position position = {0};
  int64_t stored = query_integer(f, count_stored), visible = query_integer(f, count_visible);
  ASSERT_OK(rl_store_begin_transaction(f->store, &err));
  int rc = rl_store_insert_kernels(&f->store->writer, claimed, records, 1 << 20, &position, &err);
  ASSERT_OK(rl_store_end_transaction_changing_all(f->store, rc, &err));
  assert_int_equal(rc, 0);
  assert_true(query_integer(f, count_stored) > stored + KERNELS);
  assert_int_equal(query_integer(f, count_visible), visible);
  reopen_store(f);
}

static void slices_of_a_crash_are_discarded(void **state) {
  fixture *f = *state;
  rl_claim claimed = claim_counters(f);
  rl_records records = make_records();
  int64_t requeued;
  bool done = false;
  leave_slices(f, &claimed, &records);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err)); /* the pass was also in the spill file */
  assert_complete(f);
  claimed = claim_counters(f);
  leave_slices(f, &claimed, &records);
  ASSERT_OK(rl_store_jobs_requeue(f->store, 5, &requeued, &err));
  assert_complete(f);
  claimed = claim(f->store, "cpu");
  leave_slices(f, &claimed, &records);
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, NULL, "no counters", &done, &err)); /* a repetition with other records */
  assert_complete(f);
  rl_records_clear(&records);
}

#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {WITH_STORE(kernels_are_invisible_until_the_commit),
                                     WITH_STORE(a_failed_commit_can_be_repeated), WITH_STORE(cancel_makes_the_commit_fail),
                                     WITH_STORE(slices_of_a_crash_are_discarded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
