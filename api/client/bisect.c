/* Implements the command bisect, which finds the first commit of a repository at which a suite is slower. `git bisect` does the
 * search in a temporary worktree: this command builds the commit that git has checked out, runs the suite, and marks the commit
 * as good, bad or skip. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/http.h"
#include "api/client/interrupt.h"
#include "api/client/print.h"
#include "api/client/retry.h"
#include "api/client/subprocess.h"
#include "api/client/suite_follow.h"
#include "api/client/suite_metrics.h"
#include "api/client/suite_submit.h"

enum { MAX_REPEATS = 3, COMMIT_SIZE = 65, SHORT_COMMIT_LENGTH = 12 };
enum { GIT_ONLY_SKIPPED_STATUS = 2 }; /* exit status of git bisect when only skipped commits are left */

typedef struct bisection {
  rl_cli *cli;
  const char *suite, *good, *bad, *build, *repository, *device; /* options */
  char folder[256], tree[264];                                  /* the temporary folder, and the worktree in it */
  char baseline[RL_SUITE_NAME_SIZE]; /* name of the baseline made from the good commit's suite run; "" until it exists */
  cJSON *steps;                      /* member "steps" of the JSON output */
} bisection;

const rl_cli_option *rl_bisect_options(void) {
  static const rl_cli_option options[] = {
      {"--suite", "NAME|FILE", "name of a suite, or path of a suite file in the repository (*.json; the build may write it)"},
      {"--good", "COMMIT", "a commit that is not slower"},
      {"--bad", "COMMIT", "a later commit that is slower"},
      {"--build", "COMMAND", "shell command that builds the commit $ROOFLINED_COMMIT in the current folder"},
      {"--repository", "DIR", "default: the current folder"},
      {"--device", "ID", "an id that `rooflinectl devices` lists"},
      {0}};
  return options;
}

static int parse_options(bisection *search, rl_error *err) {
  const struct {
    const char *name, **value;
    bool required;
  } options[] = {{"--suite", &search->suite, true}, {"--good", &search->good, true}, {"--bad", &search->bad, true},
                 {"--build", &search->build, true}, {"--device", &search->device},   {"--repository", &search->repository}};
  enum { OPTION_COUNT = sizeof options / sizeof *options };
  for (int i = 0; i < search->cli->argc; i += 2) {
    const char *word = search->cli->argv[i];
    int option = 0;
    while (option < OPTION_COUNT && strcmp(options[option].name, word) != 0) option++;
    if (option == OPTION_COUNT) return rl_fail_argument(err, "bisect", word);
    if (search->cli->argv[i + 1] == NULL) return rl_fail_usage(err, "%s needs a value", word);
    *options[option].value = search->cli->argv[i + 1];
  }
  for (int i = 0; i < OPTION_COUNT; i++)
    if (options[i].required && *options[i].value == NULL) return rl_fail_usage(err, "bisect needs %s", options[i].name);
  return 0;
}

/* --- git ------------------------------------------------------------------------------------------------------------------- */

/* Runs git in a folder. Returns its exit status, or -1 with err. */
static int git(const char *folder, const char *const *arguments, char **output, rl_error *err) {
  static const char *const environment[] = {"LC_ALL=C", NULL};
  return rl_run_program(&(rl_program_run){.folder = folder, .arguments = arguments, .environment = environment}, output, err);
}

/* Runs git in a folder. Fails if git's exit status is not 0. */
static int git_or_fail(const char *folder, const char *const *arguments, char **output, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *ignored = NULL;
  const int status = git(folder, arguments, output != NULL ? output : &ignored, err);
  return status <= 0 ? status : rl_fail(err, RL_ERRNO, 0, "git %s failed; its message is above", arguments[1]);
}

