/* What a posted kernel is called with, and what must come of it. */
#include <math.h>
#include <stdio.h>

#include "source/parts.h"

/* --- as it is said ----------------------------------------------------------------------------------------------------- */

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

/* --- the arguments ----------------------------------------------------------------------------------------------------- */

static bool is_whole(int type) { return type >= RL_SOURCE_INT8; }

static int check_scalar(const cJSON *object, const char *at, rl_source_argument *argument, rl_error *err) {
  char where[RL_SOURCE_WHERE_SIZE];
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
  char where[RL_SOURCE_WHERE_SIZE];
  size_t size, each = rl_source_type_size(said->dtype);
  snprintf(where, sizeof where, "%.80s/bytes", at);
  if (rl_source_decode_bytes(said->bytes, RL_SOURCE_TEXT_MAX, where, &argument->bytes, &size, err) < 0) return -1;
  argument->count = (int64_t)(size / each);
  if (size % each != 0 || (said->count != 0 && said->count != argument->count))
    return rl_fail_at(err, where, "%zu bytes are not %lld elements", size,
                      (long long)(said->count != 0 ? said->count : argument->count));
  return 0;
}

static int check_buffer(const cJSON *object, const char *at, rl_source_argument *argument, rl_error *err) {
  char where[RL_SOURCE_WHERE_SIZE];
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

int rl_source_take_arguments(rl_source *source, rl_error *err) {
  const cJSON *each;
  cJSON_ArrayForEach (each, source->request.arguments) {
    rl_source_argument *argument = &source->arguments[source->argument_count++];
    if (check_argument(each, source->argument_count - 1, argument, err) < 0) return -1;
    if (argument->buffer) source->buffer_bytes += argument->count * (int64_t)rl_source_type_size(argument->type);
  }
  return 0;
}

/* --- what is expected of one of them ----------------------------------------------------------------------------------- */

typedef struct expected_said {
  int64_t argument;
  const char *values;
  double tolerance;
} expected_said;

const rl_field rl_source_expected_fields[] = {
    RL_FIELD(expected_said, argument, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = RL_SOURCE_ARGUMENTS - 1,
             .summary = "index of a buffer among the arguments"),
    RL_FIELD(expected_said, values, RL_FIELD_STRING, .required = true, .maximum = RL_SOURCE_TEXT_MAX,
             .summary = "its elements after one launch, little-endian, in base64"),
    RL_FIELD(expected_said, tolerance, RL_FIELD_REAL, .minimum = 0, .maximum = 1,
             .summary = "largest ‖result − values‖ / ‖values‖; default 1e-6"),
    {0}};

int rl_source_take_expected(rl_source *source, rl_error *err) {
  const cJSON *object = source->request.expected;
  expected_said said = {.tolerance = 1e-6};
  size_t size;
  source->expected_argument = -1;
  if (object == NULL) return 0;
  if (rl_fields_decode(rl_source_expected_fields, object, "/expected", &said, sizeof said, err) < 0) return -1;
  if (said.argument >= source->argument_count || !source->arguments[said.argument].buffer)
    return rl_fail_at(err, "/expected/argument", "there is no buffer at this place of the arguments");
  const rl_source_argument *argument = &source->arguments[said.argument];
  if (rl_source_decode_bytes(said.values, RL_SOURCE_TEXT_MAX, "/expected/values", &source->expected, &size, err) < 0) return -1;
  if (size != (size_t)argument->count * rl_source_type_size(argument->type))
    return rl_fail_at(err, "/expected/values", "%zu bytes came, and the argument has %lld elements of %zu", size,
                      (long long)argument->count, rl_source_type_size(argument->type));
  source->expected_argument = said.argument;
  source->tolerance = said.tolerance;
  return 0;
}
