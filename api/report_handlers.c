/* Reports of the kernels of a run, two runs side by side, and the catalogue of both. An answer is made a kernel at a time. */
#include <stdio.h>
#include <string.h>

#include "api/assembly.h"
#include "api/report_csv.h"

#define LATEST 9007199254740992.0 /* 2^53 */

typedef struct report_query {
  int64_t kernel; /* -1: all */
  int format, page, print_details;
} report_query;

typedef struct compare_query {
  int64_t a, b;
  int64_t kernel, kernel_b; /* of a and of b; -1: any */
  int detail;
} compare_query;

enum { FORMAT_JSON, FORMAT_CSV };
enum { PAGE_DETAILS, PAGE_RAW };
enum { DETAIL_FULL, DETAIL_NAMES };
static const char *const details[] = {"full", "names", NULL};
static const char *const formats[] = {"json", "csv", NULL};
static const char *const pages[] = {"details", "raw", NULL};

const rl_field rl_report_query[] = {
    RL_FIELD(report_query, kernel, RL_FIELD_INT, .minimum = 0, .maximum = LATEST, .summary = "Only the kernel of this ordinal"),
    RL_FIELD(report_query, format, RL_FIELD_CHOICE, .names = formats, .summary = "csv: in the shape of ncu --csv; default json"),
    RL_FIELD(report_query, page, RL_FIELD_CHOICE, .names = pages, .summary = "Which of ncu's pages; default details"),
    RL_FIELD(report_query, print_details, RL_FIELD_CHOICE, .names = rl_details_names,
             .summary = "Which rows the details page has: the sections' headers, their tables, or all; default header"),
    {0}};
const rl_field rl_compare_query[] = {
    RL_FIELD(compare_query, a, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = LATEST,
             .summary = "The run to compare with"),
    RL_FIELD(compare_query, b, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = LATEST,
             .summary = "The run that is compared"),
    RL_FIELD(compare_query, kernel, RL_FIELD_INT, .minimum = 0, .maximum = LATEST,
             .summary = "Only the kernel of this ordinal in a, beside the one that belongs to it in b"),
    RL_FIELD(compare_query, kernel_b, RL_FIELD_INT, .minimum = 0, .maximum = LATEST,
             .summary = "Only the kernel of this ordinal in b; with kernel these two, whatever they are called"),
    RL_FIELD(compare_query, detail, RL_FIELD_CHOICE, .names = details,
             .summary = "names: which kernels belong together, without sections and findings; default full"),
    {0}};

/* An ordinal of a query, -1 for any. */
static rl_binding ordinal_binding(const char *name, int64_t ordinal) {
  return (rl_binding){name, ordinal >= 0 ? RL_BIND_INT : RL_BIND_NULL, .integer = ordinal};
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

/* {...} with "kernels" begun behind its last member. NULL when memory is out. */
static char *begin_kernels(const cJSON *object, rl_error *err) {
  char *text = cJSON_PrintUnformatted(object), *head = NULL;
  if (text != NULL && asprintf(&head, "%.*s,\"kernels\":[", (int)strlen(text) - 1, text) < 0) head = NULL;
  free(text);
  if (head == NULL) rl_fail(err, RL_SYS, 0, "out of memory for a report");
  return head;
}

static char *printed(cJSON *object, rl_error *err) {
  char *text = cJSON_PrintUnformatted(object);
  cJSON_Delete(object);
  if (text == NULL) rl_fail(err, RL_SYS, 0, "out of memory for a kernel's report");
  return text;
}

/* Why a kernel of the run has no sections. */
static const char *why_not_counted(const rl_report_run *run) {
  const char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run->facts, "counters_reason"));
  return reason != NULL ? reason : "the counters pass did not count this kernel";
}

static char *render_json(rl_assembly *all, const char *const columns[RL_ASSEMBLY_COLUMNS], rl_error *err) {
  rl_auto(rl_numbers_clear) rl_numbers numbers = {0};
  if (rl_numbers_read(columns[1], all->a.numbers, &numbers, err) < 0) return NULL;
  cJSON *kernel = cJSON_Parse(columns[0]);
  bool looked_at = cJSON_GetArraySize(numbers.kernel) > 0;
  cJSON_AddItemToObject(kernel, "sections", looked_at ? rl_report_sections(&all->a.view, &numbers.values) : cJSON_CreateNull());
  cJSON_AddItemToObject(kernel, "reason", looked_at ? cJSON_CreateNull() : cJSON_CreateString(why_not_counted(&all->a)));
  cJSON_AddItemToObject(kernel, "findings", rl_report_verdicts(&numbers.values));
  cJSON_AddItemToObject(kernel, "roofline", rl_report_roofline(&numbers.values));
  cJSON_AddRawToObject(kernel, "series", columns[2]);
  cJSON_AddRawToObject(kernel, "instructions", columns[3]);
  return printed(kernel, err);
}

/* --- CSV --------------------------------------------------------------------------------------------------------------- */

