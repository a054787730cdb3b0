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
#include "nvrtc/answer.h"
#include "nvrtc/cache.h"

enum { COMPILE_MOST_MS = 180000, LINE_MOST = 300 };
static const size_t ANSWER_MOST = (size_t)256 << 20;

RL_DEFINE_CLEANUP(free_bytes, unsigned char *, free, NULL)

void rl_nvrtc_clear(rl_nvrtc_result *result) {
  free(result->image);
  free(result->symbol);
  free(result->log);
  *result = (rl_nvrtc_result){0};
}

/* --- the compiler's process -------------------------------------------------------------------------------------------- */

static int find_compiler(const rl_nvrtc_request *request, char path[PATH_MAX], rl_error *err) {
  static const char name[] = "rooflined-nvrtc";
  if (request->compiler != NULL) {
    snprintf(path, PATH_MAX, "%s", request->compiler);
    return 0;
  }
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - sizeof name - 1);
  if (length < 0) return rl_fail_errno(err, "can't read /proc/self/exe");
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, name);
  return 0;
}

static int start(char *const *arguments, int input, int output, pid_t *pid, rl_error *err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  int code = posix_spawn(pid, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return code == 0 ? 0 : rl_fail(err, RL_SYS, code, "can't start %s: %s", arguments[0], strerror(code));
}

/* Wait for it, at most COMPILE_MOST_MS. */
static int await(pid_t pid, rl_error *err) {
  rl_auto(rl_close_descriptor) int watch = pidfd_open(pid, 0);
  struct pollfd entry = {.fd = watch, .events = POLLIN};
  int ready = -1, status = 0;
  if (watch >= 0) do
      ready = poll(&entry, 1, COMPILE_MOST_MS);
    while (ready < 0 && errno == EINTR);
  if (ready <= 0) kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (ready == 0) return rl_fail_at(err, "/code", "the compiler was not done after %d s", COMPILE_MOST_MS / 1000);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return rl_fail_at(err, "/code", "the compiler took too much time");
  if (WIFSIGNALED(status)) return rl_fail_at(err, "/code", "the compiler was killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? 0 : rl_fail_at(err, "/code", "the compiler exited with %d", WEXITSTATUS(status));
}

/* Run the program with `input` and take what it writes. */
static int run(char *const *arguments, const void *input, size_t size, unsigned char **output, size_t *output_size,
               rl_error *err) {
  rl_auto(rl_close_descriptor) int in = memfd_create("code", MFD_CLOEXEC);
  rl_auto(rl_close_descriptor) int out = memfd_create("answer", MFD_CLOEXEC);
  struct stat facts;
  pid_t pid;
  if (in < 0 || out < 0 || write(in, input, size) != (ssize_t)size || lseek(in, 0, SEEK_SET) < 0)
    return rl_fail_errno(err, "can't hand the code to the compiler");
  if (start(arguments, in, out, &pid, err) < 0 || await(pid, err) < 0) return -1;
  if (fstat(out, &facts) < 0 || (size_t)facts.st_size > ANSWER_MOST)
    return rl_fail(err, RL_SYS, EFBIG, "the compiler's answer is too large");
  rl_auto(free_bytes) unsigned char *text = malloc((size_t)facts.st_size + 1);
  if (text == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the compiler's answer");
  if (pread(out, text, (size_t)facts.st_size, 0) != facts.st_size) return rl_fail_errno(err, "can't read the compiler's answer");
  text[facts.st_size] = '\0';
  *output_size = (size_t)facts.st_size;
  *output = rl_steal(&text);
  return 0;
}

/* --- the answer -------------------------------------------------------------------------------------------------------- */

/* The bytes that the parts say they have are there, no more and no less. */
static bool whole(const unsigned char *answer, size_t size, rl_nvrtc_answer *head) {
  if (size < sizeof *head) return false;
  memcpy(head, answer, sizeof *head);
  return memcmp(head->magic, RL_NVRTC_MAGIC, sizeof head->magic) == 0 &&
         (uint64_t)head->symbol_bytes + head->log_bytes + head->image_bytes == size - sizeof *head;
}

/* "N bytes spill stores, M bytes spill loads" of the entry, where ptxas -v says so. */
static void find_spills(rl_nvrtc_result *result) {
  char title[1024];
  int stores, loads;
  result->spill_store_bytes = result->spill_load_bytes = NAN;
  snprintf(title, sizeof title, "Function properties for %s\n", result->symbol);
  const char *at = strstr(result->log, title);
  const char *line = at != NULL ? strstr(at, "stack frame, ") : NULL;
  if (line == NULL || sscanf(line, "stack frame, %d bytes spill stores, %d bytes spill loads", &stores, &loads) != 2) return;
  result->spill_store_bytes = stores;
  result->spill_load_bytes = loads;
}

/* The log's first line that speaks of an error. */
static int refuse(const char *log, rl_error *err) {
  const char *found = strstr(log, "error");
  if (found == NULL) found = log;
  while (found > log && found[-1] != '\n') found--;
  int length = (int)strcspn(found, "\n");
  return rl_fail_at(err, "/code", "%.*s", length < LINE_MOST ? length : LINE_MOST, found);
}

static int take(const unsigned char *answer, size_t size, rl_nvrtc_result *result, rl_error *err) {
  rl_nvrtc_answer head;
  if (!whole(answer, size, &head)) return rl_fail(err, RL_SYS, EPROTO, "the compiler's answer is broken");
  const char *symbol = (const char *)answer + sizeof head, *log = symbol + head.symbol_bytes;
  result->symbol = strndup(symbol, head.symbol_bytes);
  result->log = strndup(log, head.log_bytes);
  result->image = malloc((size_t)head.image_bytes + 1);
  if (result->symbol == NULL || result->log == NULL || result->image == NULL)
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for compiled code");
  memcpy(result->image, log + head.log_bytes, head.image_bytes);
  result->size = head.image_bytes;
  if (head.status == RL_NVRTC_IMPOSSIBLE) return rl_fail(err, RL_SYS, ENOTSUP, "%s", result->log);
  if (head.status != RL_NVRTC_COMPILED) return refuse(result->log, err);
  find_spills(result);
  return 0;
}

/* --- compiling --------------------------------------------------------------------------------------------------------- */

/* Asked once: it does not change under a running program. One thread. */
static const char *version_of(const char *compiler, rl_error *err) {
  static char version[16];
  char *const arguments[] = {(char *)(uintptr_t)compiler, (char *)(uintptr_t) "--version", NULL};
  rl_auto(free_bytes) unsigned char *said = NULL;
  size_t size;
  if (version[0] != '\0') return version;
  if (run(arguments, "", 0, &said, &size, err) < 0) return NULL;
  snprintf(version, sizeof version, "%s", (const char *)said);
  return version;
}

/* Compile as the request says; what was compiled goes to the cache. */
static int compile(const rl_nvrtc_request *request, char *const *arguments, const char *key, rl_nvrtc_result *result,
                   rl_error *err) {
  rl_auto(free_bytes) unsigned char *said = NULL;
  size_t size;
  if (run(arguments, request->code, request->length, &said, &size, err) < 0 || take(said, size, result, err) < 0) return -1;
  if (request->cache != NULL) rl_nvrtc_cache_put(request->cache, key, said, size);
  return 0;
}

/* What a broken file of the cache says does not count. */
static bool recall(const rl_nvrtc_request *request, const char *key, rl_nvrtc_result *result) {
  rl_auto(free_bytes) unsigned char *said = NULL;
  size_t size;
  if (rl_nvrtc_cache_get(request->cache, key, &said, &size) < 0) return false;
  if (take(said, size, result, NULL) == 0) return result->cached = true;
  rl_nvrtc_clear(result);
  return false;
}

int rl_nvrtc_compile(const rl_nvrtc_request *request, rl_nvrtc_result *result, rl_error *err) {
  char compiler[PATH_MAX], key[RL_SHA256_SIZE] = "", *arguments[RL_NVRTC_OPTIONS_MAX + 4] = {compiler};
  int64_t begin = rl_monotonic_ns();
  *result = (rl_nvrtc_result){0};
  if (request->option_count > RL_NVRTC_OPTIONS_MAX)
    return rl_fail_at(err, "/options", "at most %d options can be handed to the compiler", RL_NVRTC_OPTIONS_MAX);
  if (find_compiler(request, compiler, err) < 0) return -1;
  arguments[1] = (char *)(uintptr_t)request->arch;
  arguments[2] = (char *)(uintptr_t)request->entry;
  for (int i = 0; i < request->option_count; i++) arguments[3 + i] = (char *)(uintptr_t)request->options[i];
  if (request->cache != NULL) {
    const char *version = version_of(compiler, err);
    if (version == NULL) return -1;
    if (rl_nvrtc_cache_key(version, arguments + 1, request->code, request->length, key, err) < 0) return -1;
  }
  bool cached = request->cache != NULL && recall(request, key, result);
  if (!cached && compile(request, arguments, key, result, err) < 0) return -1;
  result->compile_ms = (double)(rl_monotonic_ns() - begin) * 1e-6;
  return 0;
}
