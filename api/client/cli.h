/* What the commands of rooflinectl share: the options that every command has, and the exit codes. One thread. */
#ifndef RL_CLIENT_CLI_H
#define RL_CLIENT_CLI_H

#include <stdbool.h>

#include "base/error.h"

typedef enum rl_exit {
  RL_EXIT_COMPLETED = 0,
  RL_EXIT_FAILED = 1,       /* the job failed, or the daemon could not do what was asked */
  RL_EXIT_USAGE = 2,        /* a mistake in the command line or in the request */
  RL_EXIT_CANCELLED = 3,    /* the job was cancelled */
  RL_EXIT_UNREACHABLE = 4,  /* no daemon answers */
  RL_EXIT_INTERRUPTED = 130 /* Ctrl-C: the job goes on */
} rl_exit;

typedef struct rl_cli {
  const char *url;   /* --url, $ROOFLINED_URL, http://127.0.0.1:8731 */
  const char *token; /* --token, $ROOFLINED_TOKEN; NULL: none */
  bool json;         /* print what the API answers, as it is */
  bool help;         /* --help stood somewhere: explain the command and do nothing */
  int argc;          /* what follows the command's name */
  char **argv;
} rl_cli;

/* One command. run returns an rl_exit; it prints its own results, and leaves errors in err with -1. */
typedef struct rl_command {
  const char *name, *arguments, *summary;
  int (*run)(rl_cli *cli, rl_error *err);
  void (*list_options)(void); /* prints a line for each; NULL: there are none beside those in `arguments` */
} rl_command;

/* jobs.c */
int rl_command_submit(rl_cli *cli, rl_error *err);
int rl_command_show(rl_cli *cli, rl_error *err);
int rl_command_list(rl_cli *cli, rl_error *err);
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
/* local.c: on the state folder, without a daemon */
int rl_command_backup(rl_cli *cli, rl_error *err);
int rl_command_token(rl_cli *cli, rl_error *err);

/* A mistake in the command line: -1 with RL_INPUT. */
int rl_usage(rl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A number of a job, run or kernel, at least `least`. */
int rl_number_argument(const char *word, long long least, const char *what, long long *number, rl_error *err);
/* The command's only argument, a job's number. */
int rl_job_argument(const rl_cli *cli, long long *id, rl_error *err);

#endif
