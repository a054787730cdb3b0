/* Tests which earlier runs are the baseline and the history of a suite run, and which runs can be promoted. The values of the
 * runs are stored without executing jobs. */
#include "store_fixture.h"

#include "base/clock.h"
#include "store/suites.h"
#include "suite/suite_judgement.h"
#include "suite/suite_progress.h"
#include "suite/suite_promotion.h"

#define DEFINITION                                                                                                         \
  "{\"name\":\"s\",\"blocks\":5,\"baseline\":{\"runs\":3},\"jobs\":[{\"name\":\"a\",\"request\":{\"kind\":\"kernel\","     \
  "\"kernel\":\"relu\",\"shape\":{\"n\":64},\"variant\":\"vector\"}}],\"metrics\":[{\"job\":\"a\",\"metric\":\"time_us\"," \
  "\"threshold_ratio\":0.05}]}"
#define KEY "a/vector/time_us"
enum { BLOCKS = 5 };

typedef struct plan {  /* of a suite run */
  double median;       /* of the blocks' values */
  const char *against; /* NULL: rolling */
  int64_t against_run;
  int blocks;                  /* 0: BLOCKS */
  int suspect_blocks;          /* the values of this many blocks, the first ones, are suspect */
  const char *dropped_reason;  /* why their values are dropped; NULL: faster than the hardware allows */
  const char *other_processes; /* processes that used the device during the last block; NULL: none */
  double outlier;              /* the value of the last block; 0: as the others */
  const char *quarantine_reason;
} plan;

typedef struct judged_run {
  int64_t id;
  rl_verdict verdict;
  cJSON *judgement, *causes;
} judged_run;

static rl_suite *suite;
static cJSON *judgements[64];
static int judgement_count;

static int open_store_and_suite(void **state) {
  static const rl_job_policy policy = {.posting = RL_POSTING_OFF};
  if (rl_suite_parse(DEFINITION, strlen(DEFINITION), &policy, &suite, &err) < 0) fail_msg("%s", err.message);
  return open_fixture(state);
}

static int close_store_and_suite(void **state) {
  while (judgement_count > 0) cJSON_Delete(judgements[--judgement_count]);
  rl_suite_free(suite);
  suite = NULL;
  return close_fixture(state);
}

static int64_t insert_run(rl_store *store, const plan *run) {
  char hashes[128];
  int64_t id;
  bool existing;
  snprintf(hashes, sizeof hashes, "{\"a\":\"%s\"}", suite->jobs[0].sha256);
  const rl_suite_run_spec spec = {.suite = "s",
                                  .definition = suite->text,
                                  .definition_sha256 = suite->sha256,
                                  .jobs_sha256 = hashes,
                                  .device = "cpu",
                                  .against = run->against,
                                  .against_run_id = run->against_run,
                                  .planned_s = NAN,
                                  .planned_jobs = BLOCKS};
  ASSERT_OK(rl_store_suite_run_insert(store, &spec, NULL, NULL, INT64_MAX, &id, &existing, &err));
  ASSERT_OK(rl_store_suite_run_start(store, id, &err));
  return id;
}

static void store_blocks(rl_store *store, int64_t id, const char *role, const plan *run) {
  int count = run->blocks > 0 ? run->blocks : BLOCKS;
  int64_t job = submit(store, "cpu", 1);
  for (int block = 0; block < count; block++) {
    const rl_suite_step step = {role, block, "a", true};
    bool is_outlier = run->outlier > 0 && block == count - 1;
    rl_suite_value value = {
        .metric = KEY, .cycles = NAN, .value = is_outlier ? run->outlier : run->median * (1 + 0.001 * (block - 2))};
    const char *reason = run->dropped_reason != NULL ? run->dropped_reason : "faster than the hardware allows";
    if (block < run->suspect_blocks) strcpy(value.dropped_reason, reason);
    if (run->other_processes != NULL && block == count - 1) strcpy(value.other_processes, run->other_processes);
    ASSERT_OK(rl_store_suite_job_insert(store, id, &step, job, &err));
    ASSERT_OK(rl_store_suite_job_finish(store, id, &step, job, "completed", NULL, &value, 1, &err));
  }
}

