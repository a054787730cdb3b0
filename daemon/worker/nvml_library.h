/* NVML comes with the driver: opened at run time, with our own declarations of the few functions that are used (documented in
 * NVIDIA's "NVML API Reference Guide"), so that a machine without the driver can run our programs. */
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
  char reason[RL_REASON_SIZE]; /* why there is no device; "" when there is */
  rl_nvml_return (*shutdown)(void);
  const char *(*error_text)(rl_nvml_return);
} rl_nvml;

typedef struct rl_nvml_symbol {
  const char *name;
  void *function; /* where its address goes; NULL there when the library lacks it and it is not required */
  bool required;
} rl_nvml_symbol;

/* The device behind a UUID ("" gives a reason), and the addresses of the functions asked for. */
void rl_nvml_open(rl_nvml *nvml, const char *uuid, const rl_nvml_symbol *symbols, size_t count);
void rl_nvml_close(rl_nvml *nvml);

#endif
