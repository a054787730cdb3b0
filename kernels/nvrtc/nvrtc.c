/* Implements nvrtc.h: runs rooflined-nvrtc, reads its output, and caches it. */
#include "nvrtc/nvrtc.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "nvrtc/output.h"
#include "nvrtc/cache.h"

enum { COMPILE_TIMEOUT_MS = 180000, MAX_LINE_LENGTH = 300 };
static const size_t MAX_OUTPUT_BYTES = (size_t)256 << 20;

RL_DEFINE_CLEANUP(free_bytes, unsigned char *, free, NULL)

void rl_nvrtc_clear(rl_nvrtc_result *result) {
  free(result->image);
  free(result->symbol);
  free(result->log);
  *result = (rl_nvrtc_result){0};
}

/* --- the compiler's process -------------------------------------------------------------------------------------------- */

/* Writes the path of rooflined-nvrtc into `path`: requested_path, or if it is NULL, the path in the running program's folder. */
static int find_compiler(const char *requested_path, char path[PATH_MAX], rl_error *err) {
  static const char name[] = "rooflined-nvrtc";
  if (requested_path != NULL) {
    snprintf(path, PATH_MAX, "%s", requested_path);
    return 0;
  }
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - sizeof name - 1);
  if (length < 0) return rl_fail_errno(err, "can't read /proc/self/exe");
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, name);
  return 0;
}

