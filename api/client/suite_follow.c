/* Reads the suite run's events until its final state and shows its progress. The final state and the verdict determine the exit
 * code. */
#include "api/client/suite_follow.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/client/cells.h"
#include "api/client/http.h"
#include "api/client/interrupt.h"
#include "api/client/retry.h"
#include "api/client/sse.h"
#include "api/client/suite_metrics.h"
#include "base/clock.h"

enum { BAR_COLUMNS = 20, PROGRESS_COLUMNS = 79 };

typedef struct outcome {
  const char *name;
  rl_exit code;
} outcome;

static const outcome final_states[] = {
    {"completed", RL_EXIT_COMPLETED}, {"failed", RL_EXIT_FAILED}, {"cancelled", RL_EXIT_CANCELLED}, {NULL, 0}};
static const outcome verdicts[] = {{"same", RL_EXIT_COMPLETED},
                                   {"faster", RL_EXIT_COMPLETED},
                                   {"slower", RL_EXIT_SLOWER},
                                   {"incomparable", RL_EXIT_INCOMPARABLE},
                                   {NULL, RL_EXIT_INCONCLUSIVE}};

/* Returns the outcome with this name; if there is none, the last outcome of the list, whose name is NULL. */
static const outcome *find_outcome(const outcome *outcomes, const char *name) {
  while (outcomes->name != NULL && strcmp(outcomes->name, name) != 0) outcomes++;
  return outcomes;
}

rl_exit rl_suite_exit_code(const cJSON *run) {
  const outcome *state = find_outcome(final_states, rl_json_text(run, "state"));
  if (state->name == NULL) return RL_EXIT_FAILED;
  return state->code != RL_EXIT_COMPLETED ? state->code : find_outcome(verdicts, rl_suite_run_verdict(run))->code;
}

/* --- progress ------------------------------------------------------------------------------------------------------------- */

/* The progress of a suite run that has not ended, from its document. */
typedef struct progress {
  char suite[65], role[32]; /* role: role of the job that runs, or the suite run's state while no job runs */
  double done, total;       /* numbers of ended jobs and of all jobs */
  double elapsed_s, estimated_s;
  bool is_budget;  /* estimated_s is the suite's time budget, not an estimate */
  int64_t read_ns; /* rl_monotonic_ns at which elapsed_s was read */
} progress;

typedef struct progress_output {
  bool is_terminal, is_quiet;
  char last_line[128]; /* the last line printed, if stderr is not a terminal */
  progress progress;
  double ended_jobs; /* number of ended jobs in the events so far. The stream begins with the suite run's first event, so at first
                        progress.done, which comes from the document, can be greater */
} progress_output;

static void read_progress(const cJSON *run, progress *now) {
  const char *role = rl_json_text(run, "progress.role"), *state = rl_json_text(run, "state");
  *now = (progress){.done = rl_json_number(run, "progress.done"),
                    .total = rl_json_number(run, "progress.of"),
                    .elapsed_s = rl_json_number(run, "elapsed_s"),
                    .estimated_s = rl_json_number(run, "estimated_s"),
                    .is_budget = strcmp(rl_json_text(run, "estimate_basis"), "time_budget") == 0,
                    .read_ns = rl_monotonic_ns()};
  snprintf(now->suite, sizeof now->suite, "%s", rl_json_text(run, "suite"));
  snprintf(now->role, sizeof now->role, "%s", role[0] != '\0' ? role : state); /* no role: queued, or it has just begun */
}

/* Writes "mnist: block, 3 of 9 jobs". */
static void describe_progress(char *line, size_t size, const progress *now) {
  int used = snprintf(line, size, "%.64s: %.32s", now->suite, now->role);
  if (now->total > 0) snprintf(line + used, size - (size_t)used, ", %.0f of %.0f jobs", now->done, now->total);
  for (char *c = strchr(line, ':'); c != NULL && *c != '\0'; c++)
    if (*c == '_') *c = ' '; /* the role canary_before */
}

