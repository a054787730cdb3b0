/* A sandbox for a program whose input is not trusted: Landlock (Linux 5.13) for files, seccomp for system calls, resource limits.
 */
#ifndef RL_BASE_SANDBOX_H
#define RL_BASE_SANDBOX_H

#include <stdint.h>

#include "base/error.h"

typedef struct rl_sandbox_limits {
  const char *const *readable_folders; /* NULL-terminated; NULL: no file can be opened */
  uint64_t memory_bytes;               /* address space; not limited in a build with sanitizers, which reserve terabytes */
  uint64_t file_bytes;                 /* largest size of a file that the process writes */
  uint64_t cpu_time_s;
} rl_sandbox_limits;

/* Restricts the process from now on. It can read files below readable_folders, and use files that it has already opened. It can't
 * write to a path, truncate a file or change its mode, owner, times or extended attributes, execute a program, open a socket or
 * trace a process. Its memory, file size and CPU time are limited by *limits. It can still test whether a path exists. Call this
 * before other threads start, because Landlock restricts only the calling thread and threads that it starts later. RL_ERRNO: the
 * kernel has no Landlock or seccomp. */
int rl_sandbox_enter(const rl_sandbox_limits *limits, rl_error *err);

#endif
