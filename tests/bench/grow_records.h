/* Makes the records of a pass as a worker sends them, with realistic counts, names and sizes. Equal seeds give equal records. */
#ifndef RL_TESTS_BENCH_GROW_RECORDS_H
#define RL_TESTS_BENCH_GROW_RECORDS_H

#include "model/job.h"

typedef struct record_plan {
  const rl_claim *claim;
  const char *device; /* with "cpu" the records have no clocks */
  uint64_t seed;
  int64_t activity_rows; /* number of rows of an activity pass */
  bool is_full;          /* the counters of the set "full", instructions and timelines; else the counters of SpeedOfLight */
} record_plan;

/* Fills *records, which the caller clears, also after a failure. */
int grow_records(const record_plan *plan, rl_records *records, rl_error *err);
/* Adds the names to which the rows of grow_rows refer. */
int grow_names(rl_records *records, rl_error *err);
/* Fills rows[count] with the activities first, first + 1, ... of a trace that has `total` activities: a range for the epoch, and
 * for each step a range, launches, kernels and copies in the order of their starts. Returns when the trace ends, in ns. */
int64_t grow_rows(int64_t first, int64_t total, rl_activity_row *rows, int64_t count);

#endif
