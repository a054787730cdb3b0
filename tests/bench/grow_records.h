/* Makes the records of a pass as a worker sends them: realistic counts, names and sizes; equal seeds give equal records. */
#ifndef RL_TESTS_BENCH_GROW_RECORDS_H
#define RL_TESTS_BENCH_GROW_RECORDS_H

#include "model/job.h"

typedef struct record_plan {
  const rl_claim *claim;
  const char *device; /* "cpu": no clocks, no counters */
  uint64_t seed;
  int64_t activity_rows; /* number of rows of an activity pass */
  bool full;             /* counters of the set "full", instructions and timelines; else the counters of SpeedOfLight */
} record_plan;

/* Fills *records, which the caller clears, also after a failure. */
int grow_records(const record_plan *plan, rl_records *records, rl_error *err);
/* Adds the names of the activities of grow_rows. */
int grow_names(rl_records *records, rl_error *err);
/* Fills rows[count] with the activities first, first + 1, ... of a trace of `total`: an epoch's range, and for each step a range,
 * launches, kernels and copies in the order of their starts. Returns when the last of them ends, in ns. */
int64_t grow_rows(int64_t first, int64_t total, rl_activity_row *rows, int64_t count);

#endif
