/* fleet: real processes, most of which misbehave; the daemon's side lives on, and so does the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store_fixture.h"
#include "supervisor/fleet.h"

typedef struct world {
  fixture base;
  rl_config config;
  rl_queue *jobs;
  rl_fleet *fleet;
  char starts[96], releases[96];
} world;

static void behave(const char *how) { setenv("FAKE_WORKER", how, 1); }

static void open_fleet(world *at) {
  GOOD(rl_queue_open(at->base.store, 100, &at->jobs, &err));
  GOOD(rl_fleet_open(&at->config, at->jobs, &at->fleet, &err));
}

static void close_fleet(world *at) {
  rl_fleet_close(at->fleet);
  rl_queue_close(at->jobs);
  at->fleet = NULL;
  at->jobs = NULL;
}

/* A folder with one worker program, made of the fake. */
static int setup(void **state) {
  world *made = calloc(1, sizeof *made);
  char program[RL_PATH_SIZE];
  strcpy(made->base.folder, "/tmp/rooflined-fleet-XXXXXX");
  assert_non_null(mkdtemp(made->base.folder));
  GOOD(rl_store_open(made->base.folder, &made->base.store, &err));
  snprintf(made->starts, sizeof made->starts, "%s/starts", made->base.folder);
  setenv("FAKE_STARTS", made->starts, 1);
  snprintf(made->releases, sizeof made->releases, "%s/releases", made->base.folder);
  setenv("FAKE_RELEASES", made->releases, 1);
  behave("");
  made->config = (rl_config){.devices = "all", .job_deadline_s = 30, .threads = 3, .mnist_dir = "/digits"};
  snprintf(made->config.workers, sizeof made->config.workers, "%s", made->base.folder);
  snprintf(program, sizeof program, "%s/rooflined-worker-cpu", made->base.folder);
  assert_int_equal(symlink(FAKE_WORKER_PROGRAM, program), 0);
  *state = made;
  return 0;
}

static int teardown(void **state) {
  close_fleet(*state);
  return close_fixture(state);
}

static int64_t put_spec(world *at, rl_job_spec *spec) {
  int64_t id;
  bool existing;
  GOOD(rl_queue_submit(at->jobs, spec, NULL, NULL, &id, &existing, &err));
  return id;
}

static int64_t put(world *at, int64_t deadline_s) {
  rl_job_spec spec = make_spec("cpu", 1);
  spec.run_count = 1;
  spec.deadline_s = deadline_s;
  return put_spec(at, &spec);
}

/* A job of two runs with posted code. */
static int64_t put_posted(world *at) {
  rl_job_spec spec = make_spec("cpu", 1);
  spec.source = (char *)"{\"code\":1}";
  strcpy(spec.source_sha256, "1");
  return put_spec(at, &spec);
}

static rl_job_state state_of(world *at, int64_t id) {
  rl_job_state state;
  GOOD(rl_store_job_state(at->base.store, id, &state, &err));
  return state;
}

static void wait_for_state(world *at, int64_t id, rl_job_state wanted) {
  int64_t until = rl_monotonic_ns() + INT64_C(15000000000);
  while (state_of(at, id) != wanted && rl_monotonic_ns() < until) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  assert_string_equal(rl_job_state_names[state_of(at, id)], rl_job_state_names[wanted]);
}

static void wait_for_device(world *at, const char *wanted) {
  rl_device_state device;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(rl_fleet_devices(at->fleet, &device, 1), 1);
    if (strcmp(device.state, wanted) == 0) return;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  fail_msg("the device is %s, not %s", device.state, wanted);
}

static char *events_of(world *at, int64_t id) {
  cJSON *rows = READ(at->base.store, RL_QUERY_EVENTS, RL_INT(":job", id), RL_INT(":after", 0), RL_INT(":limit", 1000));
  char *text = cJSON_PrintUnformatted(rows);
  cJSON_Delete(rows);
  return text;
}

static void assert_told(world *at, int64_t id, const char *text) {
  char *events = events_of(at, id);
  if (strstr(events, text) == NULL) fail_msg("\"%s\" is not in %s", text, events);
  free(events);
}

static int read_pids(const char *path, pid_t pids[16]) {
  FILE *file = fopen(path, "re");
  int count = 0;
  while (file != NULL && count < 16 && fscanf(file, "%d", &pids[count]) == 1) count++;
  if (file != NULL) fclose(file);
  return count;
}

/* Ids of the worker processes that were started; returns how many. */
static int starts_of(world *at, pid_t pids[16]) { return read_pids(at->starts, pids); }

/* Ids of those that were asked to let go of the device, once there are so many. */
static void releases_of(world *at, pid_t pids[16], int count) {
  for (int i = 0; i < 1000 && read_pids(at->releases, pids) < count; i++)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  assert_int_equal(read_pids(at->releases, pids), count);
}

