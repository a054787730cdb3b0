/* Implements kernel.h: the table of operators, checks and descriptions of a kernel's parameters, the tolerance of its result, the
 * generation of its inputs, and its cost. */
#include "kernel/kernel.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "hash.h"

#define OPERATOR(NAME) &rl_kernel_##NAME,
#define OPERATOR_NAME(NAME) #NAME,
const rl_kernel_operator *const rl_kernel_operators[] = {RL_KERNEL_OPERATORS(OPERATOR) NULL};
const char *const rl_kernel_names[] = {RL_KERNEL_OPERATORS(OPERATOR_NAME) NULL};

/* --- parameters -------------------------------------------------------------------------------------------------------- */

const rl_field rl_kernel_params_fields[] = {
    RL_FIELD(rl_kernel_params, dtype, RL_FIELD_CHOICE, .names = rl_dtype_names, .summary = "type of the inputs and the output"),
    RL_FIELD(rl_kernel_params, shape, RL_FIELD_JSON, .required = true, .summary = "sizes; each kernel has its own"),
    RL_FIELD(rl_kernel_params, variant, RL_FIELD_TEXT, .required = true, .summary = "implementation of the kernel"),
    RL_FIELD(rl_kernel_params, build, RL_FIELD_TEXT, .summary = "how the code is compiled"),
    RL_FIELD(rl_kernel_params, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "launches timed with a cold cache, and as many with a warm one"),
    RL_PAUSE_FIELD(rl_kernel_params),
    RL_FIELD(rl_kernel_params, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0, .summary = "seed of the inputs"),
    {0}};

void rl_kernel_defaults(rl_kernel_params *params, const rl_kernel_operator *op) {
  memset(params, 0, sizeof *params); /* padding too: parameters are compared as bytes */
  params->op = op;
  params->dtype = RL_DTYPE_FP32;
  params->samples = 20;
  params->seed = 1;
  snprintf(params->variant, sizeof params->variant, "%s", op->variants[0]);
}

static int sizes_in_bounds(const rl_kernel_operator *op, const rl_kernel_shape *shape, rl_error *err) {
  if (op->output_elements(shape) > RL_KERNEL_ELEMENTS_MAX)
    return rl_fail_at(err, "/shape", "the output may have at most %d elements", RL_KERNEL_ELEMENTS_MAX);
  for (uint32_t input = 0; input < op->input_count; input++)
    if (op->input_elements(shape, input) > RL_KERNEL_ELEMENTS_MAX)
      return rl_fail_at(err, "/shape", "an input may have at most %d elements", RL_KERNEL_ELEMENTS_MAX);
  return 0;
}

static bool has_size(const rl_kernel_operator *op, const char *name) {
  for (const rl_field *field = op->shape_fields; field->name != NULL; field++)
    if (strcmp(field->name, name) == 0) return true;
  return false;
}

static int fail_unknown_size(const rl_kernel_operator *op, const char *name, rl_error *err) {
  char pointer[128], names[160] = "";
  size_t used = 0;
  for (const rl_field *field = op->shape_fields; field->name != NULL && used < sizeof names; field++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", field->name);
  rl_fields_format_pointer(pointer, sizeof pointer, "/shape", name);
  rl_fail_at(err, pointer, "Unknown size \"%.64s\" for %s; expected %s", name, op->workload.name, names);
  if (err != NULL) rl_utf8_sanitize(err->message, sizeof err->message);
  return -1;
}

static int check_size_names(const rl_kernel_operator *op, const cJSON *object, rl_error *err) {
  const cJSON *item;
  if (!cJSON_IsObject(object)) return 0; /* rl_fields_decode reports it */
  cJSON_ArrayForEach (item, object)
    if (!has_size(op, item->string)) return fail_unknown_size(op, item->string, err);
  return 0;
}

int rl_kernel_shape_decode(const rl_kernel_operator *op, const cJSON *object, rl_kernel_shape *shape, rl_error *err) {
  rl_kernel_shape decoded = {{1, 1, 1, 1, 1, 1, 1, 1}};
  if (check_size_names(op, object, err) < 0 ||
      rl_fields_decode(op->shape_fields, object, "/shape", &decoded, sizeof decoded, err) < 0 ||
      (op->shape_check != NULL && op->shape_check(&decoded, err) < 0) || sizes_in_bounds(op, &decoded, err) < 0)
    return -1;
  *shape = decoded;
  return 0;
}

int rl_kernel_params_shape(const rl_kernel_params *params, rl_kernel_shape *shape, rl_error *err) {
  cJSON *object = rl_json_parse(params->shape, strlen(params->shape), err);
  if (object == NULL) return -1;
  int rc = rl_kernel_shape_decode(params->op, object, shape, err);
  cJSON_Delete(object);
  return rc;
}

static void append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...) {
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, size - used, format, arguments);
  va_end(arguments);
}

