/* Defines the workload "sequence": decoding, checking and encoding of its members, and its cost (sequence.h). */
#include "kernel/sequence.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/utf8.h"
#include "hash.h"

/* --- members ----------------------------------------------------------------------------------------------------------- */

typedef struct member {
  int kernel, dtype;
  char shape[RL_KERNEL_SHAPE_TEXT_SIZE], variant[32], build[16];
} member;

const rl_field rl_kernel_sequence_member_fields[] = {
    RL_FIELD(member, kernel, RL_FIELD_CHOICE, .names = rl_kernel_names, .required = true, .summary = "as in a kernel job"),
    RL_FIELD(member, dtype, RL_FIELD_CHOICE, .names = rl_dtype_names, .summary = "default fp32"),
    RL_FIELD(member, shape, RL_FIELD_JSON, .required = true, .summary = "the kernel's sizes"),
    RL_FIELD(member, variant, RL_FIELD_TEXT, .summary = "default: the kernel's first variant"),
    RL_FIELD(member, build, RL_FIELD_TEXT, .summary = "default: the kernel's first build"),
    {0}};

/* Puts "/kernels/INDEX" before the error's JSON pointer, which is relative to the member. Returns -1. */
static int fail_in_member(size_t index, rl_error *err) {
  char member_pointer[sizeof err->json_pointer];
  if (err == NULL || err->domain != RL_INPUT) return -1;
  snprintf(member_pointer, sizeof member_pointer, "%.80s", err->json_pointer);
  snprintf(err->json_pointer, sizeof err->json_pointer, "/kernels/%zu%s", index, member_pointer);
  rl_utf8_sanitize(err->json_pointer, strlen(err->json_pointer)); /* truncation may split the last character */
  return -1;
}