/* Stores a run with confirming blocks, judges it and ends it, as the runner does. */
static judged_run store_and_judge_run(rl_store *store, plan run) {
  RL_CLEANUP(rl_suite_progress_clear) rl_suite_progress progress = {0};
  rl_suite_judgement judgement;
  judged_run judged_result = {.id = insert_run(store, &run)};
  store_blocks(store, judged_result.id, "block", &run);
  store_blocks(store, judged_result.id, "confirmation", &run);
  ASSERT_OK(rl_suite_progress_read(store, judged_result.id, &progress, &err));
  ASSERT_OK(rl_suite_judge_run(store, &progress, true, run.quarantine_reason, &judgement, &err));
  assert_int_equal(judgement.verdict_count, 1);
  judged_result.verdict = judgement.summary.verdict;
  judged_result.judgement = judgements[judgement_count++] = cJSON_Parse(judgement.verdicts[0].judgement);
  const char *causes = judgement.verdicts[0].causes;
  judged_result.causes = judgements[judgement_count++] = cJSON_Parse(causes != NULL ? causes : "[]");
  const rl_suite_outcome outcome = {.state = "completed",
                                    .verdict = rl_verdict_name(judged_result.verdict),
                                    .reason = judgement.summary.reason,
                                    .quarantine_reason = run.quarantine_reason,
                                    .baseline_runs = judgement.baseline_runs,
                                    .verdicts = judgement.verdicts,
                                    .verdict_count = judgement.verdict_count,
                                    .method_version = RL_VERDICT_METHOD};
  ASSERT_OK(rl_store_suite_run_finish(store, judged_result.id, &outcome, &err));
  rl_suite_judgement_clear(&judgement);
  return judged_result;
}

/* Checks the ids of a judgement's baseline, oldest first; 0 ends them. */
static void assert_baseline(const cJSON *judgement, const int64_t *ids) {
  const cJSON *id;
  cJSON_ArrayForEach (id, json_at(judgement, "baseline_runs")) assert_int_equal((int64_t)id->valuedouble, *ids++);
  assert_int_equal(*ids, 0);
}
#define ASSERT_BASELINE(run, ...) assert_baseline((run).judgement, (const int64_t[]){__VA_ARGS__, 0})

static void assert_history(const judged_run *run, int count, double first) {
  const cJSON *history = json_at(run->judgement, "history");
  assert_int_equal(cJSON_GetArraySize(history), count);
  assert_true(fabs(cJSON_GetArrayItem(history, 0)->valuedouble - first) < 1e-9);
  assert_number(run->judgement, "history_runs", count);
}

static void the_baseline_is_the_last_good_runs(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  judged_run runs[5];
  for (int i = 0; i < 5; i++) runs[i] = store_and_judge_run(store, (plan){.median = 100 + 0.01 * i});
  assert_int_equal(runs[0].verdict, RL_VERDICT_INCOMPARABLE);
  assert_int_equal(runs[4].verdict, RL_VERDICT_SAME);
  ASSERT_BASELINE(runs[4], runs[1].id, runs[2].id, runs[3].id);
  assert_history(&runs[4], 4, 100);
  assert_number(runs[4].judgement, "recent_median", 100.015);
  assert_number(runs[4].judgement, "step_ratio", 100.04 / 100.015 - 1);
  assert_true(json_at(runs[4].judgement, "confirmation_interval_ratio.1")->valuedouble > 0);
}

static void an_improvement_begins_a_new_baseline(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  for (int i = 0; i < 3; i++) store_and_judge_run(store, (plan){.median = 100});
  judged_run faster = store_and_judge_run(store, (plan){.median = 50});
  assert_int_equal(faster.verdict, RL_VERDICT_FASTER);
  judged_run next = store_and_judge_run(store, (plan){.median = 50.1});
  assert_int_equal(next.verdict, RL_VERDICT_SAME);
  ASSERT_BASELINE(next, faster.id);
  assert_history(&next, 1, 50);
  judged_run slower = store_and_judge_run(store, (plan){.median = 100});
  assert_int_equal(slower.verdict, RL_VERDICT_SLOWER);
  ASSERT_BASELINE(slower, faster.id, next.id);
}

