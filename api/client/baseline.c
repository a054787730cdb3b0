/* Implements the commands suites, baseline promote and baseline list. */
#include <stdio.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/http.h"
#include "api/client/print.h"
#include "api/client/suite_submit.h"

int rl_command_suites(rl_cli *cli, rl_error *err) {
  if (cli->argc != 0) return rl_fail_usage(err, "suites takes no arguments");
  RL_CLEANUP(rl_json_free) cJSON *suites = rl_http_get(cli, "/suites", err);
  if (suites == NULL) return -1;
  if (cli->json) return rl_print_json(suites);
  rl_print_suites(stdout, suites);
  return RL_EXIT_COMPLETED;
}

static int list_baselines(const rl_cli *cli, const char *suite, rl_error *err) {
  char path[128];
  snprintf(path, sizeof path, "/suites/%s/baselines", suite);
  RL_CLEANUP(rl_json_free) cJSON *baselines = rl_http_get(cli, path, err);
  if (baselines == NULL) return -1;
  if (cli->json) return rl_print_json(baselines);
  rl_print_baselines(stdout, baselines);
  return RL_EXIT_COMPLETED;
}

/* Sets *id to the last completed run of the suite. */
static int find_last_completed_run(const rl_cli *cli, const char *suite, long long *id, rl_error *err) {
  char path[128];
  const cJSON *run;
  snprintf(path, sizeof path, "/suites/%s/runs?limit=100", suite);
  RL_CLEANUP(rl_json_free) cJSON *runs = rl_http_get(cli, path, err);
  if (runs == NULL) return -1;
  cJSON_ArrayForEach (run, rl_json_at(runs, "items"))
    if (strcmp(rl_json_text(run, "state"), "completed") == 0) return *id = (long long)rl_json_number(run, "id"), 0;
  return rl_fail_usage(err, "suite %s has no completed run; `rooflinectl regress %s` makes one", suite, suite);
}

static int promote(const rl_cli *cli, const char *suite, const char *name, long long run, rl_error *err) {
  if (run == 0 && find_last_completed_run(cli, suite, &run, err) < 0) return -1;
  RL_CLEANUP(rl_json_free) cJSON *baseline = rl_post_named_baseline(cli, suite, name, run, err);
  if (baseline == NULL) return -1;
  if (cli->json) return rl_print_json(baseline);
  printf("suite run %lld is baseline %s of %s\n", run, name, suite);
  return RL_EXIT_COMPLETED;
}

int rl_command_baseline(rl_cli *cli, rl_error *err) {
  const char *words[3] = {NULL}; /* the arguments that are not options: promote SUITE NAME, or list SUITE */
  long long run = 0;
  int count = 0;
  for (int i = 0; i < cli->argc; i++) {
    if (strcmp(cli->argv[i], "--run") == 0) {
      if (rl_parse_number(cli->argv[++i], 1, "a suite run's number after --run", &run, err) < 0) return -1;
    } else if (cli->argv[i][0] == '-' || count == 3) {
      return rl_fail_argument(err, "baseline", cli->argv[i]);
    } else {
      words[count++] = cli->argv[i];
    }
  }
  const bool lists = count == 2 && run == 0 && strcmp(words[0], "list") == 0;
  if (!lists && (count != 3 || strcmp(words[0], "promote") != 0))
    return rl_fail_usage(err, "use baseline promote SUITE NAME [--run N], or baseline list SUITE");
  if (rl_check_name(words[1], "suite", err) < 0) return -1;
  if (lists) return list_baselines(cli, words[1], err);
  return rl_check_name(words[2], "baseline", err) < 0 ? -1 : promote(cli, words[1], words[2], run, err);
}
