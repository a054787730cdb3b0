/* Implements the commands report, which prints the report of a run, and compare, which prints two runs side by side. */
#include <stdio.h>
#include <string.h>

#include "api/client/http.h"
#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/watch.h"

typedef struct report_options {
  long long run, job, kernel; /* run 0: the only run of the job; kernel −1: all kernels */
  const char *page;           /* page of the CSV: "details" or "raw" */
  const char *section;        /* section to print; NULL: the header of every section */
  bool csv, all, watch;
} report_options;

static int set_page(report_options *options, const char *value, rl_error *err) {
  if (value == NULL || (strcmp(value, "details") != 0 && strcmp(value, "raw") != 0))
    return rl_fail_usage(err, "--page needs details or raw");
  options->page = value;
  options->csv = true;
  return 0;
}

/* Parses an option. value: NULL if the command line ends after the option's name. */
static int parse_value(report_options *options, const char *name, const char *value, rl_error *err) {
  if (strcmp(name, "--kernel") == 0) return rl_parse_number(value, 0, "a kernel's number after --kernel", &options->kernel, err);
  if (strcmp(name, "--job") == 0) return rl_parse_number(value, 1, "a job's number after --job", &options->job, err);
  if (strcmp(name, "--page") == 0) return set_page(options, value, err);
  options->section = value;
  return value != NULL ? 0 : rl_fail_usage(err, "--section needs a section's identifier, such as SpeedOfLight");
}

static bool has_value(const char *option) {
  static const char *const names[] = {"--job", "--kernel", "--section", "--page"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(option, names[i]) == 0) return true;
  return false;
}

static int parse_options(const rl_cli *cli, report_options *options, rl_error *err) {
  const char *run = NULL;
  *options = (report_options){.kernel = -1, .page = "details"};
  for (int i = 0; i < cli->argc; i++) {
    const char *word = cli->argv[i];
    if (strcmp(word, "--csv") == 0) options->csv = true;
    else if (strcmp(word, "--all") == 0) options->all = true;
    else if (strcmp(word, "--watch") == 0) options->watch = true;
    else if (has_value(word)) {
      if (parse_value(options, word, cli->argv[++i], err) < 0) return -1;
    } else if (run != NULL || word[0] == '-') return rl_fail_argument(err, "report", word);
    else run = word;
  }
  if (options->csv && (options->section != NULL || cli->json))
    return rl_fail_usage(err, "--csv and --page can only be combined with --kernel");
  if (options->watch && (options->csv || cli->json)) return rl_fail_usage(err, "--watch prints text: omit --csv and --json");
  if (options->job > 0 && run != NULL) return rl_fail_usage(err, "report takes a run or --job, not both");
  if (options->job > 0) return 0;
  return rl_parse_number(run, 1, "a run's number or --job JOB (rooflinectl list prints them)", &options->run, err);
}

/* Sets options->run to the only run of the job. Fails with the numbers of its runs if there are several. */
static int find_only_run(rl_cli *cli, report_options *options, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *job = rl_http_get_job(cli, options->job, "", err);
  if (job == NULL) return -1;
  const cJSON *runs = rl_json_at(job, "runs");
  if (cJSON_GetArraySize(runs) == 1) return options->run = (long long)rl_json_number(runs->child, "id"), 0;
  RL_CLEANUP(rl_free_text) char *names = NULL;
  size_t size;
  FILE *out = open_memstream(&names, &size);
  if (out == NULL) return rl_fail_errno(err, "no memory for the names of runs");
  rl_print_runs(out, runs);
  fclose(out);
  return rl_fail_usage(err, "job %lld has the runs %s; print one with: rooflinectl report %.0f", options->job, names,
                       rl_json_number(runs->child, "id"));
}

static int print_csv(const rl_cli *cli, const char *path, rl_error *err) {
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  if (rl_http_send(cli, "GET", path, NULL, &response, err) < 0) return -1;
  fwrite(response.data, 1, response.length, stdout);
  return RL_EXIT_COMPLETED;
}

/* Returns -1 with RL_INPUT: the report does not have the section. The message contains the reason if the report has no sections
 * at all. */
