/* From here on this process reads the files of one folder and no others, writes none, executes none, and has little memory and
 * time left: what it works on comes from somebody that is not to be trusted. Landlock holds it (Linux 5.13), whatever the text
 * makes a library try. That a path exists can still be told, but not what is in it. */
#ifndef RL_KERNELS_NVRTC_JAIL_H
#define RL_KERNELS_NVRTC_JAIL_H

#include "base/error.h"

/* readable: the folder; NULL: none at all. For the calling thread and those that it starts. RL_SYS when the kernel can't. */
int rl_sandbox_enter(const char *readable, rl_error *err);

#endif
