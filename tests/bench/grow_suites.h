/* Adds runs of a regression suite to a benchmark's database (grow.h). */
#ifndef RL_TESTS_BENCH_GROW_SUITES_H
#define RL_TESTS_BENCH_GROW_SUITES_H

#include "grow.h"

/* Stores runs of the suite GROW_SUITE, whose jobs are `job`, and sets grown->suite_run. jobs: number of jobs in the database. */
int grow_suite_runs(rl_store *store, int64_t jobs, int64_t job, grow_result *grown, rl_error *err);

#endif
