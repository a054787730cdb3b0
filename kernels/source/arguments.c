/* Implements arguments.h: decodes buffers, scalars and expected contents from a request. */
#include "source/arguments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "source/base64.h"
#include "source/launch_request.h"
#include "source/tensor_map.h"

/* --- fields ------------------------------------------------------------------------------------------------------------ */

typedef struct argument_request {
  const cJSON *buffer, *scalar, *tensor_map;
} argument_request;

typedef struct buffer_request {
  int dtype, init, access;
  int64_t count, seed; /* count 0: not given; computed from the size of `bytes` */
  const char *bytes;
} buffer_request;

typedef struct scalar_request {
  int dtype;
  double value;
} scalar_request;

static const char *const init_names[] = {"zeros", "ones", "range", "uniform", "normal", NULL};
static const char *const access_names[] = {"inout", "in", "out", NULL};

static const rl_field buffer_fields[] = {
    RL_FIELD(buffer_request, dtype, RL_FIELD_CHOICE, .names = rl_source_type_names, .required = true,
             .summary = "type of the elements"),
    RL_FIELD(buffer_request, count, RL_FIELD_INT, .minimum = 1, .maximum = 1099511627776.0,
             .summary = "number of elements; may be left out when bytes are given"),
    RL_FIELD(
        buffer_request, init, RL_FIELD_CHOICE, .names = init_names,
        .summary =
            "contents before a launch; default zeros. range counts from 0; uniform is in [0, 1), for integers in the whole range "
            "of the type; normal has mean 0 and standard deviation 1"),
    RL_FIELD(buffer_request, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of uniform and normal, whose numbers also differ between arguments; default 1"),
    RL_FIELD(buffer_request, bytes, RL_FIELD_STRING, .maximum = RL_SOURCE_TEXT_MAX,
             .summary = "the elements, little-endian, in base64; given instead of init"),
    RL_FIELD(buffer_request, access, RL_FIELD_CHOICE, .names = access_names,
             .summary =
                 "inout (default): restored before every launch; in: restored, and a launch that changes it fails the job; "
                 "out: every byte is 0xFF before every launch, and init and bytes are not allowed"),
    {0}};

static const rl_field scalar_fields[] = {
    RL_FIELD(scalar_request, dtype, RL_FIELD_CHOICE, .names = rl_source_type_names, .required = true,
             .summary = "type of the kernel's parameter"),
    RL_FIELD(scalar_request, value, RL_FIELD_REAL, .required = true, .summary = "within the range of the type"),
    {0}};

const rl_field rl_source_argument_fields[] = {
    RL_FIELD(argument_request, buffer, RL_FIELD_OBJECT, .fields = buffer_fields,
             .summary = "device memory; the kernel gets its address"),
    RL_FIELD(argument_request, scalar, RL_FIELD_OBJECT, .fields = scalar_fields, .summary = "a number, passed by value"),
    RL_FIELD(argument_request, tensor_map, RL_FIELD_OBJECT, .fields = rl_source_tensor_map_fields,
             .summary = "a CUtensorMap of tiles of a buffer, passed by value (const __grid_constant__ CUtensorMap)"),
    {0}};

/* --- arguments --------------------------------------------------------------------------------------------------------- */

static int decode_scalar(const cJSON *object, const char *pointer, rl_source_argument *argument, rl_error *err) {
  char member_pointer[RL_SOURCE_POINTER_SIZE];
  scalar_request request = {0};
  if (rl_fields_decode(scalar_fields, object, pointer, &request, sizeof request, err) < 0) return -1;
  const bool is_signed = (request.dtype - RL_SOURCE_INT8) % 2 == 0; /* in rl_source_type, signed and unsigned types alternate */
  /* The limits are those of the type, but at most 2^53, up to which a double represents every integer. */
  double bits = 8 * (double)rl_source_type_size(request.dtype), maximum = fmin(exp2(is_signed ? bits - 1 : bits) - 1, 0x1p53);
  double minimum = is_signed ? -maximum - (bits < 64) : 0;
  if (!rl_source_type_is_floating(request.dtype) &&
      (request.value != floor(request.value) || request.value < minimum || request.value > maximum)) {
    snprintf(member_pointer, sizeof member_pointer, "%.80s/value", pointer);
    return rl_fail_at(err, member_pointer, "value must be an integer from %.0f to %.0f", minimum, maximum);
  }
  *argument = (rl_source_argument){.kind = RL_SOURCE_SCALAR, .type = request.dtype, .value = request.value};
  return 0;
}

static int decode_buffer_bytes(const buffer_request *request, const char *pointer, rl_source_argument *argument, rl_error *err) {
  char member_pointer[RL_SOURCE_POINTER_SIZE];
  size_t size, element_size = rl_source_type_size(request->dtype);
  snprintf(member_pointer, sizeof member_pointer, "%.80s/bytes", pointer);
  if (rl_source_decode_base64(request->bytes, RL_SOURCE_TEXT_MAX, member_pointer, &argument->initial_contents, &size, err) < 0)
    return -1;
  argument->count = (int64_t)(size / element_size);
  if (size % element_size != 0 || (request->count != 0 && request->count != argument->count))
    return rl_fail_at(err, member_pointer, "%zu bytes are not %lld elements", size,
                      (long long)(request->count != 0 ? request->count : argument->count));
  return 0;
}

static int decode_buffer(const cJSON *object, const char *pointer, rl_source_argument *argument, rl_error *err) {
  char member_pointer[RL_SOURCE_POINTER_SIZE];
  buffer_request request = {.seed = 1};
  if (rl_fields_decode(buffer_fields, object, pointer, &request, sizeof request, err) < 0) return -1;
  *argument = (rl_source_argument){.kind = RL_SOURCE_BUFFER,
                                   .type = request.dtype,
                                   .count = request.count,
                                   .init = request.init,
                                   .seed = request.seed,
                                   .access = request.access};
  if (request.access == RL_SOURCE_OUT && (request.bytes != NULL || request.init != RL_SOURCE_ZEROS)) {
    snprintf(member_pointer, sizeof member_pointer, "%.80s/%s", pointer, request.bytes != NULL ? "bytes" : "init");
    return rl_fail_at(err, member_pointer, "a buffer with access out has no initial contents");
  }
  if (request.bytes != NULL) return decode_buffer_bytes(&request, pointer, argument, err);
  if (request.count == 0) {
    snprintf(member_pointer, sizeof member_pointer, "%.80s/count", pointer);
    return rl_fail_at(err, member_pointer, "count is required");
  }
  if (request.init == RL_SOURCE_NORMAL && !rl_source_type_is_floating(request.dtype)) {
    snprintf(member_pointer, sizeof member_pointer, "%.80s/init", pointer);
    return rl_fail_at(err, member_pointer, "integers can't be normal");
  }
  return 0;
}

static int decode_argument(const cJSON *object, int index, rl_source_argument *argument, rl_error *err) {
  char pointer[32], member_pointer[48];
  argument_request request = {0};
  snprintf(pointer, sizeof pointer, "/arguments/%d", index);
  if (rl_fields_decode(rl_source_argument_fields, object, pointer, &request, sizeof request, err) < 0) return -1;
  const struct {
    const cJSON *object;
    const char *name;
    int (*decode)(const cJSON *, const char *, rl_source_argument *, rl_error *);
  } kinds[] = {{request.buffer, "buffer", decode_buffer},
               {request.scalar, "scalar", decode_scalar},
               {request.tensor_map, "tensor_map", rl_source_decode_tensor_map}};
  int posted_kind = -1;
  for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
    if (kinds[i].object == NULL) continue;
    if (posted_kind >= 0)
      return rl_fail_at(err, pointer, "an argument is either a %s or a %s", kinds[posted_kind].name, kinds[i].name);
    posted_kind = i;
  }
  if (posted_kind < 0) return rl_fail_at(err, pointer, "an argument is a buffer, a scalar or a tensor_map");
  snprintf(member_pointer, sizeof member_pointer, "%s/%s", pointer, kinds[posted_kind].name);
  return kinds[posted_kind].decode(kinds[posted_kind].object, member_pointer, argument, err);
}