static void blocks_dropped_by_throttling_have_the_device_as_cause(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  store_and_judge_run(store, (plan){.median = 100});
  plan hot = {.median = 150, .suspect_blocks = 4, .dropped_reason = "GPU throttled during timing (SW power cap)"};
  judged_run throttled = store_and_judge_run(store, hot);
  assert_int_equal(throttled.verdict, RL_VERDICT_INCONCLUSIVE);
  assert_string_equal(cJSON_GetStringValue(json_at(throttled.judgement, "reason")),
                      "5 blocks of the baseline and 1 of this run are too few: 5 of each are needed. 8 blocks were dropped; the "
                      "first: GPU throttled during timing (SW power cap).");
  assert_string_equal(cJSON_GetStringValue(json_at(throttled.causes, "0.class")), "device");
  assert_true(cJSON_IsNull(json_at(throttled.causes, "0.difference_us")));
  assert_string_equal(cJSON_GetStringValue(json_at(throttled.causes, "0.text")),
                      "4 of 5 blocks were dropped: GPU throttled during timing (SW power cap).");
  hot.other_processes = "pid 4711 (1200 MiB)";
  judged_run shared = store_and_judge_run(store, hot);
  assert_string_equal(cJSON_GetStringValue(json_at(shared.causes, "0.evidence.1.current")), "pid 4711 (1200 MiB)");
  hot = (plan){.median = 150, .suspect_blocks = 4};
  judged_run too_fast =
      store_and_judge_run(store, hot); /* faster than the hardware allows, which no state of the device explains */
  assert_int_equal(cJSON_GetArraySize(too_fast.causes), 0);
}

static void a_slower_run_is_no_baseline_until_it_is_promoted(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  judged_run before = store_and_judge_run(store, (plan){.median = 100}),
             slower = store_and_judge_run(store, (plan){.median = 150});
  assert_int_equal(slower.verdict, RL_VERDICT_SLOWER);
  judged_run second = store_and_judge_run(store, (plan){.median = 150});
  assert_int_equal(second.verdict, RL_VERDICT_SLOWER);
  ASSERT_BASELINE(second, before.id);
  ASSERT_OK(rl_suite_promote_run(store, "s", "accepted", second.id, &err));
  judged_run after = store_and_judge_run(store, (plan){.median = 150.1});
  assert_int_equal(after.verdict, RL_VERDICT_SAME);
  ASSERT_BASELINE(after, second.id);
  assert_history(&after, 1, 150);
}

/* A run beside another process is judged, but later runs are not compared with it. */
static void a_run_beside_other_processes_is_no_baseline(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  judged_run shared = store_and_judge_run(store, (plan){.median = 100, .other_processes = "pid 4711 (1200 MiB)"});
  judged_run first = store_and_judge_run(store, (plan){.median = 100});
  assert_int_equal(first.verdict, RL_VERDICT_INCOMPARABLE);
  const char *reason = cJSON_GetStringValue(json_at(first.judgement, "reason"));
  if (strstr(reason, "while block 4 was measured: pid 4711 (1200 MiB)") == NULL) fail_msg("%s", reason);
  judged_run slow = store_and_judge_run(store, (plan){.median = 150, .other_processes = "pid 4711 (1200 MiB)"});
  assert_int_equal(slow.verdict, RL_VERDICT_SLOWER);
  judged_run next = store_and_judge_run(store, (plan){.median = 100});
  assert_int_equal(next.verdict, RL_VERDICT_SAME);
  ASSERT_BASELINE(next, first.id);
  assert_int_equal(rl_suite_promote_run(store, "s", "shared", shared.id, &err), -1);
  assert_non_null(strstr(err.message, "other processes used the device while block 4"));
}

/* Each run after an improvement is faster than the old baseline. The first of them begins the history. */
static void the_history_begins_at_the_first_run_that_is_faster_than_a_named_baseline(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  judged_run first = store_and_judge_run(store, (plan){.median = 100});
  ASSERT_OK(rl_suite_promote_run(store, "s", "v1", first.id, &err));
  const plan old = {.median = 100, .against = "v1", .against_run = first.id};
  plan new = old;
  new.median = 50;
  assert_int_equal(store_and_judge_run(store, old).verdict, RL_VERDICT_SAME);
  judged_run faster[4];
  for (int i = 0; i < 4; i++) {
    new.median = 50 + 0.01 * i;
    faster[i] = store_and_judge_run(store, new);
    assert_int_equal(faster[i].verdict, RL_VERDICT_FASTER);
    ASSERT_BASELINE(faster[i], first.id);
  }
  assert_history(&faster[0], 2, 100);
  assert_history(&faster[3], 3, 50);
}

