#include "source/source.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

enum { WHERE_SIZE = 96, BLOCK_MOST = 1024, BLOCK_Z_MOST = 64, GRID_YZ_MOST = 65535 };

/* --- tables ------------------------------------------------------------------------------------------------------------ */

typedef struct argument_said {
  const cJSON *buffer, *scalar;
} argument_said;

typedef struct buffer_said {
  int dtype, init;
  int64_t count, seed; /* count 0: as many as there are bytes */
  const char *bytes;
} buffer_said;

typedef struct scalar_said {
  int dtype;
  double value;
} scalar_said;

typedef struct expected_said {
  int64_t argument;
  const char *values;
  double tolerance;
} expected_said;

static const char *const init_names[] = {"zeros", "ones", "range", "uniform", "normal", NULL};

static const rl_field buffer_fields[] = {
    RL_FIELD(buffer_said, dtype, RL_FIELD_CHOICE, .names = rl_source_type_names, .required = true, .summary = "of its elements"),
    RL_FIELD(buffer_said, count, RL_FIELD_INT, .minimum = 1, .maximum = 1099511627776.0,
             .summary = "elements; with bytes it may be left out"),
    RL_FIELD(buffer_said, init, RL_FIELD_CHOICE, .names = init_names,
             .summary =
                 "what it holds before a launch: default zeros; range counts from 0; uniform lies in [0, 1), of whole numbers "
                 "anywhere in the type; normal has mean 0 and deviation 1"),
    RL_FIELD(buffer_said, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "of uniform and normal, which differ between arguments too; default 1"),
    RL_FIELD(buffer_said, bytes, RL_FIELD_STRING, .maximum = RL_SOURCE_TEXT_MAX,
             .summary = "instead of init: the elements, little-endian, in base64"),
    {0}};

static const rl_field scalar_fields[] = {
    RL_FIELD(scalar_said, dtype, RL_FIELD_CHOICE, .names = rl_source_type_names, .required = true,
             .summary = "of the kernel's parameter"),
    RL_FIELD(scalar_said, value, RL_FIELD_REAL, .required = true, .summary = "within the type"),
    {0}};

const rl_field rl_source_argument_fields[] = {
    RL_FIELD(argument_said, buffer, RL_FIELD_OBJECT, .fields = buffer_fields,
             .summary = "memory of the device; the kernel gets its address"),
    RL_FIELD(argument_said, scalar, RL_FIELD_OBJECT, .fields = scalar_fields, .summary = "a number by value"),
    {0}};

const rl_field rl_source_variant_fields[] = {
    RL_FIELD(rl_source_variant, name, RL_FIELD_TEXT, .summary = "default: what it changes"),
    RL_FIELD(rl_source_variant, fast_math, RL_FIELD_BOOL, .summary = "-use_fast_math"),
    RL_FIELD(rl_source_variant, max_registers, RL_FIELD_INT, .minimum = 0, .maximum = 255,
             .summary = "of a thread; default 0: as many as the compiler likes; at least 16"),
    RL_FIELD(rl_source_variant, launch_bounds, RL_FIELD_INTS, .minimum = 0, .maximum = 1024,
             .summary = "threads of a block, and blocks on a multiprocessor; where the code has __launch_bounds__, that holds"),
    RL_FIELD(rl_source_variant, defines, RL_FIELD_ARRAY, .maximum = 16, .summary = "macros: NAME or NAME=VALUE"),
    {0}};

const rl_field rl_source_model_fields[] = {
    RL_FIELD(rl_source_model, bytes, RL_FIELD_REAL, .minimum = 0, .maximum = 1e18, .summary = "that one launch must move"),
    RL_FIELD(rl_source_model, operations, RL_FIELD_REAL, .minimum = 0, .maximum = 1e18,
             .summary = "that one launch must do; a fused one is two"),
    {0}};

