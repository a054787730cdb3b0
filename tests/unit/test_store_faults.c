/* store with injected faults: the Nth write, sync or truncation of SQLite fails (once, or from then on), or the process exits
 * there, or the Nth allocation fails. For all N, in two scenes: creating a database; and in an existing one, submitting a job,
 * claiming and committing its two passes. After a restart, acknowledged changes are on disk, each pass is stored completely or
 * not at all, the database is intact, and the job can be completed. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "store_fixture.h"

/* --- faults ------------------------------------------------------------------------------------------------------------ */

typedef enum mode { OFF, ONCE, FROM_THEN_ON, DIE } mode;

typedef struct fault {
  mode mode;
  int64_t at, seen; /* number of the failing operation, and of operations so far */
} fault;
static fault disk, memory;
/* Counts an operation; returns whether it fails. */
static int should_fail(fault *of) {
  of->seen++;
  if (of->mode == OFF || of->seen < of->at || (of->mode == ONCE && of->seen > of->at)) return 0;
  if (of->mode == DIE) _exit(9);
  return 1;
}

static int disk_fails(void) { return should_fail(&disk); }

typedef struct file {
  sqlite3_file base;
  sqlite3_file *real; /* in the bytes behind this struct */
} file;

static sqlite3_vfs *real_vfs;
static sqlite3_file *real_of(sqlite3_file *f) { return ((file *)f)->real; }
#define PASS(F, CALL, ...) real_of(F)->pMethods->CALL(real_of(F), ##__VA_ARGS__)

static int close_file(sqlite3_file *f) { return PASS(f, xClose); }
static int read_file(sqlite3_file *f, void *to, int size, sqlite3_int64 at) { return PASS(f, xRead, to, size, at); }
static int write_file(sqlite3_file *f, const void *from, int size, sqlite3_int64 at) {
  return disk_fails() ? SQLITE_FULL : PASS(f, xWrite, from, size, at);
}
static int truncate_file(sqlite3_file *f, sqlite3_int64 size) {
  return disk_fails() ? SQLITE_IOERR_TRUNCATE : PASS(f, xTruncate, size);
}
static int sync_file(sqlite3_file *f, int flags) { return disk_fails() ? SQLITE_IOERR_FSYNC : PASS(f, xSync, flags); }
static int size_of_file(sqlite3_file *f, sqlite3_int64 *size) { return PASS(f, xFileSize, size); }
static int lock_file(sqlite3_file *f, int level) { return PASS(f, xLock, level); }
static int unlock_file(sqlite3_file *f, int level) { return PASS(f, xUnlock, level); }
static int check_lock(sqlite3_file *f, int *held) { return PASS(f, xCheckReservedLock, held); }
static int control_file(sqlite3_file *f, int what, void *with) { return PASS(f, xFileControl, what, with); }
static int sector_size(sqlite3_file *f) { return PASS(f, xSectorSize); }
static int characteristics(sqlite3_file *f) { return PASS(f, xDeviceCharacteristics); }
static int map_shared(sqlite3_file *f, int region, int size, int extend, void volatile **to) {
  return PASS(f, xShmMap, region, size, extend, to);
}
static int lock_shared(sqlite3_file *f, int offset, int n, int flags) { return PASS(f, xShmLock, offset, n, flags); }
static void barrier(sqlite3_file *f) { PASS(f, xShmBarrier); }
static int unmap_shared(sqlite3_file *f, int remove) { return PASS(f, xShmUnmap, remove); }

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
                                           .xSectorSize = sector_size,
                                           .xDeviceCharacteristics = characteristics,
                                           .xShmMap = map_shared,
                                           .xShmLock = lock_shared,
                                           .xShmBarrier = barrier,
                                           .xShmUnmap = unmap_shared};

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags, int *out) {
  (void)vfs;
  file *made = (file *)f;
  *made = (file){.real = (sqlite3_file *)(made + 1)};
  made->real->pMethods = NULL;
  int rc = real_vfs->xOpen(real_vfs, name, made->real, flags, out);
  if (made->real->pMethods != NULL) made->base.pMethods = &methods;
  return rc;
}

