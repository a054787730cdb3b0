/* Implements the command regress, which runs a suite, follows the suite run, prints its verdicts, and writes them in the formats
 * of other tools. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/http.h"
#include "api/client/journal.h"
#include "api/client/print.h"
#include "api/client/suite_follow.h"
#include "api/client/suite_outputs.h"
#include "api/client/suite_submit.h"

enum { MAX_OUTPUTS = 16 };
RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

typedef struct output {
  const rl_suite_output *format;
  const char *file; /* path of the output; NULL: standard output */
} output;

typedef struct regress_options {
  rl_suite_request request;
  long long run, cancel; /* 0: the option was not given */
  output outputs[MAX_OUTPUTS];
  int output_count;
} regress_options;

const rl_cli_option *rl_regress_options(void) {
  enum { OPTION_COUNT = 9, MAX_FORMATS = 8 };
  static rl_cli_option options[OPTION_COUNT + MAX_FORMATS + 1] = {
      {"--suite", "FILE", "run the definition in this file instead of a suite of the daemon"},
      {"--against", "NAME", "compare with this named baseline; default: with the last good runs"},
      {"--against-build", "NAME", "also measure this build of the workers, in random order, as the baseline"},
      {"--against-engine", "NAME", "also measure this engine as the baseline"},
      {"--against-variant", "NAME", "also measure this variant of a kernel as the baseline"},
      {"--device", "ID", "an id that `rooflinectl devices` lists"},
      {"--run", "N", "follow or print suite run N instead of starting one"},
      {"--cancel", "N", "cancel suite run N"},
      {"--output", "FORMAT[=FILE]", "also write the run to FILE; without FILE, print it instead of the table:"}};
  for (int i = 0; i < MAX_FORMATS && rl_suite_outputs[i].name != NULL; i++)
    options[OPTION_COUNT + i] = (rl_cli_option){rl_suite_outputs[i].name, "", rl_suite_outputs[i].summary, "--output"};
  return options;
}

/* --- options -------------------------------------------------------------------------------------------------------------- */

/* Fails unless the file can be written. Called before the suite run, which takes minutes. */
static int check_writable(const char *file, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *copy = strdup(file);
  if (copy == NULL) return rl_fail_errno(err, "%s", file);
  if (access(file, F_OK) == 0 ? access(file, W_OK) == 0 : access(dirname(copy), W_OK) == 0) return 0;
  return rl_fail_usage(err, "%.160s can't be written: %s", file, strerror(errno));
}

static const rl_suite_output *find_format(const char *name, size_t length, rl_error *err) {
  char names[128] = "";
  for (const rl_suite_output *format = rl_suite_outputs; format->name != NULL; format++) {
    if (strlen(format->name) == length && memcmp(format->name, name, length) == 0) return format;
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names != '\0' ? ", " : "", format->name);
  }
  rl_fail_usage(err, "--output %.40s: the formats are %s", name, names);
  return NULL;
}

/* Parses FORMAT[=FILE]. */
static int add_output(const rl_cli *cli, regress_options *options, const char *value, rl_error *err) {
  const size_t length = strcspn(value, "=");
  const rl_suite_output *format = find_format(value, length, err);
  const char *file = value[length] == '=' ? value + length + 1 : NULL;
  if (format == NULL) return -1;
  if (options->output_count == MAX_OUTPUTS) return rl_fail_usage(err, "--output can be given %d times", MAX_OUTPUTS);
  bool stdout_taken = cli->json;
  for (int i = 0; i < options->output_count; i++) stdout_taken |= options->outputs[i].file == NULL;
  if (file == NULL && stdout_taken)
    return rl_fail_usage(err, "--output %s needs =FILE, because another format is written to standard output", format->name);
  if (file != NULL && check_writable(file, err) < 0) return -1;
  options->outputs[options->output_count++] = (output){.format = format, .file = file};
  return 0;
}

static int set_option(const rl_cli *cli, regress_options *options, const char *name, const char *value, rl_error *err) {
  const struct {
    const char *name, **value;
  } texts[] = {{"--suite", &options->request.file},
               {"--against", &options->request.against},
               {"--against-build", &options->request.against_build},
               {"--against-engine", &options->request.against_engine},
               {"--against-variant", &options->request.against_variant},
               {"--device", &options->request.device}};
  if (value == NULL) return rl_fail_usage(err, "%.60s needs a value", name);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(name, texts[i].name) == 0) return *texts[i].value = value, 0;
  if (strcmp(name, "--run") == 0) return rl_parse_number(value, 1, "a suite run's number after --run", &options->run, err);
  if (strcmp(name, "--cancel") == 0)
    return rl_parse_number(value, 1, "a suite run's number after --cancel", &options->cancel, err);
  if (strcmp(name, "--output") == 0) return add_output(cli, options, value, err);
  return rl_fail_argument(err, "regress", name);
}

static int parse_options(const rl_cli *cli, regress_options *options, rl_error *err) {
  for (int i = 0; i < cli->argc; i++) {
    const char *word = cli->argv[i], *equals = strchr(word, '=');
    char name[64];
    if (word[0] != '-') {
      if (options->request.suite != NULL) return rl_fail_argument(err, cli->command, word);
      options->request.suite = word;
      continue;
    }
    snprintf(name, sizeof name, "%.*s", equals != NULL ? (int)(equals - word) : (int)strlen(word), word);
    const char *value = equals != NULL ? equals + 1 : i + 1 < cli->argc ? cli->argv[++i] : NULL;
    if (set_option(cli, options, name, value, err) < 0) return -1;
  }
  const bool runs = options->request.suite != NULL || options->request.file != NULL,
             names_run = options->run > 0 || options->cancel > 0;
  const bool has_settings = options->request.against != NULL || options->request.device != NULL ||
                            options->request.against_build != NULL || options->request.against_engine != NULL ||
                            options->request.against_variant != NULL;
  if (names_run && (runs || has_settings || (options->run > 0 && options->cancel > 0)))
    return rl_fail_usage(err, "--run and --cancel take no suite; --run can only be combined with --output");
  return 0;
}