int rl_source_decode_arguments(rl_source *source, rl_error *err) {
  const cJSON *each;
  cJSON_ArrayForEach (each, source->request.arguments) {
    rl_source_argument *argument = &source->arguments[source->argument_count++];
    if (decode_argument(each, source->argument_count - 1, argument, err) < 0) return -1;
    if (argument->kind == RL_SOURCE_BUFFER)
      source->buffer_bytes += argument->count * (int64_t)rl_source_type_size(argument->type);
  }
  return rl_source_check_tensor_maps(source, err);
}

/* --- expected contents ------------------------------------------------------------------------------------------------- */

typedef struct expected_request {
  int64_t argument;
  const char *values;
  const cJSON *reference;
  double tolerance;
} expected_request;

static const rl_field reference_fields[] = {
    RL_FIELD(rl_source_request, code, RL_FIELD_STRING, .maximum = RL_SOURCE_CODE_MAX,
             .summary = "CUDA C++ of the reference; default: the job's code"),
    RL_FIELD(rl_source_request, entry, RL_FIELD_TEXT, .required = true, .summary = "the reference kernel"),
    RL_FIELD(rl_source_request, grid, RL_FIELD_INTS, .minimum = 1, .maximum = 2147483647,
             .summary = "blocks along x, y, z; default: the job's grid"),
    RL_FIELD(rl_source_request, block, RL_FIELD_INTS, .minimum = 1, .maximum = 1024,
             .summary = "threads of a block along x, y, z; default: the job's block"),
    RL_FIELD(rl_source_request, dynamic_shared_bytes, RL_FIELD_INT, .minimum = 0, .maximum = 1 << 20,
             .summary = "dynamic shared memory of a block, in bytes; default 0"),
    {0}};