/* Lines of CSV, written by `write`. */
static char *render_csv(rl_assembly *all, const char *const columns[RL_ASSEMBLY_COLUMNS],
                        void (*write)(FILE *, const rl_assembly *, const rl_csv_kernel *), rl_error *err) {
  rl_auto(rl_numbers_clear) rl_numbers numbers = {0};
  rl_auto(rl_json_cleanup) cJSON *kernel = cJSON_Parse(columns[0]);
  char *text = NULL;
  size_t size;
  if (rl_numbers_read(columns[1], all->a.numbers, &numbers, err) < 0) return NULL;
  FILE *out = open_memstream(&text, &size);
  if (out != NULL) write(out, all, &(rl_csv_kernel){all->a.facts, kernel, &all->a.view, &numbers.values});
  if (out == NULL || fclose(out) != 0) rl_fail(err, RL_SYS, 0, "out of memory for a kernel's report");
  return text;
}

static void write_details(FILE *out, const rl_assembly *all, const rl_csv_kernel *kernel) {
  rl_csv_details(out, kernel, (rl_details)all->details);
}

static void write_raw(FILE *out, const rl_assembly *all, const rl_csv_kernel *kernel) {
  rl_csv_raw(out, kernel, (const char *const *)all->names, all->name_count);
}

static char *render_details(rl_assembly *all, const char *const columns[RL_ASSEMBLY_COLUMNS], rl_error *err) {
  return render_csv(all, columns, write_details, err);
}

static char *render_raw(rl_assembly *all, const char *const columns[RL_ASSEMBLY_COLUMNS], rl_error *err) {
  return render_csv(all, columns, write_raw, err);
}

/* The columns of the raw page: all that was counted of any of the kernels. */
static int read_names(rl_store *store, const rl_binding bindings[2], rl_assembly *all, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *json;
  size_t capacity = 0;
  int rc;
  if (rl_store_query(store, RL_QUERY_REPORT_METRICS, bindings, 2, &cursor, err) < 0) return -1;
  while ((rc = rl_cursor_next(cursor, &json, err)) > 0) {
    if (all->name_count == capacity) {
      char **grown = realloc(all->names, (capacity = 2 * capacity + 256) * sizeof *grown);
      if (grown == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for a report");
      all->names = grown;
    }
    if ((all->names[all->name_count] = strdup(rl_cursor_text(cursor, 1))) == NULL)
      return rl_fail(err, RL_SYS, 0, "out of memory for a report");
    all->name_count++;
  }
  return rc;
}

static char *csv_head(const rl_assembly *all, int page, rl_error *err) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out != NULL && page == PAGE_RAW) rl_csv_raw_head(out, (const char *const *)all->names, all->name_count);
  else if (out != NULL) rl_csv_details_head(out, (rl_details)all->details);
  if (out == NULL || fclose(out) != 0) rl_fail(err, RL_SYS, 0, "out of memory for a report");
  return text;
}

/* Where no pass saw a kernel the run's workload stands for its one kernel. NULL when memory is out. */
static char *standin_of(const rl_report_run *run, rl_error *err) {
  cJSON *kernel = cJSON_CreateObject();
  const char *workload = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run->facts, "workload"));
  cJSON_AddNumberToObject(kernel, "ordinal", 0);
  cJSON_AddStringToObject(kernel, "name", workload ? workload : "");
  static const char *const unknown[] = {"launch", "phase", "pass", "grid", "block", "code_sha256"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) cJSON_AddNullToObject(kernel, unknown[i]);
  return printed(kernel, err);
}

static int prepare_json(rl_assembly *all, bool may_stand_in, rl_error *err) {
  all->separator = ",";
  all->tail = "]}";
  all->render = render_json;
  if (may_stand_in && (all->standin = standin_of(&all->a, err)) == NULL) return -1;
  return (all->head = begin_kernels(all->a.facts, err)) != NULL ? 0 : -1;
}

static int prepare_csv(rl_assembly *all, const report_query *query, rl_error *err) {
  all->separator = all->tail = "";
  all->render = query->page == PAGE_RAW ? render_raw : render_details;
  all->details = query->print_details;
  return (all->head = csv_head(all, query->page, err)) != NULL ? 0 : -1;
}

int rl_handle_report(rl_call *call, rl_error *err) {
  report_query query = {.kernel = -1};
  rl_store *store = call->server->store;
  if (rl_call_query(call, &query, sizeof query, err) < 0) return -1;
  bool csv = query.format == FORMAT_CSV;
  rl_binding bindings[] = {{":run", RL_BIND_INT, .integer = call->id},
                           ordinal_binding(":kernel", query.kernel),
                           {":inside", RL_BIND_INT, .integer = !csv}};
  rl_auto(rl_assembly_cleanup) rl_assembly *all = rl_assembly_new(err);
  if (all == NULL || rl_report_run_read(store, call->id, &all->a, err) < 0) return -1;
  if (csv && query.page == PAGE_RAW && read_names(store, bindings, all, err) < 0) return -1;
  if ((csv ? prepare_csv(all, &query, err) : prepare_json(all, query.kernel <= 0, err)) < 0) return -1;
  if (rl_store_query(store, RL_QUERY_REPORT_KERNELS, bindings, 3, &all->cursor, err) < 0) return -1;
  return rl_assembly_reply(call, &all, csv ? "text/csv" : "application/json", err);
}

