/* A sandbox for a program whose input is not trusted: Landlock (Linux 5.13) restricts files, seccomp restricts system calls, and
 * resource limits apply. The importer and the compiler of posted code (rooflined-nvrtc) enter it. */
#ifndef RL_BASE_SANDBOX_H
#define RL_BASE_SANDBOX_H

#include <stdint.h>

#include "base/error.h"

typedef struct rl_sandbox_limits {
  const char *const *readable_folders; /* NULL-terminated list; NULL: no file can be opened */
  uint64_t memory_bytes;               /* address space; not limited in a build with sanitizers, which reserve terabytes */
  uint64_t file_bytes;                 /* maximum size of a file that the process writes */
  uint64_t cpu_time_s;
} rl_sandbox_limits;

/* Restricts the calling process from now on. The process can still read files below readable_folders, use files that it has
 * already opened, and test whether a path exists. It can't open a file for writing, truncate a file, change a file's mode, owner,
 * times or extended attributes, execute a program, open a socket or trace a process. *limits limits its memory, file size and CPU
 * time. Call this before other threads start, because Landlock restricts only the calling thread and the threads that it starts
 * later. Fails with RL_ERRNO if the kernel has no Landlock or no seccomp. */
int rl_sandbox_enter(const rl_sandbox_limits *limits, rl_error *err);

#endif
