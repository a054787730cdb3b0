/* Implements report_csv.h. Writes the fields in the order of ncu's columns. */
#include "api/report_csv.h"

#include <math.h>
#include <string.h>

#include "analyze/computed_metrics.h"
#include "analyze/rules.h"
#include "api/ncu_text.h"

const char *const rl_csv_row_filter_names[] = {"header", "body", "all", NULL};

static const char *const kernel_columns[] = {"ID",     "Process ID", "Process Name", "Host Name", "Kernel Name", "Context",
                                             "Stream", "Block Size", "Grid Size",    "Device",    "CC"};
/* Columns of the details page after those of the kernel. RL_CSV_ROWS_HEADER omits the second one. */
static const char *const details_columns[] = {"Section Name",           "Body Item Label",  "Metric Name", "Metric Unit",
                                              "Metric Value",           "Rule Name",        "Rule Type",   "Rule Description",
                                              "Estimated Speedup Type", "Estimated Speedup"};
enum {
  KERNEL_COLUMNS = sizeof kernel_columns / sizeof *kernel_columns,
  DETAILS_COLUMNS = sizeof details_columns / sizeof *details_columns
};

/* Writes a field in quotes, as Nsight Compute does with every field. */
static void put_field(FILE *out, const char *text) {
  putc('"', out);
  for (; *text != '\0'; text++) {
    if (*text == '"') putc('"', out);
    putc(*text, out);
  }
  putc('"', out);
}

static void put_next_field(FILE *out, const char *text) {
  putc(',', out);
  put_field(out, text);
}

static void put_next_fields(FILE *out, const char *const *columns, size_t count) {
  for (size_t i = 0; i < count; i++) put_next_field(out, columns[i]);
}

static void put_text_member(FILE *out, const cJSON *object, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
  put_next_field(out, text ? text : "");
}

static void put_number(FILE *out, double value) {
  char text[32] = "";
  if (isfinite(value)) snprintf(text, sizeof text, "%.15g", value);
  put_next_field(out, text);
}

static void put_number_member(FILE *out, const cJSON *object, const char *name) {
  put_number(out, cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name)));
}

static void put_dim3_member(FILE *out, const cJSON *kernel, const char *name) {
  const cJSON *dimensions = cJSON_GetObjectItemCaseSensitive(kernel, name);
  char text[96] = "";
  if (cJSON_GetArraySize(dimensions) == 3)
    snprintf(text, sizeof text, "(%.0f, %.0f, %.0f)", cJSON_GetArrayItem(dimensions, 0)->valuedouble,
             cJSON_GetArrayItem(dimensions, 1)->valuedouble, cJSON_GetArrayItem(dimensions, 2)->valuedouble);
  put_next_field(out, text);
}

/* Writes the number of a GPU ("gpu0": 0), or an empty field for "cpu". */
static void put_device(FILE *out, const cJSON *run) {
  const char *device = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "device"));
  put_next_field(out, device && strncmp(device, "gpu", 3) == 0 ? device + 3 : "");
}

/* Writes the columns of the kernel and its run. If kernel->kernel_row is NULL, leaves the kernel's columns empty. */
static void put_kernel_fields(FILE *out, const rl_csv_kernel *kernel) {
  double ordinal = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(kernel->kernel_row, "ordinal"));
  char id[32] = "";
  if (isfinite(ordinal)) snprintf(id, sizeof id, "%.0f", ordinal);
  put_field(out, id);
  put_number_member(out, kernel->run, "run");
  put_text_member(out, kernel->run, "workload");
  put_next_field(out, "127.0.0.1");
  put_text_member(out, kernel->kernel_row, "name");
  put_number(out, rl_metric_values_get(kernel->values, "launch__context_id"));
  put_number(out, rl_metric_values_get(kernel->values, "launch__stream_id"));
  put_dim3_member(out, kernel->kernel_row, "block");
  put_dim3_member(out, kernel->kernel_row, "grid");
  put_device(out, kernel->run);
  put_next_field(out, kernel->view->capability);
}

static void put_kernel_column_names(FILE *out) {
  put_field(out, kernel_columns[0]);
  put_next_fields(out, kernel_columns + 1, KERNEL_COLUMNS - 1);
}

typedef struct details_page {
  FILE *out;
  const rl_csv_kernel *kernel;
  rl_csv_row_filter row_filter;
} details_page;

