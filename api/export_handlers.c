/* The route that exports a run to another tool's format. */
#include <stdio.h>
#include <string.h>

#include "api/export/formats.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "api/run_trace.h"
#include "api/server_internal.h"
#include "base/json_members.h"

typedef struct export_query {
  int format;
  int64_t run; /* 0: the job's only run */
} export_query;

const rl_field rl_export_job_query[] = {
    RL_FIELD(export_query, format, RL_FIELD_CHOICE, .required = true, .names = rl_export_format_names,
             .summary = "Format of the file"),
    RL_FIELD(export_query, run, RL_FIELD_INT, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "The run to export; needed if several runs of the job can be exported, except for openmetrics"),
    {0}};

static void clear_target(rl_export_target *target) { cJSON_Delete(target->conditions); }

/* Which runs of the job the format can export. */
typedef struct exportable_runs {
  char reason[256]; /* why one of the runs can't be exported; "": every run can be */
  char runs[256];   /* ids of the runs that can be exported: "3, 4" */
  int count;
} exportable_runs;

static void add_exportable_run(exportable_runs *found, int64_t run) {
  size_t used = strlen(found->runs);
  snprintf(found->runs + used, sizeof found->runs - used, "%s%lld", used > 0 ? ", " : "", (long long)run);
  found->count++;
}

/* Returns 1 if the format can export the run; else writes why not to `reason` and returns 0. Returns -1 on failure. */
static int can_export(rl_store *store, const rl_export_format *format, int64_t run, char *reason, size_t size, rl_error *err) {
  rl_trace_state state;
  if (!format->needs_trace) return 1;
  if (rl_trace_state_read(store, run, &state, err) < 0) return -1;
  if (state.reason[0] == '\0') return 1;
  snprintf(reason, size, "Run %lld has no trace: %s.", (long long)run, state.reason);
  return 0;
}

/* Checks each run of the cursor. *target becomes the last run that can be exported. */
static int consider_runs(rl_store *store, const rl_export_format *format, rl_cursor *cursor, rl_export_target *target,
                         exportable_runs *found, rl_error *err) {
  const char *conditions;
  int rc;
  while ((rc = rl_cursor_next(cursor, &conditions, err)) > 0) {
    const int64_t run = rl_cursor_integer(cursor, 1);
    int exportable = can_export(store, format, run, found->reason, sizeof found->reason, err);
    if (exportable < 0) return -1;
    if (exportable == 0) continue;
    add_exportable_run(found, run);
    cJSON_Delete(target->conditions);
    target->run = run;
    target->conditions = cJSON_Parse(conditions);
  }
  return rc;
}

static int fail_without_run(rl_http_request *request, const exportable_runs *found, int64_t run, rl_error *err) {
  char message[320];
  if (found->count > 1) {
    snprintf(message, sizeof message, "must name one of the runs %s", found->runs);
    return rl_http_request_fail_parameter(request, err, "run", message);
  }
  if (found->reason[0] != '\0') return rl_fail(err, RL_HTTP, 404, "%s", found->reason);
  if (run > 0) return rl_fail(err, RL_HTTP, 404, "Job %lld has no run %lld.", (long long)request->id, (long long)run);
  return rl_fail(err, RL_HTTP, 404, "Job %lld has no runs.", (long long)request->id);
}

static int choose_run(rl_http_request *request, const rl_export_format *format, int64_t run, rl_export_target *target,
                      rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  exportable_runs found = {0};
  rl_store *store = request->server->store;
  rl_binding bindings[] = {RL_BIND_INTEGER(":job", request->id),
                           {":run", run > 0 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = run}};
  if (rl_store_query(store, RL_QUERY_EXPORT_RUNS, bindings, 2, &cursor, err) < 0) return -1;
  if (consider_runs(store, format, cursor, target, &found, err) < 0) return -1;
  if (found.count == 0 || (found.count > 1 && !format->exports_all_runs)) return fail_without_run(request, &found, run, err);
  if (format->exports_all_runs) target->run = run;
  return 0;
}

/* Adds the header Content-Disposition with the file name: job-1-run-2.pt.trace.json.gz. */
static void add_file_name(rl_http_request *request, const rl_export_format *format, const rl_export_target *target) {
  char header[128], run[32] = "";
  if (target->run > 0) snprintf(run, sizeof run, "-run-%lld", (long long)target->run);
  snprintf(header, sizeof header, "attachment; filename=\"job-%lld%s%s\"", (long long)target->job, run, format->suffix);
  rl_response_add_header(request->response, "Content-Disposition", header);
}

int rl_handle_export_job(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(clear_target) rl_export_target target = {.job = request->id};
  export_query query = {0};
  rl_job_state state;
  rl_chunk_source source;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  const rl_export_format *format = &rl_export_formats[query.format];
  if (rl_store_job_state(request->server->store, request->id, &state, err) < 0) return -1;
  if (choose_run(request, format, query.run, &target, err) < 0) return -1;
  if (format->open(request->server->store, &target, &source, err) < 0) return -1;
  source.renews_deadline = true;
  if (rl_reply_chunks(request, &source, format->media_type, err) < 0) return -1;
  add_file_name(request, format, &target);
  return 0;
}
