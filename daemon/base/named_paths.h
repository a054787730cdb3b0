/* A list of named folders, "v1=/opt/v1/libexec,v2=/opt/v2/libexec". Stateless. */
#ifndef RL_BASE_NAMED_PATHS_H
#define RL_BASE_NAMED_PATHS_H

#include <stdbool.h>
#include <stddef.h>

enum { RL_PATH_NAME_SIZE = 65 };

/* Checks a list. Returns NULL if it is valid, else a message. Each item needs a unique name of 1 to 64 lower-case letters,
 * digits, "_", "-" and ".", and an absolute path. "" is a list without items. */
const char *rl_named_paths_check(const char *list);
/* Copies the path of a name. Returns false if the list does not have the name, or the path does not fit. */
bool rl_named_paths_find(const char *list, const char *name, char *path, size_t size);

#endif
