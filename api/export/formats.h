/* The formats of GET /jobs/{id}/export. export_handlers.c chooses a format and sends the bytes of its chunk source. */
#ifndef RL_API_EXPORT_FORMATS_H
#define RL_API_EXPORT_FORMATS_H

#include <cjson/cJSON.h>

#include "api/chunked_reply.h"
#include "store/store.h"

typedef struct rl_export_target {
  int64_t job, run;  /* run 0: all runs of the job */
  cJSON *conditions; /* row of export_runs.sql for the run; NULL: all runs. An open function may take ownership and set this to
                        NULL */
} rl_export_target;

typedef struct rl_export_format {
  const char *media_type, *suffix; /* suffix: end of the exported file's name */
  bool needs_trace;                /* the run must have the rows of a trace */
  bool exports_all_runs;           /* exports all runs of the job unless the request names one */
  int (*open)(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err);
} rl_export_format;

extern const char *const rl_export_format_names[]; /* "chrome" "perfetto" ..., NULL */
extern const rl_export_format rl_export_formats[]; /* sorted like rl_export_format_names */

/* Opens a source of the measurements of the target's runs as OpenMetrics text. Defined in openmetrics.c. */
int rl_openmetrics_open(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err);
/* Opens a source of the run's trace as an SQLite database with the tables of `nsys export`. Defined in nsys.c. */
int rl_nsys_open(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err);

#endif
