#include "api/client/follow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "api/client/http.h"
#include "api/client/interrupt.h"
#include "api/client/print.h"

static const int64_t AWAY_NS = 30 * INT64_C(1000000000);
enum { BAR = 20, RETRY_MS = 500, PROGRESS_WIDTH = 79 };

typedef struct final_state {
  const char *name;
  rl_exit code;
} final_state;

static const final_state final_states[] = {
    {"completed", RL_EXIT_COMPLETED}, {"failed", RL_EXIT_FAILED}, {"cancelled", RL_EXIT_CANCELLED}, {NULL, 0}};

static const final_state *final_of(const char *state) {
  for (const final_state *known = final_states; known->name != NULL; known++)
    if (strcmp(known->name, state) == 0) return known;
  return NULL;
}

typedef struct watcher {
  bool terminal, quiet;
  const cJSON *job; /* as it was when the stream began: names the runs */
  char last[96];    /* what was printed last, off a terminal */
} watcher;

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

/* What the run of an event is called in its job. */
static const char *variant_of(const watcher *watching, const cJSON *data) {
  const cJSON *run;
  cJSON_ArrayForEach (run, rl_json_at(watching->job, "runs"))
    if (rl_json_number(run, "id") == rl_json_number(data, "run_id")) return rl_json_text(run, "variant");
  return "";
}

/* Share of the pass that is done: whole epochs and the part of this one. NAN when the pass has no such thing. */
static double share_done(const cJSON *data) {
  double epoch = rl_json_number(data, "epoch"), epochs = rl_json_number(data, "epochs");
  double step = rl_json_number(data, "step"), steps = rl_json_number(data, "steps");
  double part = step >= 0 && steps > 0 ? step / steps : 0;
  if (epoch >= 0 && epochs > 0) return fmin((epoch + part) / epochs, 1);
  return steps > 0 ? part : (double)NAN;
}

static void append_bar(char *line, size_t size, double share) {
  if (isnan(share)) return;
  int full = (int)(share * BAR);
  append(line, size, " ");
  for (int i = 0; i < BAR; i++) append(line, size, i < full ? "█" : "░");
}

static void show_progress(watcher *watching, const cJSON *data) {
  char line[512] = "", cell[RL_CELL_SIZE];
  double epoch = rl_json_number(data, "epoch"), epochs = rl_json_number(data, "epochs");
  snprintf(line, sizeof line, "%s %s", variant_of(watching, data), rl_json_text(data, "pass"));
  if (!watching->terminal) { /* one line an epoch or phase is enough for a log */
    snprintf(line, sizeof line, "%s %s: %s", variant_of(watching, data), rl_json_text(data, "pass"), rl_json_text(data, "phase"));
    if (epoch >= 0) append_number(line, sizeof line, " %.0f", epoch + 1), append_number(line, sizeof line, "/%.0f", epochs);
    if (strcmp(line, watching->last) == 0) return;
    snprintf(watching->last, sizeof watching->last, "%s", line);
    fprintf(stderr, "%s\n", line);
    return;
  }
  append_bar(line, sizeof line, share_done(data));
  append(line, sizeof line, " ");
  append(line, sizeof line, rl_json_text(data, "phase"));
  if (epoch >= 0) append_number(line, sizeof line, " %.0f", epoch + 1), append_number(line, sizeof line, "/%.0f", epochs);
  append_number(line, sizeof line, " loss %.4f", rl_json_number(data, "train_loss"));
  double rate = rl_json_number(data, "images_per_s");
  if (!isnan(rate))
    append(line, sizeof line, " "), append(line, sizeof line, rl_cell_count(cell, rate)), append(line, sizeof line, "/s");
  append_number(line, sizeof line, " ETA %.0f s", rl_json_number(data, "eta_s"));
  fputc('\r', stderr);
  rl_print_cell(stderr, line, -PROGRESS_WIDTH);
  fflush(stderr);
}

