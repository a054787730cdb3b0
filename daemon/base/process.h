/* A child program on two pipes: its standard input and output are ours, its standard error stays where ours goes (or is caught).
 * It leads a process group of its own, inherits no other descriptor, and dies with the thread that started it, so that a
 * daemon killed by SIGKILL leaves no orphan. One thread each. */
#ifndef RL_BASE_PROCESS_H
#define RL_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct rl_process {
  pid_t pid;         /* 0: none runs */
  int watch;         /* pidfd, readable when it has ended */
  int input, output; /* what it reads and what it writes; both non-blocking */
} rl_process;

enum { RL_EXIT_STATUS_SIZE = 96 };

/* arguments[0] is the program's path; NULL-terminated. variables: "NAME=value" put over our environment, NULL-terminated.
 * errors: descriptor for its standard error, -1 for ours. RL_SYS when the program can't be executed. */
int rl_process_start(const char *const *arguments, const char *const *variables, int errors, rl_process *process, rl_error *err);
/* Whether it has, by itself, so that rl_process_terminate will not wait. */
bool rl_process_has_exited(const rl_process *process);
/* Kill the group if it still runs, wait for it (at most 2 s: a process inside a hung driver call can't be waited for) and say how
 * it ended: "exited with 3", "was killed by SIGSEGV". grace_ms: how long it may take to end by itself first. */
void rl_process_terminate(rl_process *process, int grace_ms, char ending[RL_EXIT_STATUS_SIZE]);

#endif
