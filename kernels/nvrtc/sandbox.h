/* A sandbox for the compiler, whose input is not trusted. Landlock (Linux 5.13) restricts the process. */
#ifndef RL_KERNELS_NVRTC_SANDBOX_H
#define RL_KERNELS_NVRTC_SANDBOX_H

#include "base/error.h"

/* From this call on, the calling thread and those that it starts can read files below one folder (NULL: no files), and cannot
 * write or execute any. Limits memory, CPU time and file size. That a path exists can still be found out. -1 with RL_SYS when the
 * kernel has no Landlock. */
int rl_sandbox_enter(const char *readable_folder, rl_error *err);

#endif