const rl_field rl_source_expected_fields[] = {
    RL_FIELD(expected_said, argument, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = RL_SOURCE_ARGUMENTS - 1,
             .summary = "index of a buffer among the arguments"),
    RL_FIELD(expected_said, values, RL_FIELD_STRING, .required = true, .maximum = RL_SOURCE_TEXT_MAX,
             .summary = "its elements after one launch, little-endian, in base64"),
    RL_FIELD(expected_said, tolerance, RL_FIELD_REAL, .minimum = 0, .maximum = 1,
             .summary = "largest ‖result − values‖ / ‖values‖; default 1e-6"),
    {0}};

const rl_field rl_source_fields[] = {RL_SOURCE_FIELDS, {0}};
const rl_source_request rl_source_request_defaults = {.grid = {1, 1, 1}, .block = {1, 1, 1}};

/* --- parts ------------------------------------------------------------------------------------------------------------- */

/* Base64 text of at most `most` bytes; a NUL follows them. */
static int decode_bytes(const char *text, size_t most, const char *at, unsigned char **bytes, size_t *size, rl_error *err) {
  size_t length = strlen(text), room = length / 4 * 3 + 1;
  const char *end = NULL;
  unsigned char *made = malloc(room + 1);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a buffer");
  int rc = sodium_base642bin(made, room, text, length, NULL, size, &end, sodium_base64_VARIANT_ORIGINAL);
  if (rc != 0 || end != text + length || *size == 0 || *size > most) {
    free(made);
    return rc == 0 && *size > most ? rl_fail_at(err, at, "at most %zu bytes can be posted here", most)
                                   : rl_fail_at(err, at, "must be bytes in base64");
  }
  made[*size] = '\0';
  *bytes = made;
  return 0;
}

static int check_launch(const rl_source_request *said, rl_error *err) {
  for (int i = 1; i < 3; i++)
    if (said->grid[i] > GRID_YZ_MOST)
      return rl_fail_at(err, i == 1 ? "/grid/1" : "/grid/2", "grid may be at most %d here", GRID_YZ_MOST);
  if (said->block[2] > BLOCK_Z_MOST) return rl_fail_at(err, "/block/2", "block may be at most %d here", BLOCK_Z_MOST);
  if (said->block[0] * said->block[1] * said->block[2] > BLOCK_MOST)
    return rl_fail_at(err, "/block", "a block has at most %d threads", BLOCK_MOST);
  return 0;
}

static int check_entry(const rl_source_request *said, rl_error *err) {
  const char *allowed = said->code != NULL ? "_$:<>, *&()+-" : "_$.@";
  if (said->entry[0] == '\0') return rl_fail_at(err, "/entry", "entry must name the kernel");
  for (const char *c = said->entry; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c) && strchr(allowed, *c) == NULL)
      return rl_fail_at(err, "/entry", "entry can't have a '%c'", *c);
  return 0;
}

/* A cubin or fatbin that is all there, or text that begins like PTX: the driver is not to read behind its end. */
static bool looks_like_code(const unsigned char *bytes, size_t size) {
  static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
  if (size >= sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr head;
    memcpy(&head, bytes, sizeof head);
    uint64_t sections = (uint64_t)head.e_shentsize * head.e_shnum;
    return head.e_machine == 190 /* EM_CUDA */ && head.e_shoff <= size && sections <= size - head.e_shoff;
  }
  if (size >= 16 && memcmp(bytes, fatbin, sizeof fatbin) == 0) {
    uint16_t head_bytes;
    uint64_t body_bytes;
    memcpy(&head_bytes, bytes + 6, sizeof head_bytes);
    memcpy(&body_bytes, bytes + 8, sizeof body_bytes);
    return head_bytes >= 16 && head_bytes <= size && body_bytes <= size - head_bytes;
  }
  return memchr(bytes, '\0', size) == NULL && strstr((const char *)bytes, ".version") != NULL;
}

