/* Tests that a worker detects whether a worker of the other role opens the same device at the same time. The other worker is a
 * child process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/opening.h"

/* A child process that begins to open the device at once, and ends after it has read a byte from `commands`. */
typedef struct other_worker {
  pid_t pid;
  int commands; /* write end of a pipe */
  int replies;  /* read end of a pipe: a byte after the begin and one after the end, which is 1 if an overlap was detected */
} other_worker;

static char folder[] = "/tmp/rooflined-opening-XXXXXX";

static void send_reply_and_wait(int output, int input, const rl_opening *opening, bool waits) {
  char overlaps = opening->reason[0] != '\0', command;
  if (write(output, &overlaps, 1) != 1 || (waits && read(input, &command, 1) != 1)) _exit(1);
}

static bool read_reply(const other_worker *other) {
  char overlaps = 2;
  assert_int_equal(read(other->replies, &overlaps, 1), 1);
  return overlaps;
}

static other_worker begin_in_other_worker(const char *role) {
  int commands[2], replies[2];
  assert_int_equal(pipe(commands), 0);
  assert_int_equal(pipe(replies), 0);
  other_worker other = {.pid = fork(), .commands = commands[1], .replies = replies[0]};
  if (other.pid == 0) {
    rl_opening opening = rl_opening_begin("gpu0", role);
    send_reply_and_wait(replies[1], commands[0], &opening, true);
    rl_opening_end(&opening);
    send_reply_and_wait(replies[1], commands[0], &opening, false);
    _exit(0);
  }
  close(commands[0]);
  close(replies[1]);
  return other;
}

static void reap(const other_worker *other) {
  assert_int_equal(waitpid(other->pid, NULL, 0), other->pid);
  close(other->commands);
  close(other->replies);
}

/* Returns whether the other worker has found an overlap. */
static bool end_in_other_worker(const other_worker *other) {
  assert_int_equal(write(other->commands, "e", 1), 1);
  bool overlaps = read_reply(other);
  reap(other);
  return overlaps;
}

static bool ends_with_overlap(rl_opening *opening) {
  rl_opening_end(opening);
  return opening->reason[0] != '\0';
}

static void workers_that_follow_each_other_do_not_overlap(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    rl_opening opening = rl_opening_begin("gpu0", "unprofiled");
    assert_false(ends_with_overlap(&opening));
    other_worker other = begin_in_other_worker("profiled");
    assert_false(read_reply(&other) || end_in_other_worker(&other));
  }
}

static void both_workers_find_an_overlap(void **state) {
  (void)state;
  other_worker other = begin_in_other_worker("profiled"); /* the other worker begins first and ends last */
  assert_false(read_reply(&other));
  rl_opening opening = rl_opening_begin("gpu0", "unprofiled");
  assert_true(ends_with_overlap(&opening));
  assert_true(end_in_other_worker(&other));

  opening = rl_opening_begin("gpu0", "unprofiled"); /* now the other worker begins last and ends first */
  other = begin_in_other_worker("profiled");
  assert_true(read_reply(&other) && end_in_other_worker(&other));
  assert_true(ends_with_overlap(&opening));
  assert_non_null(strstr(opening.reason, "at the same time"));
}

static void a_worker_that_was_killed_while_it_opened_the_device_causes_no_overlap(void **state) {
  (void)state;
  other_worker other = begin_in_other_worker("profiled");
  assert_false(read_reply(&other));
  assert_int_equal(kill(other.pid, SIGKILL), 0);
  reap(&other);
  rl_opening opening = rl_opening_begin("gpu0", "unprofiled");
  assert_false(ends_with_overlap(&opening));
}

static void workers_of_different_devices_do_not_overlap(void **state) {
  (void)state;
  other_worker other = begin_in_other_worker("profiled");
  assert_false(read_reply(&other));
  rl_opening opening = rl_opening_begin("gpu1", "unprofiled");
  assert_false(ends_with_overlap(&opening));
  assert_false(end_in_other_worker(&other));
}

static void a_folder_that_cannot_be_written_is_the_reason(void **state) {
  (void)state;
  setenv("ROOFLINED_CACHE_DIR", "/proc/no/such", 1);
  rl_opening opening = rl_opening_begin("gpu0", "unprofiled");
  assert_true(ends_with_overlap(&opening));
  assert_non_null(strstr(opening.reason, "can't tell"));
  unsetenv("ROOFLINED_CACHE_DIR");
  opening = rl_opening_begin("gpu0", "unprofiled");
  assert_false(ends_with_overlap(&opening));
  setenv("ROOFLINED_CACHE_DIR", folder, 1);
}

static int make_cache_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL || setenv("ROOFLINED_CACHE_DIR", folder, 1) != 0;
}

static int remove_cache_folder(void **state) {
  (void)state;
  char path[64];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/opening-gpu%d", folder, i);
    if (unlink(path) != 0) return -1;
  }
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(workers_that_follow_each_other_do_not_overlap),
                                     cmocka_unit_test(both_workers_find_an_overlap),
                                     cmocka_unit_test(a_worker_that_was_killed_while_it_opened_the_device_causes_no_overlap),
                                     cmocka_unit_test(workers_of_different_devices_do_not_overlap),
                                     cmocka_unit_test(a_folder_that_cannot_be_written_is_the_reason)};
  return cmocka_run_group_tests(tests, make_cache_folder, remove_cache_folder);
}
