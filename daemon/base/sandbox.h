/* A sandbox for a program whose input is not trusted: Landlock (Linux 5.13) for files, seccomp for system calls, resource limits.
 */
#ifndef RL_BASE_SANDBOX_H
#define RL_BASE_SANDBOX_H

#include <stdint.h>

#include "base/error.h"

typedef struct rl_sandbox_limits {
  const char *const *readable_folders; /* NULL-terminated; NULL: no file can be opened */
  uint64_t memory_bytes;               /* address space; not limited in a build with sanitizers, which reserve terabytes */
  uint64_t file_bytes;                 /* size of a file that is written */
  uint64_t cpu_time_s;
} rl_sandbox_limits;

/* From this call on, the process can read files below readable_folders and those that it has open. It can't write to a path,
 * execute a program, open a socket or trace a process, and it has at most the memory, file size and CPU time of *limits. It can
 * still test whether a path exists. Call it before other threads start: Landlock restricts the calling thread and those that it
 * starts. -1 with RL_ERRNO when the kernel has no Landlock or seccomp. */
int rl_sandbox_enter(const rl_sandbox_limits *limits, rl_error *err);

#endif
