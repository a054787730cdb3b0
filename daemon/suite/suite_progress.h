/* The submitted steps of a suite run, read from the database, and its next step. Private to the suite runner; not thread-safe. */
#ifndef RL_SUITE_SUITE_PROGRESS_H
#define RL_SUITE_SUITE_PROGRESS_H

#include "store/store.h"
#include "store/suites.h"
#include "suite/definition.h"

#define RL_SUITE_CANARY_JOB "ceilings" /* name of the canary's job */

typedef struct rl_suite_step_row {
  char role[24], job_name[RL_SUITE_NAME_SIZE], state[16];
  char dropped_reason[256]; /* "": none */
  int64_t block, job_id;    /* job_id 0: deleted */
  double busy_s;            /* 0: unknown */
  bool has_dropped;         /* a measured value was dropped because it is suspect or the device was throttled */
} rl_suite_step_row;

typedef struct rl_suite_progress {
  int64_t id;
  rl_suite *suite;
  rl_suite
      *measured_baseline; /* jobs that each block measures as the baseline, in random order; NULL: the baseline is earlier runs */
  int64_t order_seed;
  char state[16], device[16], against[RL_SUITE_NAME_SIZE]; /* against "": rolling */
  int64_t against_run_id;
  char device_name[256], driver[64], clock_setting[128]; /* "": unknown */
  rl_suite_step_row *rows;
  int row_count;
} rl_suite_progress;

/* Reads a suite run; the caller clears *progress, also after a failure. Fails with RL_HTTP 404 if there is no such run. */
int rl_suite_progress_read(rl_store *store, int64_t id, rl_suite_progress *progress, rl_error *err);
void rl_suite_progress_clear(rl_suite_progress *progress);

/* Return whether the jobs of a role yield values, and whether they measure the baseline. */
bool rl_suite_role_has_values(const char *role);
bool rl_suite_role_measures_baseline(const char *role);
bool rl_suite_has_canary(const rl_suite *suite, const char *device);
/* Returns the row of a step; NULL: its job was not submitted. */
const rl_suite_step_row *rl_suite_find_row(const rl_suite_progress *progress, const char *role, int64_t block,
                                           const char *job_name);
/* Returns whether another block fits into the time budget. */
bool rl_suite_has_time(const rl_suite_progress *progress);
/* Returns the number of planned blocks whose jobs have all ended. */
int64_t rl_suite_blocks_done(const rl_suite_progress *progress, const char *role);
/* Returns the last row of a job that failed in every block of the role, if there are at least two blocks; NULL: there is none. */
const rl_suite_step_row *rl_suite_failing_job(const rl_suite_progress *progress, const char *role);
/* Returns whether a block measures its baseline first. The order is pseudo-random and depends on order_seed and block only. */
bool rl_suite_begins_with_baseline(int64_t order_seed, int64_t block);
/* Returns the number of blocks that may replace dropped ones: half as many as the suite has. */
int64_t rl_suite_max_replacements(const rl_suite *suite);

/* Finds the next job: returns true and sets *step, whose texts belong to progress; false if all are done. unconfirmed: the jobs
 * that need confirming blocks; NULL: none. blocks_only: stop after the blocks. A job whose values of a block were dropped, or
 * those of its baseline, is measured again in a block with a number of at least suite->blocks, within the time budget. */
bool rl_suite_next_step(const rl_suite_progress *progress, const bool unconfirmed[RL_SUITE_JOBS_MAX], bool blocks_only,
                        rl_suite_step *step);
/* Returns the body of POST /jobs for a step, which the caller frees; returns NULL if memory is exhausted. */
char *rl_suite_step_request(const rl_suite_progress *progress, const rl_suite_step *step);

#endif
