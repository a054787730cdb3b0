/* A run's report in the format of `ncu --csv`, so that programs that read ncu's output read it. */
#ifndef RL_API_REPORT_CSV_H
#define RL_API_REPORT_CSV_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "api/report.h"

/* Which rows of a section the details page has, as ncu's --print-details: the header, the body's tables, or both. */
typedef enum rl_csv_details { RL_CSV_DETAILS_HEADER, RL_CSV_DETAILS_BODY, RL_CSV_DETAILS_ALL } rl_csv_details;
extern const char *const rl_csv_details_names[]; /* "header" "body" "all", NULL */

typedef struct rl_csv_kernel {
  const cJSON *run, *kernel; /* rows of the store's queries */
  const rl_report_view *view;
  const rl_metric_values *values;
} rl_csv_kernel;

/* The details page: one line for each metric, in scaled units, then one for each finding of the section. */
void rl_csv_print_details_header(FILE *out, rl_csv_details details);
void rl_csv_print_details(FILE *out, const rl_csv_kernel *kernel, rl_csv_details details);

/* The lines of a run's findings that belong to no kernel: the kernel's columns are empty. */
void rl_csv_print_run_findings(FILE *out, const cJSON *run, const rl_findings *findings, rl_csv_details details);

/* The raw page: one line for each kernel and one column for each metric, unscaled. Its second line has the units. */
void rl_csv_print_raw_header(FILE *out, const char *const *metric_names, size_t count);
void rl_csv_print_raw(FILE *out, const rl_csv_kernel *kernel, const char *const *metric_names, size_t count);

#endif
