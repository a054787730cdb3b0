/* report and compare: what the counters say of a run's kernels, and of two runs'. */
#include <stdio.h>
#include <string.h>

#include "api/client/http.h"
#include "api/client/print.h"

typedef struct options {
  long long run, kernel; /* kernel: -1 for every one */
  const char *section;   /* NULL: the header of every one */
  bool csv;
} options;

/* One option with its value, which may be missing: NULL. */
static int take_value(options *asked, const char *name, const char *value, rl_error *err) {
  if (strcmp(name, "--kernel") == 0) return rl_number_argument(value, 0, "a kernel's number after --kernel", &asked->kernel, err);
  asked->section = value;
  return value != NULL ? 0 : rl_usage(err, "--section needs a section's identifier");
}

static int take_options(const rl_cli *cli, options *asked, rl_error *err) {
  const char *run = NULL;
  *asked = (options){.kernel = -1};
  for (int i = 0; i < cli->argc; i++) {
    const char *word = cli->argv[i];
    if (strcmp(word, "--csv") == 0) asked->csv = true;
    else if (strcmp(word, "--kernel") == 0 || strcmp(word, "--section") == 0) {
      if (take_value(asked, word, cli->argv[++i], err) < 0) return -1;
    } else if (run != NULL || word[0] == '-') return rl_usage(err, "report does not know %s", word);
    else run = word;
  }
  if (asked->csv && (asked->section != NULL || cli->json)) return rl_usage(err, "--csv goes with --kernel alone");
  return rl_number_argument(run, 1, "a run's number", &asked->run, err);
}

static int print_csv(const rl_cli *cli, const char *path, rl_error *err) {
  rl_auto(rl_text_free) rl_text answer = {0};
  if (rl_http_send(cli, "GET", path, NULL, &answer, err) < 0) return -1;
  fwrite(answer.data, 1, answer.length, stdout);
  return RL_EXIT_COMPLETED;
}

/* With the reason, where it has none at all. */
static int no_section(const cJSON *report, const char *id, rl_error *err) {
  const char *reason = rl_json_text(cJSON_GetArrayItem(rl_json_at(report, "kernels"), 0), "reason");
  return rl_usage(err, "the report has no section %s%s%s", id, reason[0] != '\0' ? ": " : "", reason);
}

static bool has_section(const cJSON *report, const char *id) {
  const cJSON *kernel, *section;
  cJSON_ArrayForEach (kernel, rl_json_at(report, "kernels"))
    cJSON_ArrayForEach (section, rl_json_at(kernel, "sections"))
      if (strcmp(rl_json_text(section, "id"), id) == 0) return true;
  return false;
}

int rl_command_report(rl_cli *cli, rl_error *err) {
  options asked;
  char path[128], kernel[32] = "";
  if (take_options(cli, &asked, err) < 0) return -1;
  if (asked.kernel >= 0) snprintf(kernel, sizeof kernel, "&kernel=%lld", asked.kernel);
  snprintf(path, sizeof path, "/runs/%lld/report?format=%s%s", asked.run, asked.csv ? "csv&print_details=all" : "json", kernel);
  if (asked.csv) return print_csv(cli, path, err);
  rl_auto(rl_json_free) cJSON *report = rl_http_get(cli, path, err);
  if (report == NULL) return -1;
  if (cli->json) return rl_print_json(report);
  if (cJSON_GetArraySize(rl_json_at(report, "kernels")) == 0)
    return rl_usage(err, "run %lld has no kernel %lld", asked.run, asked.kernel);
  if (asked.section != NULL && !has_section(report, asked.section)) return no_section(report, asked.section, err);
  rl_print_report(stdout, report, asked.section);
  return RL_EXIT_COMPLETED;
}

typedef struct pair {          /* of runs, a and b */
  long long run[2], kernel[2]; /* kernel: -1 for any */
  int runs;                    /* that were named */
} pair;

static int take_pair(const rl_cli *cli, pair *asked, rl_error *err) {
  *asked = (pair){.kernel = {-1, -1}};
  for (int i = 0; i < cli->argc; i++) {
    const char *word = cli->argv[i];
    const bool a = strcmp(word, "--kernel") == 0, b = strcmp(word, "--kernel-b") == 0;
    if (!a && !b && asked->runs == 2) return rl_usage(err, "compare does not know %s", word);
    int rc = a || b ? rl_number_argument(cli->argv[++i], 0, "a kernel's number", &asked->kernel[b], err)
                    : rl_number_argument(word, 1, "two runs' numbers", &asked->run[asked->runs++], err);
    if (rc < 0) return -1;
  }
  return asked->runs == 2 ? 0 : rl_usage(err, "this command needs two runs' numbers");
}

int rl_command_compare(rl_cli *cli, rl_error *err) {
  static const char *const parameters[] = {"kernel", "kernel_b"};
  pair asked;
  char path[128];
  if (take_pair(cli, &asked, err) < 0) return -1;
  int used = snprintf(path, sizeof path, "/compare?a=%lld&b=%lld", asked.run[0], asked.run[1]);
  for (int i = 0; i < 2; i++)
    if (asked.kernel[i] >= 0)
      used += snprintf(path + used, sizeof path - (size_t)used, "&%s=%lld", parameters[i], asked.kernel[i]);
  rl_auto(rl_json_free) cJSON *comparison = rl_http_get(cli, path, err);
  if (comparison == NULL) return -1;
  if (cli->json) return rl_print_json(comparison);
  rl_print_run_comparison(stdout, comparison);
  return RL_EXIT_COMPLETED;
}
