/* queue: the state machine of jobs, on a store in a temporary folder. */
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

typedef struct world {
  fixture base; /* first: the store's fixture */
  rl_queue *jobs;
  int heard;
} world;

static void hear(void *context, int64_t job_id) {
  (void)job_id;
  ((world *)context)->heard++;
}

static void open_jobs(world *made, int64_t limit) {
  static const char *const ids[] = {"cpu", "gpu0", "gpu1"};
  static const bool usable[] = {true, true, false};
  GOOD(rl_queue_open(made->base.store, limit, &made->jobs, &err));
  GOOD(rl_queue_set_devices(made->jobs, ids, usable, 3, "gpu0", &err));
  rl_queue_set_listener(made->jobs, hear, made);
}

static int setup(void **state) {
  world *made = calloc(1, sizeof *made);
  strcpy(made->base.folder, "/tmp/rooflined-jobs-XXXXXX");
  assert_non_null(mkdtemp(made->base.folder));
  GOOD(rl_store_open(made->base.folder, &made->base.store, &err));
  open_jobs(made, 3);
  *state = made;
  return 0;
}

static int teardown(void **state) {
  world *made = *state;
  rl_queue_close(made->jobs);
  return close_fixture(state);
}

static void restart(world *at) {
  rl_queue_close(at->jobs);
  reopen(&at->base);
  open_jobs(at, 3);
}

static int64_t put(world *at, const char *device, uint32_t passes) {
  rl_job_spec spec = make_spec(device, passes);
  int64_t id = 0;
  bool existing = true;
  GOOD(rl_queue_submit(at->jobs, &spec, NULL, NULL, &id, &existing, &err));
  assert_false(existing);
  return id;
}

static rl_claim take(world *at, const char *device) {
  rl_claim got = {0};
  int rc = rl_queue_claim(at->jobs, device, 0, &got, &err);
  if (rc != 1) fail_msg("nothing to claim");
  return got;
}

static void assert_state(world *at, int64_t id, rl_job_state wanted) {
  rl_job_state state;
  GOOD(rl_store_job_state(at->base.store, id, &state, &err));
  assert_string_equal(rl_job_state_names[state], rl_job_state_names[wanted]);
}

static void commit(world *at, const rl_claim *taken) {
  sample made;
  fill_sample(&made, taken->pass, 1);
  GOOD(rl_queue_commit(at->jobs, taken, &made.records, &err));
}

/* "state:queued state:running ..." */
static void assert_events(world *at, int64_t id, const char *wanted) {
  cJSON *rows = READ(at->base.store, RL_QUERY_EVENTS, RL_INT(":job", id), RL_INT(":after", 0), RL_INT(":limit", 100));
  char answered[1024] = "";
  const cJSON *row;
  cJSON_ArrayForEach (row, rows) {
    const cJSON *data = cJSON_GetObjectItem(row, "data") != NULL ? cJSON_GetObjectItem(row, "data") : row;
    const cJSON *state = cJSON_GetObjectItem(data, "state"), *pass = cJSON_GetObjectItem(data, "pass");
    size_t used = strlen(answered);
    snprintf(answered + used, sizeof answered - used, "%s%s%s%s", used > 0 ? " " : "", pass != NULL ? pass->valuestring : "job",
             state != NULL ? ":" : "", state != NULL ? state->valuestring : "");
  }
  cJSON_Delete(rows);
  assert_string_equal(answered, wanted);
}

static void a_job_runs_pass_by_pass(void **state) {
  world *at = *state;
  int64_t first = put(at, "cpu", 1u << RL_PASS_TIMING | 1u << RL_PASS_COUNTERS), second = put(at, "cpu", 1);
  assert_state(at, first, RL_JOB_QUEUED);
  for (int i = 0; i < 4; i++) {
    rl_claim taken = take(at, "cpu");
    assert_int_equal(taken.job_id, first);
    assert_state(at, first, RL_JOB_RUNNING);
    if (taken.pass == RL_PASS_COUNTERS) GOOD(rl_queue_unavailable(at->jobs, &taken, NULL, "a CPU has none", &err));
    else commit(at, &taken);
  }
  assert_state(at, first, RL_JOB_COMPLETED);
  assert_events(
      at, first,
      "job:queued job:running timing:completed timing:completed counters:unavailable counters:unavailable job:completed");
  assert_int_equal(take(at, "cpu").job_id, second);
  assert_true(at->heard >= 7);
}