static bool gone(pid_t pid) {
  for (int i = 0; i < 1000 && kill(pid, 0) == 0; i++) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  return kill(pid, 0) < 0;
}

/* --- what goes well ------------------------------------------------------------------------------------------------ */

static void a_worker_stays_resident(void **state) {
  world *at = *state;
  pid_t pids[16];
  open_fleet(at);
  assert_int_equal(starts_of(at, pids), 0); /* not before it is needed */
  for (int i = 0; i < 3; i++) wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
  assert_int_equal(starts_of(at, pids), 1);
  assert_int_equal(ask(&at->base, "SELECT count(*) FROM epochs"), 3);
  assert_int_equal(ask(&at->base, "SELECT count(*) FROM passes WHERE git_commit = 'mnist /digits threads 3'"), 3);
  rl_device_state device;
  wait_for_device(at, "idle");
  assert_int_equal(rl_fleet_devices(at->fleet, &device, 1), 1);
  assert_string_equal(device.id, "cpu");
  assert_string_equal(device.kind, "cpu");
  assert_string_equal(device.facts, "{\"name\":\"fake\"}");
  assert_true(device.restarts == 0 && device.job_id == 0);
}

/* What one job's posted code left in the device's memory, another's could read. */
static void posted_code_never_shares_a_process_with_another_job(void **state) {
  world *at = *state;
  pid_t pids[16];
  open_fleet(at);
  wait_for_state(at, put_posted(at), RL_JOB_COMPLETED);
  assert_int_equal(starts_of(at, pids), 1); /* both of its runs */
  wait_for_state(at, put_posted(at), RL_JOB_COMPLETED);
  assert_int_equal(starts_of(at, pids), 2);
  assert_true(pids[0] != pids[1] && gone(pids[0]));
  for (int i = 0; i < 2; i++) wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
  assert_int_equal(starts_of(at, pids), 3);
  assert_true(gone(pids[1]));
}

/* As on a GPU: a worker for timing, another for the other passes. */
static void be_a_gpu(world *at) {
  char old[RL_PATH_SIZE], program[RL_PATH_SIZE];
  snprintf(old, sizeof old, "%s/rooflined-worker-cpu", at->base.folder);
  snprintf(program, sizeof program, "%s/rooflined-worker-cuda", at->base.folder);
  assert_int_equal(rename(old, program), 0);
}

static void one_worker_lets_go_before_the_other_works(void **state) {
  world *at = *state;
  pid_t workers[16], released[16];
  rl_job_spec spec = make_spec("cpu", 1u << RL_PASS_TIMING | 1u << RL_PASS_ACTIVITY);
  spec.run_count = 1;
  be_a_gpu(at);
  open_fleet(at);
  wait_for_state(at, put_spec(at, &spec), RL_JOB_COMPLETED);
  assert_int_equal(starts_of(at, workers), 2);
  releases_of(at, released, 1);
  assert_int_equal(released[0], workers[0]);
  releases_of(at, released, 2); /* and the other when there is nothing to do, once */
  assert_int_equal(released[1], workers[1]);
  nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
  releases_of(at, released, 2);
  assert_true(kill(workers[0], 0) == 0 && kill(workers[1], 0) == 0);
}

static void who_does_not_let_go_is_killed(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("keeps");
  open_fleet(at);
  wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
  releases_of(at, pids, 1);
  assert_true(gone(pids[0]));
  behave("");
  wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
  assert_int_equal(starts_of(at, pids), 2);
}

