#include "source/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFINE_LONGEST = 512 };

static const char *const booleans[] = {"true", "false", NULL};
static const char *const standards[] = {"c++11", "c++14", "c++17", "c++20", NULL};

static const struct option {
  const char *name;          /* after one dash or two */
  const char *meaning;       /* to NVRTC; the value follows */
  const char *const *values; /* NULL: none, or a number */
  int least, most;           /* of the number; both 0: it takes no value */
} options_allowed[] = {
    {"use_fast_math", "--use_fast_math"},
    {"maxrregcount", "--maxrregcount=", .least = 16, .most = 255},
    {"std", "--std=", standards},
    {"lineinfo", "--generate-line-info"},
    {"generate-line-info", "--generate-line-info"},
    {"fmad", "--fmad=", booleans},
    {"ftz", "--ftz=", booleans},
    {"prec-div", "--prec-div=", booleans},
    {"prec-sqrt", "--prec-sqrt=", booleans},
    {"extra-device-vectorization", "--extra-device-vectorization"},
    {"O0", "--ptxas-options=-O0"},
    {"O1", "--ptxas-options=-O1"},
    {"O2", "--ptxas-options=-O2"},
    {"O3", "--ptxas-options=-O3"},
};

int rl_source_option_put(rl_source_options *options, const char *at, rl_error *err, const char *format, ...) {
  size_t room = sizeof options->text - options->used;
  va_list arguments;
  va_start(arguments, format);
  size_t length = (size_t)vsnprintf(options->text + options->used, room, format, arguments);
  va_end(arguments);
  if (length >= room || options->count == RL_SOURCE_OPTION_ROOM)
    return rl_fail_at(err, at, "there are too many options, or they are too long");
  options->items[options->count++] = options->text + options->used;
  options->used += length + 1;
  return 0;
}

int rl_source_define_add(rl_source_options *options, const char *define, const char *at, rl_error *err) {
  size_t name = 0, length = strlen(define);
  while (isalnum((unsigned char)define[name]) || define[name] == '_') name++;
  bool plain = length <= DEFINE_LONGEST;
  for (size_t i = 0; i < length; i++) plain = plain && define[i] >= ' ' && define[i] <= '~';
  if (name == 0 || isdigit((unsigned char)define[0]) || (define[name] != '=' && define[name] != '\0') || !plain)
    return rl_fail_at(err, at, "a macro is NAME or NAME=VALUE on one line, at most %d bytes", DEFINE_LONGEST);
  return rl_source_option_put(options, at, err, "--define-macro=%s", define);
}

static bool listed(const char *const *values, const char *value) {
  for (; *values != NULL; values++)
    if (strcmp(*values, value) == 0) return true;
  return false;
}

static int add_known(rl_source_options *options, const struct option *known, const char *value, const char *at, rl_error *err) {
  if (known->values == NULL && known->most == 0) {
    if (value != NULL) return rl_fail_at(err, at, "%s takes no value", known->name);
    return rl_source_option_put(options, at, err, "%s", known->meaning);
  }
  if (known->values != NULL) {
    if (value == NULL || !listed(known->values, value))
      return rl_fail_at(err, at, "%s must be one of: %s, %s%s", known->name, known->values[0], known->values[1],
                        known->values[2] != NULL ? ", ..." : "");
    return rl_source_option_put(options, at, err, "%s%s", known->meaning, value);
  }
  char *end = NULL;
  long number = value != NULL ? strtol(value, &end, 10) : 0;
  if (value == NULL || !isdigit((unsigned char)*value) || *end != '\0' || number < known->least || number > known->most)
    return rl_fail_at(err, at, "%s must be a whole number from %d to %d", known->name, known->least, known->most);
  return rl_source_option_put(options, at, err, "%s%ld", known->meaning, number);
}

int rl_source_option_add(rl_source_options *options, const char *asked, const char *at, rl_error *err) {
  if (strncmp(asked, "-D", 2) == 0) return rl_source_define_add(options, asked + 2, at, err);
  if (strncmp(asked, "--define-macro=", 15) == 0) return rl_source_define_add(options, asked + 15, at, err);
  const char *name = asked + (asked[0] == '-') + (asked[0] == '-' && asked[1] == '-');
  size_t length = strcspn(name, "=");
  const char *value = name[length] == '=' ? name + length + 1 : NULL;
  for (size_t i = 0; asked[0] == '-' && i < sizeof options_allowed / sizeof *options_allowed; i++)
    if (strlen(options_allowed[i].name) == length && strncmp(options_allowed[i].name, name, length) == 0)
      return add_known(options, &options_allowed[i], value, at, err);
  return rl_fail_at(err, at, "%.40s is not an option that may be asked for; they are " RL_SOURCE_OPTIONS_SUMMARY, asked);
}
