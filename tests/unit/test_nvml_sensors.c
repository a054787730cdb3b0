/* Tests the sensors of a GPU with a fake NVML: a worker does not count itself or its siblings among the other processes, and
 * gives a reason when NVML does not list them or does not report throttle reasons. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_nvml.h"
#include "worker/sensors.h"

enum { UNRELATED_PID = 4194301 /* near Linux' largest process id (4194303), so that no process is likely to have it */ };

static rl_other_processes list_other_processes(void) {
  rl_other_processes processes;
  memset(&processes, 0x5a, sizeof processes);
  rl_sensors *sensors = rl_sensors_open("{\"uuid\":\"GPU-1\"}");
  rl_sensors_read_other_processes(sensors, &processes);
  rl_sensors_close(sensors);
  return processes;
}

static void other_processes_are_listed_with_their_memory(void **state) {
  (void)state;
  fake_nvml = (struct fake_nvml){.process_count = 3,
                                 .processes = {{UNRELATED_PID, 1000}, {(unsigned)getpid(), 2000}, {UNRELATED_PID + 1, ~0ULL}}};
  rl_other_processes found = list_other_processes();
  assert_string_equal(found.reason, "");
  assert_int_equal(found.count, 2);
  assert_true(found.items[0].pid == UNRELATED_PID && found.items[0].memory_bytes == 1000);
  assert_true(found.items[1].pid == UNRELATED_PID + 1 && isnan(found.items[1].memory_bytes));
}

static void a_worker_alone_sees_none(void **state) {
  (void)state;
  fake_nvml = (struct fake_nvml){.process_count = 1, .processes = {{(unsigned)getpid(), 2000}}};
  rl_other_processes found = list_other_processes();
  assert_true(found.count == 0 && found.reason[0] == '\0');
}

/* This process and two children act as a daemon and its workers. The parent lists its first child, because only siblings are
 * excluded. The second child does not list the first child, which is its sibling. */
static void workers_of_the_same_daemon_do_not_count(void **state) {
  (void)state;
  pid_t worker = fork();
  if (worker == 0) {
    pause();
    _exit(0);
  }
  assert_true(worker > 0);
  fake_nvml = (struct fake_nvml){.process_count = 2, .processes = {{(unsigned)getpid(), 2000}, {(unsigned)worker, 1000}}};
  size_t seen_by_parent = list_other_processes().count;
  pid_t sibling = fork();
  if (sibling == 0) {
    fake_nvml.processes[0].pid = (unsigned)getpid();
    rl_other_processes found = list_other_processes();
    _exit(found.reason[0] != '\0' ? 100 : (int)found.count);
  }
  int status = 0;
  waitpid(sibling, &status, 0);
  kill(worker, SIGKILL);
  waitpid(worker, NULL, 0);
  assert_int_equal(seen_by_parent, 1);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void assert_unknown(const char *reason) {
  rl_other_processes found = list_other_processes();
  assert_int_equal(found.count, 0);
  if (strstr(found.reason, reason) == NULL) fail_msg("\"%s\" lacks \"%s\"", found.reason, reason);
}

static void an_incomplete_list_of_nvml_has_a_reason(void **state) {
  (void)state;
  fake_nvml = (struct fake_nvml){.process_count = 1, .processes = {{UNRELATED_PID, 1000}}};
  assert_unknown("NVML does not list this worker");
  fake_nvml.process_count = 0;
  assert_unknown("NVML does not list this worker");
  fake_nvml.processes_result = FAKE_NVML_NOT_SUPPORTED;
  assert_unknown("NVML, processes: Not Supported");
}

static rl_sensor_reading read_sensors(void) {
  rl_sensor_reading reading;
  memset(&reading, 0x5a, sizeof reading);
  rl_sensors *sensors = rl_sensors_open("{\"uuid\":\"GPU-1\"}");
  rl_sensors_read(sensors, &reading);
  rl_sensors_close(sensors);
  return reading;
}

static void throttle_reasons_are_known_if_nvml_reports_them(void **state) {
  (void)state;
  fake_nvml = (struct fake_nvml){.throttle_reasons = 0};
  rl_sensor_reading reading = read_sensors();
  assert_true(reading.throttle_known && reading.throttle_reasons[0] == '\0' && reading.reason[0] == '\0');
  fake_nvml.throttle_reasons = 5;
  reading = read_sensors();
  assert_true(reading.throttle_known);
  assert_string_equal(reading.throttle_reasons, "gpu_idle,sw_power_cap");
  fake_nvml.throttle_result = FAKE_NVML_NOT_SUPPORTED;
  reading = read_sensors();
  assert_false(reading.throttle_known);
  assert_string_equal(reading.throttle_reasons, "");
  assert_string_equal(reading.reason, "NVML, throttle reasons: Not Supported");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(other_processes_are_listed_with_their_memory), cmocka_unit_test(a_worker_alone_sees_none),
      cmocka_unit_test(workers_of_the_same_daemon_do_not_count), cmocka_unit_test(an_incomplete_list_of_nvml_has_a_reason),
      cmocka_unit_test(throttle_reasons_are_known_if_nvml_reports_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
