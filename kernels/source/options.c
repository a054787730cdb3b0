/* Implements options.h. The table allowed_options has the allowed options and the NVRTC option of each. */
#include "source/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MACRO_LENGTH = 512 };

static const char *const boolean_values[] = {"true", "false", NULL};
static const char *const standard_values[] = {"c++11", "c++14", "c++17", "c++20", NULL};

static const struct allowed_option {
  const char *name;          /* without dashes */
  const char *nvrtc_option;  /* the value is appended to it */
  const char *const *values; /* allowed values; NULL: the option takes an integer or no value */
  int minimum, maximum;      /* of the integer; both 0: the option takes no value */
} allowed_options[] = {
    {"use_fast_math", "--use_fast_math"},
    {"maxrregcount", "--maxrregcount=", .minimum = 16, .maximum = 255},
    {"std", "--std=", standard_values},
    {"lineinfo", "--generate-line-info"},
    {"generate-line-info", "--generate-line-info"},
    {"fmad", "--fmad=", boolean_values},
    {"ftz", "--ftz=", boolean_values},
    {"prec-div", "--prec-div=", boolean_values},
    {"prec-sqrt", "--prec-sqrt=", boolean_values},
    {"extra-device-vectorization", "--extra-device-vectorization"},
    {"O0", "--ptxas-options=-O0"},
    {"O1", "--ptxas-options=-O1"},
    {"O2", "--ptxas-options=-O2"},
    {"O3", "--ptxas-options=-O3"},
};

int rl_source_options_append(rl_source_options *options, const char *pointer, rl_error *err, const char *format, ...) {
  size_t capacity = sizeof options->text - options->used_bytes;
  va_list arguments;
  va_start(arguments, format);
  size_t length = (size_t)vsnprintf(options->text + options->used_bytes, capacity, format, arguments);
  va_end(arguments);
  if (length >= capacity || options->count == RL_SOURCE_NVRTC_OPTIONS_MAX)
    return rl_fail_at(err, pointer, "there are too many options, or they are too long");
  options->items[options->count++] = options->text + options->used_bytes;
  options->used_bytes += length + 1;
  return 0;
}

int rl_source_options_add_macro(rl_source_options *options, const char *macro, const char *pointer, rl_error *err) {
  size_t name_length = 0, length = strlen(macro);
  while (isalnum((unsigned char)macro[name_length]) || macro[name_length] == '_') name_length++;
  bool is_printable = length <= MAX_MACRO_LENGTH;
  for (size_t i = 0; i < length; i++) is_printable = is_printable && macro[i] >= ' ' && macro[i] <= '~';
  if (name_length == 0 || isdigit((unsigned char)macro[0]) || (macro[name_length] != '=' && macro[name_length] != '\0') ||
      !is_printable)
    return rl_fail_at(err, pointer, "a macro is NAME or NAME=VALUE on one line, at most %d bytes", MAX_MACRO_LENGTH);
  return rl_source_options_append(options, pointer, err, "--define-macro=%s", macro);
}

static bool is_listed(const char *const *values, const char *value) {
  for (; *values != NULL; values++)
    if (strcmp(*values, value) == 0) return true;
  return false;
}

static int add_allowed(rl_source_options *options, const struct allowed_option *allowed, const char *value, const char *pointer,
                       rl_error *err) {
  if (allowed->values == NULL && allowed->maximum == 0) {
    if (value != NULL) return rl_fail_at(err, pointer, "%s takes no value", allowed->name);
    return rl_source_options_append(options, pointer, err, "%s", allowed->nvrtc_option);
  }
  if (allowed->values != NULL) {
    if (value == NULL || !is_listed(allowed->values, value))
      return rl_fail_at(err, pointer, "%s must be one of: %s, %s%s", allowed->name, allowed->values[0], allowed->values[1],
                        allowed->values[2] != NULL ? ", ..." : "");
    return rl_source_options_append(options, pointer, err, "%s%s", allowed->nvrtc_option, value);
  }
  char *end = NULL;
  long number = value != NULL ? strtol(value, &end, 10) : 0;
  if (value == NULL || !isdigit((unsigned char)*value) || *end != '\0' || number < allowed->minimum || number > allowed->maximum)
    return rl_fail_at(err, pointer, "%s must be an integer from %d to %d", allowed->name, allowed->minimum, allowed->maximum);
  return rl_source_options_append(options, pointer, err, "%s%ld", allowed->nvrtc_option, number);
}

int rl_source_options_add(rl_source_options *options, const char *option, const char *pointer, rl_error *err) {
  if (strncmp(option, "-D", 2) == 0) return rl_source_options_add_macro(options, option + 2, pointer, err);
  if (strncmp(option, "--define-macro=", 15) == 0) return rl_source_options_add_macro(options, option + 15, pointer, err);
  const char *name = option + (option[0] == '-') + (option[0] == '-' && option[1] == '-');
  size_t length = strcspn(name, "=");
  const char *value = name[length] == '=' ? name + length + 1 : NULL;
  for (size_t i = 0; option[0] == '-' && i < sizeof allowed_options / sizeof *allowed_options; i++)
    if (strlen(allowed_options[i].name) == length && strncmp(allowed_options[i].name, name, length) == 0)
      return add_allowed(options, &allowed_options[i], value, pointer, err);
  return rl_fail_at(err, pointer, "option %.40s is not allowed; allowed are " RL_SOURCE_OPTIONS_SUMMARY, option);
}
