/* The program rooflined-nvrtc: reads CUDA C++ from standard input, compiles it with NVRTC and writes the result (output.h) to
 * standard output. It loads NVRTC, enters the sandbox (base/sandbox.h) and compiles once.
 *
 *   rooflined-nvrtc --version                 prints the version of NVRTC, a hash of the standard headers that posted
 *                                             code can include, and options of every compilation:
 *                                             "13.0 SHA256 --generate-line-info ..."
 *   rooflined-nvrtc ARCH ENTRY [OPTION]...    compiles for the architecture ARCH; ENTRY is the kernel to launch */
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
#include "base/sandbox.h"
#include "nvrtc/output.h"
#include "nvrtc/standard_headers.h"
#include "nvrtc/nvrtc.h"

enum {
  MAX_CODE_BYTES = 1 << 20,
  MAX_INCLUDE_OPTIONS = 16,
  FIXED_OPTIONS = 4 /* options of every compilation: -arch, --ptxas-options and the two below */
};

/* --- NVRTC, loaded at run time ----------------------------------------------------------------------------------------- */

typedef struct nvrtc_program *nvrtc_program; /* nvrtcProgram is such a pointer to an incomplete type */
typedef struct nvrtc {
  int (*version)(int *major, int *minor);
  int (*create)(nvrtc_program *, const char *code, const char *name, int header_count, const char *const *texts,
                const char *const *names);
  int (*name_expression)(nvrtc_program, const char *expression);
  int (*compile)(nvrtc_program, int option_count, const char *const *options);
  int (*log_size)(nvrtc_program, size_t *);
  int (*log)(nvrtc_program, char *);
  int (*lowered_name)(nvrtc_program, const char *expression, const char **name);
  int (*image_size)(nvrtc_program, size_t *);
  int (*image)(nvrtc_program, char *);
  const char *(*error)(int);
  char folder[PATH_MAX]; /* folder of the library */
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
  static const char *const paths[] = {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                      "/usr/local/cuda/lib/libnvrtc.so.13"};
  void *library = NULL;
  for (size_t i = 0; i < sizeof paths / sizeof *paths && library == NULL; i++) library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

/* Sets the library's folder with symbolic links resolved. find_cuda_headers searches relative to it. */
static int find_folder(nvrtc *api, rl_error *err) {
  Dl_info info;
  if (dladdr((void *)(uintptr_t)api->version, &info) == 0 || realpath(info.dli_fname, api->folder) == NULL)
    return rl_fail(err, RL_ERRNO, ENOENT, "can't find out where libnvrtc was loaded from");
  *strrchr(api->folder, '/') = '\0';
  return 0;
}

/* Loads libnvrtc-builtins. NVRTC would otherwise load it while compiling, which the sandbox does not allow. */
static int load_builtins(const nvrtc *api, rl_error *err) {
  char path[PATH_MAX + 64];
  int major = 0, minor = 0;
  api->version(&major, &minor);
  snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.%d.%d", api->folder, major, minor);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOENT, "%s", dlerror());
}

static int load_nvrtc(nvrtc *api, rl_error *err) {
  void *library = find_library();
  if (library == NULL)
    return rl_fail(err, RL_ERRNO, ENOENT, "libnvrtc.so.13 of CUDA 13 is not installed: code can't be compiled here");
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(library, functions[i].name);
    if (function == NULL) return rl_fail(err, RL_ERRNO, ENOENT, "libnvrtc has no %s", functions[i].name);
    memcpy((char *)api + functions[i].offset, &function, sizeof function);
  }
  return find_folder(api, err);
}

/* --- the headers ------------------------------------------------------------------------------------------------------- */

/* Returns the folder of the CUDA headers, or NULL if there is none; then code that includes CUDA headers does not compile. */
static const char *find_cuda_headers(const nvrtc *api, char include[PATH_MAX]) {
  static const char *const patterns[] = {"%s/../include", "%s/../../../include", "/usr/local/cuda/include"};
  char path[PATH_MAX + 64];
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    snprintf(path, sizeof path, patterns[i], api->folder);
    if (realpath(path, include) == NULL) continue;
    snprintf(path, sizeof path, "%s/cuda_fp16.h", include);
    if (access(path, R_OK) == 0) return include;
  }
  return NULL;
}