static int check_code(const rl_source_request *said, rl_source *source, rl_error *err) {
  if (said->code != NULL && said->binary != NULL) return rl_fail_at(err, "/binary", "post either code or a binary");
  if (said->code == NULL && said->binary == NULL) return rl_fail_at(err, "/code", "code or binary is required");
  if (said->code != NULL) return said->code[0] != '\0' ? 0 : rl_fail_at(err, "/code", "code must not be empty");
  if (said->options != NULL || said->variants != NULL)
    return rl_fail_at(err, said->options != NULL ? "/options" : "/variants",
                      "a binary is compiled already: this belongs to code");
  if (decode_bytes(said->binary, RL_SOURCE_BINARY_MAX, "/binary", &source->binary, &source->binary_size, err) < 0) return -1;
  if (!looks_like_code(source->binary, source->binary_size))
    return rl_fail_at(err, "/binary", "binary must be a whole cubin, fatbin or PTX text");
  return 0;
}

/* --- arguments --------------------------------------------------------------------------------------------------------- */

static bool is_whole(int type) { return type >= RL_SOURCE_INT8; }

static int check_scalar(const cJSON *object, const char *at, rl_source_argument *argument, rl_error *err) {
  char where[WHERE_SIZE];
  scalar_said said = {0};
  if (rl_fields_decode(scalar_fields, object, at, &said, sizeof said, err) < 0) return -1;
  bool is_signed = (said.dtype - RL_SOURCE_INT8) % 2 == 0;
  double bits = 8 * (double)rl_source_type_size(said.dtype), most = fmin(exp2(is_signed ? bits - 1 : bits) - 1, 0x1p53);
  double least = is_signed ? -most - (bits < 64) : 0;
  if (is_whole(said.dtype) && (said.value != floor(said.value) || said.value < least || said.value > most)) {
    snprintf(where, sizeof where, "%.80s/value", at);
    return rl_fail_at(err, where, "value must be a whole number from %.0f to %.0f", least, most);
  }
  *argument = (rl_source_argument){.type = said.dtype, .value = said.value};
  return 0;
}

static int take_buffer_bytes(const buffer_said *said, const char *at, rl_source_argument *argument, rl_error *err) {
  char where[WHERE_SIZE];
  size_t size, each = rl_source_type_size(said->dtype);
  snprintf(where, sizeof where, "%.80s/bytes", at);
  if (decode_bytes(said->bytes, RL_SOURCE_TEXT_MAX, where, &argument->bytes, &size, err) < 0) return -1;
  argument->count = (int64_t)(size / each);
  if (size % each != 0 || (said->count != 0 && said->count != argument->count))
    return rl_fail_at(err, where, "%zu bytes are not %lld elements", size,
                      (long long)(said->count != 0 ? said->count : argument->count));
  return 0;
}

static int check_buffer(const cJSON *object, const char *at, rl_source_argument *argument, rl_error *err) {
  char where[WHERE_SIZE];
  buffer_said said = {.seed = 1};
  if (rl_fields_decode(buffer_fields, object, at, &said, sizeof said, err) < 0) return -1;
  *argument = (rl_source_argument){.buffer = true, .type = said.dtype, .count = said.count, .init = said.init, .seed = said.seed};
  if (said.bytes != NULL) return take_buffer_bytes(&said, at, argument, err);
  if (said.count == 0) {
    snprintf(where, sizeof where, "%.80s/count", at);
    return rl_fail_at(err, where, "count is required");
  }
  if (said.init == RL_SOURCE_NORMAL && is_whole(said.dtype)) {
    snprintf(where, sizeof where, "%.80s/init", at);
    return rl_fail_at(err, where, "whole numbers can't be normal");
  }
  return 0;
}

static int check_argument(const cJSON *object, int index, rl_source_argument *argument, rl_error *err) {
  char at[32], below[48];
  argument_said said = {0};
  snprintf(at, sizeof at, "/arguments/%d", index);
  if (rl_fields_decode(rl_source_argument_fields, object, at, &said, sizeof said, err) < 0) return -1;
  if ((said.buffer != NULL) == (said.scalar != NULL)) return rl_fail_at(err, at, "an argument is either a buffer or a scalar");
  snprintf(below, sizeof below, "%s/%s", at, said.buffer != NULL ? "buffer" : "scalar");
  return said.buffer != NULL ? check_buffer(said.buffer, below, argument, err) : check_scalar(said.scalar, below, argument, err);
}

