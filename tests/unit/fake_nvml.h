/* An NVML with one device, whose NVLinks a test sets in fake_nvml. */
#ifndef RL_TESTS_FAKE_NVML_H
#define RL_TESTS_FAKE_NVML_H

#include <stdbool.h>

enum { FAKE_MAX_LINKS = 4 };

typedef struct fake_link {
  bool active;
  int remote_type;    /* 0: a GPU, 2: a switch */
  const char *remote; /* PCI address of the other end */
} fake_link;

extern struct fake_nvml {
  int count_result; /* nvmlReturn_t of the query of link_count; 0: success */
  unsigned link_count;
  fake_link links[FAKE_MAX_LINKS];
} fake_nvml;

#endif
