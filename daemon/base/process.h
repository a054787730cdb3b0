/* A child process with pipes at its standard input and output. It leads its own process group, inherits no other descriptor
 * except standard error, and is killed when the thread that started it exits, so that a killed daemon leaves no orphan. One
 * thread for each child. */
#ifndef RL_BASE_PROCESS_H
#define RL_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct rl_process {
  pid_t pid;         /* 0: not running */
  int pidfd;         /* readable when the process has exited */
  int input, output; /* our ends of its standard input and output; non-blocking */
} rl_process;

enum { RL_EXIT_STATUS_SIZE = 96 };

/* Starts a program. arguments: NULL-terminated, arguments[0] is its path. variables: NULL-terminated "NAME=value" that override
 * our environment. errors: descriptor for its standard error; -1: ours. RL_SYS when the program can't be executed. */
int rl_process_start(const char *const *arguments, const char *const *variables, int errors, rl_process *process, rl_error *err);
/* Whether the process has exited, so that rl_process_terminate will not wait. */
bool rl_process_has_exited(const rl_process *process);
/* Waits at most grace_ms for the process to exit, kills its group, reaps it (within 2 s: a process in a hung driver call can't be
 * reaped), and writes its exit status: "exited with 3", "was killed by SIGSEGV". Does nothing when it is not running. */
void rl_process_terminate(rl_process *process, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]);

#endif