static int fail_without_section(const cJSON *report, const char *id, rl_error *err) {
  const char *reason = rl_json_text(cJSON_GetArrayItem(rl_json_at(report, "kernels"), 0), "reason");
  return rl_fail_usage(err, "the report has no section %.60s%s%s; `run --sections ID` collects one, GET /sections lists them", id,
                       reason[0] != '\0' ? ": " : "", reason);
}

static bool has_section(const cJSON *report, const char *id) {
  const cJSON *kernel, *section;
  cJSON_ArrayForEach (kernel, rl_json_at(report, "kernels"))
    cJSON_ArrayForEach (section, rl_json_at(kernel, "sections"))
      if (strcmp(rl_json_text(section, "id"), id) == 0) return true;
  return false;
}

static cJSON *get_timeline(rl_cli *cli, long long run, rl_error *err) {
  char path[64];
  snprintf(path, sizeof path, "/runs/%lld/timeline/findings", run);
  return rl_http_get(cli, path, err);
}

/* Prints the section Timeline, which belongs to the run and to no kernel. */
static int print_timeline(rl_cli *cli, FILE *out, long long run, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *timeline = get_timeline(cli, run, err);
  if (timeline == NULL) return -1;
  rl_print_timeline_findings(out, timeline);
  return RL_EXIT_COMPLETED;
}

/* Sets *has_ended if the run's job has ended. */
static int check_job(rl_cli *cli, const cJSON *report, bool *has_ended, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *job = rl_http_get_job(cli, (long long)rl_json_number(report, "job"), "", err);
  if (job == NULL) return -1;
  *has_ended = rl_job_state_has_ended(rl_json_text(job, "state"));
  return 0;
}

enum { PATH_SIZE = 128 };

static void make_path(const report_options *options, const char *format, char path[PATH_SIZE]) {
  char kernel[32] = "";
  if (options->kernel >= 0) snprintf(kernel, sizeof kernel, "&kernel=%lld", options->kernel);
  snprintf(path, PATH_SIZE, "/runs/%lld/report?format=%s%s", options->run, format, kernel);
}

/* Prints the report in the form that the options ask for. */
static int print_report(rl_cli *cli, FILE *out, void *context, bool *has_ended, rl_error *err) {
  const report_options *options = context;
  bool is_whole = options->kernel < 0 && options->section == NULL;
  char path[PATH_SIZE];
  make_path(options, "json", path);
  RL_CLEANUP(rl_json_free) cJSON *report = rl_http_get(cli, path, err);
  if (report == NULL || (options->watch && check_job(cli, report, has_ended, err) < 0)) return -1;
  if (options->kernel < 0 && options->section != NULL && strcmp(options->section, RL_TIMELINE_SECTION) == 0)
    return print_timeline(cli, out, options->run, err);
  if (cJSON_GetArraySize(rl_json_at(report, "kernels")) == 0 && !options->watch)
    return rl_fail_usage(err, "run %lld has no kernel %lld", options->run, options->kernel);
  if (options->section != NULL && !has_section(report, options->section))
    return fail_without_section(report, options->section, err);
  RL_CLEANUP(rl_json_free) cJSON *timeline = is_whole ? get_timeline(cli, options->run, err) : NULL;
  if (is_whole && timeline == NULL) return -1;
  bool is_training = is_whole && !options->all && strcmp(rl_json_text(report, "kind"), "train") == 0;
  RL_CLEANUP(rl_json_free)
  cJSON *comparison = is_training ? rl_http_get_job(cli, (long long)rl_json_number(report, "job"), "/comparison", err) : NULL;
  if (is_training && comparison == NULL) return -1;
  if (options->section == NULL && !options->all) rl_print_report_summary(out, report, timeline, comparison);
  else rl_print_report(out, report, options->section);
  if (is_whole && options->all) rl_print_timeline_findings(out, timeline);
  return RL_EXIT_COMPLETED;
}

/* Prints the API's response: CSV or JSON. */
static int print_response(rl_cli *cli, const report_options *options, rl_error *err) {
  char path[PATH_SIZE], format[64];
  snprintf(format, sizeof format, "csv&print_details=all&page=%s", options->page);
  make_path(options, options->csv ? format : "json", path);
  if (options->csv) return print_csv(cli, path, err);
  RL_CLEANUP(rl_json_free) cJSON *report = rl_http_get(cli, path, err);
  return report != NULL ? rl_print_json(report) : -1;
}

