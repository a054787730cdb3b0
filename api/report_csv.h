/* Prints a run's report in the format of `ncu --csv`, so that programs for Nsight Compute's output can read it. */
#ifndef RL_API_REPORT_CSV_H
#define RL_API_REPORT_CSV_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "analyze/computed_metrics.h"
#include "api/report.h"
#include "model/catalogue.h"

/* Which rows of a section the details page contains, as with ncu's option --print-details: only the rows of the section's header,
 * only the rows of the tables below the header (body), or all rows. */
typedef enum rl_csv_row_filter { RL_CSV_ROWS_HEADER, RL_CSV_ROWS_BODY, RL_CSV_ROWS_ALL } rl_csv_row_filter;
extern const char *const rl_csv_row_filter_names[]; /* "header" "body" "all", NULL */

typedef struct rl_csv_kernel {
  const cJSON *run, *kernel_row; /* rows of the store's queries; kernel_row is NULL in lines that belong to the run only */
  const rl_report_view *view;
  const rl_metric_values *values;
} rl_csv_kernel;

/* Print the details page. It has one line for each metric of each section, in scaled units, and one line for each finding. */
void rl_csv_print_details_header(FILE *out, rl_csv_row_filter row_filter);
void rl_csv_print_details(FILE *out, const rl_csv_kernel *kernel, rl_csv_row_filter row_filter);

/* Prints the lines of findings that belong to the run, not to a kernel. The kernel's columns are empty. */
void rl_csv_print_run_findings(FILE *out, const cJSON *run, const rl_findings *findings, rl_csv_row_filter row_filter);

enum { RL_CSV_DIMENSIONS = 6 };
/* The raw page's metrics of the launch dimensions. */
extern const struct rl_csv_dimension {
  const char *name;
  const char *unit;              /* as ncu prints it: "block" for the dimensions of a block, "" for those of the grid */
  const char *dimensions_member; /* member of the kernel's row that has the three dimensions: "grid" or "block" */
  int axis;                      /* index into the three dimensions */
} rl_csv_dimensions[RL_CSV_DIMENSIONS];

typedef struct rl_csv_column {
  const char *name;                         /* name of the metric; the caller owns the text */
  const struct rl_csv_dimension *dimension; /* NULL: the metric is no dimension of the launch */
  const rl_section_row
      *choices_row; /* a section row with a word for each value of the metric; NULL: the column shows the number */
  bool is_computed;
  rl_computed_metric computed;
} rl_csv_column;

/* Returns the column of a metric: a collected one, one of analyze/computed_metrics.h, or one of rl_csv_dimensions. */
rl_csv_column rl_csv_column_make(const char *metric_name);
/* Print the raw page. It has one line for each kernel and one column for each metric, in unscaled units. The second line of the
 * page has the units. */
void rl_csv_print_raw_header(FILE *out, const rl_csv_column *columns, size_t count);
void rl_csv_print_raw(FILE *out, const rl_csv_kernel *kernel, const rl_csv_column *columns, size_t count);

#endif