static int resolve_commit(const char *folder, const char *name, char commit[COMMIT_SIZE], rl_error *err) {
  char object[256];
  RL_CLEANUP(rl_free_text) char *text = NULL;
  snprintf(object, sizeof object, "%s^{commit}", name);
  const int status =
      git(folder, (const char *[]){"git", "rev-parse", "--quiet", "--verify", "--end-of-options", object, NULL}, &text, err);
  if (status < 0) return -1;
  if (status != 0 || strlen(text) >= COMMIT_SIZE) return rl_fail_usage(err, "%.80s is not a commit of %.160s", name, folder);
  snprintf(commit, COMMIT_SIZE, "%s", text);
  return 0;
}

/* Writes the short hash and the subject of a commit: "1a2b3c4d5e6f suite: add a test". */
static void describe_commit(const bisection *search, const char *commit, char *text, size_t size) {
  RL_CLEANUP(rl_free_text) char *subject = NULL;
  const int status = git(search->tree, (const char *[]){"git", "log", "-1", "--format=%s", commit, NULL}, &subject, NULL);
  snprintf(text, size, "%.*s %s", SHORT_COMMIT_LENGTH, commit, status == 0 && subject != NULL ? subject : "");
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < ' ' || *text == 0x7f) *text = '?'; /* a subject could contain control sequences of the terminal */
}

static int add_worktree(bisection *search, const char *commit, rl_error *err) {
  const char *temporary = getenv("TMPDIR");
  snprintf(search->folder, sizeof search->folder, "%.200s/rooflinectl-XXXXXX", temporary != NULL ? temporary : "/tmp");
  if (mkdtemp(search->folder) == NULL) return rl_fail_errno(err, "can't make the folder %s", search->folder);
  snprintf(search->tree, sizeof search->tree, "%s/tree", search->folder);
  return git_or_fail(search->repository,
                     (const char *[]){"git", "worktree", "add", "--quiet", "--detach", search->tree, commit, NULL}, NULL, err);
}

static void remove_worktree(const bisection *search) {
  const char *const arguments[] = {"git", "worktree", "remove", "--force", search->tree, NULL};
  rl_error failure = {0};
  if (search->folder[0] == '\0') return;
  if (git(search->repository, arguments, NULL, &failure) != 0) fprintf(stderr, "rooflinectl: %s remains\n", search->tree);
  rmdir(search->folder);
}

/* --- one commit ------------------------------------------------------------------------------------------------------------ */

typedef enum result { RESULT_GOOD, RESULT_BAD, RESULT_SKIPPED } result;
static const char *const git_words[] = {"good", "bad", "skip"}; /* arguments of git bisect, by result */

/* Adds the result of a commit to search->steps and prints it to standard error. */
static void record_step(const bisection *search, const char *commit, const char *outcome, const char *reason, const cJSON *run) {
  cJSON *step = cJSON_CreateObject();
  cJSON_AddItemToArray(search->steps, step);
  cJSON_AddStringToObject(step, "commit", commit);
  cJSON_AddStringToObject(step, "outcome", outcome);
  cJSON_AddStringToObject(step, "reason", reason);
  if (run != NULL) cJSON_AddNumberToObject(step, "suite_run", rl_json_number(run, "id"));
  fprintf(stderr, "%.*s is %s%s%s\n", SHORT_COMMIT_LENGTH, commit, outcome, *reason != '\0' ? ": " : "", reason);
}

/* Returns the exit status of the build; returns -1 and fills err after Ctrl-C. */
static int build_commit(const bisection *search, const char *commit, rl_error *err) {
  char line[512], variable[COMMIT_SIZE + 20];
  snprintf(variable, sizeof variable, "ROOFLINED_COMMIT=%s", commit);
  describe_commit(search, commit, line, sizeof line);
  fprintf(stderr, "\n%s\n", line);
  const char *const arguments[] = {"sh", "-c", search->build, NULL}, *const environment[] = {variable, NULL};
  return rl_run_program(&(rl_program_run){.folder = search->tree, .arguments = arguments, .environment = environment}, NULL, err);
}

