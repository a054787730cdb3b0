/* Implements named_paths.h: reads the list in place, one entry after another. */
#include "base/named_paths.h"

#include <stdio.h>
#include <string.h>

typedef struct item {
  const char *name, *path;
  size_t name_length, path_length;
} item;

/* Reads the next item and advances *list past it. Returns false at the end of the list. The path of an item without "=" is
 * NULL. */
static bool next_item(const char **list, item *found) {
  if (**list == '\0') return false;
  const size_t length = strcspn(*list, ",");
  const char *equals = memchr(*list, '=', length);
  *found = (item){.name = *list, .name_length = length};
  if (equals != NULL) {
    found->name_length = (size_t)(equals - *list);
    found->path = equals + 1;
    found->path_length = length - found->name_length - 1;
  }
  *list += length + ((*list)[length] == ',');
  return true;
}

static bool has_name(const item *entry, const char *name, size_t length) {
  return entry->name_length == length && memcmp(entry->name, name, length) == 0;
}

const char *rl_named_paths_check(const char *list) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-.";
  item found, other;
  for (const char *rest = list; next_item(&rest, &found);) {
    if (found.path == NULL) return "has an item that is not NAME=FOLDER";
    if (found.name_length == 0 || found.name_length >= RL_PATH_NAME_SIZE || strspn(found.name, letters) < found.name_length)
      return "has a name that is not 1 to 64 lower-case letters, digits, _, - and .";
    if (found.path_length == 0 || found.path[0] != '/') return "has a path that is not absolute";
    for (const char *after = rest; next_item(&after, &other);)
      if (has_name(&other, found.name, found.name_length)) return "has a name twice";
  }
  return NULL;
}

bool rl_named_paths_find(const char *list, const char *name, char *path, size_t size) {
  item found;
  while (next_item(&list, &found))
    if (found.path != NULL && has_name(&found, name, strlen(name)) && found.path_length < size) {
      snprintf(path, size, "%.*s", (int)found.path_length, found.path);
      return true;
    }
  return false;
}
