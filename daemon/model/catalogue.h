/* The metric catalogue: which rows a section of the report has, how each is computed, and which raw metrics that takes. A table
 * made from the files of schema/metrics by schema/catalogue.py, as docs/metrics.md is. Plain data, for the daemon and the
 * profiler's module. */
#ifndef RL_MODEL_CATALOGUE_H
#define RL_MODEL_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_metric_origin {
  RL_ORIGIN_COUNTER,  /* CUPTI's range profiler */
  RL_ORIGIN_LAUNCH,   /* the launch: grid, registers, limits of occupancy */
  RL_ORIGIN_DEVICE,   /* attributes of the device, its links, its host */
  RL_ORIGIN_SAMPLING, /* samples of program counters or counters over time */
  RL_ORIGIN_SASS      /* counts by instruction */
} rl_metric_origin;

/* Whether raw metrics named "KEY:PART" are parts of a row, and what of them ncu prints behind its value. */
typedef enum rl_parts { RL_PARTS_NONE, RL_PARTS_VALUES, RL_PARTS_NAMES } rl_parts;

typedef struct rl_section_row {
  const char *table; /* "": the section's header */
  const char *name, *unit;
  const char *key;            /* ncu's name of the row's metric */
  const char *expression;     /* over raw metrics (analyze/expression.h) */
  const char *const *choices; /* the numbers 0, 1... stand for these texts, NULL-terminated; NULL: a number is a number */
  const char *chips;          /* compute capabilities that have its counters, "8.0 9.0"; NULL: all of rl_catalogue_chips */
  rl_parts parts;
} rl_section_row;

typedef struct rl_section {
  const char *id, *name, *summary; /* "SpeedOfLight", "GPU Speed Of Light Throughput" */
  const rl_section_row *rows;
  size_t row_count;
} rl_section;

/* The compute capabilities that the catalogue knows of, as `chips`. Any row may be there on another one. */
extern const char rl_catalogue_chips[];

/* Fewer than 32: a set of sections is a uint32_t whose bit i is rl_sections[i]. */
extern const rl_section rl_sections[];
extern const size_t rl_section_count;
extern const char *const rl_section_names[]; /* the ids, NULL-terminated: names of an RL_FIELD_CHOICES */

typedef struct rl_section_set {
  const char *name; /* "basic" "detailed" "full" */
  uint32_t sections;
} rl_section_set;
extern const rl_section_set rl_section_sets[];
extern const size_t rl_section_set_count;
extern const char *const rl_section_set_names[]; /* NULL-terminated: names of an RL_FIELD_CHOICE */

typedef struct rl_raw_metric { /* each name that a row needs, once; by name, as strcmp orders */
  const char *name, *unit;
  rl_metric_origin origin;
  uint32_t sections; /* that need it */
} rl_raw_metric;
extern const rl_raw_metric rl_raw_metrics[];
extern const size_t rl_raw_metric_count;

#ifdef __cplusplus
}
#endif

#endif
