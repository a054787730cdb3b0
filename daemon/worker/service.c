#include "worker/service.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/commit.h"

enum { MAX_CACHED_INSTANCES = 2 };
static const int64_t PROGRESS_INTERVAL_NS = 200000000;

static rl_outcome (*const run_pass[RL_PASSES])(rl_pass_context *pass, rl_error *err) = {
    [RL_PASS_TIMING] = rl_timing_run, [RL_PASS_ACTIVITY] = rl_activity_run, [RL_PASS_COUNTERS] = rl_counters_run};

typedef struct cached_instance { /* an instance that stays open for later requests */
  const rl_workload *workload;
  const rl_engine *engine;
  void *params;
  rl_instance *instance;
  rl_plan *iteration, *evaluation; /* NULL until they first run */
  uint64_t last_used;
  rl_memory memory; /* its own allocations; peaks since it was opened */
} cached_instance;

struct rl_service {
  rl_service_options options;
  cached_instance cached_instances[MAX_CACHED_INSTANCES];
  uint64_t requests;
  int64_t progress_sent_ns; /* time of the last progress */
  rl_pass_context pass;
  rl_observer observer; /* used for every request; its context is this service */
  cached_instance *current;
  uint64_t other_instances_bytes[RL_MEMORY_PURPOSE_COUNT], other_instances_total_bytes; /* allocated by other instances */
  double context_bytes;       /* device memory outside our allocator, after the last request */
  double used_bytes_at_start; /* device memory in use when this request started */
  double allocated_at_start;  /* bytes of our allocator at that time */
};

/* ---- progress -------------------------------------------------------------------------------------------------------- */

static void report_progress(rl_pass_context *pass, bool immediately) {
  rl_service *service = pass->context;
  int64_t now = rl_monotonic_ns();
  if (!immediately && now - service->progress_sent_ns < PROGRESS_INTERVAL_NS) return;
  service->progress_sent_ns = now;
  rl_progress *progress = &pass->current_progress;
  double iteration_ratio = progress->steps > 0 ? (double)progress->step / (double)progress->steps : 0;
  bool iterating =
      strcmp(progress->phase, "epoch") == 0 || strcmp(progress->phase, "warmup") == 0 || strcmp(progress->phase, "trace") == 0;
  double done_ratio =
      pass->iterations_total > 0 ? (pass->iterations_done + (iterating ? iteration_ratio : 0)) / pass->iterations_total : 0;
  progress->eta_s =
      done_ratio > 0 && done_ratio <= 1 ? (double)(now - pass->started_ns) * 1e-9 * (1 - done_ratio) / done_ratio : NAN;
  if (iterating && pass->instance->samples > 0 && progress->step > 0 &&
      pass->device->kind == RL_DEVICE_CPU) /* on CUDA the number of finished steps is known too late for a rate */
    progress->images_per_s = (double)pass->instance->samples * iteration_ratio / ((double)(now - pass->phase_started_ns) * 1e-9);
  pass->progress(pass, progress);
}

static void forward_progress(rl_pass_context *pass, const rl_progress *progress) {
  rl_service *service = pass->context;
  if (service->options.progress) service->options.progress(service->options.context, progress);
}

static void on_progress(void *context, uint64_t done, uint64_t total) {
  rl_pass_context *pass = &((rl_service *)context)->pass;
  pass->current_progress.step = (int64_t)done;
  pass->current_progress.steps = (int64_t)total;
  report_progress(pass, false);
}

static bool is_cancelled(void *context) {
  rl_service *service = context;
  return service->options.cancelled && service->options.cancelled(service->options.context);
}

void rl_pass_enter(rl_pass_context *pass, const char *phase, int64_t epoch, int64_t epochs) {
  bool first = pass->current_progress.phase[0] == '\0';
  snprintf(pass->current_progress.phase, sizeof pass->current_progress.phase, "%s", phase);
  pass->current_progress.epoch = epoch;
  pass->current_progress.epochs = epochs;
  pass->current_progress.step = pass->current_progress.steps = -1;
  pass->phase_started_ns = rl_monotonic_ns();
  report_progress(pass, first);
}

void rl_pass_iteration_done(rl_pass_context *pass) { pass->iterations_done++; }

rl_outcome rl_pass_outcome(int rc, const rl_error *err) {
  if (rc == 0) return RL_OUTCOME_DONE;
  return err->domain == RL_SYS && err->code == ECANCELED ? RL_OUTCOME_CANCELLED : RL_OUTCOME_FAILED;
}

