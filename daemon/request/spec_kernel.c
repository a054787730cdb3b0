/* Expands requests of the job kind "kernel" into one run for each variant of a kernel. Requests for a sequence of kernels are
 * expanded by spec_sequence.c. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/sequence.h"
#include "request/spec.h"
#include "request/spec_internal.h"

typedef struct kernel_request {
  int kind, kernel, dtype;
  char shape[RL_KERNEL_SHAPE_TEXT_SIZE], variant[32];
  char build[16]; /* how the kernel is compiled: a name in rl_kernel_operator.builds */
  int64_t samples, pause_ms, seed;
  rl_spec_common common;
} kernel_request;

static const char *const kind_names[] = {"kernel", NULL};

const rl_field rl_spec_kernel_fields[] = {
    RL_FIELD(kernel_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "kind of the job"),
    RL_FIELD(kernel_request, kernel, RL_FIELD_CHOICE, .names = rl_kernel_names, .required = true,
             .describe = rl_kernel_describe_operators),
    RL_FIELD(kernel_request, dtype, RL_FIELD_CHOICE, .names = rl_dtype_names, .describe = rl_kernel_describe_dtypes),
    RL_FIELD(kernel_request, shape, RL_FIELD_JSON, .required = true, .describe = rl_kernel_describe_shapes),
    RL_FIELD(kernel_request, variant, RL_FIELD_TEXT, .describe = rl_kernel_describe_variants),
    RL_FIELD(kernel_request, build, RL_FIELD_TEXT, .describe = rl_kernel_describe_builds),
    RL_FIELD(kernel_request, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "number of launches that are timed with a cold cache, and again with a warm cache; default 20"),
    RL_PAUSE_FIELD(kernel_request),
    RL_FIELD(kernel_request, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of the inputs; default 1"),
    RL_SPEC_COMMON_FIELDS(kernel_request),
    RL_SPEC_PROFILE_FIELDS(kernel_request),
    {0}};

static const kernel_request defaults = {.dtype = RL_DTYPE_FP32, .samples = 20, .seed = 1, .common = RL_SPEC_COMMON_DEFAULTS};

/* Checks the shape and writes it to `text` as JSON with all sizes, in the order of the operator's shape_fields. */
static int write_shape(const rl_kernel_operator *op, const cJSON *object, char *text, size_t size, rl_error *err) {
  rl_kernel_shape shape;
  const cJSON *requested = cJSON_GetObjectItemCaseSensitive(object, "shape");
  if (rl_kernel_shape_decode(op, requested, &shape, err) < 0) return -1;
  return rl_spec_move_text(rl_fields_print(op->shape_fields, &shape), text, size, err);
}

static int add_run(const kernel_request *request, const rl_kernel_operator *op, const char *variant, rl_job_spec *spec,
                   rl_error *err) {
  rl_kernel_params params;
  op->workload.defaults(&params);
  params.dtype = request->dtype;
  params.samples = request->samples;
  params.pause_ms = request->pause_ms;
  params.seed = request->seed;
  snprintf(params.variant, sizeof params.variant, "%s", variant);
  snprintf(params.build, sizeof params.build, "%s", request->build);
  snprintf(params.shape, sizeof params.shape, "%s", request->shape);
  return rl_spec_add_run(&op->workload, variant, &params, spec, err);
}

/* Adds a run for the requested variant, or for every variant if none is requested. */
static int add_runs(const kernel_request *request, const rl_kernel_operator *op, rl_job_spec *spec, rl_error *err) {
  bool every_variant = request->variant[0] == '\0';
  for (int i = 0; op->variants[i] != NULL; i++)
    if ((every_variant || strcmp(op->variants[i], request->variant) == 0) && add_run(request, op, op->variants[i], spec, err) < 0)
      return -1;
  return 0;
}

int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  kernel_request request = defaults;
  if (cJSON_HasObjectItem(object, "kernels") && !cJSON_HasObjectItem(object, "kernel"))
    return rl_spec_sequence_expand(object, spec, err);
  if (rl_fields_decode(rl_spec_kernel_fields, object, "", &request, sizeof request, err) < 0) return -1;
  const rl_kernel_operator *op = rl_kernel_operators[request.kernel];
  if (rl_kernel_dtype_check(op, request.dtype, err) < 0 || write_shape(op, object, request.shape, sizeof request.shape, err) < 0)
    return -1;
  if (rl_kernel_build_find(op, request.build, err) < 0) return -1;
  if (request.variant[0] != '\0' && rl_kernel_variant_find(op, request.variant, err) < 0) return -1;
  if (add_runs(&request, op, spec, err) < 0 || rl_spec_apply_common(&request.common, spec, err) < 0) return -1;
  return rl_spec_write_request(rl_spec_kernel_fields, &request, spec, err);
}