/* --- submission ----------------------------------------------------------------------------------------------------------- */

/* Prints the estimated duration of the suite run and the basis of the estimate to standard error. */
static void print_estimate(const cJSON *accepted, const char *suite) {
  static const struct {
    const char *basis, *takes, *because;
  } texts[] = {{"runs", "about", "like its last runs"},
               {"jobs", "about", "like the last equal jobs"},
               {"similar_jobs", "about", "if each job takes as long as the last job of its kind"},
               {"time_budget", "at most", "its time budget"}};
  char duration[RL_CELL_SIZE];
  const char *basis = rl_json_text(accepted, "estimate_basis");
  fprintf(stderr, "suite run %.0f of %s", rl_json_number(accepted, "id"), suite);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(basis, texts[i].basis) == 0)
      fprintf(stderr, " takes %s %s, %s", texts[i].takes, rl_format_age(duration, rl_json_number(accepted, "estimated_s")),
              texts[i].because);
  fputc('\n', stderr);
}

static int submit(const rl_cli *cli, regress_options *options, rl_error *err) {
  char suite[RL_SUITE_NAME_SIZE];
  RL_CLEANUP(rl_json_free) cJSON *accepted = rl_suite_submit(cli, &options->request, suite, err);
  if (accepted == NULL) return -1;
  if (!cli->json) print_estimate(accepted, suite);
  options->run = (long long)rl_json_number(accepted, "id");
  return 0;
}

static int cancel(const rl_cli *cli, long long id, rl_error *err) {
  char path[64];
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  snprintf(path, sizeof path, "/suite-runs/%lld", id);
  if (rl_http_send(cli, "DELETE", path, NULL, &response, err) < 0) return -1;
  if (cli->json) puts(response.length > 0 ? response.data : "{}");
  else printf("suite run %lld is cancelled\n", id);
  return RL_EXIT_COMPLETED;
}

/* --- results -------------------------------------------------------------------------------------------------------------- */

/* Returns the rows of `table` without its header, so that they can be appended to an existing file. Returns NULL with err if the
 * file has another header. */
static const char *find_rows(FILE *existing, const char *table, const char *file, rl_error *err) {
  const size_t length = strcspn(table, "\n") + 1;
  RL_CLEANUP(rl_free_text) char *header = malloc(length);
  if (header != NULL && fread(header, 1, length, existing) == length && memcmp(header, table, length) == 0) return table + length;
  rl_fail_usage(err, "%.160s has other columns than this run: give another file", file);
  return NULL;
}

static int write_file(const output *destination, const char *text, rl_error *err) {
  RL_CLEANUP(close_file) FILE *existing = destination->format->is_table ? fopen(destination->file, "re") : NULL;
  const bool appends = existing != NULL && fgetc(existing) != EOF;
  if (appends) {
    rewind(existing);
    text = find_rows(existing, text, destination->file, err);
  }
  if (text == NULL) return -1;
  FILE *out = fopen(destination->file, appends ? "ae" : "we");
  if (out == NULL) return rl_fail_errno(err, "%.160s", destination->file);
  const bool written = fputs(text, out) >= 0;
  return fclose(out) == 0 && written ? 0 : rl_fail_errno(err, "%.160s", destination->file);
}

static int write_output(const output *destination, const cJSON *run, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *text = NULL;
  size_t size = 0;
  const char *missing = rl_suite_output_find_missing_value(run);
  FILE *stream = open_memstream(&text, &size);
  if (stream == NULL) return rl_fail_errno(err, "no memory for an output");
  destination->format->write(stream, run);
  if (fclose(stream) != 0) return rl_fail_errno(err, "no memory for an output");
  if (destination->format->is_table && missing != NULL)
    fprintf(stderr, "rooflinectl: %s gets no row: the run has no value of %s\n", destination->format->name, missing);
  if (destination->file != NULL) return write_file(destination, text, err);
  fputs(text, stdout);
  return 0;
}

/* Sends the verdict to the journal, prints the suite run and writes all outputs. Continues after a failure. */
static int print_run(const rl_cli *cli, const regress_options *options, const cJSON *run, rl_error *err) {
  bool stdout_taken = cli->json;
  int rc = rl_journal_send_verdict(run, err);
  for (int i = 0; i < options->output_count; i++) stdout_taken |= options->outputs[i].file == NULL;
  if (cli->json) rl_print_json(run);
  else rl_print_suite_run(stdout_taken ? stderr : stdout, run);
  for (int i = 0; i < options->output_count; i++)
    if (write_output(&options->outputs[i], run, err) < 0) rc = -1;
  return rc < 0 ? -1 : (int)rl_suite_exit_code(run);
}

int rl_command_regress(rl_cli *cli, rl_error *err) {
  regress_options options = {0};
  RL_CLEANUP(rl_json_free) cJSON *run = NULL;
  if (parse_options(cli, &options, err) < 0) return -1;
  if (options.cancel > 0) return cancel(cli, options.cancel, err);
  const bool submits = options.run == 0;
  if (submits && submit(cli, &options, err) < 0) return -1;
  const int code = rl_suite_follow(cli, options.run, submits, &run, err);
  return run != NULL ? print_run(cli, &options, run, err) : code;
}