static void devices_are_resolved(void **state) {
  world *at = *state;
  rl_job_spec spec = make_spec("", 1);
  rl_claim taken;
  int64_t id;
  bool existing;
  GOOD(rl_queue_submit(at->jobs, &spec, NULL, NULL, &id, &existing, &err));
  assert_string_equal(spec.device, "gpu0");
  assert_int_equal(rl_queue_claim(at->jobs, "cpu", 0, &taken, &err), 0);
  assert_int_equal(take(at, "gpu0").job_id, id);
  static const char *const wrong[] = {"gpu1", "gpu7"};
  for (int i = 0; i < 2; i++) {
    spec = make_spec(wrong[i], 1);
    REFUSED(rl_queue_submit(at->jobs, &spec, NULL, NULL, &id, &existing, &err), RL_INPUT, 0);
    assert_string_equal(err.pointer, "/device");
  }
  GOOD(rl_queue_set_devices(at->jobs, NULL, NULL, 0, NULL, &err));
  spec = make_spec("", 1);
  REFUSED(rl_queue_submit(at->jobs, &spec, NULL, NULL, &id, &existing, &err), RL_HTTP, 503);
}

static void the_deadline_counts_from_the_start_of_the_job(void **state) {
  world *at = *state;
  put(at, "cpu", 1); /* deadline_s = 60 */
  rl_claim first = take(at, "cpu");
  int64_t now = rl_monotonic_ns();
  assert_in_range(first.deadline_ns, now + INT64_C(58000000000), now + INT64_C(60000000000));
  commit(at, &first);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  rl_claim second = take(at, "cpu");
  assert_int_equal(second.deadline_ns, first.deadline_ns);
  commit(at, &second);
  rl_job_spec spec = make_spec("cpu", 1);
  int64_t id;
  bool existing;
  spec.deadline_s = 0;
  GOOD(rl_queue_submit(at->jobs, &spec, NULL, NULL, &id, &existing, &err));
  rl_queue_set_deadline(at->jobs, 100);
  now = rl_monotonic_ns();
  assert_in_range(take(at, "cpu").deadline_ns, now + INT64_C(100000000000), now + INT64_C(101000000000));
}

static void cancelling(void **state) {
  world *at = *state;
  int64_t queued = put(at, "cpu", 1), running = put(at, "gpu0", 1);
  GOOD(rl_queue_cancel(at->jobs, queued, &err));
  assert_state(at, queued, RL_JOB_CANCELLED);
  rl_claim none, taken = take(at, "gpu0");
  assert_int_equal(rl_queue_claim(at->jobs, "cpu", 0, &none, &err), 0);
  assert_false(rl_queue_should_cancel(at->jobs, running));
  GOOD(rl_queue_cancel(at->jobs, running, &err));
  assert_true(rl_queue_should_cancel(at->jobs, running));
  commit(at, &taken); /* the worker was faster than the cancel: its results are dropped */
  assert_state(at, running, RL_JOB_CANCELLED);
  assert_int_equal(ask(&at->base, "SELECT count(*) FROM epochs"), 0);
  assert_events(at, running, "job:queued job:running job:cancelled");
  assert_false(rl_queue_should_cancel(at->jobs, running));
  REFUSED(rl_queue_cancel(at->jobs, running, &err), RL_HTTP, 409);
  REFUSED(rl_queue_cancel(at->jobs, 12345, &err), RL_HTTP, 404);
  int64_t next = put(at, "gpu0", 1);
  taken = take(at, "gpu0");
  assert_int_equal(taken.job_id, next);
  assert_false(rl_queue_should_cancel(at->jobs, next));
  GOOD(rl_queue_cancel(at->jobs, next, &err));
  GOOD(rl_queue_cancelled(at->jobs, &taken, &err));
  assert_state(at, next, RL_JOB_CANCELLED);
}

static void a_cancel_survives_a_crash(void **state) {
  world *at = *state;
  rl_claim none;
  int64_t id = put(at, "cpu", 1);
  take(at, "cpu");
  GOOD(rl_queue_cancel(at->jobs, id, &err));
  restart(at); /* before the worker stopped */
  assert_state(at, id, RL_JOB_CANCELLED);
  assert_int_equal(rl_queue_claim(at->jobs, "cpu", 0, &none, &err), 0);
}

static void a_worker_may_die_once(void **state) {
  world *at = *state;
  int64_t id = put(at, "cpu", 1);
  rl_claim first = take(at, "cpu");
  GOOD(rl_queue_worker_died(at->jobs, &first, "was killed by SIGSEGV", &err));
  assert_state(at, id, RL_JOB_RUNNING);
  rl_claim again = take(at, "cpu");
  assert_int_equal(again.pass_id, first.pass_id);
  assert_int_equal(again.deadline_ns, first.deadline_ns);
  GOOD(rl_queue_worker_died(at->jobs, &again, "exited with 3", &err));
  assert_state(at, id, RL_JOB_FAILED);
  assert_events(at, id, "job:queued job:running timing:died timing:died job:failed");
  cJSON *rows = READ(at->base.store, RL_QUERY_EVENTS, RL_INT(":job", id), RL_INT(":after", 4), RL_INT(":limit", 1));
  char *text = cJSON_PrintUnformatted(rows);
  assert_non_null(strstr(text, "exited with 3"));
  free(text);
  cJSON_Delete(rows);
}

