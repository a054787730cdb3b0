/* Tests the queue, which is the state machine of jobs, on a store in a temporary folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "queue/queue.h"
#include "store_fixture.h"

typedef struct queue_fixture {
  fixture store_fixture; /* the first member, because close_fixture gets a pointer to the whole */
  rl_queue *jobs;
  int event_count;
} queue_fixture;

static void count_event(void *context, int64_t job_id) {
  (void)job_id;
  ((queue_fixture *)context)->event_count++;
}

static void open_queue(queue_fixture *f, int64_t limit) {
  static const char *const ids[] = {"cpu", "gpu0", "gpu1"};
  static const bool usable[] = {true, true, false};
  ASSERT_OK(rl_queue_open(f->store_fixture.store, limit, &f->jobs, &err));
  ASSERT_OK(rl_queue_set_devices(f->jobs, ids, usable, 3, "gpu0", &err));
  rl_queue_set_listener(f->jobs, count_event, f);
}

static int open_queue_fixture(void **state) {
  queue_fixture *f = calloc(1, sizeof *f);
  strcpy(f->store_fixture.folder, "/tmp/rooflined-jobs-XXXXXX");
  assert_non_null(mkdtemp(f->store_fixture.folder));
  ASSERT_OK(rl_store_open(f->store_fixture.folder, &f->store_fixture.store, &err));
  open_queue(f, 3);
  *state = f;
  return 0;
}

static int close_queue_fixture(void **state) {
  queue_fixture *f = *state;
  rl_queue_close(f->jobs);
  return close_fixture(state);
}

static void restart_daemon(queue_fixture *f) {
  rl_queue_close(f->jobs);
  reopen_store(&f->store_fixture);
  open_queue(f, 3);
}

static int64_t submit_job(queue_fixture *f, const char *device, uint32_t passes) {
  rl_job_spec spec = make_spec(device, passes);
  int64_t id = 0;
  bool existing = true;
  ASSERT_OK(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &id, &existing, &err));
  assert_false(existing);
  return id;
}

static rl_claim claim_pass(queue_fixture *f, const char *device) {
  rl_claim claimed = {0};
  int rc = rl_queue_claim_pass(f->jobs, device, 0, &claimed, &err);
  if (rc != 1) fail_msg("nothing to claim");
  return claimed;
}

static void assert_state(queue_fixture *f, int64_t id, rl_job_state expected) {
  rl_job_state state;
  ASSERT_OK(rl_store_job_state(f->store_fixture.store, id, &state, &err));
  assert_string_equal(rl_job_state_names[state], rl_job_state_names[expected]);
}

static void commit_records(queue_fixture *f, const rl_claim *claimed) {
  pass_records pass_data;
  fill_records(&pass_data, claimed->pass, 1);
  ASSERT_OK(rl_queue_commit_pass(f->jobs, claimed, &pass_data.records, &err));
}

/* expected: the job's events as text, "job:queued job:running timing:completed ...". */
static void assert_events(queue_fixture *f, int64_t id, const char *expected) {
  cJSON *rows = QUERY_ROWS(f->store_fixture.store, RL_QUERY_EVENTS, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":after", 0),
                           RL_BIND_INTEGER(":limit", 100));
  char found[1024] = "";
  const cJSON *row;
  cJSON_ArrayForEach (row, rows) {
    const cJSON *data = cJSON_GetObjectItem(row, "data") != NULL ? cJSON_GetObjectItem(row, "data") : row;
    const cJSON *state = cJSON_GetObjectItem(data, "state"), *pass = cJSON_GetObjectItem(data, "pass");
    size_t used = strlen(found);
    snprintf(found + used, sizeof found - used, "%s%s%s%s", used > 0 ? " " : "", pass != NULL ? pass->valuestring : "job",
             state != NULL ? ":" : "", state != NULL ? state->valuestring : "");
  }
  cJSON_Delete(rows);
  assert_string_equal(found, expected);
}

