/* Reads the first word of the file rooflined-token below $CREDENTIALS_DIRECTORY. */
#include "api/client/credential.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

int rl_credential_read_token(char *token, size_t size, rl_error *err) {
  const char *folder = getenv("CREDENTIALS_DIRECTORY");
  char path[PATH_MAX], line[512] = "";
  if (folder == NULL || snprintf(path, sizeof path, "%s/rooflined-token", folder) >= (int)sizeof path) folder = NULL;
  RL_CLEANUP(close_file) FILE *file = folder != NULL ? fopen(path, "re") : NULL;
  if (folder != NULL && file == NULL && errno != ENOENT) return rl_fail_errno(err, "%.200s", path);
  if (file != NULL && fgets(line, sizeof line, file) == NULL && ferror(file)) return rl_fail_errno(err, "%.200s", path);
  const char *begin = line + strspn(line, " \t\r\n");
  const size_t length = strcspn(begin, " \t\r\n");
  if (length >= size) return rl_fail(err, RL_ERRNO, EMSGSIZE, "%.200s: a token has fewer than %zu characters", path, size);
  memcpy(token, begin, length);
  token[length] = '\0';
  return 0;
}
