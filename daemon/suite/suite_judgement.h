/* Judges a suite run: reads the stored values of the run, of its baseline and of earlier runs, and computes a verdict for each
 * metric with analyze/verdict.h. Private to the suite runner; not thread-safe. */
#ifndef RL_SUITE_SUITE_JUDGEMENT_H
#define RL_SUITE_SUITE_JUDGEMENT_H

#include "analyze/verdict.h"
#include "suite/suite_progress.h"

typedef struct rl_suite_judgement {
  rl_verdict_summary summary;
  rl_suite_verdict *verdicts; /* one for each metric with values; the judgement owns the texts */
  int verdict_count;
  char *baseline_runs; /* JSON array with the ids of all suite runs that are a baseline of at least one metric */
  bool unconfirmed_jobs[RL_SUITE_JOBS_MAX]; /* unconfirmed_jobs[i]: confirming blocks must measure job i of the suite */
} rl_suite_judgement;

/* Judges the run. with_confirmation: also uses the values of the confirming blocks, and adds the causes of slower and faster
 * metrics. quarantine_reason: why the values of the run can't be trusted, or NULL. The caller clears *judgement. */
int rl_suite_judge_run(rl_store *store, const rl_suite_progress *progress, bool with_confirmation, const char *quarantine_reason,
                       rl_suite_judgement *judgement, rl_error *err);
void rl_suite_judgement_clear(rl_suite_judgement *judgement);

#endif
