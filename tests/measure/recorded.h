/* Reads recorded values of suites (tests/data/recorded/NAME.csv) and judges windows of them. A device measured the blocks one
 * after another while nothing changed, so every regression that is found in them is a false alarm, unless a slow-down is
 * injected. */
#ifndef RL_TESTS_RECORDED_H
#define RL_TESTS_RECORDED_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/verdict.h"

enum { RECORDED_MAX_METRICS = 32, RECORDED_MAX_BLOCKS = 512, RECORDED_MAX_SUITES = 4, RECORDED_KEY_SIZE = 128 };

typedef struct recorded_metric {
  char key[RECORDED_KEY_SIZE];
  double values[RECORDED_MAX_BLOCKS]; /* by block; NAN: the value was dropped */
  bool is_time;                       /* the metric is a time, so a slow-down can be injected */
} recorded_metric;

typedef struct recorded_suite {
  char name[32];
  recorded_metric metrics[RECORDED_MAX_METRICS];
  size_t metric_count, block_count;
} recorded_suite;

/* The content of a file. `device` is its first comment. */
typedef struct recorded_history {
  char device[256];
  recorded_suite suites[RECORDED_MAX_SUITES];
  size_t suite_count;
} recorded_history;

/* Returns -1 if the file can't be read or has a line that is not suite,metric,block,value. */
int recorded_read(const char *path, recorded_history *history);

/* Returns NULL if no suite has the name. */
recorded_suite *recorded_find_suite(recorded_history *history, const char *name);

/* A window of consecutive blocks that are compared. From block `first` on, they belong to the runs of the baseline, then to the
 * current run, then to its confirmation. */
typedef struct recorded_window {
  size_t first, blocks;   /* index of the first block; number of blocks of each run */
  size_t baseline_runs;   /* number of runs of the baseline; they are also the history */
  double threshold_ratio; /* threshold of all metrics */
  double slow_down_ratio; /* slow-down that is injected into the current and the confirming blocks of slowed_metric */
  size_t slowed_metric;   /* index of the metric */
} recorded_window;

/* Returns the number of blocks of a window. */
size_t recorded_window_size(const recorded_window *window);
/* Judges a window as a suite run. judged: an array of metric_count elements. Returns -1 on failure. */
int recorded_judge(const recorded_suite *suite, const recorded_window *window, rl_verdict_judgement *judged,
                   rl_verdict_summary *summary);

#endif
