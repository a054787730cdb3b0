/* Tests the folder of uploaded traces: limits, the files that are kept, and the files that a start deletes. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_fixture.h"
#include "upload/spool.h"

typedef struct spool_fixture {
  char folder[64], uploads[80];
  rl_store *store;
  rl_upload_spool *spool;
} spool_fixture;

static const rl_upload_limits limits = {.file_bytes = 1000, .total_bytes = 1500};

static int open_spool_fixture(void **state) {
  spool_fixture *f = calloc(1, sizeof *f);
  strcpy(f->folder, "/tmp/rooflined-uploads-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->uploads, sizeof f->uploads, "%s/uploads", f->folder);
  ASSERT_OK(rl_store_open(f->folder, &f->store, &err));
  ASSERT_OK(rl_upload_spool_open(f->folder, &limits, f->store, &f->spool, &err));
  *state = f;
  return 0;
}

static int close_spool_fixture(void **state) {
  spool_fixture *f = *state;
  rl_upload_spool_close(f->spool);
  rl_store_close(f->store);
  remove_folder(f->folder);
  free(f);
  return 0;
}

static int count_uploaded_files(const spool_fixture *f) {
  char command[128];
  int count = -1;
  snprintf(command, sizeof command, "ls %s | wc -l", f->uploads);
  FILE *pipe = popen(command, "r");
  assert_int_equal(fscanf(pipe, "%d", &count), 1);
  pclose(pipe);
  return count;
}

static rl_upload *upload_bytes(spool_fixture *f, char first, size_t size) {
  rl_upload *upload = NULL;
  char data[1200];
  memset(data, ' ', sizeof data);
  data[0] = first;
  ASSERT_OK(rl_upload_begin(f->spool, &upload, &err));
  ASSERT_OK(rl_upload_write(upload, data, size, &err));
  return upload;
}

/* Inserts the job of an upload, as POST /imports does. */
static int64_t insert_import(spool_fixture *f, const rl_imported_trace_params *params) {
  rl_job_spec spec = {
      .kind = RL_IMPORT_KIND, .device = RL_IMPORT_DEVICE, .passes = 1u << RL_PASS_ACTIVITY, .run_count = 1, .request = "{}"};
  int64_t id;
  bool existing;
  strcpy(spec.runs[0].workload, RL_IMPORT_WORKLOAD);
  snprintf(spec.runs[0].params, sizeof spec.runs[0].params, "{\"upload\":\"%s\"}", params->upload);
  ASSERT_OK(rl_store_job_insert(f->store, &spec, NULL, NULL, 10, &id, &existing, &err));
  return id;
}

static void a_finished_upload_is_described(void **state) {
  spool_fixture *f = *state;
  rl_imported_trace_params params = {.format = RL_TRACE_FORMAT_AUTO};
  rl_upload *upload = upload_bytes(f, '[', 1);
  ASSERT_OK(rl_upload_write(upload, "]", 1, &err));
  ASSERT_OK(rl_upload_finish(upload, &params, &err));
  assert_int_equal(params.bytes, 2);
  assert_int_equal(params.format, RL_TRACE_FORMAT_KINETO);
  assert_string_equal(params.sha256, "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"); /* sha256sum of [] */
  assert_int_equal(count_uploaded_files(f), 1);
  rl_upload_end(upload);
  assert_int_equal(count_uploaded_files(f), 0);
}

static void sizes_are_limited(void **state) {
  spool_fixture *f = *state;
  rl_upload *first = upload_bytes(f, '[', 1000), *second = upload_bytes(f, '[', 500);
  assert_int_equal(rl_upload_write(first, "x", 1, &err), -1);
  assert_int_equal(err.code, 413);
  assert_int_equal(rl_upload_write(second, "x", 1, &err), -1);
  assert_int_equal(err.code, 503);
  rl_upload_end(first);
  ASSERT_OK(rl_upload_write(second, "x", 1, &err)); /* the first upload has released its bytes */
  rl_upload_end(second);
}

static void an_upload_without_bytes_makes_no_file(void **state) {
  spool_fixture *f = *state;
  rl_upload *upload;
  ASSERT_OK(rl_upload_begin(f->spool, &upload, &err));
  rl_upload_end(upload);
  assert_int_equal(count_uploaded_files(f), 0);
}

/* A file stays while its job waits, even when the daemon starts, which deletes files without a job. */
static void a_file_stays_until_its_job_ends(void **state) {
  spool_fixture *f = *state;
  rl_imported_trace_params params = {.format = RL_TRACE_FORMAT_AUTO};
  rl_upload *upload = upload_bytes(f, '[', 100);
  ASSERT_OK(rl_upload_finish(upload, &params, &err));
  int64_t job = insert_import(f, &params);
  rl_upload_keep_file(upload);
  rl_upload_end(upload);
  char abandoned_path[128], run_params[128];
  snprintf(abandoned_path, sizeof abandoned_path, "%s/ffff", f->uploads);
  close(open(abandoned_path, O_CREAT | O_WRONLY, 0600));
  rl_upload_spool_close(f->spool);
  ASSERT_OK(rl_upload_spool_open(f->folder, &limits, f->store, &f->spool, &err));
  assert_int_equal(count_uploaded_files(f), 1);
  snprintf(run_params, sizeof run_params, "{\"upload\":\"%s\"}", params.upload);
  int file = rl_upload_open_file(f->spool, run_params, &err);
  char byte;
  assert_int_equal(read(file, &byte, 1), 1);
  assert_int_equal(byte, '[');
  close(file);
  ASSERT_OK(rl_store_job_finish(f->store, job, RL_JOB_CANCELLED, NULL, &err));
  rl_upload_spool_delete_unneeded(f->spool);
  assert_int_equal(count_uploaded_files(f), 0);
  assert_int_equal(rl_upload_open_file(f->spool, run_params, &err), -1);
}

static void names_do_not_leave_the_folder(void **state) {
  spool_fixture *f = *state;
  static const char *const names[] = {"../rooflined.db", ".", "..", "", "a/b"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char params[128];
    snprintf(params, sizeof params, "{\"upload\":\"%s\"}", names[i]);
    assert_int_equal(rl_upload_open_file(f->spool, params, &err), -1);
    assert_int_equal(err.domain, RL_INPUT);
  }
}

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, open_spool_fixture, close_spool_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_finished_upload_is_described), TEST(sizes_are_limited),
                                     TEST(an_upload_without_bytes_makes_no_file), TEST(a_file_stays_until_its_job_ends),
                                     TEST(names_do_not_leave_the_folder)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