static int decode_member(const cJSON *object, rl_kernel_params *params, rl_error *err) {
  member request = {.dtype = RL_DTYPE_FP32};
  rl_kernel_shape shape;
  if (rl_fields_decode(rl_kernel_sequence_member_fields, object, "", &request, sizeof request, err) < 0) return -1;
  const rl_kernel_operator *op = rl_kernel_operators[request.kernel];
  rl_kernel_defaults(params, op);
  params->dtype = request.dtype;
  if (request.variant[0] != '\0') snprintf(params->variant, sizeof params->variant, "%s", request.variant);
  snprintf(params->build, sizeof params->build, "%s", request.build);
  if (rl_kernel_dtype_check(op, params->dtype, err) < 0 || rl_kernel_variant_find(op, params->variant, err) < 0 ||
      rl_kernel_build_find(op, params->build, err) < 0 ||
      rl_kernel_shape_decode(op, cJSON_GetObjectItemCaseSensitive(object, "shape"), &shape, err) < 0)
    return -1;
  RL_CLEANUP(rl_free_text) char *text = rl_fields_print(op->shape_fields, &shape);
  if (text == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a shape");
  snprintf(params->shape, sizeof params->shape, "%s", text);
  return 0;
}

int rl_kernel_sequence_decode(const cJSON *kernels, int64_t seed, rl_kernel_params *members, size_t *count, rl_error *err) {
  const cJSON *object;
  size_t index = 0;
  if (!cJSON_IsArray(kernels) || cJSON_GetArraySize(kernels) < 1 || cJSON_GetArraySize(kernels) > RL_KERNEL_SEQUENCE_MAX_MEMBERS)
    return rl_fail_at(err, "/kernels", "kernels must be an array of 1 to %d objects", RL_KERNEL_SEQUENCE_MAX_MEMBERS);
  cJSON_ArrayForEach (object, kernels) {
    if (decode_member(object, &members[index], err) < 0) return fail_in_member(index, err);
    members[index].samples = 1;
    members[index].seed = (int64_t)(rl_hash64((uint64_t)seed + index) >> 11);
    index++;
  }
  *count = index;
  return 0;
}

int rl_kernel_sequence_decode_params(const rl_kernel_sequence_params *params, rl_kernel_params *members, size_t *count,
                                     rl_error *err) {
  RL_CLEANUP(rl_json_cleanup) cJSON *kernels = rl_json_parse(params->kernels, strlen(params->kernels), err);
  return kernels == NULL ? -1 : rl_kernel_sequence_decode(kernels, params->seed, members, count, err);
}

int rl_kernel_sequence_check(const rl_kernel_sequence_params *params, rl_device_kind kind, rl_error *err) {
  rl_kernel_params members[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  size_t count;
  if (rl_kernel_sequence_decode_params(params, members, &count, err) < 0) return -1;
  for (size_t i = 0; i < count; i++)
    if (rl_kernel_device_check(&members[i], kind, err) < 0) return fail_in_member(i, err);
  return 0;
}

static int operator_index(const rl_kernel_operator *op) {
  int index = 0;
  while (rl_kernel_operators[index] != op) index++;
  return index;
}

cJSON *rl_kernel_sequence_encode(const rl_kernel_params *members, size_t count) {
  cJSON *kernels = cJSON_CreateArray();
  for (size_t i = 0; i < count && kernels != NULL; i++) {
    member encoded = {.kernel = operator_index(members[i].op), .dtype = members[i].dtype};
    snprintf(encoded.shape, sizeof encoded.shape, "%s", members[i].shape);
    snprintf(encoded.variant, sizeof encoded.variant, "%s", members[i].variant);
    snprintf(encoded.build, sizeof encoded.build, "%s", members[i].build);
    cJSON *object = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(kernels, object) || rl_fields_encode(rl_kernel_sequence_member_fields, &encoded, object) < 0) {
      cJSON_Delete(kernels);
      return NULL;
    }
  }
  return kernels;
}

/* --- the workload ------------------------------------------------------------------------------------------------------ */

const rl_field rl_kernel_sequence_fields[] = {
    RL_FIELD(rl_kernel_sequence_params, kernels, RL_FIELD_JSON, .required = true, .may_be_array = true,
             .summary = "launches, in order"),
    RL_FIELD(rl_kernel_sequence_params, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "samples of the whole sequence, taken with a cold cache and as many with a warm one"),
    RL_PAUSE_FIELD(rl_kernel_sequence_params),
    RL_FIELD(rl_kernel_sequence_params, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of the inputs"),
    {0}};

static void defaults(void *params) {
  memset(params, 0, sizeof(rl_kernel_sequence_params)); /* zeroes the padding too, because parameters are compared as bytes */
  ((rl_kernel_sequence_params *)params)->samples = 20;
  ((rl_kernel_sequence_params *)params)->seed = 1;
}

/* Returns the sum of the members' costs. The precision is NULL if the members have several, because no single peak rate applies
 * to their operations. */
static rl_cost cost(const void *params, uint64_t images) {
  rl_kernel_params members[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  size_t count;
  rl_cost sum = {0};
  if (rl_kernel_sequence_decode_params(params, members, &count, NULL) < 0)
    return (rl_cost){.bytes = NAN, .operations = NAN, .written_bytes = NAN};
  sum.precision = rl_dtype_names[members[0].dtype];
  for (size_t i = 0; i < count; i++) {
    const rl_cost single = rl_kernel_cost(&members[i], images);
    sum.bytes += single.bytes;
    sum.operations += single.operations;
    sum.written_bytes += single.written_bytes;
    if (members[i].dtype != members[0].dtype) sum.precision = NULL;
  }
  return sum;
}

static void iteration_counts(const void *params, uint32_t *warmup, uint32_t *measured) {
  *warmup = 0;
  *measured = (uint32_t)((const rl_kernel_sequence_params *)params)->samples;
}

const rl_workload rl_kernel_sequence = {.name = "sequence",
                                        .job_kind = "kernel",
                                        .summary = "several kernels, launched one after the other",
                                        .fields = rl_kernel_sequence_fields,
                                        .params_size = sizeof(rl_kernel_sequence_params),
                                        .defaults = defaults,
                                        .cost = cost,
                                        .iteration_counts = iteration_counts,
                                        .timing_mode = RL_TIMING_LAUNCHES};
