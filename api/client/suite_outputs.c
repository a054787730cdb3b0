/* Defines the list of formats, and implements three of them: github-action-benchmark, Bencher Metric Format and Otava's CSV. */
#include "api/client/suite_outputs.h"

#include <stdlib.h>
#include <string.h>

#include "api/client/suite_metrics.h"
#include "api/client/suite_outputs_internal.h"
#include "base/cleanup.h"
#include "base/metric_unit.h"

/* Prints a document and deletes it. */
static void print_document(FILE *out, cJSON *document) {
  RL_CLEANUP(rl_free_text) char *text = cJSON_Print(document);
  if (text != NULL) fprintf(out, "%s\n", text);
  cJSON_Delete(document);
}

/* --- github-action-benchmark --------------------------------------------------------------------------------------------- */

/* Writes the member "extra" of a point, which the chart shows as a tooltip. */
static void write_extra(FILE *out, const cJSON *run, const cJSON *verdict) {
  char change[RL_CELL_SIZE], interval[RL_CELL_SIZE];
  fprintf(out, "%s", rl_json_text(verdict, "verdict"));
  if (!isnan(rl_json_number(verdict, "effect_ratio")))
    fprintf(out, ": %s against the baseline, interval %s %%",
            rl_metric_format_change(change, rl_json_number(verdict, "effect_ratio")),
            rl_metric_format_interval(interval, verdict));
  fprintf(out, "\nsuite run %.0f on %s\nrooflined %s", rl_json_number(run, "id"), rl_json_text(run, "device_name"),
          rl_json_text(run, "git_commit"));
}

static void add_point(cJSON *points, const cJSON *run, const cJSON *verdict, const char *key) {
  char unit[RL_METRIC_UNIT_SIZE];
  char *extra = NULL;
  size_t size;
  const rl_block_range range = rl_metric_block_range(run, key);
  cJSON *point = cJSON_CreateObject();
  cJSON_AddItemToArray(points, point);
  cJSON_AddStringToObject(point, "name", key);
  cJSON_AddStringToObject(point, "unit", rl_metric_unit(unit, key));
  cJSON_AddNumberToObject(point, "value", rl_json_number(verdict, "current_median"));
  if (range.count > 1) {
    char text[RL_CELL_SIZE];
    snprintf(text, sizeof text, "± %.4g", (range.max - range.min) / 2);
    cJSON_AddStringToObject(point, "range", text);
  }
  FILE *stream = open_memstream(&extra, &size);
  if (stream == NULL) return;
  write_extra(stream, run, verdict);
  fclose(stream);
  if (extra != NULL) cJSON_AddStringToObject(point, "extra", extra);
  free(extra);
}

static void write_points(FILE *out, const cJSON *run, const char *direction) {
  cJSON *points = cJSON_CreateArray();
  const cJSON *verdict;
  cJSON_ArrayForEach (verdict, rl_json_at(run, "verdicts"))
    if (strcmp(rl_json_text(verdict, "direction"), direction) == 0 && !isnan(rl_json_number(verdict, "current_median")))
      add_point(points, run, verdict, rl_json_text(verdict, "metric"));
  print_document(out, points);
}

static void write_github_smaller(FILE *out, const cJSON *run) { write_points(out, run, "lower"); }
static void write_github_bigger(FILE *out, const cJSON *run) { write_points(out, run, "higher"); }

/* --- Bencher Metric Format ------------------------------------------------------------------------------------------------ */

/* Returns the object of a benchmark such as "mnist/train/fp16"; adds the object if it does not exist. */
static cJSON *find_benchmark(cJSON *benchmarks, const char *suite, const char *key) {
  char name[512];
  const int length = (int)rl_metric_job_length(key);
  snprintf(name, sizeof name, "%s%s%.*s", suite, length > 0 ? "/" : "", length, key);
  cJSON *benchmark = cJSON_GetObjectItemCaseSensitive(benchmarks, name);
  return benchmark != NULL ? benchmark : cJSON_AddObjectToObject(benchmarks, name);
}