static int check_arguments(const rl_source_request *said, rl_source *source, rl_error *err) {
  const cJSON *each;
  cJSON_ArrayForEach(each, said->arguments) {
    rl_source_argument *argument = &source->arguments[source->argument_count++];
    if (check_argument(each, source->argument_count - 1, argument, err) < 0) return -1;
    if (argument->buffer) source->buffer_bytes += argument->count * (int64_t)rl_source_type_size(argument->type);
  }
  return 0;
}

static int check_expected(const cJSON *object, rl_source *source, rl_error *err) {
  expected_said said = {.tolerance = 1e-6};
  size_t size;
  source->expected_argument = -1;
  if (object == NULL) return 0;
  if (rl_fields_decode(rl_source_expected_fields, object, "/expected", &said, sizeof said, err) < 0) return -1;
  if (said.argument >= source->argument_count || !source->arguments[said.argument].buffer)
    return rl_fail_at(err, "/expected/argument", "there is no buffer at this place of the arguments");
  const rl_source_argument *argument = &source->arguments[said.argument];
  if (decode_bytes(said.values, RL_SOURCE_TEXT_MAX, "/expected/values", &source->expected, &size, err) < 0) return -1;
  if (size != (size_t)argument->count * rl_source_type_size(argument->type))
    return rl_fail_at(err, "/expected/values", "%zu bytes came, and the argument has %lld elements of %zu", size,
                      (long long)argument->count, rl_source_type_size(argument->type));
  source->expected_argument = said.argument;
  source->tolerance = said.tolerance;
  return 0;
}

/* --- variants ---------------------------------------------------------------------------------------------------------- */

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
  cJSON_ArrayForEach(define, variant->defines) name_more(variant, "%s", define->valuestring);
  if (variant->name[0] == '\0') name_more(variant, "default");
}

static int check_defines(const cJSON *defines, const char *at, rl_error *err) {
  rl_source_options options = {0};
  char where[WHERE_SIZE];
  const cJSON *each;
  int index = 0;
  cJSON_ArrayForEach(each, defines) {
    snprintf(where, sizeof where, "%s/defines/%d", at, index++);
    if (!cJSON_IsString(each)) return rl_fail_at(err, where, "a macro must be a string");
    if (rl_source_define_add(&options, each->valuestring, where, err) < 0) return -1;
  }
  return 0;
}

static int check_variant(const cJSON *object, int index, rl_source *source, rl_error *err) {
  char at[32], where[WHERE_SIZE];
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
  cJSON_ArrayForEach(each, said->options) {
    snprintf(at, sizeof at, "/options/%d", index++);
    if (!cJSON_IsString(each)) return rl_fail_at(err, at, "an option must be a string");
    if (rl_source_option_add(options, each->valuestring, at, err) < 0) return -1;
  }
  return 0;
}

static int check_variants(const rl_source_request *said, rl_source *source, rl_error *err) {
  rl_source_options options;
  const cJSON *each;
  int count = 0;
  cJSON_ArrayForEach(each, said->variants)
    if (check_variant(each, count++, source, err) < 0) return -1;
  if (count == 0) name_variant(&source->variants[count++]);
  source->variant_count = count;
  for (int i = 0; i < count; i++)
    if (rl_source_compile_options(source, i, &options, err) < 0) return -1;
  return 0;
}

