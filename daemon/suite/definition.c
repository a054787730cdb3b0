/* Implements definition.h. Decodes the jobs, the metrics and the baseline of a definition, in this order, checks that each metric
 * refers to a job of the suite, and prints the definition with its defaults filled in. */
#include "suite/definition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/verdict.h"
#include "base/json.h"
#include "base/json_members.h"

static const char *const direction_names[] = {"lower", "higher", NULL};

typedef struct suite_document {
  char name[RL_SUITE_NAME_SIZE], summary[161], device[16];
  int64_t blocks, time_budget_s, canary;
  bool profile;
  const cJSON *jobs, *metrics, *baseline;
} suite_document;

typedef struct job_document {
  char name[RL_SUITE_NAME_SIZE];
  const cJSON *request;
} job_document;

typedef struct baseline_document {
  int64_t runs;
} baseline_document;

static const rl_field job_fields[] = {
    RL_FIELD(job_document, name, RL_FIELD_TEXT, .required = true, .summary = "name within the suite: [a-z0-9][a-z0-9_-]*"),
    RL_FIELD(job_document, request, RL_FIELD_OBJECT, .required = true,
             .summary = "the body of POST /jobs, without device and fresh_worker"),
    {0}};

static const rl_field metric_fields[] = {
    RL_FIELD(rl_suite_metric, job, RL_FIELD_TEXT, .required = true, .summary = "name of a job of the suite"),
    RL_FIELD(rl_suite_metric, variant, RL_FIELD_TEXT,
             .summary = "a precision or a kernel's variant; default: every run of the job"),
    RL_FIELD(rl_suite_metric, metric, RL_FIELD_TEXT, .required = true,
             .summary = "epoch_ms_median, time_cold_us_median, peak_memory_bytes, test_accuracy_ratio, or any measurement"),
    RL_FIELD(rl_suite_metric, direction, RL_FIELD_CHOICE, .names = direction_names,
             .summary = "which values are better; default lower"),
    RL_FIELD(rl_suite_metric, threshold_ratio, RL_FIELD_REAL, .minimum = 0.0001, .maximum = 10,
             .summary = "smallest relative effect that counts as a change; below 1 if higher values are better; default 0.05"),
    {0}};

static const rl_field baseline_fields[] = {
    RL_FIELD(baseline_document, runs, RL_FIELD_INT, .minimum = 1, .maximum = 20,
             .summary = "number of the last good runs that are the rolling baseline; default 5"),
    {0}};

static const rl_field suite_fields[] = {
    RL_FIELD(suite_document, name, RL_FIELD_TEXT, .required = true,
             .summary = "the file's name without .json: [a-z0-9][a-z0-9_-]*"),
    RL_FIELD(suite_document, summary, RL_FIELD_TEXT, .summary = "what the suite measures, in a few words"),
    RL_FIELD(suite_document, device, RL_FIELD_TEXT,
             .summary = "an id from /devices; default: the first usable GPU, else the CPU"),
    RL_FIELD(suite_document, blocks, RL_FIELD_INT, .minimum = 3, .maximum = RL_SUITE_BLOCKS_MAX,
             .summary = "repetitions of all jobs, each in new worker processes; default 7"),
    RL_FIELD(suite_document, time_budget_s, RL_FIELD_INT, .minimum = 1, .maximum = 86400,
             .summary = "maximum time of all jobs in seconds; a metric not measured by then is inconclusive; default 600"),
    RL_FIELD(suite_document, jobs, RL_FIELD_ARRAY, .required = true, .minimum = 1, .maximum = RL_SUITE_JOBS_MAX,
             .fields = job_fields, .summary = "the jobs of one block, in order"),
    RL_FIELD(suite_document, metrics, RL_FIELD_ARRAY, .required = true, .minimum = 1, .maximum = RL_SUITE_METRICS_MAX,
             .fields = metric_fields, .summary = "the metrics that are judged"),
    RL_FIELD(suite_document, baseline, RL_FIELD_OBJECT, .fields = baseline_fields, .summary = "the rolling baseline"),
    RL_FIELD(suite_document, canary, RL_FIELD_BOOL,
             .summary = "measure the ceilings before and after the blocks; a change above 2 % quarantines the run; default: on "
                        "GPUs only"),
    RL_FIELD(
        suite_document, profile, RL_FIELD_BOOL,
        .summary = "after the blocks, run each job once with the activity and counters passes, to find causes; default true"),
    {0}};

