/* Decodes variants, gives them default names, and translates them to NVRTC options. */
#include "source/variants.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const rl_field rl_source_variant_fields[] = {
    RL_FIELD(rl_source_variant, name, RL_FIELD_TEXT, .summary = "name of the variant; default: made from its other members"),
    RL_FIELD(rl_source_variant, fast_math, RL_FIELD_BOOL, .summary = "-use_fast_math"),
    RL_FIELD(rl_source_variant, max_registers, RL_FIELD_INT, .minimum = 0, .maximum = 255,
             .summary = "registers of a thread, at least 16; default 0: no limit"),
    RL_FIELD(rl_source_variant, launch_bounds, RL_FIELD_INTS, .minimum = 0, .maximum = 1024,
             .summary = "maximum threads of a block, minimum blocks of an SM; __launch_bounds__ in the code takes precedence"),
    RL_FIELD(rl_source_variant, defines, RL_FIELD_ARRAY, .maximum = 16, .summary = "macros: NAME or NAME=VALUE"),
    {0}};

static void append_name(rl_source_variant *variant, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append_name(rl_source_variant *variant, const char *format, ...) {
  size_t used = strlen(variant->name);
  if (used > 0 && used + 1 < sizeof variant->name) variant->name[used++] = ',';
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(variant->name + used, sizeof variant->name - used, format, arguments);
  va_end(arguments);
}

static void set_default_name(rl_source_variant *variant) {
  const cJSON *define;
  if (variant->fast_math) append_name(variant, "fast_math");
  if (variant->max_registers > 0) append_name(variant, "max_registers=%lld", (long long)variant->max_registers);
  if (variant->launch_bounds[0] > 0) append_name(variant, "launch_bounds=%lld", (long long)variant->launch_bounds[0]);
  cJSON_ArrayForEach (define, variant->defines) append_name(variant, "%s", define->valuestring);
  if (variant->name[0] == '\0') append_name(variant, "default");
}

static int check_macros(const cJSON *defines, const char *pointer, rl_error *err) {
  rl_source_options options = {0};
  char member_pointer[RL_SOURCE_POINTER_SIZE];
  const cJSON *each;
  int index = 0;
  cJSON_ArrayForEach (each, defines) {
    snprintf(member_pointer, sizeof member_pointer, "%s/defines/%d", pointer, index++);
    if (!cJSON_IsString(each)) return rl_fail_at(err, member_pointer, "a macro must be a string");
    if (rl_source_options_add_macro(&options, each->valuestring, member_pointer, err) < 0) return -1;
  }
  return 0;
}

static int decode_variant(const cJSON *object, int index, rl_source *source, rl_error *err) {
  char pointer[32], member_pointer[RL_SOURCE_POINTER_SIZE];
  rl_source_variant *variant = &source->variants[index];
  snprintf(pointer, sizeof pointer, "/variants/%d", index);
  if (rl_fields_decode(rl_source_variant_fields, object, pointer, variant, sizeof *variant, err) < 0 ||
      check_macros(variant->defines, pointer, err) < 0)
    return -1;
  if (variant->max_registers > 0 && variant->max_registers < 16) {
    snprintf(member_pointer, sizeof member_pointer, "%s/max_registers", pointer);
    return rl_fail_at(err, member_pointer, "max_registers must be 0 or at least 16");
  }
  if (variant->name[0] == '\0') set_default_name(variant);
  for (int before = 0; before < index; before++)
    if (strcmp(source->variants[before].name, variant->name) == 0) {
      snprintf(member_pointer, sizeof member_pointer, "%s/name", pointer);
      return rl_fail_at(err, member_pointer, "two variants have the name %s", variant->name);
    }
  return 0;
}

static int add_posted_options(const rl_source_request *request, rl_source_options *options, rl_error *err) {
  char pointer[32];
  const cJSON *each;
  int index = 0;
  cJSON_ArrayForEach (each, request->options) {
    snprintf(pointer, sizeof pointer, "/options/%d", index++);
    if (!cJSON_IsString(each)) return rl_fail_at(err, pointer, "an option must be a string");
    if (rl_source_options_add(options, each->valuestring, pointer, err) < 0) return -1;
  }
  return 0;
}

int rl_source_decode_variants(rl_source *source, rl_error *err) {
  rl_source_options options;
  const cJSON *each;
  int count = 0;
  cJSON_ArrayForEach (each, source->request.variants)
    if (decode_variant(each, count++, source, err) < 0) return -1;
  if (count == 0) set_default_name(&source->variants[count++]);
  source->variant_count = count;
  for (int i = 0; i < count; i++)
    if (rl_source_compile_options(source, i, &options, err) < 0) return -1;
  return 0;
}

int rl_source_compile_options(const rl_source *source, int index, rl_source_options *options, rl_error *err) {
  const rl_source_variant *variant = &source->variants[index];
  const struct {
    bool is_set;
    const char *option;
    long long value;
  } limits[] = {{variant->max_registers > 0, "--maxrregcount=", variant->max_registers},
                {variant->launch_bounds[0] > 0, "--ptxas-options=--maxntid=", variant->launch_bounds[0]},
                {variant->launch_bounds[1] > 0, "--ptxas-options=--minnctapersm=", variant->launch_bounds[1]}};
  const cJSON *define;
  *options = (rl_source_options){0};
  if (add_posted_options(&source->request, options, err) < 0) return -1;
  if (variant->fast_math && rl_source_options_append(options, "/variants", err, "--use_fast_math") < 0) return -1;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    if (limits[i].is_set && rl_source_options_append(options, "/variants", err, "%s%lld", limits[i].option, limits[i].value) < 0)
      return -1;
  cJSON_ArrayForEach (define, variant->defines)
    if (rl_source_options_add_macro(options, define->valuestring, "/variants", err) < 0) return -1;
  return 0;
}
