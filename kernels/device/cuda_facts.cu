/* Properties of a CUDA device, its driver and the CUDA libraries. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/commit.h"
#include "base/fields.h"
#include "device/cuda.h"

typedef struct cuda_facts {
  char name[256], uuid[48], pci_bus[24], compute_capability[8], driver[24], driver_cuda[16], cuda_runtime[16], cudnn[64],
      cublas[64], compiler[24], commit[48];
  int64_t sm_count, memory_bytes, l2_bytes, shared_memory_per_sm_bytes, registers_per_sm, sm_clock_max_khz, memory_clock_max_khz,
      memory_bus_bits;
} cuda_facts;

#define FACT(MEMBER, TYPE) \
  { #MEMBER, TYPE, offsetof(cuda_facts, MEMBER), sizeof(((cuda_facts *)0)->MEMBER) }
static const rl_field cuda_facts_fields[] = {FACT(name, RL_FIELD_TEXT),
                                             FACT(uuid, RL_FIELD_TEXT),
                                             FACT(pci_bus, RL_FIELD_TEXT),
                                             FACT(compute_capability, RL_FIELD_TEXT),
                                             FACT(sm_count, RL_FIELD_INT),
                                             FACT(memory_bytes, RL_FIELD_INT),
                                             FACT(l2_bytes, RL_FIELD_INT),
                                             FACT(shared_memory_per_sm_bytes, RL_FIELD_INT),
                                             FACT(registers_per_sm, RL_FIELD_INT),
                                             FACT(sm_clock_max_khz, RL_FIELD_INT),
                                             FACT(memory_clock_max_khz, RL_FIELD_INT),
                                             FACT(memory_bus_bits, RL_FIELD_INT),
                                             FACT(driver, RL_FIELD_TEXT),
                                             FACT(driver_cuda, RL_FIELD_TEXT),
                                             FACT(cuda_runtime, RL_FIELD_TEXT),
                                             FACT(cudnn, RL_FIELD_TEXT),
                                             FACT(cublas, RL_FIELD_TEXT),
                                             FACT(compiler, RL_FIELD_TEXT),
                                             FACT(commit, RL_FIELD_TEXT),
                                             {}};

/* CUDA encodes version 13.0 as 13000. */
static void write_cuda_version(int version, char text[16]) { snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10); }

static void write_uuid(const cudaUUID_t *uuid, char text[48]) {
  int used = snprintf(text, 48, "GPU-");
  for (int i = 0; i < 16; i++)
    used += snprintf(text + used, 48 - (size_t)used, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                     (unsigned char)uuid->bytes[i]);
}

/* Writes the version of the driver's kernel module ("580.159.04") from /proc, because the CUDA API does not report it; "" when
 * the file is missing. */
static void write_driver_version(char *text, size_t size) {
  char line[256] = "";
  FILE *file = fopen("/proc/driver/nvidia/version", "re");
  text[0] = '\0';
  if (!file) return;
  if (fgets(line, sizeof line, file)) /* NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ... */
    for (char *rest = line, *word; (word = strtok_r(rest, " \t\n", &rest)) != NULL;)
      if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
        snprintf(text, size, "%s", word);
        break;
      }
  fclose(file);
}

static int64_t device_attribute(int index, cudaDeviceAttr attribute) {
  int value = 0;
  cudaDeviceGetAttribute(&value, attribute, index);
  return value;
}

char *rl_device_facts(int index, rl_error *err) {
  if (rl_cuda_check_index(index, err) < 0) return NULL;
  cudaDeviceProp properties;
  if (rl_cuda_ok(cudaGetDeviceProperties(&properties, index), "reading the device's properties", err) < 0) return NULL;
  cuda_facts facts = {};
  int driver = 0, runtime = 0;
  size_t cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  snprintf(facts.name, sizeof facts.name, "%s", properties.name);
  write_uuid(&properties.uuid, facts.uuid);
  cudaDeviceGetPCIBusId(facts.pci_bus, sizeof facts.pci_bus, index);
  snprintf(facts.compute_capability, sizeof facts.compute_capability, "%d.%d", properties.major, properties.minor);
  write_driver_version(facts.driver, sizeof facts.driver);
  write_cuda_version(driver, facts.driver_cuda);
  write_cuda_version(runtime, facts.cuda_runtime);
  snprintf(facts.cudnn, sizeof facts.cudnn, "%zu.%zu.%zu", cudnn / 10000, cudnn % 10000 / 100, cudnn % 100);
  snprintf(facts.cublas, sizeof facts.cublas, "%zu.%zu.%zu", cublas / 10000, cublas % 10000 / 100, cublas % 100);
  snprintf(facts.compiler, sizeof facts.compiler, "nvcc %d.%d.%d", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__,
           __CUDACC_VER_BUILD__);
  snprintf(facts.commit, sizeof facts.commit, "%s", RL_COMMIT);
  facts.sm_count = properties.multiProcessorCount;
  facts.memory_bytes = (int64_t)properties.totalGlobalMem;
  facts.l2_bytes = properties.l2CacheSize;
  facts.shared_memory_per_sm_bytes = (int64_t)properties.sharedMemPerMultiprocessor;
  facts.registers_per_sm = properties.regsPerMultiprocessor;
  facts.sm_clock_max_khz = device_attribute(index, cudaDevAttrClockRate);
  facts.memory_clock_max_khz = device_attribute(index, cudaDevAttrMemoryClockRate);
  facts.memory_bus_bits = properties.memoryBusWidth;
  char *text = rl_fields_print(cuda_facts_fields, &facts);
  if (!text) rl_fail(err, RL_SYS, ENOMEM, "out of memory for the device's properties");
  return text;
}
