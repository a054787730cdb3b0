/* Reads the submitted steps of a suite run from the database, and determines the next step. A step is one job of the suite
 * run. The suite runner's thread calls this module before each step; suite_judgement.c and suite_promotion.c also use the module.
 * Not thread-safe. */
#ifndef RL_SUITE_SUITE_PROGRESS_H
#define RL_SUITE_SUITE_PROGRESS_H

#include "store/store.h"
#include "store/suites.h"
#include "suite/definition.h"

#define RL_SUITE_CANARY_JOB "ceilings" /* name of the canary's job in the steps */

typedef struct rl_suite_step_row {
  char role[24], job_name[RL_SUITE_NAME_SIZE], state[16];
  char dropped_reason[256]; /* why the job's values are not used; "": they are used */
  int64_t block, job_id;    /* job_id 0: retention has deleted the job */
  double busy_s;            /* time from the job's start to its end; 0: unknown */
  bool has_dropped;         /* a measured value was dropped because it is suspect or the device was throttled */
} rl_suite_step_row;

typedef struct rl_suite_progress {
  int64_t id;
  rl_suite *suite;
  rl_suite *measured_baseline; /* its jobs are measured in each block as the baseline; NULL: earlier runs are the baseline */
  int64_t order_seed;
  char state[16], device[16], against[RL_SUITE_NAME_SIZE]; /* against: name of the baseline, "": the rolling baseline */
  int64_t against_run_id;
  char device_name[256], driver[64], clock_setting[128]; /* "": unknown */
  rl_suite_step_row *rows;
  int row_count;
} rl_suite_progress;

/* Reads a suite run; the caller clears *progress, also after a failure. Fails with RL_HTTP 404 if there is no such run. */
int rl_suite_progress_read(rl_store *store, int64_t id, rl_suite_progress *progress, rl_error *err);
void rl_suite_progress_clear(rl_suite_progress *progress);

/* Return whether jobs with this role yield values, and whether they measure the baseline. */
bool rl_suite_role_has_values(const char *role);
bool rl_suite_role_measures_baseline(const char *role);
bool rl_suite_has_canary(const rl_suite *suite, const char *device);
/* Returns the row of a step; NULL if its job was not submitted. */
const rl_suite_step_row *rl_suite_find_row(const rl_suite_progress *progress, const char *role, int64_t block,
                                           const char *job_name);
/* Returns whether another block fits into the time budget. Jobs of clients that run in between do not use the budget. */
bool rl_suite_has_time(const rl_suite_progress *progress);
/* Returns the number of planned blocks with this role whose jobs have all ended. */
int64_t rl_suite_count_ended_blocks(const rl_suite_progress *progress, const char *role);
/* Returns the last row of a job that has failed in every block of this role, and in at least two blocks; NULL if there is no such
 * job. */
const rl_suite_step_row *rl_suite_find_failing_job(const rl_suite_progress *progress, const char *role);
/* Returns whether a block measures its baseline jobs before its current jobs. The order is pseudo-random and depends only on
 * order_seed and block. */
bool rl_suite_begins_with_baseline(int64_t order_seed, int64_t block);
/* Returns the maximum number of blocks that replace dropped blocks: half the number of planned blocks. */
int64_t rl_suite_max_replacing_blocks(const rl_suite *suite);

/* Returns true and sets *step to the next job to submit; false if all jobs were submitted. The texts of *step belong to progress.
 * unconfirmed: the jobs that need confirming blocks; NULL: none. blocks_only: ignore all steps after the blocks. If a value of a
 * job, or of its baseline job, was dropped in a block, a replacing block, whose number is at least suite->blocks, measures the
 * job again if the time budget allows it. */
bool rl_suite_next_step(const rl_suite_progress *progress, const bool unconfirmed[RL_SUITE_JOBS_MAX], bool blocks_only,
                        rl_suite_step *step);
/* Returns the body of POST /jobs for a step, which the caller frees; returns NULL if memory is exhausted. */
char *rl_suite_step_request(const rl_suite_progress *progress, const rl_suite_step *step);

#endif