static sqlite3_mem_methods real_memory;
static int memory_fails(void) { return should_fail(&memory); }
static void *allocate(int size) { return memory_fails() ? NULL : real_memory.xMalloc(size); }
static void *reallocate(void *old, int size) { return memory_fails() ? NULL : real_memory.xRealloc(old, size); }

static void install(void) {
  static sqlite3_mem_methods shim;
  static sqlite3_vfs vfs;
  assert_int_equal(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0), SQLITE_OK); /* a lock for each allocation */
  assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory), SQLITE_OK);
  shim = real_memory;
  shim.xMalloc = allocate;
  shim.xRealloc = reallocate;
  assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &shim), SQLITE_OK);
  real_vfs = sqlite3_vfs_find(NULL);
  vfs = *real_vfs;
  vfs.zName = "faulty";
  vfs.pNext = NULL;
  vfs.szOsFile = (int)sizeof(file) + real_vfs->szOsFile;
  vfs.xOpen = open_file;
  assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

/* --- the scenario ------------------------------------------------------------------------------------------------------ */

typedef struct progress {
  int submitted, committed;
} progress; /* acknowledged changes */

static int submit_once(rl_store *store, rl_error *why) {
  rl_job_spec spec = make_spec("cpu", 1u << RL_PASS_ACTIVITY);
  int64_t id;
  bool existing;
  return rl_store_job_insert(store, &spec, "the key", "the body", 10, &id, &existing, why);
}

static int do_one(rl_store *store, rl_error *why) {
  rl_claim taken;
  sample made;
  bool done;
  int rc = rl_store_pass_claim(store, "cpu", &taken, why);
  if (rc <= 0) return rc;
  fill_sample(&made, taken.pass, 1);
  return rl_store_pass_commit(store, &taken, &made.records, NULL, &done, why) < 0 ? -1 : 1;
}

/* Checks that an error names its cause. */
static void check_error(const rl_error *why) {
  assert_int_equal(why->domain, RL_STORAGE);
  assert_in_range(why->code, RL_STORAGE_FULL, RL_STORAGE_INTERNAL);
  assert_true(strlen(why->message) > 10);
  if (why->code == RL_STORAGE_FULL) assert_non_null(strstr(why->message, "the disk is full"));
  if (why->code == RL_STORAGE_MEMORY) assert_non_null(strstr(why->message, "out of memory"));
}

static void work(rl_store *store, volatile progress *seen) {
  rl_error why = {0};
  if (submit_once(store, &why) < 0) {
    check_error(&why);
    return;
  }
  seen->submitted = 1;
  for (int pass = 0; pass < 2; pass++) {
    int rc = do_one(store, &why);
    if (rc > 0) seen->committed++;
    if (rc < 0) check_error(&why);
  }
}

/* Opening a folder without a database, or running a job in a folder with one. */
typedef enum scene { CREATING, WORKING, SCENES } scene;

static void act(const char *folder, scene where, volatile progress *seen) {
  rl_error why = {0};
  rl_store *store = NULL;
  if (rl_store_open(folder, &store, &why) < 0) {
    check_error(&why);
    return;
  }
  if (where == WORKING) work(store, seen);
  rl_store_close(store);
}

/* A pass has all of its rows or none: 2 names, 4 activity rows, 3 spans, 2 kernels, 2 phases, 2 instructions, 2 points,
 * 1 measurement. */
static const char torn[] =
    "SELECT count(*) FROM (SELECT p.state, (SELECT count(*) FROM names WHERE pass_id = p.id) + (SELECT count(*) FROM "
    "activity WHERE pass_id "
    "= p.id) + (SELECT count(*) FROM activity_spans WHERE pass_id = p.id) + (SELECT count(*) FROM kernels WHERE "
    "pass_id = p.id) + (SELECT "
    "count(*) FROM measurements WHERE pass_id = p.id) + (SELECT count(*) FROM phases f JOIN kernels k ON k.id = f.kernel_id "
    "WHERE k.pass_id = p.id) + (SELECT count(*) FROM instructions i JOIN kernels k ON k.id = i.kernel_id WHERE "
    "k.pass_id = p.id) + (SELECT count(*) FROM series s JOIN kernels k ON k.id = s.kernel_id WHERE k.pass_id = p.id) AS n "
    "FROM passes p) "
    "WHERE n <> iif(state = 'completed', 18, 0)";