/* Waits until the daemon answers, because the build may have restarted it. */
static int wait_for_daemon(const bisection *search, rl_error *err) {
  rl_retry retry = {.daemon_was_reached = true};
  for (;;) {
    rl_error failure = {0};
    RL_CLEANUP(rl_json_free) cJSON *suites = rl_http_get(search->cli, "/suites", &failure);
    if (suites != NULL) return 0;
    if (!rl_was_interrupted() && rl_retry_wait(&retry, &failure)) continue;
    *err = failure;
    return -1;
  }
}

static bool is_file(const char *suite) {
  const size_t length = strlen(suite);
  return length > 5 && strcmp(suite + length - 5, ".json") == 0;
}

/* Runs the suite once and follows the suite run. The caller deletes *run. Returns the rl_exit of the suite run, or -1 with
 * err. */
static int run_suite(const bisection *search, cJSON **run, rl_error *err) {
  char path[512], suite[RL_SUITE_NAME_SIZE];
  rl_suite_request request = {.against = search->baseline[0] != '\0' ? search->baseline : NULL, .device = search->device};
  snprintf(path, sizeof path, "%s/%s", search->tree, search->suite);
  if (is_file(search->suite)) request.file = path;
  else request.suite = search->suite;
  if (wait_for_daemon(search, err) < 0) return -1;
  RL_CLEANUP(rl_json_free) cJSON *accepted = rl_suite_submit(search->cli, &request, suite, err);
  if (accepted == NULL) return -1;
  const int code = rl_suite_follow(search->cli, (long long)rl_json_number(accepted, "id"), true, run, err);
  if (code < 0) return -1;
  return *run != NULL ? (int)rl_suite_exit_code(*run) : rl_fail(err, RL_ERRNO, EINTR, "interrupted");
}

/* Returns true if the failure concerns the commit alone: its suite can't be run, because the suite's file is missing or
 * invalid. */
static bool is_refused(const rl_error *failure) {
  return failure->domain == RL_INPUT || (failure->domain == RL_HTTP && failure->code >= 400 && failure->code < 500);
}

/* Builds and measures a commit, and sets *judged. Repeats an inconclusive suite run. Returns 0, or -1 with err if the search
 * can't continue. */
static int judge_commit(const bisection *search, const char *commit, result *judged, rl_error *err) {
  rl_error failure = {0};
  *judged = RESULT_SKIPPED;
  const int status = build_commit(search, commit, err);
  if (status < 0) return -1;
  if (status > 0) return record_step(search, commit, "skipped", "the build failed", NULL), 0;
  for (int repeat = 0;; repeat++) {
    RL_CLEANUP(rl_json_free) cJSON *run = NULL;
    const int code = run_suite(search, &run, &failure);
    if (code < 0 && is_refused(&failure)) return record_step(search, commit, "skipped", failure.message, NULL), 0;
    if (code < 0) return *err = failure, -1;
    const char *verdict = rl_suite_run_verdict(run), *state = rl_json_text(run, "state");
    if (code == RL_EXIT_CANCELLED)
      return rl_fail(err, RL_ERRNO, ECANCELED, "suite run %.0f was cancelled", rl_json_number(run, "id"));
    if (code == RL_EXIT_INCONCLUSIVE && repeat < MAX_REPEATS) {
      fprintf(stderr, "inconclusive: %s; repeating\n", rl_suite_run_reason(run));
      continue;
    }
    const bool completed = strcmp(state, "completed") == 0;
    if (code == RL_EXIT_COMPLETED) *judged = RESULT_GOOD;
    else if (completed && code == RL_EXIT_SLOWER) *judged = RESULT_BAD;
    record_step(search, commit, *judged == RESULT_SKIPPED ? "skipped" : verdict,
                *judged == RESULT_SKIPPED ? rl_suite_run_reason(run) : "", run);
    return 0;
  }
}

