/* Bounds the work of every query: the steps of SQLite's virtual machine per row returned must not grow with the number of jobs. A
 * query plan alone does not show a walk over every job. Each case runs on two databases, of which one has four times as many
 * jobs. */
#include <stddef.h>

#include "grow.h"
#include "store_fixture.h"

enum { JOBS = 250, ACTIVITY_ROWS = 25000, TRACE_ROWS = 10000, GROWTH = 4, SLACK_STEPS = 32 };

/* The value of a query's parameter: a member of grow_result if is_member is set; otherwise text if it is not NULL; otherwise
 * number. */
typedef struct query_parameter {
  const char *name;
  bool is_member;
  size_t member; /* its offset */
  const char *text;
  int64_t number;
} query_parameter;

enum { MAX_PARAMETERS = 4 };

typedef struct query_case {
  rl_query query;
  const char *query_name, *name;
  int64_t max_steps; /* per returned row, in each of the two databases; 0: not limited */
  query_parameter parameters[MAX_PARAMETERS];
} query_case;

#define QUERY(NAME) RL_QUERY_##NAME, #NAME
#define MEMBER(NAME, MEMBER_) \
  { .name = NAME, .is_member = true, .member = offsetof(grow_result, MEMBER_) }
#define NUMBER(NAME, NUMBER_) \
  { .name = NAME, .number = NUMBER_ }
#define TEXT(NAME, TEXT_) \
  { .name = NAME, .text = TEXT_ }

