/* The ways in which posted code is compiled: their names, and what the compiler is told for each. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "source/parts.h"

const rl_field rl_source_variant_fields[] = {
    RL_FIELD(rl_source_variant, name, RL_FIELD_TEXT, .summary = "default: what it changes"),
    RL_FIELD(rl_source_variant, fast_math, RL_FIELD_BOOL, .summary = "-use_fast_math"),
    RL_FIELD(rl_source_variant, max_registers, RL_FIELD_INT, .minimum = 0, .maximum = 255,
             .summary = "of a thread; default 0: as many as the compiler likes; at least 16"),
    RL_FIELD(rl_source_variant, launch_bounds, RL_FIELD_INTS, .minimum = 0, .maximum = 1024,
             .summary = "threads of a block, and blocks on a multiprocessor; where the code has __launch_bounds__, that holds"),
    RL_FIELD(rl_source_variant, defines, RL_FIELD_ARRAY, .maximum = 16, .summary = "macros: NAME or NAME=VALUE"),
    {0}};

static void name_more(rl_source_variant *variant, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void name_more(rl_source_variant *variant, const char *format, ...) {
  size_t used = strlen(variant->name);
  if (used > 0 && used + 1 < sizeof variant->name) variant->name[used++] = ',';
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(variant->name + used, sizeof variant->name - used, format, arguments);
  va_end(arguments);
}

static void name_variant(rl_source_variant *variant) {
  const cJSON *define;
  if (variant->fast_math) name_more(variant, "fast_math");
  if (variant->max_registers > 0) name_more(variant, "max_registers=%lld", (long long)variant->max_registers);
  if (variant->launch_bounds[0] > 0) name_more(variant, "launch_bounds=%lld", (long long)variant->launch_bounds[0]);
  cJSON_ArrayForEach (define, variant->defines) name_more(variant, "%s", define->valuestring);
  if (variant->name[0] == '\0') name_more(variant, "default");
}

static int check_defines(const cJSON *defines, const char *at, rl_error *err) {
  rl_source_options options = {0};
  char where[RL_SOURCE_WHERE_SIZE];
  const cJSON *each;
  int index = 0;
  cJSON_ArrayForEach (each, defines) {
    snprintf(where, sizeof where, "%s/defines/%d", at, index++);
    if (!cJSON_IsString(each)) return rl_fail_at(err, where, "a macro must be a string");
    if (rl_source_define_add(&options, each->valuestring, where, err) < 0) return -1;
  }
  return 0;
}

static int check_variant(const cJSON *object, int index, rl_source *source, rl_error *err) {
  char at[32], where[RL_SOURCE_WHERE_SIZE];
  rl_source_variant *variant = &source->variants[index];
  snprintf(at, sizeof at, "/variants/%d", index);
  if (rl_fields_decode(rl_source_variant_fields, object, at, variant, sizeof *variant, err) < 0 ||
      check_defines(variant->defines, at, err) < 0)
    return -1;
  if (variant->max_registers > 0 && variant->max_registers < 16) {
    snprintf(where, sizeof where, "%s/max_registers", at);
    return rl_fail_at(err, where, "max_registers must be 0 or at least 16");
  }
  if (variant->name[0] == '\0') name_variant(variant);
  for (int before = 0; before < index; before++)
    if (strcmp(source->variants[before].name, variant->name) == 0) {
      snprintf(where, sizeof where, "%s/name", at);
      return rl_fail_at(err, where, "two variants have the name %s", variant->name);
    }
  return 0;
}

static int check_options(const rl_source_request *said, rl_source_options *options, rl_error *err) {
  char at[32];
  const cJSON *each;
  int index = 0;
  cJSON_ArrayForEach (each, said->options) {
    snprintf(at, sizeof at, "/options/%d", index++);
    if (!cJSON_IsString(each)) return rl_fail_at(err, at, "an option must be a string");
    if (rl_source_option_add(options, each->valuestring, at, err) < 0) return -1;
  }
  return 0;
}

int rl_source_take_variants(rl_source *source, rl_error *err) {
  rl_source_options options;
  const cJSON *each;
  int count = 0;
  cJSON_ArrayForEach (each, source->request.variants)
    if (check_variant(each, count++, source, err) < 0) return -1;
  if (count == 0) name_variant(&source->variants[count++]);
  source->variant_count = count;
  for (int i = 0; i < count; i++)
    if (rl_source_compile_options(source, i, &options, err) < 0) return -1;
  return 0;
}

int rl_source_compile_options(const rl_source *source, int index, rl_source_options *options, rl_error *err) {
  const rl_source_variant *variant = &source->variants[index];
  const struct {
    bool wanted;
    const char *option;
    long long value;
  } own[] = {{variant->max_registers > 0, "--maxrregcount=", variant->max_registers},
             {variant->launch_bounds[0] > 0, "--ptxas-options=--maxntid=", variant->launch_bounds[0]},
             {variant->launch_bounds[1] > 0, "--ptxas-options=--minnctapersm=", variant->launch_bounds[1]}};
  const cJSON *define;
  *options = (rl_source_options){0};
  if (check_options(&source->request, options, err) < 0) return -1;
  if (variant->fast_math && rl_source_option_put(options, "/variants", err, "--use_fast_math") < 0) return -1;
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].wanted && rl_source_option_put(options, "/variants", err, "%s%lld", own[i].option, own[i].value) < 0) return -1;
  cJSON_ArrayForEach (define, variant->defines)
    if (rl_source_define_add(options, define->valuestring, "/variants", err) < 0) return -1;
  return 0;
}
