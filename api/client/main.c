/* The main function of rooflinectl: parses the common options, prints help, runs the command, and turns an error into an exit
 * code. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/client/cells.h"
#include "api/client/cli.h"
#include "api/client/credential.h"
#include "api/client/request.h"

static const rl_command *find_command(const char *name, rl_error *err) {
  for (const rl_command *command = rl_commands; command->name != NULL; command++)
    if (strcmp(command->name, name) == 0) return command;
  rl_fail_usage(err, "there is no command %s; rooflinectl help lists them", name);
  return NULL;
}

enum { SUMMARY_COLUMN = 29 };

/* Prints a label, and from column SUMMARY_COLUMN on a summary that is wrapped at column 80. */
static void print_entry(int indent, const char *name, const char *value_name, const char *summary) {
  char label[64];
  snprintf(label, sizeof label, "%s%s%s", name, value_name[0] != '\0' ? " " : "", value_name);
  printf("%*s", indent, "");
  rl_print_cell(stdout, label, indent - SUMMARY_COLUMN + 1);
  putchar(' ');
  rl_print_after_label(stdout, SUMMARY_COLUMN, summary);
}

static void print_options(const rl_cli_option *option) {
  for (; option->name != NULL; option++)
    print_entry(option->option != NULL ? 4 : 2, option->name, option->value, option->summary);
}

static void print_help(void) {
  puts("rooflinectl [OPTION]... COMMAND [ARGUMENT]...\n\nCommands");
  for (const rl_command *command = rl_commands; command->name != NULL; command++)
    print_entry(2, command->name, command->arguments, command->summary);
  puts("\nOptions of every command");
  print_options(rl_common_options);
  for (const rl_command *command = rl_commands; command->name != NULL; command++) {
    if (command->options == NULL) continue;
    printf("\nOptions of %s\n", command->name);
    print_options(command->options());
  }
  puts("\nEnvironment");
  print_options(rl_client_variables);
  puts("\nExit status");
  print_options(rl_client_statuses);
}

/* Prints the help of a command. name NULL: prints the help of rooflinectl. */
static int print_help_for(const char *name, rl_error *err) {
  const rl_command *command = name != NULL ? find_command(name, err) : NULL;
  if (name == NULL) print_help();
  else if (command == NULL) return -1;
  else {
    printf("rooflinectl %s %s\n%s\n", command->name, command->arguments, command->summary);
    if (command->options != NULL) putchar('\n'), print_options(command->options());
  }
  return RL_EXIT_COMPLETED;
}

static int error_exit_code(const rl_error *err) {
  if (err->domain == RL_WIRE) return RL_EXIT_UNREACHABLE;
  if (err->domain == RL_INPUT) return RL_EXIT_USAGE;
  return err->domain == RL_HTTP && err->code >= 400 && err->code < 500 ? RL_EXIT_USAGE : RL_EXIT_FAILED;
}

/* Advice to the user about an error of the API, by the reply's status. */
static const struct {
  int status;
  const char *text;
} hints[] = {{401, "Set ROOFLINED_TOKEN; `rooflinectl token` creates one."},
             {404, "`rooflinectl list` prints the jobs and their runs, `rooflinectl suites` the suites."},
             {429, "Wait until a job ends, or cancel one: `rooflinectl list`, `rooflinectl cancel JOB`."}};

static void print_hint(const rl_error *err) {
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (err->domain == RL_HTTP && err->code == hints[i].status) fprintf(stderr, "%s\n", hints[i].text);
  if (err->domain == RL_WIRE) fputs("Is the daemon running? Start it with `rooflined`, or set ROOFLINED_URL.\n", stderr);
}

static int report_error(const rl_error *err) {
  fprintf(stderr, "rooflinectl: %s", err->message);
  if (err->json_pointer[0] != '\0') fprintf(stderr, " (at %s)", err->json_pointer);
  fputc('\n', stderr);
  print_hint(err);
  return error_exit_code(err);
}

/* Stores --url, --token, --json and --help in *cli, and the other arguments in cli->argv. */
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
  cli->command = command->name;
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

/* Fails if not everything could be written to standard output, for example on a full disk. */
static int flush_output(rl_error *err) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  return rl_fail(err, RL_ERRNO, errno, "can't write to standard output: %s", errno != 0 ? strerror(errno) : "write error");
}

/* Parses the options and executes the command. If neither --token nor $ROOFLINED_TOKEN is set, takes the token from the
 * credential of the systemd unit. */
static int parse_and_dispatch(int argc, char **argv, rl_cli *cli, rl_error *err) {
  char token[256];
  if (parse_options(argc, argv, cli, err) < 0 || rl_credential_read_token(token, sizeof token, err) < 0) return -1;
  if (cli->token == NULL && token[0] != '\0') cli->token = token;
  return dispatch(cli, err);
}

/* Returns whether to print styles: on a terminal, unless the user has set NO_COLOR (https://no-color.org). */
static bool wants_colour(void) {
  return isatty(STDOUT_FILENO) && get_environment("NO_COLOR", NULL) == NULL &&
         strcmp(get_environment("TERM", "dumb"), "dumb") != 0;
}

int main(int argc, char **argv) {
  rl_error err = {0};
  rl_cli cli = {.url = get_environment("ROOFLINED_URL", "http://127.0.0.1:8731"),
                .token = get_environment("ROOFLINED_TOKEN", NULL),
                .argv = calloc((size_t)argc + 1, sizeof *argv)};
  if (cli.argv == NULL) return RL_EXIT_FAILED;
  char **arguments = cli.argv;
  rl_styles_enable(wants_colour());
  int code = parse_and_dispatch(argc, argv, &cli, &err);
  if (code >= 0 && flush_output(&err) < 0) code = -1;
  if (code < 0) code = report_error(&err);
  free(arguments);
  return code;
}
