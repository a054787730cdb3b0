#include "kernel/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "half.h"
#include "train/model.h" /* rl_mix64 */

#define FAMILY(NAME) &rl_kernel_##NAME,
#define NAME_OF(NAME) #NAME,
const rl_kernel_family *const rl_kernel_families[] = {RL_KERNEL_FAMILIES(FAMILY) NULL};
const char *const rl_kernel_names[] = {RL_KERNEL_FAMILIES(NAME_OF) NULL};

/* --- types ------------------------------------------------------------------------------------------------------- */

const char *const rl_dtype_names[] = {"fp64", "fp32", "fp16", "bf16", NULL};

static const struct {
  size_t size;
  double epsilon; /* distance from 1 to the next number */
} dtypes[RL_DTYPES] = {[RL_DTYPE_FP64] = {8, 0x1p-52},
                       [RL_DTYPE_FP32] = {4, 0x1p-23},
                       [RL_DTYPE_FP16] = {2, 0x1p-10},
                       [RL_DTYPE_BF16] = {2, 0x1p-7}};

size_t rl_dtype_size(int dtype) { return dtypes[dtype].size; }

static float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint16_t bfloat_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double rl_dtype_load(int dtype, const void *memory, size_t index) {
  switch (dtype) {
    case RL_DTYPE_FP64: return ((const double *)memory)[index];
    case RL_DTYPE_FP32: return ((const float *)memory)[index];
    case RL_DTYPE_FP16: return rl_half_to_float(((const uint16_t *)memory)[index]);
    default: return float_of_bits((uint32_t)((const uint16_t *)memory)[index] << 16);
  }
}

void rl_dtype_store(int dtype, void *memory, size_t index, double value) {
  switch (dtype) {
    case RL_DTYPE_FP64: ((double *)memory)[index] = value; break;
    case RL_DTYPE_FP32: ((float *)memory)[index] = (float)value; break;
    case RL_DTYPE_FP16: ((uint16_t *)memory)[index] = rl_half_from_float((float)value); break;
    default: ((uint16_t *)memory)[index] = bfloat_from_float((float)value);
  }
}

/* --- parameters ---------------------------------------------------------------------------------------------------- */

const rl_field rl_kernel_params_fields[] = {
    RL_FIELD(rl_kernel_params, dtype, RL_FIELD_CHOICE, .names = rl_dtype_names, .summary = "of inputs and output"),
    RL_FIELD(rl_kernel_params, shape, RL_FIELD_JSON, .required = true, .summary = "sizes; which ones depends on the kernel"),
    RL_FIELD(rl_kernel_params, variant, RL_FIELD_TEXT, .required = true, .summary = "way of doing it"),
    RL_FIELD(rl_kernel_params, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "launches timed with a cold cache, and as many with a warm one"),
    RL_FIELD(rl_kernel_params, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0, .summary = "of the inputs"),
    {0}};

void rl_kernel_defaults(rl_kernel_params *params, const rl_kernel_family *family) {
  memset(params, 0, sizeof *params); /* padding too: parameters are compared as bytes */
  params->family = family;
  params->dtype = RL_DTYPE_FP32;
  params->samples = 20;
  params->seed = 1;
  snprintf(params->variant, sizeof params->variant, "%s", family->variants[0]);
}

int rl_kernel_shape_decode(const rl_kernel_family *family, const cJSON *object, rl_kernel_shape *shape, rl_error *err) {
  rl_kernel_shape decoded = {1, 1};
  if (rl_fields_decode(family->shape, object, "/shape", &decoded, sizeof decoded, err) < 0) return -1;
  if (decoded.rows > RL_KERNEL_ELEMENTS_MAX / decoded.columns)
    return rl_fail_at(err, "/shape", "the output may have at most %d elements", RL_KERNEL_ELEMENTS_MAX);
  *shape = decoded;
  return 0;
}

int rl_kernel_shape_of(const rl_kernel_params *params, rl_kernel_shape *shape, rl_error *err) {
  cJSON *object = rl_json_parse(params->shape, strlen(params->shape), err);
  if (object == NULL) return -1;
  int rc = rl_kernel_shape_decode(params->family, object, shape, err);
  cJSON_Delete(object);
  return rc;
}

int rl_kernel_variant_find(const rl_kernel_family *family, const char *name, rl_error *err) {
  char names[128] = "";
  for (int i = 0; family->variants[i] != NULL; i++) {
    if (strcmp(family->variants[i], name) == 0) return i;
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", family->variants[i]);
  }
  return rl_fail_at(err, "/variant", "variant of %s must be one of: %s", family->workload.name, names);
}

double rl_kernel_tolerance(const rl_kernel_params *params) {
  const double arithmetic = dtypes[params->dtype == RL_DTYPE_FP64 ? RL_DTYPE_FP64 : RL_DTYPE_FP32].epsilon;
  double allowed = params->family->tolerance * arithmetic;
  return allowed > 0 ? allowed + dtypes[params->dtype].epsilon / 2 : 0;
}

int64_t rl_kernel_input_elements(const rl_kernel_family *family, const rl_kernel_shape *shape, uint32_t input) {
  return family->shared[input] ? shape->columns : shape->rows * shape->columns;
}

double rl_kernel_input_value(const rl_kernel_params *params, uint32_t input, int64_t index) {
  uint64_t random = rl_mix64(rl_mix64(rl_mix64((uint64_t)params->seed) + input) + (uint64_t)index), rounded;
  rl_dtype_store(params->dtype, &rounded, 0, (double)(random >> 11) * 0x1p-51 - 2);
  return rl_dtype_load(params->dtype, &rounded, 0);
}

rl_cost rl_kernel_cost(const void *params) {
  const rl_kernel_params *asked = params;
  rl_kernel_shape shape;
  if (rl_kernel_shape_of(asked, &shape, NULL) < 0) return (rl_cost){NAN, NAN};
  double elements = (double)(shape.rows * shape.columns), moved = elements;
  for (uint32_t i = 0; i < asked->family->input_count; i++)
    moved += (double)rl_kernel_input_elements(asked->family, &shape, i);
  return (rl_cost){.bytes = moved * (double)rl_dtype_size(asked->dtype), .operations = elements * asked->family->operations};
}

void rl_kernel_schedule(const void *params, uint32_t *warmup, uint32_t *iterations) {
  *warmup = 0; /* samples say themselves how warm they are */
  *iterations = (uint32_t)((const rl_kernel_params *)params)->samples;
}
