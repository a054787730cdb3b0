/* Tests the spill file, which holds a finished pass until the database stores it: writes passes and reads them back, damages the
 * file, writes a pass that is too large, and recovers a pass that is partly stored. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recovery.h"
#include "store_fixture.h"
#include "supervisor/spill.h"

enum { SPILL_BYTES = 1 << 20 };

typedef struct spill_fixture {
  char folder[64], path[96];
  rl_spill *spill;
  pass_records source_pass;
  rl_spilled_pass pass; /* borrows the records of source_pass */
} spill_fixture;

static int open_spill_fixture(void **state) {
  spill_fixture *f = calloc(1, sizeof *f);
  strcpy(f->folder, "/tmp/rooflined-spill-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof f->path, "%s/" RL_SPILL_PREFIX "cpu", f->folder);
  ASSERT_OK(rl_spill_open(f->folder, "cpu", SPILL_BYTES, &f->spill, &err));
  fill_records(&f->source_pass, RL_PASS_ACTIVITY, 3);
  for (size_t i = 0; i < f->source_pass.records.kernel_count; i++) /* a worker sends hashes of this length */
    snprintf(f->source_pass.records.kernels[i].code_sha256, sizeof f->source_pass.records.kernels[i].code_sha256, "%064zx", i);
  f->pass.claim = (rl_claim){.job_id = 7, .run_id = 8, .pass_id = 9, .pass = RL_PASS_ACTIVITY};
  strcpy(f->pass.claim.run.variant, "fp16");
  f->pass.records = f->source_pass.records;
  f->pass.first_row_index = 100;
  *state = f;
  return 0;
}

static int close_spill_fixture(void **state) {
  spill_fixture *f = *state;
  rl_spill_close(f->spill);
  remove_folder(f->folder);
  free(f);
  return 0;
}

/* Opens the file again and reads it, as the daemon does when it starts. Returns 1: it holds a pass; 0: it is empty. */
static int reopen_and_read(spill_fixture *f, rl_spilled_pass *pass) {
  RL_CLEANUP(rl_spill_cleanup) rl_spill *spill = NULL;
  ASSERT_OK(rl_spill_open_existing(f->path, &spill, &err));
  *pass = (rl_spilled_pass){0};
  return rl_spill_read(spill, pass, &err);
}

static void assert_empty(spill_fixture *f) {
  rl_spilled_pass pass;
  assert_int_equal(reopen_and_read(f, &pass), 0);
}

static void change_byte(spill_fixture *f, off_t offset) {
  int file = open(f->path, O_RDWR | O_CLOEXEC);
  char byte = 0;
  assert_int_equal(pread(file, &byte, 1, offset), 1);
  byte ^= 1;
  assert_int_equal(pwrite(file, &byte, 1, offset), 1);
  close(file);
}

static void blocks_are_allocated_in_advance(void **state) {
  spill_fixture *f = *state;
  struct stat status;
  assert_int_equal(stat(f->path, &status), 0);
  assert_int_equal(status.st_size, SPILL_BYTES);
  assert_true((int64_t)status.st_blocks * 512 >= SPILL_BYTES);
  assert_empty(f);
  rl_spill *huge = NULL;
  assert_int_equal(rl_spill_open(f->folder, "gpu0", INT64_C(1) << 62, &huge, &err), -1);
  assert_int_equal(err.domain, RL_ERRNO);
}

static void a_pass_is_read_back(void **state) {
  spill_fixture *f = *state;
  rl_spilled_pass pass;
  f->pass.log = (char *)"warning: unused";
  ASSERT_OK(rl_spill_write(f->spill, &f->pass, &err));
  if (reopen_and_read(f, &pass) != 1) fail_msg("%s", err.message);
  assert_true(pass.claim.job_id == 7 && pass.claim.run_id == 8 && pass.claim.pass_id == 9);
  assert_int_equal(pass.claim.pass, RL_PASS_ACTIVITY);
  assert_string_equal(pass.claim.run.variant, "fp16");
  assert_string_equal(pass.log, "warning: unused");
  assert_false(pass.is_unavailable);
  assert_int_equal(pass.records.has_metadata, f->source_pass.records.has_metadata);
  for (int kind = 0; kind < RL_RECORD_KIND_COUNT; kind++)
    assert_int_equal(rl_records_count(&pass.records, (rl_record_kind)kind),
                     rl_records_count(&f->source_pass.records, (rl_record_kind)kind));
  assert_true(pass.records.row_count > 0);
  assert_memory_equal(pass.records.rows, f->source_pass.records.rows, pass.records.row_count * sizeof *pass.records.rows);
  assert_int_equal(pass.first_row_index, 100);
  rl_spilled_pass_clear(&pass);
  f->pass.log = NULL;
  f->pass.is_unavailable = true;
  f->pass.failure = (rl_failure){.domain = "cupti", .message = "no privileges"};
  ASSERT_OK(rl_spill_write(f->spill, &f->pass, &err));
  assert_int_equal(reopen_and_read(f, &pass), 1);
  assert_true(pass.is_unavailable && pass.log == NULL);
  assert_string_equal(pass.failure.message, "no privileges");
  rl_spilled_pass_clear(&pass);
  ASSERT_OK(rl_spill_clear(f->spill, &err));
  assert_empty(f);
}

/* Between the write of the spill file and a crash, the daemon may have stored further rows. */
static void rows_that_are_stored_are_skipped(void **state) {
  spill_fixture *f = *state;
  rl_spilled_pass pass;
  ASSERT_OK(rl_spill_write(f->spill, &f->pass, &err));
  assert_int_equal(reopen_and_read(f, &pass), 1);
  size_t count = pass.records.row_count;
  assert_true(count > 1);
  ASSERT_FAILS(rl_spilled_pass_remove_stored_rows(&pass, 99, &err), RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD);
  ASSERT_OK(rl_spilled_pass_remove_stored_rows(&pass, 100, &err));
  assert_int_equal(pass.records.row_count, count);
  ASSERT_OK(rl_spilled_pass_remove_stored_rows(&pass, 101, &err));
  assert_int_equal(pass.records.row_count, count - 1);
  assert_memory_equal(pass.records.rows, f->source_pass.records.rows + 1, (count - 1) * sizeof *pass.records.rows);
  ASSERT_FAILS(rl_spilled_pass_remove_stored_rows(&pass, 100 + (int64_t)count + 1, &err), RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD);
  rl_spilled_pass_clear(&pass);
}

static void damage_is_detected(void **state) {
  static const off_t offsets[] = {9 /* version */, 20 /* job */, 60 /* lengths */, 4096, 4500};
  spill_fixture *f = *state;
  rl_spilled_pass pass;
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    ASSERT_OK(rl_spill_write(f->spill, &f->pass, &err));
    change_byte(f, offsets[i]);
    ASSERT_FAILS(reopen_and_read(f, &pass), RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD);
    assert_non_null(strstr(err.message, "damaged"));
  }
}

