/* The report of a run's kernels, the comparison of two runs, and the metric catalogue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/computed_metrics.h"
#include "api/comparison_explanation.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "api/report_csv.h"
#include "api/report_stream.h"
#include "api/server_internal.h"
#include "api/timeline_evidence.h"
#include "base/array.h"
#include "base/json_members.h"
#include "base/sorted_names.h"

typedef struct report_query {
  int64_t kernel; /* ordinal of the kernel; -1: all kernels */
  int format, page, print_details, detail;
} report_query;

typedef struct compare_query {
  int64_t a, b;
  int64_t kernel, kernel_b; /* ordinals of a kernel of run a and of run b; -1: any */
  int detail;
} compare_query;

enum { COLUMN_KERNEL, COLUMN_METRICS, COLUMN_SERIES, COLUMN_INSTRUCTIONS }; /* columns of RL_QUERY_REPORT_KERNELS */
enum { COLUMN_PAIR, COLUMN_METRICS_A, COLUMN_METRICS_B };                   /* columns of RL_QUERY_COMPARE_KERNELS */
enum { FORMAT_JSON, FORMAT_CSV };
enum { PAGE_DETAILS, PAGE_RAW };
enum { COMPARE_FULL, COMPARE_NAMES };
static const char *const compare_detail_names[] = {"full", "names", NULL};
enum { REPORT_FULL, REPORT_VERDICTS };
static const char *const report_detail_names[] = {"full", "verdicts", NULL};
static const char *const format_names[] = {"json", "csv", NULL};
static const char *const page_names[] = {"details", "raw", NULL};

const rl_field rl_get_run_report_query[] = {
    RL_FIELD(report_query, kernel, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Only the kernel with this ordinal"),
    RL_FIELD(report_query, format, RL_FIELD_CHOICE, .names = format_names,
             .summary = "csv: the format of ncu --csv; default json"),
    RL_FIELD(report_query, page, RL_FIELD_CHOICE, .names = page_names, .summary = "csv: the page of ncu; default details"),
    RL_FIELD(report_query, print_details, RL_FIELD_CHOICE, .names = rl_csv_row_filter_names,
             .summary = "csv: rows of the details page: the sections' headers, their tables (body), or all; default header"),
    RL_FIELD(report_query, detail, RL_FIELD_CHOICE, .names = report_detail_names,
             .summary = "json: verdicts: kernels without sections, series and instructions; default full"),
    {0}};
const rl_field rl_compare_runs_query[] = {
    RL_FIELD(compare_query, a, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "The baseline run"),
    RL_FIELD(compare_query, b, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "The candidate run"),
    RL_FIELD(compare_query, kernel, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Only the kernel of a with this ordinal, and the kernel of b that is paired with it"),
    RL_FIELD(compare_query, kernel_b, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary =
                 "Only the kernel of b with this ordinal; together with kernel: compares these two, even if their names differ"),
    RL_FIELD(compare_query, detail, RL_FIELD_CHOICE, .names = compare_detail_names,
             .summary = "names: only the pairs of kernels, without sections and findings; default full"),
    {0}};

/* Binds the ordinal; binds NULL, with which the queries return every kernel, if the ordinal is -1. */
static rl_binding ordinal_binding(const char *name, int64_t ordinal) {
  return (rl_binding){name, ordinal >= 0 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = ordinal};
}

/* Prints the object without its closing brace and appends `,"kernels":[`. The texts of the kernels and "]}" then complete the
 * document. Returns NULL if memory is exhausted. */
static char *print_head(const cJSON *object, rl_error *err) {
  char *text = cJSON_PrintUnformatted(object), *head = NULL;
  if (text != NULL && asprintf(&head, "%.*s,\"kernels\":[", (int)strlen(text) - 1, text) < 0) head = NULL;
  free(text);
  if (head == NULL) rl_fail(err, RL_ERRNO, 0, "out of memory for a report");
  return head;
}

static char *print_and_delete(cJSON *object, rl_error *err) {
  char *text = cJSON_PrintUnformatted(object);
  cJSON_Delete(object);
  if (text == NULL) rl_fail(err, RL_ERRNO, 0, "out of memory for a kernel's report");
  return text;
}

/* Returns why the kernels of a run have no sections. */
static const char *no_counters_reason(const rl_report_run *run) {
  const char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run->row, "counters_reason"));
  return reason != NULL ? reason : "the counters pass did not profile this kernel";
}