static void show_bar(const progress *now, const char *text) {
  char line[512], bar[BAR_COLUMNS * 3 + 1] = "";
  const double elapsed_s = now->elapsed_s + (double)(rl_monotonic_ns() - now->read_ns) / 1e9;
  const int full = now->total > 0 ? (int)(fmin(now->done / now->total, 1) * BAR_COLUMNS) : 0;
  for (int i = 0; i < BAR_COLUMNS; i++) strcat(bar, i < full ? "█" : "░");
  int used = snprintf(line, sizeof line, "%s %s", bar, text);
  if (!isnan(elapsed_s)) used += snprintf(line + used, sizeof line - (size_t)used, ", %.0f s", elapsed_s);
  if (!isnan(elapsed_s) && !isnan(now->estimated_s))
    snprintf(line + used, sizeof line - (size_t)used, " of %s %.0f s", now->is_budget ? "at most" : "about", now->estimated_s);
  fputc('\r', stderr);
  rl_print_cell(stderr, line, -PROGRESS_COLUMNS);
  fflush(stderr);
}

static void show_progress(progress_output *output) {
  char text[sizeof output->last_line];
  if (output->is_quiet) return;
  describe_progress(text, sizeof text, &output->progress);
  if (output->is_terminal) show_bar(&output->progress, text);
  else if (strcmp(text, output->last_line) != 0) fprintf(stderr, "%s\n", strcpy(output->last_line, text));
}

static void clear_progress(const progress_output *output) {
  if (output->is_terminal && !output->is_quiet) fprintf(stderr, "\r%*s\r", PROGRESS_COLUMNS, "");
}

/* --- events --------------------------------------------------------------------------------------------------------------- */

static bool is_final(const char *state) { return find_outcome(final_states, state)->name != NULL; }

/* Handles an event of the suite run. The first stream begins with the run's first event; a stream after an interruption continues
 * after the last received event. Events that are older than the document change nothing. */
static bool on_event(void *context, const char *type, const char *text) {
  progress_output *output = context;
  RL_CLEANUP(rl_json_free) cJSON *data = cJSON_Parse(text);
  const char *state = rl_json_text(data, "state");
  if (strcmp(type, "state") == 0) return !is_final(state);
  if (strcmp(type, "job") != 0) return true;
  const bool ended = strcmp(state, "submitted") != 0;
  output->ended_jobs += ended;
  if (output->ended_jobs < output->progress.done || (ended && output->ended_jobs == output->progress.done)) return true;
  output->progress.done = output->ended_jobs;
  output->progress.total = fmax(output->progress.total, output->progress.done);
  snprintf(output->progress.role, sizeof output->progress.role, "%s", rl_json_text(data, "role"));
  show_progress(output);
  return true;
}

/* Shows progress until the suite run has ended, the stream breaks, or the daemon refuses the stream. In the last two cases waits
 * 0.5 s, so that the caller does not repeat the request at once. */
static void read_events(const rl_cli *cli, long long id, rl_sse *parser) {
  rl_error ignored;
  char path[64];
  snprintf(path, sizeof path, "/suite-runs/%lld/events", id);
  parser->stopped = false;
  rl_http_read_events(cli, path, parser, &ignored);
  if (!parser->stopped && !rl_was_interrupted()) rl_retry_pause();
}

int rl_suite_follow(const rl_cli *cli, long long id, bool daemon_was_reached, cJSON **run, rl_error *err) {
  progress_output output = {.is_terminal = isatty(STDERR_FILENO) == 1, .is_quiet = cli->json};
  rl_sse parser = {.on_event = on_event, .context = &output};
  rl_retry retry = {.daemon_was_reached = daemon_was_reached};
  char path[64];
  snprintf(path, sizeof path, "/suite-runs/%lld", id);
  rl_catch_interrupt();
  for (;;) {
    rl_error failure = {0};
    RL_CLEANUP(rl_json_free) cJSON *document = rl_http_get(cli, path, &failure);
    if (document != NULL && is_final(rl_json_text(document, "state"))) {
      clear_progress(&output);
      *run = rl_take_ownership(&document);
      return RL_EXIT_COMPLETED;
    }
    if (document != NULL) {
      rl_retry_record_answer(&retry);
      read_progress(document, &output.progress);
      show_progress(&output);
      read_events(cli, id, &parser);
    }
    if (rl_was_interrupted()) {
      clear_progress(&output);
      fprintf(
          stderr,
          "Suite run %lld continues. Follow it: rooflinectl regress --run %lld; cancel it: rooflinectl regress --cancel %lld\n",
          id, id, id);
      return RL_EXIT_INTERRUPTED;
    }
    if (document == NULL && !rl_retry_wait(&retry, &failure)) {
      clear_progress(&output);
      if (err != NULL) *err = failure;
      return -1;
    }
  }
}
