/* A name table consists of an array of kernel names and a hash table with open addressing, which maps the address of a mangled
 * name to an index in the array. CUPTI passes the addresses and may reuse one for another name. Therefore a found entry counts
 * only if its text equals the name. */
#include "worker/cupti/name_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Function of the Itanium C++ ABI, defined in the C++ runtime library. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Returns the index of the key's slot or of the empty slot where it belongs. */
static size_t find_slot(const rl_name_table *names, const char *key) {
  uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
  size_t slot = (size_t)(hash >> 32) & (names->slot_count - 1);
  while (names->slots[slot].key != NULL && names->slots[slot].key != key) slot = (slot + 1) & (names->slot_count - 1);
  return slot;
}

static int grow_slots(rl_name_table *names, rl_error *err) {
  size_t count = names->slot_count == 0 ? 256 : 2 * names->slot_count;
  struct rl_name_slot *old = names->slots, *slots = calloc(count, sizeof *slots);
  if (slots == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for kernel names");
  size_t old_count = names->slot_count;
  names->slots = slots;
  names->slot_count = count;
  for (size_t i = 0; i < old_count; i++)
    if (old[i].key != NULL) slots[find_slot(names, old[i].key)] = old[i];
  free(old);
  return 0;
}

static void free_name(rl_name_entry *name) {
  if (name->demangled != name->mangled) free(name->demangled);
  free(name->mangled);
}

/* Adds a name, or finds the entry with the same demangled text. */
static int add_name(rl_name_table *names, const char *mangled, uint32_t *index, rl_error *err) {
  int status = 0;
  rl_name_entry name = {.mangled = strdup(mangled)};
  name.demangled = strncmp(mangled, "_Z", 2) == 0 ? __cxa_demangle(mangled, NULL, NULL, &status) : NULL;
  if (name.demangled == NULL) name.demangled = name.mangled;
  for (size_t i = 0; name.demangled != NULL && i < names->count; i++)
    if (strcmp(names->items[i].demangled, name.demangled) == 0) {
      free_name(&name);
      *index = (uint32_t)i;
      return 0;
    }
  if (name.mangled != NULL && names->count == names->capacity) {
    size_t capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
    rl_name_entry *items = realloc(names->items, capacity * sizeof *items);
    if (items != NULL) {
      names->items = items;
      names->capacity = capacity;
    }
  }
  if (name.mangled == NULL || names->count == names->capacity) {
    if (name.mangled != NULL) free_name(&name);
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for kernel names");
  }
  names->items[names->count] = name;
  *index = (uint32_t)names->count++;
  return 0;
}

int rl_name_table_intern(rl_name_table *names, const char *mangled, uint32_t *index, rl_error *err) {
  if (2 * names->used_slots >= names->slot_count && grow_slots(names, err) < 0) return -1;
  struct rl_name_slot *slot = &names->slots[find_slot(names, mangled)];
  if (slot->key != NULL && strcmp(names->items[slot->index].mangled, mangled) == 0) {
    *index = slot->index;
    return 0;
  }
  uint32_t found = 0;
  if (add_name(names, mangled, &found, err) < 0) return -1;
  if (slot->key == NULL) names->used_slots++;
  *slot = (struct rl_name_slot){mangled, found};
  *index = found;
  return 0;
}

void rl_name_table_clear(rl_name_table *names) {
  for (size_t i = 0; i < names->count; i++) free_name(&names->items[i]);
  free(names->items);
  free(names->slots);
  *names = (rl_name_table){0};
}