bool rl_suite_is_name(const char *text) {
  static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789", rest[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  size_t length = strlen(text);
  return length > 0 && length < RL_SUITE_NAME_SIZE && strchr(first, text[0]) != NULL && strspn(text, rest) == length;
}

static int check_name(const char *path, const char *name, rl_error *err) {
  if (rl_suite_is_name(name)) return 0;
  return rl_fail_at(err, path, "a name has 1 to 64 lower-case letters, digits, _ and -, and begins with a letter or a digit");
}

void rl_suite_free(rl_suite *suite) {
  if (suite == NULL) return;
  for (int i = 0; i < suite->job_count; i++) {
    cJSON_Delete(suite->jobs[i].request);
    free(suite->jobs[i].nondefault_params);
  }
  free(suite->text);
  free(suite);
}

/* --- jobs -------------------------------------------------------------------------------------------------------------- */

static void set_member(cJSON *object, const char *name, cJSON *value) {
  cJSON_DeleteItemFromObjectCaseSensitive(object, name);
  cJSON_AddItemToObject(object, name, value);
}

char *rl_suite_print_request(const rl_suite_job *job, const char *device, uint32_t passes, bool fresh_worker) {
  cJSON *request = cJSON_Duplicate(job->request, true), *names = cJSON_CreateArray();
  set_member(request, "device", cJSON_CreateString(device));
  set_member(request, "fresh_worker", cJSON_CreateBool(fresh_worker));
  for (int i = 0; i < RL_PASS_COUNT; i++)
    if ((passes & 1u << i) != 0) cJSON_AddItemToArray(names, cJSON_CreateString(rl_pass_names[i]));
  set_member(request, "passes", names);
  char *text = request != NULL && names != NULL ? cJSON_PrintUnformatted(request) : NULL;
  cJSON_Delete(request);
  return text;
}

/* Parses the text of a JSON object, removes the members with these names, and returns the new text, which the caller frees; NULL
 * if memory is exhausted. */
static char *print_without(const char *text, const char *const *names, size_t count) {
  RL_CLEANUP(rl_json_cleanup) cJSON *object = cJSON_Parse(text);
  for (size_t i = 0; i < count; i++) cJSON_DeleteItemFromObjectCaseSensitive(object, names[i]);
  return object != NULL ? cJSON_PrintUnformatted(object) : NULL;
}

/* Returns a run's non-default parameters as JSON text without the hashes of posted code. The caller frees the text; NULL if
 * memory is exhausted. */
static char *print_params(const rl_job_spec *spec, const rl_run_spec *run) {
  static const char *const hashes[] = {"source", "code_sha256"};
  return spec->source_json == NULL ? strdup(run->nondefault_params) : print_without(run->nondefault_params, hashes, 2);
}

/* Returns the members of posted code other than the code itself, such as arguments and grid, as JSON text; "" for a job without
 * posted code. The caller frees the text; NULL if memory is exhausted. */
static char *print_program(const rl_job_spec *spec) {
  static const char *const code_members[] = {"code", "binary"};
  return spec->source_json == NULL ? strdup("") : print_without(spec->source_json, code_members, 2);
}

/* Hashes the properties in which comparable jobs are equal: the workloads, variants and parameters of their runs. Posted code is
 * not hashed, because a suite compares versions of that code. */
