/* Implements sandbox.h: sets resource limits, then a Landlock ruleset, then a seccomp filter. */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HAS_SANITIZERS = true };
#else
enum { HAS_SANITIZERS = false };
#endif

/* All access rights of Landlock's version 1. This version always denies renames and links between folders. It does not restrict
 * truncation and changes of a file's attributes; the seccomp filter denies these. */
static const __u64 all_rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                                LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                LANDLOCK_ACCESS_FS_MAKE_SYM;

static int set_limit(int resource, rlim_t value, rl_error *err) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) < 0) return rl_fail_errno(err, "can't read a resource limit");
  if (limit.rlim_max < value) value = limit.rlim_max;
  limit = (struct rlimit){value, value};
  return setrlimit(resource, &limit) < 0 ? rl_fail_errno(err, "can't set a resource limit") : 0;
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

static int set_limits(const rl_sandbox_limits *limits, rl_error *err) {
  const rlim_t memory_bytes = HAS_SANITIZERS ? RLIM_INFINITY : (rlim_t)limits->memory_bytes;
  return set_limit(RLIMIT_AS, memory_bytes, err) < 0 || set_limit(RLIMIT_FSIZE, (rlim_t)limits->file_bytes, err) < 0 ||
                 set_limit(RLIMIT_CPU, (rlim_t)limits->cpu_time_s, err) < 0 || set_limit(RLIMIT_CORE, 0, err) < 0
             ? -1
             : 0;
}

/* Numbers of system calls that the C library's headers may lack; equal on all architectures that libseccomp supports. */
enum { FCHMODAT2 = 452, SETXATTRAT = 463, REMOVEXATTRAT = 466, FILE_SETATTR = 469 };

/* System calls that fail with EACCES: calls for networking, for access to other processes and for executing programs, and calls
 * that change a file and that Landlock's version 1 does not restrict. Some calls of the last kind need only a descriptor that is
 * open for reading. */
static const int denied_calls[] = {SCMP_SYS(socket),
                                   SCMP_SYS(socketpair),
                                   SCMP_SYS(connect),
                                   SCMP_SYS(bind),
                                   SCMP_SYS(listen),
                                   SCMP_SYS(accept),
                                   SCMP_SYS(accept4),
                                   SCMP_SYS(sendto),
                                   SCMP_SYS(sendmsg),
                                   SCMP_SYS(sendmmsg),
                                   SCMP_SYS(execve),
                                   SCMP_SYS(execveat),
                                   SCMP_SYS(ptrace),
                                   SCMP_SYS(process_vm_readv),
                                   SCMP_SYS(process_vm_writev),
                                   SCMP_SYS(pidfd_getfd),
                                   SCMP_SYS(io_uring_setup),
                                   SCMP_SYS(bpf),
                                   SCMP_SYS(perf_event_open),
                                   SCMP_SYS(userfaultfd),
                                   SCMP_SYS(mount),
                                   SCMP_SYS(unshare),
                                   SCMP_SYS(setns),
                                   SCMP_SYS(keyctl),
                                   SCMP_SYS(add_key),
                                   SCMP_SYS(request_key),
                                   SCMP_SYS(shmget),
                                   SCMP_SYS(msgget),
                                   SCMP_SYS(truncate),
                                   SCMP_SYS(creat),
                                   SCMP_SYS(chmod),
                                   SCMP_SYS(fchmod),
                                   SCMP_SYS(fchmodat),
                                   FCHMODAT2,
                                   SCMP_SYS(chown),
                                   SCMP_SYS(fchown),
                                   SCMP_SYS(lchown),
                                   SCMP_SYS(fchownat),
                                   SCMP_SYS(utime),
                                   SCMP_SYS(utimes),
                                   SCMP_SYS(futimesat),
                                   SCMP_SYS(utimensat),
                                   SCMP_SYS(setxattr),
                                   SCMP_SYS(lsetxattr),
                                   SCMP_SYS(fsetxattr),
                                   SCMP_SYS(removexattr),
                                   SCMP_SYS(lremovexattr),
                                   SCMP_SYS(fremovexattr),
                                   SETXATTRAT,
                                   REMOVEXATTRAT,
                                   FILE_SETATTR};

/* Flags with which open(2) and openat(2) fail with EACCES. O_TRUNC is among them, because Landlock's right to read allows
 * O_RDONLY | O_TRUNC. */
static const int denied_open_flags[] = {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC};

RL_DEFINE_CLEANUP(release_filter, scmp_filter_ctx, seccomp_release, NULL)

/* code: result of a libseccomp function, a negative errno. */
static int fail_seccomp(int code, rl_error *err) {
  return rl_fail(err, RL_ERRNO, -code, "can't restrict system calls with seccomp: %s", strerror(-code));
}

/* Denies a system call if its argument at `position` has this flag. Returns 0 or a negative errno. call: number of the call;
 * negative: this architecture does not have it. */
static int deny_flag(scmp_filter_ctx filter, int call, unsigned position, int flag) {
  if (call < 0) return 0;
  return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), call, 1,
                          SCMP_CMP(position, SCMP_CMP_MASKED_EQ, (scmp_datum_t)flag, (scmp_datum_t)flag));
}

/* Denies opening a file in a mode that could change it. The flags of openat2(2) are in memory, which a filter can't read.
 * Therefore openat2 fails with ENOSYS, as in a kernel without it, and callers use openat(2) instead. Returns 0 or a negative
 * errno. */
static int deny_openings(scmp_filter_ctx filter) {
  int code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0);
  for (size_t i = 0; code == 0 && i < sizeof denied_open_flags / sizeof *denied_open_flags; i++) {
    code = deny_flag(filter, SCMP_SYS(open), 1, denied_open_flags[i]);
    if (code == 0) code = deny_flag(filter, SCMP_SYS(openat), 2, denied_open_flags[i]);
  }
  return code;
}

static int deny_calls(rl_error *err) {
  RL_CLEANUP(release_filter) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == NULL) return fail_seccomp(-ENOMEM, err);
  int code = 0;
  for (size_t i = 0; code == 0 && i < sizeof denied_calls / sizeof *denied_calls; i++)
    if (denied_calls[i] >= 0) code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), denied_calls[i], 0);
  if (code == 0) code = deny_openings(filter);
  if (code == 0) code = seccomp_load(filter);
  return code == 0 ? 0 : fail_seccomp(code, err);
}

int rl_sandbox_enter(const rl_sandbox_limits *limits, rl_error *err) {
  struct landlock_ruleset_attr attributes = {.handled_access_fs = all_rights};
  RL_CLEANUP(rl_close_descriptor)
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0);
  if (ruleset < 0)
    return rl_fail_errno(
        err,
        "this kernel has no Landlock, which keeps a program with untrusted input from reading the host's files: it needs "
        "Linux 5.13 or later with landlock in the boot parameter lsm=");
  for (const char *const *folder = limits->readable_folders; folder != NULL && *folder != NULL; folder++)
    if (allow_reading(ruleset, *folder, err) < 0) return -1;
  if (set_limits(limits, err) < 0) return -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
    return rl_fail_errno(err, "can't enter the sandbox");
  return deny_calls(err);
}
