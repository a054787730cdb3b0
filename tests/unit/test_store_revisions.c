/* Tests the revisions of the store: which change raises which revision, changes by another program, concurrent readers. */
#include <pthread.h>
#include <stdatomic.h>

#include "store_fixture.h"

enum {
  TIMING = 1u << RL_PASS_TIMING,
  FAR_JOB = 1000000 /* has a different revision counter than the first jobs */,
  COMMITS = 200
};

typedef struct revisions {
  uint64_t job, other_job, lists, ceilings, other;
} revisions;

static revisions read_revisions(rl_store *store, int64_t job) {
  return (revisions){.job = rl_store_revision(store, RL_REVISION_JOB, job),
                     .other_job = rl_store_revision(store, RL_REVISION_JOB, FAR_JOB),
                     .lists = rl_store_revision(store, RL_REVISION_LISTS, 0),
                     .ceilings = rl_store_revision(store, RL_REVISION_CEILINGS, 0),
                     .other = rl_store_revision(store, RL_REVISION_UNCLASSIFIED, 0)};
}

/* Checks that exactly the revisions whose argument is true have grown since `before`; with `everything`, all of them. */
static void assert_grown(rl_store *store, int64_t id, revisions before, bool job, bool lists, bool ceilings, bool everything) {
  revisions now = read_revisions(store, id);
  assert_true(before.job != 0 && now.job != 0);
  assert_int_equal(now.job > before.job, job || everything);
  assert_int_equal(now.other_job > before.other_job, everything);
  assert_int_equal(now.lists > before.lists, lists || everything);
  assert_int_equal(now.ceilings > before.ceilings, ceilings || everything);
  assert_int_equal(now.other > before.other, everything);
}

static void changes_of_the_store_raise_their_revisions(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  int64_t seq;
  revisions before = read_revisions(store, 1);
  int64_t id = submit(store, "cpu", TIMING);
  assert_grown(store, id, before, true, true, false, false);
  before = read_revisions(store, id);
  ASSERT_OK(rl_store_event_append(store, id, "progress", "{}", &seq, &err));
  assert_grown(store, id, before, false, false, false, false);
  rl_claim claimed = claim(store, "cpu");
  assert_grown(store, id, before, true, true, false, false);
  before = read_revisions(store, id);
  pass_records pass_data;
  bool done;
  fill_records(&pass_data, claimed.pass, 1);
  ASSERT_OK(rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, &err));
  assert_grown(store, id, before, true, true, true, false);
  before = read_revisions(store, id);
  rl_store_set_has_unstored_results(store, id, true); /* clients see the state `storing`, which is not in the database */
  assert_grown(store, id, before, true, true, false, false);
  before = read_revisions(store, id);
  rl_store_set_has_unstored_results(store, id, false);
  assert_grown(store, id, before, true, true, false, false);
  before = read_revisions(store, id);
  ASSERT_OK(rl_store_job_finish(store, id, RL_JOB_CANCELLED, NULL, &err));
  assert_grown(store, id, before, true, true, false, false);
  before = read_revisions(store, id);
  ASSERT_OK(rl_store_token_add(store, "name", "hash", &err));
  assert_grown(store, id, before, false, false, false, true);
}

static void a_running_pass_raises_only_the_revision_of_its_job(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  static const atomic_bool stop;
  int64_t id = submit(store, "cpu", 1u << RL_PASS_ACTIVITY);
  rl_claim claimed = claim(store, "cpu");
  revisions before = read_revisions(store, id);
  ASSERT_OK(rl_store_set_run_log(store, claimed.run_id, "a line", &err));
  assert_grown(store, id, before, true, false, false, false);
  before = read_revisions(store, id);
  RL_CLEANUP(rl_activity_appender_cleanup) rl_activity_appender *appender = rl_activity_appender_new();
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .end_ns = 5};
  rl_records records = {.names = (char *[]){"name"}, .name_count = 1, .rows = &row, .row_count = 1};
  ASSERT_OK(rl_store_append_activity(store, &claimed, appender, &records, &err));
  ASSERT_OK(rl_store_discard_activity(store, claimed.pass_id, &stop, &err));
  assert_int_equal(query_integer((fixture *)*state, "SELECT count(*) FROM activity"), 0);
  assert_grown(store, id, before, false, false, false, false); /* no reader saw the rows */
}

static void a_refused_change_raises_no_revision(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  int64_t id = submit(store, "cpu", TIMING);
  rl_claim none;
  ASSERT_OK(rl_store_job_finish(store, id, RL_JOB_CANCELLED, NULL, &err));
  revisions before = read_revisions(store, id);
  ASSERT_FAILS(rl_store_job_finish(store, id, RL_JOB_CANCELLED, NULL, &err), RL_HTTP, 409);
  assert_int_equal(rl_store_pass_claim(store, "cpu", &none, &err), 0);
  assert_grown(store, id, before, false, false, false, false);
}

