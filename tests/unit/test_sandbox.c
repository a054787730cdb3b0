/* Tests the sandbox for programs that read untrusted input. A child process enters it. It can read files below a readable folder,
 * but not change them, although their permissions allow it. Skipped if the kernel has no Landlock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "base/sandbox.h"

enum { EXIT_SKIPPED = 77, MODE = 0600 };
static char folder[] = "/tmp/rooflined-sandbox-XXXXXX", path[64], created_path[64];
static const char contents[] = "contents that must stay";

/* Returns the errno of the call that returned this descriptor; closes the descriptor and returns 0 if the call succeeded. */
static int error_of_descriptor(long descriptor) {
  const int code = descriptor < 0 ? errno : 0;
  if (descriptor >= 0) close((int)descriptor);
  return code;
}

static int error_of(int result) { return result < 0 ? errno : 0; }

static int open_to_read(void) { return error_of_descriptor(open(path, O_RDONLY)); }
static int openat_to_read(void) { return error_of_descriptor(openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC)); }
static int read_contents(void) {
  char text[sizeof contents] = "";
  FILE *file = fopen(path, "r");
  if (file == NULL) return errno;
  const size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  return size == sizeof contents && strcmp(text, contents) == 0 ? 0 : EIO;
}

static int open_raw(int flags) {
#ifdef SYS_open
  return error_of_descriptor(syscall(SYS_open, path, flags, MODE));
#else
  return error_of_descriptor(syscall(SYS_openat, AT_FDCWD, path, flags, MODE));
#endif
}

