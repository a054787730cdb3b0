/* A device of NVML whose links are as the test says. */
#ifndef RL_TESTS_FAKE_NVML_H
#define RL_TESTS_FAKE_NVML_H

#include <stdbool.h>

enum { FAKE_LINKS_MOST = 4 };

typedef struct fake_link {
  bool active;
  int remote_type;    /* 0: a GPU, 2: a switch */
  const char *remote; /* PCI address of what it leads to */
} fake_link;

extern struct fake_nvml {
  int count_result; /* nvmlReturn_t of asking how many links there are; 0: link_count */
  unsigned link_count;
  fake_link links[FAKE_LINKS_MOST];
} fake_nvml;

#endif