static void mostly_suspect_and_quarantined_runs_are_no_rolling_baseline(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  judged_run good = store_and_judge_run(store, (plan){.median = 100}),
             partly_suspect = store_and_judge_run(store, (plan){.median = 100, .suspect_blocks = 2});
  store_and_judge_run(store, (plan){.median = 100, .suspect_blocks = 3});
  store_and_judge_run(store, (plan){.median = 100, .quarantine_reason = "The canary's fp32_operations_per_s changed."});
  judged_run last = store_and_judge_run(store, (plan){.median = 100});
  ASSERT_BASELINE(last, good.id, partly_suspect.id);
  assert_history(&last, 2, 100);
}

/* Checks that the run cannot be promoted, for a reason that contains this text. */
static void assert_refused(rl_store *store, int64_t run, const char *reason) {
  ASSERT_FAILS(rl_suite_promote_run(store, "s", "v1", run, &err), RL_SUITE, RL_SUITE_NOT_ELIGIBLE);
  assert_string_equal(err.json_pointer, "/run");
  if (strstr(err.message, reason) == NULL) fail_msg("\"%s\" has no \"%s\"", err.message, reason);
}

static void runs_that_hide_regressions_are_not_promoted(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  ASSERT_FAILS(rl_suite_promote_run(store, "s", "v1", 7, &err), RL_HTTP, 404);
  assert_string_equal(err.json_pointer, "/run");
  plan running = {.median = 100};
  int64_t unfinished_run = insert_run(store, &running);
  store_blocks(store, unfinished_run, "block", &running);
  assert_refused(store, unfinished_run, "not completed");
  assert_refused(store, store_and_judge_run(store, (plan){.median = 100, .suspect_blocks = 1}).id,
                 "block 0: faster than the hardware allows");
  assert_refused(store, store_and_judge_run(store, (plan){.median = 100, .blocks = 4}).id,
                 "values of 4 blocks, and a baseline needs 5");
  assert_refused(store, store_and_judge_run(store, (plan){.median = 100, .quarantine_reason = "The canary changed."}).id,
                 "The canary changed");
  assert_refused(store, store_and_judge_run(store, (plan){.median = 100, .outlier = 106}).id,
                 "block 4 of " KEY " is an outlier: 106");
  assert_refused(store, store_and_judge_run(store, (plan){.median = 100, .outlier = 94}).id,
                 "block 4 of " KEY " is an outlier: 94");
  /* far from the others, but within the threshold of 5 % */
  ASSERT_OK(rl_suite_promote_run(store, "s", "v1", store_and_judge_run(store, (plan){.median = 100, .outlier = 104}).id, &err));
  ASSERT_FAILS(rl_suite_promote_run(store, "s", "v1", store_and_judge_run(store, (plan){.median = 100}).id, &err), RL_SUITE,
               RL_SUITE_BASELINE_EXISTS);
}

static void a_stored_run_is_judged_again_with_the_same_result(void **state) {
  rl_store *store = ((fixture *)*state)->store;
  judged_run runs[6];
  for (int i = 0; i < 4; i++) runs[i] = store_and_judge_run(store, (plan){.median = 100 + 0.1 * i});
  for (int i = 4; i < 6; i++) runs[i] = store_and_judge_run(store, (plan){.median = 120 + i});
  assert_int_equal(runs[4].verdict, RL_VERDICT_SLOWER);
  for (int i = 0; i < 6; i++) {
    RL_CLEANUP(rl_suite_progress_clear) rl_suite_progress progress = {0};
    rl_suite_judgement second;
    ASSERT_OK(rl_suite_progress_read(store, runs[i].id, &progress, &err));
    ASSERT_OK(rl_suite_judge_run(store, &progress, true, NULL, &second, &err));
    assert_int_equal(second.summary.verdict, runs[i].verdict);
    char *stored = cJSON_PrintUnformatted(runs[i].judgement);
    assert_string_equal(second.verdicts[0].judgement, stored);
    free(stored);
    rl_suite_judgement_clear(&second);
  }
}