int rl_pass_measure(rl_pass_context *pass, const char *name, double value, const char *reason, rl_error *err) {
  return rl_records_measure(pass->records, name, value, isnan(value) ? reason : NULL, err);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* Attributes allocations from now on to this instance. */
static void begin_memory_attribution(rl_service *service, const cached_instance *entry) {
  rl_memory *memory = &service->options.device->memory;
  for (int p = 0; p < RL_MEMORY_PURPOSE_COUNT; p++) {
    memory->peak_bytes[p] = memory->bytes[p];
    service->other_instances_bytes[p] = memory->bytes[p] - entry->memory.bytes[p];
  }
  memory->peak_total_bytes = memory->total_bytes;
  service->other_instances_total_bytes = memory->total_bytes - entry->memory.total_bytes;
}

static void raise_peak(uint64_t *peak, uint64_t top) {
  if (top > *peak) *peak = top;
}

/* Updates the instance's memory: all bytes that other instances do not own. */
static void update_memory(const rl_service *service, cached_instance *entry) {
  const rl_memory *memory = &service->options.device->memory;
  for (int p = 0; p < RL_MEMORY_PURPOSE_COUNT; p++) {
    entry->memory.bytes[p] = memory->bytes[p] - service->other_instances_bytes[p];
    raise_peak(&entry->memory.peak_bytes[p], memory->peak_bytes[p] - service->other_instances_bytes[p]);
  }
  entry->memory.total_bytes = memory->total_bytes - service->other_instances_total_bytes;
  raise_peak(&entry->memory.peak_total_bytes, memory->peak_total_bytes - service->other_instances_total_bytes);
}

rl_memory rl_pass_memory(const rl_pass_context *pass) {
  const rl_service *service = pass->context;
  update_memory(service, service->current);
  return service->current->memory;
}

static double used_bytes(const rl_service *service) {
  rl_sensor_reading reading;
  rl_sensors_read(service->options.sensors, &reading);
  return reading.memory_used_bytes;
}

/* Only this process uses the device during a request, so growth outside our allocator belongs to the CUDA context. */
double rl_pass_cuda_context_bytes(const rl_pass_context *pass) {
  const rl_service *service = pass->context;
  double grown_bytes = used_bytes(service) - service->used_bytes_at_start;
  return service->context_bytes + grown_bytes - ((double)pass->device->memory.total_bytes - service->allocated_at_start);
}

double rl_pass_bytes_before_open(const rl_pass_context *pass) {
  return ((const rl_service *)pass->context)->options.bytes_before_open;
}

/* ---- cached instances ------------------------------------------------------------------------------------------------ */

static void close_cached_instance(rl_device *device, cached_instance *entry) {
  if (entry->evaluation) device->ops->plan_free(device, entry->evaluation);
  if (entry->iteration) device->ops->plan_free(device, entry->iteration);
  if (entry->instance) entry->instance->ops->close(entry->instance);
  free(entry->params);
  *entry = (cached_instance){0};
}

/* Closes every instance except `except` (NULL: all). */
static void close_cached_instances(rl_service *service, const cached_instance *except) {
  for (int i = 0; i < MAX_CACHED_INSTANCES; i++)
    if (&service->cached_instances[i] != except) close_cached_instance(service->options.device, &service->cached_instances[i]);
}

static cached_instance *find_cached_instance(rl_service *service, const rl_workload *workload, const void *params) {
  for (int i = 0; i < MAX_CACHED_INSTANCES; i++) {
    cached_instance *entry = &service->cached_instances[i];
    if (entry->instance && entry->workload == workload && memcmp(entry->params, params, workload->params_size) == 0) return entry;
  }
  return NULL;
}

static cached_instance *least_recently_used(rl_service *service) {
  cached_instance *found = &service->cached_instances[0];
  for (int i = 1; i < MAX_CACHED_INSTANCES; i++)
    if (service->cached_instances[i].last_used < found->last_used) found = &service->cached_instances[i];
  return found;
}

/* Opens an instance in the least recently used slot and copies params. When the device is out of memory, closes all other
 * instances and tries once more. */
static int open_cached_instance(rl_service *service, const rl_workload *workload, const void *params, cached_instance **opened,
                                rl_error *err) {
  rl_device *device = service->options.device;
  const rl_engine *engine = rl_engine_find(workload->name, rl_workload_engine_name(workload, params), params, err);
  if (!engine) return -1;
  cached_instance *entry = least_recently_used(service);
  close_cached_instance(device, entry);
  for (int attempt = 0;; attempt++) {
    *entry = (cached_instance){.workload = workload, .engine = engine, .params = malloc(workload->params_size)};
    if (!entry->params) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for parameters");
    memcpy(entry->params, params, workload->params_size);
    begin_memory_attribution(service, entry);
    if (engine->open(device, entry->params, &entry->instance, err) >= 0) {
      update_memory(service, entry);
      *opened = entry;
      return 0;
    }
    close_cached_instance(device, entry);
    if (attempt > 0 || service->other_instances_total_bytes == 0 || err->domain == RL_INPUT) return -1;
    close_cached_instances(service, NULL);
  }
}

static void close_others(rl_service *service) {
  update_memory(service, service->current);
  close_cached_instances(service, service->current);
  begin_memory_attribution(service, service->current);
}

static int run_planned(rl_pass_context *pass, const rl_sequence_list *sequence_list, rl_plan **plan, const rl_observer *observer,
                       rl_elapsed *elapsed, rl_error *err) {
  rl_device *device = pass->device;
  if (!*plan && device->ops->plan(device, sequence_list, plan, err) < 0) {
    close_others((rl_service *)pass->context); /* the device may be out of memory */
    if (device->ops->plan(device, sequence_list, plan, err) < 0) return -1;
  }
  return device->ops->run(device, *plan, observer, elapsed, err);
}

int rl_pass_iterate(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  cached_instance *entry = ((rl_service *)pass->context)->current;
  return run_planned(pass, &entry->instance->iteration, &entry->iteration, observer, elapsed, err);
}

int rl_pass_evaluate(rl_pass_context *pass, rl_elapsed *elapsed, rl_error *err) {
  cached_instance *entry = ((rl_service *)pass->context)->current;
  return run_planned(pass, &entry->instance->evaluation, &entry->evaluation, &pass->observer, elapsed, err);
}

/* ---- requests ---------------------------------------------------------------------------------------------------------- */

static int fill_facts(const rl_service *service, const cached_instance *entry, rl_run_facts *facts, rl_error *err) {
  const rl_instance *instance = entry->instance;
  rl_cost cost = entry->workload->cost(entry->params);
  *facts = (rl_run_facts){.deterministic = instance->deterministic,
                          .partial = instance->partial_dataset,
                          .images_per_epoch = (int64_t)instance->samples,
                          .steps_per_epoch = (int64_t)instance->steps,
                          .parameters = (int64_t)instance->trained_parameters,
                          .floor_operations = cost.operations,
                          .floor_bytes = cost.bytes,
                          .floor_written_bytes = cost.written_bytes,
                          .commit = RL_COMMIT};
  snprintf(facts->floor_precision, sizeof facts->floor_precision, "%s", cost.precision ? cost.precision : "");
  snprintf(facts->engine, sizeof facts->engine, "%s", entry->engine->description->name);
  snprintf(facts->dataset, sizeof facts->dataset, "%s", instance->dataset);
  snprintf(facts->dataset_sha256, sizeof facts->dataset_sha256, "%s", instance->dataset_sha256);
  if (instance->deterministic_note)
    snprintf(facts->deterministic_note, sizeof facts->deterministic_note, "%s", instance->deterministic_note);
  rl_auto(rl_free_text) char *device = rl_device_facts(service->options.device->index, err);
  if (!device) return -1;
  if (strlen(device) >= sizeof facts->device_facts)
    return rl_fail(err, RL_SYS, EOVERFLOW, "the device's properties need %zu bytes, more than the limit of %zu", strlen(device),
                   sizeof facts->device_facts - 1);
  strcpy(facts->device_facts, device);
  return 0;
}

static int check_role(const rl_service *service, int pass, rl_error *err) {
  const char *role = service->options.role;
  const char *needed = pass == RL_PASS_TIMING ? "clean" : "profiled";
  if (strcmp(role, "any") == 0 || strcmp(role, needed) == 0) return 0;
  return rl_fail(err, RL_INPUT, 0, "the %s pass needs a worker in the role %s; this worker has the role %s", rl_pass_names[pass],
                 needed, role);
}

static int decode(const rl_request *request, const rl_workload **workload, void **params, rl_error *err) {
  const rl_workload *found = rl_workload_find(request->workload);
  if (!found) return rl_fail_at(err, "/workload", "there is no workload \"%s\"", request->workload);
  void *decoded = calloc(1, found->params_size);
  if (!decoded) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for parameters");
  found->defaults(decoded);
  if (rl_fields_parse(found->fields, request->params, strlen(request->params), decoded, found->params_size, err) < 0) {
    free(decoded);
    return -1;
  }
  *workload = found;
  *params = decoded;
  return 0;
}

/* Decodes the profile of the counters pass; members that the request lacks get their defaults. */
static int decode_profile(const rl_request *request, rl_profile *profile, rl_error *err) {
  rl_profile requested = {.launch = -1};
  if (request->profile[0] != '\0' &&
      rl_fields_parse(rl_profile_fields, request->profile, strlen(request->profile), &requested, sizeof requested, err) < 0)
    return -1;
  *profile = rl_profile_resolve(RL_PROFILE_SET_AUTO, &requested);
  return 0;
}

void rl_service_release_profiler(rl_service *service) {
  rl_profiler *profiler = service->options.profiler;
  if (profiler && profiler->ops->release) profiler->ops->release(profiler);
}

/* Finds or opens the request's instance, stores it in service->current, and initialises service->pass for it. */
static int prepare(rl_service *service, const rl_request *request, rl_records *records, rl_error *err) {
  const rl_workload *workload = NULL;
  void *params = NULL;
  rl_profile profile;
  if (check_role(service, request->pass, err) < 0 || decode_profile(request, &profile, err) < 0 ||
      decode(request, &workload, &params, err) < 0)
    return -1;
  service->current = find_cached_instance(service, workload, params);
  if (!service->current || request->pass != RL_PASS_COUNTERS) rl_service_release_profiler(service);
  int rc = service->current ? 0 : open_cached_instance(service, workload, params, &service->current, err);
  free(params);
  if (rc) return -1;
  service->current->last_used = ++service->requests;
  if (fill_facts(service, service->current, &records->facts, err) < 0) return -1;
  records->has_facts = true;
  if (service->options.opened) service->options.opened(service->options.context, &records->facts);

  const rl_service_options *options = &service->options;
  cached_instance *entry = service->current;
  rl_pass_context *pass = &service->pass;
  *pass = (rl_pass_context){.device = options->device,
                            .profiler = options->profiler,
                            .instance = entry->instance,
                            .workload = entry->workload,
                            .engine = entry->engine,
                            .params = entry->params,
                            .records = records,
                            .progress = forward_progress,
                            .context = service,
                            .profiler_reason = options->profiler_reason,
                            .sensors = options->sensors,
                            .profile = profile,
                            .started_ns = rl_monotonic_ns(),
                            .current_progress = {.epoch = -1,
                                                 .epochs = -1,
                                                 .step = -1,
                                                 .steps = -1,
                                                 .train_loss = NAN,
                                                 .images_per_s = NAN,
                                                 .eta_s = NAN,
                                                 .test_accuracy_ratio = NAN}};
  pass->observer = service->observer;
  snprintf(pass->current_progress.pass, sizeof pass->current_progress.pass, "%s", rl_pass_names[request->pass]);
  return 0;
}

rl_outcome rl_service_serve(rl_service *service, const rl_request *request, rl_records *records, rl_error *err) {
  rl_error ignored;
  if (!err) err = &ignored;
  service->used_bytes_at_start = used_bytes(service);
  service->allocated_at_start = (double)service->options.device->memory.total_bytes;
  if (prepare(service, request, records, err) < 0) return rl_pass_outcome(-1, err);
  begin_memory_attribution(service, service->current);
  rl_outcome outcome = run_pass[request->pass](&service->pass, err);
  update_memory(service, service->current);
  service->context_bytes = rl_pass_cuda_context_bytes(&service->pass);
  return outcome;
}

bool rl_service_device_works(rl_service *service) {
  rl_device *device = service->options.device;
  void *memory;
  uint32_t word = 1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, sizeof word, &memory, NULL) < 0) return false;
  int rc = device->ops->zero(device, memory, sizeof word, NULL);
  if (!rc) rc = device->ops->download(device, &word, memory, sizeof word, NULL);
  device->ops->release(device, memory);
  return rc == 0 && word == 0;
}

int rl_service_open(const rl_service_options *options, rl_service **service, rl_error *err) {
  rl_service *opened = calloc(1, sizeof *opened);
  if (!opened) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the service");
  opened->options = *options;
  opened->observer = (rl_observer){.context = opened, .cancelled = is_cancelled, .progress = on_progress};
  options->device->observer = &opened->observer;
  opened->context_bytes = used_bytes(opened) - options->bytes_before_open;
  *service = opened;
  return 0;
}

void rl_service_close(rl_service *service) {
  if (!service) return;
  close_cached_instances(service, NULL);
  service->options.device->observer = NULL;
  free(service);
}
