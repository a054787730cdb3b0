/* Implements nsys.h. The array source_tables lists the tables that are read, and the array `columns` lists the columns of all
 * these tables. The SELECT of each table returns all of these columns; a column that the table does not have is NULL. */
#include "import/nsys.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_STEPS = 20000, MAX_HEAP_BYTES = 192 << 20, MAX_CELL_BYTES = 1 << 20, SQL_SIZE = 4096 };

typedef struct database {
  sqlite3 *handle;
  const rl_import_observer *observer;
  double progress;
  bool is_cancelled;
  rl_trace *trace;
} database;

/* --- opening ----------------------------------------------------------------------------------------------------------- */

/* Descriptor of the trace. SQLite gets a duplicate of it for each file name that it opens, because the sandbox does not allow
 * opening files. Not thread-local, because a process runs one import at a time. */
static int trace_descriptor = -1;

static int open_trace(const char *path, int flags, int mode) {
  (void)path, (void)flags, (void)mode;
  return fcntl(trace_descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int open_handle(int descriptor, sqlite3 **handle) {
  sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
  trace_descriptor = descriptor;
  vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_trace);
  int rc = sqlite3_open_v2("file:/trace?immutable=1", handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
  vfs->xSetSystemCall(vfs, "open", NULL);
  return rc;
}

static int fail(database *db, rl_error *err) {
  if (db->is_cancelled) return rl_fail(err, RL_ERRNO, ECANCELED, "the import was cancelled");
  return rl_fail(err, RL_INPUT, 0, "the SQLite database can't be read: %s", sqlite3_errmsg(db->handle));
}

static int on_progress(void *context) {
  database *db = context;
  db->is_cancelled = db->observer->cancelled(db->observer->context, db->progress);
  return db->is_cancelled;
}

static int restrict_handle(database *db, rl_error *err) {
  static const struct {
    int option, value;
  } options[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                 {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                 {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                 {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                 {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if (sqlite3_db_config(db->handle, options[i].option, options[i].value, NULL) != SQLITE_OK) return fail(db, err);
  sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES);
  sqlite3_limit(db->handle, SQLITE_LIMIT_SQL_LENGTH, 64 << 10);
  sqlite3_limit(db->handle, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db->handle, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_progress_handler(db->handle, PROGRESS_STEPS, on_progress, db);
  if (sqlite3_exec(db->handle, "PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY", NULL, NULL,
                   NULL) != SQLITE_OK)
    return fail(db, err);
  return 0;
}

RL_DEFINE_CLEANUP(close_handle, sqlite3 *, sqlite3_close, NULL)
RL_DEFINE_CLEANUP(finalize, sqlite3_stmt *, sqlite3_finalize, NULL)

/* --- the schema -------------------------------------------------------------------------------------------------------- */

typedef enum column {
  COLUMN_START,
  COLUMN_END,
  COLUMN_DEVICE,
  COLUMN_CONTEXT,
  COLUMN_STREAM,
  COLUMN_CORRELATION,
  COLUMN_PROCESS, /* values of COLUMN_PROCESS and COLUMN_THREAD contain the pid and the tid, in 24 bits each */
  COLUMN_THREAD,
  COLUMN_GRAPH_NODE,
  COLUMN_GRAPH,
  COLUMN_BYTES,
  COLUMN_COPY_KIND,
  COLUMN_SOURCE_MEMORY,
  COLUMN_DESTINATION_MEMORY,
  COLUMN_MEMORY,
  COLUMN_GRID_X,
  COLUMN_GRID_Y,
  COLUMN_GRID_Z,
  COLUMN_BLOCK_X,
  COLUMN_BLOCK_Y,
  COLUMN_BLOCK_Z,
  COLUMN_REGISTERS,
  COLUMN_STATIC_SHARED,
  COLUMN_DYNAMIC_SHARED,
  COLUMN_EVENT_TYPE,
  COLUMN_COUNT,
  COLUMN_NAME = COLUMN_COUNT /* the row's name: the first value of name_columns that is not NULL */
} column;

static const char *const columns[COLUMN_COUNT] = {[COLUMN_START] = "start",
                                                  [COLUMN_END] = "end",
                                                  [COLUMN_DEVICE] = "deviceId",
                                                  [COLUMN_CONTEXT] = "contextId",
                                                  [COLUMN_STREAM] = "streamId",
                                                  [COLUMN_CORRELATION] = "correlationId",
                                                  [COLUMN_PROCESS] = "globalPid",
                                                  [COLUMN_THREAD] = "globalTid",
                                                  [COLUMN_GRAPH_NODE] = "graphNodeId",
                                                  [COLUMN_GRAPH] = "graphId",
                                                  [COLUMN_BYTES] = "bytes",
                                                  [COLUMN_COPY_KIND] = "copyKind",
                                                  [COLUMN_SOURCE_MEMORY] = "srcKind",
                                                  [COLUMN_DESTINATION_MEMORY] = "dstKind",
                                                  [COLUMN_MEMORY] = "memKind",
                                                  [COLUMN_GRID_X] = "gridX",
                                                  [COLUMN_GRID_Y] = "gridY",
                                                  [COLUMN_GRID_Z] = "gridZ",
                                                  [COLUMN_BLOCK_X] = "blockX",
                                                  [COLUMN_BLOCK_Y] = "blockY",
                                                  [COLUMN_BLOCK_Z] = "blockZ",
                                                  [COLUMN_REGISTERS] = "registersPerThread",
                                                  [COLUMN_STATIC_SHARED] = "staticSharedMemory",
                                                  [COLUMN_DYNAMIC_SHARED] = "dynamicSharedMemory",
                                                  [COLUMN_EVENT_TYPE] = "eventType"};

/* Columns that can contain a row's name: as a text, or as an id of the table StringIds. */
static const struct {
  const char *column;
  bool is_text;
} name_columns[] = {{"demangledName", false}, {"shortName", false}, {"nameId", false}, {"text", true}, {"textId", false}};

/* Returns 1 if the file has an ordinary table of this name, 0 if it has none. Fails if the name is that of a view or a virtual
 * table, because reading these could execute arbitrary SQL. */
static int has_table(database *db, const char *table, rl_error *err) {
  RL_CLEANUP(finalize) sqlite3_stmt *statement = NULL;
  static const char sql[] = "SELECT type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' FROM sqlite_schema WHERE name = ?";
  if (sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL) != SQLITE_OK ||
      sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC) != SQLITE_OK)
    return fail(db, err);
  int rc = sqlite3_step(statement);
  if (rc == SQLITE_DONE) return 0;
  if (rc != SQLITE_ROW) return fail(db, err);
  return sqlite3_column_int(statement, 0) ? 1 : rl_fail(err, RL_INPUT, 0, "%s is not a table", table);
}

/* Returns 1 if the table has the column, else 0. */
static int has_column(database *db, const char *table, const char *name, rl_error *err) {
  RL_CLEANUP(finalize) sqlite3_stmt *statement = NULL;
  static const char sql[] = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?";
  if (sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL) != SQLITE_OK ||
      sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC) != SQLITE_OK ||
      sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC) != SQLITE_OK)
    return fail(db, err);
  int rc = sqlite3_step(statement);
  return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : fail(db, err);
}

static void append(char *sql, const char *text) { snprintf(sql + strlen(sql), SQL_SIZE - strlen(sql), "%s", text); }

/* Appends the column to the SELECT, or NULL if the table does not have it. */
static int append_column(database *db, const char *table, const char *name, char *sql, rl_error *err) {
  int found = has_column(db, table, name, err);
  if (found < 0) return -1;
  append(sql, found ? "t.\"" : "NULL");
  if (found) append(sql, name), append(sql, "\"");
  append(sql, ", ");
  return 0;
}

static int append_name(database *db, const char *table, bool has_strings, char *sql, rl_error *err) {
  append(sql, "coalesce(");
  for (size_t i = 0; i < sizeof name_columns / sizeof *name_columns; i++) {
    int found = name_columns[i].is_text || has_strings ? has_column(db, table, name_columns[i].column, err) : 0;
    if (found < 0) return -1;
    if (found == 0) continue;
    append(sql, name_columns[i].is_text ? "t.\"" : "(SELECT s.value FROM StringIds s WHERE s.id = t.\"");
    append(sql, name_columns[i].column);
    append(sql, name_columns[i].is_text ? "\", " : "\"), ");
  }
  append(sql, "NULL, NULL) FROM \"");
  append(sql, table);
  append(sql, "\" t");
  return 0;
}

/* Returns 1 if the file has the table StringIds, else 0. Fails if the table has no primary key, because then each look-up of a
 * name would read the whole table. */
static int has_string_ids(database *db, rl_error *err) {
  RL_CLEANUP(finalize) sqlite3_stmt *statement = NULL;
  static const char sql[] = "SELECT 1 FROM pragma_table_info('StringIds') WHERE name = 'id' AND pk = 1";
  int found = has_table(db, "StringIds", err);
  if (found <= 0) return found;
  if (sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL) != SQLITE_OK) return fail(db, err);
  int rc = sqlite3_step(statement);
  if (rc == SQLITE_DONE) return rl_fail(err, RL_INPUT, 0, "StringIds has no primary key id");
  return rc == SQLITE_ROW ? 1 : fail(db, err);
}

/* Prepares the SELECT of a table. All names of tables and columns in its text are constants of this source file, never text of
 * the trace. */
static int prepare_select(database *db, const char *table, sqlite3_stmt **statement, rl_error *err) {
  char sql[SQL_SIZE] = "SELECT ";
  int has_strings = has_string_ids(db, err);
  if (has_strings < 0) return -1;
  for (int i = 0; i < COLUMN_COUNT; i++)
    if (append_column(db, table, columns[i], sql, err) < 0) return -1;
  if (append_name(db, table, has_strings, sql, err) < 0) return -1;
  return sqlite3_prepare_v2(db->handle, sql, -1, statement, NULL) == SQLITE_OK ? 0 : fail(db, err);
}

/* --- rows -------------------------------------------------------------------------------------------------------------- */

enum { NVTX_PUSH_POP_RANGE = 59, NVTX_START_END_RANGE = 60, API_CALL = RL_ACTIVITY_KIND_COUNT, WAIT };

/* kind: the rl_activity_kind of the table's rows; API_CALL: the rows are calls of the runtime or driver API; WAIT: the rows are
 * only counted as skipped. */
static const struct source_table {
  const char *name;
  int kind;
} source_tables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", RL_ACTIVITY_KERNEL},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", RL_ACTIVITY_KERNEL}, /* a launch of a whole graph, which nsys records as one operation */
    {"CUPTI_ACTIVITY_KIND_MEMCPY", RL_ACTIVITY_MEMCPY},
    {"CUPTI_ACTIVITY_KIND_MEMSET", RL_ACTIVITY_MEMSET},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", API_CALL},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", WAIT},
    {"PROFILER_OVERHEAD", RL_ACTIVITY_OVERHEAD},
    {"NVTX_EVENTS", RL_ACTIVITY_NVTX_RANGE}};

