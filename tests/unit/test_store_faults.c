/* Tests the store with injected faults. SQLite's Nth write, sync or truncation fails (only this one, or also all later ones), or
 * the process exits there, or SQLite's Nth allocation fails; for every N. There are two scenarios: the store creates a database;
 * or it submits a job and claims and commits its two passes in an existing database. After reopening, acknowledged changes are on
 * disk, each pass is stored completely or not at all, the database is intact, and the job can be completed. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "store_fixture.h"

/* --- faults ------------------------------------------------------------------------------------------------------------ */

typedef enum mode { OFF, ONCE, ALWAYS_AFTER, EXIT } mode;

typedef struct fault {
  mode mode;
  int64_t failing_number, count; /* number of the operation that fails, from 1; number of operations so far */
} fault;
static fault disk, memory;
/* Counts an operation. Returns whether it must fail. */
static int should_fail(fault *injected) {
  injected->count++;
  if (injected->mode == OFF || injected->count < injected->failing_number ||
      (injected->mode == ONCE && injected->count > injected->failing_number))
    return 0;
  if (injected->mode == EXIT) _exit(9);
  return 1;
}

static int disk_fails(void) { return should_fail(&disk); }

typedef struct file {
  sqlite3_file base;
  sqlite3_file *real; /* in the memory that SQLite allocates after this struct */
} file;

static sqlite3_vfs *real_vfs;
static sqlite3_file *real_file(sqlite3_file *f) { return ((file *)f)->real; }
#define FORWARD(F, CALL, ...) real_file(F)->pMethods->CALL(real_file(F), ##__VA_ARGS__)

static int close_file(sqlite3_file *f) { return FORWARD(f, xClose); }
static int read_file(sqlite3_file *f, void *to, int size, sqlite3_int64 offset) { return FORWARD(f, xRead, to, size, offset); }
static int write_file(sqlite3_file *f, const void *from, int size, sqlite3_int64 offset) {
  return disk_fails() ? SQLITE_FULL : FORWARD(f, xWrite, from, size, offset);
}
static int truncate_file(sqlite3_file *f, sqlite3_int64 size) {
  return disk_fails() ? SQLITE_IOERR_TRUNCATE : FORWARD(f, xTruncate, size);
}
static int sync_file(sqlite3_file *f, int flags) { return disk_fails() ? SQLITE_IOERR_FSYNC : FORWARD(f, xSync, flags); }
static int size_of_file(sqlite3_file *f, sqlite3_int64 *size) { return FORWARD(f, xFileSize, size); }
static int lock_file(sqlite3_file *f, int level) { return FORWARD(f, xLock, level); }
static int unlock_file(sqlite3_file *f, int level) { return FORWARD(f, xUnlock, level); }
static int check_lock(sqlite3_file *f, int *held) { return FORWARD(f, xCheckReservedLock, held); }
static int control_file(sqlite3_file *f, int operation, void *argument) { return FORWARD(f, xFileControl, operation, argument); }
static int get_sector_size(sqlite3_file *f) { return FORWARD(f, xSectorSize); }
static int device_characteristics(sqlite3_file *f) { return FORWARD(f, xDeviceCharacteristics); }
static int map_shared(sqlite3_file *f, int region, int size, int extend, void volatile **to) {
  return FORWARD(f, xShmMap, region, size, extend, to);
}
static int lock_shared(sqlite3_file *f, int offset, int n, int flags) { return FORWARD(f, xShmLock, offset, n, flags); }
static void memory_barrier(sqlite3_file *f) { FORWARD(f, xShmBarrier); }
static int unmap_shared(sqlite3_file *f, int remove) { return FORWARD(f, xShmUnmap, remove); }

static const sqlite3_io_methods methods = {.iVersion = 2,
                                           .xClose = close_file,
                                           .xRead = read_file,
                                           .xWrite = write_file,
                                           .xTruncate = truncate_file,
                                           .xSync = sync_file,
                                           .xFileSize = size_of_file,
                                           .xLock = lock_file,
                                           .xUnlock = unlock_file,
                                           .xCheckReservedLock = check_lock,
                                           .xFileControl = control_file,
                                           .xSectorSize = get_sector_size,
                                           .xDeviceCharacteristics = device_characteristics,
                                           .xShmMap = map_shared,
                                           .xShmLock = lock_shared,
                                           .xShmBarrier = memory_barrier,
                                           .xShmUnmap = unmap_shared};

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags, int *out) {
  (void)vfs;
  file *opened = (file *)f;
  *opened = (file){.real = (sqlite3_file *)(opened + 1)};
  opened->real->pMethods = NULL;
  int rc = real_vfs->xOpen(real_vfs, name, opened->real, flags, out);
  if (opened->real->pMethods != NULL) opened->base.pMethods = &methods;
  return rc;
}

