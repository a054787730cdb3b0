/* Properties of a CUDA device, its driver and the CUDA libraries. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/commit.h"
#include "base/fields.h"
#include "device/cuda.h"

typedef struct cuda_properties {
  char name[256], uuid[48], pci_bus[24], compute_capability[8], driver[24], driver_cuda[16], cuda_runtime[16], cudnn[64],
      cublas[64], compiler[24], commit[48];
  int64_t sm_count, memory_bytes, l2_bytes, shared_memory_per_sm_bytes, registers_per_sm, sm_clock_max_khz, memory_clock_max_khz,
      memory_bus_bits;
} cuda_properties;

#define PROPERTY(MEMBER, TYPE) \
  { #MEMBER, TYPE, offsetof(cuda_properties, MEMBER), sizeof(((cuda_properties *)0)->MEMBER) }
static const rl_field cuda_properties_fields[] = {PROPERTY(name, RL_FIELD_TEXT),
                                                  PROPERTY(uuid, RL_FIELD_TEXT),
                                                  PROPERTY(pci_bus, RL_FIELD_TEXT),
                                                  PROPERTY(compute_capability, RL_FIELD_TEXT),
                                                  PROPERTY(sm_count, RL_FIELD_INT),
                                                  PROPERTY(memory_bytes, RL_FIELD_INT),
                                                  PROPERTY(l2_bytes, RL_FIELD_INT),
                                                  PROPERTY(shared_memory_per_sm_bytes, RL_FIELD_INT),
                                                  PROPERTY(registers_per_sm, RL_FIELD_INT),
                                                  PROPERTY(sm_clock_max_khz, RL_FIELD_INT),
                                                  PROPERTY(memory_clock_max_khz, RL_FIELD_INT),
                                                  PROPERTY(memory_bus_bits, RL_FIELD_INT),
                                                  PROPERTY(driver, RL_FIELD_TEXT),
                                                  PROPERTY(driver_cuda, RL_FIELD_TEXT),
                                                  PROPERTY(cuda_runtime, RL_FIELD_TEXT),
                                                  PROPERTY(cudnn, RL_FIELD_TEXT),
                                                  PROPERTY(cublas, RL_FIELD_TEXT),
                                                  PROPERTY(compiler, RL_FIELD_TEXT),
                                                  PROPERTY(commit, RL_FIELD_TEXT),
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

char *rl_device_properties(int index, rl_error *err) {
  if (rl_cuda_check_index(index, err) < 0) return NULL;
  cudaDeviceProp device;
  if (rl_cuda_check(cudaGetDeviceProperties(&device, index), "reading the device's properties", err) < 0) return NULL;
  cuda_properties properties = {};
  int driver = 0, runtime = 0;
  size_t cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  snprintf(properties.name, sizeof properties.name, "%s", device.name);
  write_uuid(&device.uuid, properties.uuid);
  cudaDeviceGetPCIBusId(properties.pci_bus, sizeof properties.pci_bus, index);
  snprintf(properties.compute_capability, sizeof properties.compute_capability, "%d.%d", device.major, device.minor);
  write_driver_version(properties.driver, sizeof properties.driver);
  write_cuda_version(driver, properties.driver_cuda);
  write_cuda_version(runtime, properties.cuda_runtime);
  snprintf(properties.cudnn, sizeof properties.cudnn, "%zu.%zu.%zu", cudnn / 10000, cudnn % 10000 / 100, cudnn % 100);
  snprintf(properties.cublas, sizeof properties.cublas, "%zu.%zu.%zu", cublas / 10000, cublas % 10000 / 100, cublas % 100);
  snprintf(properties.compiler, sizeof properties.compiler, "nvcc %d.%d.%d", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__,
           __CUDACC_VER_BUILD__);
  snprintf(properties.commit, sizeof properties.commit, "%s", RL_COMMIT);
  properties.sm_count = device.multiProcessorCount;
  properties.memory_bytes = (int64_t)device.totalGlobalMem;
  properties.l2_bytes = device.l2CacheSize;
  properties.shared_memory_per_sm_bytes = (int64_t)device.sharedMemPerMultiprocessor;
  properties.registers_per_sm = device.regsPerMultiprocessor;
  properties.sm_clock_max_khz = device_attribute(index, cudaDevAttrClockRate);
  properties.memory_clock_max_khz = device_attribute(index, cudaDevAttrMemoryClockRate);
  properties.memory_bus_bits = device.memoryBusWidth;
  char *text = rl_fields_print(cuda_properties_fields, &properties);
  if (!text) rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the device's properties");
  return text;
}