static void list_dtypes(const rl_kernel_operator *op, char *text, size_t size) {
  for (int dtype = 0; dtype < RL_DTYPE_COUNT; dtype++)
    if (op->dtypes & 1u << dtype) append(text, size, "%s%s", text[0] != '\0' ? ", " : "", rl_dtype_names[dtype]);
}

static void list_builds(const rl_kernel_operator *op, char *text, size_t size) {
  for (int i = 0; op->builds != NULL && op->builds[i] != NULL; i++) append(text, size, "%s%s", i > 0 ? ", " : "", op->builds[i]);
}

static void list_variants(const rl_kernel_operator *op, char *text, size_t size) {
  for (int i = 0; op->variants[i] != NULL; i++)
    append(text, size, "%s%s%s", i > 0 ? ", " : "", op->variants[i], op->gpu_only_variants & 1u << i ? " (GPU)" : "");
}

int rl_kernel_dtype_check(const rl_kernel_operator *op, int dtype, rl_error *err) {
  char names[128] = "";
  if (op->dtypes & 1u << dtype) return 0;
  list_dtypes(op, names, sizeof names);
  return rl_fail_at(err, "/dtype", "dtype of %s must be one of: %s", op->workload.name, names);
}

int rl_kernel_variant_find(const rl_kernel_operator *op, const char *name, rl_error *err) {
  char names[192] = "";
  for (int i = 0; op->variants[i] != NULL; i++)
    if (strcmp(op->variants[i], name) == 0) return i;
  list_variants(op, names, sizeof names);
  return rl_fail_at(err, "/variant", "variant of %s must be one of: %s", op->workload.name, names);
}

int rl_kernel_cpu_variant_check(const rl_kernel_operator *op, const char *name, rl_error *err) {
  int variant = rl_kernel_variant_find(op, name, err);
  if (variant < 0) return -1;
  if (!(op->gpu_only_variants & 1u << variant)) return 0;
  return rl_fail_at(err, "/variant",
                    "variant %s of %s exists only on GPUs: on the CPU its code would equal the code of another variant", name,
                    op->workload.name);
}

int rl_kernel_device_check(const rl_kernel_params *params, rl_device_kind kind, rl_error *err) {
  if (kind == RL_DEVICE_CPU) return rl_kernel_cpu_variant_check(params->op, params->variant, err);
  return params->op->gpu_check != NULL ? params->op->gpu_check(params, err) : 0;
}

int rl_kernel_build_find(const rl_kernel_operator *op, const char *name, rl_error *err) {
  char names[128] = "";
  if (name[0] == '\0') return 0;
  for (int i = 0; op->builds != NULL && op->builds[i] != NULL; i++)
    if (strcmp(op->builds[i], name) == 0) return i;
  list_builds(op, names, sizeof names);
  return op->builds != NULL ? rl_fail_at(err, "/build", "build of %s must be one of: %s", op->workload.name, names)
                            : rl_fail_at(err, "/build", "%s has only one build", op->workload.name);
}

/* --- descriptions ------------------------------------------------------------------------------------------------------ */

typedef void describer(const rl_kernel_operator *op, char *text, size_t size); /* appends to the text */

/* True when an operator earlier in the list has the same description. */
static bool is_described_before(const rl_kernel_operator *const *op, describer *describe, const char *description) {
  bool found = false;
  for (const rl_kernel_operator *const *other = rl_kernel_operators; other < op && !found; other++) {
    char text[512] = "";
    describe(*other, text, sizeof text);
    found = strcmp(text, description) == 0;
  }
  return found;
}

/* Writes `introduction`, then each different description after the names of the operators that have it: "relu, copy: description;
 * gemm: description". */
static void describe_each(const char *introduction, describer *describe, char *text, size_t size) {
  snprintf(text, size, "%s", introduction);
  for (const rl_kernel_operator *const *op = rl_kernel_operators; *op != NULL; op++) {
    char description[512] = "", other_description[512];
    describe(*op, description, sizeof description);
    if (description[0] == '\0' || is_described_before(op, describe, description)) continue;
    append(text, size, "%s%s", text[strlen(introduction)] != '\0' ? "; " : "", (*op)->workload.name);
    for (const rl_kernel_operator *const *other = op + 1; *other != NULL; other++) {
      other_description[0] = '\0';
      describe(*other, other_description, sizeof other_description);
      if (strcmp(other_description, description) == 0) append(text, size, ", %s", (*other)->workload.name);
    }
    append(text, size, ": %s", description);
  }
}