static void a_job_runs_pass_by_pass(void **state) {
  queue_fixture *f = *state;
  int64_t first = submit_job(f, "cpu", 1u << RL_PASS_TIMING | 1u << RL_PASS_COUNTERS), second = submit_job(f, "cpu", 1);
  assert_state(f, first, RL_JOB_QUEUED);
  for (int i = 0; i < 4; i++) {
    rl_claim claimed = claim_pass(f, "cpu");
    assert_int_equal(claimed.job_id, first);
    assert_state(f, first, RL_JOB_RUNNING);
    if (claimed.pass == RL_PASS_COUNTERS)
      ASSERT_OK(rl_queue_commit_unavailable_pass(f->jobs, &claimed, NULL, "a CPU has none", &err));
    else commit_records(f, &claimed);
  }
  assert_state(f, first, RL_JOB_COMPLETED);
  assert_events(
      f, first,
      "job:queued job:running timing:completed timing:completed counters:unavailable counters:unavailable job:completed");
  assert_int_equal(claim_pass(f, "cpu").job_id, second);
  assert_true(f->event_count >= 7);
}

static void devices_are_resolved(void **state) {
  queue_fixture *f = *state;
  rl_job_spec spec = make_spec("", 1);
  rl_claim claimed;
  int64_t id;
  bool existing;
  ASSERT_OK(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &id, &existing, &err));
  assert_string_equal(spec.device, "gpu0");
  assert_int_equal(rl_queue_claim_pass(f->jobs, "cpu", 0, &claimed, &err), 0);
  assert_int_equal(claim_pass(f, "gpu0").job_id, id);
  static const char *const wrong[] = {"gpu1", "gpu7"};
  for (int i = 0; i < 2; i++) {
    spec = make_spec(wrong[i], 1);
    ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &id, &existing, &err), RL_INPUT, 0);
    assert_string_equal(err.json_pointer, "/device");
  }
  ASSERT_OK(rl_queue_set_devices(f->jobs, NULL, NULL, 0, NULL, &err));
  spec = make_spec("", 1);
  ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &id, &existing, &err), RL_HTTP, 503);
}

static void the_deadline_counts_from_the_start_of_the_job(void **state) {
  queue_fixture *f = *state;
  submit_job(f, "cpu", 1); /* time_limit_s = 60 */
  rl_claim first = claim_pass(f, "cpu");
  int64_t now = rl_monotonic_ns();
  assert_in_range(first.deadline_ns, now + INT64_C(58000000000), now + INT64_C(60000000000));
  commit_records(f, &first);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  rl_claim second = claim_pass(f, "cpu");
  assert_int_equal(second.deadline_ns, first.deadline_ns);
  commit_records(f, &second);
  rl_job_spec spec = make_spec("cpu", 1);
  int64_t id;
  bool existing;
  spec.time_limit_s = 0;
  ASSERT_OK(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &id, &existing, &err));
  rl_queue_set_default_time_limit(f->jobs, 100);
  now = rl_monotonic_ns();
  assert_in_range(claim_pass(f, "cpu").deadline_ns, now + INT64_C(100000000000), now + INT64_C(101000000000));
}

