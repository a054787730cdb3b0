#include "jobs/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "jobs/spec_kinds.h"
#include "train/model.h"

/* --- train: one MNIST run for each precision ------------------------------------------------------------------- */

typedef struct train_request {
  int kind;
  uint32_t precisions; /* bit i: rl_precision i */
  int64_t epochs, warmup_epochs, batch_size, seed, max_images;
  double learning_rate;
  int engine, dataset;
  char device[16];
  uint32_t passes;
  int64_t deadline_s;
  int set;
  rl_profile profile;
} train_request;

enum { ENGINE_AUTO, ENGINE_REFERENCE, ENGINE_BLAS, ENGINE_CUDNN, ENGINE_FUSED };
static const char *const kind_names[] = {"train", NULL};
static const char *const engine_names[] = {"auto", "reference", "blas", "cudnn", "fused", NULL};
static const char *const engine_devices[] = {"", "cpu", "cpu", "gpu", "gpu"}; /* what a device's id begins with */
static const char *const dataset_names[] = {"auto", "files", "synthetic", NULL};

static const rl_field train_fields[] = {
    RL_FIELD(train_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "what to measure"),
    RL_FIELD(train_request, precisions, RL_FIELD_CHOICES, .names = rl_precision_names,
             .summary = "one run for each; default fp32 and fp16"),
    RL_FIELD(train_request, epochs, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "measured epochs; default 2"),
    RL_FIELD(train_request, warmup_epochs, RL_FIELD_INT, .minimum = 0, .maximum = 100,
             .summary = "epochs before them, recorded apart; default 1"),
    RL_FIELD(train_request, batch_size, RL_FIELD_INT, .minimum = 1, .maximum = 8192, .summary = "default 64"),
    RL_FIELD(train_request, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "of initial weights and shuffles; default 1"),
    RL_FIELD(train_request, max_images, RL_FIELD_INT, .minimum = 0, .maximum = 10000000,
             .summary = "train on the first so many images only; default 0: all of them"),
    RL_FIELD(train_request, learning_rate, RL_FIELD_REAL, .minimum = 1e-12, .maximum = 10,
             .summary = "of Adam; default 0.001"),
    RL_FIELD(train_request, engine, RL_FIELD_CHOICE, .names = engine_names,
             .summary = "default auto: the best that the device has"),
    RL_FIELD(train_request, dataset, RL_FIELD_CHOICE, .names = dataset_names,
             .summary = "default auto: the IDX files if they are there, else synthetic digits"),
    RL_SPEC_COMMON_FIELDS(train_request),
    RL_SPEC_PROFILE_FIELDS(train_request),
    RL_SPEC_SELECTION_FIELDS(train_request),
    {0}};

static const train_request train_defaults = {
    .precisions = 1u << RL_FP32 | 1u << RL_FP16,
    .epochs = 2,
    .warmup_epochs = 1,
    .batch_size = 64,
    .seed = 1,
    .learning_rate = 1e-3,
    .passes = 1u << RL_PASS_TIMING,
    .profile = RL_SPEC_NO_SELECTION,
};

int rl_spec_keep_text(char *text, char *out, size_t size, rl_error *err) {
  rl_auto(rl_free_text) char *owned = text;
  if (owned == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for a job");
  if ((size_t)snprintf(out, size, "%s", owned) >= size)
    return rl_fail_at(err, "", "the job is longer than %zu bytes when written out", size - 1);
  return 0;
}

int rl_spec_take_profile(int set, const rl_profile *asked, uint32_t *passes, rl_job_spec *spec, rl_error *err) {
  if (set != RL_SET_AUTO || asked->sections != 0 || asked->metrics[0] != '\0' || asked->kernels[0] != '\0' || asked->launch >= 0)
    *passes |= 1u << RL_PASS_COUNTERS;
  if ((*passes & 1u << RL_PASS_COUNTERS) == 0) return 0;
  rl_profile profile = rl_profile_resolve(set, asked);
  return rl_spec_keep_text(rl_fields_print(rl_profile_fields, &profile), spec->profile, sizeof spec->profile, err);
}

/* An engine lives on one kind of device, so it chooses the device or must fit the one that was asked for. */
static int train_device(const train_request *request, char *device, size_t size, rl_error *err) {
  const char *kind = engine_devices[request->engine];
  if (request->device[0] != '\0' && strncmp(request->device, kind, strlen(kind)) != 0)
    return rl_fail_at(err, "/engine", "engine %s runs on a %s, and device is %s", engine_names[request->engine], kind,
                      request->device);
  bool on_cpu = request->engine == ENGINE_REFERENCE || request->engine == ENGINE_BLAS;
  snprintf(device, size, "%s", request->device[0] == '\0' && on_cpu ? "cpu" : request->device);
  return 0;
}

static int train_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  train_request request = train_defaults;
  if (rl_fields_decode(train_fields, object, "", &request, sizeof request, err) < 0 ||
      train_device(&request, spec->device, sizeof spec->device, err) < 0 ||
      rl_spec_take_profile(request.set, &request.profile, &request.passes, spec, err) < 0 ||
      rl_spec_keep_text(rl_fields_print(train_fields, &request), spec->request, sizeof spec->request, err) < 0)
    return -1;
  spec->passes = request.passes;
  spec->deadline_s = request.deadline_s;
  for (int precision = 0; rl_precision_names[precision] != NULL; precision++) {
    if (!(request.precisions & 1u << precision)) continue;
    rl_run_spec *run = &spec->runs[spec->run_count++];
    rl_train_params params = {.precision = precision,
                              .epochs = request.epochs,
                              .warmup_epochs = request.warmup_epochs,
                              .batch_size = request.batch_size,
                              .seed = request.seed,
                              .max_images = request.max_images,
                              .learning_rate = request.learning_rate};
    snprintf(params.engine, sizeof params.engine, "%s", engine_names[request.engine]);
    snprintf(params.dataset, sizeof params.dataset, "%s", dataset_names[request.dataset]);
    snprintf(run->workload, sizeof run->workload, "%s", rl_mnist_cnn.name);
    snprintf(run->variant, sizeof run->variant, "%s", rl_precision_names[precision]);
    if (rl_spec_keep_text(rl_fields_print(rl_train_fields, &params), run->params, sizeof run->params, err) < 0) return -1;
  }
  return 0;
}