static void an_idle_fleet_sleeps(void **state) {
  struct rusage before, after;
  open_fleet(*state);
  getrusage(RUSAGE_SELF, &before);
  nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
  getrusage(RUSAGE_SELF, &after);
  int64_t us =
      (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * INT64_C(1000000) +
      after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
  assert_in_range(us, 0, 100000);
}

static void answers_of_every_kind(void **state) {
  world *at = *state;
  open_fleet(at);
  behave("fail");
  int64_t id = put(at, 0);
  wait_for_state(at, id, RL_JOB_FAILED);
  assert_told(at, id, "an illegal memory access");
  assert_told(at, id, "\"cuda\"");
  rl_fleet_close(at->fleet); /* a new fleet, so that the next worker sees the new behaviour */
  behave("unavailable");
  rl_queue_close(at->jobs);
  open_fleet(at);
  id = put(at, 0);
  wait_for_state(at, id, RL_JOB_COMPLETED);
  assert_told(at, id, "unavailable");
}

/* --- what does not ------------------------------------------------------------------------------------------------- */

static void a_death_is_retried_once(void **state) {
  world *at = *state;
  pid_t pids[16];
  rl_device_state device;
  behave("crash-once");
  open_fleet(at);
  int64_t id = put(at, 0);
  wait_for_state(at, id, RL_JOB_COMPLETED);
  assert_told(at, id, "was killed by SIGKILL");
  assert_int_equal(starts_of(at, pids), 2);
  wait_for_device(at, "idle");
  rl_fleet_devices(at->fleet, &device, 1);
  assert_int_equal(device.restarts, 1);
}

static void a_second_death_fails_the_job(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("exit");
  open_fleet(at);
  int64_t id = put(at, 0);
  wait_for_state(at, id, RL_JOB_FAILED);
  assert_told(at, id, "exited with 3");
  assert_int_equal(starts_of(at, pids), 2);
  behave("");
  wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
}

static void broken_workers_are_ended(void **state) {
  world *at = *state;
  static const struct {
    const char *how, *says;
  } cases[] = {{"print", "magic"},
               {"done-first", "DONE came before FACTS"},
               {"cancelled-unasked", "unasked"},
               {"hello-again", "not FACTS"},
               {"half", "exited with 0"},
               {"bad-row", "row 0"},
               {"other-device", "another"},
               {"babble", "logs are longer"}};
  open_fleet(at);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pid_t pids[16];
    unlink(at->starts);
    behave(cases[i].how);
    int64_t id = put(at, 0);
    wait_for_state(at, id, RL_JOB_FAILED);
    assert_told(at, id, cases[i].says);
    int count = starts_of(at, pids);
    assert_int_equal(count, 2);
    for (int p = 0; p < count; p++) assert_true(gone(pids[p]));
    behave("");
    wait_for_state(at, put(at, 0), RL_JOB_COMPLETED); /* also resets the back-off */
    wait_for_device(at, "idle");
    assert_int_equal(starts_of(at, pids), 3);
    assert_int_equal(kill(pids[2], SIGKILL), 0);
    assert_true(gone(pids[2])); /* before the next job, whose fault it is not */
  }
}

static void a_stray_frame_does_not_answer_the_next_request(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("chatter"); /* DONE twice */
  open_fleet(at);
  wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
  wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
  assert_int_equal(starts_of(at, pids), 2);
  assert_int_equal(ask(&at->base, "SELECT count(*) FROM epochs"), 2);
}

/* Its worker lives on, and the job is failed at once: offering such results again would not help. */
static void results_that_contradict_themselves_fail_the_job(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("twice");
  open_fleet(at);
  int64_t id = put(at, 0);
  wait_for_state(at, id, RL_JOB_FAILED);
  assert_told(at, id, "the results contradict themselves");
  assert_int_equal(starts_of(at, pids), 1);
  assert_int_equal(ask(&at->base, "SELECT count(*) FROM epochs"), 0);
}

static void a_death_between_jobs_counts_against_none(void **state) {
  world *at = *state;
  pid_t pids[16];
  rl_device_state device;
  open_fleet(at);
  for (int i = 0; i < 3; i++) {
    wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
    int count = starts_of(at, pids);
    assert_int_equal(count, i + 1);
    kill(pids[count - 1], SIGKILL);
  }
  wait_for_device(at, "idle");
  rl_fleet_devices(at->fleet, &device, 1);
  assert_int_equal(device.restarts, 0);
}

static void a_hung_worker_ends_at_the_deadline(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("deaf");
  open_fleet(at);
  int64_t id = put(at, 1);
  wait_for_state(at, id, RL_JOB_FAILED);
  assert_told(at, id, "deadline");
  assert_int_equal(starts_of(at, pids), 1); /* not tried again: there is no time left */
  assert_true(gone(pids[0]));
  behave("");
  wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
}

static void cancels_are_passed_on(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("slow");
  open_fleet(at);
  int64_t id = put(at, 0);
  wait_for_device(at, "busy");
  GOOD(rl_queue_cancel(at->jobs, id, &err));
  int64_t begin = rl_monotonic_ns();
  wait_for_device(at, "idle");
  assert_in_range(rl_monotonic_ns() - begin, 0, 3000000000);
  assert_int_equal(state_of(at, id), RL_JOB_CANCELLED);
  assert_int_equal(starts_of(at, pids), 1);
  assert_int_equal(kill(pids[0], 0), 0); /* it obeyed, so it stays */
}

static void who_ignores_a_cancel_is_killed(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("deaf");
  open_fleet(at);
  int64_t id = put(at, 0);
  wait_for_device(at, "busy");
  GOOD(rl_queue_cancel(at->jobs, id, &err));
  wait_for_device(at, "idle");
  starts_of(at, pids);
  assert_true(gone(pids[0]));
  behave("");
  wait_for_state(at, put(at, 0), RL_JOB_COMPLETED);
}

