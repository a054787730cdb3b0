/* A child process whose standard input and output are pipes. The child leads a process group. The child inherits these pipes,
 * standard error and at most one other descriptor, which the caller chooses. The kernel kills the child when the thread that
 * called rl_process_start exits (PR_SET_PDEATHSIG), so that a killed daemon leaves no child process behind. Only one thread may
 * use an rl_process. */
#ifndef RL_BASE_PROCESS_H
#define RL_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct rl_process {
  pid_t pid;         /* 0: not running */
  int pidfd;         /* readable when the process has exited */
  int input, output; /* the parent's ends of the pipes to the child's standard input and from its standard output; non-blocking */
} rl_process;

enum { RL_EXIT_STATUS_SIZE = 96, RL_INHERITED_DESCRIPTOR = 3 };

/* Starts the program arguments[0]. arguments: NULL-terminated. variables: NULL-terminated list of "NAME=value"; the child's
 * environment is that of this process with these variables added or replaced. stderr_fd: becomes the child's standard error; -1:
 * the child has the standard error of this process. inherited_fd: becomes the child's descriptor RL_INHERITED_DESCRIPTOR; -1:
 * none. Fails with RL_ERRNO if the program can't be executed. */
int rl_process_start(const char *const *arguments, const char *const *variables, int stderr_fd, int inherited_fd,
                     rl_process *process, rl_error *err);
/* Waits at most timeout_ms. Returns whether the process has exited; if it has, rl_process_terminate does not wait. */
bool rl_process_exits_within(const rl_process *process, int timeout_ms);
/* Kills the child's process group and does not wait. Call rl_process_terminate later. Does nothing if no child runs. */
void rl_process_kill(const rl_process *process);
/* Closes the child's standard input, waits at most grace_ms until the child exits, and kills its process group. Then waits at
 * most 2 s to reap the child, because a process that hangs in a driver call can't be reaped. Writes the exit status as text, such
 * as "exited with 3" or "was killed by SIGSEGV". Does nothing if no child runs. */
void rl_process_terminate(rl_process *process, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]);

#endif
