/* Runs the supervisor with fake worker processes, most of which violate the protocol. The supervisor and the queue must
 * continue to execute jobs. */
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
#include "supervisor/supervisor.h"

typedef struct test_state {
  fixture store_fixture;
  rl_config config;
  rl_queue *jobs;
  rl_supervisor *supervisor;
  char started_pids_path[96], released_pids_path[96], opening_pids_path[96], overlap_pids_path[96], gate_path[96];
} test_state;

static void sleep_10_ms(void) { nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); }

/* Sets how workers behave that start from now on (fake_worker.c). "": they follow the protocol. */
static void set_behaviour(const char *behaviour) { setenv("FAKE_WORKER", behaviour, 1); }

static void open_supervisor(test_state *test) {
  ASSERT_OK(rl_queue_open(test->store_fixture.store, 100, &test->jobs, &err));
  ASSERT_OK(rl_supervisor_open(&test->config, test->jobs, NULL, &test->supervisor, &err));
}

static void close_supervisor(test_state *test) {
  rl_supervisor_close(test->supervisor);
  rl_queue_close(test->jobs);
  test->supervisor = NULL;
  test->jobs = NULL;
}

/* Creates a folder with one worker program: a link to fake_worker. */
static int open_test_state(void **state) {
  test_state *created = calloc(1, sizeof *created);
  char program[RL_PATH_SIZE];
  strcpy(created->store_fixture.folder, "/tmp/rooflined-supervisor-XXXXXX");
  assert_non_null(mkdtemp(created->store_fixture.folder));
  ASSERT_OK(rl_store_open(created->store_fixture.folder, &created->store_fixture.store, &err));
  snprintf(created->started_pids_path, sizeof created->started_pids_path, "%s/starts", created->store_fixture.folder);
  setenv("FAKE_STARTS", created->started_pids_path, 1);
  snprintf(created->released_pids_path, sizeof created->released_pids_path, "%s/releases", created->store_fixture.folder);
  setenv("FAKE_RELEASES", created->released_pids_path, 1);
  snprintf(created->opening_pids_path, sizeof created->opening_pids_path, "%s/openings", created->store_fixture.folder);
  setenv("FAKE_OPENINGS", created->opening_pids_path, 1);
  snprintf(created->overlap_pids_path, sizeof created->overlap_pids_path, "%s/overlaps", created->store_fixture.folder);
  setenv("FAKE_OVERLAPS", created->overlap_pids_path, 1);
  snprintf(created->gate_path, sizeof created->gate_path, "%s/gate", created->store_fixture.folder);
  setenv("FAKE_GATE", created->gate_path, 1);
  set_behaviour("");
  created->config =
      (rl_config){.devices = "all", .job_deadline_s = 30, .threads = 3, .spare_worker_s = 60, .mnist_dir = "/digits"};
  snprintf(created->config.workers, sizeof created->config.workers, "%s", created->store_fixture.folder);
  snprintf(program, sizeof program, "%s/rooflined-worker-cpu", created->store_fixture.folder);
  assert_int_equal(symlink(FAKE_WORKER_PROGRAM, program), 0);
  *state = created;
  return 0;
}

static int close_test_state(void **state) {
  close_supervisor(*state);
  return close_fixture(state);
}

static int64_t submit_spec(test_state *test, rl_job_spec *spec) {
  int64_t id;
  bool existing;
  ASSERT_OK(rl_queue_submit_job(test->jobs, spec, NULL, NULL, &id, &existing, &err));
  return id;
}

static int64_t submit_job(test_state *test, int64_t time_limit_s) {
  rl_job_spec spec = make_spec("cpu", 1);
  spec.run_count = 1;
  spec.time_limit_s = time_limit_s;
  return submit_spec(test, &spec);
}

/* Returns a job with posted code. run_count: 1 or 2. */
static rl_job_spec make_source_spec(uint32_t passes, int run_count) {
  rl_job_spec spec = make_spec("cpu", passes);
  spec.run_count = run_count;
  spec.source_json = (char *)"{\"code\":1}";
  strcpy(spec.source_sha256, "1");
  return spec;
}

static int64_t submit_source(test_state *test) {
  rl_job_spec spec = make_source_spec(1, 2);
  return submit_spec(test, &spec);
}

