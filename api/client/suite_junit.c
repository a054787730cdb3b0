/* Writes a suite run as JUnit XML. `run` is the document of a suite run (GET /suite-runs/{id}). The order of elements and the
 * required attributes follow Ant's schema, which is stricter than the schema of Jenkins. */
#include <math.h>
#include <string.h>

#include "api/client/suite_metrics.h"
#include "api/client/suite_outputs_internal.h"
#include "base/utf8.h"

/* Returns whether XML 1.0 allows the character (its production 2, "Char"). */
static bool is_xml_character(const char *text, size_t size) {
  if (size == 1) return (unsigned char)*text >= ' ' || *text == '\t' || *text == '\n' || *text == '\r';
  return size != 3 || (memcmp(text, "\xef\xbf\xbe", 3) != 0 && memcmp(text, "\xef\xbf\xbf", 3) != 0); /* U+FFFE, U+FFFF */
}

/* Writes a character of an attribute or of text. Writes a character reference for a special character of XML, and for white space
 * that the normalization of attributes would change. */
static void write_character(FILE *out, const char *text, size_t size) {
  if (size == 1 && strchr("&<>\"'\t\n\r", *text) != NULL) fprintf(out, "&#%d;", *text);
  else fwrite(text, 1, size, out);
}

static void write_text(FILE *out, const char *text) {
  size_t left = strlen(text);
  while (left > 0) {
    size_t size = rl_utf8_character_size(text, left);
    if (size > 0 && is_xml_character(text, size)) write_character(out, text, size);
    else fputs("\xef\xbf\xbd", out); /* U+FFFD */
    if (size == 0) size = 1;
    text += size;
    left -= size;
  }
}

static void write_attribute(FILE *out, const char *name, const char *value) {
  fprintf(out, " %s=\"", name);
  write_text(out, value);
  fputc('"', out);
}

static void write_property(FILE *out, const char *name, const char *value) {
  if (*value == '\0') return; /* unknown values are omitted */
  fputs("      <property", out);
  write_attribute(out, "name", name);
  write_attribute(out, "value", value);
  fputs("/>\n", out);
}

/* Returns the name of the element in a test case with this verdict, "failure" or "error"; NULL if the test case passes. */
static const char *element_of_verdict(const char *verdict) {
  if (strcmp(verdict, "same") == 0 || strcmp(verdict, "faster") == 0) return NULL;
  return strcmp(verdict, "slower") == 0 ? "failure" : "error";
}

static void write_cause(FILE *out, const cJSON *cause) {
  char heading[RL_CAUSE_HEADING_SIZE];
  const char *subject = rl_cause_subject(cause);
  fputs(rl_cause_heading(heading, cause), out);
  write_text(out, subject);
  fputs(*subject != '\0' ? ": " : "", out);
  write_text(out, rl_json_text(cause, "text"));
  fputc('\n', out);
}

static void write_outcome(FILE *out, const char *verdict, const char *reason, const cJSON *causes) {
  const char *element = element_of_verdict(verdict);
  const cJSON *cause;
  if (element == NULL) return;
  fprintf(out, "      <%s", element);
  write_attribute(out, "type", verdict);
  write_attribute(out, "message", reason);
  fputc('>', out);
  cJSON_ArrayForEach (cause, causes) write_cause(out, cause);
  fprintf(out, "</%s>\n", element);
}

/* Writes a test case for a metric. metric NULL: writes a test case for the suite run itself. */
static void write_case(FILE *out, const cJSON *run, const cJSON *metric, double time_s) {
  const char *verdict = metric != NULL ? rl_json_text(metric, "verdict") : rl_suite_run_verdict(run);
  /* A suite run that has its own row failed, was cancelled or was quarantined. It must not count as passed, even if its verdict
   * is `same` or `faster`. */
  if (metric == NULL && element_of_verdict(verdict) == NULL) verdict = "inconclusive";
  fputs("    <testcase", out);
  write_attribute(out, "name", metric != NULL ? rl_json_text(metric, "metric") : "suite run");
  fputs(" classname=\"rooflined.", out);
  write_text(out, rl_json_text(run, "suite"));
  fprintf(out, "\" time=\"%.3f\">\n", time_s);
  write_outcome(out, verdict, metric != NULL ? rl_json_text(metric, "reason") : rl_suite_run_reason(run),
                rl_json_at(metric, "causes"));
  fputs("    </testcase>\n", out);
}

typedef struct counts {
  int tests, failures, errors;
} counts;

static counts count_cases(const cJSON *run) {
  const bool own_row = rl_suite_run_needs_own_row(run);
  const bool own_failure = own_row && strcmp(rl_suite_run_verdict(run), "slower") == 0;
  counts counted = {.tests = own_row, .failures = own_failure, .errors = own_row && !own_failure};
  const cJSON *metric;
  cJSON_ArrayForEach (metric, rl_json_at(run, "verdicts")) {
    const char *element = element_of_verdict(rl_json_text(metric, "verdict"));
    counted.tests++;
    counted.failures += element != NULL && strcmp(element, "failure") == 0;
    counted.errors += element != NULL && strcmp(element, "error") == 0;
  }
  return counted;
}

/* Writes the time at which the suite run began. It has no time zone, because Ant's schema forbids one. */
static void write_timestamp(FILE *out, const cJSON *run) {
  const char *started = rl_json_text(run, "started_at");
  if (*started == '\0') started = rl_json_text(run, "created_at");
  fprintf(out, " timestamp=\"%.19s\"", *started != '\0' ? started : "1970-01-01T00:00:00");
}

static void write_properties(FILE *out, const cJSON *run) {
  char id[32];
  snprintf(id, sizeof id, "%.0f", rl_json_number(run, "id"));
  fputs("    <properties>\n", out);
  write_property(out, "suite run", id);
  write_property(out, "verdict", rl_suite_run_verdict(run));
  write_property(out, "device", rl_json_text(run, "device_name"));
  write_property(out, "driver", rl_json_text(run, "driver"));
  write_property(out, "rooflined commit", rl_json_text(run, "git_commit"));
  write_property(out, "quarantined", rl_json_text(run, "quarantine_reason"));
  write_property(out, "baseline", rl_json_text(run, "baseline.name"));
  fputs("    </properties>\n", out);
}

void rl_write_junit(FILE *out, const cJSON *run) {
  const counts counted = count_cases(run);
  const double elapsed_s = fmax(rl_json_number(run, "elapsed_s"), 0); /* 0 for a run that has not started */
  const cJSON *metric;
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite package=\"rooflined\" id=\"0\"", out);
  write_attribute(out, "name", rl_json_text(run, "suite"));
  write_timestamp(out, run);
  fprintf(out, " hostname=\"localhost\" tests=\"%d\" failures=\"%d\" errors=\"%d\" time=\"%.3f\">\n", counted.tests,
          counted.failures, counted.errors, elapsed_s);
  write_properties(out, run);
  /* The schema requires a time for each test case. All metrics come from the same blocks, so each gets an equal share of the
   * elapsed time. */
  const double share_s = counted.tests > 0 ? elapsed_s / counted.tests : 0;
  cJSON_ArrayForEach (metric, rl_json_at(run, "verdicts")) write_case(out, run, metric, share_s);
  if (rl_suite_run_needs_own_row(run)) write_case(out, run, NULL, share_s);
  fputs("    <system-out></system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n", out);
}
