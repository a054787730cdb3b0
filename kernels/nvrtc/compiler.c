/* rooflined-nvrtc: CUDA C++ on standard input, an rl_nvrtc_answer on standard output. It loads NVRTC, shuts itself in, and
 * compiles once.
 *
 *   rooflined-nvrtc --version               which NVRTC would compile: "13.0"
 *   rooflined-nvrtc ARCH ENTRY [OPTION]...  */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "nvrtc/answer.h"
#include "nvrtc/sandbox.h"
#include "nvrtc/nvrtc.h"

enum { CODE_MAX = 1 << 20, OURS_MAX = 8 };

/* --- NVRTC's interface, as it has been since CUDA 8 -------------------------------------------------------------------- */

typedef struct program_of_nvrtc *program;
typedef struct nvrtc {
  int (*version)(int *major, int *minor);
  int (*create)(program *, const char *code, const char *name, int headers, const char *const *texts, const char *const *names);
  int (*name_expression)(program, const char *expression);
  int (*compile)(program, int options, const char *const *option);
  int (*log_size)(program, size_t *);
  int (*log)(program, char *);
  int (*lowered_name)(program, const char *expression, const char **name);
  int (*image_size)(program, size_t *);
  int (*image)(program, char *);
  const char *(*error)(int);
  char folder[PATH_MAX]; /* of the library */
} nvrtc;

static const struct {
  const char *name;
  size_t offset;
} functions[] = {{"nvrtcVersion", offsetof(nvrtc, version)},
                 {"nvrtcCreateProgram", offsetof(nvrtc, create)},
                 {"nvrtcAddNameExpression", offsetof(nvrtc, name_expression)},
                 {"nvrtcCompileProgram", offsetof(nvrtc, compile)},
                 {"nvrtcGetProgramLogSize", offsetof(nvrtc, log_size)},
                 {"nvrtcGetProgramLog", offsetof(nvrtc, log)},
                 {"nvrtcGetLoweredName", offsetof(nvrtc, lowered_name)},
                 {"nvrtcGetCUBINSize", offsetof(nvrtc, image_size)},
                 {"nvrtcGetCUBIN", offsetof(nvrtc, image)},
                 {"nvrtcGetErrorString", offsetof(nvrtc, error)}};

static void *find_library(void) {
  static const char *const places[] = {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                       "/usr/local/cuda/lib/libnvrtc.so.13"};
  void *library = NULL;
  for (size_t i = 0; i < sizeof places / sizeof *places && library == NULL; i++)
    library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

/* The library's folder, with links followed: the headers lie near it. */
static int find_folder(nvrtc *made, rl_error *err) {
  Dl_info info;
  if (dladdr((void *)(uintptr_t)made->version, &info) == 0 || realpath(info.dli_fname, made->folder) == NULL)
    return rl_fail(err, RL_SYS, ENOENT, "can't tell where libnvrtc was loaded from");
  *strrchr(made->folder, '/') = '\0';
  return 0;
}

/* Its other half, which it would load when it compiles, inside the jail. */
static int load_builtins(const nvrtc *loaded, rl_error *err) {
  char path[PATH_MAX + 64];
  int major = 0, minor = 0;
  loaded->version(&major, &minor);
  snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.%d.%d", loaded->folder, major, minor);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL ? 0 : rl_fail(err, RL_SYS, ENOENT, "%s", dlerror());
}

static int load(nvrtc *made, rl_error *err) {
  void *library = find_library();
  if (library == NULL)
    return rl_fail(err, RL_SYS, ENOENT, "libnvrtc.so.13 of CUDA 13 is not installed: code can't be compiled here");
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym(library, functions[i].name);
    if (found == NULL) return rl_fail(err, RL_SYS, ENOENT, "libnvrtc has no %s", functions[i].name);
    memcpy((char *)made + functions[i].offset, &found, sizeof found);
  }
  return find_folder(made, err);
}

/* --- the headers ------------------------------------------------------------------------------------------------------- */

/* The folder of CUDA's headers; NULL when there is none: code that includes nothing compiles all the same. */
static const char *find_headers(const nvrtc *loaded, char include[PATH_MAX]) {
  static const char *const places[] = {"%s/../include", "%s/../../../include", "/usr/local/cuda/include"};
  char path[PATH_MAX + 64];
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(path, sizeof path, places[i], loaded->folder);
    if (realpath(path, include) == NULL) continue;
    snprintf(path, sizeof path, "%s/cuda_fp16.h", include);
    if (access(path, R_OK) == 0) return include;
  }
  return NULL;
}

/* --- the answer -------------------------------------------------------------------------------------------------------- */