/* Adds the sections of a kernel; or null and the reason, if no counters were collected for the kernel or the client wants
 * verdicts alone. */
static void add_sections(cJSON *kernel, const rl_report_stream *stream, const rl_kernel_metrics *metrics) {
  const char *reason = stream->only_verdicts                     ? "the request asks for verdicts alone"
                       : cJSON_GetArraySize(metrics->kernel) > 0 ? NULL
                                                                 : no_counters_reason(&stream->a);
  cJSON_AddItemToObject(kernel, "sections",
                        reason == NULL ? rl_report_sections(&stream->a.view, &metrics->values) : cJSON_CreateNull());
  cJSON_AddItemToObject(kernel, "reason", reason != NULL ? cJSON_CreateString(reason) : cJSON_CreateNull());
}

static char *render_json(rl_report_stream *stream, const char *const columns[RL_REPORT_COLUMNS], rl_error *err) {
  RL_CLEANUP(rl_kernel_metrics_clear) rl_kernel_metrics metrics = {0};
  if (rl_kernel_metrics_parse(columns[COLUMN_METRICS], stream->a.metrics_json, &metrics, err) < 0) return NULL;
  cJSON *kernel = cJSON_Parse(columns[COLUMN_KERNEL]);
  add_sections(kernel, stream, &metrics);
  cJSON *library = rl_report_library(stream->a.row, kernel, &metrics.values);
  cJSON_AddItemToObject(kernel, "verdict", rl_report_verdict(&metrics.values, cJSON_IsObject(library)));
  cJSON_AddItemToObject(kernel, "library", library);
  const char *instructions_json = columns[COLUMN_INSTRUCTIONS];
  cJSON *instructions = instructions_json ? cJSON_Parse(instructions_json) : NULL;
  cJSON_AddItemToObject(kernel, "findings", rl_report_findings(&metrics.values, instructions, cJSON_IsObject(library)));
  cJSON_Delete(instructions);
  cJSON_AddItemToObject(kernel, "roofline", rl_report_roofline(&metrics.values));
  cJSON_AddRawToObject(kernel, "series", stream->only_verdicts ? "[]" : columns[COLUMN_SERIES]);
  cJSON_AddRawToObject(kernel, "instructions", stream->only_verdicts ? "[]" : columns[COLUMN_INSTRUCTIONS]);
  return print_and_delete(kernel, err);
}

/* Closes a memory stream, which may be NULL, and returns its text; NULL if memory is exhausted. */
static char *close_memstream(FILE *out, char **text, rl_error *err) {
  if (out != NULL && fclose(out) == 0) return *text;
  free(*text);
  rl_fail(err, RL_ERRNO, 0, "out of memory for a report");
  return NULL;
}

/* Returns the CSV lines that `write` prints for a kernel. */
static char *render_csv(rl_report_stream *stream, const char *const columns[RL_REPORT_COLUMNS],
                        void (*write)(FILE *, const rl_report_stream *, const rl_csv_kernel *), rl_error *err) {
  RL_CLEANUP(rl_kernel_metrics_clear) rl_kernel_metrics metrics = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *kernel = cJSON_Parse(columns[COLUMN_KERNEL]);
  char *text = NULL;
  size_t size;
  if (rl_kernel_metrics_parse(columns[COLUMN_METRICS], stream->a.metrics_json, &metrics, err) < 0) return NULL;
  FILE *out = open_memstream(&text, &size);
  if (out != NULL) write(out, stream, &(rl_csv_kernel){stream->a.row, kernel, &stream->a.view, &metrics.values});
  return close_memstream(out, &text, err);
}

static void write_details(FILE *out, const rl_report_stream *stream, const rl_csv_kernel *kernel) {
  rl_csv_print_details(out, kernel, stream->row_filter);
}

static void write_raw(FILE *out, const rl_report_stream *stream, const rl_csv_kernel *kernel) {
  rl_csv_print_raw(out, kernel, stream->raw_columns, stream->metric_count);
}

