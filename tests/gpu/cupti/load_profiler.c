/* Implements load_profiler.h: finds the profiler module's file and opens the module with dlopen. */
#include "load_profiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

rl_profiler *load_profiler(rl_error *err) {
  char self[4096] = "", path[4200];
  const char *module_path = getenv("ROOFLINED_CUPTI");
  if (module_path == NULL) {
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
      rl_fail_errno(err, "the folder of this program");
      return NULL;
    }
    snprintf(path, sizeof path, "%s/../bin/rooflined-cupti.so", dirname(self));
    module_path = path;
  }
  void *module = dlopen(module_path, RTLD_NOW | RTLD_LOCAL);
  rl_profiler_open_function open = NULL;
  if (module != NULL) *(void **)&open = dlsym(module, "rl_profiler_open");
  if (open != NULL) return open(0, err);
  rl_fail(err, RL_ERRNO, ENOENT, "%s", dlerror());
  return NULL;
}

rl_profiler *open_profiler(tiny_fixture *tiny) {
  rl_error err = {0}, no_device = {0};
  rl_profiler *profiler = load_profiler(&err);
  int found = tiny_open(tiny, &no_device);
  if (found == 1) {
    printf("skipped: %s\n", no_device.message);
    exit(SKIP);
  }
  check(found, "device", &no_device);
  check(profiler == NULL ? -1 : 0, "profiler", &err);
  profiler->device = &tiny->device;
  return profiler;
}

void check(int result, const char *what, const rl_error *err) {
  if (result == 0) return;
  fprintf(stderr, "%s: %s\n", what, err->message);
  exit(EXIT_FAILURE);
}
