/* Makes the JSON of the report sections that the catalogue (analyze/sections.h) lists, with their tables and rows. There are
 * three row writers: for a report, for a comparison, and for the catalogue itself. */
#include "api/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_members.h"

static const char not_finite[] = "the number is not finite";

static rl_metric_value metric_value_from_json(const cJSON *entry) {
  const cJSON *name = cJSON_GetArrayItem(entry, 0), *value = cJSON_GetArrayItem(entry, 1), *reason = cJSON_GetArrayItem(entry, 2);
  rl_metric_value item = {.name = name->valuestring,
                          .value = cJSON_IsNumber(value) ? value->valuedouble : NAN,
                          .reason = cJSON_GetStringValue(reason)};
  if (isfinite(item.value)) return item;
  if (!item.reason) item.reason = not_finite;
  item.value = NAN;
  return item;
}

int rl_kernel_metrics_parse(const char *kernel_json, const char *run_json, rl_kernel_metrics *metrics, rl_error *err) {
  rl_kernel_metrics parsed = {.kernel = cJSON_Parse(kernel_json ? kernel_json : "[]"), .run = cJSON_Parse(run_json)};
  size_t count = (size_t)cJSON_GetArraySize(parsed.kernel) + (size_t)cJSON_GetArraySize(parsed.run);
  parsed.items = calloc(count + 1, sizeof *parsed.items);
  if (!parsed.kernel || !parsed.run || !parsed.items) {
    rl_kernel_metrics_clear(&parsed);
    return rl_fail(err, RL_ERRNO, 0, "out of memory for a kernel's metrics");
  }
  parsed.values = (rl_metric_values){parsed.items, count};
  rl_metric_value *item = parsed.items;
  const cJSON *entry;
  cJSON_ArrayForEach (entry, parsed.kernel) *item++ = metric_value_from_json(entry);
  cJSON_ArrayForEach (entry, parsed.run) *item++ = metric_value_from_json(entry);
  rl_metric_values_sort(parsed.items, count);
  *metrics = parsed;
  return 0;
}

void rl_kernel_metrics_clear(rl_kernel_metrics *metrics) {
  cJSON_Delete(metrics->kernel);
  cJSON_Delete(metrics->run);
  free(metrics->items);
  *metrics = (rl_kernel_metrics){0};
}

static uint32_t section_bit(const char *id) {
  for (size_t i = 0; i < rl_section_count; i++)
    if (strcmp(rl_sections[i].id, id) == 0) return UINT32_C(1) << i;
  return 0;
}

rl_report_view rl_report_view_make(const char *capability, const char *requested, bool empty_cache) {
  rl_report_view view = {.request_is_known = requested != NULL, .empty_cache = empty_cache};
  if (capability) snprintf(view.capability, sizeof view.capability, "%s", capability);
  cJSON *ids = requested ? cJSON_Parse(requested) : NULL, *id;
  cJSON_ArrayForEach (id, ids)
    if (cJSON_IsString(id)) view.requested_bits |= section_bit(id->valuestring);
  cJSON_Delete(ids);
  return view;
}

uint32_t rl_report_view_sections(const rl_report_view *view, const rl_metric_values *values) {
  uint32_t with_values = 0, with_entries = 0; /* an entry without a value has a reason */
  for (size_t i = 0; i < rl_raw_metric_count; i++) {
    const rl_metric_value *value = rl_metric_find(values, rl_raw_metrics[i].name);
    if (!value) continue;
    with_entries |= rl_raw_metrics[i].sections;
    if (!isnan(value->value)) with_values |= rl_raw_metrics[i].sections;
  }
  return view->request_is_known && with_entries ? view->requested_bits : with_values;
}

/* Makes the JSON of a row for a report, a comparison or the catalogue, which have the same sections, tables and rows. */
typedef struct row_writer {
  cJSON *(*write)(const struct row_writer *writer, const rl_section_row *row); /* returns NULL if the row is omitted */
  const rl_metric_values *a, *b;
  const rl_report_view *view_a, *view_b;
} row_writer;

static cJSON *row_json(const rl_section_row *row) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "name", row->name);
  cJSON_AddStringToObject(object, "unit", row->unit);
  cJSON_AddStringToObject(object, "metric", row->key);
  return object;
}

static cJSON *add_table(cJSON *tables, const char *name) {
  cJSON *table = cJSON_CreateObject();
  cJSON_AddStringToObject(table, "name", name);
  cJSON_AddItemToArray(tables, table);
  return cJSON_AddArrayToObject(table, "rows");
}