static void a_failed_pass_fails_its_job(void **state) {
  world *at = *state;
  rl_claim none;
  rl_error why;
  int64_t id = put(at, "cpu", 1);
  rl_claim taken = take(at, "cpu");
  rl_fail(&why, RL_CUDA, 700, "an illegal memory access");
  GOOD(rl_queue_fail(at->jobs, &taken, &why, &err));
  assert_state(at, id, RL_JOB_FAILED);
  assert_int_equal(rl_queue_claim(at->jobs, "cpu", 0, &none, &err), 0);
}

static void interrupted_jobs_are_taken_up_again(void **state) {
  world *at = *state;
  int64_t stopped = put(at, "cpu", 1), crashed = put(at, "gpu0", 1);
  rl_claim first = take(at, "cpu");
  commit(at, &first);
  rl_claim taken = take(at, "cpu");
  take(at, "gpu0");
  rl_queue_stop(at->jobs);
  GOOD(rl_queue_interrupted(at->jobs, &taken, &err));
  assert_state(at, stopped, RL_JOB_INTERRUPTED);
  restart(at);
  assert_state(at, stopped, RL_JOB_QUEUED);
  assert_state(at, crashed, RL_JOB_QUEUED);
  rl_claim resumed = take(at, "cpu");
  assert_int_equal(resumed.pass_id, taken.pass_id); /* committed passes are not repeated */
  commit(at, &resumed);
  assert_state(at, stopped, RL_JOB_COMPLETED);
  assert_int_equal(ask(&at->base, "SELECT count(*) FROM epochs"), 8);
  assert_events(at, crashed, "job:queued job:running timing:died job:queued");
  assert_events(at, stopped,
                "job:queued job:running timing:completed job:interrupted job:queued job:running timing:completed job:completed");
}

static void the_queue_has_an_end(void **state) {
  world *at = *state;
  rl_job_spec spec = make_spec("cpu", 1);
  int64_t id, same;
  bool existing;
  GOOD(rl_queue_submit(at->jobs, &spec, "key", "hash", &id, &existing, &err));
  put(at, "cpu", 1);
  put(at, "cpu", 1);
  REFUSED(rl_queue_submit(at->jobs, &spec, NULL, NULL, &same, &existing, &err), RL_HTTP, 429);
  GOOD(rl_queue_submit(at->jobs, &spec, "key", "hash", &same, &existing, &err));
  assert_true(existing && same == id);
  REFUSED(rl_queue_submit(at->jobs, &spec, "key", "other", &same, &existing, &err), RL_HTTP, 422);
  rl_job_counts counts;
  GOOD(rl_queue_count(at->jobs, &counts, &err));
  assert_int_equal(counts.queued, 3);
  rl_queue_stop(at->jobs);
  REFUSED(rl_queue_submit(at->jobs, &spec, NULL, NULL, &same, &existing, &err), RL_HTTP, 503);
}

static void a_retry_gets_its_job_though_the_device_is_gone(void **state) {
  world *at = *state;
  static const char *const ids[] = {"cpu"};
  rl_job_spec spec = make_spec("gpu0", 1);
  int64_t id, same = 0;
  bool existing;
  GOOD(rl_queue_submit(at->jobs, &spec, "key", "hash", &id, &existing, &err));
  for (int usable = 0; usable < 2; usable++) {
    GOOD(rl_queue_set_devices(at->jobs, ids, (bool[]){usable}, usable, usable ? "cpu" : NULL, &err));
    spec = make_spec(usable ? "gpu0" : "", 1);
    GOOD(rl_queue_submit(at->jobs, &spec, "key", "hash", &same, &existing, &err));
    assert_true(existing && same == id);
    REFUSED(rl_queue_submit(at->jobs, &spec, "key", "other", &same, &existing, &err), RL_HTTP, 422);
    REFUSED(rl_queue_submit(at->jobs, &spec, "new", "hash", &same, &existing, &err), usable ? RL_INPUT : RL_HTTP,
            usable ? 0 : 503);
  }
}

typedef struct storing {
  world *at;
  rl_claim claim;
  int rc;               /* of the commit */
  atomic_bool answered; /* all questions during the commit */
} storing;

