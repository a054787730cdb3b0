/* rooflinectl: the table of commands, common options, and exit codes of errors. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/cli.h"
#include "api/client/credential.h"
#include "api/client/request.h"

static void list_report_options(void) {
  puts(
      "  --kernel N                 only this kernel of the run\n"
      "  --section ID               only this section, with all of its tables\n"
      "  --csv                      in the format of ncu --csv");
}

static void list_compare_options(void) {
  puts(
      "  --kernel N                 only this kernel of the first run\n"
      "  --kernel-b N               only this kernel of the second run; with --kernel\n"
      "                             compares these two kernels"
      "");
}

static void list_baseline_arguments(void) {
  puts(
      "  promote SUITE NAME         name the last completed suite run, or that of --run N\n"
      "  list SUITE                 list the suite's baselines");
}

static void list_token_arguments(void) {
  puts(
      "  list                       list the names of tokens\n"
      "  revoke NAME                revoke every token of this name and end its sessions");
}

static const rl_command commands[] = {
    {"run", "[FILE | - | OPTIONS]", "submit a job, follow it, print its result", rl_command_run, rl_request_print_options},
    {"import", "FILE [OPTIONS]", "import a trace of another profiler as a job", rl_command_import, rl_import_print_options},
    {"submit", "FILE | -", "submit a job and print its number", rl_command_submit},
    {"watch", "JOB", "follow a job until it ends", rl_command_watch},
    {"show", "JOB", "print a job's result so far", rl_command_show},
    {"kernels", "JOB", "print a job's kernels and their times", rl_command_kernels},
    {"report", "RUN [OPTIONS]", "print sections and findings of a run", rl_command_report, list_report_options},
    {"export", "JOB --format F …", "write a job's trace or numbers for another tool", rl_command_export, rl_export_print_options},
    {"compare", "RUN RUN [OPTIONS]", "print two reports side by side", rl_command_compare, list_compare_options},
    {"list", "", "list jobs, newest first", rl_command_list},
    {"cancel", "JOB", "cancel a queued or running job", rl_command_cancel},
    {"devices", "", "list devices, and why one is unusable", rl_command_devices},
    {"ceilings", "", "list measured peak rates of devices", rl_command_ceilings},
    {"regress", "SUITE [OPTIONS]", "run a suite and compare it with its baseline", rl_command_regress, rl_regress_print_options},
    {"baseline", "promote|list …", "name a suite run as baseline; list baselines", rl_command_baseline, list_baseline_arguments},
    {"bisect", "OPTIONS", "find the first commit that is slower", rl_command_bisect, rl_bisect_print_options},
    {"suites", "", "list suites and their last verdicts", rl_command_suites},
    {"backup", "[--state DIR] FILE", "copy the database, also while the daemon runs", rl_command_backup},
    {"token", "[--state DIR] [NAME]", "create an access token and print it once", rl_command_token, list_token_arguments},
    {0}};

static const rl_command *find_command(const char *name, rl_error *err) {
  for (const rl_command *command = commands; command->name != NULL; command++)
    if (strcmp(command->name, name) == 0) return command;
  rl_fail_usage(err, "there is no command %s; rooflinectl help lists them", name);
  return NULL;
}

static void print_help(void) {
  puts("rooflinectl [--url URL] [--token TOKEN] [--json] COMMAND ...\n\nCommands");
  for (const rl_command *command = commands; command->name != NULL; command++) {
    char label[48];
    snprintf(label, sizeof label, "%s %s", command->name, command->arguments);
    fputs("  ", stdout);
    rl_print_cell(stdout, label, -26);
    printf(" %s\n", command->summary);
  }
  for (const rl_command *command = commands; command->name != NULL; command++) {
    if (command->list_options == NULL) continue;
    printf("\nOptions of %s\n", command->name);
    command->list_options();
  }
  puts(
      "\nEnvironment: ROOFLINED_URL (http://127.0.0.1:8731), ROOFLINED_TOKEN,\n"
      "ROOFLINED_CACERT (a trusted certificate).\n"
      "Exit status: 0 completed, 1 failed, 2 wrong command or request,\n"
      "3 cancelled, 4 no daemon answers, 130 interrupted (the job continues).\n"
      "regress: 0 same or faster, 1 slower or failed, 5 inconclusive,\n"
      "6 incomparable: no baseline, or one of another device, driver, clock setting\n"
      "or definition.");
}

/* Prints help for a command; NULL: for all. */
static int print_help_for(const char *name, rl_error *err) {
  const rl_command *command = name != NULL ? find_command(name, err) : NULL;
  if (name == NULL) print_help();
  else if (command == NULL) return -1;
  else {
    printf("rooflinectl %s %s\n%s\n", command->name, command->arguments, command->summary);
    if (command->list_options != NULL) putchar('\n'), command->list_options();
  }
  return RL_EXIT_COMPLETED;
}

