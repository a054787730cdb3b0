/* The metric catalogue: the rows of each section of the report, the expression of each row, and the raw metrics that it needs.
 * The tables are generated from schema/metrics by schema/catalogue.py. Plain data, linked by the daemon and by the profiler's
 * module. */
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
  RL_ORIGIN_DEVICE,   /* attributes of the device, its links and its host */
  RL_ORIGIN_SAMPLING, /* PC samples, or counters sampled over time */
  RL_ORIGIN_SASS      /* counts by instruction */
} rl_metric_origin;

/* Whether a row has parts, the raw metrics "KEY:PART", and what ncu prints of them after the row's value. */
typedef enum rl_parts { RL_PARTS_NONE, RL_PARTS_VALUES, RL_PARTS_NAMES } rl_parts;

typedef struct rl_section_row {
  const char *table; /* "": the section's header */
  const char *name, *unit;
  const char *key;            /* ncu's name of the row's metric */
  const char *expression;     /* over raw metrics (analyze/expression.h) */
  const char *const *choices; /* texts for the values 0, 1, ..., NULL-terminated; NULL: the value is a number */
  const char *chips;          /* compute capabilities with its counters, "8.0 9.0"; NULL: all of rl_catalogue_chips */
  rl_parts parts;
} rl_section_row;

typedef struct rl_section {
  const char *id, *name, *summary; /* "SpeedOfLight", "GPU Speed Of Light Throughput" */
  const rl_section_row *rows;
  size_t row_count;
} rl_section;

/* The compute capabilities that `chips` can name. On any other one every row is tried. */
extern const char rl_catalogue_chips[];

/* At most 32: in a uint32_t bit i stands for rl_sections[i]. */
extern const rl_section rl_sections[];
extern const size_t rl_section_count;
extern const char *const rl_section_names[]; /* ids, NULL-terminated: names of an RL_FIELD_CHOICES */

typedef struct rl_section_set {
  const char *name; /* "basic" "detailed" "full" */
  uint32_t sections;
} rl_section_set;
extern const rl_section_set rl_section_sets[];
extern const size_t rl_section_set_count;
extern const char *const rl_section_set_names[]; /* NULL-terminated: names of an RL_FIELD_CHOICE */

typedef struct rl_raw_metric { /* one for each name that rows need, sorted by name (strcmp) */
  const char *name, *unit;
  rl_metric_origin origin;
  uint32_t sections; /* sections that need it */
} rl_raw_metric;
extern const rl_raw_metric rl_raw_metrics[];
extern const size_t rl_raw_metric_count;

#ifdef __cplusplus
}
#endif

#endif