static void a_cancelled_job_stores_no_results(void **state) {
  queue_fixture *f = *state;
  int64_t queued = submit_job(f, "cpu", 1), running = submit_job(f, "gpu0", 1);
  ASSERT_OK(rl_queue_cancel_job(f->jobs, queued, &err));
  assert_state(f, queued, RL_JOB_CANCELLED);
  rl_claim none, claimed = claim_pass(f, "gpu0");
  assert_int_equal(rl_queue_claim_pass(f->jobs, "cpu", 0, &none, &err), 0);
  assert_false(rl_queue_should_cancel(f->jobs, running));
  ASSERT_OK(rl_queue_cancel_job(f->jobs, running, &err));
  assert_true(rl_queue_should_cancel(f->jobs, running));
  commit_records(f, &claimed); /* the worker had finished before it received the cancellation: its results are dropped */
  assert_state(f, running, RL_JOB_CANCELLED);
  assert_int_equal(query_integer(&f->store_fixture, "SELECT count(*) FROM epochs"), 0);
  assert_events(f, running, "job:queued job:running job:cancelled");
  assert_false(rl_queue_should_cancel(f->jobs, running));
  ASSERT_FAILS(rl_queue_cancel_job(f->jobs, running, &err), RL_HTTP, 409);
  ASSERT_FAILS(rl_queue_cancel_job(f->jobs, 12345, &err), RL_HTTP, 404);
  int64_t next = submit_job(f, "gpu0", 1);
  claimed = claim_pass(f, "gpu0");
  assert_int_equal(claimed.job_id, next);
  assert_false(rl_queue_should_cancel(f->jobs, next));
  ASSERT_OK(rl_queue_cancel_job(f->jobs, next, &err));
  ASSERT_OK(rl_queue_end_cancelled_job(f->jobs, &claimed, &err));
  assert_state(f, next, RL_JOB_CANCELLED);
}

static void a_cancel_survives_a_crash(void **state) {
  queue_fixture *f = *state;
  rl_claim none;
  int64_t id = submit_job(f, "cpu", 1);
  claim_pass(f, "cpu");
  ASSERT_OK(rl_queue_cancel_job(f->jobs, id, &err));
  restart_daemon(f); /* before the worker has stopped */
  assert_state(f, id, RL_JOB_CANCELLED);
  assert_int_equal(rl_queue_claim_pass(f->jobs, "cpu", 0, &none, &err), 0);
}

static void a_job_fails_at_the_second_crash_of_its_worker(void **state) {
  queue_fixture *f = *state;
  int64_t id = submit_job(f, "cpu", 1);
  rl_claim first = claim_pass(f, "cpu");
  ASSERT_OK(rl_queue_record_worker_crash(f->jobs, &first, "was killed by SIGSEGV", &err));
  assert_state(f, id, RL_JOB_RUNNING);
  rl_claim second = claim_pass(f, "cpu");
  assert_int_equal(second.pass_id, first.pass_id);
  assert_int_equal(second.deadline_ns, first.deadline_ns);
  ASSERT_OK(rl_queue_record_worker_crash(f->jobs, &second, "exited with 3", &err));
  assert_state(f, id, RL_JOB_FAILED);
  assert_events(f, id, "job:queued job:running timing:died timing:died job:failed");
  cJSON *rows = QUERY_ROWS(f->store_fixture.store, RL_QUERY_EVENTS, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":after", 4),
                           RL_BIND_INTEGER(":limit", 1));
  char *text = cJSON_PrintUnformatted(rows);
  assert_non_null(strstr(text, "exited with 3"));
  free(text);
  cJSON_Delete(rows);
}

static void a_failed_pass_fails_its_job(void **state) {
  queue_fixture *f = *state;
  rl_claim none;
  rl_error failure;
  int64_t id = submit_job(f, "cpu", 1);
  rl_claim claimed = claim_pass(f, "cpu");
  rl_fail(&failure, RL_CUDA, 700, "an illegal memory access");
  ASSERT_OK(rl_queue_fail_job(f->jobs, &claimed, &failure, &err));
  assert_state(f, id, RL_JOB_FAILED);
  assert_int_equal(rl_queue_claim_pass(f->jobs, "cpu", 0, &none, &err), 0);
}

