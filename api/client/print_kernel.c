/* Prints the runs of a kernel or source job: a table with a column for each variant. */
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"

typedef struct row {
  const char *label, *measurement; /* measurement: a pattern (fnmatch) for the name of the timing pass's measurement */
  rl_cell_format format;
} row;

static const row rows[] = {
    {"cold, median", "time_cold_us_median", rl_format_us},
    {"cold, min", "time_cold_us_min", rl_format_us},
    {"cold, spread", "time_cold_us_spread_ratio", rl_format_percent},
    {"warm, median", "time_warm_us_median", rl_format_us},
    {"warm, min", "time_warm_us_min", rl_format_us},
    {"warm, spread", "time_warm_us_spread_ratio", rl_format_percent},
    {"bytes moved, cold", "achieved_bytes_per_s", rl_format_bytes_per_s},
    {"of the roof, cold", "share_cold_of_*_ratio", rl_format_percent},
    {"of the roof, warm", "share_warm_of_*_ratio", rl_format_percent},
    {"relative error", "relative_error", rl_format_relative_error},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows, LABEL_COLUMNS = 19, VALUE_COLUMNS = 14 };

static const cJSON *find_measurement(const cJSON *run, const char *name) {
  const cJSON *measurement;
  cJSON_ArrayForEach (measurement, rl_json_at(run, "measurements"))
    if (strcmp(rl_json_text(measurement, "pass"), "timing") == 0 && fnmatch(name, rl_json_text(measurement, "name"), 0) == 0)
      return measurement;
  return NULL;
}

static bool has_measurement(const cJSON *runs, const char *name) {
  const cJSON *run;
  cJSON_ArrayForEach (run, runs)
    if (find_measurement(run, name) != NULL) return true;
  return false;
}

/* Prints operations per second: the compulsory operations of a launch divided by its median time. Skips kernels with more bytes
 * than operations, for which bytes per second are more meaningful. */
static void print_operations(FILE *out, const cJSON *runs) {
  const cJSON *run;
  char cell[RL_CELL_SIZE];
  const cJSON *first = cJSON_GetArrayItem(runs, 0);
  if (!(rl_json_number(first, "floor_operations") > rl_json_number(first, "floor_bytes"))) return;
  rl_print_cell(out, "arithmetic, warm", -LABEL_COLUMNS);
  cJSON_ArrayForEach (run, runs) {
    double us = rl_json_number(find_measurement(run, "time_warm_us_median"), "value");
    rl_print_cell(out, rl_format_operations_per_s(cell, rl_json_number(run, "floor_operations") / us * 1e6), VALUE_COLUMNS);
  }
  fputc('\n', out);
}

/* Prints the measured rates (roofs) of which the rows "of the roof" are a percentage. */
static void print_roofs(FILE *out, const cJSON *run) {
  const cJSON *measurement;
  cJSON_ArrayForEach (measurement, rl_json_at(run, "measurements")) {
    const char *name = rl_json_text(measurement, "name");
    char mode[8] = "", roof[48] = "";
    if (sscanf(name, "share_%7[a-z]_of_%47s", mode, roof) != 2 || isnan(rl_json_number(measurement, "value"))) continue;
    char *end = strstr(roof, "_ratio");
    if (end != NULL) *end = '\0';
    fprintf(out, "roof, %s cache: %s, measured by the ceilings job\n", mode, roof);
  }
}

static void print_table(FILE *out, const cJSON *runs) {
  const cJSON *run;
  char cell[RL_CELL_SIZE];
  rl_print_cell(out, "", -LABEL_COLUMNS);
  cJSON_ArrayForEach (run, runs) rl_print_cell(out, rl_json_text(run, "variant"), VALUE_COLUMNS);
  fputc('\n', out);
  rl_print_cell(out, "run", -LABEL_COLUMNS);
  cJSON_ArrayForEach (run, runs) {
    snprintf(cell, sizeof cell, "%.0f", rl_json_number(run, "run"));
    rl_print_cell(out, cell, VALUE_COLUMNS);
  }
  fputc('\n', out);
  rl_print_line(out, LABEL_COLUMNS + VALUE_COLUMNS * cJSON_GetArraySize(runs));
  for (int i = 0; i < ROW_COUNT; i++) {
    if (!has_measurement(runs, rows[i].measurement)) continue;
    rl_print_cell(out, rows[i].label, -LABEL_COLUMNS);
    cJSON_ArrayForEach (run, runs)
      rl_print_cell(out, rows[i].format(cell, rl_json_number(find_measurement(run, rows[i].measurement), "value")),
                    VALUE_COLUMNS);
    fputc('\n', out);
  }
  print_operations(out, runs);
}

void rl_print_kernel_reasons(FILE *out, const cJSON *run) {
  const cJSON *pass;
  const char *variant = rl_json_text(run, "variant");
  for (int i = 0; i < ROW_COUNT; i++) {
    const char *reason = rl_json_text(find_measurement(run, rows[i].measurement), "reason");
    if (reason[0] != '\0') fprintf(out, "— %s, %s: %s\n", variant, rows[i].label, reason);
  }
  cJSON_ArrayForEach (pass, rl_json_at(run, "passes"))
    if (strcmp(rl_json_text(pass, "state"), "unavailable") == 0)
      fprintf(out, "— %s, %s pass: %s\n", variant, rl_json_text(pass, "pass"), rl_json_text(pass, "reason"));
}

static void print_size(FILE *out, const cJSON *size) {
  if (cJSON_IsBool(size)) fprintf(out, " %s=%s", size->string, cJSON_IsTrue(size) ? "true" : "false");
  else fprintf(out, " %s=%.0f", size->string, size->valuedouble);
}

/* Prints a posted kernel and the name of its job: "add (saxpy.cu)". */
static void print_posted_kernel(FILE *out, const cJSON *request) {
  const char *name = rl_json_text(request, "name");
  fputs(rl_json_text(request, "entry"), out);
  if (name[0] == '\0') return;
  fputs(" (", out);
  rl_print_name(out, name);
  fputc(')', out);
}

/* Prints the workload: a kernel with its sizes, the kernels of a sequence, or a posted kernel. */
static void print_subject(FILE *out, const cJSON *job, const cJSON *run) {
  const cJSON *size, *kernel;
  const char *dtype = rl_json_text(run, "params.dtype");
  if (strcmp(rl_json_text(job, "kind"), "source") == 0) return print_posted_kernel(out, rl_json_at(job, "request"));
  fprintf(out, "%s%s%s", rl_json_text(run, "workload"), dtype[0] != '\0' ? " " : "", dtype);
  cJSON_ArrayForEach (size, rl_json_at(run, "params.shape")) print_size(out, size);
  cJSON_ArrayForEach (kernel, rl_json_at(run, "params.kernels"))
    fprintf(out, " %s%s", rl_json_text(kernel, "kernel"), kernel->next != NULL ? " →" : "");
}

void rl_print_kernel_runs(FILE *out, const cJSON *job, const cJSON *runs) {
  const cJSON *run, *first = cJSON_GetArrayItem(runs, 0);
  if (rl_json_text(first, "engine")[0] == '\0') return; /* no run has started */
  print_subject(out, job, first);
  fprintf(out, " · engine %s · samples: %.0f · commit %s\n\n", rl_json_text(first, "engine"),
          rl_json_number(first, "params.samples"), rl_json_text(first, "commit"));
  print_table(out, runs);
  print_roofs(out, first);
  cJSON_ArrayForEach (run, runs) rl_print_kernel_reasons(out, run);
  rl_print_suspect_runs(out, runs);
}