int rl_source_compile_options(const rl_source *source, int index, rl_source_options *options, rl_error *err) {
  const rl_source_variant *variant = &source->variants[index];
  const struct { bool wanted; const char *option; long long value; } own[] = {
      {variant->max_registers > 0, "--maxrregcount=", variant->max_registers},
      {variant->launch_bounds[0] > 0, "--ptxas-options=--maxntid=", variant->launch_bounds[0]},
      {variant->launch_bounds[1] > 0, "--ptxas-options=--minnctapersm=", variant->launch_bounds[1]}};
  const cJSON *define;
  *options = (rl_source_options){0};
  if (check_options(&source->request, options, err) < 0) return -1;
  if (variant->fast_math && rl_source_option_put(options, "/variants", err, "--use_fast_math") < 0) return -1;
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].wanted && rl_source_option_put(options, "/variants", err, "%s%lld", own[i].option, own[i].value) < 0) return -1;
  cJSON_ArrayForEach(define, variant->defines)
    if (rl_source_define_add(options, define->valuestring, "/variants", err) < 0) return -1;
  return 0;
}

/* --- the whole --------------------------------------------------------------------------------------------------------- */

void rl_source_clear(rl_source *source) {
  for (int i = 0; i < RL_SOURCE_ARGUMENTS; i++) free(source->arguments[i].bytes);
  free(source->binary);
  free(source->expected);
  cJSON_Delete(source->document);
  memset(source, 0, sizeof *source);
}

static int check_model(const cJSON *object, rl_source_model *model, rl_error *err) {
  *model = (rl_source_model){NAN, NAN};
  return object != NULL ? rl_fields_decode(rl_source_model_fields, object, "/model", model, sizeof *model, err) : 0;
}

int rl_source_check(const rl_source_request *request, rl_source *source, rl_error *err) {
  *source = (rl_source){.request = *request};
  if (check_code(request, source, err) == 0 && check_entry(request, err) == 0 && check_launch(request, err) == 0 &&
      check_arguments(request, source, err) == 0 && check_variants(request, source, err) == 0 &&
      check_model(request->model, &source->model, err) == 0 && check_expected(request->expected, source, err) == 0)
    return 0;
  rl_source_clear(source);
  return -1;
}

int rl_source_read(const char *text, size_t length, rl_source *source, rl_error *err) {
  rl_source_request request = rl_source_request_defaults;
  cJSON *document = rl_json_parse(text, length, err);
  if (document == NULL) return -1;
  if (rl_fields_decode(rl_source_fields, document, "", &request, sizeof request, err) < 0 ||
      rl_source_check(&request, source, err) < 0) {
    cJSON_Delete(document);
    return -1;
  }
  source->document = document;
  return 0;
}

/* --- the workload ------------------------------------------------------------------------------------------------------ */

static const rl_field params_fields[] = {
    RL_FIELD(rl_source_params, source, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_source_params, code_sha256, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_source_params, variant, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_source_params, index, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = RL_SOURCE_VARIANTS - 1),
    RL_FIELD(rl_source_params, samples, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = 1000),
    {.name = "model_bytes", .type = RL_FIELD_MEASURE, .offset = offsetof(rl_source_params, model.bytes)},
    {.name = "model_operations", .type = RL_FIELD_MEASURE, .offset = offsetof(rl_source_params, model.operations)},
    {0}};

static void defaults(void *params) {
  rl_source_params *made = params;
  memset(made, 0, sizeof *made); /* padding too: parameters are compared as bytes */
  made->samples = 20;
  made->model = (rl_source_model){NAN, NAN};
}

static rl_cost cost(const void *params) {
  const rl_source_model *model = &((const rl_source_params *)params)->model;
  /* Any of the bytes may be written ones. */
  return (rl_cost){.bytes = model->bytes, .operations = model->operations, .written_bytes = model->bytes};
}

static void schedule(const void *params, uint32_t *warmup, uint32_t *iterations) {
  *warmup = 0; /* samples say themselves how warm they are */
  *iterations = (uint32_t)((const rl_source_params *)params)->samples;
}

const rl_workload rl_source_workload = {.name = "source",
                                        .kind = "source",
                                        .summary = "a kernel that was posted",
                                        .fields = params_fields,
                                        .params_size = sizeof(rl_source_params),
                                        .defaults = defaults,
                                        .cost = cost,
                                        .schedule = schedule,
                                        .iteration = RL_ITERATION_LAUNCH};
