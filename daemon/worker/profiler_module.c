/* Loads the GPU's profiler from rooflined-cupti.so, so that a worker in the unprofiled role never has CUPTI in its address
 * space. */
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/profiler.h"

rl_profiler *rl_profiler_open(int device_index, rl_error *err) {
  static const char *const path_formats[] = {"%s/rooflined-cupti.so", "%s/../lib/rooflined/rooflined-cupti.so"};
  char program[PATH_MAX], path[PATH_MAX + 64];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length < 0) {
    rl_fail_errno(err, "cannot find the folder of this program");
    return NULL;
  }
  program[length] = '\0';
  const char *folder = dirname(program);
  for (size_t i = 0; i < sizeof path_formats / sizeof *path_formats; i++) {
    snprintf(path, sizeof path, path_formats[i], folder);
    if (access(path, R_OK) != 0) continue;
    /* Stays open until the process ends: CUPTI must not be unloaded while a context exists. */
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = module ? dlsym(module, "rl_profiler_open") : NULL;
    if (!symbol) {
      rl_fail(err, RL_CUPTI, 0, "cannot load the profiler: %s", dlerror());
      return NULL;
    }
    rl_profiler_open_function open;
    memcpy(&open, &symbol, sizeof open);
    return open(device_index, err);
  }
  rl_fail(err, RL_ERRNO, ENOENT, "rooflined-cupti.so is not installed beside the worker or in ../lib/rooflined");
  return NULL;
}
