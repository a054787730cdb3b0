/* Runs a program in a folder and waits until it exits. Ctrl-C ends the program and its child processes. bisect uses this
 * module for git and for builds. Not thread-safe. */
#ifndef RL_CLIENT_SUBPROCESS_H
#define RL_CLIENT_SUBPROCESS_H

#include "base/error.h"

typedef struct rl_program_run {
  const char *folder;             /* working folder of the process */
  const char *const *arguments;   /* the program, which $PATH finds, and its arguments; NULL-terminated */
  const char *const *environment; /* "NAME=value" added to the environment; NULL-terminated */
} rl_program_run;

/* Returns the program's exit status, or 128 plus the number of the signal that ended it. Returns -1 with err if the program can't
 * be started, or after Ctrl-C (RL_ERRNO, EINTR). The program's standard input is empty. Sets *output to its standard output,
 * malloc'ed, without the line break at the end; if output is NULL, the program's standard output goes to the standard error of
 * rooflinectl. */
int rl_run_program(const rl_program_run *run, char **output, rl_error *err);

#endif
