#include "api/report_csv.h"

#include <math.h>
#include <string.h>

#include "analyze/rules.h"
#include "api/ncu_text.h"

const char *const rl_details_names[] = {"header", "body", "all", NULL};

static const char *const kernel_columns[] = {"ID",     "Process ID", "Process Name", "Host Name", "Kernel Name", "Context",
                                             "Stream", "Block Size", "Grid Size",    "Device",    "CC"};
/* The second is there where tables are. */
static const char *const details_columns[] = {"Section Name",           "Body Item Label",  "Metric Name", "Metric Unit",
                                              "Metric Value",           "Rule Name",        "Rule Type",   "Rule Description",
                                              "Estimated Speedup Type", "Estimated Speedup"};
enum {
  KERNEL_COLUMNS = sizeof kernel_columns / sizeof *kernel_columns,
  DETAILS_COLUMNS = sizeof details_columns / sizeof *details_columns
};

/* Every field is quoted, as ncu does. */
static void put(FILE *out, const char *text) {
  putc('"', out);
  for (; *text != '\0'; text++) {
    if (*text == '"') putc('"', out);
    putc(*text, out);
  }
  putc('"', out);
}

static void put_next(FILE *out, const char *text) {
  putc(',', out);
  put(out, text);
}

static void put_columns(FILE *out, const char *const *columns, size_t count) {
  for (size_t i = 0; i < count; i++) put_next(out, columns[i]);
}

/* --- which kernel ------------------------------------------------------------------------------------------------------ */

static void put_text_of(FILE *out, const cJSON *object, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
  put_next(out, text ? text : "");
}

static void put_number(FILE *out, double value) {
  char text[32] = "";
  if (isfinite(value)) snprintf(text, sizeof text, "%.15g", value);
  put_next(out, text);
}

static void put_number_of(FILE *out, const cJSON *object, const char *name) {
  put_number(out, cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name)));
}

static void put_extent(FILE *out, const cJSON *kernel, const char *name) {
  const cJSON *extent = cJSON_GetObjectItemCaseSensitive(kernel, name);
  char text[96] = "";
  if (cJSON_GetArraySize(extent) == 3)
    snprintf(text, sizeof text, "(%.0f, %.0f, %.0f)", cJSON_GetArrayItem(extent, 0)->valuedouble,
             cJSON_GetArrayItem(extent, 1)->valuedouble, cJSON_GetArrayItem(extent, 2)->valuedouble);
  put_next(out, text);
}

/* "gpu0" is device 0; the CPU has no number. */
static void put_device(FILE *out, const cJSON *run) {
  const char *device = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "device"));
  put_next(out, device && strncmp(device, "gpu", 3) == 0 ? device + 3 : "");
}

static void put_kernel(FILE *out, const rl_csv_kernel *k) {
  char id[32];
  snprintf(id, sizeof id, "%.0f", cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(k->kernel, "ordinal")));
  put(out, id);
  put_number_of(out, k->run, "run");
  put_text_of(out, k->run, "workload");
  put_next(out, "127.0.0.1");
  put_text_of(out, k->kernel, "name");
  put_number(out, rl_metric_get(k->values, "launch__context_id"));
  put_number(out, rl_metric_get(k->values, "launch__stream_id"));
  put_extent(out, k->kernel, "block");
  put_extent(out, k->kernel, "grid");
  put_device(out, k->run);
  put_next(out, k->view->capability);
}

static void put_kernel_columns(FILE *out) {
  put(out, kernel_columns[0]);
  put_columns(out, kernel_columns + 1, KERNEL_COLUMNS - 1);
}

/* --- details ----------------------------------------------------------------------------------------------------------- */

typedef struct details_page {
  FILE *out;
  const rl_csv_kernel *kernel;
  rl_details details;
} details_page;

static void put_details(FILE *out, rl_details details, const char *const fields[DETAILS_COLUMNS]) {
  put_columns(out, fields, 1);
  if (details != RL_DETAILS_HEADER) put_columns(out, fields + 1, 1);
  put_columns(out, fields + 2, DETAILS_COLUMNS - 2);
  putc('\n', out);
}

void rl_csv_details_head(FILE *out, rl_details details) {
  put_kernel_columns(out);
  put_details(out, details, details_columns);
}

static void put_details_line(const details_page *page, const char *const fields[DETAILS_COLUMNS]) {
  put_kernel(page->out, page->kernel);
  put_details(page->out, page->details, fields);
}