static char *render_details(rl_report_stream *stream, const char *const columns[RL_REPORT_COLUMNS], rl_error *err) {
  return render_csv(stream, columns, write_details, err);
}

static char *render_raw(rl_report_stream *stream, const char *const columns[RL_REPORT_COLUMNS], rl_error *err) {
  return render_csv(stream, columns, write_raw, err);
}

static int add_metric_name(rl_report_stream *stream, size_t *capacity, const char *name, rl_error *err) {
  if (rl_array_reserve(&stream->metric_names, stream->metric_count, capacity, sizeof name, err) < 0) return -1;
  char *copy = strdup(name);
  if (copy == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a report");
  stream->metric_names[stream->metric_count++] = copy;
  return 0;
}

/* The arguments of add_metric_name that add_computed_name gets through a callback. */
typedef struct name_destination {
  rl_report_stream *stream;
  size_t *capacity;
  rl_error *err;
} name_destination;

static int add_computed_name(void *context, const char *name) {
  const name_destination *destination = context;
  return add_metric_name(destination->stream, destination->capacity, name, destination->err);
}

/* Adds the names of the metrics that can be computed from the collected metrics, and the names of the launch's dimensions. */
static int add_computed_names(rl_report_stream *stream, size_t *capacity, rl_error *err) {
  const size_t collected = stream->metric_count;
  name_destination destination = {stream, capacity, err};
  if (collected == 0) return 0;
  const char **names = malloc(collected * sizeof *names); /* the stream's array moves while it grows */
  if (names == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a report");
  memcpy(names, stream->metric_names, collected * sizeof *names);
  int rc = rl_computed_metrics_list(names, collected, add_computed_name, &destination);
  for (int i = 0; i < RL_CSV_DIMENSIONS && rc == 0; i++) {
    const char *name = rl_csv_dimensions[i].name;
    if (!rl_names_contain(names, collected, name)) rc = add_computed_name(&destination, name);
  }
  free(names);
  rl_names_sort(stream->metric_names, stream->metric_count);
  return rc;
}

static int make_raw_columns(rl_report_stream *stream, rl_error *err) {
  stream->raw_columns = calloc(stream->metric_count + 1, sizeof *stream->raw_columns);
  if (stream->raw_columns == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a report");
  for (size_t i = 0; i < stream->metric_count; i++) stream->raw_columns[i] = rl_csv_column_make(stream->metric_names[i]);
  return 0;
}

/* Determines the columns of the raw page: all metrics that were collected for at least one kernel, the metrics that are computed
 * from them, and the launch's dimensions. */
static int read_raw_columns(rl_store *store, const rl_binding bindings[2], rl_report_stream *stream, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *json;
  size_t capacity = 0;
  int found;
  if (rl_store_query(store, RL_QUERY_REPORT_METRICS, bindings, 2, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &json, err)) > 0)
    if (add_metric_name(stream, &capacity, rl_cursor_text(cursor, 1), err) < 0) return -1;
  if (found < 0 || add_computed_names(stream, &capacity, err) < 0) return -1;
  return make_raw_columns(stream, err);
}

static char *render_csv_head(const rl_report_stream *stream, int page, rl_error *err) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out != NULL && page == PAGE_RAW) rl_csv_print_raw_header(out, stream->raw_columns, stream->metric_count);
  else if (out != NULL) rl_csv_print_details_header(out, stream->row_filter);
  return close_memstream(out, &text, err);
}

/* Returns a row that stands for a kernel with the workload's name. The report of a run without kernels consists of this row. */
static char *make_substitute_row(const rl_report_run *run, rl_error *err) {
  static const char *const unknown[] = {"launch", "phase", "pass", "grid", "block", "code_sha256", NULL};
  const char *workload = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run->row, "workload"));
  cJSON *kernel = cJSON_CreateObject();
  cJSON_AddNumberToObject(kernel, "ordinal", 0);
  cJSON_AddStringToObject(kernel, "name", workload ? workload : "");
  rl_json_add_nulls(kernel, unknown);
  return print_and_delete(kernel, err);
}

