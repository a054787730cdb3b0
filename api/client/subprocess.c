/* Implements subprocess.h: starts the program with posix_spawn in a process group, reads its output through a pipe, and waits. */
#include "api/client/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/client/interrupt.h"
#include "base/cleanup.h"

enum { MAX_OUTPUT_BYTES = 1 << 20 };

static bool has_assignment_for(const char *entry, const char *const *assignments) {
  const size_t length = strcspn(entry, "=") + 1;
  for (; *assignments != NULL; assignments++)
    if (strncmp(entry, *assignments, length) == 0) return true;
  return false;
}

/* Returns this process's environment with the assignments added; an assignment replaces a variable of the same name. The caller
 * frees the list, not its strings. */
static char **make_environment(const char *const *assignments) {
  size_t inherited = 0, added = 0, used = 0;
  while (environ[inherited] != NULL) inherited++;
  while (assignments[added] != NULL) added++;
  char **list = calloc(inherited + added + 1, sizeof *list);
  if (list == NULL) return NULL;
  for (size_t i = 0; i < inherited; i++)
    if (!has_assignment_for(environ[i], assignments)) list[used++] = environ[i];
  for (size_t i = 0; i < added; i++) list[used++] = (char *)(uintptr_t)assignments[i];
  return list;
}

/* Starts the program as leader of a process group. Returns 0 or an errno value. */
static int spawn(const rl_program_run *run, int output_fd, char **environment, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, run->folder);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  const int code =
      posix_spawnp(pid, run->arguments[0], &actions, &attributes, (char *const *)(uintptr_t)run->arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

/* Reads until the end of file, Ctrl-C or MAX_OUTPUT_BYTES, and removes the line break at the end. Returns malloc'ed text. */
static char *read_output(int fd) {
  char *text = malloc(MAX_OUTPUT_BYTES + 1);
  size_t length = 0;
  ssize_t count = 1;
  while (text != NULL && count > 0 && length < MAX_OUTPUT_BYTES) {
    count = read(fd, text + length, MAX_OUTPUT_BYTES - length);
    if (count < 0 && errno == EINTR && !rl_was_interrupted()) count = 1;
    else if (count > 0) length += (size_t)count;
  }
  if (length > 0 && text[length - 1] == '\n') length--;
  if (text != NULL) text[length] = '\0';
  return text;
}

/* Waits until the program exits and returns its status. After Ctrl-C, sends SIGTERM to the program's process group; when the
 * program has exited, kills its child processes that still run. */
static int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    if (rl_was_interrupted()) kill(-pid, SIGTERM);
  if (rl_was_interrupted()) kill(-pid, SIGKILL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int rl_run_program(const rl_program_run *run, char **output, rl_error *err) {
  int pipe_fds[2] = {-1, -1};
  pid_t pid;
  RL_CLEANUP(rl_free_text) char *text = NULL;
  char **environment = make_environment(run->environment);
  if (environment == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory to start %s", run->arguments[0]);
  if (output != NULL && pipe2(pipe_fds, O_CLOEXEC) < 0) return free(environment), rl_fail_errno(err, "can't make a pipe");
  const int code = spawn(run, output != NULL ? pipe_fds[1] : STDERR_FILENO, environment, &pid);
  free(environment);
  if (output != NULL) close(pipe_fds[1]);
  if (code == 0 && output != NULL) text = read_output(pipe_fds[0]);
  if (output != NULL) close(pipe_fds[0]);
  if (code != 0) return errno = code, rl_fail_errno(err, "can't start %s in %.160s", run->arguments[0], run->folder);
  if (rl_was_interrupted()) kill(-pid, SIGTERM);
  const int status = wait_for(pid);
  if (rl_was_interrupted()) return rl_fail(err, RL_ERRNO, EINTR, "interrupted");
  if (output != NULL && text == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the output of %s", run->arguments[0]);
  if (output != NULL) *output = rl_take_ownership(&text);
  return status;
}