/* --- two runs ---------------------------------------------------------------------------------------------------------- */

static char *render_pair(rl_assembly *all, const char *const columns[RL_ASSEMBLY_COLUMNS], rl_error *err) {
  rl_auto(rl_numbers_clear) rl_numbers a = {0}, b = {0};
  if (rl_numbers_read(columns[1], all->a.numbers, &a, err) < 0) return NULL;
  if (rl_numbers_read(columns[2], all->b.numbers, &b, err) < 0) return NULL;
  cJSON *pair = cJSON_Parse(columns[0]);
  cJSON_AddItemToObject(pair, "sections", rl_report_differences(&all->a.view, &a.values, &all->b.view, &b.values));
  cJSON_AddItemToObject(pair, "findings", rl_report_verdict_changes(&a.values, &b.values));
  return printed(pair, err);
}

static char *render_pair_names(rl_assembly *all, const char *const columns[RL_ASSEMBLY_COLUMNS], rl_error *err) {
  cJSON *pair = cJSON_Parse(columns[0]);
  (void)all;
  cJSON_AddNullToObject(pair, "sections");
  cJSON_AddNullToObject(pair, "findings");
  return printed(pair, err);
}

/* A run, and the kernel of it that was asked for: RL_HTTP 404 when there is no such. */
static int read_side(rl_store *store, int64_t id, int64_t kernel, rl_report_run *run, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding bindings[] = {{":run", RL_BIND_INT, .integer = id}, ordinal_binding(":kernel", kernel)};
  const char *name;
  if (rl_report_run_read(store, id, run, err) < 0) return -1;
  if (kernel < 0) return 0;
  if (rl_store_query(store, RL_QUERY_COUNTED_KERNEL, bindings, 2, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &name, err);
  if (found != 0) return found < 0 ? -1 : 0;
  return rl_fail(err, RL_HTTP, 404, "The counters pass of run %lld has no kernel %lld.", (long long)id, (long long)kernel);
}

/* The numbers of two runs as /jobs/{id}/comparison has those of one job, or null and why. */
static int add_comparison(rl_store *store, const compare_query *query, cJSON *document, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding bindings[] = {{":a", RL_BIND_INT, .integer = query->a}, {":b", RL_BIND_INT, .integer = query->b}};
  const char *json;
  if (rl_store_query(store, RL_QUERY_COMPARISON, bindings, 2, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &json, err);
  if (found < 0) return -1;
  cJSON_AddRawToObject(document, "comparison", found > 0 ? json : "null");
  if (found > 0) cJSON_AddNullToObject(document, "comparison_reason");
  else cJSON_AddStringToObject(document, "comparison_reason", "the runs are of different workloads");
  return 0;
}

int rl_handle_compare(rl_call *call, rl_error *err) {
  compare_query query = {.kernel = -1, .kernel_b = -1};
  rl_store *store = call->server->store;
  if (rl_call_query(call, &query, sizeof query, err) < 0) return -1;
  rl_binding bindings[] = {{":a", RL_BIND_INT, .integer = query.a},
                           {":b", RL_BIND_INT, .integer = query.b},
                           ordinal_binding(":kernel_a", query.kernel),
                           ordinal_binding(":kernel_b", query.kernel_b),
                           {":numbers", RL_BIND_INT, .integer = query.detail == DETAIL_FULL}};
  rl_auto(rl_assembly_cleanup) rl_assembly *all = rl_assembly_new(err);
  if (all == NULL || read_side(store, query.a, query.kernel, &all->a, err) < 0) return -1;
  if (read_side(store, query.b, query.kernel_b, &all->b, err) < 0) return -1;
  rl_auto(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  cJSON_AddItemToObject(document, "a", cJSON_Duplicate(all->a.facts, true));
  cJSON_AddItemToObject(document, "b", cJSON_Duplicate(all->b.facts, true));
  if (add_comparison(store, &query, document, err) < 0) return -1;
  all->separator = ",";
  all->tail = "]}";
  all->render = query.detail == DETAIL_FULL ? render_pair : render_pair_names;
  if ((all->head = begin_kernels(document, err)) == NULL) return -1;
  if (rl_store_query(store, RL_QUERY_COMPARE_KERNELS, bindings, 5, &all->cursor, err) < 0) return -1;
  return rl_assembly_reply(call, &all, "application/json", err);
}

/* --- the catalogue ----------------------------------------------------------------------------------------------------- */

int rl_handle_sections(rl_call *call, rl_error *err) {
  cJSON *document = cJSON_CreateObject(), *items = cJSON_AddArrayToObject(document, "items");
  for (size_t i = 0; i < rl_section_count; i++) cJSON_AddItemToArray(items, rl_report_catalogue(i));
  return rl_reply_json(call, 200, document, err);
}
