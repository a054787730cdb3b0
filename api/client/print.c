#include "api/client/print.h"

#include <stdlib.h>
#include <string.h>

#include "api/client/cli.h"
#include "base/cleanup.h"

const cJSON *rl_json_at(const cJSON *object, const char *path) {
  while (object != NULL && *path != '\0') {
    char name[64];
    size_t length = strcspn(path, ".");
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    object = cJSON_GetObjectItemCaseSensitive(object, name);
    path += length + (path[length] == '.');
  }
  return object;
}

const char *rl_json_text(const cJSON *object, const char *path) {
  const char *text = cJSON_GetStringValue(rl_json_at(object, path));
  return text != NULL ? text : "";
}

double rl_json_number(const cJSON *object, const char *path) {
  const cJSON *item = rl_json_at(object, path);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* --- cells ------------------------------------------------------------------------------------------------------------- */

static char *number(char *cell, double value, const char *format) {
  if (isnan(value)) snprintf(cell, RL_CELL_SIZE, "—");
  else snprintf(cell, RL_CELL_SIZE, format, value);
  return cell;
}

char *rl_cell_ms(char *cell, double ms) { return ms < 1000 ? number(cell, ms, "%.1f ms") : number(cell, ms / 1000, "%.2f s"); }

char *rl_cell_us(char *cell, double us) { return us < 1000 ? number(cell, us, "%.1f µs") : rl_cell_ms(cell, us / 1000); }

char *rl_cell_count(char *cell, double value) {
  if (isnan(value)) return number(cell, value, "");
  if (fabs(value) >= 1e21) return number(cell, value, "%.3e");    /* more than a mask of 64 bits: nobody reads so many digits */
  if (value > 0 && value < 1) return number(cell, value, "%.2g"); /* launches of a step, where many steps are one launch */
  char digits[RL_CELL_SIZE / 2];
  int length = snprintf(digits, sizeof digits, "%.0f", value), used = 0;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') cell[used++] = ' ';
    cell[used++] = digits[i];
  }
  cell[used] = '\0';
  return cell;
}

char *rl_cell_bytes(char *cell, double bytes) {
  return bytes < 10240.0 * 1048576 ? number(cell, bytes / 1048576, "%.1f MiB") : number(cell, bytes / 1073741824, "%.1f GiB");
}

char *rl_cell_percent(char *cell, double ratio) { return number(cell, ratio * 100, "%.2f %%"); }
char *rl_cell_points(char *cell, double difference) { return number(cell, difference * 100, "%+.2f pt"); }
char *rl_cell_times(char *cell, double ratio) { return number(cell, ratio, "%.2f×"); }

char *rl_cell_rate(char *cell, double bytes_per_s) {
  if (bytes_per_s >= 1e9) return number(cell, bytes_per_s * 1e-9, "%.1f GB/s");
  return bytes_per_s >= 1e6 ? number(cell, bytes_per_s * 1e-6, "%.1f MB/s") : number(cell, bytes_per_s * 1e-3, "%.1f kB/s");
}

char *rl_cell_error(char *cell, double relative) {
  return relative == 0 ? number(cell, 0, "%.0f") : number(cell, relative, "%.1e");
}

char *rl_cell_operations(char *cell, double operations_per_s) {
  return operations_per_s < 1e12 ? number(cell, operations_per_s * 1e-9, "%.1f GFLOP/s")
                                 : number(cell, operations_per_s * 1e-12, "%.2f TFLOP/s");
}

char *rl_cell_age(char *cell, double seconds) {
  return seconds < 120      ? number(cell, seconds, "%.0f s")
         : seconds < 7200   ? number(cell, seconds / 60, "%.0f min")
         : seconds < 172800 ? number(cell, seconds / 3600, "%.0f h")
                            : number(cell, seconds / 86400, "%.0f days");
}