static const query_case cases[] = {
    {QUERY(JOB), "of a training job", 900, {MEMBER(":id", train_job)}},
    {QUERY(SOURCE), "of a source job", 30, {MEMBER(":id", source_job)}},
    {QUERY(JOB_DEVICES), "of all jobs", 60, {{0}}},
    {QUERY(JOBS), "with a text that each has", 1500, {NUMBER(":limit", 51), TEXT(":search", "KIND")}},
    {QUERY(JOBS), "first page", 1500, {NUMBER(":limit", 201)}},
    {QUERY(JOBS), "of no suite", 1500, {NUMBER(":limit", 51), NUMBER(":in_no_suite", 1)}},
    {QUERY(JOBS), "page after other jobs", 1400, {NUMBER(":limit", 51), NUMBER(":before", 80)}},
    {QUERY(JOBS), "of a rare device", 60, {NUMBER(":limit", 51), TEXT(":device", GROW_RARE_DEVICE)}},
    {QUERY(JOBS), "of a rare kind", 60, {NUMBER(":limit", 51), TEXT(":kind", GROW_RARE_KIND)}},
    {QUERY(JOBS), "in a rare state", 540, {NUMBER(":limit", 51), TEXT(":state", "interrupted")}},
    {QUERY(JOBS),
     "completed, of a rare kind",
     60,
     {NUMBER(":limit", 51), TEXT(":state", "completed"), TEXT(":kind", GROW_RARE_KIND)}},
    {QUERY(JOBS),
     "completed, of a rare device",
     60,
     {NUMBER(":limit", 51), TEXT(":state", "completed"), TEXT(":device", GROW_RARE_DEVICE)}},
    {QUERY(JOBS),
     "of a rare device and of a kind",
     60,
     {NUMBER(":limit", 51), TEXT(":kind", "train"), TEXT(":device", GROW_RARE_DEVICE)}},
    {QUERY(EVENTS), "of a training job", 30, {MEMBER(":job", train_job)}},
    {QUERY(RESULTS), "of a training job", 3900, {MEMBER(":job", train_job)}},
    {QUERY(RESULTS), "of a kernel job", 4400, {MEMBER(":job", kernel_job)}},
    {QUERY(KERNELS), "of a training job", 260, {MEMBER(":job", train_job)}},
    {QUERY(KERNELS), "of the set full", 5900, {MEMBER(":job", full_job), NUMBER(":most_metrics", 100)}},
    {QUERY(TIMELINE),
     "end of a trace",
     150,
     {MEMBER(":job", trace_job), MEMBER(":from", trace_tail_ns), NUMBER(":limit", 10001)}},
    {QUERY(TIMELINE), "start of a trace", 300, {MEMBER(":job", trace_job), NUMBER(":limit", 101)}},
    {QUERY(TIMELINE), "page of a trace", 300, {MEMBER(":job", trace_job), NUMBER(":from", 1000000), NUMBER(":limit", 101)}},
    {QUERY(TIMELINE),
     "short window",
     150,
     {MEMBER(":job", trace_job), NUMBER(":from", 4000000), NUMBER(":to", 4100000), NUMBER(":limit", 10001)}},
    {QUERY(TIMELINE),
     "short window of a run",
     150,
     {MEMBER(":job", trace_job), MEMBER(":run", trace_run), NUMBER(":from", 4000000), NUMBER(":to", 4100000)}},
    {QUERY(EXPORT_RUNS), "of a training job", 200, {MEMBER(":job", train_job)}},
    {QUERY(EXPORT_MEASUREMENTS), "of a training job", 300, {MEMBER(":job", train_job)}},
    {QUERY(TIMELINE_PASS), "of a run", 100, {MEMBER(":run", trace_run)}},
    {QUERY(TIMELINE_NAMES), "of a run", 60, {MEMBER(":run", trace_run)}},
    {QUERY(TIMELINE_PHASES), "of a run", 300, {MEMBER(":run", trace_run)}},
    {QUERY(TIMELINE_VALUES), "of a run", 60, {MEMBER(":run", trace_run)}},
    {QUERY(TIMELINE_KERNELS), "of a run", 300, {MEMBER(":run", trace_run)}},
    {QUERY(TIMELINE_RUN), "of a run", 400, {MEMBER(":run", trace_run)}},
    {QUERY(TIMELINE_COPIES), "of a run with few copies", 400, {MEMBER(":run", train_run), NUMBER(":large", 1)}},
    {QUERY(TIMELINE_EVENTS), "of a run", 60, {MEMBER(":run", trace_run)}},
    {QUERY(TIMELINE_ROWS),
     "short window",
     60,
     {MEMBER(":run", trace_run), NUMBER(":level", -1), NUMBER(":from", 4000000), NUMBER(":to", 4100000)}},
    {QUERY(TIMELINE_ROWS),
     "long rows of a trace",
     60,
     {MEMBER(":run", trace_run), NUMBER(":level", 2), NUMBER(":from", 0), NUMBER(":to", INT64_MAX)}},
    {QUERY(TIMELINE_INTERVALS),
     "short window",
     60,
     {MEMBER(":run", trace_run), NUMBER(":level", 3), NUMBER(":from", 4000000), NUMBER(":to", 5000000)}},
    {QUERY(TIMELINE_INTERVALS),
     "of a trace",
     60,
     {MEMBER(":run", trace_run), NUMBER(":level", 4), NUMBER(":from", 0), NUMBER(":to", INT64_MAX)}},
    {QUERY(TIMELINE_END), "of a run", 900, {MEMBER(":run", trace_run)}},
    {QUERY(COMPARISON), "of a training job", 1000, {MEMBER(":job", train_job)}},
    {QUERY(COMPARISON), "of two runs", 1000, {MEMBER(":a", train_run), MEMBER(":b", train_candidate)}},
    {QUERY(EXPLAINED_RUN), "of a training run", 500, {MEMBER(":run", train_run)}},
    {QUERY(EXPLAINED_KERNELS), "of a training run", 850, {MEMBER(":run", train_run)}},
    {QUERY(HISTORY), "newest", 250, {TEXT(":metric", "epoch_ms_median"), NUMBER(":limit", 21)}},
    {QUERY(HISTORY),
     "newest of many repetitions",
     130,
     {TEXT(":metric", "epoch_ms_median"), MEMBER(":repetitions_of", train_run), NUMBER(":limit", 21)}},
    {QUERY(HISTORY), "of few repetitions", 170, {TEXT(":metric", "epoch_ms_median"), MEMBER(":repetitions_of", rare_run)}},
    {QUERY(HISTORY),
     "of a rare device",
     250,
     {TEXT(":metric", "epoch_ms_median"), TEXT(":device", GROW_RARE_DEVICE), NUMBER(":limit", 16)}},
    {QUERY(HISTORY),
     "newest of a workload",
     250,
     {TEXT(":metric", "epoch_ms_median"), TEXT(":workload", "mnist_cnn"), NUMBER(":limit", 21)}},
    {QUERY(HISTORY), "newest of a measurement", 250, {TEXT(":metric", "launch_gap_ratio"), NUMBER(":limit", 21)}},
    {QUERY(REPORT_RUN), "of a kernel run", 1900, {MEMBER(":run", kernel_run)}},
    {QUERY(REPORT_RUN), "of a training run", 1800, {MEMBER(":run", train_run)}},
    {QUERY(REPORT_KERNELS), "of a kernel run", 560, {MEMBER(":run", kernel_run), NUMBER(":with_series_and_instructions", 1)}},
    {QUERY(REPORT_KERNELS), "of the set full", 19100, {MEMBER(":run", full_run), NUMBER(":with_series_and_instructions", 1)}},
    {QUERY(REPORT_METRICS), "of a kernel run", 30, {MEMBER(":run", kernel_run)}},
    {QUERY(COMPARE_KERNELS),
     "of two runs",
     1700,
     {MEMBER(":a", train_run), MEMBER(":b", train_candidate), NUMBER(":numbers", 1)}},
    {QUERY(KERNEL_WITH_COUNTERS), "of a kernel run", 60, {MEMBER(":run", kernel_run), NUMBER(":kernel", 0)}},
    {QUERY(CEILINGS), "of all devices", 800, {{0}}},
    {QUERY(CEILINGS), "of a device", 1150, {TEXT(":device", "gpu0")}},
    {QUERY(TOKENS), "all", 50, {{0}}},
    {QUERY(UPLOADS), "all", 60, {{0}}},
    {QUERY(SUITE_RUNS_ACTIVE), "all", 60, {{0}}},
    {QUERY(SUITE_RUN_COLUMNS), "of a run", 60, {MEMBER(":run", suite_run)}},
    {QUERY(SUITE_RUN_JOBS), "of a run", 200, {MEMBER(":run", suite_run)}},
    {QUERY(SUITE_RUN_STATUS), "of a run", 60, {MEMBER(":run", suite_run)}},
    {QUERY(SUITE_EVENTS), "of a run", 60, {MEMBER(":run", suite_run), NUMBER(":after", 3), NUMBER(":limit", 64)}},
    {QUERY(SUITE_RUN_VALUES), "of a run", 60, {MEMBER(":run", suite_run)}},
    {QUERY(SUITE_EARLIER_RUNS),
     "of a run",
     60,
     {MEMBER(":run", suite_run), TEXT(":suite", GROW_SUITE), TEXT(":device", "gpu0"), NUMBER(":limit", 20)}},
    {QUERY(SUITE_METRIC_MARKS), "of a run", 120, {MEMBER(":run", suite_run)}},
    {QUERY(SUITE_JOB_VALUES), "of a training job", 900, {MEMBER(":job", train_job), TEXT(":metric", "epoch_ms_median")}},
    {QUERY(SUITE_JOB_VALUES), "a measurement", 900, {MEMBER(":job", train_job), TEXT(":metric", "memory_weights_bytes")}},
    {QUERY(SUITE_CANARIES), "of two jobs", 150, {MEMBER(":before", ceilings_job), MEMBER(":after", ceilings_job)}},
    {QUERY(SUITE_RUN_DURATION),
     "of a suite",
     150,
     {TEXT(":suite", GROW_SUITE), TEXT(":device", "gpu0"), TEXT(":sha256", "c0ffee"), NUMBER(":measures_baseline", 0)}},
    {QUERY(SUITE_JOB_PROBLEM), "of a job", 60, {MEMBER(":job", train_job)}},
    {QUERY(SUITE_JOB_DURATION),
     "of a ceilings job",
     80,
     {TEXT(":workload", "ceilings"), TEXT(":variant", "best"), TEXT(":nondefault_params", "{}"), TEXT(":device", "gpu0")}},
    {QUERY(SUITE_PROFILE_RUN),
     "of a training job",
     340,
     {MEMBER(":run", suite_run), TEXT(":role", "profile"), TEXT(":job_name", "train"), TEXT(":variant", "fp32")}},
    {QUERY(SUITE_PROFILE_KERNELS), "of a training run", 300, {MEMBER(":run", train_run)}},
    {QUERY(KIND_DURATION), "of training jobs", 60, {TEXT(":kind", "train"), TEXT(":device", "gpu0")}},
    {QUERY(SUITE_LAST_RUN), "of a suite", 60, {TEXT(":suite", GROW_SUITE)}},
    {QUERY(SUITE_RUN_LIST), "first page", 40, {TEXT(":suite", GROW_SUITE), NUMBER(":limit", 21)}},
    {QUERY(SUITE_RUN_LIST), "page", 40, {TEXT(":suite", GROW_SUITE), NUMBER(":limit", 6), NUMBER(":before", 20)}},
    {QUERY(SUITE_RUN), "of a run", 1600, {MEMBER(":id", suite_run), NUMBER(":now", 0)}},
    {QUERY(SUITE_BASELINES), "of a suite", 80, {TEXT(":suite", GROW_SUITE)}},
    {QUERY(SUITE_HISTORY),
     "newest",
     1600,
     {TEXT(":suite", GROW_SUITE), TEXT(":metric", GROW_SUITE_METRIC), NUMBER(":limit", 20)}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* --- counters ---------------------------------------------------------------------------------------------------------- */

typedef struct work {
  int64_t rows, steps, scanned; /* steps: of the virtual machine; scanned: steps of full table scans */
} work;

static work counted; /* sums over all statements since the test set it to zero */

/* Called when a statement ends. */
static int count_steps(unsigned event, void *context, void *statement, void *duration_ns) {
  (void)event, (void)context, (void)duration_ns;
  counted.steps += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
  counted.scanned += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
  return 0;
}

/* Called for each connection that the store opens. */
static int trace_connection(sqlite3 *db, char **message, const struct sqlite3_api_routines *routines) {
  (void)message, (void)routines;
  return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, count_steps, NULL);
}

/* --- the databases ----------------------------------------------------------------------------------------------------- */

typedef struct grown_database {
  fixture *fixture;
  grow_result grown;
} grown_database;
static grown_database small, large;

static void open_database(grown_database *database, int64_t scale) {
  const grow_plan plan = {.jobs = scale * JOBS, .activity_rows = scale * ACTIVITY_ROWS, .trace_rows = scale * TRACE_ROWS};
  void *state;
  open_fixture(&state);
  database->fixture = state;
  /* fsync only costs time here: no test reads the database after a crash. */
  assert_int_equal(sqlite3_exec(database->fixture->store->writer.handle, "PRAGMA synchronous = OFF", NULL, NULL, NULL),
                   SQLITE_OK);
  ASSERT_OK(rl_store_token_add(database->fixture->store, "reader", "c0ffee", &err));
  ASSERT_OK(grow_database(database->fixture->store, &plan, &database->grown, &err));
}

static int open_databases(void **state) {
  (void)state;
  open_database(&small, 1);
  open_database(&large, GROWTH);
  sqlite3_auto_extension(
      (void (*)(void))trace_connection); /* the store opens its readers later, so each calls trace_connection */
  return 0;
}

static int close_databases(void **state) {
  (void)state;
  sqlite3_reset_auto_extension();
  for (int i = 0; i < 2; i++) {
    void *fixture_state = i == 0 ? small.fixture : large.fixture;
    close_fixture(&fixture_state);
  }
  return 0;
}

static rl_binding make_binding(const query_parameter *parameter, const grow_result *grown) {
  int64_t member = 0;
  if (parameter->is_member) memcpy(&member, (const char *)grown + parameter->member, sizeof member);
  if (parameter->is_member) return (rl_binding)RL_BIND_INTEGER(parameter->name, member);
  if (parameter->text != NULL) return (rl_binding)RL_BIND_TEXT(parameter->name, parameter->text);
  return (rl_binding)RL_BIND_INTEGER(parameter->name, parameter->number);
}

/* Executes the query of a case. Returns the number of rows, and the steps and scan steps per row. */
static work measure_work_per_row(const query_case *tested, const grown_database *database) {
  rl_binding bindings[MAX_PARAMETERS];
  rl_cursor *cursor = NULL;
  const char *json;
  int count = 0, more;
  int64_t rows = 0;
  for (; count < MAX_PARAMETERS && tested->parameters[count].name != NULL; count++)
    bindings[count] = make_binding(&tested->parameters[count], &database->grown);
  counted = (work){0};
  ASSERT_OK(rl_store_query(database->fixture->store, tested->query, bindings, count, &cursor, &err));
  while ((more = rl_cursor_next(cursor, &json, &err)) > 0) rows++;
  rl_cursor_close(cursor);
  if (more < 0) fail_msg("%s %s: %s", tested->query_name, tested->name, err.message);
  if (rows == 0 || counted.steps == 0) fail_msg("%s %s: no rows, or no steps were counted", tested->query_name, tested->name);
  return (work){.rows = rows, .steps = counted.steps / rows, .scanned = counted.scanned / rows};
}

/* --- the tests --------------------------------------------------------------------------------------------------------- */

static void every_query_has_a_case(void **state) {
  (void)state;
  for (int query = 0; query < RL_QUERIES; query++) {
    bool found = false;
    for (int i = 0; i < CASES; i++) found |= (int)cases[i].query == query;
    if (!found) fail_msg("query %d of rl_query has no case in this file", query);
  }
}

/* Returns whether neither kind of step grows from the small to the large database, and the steps stay below max_steps. */
static bool is_bounded(const work *small_work, const work *large_work, int64_t max_steps) {
  bool grows = large_work->steps > small_work->steps + small_work->steps / 8 + SLACK_STEPS ||
               large_work->scanned > small_work->scanned + SLACK_STEPS;
  return !grows && (max_steps == 0 || (small_work->steps <= max_steps && large_work->steps <= max_steps));
}

static void steps_per_row_do_not_grow_with_jobs(void **state) {
  (void)state;
  int failed = 0;
  for (const query_case *tested = cases; tested < cases + CASES; tested++) {
    measure_work_per_row(tested, &small),
        measure_work_per_row(tested, &large); /* not counted: prepares the statements and reads the schema */
    const work small_work = measure_work_per_row(tested, &small), large_work = measure_work_per_row(tested, &large);
    bool bounded = is_bounded(&small_work, &large_work, tested->max_steps);
    printf("%-6s %-16s %-31s %4lld rows, %8lld to %8lld steps per row, %6lld to %6lld scanned\n", bounded ? "ok" : "FAILED",
           tested->query_name, tested->name, (long long)large_work.rows, (long long)small_work.steps, (long long)large_work.steps,
           (long long)small_work.scanned, (long long)large_work.scanned);
    failed += !bounded;
  }
  assert_int_equal(failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_query_has_a_case),
                                     cmocka_unit_test(steps_per_row_do_not_grow_with_jobs)};
  return cmocka_run_group_tests(tests, open_databases, close_databases);
}
