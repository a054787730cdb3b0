/* Implements sandbox.h by Landlock and resource limits. */
#include "nvrtc/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const rlim_t MAX_MEMORY_BYTES = RLIM_INFINITY; /* a sanitizer reserves terabytes of address space */
#else
static const rlim_t MAX_MEMORY_BYTES = (rlim_t)8 << 30;
#endif
static const rlim_t MAX_FILE_BYTES = (rlim_t)256 << 20, MAX_CPU_TIME_S = 120;

/* All rights that version 1 of Landlock handles. The rights of later versions (refer, truncate, ioctl) need a file opened with
 * one of these. */
static const __u64 all_rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                                LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                LANDLOCK_ACCESS_FS_MAKE_SYM;

static int set_limit(int resource, rlim_t value, rl_error *err) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) < 0) return rl_fail_errno(err, "can't read the compiler's resource limits");
  if (limit.rlim_max < value) value = limit.rlim_max;
  limit = (struct rlimit){value, value};
  return setrlimit(resource, &limit) < 0 ? rl_fail_errno(err, "can't set the compiler's resource limits") : 0;
}

static int allow_reading(int ruleset, const char *folder, rl_error *err) {
  RL_CLEANUP(rl_close_descriptor) int descriptor = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return rl_fail_errno(err, "can't open %s", folder);
  struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
                                            .parent_fd = descriptor};
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
    return rl_fail_errno(err, "can't allow reading %s", folder);
  return 0;
}

int rl_sandbox_enter(const char *readable_folder, rl_error *err) {
  struct landlock_ruleset_attr attributes = {.handled_access_fs = all_rights};
  RL_CLEANUP(rl_close_descriptor)
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0);
  if (ruleset < 0)
    return rl_fail_errno(
        err,
        "posted code can't be compiled here: this kernel has no Landlock (Linux 5.13, lsm=landlock), which keeps the "
        "compiler from reading the host's files");
  if (readable_folder != NULL && allow_reading(ruleset, readable_folder, err) < 0) return -1;
  if (set_limit(RLIMIT_AS, MAX_MEMORY_BYTES, err) < 0 || set_limit(RLIMIT_FSIZE, MAX_FILE_BYTES, err) < 0 ||
      set_limit(RLIMIT_CPU, MAX_CPU_TIME_S, err) < 0 || set_limit(RLIMIT_CORE, 0, err) < 0)
    return -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
    return rl_fail_errno(err, "can't enter the compiler's sandbox");
  return 0;
}
