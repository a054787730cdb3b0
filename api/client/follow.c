/* Reads the job's events until its final state. When the event stream breaks, requests the events after the last received one.
 * The final state determines the exit code. */
#include "api/client/follow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/client/http.h"
#include "api/client/interrupt.h"
#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/retry.h"

enum { BAR_COLUMNS = 20, PROGRESS_COLUMNS = 79 };

typedef struct final_state {
  const char *name;
  rl_exit code;
} final_state;

static const final_state final_states[] = {
    {"completed", RL_EXIT_COMPLETED}, {"failed", RL_EXIT_FAILED}, {"cancelled", RL_EXIT_CANCELLED}, {NULL, 0}};

static const final_state *find_final_state(const char *state) {
  for (const final_state *final = final_states; final->name != NULL; final++)
    if (strcmp(final->name, state) == 0) return final;
  return NULL;
}

typedef struct progress_output {
  bool is_terminal, is_quiet;
  const cJSON *job;   /* the job's document, read before the stream started; has the variants of the runs */
  char last_line[96]; /* the last line printed, if stderr is not a terminal */
} progress_output;

/* --- the progress line ------------------------------------------------------------------------------------------------- */

static void append(char *line, size_t size, const char *text) {
  size_t used = strlen(line);
  snprintf(line + used, size - used, "%s", text);
}

static void append_number(char *line, size_t size, const char *format, double value) {
  char text[64];
  if (isnan(value)) return;
  snprintf(text, sizeof text, format, value);
  append(line, size, text);
}

/* Returns the variant of an event's run. */
static const char *find_variant(const progress_output *output, const cJSON *data) {
  const cJSON *run;
  cJSON_ArrayForEach (run, rl_json_at(output->job, "runs"))
    if (rl_json_number(run, "id") == rl_json_number(data, "run_id")) return rl_json_text(run, "variant");
  return "";
}

/* Returns the completed part of the pass, from 0 to 1, including the completed steps of the current epoch. NAN: unknown. */
static double completed_ratio(const cJSON *data) {
  double epoch = rl_json_number(data, "epoch"), epochs = rl_json_number(data, "epochs");
  double step = rl_json_number(data, "step"), steps = rl_json_number(data, "steps");
  double part = step >= 0 && steps > 0 ? step / steps : 0;
  if (epoch >= 0 && epochs > 0) return fmin((epoch + part) / epochs, 1);
  return steps > 0 ? part : (double)NAN;
}

static void append_bar(char *line, size_t size, double ratio) {
  if (isnan(ratio)) return;
  int full = (int)(ratio * BAR_COLUMNS);
  append(line, size, " ");
  for (int i = 0; i < BAR_COLUMNS; i++) append(line, size, i < full ? "█" : "░");
}

static void show_progress(progress_output *output, const cJSON *data) {
  char line[512] = "", cell[RL_CELL_SIZE];
  double epoch = rl_json_number(data, "epoch"), epochs = rl_json_number(data, "epochs");
  snprintf(line, sizeof line, "%s %s", find_variant(output, data), rl_json_text(data, "pass"));
  if (!output->is_terminal) { /* prints one line per epoch or phase, because stderr may be a log */
    snprintf(line, sizeof line, "%s %s: %s", find_variant(output, data), rl_json_text(data, "pass"), rl_json_text(data, "phase"));
    if (epoch >= 0) append_number(line, sizeof line, " %.0f", epoch + 1), append_number(line, sizeof line, "/%.0f", epochs);
    if (strcmp(line, output->last_line) == 0) return;
    snprintf(output->last_line, sizeof output->last_line, "%s", line);
    fprintf(stderr, "%s\n", line);
    return;
  }
  append_bar(line, sizeof line, completed_ratio(data));
  append(line, sizeof line, " ");
  append(line, sizeof line, rl_json_text(data, "phase"));
  if (epoch >= 0) append_number(line, sizeof line, " %.0f", epoch + 1), append_number(line, sizeof line, "/%.0f", epochs);
  append_number(line, sizeof line, " loss %.4f", rl_json_number(data, "train_loss"));
  double rate = rl_json_number(data, "images_per_s");
  if (!isnan(rate))
    append(line, sizeof line, " "), append(line, sizeof line, rl_format_count(cell, rate)), append(line, sizeof line, "/s");
  append_number(line, sizeof line, " ETA %.0f s", rl_json_number(data, "eta_s"));
  fputc('\r', stderr);
  rl_print_cell(stderr, line, -PROGRESS_COLUMNS);
  fflush(stderr);
}

