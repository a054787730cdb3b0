/* Implements suite_estimate.h. A job is assumed to take as long as the newest equal job; if there is none, as long as the newest
 * job of its kind. */
#include "suite/suite_estimate.h"

#include <math.h>

#include "suite/suite_progress.h"

const char *rl_suite_estimate_basis_name(rl_suite_estimate_basis basis) {
  static const char *const names[] = {[RL_SUITE_ESTIMATE_RUNS] = "runs",
                                      [RL_SUITE_ESTIMATE_JOBS] = "jobs",
                                      [RL_SUITE_ESTIMATE_SIMILAR_JOBS] = "similar_jobs",
                                      [RL_SUITE_ESTIMATE_TIME_BUDGET] = "time_budget"};
  return names[basis];
}

/* Runs a query and returns the second column of its only row; NAN if the column is NULL or there is no row. */
static double read_seconds(rl_store *store, rl_query query, const rl_binding *bindings, int count) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *first;
  rl_error ignored;
  if (rl_store_query(store, query, bindings, count, &cursor, &ignored) < 0 || rl_cursor_next(cursor, &first, &ignored) <= 0)
    return NAN;
  return rl_cursor_real(cursor, 1);
}

static double seconds_of_last_runs(rl_store *store, const rl_suite *suite, const char *device, bool measures_baseline) {
  return read_seconds(store, RL_QUERY_SUITE_RUN_DURATION,
                      RL_BINDINGS(RL_BIND_TEXT(":suite", suite->name), RL_BIND_TEXT(":sha256", suite->sha256),
                                  RL_BIND_TEXT(":device", device), RL_BIND_INTEGER(":measures_baseline", measures_baseline)));
}

static double seconds_of_equal_job(rl_store *store, const rl_suite_job *job, const char *device) {
  return read_seconds(store, RL_QUERY_SUITE_JOB_DURATION,
                      RL_BINDINGS(RL_BIND_TEXT(":workload", job->workload), RL_BIND_TEXT(":variant", job->variant),
                                  RL_BIND_TEXT(":nondefault_params", job->nondefault_params), RL_BIND_TEXT(":device", device)));
}

static double seconds_of_kind(rl_store *store, const char *kind, const char *device) {
  return read_seconds(store, RL_QUERY_KIND_DURATION, RL_BINDINGS(RL_BIND_TEXT(":kind", kind), RL_BIND_TEXT(":device", device)));
}

/* Estimates the duration of a run that measures no baseline. */
static rl_suite_estimate estimate_from_jobs(rl_store *store, const rl_suite *suite, const char *device) {
  double block_s = 0, canaries_s = rl_suite_has_canary(suite, device) ? 2 * seconds_of_kind(store, "ceilings", device) : 0;
  rl_suite_estimate_basis basis = isfinite(canaries_s) ? RL_SUITE_ESTIMATE_JOBS : RL_SUITE_ESTIMATE_SIMILAR_JOBS;
  for (int i = 0; i < suite->job_count; i++) {
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(suite->jobs[i].request, "kind");
    double seconds = seconds_of_equal_job(store, &suite->jobs[i], device);
    if (!isfinite(seconds)) {
      basis = RL_SUITE_ESTIMATE_SIMILAR_JOBS;
      seconds = seconds_of_kind(store, cJSON_GetStringValue(kind), device);
    }
    block_s += seconds;
  }
  double blocks = (double)suite->blocks + (suite->profile ? 2 : 0); /* a profile takes about as long as two blocks */
  return (rl_suite_estimate){block_s * blocks + (isfinite(canaries_s) ? canaries_s : 0), basis};
}

rl_suite_estimate rl_suite_estimate_duration(rl_store *store, const rl_suite *suite, const char *device, bool measures_baseline) {
  const double measured_suites = measures_baseline ? 2 : 1; /* the suite, and the suite that is measured as its baseline */
  const double budget_s = measured_suites * (double)suite->time_budget_s;
  double seconds = seconds_of_last_runs(store, suite, device, measures_baseline);
  if (!isfinite(seconds) && measures_baseline) seconds = 2 * seconds_of_last_runs(store, suite, device, false);
  if (isfinite(seconds)) return (rl_suite_estimate){seconds, RL_SUITE_ESTIMATE_RUNS};
  rl_suite_estimate estimate = estimate_from_jobs(store, suite, device);
  estimate.seconds *= measured_suites;
  if (estimate.seconds < budget_s) return estimate;
  return (rl_suite_estimate){budget_s, RL_SUITE_ESTIMATE_TIME_BUDGET};
}
