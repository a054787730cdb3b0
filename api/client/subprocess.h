/* Runs a program in a folder and waits for it. Ctrl-C ends the program with its children. One thread. */
#ifndef RL_CLIENT_SUBPROCESS_H
#define RL_CLIENT_SUBPROCESS_H

#include "base/error.h"

typedef struct rl_program_run {
  const char *folder;             /* working folder of the process */
  const char *const *arguments;   /* the program, which $PATH finds, and its arguments; NULL-terminated */
  const char *const *environment; /* "NAME=value" added to the environment; NULL-terminated */
} rl_program_run;

/* Returns the program's exit status, 128 + the signal that ended it, or -1 with err: it can't be started, or Ctrl-C (RL_ERRNO,
 * EINTR). Its standard input is empty. output: receives its standard output, malloc'ed, without the line break at its end; NULL:
 * standard output goes to this program's standard error. */
int rl_run_program(const rl_program_run *run, char **output, rl_error *err);

#endif