const rl_field rl_source_expected_fields[] = {
    RL_FIELD(expected_request, argument, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = RL_SOURCE_ARGUMENTS_MAX - 1,
             .summary = "index of an argument that is a buffer"),
    RL_FIELD(expected_request, values, RL_FIELD_STRING, .maximum = RL_SOURCE_TEXT_MAX,
             .summary = "its elements after one launch, little-endian, in base64"),
    RL_FIELD(expected_request, reference, RL_FIELD_OBJECT, .fields = reference_fields,
             .summary =
                 "instead of values: a kernel with the same arguments that computes them after every timed launch; buffers with "
                 "init uniform or normal then have other contents in every timed launch"),
    RL_FIELD(expected_request, tolerance, RL_FIELD_REAL, .minimum = 0, .maximum = 1,
             .summary = "largest ‖result − values‖ / ‖values‖; default 1e-6"),
    {0}};

static int decode_reference(const cJSON *object, rl_source *source, rl_error *err) {
  static const char pointer[] = "/expected/reference";
  rl_source_request reference = {.code = source->request.code, .cluster = {1, 1, 1}};
  memcpy(reference.grid, source->request.grid, sizeof reference.grid);
  memcpy(reference.block, source->request.block, sizeof reference.block);
  if (cJSON_HasObjectItem(object, "grid")) reference.grid[1] = reference.grid[2] = 1;
  if (cJSON_HasObjectItem(object, "block")) reference.block[1] = reference.block[2] = 1;
  if (rl_fields_decode(reference_fields, object, pointer, &reference, sizeof reference, err) < 0) return -1;
  if (reference.code == NULL) return rl_fail_at(err, "/expected/reference/code", "the reference of a binary needs code");
  source->reference = reference;
  source->has_reference = true;
  return rl_source_check_launch_request(&reference, pointer, err);
}

int rl_source_decode_expected(rl_source *source, rl_error *err) {
  const cJSON *object = source->request.expected;
  expected_request request = {.tolerance = 1e-6};
  size_t size;
  source->expected_argument = -1;
  if (object == NULL) return 0;
  if (rl_fields_decode(rl_source_expected_fields, object, "/expected", &request, sizeof request, err) < 0) return -1;
  if (request.argument >= source->argument_count || source->arguments[request.argument].kind != RL_SOURCE_BUFFER)
    return rl_fail_at(err, "/expected/argument", "this argument is not a buffer");
  const rl_source_argument *argument = &source->arguments[request.argument];
  if (argument->access == RL_SOURCE_IN)
    return rl_fail_at(err, "/expected/argument", "this argument has access in, so a launch does not change it");
  source->expected_argument = request.argument;
  source->tolerance = request.tolerance;
  if ((request.values != NULL) == (request.reference != NULL))
    return rl_fail_at(err, request.values != NULL ? "/expected/reference" : "/expected/values",
                      "expected needs either values or a reference");
  if (request.reference != NULL) return decode_reference(request.reference, source, err);
  if (rl_source_decode_base64(request.values, RL_SOURCE_TEXT_MAX, "/expected/values", &source->expected, &size, err) < 0)
    return -1;
  if (size != (size_t)argument->count * rl_source_type_size(argument->type))
    return rl_fail_at(err, "/expected/values", "%zu bytes were posted, but the argument has %lld elements of %zu bytes", size,
                      (long long)argument->count, rl_source_type_size(argument->type));
  return 0;
}