static int open_truncating(void) { return open_raw(O_RDONLY | O_TRUNC); }
static int openat_truncating(void) { return error_of_descriptor(openat(AT_FDCWD, path, O_RDONLY | O_TRUNC | O_CLOEXEC)); }
static int open_to_write(void) { return open_raw(O_WRONLY); }
static int open_to_read_and_write(void) { return open_raw(O_RDWR); }
static int open_to_append(void) { return open_raw(O_WRONLY | O_APPEND); }
static int open_to_create(void) { return error_of_descriptor(open(created_path, O_RDONLY | O_CREAT, MODE)); }
static int open_without_a_name(void) { return error_of_descriptor(open(folder, O_TMPFILE | O_RDWR, MODE)); }
static int creat_file(void) { return error_of_descriptor(creat(path, MODE)); }
static int openat2_truncating(void) {
  struct open_how how = {.flags = O_RDONLY | O_TRUNC};
  return error_of_descriptor(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}
static int openat2_to_read(void) {
  struct open_how how = {.flags = O_RDONLY};
  return error_of_descriptor(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}
static int truncate_by_path(void) { return error_of(truncate(path, 0)); }
static int change_mode(void) { return error_of(chmod(path, 0)); }
static int change_owner(void) { return error_of(chown(path, getuid(), getgid())); }
static int change_times(void) { return error_of(utimes(path, NULL)); }
static int set_attribute(void) { return error_of(setxattr(path, "user.x", "1", 1, 0)); }
static int unlink_file(void) { return error_of(unlink(path)); }
static int rename_file(void) { return error_of(rename(path, created_path)); }
static int link_file(void) { return error_of(link(path, created_path)); }

/* Calls a function with a descriptor that is open for reading. */
static int with_descriptor(int (*change)(int descriptor)) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0; /* every caller expects an error, so its test fails */
  const int code = error_of(change(descriptor));
  close(descriptor);
  return code;
}

static int fchmod_to_nothing(int descriptor) { return fchmod(descriptor, 0); }
static int fchown_to_self(int descriptor) { return fchown(descriptor, getuid(), getgid()); }
static int fsetxattr_of_user(int descriptor) { return fsetxattr(descriptor, "user.x", "1", 1, 0); }
static int futimens_now(int descriptor) { return futimens(descriptor, NULL); }
static int change_mode_of_descriptor(void) { return with_descriptor(fchmod_to_nothing); }
static int change_owner_of_descriptor(void) { return with_descriptor(fchown_to_self); }
static int set_attribute_of_descriptor(void) { return with_descriptor(fsetxattr_of_user); }
static int change_times_of_descriptor(void) { return with_descriptor(futimens_now); }

static int open_outside(void) { return error_of_descriptor(open("/etc/passwd", O_RDONLY)); }

typedef struct attempt {
  const char *name;
  int (*call)(void); /* returns 0, or the errno with which it failed */
  int expected;
} attempt;

static const attempt attempts[] = {
    {"open to read", open_to_read, 0},
    {"openat to read", openat_to_read, 0},
    {"read", read_contents, 0},
    {"open a file outside of the folder", open_outside, EACCES},
    {"open O_RDONLY | O_TRUNC", open_truncating, EACCES},
    {"openat O_RDONLY | O_TRUNC", openat_truncating, EACCES},
    {"open O_WRONLY", open_to_write, EACCES},
    {"open O_RDWR", open_to_read_and_write, EACCES},
    {"open O_APPEND", open_to_append, EACCES},
    {"open O_CREAT", open_to_create, EACCES},
    {"open O_TMPFILE", open_without_a_name, EACCES},
    {"creat", creat_file, EACCES},
    {"openat2 O_TRUNC", openat2_truncating, ENOSYS},
    {"openat2 to read", openat2_to_read, ENOSYS},
    {"truncate", truncate_by_path, EACCES},
    {"chmod", change_mode, EACCES},
    {"fchmod", change_mode_of_descriptor, EACCES},
    {"chown", change_owner, EACCES},
    {"fchown", change_owner_of_descriptor, EACCES},
    {"utimes", change_times, EACCES},
    {"futimens", change_times_of_descriptor, EACCES},
    {"setxattr", set_attribute, EACCES},
    {"fsetxattr", set_attribute_of_descriptor, EACCES},
    {"unlink", unlink_file, EACCES},
    {"rename", rename_file, EACCES},
    {"link", link_file, EACCES},
};

/* Enters the sandbox and makes the attempts, in a child process. Returns its exit status: 0; 1 + the index of the first attempt
 * whose result is not the expected one; or EXIT_SKIPPED. */
static int run_in_sandbox(void) {
  const char *const folders[] = {folder, NULL};
  const rl_sandbox_limits limits = {
      .readable_folders = folders, .memory_bytes = UINT64_C(1) << 30, .file_bytes = 1 << 20, .cpu_time_s = 60};
  rl_error err = {0};
  if (rl_sandbox_enter(&limits, &err) < 0) {
    fprintf(stderr, "%s\n", err.message);
    return EXIT_SKIPPED;
  }
  for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
    const int result = attempts[i].call();
    if (result == attempts[i].expected) continue;
    fprintf(stderr, "%s: %s instead of %s\n", attempts[i].name, result == 0 ? "success" : strerror(result),
            attempts[i].expected == 0 ? "success" : strerror(attempts[i].expected));
    return (int)i + 1;
  }
  return 0;
}

static void write_contents(void) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(contents, 1, sizeof contents, file), sizeof contents);
  assert_int_equal(fclose(file), 0);
}

static void a_readable_file_cannot_be_changed(void **state) {
  (void)state;
  struct stat before, after;
  int status = 0;
  write_contents();
  assert_int_equal(stat(path, &before), 0);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(run_in_sandbox());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == EXIT_SKIPPED) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(read_contents(), 0);
  assert_int_equal(stat(path, &after), 0);
  assert_true(before.st_mode == after.st_mode && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
              before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
  assert_int_equal(access(created_path, F_OK), -1);
}

static int make_sandbox_folder(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  snprintf(created_path, sizeof created_path, "%s/created", folder);
  return 0;
}

static int remove_sandbox_folder(void **state) {
  (void)state;
  unlink(path);
  unlink(created_path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_readable_file_cannot_be_changed)};
  return cmocka_run_group_tests(tests, make_sandbox_folder, remove_sandbox_folder);
}
