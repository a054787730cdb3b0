/* Writes a suite run as a summary for a pull request. Names are written as code spans, in which GitHub neither formats text nor
 * notifies users. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "api/client/suite_metrics.h"
#include "api/client/suite_outputs_internal.h"

/* Returns the length of the longest run of backticks. */
static int longest_backticks(const char *text) {
  int longest = 0;
  for (; *text != '\0'; text++) {
    const int length = (int)strspn(text, "`");
    if (length > longest) longest = length;
    if (length > 0) text += length - 1;
  }
  return longest;
}

/* Writes a code span. Line breaks become spaces. In a table, "|" is escaped, because it ends a cell even inside a code span. */
static void write_span(FILE *out, const char *text, bool in_table) {
  const int fence = longest_backticks(text) + 1;
  for (int i = 0; i < fence; i++) fputc('`', out);
  if (fence > 1) fputc(' ', out); /* readers strip one space at both ends */
  for (; *text != '\0'; text++) {
    if (*text == '|' && in_table) fputc('\\', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
  }
  if (fence > 1) fputc(' ', out);
  for (int i = 0; i < fence; i++) fputc('`', out);
}

static void write_code(FILE *out, const char *text) { write_span(out, text, false); }

/* Writes text with escapes, so that no character formats it. An empty HTML comment after "@" and "#" prevents a mention or a link
 * to an issue. */
static void write_text(FILE *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (strchr("\\`*_{}[]<>()#+!|~&@$", *text) != NULL) fputc('\\', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    if (*text == '@' || *text == '#') fputs("<!-- -->", out);
  }
}

static void write_fact(FILE *out, const char *label, const char *value) {
  if (*value == '\0') return;
  fprintf(out, " · %s ", label);
  write_code(out, value);
}

static void write_heading(FILE *out, const cJSON *run) {
  const bool completed = strcmp(rl_json_text(run, "state"), "completed") == 0;
  fputs("### ", out);
  write_code(out, rl_json_text(run, "suite"));
  fprintf(out, ": %s\n\n", completed ? rl_suite_run_verdict(run) : rl_json_text(run, "state"));
  fprintf(out, "Suite run %.0f", rl_json_number(run, "id"));
  write_fact(out, "device", rl_json_text(run, "device_name"));
  write_fact(out, "driver", rl_json_text(run, "driver"));
  write_fact(out, "rooflined", rl_json_text(run, "git_commit"));
  write_fact(out, "baseline", rl_json_text(run, "baseline.name"));
  fputs("\n\n", out);
  const char *quarantine = rl_json_text(run, "quarantine_reason");
  if (rl_suite_run_needs_own_row(run)) write_text(out, rl_suite_run_reason(run)), fputs("\n\n", out);
  if (*quarantine != '\0') fputs("Quarantined: ", out), write_text(out, quarantine), fputs("\n\n", out);
}

static void write_row(FILE *out, const cJSON *verdict) {
  char cell[RL_CELL_SIZE];
  const char *key = rl_json_text(verdict, "metric"), *name = rl_json_text(verdict, "verdict");
  const bool passes = strcmp(name, "same") == 0 || strcmp(name, "faster") == 0;
  fputs("| ", out);
  write_span(out, key, true);
  fprintf(out, " | %s", rl_metric_format(cell, key, rl_json_number(verdict, "baseline_median")));
  fprintf(out, " | %s", rl_metric_format(cell, key, rl_json_number(verdict, "current_median")));
  fprintf(out, " | %s", rl_metric_format_change(cell, rl_json_number(verdict, "effect_ratio")));
  fprintf(out, " | %s", rl_metric_format_interval(cell, verdict));
  fprintf(out, " | %s%s%s |\n", passes ? "" : "**", name, passes ? "" : "**");
}

static void write_cause(FILE *out, const cJSON *cause) {
  char heading[RL_CAUSE_HEADING_SIZE];
  const char *subject = rl_cause_subject(cause);
  fprintf(out, "  - %s", rl_cause_heading(heading, cause));
  if (*subject != '\0') write_code(out, subject), fputs(": ", out);
  write_text(out, rl_json_text(cause, "text"));
  fputc('\n', out);
}

void rl_write_markdown(FILE *out, const cJSON *run) {
  const cJSON *verdict, *cause;
  write_heading(out, run);
  if (cJSON_GetArraySize(rl_json_at(run, "verdicts")) == 0) return;
  fputs("| metric | baseline | current | change | interval, % | verdict |\n| --- | ---: | ---: | ---: | ---: | --- |\n", out);
  cJSON_ArrayForEach (verdict, rl_json_at(run, "verdicts")) write_row(out, verdict);
  fputc('\n', out);
  cJSON_ArrayForEach (verdict, rl_json_at(run, "verdicts")) {
    if (strcmp(rl_json_text(verdict, "verdict"), "same") == 0) continue;
    fputs("- ", out);
    write_code(out, rl_json_text(verdict, "metric"));
    fprintf(out, " is %s: ", rl_json_text(verdict, "verdict"));
    write_text(out, rl_json_text(verdict, "reason"));
    fputc('\n', out);
    cJSON_ArrayForEach (cause, rl_json_at(verdict, "causes")) write_cause(out, cause);
  }
}
