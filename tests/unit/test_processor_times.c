/* Tests the share of the processors' time that other processes used, with files in place of /proc/stat and with the real one. */
#include "worker/processor_times.h"

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/test_processor_times.XXXXXX";
static int processor; /* the only one that this process may use */

static int use_one_processor(void **state) {
  (void)state;
  cpu_set_t usable;
  assert_int_equal(sched_getaffinity(0, sizeof usable, &usable), 0);
  while (!CPU_ISSET(processor, &usable)) processor++;
  CPU_ZERO(&usable);
  CPU_SET(processor, &usable);
  assert_int_equal(sched_setaffinity(0, sizeof usable, &usable), 0);
  return close(mkstemp(path));
}

static int remove_file(void **state) {
  (void)state;
  return unlink(path);
}

static void write_file(const char *format, ...) {
  va_list values;
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  va_start(values, format);
  vfprintf(file, format, values);
  va_end(values);
  fclose(file);
}

static rl_processor_times read_times(const char *file) {
  rl_processor_times times;
  rl_error err;
  assert_int_equal(rl_processor_times_read(file, &times, &err), 0);
  return times;
}

/* The sum of all processors and the time of another processor do not count. Of the time that passes between the readings, 40
 * ticks are idle (idle and iowait) and 60 are not. */
static void only_busy_time_of_usable_processors_counts(void **state) {
  (void)state;
  write_file("cpu  9 9 9 9 9 9 9 9 9 9\ncpu%d 100 0 0 500 0 0 0 0 0 0\ncpu%d 7 7 7 7 7 7 7 7 0 0\nintr 5 0\n", processor,
             processor + 1);
  const rl_processor_times before = read_times(path);
  write_file("cpu  99 9 9 9 9 9 9 9 9 9\ncpu%d 110 10 10 530 10 10 10 10 5 5\ncpu%d 99999 7 7 7 7 7 7 7 0 0\nintr 6 0\n",
             processor, processor + 1);
  rl_processor_times after = read_times(path);
  const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
  assert_int_equal(after.processors, 1);
  assert_true(fabs(after.elapsed_s - before.elapsed_s - 100 * tick_s) < 1e-9);
  /* This process has used CPU time between the readings, too. */
  const double ratio = rl_processor_times_other_ratio(&before, &after);
  if (!(ratio > 0.5 && ratio <= 0.6)) fail_msg("the ratio is %g, not just below 0.6", ratio);
  after.other_processes_s = before.other_processes_s - tick_s;
  assert_true(rl_processor_times_other_ratio(&before, &after) == 0);
  assert_true(isnan(rl_processor_times_other_ratio(&before, &before)));
}

static void unknown_times_have_a_reason(void **state) {
  (void)state;
  rl_processor_times times;
  rl_error err;
  assert_int_equal(rl_processor_times_read("/nonexistent/stat", &times, &err), -1);
  assert_non_null(strstr(err.message, "can't read /nonexistent/stat"));
  write_file("cpu  9 9 9 9 9 9 9 9 9 9\ncpu%d 7 7 7 7 7 7 7 7 0 0\n", processor + 1);
  assert_int_equal(rl_processor_times_read(path, &times, &err), -1);
  assert_non_null(strstr(err.message, "lists 0 of the 1 processors"));
}

static void compute_for(double seconds) {
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) * 1e-9 < seconds);
}

/* A child and this process compete for the processor. The child gets about half of it, or less if further processes run. */
static void a_busy_child_is_another_process(void **state) {
  (void)state;
  const pid_t child = fork();
  if (child == 0) {
    compute_for(60);
    _exit(0);
  }
  const rl_processor_times before = read_times("/proc/stat");
  compute_for(1);
  const rl_processor_times after = read_times("/proc/stat");
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  const double ratio = rl_processor_times_other_ratio(&before, &after);
  if (!(ratio > 0.3 && ratio <= 1)) fail_msg("other processes used %g of the time", ratio);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(only_busy_time_of_usable_processors_counts),
                                     cmocka_unit_test(unknown_times_have_a_reason),
                                     cmocka_unit_test(a_busy_child_is_another_process)};
  return cmocka_run_group_tests(tests, use_one_processor, remove_file);
}
