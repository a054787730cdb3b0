/* The strings of one trace without duplicates, demangled. CUPTI returns the same pointer for a kernel's name in every record, so
 * the table hashes the pointer. It compares the string too, because CUPTI may reuse an address for another string. */
#ifndef RL_CUPTI_NAME_TABLE_H
#define RL_CUPTI_NAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_name_entry {
  char *mangled;   /* the name that CUPTI returned */
  char *demangled; /* equal to the pointer `mangled` if the name is not a mangled name */
} rl_name_entry;

typedef struct rl_name_table {
  rl_name_entry *items;
  size_t count, capacity;
  struct rl_name_slot {
    const char *key;             /* address of the string that CUPTI returned */
    uint32_t index;              /* into items */
  } * slots;                     /* open addressing; key NULL: empty */
  size_t slot_count, used_slots; /* slot_count: a power of two */
} rl_name_table;

/* Sets *index to the index of the name's entry, which it adds when the name is new. Names with the same demangled text share an
 * entry. */
int rl_name_table_intern(rl_name_table *names, const char *mangled, uint32_t *index, rl_error *err);
void rl_name_table_clear(rl_name_table *names);

#endif