static cJSON *section_json(const rl_section *section, const row_writer *writer) {
  cJSON *object = cJSON_CreateObject(), *rows = NULL;
  cJSON_AddStringToObject(object, "id", section->id);
  cJSON_AddStringToObject(object, "name", section->name);
  cJSON *tables = cJSON_AddArrayToObject(object, "tables");
  const char *table = NULL;
  for (size_t r = 0; r < section->row_count; r++) {
    const rl_section_row *row = &section->rows[r];
    cJSON *written = writer->write(writer, row);
    if (!written) continue;
    if (!table || strcmp(table, row->table) != 0) rows = add_table(tables, table = row->table);
    cJSON_AddItemToArray(rows, written);
  }
  return object;
}

static cJSON *sections_json(uint32_t sections, const row_writer *writer) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < rl_section_count; i++)
    if ((sections & UINT32_C(1) << i) != 0 && rl_sections[i].row_count > 0)
      cJSON_AddItemToArray(array, section_json(&rl_sections[i], writer));
  return array;
}

static void add_parts(cJSON *object, const rl_section_row *row, const rl_metric_values *values) {
  rl_row_part parts[RL_MAX_ROW_PARTS];
  size_t count = rl_row_parts(row, values, parts);
  if (count == 0) return;
  cJSON *array = cJSON_AddArrayToObject(object, "parts");
  for (size_t i = 0; i < count; i++) {
    cJSON *part = cJSON_CreateObject();
    cJSON_AddStringToObject(part, "name", parts[i].name);
    rl_json_add_number(part, "value", parts[i].value);
    cJSON_AddItemToArray(array, part);
  }
}

static cJSON *value_row(const row_writer *writer, const rl_section_row *row) {
  if (!rl_row_is_available(row, writer->view_a->capability)) return NULL;
  rl_row_value result = rl_row_evaluate(row, writer->a);
  cJSON *object = row_json(row);
  rl_json_add_number(object, "value", result.value);
  rl_json_add_text(object, "reason", result.reason);
  const char *text = rl_row_text(row, result.value);
  if (text) cJSON_AddStringToObject(object, "text", text);
  const char *note = writer->view_a->empty_cache ? row->empty_note : row->note;
  if (note) cJSON_AddStringToObject(object, "note", note);
  add_parts(object, row, writer->a);
  return object;
}

cJSON *rl_report_sections(const rl_report_view *view, const rl_metric_values *values) {
  return sections_json(rl_report_view_sections(view, values), &(row_writer){value_row, .a = values, .view_a = view});
}

static cJSON *difference_row(const row_writer *writer, const rl_section_row *row) {
  if (!rl_row_is_available(row, writer->view_a->capability) && !rl_row_is_available(row, writer->view_b->capability)) return NULL;
  rl_row_value a = rl_row_evaluate(row, writer->a), b = rl_row_evaluate(row, writer->b);
  cJSON *object = row_json(row);
  rl_json_add_number(object, "a", a.value);
  rl_json_add_number(object, "b", b.value);
  rl_json_add_number(object, "difference", b.value - a.value);
  rl_json_add_number(object, "relative", a.value == 0 ? NAN : (b.value - a.value) / fabs(a.value));
  rl_json_add_text(object, "reason", isnan(a.value) ? a.reason : isnan(b.value) ? b.reason : "");
  return object;
}

cJSON *rl_report_differences(const rl_report_view *view_a, const rl_metric_values *a, const rl_report_view *view_b,
                             const rl_metric_values *b) {
  uint32_t sections = rl_report_view_sections(view_a, a) | rl_report_view_sections(view_b, b);
  return sections_json(sections, &(row_writer){difference_row, a, b, view_a, view_b});
}

static cJSON *catalogue_row(const row_writer *writer, const rl_section_row *row) {
  (void)writer;
  cJSON *object = row_json(row);
  cJSON_AddStringToObject(object, "expression", row->expression);
  rl_json_add_text(object, "chips", row->chips);
  return object;
}

cJSON *rl_report_catalogue(size_t section) {
  cJSON *object = section_json(&rl_sections[section], &(row_writer){catalogue_row});
  cJSON_AddStringToObject(object, "summary", rl_sections[section].summary);
  cJSON *sets = cJSON_AddArrayToObject(object, "sets");
  for (size_t i = 0; i < rl_section_set_count; i++)
    if (rl_section_sets[i].sections & UINT32_C(1) << section)
      cJSON_AddItemToArray(sets, cJSON_CreateString(rl_section_sets[i].name));
  return object;
}
