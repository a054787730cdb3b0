/* Implements suite_progress.h. The order of the steps is: first canary, blocks, confirming blocks, second canary, profiles. */
#include "suite/suite_progress.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy_column(rl_cursor *cursor, int column, char *text, size_t size) {
  const char *value = rl_cursor_text(cursor, column);
  snprintf(text, size, "%s", value != NULL ? value : "");
}

static int read_run(rl_store *store, int64_t id, rl_suite_progress *progress, rl_error *err) {
  /* Allows any posted code, because the suite run was checked when it was submitted. */
  static const rl_job_policy any_code = {.posting = RL_POSTING_ALLOWED, .source_buffer_bytes = INT64_MAX};
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *definition;
  if (rl_store_query(store, RL_QUERY_SUITE_RUN_COLUMNS, RL_BINDINGS(RL_BIND_INTEGER(":run", id)), &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &definition, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Suite run %lld not found.", (long long)id);
  copy_column(cursor, 1, progress->state, sizeof progress->state);
  copy_column(cursor, 3, progress->device, sizeof progress->device);
  copy_column(cursor, 4, progress->against, sizeof progress->against);
  progress->against_run_id = rl_cursor_integer(cursor, 5);
  copy_column(cursor, 8, progress->device_name, sizeof progress->device_name);
  copy_column(cursor, 9, progress->driver, sizeof progress->driver);
  copy_column(cursor, 10, progress->clock_setting, sizeof progress->clock_setting);
  progress->order_seed = rl_cursor_integer(cursor, 12);
  if (rl_suite_parse(definition, strlen(definition), &any_code, &progress->suite, err) < 0) return -1;
  const char *against_request = rl_cursor_text(cursor, 11);
  if (against_request == NULL) return 0;
  cJSON *request = cJSON_Parse(against_request);
  int rc = request != NULL
               ? rl_suite_make_measured_baseline(progress->suite, request, &any_code, &progress->measured_baseline, err)
               : rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite run");
  cJSON_Delete(request);
  return rc;
}

static int add_row(rl_cursor *cursor, rl_suite_progress *progress, rl_error *err) {
  rl_suite_step_row *rows = realloc(progress->rows, (size_t)(progress->row_count + 1) * sizeof *rows);
  if (rows == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite run");
  progress->rows = rows;
  rl_suite_step_row *row = &rows[progress->row_count++];
  copy_column(cursor, 0, row->role, sizeof row->role);
  row->block = rl_cursor_integer(cursor, 1);
  copy_column(cursor, 2, row->job_name, sizeof row->job_name);
  row->job_id = rl_cursor_integer(cursor, 3);
  copy_column(cursor, 4, row->state, sizeof row->state);
  copy_column(cursor, 5, row->dropped_reason, sizeof row->dropped_reason);
  double busy_s = rl_cursor_real(cursor, 6);
  row->busy_s = isfinite(busy_s) ? busy_s : 0;
  row->has_dropped = rl_cursor_integer(cursor, 7) != 0;
  return 0;
}

int rl_suite_progress_read(rl_store *store, int64_t id, rl_suite_progress *progress, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *role;
  int found;
  *progress = (rl_suite_progress){.id = id};
  if (read_run(store, id, progress, err) < 0 ||
      rl_store_query(store, RL_QUERY_SUITE_RUN_JOBS, RL_BINDINGS(RL_BIND_INTEGER(":run", id)), &cursor, err) < 0)
    return -1;
  while ((found = rl_cursor_next(cursor, &role, err)) > 0)
    if (add_row(cursor, progress, err) < 0) return -1;
  return found;
}

void rl_suite_progress_clear(rl_suite_progress *progress) {
  rl_suite_free(progress->suite);
  rl_suite_free(progress->measured_baseline);
  free(progress->rows);
  *progress = (rl_suite_progress){0};
}

static bool is_canary(const char *role) { return strncmp(role, "canary", strlen("canary")) == 0; }
static bool is_profile(const char *role) { return strstr(role, "profile") != NULL; }
bool rl_suite_role_has_values(const char *role) { return !is_canary(role) && !is_profile(role); }
bool rl_suite_role_measures_baseline(const char *role) { return strncmp(role, "baseline", strlen("baseline")) == 0; }

bool rl_suite_has_canary(const rl_suite *suite, const char *device) {
  return suite->canary == RL_SUITE_CANARY_ON_GPU_ONLY ? strcmp(device, "cpu") != 0 : suite->canary != 0;
}

const rl_suite_step_row *rl_suite_find_row(const rl_suite_progress *progress, const char *role, int64_t block,
                                           const char *job_name) {
  for (int i = 0; i < progress->row_count; i++) {
    const rl_suite_step_row *row = &progress->rows[i];
    if (row->block == block && strcmp(row->role, role) == 0 && strcmp(row->job_name, job_name) == 0) return row;
  }
  return NULL;
}

static bool is_submitted(const rl_suite_progress *progress, const char *role, int64_t block, const char *job_name) {
  return rl_suite_find_row(progress, role, block, job_name) != NULL;
}

int64_t rl_suite_count_ended_blocks(const rl_suite_progress *progress, const char *role) {
  int64_t ended_blocks = 0;
  for (int64_t block = 0; block < progress->suite->blocks; block++) {
    bool has_ended = true;
    for (int i = 0; i < progress->suite->job_count && has_ended; i++) {
      const rl_suite_step_row *row = rl_suite_find_row(progress, role, block, progress->suite->jobs[i].name);
      has_ended = row != NULL && strcmp(row->state, "submitted") != 0;
    }
    ended_blocks += has_ended;
  }
  return ended_blocks;
}

static double busy_seconds(const rl_suite_progress *progress) {
  double seconds = 0;
  for (int i = 0; i < progress->row_count; i++) seconds += progress->rows[i].busy_s;
  return seconds;
}

/* Returns the sum of the durations of the jobs in planned blocks, including baseline jobs. */
static double busy_seconds_of_blocks(const rl_suite_progress *progress) {
  double seconds = 0;
  for (int i = 0; i < progress->row_count; i++) {
    const rl_suite_step_row *row = &progress->rows[i];
    bool is_of_block = strcmp(row->role, "block") == 0 || strcmp(row->role, "baseline") == 0;
    if (is_of_block && row->block < progress->suite->blocks) seconds += row->busy_s;
  }
  return seconds;
}

/* Returns the time budget, which is doubled for a run that measures its baseline. */
static double budget_s(const rl_suite_progress *progress) {
  return (double)progress->suite->time_budget_s * (progress->measured_baseline != NULL ? 2 : 1);
}

bool rl_suite_has_time(const rl_suite_progress *progress) {
  int64_t done = rl_suite_count_ended_blocks(progress, "block");
  double block_s = done > 0 ? busy_seconds_of_blocks(progress) / (double)done : 0;
  return busy_seconds(progress) + block_s <= budget_s(progress);
}

const rl_suite_step_row *rl_suite_find_failing_job(const rl_suite_progress *progress, const char *role) {
  for (int i = 0; i < progress->suite->job_count; i++) {
    int ended = 0, failed = 0;
    const rl_suite_step_row *last = NULL;
    for (int j = 0; j < progress->row_count; j++) {
      const rl_suite_step_row *row = &progress->rows[j];
      if (strcmp(row->role, role) != 0 || strcmp(row->job_name, progress->suite->jobs[i].name) != 0) continue;
      ended += strcmp(row->state, "submitted") != 0;
      failed += strcmp(row->state, "failed") == 0;
      if (strcmp(row->state, "failed") == 0) last = row;
    }
    if (failed >= 2 && failed == ended) return last;
  }
  return NULL;
}

/* Finds the next wanted job of a block that was not submitted yet. Sets *has_submitted_jobs if a wanted job of the block was
 * submitted before. */
static bool find_step_in_block(const rl_suite_progress *progress, const char *role, int64_t block, const bool *wanted,
                               bool *has_submitted_jobs, rl_suite_step *step) {
  const rl_suite *suite = progress->suite;
  const char *first = NULL;
  for (int i = 0; i < suite->job_count; i++) {
    if (!wanted[i]) continue;
    if (first == NULL) first = suite->jobs[i].name;
    if (!is_submitted(progress, role, block, suite->jobs[i].name)) {
      *step = (rl_suite_step){role, block, suite->jobs[i].name, first == suite->jobs[i].name};
      return true;
    }
    *has_submitted_jobs = true;
  }
  return false;
}

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t splitmix64(uint64_t z) {
  z += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

bool rl_suite_begins_with_baseline(int64_t order_seed, int64_t block) {
  return (splitmix64((uint64_t)order_seed + (uint64_t)block) & 1) != 0;
}

/* A kind of blocks, with the roles of its current and its baseline jobs. */
typedef struct block_kind {
  const char *role, *baseline_role;
  int64_t order_offset; /* added to the block's number for rl_suite_begins_with_baseline, so that the two kinds get different
                           random orders */
} block_kind;
static const block_kind measured_blocks = {"block", "baseline", 0},
                        confirming_blocks = {"confirmation", "baseline_confirmation", RL_SUITE_MEASURED_BLOCKS_MAX};

/* Returns whether the job of a step has completed and none of its values was dropped. */
static bool has_all_values(const rl_suite_progress *progress, const char *role, int64_t block, const char *job_name) {
  const rl_suite_step_row *row = rl_suite_find_row(progress, role, block, job_name);
  return row != NULL && strcmp(row->state, "completed") == 0 && !row->has_dropped;
}

/* Returns whether, for this job, fewer than suite->blocks of the blocks before `block` are good. If the run measures its
 * baseline, a block is good if both the current job and the baseline job are good. */
static bool needs_replacement(const rl_suite_progress *progress, const block_kind *kind, int64_t block, const char *job_name) {
  int64_t good = 0;
  for (int64_t i = 0; i < block; i++)
    good += has_all_values(progress, kind->role, i, job_name) &&
            (progress->measured_baseline == NULL || has_all_values(progress, kind->baseline_role, i, job_name));
  return good < progress->suite->blocks;
}

int64_t rl_suite_max_replacing_blocks(const rl_suite *suite) { return suite->blocks / 2; }

/* Finds the next job in the blocks of this kind. wanted: the jobs to measure; NULL: all jobs. Does not begin a block that would
 * not fit into the time budget. */
static bool find_step_in_blocks(const rl_suite_progress *progress, const block_kind *kind, const bool *wanted,
                                rl_suite_step *step) {
  const rl_suite *suite = progress->suite;
  const char *const roles[] = {kind->role, kind->baseline_role, kind->role};
  for (int64_t block = 0; block < suite->blocks + rl_suite_max_replacing_blocks(suite); block++) {
    /* order[0] is the role of the jobs that come first in the block, order[1] of those that come second. */
    const char *const *order = roles + rl_suite_begins_with_baseline(progress->order_seed, kind->order_offset + block);
    bool has_submitted_jobs = false, is_measured[RL_SUITE_JOBS_MAX];
    for (int i = 0; i < suite->job_count; i++)
      is_measured[i] = (wanted == NULL || wanted[i]) &&
                       (block < suite->blocks || needs_replacement(progress, kind, block, suite->jobs[i].name));
    for (int side = 0; side < 2; side++) {
      if (progress->measured_baseline == NULL && order[side] == kind->baseline_role) continue;
      if (find_step_in_block(progress, order[side], block, is_measured, &has_submitted_jobs, step))
        return has_submitted_jobs || rl_suite_has_time(progress);
    }
  }
  return false;
}

static bool find_canary_step(const rl_suite_progress *progress, const char *role, rl_suite_step *step) {
  if (!rl_suite_has_canary(progress->suite, progress->device) || is_submitted(progress, role, 0, RL_SUITE_CANARY_JOB))
    return false;
  *step = (rl_suite_step){role, 0, RL_SUITE_CANARY_JOB, true};
  return true;
}

static bool find_profile_step(const rl_suite_progress *progress, const char *role, rl_suite_step *step) {
  const rl_suite *suite = progress->suite;
  if (!suite->profile || busy_seconds(progress) > budget_s(progress)) return false;
  for (int i = 0; i < suite->job_count; i++) {
    if (is_submitted(progress, role, 0, suite->jobs[i].name)) continue;
    *step = (rl_suite_step){role, 0, suite->jobs[i].name, i == 0};
    return true;
  }
  return false;
}

bool rl_suite_next_step(const rl_suite_progress *progress, const bool unconfirmed[RL_SUITE_JOBS_MAX], bool blocks_only,
                        rl_suite_step *step) {
  if (find_canary_step(progress, "canary_before", step) || find_step_in_blocks(progress, &measured_blocks, NULL, step))
    return true;
  if (blocks_only) return false;
  return (unconfirmed != NULL && find_step_in_blocks(progress, &confirming_blocks, unconfirmed, step)) ||
         find_canary_step(progress, "canary_after", step) || find_profile_step(progress, "profile", step) ||
         (progress->measured_baseline != NULL && find_profile_step(progress, "baseline_profile", step));
}

char *rl_suite_step_request(const rl_suite_progress *progress, const rl_suite_step *step) {
  const rl_suite_job *job = rl_suite_find_job(
      rl_suite_role_measures_baseline(step->role) ? progress->measured_baseline : progress->suite, step->job_name);
  bool is_cpu = strcmp(progress->device, "cpu") == 0;
  char *text = NULL;
  if (is_canary(step->role)) {
    if (asprintf(&text, "{\"kind\":\"ceilings\",\"device\":\"%s\",\"fresh_worker\":true}", progress->device) < 0) return NULL;
    return text;
  }
  if (job == NULL) return NULL;
  uint32_t profile = 1u << RL_PASS_TIMING | 1u << RL_PASS_ACTIVITY | (is_cpu ? 0 : 1u << RL_PASS_COUNTERS);
  uint32_t passes = is_profile(step->role) ? job->passes | profile : job->passes;
  return rl_suite_print_request(job, progress->device, passes, step->is_first);
}