static int write_all(const void *data, size_t size) {
  while (size > 0) {
    ssize_t wrote = write(STDOUT_FILENO, data, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return -1;
    data = (const char *)data + wrote;
    size -= (size_t)wrote;
  }
  return 0;
}

static int answer(rl_nvrtc_status status, const char *symbol, const char *log, const void *image, size_t image_bytes) {
  size_t symbol_bytes = strlen(symbol), log_bytes = strnlen(log, RL_NVRTC_LOG_MAX);
  rl_nvrtc_answer head = {.magic = RL_NVRTC_MAGIC,
                          .status = status,
                          .symbol_bytes = (uint32_t)symbol_bytes,
                          .log_bytes = (uint32_t)log_bytes,
                          .image_bytes = (uint32_t)image_bytes};
  int rc = write_all(&head, sizeof head) < 0 || write_all(symbol, symbol_bytes) < 0 || write_all(log, log_bytes) < 0 ||
           write_all(image, image_bytes) < 0;
  return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int impossible(const char *why) { return answer(RL_NVRTC_IMPOSSIBLE, "", why, NULL, 0); }

/* --- compiling --------------------------------------------------------------------------------------------------------- */

static char *read_code(void) {
  char *code = malloc(CODE_MAX + 1);
  size_t used = 0;
  ssize_t got = 1;
  while (code != NULL && got > 0 && used < CODE_MAX) {
    got = read(STDIN_FILENO, code + used, CODE_MAX - used);
    if (got > 0) used += (size_t)got;
  }
  if (code != NULL) code[used] = '\0';
  return code;
}

static char *read_log(const nvrtc *api, program made) {
  size_t size = 0;
  api->log_size(made, &size);
  char *log = calloc(1, size + 1);
  if (log != NULL && size > 0) api->log(made, log);
  return log;
}

static int compile(const nvrtc *api, const char *entry, int count, const char *const *options) {
  rl_auto(rl_free_text) char *code = read_code();
  program made = NULL;
  if (code == NULL) return impossible("no memory for the code");
  int rc = api->create(&made, code, "code.cu", 0, NULL, NULL);
  if (rc == 0) rc = api->name_expression(made, entry);
  if (rc != 0) return impossible(api->error(rc));
  rc = api->compile(made, count, options);
  rl_auto(rl_free_text) char *log = read_log(api, made);
  if (log == NULL) return impossible("no memory for the log");
  if (rc != 0) return answer(RL_NVRTC_REFUSED, "", log[0] != '\0' ? log : api->error(rc), NULL, 0);
  const char *symbol = "";
  size_t size = 0;
  rc = api->lowered_name(made, entry, &symbol);
  if (rc == 0) rc = api->image_size(made, &size);
  rl_auto(rl_free_text) char *image = malloc(size + 1);
  if (rc == 0 && image != NULL) rc = api->image(made, image);
  if (rc != 0 || image == NULL) return impossible(rc != 0 ? api->error(rc) : "no memory for the image");
  return answer(RL_NVRTC_COMPILED, symbol, log, image, size);
}

/* Ours come last: they are what NVRTC reads files by, and nothing before may undo them. */
static int run(const nvrtc *api, int argc, char **argv, rl_error *err) {
  const char *options[RL_NVRTC_OPTIONS_MAX + OURS_MAX];
  char include[PATH_MAX], arch[64], below[PATH_MAX + 16], beside[PATH_MAX + 16];
  int count = 0;
  if (argc - 3 > RL_NVRTC_OPTIONS_MAX) return impossible("too many options");
  for (int i = 3; i < argc; i++) options[count++] = argv[i];
  const char *headers = find_headers(api, include);
  if (load_builtins(api, err) < 0 || rl_sandbox_enter(headers, err) < 0) return impossible(err->message);
  snprintf(arch, sizeof arch, "-arch=%s", argv[1]);
  options[count++] = arch;
  options[count++] = "--no-source-include";
  options[count++] = "--ptxas-options=-v";
  if (headers != NULL) {
    snprintf(below, sizeof below, "-I%s", headers);
    snprintf(beside, sizeof beside, "-I%s/cccl", headers);
    options[count++] = below;
    options[count++] = beside;
  }
  return compile(api, argv[2], count, options);
}

int main(int argc, char **argv) {
  nvrtc api = {0};
  rl_error err = {0};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close_range(STDERR_FILENO + 1, ~0u, 0);
  if (chdir("/") < 0) return EXIT_FAILURE;
  bool version = argc == 2 && strcmp(argv[1], "--version") == 0;
  if (!version && argc < 3) {
    fprintf(stderr, "usage: rooflined-nvrtc --version | ARCH ENTRY [OPTION]...\nCompiles CUDA C++ for rooflined's workers.\n");
    return 2;
  }
  if (load(&api, &err) < 0) return version ? EXIT_FAILURE : impossible(err.message);
  if (!version) _exit(run(&api, argc, argv, &err)); /* nothing is left to tidy up, and little could be from inside the jail */
  int major = 0, minor = 0;
  api.version(&major, &minor);
  return printf("%d.%d\n", major, minor) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
