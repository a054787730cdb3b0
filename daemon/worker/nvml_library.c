/* Opens libnvidia-ml.so with dlopen, resolves the caller's table of symbols, and finds the device by its UUID. */
#include "worker/nvml_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Sets the reason to `message`. Appends NVML's text for rc, unless rc is 0. */
static void set_reason(rl_nvml *nvml, const char *message, rl_nvml_return rc) {
  const char *text = rc && nvml->error_text ? nvml->error_text(rc) : NULL;
  snprintf(nvml->reason, sizeof nvml->reason, "%s%s%s", message, text ? ": " : "", text ? text : "");
}

static bool find_symbols(rl_nvml *nvml, const rl_nvml_symbol *symbols, size_t count) {
  for (size_t i = 0; i < count; i++) {
    void *address = dlsym(nvml->library, symbols[i].name);
    memcpy(symbols[i].function, &address, sizeof address);
    if (address || !symbols[i].required) continue;
    snprintf(nvml->reason, sizeof nvml->reason, "libnvidia-ml.so.1 lacks %s", symbols[i].name);
    return false;
  }
  return true;
}

static void find_device(rl_nvml *nvml, const char *uuid, rl_nvml_return (*init)(void),
                        rl_nvml_return (*by_uuid)(const char *, rl_nvml_device *)) {
  rl_nvml_return rc = init();
  if (rc) {
    nvml->shutdown = NULL; /* NVML is not initialised */
    set_reason(nvml, "NVML cannot be initialised", rc);
    return;
  }
  rc = by_uuid(uuid, &nvml->device);
  if (rc) set_reason(nvml, "NVML does not know the device", rc);
}

void rl_nvml_open(rl_nvml *nvml, const char *uuid, const rl_nvml_symbol *symbols, size_t count) {
  rl_nvml_return (*init)(void), (*by_uuid)(const char *, rl_nvml_device *);
  *nvml = (rl_nvml){0};
  const rl_nvml_symbol common_symbols[] = {{"nvmlInit_v2", &init, true},
                                           {"nvmlShutdown", &nvml->shutdown, true},
                                           {"nvmlDeviceGetHandleByUUID", &by_uuid, true},
                                           {"nvmlErrorString", &nvml->error_text, true}};
  if (!uuid[0]) {
    set_reason(nvml, "the device's UUID is not known", 0);
    return;
  }
  nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!nvml->library) set_reason(nvml, "libnvidia-ml.so.1 is not installed", 0);
  else if (find_symbols(nvml, common_symbols, sizeof common_symbols / sizeof *common_symbols) &&
           find_symbols(nvml, symbols, count))
    find_device(nvml, uuid, init, by_uuid);
  else nvml->shutdown = NULL;
}

void rl_nvml_close(rl_nvml *nvml) {
  if (nvml->shutdown) nvml->shutdown();
  if (nvml->library) dlclose(nvml->library);
  *nvml = (rl_nvml){0};
}