static rl_job_state job_state(test_state *test, int64_t id) {
  rl_job_state state;
  ASSERT_OK(rl_store_job_state(test->store_fixture.store, id, &state, &err));
  return state;
}

static void wait_for_state(test_state *test, int64_t id, rl_job_state expected) {
  int64_t until = rl_monotonic_ns() + INT64_C(120000000000);
  while (job_state(test, id) != expected && rl_monotonic_ns() < until) sleep_10_ms();
  assert_string_equal(rl_job_state_names[job_state(test, id)], rl_job_state_names[expected]);
}

static void wait_for_device(test_state *test, const char *expected) {
  rl_device_state device;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(rl_supervisor_devices(test->supervisor, &device, 1), 1);
    if (strcmp(device.state, expected) == 0) return;
    sleep_10_ms();
  }
  fail_msg("the device is %s, not %s", device.state, expected);
}

static char *job_events(test_state *test, int64_t id) {
  cJSON *rows = QUERY_ROWS(test->store_fixture.store, RL_QUERY_EVENTS, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":after", 0),
                           RL_BIND_INTEGER(":limit", 1000));
  char *text = cJSON_PrintUnformatted(rows);
  cJSON_Delete(rows);
  return text;
}

static void assert_event_contains(test_state *test, int64_t id, const char *text) {
  char *events = job_events(test, id);
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

/* Reads the process ids of started workers; returns their number. */
static int read_started_pids(test_state *test, pid_t pids[16]) { return read_pids(test->started_pids_path, pids); }

/* Waits until `count` workers have received RELEASE, and reads their process ids. */
static void wait_for_releases(test_state *test, pid_t pids[16], int count) {
  for (int i = 0; i < 1000 && read_pids(test->released_pids_path, pids) < count; i++) sleep_10_ms();
  assert_int_equal(read_pids(test->released_pids_path, pids), count);
}

/* Waits until a killed process has closed its pipes: it is a zombie, or already reaped. */
static void wait_for_death(pid_t pid) {
  char path[64], state = 'R';
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  for (int i = 0; i < 1000 && state != 'Z'; i++) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return;
    if (fscanf(file, "%*d %*s %c", &state) != 1) state = 'R';
    fclose(file);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  assert_int_equal(state, 'Z');
}

static bool exits_within_10_s(pid_t pid) {
  for (int i = 0; i < 1000 && kill(pid, 0) == 0; i++) sleep_10_ms();
  return kill(pid, 0) < 0;
}

/* --- normal operation ---------------------------------------------------------------------------------------------- */

static void a_worker_stays_resident(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  open_supervisor(test);
  assert_int_equal(read_started_pids(test, pids), 0); /* a worker starts only when a pass needs it */
  for (int i = 0; i < 3; i++) wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 1);
  assert_int_equal(query_integer(&test->store_fixture, "SELECT count(*) FROM epochs"), 3);
  assert_int_equal(
      query_integer(&test->store_fixture, "SELECT count(*) FROM passes WHERE git_commit = 'mnist /digits threads 3'"), 3);
  rl_device_state device;
  wait_for_device(test, "idle");
  assert_int_equal(rl_supervisor_devices(test->supervisor, &device, 1), 1);
  assert_string_equal(device.id, "cpu");
  assert_string_equal(device.kind, "cpu");
  assert_string_equal(device.properties, "{\"name\":\"fake\"}");
  assert_true(device.restarts == 0 && device.job_id == 0);
}

/* Waits until `count` workers have started, and reads their process ids. */
static void wait_for_starts(test_state *test, pid_t pids[16], int count) {
  for (int i = 0; i < 1000 && read_started_pids(test, pids) < count; i++) sleep_10_ms();
  assert_int_equal(read_started_pids(test, pids), count);
}

/* A process that executed posted code serves only that job, because another job could read device memory that the code left. Its
 * successor starts before the next job. */
static void posted_code_never_shares_a_process_with_another_job(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  open_supervisor(test);
  wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 2); /* the first process served both runs of the job */
  assert_true(pids[0] != pids[1] && exits_within_10_s(pids[0]));
  wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 3);
  assert_true(exits_within_10_s(pids[1]));
  for (int i = 0; i < 2; i++) wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 3); /* the third process serves both jobs, because they have no posted code */
  assert_int_equal(kill(pids[2], 0), 0);
}

