/* Judges a suite run from the stored values: collects those of the run, of its baseline and of earlier runs, and calls
 * analyze/verdict.h. Private to the suite runner; not thread-safe. */
#ifndef RL_SUITE_SUITE_JUDGEMENT_H
#define RL_SUITE_SUITE_JUDGEMENT_H

#include "analyze/verdict.h"
#include "suite/suite_progress.h"

typedef struct rl_suite_judgement {
  rl_verdict_summary summary;
  rl_suite_verdict *verdicts; /* all texts are malloc'ed */
  int verdict_count;
  char *baseline_runs;                      /* JSON array of ids */
  bool unconfirmed_jobs[RL_SUITE_JOBS_MAX]; /* unconfirmed_jobs[i]: job i needs confirming blocks */
} rl_suite_judgement;

/* Judges the run. with_confirmation: uses the confirming blocks too, and adds the causes of slower and faster metrics.
 * quarantine_reason: why no value can be trusted, or NULL. The caller clears *judgement. */
int rl_suite_judge_run(rl_store *store, const rl_suite_progress *progress, bool with_confirmation, const char *quarantine_reason,
                       rl_suite_judgement *judgement, rl_error *err);
void rl_suite_judgement_clear(rl_suite_judgement *judgement);

#endif
