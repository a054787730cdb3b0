/* Prints the result of a job: the comparison table of a training job, or the table of another kind of job. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/cli.h"
#include "api/client/print.h"
#include "base/cleanup.h"

int rl_print_json(const cJSON *document) {
  RL_CLEANUP(rl_free_text) char *text = cJSON_PrintUnformatted(document);
  if (text != NULL) puts(text);
  return RL_EXIT_COMPLETED;
}

void rl_print_runs(FILE *out, const cJSON *runs) {
  const cJSON *run;
  cJSON_ArrayForEach (run, runs)
    fprintf(out, "%s%.0f %s", run != runs->child ? ", " : "", rl_json_number(run, "id"), rl_json_text(run, "variant"));
}

typedef struct row {
  const char *label, *field; /* field: name of the member in a run's summary */
  rl_cell_format format;
  const char *ratio_field; /* name of the member in a comparison; NULL: a comparison has no such ratio */
  rl_cell_format ratio_format;
} row;

static const row rows[] = {
    {"epoch time, median", "epoch_ms_median", rl_format_ms, "speedup_ratio", rl_format_factor},
    {"epoch time, min", "epoch_ms_min", rl_format_ms, "speedup_min_ratio", rl_format_factor},
    {"images/s", "images_per_s", rl_format_count, NULL, NULL},
    {"peak memory", "peak_memory_bytes", rl_format_bytes, "peak_memory_ratio", rl_format_factor},
    {"test accuracy", "test_accuracy_ratio", rl_format_percent, "test_accuracy_difference_ratio", rl_format_percentage_points},
    {"launches per step", "launches_per_step", rl_format_count, NULL, NULL},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows, LABEL_COLUMNS = 19, VALUE_COLUMNS = 12, RATIO_COLUMNS = 10 };

/* Returns the item of the comparison whose candidate is this run; NULL if there is none. */
static const cJSON *find_comparison(const cJSON *comparison, const cJSON *run) {
  const cJSON *pair;
  cJSON_ArrayForEach (pair, rl_json_at(comparison, "items"))
    if (rl_json_number(pair, "candidate.run") == rl_json_number(run, "run")) return pair;
  return NULL;
}

static void print_run_ids(FILE *out, const cJSON *runs, const cJSON *comparison) {
  const cJSON *run;
  char cell[RL_CELL_SIZE];
  rl_print_cell(out, "run", -LABEL_COLUMNS);
  cJSON_ArrayForEach (run, runs) {
    snprintf(cell, sizeof cell, "%.0f", rl_json_number(run, "run"));
    rl_print_cell(out, cell, VALUE_COLUMNS);
    if (find_comparison(comparison, run) != NULL) rl_print_cell(out, "", RATIO_COLUMNS);
  }
  fputc('\n', out);
}

static void print_header(FILE *out, const cJSON *runs, const cJSON *comparison) {
  const cJSON *run;
  int width = LABEL_COLUMNS;
  rl_print_cell(out, "", -LABEL_COLUMNS);
  cJSON_ArrayForEach (run, runs) {
    const cJSON *pair = find_comparison(comparison, run);
    rl_print_cell(out, rl_json_text(run, "variant"), VALUE_COLUMNS);
    if (pair != NULL) {
      char title[RL_CELL_SIZE];
      snprintf(title, sizeof title, "vs %s", rl_json_text(pair, "baseline.variant"));
      rl_print_cell(out, title, RATIO_COLUMNS);
    }
    width += VALUE_COLUMNS + (pair != NULL ? RATIO_COLUMNS : 0);
  }
  fputc('\n', out);
  print_run_ids(out, runs, comparison);
  rl_print_line(out, width);
}

static void print_row(FILE *out, const row *line, const cJSON *runs, const cJSON *comparison) {
  const cJSON *run;
  char cell[RL_CELL_SIZE];
  rl_print_cell(out, line->label, -LABEL_COLUMNS);
  cJSON_ArrayForEach (run, runs) {
    const cJSON *pair = find_comparison(comparison, run);
    rl_print_cell(out, line->format(cell, rl_json_number(rl_json_at(run, "summary"), line->field)), VALUE_COLUMNS);
    if (pair != NULL)
      rl_print_cell(out, line->ratio_field != NULL ? line->ratio_format(cell, rl_json_number(pair, line->ratio_field)) : "",
                    RATIO_COLUMNS);
  }
  fputc('\n', out);
}

/* Prints the number of steps that were skipped without a loss scale. Nothing then makes the next gradients smaller, so the run
 * may have learned nothing. */
static void print_skipped_steps(FILE *out, const cJSON *run) {
  const cJSON *epoch;
  double skipped = 0;
  cJSON_ArrayForEach (epoch, rl_json_at(run, "epochs")) {
    const double steps = rl_json_number(epoch, "skipped_steps");
    if (isnan(rl_json_number(epoch, "loss_scale")) && steps > 0) skipped += steps;
  }
  if (skipped > 0)
    fprintf(out, "! %s: steps skipped, because a gradient was not finite or too large: %.0f\n", rl_json_text(run, "variant"),
            skipped);
}