static void jobs_of_posted_code_follow_each_other(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  open_supervisor(test);
  int64_t jobs[3];
  for (int i = 0; i < 3; i++) jobs[i] = submit_source(test);
  for (int i = 0; i < 3; i++) wait_for_state(test, jobs[i], RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 4);
  for (int i = 0; i < 3; i++) assert_true(exits_within_10_s(pids[i]));
}

static int64_t submit_with_fresh_worker(test_state *test) {
  rl_job_spec spec = make_spec("cpu", 1); /* two runs */
  strcpy(spec.request, "{\"fresh_worker\":true}");
  return submit_spec(test, &spec);
}

static void a_job_with_fresh_worker_never_uses_the_process_of_another_job(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  open_supervisor(test);
  wait_for_state(test, submit_with_fresh_worker(test), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids),
                   1); /* the first process is new, because no job ran before; it serves both runs */
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 1);
  wait_for_state(test, submit_with_fresh_worker(test), RL_JOB_COMPLETED);
  wait_for_state(test, submit_with_fresh_worker(test), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 3);
  assert_true(pids[1] != pids[0] && pids[2] != pids[1]);
  assert_true(exits_within_10_s(pids[0]) && exits_within_10_s(pids[1]));
}

/* Renames the worker program to rooflined-worker-cuda. The supervisor starts two processes of the CUDA worker: one for the timing
 * pass, one for the other passes. */
static void rename_worker_to_cuda(test_state *test) {
  char old[RL_PATH_SIZE], program[RL_PATH_SIZE];
  snprintf(old, sizeof old, "%s/rooflined-worker-cpu", test->store_fixture.folder);
  snprintf(program, sizeof program, "%s/rooflined-worker-cuda", test->store_fixture.folder);
  assert_int_equal(rename(old, program), 0);
}

/* Waits until spare workers have written `count` lines to FAKE_OPENINGS (one when a worker begins to open the device, one when it
 * is open), and reads the process ids. */
static void wait_for_openings(test_state *test, pid_t pids[16], int count) {
  for (int i = 0; i < 1000 && read_pids(test->opening_pids_path, pids) < count; i++) sleep_10_ms();
  assert_int_equal(read_pids(test->opening_pids_path, pids), count);
}

/* After posted code, workers of both roles start before the next job. If one of them dies before that job, the job still succeeds
 * at its first attempt. */
static void both_roles_start_ahead_after_posted_code(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  rl_job_spec spec = make_source_spec(1u << RL_PASS_TIMING | 1u << RL_PASS_ACTIVITY, 1);
  rename_worker_to_cuda(test);
  open_supervisor(test);
  wait_for_state(test, submit_spec(test, &spec), RL_JOB_COMPLETED);
  wait_for_openings(test, pids, 4);
  wait_for_starts(test, pids, 4);
  assert_int_equal(kill(pids[3], SIGKILL), 0);
  wait_for_death(pids[3]);
  int64_t second = submit_spec(test, &spec);
  wait_for_state(test, second, RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 7); /* one replaces the killed process, and two start after the job */
  rl_device_state device;
  assert_int_equal(rl_supervisor_devices(test->supervisor, &device, 1), 1);
  assert_int_equal(device.restarts, 0);
}

/* The two workers of the first job open the device at the same time, and both receive opening_overlapped. The spare workers,
 * which open it one after the other, execute the second job and do not receive it. */
static void requests_say_whether_openings_overlapped(void **state) {
  test_state *test = *state;
  pid_t started[16], overlapped[16];
  rl_job_spec spec = make_source_spec(1u << RL_PASS_TIMING | 1u << RL_PASS_COUNTERS, 1);
  rename_worker_to_cuda(test);
  open_supervisor(test);
  wait_for_state(test, submit_spec(test, &spec), RL_JOB_COMPLETED);
  assert_int_equal(read_pids(test->overlap_pids_path, overlapped), 2);
  wait_for_starts(test, started, 4);
  assert_int_equal(overlapped[0] + overlapped[1], started[0] + started[1]); /* they start in any order */
  assert_int_not_equal(overlapped[0], overlapped[1]);
  wait_for_openings(test, started, 8); /* four lines of the first job's workers, four of the spare workers */
  wait_for_state(test, submit_spec(test, &spec), RL_JOB_COMPLETED);
  assert_int_equal(read_pids(test->overlap_pids_path, overlapped), 2);
}

/* When a job with posted code begins its counters pass, the worker of its timing pass ends. Its successor starts together with
 * the other spare worker. */