static void events_list_each_step_until_retention_deletes_them(void **state) {
  fixture *f = *state;
  judged_run run = store_and_judge_run(f->store, (plan){.median = 100});
  char name[16];
  int64_t events, removed;
  const rl_retention retention = {.activity_days = 1};
  atomic_bool stop = false;
  ASSERT_OK(rl_store_suite_run_state(f->store, run.id, name, &events, &err));
  assert_string_equal(name, "completed");
  assert_int_equal(events,
                   2 + 4 * BLOCKS + 1 +
                       1); /* two states; two for each job of the blocks and of their confirmation; the verdict; the last state */
  assert_int_equal(query_integer(f, "SELECT count(*) FROM suite_events"), events);
  assert_int_equal(query_integer(f, "SELECT max(seq) FROM suite_events"), events);
  assert_int_equal(query_integer(f, "SELECT seq FROM suite_events WHERE type = 'verdict'"), events - 1);
  const rl_suite_step step = {"block", 0, "a", true};
  ASSERT_OK(rl_store_suite_job_finish(f->store, run.id, &step, 1, "failed", NULL, NULL, 0,
                                      &err)); /* adds no event, because the end of this job is already recorded */
  assert_int_equal(query_integer(f, "SELECT count(*) FROM suite_events"), events);
  ASSERT_OK(rl_store_apply_retention(f->store, &retention, rl_realtime_ns(), &stop, &removed, &err));
  assert_int_equal(query_integer(f, "SELECT count(*) FROM suite_events"), events);
  ASSERT_OK(
      rl_store_apply_retention(f->store, &retention, rl_realtime_ns() + INT64_C(2) * 86400 * 1000000000, &stop, &removed, &err));
  assert_int_equal(query_integer(f, "SELECT count(*) FROM suite_events"), 0);
  ASSERT_OK(rl_store_suite_run_state(f->store, run.id, name, &events, &err));
  assert_true(events > 0);
}

/* The seed determines for each block whether the baseline or the current build is measured first, each with a probability of one
 * half. */
static void the_order_of_baseline_and_current_build_is_random(void **state) {
  (void)state;
  enum { SEEDS = 4000 };
  int baseline_first = 0, changes = 0;
  for (int64_t seed = 0; seed < SEEDS; seed++) {
    baseline_first += rl_suite_begins_with_baseline(seed * 1000003, 3);
    changes += rl_suite_begins_with_baseline(seed * 1000003, 3) != rl_suite_begins_with_baseline(seed * 1000003, 4);
    assert_int_equal(rl_suite_begins_with_baseline(seed, 5), rl_suite_begins_with_baseline(seed, 5));
  }
  /* 158 is five standard deviations of 4000 tosses of a fair coin. */
  assert_in_range(baseline_first, SEEDS / 2 - 158, SEEDS / 2 + 158);
  assert_in_range(changes, SEEDS / 2 - 158, SEEDS / 2 + 158);
}

/* --- steps ------------------------------------------------------------------------------------------------------------- */

/* The blocks of each role whose values are dropped, as bit masks. */
typedef struct dropped_blocks {
  unsigned block, baseline, confirmation, baseline_confirmation;
} dropped_blocks;

static bool is_dropped(const dropped_blocks *dropped, const rl_suite_step *step) {
  const char *role = step->role;
  unsigned blocks = strcmp(role, "block") == 0          ? dropped->block
                    : strcmp(role, "baseline") == 0     ? dropped->baseline
                    : strcmp(role, "confirmation") == 0 ? dropped->confirmation
                                                        : dropped->baseline_confirmation;
  return (blocks >> step->block & 1) != 0;
}

/* Executes the steps of a run, including its confirming blocks. Writes the number of each step's block to log, after the letter c
 * for a confirming block and the letter b for a block of the baseline. */