/* Prints why values are missing, and how many steps were skipped. */
static void print_reasons(FILE *out, const cJSON *runs) {
  const cJSON *run, *pass;
  cJSON_ArrayForEach (run, runs) {
    const char *variant = rl_json_text(run, "variant");
    for (int i = 0; i < ROW_COUNT; i++) {
      const char *reason = rl_json_text(rl_json_at(run, "summary.unavailable"), rows[i].field);
      if (reason[0] != '\0') fprintf(out, "— %s, %s: %s\n", variant, rows[i].label, reason);
    }
    print_skipped_steps(out, run);
    cJSON_ArrayForEach (pass, rl_json_at(run, "passes"))
      if (strcmp(rl_json_text(pass, "state"), "unavailable") == 0)
        fprintf(out, "— %s, %s pass: %s\n", variant, rl_json_text(pass, "pass"), rl_json_text(pass, "reason"));
  }
}

static void print_sentence(FILE *out, const cJSON *sentence) {
  const char *text = rl_json_text(sentence, "text");
  if (text[0] != '\0') rl_print_wrapped(out, 2, text);
  else fprintf(out, "— %s, %s\n", rl_json_text(sentence, "topic"), rl_json_text(sentence, "reason"));
}

/* Prints why the runs differ. If several comparisons have the same baseline, describes the baseline's epoch only once. */
static void print_explanation(FILE *out, const cJSON *comparison) {
  const cJSON *pair, *sentence, *pairs = rl_json_at(comparison, "items");
  cJSON_ArrayForEach (pair, pairs) {
    fputc('\n', out);
    cJSON_ArrayForEach (sentence, rl_json_at(pair, "explanation")) {
      bool describes_baseline = rl_json_number(sentence, "run") == rl_json_number(pair, "baseline.run");
      if (pair == pairs->child || !describes_baseline) print_sentence(out, sentence);
    }
  }
}

/* Prints the logs of a failed job's runs. */
static void print_logs(FILE *out, const cJSON *job) {
  const cJSON *run;
  if (strcmp(rl_json_text(job, "state"), "failed") != 0) return;
  cJSON_ArrayForEach (run, rl_json_at(job, "runs")) fputs(rl_json_text(run, "log"), out);
}

static double find_measurement(const cJSON *run, const char *name) {
  const cJSON *measurement;
  cJSON_ArrayForEach (measurement, rl_json_at(run, "measurements"))
    if (strcmp(rl_json_text(measurement, "name"), name) == 0) return rl_json_number(measurement, "value");
  return NAN;
}

/* Prints the contents of an imported trace in one sentence, and the command that prints its findings. */
static void print_import(FILE *out, const cJSON *job, const cJSON *run) {
  char window[RL_CELL_SIZE], busy[RL_CELL_SIZE];
  const char *log = rl_json_text(cJSON_GetArrayItem(rl_json_at(job, "runs"), 0), "log");
  const char *file = rl_json_text(job, "request.file_name");
  fprintf(out, "%s (%s, %.0f bytes, SHA-256 %.12s…)\n", file[0] != '\0' ? file : "unnamed trace",
          rl_json_text(job, "request.format"), rl_json_number(job, "request.bytes"), rl_json_text(job, "request.sha256"));
  if (strcmp(rl_json_text(job, "state"), "completed") != 0) return;
  fprintf(out, "%sdevice work spans %s, the device is busy for %s of it\nfindings: rooflinectl report %.0f\n", log,
          rl_format_us(window, 1e3 * find_measurement(run, "epoch_traced_ms")),
          rl_format_percent(busy, find_measurement(run, "device_busy_ratio")), rl_json_number(run, "run"));
}

void rl_print_results(FILE *out, const cJSON *job, const cJSON *results, const cJSON *comparison) {
  const cJSON *runs = rl_json_at(results, "runs"), *first = cJSON_GetArrayItem(runs, 0);
  const char *name = rl_json_text(first, "device.name"), *dataset = rl_json_text(first, "dataset");
  const char *problem = rl_json_text(job, "problem.message");
  fprintf(out, "job %.0f %s on %s", rl_json_number(job, "id"), rl_json_text(job, "state"), rl_json_text(job, "device"));
  if (name[0] != '\0') fprintf(out, " (%s)", name);
  fputc('\n', out);
  if (problem[0] != '\0') fprintf(out, "%s\n", problem);
  print_logs(out, job);
  if (strcmp(rl_json_text(job, "kind"), "kernel") == 0 || strcmp(rl_json_text(job, "kind"), "source") == 0) {
    rl_print_kernel_runs(out, job, runs);
    return;
  }
  if (strcmp(rl_json_text(job, "kind"), "layer") == 0) {
    rl_print_layer_runs(out, runs);
    return;
  }
  if (strcmp(rl_json_text(job, "kind"), "import") == 0) {
    print_import(out, job, first);
    return;
  }
  if (strcmp(rl_json_text(job, "kind"), "ceilings") == 0) {
    rl_print_ceilings_run(out, first);
    return;
  }
  if (dataset[0] != '\0')
    fprintf(out, "%s%s · engine %s · batch %.0f · measured epochs: %.0f · commit %s\n", dataset,
            cJSON_IsTrue(rl_json_at(first, "partial")) ? " (partial)" : "", rl_json_text(first, "engine"),
            rl_json_number(first, "params.batch_size"), rl_json_number(first, "summary.epochs"), rl_json_text(first, "commit"));
  if (dataset[0] == '\0') return; /* no run has started */
  fputc('\n', out);
  print_header(out, runs, comparison);
  for (int i = 0; i < ROW_COUNT; i++) print_row(out, &rows[i], runs, comparison);
  print_reasons(out, runs);
  rl_print_suspect_runs(out, runs);
  print_explanation(out, comparison);
}
