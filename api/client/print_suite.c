/* Prints a suite run's verdicts and their causes, the list of suites, and a suite's baselines. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/suite_metrics.h"

enum {
  LINE_COLUMNS = 80,
  NAME_COLUMNS = 20,
  VALUE_COLUMNS = 10,
  CHANGE_COLUMNS = 9,
  INTERVAL_COLUMNS = 15,
  VERDICT_COLUMNS = 12
};

/* --- a suite run --------------------------------------------------------------------------------------------------------- */

static void print_property(FILE *out, const char *label, const char *value) {
  if (*value == '\0') return;
  fprintf(out, " · %s", label);
  rl_print_name(out, value);
}

/* Prints "against baseline v1 of suite run 12", or "against the suite runs 9 10 12". */
static void print_baseline(FILE *out, const cJSON *run) {
  const cJSON *id;
  const char *name = rl_json_text(run, "baseline.name");
  const int count = cJSON_GetArraySize(rl_json_at(run, "baseline.runs"));
  if (count == 0) return;
  fputs("against ", out);
  if (*name != '\0') fprintf(out, "baseline %s of ", name);
  fprintf(out, "suite run%s", count == 1 ? "" : "s");
  cJSON_ArrayForEach (id, rl_json_at(run, "baseline.runs")) fprintf(out, " %.0f", rl_json_number(id, ""));
  fputc('\n', out);
}

static void print_header(FILE *out, const cJSON *run) {
  const char *device = rl_json_text(run, "device_name"), *driver = rl_json_text(run, "driver");
  fprintf(out, "suite run %.0f · %s on ", rl_json_number(run, "id"), rl_json_text(run, "suite"));
  rl_print_name(out, *device != '\0' ? device : rl_json_text(run, "device"));
  print_property(out, "driver ", driver);
  print_property(out, "commit ", rl_json_text(run, "git_commit"));
  fputc('\n', out);
  print_baseline(out, run);
}

static void print_cells(FILE *out, const char *baseline, const char *current, const char *change, const char *interval,
                        const char *verdict) {
  rl_print_cell(out, baseline, VALUE_COLUMNS);
  fputc(' ', out);
  rl_print_cell(out, current, VALUE_COLUMNS);
  fputc(' ', out);
  rl_print_cell(out, change, CHANGE_COLUMNS);
  fputc(' ', out);
  rl_print_cell(out, interval, INTERVAL_COLUMNS);
  fprintf(out, " %.*s\n", VERDICT_COLUMNS, verdict);
}

static void print_row(FILE *out, const cJSON *metric) {
  char baseline[RL_CELL_SIZE], current[RL_CELL_SIZE], change[RL_CELL_SIZE], interval[RL_CELL_SIZE];
  const char *key = rl_json_text(metric, "metric");
  if (strlen(key) > NAME_COLUMNS) { /* the values follow on the next line */
    rl_print_name(out, key);
    fprintf(out, "\n%*s", NAME_COLUMNS, "");
  } else {
    rl_print_name(out, key);
    fprintf(out, "%*s", NAME_COLUMNS - (int)strlen(key), "");
  }
  print_cells(out, rl_metric_format(baseline, key, rl_json_number(metric, "baseline_median")),
              rl_metric_format(current, key, rl_json_number(metric, "current_median")),
              rl_metric_format_change(change, rl_json_number(metric, "effect_ratio")),
              rl_metric_format_interval(interval, metric), rl_json_text(metric, "verdict"));
}

static void print_cause(FILE *out, const cJSON *cause) {
  char heading[RL_CAUSE_HEADING_SIZE], line[1024];
  const char *subject = rl_cause_subject(cause);
  snprintf(line, sizeof line, "%s%.256s%s%.512s", rl_cause_heading(heading, cause), subject, *subject != '\0' ? ": " : "",
           rl_json_text(cause, "text"));
  rl_print_wrapped(out, 4, line);
}

static bool have_same_reason(const cJSON *a, const cJSON *b) {
  return strcmp(rl_json_text(a, "verdict"), rl_json_text(b, "verdict")) == 0 &&
         strcmp(rl_json_text(a, "reason"), rl_json_text(b, "reason")) == 0;
}

/* Returns how many metrics from `first` on have the verdict and the reason of `metric`, and no causes. */
static int count_same_reason(const cJSON *first, const cJSON *metric) {
  int count = 0;
  for (const cJSON *other = first; other != NULL; other = other->next)
    count += have_same_reason(other, metric) && cJSON_GetArraySize(rl_json_at(other, "causes")) == 0;
  return count;
}

/* Prints the reason and the causes of a metric's verdict. A reason without causes is printed once, with the last metric that has
 * it, for all of them. */