static int hash_runs(const rl_job_spec *spec, char sha256[RL_SHA256_SIZE], rl_error *err) {
  RL_CLEANUP(rl_free_text) char *text = NULL;
  RL_CLEANUP(rl_free_text) char *program = print_program(spec);
  size_t size = 0;
  FILE *stream = program != NULL ? open_memstream(&text, &size) : NULL;
  if (stream == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  bool complete = true;
  fputs(program, stream);
  for (int i = 0; i < spec->run_count; i++) {
    RL_CLEANUP(rl_free_text) char *params = print_params(spec, &spec->runs[i]);
    fprintf(stream, "%s\n%s\n%s\n", spec->runs[i].workload, spec->runs[i].variant, params != NULL ? params : "");
    complete = complete && params != NULL;
  }
  if (fclose(stream) != 0 || !complete) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  rl_sha256(text, size, sha256);
  return 0;
}

static int copy_spec(const rl_job_spec *spec, rl_suite_job *job, rl_error *err) {
  snprintf(job->workload, sizeof job->workload, "%s", spec->runs[0].workload);
  snprintf(job->variant, sizeof job->variant, "%s", spec->runs[0].variant);
  job->nondefault_params = strdup(spec->runs[0].nondefault_params);
  job->variant_count = spec->run_count;
  for (int i = 0; i < spec->run_count; i++) memcpy(job->variants[i], spec->runs[i].variant, sizeof job->variants[i]);
  job->passes = spec->passes;
  job->needs_gpu = spec->needs_gpu;
  if (job->nondefault_params == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  return hash_runs(spec, job->sha256, err);
}

/* Prepends `path` to the error's JSON pointer. */
static void prefix_pointer(const char *path, rl_error *err) {
  char pointer[sizeof err->json_pointer];
  if (err == NULL || err->domain != RL_INPUT) return;
  snprintf(pointer, sizeof pointer, "%s%s", path, err->json_pointer);
  memcpy(err->json_pointer, pointer, sizeof pointer);
}

static int parse_request(const cJSON *request, const char *path, const rl_job_policy *policy, rl_suite_job *job, rl_error *err) {
  static const char *const fixed[] = {"device", "fresh_worker"};
  char pointer[sizeof err->json_pointer];
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    snprintf(pointer, sizeof pointer, "%.70s/%s", path, fixed[i]);
    if (cJSON_GetObjectItemCaseSensitive(request, fixed[i]) != NULL)
      return rl_fail_at(err, pointer, "a suite sets %s itself; choose the device with the suite's field device", fixed[i]);
  }
  RL_CLEANUP(rl_free_text) char *text = cJSON_PrintUnformatted(request);
  rl_job_spec *spec = calloc(1, sizeof *spec);
  int rc = text == NULL || spec == NULL ? rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite")
                                        : rl_job_spec_parse(text, strlen(text), policy, spec, err);
  if (rc < 0) prefix_pointer(path, err);
  else rc = copy_spec(spec, job, err);
  if (spec != NULL) rl_job_spec_clear(spec);
  free(spec);
  return rc;
}

static int decode_job(const cJSON *object, const char *path, const rl_job_policy *policy, rl_suite *suite, rl_error *err) {
  job_document document = {0};
  char pointer[sizeof err->json_pointer];
  if (rl_fields_decode(job_fields, object, path, &document, sizeof document, err) < 0) return -1;
  rl_suite_job *job = &suite->jobs[suite->job_count];
  snprintf(pointer, sizeof pointer, "%.80s/name", path);
  if (check_name(pointer, document.name, err) < 0) return -1;
  for (int i = 0; i < suite->job_count; i++)
    if (strcmp(suite->jobs[i].name, document.name) == 0)
      return rl_fail_at(err, pointer, "two jobs have the name %s", document.name);
  memcpy(job->name, document.name, sizeof job->name);
  suite->job_count++; /* rl_suite_free now clears the job too */
  job->request = cJSON_Duplicate(document.request, true);
  if (job->request == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  snprintf(pointer, sizeof pointer, "%.80s/request", path);
  return parse_request(job->request, pointer, policy, job, err);
}

/* --- metrics ----------------------------------------------------------------------------------------------------------- */

const rl_suite_job *rl_suite_find_job(const rl_suite *suite, const char *name) {
  for (int i = 0; i < suite->job_count; i++)
    if (strcmp(suite->jobs[i].name, name) == 0) return &suite->jobs[i];
  return NULL;
}

static int check_variant(const rl_suite_job *job, const char *variant, const char *pointer, rl_error *err) {
  char names[RL_RUNS_MAX * sizeof job->variants[0]] = "";
  for (int i = 0; i < job->variant_count; i++) {
    if (variant[0] == '\0' || strcmp(job->variants[i], variant) == 0) return 0;
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", job->variants[i]);
  }
  return rl_fail_at(err, pointer, "job %s has no variant %s; it has %s", job->name, variant, names);
}

static bool is_metric_name(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  return text[0] != '\0' && strspn(text, letters) == strlen(text);
}

static int decode_metric(const cJSON *object, const char *path, rl_suite *suite, rl_error *err) {
  rl_suite_metric metric = {.threshold_ratio = 0.05};
  char pointer[sizeof err->json_pointer];
  if (rl_fields_decode(metric_fields, object, path, &metric, sizeof metric, err) < 0) return -1;
  snprintf(pointer, sizeof pointer, "%.80s/job", path);
  const rl_suite_job *job = rl_suite_find_job(suite, metric.job);
  if (job == NULL) return rl_fail_at(err, pointer, "the suite has no job %s", metric.job);
  snprintf(pointer, sizeof pointer, "%.80s/variant", path);
  if (check_variant(job, metric.variant, pointer, err) < 0) return -1;
  snprintf(pointer, sizeof pointer, "%.80s/metric", path);
  if (!is_metric_name(metric.metric)) return rl_fail_at(err, pointer, "a metric's name has letters, digits, _ and .");
  snprintf(pointer, sizeof pointer, "%.80s/threshold_ratio", path);
  if (metric.direction == RL_HIGHER_IS_BETTER && metric.threshold_ratio >= 1)
    return rl_fail_at(err, pointer, "must be below 1 if higher values are better, because no value can fall by more than 100 %%");
  for (int i = 0; i < suite->metric_count; i++) {
    const rl_suite_metric *other = &suite->metrics[i];
    if (strcmp(other->job, metric.job) == 0 && strcmp(other->variant, metric.variant) == 0 &&
        strcmp(other->metric, metric.metric) == 0)
      return rl_fail_at(err, path, "is equal to metric %d", i);
  }
  suite->metrics[suite->metric_count++] = metric;
  return 0;
}

const rl_suite_metric *rl_suite_find_metric(const rl_suite *suite, const char *job, const char *variant, const char *name) {
  const rl_suite_metric *found = NULL;
  for (int i = 0; i < suite->metric_count; i++) {
    const rl_suite_metric *metric = &suite->metrics[i];
    if (strcmp(metric->job, job) != 0 || strcmp(metric->metric, name) != 0) continue;
    if (strcmp(metric->variant, variant) == 0) return metric;
    if (metric->variant[0] == '\0') found = metric;
  }
  return found;
}

size_t rl_suite_count_keys(const rl_suite *suite) {
  size_t count = 0;
  for (const rl_suite_metric *metric = suite->metrics; metric < suite->metrics + suite->metric_count; metric++) {
    const rl_suite_job *job = rl_suite_find_job(suite, metric->job);
    for (int i = 0; i < job->variant_count; i++)
      count += rl_suite_find_metric(suite, job->name, job->variants[i], metric->metric) == metric;
  }
  return count;
}

/* Fails if the suite has so few blocks that no difference can be significant, given the number of metrics that are tested. */
static int check_blocks(const rl_suite *suite, const char *path, rl_error *err) {
  char pointer[sizeof err->json_pointer];
  size_t keys = rl_suite_count_keys(suite), needed = rl_verdict_count_needed_blocks(keys);
  if ((size_t)suite->blocks >= needed) return 0;
  snprintf(pointer, sizeof pointer, "%.80s/blocks", path);
  return rl_fail_at(err, pointer, "%zu metrics need at least %zu blocks: with fewer, no difference is significant", keys, needed);
}

void rl_suite_format_key(const char *job, const char *variant, const char *metric, char key[RL_SUITE_KEY_SIZE]) {
  snprintf(key, RL_SUITE_KEY_SIZE, "%s/%s/%s", job, variant, metric);
}

bool rl_suite_split_key(const char *key, char job[RL_SUITE_NAME_SIZE], char variant[32]) {
  const char *variant_begin = strchr(key, '/'), *metric = strrchr(key, '/');
  if (variant_begin == NULL || metric == variant_begin) return false;
  snprintf(job, RL_SUITE_NAME_SIZE, "%.*s", (int)(variant_begin - key), key);
  snprintf(variant, 32, "%.*s", (int)(metric - variant_begin - 1), variant_begin + 1);
  return true;
}

const rl_suite_metric *rl_suite_find_metric_by_key(const rl_suite *suite, const char *key) {
  char job[RL_SUITE_NAME_SIZE], variant[32];
  return rl_suite_split_key(key, job, variant) ? rl_suite_find_metric(suite, job, variant, strrchr(key, '/') + 1) : NULL;
}

/* --- the whole definition ---------------------------------------------------------------------------------------------- */

static void add_jobs(const rl_suite *suite, cJSON *document) {
  cJSON *jobs = cJSON_AddArrayToObject(document, "jobs");
  for (int i = 0; i < suite->job_count; i++) {
    cJSON *job = cJSON_CreateObject();
    cJSON_AddStringToObject(job, "name", suite->jobs[i].name);
    cJSON_AddItemToObject(job, "request", cJSON_Duplicate(suite->jobs[i].request, true));
    cJSON_AddItemToArray(jobs, job);
  }
}

static void add_metrics(const rl_suite *suite, cJSON *document) {
  cJSON *metrics = cJSON_AddArrayToObject(document, "metrics");
  for (int i = 0; i < suite->metric_count; i++) {
    cJSON *metric = cJSON_CreateObject();
    rl_fields_encode(metric_fields, &suite->metrics[i], metric);
    if (suite->metrics[i].variant[0] == '\0') cJSON_DeleteItemFromObject(metric, "variant");
    cJSON_AddItemToArray(metrics, metric);
  }
}

static int print_definition(rl_suite *suite, rl_error *err) {
  cJSON *document = cJSON_CreateObject();
  cJSON_AddStringToObject(document, "name", suite->name);
  cJSON_AddStringToObject(document, "summary", suite->summary);
  if (suite->device[0] != '\0') cJSON_AddStringToObject(document, "device", suite->device);
  cJSON_AddNumberToObject(document, "blocks", (double)suite->blocks);
  cJSON_AddNumberToObject(document, "time_budget_s", (double)suite->time_budget_s);
  add_jobs(suite, document);
  add_metrics(suite, document);
  cJSON_AddNumberToObject(cJSON_AddObjectToObject(document, "baseline"), "runs", (double)suite->baseline_runs);
  if (suite->canary != RL_SUITE_CANARY_ON_GPU_ONLY) cJSON_AddBoolToObject(document, "canary", suite->canary != 0);
  cJSON_AddBoolToObject(document, "profile", suite->profile);
  suite->text = cJSON_PrintUnformatted(document);
  cJSON_Delete(document);
  if (suite->text == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  if (strlen(suite->text) > RL_SUITE_TEXT_MAX)
    return rl_fail_at(err, "", "the definition is longer than %d bytes", RL_SUITE_TEXT_MAX);
  rl_sha256(suite->text, strlen(suite->text), suite->sha256);
  return 0;
}

static int decode_jobs(const cJSON *array, const char *path, const rl_job_policy *policy, rl_suite *suite, rl_error *err) {
  char pointer[sizeof err->json_pointer];
  int index = 0;
  const cJSON *element;
  cJSON_ArrayForEach (element, array) {
    snprintf(pointer, sizeof pointer, "%.60s/jobs/%d", path, index++);
    if (decode_job(element, pointer, policy, suite, err) < 0) return -1;
  }
  return 0;
}

static int decode_metrics(const cJSON *array, const char *path, rl_suite *suite, rl_error *err) {
  char pointer[sizeof err->json_pointer];
  int index = 0;
  const cJSON *element;
  cJSON_ArrayForEach (element, array) {
    snprintf(pointer, sizeof pointer, "%.60s/metrics/%d", path, index++);
    if (decode_metric(element, pointer, suite, err) < 0) return -1;
  }
  return 0;
}

static int decode_baseline(const cJSON *object, const char *path, rl_suite *suite, rl_error *err) {
  baseline_document document = {.runs = suite->baseline_runs};
  char pointer[sizeof err->json_pointer];
  if (object == NULL) return 0;
  snprintf(pointer, sizeof pointer, "%.80s/baseline", path);
  if (rl_fields_decode(baseline_fields, object, pointer, &document, sizeof document, err) < 0) return -1;
  suite->baseline_runs = document.runs;
  return 0;
}

static int decode(const cJSON *object, const char *path, const rl_job_policy *policy, rl_suite *suite, rl_error *err) {
  suite_document document = {.blocks = 7, .time_budget_s = 600, .canary = RL_SUITE_CANARY_ON_GPU_ONLY, .profile = true};
  char pointer[sizeof err->json_pointer];
  if (rl_fields_decode(suite_fields, object, path, &document, sizeof document, err) < 0) return -1;
  memcpy(suite->name, document.name, sizeof suite->name);
  memcpy(suite->summary, document.summary, sizeof suite->summary);
  memcpy(suite->device, document.device, sizeof suite->device);
  suite->blocks = document.blocks;
  suite->time_budget_s = document.time_budget_s;
  suite->canary = document.canary;
  suite->profile = document.profile;
  suite->baseline_runs = 5;
  snprintf(pointer, sizeof pointer, "%.80s/name", path);
  if (check_name(pointer, suite->name, err) < 0 || decode_jobs(document.jobs, path, policy, suite, err) < 0 ||
      decode_metrics(document.metrics, path, suite, err) < 0 || decode_baseline(document.baseline, path, suite, err) < 0 ||
      check_blocks(suite, path, err) < 0)
    return -1;
  return print_definition(suite, err);
}

int rl_suite_decode(const cJSON *object, const char *path, const rl_job_policy *policy, rl_suite **suite, rl_error *err) {
  RL_CLEANUP(rl_suite_cleanup) rl_suite *decoded = calloc(1, sizeof *decoded);
  if (decoded == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  if (decode(object, path, policy, decoded, err) < 0) return -1;
  *suite = rl_take_ownership(&decoded);
  return 0;
}

int rl_suite_parse(const char *text, size_t length, const rl_job_policy *policy, rl_suite **suite, rl_error *err) {
  cJSON *object = rl_json_parse(text, length, err);
  if (object == NULL) return -1;
  int rc = rl_suite_decode(object, "", policy, suite, err);
  cJSON_Delete(object);
  return rc;
}

/* --- the measured baseline -------------------------------------------------------------------------------------------- */

void rl_suite_move_pointer_to_against_request(rl_error *err) {
  char pointer[sizeof err->json_pointer];
  const char *rest = strstr(err->json_pointer, "/request");
  if (err->domain != RL_INPUT || rest == NULL) return;
  snprintf(pointer, sizeof pointer, "/against_request%s", rest + strlen("/request"));
  memcpy(err->json_pointer, pointer, sizeof pointer);
}

static cJSON *replace_members(const cJSON *request, const cJSON *replaced) {
  cJSON *merged = cJSON_Duplicate(request, true);
  const cJSON *member;
  cJSON_ArrayForEach (member, replaced) set_member(merged, member->string, cJSON_Duplicate(member, true));
  return merged;
}

static int add_baseline_job(const rl_suite_job *job, const cJSON *request, const rl_job_policy *policy, rl_suite *baseline,
                            rl_error *err) {
  rl_suite_job *added = &baseline->jobs[baseline->job_count++];
  memcpy(added->name, job->name, sizeof added->name);
  added->request = replace_members(job->request, request);
  if (added->request == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  if (parse_request(added->request, "/request", policy, added, err) < 0) return rl_suite_move_pointer_to_against_request(err), -1;
  if (added->variant_count == job->variant_count) return 0;
  return rl_fail_at(err, "/against_request", "job %s has %d runs, but %d with these members: each run needs a baseline run",
                    job->name, job->variant_count, added->variant_count);
}

int rl_suite_make_measured_baseline(const rl_suite *suite, const cJSON *request, const rl_job_policy *policy, rl_suite **baseline,
                                    rl_error *err) {
  RL_CLEANUP(rl_suite_cleanup) rl_suite *new_suite = calloc(1, sizeof *new_suite);
  if (new_suite == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  if (request->child == NULL)
    return rl_fail_at(err, "/against_request",
                      "must have a member in which the requests differ, such as {\"worker_build\":\"v1\"}");
  for (int i = 0; i < suite->job_count; i++)
    if (add_baseline_job(&suite->jobs[i], request, policy, new_suite, err) < 0) return -1;
  *baseline = rl_take_ownership(&new_suite);
  return 0;
}

cJSON *rl_suite_schema(void) { return rl_fields_schema(suite_fields); }