static int error_exit_code(const rl_error *err) {
  if (err->domain == RL_WIRE) return RL_EXIT_UNREACHABLE;
  if (err->domain == RL_INPUT) return RL_EXIT_USAGE;
  return err->domain == RL_HTTP && err->code >= 400 && err->code < 500 ? RL_EXIT_USAGE : RL_EXIT_FAILED;
}

static int report_error(const rl_error *err) {
  fprintf(stderr, "rooflinectl: %s", err->message);
  if (err->json_pointer[0] != '\0') fprintf(stderr, " (at %s)", err->json_pointer);
  fputc('\n', stderr);
  if (err->domain == RL_HTTP && err->code == 401) fputs("Set ROOFLINED_TOKEN; `rooflinectl token` creates one.\n", stderr);
  if (err->domain == RL_WIRE) fputs("Is the daemon running? Start it with `rooflined`, or set ROOFLINED_URL.\n", stderr);
  return error_exit_code(err);
}

/* Removes --url, --token, --json and --help from the arguments. */
static int parse_options(int argc, char **argv, rl_cli *cli, rl_error *err) {
  for (int i = 1; i < argc; i++) {
    const char **value = strcmp(argv[i], "--url") == 0 ? &cli->url : strcmp(argv[i], "--token") == 0 ? &cli->token : NULL;
    if (strcmp(argv[i], "--json") == 0) cli->json = true;
    else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) cli->help = true;
    else if (value != NULL && i + 1 < argc) *value = argv[++i];
    else if (value != NULL) return rl_fail_usage(err, "%s needs a value", argv[i]);
    else cli->argv[cli->argc++] = argv[i];
  }
  return 0;
}

static const char *get_environment(const char *name, const char *fallback) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : fallback;
}

/* Runs the command that the first argument names. */
static int run_command(rl_cli *cli, rl_error *err) {
  const rl_command *command = find_command(cli->argv[0], err);
  if (command == NULL) return -1;
  cli->argc--;
  cli->argv++;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  int code = command->run(cli, err);
  curl_global_cleanup();
  return code;
}

static int dispatch(rl_cli *cli, rl_error *err) {
  const char *first = cli->argv[0]; /* NULL: no arguments */
  if (first != NULL && strcmp(first, "help") == 0) return print_help_for(cli->argv[1], err);
  if (cli->help) return print_help_for(first, err);
  if (first == NULL) return print_help_for(NULL, err) + (int)RL_EXIT_USAGE;
  if (strcmp(first, "--version") == 0) return printf("rooflinectl %s\n", RL_VERSION) > 0 ? RL_EXIT_COMPLETED : RL_EXIT_FAILED;
  return run_command(cli, err);
}

/* Fails if standard output did not accept everything, for instance on a full disk. */
static int flush_output(rl_error *err) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  return rl_fail(err, RL_ERRNO, errno, "can't write to standard output: %s", errno != 0 ? strerror(errno) : "write error");
}

/* Parses the options and executes the command. Without a token among options and variables, a unit's credential is the token. */
static int parse_and_dispatch(int argc, char **argv, rl_cli *cli, rl_error *err) {
  char token[256];
  if (parse_options(argc, argv, cli, err) < 0 || rl_credential_read_token(token, sizeof token, err) < 0) return -1;
  if (cli->token == NULL && token[0] != '\0') cli->token = token;
  return dispatch(cli, err);
}

int main(int argc, char **argv) {
  rl_error err = {0};
  rl_cli cli = {.url = get_environment("ROOFLINED_URL", "http://127.0.0.1:8731"),
                .token = get_environment("ROOFLINED_TOKEN", NULL),
                .argv = calloc((size_t)argc + 1, sizeof *argv)};
  if (cli.argv == NULL) return RL_EXIT_FAILED;
  char **arguments = cli.argv;
  int code = parse_and_dispatch(argc, argv, &cli, &err);
  if (code >= 0 && flush_output(&err) < 0) code = -1;
  if (code < 0) code = report_error(&err);
  free(arguments);
  return code;
}
