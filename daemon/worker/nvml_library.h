/* Loads NVML, which is part of the driver, at run time, so that our programs also run on machines without the driver. Callers
 * declare the NVML functions and types that they use, as in NVIDIA's "NVML API Reference Guide". */
#ifndef RL_WORKER_NVML_LIBRARY_H
#define RL_WORKER_NVML_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "model/records.h"

typedef void *rl_nvml_device;
typedef int rl_nvml_return; /* 0: success */

typedef struct rl_nvml {
  void *library;
  rl_nvml_device device;
  char reason[RL_REASON_SIZE]; /* reason why the device is not available; "": it is available */
  rl_nvml_return (*shutdown)(void);
  const char *(*error_text)(rl_nvml_return);
} rl_nvml;

typedef struct rl_nvml_symbol {
  const char *name;
  void *function; /* address of the caller's function pointer, which is set; set to NULL if an optional function is missing */
  bool required;
} rl_nvml_symbol;

/* Loads NVML, resolves the symbols and finds the device with this UUID. If a step fails, nvml->reason has the error message. */
void rl_nvml_open(rl_nvml *nvml, const char *uuid, const rl_nvml_symbol *symbols, size_t count);
void rl_nvml_close(rl_nvml *nvml);

#endif