static void the_timing_worker_of_posted_code_ends_before_counters(void **state) {
  test_state *test = *state;
  pid_t pids[16], timing_worker;
  rl_job_spec spec = make_source_spec(1u << RL_PASS_TIMING | 1u << RL_PASS_COUNTERS, 1);
  rename_worker_to_cuda(test);
  set_behaviour("profiled-is-slow");
  open_supervisor(test);
  const int64_t job = submit_spec(test, &spec);
  for (int i = 0; i < 1000 && read_pids(test->overlap_pids_path, pids) < 2; i++) sleep_10_ms();
  assert_int_equal(read_pids(test->overlap_pids_path, pids), 2); /* the profiled worker has received its request */
  timing_worker = pids[0];
  wait_for_death(timing_worker);
  assert_int_equal(read_started_pids(test, pids), 2);
  set_behaviour("");
  ASSERT_OK(rl_queue_cancel_job(test->jobs, job, &err));
  wait_for_state(test, job, RL_JOB_CANCELLED);
  wait_for_starts(test, pids, 4);
}

/* The spare workers open the device one after the other, because each measures the growth of the used device memory. */
static void spare_workers_do_not_open_the_device_at_the_same_time(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  rename_worker_to_cuda(test);
  open_supervisor(test);
  wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
  wait_for_openings(test, pids, 4);
  assert_true(pids[0] == pids[1] && pids[2] == pids[3] && pids[0] != pids[2]);
}

/* Returns whether the path of the process's program contains the text. */
static bool runs_program_of(pid_t pid, const char *text) {
  char path[64], command[512] = "";
  snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  size_t size = fread(command, 1, sizeof command - 1, file); /* the program's path ends with a NUL byte */
  fclose(file);
  assert_true(size > 0);
  return strstr(command, text) != NULL;
}

/* Two jobs with posted code follow each other in different builds. The workers of the second job and the spare workers after it
 * run its build, and no other worker starts. */
static void spare_workers_run_the_build_of_the_last_posted_code(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  char folder[RL_PATH_SIZE], program[2 * RL_PATH_SIZE];
  rl_job_spec spec = make_source_spec(1, 2);
  strcpy(spec.request, "{\"worker_build\":\"other\"}");
  rename_worker_to_cuda(test);
  snprintf(folder, sizeof folder, "%s/other", test->store_fixture.folder);
  snprintf(program, sizeof program, "%s/rooflined-worker-cuda", folder);
  assert_int_equal(mkdir(folder, 0700), 0);
  assert_int_equal(symlink(FAKE_WORKER_PROGRAM, program), 0);
  snprintf(test->config.builds, sizeof test->config.builds, "other=%s", folder);
  set_behaviour("late");
  open_supervisor(test);
  int64_t first = submit_source(test), second = submit_spec(test, &spec);
  wait_for_state(test, first, RL_JOB_COMPLETED);
  wait_for_state(test, second, RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 4);
  assert_true(runs_program_of(pids[2], program) && runs_program_of(pids[3], program));
  wait_for_state(test, submit_spec(test, &spec), RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 5);
}

/* With spare_worker_s = 0, no spare worker starts: each job with posted code starts its worker. */
static void no_spare_worker_starts_if_the_setting_is_0(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  rename_worker_to_cuda(test);
  test->config.spare_worker_s = 0;
  open_supervisor(test);
  for (int i = 0; i < 3; i++) {
    wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
    assert_int_equal(read_started_pids(test, pids), i + 1);
    assert_true(exits_within_10_s(pids[i]));
  }
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 4);
  assert_int_equal(kill(pids[3], 0), 0);
}

/* A spare worker whose role the job does not need hangs before its HELLO. The job waits until 2 s after its start. */
static void no_job_waits_long_for_a_spare_worker_of_another_role(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("profiled-is-mute");
  rename_worker_to_cuda(test);
  open_supervisor(test);
  wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 3);
  const int64_t begin_ns = rl_monotonic_ns();
  wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
  assert_in_range(rl_monotonic_ns() - begin_ns, 0, INT64_C(4000000000));
}

