/* Implements the functions of cli.h that report usage errors and check arguments. */
#include "api/client/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rl_fail_usage(rl_error *err, const char *format, ...) {
  char message[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return rl_fail(err, RL_INPUT, 0, "%s", message);
}

int rl_fail_argument(rl_error *err, const char *command, const char *word) {
  const char *complaint = word[0] == '-' ? "has no option" : "has an argument too many:";
  return rl_fail_usage(err, "%s %s %.60s; rooflinectl %s --help prints its usage", command, complaint, word, command);
}

int rl_parse_number(const char *text, long long minimum, const char *expected, long long *number, rl_error *err) {
  char *end = NULL;
  errno = 0;
  long long parsed = text != NULL ? strtoll(text, &end, 10) : 0;
  if (text == NULL) return rl_fail_usage(err, "this command needs %s", expected);
  if (end == text || *end != '\0' || parsed < minimum || errno != 0)
    return rl_fail_usage(err, "this command needs %s, not %.60s", expected, text);
  *number = parsed;
  return 0;
}

int rl_check_name(const char *name, const char *kind, rl_error *err) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  if (name == NULL) return rl_fail_usage(err, "this command needs the name of a %s", kind);
  const size_t length = strspn(name, letters);
  if (length > 0 && length <= 64 && name[length] == '\0' && *name != '_' && *name != '-') return 0;
  return rl_fail_usage(err, "%.80s is not a valid name of a %s: use at most 64 lower-case letters, digits, _ and -", name, kind);
}

int rl_parse_job_argument(const rl_cli *cli, long long *id, rl_error *err) {
  if (cli->argc > 1) return rl_fail_usage(err, "this command takes one job, not %.60s too", cli->argv[1]);
  return rl_parse_number(cli->argv[0], 1, "a job's number (rooflinectl list prints them)", id, err);
}