/* Measures the good commit and makes its suite run the baseline. Sets *refused to true if the daemon refuses this suite run as a
 * baseline; the caller then measures the commit again. */
static int measure_baseline(bisection *search, const char *commit, bool *refused, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *run = NULL;
  *refused = false;
  if (run_suite(search, &run, err) < 0) return -1;
  const double id = rl_json_number(run, "id");
  if (strcmp(rl_json_text(run, "state"), "completed") != 0)
    return rl_fail(err, RL_HTTP, 0, "suite run %.0f of the good commit: %s", id, rl_suite_run_reason(run));
  snprintf(search->baseline, sizeof search->baseline, "bisect-%.*s-%.0f", SHORT_COMMIT_LENGTH, commit, id);
  RL_CLEANUP(rl_json_free)
  cJSON *baseline = rl_post_named_baseline(search->cli, rl_json_text(run, "suite"), search->baseline, (long long)id, err);
  if (baseline == NULL) {
    *refused = err->domain == RL_HTTP && err->code == 422;
    search->baseline[0] = '\0';
    return rl_wrap(err, "suite run %.0f of the good commit can't be a baseline", id);
  }
  record_step(search, commit, "the baseline", search->baseline, run);
  return 0;
}

static int make_baseline(bisection *search, const char *commit, rl_error *err) {
  bool refused;
  const int status = build_commit(search, commit, err);
  if (status != 0) return status < 0 ? -1 : rl_fail_usage(err, "the good commit can't be built");
  for (int repeat = 0;; repeat++) {
    if (measure_baseline(search, commit, &refused, err) == 0) return 0;
    if (!refused || repeat == MAX_REPEATS) return -1;
    fprintf(stderr, "%s; repeating\n", err->message);
  }
}

/* --- the search ------------------------------------------------------------------------------------------------------------ */

/* Runs git bisect with these arguments. Returns 0 if git has checked out the next commit. Returns 1 if the search has ended: then
 * `first_slower` is the first slower commit, or "" if only skipped commits are left. */
static int bisect_step(const bisection *search, const char *const *arguments, char first_slower[COMMIT_SIZE], rl_error *err) {
  static const char found[] = " is the first bad commit";
  RL_CLEANUP(rl_free_text) char *output = NULL;
  const int status = git(search->tree, arguments, &output, err);
  const char *end = output != NULL ? strstr(output, found) : NULL;
  first_slower[0] = '\0';
  if (status < 0) return -1;
  if (end != NULL) {
    const char *start = end;
    while (start > output && start[-1] != '\n') start--;
    snprintf(first_slower, COMMIT_SIZE, "%.*s", (int)(end - start), start);
    return 1;
  }
  if (status == GIT_ONLY_SKIPPED_STATUS) return fprintf(stderr, "%s\n", output), 1;
  return status == 0 ? 0 : rl_fail(err, RL_ERRNO, 0, "git bisect failed; its message is above");
}

/* Reverts tracked files and removes untracked ones. Ignored files stay, for incremental builds. */
static int clean_tree(const bisection *search, rl_error *err) {
  if (git_or_fail(search->tree, (const char *[]){"git", "reset", "--quiet", "--hard", NULL}, NULL, err) < 0) return -1;
  return git_or_fail(search->tree, (const char *[]){"git", "clean", "--quiet", "-fd", NULL}, NULL, err);
}

static int find_first_slower(const bisection *search, const char *good, const char *bad, char first_slower[COMMIT_SIZE],
                             rl_error *err) {
  char commit[COMMIT_SIZE];
  result judged;
  if (clean_tree(search, err) < 0) return -1;
  int ended = bisect_step(search, (const char *[]){"git", "bisect", "start", bad, good, NULL}, first_slower, err);
  while (ended == 0) {
    if (resolve_commit(search->tree, "HEAD", commit, err) < 0 || judge_commit(search, commit, &judged, err) < 0 ||
        clean_tree(search, err) < 0)
      return -1;
    ended = bisect_step(search, (const char *[]){"git", "bisect", git_words[judged], NULL}, first_slower, err);
  }
  return ended < 0 ? -1 : 0;
}