static sqlite3_mem_methods real_memory;
static int memory_fails(void) { return should_fail(&memory); }
static void *allocate_or_fail(int size) { return memory_fails() ? NULL : real_memory.xMalloc(size); }
static void *reallocate_or_fail(void *old, int size) { return memory_fails() ? NULL : real_memory.xRealloc(old, size); }

static void install_faults(void) {
  static sqlite3_mem_methods shim;
  static sqlite3_vfs vfs;
  assert_int_equal(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0), SQLITE_OK); /* otherwise each allocation locks a mutex */
  assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory), SQLITE_OK);
  shim = real_memory;
  shim.xMalloc = allocate_or_fail;
  shim.xRealloc = reallocate_or_fail;
  assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &shim), SQLITE_OK);
  real_vfs = sqlite3_vfs_find(NULL);
  vfs = *real_vfs;
  vfs.zName = "faulty";
  vfs.pNext = NULL;
  vfs.szOsFile = (int)sizeof(file) + real_vfs->szOsFile;
  vfs.xOpen = open_file;
  assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

/* --- scenarios ------------------------------------------------------------------------------------------------------ */

typedef struct progress {
  int submitted, committed;
} progress; /* number of changes that the store acknowledged */

static int submit_once(rl_store *store, rl_error *error) {
  rl_job_spec spec = make_spec("cpu", 1u << RL_PASS_ACTIVITY);
  int64_t id;
  bool existing;
  return rl_store_job_insert(store, &spec, "the key", "the body", 10, &id, &existing, error);
}

static int execute_one_pass(rl_store *store, rl_error *error) {
  rl_claim claimed;
  pass_records pass_data;
  bool done;
  int rc = rl_store_pass_claim(store, "cpu", &claimed, error);
  if (rc <= 0) return rc;
  fill_records(&pass_data, claimed.pass, 1);
  return rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, error) < 0 ? -1 : 1;
}

/* Checks that an error of the store names its cause. */
static void check_error(const rl_error *error) {
  assert_int_equal(error->domain, RL_STORAGE);
  assert_in_range(error->code, RL_STORAGE_FULL, RL_STORAGE_INTERNAL);
  assert_true(strlen(error->message) > 10);
  if (error->code == RL_STORAGE_FULL) assert_non_null(strstr(error->message, "the disk is full"));
  if (error->code == RL_STORAGE_MEMORY) assert_non_null(strstr(error->message, "out of memory"));
}

static void execute_job(rl_store *store, volatile progress *acknowledged) {
  rl_error error = {0};
  if (submit_once(store, &error) < 0) {
    check_error(&error);
    return;
  }
  acknowledged->submitted = 1;
  for (int pass = 0; pass < 2; pass++) {
    int rc = execute_one_pass(store, &error);
    if (rc > 0) acknowledged->committed++;
    if (rc < 0) check_error(&error);
  }
}

/* CREATING: the store opens an empty folder. WORKING: it executes a job in a folder with a database. */
typedef enum scenario { CREATING, WORKING, SCENARIOS } scenario;

static void execute_scenario(const char *folder, scenario kind, volatile progress *acknowledged) {
  rl_error error = {0};
  rl_store *store = NULL;
  if (rl_store_open(folder, &store, &error) < 0) {
    check_error(&error);
    return;
  }
  if (kind == WORKING) execute_job(store, acknowledged);
  rl_store_close(store);
}

/* Counts passes with some but not all of their 18 rows: 2 names, 4 activity rows, 3 groups, 2 kernels, 2 phases, 2 instructions,
 * 2 points, 1 measurement. */
static const char torn_passes[] =
    "SELECT count(*) FROM (SELECT p.state, (SELECT count(*) FROM names WHERE pass_id = p.id) + (SELECT count(*) FROM "
    "activity WHERE pass_id "
    "= p.id) + (SELECT count(*) FROM activity_groups WHERE pass_id = p.id) + (SELECT count(*) FROM kernels WHERE "
    "pass_id = p.id) + (SELECT "
    "count(*) FROM measurements WHERE pass_id = p.id) + (SELECT count(*) FROM phases f JOIN kernels k ON k.id = f.kernel_id "
    "WHERE k.pass_id = p.id) + (SELECT count(*) FROM instructions i JOIN kernels k ON k.id = i.kernel_id WHERE "
    "k.pass_id = p.id) + (SELECT count(*) FROM series s JOIN kernels k ON k.id = s.kernel_id WHERE k.pass_id = p.id) AS n "
    "FROM passes p) "
    "WHERE n <> iif(state = 'completed', 18, 0)";