/* The spare worker that the job needs hangs before its HELLO. A new process executes the job. */
static void a_spare_worker_that_hangs_is_replaced(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  rl_device_state device;
  set_behaviour("second-is-mute");
  open_supervisor(test);
  wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
  wait_for_starts(test, pids, 2);
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 3);
  assert_true(exits_within_10_s(pids[1]));
  assert_int_equal(rl_supervisor_devices(test->supervisor, &device, 1), 1);
  assert_int_equal(device.restarts, 0);
}

/* Spare workers of one role die before their HELLO. After each death, the next one starts after a pause, and the pauses grow. The
 * jobs need only the other role, so they do not wait. */
static void spare_workers_that_die_start_after_a_pause(void **state) {
  enum { JOBS = 8 };
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("profiled-exits");
  rename_worker_to_cuda(test);
  open_supervisor(test);
  int count = 1;
  for (int i = 0; i < JOBS; i++) {
    wait_for_state(test, submit_source(test), RL_JOB_COMPLETED);
    const int previous_count = count; /* waits until both spare workers have started, or half a second */
    for (int turn = 0; turn < 50 && (count = read_started_pids(test, pids)) < previous_count + 2; turn++) sleep_10_ms();
  }
  assert_in_range(count, 1 + JOBS + 1, 1 + JOBS + JOBS - 2);
}

static void one_worker_releases_the_device_before_another_pass(void **state) {
  test_state *test = *state;
  pid_t workers[16], released[16];
  rl_job_spec spec = make_spec("cpu", 1u << RL_PASS_TIMING | 1u << RL_PASS_ACTIVITY);
  spec.run_count = 1;
  rename_worker_to_cuda(test);
  open_supervisor(test);
  wait_for_state(test, submit_spec(test, &spec), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, workers), 2);
  wait_for_releases(test, released, 1);
  assert_int_equal(released[0], workers[0]);
  wait_for_releases(test, released, 2); /* the other worker receives one RELEASE when it becomes idle */
  assert_int_equal(released[1], workers[1]);
  nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
  wait_for_releases(test, released, 2);
  assert_true(kill(workers[0], 0) == 0 && kill(workers[1], 0) == 0);
}

static void a_worker_that_does_not_release_is_killed(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("keeps-device");
  open_supervisor(test);
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  wait_for_releases(test, pids, 1);
  assert_true(exits_within_10_s(pids[0]));
  set_behaviour("");
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 2);
}