static void a_pass_that_does_not_fit_leaves_the_file_empty(void **state) {
  spill_fixture *f = *state;
  rl_spilled_pass large_pass = {.claim = f->pass.claim};
  rl_records large = {.has_metadata = true, .metadata = f->source_pass.records.metadata};
  rl_activity_row row = f->source_pass.records.rows[0];
  struct stat status;
  row.name = 0;
  ASSERT_OK(rl_records_add_name(&large, "kernel", 6, &err));
  for (size_t i = 0; i <= SPILL_BYTES / sizeof row; i++) ASSERT_OK(rl_records_add(&large, RL_RECORD_ROW, &row, 1, &err));
  ASSERT_OK(rl_spill_write(f->spill, &f->pass, &err));
  large_pass.records = large;
  ASSERT_FAILS(rl_spill_write(f->spill, &large_pass, &err), RL_WIRE, RL_WIRE_MEMORY_LIMIT);
  assert_empty(f);
  assert_int_equal(stat(f->path, &status), 0);
  assert_int_equal(status.st_size, SPILL_BYTES);
  rl_records_clear(&large);
}

/* Two slices of the pass's rows are stored: one before the spill file is written, one after. Recovery stores only the other
 * rows. */
static void recovery_continues_after_the_stored_rows(void **state) {
  enum { ROWS = 3 * RL_SLICE_ROWS + 10 };
  spill_fixture *f = *state;
  void *opened = NULL;
  open_fixture(&opened);
  fixture *stored = opened;
  submit(stored->store, "cpu", 1u << RL_PASS_ACTIVITY);
  rl_spilled_pass pass = {.claim = claim(stored->store, "cpu"), .log = (char *)"warning: unused"};
  rl_spill *spill = NULL;
  rl_activity_appender *appender = rl_activity_appender_new();
  pass.records = (rl_records){.has_metadata = true, .metadata = f->source_pass.records.metadata};
  ASSERT_OK(rl_records_add_name(&pass.records, "kernel", 6, &err));
  for (int64_t i = 0; i < ROWS; i++) {
    rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .start_ns = i, .end_ns = i + 1};
    ASSERT_OK(rl_records_add(&pass.records, RL_RECORD_ROW, &row, 1, &err));
  }
  ASSERT_OK(rl_store_append_activity(stored->store, &pass.claim, appender, &pass.records, &err));
  pass.first_row_index = rl_activity_appender_row_count(appender);
  assert_int_equal(pass.first_row_index, RL_SLICE_ROWS);
  ASSERT_OK(rl_spill_open(stored->folder, "cpu", 4 * SPILL_BYTES, &spill, &err));
  ASSERT_OK(rl_spill_write(spill, &pass, &err));
  ASSERT_OK(rl_store_append_activity(stored->store, &pass.claim, appender, &pass.records, &err));
  rl_activity_appender_free(appender);
  for (int i = 0; i < 2; i++)
    ASSERT_OK(rl_recover_spilled_passes(stored->folder, stored->store, &err)); /* the second call finds nothing */
  assert_int_equal(query_integer(stored, "SELECT count(DISTINCT start_ns) FROM v_activity"), ROWS);
  assert_int_equal(query_integer(stored, "SELECT count(*) FROM v_activity"), ROWS);
  assert_int_equal(query_integer(stored, "SELECT count(*) FROM passes WHERE state = 'completed'"), 1);
  assert_int_equal(query_integer(stored, "SELECT count(*) FROM runs WHERE log = 'warning: unused'"), 1);
  rl_spilled_pass none;
  assert_int_equal(rl_spill_read(spill, &none, &err), 0);
  rl_spill_close(spill);
  rl_records_clear(&pass.records);
  close_fixture(&opened);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, open_spill_fixture, close_spill_fixture)
  const struct CMUnitTest tests[] = {TEST(blocks_are_allocated_in_advance),
                                     TEST(a_pass_is_read_back),
                                     TEST(rows_that_are_stored_are_skipped),
                                     TEST(recovery_continues_after_the_stored_rows),
                                     TEST(damage_is_detected),
                                     TEST(a_pass_that_does_not_fit_leaves_the_file_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