static void *store_it(void *argument) {
  storing *with = argument;
  rl_error ignored;
  sample made;
  fill_sample(&made, with->claim.pass, 1);
  with->rc = rl_queue_commit(with->at->jobs, &with->claim, &made.records, &ignored);
  return NULL;
}

static void *ask_meanwhile(void *argument) {
  storing *with = argument;
  rl_progress progress = {.pass = "timing", .phase = "epoch", .train_loss = NAN};
  int64_t job_id = rl_queue_job_on_device(with->at->jobs, "cpu");
  if (job_id == 0 || rl_queue_should_cancel(with->at->jobs, job_id)) return NULL;
  rl_queue_progress(with->at->jobs, job_id, with->claim.run_id, &progress);
  atomic_store(&with->answered, true);
  return NULL;
}

/* Locks the store's writer, so that the commit lasts until it is unlocked. */
static void nobody_waits_for_a_pass_that_is_being_stored(void **state) {
  world *at = *state;
  put(at, "cpu", 1);
  storing with = {.at = at, .claim = take(at, "cpu")};
  pthread_t committing, asking;
  struct timespec until;
  GOOD(rl_store_begin(at->base.store, &err));
  pthread_create(&committing, NULL, store_it, &with);
  nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  pthread_create(&asking, NULL, ask_meanwhile, &with);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 10;
  bool answered = pthread_timedjoin_np(asking, NULL, &until) == 0;
  GOOD(rl_store_end(at->base.store, 0, &err));
  pthread_join(committing, NULL);
  if (!answered) pthread_join(asking, NULL);
  assert_true(answered);
  assert_true(atomic_load(&with.answered));
  assert_int_equal(with.rc, 0);
}

typedef struct waiter {
  rl_queue *jobs;
  rl_claim claim;
  int rc;
  int64_t waited_ms;
} waiter;

static void *wait_for_claim(void *argument) {
  waiter *at = argument;
  rl_error ignored;
  int64_t begin = rl_monotonic_ns();
  at->rc = rl_queue_claim(at->jobs, "cpu", 20000, &at->claim, &ignored);
  at->waited_ms = (rl_monotonic_ns() - begin) / 1000000;
  return NULL;
}

static void a_waiting_claim_is_woken(void **state) {
  world *at = *state;
  waiter woken = {.jobs = at->jobs}, stopped = {.jobs = at->jobs};
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_claim, &woken);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  int64_t id = put(at, "cpu", 1);
  pthread_join(thread, NULL);
  assert_int_equal(woken.rc, 1);
  assert_int_equal(woken.claim.job_id, id);
  assert_in_range(woken.waited_ms, 0, 10000);
  GOOD(rl_queue_cancel(at->jobs, id, &err));
  pthread_create(&thread, NULL, wait_for_claim, &stopped);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  rl_queue_stop(at->jobs);
  pthread_join(thread, NULL);
  assert_int_equal(stopped.rc, 0);
  assert_in_range(stopped.waited_ms, 0, 10000);
  rl_claim none;
  int64_t begin = rl_monotonic_ns();
  rl_queue_close(at->jobs);
  open_jobs(at, 3);
  assert_int_equal(rl_queue_claim(at->jobs, "cpu", 200, &none, &err), 0);
  assert_true(rl_monotonic_ns() - begin >= 200000000); /* and not before the timeout */
}

static void progress_is_thinned(void **state) {
  world *at = *state;
  rl_progress progress = {.pass = "timing", .phase = "epoch", .train_loss = NAN};
  int64_t id = put(at, "cpu", 1), begin = rl_monotonic_ns();
  rl_claim taken = take(at, "cpu");
  while (rl_monotonic_ns() - begin < 600000000) rl_queue_progress(at->jobs, id, taken.run_id, &progress);
  cJSON *rows = READ(at->base.store, RL_QUERY_EVENTS, RL_INT(":job", id), RL_INT(":after", 0), RL_INT(":limit", 1000));
  assert_in_range(cJSON_GetArraySize(rows), 2 + 1, 2 + 3);
  cJSON_Delete(rows);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(a_job_runs_pass_by_pass),
                                     TEST(devices_are_resolved),
                                     TEST(the_deadline_counts_from_the_start_of_the_job),
                                     TEST(cancelling),
                                     TEST(a_cancel_survives_a_crash),
                                     TEST(a_worker_may_die_once),
                                     TEST(a_failed_pass_fails_its_job),
                                     TEST(interrupted_jobs_are_taken_up_again),
                                     TEST(the_queue_has_an_end),
                                     TEST(a_retry_gets_its_job_though_the_device_is_gone),
                                     TEST(nobody_waits_for_a_pass_that_is_being_stored),
                                     TEST(a_waiting_claim_is_woken),
                                     TEST(progress_is_thinned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