static void an_idle_supervisor_uses_no_cpu(void **state) {
  struct rusage before, after;
  open_supervisor(*state);
  getrusage(RUSAGE_SELF, &before);
  nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
  getrusage(RUSAGE_SELF, &after);
  int64_t us =
      (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * INT64_C(1000000) +
      after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
  assert_in_range(us, 0, 100000);
}

static void failed_and_unavailable_passes_are_stored(void **state) {
  test_state *test = *state;
  open_supervisor(test);
  set_behaviour("fail");
  int64_t id = submit_job(test, 0);
  wait_for_state(test, id, RL_JOB_FAILED);
  assert_event_contains(test, id, "an illegal memory access");
  assert_event_contains(test, id, "\"cuda\"");
  rl_supervisor_close(test->supervisor); /* so that a new worker starts, with the new behaviour */
  set_behaviour("unavailable");
  rl_queue_close(test->jobs);
  open_supervisor(test);
  id = submit_job(test, 0);
  wait_for_state(test, id, RL_JOB_COMPLETED);
  assert_event_contains(test, id, "unavailable");
}

/* --- failures ------------------------------------------------------------------------------------------------------ */

static void a_crash_is_retried_once(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  rl_device_state device;
  set_behaviour("crash-once");
  open_supervisor(test);
  int64_t id = submit_job(test, 0);
  wait_for_state(test, id, RL_JOB_COMPLETED);
  assert_event_contains(test, id, "was killed by SIGKILL");
  assert_int_equal(read_started_pids(test, pids), 2);
  wait_for_device(test, "idle");
  rl_supervisor_devices(test->supervisor, &device, 1);
  assert_int_equal(device.restarts, 1);
}

static void a_second_crash_fails_the_job(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("exit");
  open_supervisor(test);
  int64_t id = submit_job(test, 0);
  wait_for_state(test, id, RL_JOB_FAILED);
  assert_event_contains(test, id, "exited with 3");
  assert_int_equal(read_started_pids(test, pids), 2);
  set_behaviour("");
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
}

/* --- activity rows ------------------------------------------------------------------------------------------------- */

enum { FAKE_ROWS = 100000 };

static int64_t submit_activity(test_state *test) {
  rl_job_spec spec = make_spec("cpu", 1u << RL_PASS_ACTIVITY);
  char rows[16];
  snprintf(rows, sizeof rows, "%d", FAKE_ROWS);
  setenv("FAKE_ROWS", rows, 1);
  spec.run_count = 1;
  return submit_spec(test, &spec);
}

static void assert_all_rows_once(test_state *test) {
  assert_int_equal(query_integer(&test->store_fixture, "SELECT count(*) FROM v_activity"), FAKE_ROWS);
  assert_int_equal(query_integer(&test->store_fixture, "SELECT count(DISTINCT start_ns) FROM activity"), FAKE_ROWS);
  assert_int_equal(query_integer(&test->store_fixture, "SELECT activity_rows FROM passes"), FAKE_ROWS);
}

/* The worker dies after it has sent a part of its rows. The second attempt sends all of them. */
static void rows_of_a_crash_are_not_stored_twice(void **state) {
  test_state *test = *state;
  set_behaviour("rows-crash-once");
  open_supervisor(test);
  int64_t id = submit_activity(test);
  wait_for_state(test, id, RL_JOB_COMPLETED);
  assert_event_contains(test, id, "was killed by SIGKILL");
  assert_all_rows_once(test);
}

static sqlite3 *lock_database(test_state *test) {
  sqlite3 *db = connect_to(&test->store_fixture);
  sqlite3_busy_timeout(db, 15000);
  assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  return db;
}

/* While another program holds the database locked, the daemon keeps rows in memory, and the worker finishes the pass. */
static void rows_wait_for_a_locked_database(void **state) {
  test_state *test = *state;
  set_behaviour("rows-gated");
  open_supervisor(test);
  int64_t id = submit_activity(test);
  for (int i = 0; i < 1500 && query_integer(&test->store_fixture, "SELECT count(*) FROM activity") == 0; i++) sleep_10_ms();
  sqlite3 *db = lock_database(test);
  fclose(fopen(test->gate_path, "we"));
  for (int i = 0; i < 1500 && !rl_store_has_unstored_results(test->store_fixture.store, id); i++) sleep_10_ms();
  ASSERT_FAILS(rl_queue_check_results_are_stored(test->jobs, &err), RL_STORAGE, RL_STORAGE_LOCKED);
  assert_int_equal(query_integer(&test->store_fixture, "SELECT count(*) FROM v_activity"), 0);
  assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  wait_for_state(test, id, RL_JOB_COMPLETED);
  assert_all_rows_once(test);
}

/* --- protocol errors ----------------------------------------------------------------------------------------------- */

static void protocol_errors_end_the_worker(void **state) {
  test_state *test = *state;
  static const struct {
    const char *behaviour, *message;
  } cases[] = {{"prints-to-stdout", "magic"},
               {"hangs", "its main thread hangs in the stage \\\"open\\\": no progress for 901 s"},
               {"done-first", "DONE arrived before METADATA"},
               {"cancelled-unasked", "without a CANCEL"},
               {"hello-again", "not METADATA"},
               {"half-frame", "exited with 0"},
               {"bad-row", "row 0"},
               {"other-device", "another"},
               {"endless-log", "logs are longer"}};
  open_supervisor(test);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pid_t pids[16];
    unlink(test->started_pids_path);
    set_behaviour(cases[i].behaviour);
    int64_t id = submit_job(test, 0);
    wait_for_state(test, id, RL_JOB_FAILED);
    assert_event_contains(test, id, cases[i].message);
    int count = read_started_pids(test, pids);
    assert_int_equal(count, 2);
    for (int p = 0; p < count; p++) assert_true(exits_within_10_s(pids[p]));
    set_behaviour("");
    wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED); /* also resets the back-off */
    wait_for_device(test, "idle");
    assert_int_equal(read_started_pids(test, pids), 3);
    assert_int_equal(kill(pids[2], SIGKILL), 0);
    assert_true(exits_within_10_s(pids[2])); /* so that the next job starts a new worker */
  }
}

static void a_stray_frame_does_not_complete_the_next_pass(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("chatter"); /* sends DONE twice */
  open_supervisor(test);
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
  assert_int_equal(read_started_pids(test, pids), 2);
  assert_int_equal(query_integer(&test->store_fixture, "SELECT count(*) FROM epochs"), 2);
}

