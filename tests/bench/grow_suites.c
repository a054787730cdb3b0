/* Stores one ended suite run for every SUITE_PERIOD jobs, and ACTIVE_RUNS runs that have not ended. All refer to the same job. */
#include "grow_suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/suites.h"

enum { SUITE_PERIOD = 10, BLOCKS = 5, ACTIVE_RUNS = 3 };
static const char *const metrics[] = {"train/fp16/epoch_ms_median", GROW_SUITE_METRIC, "train/fp32/peak_memory_bytes"};
enum { METRICS = sizeof metrics / sizeof *metrics };

static int add_profile(rl_store *store, int64_t run, int64_t job, rl_error *err) {
  const rl_suite_step step = {"profile", 0, "train", true};
  if (rl_store_suite_job_insert(store, run, &step, job, err) < 0) return -1;
  return rl_store_suite_job_finish(store, run, &step, job, "completed", NULL, NULL, 0, err);
}

static int add_block(rl_store *store, int64_t run, int64_t job, int64_t block, rl_error *err) {
  const rl_suite_step step = {"block", block, "train"};
  rl_suite_value values[METRICS] = {0};
  for (int i = 0; i < METRICS; i++) {
    snprintf(values[i].metric, sizeof values[i].metric, "%s", metrics[i]);
    values[i].value = 100 * (i + 1) + (double)((run + block) % 7);
    values[i].cycles = NAN;
  }
  if (rl_store_suite_job_insert(store, run, &step, job, err) < 0) return -1;
  return rl_store_suite_job_finish(store, run, &step, job, "completed", NULL, values, METRICS, err);
}

static int finish(rl_store *store, int64_t run, rl_error *err) {
  rl_suite_verdict verdicts[METRICS];
  const rl_suite_outcome outcome = {.state = "completed",
                                    .verdict = "same",
                                    .reason = "All 3 metrics are the same within their thresholds.",
                                    .baseline_runs = "[1]",
                                    .verdicts = verdicts,
                                    .verdict_count = METRICS,
                                    .method_version = 1};
  for (int i = 0; i < METRICS; i++)
    verdicts[i] = (rl_suite_verdict){metrics[i], i == 0 ? "slower" : "same", "{\"confirmed\":null}", NULL};
  return rl_store_suite_run_finish(store, run, &outcome, err);
}

static int add_run(rl_store *store, int64_t job, bool has_ended, int64_t *run, rl_error *err) {
  const rl_suite_run_spec spec = {.suite = GROW_SUITE,
                                  .definition = "{}",
                                  .definition_sha256 = "c0ffee",
                                  .jobs_sha256 = "{\"train\":\"c0ffee\"}",
                                  .device = "gpu0",
                                  .planned_s = 60,
                                  .planned_jobs = BLOCKS};
  bool existing;
  if (rl_store_suite_run_insert(store, &spec, NULL, NULL, INT64_MAX, run, &existing, err) < 0) return -1;
  if (!has_ended) return 0;
  if (rl_store_suite_run_start(store, *run, err) < 0) return -1;
  for (int64_t block = 0; block < BLOCKS; block++)
    if (add_block(store, *run, job, block, err) < 0) return -1;
  return add_profile(store, *run, job, err) < 0 ? -1 : finish(store, *run, err);
}

int grow_suite_runs(rl_store *store, int64_t jobs, int64_t job, grow_result *grown, rl_error *err) {
  int64_t run = 0;
  for (int64_t i = 0; i < jobs / SUITE_PERIOD; i++)
    if (add_run(store, job, true, &run, err) < 0) return -1;
  grown->suite_run = run;
  if (rl_store_baseline_insert(store, GROW_SUITE, "v1", 1, err) < 0) return -1;
  for (int i = 0; i < ACTIVE_RUNS; i++)
    if (add_run(store, job, false, &run, err) < 0) return -1;
  return 0;
}
