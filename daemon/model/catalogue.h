/* The metric catalogue: constant tables of the sections, rows and raw metrics of a report. A section consists of rows; a row's
 * value is an expression over raw metrics, which a worker collects. schema/catalogue.py generates the tables from
 * schema/metrics/. The daemon and the workers link them. */
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
  RL_ORIGIN_LAUNCH,   /* properties of the launch: grid, registers, limits of occupancy */
  RL_ORIGIN_DEVICE,   /* attributes of the device, of its NVLink and PCIe links, and of the host */
  RL_ORIGIN_SAMPLING, /* PC samples, or counters sampled over time */
  RL_ORIGIN_SASS,     /* counts of executed SASS instructions */
  RL_ORIGIN_NONE      /* no pass can collect it */
} rl_metric_origin;

/* A row can have parts: raw metrics named "KEY:PART", where KEY is the row's key. After the row's value, ncu prints nothing about
 * the parts (RL_PARTS_NONE), their values, or their names; api/report_csv.c prints the same. */
typedef enum rl_parts { RL_PARTS_NONE, RL_PARTS_VALUES, RL_PARTS_NAMES } rl_parts;

typedef struct rl_section_row {
  const char *table; /* title of the table in the section that contains the row; "": the header of the section */
  const char *name;
  const char *unit, *ncu_unit; /* of the value; as ncu prints it, which is wrong for some rows */
  const char *key;             /* name of the row's metric in ncu */
  const char *expression;      /* formula of the value over raw metrics, in the syntax of analyze/expression.h */
  /* NULL-terminated list of words; value i is shown as choices[i]. NULL: the value is shown as a number. */
  const char *const *choices;
  /* Compute capabilities of the GPUs that have the row's counters: "8.0 9.0". NULL: all of rl_catalogue_chips. */
  const char *chips;
  rl_parts parts;
  const char *note;       /* why the number can differ from ncu's; NULL: it does not */
  const char *empty_note; /* the same, if L2 was empty before the kernel (RL_L2_EMPTY) */
} rl_section_row;

typedef struct rl_section {
  const char *id, *name, *summary; /* "SpeedOfLight", "GPU Speed Of Light Throughput" */
  const rl_section_row *rows;
  size_t row_count;
} rl_section;

/* The compute capabilities that `chips` can name. On a GPU with another compute capability, the worker tries to collect every
 * row. */
extern const char rl_catalogue_chips[];

/* There are at most 32 sections, so that in a uint32_t bit i stands for rl_sections[i]. */
extern const rl_section rl_sections[];
extern const size_t rl_section_count;
extern const char *const rl_section_names[]; /* the sections' ids (not rl_section.name), NULL-terminated, for RL_FIELD_CHOICES */

typedef struct rl_section_set {
  const char *name; /* "basic" "detailed" "full" */
  uint32_t sections;
} rl_section_set;
extern const rl_section_set rl_section_sets[];
extern const size_t rl_section_set_count;
extern const char *const rl_section_set_names[]; /* NULL-terminated names, for RL_FIELD_CHOICE */

typedef struct rl_raw_metric { /* rl_raw_metrics is sorted by name (strcmp) */
  const char *name, *unit;
  rl_metric_origin origin;
  uint32_t sections;  /* bits of the sections that need the metric */
  const char *reason; /* why no pass can collect the metric (RL_ORIGIN_NONE); else NULL */
} rl_raw_metric;
extern const rl_raw_metric rl_raw_metrics[];
extern const size_t rl_raw_metric_count;

/* The rows whose value is not simply the metric that their key names, but is computed from other metrics; sorted by key (strcmp).
 * Of several rows with the same key, the table contains only the first. */
extern const rl_section_row *const rl_computed_rows[];
extern const size_t rl_computed_row_count;

/* Returns the element of rl_raw_metrics with this name, or NULL. */
const rl_raw_metric *rl_raw_metric_find(const char *name);
/* Returns whether only the raw page shows the metric: none of its sections has rows. */
bool rl_raw_metric_is_only_on_raw_page(const rl_raw_metric *metric);
/* Returns the same for the metric with this name; false if rl_raw_metrics does not contain the name. */
bool rl_is_only_on_raw_page(const char *name);
/* Returns the element of rl_computed_rows with this key, or NULL. */
const rl_section_row *rl_computed_row_find(const char *key);

#ifdef __cplusplus
}
#endif

#endif
