/* Prints the runs of a layer job: a row for each variant, with its gain over the previous variant. */
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"

enum { NAME_COLUMNS = 10, VALUE_COLUMNS = 11 };

static double measured_value(const cJSON *run, const char *name) {
  const cJSON *measurement;
  cJSON_ArrayForEach (measurement, rl_json_at(run, "measurements"))
    if (strcmp(rl_json_text(measurement, "pass"), "timing") == 0 && strcmp(rl_json_text(measurement, "name"), name) == 0)
      return rl_json_number(measurement, "value");
  return NAN;
}

/* A column of the table. value: returns the column's value for a run; previous: the run in the row above; NULL for the first
 * row. */
typedef struct column {
  const char *title;
  double (*value)(const cJSON *run, const cJSON *previous);
  rl_cell_format format;
} column;

/* Formats in µs without changing to ms, so that small differences between variants are visible. */
static char *format_us(char *cell, double us) {
  if (isnan(us)) return rl_format_us(cell, us);
  snprintf(cell, RL_CELL_SIZE, "%.*f µs", us < 10 ? 3 : 1, us);
  return cell;
}

static double cold_us(const cJSON *run, const cJSON *previous) {
  (void)previous;
  return measured_value(run, "time_cold_us_median");
}

static double warm_us(const cJSON *run, const cJSON *previous) {
  (void)previous;
  return measured_value(run, "time_warm_us_median");
}

static double token_us(const cJSON *run, const cJSON *previous) {
  (void)previous;
  return cold_us(run, NULL) / (rl_json_number(run, "params.batch") * rl_json_number(run, "params.tokens"));
}

static double floor_ratio(const cJSON *run, const cJSON *previous) {
  (void)previous;
  return measured_value(run, "floor_cold_us") / cold_us(run, NULL);
}

static double gained_ratio(const cJSON *run, const cJSON *previous) {
  return previous != NULL ? 1 - cold_us(run, NULL) / cold_us(previous, NULL) : NAN;
}

static double relative_error(const cJSON *run, const cJSON *previous) {
  (void)previous;
  return measured_value(run, "relative_error");
}

static const column columns[] = {{"cold", cold_us, format_us},
                                 {"warm", warm_us, format_us},
                                 {"a token", token_us, format_us},
                                 {"of floor", floor_ratio, rl_format_percent},
                                 {"gained", gained_ratio, rl_format_percent},
                                 {"error", relative_error, rl_format_relative_error}};
enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static void print_header(FILE *out) {
  rl_print_cell(out, "", -NAME_COLUMNS);
  for (int i = 0; i < COLUMN_COUNT; i++) rl_print_cell(out, columns[i].title, VALUE_COLUMNS);
  fputc('\n', out);
  rl_print_line(out, NAME_COLUMNS + COLUMN_COUNT * VALUE_COLUMNS);
}

static void print_run(FILE *out, const cJSON *run, const cJSON *previous) {
  char cell[RL_CELL_SIZE];
  rl_print_cell(out, rl_json_text(run, "variant"), -NAME_COLUMNS);
  for (int i = 0; i < COLUMN_COUNT; i++)
    rl_print_cell(out, columns[i].format(cell, columns[i].value(run, previous)), VALUE_COLUMNS);
  fputc('\n', out);
}

static void print_subject(FILE *out, const cJSON *run) {
  const double tokens = rl_json_number(run, "params.tokens"), cached = rl_json_number(run, "params.cached_tokens");
  fprintf(out, "%s %s · ", rl_json_text(run, "workload"), rl_json_text(run, "params.dtype"));
  if (cached > 0)
    fprintf(out, "decode of %.0f × %.0f tokens after %.0f cached", rl_json_number(run, "params.batch"), tokens, cached);
  else fprintf(out, "prefill of %.0f × %.0f tokens", rl_json_number(run, "params.batch"), tokens);
  fprintf(out, " · hidden %.0f · heads %.0f · ffn %.0f%s\n", rl_json_number(run, "params.hidden"),
          rl_json_number(run, "params.heads"), rl_json_number(run, "params.ffn"),
          cJSON_IsTrue(rl_json_at(run, "params.causal")) ? " · causal" : "");
  fprintf(out, "engine %s · samples: %.0f · commit %s\n\n", rl_json_text(run, "engine"), rl_json_number(run, "params.samples"),
          rl_json_text(run, "commit"));
}

void rl_print_layer_runs(FILE *out, const cJSON *runs) {
  const cJSON *run, *previous = NULL, *first = cJSON_GetArrayItem(runs, 0);
  if (rl_json_text(first, "engine")[0] == '\0') return; /* no run has started */
  print_subject(out, first);
  print_header(out);
  cJSON_ArrayForEach (run, runs) {
    print_run(out, run, previous);
    previous = run;
  }
  cJSON_ArrayForEach (run, runs) rl_print_kernel_reasons(out, run);
}