static void run_steps(bool measures_baseline, double job_s, dropped_blocks dropped, char log[1024]) {
  enum { STEPS_MAX = 64 };
  static rl_suite_step_row rows[STEPS_MAX];
  rl_suite_progress progress = {
      .suite = suite, .measured_baseline = measures_baseline ? suite : NULL, .order_seed = 5, .rows = rows};
  const bool unconfirmed[RL_SUITE_JOBS_MAX] = {true};
  rl_suite_step step;
  strcpy(progress.device, "cpu");
  log[0] = '\0';
  while (rl_suite_next_step(&progress, unconfirmed, false, &step) && strstr(step.role, "profile") == NULL) {
    assert_true(progress.row_count < STEPS_MAX);
    rl_suite_step_row *row = &rows[progress.row_count++];
    *row = (rl_suite_step_row){.block = step.block, .job_id = 1, .busy_s = job_s, .has_dropped = is_dropped(&dropped, &step)};
    strcpy(row->role, step.role), strcpy(row->job_name, step.job_name), strcpy(row->state, "completed");
    size_t used = strlen(log);
    const char *baseline_prefix = strncmp(step.role, "baseline", 8) == 0 ? "b" : "",
               *confirmation_prefix = strstr(step.role, "confirm") != NULL ? "c" : "";
    snprintf(log + used, 1024 - used, "%s%s%lld ", confirmation_prefix, baseline_prefix, (long long)step.block);
  }
}

static void dropped_blocks_are_replaced(void **state) {
  (void)state;
  char log[1024];
  run_steps(false, 1, (dropped_blocks){0}, log);
  assert_string_equal(log, "0 1 2 3 4 c0 c1 c2 c3 c4 ");
  run_steps(false, 1, (dropped_blocks){.block = 1 << 1 | 1 << 3, .confirmation = 1 << 4}, log);
  assert_string_equal(log, "0 1 2 3 4 5 6 c0 c1 c2 c3 c4 c5 ");
  /* a dropped replacement is replaced too; the suite has at most half as many replacements as blocks */
  run_steps(false, 1, (dropped_blocks){.block = 1 << 0 | 1 << 5}, log);
  assert_string_equal(log, "0 1 2 3 4 5 6 c0 c1 c2 c3 c4 ");
  run_steps(false, 1, (dropped_blocks){.block = ~0u}, log);
  assert_string_equal(log, "0 1 2 3 4 5 6 c0 c1 c2 c3 c4 ");
  /* the time budget of 600 s limits the replacements */
  run_steps(false, 100, (dropped_blocks){.block = 1 << 1 | 1 << 3}, log);
  assert_string_equal(log, "0 1 2 3 4 5 ");
}

static void baseline_and_current_build_are_measured_in_every_block(void **state) {
  (void)state;
  char log[1024];
  run_steps(true, 1, (dropped_blocks){.baseline = 1 << 2, .baseline_confirmation = 1 << 0}, log);
  for (int block = 0; block < 6; block++) {
    static const char *const formats[] = {" %d ", " b%d ", " c%d ", " cb%d "};
    for (size_t i = 0; i < 4; i++) {
      char step[16], padded[1040];
      snprintf(step, sizeof step, formats[i], block), snprintf(padded, sizeof padded, " %s", log);
      const char *found = strstr(padded, step);
      if (found == NULL || strstr(found + 1, step) != NULL) fail_msg("\"%s\" does not occur exactly once in %s", step, log);
    }
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store_and_suite, close_store_and_suite)
  const struct CMUnitTest tests[] = {TEST(the_baseline_is_the_last_good_runs),
                                     TEST(an_improvement_begins_a_new_baseline),
                                     TEST(blocks_dropped_by_throttling_have_the_device_as_cause),
                                     TEST(a_slower_run_is_no_baseline_until_it_is_promoted),
                                     TEST(the_history_begins_at_the_first_run_that_is_faster_than_a_named_baseline),
                                     TEST(a_run_beside_other_processes_is_no_baseline),
                                     TEST(mostly_suspect_and_quarantined_runs_are_no_rolling_baseline),
                                     TEST(a_stored_run_is_judged_again_with_the_same_result),
                                     TEST(events_list_each_step_until_retention_deletes_them),
                                     TEST(the_order_of_baseline_and_current_build_is_random),
                                     TEST(dropped_blocks_are_replaced),
                                     TEST(baseline_and_current_build_are_measured_in_every_block),
                                     TEST(runs_that_hide_regressions_are_not_promoted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
