/* Replaces the NVML library in tests by one that reports one device. Tests set its NVLinks and compute processes in
 * fake_nvml. */
#ifndef RL_TESTS_FAKE_NVML_H
#define RL_TESTS_FAKE_NVML_H

#include <stdbool.h>

enum { FAKE_MAX_LINKS = 4, FAKE_MAX_PROCESSES = 4 };

/* values of nvmlReturn_t */
enum { FAKE_NVML_SUCCESS = 0, FAKE_NVML_INVALID_ARGUMENT = 2, FAKE_NVML_NOT_SUPPORTED = 3, FAKE_NVML_UNKNOWN_ERROR = 999 };

/* values of nvmlIntNvLinkDeviceType_t */
enum { FAKE_REMOTE_GPU = 0, FAKE_REMOTE_SWITCH = 2 };

typedef struct fake_link {
  bool active;
  int remote_type;    /* FAKE_REMOTE_GPU or FAKE_REMOTE_SWITCH */
  const char *remote; /* PCI address of the other end */
} fake_link;

typedef struct fake_process { /* has the layout of nvmlProcessInfo_v2_t */
  unsigned pid;
  unsigned long long memory_bytes; /* ~0: not available */
  unsigned gpu_instance, compute_instance;
} fake_process;

extern struct fake_nvml {
  int count_result; /* what the query of link_count returns */
  unsigned link_count;
  fake_link links[FAKE_MAX_LINKS];
  int processes_result; /* what the query of processes returns */
  unsigned process_count;
  fake_process processes[FAKE_MAX_PROCESSES];
  int throttle_result; /* what the query of throttle_reasons returns */
  unsigned long long throttle_reasons;
} fake_nvml;

#endif
