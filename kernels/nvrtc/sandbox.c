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
static const rlim_t MEMORY_BYTES = RLIM_INFINITY; /* a sanitizer reserves terabytes */
#else
static const rlim_t MEMORY_BYTES = (rlim_t)8 << 30;
#endif
static const rlim_t FILE_BYTES = (rlim_t)256 << 20, CPU_S = 120;

/* All that the first version of Landlock can forbid: later ones add ways to write, which need one of these first. */
static const __u64 everything = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                                LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                LANDLOCK_ACCESS_FS_MAKE_SYM;

static int set_limit(int resource, rlim_t value, rl_error *err) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) < 0) return rl_fail_errno(err, "can't ask for a limit of the compiler");
  if (limit.rlim_max < value) value = limit.rlim_max;
  limit = (struct rlimit){value, value};
  return setrlimit(resource, &limit) < 0 ? rl_fail_errno(err, "can't limit the compiler") : 0;
}

static int allow_reading(int rules, const char *folder, rl_error *err) {
  rl_auto(rl_close_descriptor) int below = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (below < 0) return rl_fail_errno(err, "can't open %s", folder);
  struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
                                            .parent_fd = below};
  if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
    return rl_fail_errno(err, "can't allow reading %s", folder);
  return 0;
}

int rl_sandbox_enter(const char *readable, rl_error *err) {
  struct landlock_ruleset_attr ruleset = {.handled_access_fs = everything};
  rl_auto(rl_close_descriptor) int rules =
      (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof ruleset.handled_access_fs, 0);
  if (rules < 0)
    return rl_fail_errno(
        err,
        "posted code is not compiled here: this kernel has no Landlock (Linux 5.13, lsm=landlock), which keeps the "
        "compiler from the host's files");
  if (readable != NULL && allow_reading(rules, readable, err) < 0) return -1;
  if (set_limit(RLIMIT_AS, MEMORY_BYTES, err) < 0 || set_limit(RLIMIT_FSIZE, FILE_BYTES, err) < 0 ||
      set_limit(RLIMIT_CPU, CPU_S, err) < 0 || set_limit(RLIMIT_CORE, 0, err) < 0)
    return -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, rules, 0) < 0)
    return rl_fail_errno(err, "can't enter the compiler's jail");
  return 0;
}