static void check_rows(sqlite3 *db, const volatile progress *seen, int64_t at) {
  int64_t jobs = ask_over(db, "SELECT count(*) FROM jobs"),
          done = ask_over(db, "SELECT count(*) FROM passes WHERE state = 'completed'");
  if (jobs < seen->submitted || jobs > 1) fail_msg("fault %d: %d jobs", (int)at, (int)jobs);
  if (done < seen->committed) fail_msg("fault %d: %d passes, %d acknowledged", (int)at, (int)done, seen->committed);
  if (ask_over(db, torn) != 0) fail_msg("fault %d: a pass is torn", (int)at);
  if (ask_over(db, "SELECT count(*) FROM passes") != 2 * jobs || ask_over(db, "SELECT count(*) FROM events") < jobs)
    fail_msg("fault %d: a job is torn", (int)at);
  if (ask_over(db,
               "SELECT count(*) FROM jobs WHERE (state = 'completed') <> (SELECT count(*) = 2 FROM passes WHERE state = "
               "'completed')") != 0)
    fail_msg("fault %d: the job's state is wrong", (int)at);
  if (ask_over(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check") != 1) fail_msg("fault %d: damaged", (int)at);
  if (ask_over(db, "SELECT count(*) FROM pragma_foreign_key_check") != 0) fail_msg("fault %d: dangling rows", (int)at);
}

/* --- folders ----------------------------------------------------------------------------------------------------------- */

static void make_folder(char folder[64]) {
  static const char *const folders[] = {"/dev/shm", "/tmp"}; /* preferably in memory: there are thousands of syncs */
  snprintf(folder, 64, "%s/rooflined-store-XXXXXX", folders[access(folders[0], W_OK) != 0]);
  assert_non_null(mkdtemp(folder));
}

typedef struct content {
  char bytes[1 << 20];
  size_t size; /* 0: there is no such file */
} content;

static const char *const parts[] = {"rooflined.db", "rooflined.db-wal"};
enum { PARTS = sizeof parts / sizeof *parts };

static void get(const char *folder, int part, content *to) {
  char path[96];
  snprintf(path, sizeof path, "%s/%s", folder, parts[part]);
  FILE *stream = fopen(path, "rb");
  to->size = stream != NULL ? fread(to->bytes, 1, sizeof to->bytes, stream) : 0;
  assert_true(to->size < sizeof to->bytes);
  if (stream != NULL) fclose(stream);
}

static void put(const char *folder, int part, const content *from) {
  char path[96];
  if (from->size == 0) return;
  snprintf(path, sizeof path, "%s/%s", folder, parts[part]);
  FILE *stream = fopen(path, "wb");
  assert_int_equal(fwrite(from->bytes, 1, from->size, stream), from->size);
  assert_int_equal(fclose(stream), 0);
}

/* Where a scene starts: an empty folder, or a database without jobs. */
static content starts[SCENES][PARTS];

static void fresh_folder(char folder[64], scene where) {
  make_folder(folder);
  for (int part = 0; part < PARTS; part++) put(folder, part, &starts[where][part]);
}

static int make_starts(void **state) {
  (void)state;
  char folder[64];
  progress nothing = {0};
  disk = memory = (fault){.mode = OFF};
  make_folder(folder);
  act(folder, CREATING, &nothing);
  for (int part = 0; part < PARTS; part++) get(folder, part, &starts[WORKING][part]);
  remove_folder(folder);
  return 0;
}

/* --- after the fault ---------------------------------------------------------------------------------------------------- */

static rl_store *open_left(const char *folder, int64_t at) {
  rl_store *store = NULL;
  if (rl_store_open(folder, &store, &err) < 0) fail_msg("fault %d: reopening: %s", (int)at, err.message);
  return store;
}

/* Whether the file, after opening and closing the store, equals one that was checked before. */
static bool checked_before(const char *folder, int64_t at) {
  enum { MAX_CHECKED = 64 };
  static content checked[MAX_CHECKED], it;
  static int count;
  rl_store_close(open_left(folder, at));
  get(folder, 0, &it);
  for (int i = 0; i < count; i++)
    if (checked[i].size == it.size && memcmp(checked[i].bytes, it.bytes, it.size) == 0) return true;
  assert_true(count < MAX_CHECKED);
  checked[count++] = it;
  return false;
}

static void check(const char *folder, scene where, const volatile progress *seen, int64_t at) {
  if (where == CREATING && checked_before(folder, at)) return; /* few different files occur */
  int64_t requeued;
  rl_store *store = open_left(folder, at);
  check_rows(store->writer.handle, seen, at);
  GOOD(rl_store_jobs_requeue(store, 2, &requeued, &err));
  GOOD(submit_once(store, &err));
  for (int rc; (rc = do_one(store, &err)) != 0;)
    if (rc < 0) fail_msg("fault %d: going on: %s", (int)at, err.message);
  if (ask_over(store->writer.handle, "SELECT count(*) FROM jobs WHERE state = 'completed'") != 1)
    fail_msg("fault %d: the job was not completed", (int)at);
  rl_store_close(store);
}

/* --- the tests --------------------------------------------------------------------------------------------------------- */

/* Every operation; with a sanitizer, which is several times slower, every twelfth from a varying start. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 12 };
#else
enum { STRIDE = 1 };
#endif
static int64_t first_fault(void) { return 1 + time(NULL) % STRIDE; }

static void without_a_fault(scene where) {
  char folder[64];
  progress seen = {0};
  fresh_folder(folder, where);
  disk = memory = (fault){.mode = OFF};
  act(folder, where, &seen);
  assert_int_equal(seen.submitted, where == WORKING ? 1 : 0);
  assert_int_equal(seen.committed, where == WORKING ? 2 : 0);
  fault disk_was = disk, memory_was = memory;
  check(folder, where, &seen, 0);
  disk = disk_was, memory = memory_was;
  remove_folder(folder);
}

static void faults(scene where, fault *of, mode how, int64_t max_faults) {
  without_a_fault(where);
  int64_t count = of->seen;
  assert_true(count > 25);
  for (int64_t at = first_fault(); at <= count; at += STRIDE * (1 + count / max_faults)) {
    char folder[64];
    progress seen = {0};
    fresh_folder(folder, where);
    *of = (fault){.mode = how, .at = at};
    act(folder, where, &seen);
    of->mode = OFF;
    check(folder, where, &seen, at);
    remove_folder(folder);
  }
}

static void one_operation_fails(void **state) {
  (void)state;
  for (scene where = CREATING; where < SCENES; where++) faults(where, &disk, ONCE, INT64_MAX);
}

static void disk_stays_broken(void **state) {
  (void)state;
  for (scene where = CREATING; where < SCENES; where++) faults(where, &disk, FROM_THEN_ON, INT64_MAX);
}

static void process_ends_in(scene where, volatile progress *seen) {
  without_a_fault(where);
  int64_t count = disk.seen;
  for (int64_t at = first_fault(); at <= count; at += STRIDE) {
    char folder[64];
    int status;
    seen->submitted = seen->committed = 0;
    fresh_folder(folder, where);
    pid_t child = fork();
    if (child == 0) {
      disk = (fault){.mode = DIE, .at = at};
      act(folder, where, seen);
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    check(folder, where, seen, at);
    remove_folder(folder);
  }
}

static void process_ends(void **state) {
  (void)state;
  volatile progress *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (scene where = CREATING; where < SCENES; where++) process_ends_in(where, seen);
  munmap((void *)seen, sizeof *seen);
}

/* Number of failing allocations, spread over all of the thousands. */
enum { ALLOCATIONS_FAILED = 150 };

static void memory_runs_out(void **state) {
  (void)state;
  for (scene where = CREATING; where < SCENES; where++) faults(where, &memory, ONCE, ALLOCATIONS_FAILED);
}

int main(void) {
  install();
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_operation_fails), cmocka_unit_test(disk_stays_broken),
                                     cmocka_unit_test(process_ends), cmocka_unit_test(memory_runs_out)};
  return cmocka_run_group_tests(tests, make_starts, NULL);
}