/* Reads the timeline of the report's run. If the trace is too large, sets the reason in timeline->trace.state and returns 0. */
static int read_timeline(rl_http_request *request, rl_run_timeline *timeline, rl_error *err) {
  rl_error failed = {0};
  if (rl_run_timeline_read(request, request->id, timeline, &failed) == 0) return 0;
  if (failed.domain != RL_HTTP || failed.code != 422) {
    *err = failed;
    return -1;
  }
  snprintf(timeline->trace.state.reason, sizeof timeline->trace.state.reason, "%s", failed.message);
  return 0;
}

/* Adds the findings of the run's timeline; null if the report covers a single kernel. */
static int add_timeline(rl_http_request *request, const report_query *query, cJSON *run, rl_error *err) {
  RL_CLEANUP(rl_run_timeline_clear) rl_run_timeline timeline = {0};
  if (query->kernel >= 0) {
    cJSON_AddNullToObject(run, "timeline");
    return 0;
  }
  if (read_timeline(request, &timeline, err) < 0) return -1;
  bool has_trace = timeline.trace.state.reason[0] == '\0';
  cJSON *object = cJSON_AddObjectToObject(run, "timeline");
  rl_json_add_text(object, "reason", timeline.trace.state.reason);
  rl_json_add_text(object, "incomplete_reason", timeline.trace.events.incomplete_reason);
  cJSON_AddItemToObject(object, "findings", has_trace ? rl_timeline_findings_json(&timeline) : cJSON_CreateNull());
  return 0;
}

static int prepare_json(rl_report_stream *stream, const report_query *query, rl_error *err) {
  stream->separator = ",";
  stream->tail = "]}";
  stream->render = render_json;
  stream->only_verdicts = query->detail == REPORT_VERDICTS;
  if (query->kernel <= 0 && (stream->substitute_row = make_substitute_row(&stream->a, err)) == NULL) return -1;
  stream->head = print_head(stream->a.row, err);
  return stream->head != NULL ? 0 : -1;
}

/* Sets the stream's tail to the lines of the timeline's findings, which then follow the lines of all kernels. */
static int prepare_timeline_lines(rl_http_request *request, rl_report_stream *stream, rl_error *err) {
  RL_CLEANUP(rl_run_timeline_clear) rl_run_timeline timeline = {0};
  char *text = NULL;
  size_t size;
  if (read_timeline(request, &timeline, err) < 0) return -1;
  rl_findings findings = rl_run_timeline_findings(&timeline);
  FILE *out = open_memstream(&text, &size);
  if (out != NULL) rl_csv_print_run_findings(out, stream->a.row, &findings, stream->row_filter);
  free(findings.items);
  stream->tail = stream->own_tail = close_memstream(out, &text, err);
  return stream->tail != NULL ? 0 : -1;
}

static int prepare_csv(rl_store *store, const rl_binding bindings[2], rl_report_stream *stream, const report_query *query,
                       rl_error *err) {
  stream->separator = stream->tail = "";
  stream->render = query->page == PAGE_RAW ? render_raw : render_details;
  stream->row_filter = (rl_csv_row_filter)query->print_details;
  if (query->page == PAGE_RAW && read_raw_columns(store, bindings, stream, err) < 0) return -1;
  stream->head = render_csv_head(stream, query->page, err);
  return stream->head != NULL ? 0 : -1;
}

int rl_report_raw_csv_open(rl_store *store, int64_t run, rl_chunk_source *source, rl_error *err) {
  const report_query query = {.kernel = -1, .page = PAGE_RAW};
  rl_binding bindings[] = {{":run", RL_SQL_INTEGER, .integer = run},
                           ordinal_binding(":kernel", -1),
                           {":with_series_and_instructions", RL_SQL_INTEGER}};
  RL_CLEANUP(rl_report_stream_cleanup) rl_report_stream *stream = rl_report_stream_new(err);
  if (stream == NULL || rl_report_run_read(store, run, &stream->a, err) < 0 ||
      prepare_csv(store, bindings, stream, &query, err) < 0 ||
      rl_store_query(store, RL_QUERY_REPORT_KERNELS, bindings, 3, &stream->cursor, err) < 0)
    return -1;
  *source = rl_report_stream_source(rl_take_ownership(&stream));
  return 0;
}