static uint32_t read_number(sqlite3_stmt *row, column index) {
  int64_t value = sqlite3_column_int64(row, index);
  return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static uint32_t process_of(sqlite3_stmt *row) {
  bool has_process = sqlite3_column_type(row, COLUMN_PROCESS) != SQLITE_NULL;
  uint64_t id = (uint64_t)sqlite3_column_int64(row, has_process ? COLUMN_PROCESS : COLUMN_THREAD);
  return (uint32_t)(id >> 24 & 0xffffff);
}

static uint32_t thread_of(sqlite3_stmt *row) { return (uint32_t)(sqlite3_column_int64(row, COLUMN_THREAD) & 0xffffff); }

static const char *copy_name(int64_t kind) {
  static const char *const names[] = {"memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA", "memcpy AtoH", "memcpy AtoA",
                                      "memcpy AtoD", "memcpy DtoA", "memcpy DtoD", "memcpy HtoH", "memcpy PtoP"};
  return names[kind > 0 && kind < (int64_t)(sizeof names / sizeof *names) ? kind : 0];
}

/* Writes a name for a row that has no name in the file. */
static void make_name(sqlite3_stmt *row, const struct source_table *table, char name[64]) {
  if (table->kind == RL_ACTIVITY_MEMCPY) snprintf(name, 64, "%s", copy_name(sqlite3_column_int64(row, COLUMN_COPY_KIND)));
  else if (table->kind == RL_ACTIVITY_MEMSET) snprintf(name, 64, "memset");
  else if (sqlite3_column_type(row, COLUMN_GRAPH) == SQLITE_NULL) snprintf(name, 64, "(unnamed)");
  else snprintf(name, 64, "CUDA graph %lld", (long long)sqlite3_column_int64(row, COLUMN_GRAPH));
}

static int add_name(database *db, sqlite3_stmt *row, const struct source_table *table, uint32_t *index, rl_error *err) {
  char generated_name[64];
  const char *text = (const char *)sqlite3_column_text(row, COLUMN_NAME);
  if (text != NULL) return rl_trace_add_name(db->trace, text, (size_t)sqlite3_column_bytes(row, COLUMN_NAME), index, err);
  make_name(row, table, generated_name);
  return rl_trace_add_name(db->trace, generated_name, strlen(generated_name), index, err);
}

static bool is_driver_call(sqlite3_stmt *row) {
  const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
  return name != NULL && strncmp(name, "cu", 2) == 0 && strncmp(name, "cuda", 4) != 0;
}

static uint32_t kind_of(sqlite3_stmt *row, const struct source_table *table) {
  if (table->kind != API_CALL) return (uint32_t)table->kind;
  return is_driver_call(row) ? RL_ACTIVITY_DRIVER : RL_ACTIVITY_RUNTIME;
}

/* Returns the rl_memory_kind in a column. nsys's number of a kind of memory is CUPTI's number minus 1: pageable memory is 0. */
static uint8_t memory_kind(sqlite3_stmt *row, column index) {
  int64_t kind = sqlite3_column_int64(row, index);
  bool is_known = sqlite3_column_type(row, index) != SQLITE_NULL && kind >= 0 && kind + 1 < RL_MEMORY_KIND_COUNT;
  return is_known ? (uint8_t)(kind + 1) : RL_MEMORY_UNKNOWN;
}

/* Returns the number in the column; if the row has none, adds `bit` to the unknown values of *out and returns 0. */
static uint32_t read_resource(sqlite3_stmt *row, column index, rl_unknown_value bit, rl_activity_row *out) {
  int64_t value = sqlite3_column_int64(row, index);
  if (sqlite3_column_type(row, index) != SQLITE_INTEGER || value < 0 || value > UINT32_MAX) out->unknown |= bit;
  return read_number(row, index);
}

static void set_bytes(sqlite3_stmt *row, rl_activity_row *out) {
  int64_t bytes = sqlite3_column_int64(row, COLUMN_BYTES);
  if (sqlite3_column_type(row, COLUMN_BYTES) != SQLITE_INTEGER || bytes < 0) out->unknown |= RL_UNKNOWN_BYTES;
  else out->bytes = (uint64_t)bytes;
}

static void set_kernel_resources(sqlite3_stmt *row, rl_activity_row *out) {
  out->registers = read_resource(row, COLUMN_REGISTERS, RL_UNKNOWN_REGISTERS, out);
  out->static_shared_bytes = read_resource(row, COLUMN_STATIC_SHARED, RL_UNKNOWN_STATIC_SHARED, out);
  out->dynamic_shared_bytes = read_resource(row, COLUMN_DYNAMIC_SHARED, RL_UNKNOWN_DYNAMIC_SHARED, out);
}

static void set_device_work(sqlite3_stmt *row, rl_activity_row *out) {
  uint32_t device = read_number(row, COLUMN_DEVICE);
  out->device = (uint16_t)(device < UINT16_MAX ? device + 1 : 0);
  out->context = read_number(row, COLUMN_CONTEXT);
  out->stream = read_number(row, COLUMN_STREAM);
  out->graph_node = rl_trace_graph_node(sqlite3_column_int64(row, COLUMN_GRAPH_NODE));
  for (int i = 0; i < 3; i++) {
    out->grid[i] = read_number(row, (column)(COLUMN_GRID_X + i));
    out->block[i] = read_number(row, (column)(COLUMN_BLOCK_X + i));
  }
  if (out->kind == RL_ACTIVITY_KERNEL) set_kernel_resources(row, out);
  else set_bytes(row, out);
  if (out->kind == RL_ACTIVITY_MEMSET) out->destination_memory = memory_kind(row, COLUMN_MEMORY);
  if (out->kind != RL_ACTIVITY_MEMCPY) return;
  out->source_memory = memory_kind(row, COLUMN_SOURCE_MEMORY);
  out->destination_memory = memory_kind(row, COLUMN_DESTINATION_MEMORY);
}

static bool is_host_table(const struct source_table *table) {
  return table->kind == API_CALL || table->kind == RL_ACTIVITY_NVTX_RANGE || table->kind == RL_ACTIVITY_OVERHEAD;
}

/* If the row is a wait, an NVTX event that is not a range, or a range without an end, counts it as skipped and returns true. */
static bool skip_if_not_imported(database *db, sqlite3_stmt *row, const struct source_table *table) {
  int64_t type = sqlite3_column_int64(row, COLUMN_EVENT_TYPE);
  if (table->kind == WAIT) return rl_trace_count_skipped_event(db->trace, RL_SKIPPED_SYNCHRONIZATION), true;
  if (table->kind != RL_ACTIVITY_NVTX_RANGE) return false;
  if (type != NVTX_PUSH_POP_RANGE && type != NVTX_START_END_RANGE)
    return rl_trace_count_skipped_event(db->trace, RL_SKIPPED_CATEGORY), true;
  if (sqlite3_column_type(row, COLUMN_END) == SQLITE_NULL)
    return rl_trace_count_skipped_event(db->trace, RL_SKIPPED_UNPAIRED), true;
  return false;
}

static int add_row(database *db, sqlite3_stmt *row, const struct source_table *table, rl_error *err) {
  if (skip_if_not_imported(db, row, table)) return 0;
  if (sqlite3_column_type(row, COLUMN_START) != SQLITE_INTEGER || sqlite3_column_type(row, COLUMN_END) != SQLITE_INTEGER)
    return rl_fail(err, RL_INPUT, 0, "start or end is not an integer");
  rl_activity_row added = {.start_ns = sqlite3_column_int64(row, COLUMN_START),
                           .end_ns = sqlite3_column_int64(row, COLUMN_END),
                           .kind = kind_of(row, table),
                           .correlation = read_number(row, COLUMN_CORRELATION),
                           .process = process_of(row)};
  uint32_t name;
  if (added.start_ns == 0 && added.end_ns == 0) return rl_trace_count_untimed(db->trace), 0;
  if (add_name(db, row, table, &name, err) < 0) return -1;
  added.name = name;
  if (is_host_table(table)) added.thread = thread_of(row);
  else set_device_work(row, &added);
  return rl_trace_add_row(db->trace, &added, err);
}

static int read_table(database *db, const struct source_table *table, rl_error *err) {
  RL_CLEANUP(finalize) sqlite3_stmt *row = NULL;
  int rc, found = has_table(db, table->name, err);
  if (found <= 0) return found;
  if (prepare_select(db, table->name, &row, err) < 0) return -1;
  int64_t number_of_row = 0;
  while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
    number_of_row++;
    if (add_row(db, row, table, err) < 0) return rl_wrap(err, "row %lld of %s", (long long)number_of_row, table->name);
  }
  return rc == SQLITE_DONE ? 1 : fail(db, err);
}

