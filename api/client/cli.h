/* The commands of rooflinectl, their common options and the exit codes. main.c finds the command and runs it. rooflinectl has one
 * thread. */
#ifndef RL_CLIENT_CLI_H
#define RL_CLIENT_CLI_H

#include <stdbool.h>

#include "base/error.h"

typedef enum rl_exit {
  RL_EXIT_COMPLETED = 0,
  RL_EXIT_FAILED = 1,       /* the job, the suite run or the request failed */
  RL_EXIT_SLOWER = 1,       /* a metric of the suite is slower */
  RL_EXIT_USAGE = 2,        /* the command line or the request is wrong */
  RL_EXIT_CANCELLED = 3,    /* the job was cancelled */
  RL_EXIT_UNREACHABLE = 4,  /* no daemon answers */
  RL_EXIT_INCONCLUSIVE = 5, /* the suite run does not show whether a metric changed */
  RL_EXIT_INCOMPARABLE = 6, /* there is no baseline that the suite run can be compared with */
  RL_EXIT_INTERRUPTED = 130 /* Ctrl-C; the job or suite run continues */
} rl_exit;

/* The value of report's option --section that prints the timeline. */
#define RL_TIMELINE_SECTION "Timeline"

typedef struct rl_cli {
  const char *url;   /* --url, $ROOFLINED_URL, http://127.0.0.1:8731 */
  const char *token; /* --token, $ROOFLINED_TOKEN; NULL: none */
  bool json;         /* print the API's response unchanged */
  bool help;         /* print help instead of executing the command */
  const char *command;
  int argc; /* arguments after the command's name */
  char **argv;
} rl_cli;

/* An option of a command. */
typedef struct rl_cli_option {
  const char *name;  /* of the option ("--watch"), of the subcommand ("promote"), or of a value of an option ("kineto") */
  const char *value; /* "FILE", "kineto|nsys"; "": the option takes no value */
  const char *summary;
  const char *option; /* for a value: the option to which it belongs ("--output"); else NULL */
} rl_cli_option;

/* A command. `run` prints results and returns an rl_exit, or −1 with err. */
typedef struct rl_command {
  const char *name, *arguments, *summary;
  int (*run)(rl_cli *cli, rl_error *err);
  const rl_cli_option *(*options)(void); /* returns a table that ends with {0}; NULL: no options */
} rl_command;
extern const rl_command rl_commands[];            /* ends with {0} */
extern const rl_cli_option rl_common_options[];   /* options of every command; ends with {0} */
extern const rl_cli_option rl_client_variables[]; /* environment variables; ends with {0} */
extern const rl_cli_option rl_client_statuses[];  /* exit statuses; ends with {0} */

/* jobs.c */
int rl_command_submit(rl_cli *cli, rl_error *err);
int rl_command_show(rl_cli *cli, rl_error *err);
int rl_command_list(rl_cli *cli, rl_error *err);
int rl_command_label(rl_cli *cli, rl_error *err);
int rl_command_cancel(rl_cli *cli, rl_error *err);
int rl_command_devices(rl_cli *cli, rl_error *err);
int rl_command_kernels(rl_cli *cli, rl_error *err);
int rl_command_ceilings(rl_cli *cli, rl_error *err);
/* report.c */
int rl_command_report(rl_cli *cli, rl_error *err);
int rl_command_compare(rl_cli *cli, rl_error *err);
/* run.c */
int rl_command_run(rl_cli *cli, rl_error *err);
int rl_command_watch(rl_cli *cli, rl_error *err);
/* export.c */
int rl_command_export(rl_cli *cli, rl_error *err);
const rl_cli_option *rl_export_options(void);
/* import.c */
int rl_command_import(rl_cli *cli, rl_error *err);
const rl_cli_option *rl_import_options(void);
/* regress.c */
int rl_command_regress(rl_cli *cli, rl_error *err);
const rl_cli_option *rl_regress_options(void);
/* bisect.c */
int rl_command_bisect(rl_cli *cli, rl_error *err);
const rl_cli_option *rl_bisect_options(void);
/* baseline.c */
int rl_command_suites(rl_cli *cli, rl_error *err);
int rl_command_baseline(rl_cli *cli, rl_error *err);
/* local.c: commands that open the state folder themselves and need no daemon */
int rl_command_backup(rl_cli *cli, rl_error *err);
int rl_command_token(rl_cli *cli, rl_error *err);

/* Fills err with RL_INPUT for a wrong command line. Returns −1. */
int rl_fail_usage(rl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fills err with RL_INPUT for an option that the command does not have, or for an argument too many. Returns −1. */
int rl_fail_argument(rl_error *err, const char *command, const char *word);
/* Parses the number of a job, run or kernel, which must be at least `minimum`. `expected` completes the error "this command needs
 * …". */
int rl_parse_number(const char *text, long long minimum, const char *expected, long long *number, rl_error *err);
/* Checks the name of a suite or a baseline, which becomes a part of a URL. Returns −1 with RL_INPUT if the name is not valid.
 * kind: "suite" or "baseline", for the message. */
int rl_check_name(const char *name, const char *kind, rl_error *err);
/* Parses the command's only argument, a job's number. */
int rl_parse_job_argument(const rl_cli *cli, long long *id, rl_error *err);

#endif