static void interrupted_jobs_are_resumed(void **state) {
  queue_fixture *f = *state;
  int64_t stopped = submit_job(f, "cpu", 1), crashed = submit_job(f, "gpu0", 1);
  rl_claim first = claim_pass(f, "cpu");
  commit_records(f, &first);
  rl_claim claimed = claim_pass(f, "cpu");
  claim_pass(f, "gpu0");
  rl_queue_stop(f->jobs);
  ASSERT_OK(rl_queue_interrupt_job(f->jobs, &claimed, &err));
  assert_state(f, stopped, RL_JOB_INTERRUPTED);
  restart_daemon(f);
  assert_state(f, stopped, RL_JOB_QUEUED);
  assert_state(f, crashed, RL_JOB_QUEUED);
  rl_claim resumed = claim_pass(f, "cpu");
  assert_int_equal(resumed.pass_id, claimed.pass_id); /* committed passes are not repeated */
  commit_records(f, &resumed);
  assert_state(f, stopped, RL_JOB_COMPLETED);
  assert_int_equal(query_integer(&f->store_fixture, "SELECT count(*) FROM epochs"), 8);
  assert_events(f, crashed, "job:queued job:running timing:died job:queued");
  assert_events(f, stopped,
                "job:queued job:running timing:completed job:interrupted job:queued job:running timing:completed job:completed");
}

static void a_full_queue_refuses_jobs(void **state) {
  queue_fixture *f = *state;
  rl_job_spec spec = make_spec("cpu", 1);
  int64_t id, same;
  bool existing;
  ASSERT_OK(rl_queue_submit_job(f->jobs, &spec, "key", "hash", &id, &existing, &err));
  submit_job(f, "cpu", 1);
  submit_job(f, "cpu", 1);
  ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &same, &existing, &err), RL_HTTP, 429);
  ASSERT_OK(rl_queue_submit_job(f->jobs, &spec, "key", "hash", &same, &existing, &err));
  assert_true(existing && same == id);
  ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, "key", "other", &same, &existing, &err), RL_HTTP, 422);
  rl_job_counts counts;
  ASSERT_OK(rl_queue_count_jobs(f->jobs, &counts, &err));
  assert_int_equal(counts.queued, 3);
  rl_queue_stop(f->jobs);
  ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &same, &existing, &err), RL_HTTP, 503);
}

static void a_retry_gets_its_job_even_if_the_device_is_unusable(void **state) {
  queue_fixture *f = *state;
  static const char *const ids[] = {"cpu"};
  rl_job_spec spec = make_spec("gpu0", 1);
  int64_t id, same = 0;
  bool existing;
  ASSERT_OK(rl_queue_submit_job(f->jobs, &spec, "key", "hash", &id, &existing, &err));
  for (int usable = 0; usable < 2; usable++) {
    ASSERT_OK(rl_queue_set_devices(f->jobs, ids, (bool[]){usable}, usable, usable ? "cpu" : NULL, &err));
    spec = make_spec(usable ? "gpu0" : "", 1);
    ASSERT_OK(rl_queue_submit_job(f->jobs, &spec, "key", "hash", &same, &existing, &err));
    assert_true(existing && same == id);
    ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, "key", "other", &same, &existing, &err), RL_HTTP, 422);
    ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, "new", "hash", &same, &existing, &err), usable ? RL_INPUT : RL_HTTP,
                 usable ? 0 : 503);
  }
}

static int64_t elapsed_ms(int64_t begin_ns) { return (rl_monotonic_ns() - begin_ns) / 1000000; }

/* A change waits 100 ms for the store's lock; the rest allows for delays of a busy machine. */
enum { MAX_REFUSAL_MS = 400 };

static void assert_quickly_refused(int64_t begin_ns, int rc) {
  assert_int_equal(rc, -1);
  assert_int_equal(err.domain, RL_STORAGE);
  assert_int_equal(err.code, RL_STORAGE_LOCKED);
  assert_in_range(elapsed_ms(begin_ns), 0, MAX_REFUSAL_MS);
}

