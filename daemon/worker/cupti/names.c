#include "worker/cupti/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The C++ ABI's, from the C++ runtime library. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

static size_t slot_of(const rl_names *names, const char *key) {
  uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
  size_t at = (size_t)(hash >> 32) & (names->slot_count - 1);
  while (names->slots[at].key != NULL && names->slots[at].key != key) at = (at + 1) & (names->slot_count - 1);
  return at;
}

static int grow_slots(rl_names *names, rl_error *err) {
  size_t count = names->slot_count == 0 ? 256 : 2 * names->slot_count;
  struct rl_name_slot *old = names->slots, *slots = calloc(count, sizeof *slots);
  if (slots == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for kernel names");
  size_t old_count = names->slot_count;
  names->slots = slots;
  names->slot_count = count;
  for (size_t i = 0; i < old_count; i++)
    if (old[i].key != NULL) slots[slot_of(names, old[i].key)] = old[i];
  free(old);
  return 0;
}

static void free_name(rl_name *name) {
  if (name->text != name->raw) free(name->text);
  free(name->raw);
}

static int add(rl_names *names, const char *raw, uint32_t *index, rl_error *err) {
  int status = 0;
  rl_name name = {.raw = strdup(raw)};
  name.text = strncmp(raw, "_Z", 2) == 0 ? __cxa_demangle(raw, NULL, NULL, &status) : NULL;
  if (name.text == NULL) name.text = name.raw;
  for (size_t i = 0; name.text != NULL && i < names->count; i++)
    if (strcmp(names->items[i].text, name.text) == 0) {
      free_name(&name);
      *index = (uint32_t)i;
      return 0;
    }
  if (name.raw != NULL && names->count == names->capacity) {
    size_t capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
    rl_name *items = realloc(names->items, capacity * sizeof *items);
    if (items != NULL) {
      names->items = items;
      names->capacity = capacity;
    }
  }
  if (name.raw == NULL || names->count == names->capacity) {
    if (name.raw != NULL) free_name(&name);
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for kernel names");
  }
  names->items[names->count] = name;
  *index = (uint32_t)names->count++;
  return 0;
}

int rl_names_find(rl_names *names, const char *raw, uint32_t *index, rl_error *err) {
  if (2 * names->used >= names->slot_count && grow_slots(names, err) != 0) return -1;
  struct rl_name_slot *slot = &names->slots[slot_of(names, raw)];
  if (slot->key != NULL && strcmp(names->items[slot->index].raw, raw) == 0) {
    *index = slot->index;
    return 0;
  }
  uint32_t found = 0;
  if (add(names, raw, &found, err) != 0) return -1;
  if (slot->key == NULL) names->used++;
  *slot = (struct rl_name_slot){raw, found};
  *index = found;
  return 0;
}

void rl_names_clear(rl_names *names) {
  for (size_t i = 0; i < names->count; i++) free_name(&names->items[i]);
  free(names->items);
  free(names->slots);
  *names = (rl_names){0};
}