/* --- all kinds --------------------------------------------------------------------------------------------------- */

const rl_job_kind rl_job_kinds[] = {
    {"train", "train the MNIST CNN in one or more precisions and compare them", train_fields, train_expand},
    {"kernel", "time one kernel in each of its variants and check its result", rl_spec_kernel_fields, rl_spec_kernel_expand},
    {"ceilings", "measure what the device can do at best: bandwidths and rates of arithmetic", rl_spec_ceilings_fields,
     rl_spec_ceilings_expand},
    {"source", "time a kernel that is posted, in each of its variants, and check its result", rl_spec_source_fields, rl_spec_source_expand,
     .posted = true},
    {0}};

static int unknown_kind(rl_error *err) {
  rl_fail_at(err, "/kind", "kind must be one of:");
  for (const rl_job_kind *kind = rl_job_kinds; err != NULL && kind->name != NULL; kind++) {
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, " %s", kind->name);
  }
  return -1;
}

static int check_posting(const rl_job_policy *policy, rl_error *err) {
  if (policy->posting == RL_POSTING_OFF)
    return rl_fail(err, RL_HTTP, 403, "This daemon runs no posted code; its administrator can allow it with allow_source = true.");
  if (policy->posting == RL_POSTING_NEEDS_TOKEN)
    return rl_fail(err, RL_HTTP, 401, "Posted code is run for a token alone: send one of `rooflinectl token` as `Authorization: Bearer TOKEN`.");
  return 0;
}

static int expand_kind(const rl_job_kind *kind, const cJSON *object, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err) {
  snprintf(spec->kind, sizeof spec->kind, "%s", kind->name);
  if ((kind->posted && check_posting(policy, err) < 0) || kind->expand(object, spec, err) < 0) return -1;
  if (spec->buffer_bytes > policy->source_buffer_bytes)
    return rl_fail_at(err, "/arguments", "the buffers have %lld bytes together, and this daemon allows %lld (source_buffer_bytes)",
                      (long long)spec->buffer_bytes, (long long)policy->source_buffer_bytes);
  return 0;
}

static int expand(const cJSON *object, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err) {
  if (!cJSON_IsObject(object)) return rl_fail_at(err, "", "must be a JSON object");
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(object, "kind");
  if (name == NULL) return rl_fail_at(err, "/kind", "kind is required");
  for (const rl_job_kind *kind = rl_job_kinds; kind->name != NULL; kind++)
    if (cJSON_IsString(name) && strcmp(name->valuestring, kind->name) == 0) return expand_kind(kind, object, policy, spec, err);
  return unknown_kind(err);
}

void rl_job_spec_clear(rl_job_spec *spec) {
  free(spec->source);
  spec->source = NULL;
}

int rl_job_spec_parse(const char *text, size_t length, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err) {
  cJSON *object = rl_json_parse(text, length, err);
  if (object == NULL) return -1;
  rl_job_spec expanded = {0};
  int rc = expand(object, policy, &expanded, err);
  cJSON_Delete(object);
  if (rc == 0) *spec = expanded;
  else rl_job_spec_clear(&expanded);
  return rc;
}