/* Returns true for a report of all kernels, and for CSV. */
bool rl_run_report_is_heavy(const rl_http_request *request) {
  const char *format = rl_http_request_parameter(request, "format");
  return rl_http_request_parameter(request, "kernel") == NULL ||
         (format != NULL && strcmp(format, format_names[FORMAT_CSV]) == 0);
}

int rl_handle_get_run_report(rl_http_request *request, rl_error *err) {
  report_query query = {.kernel = -1};
  rl_store *store = request->server->store;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  bool csv = query.format == FORMAT_CSV;
  rl_binding bindings[] = {{":run", RL_SQL_INTEGER, .integer = request->id},
                           ordinal_binding(":kernel", query.kernel),
                           {":with_series_and_instructions", RL_SQL_INTEGER, .integer = !csv}};
  RL_CLEANUP(rl_report_stream_cleanup) rl_report_stream *stream = rl_report_stream_new(err);
  if (stream == NULL || rl_report_run_read(store, request->id, &stream->a, err) < 0) return -1;
  if (!csv && add_timeline(request, &query, stream->a.row, err) < 0) return -1;
  int rc = csv ? prepare_csv(store, bindings, stream, &query, err) : prepare_json(stream, &query, err);
  bool has_timeline_lines = csv && query.page == PAGE_DETAILS && query.kernel < 0;
  if (rc < 0 || (has_timeline_lines && prepare_timeline_lines(request, stream, err) < 0)) return -1;
  if (rl_store_query(store, RL_QUERY_REPORT_KERNELS, bindings, 3, &stream->cursor, err) < 0) return -1;
  return rl_report_stream_reply(request, &stream, csv ? "text/csv" : "application/json", err);
}

static char *render_pair(rl_report_stream *stream, const char *const columns[RL_REPORT_COLUMNS], rl_error *err) {
  RL_CLEANUP(rl_kernel_metrics_clear) rl_kernel_metrics a = {0}, b = {0};
  if (rl_kernel_metrics_parse(columns[COLUMN_METRICS_A], stream->a.metrics_json, &a, err) < 0) return NULL;
  if (rl_kernel_metrics_parse(columns[COLUMN_METRICS_B], stream->b.metrics_json, &b, err) < 0) return NULL;
  cJSON *pair = cJSON_Parse(columns[COLUMN_PAIR]);
  cJSON *sections = rl_report_differences(&stream->a.view, &a.values, &stream->b.view, &b.values);
  cJSON_AddItemToObject(pair, "sections", sections);
  const cJSON *kernel_a = cJSON_GetObjectItemCaseSensitive(pair, "a"), *kernel_b = cJSON_GetObjectItemCaseSensitive(pair, "b");
  bool a_of_library = rl_report_library_name(stream->a.row, kernel_a) != NULL;
  bool b_of_library = rl_report_library_name(stream->b.row, kernel_b) != NULL;
  cJSON_AddItemToObject(pair, "findings", rl_report_finding_changes(&a.values, a_of_library, &b.values, b_of_library));
  return print_and_delete(pair, err);
}

static char *render_pair_names(rl_report_stream *stream, const char *const columns[RL_REPORT_COLUMNS], rl_error *err) {
  cJSON *pair = cJSON_Parse(columns[COLUMN_PAIR]);
  (void)stream;
  cJSON_AddNullToObject(pair, "sections");
  cJSON_AddNullToObject(pair, "findings");
  return print_and_delete(pair, err);
}

/* Reads a run, and checks that its counters pass has the kernel with this ordinal (-1: no check). Fails with RL_HTTP 404 if the
 * run or the kernel is missing. */
