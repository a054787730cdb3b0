/* Pages in the shape of `ncu --csv`, so that what reads ncu's output reads these. */
#ifndef RL_API_REPORT_CSV_H
#define RL_API_REPORT_CSV_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "api/report.h"

/* Which rows of a section the details page has, as ncu's --print-details. */
typedef enum rl_details { RL_DETAILS_HEADER, RL_DETAILS_BODY, RL_DETAILS_ALL } rl_details;
extern const char *const rl_details_names[]; /* "header" "body" "all", NULL */

typedef struct rl_csv_kernel {
  const cJSON *run, *kernel; /* facts, as the store's queries give them */
  const rl_view *view;
  const rl_metric_values *values;
} rl_csv_kernel;

/* One line a metric, in scaled units, then the section's findings. */
void rl_csv_details_head(FILE *out, rl_details details);
void rl_csv_details(FILE *out, const rl_csv_kernel *kernel, rl_details details);

/* One line a kernel and one column a metric, in the metrics' own units, which are the second line. */
void rl_csv_raw_head(FILE *out, const char *const *names, size_t count);
void rl_csv_raw(FILE *out, const rl_csv_kernel *kernel, const char *const *names, size_t count);

#endif