static void list_sizes(const rl_kernel_operator *op, char *text, size_t size) {
  for (const rl_field *field = op->shape_fields; field->name != NULL; field++)
    append(text, size, "%s%s (%s)", field > op->shape_fields ? ", " : "", field->name, field->summary);
}

static void summarize(const rl_kernel_operator *op, char *text, size_t size) { append(text, size, "%s", op->workload.summary); }

void rl_kernel_describe_operators(char *text, size_t size) { describe_each("", summarize, text, size); }

void rl_kernel_describe_shapes(char *text, size_t size) {
  describe_each("integers; no input or output may have more than 268435456 elements. ", list_sizes, text, size);
}

void rl_kernel_describe_dtypes(char *text, size_t size) {
  describe_each("type of the inputs and the output; default fp32. ", list_dtypes, text, size);
}

void rl_kernel_describe_variants(char *text, size_t size) {
  describe_each("implementation of the kernel; default: one run for each variant that the kernel has on the device. ",
                list_variants, text, size);
}

void rl_kernel_describe_builds(char *text, size_t size) {
  describe_each("how the code is compiled; default: the first. ", list_builds, text, size);
}

/* --- tolerance, inputs and cost ---------------------------------------------------------------------------------------- */

double rl_kernel_tolerance(const rl_kernel_params *params, const rl_kernel_shape *shape) {
  const rl_kernel_operator *op = params->op;
  const bool uses_tensor_cores = params->dtype != RL_DTYPE_FP64 && params->dtype != RL_DTYPE_FP32;
  const double epsilon = rl_dtype_epsilon(params->dtype == RL_DTYPE_FP64 ? RL_DTYPE_FP64 : RL_DTYPE_FP32);
  const double ulps = op->tolerance_ulps(shape) + (uses_tensor_cores && op->truncation_ulps ? op->truncation_ulps(shape) : 0);
  const double allowed = ulps * epsilon;
  return allowed > 0 ? allowed + (1 + op->intermediate_roundings) * rl_dtype_epsilon(params->dtype) / 2 : 0;
}

void rl_kernel_fill_input(const rl_kernel_params *params, const rl_kernel_shape *shape, uint32_t input, int64_t start,
                          int64_t count, void *memory) {
  enum { CHUNK = 1024 };
  const uint64_t key = rl_hash64(rl_hash64((uint64_t)params->seed) + input);
  const size_t size = rl_dtype_size(params->dtype);
  double values[CHUNK];
  for (int64_t done = 0; done < count; done += CHUNK) {
    const int64_t chunk = count - done < CHUNK ? count - done : CHUNK;
    for (int64_t i = 0; i < chunk; i++) values[i] = (double)(rl_hash64(key + (uint64_t)(start + done + i)) >> 11) * 0x1p-51 - 2;
    if (params->op->transform_input != NULL) params->op->transform_input(shape, input, start + done, chunk, values);
    rl_dtype_from_double(params->dtype, values, chunk, (char *)memory + (size_t)done * size);
  }
}

rl_cost rl_kernel_cost(const void *params, uint64_t images) {
  (void)images;
  const rl_kernel_params *kernel = params;
  const rl_kernel_operator *op = kernel->op;
  const size_t size = rl_dtype_size(kernel->dtype);
  rl_kernel_shape shape;
  if (rl_kernel_params_shape(kernel, &shape, NULL) < 0) return (rl_cost){.bytes = NAN, .operations = NAN};
  const int64_t written = op->output_elements(&shape);
  int64_t moved = written;
  for (uint32_t i = 0; i < op->input_count; i++)
    moved += op->compulsory_elements ? op->compulsory_elements(&shape, i) : op->input_elements(&shape, i);
  return (rl_cost){.bytes = (double)moved * (double)size,
                   .operations = op->operations(&shape),
                   .written_bytes = (double)written * (double)size,
                   .precision = rl_dtype_names[kernel->dtype]};
}

void rl_kernel_iteration_counts(const void *params, uint32_t *warmup, uint32_t *measured) {
  *warmup = 0; /* each sample sets its cache state itself */
  *measured = (uint32_t)((const rl_kernel_params *)params)->samples;
}
