/* Judges the reports of the kernels with known causes: judge_known METRICS.csv [tuned|kept|all] [LAUNCH...]. METRICS.csv: the
 * output of cupti_probe_rules count full. Prints a Markdown table; with names of launches, all findings of these instead. */
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

/* ordinal,launch,"kernel",grid,block,metric,"reason",value */
static void read_rows(FILE *in) {
  static char line[8192];
  while (row_count < MAX_METRICS && fgets(line, sizeof line, in)) {
    row *r = &rows[row_count];
    char *launch = strchr(line, ','), *quote = launch ? strchr(launch, '"') : NULL, *end = NULL;
    if (!quote) continue;
    for (char *p = strstr(quote + 1, "\","); p; p = NULL) end = p;
    if (!end || sscanf(launch + 1, "%63[^,]", r->launch) != 1) continue;
    char *field = end + 2;
    for (int skip = 0; skip < 2 && field; skip++) field = strchr(field, ',') ? strchr(field, ',') + 1 : NULL;
    char *metric_end = field ? strchr(field, ',') : NULL;
    if (!metric_end) continue;
    snprintf(r->metric, sizeof r->metric, "%.*s", (int)(metric_end - field), field);
    char *reason = metric_end + 2, *reason_end = strstr(reason, "\",");
    if (!reason_end) continue;
    snprintf(r->reason, sizeof r->reason, "%.*s", (int)(reason_end - reason), reason);
    char *number = reason_end + 2, *number_end;
    r->value = strtod(number, &number_end);
    if (number_end == number) r->value = NAN;
    row_count++;
  }
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
  rl_kernel_verdict v = rl_kernel_verdict_make(&values);
  static rl_finding findings[RL_MAX_FINDINGS];
  printf("\n%s (%zu metrics): %s%s%s: %s\n", launch, values.count, rl_kernel_bound_names[v.bound], v.pipeline ? " " : "",
         v.pipeline ? v.pipeline : "", v.message);
  size_t count = rl_findings_combine(findings, rl_rules_apply(&values, findings, RL_MAX_FINDINGS), &values);
  for (size_t i = 0; i < count; i++)
    printf("%s%s %s %s %.1f %s: %s\n", findings[i].is_part ? "      " : "  ", rl_finding_kind_names[findings[i].kind],
           rl_causes[findings[i].rule->cause].name, findings[i].rule->id, findings[i].speedup_pct,
           findings[i].global ? "global" : "local", findings[i].message);
  free((void *)(uintptr_t)values.items);
}

int main(int argc, char **argv) {
  const char *which = argc > 2 ? argv[2] : "all";
  FILE *in = argc > 1 ? fopen(argv[1], "r") : NULL;
  rows = malloc(MAX_METRICS * sizeof *rows);
  if (!in || !rows) return fprintf(stderr, "judge_known: %s\n", argc > 1 ? strerror(errno) : "METRICS.csv is missing"), 2;
  read_rows(in);
  for (int i = 3; i < argc; i++) print_findings(argv[i]);
  if (argc > 3) return 0;
  size_t right = 0, without_false = 0, found = 0, judged = 0;
  printf("| kernel | | verdict | first finding | false finding |\n| --- | --- | --- | --- | --- |\n");
  for (const known_kernel *k = known_kernels; k < known_kernels + known_kernel_count; k++) {
    if (strcmp(which, "all") != 0 && k->kept_aside != (strcmp(which, "kept") == 0)) continue;
    rl_metric_values values = values_of(k->launch);
    known_result r = known_kernel_judge(k, &values);
    printf("| `%s` | %s | %s%s%s%s | ", k->launch, k->kept_aside ? "kept aside" : "", rl_kernel_bound_names[r.verdict.bound],
           r.verdict.pipeline ? " " : "", r.verdict.pipeline ? r.verdict.pipeline : "", r.verdict_is_right ? "" : " **wrong**");
    if (r.first.rule) printf("`%s`%s %.0f%s", r.first.rule->id, r.first.global ? "" : " (local)", r.first.speedup_pct, "");
    printf("%s | %s |\n", r.cause_is_found ? "" : " **missing**", r.false_rule ? r.false_rule->id : "");
    judged++, right += r.verdict_is_right, without_false += !r.false_rule, found += r.cause_is_found;
    free((void *)(uintptr_t)values.items);
  }
  printf("\nverdict right %zu of %zu, cause found %zu, no false optimisation %zu\n", right, judged, found, without_false);
  return 0;
}