static int read_tables(database *db, rl_error *err) {
  const size_t count = sizeof source_tables / sizeof *source_tables;
  bool any = false;
  for (size_t i = 0; i < count; i++) {
    int found = read_table(db, &source_tables[i], err);
    if (found < 0) return -1;
    any |= found > 0;
    db->progress = (double)(i + 1) / (double)count;
  }
  return any ? 0
             : rl_fail(err, RL_INPUT, 0, "the database has none of nsys's tables (CUPTI_ACTIVITY_KIND_KERNEL, …, NVTX_EVENTS)");
}

/* --- the GPU and the version ------------------------------------------------------------------------------------------- */

static void copy_column(char *to, size_t size, sqlite3_stmt *row, int index) {
  const char *text = (const char *)sqlite3_column_text(row, index);
  snprintf(to, size, "%s", text != NULL ? text : "");
}

static rl_trace_gpu gpu_of_row(sqlite3_stmt *row) {
  rl_trace_gpu gpu = {.number = sqlite3_column_int64(row, sqlite3_column_type(row, 0) != SQLITE_NULL ? 0 : 1),
                      .memory_bytes = sqlite3_column_int64(row, 6),
                      .sm_count = sqlite3_column_int64(row, 7),
                      .l2_bytes = sqlite3_column_int64(row, 8)};
  copy_column(gpu.name, sizeof gpu.name, row, 2);
  copy_column(gpu.uuid, sizeof gpu.uuid, row, 3);
  if (sqlite3_column_int(row, 4) > 0)
    snprintf(gpu.compute_capability, sizeof gpu.compute_capability, "%d.%d", sqlite3_column_int(row, 4),
             sqlite3_column_int(row, 5));
  return gpu;
}