/* The job fails without a second attempt, because storing the same results again cannot succeed. The worker is kept. */
static void inconsistent_results_fail_the_job(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("same-epoch-twice");
  open_supervisor(test);
  int64_t id = submit_job(test, 0);
  wait_for_state(test, id, RL_JOB_FAILED);
  assert_event_contains(test, id, "the worker's results are inconsistent");
  assert_int_equal(read_started_pids(test, pids), 1);
  assert_int_equal(query_integer(&test->store_fixture, "SELECT count(*) FROM epochs"), 0);
}

static void a_crash_between_jobs_counts_for_no_job(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  rl_device_state device;
  open_supervisor(test);
  for (int i = 0; i < 3; i++) {
    wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
    int count = read_started_pids(test, pids);
    assert_int_equal(count, i + 1);
    kill(pids[count - 1], SIGKILL);
    wait_for_death(pids[count - 1]);
  }
  wait_for_device(test, "idle");
  rl_supervisor_devices(test->supervisor, &device, 1);
  assert_int_equal(device.restarts, 0);
}

static void a_hung_worker_is_killed_at_the_deadline(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("ignores-cancel");
  open_supervisor(test);
  int64_t id = submit_job(test, 1);
  wait_for_state(test, id, RL_JOB_FAILED);
  assert_event_contains(test, id, "deadline");
  assert_int_equal(read_started_pids(test, pids), 1); /* no second attempt, because no time is left */
  assert_true(exits_within_10_s(pids[0]));
  set_behaviour("");
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
}

static void cancel_reaches_the_worker(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("slow");
  open_supervisor(test);
  int64_t id = submit_job(test, 0);
  wait_for_device(test, "busy");
  ASSERT_OK(rl_queue_cancel_job(test->jobs, id, &err));
  int64_t begin = rl_monotonic_ns();
  wait_for_device(test, "idle");
  assert_in_range(rl_monotonic_ns() - begin, 0, 3000000000);
  assert_int_equal(job_state(test, id), RL_JOB_CANCELLED);
  assert_int_equal(read_started_pids(test, pids), 1);
  assert_int_equal(kill(pids[0], 0), 0); /* the worker answered, so it is kept */
}

static void a_worker_that_ignores_cancel_is_killed(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("ignores-cancel");
  open_supervisor(test);
  int64_t id = submit_job(test, 0);
  wait_for_device(test, "busy");
  ASSERT_OK(rl_queue_cancel_job(test->jobs, id, &err));
  wait_for_device(test, "idle");
  read_started_pids(test, pids);
  assert_true(exits_within_10_s(pids[0]));
  set_behaviour("");
  wait_for_state(test, submit_job(test, 0), RL_JOB_COMPLETED);
}

static void a_flood_of_progress_is_limited_and_can_be_cancelled(void **state) {
  test_state *test = *state;
  set_behaviour("flood");
  open_supervisor(test);
  int64_t id = submit_job(test, 0);
  wait_for_device(test, "busy");
  nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  ASSERT_OK(rl_queue_cancel_job(test->jobs, id, &err));
  wait_for_device(test, "idle");
  assert_in_range(query_integer(&test->store_fixture, "SELECT count(*) FROM events WHERE type = 'progress'"), 2, 8);
}

static void stop_is_quick_and_leaves_no_process(void **state) {
  test_state *test = *state;
  pid_t pids[16];
  set_behaviour("ignores-cancel");
  open_supervisor(test);
  int64_t id = submit_job(test, 0);
  wait_for_device(test, "busy");
  int64_t begin = rl_monotonic_ns();
  close_supervisor(test);
  assert_in_range(rl_monotonic_ns() - begin, 0, 1500000000);
  assert_int_equal(job_state(test, id), RL_JOB_INTERRUPTED);
  assert_int_equal(read_started_pids(test, pids), 1);
  assert_true(exits_within_10_s(pids[0]));
  set_behaviour("");
  open_supervisor(test);
  wait_for_state(test, id, RL_JOB_COMPLETED);
}

/* --- unusable devices ---------------------------------------------------------------------------------------------- */