static int read_compared_run(rl_store *store, int64_t id, int64_t kernel, rl_report_run *run, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding bindings[] = {{":run", RL_SQL_INTEGER, .integer = id}, ordinal_binding(":kernel", kernel)};
  const char *name;
  if (rl_report_run_read(store, id, run, err) < 0) return -1;
  if (kernel < 0) return 0;
  if (rl_store_query(store, RL_QUERY_KERNEL_WITH_COUNTERS, bindings, 2, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &name, err);
  if (found != 0) return found < 0 ? -1 : 0;
  return rl_fail(err, RL_HTTP, 404, "The counters pass of run %lld has no kernel %lld.", (long long)id, (long long)kernel);
}

/* Sets *comparison to the comparison of the two runs without its explanation; NULL: the runs have different workloads. */
static int read_comparison(rl_store *store, const compare_query *query, cJSON **comparison, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding bindings[] = {{":a", RL_SQL_INTEGER, .integer = query->a}, {":b", RL_SQL_INTEGER, .integer = query->b}};
  const char *json;
  if (rl_store_query(store, RL_QUERY_COMPARISON, bindings, 2, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &json, err);
  *comparison = found > 0 ? cJSON_Parse(json) : NULL;
  return found < 0 ? -1 : 0;
}

/* Adds "comparison", an item of /jobs/{id}/comparison for the two runs, or null with "comparison_reason". */
static int add_comparison(rl_store *store, const compare_query *query, cJSON *document, rl_error *err) {
  RL_CLEANUP(rl_json_cleanup) cJSON *comparison = NULL;
  if (read_comparison(store, query, &comparison, err) < 0) return -1;
  if (comparison != NULL && rl_comparison_add_explanation(store, comparison, err) < 0) return -1;
  rl_json_add_text(document, "comparison_reason", comparison != NULL ? NULL : "the runs are of different workloads");
  cJSON_AddItemToObject(document, "comparison", comparison != NULL ? rl_take_ownership(&comparison) : cJSON_CreateNull());
  return 0;
}

static int prepare_comparison(rl_store *store, const compare_query *query, rl_report_stream *stream, rl_error *err) {
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  cJSON_AddItemToObject(document, "a", cJSON_Duplicate(stream->a.row, true));
  cJSON_AddItemToObject(document, "b", cJSON_Duplicate(stream->b.row, true));
  if (add_comparison(store, query, document, err) < 0) return -1;
  stream->separator = ",";
  stream->tail = "]}";
  stream->render = query->detail == COMPARE_FULL ? render_pair : render_pair_names;
  stream->head = print_head(document, err);
  return stream->head != NULL ? 0 : -1;
}

/* Returns true for a comparison with the sections and findings of all kernels. */
bool rl_runs_comparison_is_heavy(const rl_http_request *request) {
  const char *detail = rl_http_request_parameter(request, "detail");
  bool names_only = detail != NULL && strcmp(detail, compare_detail_names[COMPARE_NAMES]) == 0;
  return !names_only && rl_http_request_parameter(request, "kernel") == NULL;
}

int rl_handle_compare_runs(rl_http_request *request, rl_error *err) {
  compare_query query = {.kernel = -1, .kernel_b = -1};
  rl_store *store = request->server->store;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  rl_binding bindings[] = {{":a", RL_SQL_INTEGER, .integer = query.a},
                           {":b", RL_SQL_INTEGER, .integer = query.b},
                           ordinal_binding(":kernel_a", query.kernel),
                           ordinal_binding(":kernel_b", query.kernel_b),
                           {":numbers", RL_SQL_INTEGER, .integer = query.detail == COMPARE_FULL}};
  RL_CLEANUP(rl_report_stream_cleanup) rl_report_stream *stream = rl_report_stream_new(err);
  if (stream == NULL || read_compared_run(store, query.a, query.kernel, &stream->a, err) < 0) return -1;
  if (read_compared_run(store, query.b, query.kernel_b, &stream->b, err) < 0) return -1;
  if (prepare_comparison(store, &query, stream, err) < 0) return -1;
  if (rl_store_query(store, RL_QUERY_COMPARE_KERNELS, bindings, 5, &stream->cursor, err) < 0) return -1;
  return rl_report_stream_reply(request, &stream, "application/json", err);
}

int rl_handle_list_report_sections(rl_http_request *request, rl_error *err) {
  cJSON *document = cJSON_CreateObject(), *items = cJSON_AddArrayToObject(document, "items");
  for (size_t i = 0; i < rl_section_count; i++) cJSON_AddItemToArray(items, rl_report_catalogue(i));
  return rl_reply_json(request, 200, document, err);
}
