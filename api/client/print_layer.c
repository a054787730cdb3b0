/* Prints the runs of a layer job: a row for each variant, with its gain over the variant that it changes. */
#include <stdbool.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"

enum { NAME_COLUMNS = 9, TIME_COLUMNS = 11, FLOOR_COLUMNS = 10, GAIN_COLUMNS = 10, BASE_COLUMNS = 9, ERROR_COLUMNS = 9 };

static double measured_value(const cJSON *run, const char *name) {
  const cJSON *measurement;
  cJSON_ArrayForEach (measurement, rl_json_at(run, "measurements"))
    if (strcmp(rl_json_text(measurement, "pass"), "timing") == 0 && strcmp(rl_json_text(measurement, "name"), name) == 0)
      return rl_json_number(measurement, "value");
  return NAN;
}

/* A variant, and the variant that it changes (docs/jobs.md). */
static const struct {
  const char *variant, *base;
} bases[] = {{"graph", "baseline"}, {"fused", "graph"}, {"streams", "fused"}, {"tuned", "fused"}, {"best", "tuned"}};

static const char *base_of(const char *variant) {
  for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
    if (strcmp(bases[i].variant, variant) == 0) return bases[i].base;
  return NULL;
}

/* Returns the run that a variant's gain is measured against: that of its base, or, if the job has none, of the base's base; NULL:
 * none. */
static const cJSON *find_base(const cJSON *runs, const cJSON *of) {
  const cJSON *run;
  for (const char *base = base_of(rl_json_text(of, "variant")); base != NULL; base = base_of(base))
    cJSON_ArrayForEach (run, runs)
      if (strcmp(rl_json_text(run, "variant"), base) == 0) return run;
  return NULL;
}

/* A column of the table. */
typedef struct column {
  const char *title;
  double (*value)(const cJSON *run);
  rl_cell_format format;
  int width;
} column;

/* Formats in µs without changing to ms, so that small differences between variants are visible. */
static char *format_us(char *cell, double us) {
  if (isnan(us)) return rl_format_us(cell, us);
  snprintf(cell, RL_CELL_SIZE, "%.*f µs", us < 10 ? 3 : 1, us);
  return cell;
}

static double cold_us(const cJSON *run) { return measured_value(run, "time_cold_us_median"); }

static double warm_us(const cJSON *run) { return measured_value(run, "time_warm_us_median"); }

static double token_us(const cJSON *run) {
  return cold_us(run) / (rl_json_number(run, "params.batch") * rl_json_number(run, "params.tokens"));
}

static double floor_ratio(const cJSON *run) { return measured_value(run, "floor_cold_us") / cold_us(run); }

static const column columns[] = {{"cold", cold_us, format_us, TIME_COLUMNS},
                                 {"warm", warm_us, format_us, TIME_COLUMNS},
                                 {"a token", token_us, format_us, TIME_COLUMNS},
                                 {"floor", floor_ratio, rl_format_percent, FLOOR_COLUMNS}};
enum {
  COLUMN_COUNT = sizeof columns / sizeof *columns,
  TABLE_COLUMNS = NAME_COLUMNS + 3 * TIME_COLUMNS + FLOOR_COLUMNS + GAIN_COLUMNS + BASE_COLUMNS + ERROR_COLUMNS
};

static void print_header(FILE *out) {
  rl_print_cell(out, "", -NAME_COLUMNS);
  for (int i = 0; i < COLUMN_COUNT; i++) rl_print_cell(out, columns[i].title, columns[i].width);
  rl_print_cell(out, "gained", GAIN_COLUMNS);
  rl_print_cell(out, "over", BASE_COLUMNS);
  rl_print_cell(out, "error", ERROR_COLUMNS);
  fputc('\n', out);
  rl_print_line(out, TABLE_COLUMNS);
}

/* Returns whether a sample with a cold cache is suspect. */
static bool is_cold_time_suspect(const cJSON *run) {
  const cJSON *sample;
  cJSON_ArrayForEach (sample, rl_json_at(run, "samples"))
    if (strcmp(rl_json_text(sample, "mode"), "cold") == 0 && cJSON_IsTrue(rl_json_at(sample, "suspect"))) return true;
  return false;
}

/* Prints the gain over the base, which is one of the times with a cold cache, and the base's name. Marks the gain if one of both
 * times is suspect. */
static void print_gain(FILE *out, const cJSON *run, const cJSON *base) {
  char percent[RL_CELL_SIZE], cell[RL_CELL_SIZE + 2];
  rl_format_percent(percent, base != NULL ? 1 - cold_us(run) / cold_us(base) : NAN);
  bool is_suspect = base != NULL && (is_cold_time_suspect(run) || is_cold_time_suspect(base));
  snprintf(cell, sizeof cell, "%s%s", is_suspect ? "! " : "", percent);
  rl_print_number(out, cell, GAIN_COLUMNS);
  rl_print_cell(out, rl_json_text(base, "variant"), BASE_COLUMNS);
}

static void print_run(FILE *out, const cJSON *run, const cJSON *base) {
  char cell[RL_CELL_SIZE];
  rl_print_cell(out, rl_json_text(run, "variant"), -NAME_COLUMNS);
  for (int i = 0; i < COLUMN_COUNT; i++) rl_print_number(out, columns[i].format(cell, columns[i].value(run)), columns[i].width);
  print_gain(out, run, base);
  rl_print_number(out, rl_format_relative_error(cell, measured_value(run, "relative_error")), ERROR_COLUMNS);
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
  const cJSON *run, *first = cJSON_GetArrayItem(runs, 0);
  if (rl_json_text(first, "engine")[0] == '\0') return; /* no run has started */
  print_subject(out, first);
  print_header(out);
  cJSON_ArrayForEach (run, runs) print_run(out, run, find_base(runs, run));
  cJSON_ArrayForEach (run, runs) rl_print_kernel_reasons(out, run);
  rl_print_suspect_runs(out, runs);
}
