/* Parses a list of named folders, such as "v1=/opt/v1/libexec,v2=/opt/v2/libexec": the setting `builds`. Stateless. */
#ifndef RL_BASE_NAMED_PATHS_H
#define RL_BASE_NAMED_PATHS_H

#include <stdbool.h>
#include <stddef.h>

enum { RL_PATH_NAME_SIZE = 65 };

/* Checks a list. Returns NULL if the list is valid, else the problem as a predicate, such as "has a name twice", before which the
 * caller writes the name of the setting. Each item needs a unique name of 1 to 64 lower-case letters, digits, "_", "-" and ".",
 * and an absolute path. "" is a valid list without items. */
const char *rl_named_paths_check(const char *list);
/* Copies the path with this name. Returns false if the list does not contain the name, or the path does not fit. */
bool rl_named_paths_find(const char *list, const char *name, char *path, size_t size);

#endif
