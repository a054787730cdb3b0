#include "api/client/suite_follow.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/client/cells.h"
#include "api/client/http.h"
#include "api/client/interrupt.h"
#include "api/client/retry.h"
#include "api/client/suite_metrics.h"

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

/* Returns the outcome of this name, else the last one. */
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

typedef struct watcher {
  bool is_terminal, is_quiet;
  char last_line[128]; /* the last line printed, if stderr is not a terminal */
} watcher;

/* Writes "mnist: block, 3 of 9 jobs". A run without a role is queued, or has just begun. */
static void describe(char *line, size_t size, const cJSON *run) {
  const char *role = rl_json_text(run, "progress.role");
  const double done = rl_json_number(run, "progress.done"), all = rl_json_number(run, "progress.of");
  int used = snprintf(line, size, "%.64s: %.32s", rl_json_text(run, "suite"), *role != '\0' ? role : rl_json_text(run, "state"));
  if (all > 0) snprintf(line + used, size - (size_t)used, ", %.0f of %.0f jobs", done, all);
  for (char *c = strchr(line, ':'); c != NULL && *c != '\0'; c++)
    if (*c == '_') *c = ' '; /* the role canary_before */
}

static void show_bar(const cJSON *run, const char *text) {
  char line[512], bar[BAR_COLUMNS * 3 + 1] = "";
  const double done = rl_json_number(run, "progress.done"), all = rl_json_number(run, "progress.of");
  const double elapsed_s = rl_json_number(run, "elapsed_s"), estimated_s = rl_json_number(run, "estimated_s");
  const int full = all > 0 ? (int)(fmin(done / all, 1) * BAR_COLUMNS) : 0;
  for (int i = 0; i < BAR_COLUMNS; i++) strcat(bar, i < full ? "█" : "░");
  int used = snprintf(line, sizeof line, "%s %s", bar, text);
  if (!isnan(elapsed_s)) used += snprintf(line + used, sizeof line - (size_t)used, ", %.0f s", elapsed_s);
  if (!isnan(elapsed_s) && !isnan(estimated_s))
    snprintf(line + used, sizeof line - (size_t)used, " of about %.0f s", estimated_s);
  fputc('\r', stderr);
  rl_print_cell(stderr, line, -PROGRESS_COLUMNS);
  fflush(stderr);
}

static void show_progress(watcher *watch, const cJSON *run) {
  char text[sizeof watch->last_line];
  if (watch->is_quiet) return;
  describe(text, sizeof text, run);
  if (watch->is_terminal) show_bar(run, text);
  else if (strcmp(text, watch->last_line) != 0) fprintf(stderr, "%s\n", strcpy(watch->last_line, text));
}

static void clear_progress(const watcher *watch) {
  if (watch->is_terminal && !watch->is_quiet) fprintf(stderr, "\r%*s\r", PROGRESS_COLUMNS, "");
}

int rl_suite_follow(const rl_cli *cli, long long id, bool daemon_was_reached, cJSON **run, rl_error *err) {
  watcher watch = {.is_terminal = isatty(STDERR_FILENO) == 1, .is_quiet = cli->json};
  rl_retry retry = {.daemon_was_reached = daemon_was_reached};
  char path[64];
  snprintf(path, sizeof path, "/suite-runs/%lld", id);
  rl_catch_interrupt();
  for (;;) {
    rl_error failure = {0};
    RL_CLEANUP(rl_json_free) cJSON *document = rl_http_get(cli, path, &failure);
    if (document != NULL && find_outcome(final_states, rl_json_text(document, "state"))->name != NULL) {
      clear_progress(&watch);
      *run = rl_take_ownership(&document);
      return RL_EXIT_COMPLETED;
    }
    if (document != NULL) {
      rl_retry_reached(&retry);
      show_progress(&watch, document);
      rl_retry_pause();
    }
    if (rl_was_interrupted()) {
      clear_progress(&watch);
      fprintf(
          stderr,
          "Suite run %lld continues. Follow it: rooflinectl regress --run %lld; cancel it: rooflinectl regress --cancel %lld\n",
          id, id, id);
      return RL_EXIT_INTERRUPTED;
    }
    if (document == NULL && !rl_retry_wait(&retry, &failure)) {
      clear_progress(&watch);
      if (err != NULL) *err = failure;
      return -1;
    }
  }
}