static void put_details_fields(FILE *out, rl_csv_row_filter row_filter, const char *const fields[DETAILS_COLUMNS]) {
  put_next_fields(out, fields, 1);
  if (row_filter != RL_CSV_ROWS_HEADER) put_next_fields(out, fields + 1, 1);
  put_next_fields(out, fields + 2, DETAILS_COLUMNS - 2);
  putc('\n', out);
}

void rl_csv_print_details_header(FILE *out, rl_csv_row_filter row_filter) {
  put_kernel_column_names(out);
  put_details_fields(out, row_filter, details_columns);
}

static void put_details_line(const details_page *page, const char *const fields[DETAILS_COLUMNS]) {
  put_kernel_fields(page->out, page->kernel);
  put_details_fields(page->out, page->row_filter, fields);
}

/* Prints a row's value and then, if the row prints parts (rl_parts), the values or names of the metrics "KEY:PART" in
 * parentheses, as in Nsight Compute: "30 (20; 10)". Truncates the text to `size`. */
static void format_value(const char *value, const rl_section_row *row, const rl_metric_values *values, char *text, size_t size) {
  rl_row_part parts[RL_MAX_ROW_PARTS];
  size_t count = rl_row_parts(row, values, parts), used = (size_t)snprintf(text, size, "%s", value);
  for (size_t i = 0; i < count && used < size; i++) {
    rl_ncu_text number = rl_ncu_format(parts[i].value, "");
    used += (size_t)snprintf(text + used, size - used, "%s%s%s", i == 0 ? " (" : "; ",
                             row->parts == RL_PARTS_NAMES ? parts[i].name : number.value, i + 1 == count ? ")" : "");
  }
}

static void put_row(const details_page *page, const rl_section *section, const rl_section_row *row) {
  const rl_metric_values *values = page->kernel->values;
  rl_row_value result = rl_row_evaluate(row, values);
  rl_ncu_text number = rl_ncu_format_scaled(result.value, row->ncu_unit);
  const char *choice = rl_row_text(row, result.value);
  char text[4096];
  format_value(choice ? choice : number.value, row, values, text, sizeof text);
  put_details_line(
      page, (const char *const[DETAILS_COLUMNS]){section->name, row->table, row->name, number.unit, text, "", "", "", "", ""});
}

/* Writes the line of a finding. As in Nsight Compute, the column "Section Name" of this line has the section's id instead. */
static void put_finding(const details_page *page, const rl_finding *finding) {
  static const char *const types[] = {[RL_FINDING_INFO] = "INF", [RL_FINDING_WARNING] = "WRN", [RL_FINDING_OPTIMIZATION] = "OPT"};
  bool estimated = isfinite(finding->speedup_pct);
  const char *scope = !estimated ? "" : finding->global ? "global" : "local";
  char speedup[32] = "";
  if (estimated) snprintf(speedup, sizeof speedup, "%.4g", finding->speedup_pct);
  put_details_line(page, (const char *const[DETAILS_COLUMNS]){finding->rule->section, "", "", "", "", finding->rule->id,
                                                              types[finding->kind], finding->message, scope, speedup});
}

static bool shows_row(rl_csv_row_filter row_filter, const rl_section_row *row) {
  return row_filter == RL_CSV_ROWS_ALL || (row_filter == RL_CSV_ROWS_HEADER) == (row->table[0] == '\0');
}

static void put_section(const details_page *page, const rl_section *section, const rl_findings *findings) {
  for (size_t i = 0; i < section->row_count; i++)
    if (shows_row(page->row_filter, &section->rows[i]) && rl_row_is_available(&section->rows[i], page->kernel->view->capability))
      put_row(page, section, &section->rows[i]);
  for (size_t i = 0; i < findings->count; i++)
    if (strcmp(findings->items[i].rule->section, section->id) == 0) put_finding(page, &findings->items[i]);
}

void rl_csv_print_details(FILE *out, const rl_csv_kernel *kernel, rl_csv_row_filter row_filter) {
  details_page page = {out, kernel, row_filter};
  uint32_t sections = rl_report_view_sections(kernel->view, kernel->values);
  rl_findings findings = rl_report_apply_rules(kernel->values, rl_report_library_name(kernel->run, kernel->kernel_row) != NULL);
  for (size_t i = 0; i < rl_section_count; i++)
    if (sections & UINT32_C(1) << i) put_section(&page, &rl_sections[i], &findings);
  free(findings.items);
}

