/* Values of blocks that a device measured one after another, while nothing changed: tests/data/recorded/NAME.csv. */
#ifndef RL_TESTS_RECORDED_H
#define RL_TESTS_RECORDED_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/verdict.h"

enum { RECORDED_MAX_METRICS = 32, RECORDED_MAX_BLOCKS = 512, RECORDED_MAX_SUITES = 4, RECORDED_KEY_SIZE = 128 };

typedef struct recorded_metric {
  char key[RECORDED_KEY_SIZE];
  double values[RECORDED_MAX_BLOCKS]; /* by block; NAN: dropped */
  bool is_time;                       /* and so can be slowed down */
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

/* The blocks that are compared: from block `first` on, those of the baseline's runs, of the current run, of its confirmation. */
typedef struct recorded_window {
  size_t first, blocks;   /* blocks: of a run */
  size_t baseline_runs;   /* also the history */
  double threshold_ratio; /* of all metrics */
  double slow_down_ratio; /* injected into the current and the confirming blocks of one metric */
  size_t slowed_metric;
} recorded_window;

/* Returns the number of blocks of a window. */
size_t recorded_window_size(const recorded_window *window);
/* Judges a window as a suite run. judged[metric_count]. Returns -1 on failure. */
int recorded_judge(const recorded_suite *suite, const recorded_window *window, rl_verdict_judgement *judged,
                   rl_verdict_summary *summary);

#endif