/* Checks that each function that changes the database fails soon, because another program holds the lock. */
static void assert_changes_are_refused(queue_fixture *f, const rl_claim *running) {
  rl_job_spec spec = make_spec("cpu", 1);
  rl_claim none;
  pass_records pass_data;
  int64_t id, begin = rl_monotonic_ns();
  bool existing;
  fill_records(&pass_data, running->pass, 1);
  assert_quickly_refused(begin, rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &id, &existing, &err));
  begin = rl_monotonic_ns();
  assert_quickly_refused(begin, rl_queue_cancel_job(f->jobs, running->job_id, &err));
  begin = rl_monotonic_ns();
  assert_quickly_refused(begin, rl_queue_claim_pass(f->jobs, "gpu0", 1000, &none, &err));
  begin = rl_monotonic_ns();
  assert_quickly_refused(begin, rl_queue_commit_pass(f->jobs, running, &pass_data.records, &err));
  begin = rl_monotonic_ns();
  assert_quickly_refused(begin, rl_queue_store_log(f->jobs, running, "text", &err));
  assert_false(rl_queue_should_cancel(f->jobs, running->job_id));
  assert_int_equal(rl_queue_job_on_device(f->jobs, "cpu"), running->job_id);
}

/* While a lock lasts, only the first change waits for it. If each waited, requests would pile up at 20 submissions a second. */
static void assert_later_changes_do_not_wait(queue_fixture *f) {
  enum { SUBMISSIONS = 50, ALL_WAITS_MS = SUBMISSIONS * 100 };
  rl_job_spec spec = make_spec("cpu", 1);
  const int64_t begin = rl_monotonic_ns();
  for (int i = 0; i < SUBMISSIONS; i++) {
    int64_t id;
    bool existing;
    ASSERT_FAILS(rl_queue_submit_job(f->jobs, &spec, NULL, NULL, &id, &existing, &err), RL_STORAGE, RL_STORAGE_LOCKED);
  }
  assert_in_range(elapsed_ms(begin), 0, ALL_WAITS_MS / 5);
}

static void changes_wait_at_most_100_ms_for_another_program(void **state) {
  queue_fixture *f = *state;
  submit_job(f, "cpu", 1);
  rl_claim running = claim_pass(f, "cpu");
  rl_store *other = NULL;
  ASSERT_OK(rl_store_open_shared(f->store_fixture.folder, &other, &err));
  ASSERT_OK(rl_store_begin_transaction(other, &err));
  assert_changes_are_refused(f, &running);
  assert_later_changes_do_not_wait(f);
  ASSERT_OK(rl_store_end_transaction_changing_all(other, 0, &err));
  rl_store_close(other);
  commit_records(f, &running);
}

typedef struct blocked_submission {
  rl_queue *jobs;
  atomic_bool stop;
} blocked_submission;

static void *submit_until_stopped(void *argument) {
  blocked_submission *submission = argument;
  rl_error ignored;
  int64_t id;
  bool existing;
  while (!atomic_load(&submission->stop)) {
    rl_job_spec spec = make_spec("cpu", 1);
    rl_queue_submit_job(submission->jobs, &spec, NULL, NULL, &id, &existing, &ignored);
  }
  return NULL;
}

/* Functions that need only the queue's memory return immediately while a change waits for the database. */
static void the_queue_is_not_locked_while_a_change_waits(void **state) {
  queue_fixture *f = *state;
  blocked_submission submission = {.jobs = f->jobs};
  pthread_t thread;
  int64_t longest_ms = 0;
  ASSERT_OK(rl_store_begin_transaction(f->store_fixture.store, &err));
  pthread_create(&thread, NULL, submit_until_stopped, &submission);
  for (int i = 0; i < 50; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    int64_t begin = rl_monotonic_ns();
    rl_queue_set_default_time_limit(f->jobs, 100 + i); /* takes the queue's mutex */
    if (elapsed_ms(begin) > longest_ms) longest_ms = elapsed_ms(begin);
  }
  atomic_store(&submission.stop, true);
  ASSERT_OK(rl_store_end_transaction_changing_all(f->store_fixture.store, 0, &err));
  pthread_join(thread, NULL);
  assert_in_range(longest_ms, 0, 50);
}

typedef struct waiting_claim {
  rl_queue *jobs;
  rl_claim claim;
  int rc;
  int64_t waited_ms;
} waiting_claim;