/* The folders that posted code may include files from. */
typedef struct include_folders {
  char *text;                                       /* the folders, separated by NULs */
  const char *readable[MAX_INCLUDE_OPTIONS + 1];    /* folders that the sandbox may read; NULL-terminated */
  char options[MAX_INCLUDE_OPTIONS][PATH_MAX + 16]; /* -IFOLDER */
  int option_count;
} include_folders;

static void add_option(include_folders *folders, const char *folder, const char *subfolder) {
  snprintf(folders->options[folders->option_count++], sizeof folders->options[0], "-I%s%s", folder, subfolder);
}

/* Lists the CUDA headers with CCCL, then the folders of ROOFLINED_SOURCE_INCLUDES. */
static void find_include_folders(const nvrtc *api, include_folders *folders) {
  static char include[PATH_MAX];
  const char *setting = getenv("ROOFLINED_SOURCE_INCLUDES");
  int count = 0;
  if (find_cuda_headers(api, include) != NULL) {
    folders->readable[count++] = include;
    add_option(folders, include, "");
    add_option(folders, include, "/cccl");
  }
  folders->text = setting != NULL ? strdup(setting) : NULL;
  char *rest = folders->text;
  for (char *folder; folders->option_count < MAX_INCLUDE_OPTIONS && (folder = strsep(&rest, ":")) != NULL;)
    if (folder[0] != '\0') {
      folders->readable[count++] = folder;
      add_option(folders, folder, "");
    }
}

/* --- the output -------------------------------------------------------------------------------------------------------- */