int rl_command_report(rl_cli *cli, rl_error *err) {
  report_options options;
  if (parse_options(cli, &options, err) < 0 || (options.job > 0 && find_only_run(cli, &options, err) < 0)) return -1;
  if (options.csv || cli->json) return print_response(cli, &options, err);
  return rl_print_repeatedly(cli, options.watch, print_report, &options, err);
}

typedef struct comparison_options {
  long long run[2], kernel[2]; /* of runs a and b; kernel −1: all kernels */
  int run_count;               /* number of runs parsed so far */
  bool all;
} comparison_options;

static const char two_runs[] = "two runs' numbers (rooflinectl list prints them)";

static int parse_comparison_options(const rl_cli *cli, comparison_options *options, rl_error *err) {
  *options = (comparison_options){.kernel = {-1, -1}};
  for (int i = 0; i < cli->argc; i++) {
    const char *word = cli->argv[i];
    const bool is_kernel_a = strcmp(word, "--kernel") == 0, is_kernel_b = strcmp(word, "--kernel-b") == 0;
    if (strcmp(word, "--all") == 0) {
      options->all = true;
      continue;
    }
    if (!is_kernel_a && !is_kernel_b && options->run_count == 2) return rl_fail_argument(err, "compare", word);
    int rc = is_kernel_a || is_kernel_b
                 ? rl_parse_number(cli->argv[++i], 0, "a kernel's number", &options->kernel[is_kernel_b], err)
                 : rl_parse_number(word, 1, two_runs, &options->run[options->run_count++], err);
    if (rc < 0) return -1;
  }
  return options->run_count == 2 ? 0 : rl_fail_usage(err, "this command needs %s", two_runs);
}

static int print_timelines(rl_cli *cli, const long long runs[2], rl_error *err) {
  char path[96];
  snprintf(path, sizeof path, "/compare/timeline?a=%lld&b=%lld", runs[0], runs[1]);
  RL_CLEANUP(rl_json_free) cJSON *comparison = rl_http_get(cli, path, err);
  if (comparison == NULL) return -1;
  rl_print_timeline_comparison(stdout, comparison);
  return 0;
}

static cJSON *get_verdicts(rl_cli *cli, long long run, rl_error *err) {
  char path[64];
  snprintf(path, sizeof path, "/runs/%lld/report?detail=verdicts", run);
  return rl_http_get(cli, path, err);
}

static int print_comparison(rl_cli *cli, const cJSON *comparison, const comparison_options *options, rl_error *err) {
  const bool is_whole =
      options->kernel[0] < 0 && options->kernel[1]<0, has_kernels = cJSON_GetArraySize(rl_json_at(comparison, "kernels"))> 0;
  RL_CLEANUP(rl_json_free) cJSON *a = has_kernels ? get_verdicts(cli, options->run[0], err) : NULL;
  RL_CLEANUP(rl_json_free) cJSON *b = a != NULL ? get_verdicts(cli, options->run[1], err) : NULL;
  if (has_kernels && b == NULL) return -1;
  rl_print_run_comparison(stdout, comparison, (const cJSON *const[]){a, b}, options->all);
  if (is_whole && print_timelines(cli, options->run, err) < 0) return -1;
  if (!options->all && has_kernels)
    printf("\nNot shown: further tables of numbers (rooflinectl compare %lld %lld --all)\n", options->run[0], options->run[1]);
  return RL_EXIT_COMPLETED;
}

int rl_command_compare(rl_cli *cli, rl_error *err) {
  static const char *const parameters[] = {"kernel", "kernel_b"};
  comparison_options options;
  char path[128];
  if (parse_comparison_options(cli, &options, err) < 0) return -1;
  int used = snprintf(path, sizeof path, "/compare?a=%lld&b=%lld", options.run[0], options.run[1]);
  for (int i = 0; i < 2; i++)
    if (options.kernel[i] >= 0)
      used += snprintf(path + used, sizeof path - (size_t)used, "&%s=%lld", parameters[i], options.kernel[i]);
  RL_CLEANUP(rl_json_free) cJSON *comparison = rl_http_get(cli, path, err);
  if (comparison == NULL) return -1;
  return cli->json ? rl_print_json(comparison) : print_comparison(cli, comparison, &options, err);
}
