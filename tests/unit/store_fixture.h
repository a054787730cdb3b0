/* Helpers for the tests that use a store: they open a store in a temporary folder, submit jobs, make and commit the records of
 * passes, and query the store. */
#ifndef RL_TESTS_STORE_FIXTURE_H
#define RL_TESTS_STORE_FIXTURE_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> /* needs the headers above */
/* clang-format on */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "store/store_internal.h"
#include "store/store.h"
#include "temporary_folder.h"

/* Checks that the call, whose last argument is &err, succeeds. */
#define ASSERT_OK(CALL)                                     \
  do {                                                      \
    if ((CALL) < 0) fail_msg("%s: %s", #CALL, err.message); \
  } while (0)
/* Checks that the call fails with this error. */
#define ASSERT_FAILS(CALL, DOMAIN, CODE)    \
  do {                                      \
    memset(&err, 0, sizeof err);            \
    assert_int_equal((CALL), -1);           \
    assert_int_equal(err.domain, (DOMAIN)); \
    assert_int_equal(err.code, (CODE));     \
    assert_true(strlen(err.message) > 10);  \
  } while (0)

/* Checks that the call fails with RL_STORAGE, this cause, and SQLite's extended result code in the message. */
#define ASSERT_SQLITE_FAILS(CALL, CAUSE, SQLITE_CODE)                  \
  do {                                                                 \
    char expected_[32];                                                \
    ASSERT_FAILS(CALL, RL_STORAGE, CAUSE);                             \
    snprintf(expected_, sizeof expected_, "(SQLite %d:", SQLITE_CODE); \
    assert_non_null(strstr(err.message, expected_));                   \
  } while (0)

static rl_error err;

typedef struct fixture {
  char folder[64];
  rl_store *store;
} fixture;

static inline int open_fixture(void **state) {
  fixture *f = calloc(1, sizeof *f);
  strcpy(f->folder, "/tmp/rooflined-store-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  ASSERT_OK(rl_store_open(f->folder, &f->store, &err));
  *state = f;
  return 0;
}

static inline int close_fixture(void **state) {
  fixture *f = *state;
  rl_store_close(f->store);
  remove_folder(f->folder);
  free(f);
  return 0;
}

/* Closes and opens the store, as a restart does. */
static inline void reopen_store(fixture *f) {
  rl_store_close(f->store);
  f->store = NULL;
  ASSERT_OK(rl_store_open(f->folder, &f->store, &err));
}

/* Returns the specification of a training job with two runs, fp32 and fp16. passes: a set of bits 1 << rl_pass. */
static inline rl_job_spec make_spec(const char *device, uint32_t passes) {
  rl_job_spec spec = {.passes = passes, .run_count = 2, .time_limit_s = 60};
  strcpy(spec.kind, "train");
  snprintf(spec.device, sizeof spec.device, "%s", device);
  if ((passes & 1u << RL_PASS_COUNTERS) != 0) strcpy(spec.profile, "{\"sections\":[],\"launch\":-1}");
  strcpy(spec.request, "{\"kind\":\"train\",\"precisions\":[\"fp32\",\"fp16\"]}");
  static const char *const variants[] = {"fp32", "fp16"};
  for (int i = 0; i < 2; i++) {
    strcpy(spec.runs[i].workload, "mnist_cnn");
    strcpy(spec.runs[i].variant, variants[i]);
    snprintf(spec.runs[i].params, sizeof spec.runs[i].params, "{\"precision\":\"%s\",\"batch_size\":64,\"seed\":1}", variants[i]);
  }
  return spec;
}

/* Inserts a job of make_spec into the store and returns its id. */
static inline int64_t submit(rl_store *store, const char *device, uint32_t passes) {
  rl_job_spec spec = make_spec(device, passes);
  int64_t id = 0;
  bool existing = true;
  ASSERT_OK(rl_store_job_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  assert_false(existing);
  return id;
}

/* Claims the next pass of the device. Fails the test if there is none. */
static inline rl_claim claim(rl_store *store, const char *device) {
  rl_claim claimed = {0};
  int rc = rl_store_pass_claim(store, device, &claimed, &err);
  if (rc < 0) fail_msg("claim: %s", err.message);
  assert_int_equal(rc, 1);
  return claimed;
}

#define TEST_CPU_PROPERTIES "{\"name\":\"Test CPU\",\"threads\":2,\"cache_bytes\":40000000,\"private_cache_bytes\":1000000}"

/* The records of a pass. The pointers in `records` point to the arrays of this struct, so rl_records_clear must not be
 * called. */
typedef struct pass_records {
  rl_records records;
  rl_epoch epochs[4];
  rl_measurement measurements[8];
  rl_kernel kernels[2];
  rl_phase phases[2];
  rl_kernel_metric metrics[2];
  rl_instruction instructions[2];
  rl_series_point points[2];
  char *names[2];
  rl_activity_row rows[4];
} pass_records;

static inline rl_epoch make_epoch(int64_t number, bool warmup, double ms) {
  rl_epoch epoch = {.epoch = number,
                    .warmup = warmup,
                    .device_ms = ms,
                    .host_ms = ms + 1,
                    .evaluation_ms = NAN,
                    .images = 60000,
                    .train_loss = 0.5,
                    .test_loss = NAN,
                    .test_accuracy_ratio = 0.98,
                    .loss_scale = NAN,
                    .skipped_steps = NAN,
                    .sm_clock_before_mhz = NAN,
                    .sm_clock_after_mhz = NAN,
                    .memory_clock_mhz = NAN,
                    .temperature_c = NAN,
                    .power_w = NAN};
  strcpy(epoch.unavailable, "{\"power_w\":\"no NVML\"}");
  return epoch;
}

/* reason: why the value is NAN; "" if it is not. */
static inline void add_measurement(pass_records *pass_data, const char *name, double value, const char *reason) {
  rl_measurement *measurement = &pass_data->measurements[pass_data->records.measurement_count++];
  snprintf(measurement->name, sizeof measurement->name, "%s", name);
  measurement->value = value;
  snprintf(measurement->reason, sizeof measurement->reason, "%s", reason);
}

static inline void add_metadata(pass_records *pass_data) {
  pass_data->records.has_metadata = true;
  pass_data->records.metadata = (rl_run_metadata){.deterministic = true,
                                                  .images_per_epoch = 60000,
                                                  .steps_per_epoch = 938,
                                                  .parameters = 315146,
                                                  .floor_operations = 1e9,
                                                  .floor_bytes = 1e8,
                                                  .floor_written_bytes = 1e7,
                                                  .floor_precision = "fp32"};
  strcpy(pass_data->records.metadata.engine, "blas");
  strcpy(pass_data->records.metadata.dataset, "mnist");
  strcpy(pass_data->records.metadata.device_properties, TEST_CPU_PROPERTIES);
  strcpy(pass_data->records.metadata.commit, "0123456789ab");
}

static inline void add_epochs(pass_records *pass_data, double scale) {
  static const double times[] = {500, 100, 130, 110}; /* the first is warm-up */
  for (int i = 0; i < 4; i++) pass_data->epochs[i] = make_epoch(i, i == 0, times[i] * scale);
  pass_data->records.epochs = pass_data->epochs, pass_data->records.epoch_count = 4;
  add_measurement(pass_data, "peak_memory_bytes", 1000 * scale, "");
  add_measurement(pass_data, "launches_per_step", 25, "");
}

static inline void add_activity(pass_records *pass_data) {
  add_measurement(pass_data, "launch_gap_ratio", NAN, "spans do not overlap");
  pass_data->names[0] = (char *)"conv1_forward", pass_data->names[1] = (char *)"epoch";
  pass_data->records.names = pass_data->names, pass_data->records.name_count = 2;
  pass_data->rows[0] = (rl_activity_row){.start_ns = 0, .end_ns = 1000, .kind = RL_ACTIVITY_NVTX_RANGE, .name = 1};
  for (uint32_t i = 0; i < 3; i++)
    pass_data->rows[1 + i] = (rl_activity_row){.start_ns = 100 + 200 * i,
                                               .end_ns = 200 + 200 * i,
                                               .kind = RL_ACTIVITY_KERNEL,
                                               .stream = 7,
                                               .grid = {2, 3, 4},
                                               .block = {32, 1, 1},
                                               .registers = 40};
  pass_data->rows[3].kind = RL_ACTIVITY_PHASE, pass_data->rows[3].step = 5;
  pass_data->records.rows = pass_data->rows, pass_data->records.row_count = 4;
  pass_data->phases[0] = (rl_phase){
      .name = "load", .phase = "forward", .steps = 32, .blocks = 128, .mean_us = 1.5, .max_us = 2.5, .share_ratio = 0.75};
  pass_data->phases[1] = (rl_phase){
      .position = 1, .name = "wait", .steps = 32, .blocks = 128, .mean_us = 0.5, .min_us = NAN, .max_us = 1, .share_ratio = 0.25};
  pass_data->records.phases = pass_data->phases, pass_data->records.phase_count = 2;
}

static inline void add_kernels(pass_records *pass_data) {
  pass_data->kernels[0] = (rl_kernel){.ordinal = 0,
                                      .name = "conv1_forward",
                                      .launches = 3,
                                      .total_us = 0.3,
                                      .min_us = 0.1,
                                      .median_us = 0.1,
                                      .max_us = 0.1,
                                      .share_ratio = 0.3,
                                      .registers_per_thread = 40,
                                      .static_shared_bytes = NAN,
                                      .dynamic_shared_bytes = NAN,
                                      .grid_x = 2,
                                      .grid_y = 3,
                                      .grid_z = 4,
                                      .block_x = 32,
                                      .block_y = 1,
                                      .block_z = 1,
                                      .theoretical_occupancy_ratio = NAN,
                                      .code_sha256 = "c0de",
                                      .reason = "not known"};
  pass_data->kernels[1] = (rl_kernel){.ordinal = 1, .name = "relu", .launches = 1, .total_us = NAN, .reason = "no time"};
  pass_data->records.kernels = pass_data->kernels, pass_data->records.kernel_count = 2;
}

static inline void add_instructions_and_points(pass_records *pass_data) {
  pass_data->instructions[0] = (rl_instruction){.offset = 0,
                                                .opcode = "LDG.E",
                                                .sass = "LDG.E R2, [R2.64]",
                                                .file = "relu.cu",
                                                .line = 7,
                                                .counts = "{\"inst_executed\":64,\"smsp__pcsamp_sample_count\":3}"};
  pass_data->instructions[1] = (rl_instruction){.offset = 16, .counts = "{}", .reason = "nvdisasm is not installed"};
  pass_data->records.instructions = pass_data->instructions, pass_data->records.instruction_count = 2;
  pass_data->points[0] = (rl_series_point){.name = "sm_active_pct", .x = 0, .value = 12.5};
  pass_data->points[1] = (rl_series_point){.name = "sm_active_pct", .x = 1000, .value = NAN};
  pass_data->records.points = pass_data->points, pass_data->records.point_count = 2;
}

static inline void add_metrics(pass_records *pass_data) {
  pass_data->metrics[0] = (rl_kernel_metric){.ordinal = 0, .metric = "dram__bytes.sum", .value = 4096};
  pass_data->metrics[1] = (rl_kernel_metric){.ordinal = 0, .metric = "l2_hit_ratio", .value = NAN, .reason = "not offered"};
  pass_data->records.metrics = pass_data->metrics, pass_data->records.metric_count = 2;
}

/* Fills *pass_data with records of every kind that the pass yields. scale multiplies the times of the epochs, whose median is 110
 * ms and whose minimum is 100 ms at scale 1. */
static inline void fill_records(pass_records *pass_data, rl_pass pass, double scale) {
  memset(pass_data, 0, sizeof *pass_data);
  pass_data->records.measurements = pass_data->measurements;
  add_metadata(pass_data);
  if (pass == RL_PASS_TIMING) add_epochs(pass_data, scale);
  if (pass == RL_PASS_ACTIVITY) add_activity(pass_data);
  if (pass != RL_PASS_TIMING) add_kernels(pass_data), add_instructions_and_points(pass_data);
  if (pass == RL_PASS_COUNTERS) add_metrics(pass_data);
}

/* Claims the next pass of the device and commits records for it. Returns whether its job is completed. */
static inline bool execute_pass(rl_store *store, const char *device, double scale) {
  rl_claim claimed = claim(store, device);
  pass_records pass_data;
  bool done = false;
  fill_records(&pass_data, claimed.pass, scale);
  ASSERT_OK(rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, &err));
  return done;
}

typedef struct rate {
  const char *name;
  double value;
} rate;

/* Completes a ceilings job on a device with these properties, and returns its id. rates: ends with a NULL name. */
static inline int64_t execute_ceilings_job(rl_store *store, const char *properties, const rate *rates) {
  rl_job_spec spec = {.kind = "ceilings", .device = "cpu", .passes = 1u << RL_PASS_TIMING, .run_count = 1, .request = "{}"};
  strcpy(spec.runs[0].workload, "ceilings");
  strcpy(spec.runs[0].variant, "best");
  strcpy(spec.runs[0].params, "{}");
  int64_t id = 0;
  bool existing, done;
  ASSERT_OK(rl_store_job_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  rl_claim claimed = claim(store, "cpu");
  pass_records pass_data = {.records.has_metadata = true};
  pass_data.records.metadata =
      (rl_run_metadata){.engine = "cpu", .floor_operations = NAN, .floor_bytes = NAN, .floor_written_bytes = NAN};
  strcpy(pass_data.records.metadata.device_properties, properties);
  pass_data.records.measurements = pass_data.measurements;
  for (; rates->name; rates++) add_measurement(&pass_data, rates->name, rates->value, "");
  ASSERT_OK(rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, &err));
  return id;
}

/* The rates of a CPU on which the floor of an epoch of fill_records is 10 ms. */
static const rate rates_for_10_ms_floor[] = {{"fp32_operations_per_s", 1e11}, {"dram_read_bytes_per_s", 1e11}, {0}};

/* Opens another connection to the store's database. */
static inline sqlite3 *connect_to(const fixture *f) {
  char path[96];
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/rooflined.db", f->folder);
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  sqlite3_exec(db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL);
  return db;
}

/* Executes sql. Returns the integer in the first column of the first row; -1 if there is no row. */
static inline int64_t query_integer_on(sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  int64_t value = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : -1;
  sqlite3_finalize(row);
  return value;
}

static inline int64_t query_integer(const fixture *f, const char *sql) {
  sqlite3 *db = connect_to(f);
  int64_t value = query_integer_on(db, sql);
  sqlite3_close(db);
  return value;
}

/* Returns the rows of a query as a JSON array. */
static inline cJSON *query_rows(rl_store *store, rl_query query, const rl_binding *bindings, int count) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *text = NULL;
  cJSON *rows = cJSON_CreateArray();
  ASSERT_OK(rl_store_query(store, query, bindings, count, &cursor, &err));
  for (int more; (more = rl_cursor_next(cursor, &text, &err)) != 0;) {
    if (more < 0) fail_msg("next: %s", err.message);
    cJSON *row = rl_json_parse(text, strlen(text), &err);
    if (row == NULL) fail_msg("not JSON (%s): %s", err.message, text);
    cJSON_AddItemToArray(rows, row);
  }
  return rows;
}
#define QUERY_ROWS(STORE, QUERY, ...) query_rows((STORE), (QUERY), RL_BINDINGS(__VA_ARGS__))

/* Returns the value at a path like "runs.0.summary.epoch_ms_median". Fails the test if there is no such value. */
static inline const cJSON *json_at(const cJSON *node, const char *path) {
  char copy[128];
  snprintf(copy, sizeof copy, "%s", path);
  char *rest = NULL;
  for (char *part = strtok_r(copy, ".", &rest); part != NULL && node != NULL; part = strtok_r(NULL, ".", &rest))
    node = cJSON_IsArray(node) ? cJSON_GetArrayItem(node, atoi(part)) : cJSON_GetObjectItemCaseSensitive(node, part);
  if (node == NULL) fail_msg("there is no %s", path);
  return node;
}

static inline void assert_number(const cJSON *node, const char *path, double value) {
  if (!cJSON_IsNumber(json_at(node, path)) || fabs(json_at(node, path)->valuedouble - value) > 1e-9 * fabs(value) + 1e-12)
    fail_msg("%s is %s, not %.17g", path, cJSON_PrintUnformatted(json_at(node, path)), value);
}
static inline void assert_text(const cJSON *node, const char *path, const char *text) {
  if (!cJSON_IsString(json_at(node, path))) fail_msg("%s is not text", path);
  assert_string_equal(json_at(node, path)->valuestring, text);
}

#endif
