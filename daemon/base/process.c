/* Implements process.h. With a pidfd the parent can wait for the child's exit with a time limit. If exec fails in the child, the
 * child sends errno through a pipe. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { KILL_WAIT_MS = 2000, EXEC_FAILED = 127 };

static void free_list(char ***list) { free(*list); }

static bool is_overridden(const char *entry, const char *const *variables) {
  size_t length = strcspn(entry, "=") + 1;
  for (; *variables != NULL; variables++)
    if (strncmp(entry, *variables, length) == 0) return true;
  return false;
}

/* Returns this process's environment with `variables` added or replaced. The caller frees the list, not its strings. */
static char **make_environment(const char *const *variables) {
  size_t inherited = 0, added = 0, used = 0;
  while (environ[inherited] != NULL) inherited++;
  while (variables[added] != NULL) added++;
  char **list = calloc(inherited + added + 1, sizeof *list);
  if (list == NULL) return NULL;
  for (size_t i = 0; i < inherited; i++)
    if (!is_overridden(environ[i], variables)) list[used++] = environ[i];
  for (size_t i = 0; i < added; i++) list[used++] = (char *)(uintptr_t)variables[i];
  return list;
}

typedef struct child_descriptors {
  int input, output;
  int standard_error; /* descriptor that becomes the child's standard error; -1: the child has the parent's */
  int inherited;      /* additional descriptor that the child inherits; -1: none */
  int error_pipe;     /* receives errno if exec fails */
} child_descriptors;

/* Duplicates the descriptors to the numbers that they have in the child; exec closes all others. Returns whether this
 * succeeded. */
static bool set_descriptors(child_descriptors *child) {
  const int first_closed = child->inherited >= 0 ? RL_INHERITED_DESCRIPTOR + 1 : RL_INHERITED_DESCRIPTOR;
  if (child->error_pipe < first_closed) child->error_pipe = fcntl(child->error_pipe, F_DUPFD_CLOEXEC, first_closed);
  if (dup2(child->input, STDIN_FILENO) < 0 || dup2(child->output, STDOUT_FILENO) < 0) return false;
  if (child->standard_error >= 0 && dup2(child->standard_error, STDERR_FILENO) < 0) return false;
  bool is_in_place = child->inherited == RL_INHERITED_DESCRIPTOR;
  if (is_in_place && fcntl(child->inherited, F_SETFD, 0) < 0) return false;
  if (child->inherited >= 0 && !is_in_place && dup2(child->inherited, RL_INHERITED_DESCRIPTOR) < 0) return false;
  return close_range((unsigned)first_closed, ~0u, CLOSE_RANGE_CLOEXEC) == 0;
}

/* Runs in the child after fork: executes the program, or writes errno to the error pipe and exits. Calls only async-signal-safe
 * functions, because the parent has several threads. */
static void execute(const char *const *arguments, char **environment, child_descriptors descriptors, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  if (setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && set_descriptors(&descriptors) &&
      sigprocmask(SIG_SETMASK, &none, NULL) == 0)
    execve(arguments[0], (char *const *)(uintptr_t)arguments, environment);
  int code = errno;
  ssize_t ignored = write(descriptors.error_pipe, &code, sizeof code);
  (void)ignored;
  _exit(EXEC_FAILED);
}

int rl_process_start(const char *const *arguments, const char *const *variables, int stderr_fd, int inherited_fd,
                     rl_process *process, rl_error *err) {
  int to_child[2], from_child[2], error_pipe[2];
  if (pipe2(to_child, O_CLOEXEC) < 0) return rl_fail_errno(err, "can't make a pipe for %s", arguments[0]);
  RL_CLEANUP(rl_close_descriptor) int child_input = to_child[0];
  RL_CLEANUP(rl_close_descriptor) int input = to_child[1];
  if (pipe2(from_child, O_CLOEXEC) < 0) return rl_fail_errno(err, "can't make a pipe for %s", arguments[0]);
  RL_CLEANUP(rl_close_descriptor) int output = from_child[0];
  RL_CLEANUP(rl_close_descriptor) int child_output = from_child[1];
  if (pipe2(error_pipe, O_CLOEXEC) < 0) return rl_fail_errno(err, "can't make a pipe for %s", arguments[0]);
  RL_CLEANUP(rl_close_descriptor) int error_reader = error_pipe[0];
  RL_CLEANUP(rl_close_descriptor) int child_error = error_pipe[1];
  RL_CLEANUP(free_list) char **environment = make_environment(variables);
  if (environment == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory to start %s", arguments[0]);
  if (fcntl(input, F_SETFL, O_NONBLOCK) < 0 || fcntl(output, F_SETFL, O_NONBLOCK) < 0)
    return rl_fail_errno(err, "can't set up the pipes of %s", arguments[0]);

  pid_t parent = getpid(), pid = fork();
  if (pid < 0) return rl_fail_errno(err, "can't start %s", arguments[0]);
  if (pid == 0)
    execute(arguments, environment, (child_descriptors){child_input, child_output, stderr_fd, inherited_fd, child_error}, parent);
  setpgid(pid, pid); /* both parent and child call setpgid, because either may run first and both need the group */
  close(child_error);
  child_error = -1;
  int code = 0;
  ssize_t byte_count; /* 0: execve has succeeded and closed the pipe; else `code` is the errno of the child */
  do byte_count = read(error_reader, &code, sizeof code);
  while (byte_count < 0 && errno == EINTR);
  int pidfd = byte_count == 0 ? pidfd_open(pid, 0) : -1;
  if (pidfd < 0) {
    if (byte_count == 0) code = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    errno = code;
    return rl_fail_errno(err, "can't execute %s", arguments[0]);
  }
  *process = (rl_process){.pid = pid, .pidfd = pidfd, .input = input, .output = output};
  input = output = -1;
  return 0;
}

static bool is_readable_within(int pidfd, int timeout_ms) {
  struct pollfd entry = {.fd = pidfd, .events = POLLIN};
  int ready;
  do ready = poll(&entry, 1, timeout_ms);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool rl_process_exits_within(const rl_process *process, int timeout_ms) {
  return process->pid != 0 && is_readable_within(process->pidfd, timeout_ms);
}

/* Reaps the process, whose pidfd is readable. Waits (no WNOHANG), because the pidfd becomes readable slightly before the process
 * can be reaped. */
static bool reap(pid_t pid, int *status) {
  pid_t waited;
  do waited = waitpid(pid, status, 0);
  while (waited < 0 && errno == EINTR);
  return waited == pid;
}

void rl_process_kill(const rl_process *process) {
  if (process->pid != 0) kill(-process->pid, SIGKILL);
}

void rl_process_terminate(rl_process *process, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]) {
  int status = 0;
  if (process->pid == 0) return;
  close(process->input);
  (void)is_readable_within(process->pidfd, grace_ms);
  /* This also kills the child's own children. No other process group can get this id before the child is reaped. */
  kill(-process->pid, SIGKILL);
  if (!is_readable_within(process->pidfd, KILL_WAIT_MS) || !reap(process->pid, &status))
    snprintf(exit_status, RL_EXIT_STATUS_SIZE, "did not exit, even after SIGKILL");
  else if (WIFSIGNALED(status)) snprintf(exit_status, RL_EXIT_STATUS_SIZE, "was killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
  else snprintf(exit_status, RL_EXIT_STATUS_SIZE, "exited with %d", WEXITSTATUS(status));
  close(process->output);
  close(process->pidfd);
  *process = (rl_process){0};
}
