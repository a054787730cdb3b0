/* Tests rl_store_check_writable. The function statvfs below replaces the C library's. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store_fixture.h"

enum { BLOCK = 4096, NEEDED_BLOCKS = (1 << 20) / BLOCK, SECOND_NS = 1000000000, PAUSE_NS = 1000000 };
static const struct statvfs roomy = {.f_frsize = BLOCK, .f_blocks = 9999, .f_bfree = NEEDED_BLOCKS, .f_bavail = NEEDED_BLOCKS};
static const struct statvfs full = {
    .f_frsize = BLOCK, .f_blocks = 9999, .f_bfree = NEEDED_BLOCKS - 1, .f_bavail = NEEDED_BLOCKS - 1};

static struct statvfs reported;
static int reported_errno;
static atomic_bool is_hung;
static atomic_int calls;

int statvfs(const char *path, struct statvfs *status) {
  (void)path;
  atomic_fetch_add(&calls, 1);
  while (atomic_load(&is_hung)) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  *status = reported;
  errno = reported_errno;
  return reported_errno == 0 ? 0 : -1;
}

static int open_roomy_fixture(void **state) {
  reported = roomy;
  reported_errno = 0;
  return open_fixture(state);
}

static void fail_write(rl_store *store, rl_storage_code code) {
  ASSERT_OK(rl_store_begin_transaction(store, &err));
  const rl_error failure = {.domain = RL_STORAGE, .code = code, .message = "the reason of the failure"};
  err = failure;
  assert_int_equal(rl_store_end_transaction_changing(store, -1, (rl_change){0}, &err), -1);
}

static void commit_nothing(rl_store *store) {
  ASSERT_OK(rl_store_begin_transaction(store, &err));
  ASSERT_OK(rl_store_end_transaction_changing(store, 0, (rl_change){0}, &err));
}

/* --- the file system --------------------------------------------------------------------------------------------------- */

static void less_than_one_mebibyte_is_full(void **state) {
  fixture *f = *state;
  ASSERT_OK(rl_store_check_writable(f->store, &err));
  reported = full;
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_STORAGE, RL_STORAGE_FULL);
  assert_int_equal(rl_store_check_writable(f->store, NULL), -1);
  reported = roomy;
  ASSERT_OK(rl_store_check_writable(f->store, &err));
}

static void only_root_can_use_reserved_blocks(void **state) {
  fixture *f = *state;
  const uid_t user = geteuid();
  reported.f_bavail = 0;
  if (user == 0) {
    ASSERT_OK(rl_store_check_writable(f->store, &err));
    assert_int_equal(seteuid(65534), 0);
  }
  const int rc = rl_store_check_writable(f->store, &err);
  assert_int_equal(seteuid(user), 0);
  assert_int_equal(rc, -1);
  assert_int_equal(err.code, RL_STORAGE_FULL);
}

static void a_file_system_of_unknown_size_is_not_full(void **state) {
  fixture *f = *state;
  reported = (struct statvfs){.f_frsize = BLOCK}; /* as tmpfs reports without a limit */
  ASSERT_OK(rl_store_check_writable(f->store, &err));
}

static void a_read_only_or_missing_folder_is_reported(void **state) {
  fixture *f = *state;
  reported.f_flag = ST_RDONLY;
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_ERRNO, EROFS);
  reported.f_flag = 0;
  reported_errno = ENOENT;
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_ERRNO, ENOENT);
}

static void *check_in_thread(void *store) { return rl_store_check_writable(store, NULL) == 0 ? store : NULL; }

/* One thread waits for the file system; the others fail after one second, then at once, and writes do not wait. */
static void a_hung_file_system_blocks_one_thread(void **state) {
  fixture *f = *state;
  pthread_t thread;
  void *result = NULL;
  atomic_store(&calls, 0);
  atomic_store(&is_hung, true);
  assert_int_equal(pthread_create(&thread, NULL, check_in_thread, f->store), 0);
  while (atomic_load(&calls) == 0) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_ERRNO, ETIMEDOUT);
  const int64_t begin_ns = rl_monotonic_ns();
  for (int i = 0; i < 20; i++) ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_ERRNO, ETIMEDOUT);
  ASSERT_OK(rl_store_token_add(f->store, "laptop", "abc", &err));
  fail_write(f->store, RL_STORAGE_IO);
  ASSERT_OK(rl_store_token_add(f->store, "desktop", "def", &err));
  assert_true(rl_monotonic_ns() - begin_ns < 10 * (int64_t)SECOND_NS); /* 20 checks of one second would take longer */
  assert_int_equal(atomic_load(&calls), 1);
  atomic_store(&is_hung, false);
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, f->store);
  ASSERT_OK(rl_store_check_writable(f->store, &err));
}

/* --- failed writes ----------------------------------------------------------------------------------------------------- */

static void a_failed_write_is_remembered_until_rows_are_written(void **state) {
  fixture *f = *state;
  fail_write(f->store, RL_STORAGE_IO);
  commit_nothing(f->store);
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_STORAGE, RL_STORAGE_IO);
  assert_string_equal(err.message, "the last write to the database failed: the reason of the failure");
  ASSERT_OK(rl_store_token_add(f->store, "laptop", "abc", &err));
  ASSERT_OK(rl_store_check_writable(f->store, &err));
}

static void a_failed_write_is_forgotten_after_ten_seconds(void **state) {
  fixture *f = *state;
  fail_write(f->store, RL_STORAGE_DENIED);
  f->store->failed_write.time_ns -= 9 * (int64_t)SECOND_NS / 2;
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_STORAGE, RL_STORAGE_DENIED);
  f->store->failed_write.time_ns -= 6 * (int64_t)SECOND_NS;
  ASSERT_OK(rl_store_check_writable(f->store, &err));
}

static void a_failure_that_is_not_the_disks_is_not_remembered(void **state) {
  fixture *f = *state;
  fail_write(f->store, RL_STORAGE_LOCKED);
  ASSERT_OK(rl_store_check_writable(f->store, &err));
}

/* The space of a full disk is visible, that of a quota is not. */
static void only_a_full_disk_that_looks_free_is_remembered(void **state) {
  fixture *f = *state;
  reported = full;
  fail_write(f->store, RL_STORAGE_FULL);
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_STORAGE, RL_STORAGE_FULL);
  reported = roomy;
  ASSERT_OK(rl_store_check_writable(f->store, &err));
  fail_write(f->store, RL_STORAGE_FULL);
  ASSERT_FAILS(rl_store_check_writable(f->store, &err), RL_STORAGE, RL_STORAGE_FULL);
}

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, open_roomy_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(less_than_one_mebibyte_is_full),
                                     TEST(only_root_can_use_reserved_blocks),
                                     TEST(a_file_system_of_unknown_size_is_not_full),
                                     TEST(a_read_only_or_missing_folder_is_reported),
                                     TEST(a_hung_file_system_blocks_one_thread),
                                     TEST(a_failed_write_is_remembered_until_rows_are_written),
                                     TEST(a_failed_write_is_forgotten_after_ten_seconds),
                                     TEST(a_failure_that_is_not_the_disks_is_not_remembered),
                                     TEST(only_a_full_disk_that_looks_free_is_remembered)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