/* "30 (20; 10)": a value with what ncu prints of its parts. Cut where it is longer than text. */
static void print_value(const char *value, const rl_section_row *row, const rl_metric_values *values, char *text, size_t size) {
  rl_part parts[RL_PARTS_MOST];
  size_t count = rl_row_parts(row, values, parts), used = (size_t)snprintf(text, size, "%s", value);
  for (size_t i = 0; i < count && used < size; i++) {
    rl_ncu_text number = rl_ncu_plain(parts[i].value, "");
    used += (size_t)snprintf(text + used, size - used, "%s%s%s", i == 0 ? " (" : "; ",
                             row->parts == RL_PARTS_NAMES ? parts[i].name : number.value, i + 1 == count ? ")" : "");
  }
}

static void put_row(const details_page *page, const rl_section *section, const rl_section_row *row) {
  const rl_metric_values *values = page->kernel->values;
  rl_row_value result = rl_row_evaluate(row, values);
  rl_ncu_text number = rl_ncu_scaled(result.value, row->unit);
  const char *choice = rl_row_text(row, result.value);
  char text[4096];
  print_value(choice ? choice : number.value, row, values, text, sizeof text);
  put_details_line(
      page, (const char *const[DETAILS_COLUMNS]){section->name, row->table, row->name, number.unit, text, "", "", "", "", ""});
}

/* As ncu does, by the section's identifier. */
static void put_finding(const details_page *page, const rl_section *section, const rl_finding *finding) {
  static const char *const types[] = {[RL_FINDING_INFO] = "INF", [RL_FINDING_WARNING] = "WRN", [RL_FINDING_OPTIMIZATION] = "OPT"};
  bool estimated = isfinite(finding->speedup_pct);
  char speedup[32] = "";
  if (estimated) snprintf(speedup, sizeof speedup, "%.4g", finding->speedup_pct);
  put_details_line(page, (const char *const[DETAILS_COLUMNS]){section->id, "", "", "", "", finding->rule->id,
                                                              types[finding->kind], finding->message,
                                                              !estimated        ? ""
                                                              : finding->global ? "global"
                                                                                : "local",
                                                              speedup});
}

static bool shows(rl_details details, const rl_section_row *row) {
  return details == RL_DETAILS_ALL || (details == RL_DETAILS_HEADER) == (row->table[0] == '\0');
}

void rl_csv_details(FILE *out, const rl_csv_kernel *k, rl_details details) {
  details_page page = {out, k, details};
  uint32_t sections = rl_view_sections(k->view, k->values);
  rl_findings findings = rl_report_findings(k->values);
  for (size_t s = 0; s < rl_section_count; s++) {
    const rl_section *section = &rl_sections[s];
    if (!(sections & UINT32_C(1) << s)) continue;
    for (size_t r = 0; r < section->row_count; r++)
      if (shows(details, &section->rows[r]) && rl_row_is_on(&section->rows[r], k->view->capability))
        put_row(&page, section, &section->rows[r]);
    for (size_t f = 0; f < findings.count; f++)
      if (strcmp(findings.items[f].rule->section, section->id) == 0) put_finding(&page, section, &findings.items[f]);
  }
  free(findings.items);
}

/* --- raw --------------------------------------------------------------------------------------------------------------- */

static const char *unit_of(const char *name) {
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (strcmp(rl_raw_metrics[i].name, name) == 0) return rl_raw_metrics[i].unit;
  return strstr(name, ".pct") ? "%" : "";
}

static const char *text_of(const char *name, double value) {
  for (size_t s = 0; s < rl_section_count; s++)
    for (size_t r = 0; r < rl_sections[s].row_count; r++) {
      const rl_section_row *row = &rl_sections[s].rows[r];
      if (row->choices && strcmp(row->key, name) == 0) return rl_row_text(row, value);
    }
  return NULL;
}

void rl_csv_raw_head(FILE *out, const char *const *names, size_t count) {
  put_kernel_columns(out);
  put_columns(out, names, count);
  putc('\n', out);
  put(out, "");
  for (size_t i = 1; i < KERNEL_COLUMNS; i++) put_next(out, "");
  for (size_t i = 0; i < count; i++) put_next(out, unit_of(names[i]));
  putc('\n', out);
}

void rl_csv_raw(FILE *out, const rl_csv_kernel *k, const char *const *names, size_t count) {
  put_kernel(out, k);
  for (size_t i = 0; i < count; i++) {
    double value = rl_metric_get(k->values, names[i]);
    const char *text = text_of(names[i], value);
    put_next(out, text ? text : rl_ncu_plain(value, "").value);
  }
  putc('\n', out);
}
