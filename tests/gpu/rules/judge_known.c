/* judge_known METRICS.csv [tuned|held-out|all] [LAUNCH...]: prints a Markdown table that says whether the reports of the kernels
 * with known causes (known_causes.h) name these causes. METRICS.csv is the output of `cupti_probe_rules count full`. With names
 * of launches, prints all findings on these launches instead. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "known_causes.h"

enum { MAX_METRICS = 200000 };

typedef struct row {
  char launch[64], metric[160], reason[256];
  double value;
} row;
static row *rows;
static size_t row_count;

/* Copies the text before the delimiter `end` to `to` and returns the text after it; NULL if the line has no `end`. */
static char *next_field(char *text, const char *end, char *to, size_t size) {
  char *found = text ? strstr(text, end) : NULL;
  if (found && to) snprintf(to, size, "%.*s", (int)(found - text), text);
  return found ? found + strlen(end) : NULL;
}

/* Reads ordinal,launch,"kernel",grid,block,metric,"reason",value; no value: NAN. */
static bool read_row(char *line, row *to) {
  char *rest = next_field(line, ",", NULL, 0), *number_end;
  rest = next_field(rest, ",\"", to->launch, sizeof to->launch);
  rest = next_field(rest, "\",", NULL, 0);
  for (int skipped = 0; skipped < 2; skipped++) rest = next_field(rest, ",", NULL, 0);
  rest = next_field(rest, ",\"", to->metric, sizeof to->metric);
  rest = next_field(rest, "\",", to->reason, sizeof to->reason);
  if (!rest) return false;
  to->value = strtod(rest, &number_end);
  if (number_end == rest) to->value = NAN;
  return true;
}

static void read_rows(FILE *in) {
  static char line[8192];
  while (row_count < MAX_METRICS && fgets(line, sizeof line, in)) row_count += read_row(line, &rows[row_count]);
}

static rl_metric_values values_of(const char *launch) {
  rl_metric_value *items = malloc(row_count * sizeof *items);
  size_t count = 0;
  for (size_t i = 0; i < row_count; i++)
    if (strcmp(rows[i].launch, launch) == 0)
      items[count++] = (rl_metric_value){rows[i].metric, rows[i].value, rows[i].reason[0] ? rows[i].reason : NULL};
  rl_metric_values_sort(items, count);
  return (rl_metric_values){items, count};
}

static void print_findings(const char *launch) {
  rl_metric_values values = values_of(launch);
  rl_kernel_verdict verdict = rl_kernel_verdict_make(&values);
  static rl_finding findings[RL_MAX_FINDINGS];
  printf("\n%s (%zu metrics): %s%s%s: %s\n", launch, values.count, rl_kernel_bound_names[verdict.bound],
         verdict.pipeline ? " " : "", verdict.pipeline ? verdict.pipeline : "", verdict.message);
  size_t count = rl_findings_combine(findings, rl_rules_apply(&values, findings, RL_MAX_FINDINGS), &values);
  for (size_t i = 0; i < count; i++)
    printf("%s%s %s %s %.1f %s: %s\n", findings[i].is_part ? "      " : "  ", rl_finding_kind_names[findings[i].kind],
           rl_causes[findings[i].rule->cause].name, findings[i].rule->id, findings[i].speedup_pct,
           findings[i].global ? "global" : "local", findings[i].message);
  free((void *)(uintptr_t)values.items);
}

static void print_result(const known_kernel *kernel, const known_result *result) {
  const rl_kernel_verdict *verdict = &result->verdict;
  printf("| `%s` | %s | %s%s%s%s | ", kernel->launch, kernel->held_out ? "held out" : "", rl_kernel_bound_names[verdict->bound],
         verdict->pipeline ? " " : "", verdict->pipeline ? verdict->pipeline : "", result->verdict_is_right ? "" : " **wrong**");
  if (result->first.rule)
    printf("`%s`%s %.0f", result->first.rule->id, result->first.global ? "" : " (local)", result->first.speedup_pct);
  printf("%s | %s |\n", result->cause_is_found ? "" : " **missing**", result->false_rule ? result->false_rule->id : "");
}

static bool is_selected(const known_kernel *kernel, const char *selection) {
  return strcmp(selection, "all") == 0 || kernel->held_out == (strcmp(selection, "held-out") == 0);
}

static void print_table(const char *selection) {
  size_t right = 0, without_false = 0, found = 0, judged = 0;
  printf("| kernel | | verdict | first finding | false finding |\n| --- | --- | --- | --- | --- |\n");
  for (const known_kernel *kernel = known_kernels; kernel < known_kernels + known_kernel_count; kernel++) {
    if (!is_selected(kernel, selection)) continue;
    rl_metric_values values = values_of(kernel->launch);
    known_result result = known_kernel_judge(kernel, &values);
    print_result(kernel, &result);
    judged++, right += result.verdict_is_right, without_false += !result.false_rule, found += result.cause_is_found;
    free((void *)(uintptr_t)values.items);
  }
  printf("\nverdict right %zu of %zu, cause found %zu, no false optimisation %zu\n", right, judged, found, without_false);
}

int main(int argc, char **argv) {
  FILE *in = argc > 1 ? fopen(argv[1], "r") : NULL;
  rows = malloc(MAX_METRICS * sizeof *rows);
  if (!in || !rows) {
    fprintf(stderr, "judge_known: %s\n", argc > 1 ? strerror(errno) : "METRICS.csv is missing");
    return 2;
  }
  read_rows(in);
  for (int i = 3; i < argc; i++) print_findings(argv[i]);
  if (argc <= 3) print_table(argc > 2 ? argv[2] : "all");
  free(rows);
  return fclose(in) != 0;
}
