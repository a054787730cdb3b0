/* Reads the stored values of a suite run, by metric. suite_judgement.c and suite_promotion.c call this module. Not
 * thread-safe. */
#ifndef RL_SUITE_SUITE_VALUES_H
#define RL_SUITE_SUITE_VALUES_H

#include "store/store.h"
#include "suite/definition.h"

/* The values of a metric in the blocks of one suite run. A value is dropped (not used) if it is suspect, if the device was
 * throttled, or if the job failed. */
typedef struct rl_suite_series {
  char metric[RL_SUITE_KEY_SIZE];
  double values[RL_SUITE_MEASURED_BLOCKS_MAX];    /* value of each block; NAN: the value was dropped */
  double sm_cycles[RL_SUITE_MEASURED_BLOCKS_MAX]; /* value of each block in cycles of the SM clock; NAN: dropped or unknown */
  size_t count;                                   /* number of blocks */
  size_t dropped_count;                           /* number of blocks whose value was dropped */
  size_t first_dropped_block;
  char first_dropped_reason[256];          /* "": no value was dropped */
  size_t first_block_with_other_processes; /* number of the first block during which other processes used the device */
  char other_processes[256];               /* the other processes in that block; "": no block had any */
} rl_suite_series;

/* The series of all metrics in the blocks with one role, sorted by metric. */
typedef struct rl_suite_series_list {
  rl_suite_series *items;
  int count;
} rl_suite_series_list;

typedef struct rl_suite_values {
  rl_suite_series_list blocks, confirmations;
  rl_suite_series_list baselines, baseline_confirmations; /* of a baseline that the run itself has measured */
} rl_suite_values;

/* Reads the values of a suite run. The caller clears *values, also after a failure. */
int rl_suite_values_read(rl_store *store, int64_t run_id, rl_suite_values *values, rl_error *err);
void rl_suite_values_clear(rl_suite_values *values);
/* Returns the series of a metric; NULL if there is none. */
const rl_suite_series *rl_suite_series_find(const rl_suite_series_list *list, const char *metric);
/* Returns the median of the values that were not dropped; NAN if there are none. Sets *finite_count to the number of these
 * values. */
double rl_suite_series_median(const rl_suite_series *series, size_t *finite_count);

#endif
