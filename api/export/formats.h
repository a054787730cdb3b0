/* The formats of GET /jobs/{id}/export. */
#ifndef RL_API_EXPORT_FORMATS_H
#define RL_API_EXPORT_FORMATS_H

#include <cjson/cJSON.h>

#include "api/chunked_reply.h"
#include "store/store.h"

typedef struct rl_export_target {
  int64_t job, run;  /* run 0: all runs of the job */
  cJSON *conditions; /* of the run (schema/sql/queries/export_runs.sql); NULL: all runs. open may take it */
} rl_export_target;

typedef struct rl_export_format {
  const char *media_type, *suffix; /* suffix: of the file's name */
  bool needs_trace;                /* the run must have the rows of its trace */
  bool exports_all_runs;           /* unless the request names one */
  int (*open)(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err);
} rl_export_format;

extern const char *const rl_export_format_names[]; /* "chrome" "perfetto" ..., NULL */
extern const rl_export_format rl_export_formats[]; /* in the order of the names */

/* openmetrics.c: the measurements of the target as OpenMetrics text. */
int rl_openmetrics_open(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err);
/* nsys.c: the trace of the target as an SQLite database with the tables of nsys's exporter. */
int rl_nsys_open(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err);

#endif