static int read_gpus(database *db, rl_error *err) {
  static const char table[] = "TARGET_INFO_GPU";
  static const char *const members[] = {"cuDevice",     "id",          "name",    "uuid",       "computeMajor",
                                        "computeMinor", "totalMemory", "smCount", "l2CacheSize"};
  RL_CLEANUP(finalize) sqlite3_stmt *row = NULL;
  char sql[SQL_SIZE] = "SELECT ";
  int rc, found = has_table(db, table, err);
  if (found <= 0) return found;
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (append_column(db, table, members[i], sql, err) < 0) return -1;
  append(sql, "NULL FROM TARGET_INFO_GPU t");
  if (sqlite3_prepare_v2(db->handle, sql, -1, &row, NULL) != SQLITE_OK) return fail(db, err);
  while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
    rl_trace_gpu gpu = gpu_of_row(row);
    rl_trace_add_gpu(db->trace, &gpu);
  }
  return rc == SQLITE_DONE ? 0 : fail(db, err);
}

static int read_version(database *db, rl_error *err) {
  static const char sql[] =
      "SELECT value FROM META_DATA_EXPORT WHERE name LIKE '%PRODUCT_VERSION%' OR name LIKE '%SCHEMA_VERSION' "
      "ORDER BY name LIKE '%SCHEMA_VERSION' LIMIT 1";
  RL_CLEANUP(finalize) sqlite3_stmt *row = NULL;
  char version[64] = "";
  int found = has_table(db, "META_DATA_EXPORT", err);
  if (found < 0) return -1;
  if (found > 0 && sqlite3_prepare_v2(db->handle, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
    copy_column(version, sizeof version, row, 0);
  rl_trace_set_producer(db->trace, "nsys", "Nsight Systems", version);
  return 0;
}

int rl_nsys_read(int descriptor, const rl_import_observer *observer, rl_trace *trace, rl_error *err) {
  RL_CLEANUP(close_handle) sqlite3 *handle = NULL;
  database db = {.observer = observer, .trace = trace};
  sqlite3_hard_heap_limit64(MAX_HEAP_BYTES);
  int rc = open_handle(descriptor, &handle);
  db.handle = handle;
  if (rc != SQLITE_OK || restrict_handle(&db, err) < 0) return fail(&db, err);
  if (read_version(&db, err) < 0 || read_gpus(&db, err) < 0 || read_tables(&db, err) < 0) return -1;
  return 0;
}