static bool starts_character(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

void rl_print_cell(FILE *out, const char *text, int width) {
  int room = abs(width), columns = 0;
  size_t bytes = 0, last = 0; /* last: where the last character that has room begins */
  const char *more = "";
  for (; text[bytes] != '\0'; bytes++) {
    if (!starts_character(text[bytes])) continue;
    if (columns == room - 1) last = bytes;
    if (columns++ < room) continue;
    columns = room, bytes = last, more = "…";
    break;
  }
  if (width > 0) fprintf(out, "%*s", room - columns, "");
  fprintf(out, "%.*s%s", (int)bytes, text, more);
  if (width < 0) fprintf(out, "%*s", room - columns, "");
}

void rl_print_line(FILE *out, int count) {
  while (count-- > 0) fputs("─", out);
  fputc('\n', out);
}

int rl_print_json(const cJSON *document) {
  rl_auto(rl_free_text) char *text = cJSON_PrintUnformatted(document);
  if (text != NULL) puts(text);
  return RL_EXIT_COMPLETED;
}

/* --- the comparison ---------------------------------------------------------------------------------------------------- */

typedef struct row {
  const char *label, *field; /* of a run's summary */
  rl_cell_format format;
  const char *ratio; /* of a comparison */
  rl_cell_format ratio_format;
} row;

static const row rows[] = {
    {"epoch time, median", "epoch_ms_median", rl_cell_ms, "speedup_ratio", rl_cell_times},
    {"epoch time, min", "epoch_ms_min", rl_cell_ms, "speedup_min_ratio", rl_cell_times},
    {"images/s", "images_per_s", rl_cell_count, NULL, NULL},
    {"peak memory", "peak_memory_bytes", rl_cell_bytes, "peak_memory_ratio", rl_cell_times},
    {"test accuracy", "test_accuracy_ratio", rl_cell_percent, "test_accuracy_difference_ratio", rl_cell_points},
    {"launches per step", "launches_per_step", rl_cell_count, NULL, NULL},
};
enum { ROWS = sizeof rows / sizeof *rows, LABEL = 19, VALUE = 12, RATIO = 10 };

/* The comparison whose candidate is this run, if there is one. */
static const cJSON *compared(const cJSON *comparison, const cJSON *run) {
  const cJSON *pair;
  cJSON_ArrayForEach (pair, rl_json_at(comparison, "items"))
    if (rl_json_number(pair, "candidate.run") == rl_json_number(run, "run")) return pair;
  return NULL;
}

static void print_header(FILE *out, const cJSON *runs, const cJSON *comparison) {
  const cJSON *run;
  int width = LABEL;
  rl_print_cell(out, "", -LABEL);
  cJSON_ArrayForEach (run, runs) {
    const cJSON *pair = compared(comparison, run);
    rl_print_cell(out, rl_json_text(run, "variant"), VALUE);
    if (pair != NULL) {
      char title[RL_CELL_SIZE];
      snprintf(title, sizeof title, "vs %s", rl_json_text(pair, "baseline.variant"));
      rl_print_cell(out, title, RATIO);
    }
    width += VALUE + (pair != NULL ? RATIO : 0);
  }
  fputc('\n', out);
  rl_print_line(out, width);
}

static void print_row(FILE *out, const row *line, const cJSON *runs, const cJSON *comparison) {
  const cJSON *run;
  char cell[RL_CELL_SIZE];
  rl_print_cell(out, line->label, -LABEL);
  cJSON_ArrayForEach (run, runs) {
    const cJSON *pair = compared(comparison, run);
    rl_print_cell(out, line->format(cell, rl_json_number(rl_json_at(run, "summary"), line->field)), VALUE);
    if (pair != NULL)
      rl_print_cell(out, line->ratio != NULL ? line->ratio_format(cell, rl_json_number(pair, line->ratio)) : "", RATIO);
  }
  fputc('\n', out);
}

/* Why a cell of the table is empty, or must not be trusted. */
static void print_reasons(FILE *out, const cJSON *runs) {
  const cJSON *run, *pass, *epoch;
  cJSON_ArrayForEach (run, runs) {
    const char *variant = rl_json_text(run, "variant");
    for (int i = 0; i < ROWS; i++) {
      const char *reason = rl_json_text(rl_json_at(run, "summary.unavailable"), rows[i].field);
      if (reason[0] != '\0') fprintf(out, "— %s, %s: %s\n", variant, rows[i].label, reason);
    }
    cJSON_ArrayForEach (epoch, rl_json_at(run, "epochs"))
      if (cJSON_IsTrue(rl_json_at(epoch, "suspect")))
        fprintf(out, "! %s, epoch %.0f is suspect: %s\n", variant, rl_json_number(epoch, "epoch"),
                rl_json_text(epoch, "suspect_reason"));
    cJSON_ArrayForEach (pass, rl_json_at(run, "passes"))
      if (strcmp(rl_json_text(pass, "state"), "unavailable") == 0)
        fprintf(out, "— %s, %s pass: %s\n", variant, rl_json_text(pass, "pass"), rl_json_text(pass, "reason"));
  }
}

const char *rl_job_problem(const cJSON *job) { return rl_json_text(job, "problem.message"); }

/* What the compiler said of posted code that did not come to its end. */
static void print_logs(FILE *out, const cJSON *job) {
  const cJSON *run;
  if (strcmp(rl_json_text(job, "state"), "failed") != 0) return;
  cJSON_ArrayForEach (run, rl_json_at(job, "runs")) fputs(rl_json_text(run, "log"), out);
}

void rl_print_results(FILE *out, const cJSON *job, const cJSON *results, const cJSON *comparison) {
  const cJSON *runs = rl_json_at(results, "runs"), *first = cJSON_GetArrayItem(runs, 0);
  const char *name = rl_json_text(first, "device.name"), *dataset = rl_json_text(first, "dataset");
  fprintf(out, "job %.0f %s on %s", rl_json_number(job, "id"), rl_json_text(job, "state"), rl_json_text(job, "device"));
  if (name[0] != '\0') fprintf(out, " (%s)", name);
  fputc('\n', out);
  if (rl_job_problem(job)[0] != '\0') fprintf(out, "%s\n", rl_job_problem(job));
  print_logs(out, job);
  if (strcmp(rl_json_text(job, "kind"), "kernel") == 0 || strcmp(rl_json_text(job, "kind"), "source") == 0) {
    rl_print_kernel_runs(out, runs);
    return;
  }
  if (strcmp(rl_json_text(job, "kind"), "ceilings") == 0) {
    rl_print_ceilings_run(out, first);
    return;
  }
  if (dataset[0] != '\0')
    fprintf(out, "%s%s · engine %s · batch %.0f · measured epochs: %.0f · commit %s\n", dataset,
            cJSON_IsTrue(rl_json_at(first, "partial")) ? " (part of it)" : "", rl_json_text(first, "engine"),
            rl_json_number(first, "params.batch_size"), rl_json_number(first, "summary.epochs"), rl_json_text(first, "commit"));
  if (dataset[0] == '\0') return; /* nothing has run yet */
  fputc('\n', out);
  print_header(out, runs, comparison);
  for (int i = 0; i < ROWS; i++) print_row(out, &rows[i], runs, comparison);
  print_reasons(out, runs);
}