static rl_store *open_second(fixture *f) {
  rl_store *second = NULL;
  ASSERT_OK(rl_store_open_shared(f->folder, &second, &err));
  return second;
}

static void changes_of_another_program_raise_all_revisions_once(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING);
  rl_store *second = open_second(f);
  revisions before = read_revisions(f->store, id);
  ASSERT_OK(rl_store_token_add(second, "name", "hash", &err));
  assert_grown(f->store, id, before, true, true, true, true);
  before = read_revisions(f->store, id); /* the change raises each revision once */
  assert_grown(f->store, id, before, false, false, false, false);
  ASSERT_OK(rl_store_token_add(second, "name", "hash 2", &err)); /* detected although the store commits before a reader asks */
  submit(f->store, "cpu", TIMING);
  assert_grown(f->store, id, before, true, true, true, true);
  rl_store_close(second);
}

/* Checks that a token is not cached, then whether a query finds it (`exists`), then that it is cached if it exists. */
static void assert_found(rl_store *store, const char *hash, bool exists) {
  bool found = !exists;
  assert_false(rl_store_has_cached_token(store, hash));
  ASSERT_OK(rl_store_has_token(store, hash, &found, &err));
  assert_int_equal(found, exists);
  assert_int_equal(rl_store_has_cached_token(store, hash), exists);
}

static void token_hashes_are_remembered_until_a_token_changes(void **state) {
  fixture *f = *state;
  enum { TOKENS = 3 * RL_CACHED_TOKENS };
  int64_t count;
  char hash[65];
  rl_store *second = open_second(f);
  assert_found(f->store, "hash of a", false);
  ASSERT_OK(rl_store_token_add(f->store, "a", "hash of a", &err));
  ASSERT_OK(rl_store_token_add(second, "b", "hash of b", &err));
  assert_found(f->store, "hash of a", true);
  assert_found(f->store, "hash of b", true);
  submit(f->store, "cpu", TIMING); /* no change of tokens */
  assert_true(rl_store_has_cached_token(f->store, "hash of a"));
  ASSERT_OK(rl_store_token_remove(second, "b", &count, &err));
  assert_found(f->store, "hash of b", false);
  assert_found(f->store, "hash of a", true);
  ASSERT_OK(rl_store_token_remove(f->store, "a", &count, &err));
  assert_found(f->store, "hash of a", false);
  for (int i = 0; i < TOKENS; i++) { /* more than are remembered */
    snprintf(hash, sizeof hash, "%064x", (unsigned)i * 2654435761u);
    ASSERT_OK(rl_store_token_add(f->store, "many", hash, &err));
  }
  for (int i = 0; i < TOKENS; i++) {
    snprintf(hash, sizeof hash, "%064x", (unsigned)i * 2654435761u);
    assert_found(f->store, hash, true);
    hash[0] = 'f';
    assert_found(f->store, hash, false);
  }
  rl_store_close(second);
}

typedef struct reader {
  rl_store *store;
  atomic_bool stop;
  bool decreased;
} reader;

static void *read_until_stopped(void *context) {
  reader *r = context;
  for (uint64_t last = 0; !atomic_load(&r->stop);) {
    uint64_t revision = rl_store_revision(r->store, RL_REVISION_LISTS, 0);
    r->decreased |= revision != 0 && revision < last;
    if (revision != 0) last = revision;
  }
  return NULL;
}

/* Two programs commit in turn while a thread reads: each commit is seen as soon as it has returned. */
static void every_commit_is_seen(void **state) {
  fixture *f = *state;
  rl_store *second = open_second(f);
  reader r = {.store = f->store};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, read_until_stopped, &r), 0);
  for (int i = 0; i < COMMITS; i++) {
    uint64_t before = rl_store_revision(f->store, RL_REVISION_LISTS, 0);
    char hash[16];
    snprintf(hash, sizeof hash, "%d", i);
    if (i % 2 == 0) submit(f->store, "cpu", TIMING);
    else ASSERT_OK(rl_store_token_add(second, "name", hash, &err));
    assert_true(rl_store_revision(f->store, RL_REVISION_LISTS, 0) > before);
  }
  atomic_store(&r.stop, true);
  pthread_join(thread, NULL);
  assert_false(r.decreased);
  rl_store_close(second);
}

#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {WITH_STORE(changes_of_the_store_raise_their_revisions),
                                     WITH_STORE(a_running_pass_raises_only_the_revision_of_its_job),
                                     WITH_STORE(a_refused_change_raises_no_revision),
                                     WITH_STORE(changes_of_another_program_raise_all_revisions_once),
                                     WITH_STORE(token_hashes_are_remembered_until_a_token_changes),
                                     WITH_STORE(every_commit_is_seen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