static void write_bmf(FILE *out, const cJSON *run) {
  cJSON *benchmarks = cJSON_CreateObject();
  const cJSON *verdict;
  cJSON_ArrayForEach (verdict, rl_json_at(run, "verdicts")) {
    const char *key = rl_json_text(verdict, "metric");
    const double median = rl_json_number(verdict, "current_median");
    const size_t length = rl_metric_job_length(key);
    if (isnan(median)) continue; /* `value` is required */
    cJSON *measure = cJSON_AddObjectToObject(find_benchmark(benchmarks, rl_json_text(run, "suite"), key),
                                             key + length + (length > 0 || *key == '/'));
    cJSON_AddNumberToObject(measure, "value", median);
    const rl_block_range range = rl_metric_block_range(run, key);
    if (range.count == 0) continue;
    cJSON_AddNumberToObject(measure, "lower_value", fmin(range.min, median));
    cJSON_AddNumberToObject(measure, "upper_value", fmax(range.max, median));
  }
  print_document(out, benchmarks);
}

/* --- Otava's CSV ------------------------------------------------------------------------------------------------------------ */

/* Writes a cell (RFC 4180). A line break becomes a space, so that each row is one line. */
static void write_cell(FILE *out, const char *text) {
  const bool quoted = text[strcspn(text, ",\"\r\n")] != '\0';
  if (quoted) fputc('"', out);
  for (; *text != '\0'; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text == '\r' || *text == '\n' ? ' ' : *text, out);
  }
  if (quoted) fputc('"', out);
}

/* Writes the shortest text that strtod reads as the same number. */
static void write_number(FILE *out, double value) {
  char text[RL_CELL_SIZE];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  fputs(text, out);
}

const char *rl_suite_output_find_missing_value(const cJSON *run) {
  const cJSON *verdict;
  cJSON_ArrayForEach (verdict, rl_json_at(run, "verdicts"))
    if (isnan(rl_json_number(verdict, "current_median"))) return rl_json_text(verdict, "metric");
  return NULL;
}

static void write_otava(FILE *out, const cJSON *run) {
  static const char *const attributes[] = {"git_commit", "device_name", "driver", "verdict"};
  enum { ATTRIBUTE_COUNT = sizeof attributes / sizeof *attributes };
  const cJSON *verdict;
  const char *finished = rl_json_text(run, "finished_at");
  fputs("time,run,commit,device,driver,verdict", out);
  cJSON_ArrayForEach (verdict, rl_json_at(run, "verdicts")) {
    fputc(',', out);
    write_cell(out, rl_json_text(verdict, "metric"));
  }
  fputc('\n', out);
  if (strlen(finished) < 19 || rl_suite_output_find_missing_value(run) != NULL) return;
  fprintf(out, "%.10s %.8s +0000,%.0f", finished, finished + 11, rl_json_number(run, "id"));
  for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
    fputc(',', out);
    write_cell(out, rl_json_text(run, attributes[i]));
  }
  cJSON_ArrayForEach (verdict, rl_json_at(run, "verdicts")) {
    fputc(',', out);
    write_number(out, rl_json_number(verdict, "current_median"));
  }
  fputc('\n', out);
}

const rl_suite_output rl_suite_outputs[] = {
    {"junit", "JUnit XML: a test case for each metric", rl_write_junit},
    {"github", "github-action-benchmark, customSmallerIsBetter", write_github_smaller},
    {"github-bigger", "github-action-benchmark, customBiggerIsBetter", write_github_bigger},
    {"bmf", "Bencher Metric Format, JSON", write_bmf},
    {"otava", "CSV for Otava; a row is added to FILE", write_otava, .is_table = true},
    {"markdown", "summary for a pull request", rl_write_markdown},
    {0}};