static int write_all(const void *data, size_t size) {
  while (size > 0) {
    ssize_t written = write(STDOUT_FILENO, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return -1;
    data = (const char *)data + written;
    size -= (size_t)written;
  }
  return 0;
}

/* Returns the program's exit status. */
static int write_output(rl_nvrtc_status status, const char *symbol, const char *log, const void *image, size_t image_bytes) {
  size_t symbol_bytes = strlen(symbol), log_bytes = strnlen(log, RL_NVRTC_LOG_MAX_BYTES);
  rl_nvrtc_output_header header = {.magic = RL_NVRTC_MAGIC,
                                   .status = status,
                                   .symbol_bytes = (uint32_t)symbol_bytes,
                                   .log_bytes = (uint32_t)log_bytes,
                                   .image_bytes = (uint32_t)image_bytes};
  bool failed = write_all(&header, sizeof header) < 0 || write_all(symbol, symbol_bytes) < 0 || write_all(log, log_bytes) < 0 ||
                write_all(image, image_bytes) < 0;
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int write_unavailable(const char *reason) { return write_output(RL_NVRTC_CANNOT_COMPILE, "", reason, NULL, 0); }

/* --- compiling --------------------------------------------------------------------------------------------------------- */

static char *read_code(void) {
  char *code = malloc(MAX_CODE_BYTES + 1);
  size_t used = 0;
  ssize_t received = 1;
  while (code != NULL && received > 0 && used < MAX_CODE_BYTES) {
    received = read(STDIN_FILENO, code + used, MAX_CODE_BYTES - used);
    if (received > 0) used += (size_t)received;
  }
  if (code != NULL) code[used] = '\0';
  return code;
}

static char *read_log(const nvrtc *api, nvrtc_program program) {
  size_t size = 0;
  api->log_size(program, &size);
  char *log = calloc(1, size + 1);
  if (log != NULL && size > 0) api->log(program, log);
  return log;
}

static int compile(const nvrtc *api, const char *entry, int option_count, const char *const *options) {
  RL_CLEANUP(rl_free_text) char *code = read_code();
  nvrtc_program program = NULL;
  if (code == NULL) return write_unavailable("no memory for the code");
  rl_standard_headers headers = rl_standard_headers_get();
  int rc = api->create(&program, code, "code.cu", headers.count, headers.texts, headers.names);
  if (rc == 0) rc = api->name_expression(program, entry);
  if (rc != 0) return write_unavailable(api->error(rc));
  rc = api->compile(program, option_count, options);
  RL_CLEANUP(rl_free_text) char *log = read_log(api, program);
  if (log == NULL) return write_unavailable("no memory for the log");
  if (rc != 0) return write_output(RL_NVRTC_COMPILE_ERROR, "", log[0] != '\0' ? log : api->error(rc), NULL, 0);
  const char *symbol = "";
  size_t size = 0;
  rc = api->lowered_name(program, entry, &symbol);
  if (rc == 0) rc = api->image_size(program, &size);
  RL_CLEANUP(rl_free_text) char *image = malloc(size + 1);
  if (rc == 0 && image != NULL) rc = api->image(program, image);
  if (rc != 0 || image == NULL) return write_unavailable(rc != 0 ? api->error(rc) : "no memory for the image");
  return write_output(RL_NVRTC_COMPILED, symbol, log, image, size);
}

static int enter_sandbox(const include_folders *folders, rl_error *err) {
  const rl_sandbox_limits limits = {.readable_folders = folders->readable,
                                    .memory_bytes = UINT64_C(8) << 30,
                                    .file_bytes = UINT64_C(256) << 20,
                                    .cpu_time_s = 120};
  return rl_sandbox_enter(&limits, err);
}

/* Adds source lines to the compiled code, for reports. The machine code stays the same. */
static const char LINE_INFO_OPTION[] = "--generate-line-info";
/* Functions without __device__ are device functions, which headers such as CUTLASS's need: NVRTC refuses host functions. */
static const char DEFAULT_DEVICE_OPTION[] = "--device-as-default-execution-space";

/* Compiles the code on standard input and returns the exit status. The options that this function adds follow those of the
 * command line, so that the command line can't change which files NVRTC reads. */
static int run(const nvrtc *api, int argc, char **argv, rl_error *err) {
  const char *options[RL_NVRTC_OPTIONS_MAX + FIXED_OPTIONS + MAX_INCLUDE_OPTIONS];
  static include_folders folders;
  char arch[64];
  int option_count = 0;
  if (argc - 3 > RL_NVRTC_OPTIONS_MAX) return write_unavailable("too many options");
  for (int i = 3; i < argc; i++) options[option_count++] = argv[i];
  find_include_folders(api, &folders);
  if (load_builtins(api, err) < 0) return write_unavailable(err->message);
  if (enter_sandbox(&folders, err) < 0) {
    rl_wrap(err, "posted code can't be compiled here");
    return write_unavailable(err->message);
  }
  snprintf(arch, sizeof arch, "-arch=%s", argv[1]);
  options[option_count++] = arch;
  options[option_count++] = "--ptxas-options=-v";
  options[option_count++] = LINE_INFO_OPTION;
  options[option_count++] = DEFAULT_DEVICE_OPTION;
  for (int i = 0; i < folders.option_count; i++) options[option_count++] = folders.options[i];
  return compile(api, argv[2], option_count, options);
}

int main(int argc, char **argv) {
  nvrtc api = {0};
  rl_error err = {0};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close_range(STDERR_FILENO + 1, ~0u, 0);
  if (chdir("/") < 0) return EXIT_FAILURE;
  bool prints_version = argc == 2 && strcmp(argv[1], "--version") == 0;
  if (!prints_version && argc < 3) {
    fprintf(stderr, "usage: rooflined-nvrtc --version | ARCH ENTRY [OPTION]...\nCompiles CUDA C++ for rooflined's workers.\n");
    return 2;
  }
  if (load_nvrtc(&api, &err) < 0) return prints_version ? EXIT_FAILURE : write_unavailable(err.message);
  if (!prints_version)
    _exit(run(&api, argc, argv, &err)); /* _exit runs no exit handlers, which might do what the sandbox forbids */
  char headers_sha256[RL_SHA256_SIZE];
  int major = 0, minor = 0;
  api.version(&major, &minor);
  rl_standard_headers_hash(headers_sha256);
  /* The cache of compiled code hashes this line, so it contains what changes the output of the compiler. */
  return printf("%d.%d %s %s %s\n", major, minor, headers_sha256, LINE_INFO_OPTION, DEFAULT_DEVICE_OPTION) < 0 ? EXIT_FAILURE
                                                                                                               : EXIT_SUCCESS;
}
