/* A sandbox for the compiler, whose input is not trusted. Landlock (Linux 5.13) restricts the process. */
#ifndef RL_KERNELS_NVRTC_SANDBOX_H
#define RL_KERNELS_NVRTC_SANDBOX_H

#include "base/error.h"

/* From this call on, the calling thread and the threads that it starts can read files below readable_folder (NULL: no files) and
 * can't write or execute any file. Limits memory, CPU time and file size. The sandboxed code can still test whether a path
 * exists. -1 with RL_ERRNO when the kernel has no Landlock. */
int rl_sandbox_enter(const char *readable_folder, rl_error *err);

#endif