static void *wait_for_claim(void *argument) {
  waiting_claim *waiting = argument;
  rl_error ignored;
  int64_t begin = rl_monotonic_ns();
  waiting->rc = rl_queue_claim_pass(waiting->jobs, "cpu", 20000, &waiting->claim, &ignored);
  waiting->waited_ms = (rl_monotonic_ns() - begin) / 1000000;
  return NULL;
}

static void a_final_state_is_the_last_event(void **state) {
  queue_fixture *f = *state;
  int64_t id = submit_job(f, "cpu", 1), seq;
  ASSERT_OK(rl_queue_cancel_job(f->jobs, id, &err));
  ASSERT_FAILS(rl_store_event_append(f->store_fixture.store, id, "progress", "{}", &seq, &err), RL_HTTP, 409);
  assert_events(f, id, "job:queued job:cancelled");
}

static void a_waiting_claim_is_woken(void **state) {
  queue_fixture *f = *state;
  waiting_claim woken = {.jobs = f->jobs}, stopped = {.jobs = f->jobs};
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_claim, &woken);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  int64_t id = submit_job(f, "cpu", 1);
  pthread_join(thread, NULL);
  assert_int_equal(woken.rc, 1);
  assert_int_equal(woken.claim.job_id, id);
  assert_in_range(woken.waited_ms, 0, 10000);
  ASSERT_OK(rl_queue_cancel_job(f->jobs, id, &err));
  pthread_create(&thread, NULL, wait_for_claim, &stopped);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  rl_queue_stop(f->jobs);
  pthread_join(thread, NULL);
  assert_int_equal(stopped.rc, 0);
  assert_in_range(stopped.waited_ms, 0, 10000);
  rl_claim none;
  int64_t begin = rl_monotonic_ns();
  rl_queue_close(f->jobs);
  open_queue(f, 3);
  assert_int_equal(rl_queue_claim_pass(f->jobs, "cpu", 200, &none, &err), 0);
  assert_true(rl_monotonic_ns() - begin >= 200000000); /* the wait lasted until the timeout */
}

static void progress_is_rate_limited(void **state) {
  queue_fixture *f = *state;
  rl_progress progress = {.pass = "timing", .phase = "epoch", .train_loss = NAN};
  int64_t id = submit_job(f, "cpu", 1), begin = rl_monotonic_ns();
  rl_claim claimed = claim_pass(f, "cpu");
  while (rl_monotonic_ns() - begin < 600000000) rl_queue_publish_progress(f->jobs, id, claimed.run_id, &progress);
  cJSON *rows = QUERY_ROWS(f->store_fixture.store, RL_QUERY_EVENTS, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":after", 0),
                           RL_BIND_INTEGER(":limit", 1000));
  assert_in_range(cJSON_GetArraySize(rows), 2 + 1, 2 + 3);
  cJSON_Delete(rows);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, open_queue_fixture, close_queue_fixture)
  const struct CMUnitTest tests[] = {TEST(a_job_runs_pass_by_pass),
                                     TEST(devices_are_resolved),
                                     TEST(the_deadline_counts_from_the_start_of_the_job),
                                     TEST(a_cancelled_job_stores_no_results),
                                     TEST(a_cancel_survives_a_crash),
                                     TEST(a_job_fails_at_the_second_crash_of_its_worker),
                                     TEST(a_failed_pass_fails_its_job),
                                     TEST(interrupted_jobs_are_resumed),
                                     TEST(a_full_queue_refuses_jobs),
                                     TEST(a_retry_gets_its_job_even_if_the_device_is_unusable),
                                     TEST(changes_wait_at_most_100_ms_for_another_program),
                                     TEST(the_queue_is_not_locked_while_a_change_waits),
                                     TEST(a_final_state_is_the_last_event),
                                     TEST(a_waiting_claim_is_woken),
                                     TEST(progress_is_rate_limited)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