static void a_flood_neither_fills_the_store_nor_hides_a_cancel(void **state) {
  world *at = *state;
  behave("flood");
  open_fleet(at);
  int64_t id = put(at, 0);
  wait_for_device(at, "busy");
  nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  GOOD(rl_queue_cancel(at->jobs, id, &err));
  wait_for_device(at, "idle");
  assert_in_range(ask(&at->base, "SELECT count(*) FROM events WHERE type = 'progress'"), 2, 8);
}

static void stopping_is_quick_and_leaves_no_process(void **state) {
  world *at = *state;
  pid_t pids[16];
  behave("deaf");
  open_fleet(at);
  int64_t id = put(at, 0);
  wait_for_device(at, "busy");
  int64_t begin = rl_monotonic_ns();
  close_fleet(at);
  assert_in_range(rl_monotonic_ns() - begin, 0, 1500000000);
  assert_int_equal(state_of(at, id), RL_JOB_INTERRUPTED);
  assert_int_equal(starts_of(at, pids), 1);
  assert_true(gone(pids[0]));
  behave("");
  open_fleet(at);
  wait_for_state(at, id, RL_JOB_COMPLETED);
}

/* --- who can't serve says why -------------------------------------------------------------------------------------- */

static void assert_unusable(world *at, const char *id, const char *reason) {
  rl_device_state devices[8];
  int count = rl_fleet_devices(at->fleet, devices, 8);
  for (int i = 0; i < count; i++)
    if (strcmp(devices[i].id, id) == 0) {
      assert_string_equal(devices[i].state, "unusable");
      if (strstr(devices[i].reason, reason) == NULL) fail_msg("\"%s\" is not in \"%s\"", reason, devices[i].reason);
      return;
    }
  fail_msg("%s is not listed", id);
}

static void unusable_devices_are_listed(void **state) {
  world *at = *state;
  static const struct {
    const char *how, *reason;
  } cases[] = {{"list-crash", "libfake.so.9: cannot open shared object file"},
               {"list-garbage", "pipe in the middle of a frame"},
               {"unusable", "the device fell off the bus"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_job_spec spec = make_spec("", 1);
    int64_t id;
    bool existing;
    behave(cases[i].how);
    open_fleet(at);
    assert_unusable(at, "cpu", cases[i].reason);
    REFUSED(rl_queue_submit(at->jobs, &spec, NULL, NULL, &id, &existing, &err), RL_HTTP, 503);
    close_fleet(at);
  }
  char program[RL_PATH_SIZE];
  snprintf(program, sizeof program, "%s/rooflined-worker-npu", at->base.folder);
  assert_int_equal(symlink(FAKE_WORKER_PROGRAM, program), 0);
  behave("");
  strcpy(at->config.devices, "gpu0");
  open_fleet(at);
  assert_unusable(at, "cpu", "devices = gpu0");
  assert_unusable(at, "gpu0", "no installed worker");
}

static void an_unknown_kind_of_device_is_no_reason_to_stop(void **state) {
  world *at = *state;
  char old[RL_PATH_SIZE], program[RL_PATH_SIZE];
  snprintf(old, sizeof old, "%s/rooflined-worker-cpu", at->base.folder);
  snprintf(program, sizeof program, "%s/rooflined-worker-npu", at->base.folder);
  assert_int_equal(rename(old, program), 0);
  open_fleet(at);
  assert_unusable(at, "cpu", "kind npu");
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  rl_log_open("test_fleet", RL_LOG_ERROR);
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(a_worker_stays_resident),
                                     TEST(posted_code_never_shares_a_process_with_another_job),
                                     TEST(an_idle_fleet_sleeps),
                                     TEST(one_worker_lets_go_before_the_other_works),
                                     TEST(who_does_not_let_go_is_killed),
                                     TEST(answers_of_every_kind),
                                     TEST(a_death_is_retried_once),
                                     TEST(a_second_death_fails_the_job),
                                     TEST(broken_workers_are_ended),
                                     TEST(a_stray_frame_does_not_answer_the_next_request),
                                     TEST(results_that_contradict_themselves_fail_the_job),
                                     TEST(a_death_between_jobs_counts_against_none),
                                     TEST(a_hung_worker_ends_at_the_deadline),
                                     TEST(cancels_are_passed_on),
                                     TEST(who_ignores_a_cancel_is_killed),
                                     TEST(a_flood_neither_fills_the_store_nor_hides_a_cancel),
                                     TEST(stopping_is_quick_and_leaves_no_process),
                                     TEST(unusable_devices_are_listed),
                                     TEST(an_unknown_kind_of_device_is_no_reason_to_stop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