static void print_reason(FILE *out, const cJSON *verdicts, const cJSON *metric) {
  const char *verdict = rl_json_text(metric, "verdict");
  const cJSON *cause, *causes = rl_json_at(metric, "causes");
  if (strcmp(verdict, "same") == 0) return;
  const bool has_causes = cJSON_GetArraySize(causes) > 0;
  if (!has_causes && count_same_reason(metric->next, metric) > 0) return;
  const int metrics = has_causes ? 1 : count_same_reason(verdicts->child, metric);
  fprintf(out, "\n%s: ", verdict);
  if (metrics > 1) fprintf(out, "%d metrics", metrics);
  else rl_print_name(out, rl_json_text(metric, "metric"));
  fputc('\n', out);
  rl_print_wrapped(out, 2, rl_json_text(metric, "reason"));
  cJSON_ArrayForEach (cause, causes) print_cause(out, cause);
}

static void print_verdict(FILE *out, const cJSON *run) {
  const char *state = rl_json_text(run, "state");
  const bool completed = strcmp(state, "completed") == 0;
  fprintf(out, "\n%s: %s\n", rl_json_text(run, "suite"), completed ? rl_suite_run_verdict(run) : state);
  const char *quarantine = rl_json_text(run, "quarantine_reason");
  if (rl_suite_run_needs_own_row(run)) rl_print_wrapped(out, 2, rl_suite_run_reason(run));
  if (*quarantine == '\0') return;
  fputs("quarantined:\n", out);
  rl_print_wrapped(out, 2, quarantine);
}

void rl_print_suite_run(FILE *out, const cJSON *run) {
  const cJSON *metric, *verdicts = rl_json_at(run, "verdicts");
  print_header(out, run);
  if (cJSON_GetArraySize(verdicts) > 0) {
    fputc('\n', out);
    rl_print_cell(out, "metric", -NAME_COLUMNS);
    print_cells(out, "baseline", "current", "change", "interval, %", "verdict");
    rl_print_line(out, LINE_COLUMNS);
  }
  cJSON_ArrayForEach (metric, verdicts) print_row(out, metric);
  cJSON_ArrayForEach (metric, verdicts) print_reason(out, verdicts, metric);
  print_verdict(out, run);
}

/* --- lists ---------------------------------------------------------------------------------------------------------------- */

static void print_suite(FILE *out, const cJSON *suite) {
  char duration[RL_CELL_SIZE], takes[RL_CELL_SIZE + 4];
  const cJSON *problem = rl_json_at(suite, "problem");
  const char *state = rl_json_text(suite, "last_run.state"), *verdict = rl_json_text(suite, "last_run.verdict");
  rl_print_cell(out, rl_json_text(suite, "name"), -NAME_COLUMNS);
  if (cJSON_IsObject(problem)) {
    fprintf(out, " malformed: line %.0f", rl_json_number(problem, "line"));
    print_property(out, "", rl_json_text(problem, "pointer"));
    fputc('\n', out);
    rl_print_wrapped(out, 2, rl_json_text(problem, "message"));
    return;
  }
  fprintf(out, " %6.0f %7.0f ", rl_json_number(suite, "blocks"), rl_json_number(suite, "metrics"));
  bool is_budget = strcmp(rl_json_text(suite, "estimate_basis"), "time_budget") == 0;
  snprintf(takes, sizeof takes, "%s%s", is_budget ? "≤ " : "", rl_format_age(duration, rl_json_number(suite, "estimated_s")));
  rl_print_cell(out, takes, 8);
  fprintf(out, "  %-12s %s\n", *verdict != '\0' ? verdict : *state != '\0' ? state : "—", rl_json_text(suite, "summary"));
}

void rl_print_suites(FILE *out, const cJSON *suites) {
  const cJSON *suite;
  fprintf(out, "%-*s %6s %7s %8s  %-12s %s\n", NAME_COLUMNS, "suite", "blocks", "metrics", "takes", "last run", "summary");
  cJSON_ArrayForEach (suite, rl_json_at(suites, "items")) print_suite(out, suite);
}

void rl_print_baselines(FILE *out, const cJSON *baselines) {
  const cJSON *baseline;
  fprintf(out, "%-*s %9s  %s\n", NAME_COLUMNS, "baseline", "suite run", "created (UTC)");
  cJSON_ArrayForEach (baseline, rl_json_at(baselines, "items")) {
    rl_print_cell(out, rl_json_text(baseline, "name"), -NAME_COLUMNS);
    fprintf(out, " %9.0f  %.16s\n", rl_json_number(baseline, "run"), rl_json_text(baseline, "created_at"));
  }
}