/* --- GET /workloads ------------------------------------------------------------------------------------------------ */

static cJSON *list_dtypes(const rl_kernel_operator *op) {
  cJSON *names = cJSON_CreateArray();
  for (int dtype = 0; dtype < RL_DTYPE_COUNT; dtype++)
    if (op->dtypes & 1u << dtype) cJSON_AddItemToArray(names, cJSON_CreateString(rl_dtype_names[dtype]));
  return names;
}

static cJSON *list_variants(const rl_kernel_operator *op) {
  cJSON *variants = cJSON_CreateArray();
  for (int i = 0; op->variants[i] != NULL; i++) {
    cJSON *variant = cJSON_CreateObject();
    cJSON_AddStringToObject(variant, "name", op->variants[i]);
    cJSON_AddBoolToObject(variant, "gpu_only", (op->gpu_only_variants & 1u << i) != 0);
    cJSON_AddItemToArray(variants, variant);
  }
  return variants;
}

static cJSON *list_builds(const rl_kernel_operator *op) {
  cJSON *builds = cJSON_CreateArray();
  for (int i = 0; op->builds != NULL && op->builds[i] != NULL; i++)
    cJSON_AddItemToArray(builds, cJSON_CreateString(op->builds[i]));
  return builds;
}

cJSON *rl_job_list_kernels(void) {
  cJSON *kernels = cJSON_CreateArray();
  for (const rl_kernel_operator *const *op = rl_kernel_operators; *op != NULL; op++) {
    cJSON *kernel = cJSON_CreateObject();
    cJSON_AddStringToObject(kernel, "kernel", (*op)->workload.name);
    cJSON_AddStringToObject(kernel, "summary", (*op)->workload.summary);
    cJSON_AddItemToObject(kernel, "dtypes", list_dtypes(*op));
    cJSON_AddItemToObject(kernel, "variants", list_variants(*op));
    cJSON_AddItemToObject(kernel, "builds", list_builds(*op));
    cJSON_AddItemToObject(kernel, "shape", rl_fields_schema((*op)->shape_fields));
    cJSON_AddItemToArray(kernels, kernel);
  }
  return kernels;
}

/* --- check against the device -------------------------------------------------------------------------------------- */

static const rl_kernel_operator *find_operator_of_run(const rl_run_spec *run) {
  for (const rl_kernel_operator *const *op = rl_kernel_operators; *op != NULL; op++)
    if (strcmp((*op)->workload.name, run->workload) == 0) return *op;
  return NULL;
}

static int check_run(const rl_run_spec *run, rl_device_kind kind, rl_error *err) {
  const rl_kernel_operator *op = find_operator_of_run(run);
  rl_kernel_params params;
  if (strcmp(run->workload, rl_kernel_sequence.name) == 0) return rl_spec_sequence_check_device(run, kind, err);
  if (op == NULL) return 0;
  op->workload.defaults(&params);
  if (rl_fields_parse(rl_kernel_params_fields, run->params, strlen(run->params), &params, sizeof params, err) < 0) return -1;
  return rl_kernel_device_check(&params, kind, err);
}

int rl_spec_kernel_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err) {
  (void)unsupported_engines; /* unused: a kernel job names no engine */
  int kept_count = 0;
  for (int i = 0; i < spec->run_count; i++)
    if (check_run(&spec->runs[i], rl_spec_device_kind(spec->device), err) >= 0) spec->runs[kept_count++] = spec->runs[i];
  spec->run_count = kept_count;
  return kept_count > 0 ? 0 : -1;
}