static int spawn_compiler(char *const *arguments, int input, int output, pid_t *pid, rl_error *err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  int error_number = posix_spawn(pid, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error_number == 0 ? 0 : rl_fail(err, RL_ERRNO, error_number, "can't start %s: %s", arguments[0], strerror(error_number));
}

/* Waits until the process exits, and kills it after COMPILE_TIMEOUT_MS. */
static int wait_for_exit(pid_t pid, rl_error *err) {
  RL_CLEANUP(rl_close_descriptor) int descriptor = pidfd_open(pid, 0);
  struct pollfd poll_entry = {.fd = descriptor, .events = POLLIN};
  int ready = -1, status = 0;
  if (descriptor >= 0) do
      ready = poll(&poll_entry, 1, COMPILE_TIMEOUT_MS);
    while (ready < 0 && errno == EINTR);
  const int wait_error = ready < 0 ? errno : 0;
  if (ready <= 0) kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (ready < 0) return rl_fail(err, RL_ERRNO, wait_error, "can't wait for the compiler: %s", strerror(wait_error));
  if (ready == 0) return rl_fail_at(err, "/code", "the compiler was not done after %d s", COMPILE_TIMEOUT_MS / 1000);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return rl_fail_at(err, "/code", "the compiler took too much CPU time");
  if (WIFSIGNALED(status)) return rl_fail_at(err, "/code", "the compiler was killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? 0 : rl_fail_at(err, "/code", "the compiler exited with %d", WEXITSTATUS(status));
}

/* Runs the program with `input` on standard input and returns its standard output, which the caller frees. */
static int run_compiler(char *const *arguments, const void *input, size_t size, unsigned char **output, size_t *output_size,
                        rl_error *err) {
  RL_CLEANUP(rl_close_descriptor) int in = memfd_create("code", MFD_CLOEXEC);
  RL_CLEANUP(rl_close_descriptor) int out = memfd_create("output", MFD_CLOEXEC);
  struct stat status;
  pid_t pid;
  if (in < 0 || out < 0 || write(in, input, size) != (ssize_t)size || lseek(in, 0, SEEK_SET) < 0)
    return rl_fail_errno(err, "can't hand the code to the compiler");
  if (spawn_compiler(arguments, in, out, &pid, err) < 0 || wait_for_exit(pid, err) < 0) return -1;
  if (fstat(out, &status) < 0) return rl_fail_errno(err, "can't read the compiler's output");
  if ((size_t)status.st_size > MAX_OUTPUT_BYTES) return rl_fail(err, RL_ERRNO, EFBIG, "the compiler's output is too large");
  RL_CLEANUP(free_bytes) unsigned char *text = malloc((size_t)status.st_size + 1);
  if (text == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the compiler's output");
  if (pread(out, text, (size_t)status.st_size, 0) != status.st_size)
    return rl_fail_errno(err, "can't read the compiler's output");
  text[status.st_size] = '\0';
  *output_size = (size_t)status.st_size;
  *output = rl_take_ownership(&text);
  return 0;
}

/* --- the output -------------------------------------------------------------------------------------------------------- */

/* Returns true when the header is valid and the sizes in it add up to the size of the output. */
static bool read_header(const unsigned char *output, size_t size, rl_nvrtc_output_header *header) {
  if (size < sizeof *header) return false;
  memcpy(header, output, sizeof *header);
  return memcmp(header->magic, RL_NVRTC_MAGIC, sizeof header->magic) == 0 &&
         (uint64_t)header->symbol_bytes + header->log_bytes + header->image_bytes == size - sizeof *header;
}

/* Reads "N bytes spill stores, M bytes spill loads" of the kernel from the log of ptxas -v. */
static void find_spills(rl_nvrtc_result *result) {
  char title[1024];
  int stores, loads;
  result->spill_store_bytes = result->spill_load_bytes = NAN;
  snprintf(title, sizeof title, "Function properties for %s\n", result->symbol);
  const char *properties = strstr(result->log, title);
  const char *line = properties != NULL ? strstr(properties, "stack frame, ") : NULL;
  if (line == NULL || sscanf(line, "stack frame, %d bytes spill stores, %d bytes spill loads", &stores, &loads) != 2) return;
  result->spill_store_bytes = stores;
  result->spill_load_bytes = loads;
}

/* Fails with the first line of the log that contains "error". */
static int fail_with_first_error(const char *log, rl_error *err) {
  /* NVRTC compiles the entry as a name expression. In messages about the entry this stands in place of a file's name. */
  static const char entry_message_prefix[] = "__nv_name_map(";
  const char *line = strstr(log, "error");
  if (line == NULL) line = log;
  while (line > log && line[-1] != '\n') line--;
  int length = (int)strcspn(line, "\n");
  if (length > MAX_LINE_LENGTH) length = MAX_LINE_LENGTH;
  if (rl_begins_with(line, entry_message_prefix)) {
    const char *reason = strstr(line, "error: ");
    if (reason == NULL || reason >= line + length) reason = line;
    return rl_fail_at(err, "/entry", "the code has no such kernel: %.*s", (int)(line + length - reason), reason);
  }
  const char *launch = strstr(line, "device-side kernel launch");
  const char *reason = launch != NULL && launch < line + length
                           ? ": dynamic parallelism is refused, because only the posted launch itself is timed and checked"
                           : "";
  return rl_fail_at(err, "/code", "%.*s%s", length, line, reason);
}

static int parse_output(const unsigned char *output, size_t size, rl_nvrtc_result *result, rl_error *err) {
  rl_nvrtc_output_header header;
  if (!read_header(output, size, &header)) return rl_fail(err, RL_ERRNO, EPROTO, "the compiler's output is malformed");
  const char *symbol = (const char *)output + sizeof header, *log = symbol + header.symbol_bytes;
  result->symbol = strndup(symbol, header.symbol_bytes);
  result->log = strndup(log, header.log_bytes);
  result->image = malloc((size_t)header.image_bytes + 1);
  if (result->symbol == NULL || result->log == NULL || result->image == NULL)
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for compiled code");
  memcpy(result->image, log + header.log_bytes, header.image_bytes);
  result->image_bytes = header.image_bytes;
  if (header.status == RL_NVRTC_CANNOT_COMPILE) return rl_fail(err, RL_ERRNO, ENOTSUP, "%s", result->log);
  if (header.status != RL_NVRTC_COMPILED) return fail_with_first_error(result->log, err);
  find_spills(result);
  return 0;
}

/* --- compiling --------------------------------------------------------------------------------------------------------- */

/* Returns the part of the cache key that is the same for all requests: the compiler's version and the value of
 * ROOFLINED_SOURCE_INCLUDES, a list of folders. Runs the compiler in the first call, and keeps the text in a static buffer. Not
 * thread-safe. The text has no hash of the files in these folders: an administrator who changes such a file must empty the
 * cache. */
static const char *cache_key_prefix(const char *compiler, rl_error *err) {
  static char prefix[16 + PATH_MAX];
  char *const arguments[] = {(char *)(uintptr_t)compiler, (char *)(uintptr_t) "--version", NULL};
  RL_CLEANUP(free_bytes) unsigned char *output = NULL;
  size_t size;
  if (prefix[0] != '\0') return prefix;
  if (run_compiler(arguments, "", 0, &output, &size, err) < 0) return NULL;
  const char *includes = getenv("ROOFLINED_SOURCE_INCLUDES");
  snprintf(prefix, sizeof prefix, "%s%s", (const char *)output, includes != NULL ? includes : "");
  return prefix;
}

/* Compiles and adds the output to the cache. */
static int compile(const rl_nvrtc_request *request, char *const *arguments, const char *key, rl_nvrtc_result *result,
                   rl_error *err) {
  RL_CLEANUP(free_bytes) unsigned char *output = NULL;
  size_t size;
  if (run_compiler(arguments, request->code, request->length, &output, &size, err) < 0 ||
      parse_output(output, size, result, err) < 0)
    return -1;
  if (request->cache_dir != NULL) rl_nvrtc_cache_put(request->cache_dir, key, output, size);
  return 0;
}

/* Returns false when the cache has no valid output. */
static bool load_from_cache(const rl_nvrtc_request *request, const char *key, rl_nvrtc_result *result) {
  RL_CLEANUP(free_bytes) unsigned char *output = NULL;
  size_t size;
  if (rl_nvrtc_cache_get(request->cache_dir, key, &output, &size) < 0) return false;
  if (parse_output(output, size, result, NULL) == 0) return result->cached = true;
  rl_nvrtc_clear(result);
  return false;
}

void rl_nvrtc_prepare(const char *compiler_path) {
  char compiler[PATH_MAX];
  rl_error ignored;
  if (find_compiler(compiler_path, compiler, &ignored) == 0) (void)cache_key_prefix(compiler, &ignored);
}

int rl_nvrtc_compile(const rl_nvrtc_request *request, rl_nvrtc_result *result, rl_error *err) {
  char compiler[PATH_MAX], key[RL_SHA256_SIZE] = "", *arguments[RL_NVRTC_OPTIONS_MAX + 4] = {compiler};
  int64_t begin = rl_monotonic_ns();
  *result = (rl_nvrtc_result){0};
  if (request->option_count > RL_NVRTC_OPTIONS_MAX)
    return rl_fail_at(err, "/options", "at most %d options can be handed to the compiler", RL_NVRTC_OPTIONS_MAX);
  if (find_compiler(request->compiler_path, compiler, err) < 0) return -1;
  arguments[1] = (char *)(uintptr_t)request->arch;
  arguments[2] = (char *)(uintptr_t)request->entry;
  for (int i = 0; i < request->option_count; i++) arguments[3 + i] = (char *)(uintptr_t)request->options[i];
  if (request->cache_dir != NULL) {
    const char *prefix = cache_key_prefix(compiler, err);
    if (prefix == NULL) return -1;
    if (rl_nvrtc_cache_key(prefix, arguments + 1, request->code, request->length, key, err) < 0) return -1;
  }
  bool cached = request->cache_dir != NULL && load_from_cache(request, key, result);
  if (!cached && compile(request, arguments, key, result, err) < 0) return -1;
  result->compile_ms = (double)(rl_monotonic_ns() - begin) * 1e-6;
  return 0;
}
