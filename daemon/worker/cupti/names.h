/* The strings of one trace, each kept once. CUPTI hands out the same pointer for the same kernel again and again, so the
 * pointer is the key; what it points to is compared all the same, since a pointer may be used again for something else. */
#ifndef RL_CUPTI_NAMES_H
#define RL_CUPTI_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_name {
  char *raw;  /* as CUPTI gave it */
  char *text; /* demangled; the same pointer as raw where there was nothing to do */
} rl_name;

typedef struct rl_names {
  rl_name *items;
  size_t count, capacity;
  struct rl_name_slot {
    const char *key;
    uint32_t index;
  } * slots;               /* open addressing; key NULL: empty */
  size_t slot_count, used; /* slot_count: a power of two */
} rl_names;

/* *index of raw's entry, made when it is new. Names that demangle to the same text share an entry. */
int rl_names_find(rl_names *names, const char *raw, uint32_t *index, rl_error *err);
void rl_names_clear(rl_names *names);

#endif