static void assert_unusable(test_state *test, const char *id, const char *reason) {
  rl_device_state devices[8];
  int count = rl_supervisor_devices(test->supervisor, devices, 8);
  for (int i = 0; i < count; i++)
    if (strcmp(devices[i].id, id) == 0) {
      assert_string_equal(devices[i].state, "unusable");
      if (strstr(devices[i].reason, reason) == NULL) fail_msg("\"%s\" is not in \"%s\"", reason, devices[i].reason);
      return;
    }
  fail_msg("%s is not listed", id);
}

static void unusable_devices_are_listed(void **state) {
  test_state *test = *state;
  static const struct {
    const char *behaviour, *reason;
  } cases[] = {{"list-crash", "libfake.so.9: cannot open shared object file"},
               {"list-garbage", "pipe in the middle of a frame"},
               {"unusable", "the device fell off the bus"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_job_spec spec = make_spec("", 1);
    int64_t id;
    bool existing;
    set_behaviour(cases[i].behaviour);
    open_supervisor(test);
    assert_unusable(test, "cpu", cases[i].reason);
    ASSERT_FAILS(rl_queue_submit_job(test->jobs, &spec, NULL, NULL, &id, &existing, &err), RL_HTTP, 503);
    close_supervisor(test);
  }
  char program[RL_PATH_SIZE];
  snprintf(program, sizeof program, "%s/rooflined-worker-npu", test->store_fixture.folder);
  assert_int_equal(symlink(FAKE_WORKER_PROGRAM, program), 0);
  set_behaviour("");
  strcpy(test->config.devices, "gpu0");
  open_supervisor(test);
  assert_unusable(test, "cpu", "devices = gpu0");
  assert_unusable(test, "gpu0", "no installed worker");
}

static void an_unknown_kind_of_device_is_listed_as_unusable(void **state) {
  test_state *test = *state;
  char old[RL_PATH_SIZE], program[RL_PATH_SIZE];
  snprintf(old, sizeof old, "%s/rooflined-worker-cpu", test->store_fixture.folder);
  snprintf(program, sizeof program, "%s/rooflined-worker-npu", test->store_fixture.folder);
  assert_int_equal(rename(old, program), 0);
  open_supervisor(test);
  assert_unusable(test, "cpu", "kind npu");
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  rl_log_open("test_supervisor", RL_LOG_ERROR);
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, open_test_state, close_test_state)
  const struct CMUnitTest tests[] = {TEST(a_worker_stays_resident),
                                     TEST(posted_code_never_shares_a_process_with_another_job),
                                     TEST(jobs_of_posted_code_follow_each_other),
                                     TEST(both_roles_start_ahead_after_posted_code),
                                     TEST(spare_workers_do_not_open_the_device_at_the_same_time),
                                     TEST(requests_say_whether_openings_overlapped),
                                     TEST(the_timing_worker_of_posted_code_ends_before_counters),
                                     TEST(spare_workers_run_the_build_of_the_last_posted_code),
                                     TEST(no_spare_worker_starts_if_the_setting_is_0),
                                     TEST(no_job_waits_long_for_a_spare_worker_of_another_role),
                                     TEST(a_spare_worker_that_hangs_is_replaced),
                                     TEST(spare_workers_that_die_start_after_a_pause),
                                     TEST(a_job_with_fresh_worker_never_uses_the_process_of_another_job),
                                     TEST(an_idle_supervisor_uses_no_cpu),
                                     TEST(one_worker_releases_the_device_before_another_pass),
                                     TEST(a_worker_that_does_not_release_is_killed),
                                     TEST(failed_and_unavailable_passes_are_stored),
                                     TEST(a_crash_is_retried_once),
                                     TEST(a_second_crash_fails_the_job),
                                     TEST(rows_of_a_crash_are_not_stored_twice),
                                     TEST(rows_wait_for_a_locked_database),
                                     TEST(protocol_errors_end_the_worker),
                                     TEST(a_stray_frame_does_not_complete_the_next_pass),
                                     TEST(inconsistent_results_fail_the_job),
                                     TEST(a_crash_between_jobs_counts_for_no_job),
                                     TEST(a_hung_worker_is_killed_at_the_deadline),
                                     TEST(cancel_reaches_the_worker),
                                     TEST(a_worker_that_ignores_cancel_is_killed),
                                     TEST(a_flood_of_progress_is_limited_and_can_be_cancelled),
                                     TEST(stop_is_quick_and_leaves_no_process),
                                     TEST(unusable_devices_are_listed),
                                     TEST(an_unknown_kind_of_device_is_listed_as_unusable)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