static void check_rows(sqlite3 *db, const volatile progress *acknowledged, int64_t number) {
  int64_t jobs = query_integer_on(db, "SELECT count(*) FROM jobs"),
          done = query_integer_on(db, "SELECT count(*) FROM passes WHERE state = 'completed'");
  if (jobs < acknowledged->submitted || jobs > 1) fail_msg("fault %d: %d jobs", (int)number, (int)jobs);
  if (done < acknowledged->committed)
    fail_msg("fault %d: %d passes, %d acknowledged", (int)number, (int)done, acknowledged->committed);
  if (query_integer_on(db, torn_passes) != 0) fail_msg("fault %d: a pass is incomplete", (int)number);
  if (query_integer_on(db, "SELECT count(*) FROM passes") != 2 * jobs ||
      query_integer_on(db, "SELECT count(*) FROM events") < jobs)
    fail_msg("fault %d: a job is incomplete", (int)number);
  if (query_integer_on(db,
                       "SELECT count(*) FROM jobs WHERE (state = 'completed') <> (SELECT count(*) = 2 FROM passes WHERE state = "
                       "'completed')") != 0)
    fail_msg("fault %d: the job's state is wrong", (int)number);
  if (query_integer_on(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check") != 1)
    fail_msg("fault %d: damaged", (int)number);
  if (query_integer_on(db, "SELECT count(*) FROM pragma_foreign_key_check") != 0)
    fail_msg("fault %d: dangling rows", (int)number);
}

/* --- folders ----------------------------------------------------------------------------------------------------------- */

static void make_folder_in_memory(char folder[64]) {
  static const char *const folders[] = {"/dev/shm", "/tmp"}; /* in memory if possible, because there are thousands of syncs */
  snprintf(folder, 64, "%s/rooflined-store-XXXXXX", folders[access(folders[0], W_OK) != 0]);
  assert_non_null(mkdtemp(folder));
}

typedef struct file_contents {
  char bytes[1 << 20];
  size_t size; /* 0: the file does not exist */
} file_contents;

static const char *const database_files[] = {"rooflined.db", "rooflined.db-wal"};
enum { FILES = sizeof database_files / sizeof *database_files };

static void read_database_file(const char *folder, int part, file_contents *contents) {
  char path[96];
  snprintf(path, sizeof path, "%s/%s", folder, database_files[part]);
  FILE *stream = fopen(path, "rb");
  contents->size = stream != NULL ? fread(contents->bytes, 1, sizeof contents->bytes, stream) : 0;
  assert_true(contents->size < sizeof contents->bytes);
  if (stream != NULL) fclose(stream);
}

static void write_database_file(const char *folder, int part, const file_contents *from) {
  char path[96];
  if (from->size == 0) return;
  snprintf(path, sizeof path, "%s/%s", folder, database_files[part]);
  FILE *stream = fopen(path, "wb");
  assert_int_equal(fwrite(from->bytes, 1, from->size, stream), from->size);
  assert_int_equal(fclose(stream), 0);
}

/* The files with which a scenario starts: none, or a database without jobs. */
static file_contents start_contents[SCENARIOS][FILES];

static void make_scenario_folder(char folder[64], scenario kind) {
  make_folder_in_memory(folder);
  for (int part = 0; part < FILES; part++) write_database_file(folder, part, &start_contents[kind][part]);
}

static int make_start_contents(void **state) {
  (void)state;
  char folder[64];
  progress nothing = {0};
  disk = memory = (fault){.mode = OFF};
  make_folder_in_memory(folder);
  execute_scenario(folder, CREATING, &nothing);
  for (int part = 0; part < FILES; part++) read_database_file(folder, part, &start_contents[WORKING][part]);
  remove_folder(folder);
  return 0;
}

/* --- after the fault ---------------------------------------------------------------------------------------------------- */

static rl_store *open_after_fault(const char *folder, int64_t number) {
  rl_store *store = NULL;
  if (rl_store_open(folder, &store, &err) < 0) fail_msg("fault %d: reopening: %s", (int)number, err.message);
  return store;
}

/* Opens and closes the store. Returns whether the database file then equals one that was already checked. */
static bool was_checked_before(const char *folder, int64_t number) {
  enum { MAX_CHECKED = 64 };
  static file_contents checked[MAX_CHECKED], current;
  static int count;
  rl_store_close(open_after_fault(folder, number));
  read_database_file(folder, 0, &current);
  for (int i = 0; i < count; i++)
    if (checked[i].size == current.size && memcmp(checked[i].bytes, current.bytes, current.size) == 0) return true;
  assert_true(count < MAX_CHECKED);
  checked[count++] = current;
  return false;
}

static void check_store(const char *folder, scenario kind, const volatile progress *acknowledged, int64_t number) {
  if (kind == CREATING && was_checked_before(folder, number)) return; /* there are only a few different files */
  int64_t requeued;
  rl_store *store = open_after_fault(folder, number);
  check_rows(store->writer.handle, acknowledged, number);
  ASSERT_OK(rl_store_jobs_requeue(store, 2, &requeued, &err));
  ASSERT_OK(submit_once(store, &err));
  for (int rc; (rc = execute_one_pass(store, &err)) != 0;)
    if (rc < 0) fail_msg("fault %d: completing the job: %s", (int)number, err.message);
  if (query_integer_on(store->writer.handle, "SELECT count(*) FROM jobs WHERE state = 'completed'") != 1)
    fail_msg("fault %d: the job was not completed", (int)number);
  rl_store_close(store);
}

/* --- the tests --------------------------------------------------------------------------------------------------------- */

/* A fault is injected at every operation. With sanitizers, which are several times slower, it is injected at every twelfth
 * operation, from a start that varies. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 12 };
#else
enum { STRIDE = 1 };
#endif
static int64_t first_fault(void) { return 1 + time(NULL) % STRIDE; }

static void test_without_fault(scenario kind) {
  char folder[64];
  progress acknowledged = {0};
  make_scenario_folder(folder, kind);
  disk = memory = (fault){.mode = OFF};
  execute_scenario(folder, kind, &acknowledged);
  assert_int_equal(acknowledged.submitted, kind == WORKING ? 1 : 0);
  assert_int_equal(acknowledged.committed, kind == WORKING ? 2 : 0);
  fault saved_disk = disk, saved_memory = memory;
  check_store(folder, kind, &acknowledged, 0);
  disk = saved_disk, memory = saved_memory;
  remove_folder(folder);
}

static void test_faults(scenario kind, fault *injected, mode fault_mode, int64_t max_faults) {
  test_without_fault(kind);
  int64_t count = injected->count;
  assert_true(count > 25);
  for (int64_t number = first_fault(); number <= count; number += STRIDE * (1 + count / max_faults)) {
    char folder[64];
    progress acknowledged = {0};
    make_scenario_folder(folder, kind);
    *injected = (fault){.mode = fault_mode, .failing_number = number};
    execute_scenario(folder, kind, &acknowledged);
    injected->mode = OFF;
    check_store(folder, kind, &acknowledged, number);
    remove_folder(folder);
  }
}

static void one_operation_fails(void **state) {
  (void)state;
  for (scenario kind = CREATING; kind < SCENARIOS; kind++) test_faults(kind, &disk, ONCE, INT64_MAX);
}

static void disk_stays_broken(void **state) {
  (void)state;
  for (scenario kind = CREATING; kind < SCENARIOS; kind++) test_faults(kind, &disk, ALWAYS_AFTER, INT64_MAX);
}

static void test_process_exit(scenario kind, volatile progress *acknowledged) {
  test_without_fault(kind);
  int64_t count = disk.count;
  for (int64_t number = first_fault(); number <= count; number += STRIDE) {
    char folder[64];
    int status;
    acknowledged->submitted = acknowledged->committed = 0;
    make_scenario_folder(folder, kind);
    pid_t child = fork();
    if (child == 0) {
      disk = (fault){.mode = EXIT, .failing_number = number};
      execute_scenario(folder, kind, acknowledged);
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    check_store(folder, kind, acknowledged, number);
    remove_folder(folder);
  }
}

static void process_exits(void **state) {
  (void)state;
  volatile progress *acknowledged = mmap(NULL, sizeof *acknowledged, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (scenario kind = CREATING; kind < SCENARIOS; kind++) test_process_exit(kind, acknowledged);
  munmap((void *)acknowledged, sizeof *acknowledged);
}

/* Number of allocations that fail, one in each execution. They are evenly spaced among thousands. */
enum { ALLOCATIONS_FAILED = 150 };

static void memory_runs_out(void **state) {
  (void)state;
  for (scenario kind = CREATING; kind < SCENARIOS; kind++) test_faults(kind, &memory, ONCE, ALLOCATIONS_FAILED);
}

int main(void) {
  install_faults();
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_operation_fails), cmocka_unit_test(disk_stays_broken),
                                     cmocka_unit_test(process_exits), cmocka_unit_test(memory_runs_out)};
  return cmocka_run_group_tests(tests, make_start_contents, NULL);
}