/* Prints the commit and the verdicts of its suite run. */
static int print_found(const bisection *search, const char *first_slower, rl_error *err) {
  const cJSON *step;
  char line[512], path[64] = "";
  describe_commit(search, first_slower, line, sizeof line);
  printf("the first slower commit: %s\n\n", line);
  cJSON_ArrayForEach (step, search->steps)
    if (strcmp(rl_json_text(step, "commit"), first_slower) == 0)
      snprintf(path, sizeof path, "/suite-runs/%.0f", rl_json_number(step, "suite_run"));
  RL_CLEANUP(rl_json_free) cJSON *run = rl_http_get(search->cli, path, err);
  if (run == NULL) return -1;
  rl_print_suite_run(stdout, run);
  return RL_EXIT_COMPLETED;
}

static int print_result(const bisection *search, const char *first_slower, rl_error *err) {
  if (search->cli->json) {
    RL_CLEANUP(rl_json_free) cJSON *document = cJSON_CreateObject();
    if (*first_slower != '\0') cJSON_AddStringToObject(document, "first_slower", first_slower);
    else cJSON_AddNullToObject(document, "first_slower");
    cJSON_AddStringToObject(document, "baseline", search->baseline);
    cJSON_AddItemReferenceToObject(document, "steps", search->steps);
    rl_print_json(document);
  } else if (*first_slower != '\0') {
    return print_found(search, first_slower, err);
  } else {
    puts(
        "Only skipped commits are left. The first slower commit is one of them, or the commit after them that was measured as "
        "slower.");
  }
  return *first_slower != '\0' ? RL_EXIT_COMPLETED : RL_EXIT_INCONCLUSIVE;
}

static int search_commits(bisection *search, const char *good, const char *bad, rl_error *err) {
  char first_slower[COMMIT_SIZE];
  result judged;
  if (add_worktree(search, good, err) < 0 || make_baseline(search, good, err) < 0 || clean_tree(search, err) < 0) return -1;
  if (git_or_fail(search->tree, (const char *[]){"git", "checkout", "--quiet", "--detach", bad, NULL}, NULL, err) < 0 ||
      judge_commit(search, bad, &judged, err) < 0)
    return -1;
  if (judged != RESULT_BAD) {
    fprintf(stderr, "rooflinectl: the bad commit %.*s is not slower than the good commit\n", SHORT_COMMIT_LENGTH, bad);
    return RL_EXIT_INCONCLUSIVE;
  }
  return find_first_slower(search, good, bad, first_slower, err) < 0 ? -1 : print_result(search, first_slower, err);
}

int rl_command_bisect(rl_cli *cli, rl_error *err) {
  bisection search = {.cli = cli, .repository = "."};
  char good[COMMIT_SIZE], bad[COMMIT_SIZE];
  if (parse_options(&search, err) < 0 || resolve_commit(search.repository, search.good, good, err) < 0 ||
      resolve_commit(search.repository, search.bad, bad, err) < 0)
    return -1;
  const int status = git(search.repository, (const char *[]){"git", "merge-base", "--is-ancestor", good, bad, NULL}, NULL, err);
  if (status < 0) return -1;
  if (status != 0 || strcmp(good, bad) == 0)
    return rl_fail_usage(err, "%.80s is not an ancestor of %.80s", search.good, search.bad);
  if (!is_file(search.suite) && rl_check_name(search.suite, "suite", err) < 0) return -1;
  search.steps = cJSON_CreateArray();
  rl_catch_interrupt();
  const int code = search_commits(&search, good, bad, err);
  const bool interrupted = rl_clear_interrupt();
  remove_worktree(&search);
  cJSON_Delete(search.steps);
  return interrupted ? (int)RL_EXIT_INTERRUPTED : code;
}