static void clear_progress(const watcher *watching) {
  if (watching->terminal && !watching->quiet) fprintf(stderr, "\r%*s\r", PROGRESS_WIDTH, "");
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

static void show_pass(const watcher *watching, const cJSON *data) {
  const char *state = rl_json_text(data, "state"), *reason = rl_json_text(data, "reason");
  clear_progress(watching);
  fprintf(stderr, "%s %s: %s%s%s\n", rl_json_text(data, "variant"), rl_json_text(data, "pass"), state,
          reason[0] != '\0' ? ": " : "", reason);
}

static bool heard(void *context, const char *type, const char *text) {
  watcher *watching = context;
  rl_auto(rl_json_free) cJSON *data = cJSON_Parse(text);
  if (data == NULL) return true;
  if (strcmp(type, "state") == 0) return final_of(rl_json_text(data, "state")) == NULL;
  if (watching->quiet) return true;
  if (strcmp(type, "pass") == 0) show_pass(watching, data);
  else if (strcmp(type, "progress") == 0) show_progress(watching, data);
  return true;
}

/* --- the end ----------------------------------------------------------------------------------------------------------- */

static cJSON *get_part(const rl_cli *cli, long long id, const char *part, rl_error *err) {
  char path[64];
  snprintf(path, sizeof path, "/jobs/%lld%s", id, part);
  return rl_http_get(cli, path, err);
}

static int finish(rl_cli *cli, long long id, cJSON *job, rl_error *err) {
  rl_auto(rl_json_free) cJSON *results = get_part(cli, id, "/results", err);
  rl_auto(rl_json_free) cJSON *comparison = results != NULL ? get_part(cli, id, "/comparison", err) : NULL;
  if (comparison == NULL) return -1;
  if (cli->json) {
    rl_auto(rl_json_free) cJSON *all = cJSON_CreateObject();
    cJSON_AddItemReferenceToObject(all, "job", job);
    cJSON_AddItemReferenceToObject(all, "results", results);
    cJSON_AddItemReferenceToObject(all, "comparison", comparison);
    rl_auto(rl_free_text) char *text = cJSON_PrintUnformatted(all);
    if (text != NULL) puts(text);
  } else {
    rl_print_results(stdout, job, results, comparison);
  }
  return (int)final_of(rl_json_text(job, "state"))->code;
}

/* Wait before asking again; 0, or -1 when the daemon has been away for too long (then err stays what it is). */
static int wait_for_daemon(int64_t *away_since) {
  int64_t now = rl_monotonic_ns();
  if (*away_since == 0) *away_since = now;
  nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
  return now - *away_since < AWAY_NS ? 0 : -1;
}

int rl_follow(rl_cli *cli, long long id, bool answered, rl_error *err) {
  watcher watching = {.terminal = isatty(STDERR_FILENO) == 1, .quiet = cli->json};
  rl_sse parser = {.heard = heard, .context = &watching};
  char path[64];
  int64_t away_since = 0;
  snprintf(path, sizeof path, "/jobs/%lld/events", id);
  rl_interrupt_catch();
  for (;;) {
    rl_error why = {0};
    rl_auto(rl_json_free) cJSON *job = get_part(cli, id, "", &why);
    if (job != NULL && final_of(rl_json_text(job, "state")) != NULL) {
      clear_progress(&watching);
      return finish(cli, id, job, err);
    }
    parser.stopped = false;
    watching.job = job;
    if (job != NULL) answered = true, away_since = 0;
    if (job != NULL && rl_http_stream(cli, path, &parser, &why) == 0) {
      if (!parser.stopped) nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
      continue;
    }
    if (rl_interrupted()) {
      clear_progress(&watching);
      fprintf(stderr, "Job %lld goes on. Watch it: rooflinectl watch %lld; end it: rooflinectl cancel %lld\n", id, id, id);
      return RL_EXIT_INTERRUPTED;
    }
    bool away = why.domain == RL_WIRE || (why.domain == RL_HTTP && why.code == 503);
    if (!away || !answered || wait_for_daemon(&away_since) < 0) {
      if (err != NULL) *err = why;
      return -1;
    }
  }
}