static void clear_progress(const progress_output *output) {
  if (output->is_terminal && !output->is_quiet) fprintf(stderr, "\r%*s\r", PROGRESS_COLUMNS, "");
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

static void show_pass(const progress_output *output, const cJSON *data) {
  const char *state = rl_json_text(data, "state"), *reason = rl_json_text(data, "reason");
  clear_progress(output);
  fprintf(stderr, "%s %s: %s%s%s\n", rl_json_text(data, "variant"), rl_json_text(data, "pass"), state,
          reason[0] != '\0' ? ": " : "", reason);
}

static bool on_event(void *context, const char *type, const char *text) {
  progress_output *output = context;
  RL_CLEANUP(rl_json_free) cJSON *data = cJSON_Parse(text);
  if (data == NULL) return true;
  if (strcmp(type, "state") == 0) return find_final_state(rl_json_text(data, "state")) == NULL;
  if (output->is_quiet) return true;
  if (strcmp(type, "pass") == 0) show_pass(output, data);
  else if (strcmp(type, "progress") == 0) show_progress(output, data);
  return true;
}

/* --- result ----------------------------------------------------------------------------------------------------------- */

static int print_result(rl_cli *cli, long long id, cJSON *job, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *results = rl_http_get_job(cli, id, "/results", err);
  RL_CLEANUP(rl_json_free) cJSON *comparison = results != NULL ? rl_http_get_job(cli, id, "/comparison", err) : NULL;
  if (comparison == NULL) return -1;
  if (cli->json) {
    RL_CLEANUP(rl_json_free) cJSON *all = cJSON_CreateObject();
    cJSON_AddItemReferenceToObject(all, "job", job);
    cJSON_AddItemReferenceToObject(all, "results", results);
    cJSON_AddItemReferenceToObject(all, "comparison", comparison);
    RL_CLEANUP(rl_free_text) char *text = cJSON_PrintUnformatted(all);
    if (text != NULL) puts(text);
  } else {
    rl_print_results(stdout, job, results, comparison);
  }
  return (int)find_final_state(rl_json_text(job, "state"))->code;
}

int rl_follow_job(rl_cli *cli, long long id, bool daemon_was_reached, rl_error *err) {
  progress_output output = {.is_terminal = isatty(STDERR_FILENO) == 1, .is_quiet = cli->json};
  rl_sse parser = {.on_event = on_event, .context = &output};
  char path[64];
  rl_retry retry = {.daemon_was_reached = daemon_was_reached};
  snprintf(path, sizeof path, "/jobs/%lld/events", id);
  rl_catch_interrupt();
  for (;;) {
    rl_error attempt_error = {0};
    RL_CLEANUP(rl_json_free) cJSON *job = rl_http_get_job(cli, id, "", &attempt_error);
    if (job != NULL && find_final_state(rl_json_text(job, "state")) != NULL) {
      clear_progress(&output);
      return print_result(cli, id, job, err);
    }
    parser.stopped = false;
    output.job = job;
    if (job != NULL) rl_retry_record_answer(&retry);
    if (job != NULL && rl_http_read_events(cli, path, &parser, &attempt_error) == 0) {
      if (!parser.stopped) rl_retry_pause();
      continue;
    }
    if (rl_was_interrupted()) {
      clear_progress(&output);
      fprintf(stderr, "Job %lld continues. To watch it: rooflinectl watch %lld; to cancel it: rooflinectl cancel %lld\n", id, id,
              id);
      return RL_EXIT_INTERRUPTED;
    }
    if (!rl_retry_wait(&retry, &attempt_error)) {
      if (err != NULL) *err = attempt_error;
      return -1;
    }
  }
}