void rl_csv_print_run_findings(FILE *out, const cJSON *run, const rl_findings *findings, rl_csv_row_filter row_filter) {
  static const rl_metric_values none = {0};
  static const rl_report_view view = {0};
  const rl_csv_kernel no_kernel = {run, NULL, &view, &none};
  const details_page page = {out, &no_kernel, row_filter};
  for (size_t i = 0; i < findings->count; i++) put_finding(&page, &findings->items[i]);
}

const struct rl_csv_dimension rl_csv_dimensions[RL_CSV_DIMENSIONS] = {
    {"launch__block_dim_x", "block", "block", 0}, {"launch__block_dim_y", "block", "block", 1},
    {"launch__block_dim_z", "block", "block", 2}, {"launch__grid_dim_x", "", "grid", 0},
    {"launch__grid_dim_y", "", "grid", 1},        {"launch__grid_dim_z", "", "grid", 2}};

static const struct rl_csv_dimension *find_dimension(const char *name) {
  for (int i = 0; i < RL_CSV_DIMENSIONS; i++)
    if (strcmp(rl_csv_dimensions[i].name, name) == 0) return &rl_csv_dimensions[i];
  return NULL;
}

/* Returns the first section row of this metric that has a word for each value; NULL if there is no such row. */
static const rl_section_row *find_row_with_choices(const char *name) {
  for (size_t s = 0; s < rl_section_count; s++)
    for (size_t r = 0; r < rl_sections[s].row_count; r++) {
      const rl_section_row *row = &rl_sections[s].rows[r];
      if (row->choices && strcmp(row->key, name) == 0) return row;
    }
  return NULL;
}

static const char *unit_of(const rl_csv_column *column) {
  const rl_raw_metric *collected = rl_raw_metric_find(column->name);
  if (column->dimension != NULL) return column->dimension->unit;
  if (collected != NULL) return collected->unit;
  if (column->is_computed) return column->computed.unit;
  return strstr(column->name, ".pct") ? "%" : ""; /* a client named the metric; the catalogue does not have it */
}

rl_csv_column rl_csv_column_make(const char *metric_name) {
  rl_csv_column column = {
      .name = metric_name, .dimension = find_dimension(metric_name), .choices_row = find_row_with_choices(metric_name)};
  column.is_computed = rl_computed_metric_find(metric_name, &column.computed);
  return column;
}

/* Returns the value of a collected metric, of a dimension of the launch, or of a computed metric. NAN: the value is unknown. */
static double raw_value(const rl_csv_kernel *kernel, const rl_csv_column *column) {
  const rl_metric_value *collected = rl_metric_find(kernel->values, column->name);
  if (collected != NULL) return collected->value;
  if (column->dimension == NULL) return column->is_computed ? rl_computed_metric_value(&column->computed, kernel->values) : NAN;
  const cJSON *dimensions = cJSON_GetObjectItemCaseSensitive(kernel->kernel_row, column->dimension->dimensions_member);
  return cJSON_GetNumberValue(cJSON_GetArrayItem(dimensions, column->dimension->axis));
}

void rl_csv_print_raw_header(FILE *out, const rl_csv_column *columns, size_t count) {
  put_kernel_column_names(out);
  for (size_t i = 0; i < count; i++) put_next_field(out, columns[i].name);
  putc('\n', out);
  put_field(out, "");
  for (size_t i = 1; i < KERNEL_COLUMNS; i++) put_next_field(out, "");
  for (size_t i = 0; i < count; i++) put_next_field(out, unit_of(&columns[i]));
  putc('\n', out);
}

void rl_csv_print_raw(FILE *out, const rl_csv_kernel *kernel, const rl_csv_column *columns, size_t count) {
  put_kernel_fields(out, kernel);
  for (size_t i = 0; i < count; i++) {
    double value = raw_value(kernel, &columns[i]);
    const char *text = columns[i].choices_row != NULL ? rl_row_text(columns[i].choices_row, value) : NULL;
    put_next_field(out, text ? text : rl_ncu_format(value, "").value);
  }
  putc('\n', out);
}
